"""Conversions between scalar types: `Cast`, `SaturateCast`."""

from __future__ import annotations

from typing import Any, ClassVar

from fkl.bounds import Bounds
from fkl.dtypes import DType, parse_dtype
from fkl.operations.base import Elementwise, Lowered

__all__ = ["Cast", "SaturateCast"]


class Cast(Elementwise):
    """Convert to another scalar type; the channels follow the chain.

    Float to integer truncates toward zero, out of range saturates, NaN becomes 0. Integer to a narrower integer wraps.
    To bool is ``x != 0``. To a float type rounds to nearest even, overflow gives infinity.

    Parameters
    ----------
    to : dtype
        Any spelling of a base; a vector dtype must have the chain's channel count.
    """

    headers: ClassVar[tuple[str, ...]] = ("fkl/convert.h",)
    takes = ("float", "integer", "bool")
    function = "cast"

    def __init__(self, to: Any) -> None:
        self.to = parse_dtype(to)

    @property
    def form(self) -> tuple[Any, ...] | None:
        return type(self), self.to.name

    def lower(self, dtype: DType) -> Lowered:
        if self.to.channels not in (1, dtype.channels):
            raise TypeError(
                f"{type(self).__name__}({self.to.name!r}) keeps the channels of the chain, which is {dtype} there; "
                f"write {self.to.base!r}"
            )
        return Lowered(f"auto {{y}} = {self.function}<{self.to.ctype}>({{x}});", (), dtype.with_base(self.to.base))

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.to.name,), {}

    def bounds(self, before: Bounds) -> Bounds | None:
        return before


class SaturateCast(Cast):
    """Convert to another scalar type, rounding and clamping.

    Float to integer rounds half to even, then clamps, NaN becomes 0. Integer to integer clamps. Float to a narrower
    float clamps finite overflow and keeps infinities and NaN. Bool as `Cast`.

    Parameters
    ----------
    to : dtype
        Any spelling of a base; a vector dtype must have the chain's channel count.
    """

    function = "saturate_cast"
