"""Arithmetic: `Add Sub Mul Div Max Min AbsDiff Saturate SaturateFloat Abs Neg Sqr Sqrt Exp Ln Pow`."""

from __future__ import annotations

import math
import struct
from typing import Any, ClassVar

from fkl.bounds import LEAST, MOST, Bounds
from fkl.dtypes import DType
from fkl.operations.base import Elementwise, Extents, Field, Lowered, Read
from fkl.operations.values import numbers_tuple, pixel_bytes, pixel_field

__all__ = [
    "Abs", "AbsDiff", "Add", "Binary", "Div", "Exp", "Ln", "Max", "Min", "Mul", "Neg", "Pow", "Saturate",
    "SaturateFloat", "Sqr", "Sqrt", "Sub", "Unary",
]  # fmt: skip


class Binary(Elementwise):
    """``x op value``: the value is one number, or one number per channel, in the chain's own type.

    A bound read as the value makes it the pixel of a second array: of the chain's type and size there, or one plane
    for all planes.
    """

    function: ClassVar[str]
    #: Whether the value may be a read.
    reads: ClassVar[bool] = True
    #: Whether the value is all there is to know, packed by `pixel_bytes`: `fkl.patch` may then write it in place.
    plain: ClassVar[bool] = True
    #: Whether zero is refused.
    nonzero: ClassVar[bool] = False
    #: Whether it is one of the device functions that take how a quotient is made.
    quotient: ClassVar[bool] = False
    #: The second array's read, if the value is one.
    operand: Read | None = None

    def __init__(self, value: Any) -> None:
        name = type(self).__name__
        if isinstance(value, Read):
            if getattr(value, "layout", "") != "packed":
                raise TypeError(f"{name}: an operand is read with TensorRead, got {value!r}")
            if value.source is None:
                raise ValueError(f"{name}: a read as operand is bound at once: {name}(TensorRead(array))")
            self.operand = value
            self.value: Any = ()
        else:
            self.value = numbers_tuple(value, name)

    @property
    def form(self) -> tuple[Any, ...] | None:
        return (type(self),) if self.operand is None else None

    def lower(self, dtype: DType) -> Lowered:
        self.check(dtype)
        how = "{m}" if self.quotient and dtype.is_float and dtype.itemsize <= 4 else ""
        if self.operand is not None:
            if not self.reads:
                raise TypeError(f"{type(self).__name__} takes numbers, not a read")
            load = f"Packed<{dtype.ctype}, {dtype.channels}>::load({{0}}, x, y, z)"
            return Lowered(f"auto {{y}} = {self.function}({{x}}, {load}{how});", (Field("Image", 32, 8),), dtype, 2)
        return Lowered(f"auto {{y}} = {self.function}({{x}}, {{0}}{how});", (pixel_field(dtype),), dtype)

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        if self.operand is not None:
            return (bytes(32),)  # the binding fills it
        return (pixel_bytes(dtype, self.value, type(self).__name__),)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.value if self.operand is None else self.operand,), {}

    def __reduce__(self) -> Any:
        if self.operand is not None:
            raise TypeError(f"{type(self).__name__} reads a bound array and cannot be pickled")
        return super().__reduce__()


class Unary(Elementwise):
    """``f(x)``, without values."""

    function: ClassVar[str]

    @property
    def form(self) -> tuple[Any, ...] | None:
        return (type(self),)

    def lower(self, dtype: DType) -> Lowered:
        self.check(dtype)
        return Lowered(f"auto {{y}} = {self.function}({{x}});", (), dtype)


class Add(Binary):
    """``x + value``. Integers wrap modulo 2^n; float16 and bfloat16 add in float32 and round.

    Parameters
    ----------
    value : number or sequence of numbers
        One for all channels, or one per channel.
    """

    function = "add"

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.plus() if self.operand is None else None


class Sub(Binary):
    """``x - value``. Integers wrap modulo 2^n.

    Parameters
    ----------
    value : number or sequence of numbers
        One for all channels, or one per channel.
    """

    function = "sub"

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.plus() if self.operand is None else None


class Mul(Binary):
    """``x * value``. Integers wrap modulo 2^n.

    Parameters
    ----------
    value : number or sequence of numbers
        One for all channels, or one per channel.
    """

    function = "mul"

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.scaled(LEAST, LEAST - 23, MOST) if self.operand is None else None


def reciprocals(divisors: bytes) -> bytes:
    """The correctly rounded reciprocal of every float32; of what is too small for that, an infinity."""
    out = []
    for (value,) in struct.iter_unpack("<f", divisors):
        try:
            # No reciprocal of 24 bits lies so near to the middle of two floats that rounding twice would matter.
            out.append(struct.pack("<f", 1.0 / value))
        except (OverflowError, ZeroDivisionError):
            out.append(struct.pack("<f", math.copysign(math.inf, value)))
    return b"".join(out)


class Div(Binary):
    """``x / value``: IEEE for floats, truncated toward zero for integers (MIN / -1 gives MIN).

    Parameters
    ----------
    value : number or sequence of numbers
        One for all channels, or one per channel; none may be zero.

    Raises
    ------
    ValueError
        A zero.
    """

    function = "div"
    nonzero = True
    quotient = True

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        if self.operand is not None:
            return
        parts: tuple[Any, ...] = self.value if isinstance(self.value, tuple) else (self.value,)
        if any(v == 0 for v in parts):
            raise ValueError(f"Div: a divisor is zero in {self.value!r}")

    def lower(self, dtype: DType) -> Lowered:
        if self.operand is not None or dtype.base != "float32":
            return super().lower(dtype)
        # The divisors' reciprocals are made once, here, and not by every thread.
        field = pixel_field(dtype)
        return Lowered("auto {y} = div_by({x}, {0}, {1}{m});", (field, field), dtype)

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        fields = super().values(dtype, extents)
        if self.operand is not None or dtype.base != "float32":
            return fields
        return *fields, reciprocals(fields[0])

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.over_moderate() if self.operand is None else None


class Max(Binary):
    """The larger of ``x`` and ``value``; NaN loses to a number (`numpy.fmax`).

    Parameters
    ----------
    value : number or sequence of numbers
        One for all channels, or one per channel.
    """

    function = "max_"
    takes = ("float", "integer", "bool")

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.joined() if self.operand is None else None


class Min(Binary):
    """The smaller of ``x`` and ``value``; NaN loses to a number (`numpy.fmin`).

    Parameters
    ----------
    value : number or sequence of numbers
        One for all channels, or one per channel.
    """

    function = "min_"
    takes = ("float", "integer", "bool")

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.joined() if self.operand is None else None


class AbsDiff(Binary):
    """``|x - value|``, computed as max - min exactly and saturated to the type (`cv2.absdiff`).

    Parameters
    ----------
    value : number or sequence of numbers
        One for all channels, or one per channel.
    """

    function = "absdiff"

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.plus() if self.operand is None else None


class Saturate(Elementwise):
    """Clamp to [low, high]; NaN stays NaN (`numpy.clip`).

    Parameters
    ----------
    low, high : number or sequence of numbers
        One for all channels, or one per channel.

    Raises
    ------
    ValueError
        ``low`` above ``high`` in any channel.
    """

    def __init__(self, low: Any, high: Any) -> None:
        self.low = numbers_tuple(low, "Saturate")
        self.high = numbers_tuple(high, "Saturate")
        lows = self.low if isinstance(self.low, tuple) else (self.low,)
        highs = self.high if isinstance(self.high, tuple) else (self.high,)
        if len(lows) > 1 and len(highs) > 1 and len(lows) != len(highs):
            raise ValueError(f"Saturate: low has {len(lows)} numbers and high has {len(highs)}")
        count = max(len(lows), len(highs))
        lows = lows * count if len(lows) == 1 else lows
        highs = highs * count if len(highs) == 1 else highs
        if any(not a <= b for a, b in zip(lows, highs, strict=True)):
            raise ValueError(f"Saturate: low must not exceed high, got low={self.low!r}, high={self.high!r}")

    def lower(self, dtype: DType) -> Lowered:
        self.check(dtype)
        field = pixel_field(dtype)
        return Lowered("auto {y} = saturate({x}, {0}, {1});", (field, field), dtype)

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        return pixel_bytes(dtype, self.low, "Saturate"), pixel_bytes(dtype, self.high, "Saturate")

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.low, self.high), {}

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.joined()


class SaturateFloat(Unary):
    """Clamp to [0, 1]; NaN becomes 0. Float types only."""

    function = "saturate_float"
    takes = ("float",)

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.joined()


class Abs(Unary):
    """``|x|``; the smallest integer of a signed type stays itself."""

    function = "abs_"

    def bounds(self, before: Bounds) -> Bounds | None:
        return before


class Neg(Unary):
    """``-x``; integers wrap modulo 2^n."""

    function = "neg"

    def bounds(self, before: Bounds) -> Bounds | None:
        return before._replace(negative_zero=True)


class Sqr(Unary):
    """``x * x``; integers wrap modulo 2^n."""

    function = "sqr"

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.scaled(*before[:3])


class Sqrt(Unary):
    """Square root, correctly rounded. Float types only."""

    function = "sqrt_"
    takes = ("float",)


class Exp(Unary):
    """``e ** x`` within 2 ulp (16-bit floats 1 ulp). Float types only."""

    function = "exp_"
    takes = ("float",)


class Ln(Unary):
    """Natural logarithm within 2 ulp (16-bit floats 1 ulp). Float types only."""

    function = "ln"
    takes = ("float",)


class Pow(Binary):
    """``x ** power`` within 4 ulp (16-bit floats 1 ulp). Float types only.

    Parameters
    ----------
    power : number or sequence of numbers
        One for all channels, or one per channel.
    """

    function = "pow_"
    takes = ("float",)
    reads = False
