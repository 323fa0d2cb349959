"""Bits of integers: `BwAnd BwOr BwXor BwNot ShiftLeft ShiftRight IsEven`."""

from __future__ import annotations

from typing import Any

from fkl.dtypes import DType
from fkl.operations.arithmetic import Binary, Unary
from fkl.operations.base import Elementwise, Extents, Lowered
from fkl.operations.values import numbers_tuple, pixel_bytes, pixel_field

__all__ = ["BwAnd", "BwNot", "BwOr", "BwXor", "IsEven", "ShiftLeft", "ShiftRight"]


class BwAnd(Binary):
    """``x & value``. Integers and bool.

    Parameters
    ----------
    value : integer or sequence of integers
        One for all channels, or one per channel.
    """

    function = "bw_and"
    takes = ("integer", "bool")


class BwOr(Binary):
    """``x | value``. Integers and bool.

    Parameters
    ----------
    value : integer or sequence of integers
        One for all channels, or one per channel.
    """

    function = "bw_or"
    takes = ("integer", "bool")


class BwXor(Binary):
    """``x ^ value``. Integers and bool.

    Parameters
    ----------
    value : integer or sequence of integers
        One for all channels, or one per channel.
    """

    function = "bw_xor"
    takes = ("integer", "bool")


class BwNot(Unary):
    """``~x`` for integers, ``not x`` for bool."""

    function = "bw_not"
    takes = ("integer", "bool")


class _Shift(Elementwise):
    function: str
    takes = ("integer",)

    def __init__(self, bits: Any) -> None:
        name = type(self).__name__
        self.bits = numbers_tuple(bits, name)
        parts = self.bits if isinstance(self.bits, tuple) else (self.bits,)
        for n in parts:
            if not 0 <= n <= 63 or n != int(n):
                raise ValueError(f"{name}: a shift is a whole number of 0 to bits - 1, got {n!r}")

    def lower(self, dtype: DType) -> Lowered:
        self.check(dtype)
        return Lowered(f"auto {{y}} = {self.function}({{x}}, {{0}});", (pixel_field(dtype.with_base("int32")),), dtype)

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        name = type(self).__name__
        parts = self.bits if isinstance(self.bits, tuple) else (self.bits,)
        width = dtype.itemsize * 8
        if any(n >= width for n in parts):
            raise ValueError(f"{name}: {self.bits!r} is outside 0..{width - 1}, the chain is {dtype} there")
        return (pixel_bytes(dtype.with_base("int32"), self.bits, name),)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.bits,), {}


class ShiftLeft(_Shift):
    """``x << bits``; bits shifted out are lost. Integers only.

    Parameters
    ----------
    bits : integer or sequence of integers
        0 to the type's bits - 1; one for all channels, or one per channel.
    """

    function = "shift_left"


class ShiftRight(_Shift):
    """``x >> bits``, arithmetic for signed types. Integers only.

    Parameters
    ----------
    bits : integer or sequence of integers
        0 to the type's bits - 1; one for all channels, or one per channel.
    """

    function = "shift_right"


class IsEven(Unary):
    """``x % 2 == 0`` as bool. Integers only."""

    function = "is_even"
    takes = ("integer",)

    def lower(self, dtype: DType) -> Lowered:
        self.check(dtype)
        return Lowered("auto {y} = is_even({x});", (), dtype.with_base("bool"))
