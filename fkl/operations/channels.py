"""Channels of a pixel: `VectorReorder VectorReorderRT Discard AddLast VectorReduce VectorAnd`."""

from __future__ import annotations

from typing import Any, ClassVar

from fkl.bounds import Bounds
from fkl.checks import integer
from fkl.dtypes import MAX_CHANNELS, DType
from fkl.operations.base import Elementwise, Extents, Field, Lowered, article
from fkl.operations.values import number, pack_i32, scalar_bytes

__all__ = ["AddLast", "Discard", "VectorAnd", "VectorReduce", "VectorReorder", "VectorReorderRT"]


class _Channels(Elementwise):
    headers: ClassVar[tuple[str, ...]] = ("fkl/channels.h",)
    takes: ClassVar[tuple[str, ...]] = ("float", "integer", "bool")


def _indices(name: str, indices: tuple[Any, ...]) -> tuple[int, ...]:
    if len(indices) == 1 and isinstance(indices[0], (tuple, list)):
        indices = tuple(indices[0])
    if not 1 <= len(indices) <= MAX_CHANNELS:
        raise ValueError(f"{name} takes 1 to 4 channel indices, got {len(indices)}")
    numbers = tuple(integer(i, f"{name}: a channel index") for i in indices)
    for i in numbers:
        if not 0 <= i < len(indices):
            raise ValueError(f"{name}: channel index {i} is outside 0..{len(indices) - 1}")
    return numbers


class VectorReorder(_Channels):
    """``out[k] = in[indices[k]]``; the order is part of the kernel's type.

    Parameters
    ----------
    *indices : int
        One per channel of the chain, each inside 0..channels - 1; repeats are allowed.

    Raises
    ------
    ValueError
        An index outside, or a count that is not the chain's channel count.
    """

    def __init__(self, *indices: int) -> None:
        self.indices = _indices(type(self).__name__, indices)

    def _check_count(self, dtype: DType) -> None:
        if len(self.indices) != dtype.channels:
            raise ValueError(
                f"{self!r} has {article(len(self.indices), 'index')} for a chain of "
                f"{article(dtype.channels, 'channel')} ({dtype})".replace("indexs", "indices")
            )

    @property
    def form(self) -> tuple[Any, ...] | None:
        return type(self), self.indices

    def lower(self, dtype: DType) -> Lowered:
        self._check_count(dtype)
        spelled = ", ".join(map(str, self.indices))
        return Lowered(f"auto {{y}} = reorder<{spelled}>({{x}});", (), dtype)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.indices, {}

    def bounds(self, before: Bounds) -> Bounds | None:
        return before


class VectorReorderRT(VectorReorder):
    """``out[k] = in[indices[k]]``; the order is a value, so that changing it compiles nothing.

    Parameters
    ----------
    *indices : int
        One per channel of the chain, each inside 0..channels - 1; repeats are allowed.
    """

    def lower(self, dtype: DType) -> Lowered:
        self._check_count(dtype)
        c = dtype.channels
        return Lowered("auto {y} = reorder_rt({x}, {0});", (Field(f"pixel<i32, {c}>", 4 * c, 4),), dtype)

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        self._check_count(dtype)
        return (pack_i32(*self.indices),)


class Discard(_Channels):
    """Keep the first channels.

    Parameters
    ----------
    keep : int
        1 to the chain's channels - 1.
    """

    def __init__(self, keep: int) -> None:
        self.keep = integer(keep, "Discard: the number of channels to keep")
        if not 1 <= self.keep < MAX_CHANNELS:
            raise ValueError(f"Discard keeps 1 to 3 channels, got {keep!r}")

    def lower(self, dtype: DType) -> Lowered:
        if self.keep >= dtype.channels:
            raise ValueError(
                f"Discard({self.keep}) keeps fewer channels than the chain has, which is {dtype} there"
            )
        return Lowered(f"auto {{y}} = discard<{self.keep}>({{x}});", (), dtype.with_channels(self.keep))

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.keep,), {}

    def bounds(self, before: Bounds) -> Bounds | None:
        return before


class AddLast(_Channels):
    """Append one channel that holds a constant.

    Parameters
    ----------
    value : number
        In the chain's own type.
    """

    def __init__(self, value: Any) -> None:
        self.value = number(value, "AddLast")

    def lower(self, dtype: DType) -> Lowered:
        if dtype.channels == MAX_CHANNELS:
            raise ValueError(f"AddLast: the chain has 4 channels already ({dtype})")
        field = Field(f"pixel<{dtype.ctype}, 1>", dtype.itemsize, dtype.itemsize)
        return Lowered("auto {y} = add_last({x}, {0});", (field,), dtype.with_channels(dtype.channels + 1))

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        return (scalar_bytes(dtype.base, self.value, "AddLast"),)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.value,), {}

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.joined()


class VectorReduce(_Channels):
    """Fold the channels from left to right into one, in the chain's own type.

    Parameters
    ----------
    how : {"Add", "Mul", "Max", "Min"}
        Case does not matter. Integers wrap; NaN loses to a number in "Max" and "Min".
    """

    def __init__(self, how: str) -> None:
        name = getattr(how, "__name__", how)
        folded = str(name).lower()
        if folded not in ("add", "mul", "max", "min"):
            raise ValueError(f'VectorReduce takes "Add", "Mul", "Max" or "Min", got {how!r}')
        self.how = folded.capitalize()

    def lower(self, dtype: DType) -> Lowered:
        if dtype.is_bool and self.how in ("Add", "Mul"):
            raise TypeError(f'VectorReduce("{self.how}") takes numbers, the chain has {dtype} there; use VectorAnd or a Cast')
        return Lowered(f"auto {{y}} = reduce_{self.how.lower()}({{x}});", (), dtype.with_channels(1))

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.how,), {}


class VectorAnd(_Channels):
    """Whether all channels are true (not zero), as bool. Integers and bool."""

    takes = ("integer", "bool")

    def lower(self, dtype: DType) -> Lowered:
        self.check(dtype)
        return Lowered("auto {y} = vector_and({x});", (), DType("bool"))
