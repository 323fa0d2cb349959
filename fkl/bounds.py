"""How small and how large a chain's float32 values can become, from its types alone: whether quotients need no test.

Values are taken to be *moderate*: +0, or 2^-20 to 2^24 in magnitude, and divisors to be positive. The parameter block says
whether they are, so that another value compiles nothing. Used by `fkl.plan` and `fkl.binding`; operations know their own rules.
"""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fkl.dtypes import DType

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LEAST", "MOST", "Bounds", "moderate", "of_integers"]

#: Exponents of moderate values.
LEAST, MOST = -20, 24
#: Dividends from 2^-96 to 2^96 and moderate divisors keep the steps in quotient.h exact: what is left of a dividend is a
#: multiple of its 2^-48th, which is a float down to 2^-149, and the quotient has 24 bits down to 2^-126.
_QUOTIENT = 96


class Bounds(NamedTuple):
    """What is known of float32 values, as exponents of 2.

    Attributes
    ----------
    least : int
        Values are 0 or at least 2^least in magnitude.
    grain : int
        They are multiples of 2^grain.
    most : int
        They are at most 2^most in magnitude.
    negative_zero : bool
        Whether -0 may be among them. Sums have none, nor interpolations, if what they are made of has none.
    """

    least: int
    grain: int
    most: int
    negative_zero: bool = False

    @property
    def divisible(self) -> bool:
        """Whether quotients of these values and of moderate divisors are exact without a test."""
        return self.least >= -_QUOTIENT and self.most <= _QUOTIENT

    def scaled(self, least: int, grain: int, most: int) -> Bounds:
        """Products with values of these bounds. A product that is rounded keeps its grain, or has 24 bits."""
        return Bounds(self.least + least, max(self.grain + grain, self.least + least - 23), self.most + most, True)

    def plus(self, most: int = MOST) -> Bounds:
        """Sums with values that are 0 or moderate."""
        # Of two values that nearly cancel each other, both are above half a moderate one and have its grain or a
        # finer one; with any other sum, or with 0, no value comes near 0.
        return Bounds(min(self.least, LEAST - 25), min(self.grain, LEAST - 24), max(self.most, most) + 1, self.negative_zero)

    def over_moderate(self) -> Bounds:
        """Quotients by moderate values, rounded to 24 bits."""
        least = self.least - MOST
        return Bounds(least, least - 23, self.most - LEAST, self.negative_zero)

    def joined(self) -> Bounds:
        """These values or moderate ones."""
        return Bounds(min(self.least, LEAST), min(self.grain, LEAST - 23), max(self.most, MOST), self.negative_zero)


def of_integers(dtype: DType) -> Bounds:
    """Integers and bools of a type, as float32."""
    return Bounds(0, 0, 8 * dtype.itemsize)


def moderate(fields: Iterable[tuple[bytes, bool]]) -> bool:
    """Whether all float32 numbers are moderate, given as the bytes of fields and whether these are divisors."""
    return all(_moderate(raw, divisors) for raw, divisors in fields)


@lru_cache(maxsize=512)
def _moderate(raw: bytes, divisors: bool) -> bool:
    low, high = 2.0**LEAST, 2.0**MOST
    for (value,) in struct.iter_unpack("<f", raw):
        if value == 0:
            if math.copysign(1.0, value) < 0:
                return False
        elif not low <= (value if divisors else abs(value)) <= high:
            return False
    return True
