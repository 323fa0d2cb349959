"""The steps of quotient.h with a correctly rounded reciprocal, against division: where an error would show first.

A quotient X / D of 24-bit integers lies |j| / (2^shift D) from the middle M / 2^shift of two floats, where X 2^shift - M D = j, M is
odd, and shift is 24 for quotients above 1 and 25 for those below. The steps are off by less than 2^-23 of the quotient's last
place, which is a |j| of 4: only below that could the wrong neighbour come out. For a divisor 2^twos D' the j are odd multiples of
2^twos, and the few X and M of each are found by the inverse of D' modulo a power of two.
"""

import struct

import numpy as np
import pytest

import fkl
from fkl.operations.arithmetic import reciprocals

RNG = np.random.default_rng(11)


def rounded_sum(a, b):
    """float32 of the exact sum of two float64, by way of its float64 and what that leaves out."""
    s = a + b
    t = s - a
    rest = (a - (s - t)) + (b - t)
    near = s.astype(np.float32)
    up, down = np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))
    middle_up, middle_down = (near.astype(np.float64) + up) / 2, (near.astype(np.float64) + down) / 2
    near = np.where((s == middle_up) & (rest > 0), up, near)
    near = np.where((s == middle_down) & (rest < 0), down, near)
    near = np.where((s == middle_up) & (rest < 0), np.where(near > s, down, near), near)
    return np.where((s == middle_down) & (rest > 0), np.where(near < s, up, near), near).astype(np.float32)


def steps(x, d):
    """As steps() in quotient.h: x, d float32; products of two floats and x - q d are exact in float64."""
    wide = np.float64
    r = (1.0 / d.astype(wide)).astype(np.float32)
    q = (x.astype(wide) * r).astype(np.float32)
    e = rounded_sum(x.astype(wide), -(q.astype(wide) * d))
    return rounded_sum(q.astype(wide), e.astype(wide) * r)


def inverse(d, bits):
    """Of odd integers, modulo 2^bits, by Newton's iteration."""
    mask = np.uint64(2**bits - 1)
    r = d.copy()
    for _ in range(5):
        r = (r * (np.uint64(2) - d * r)) & mask
    return r


@pytest.mark.parametrize("shift", [24, 25])
@pytest.mark.parametrize("twos", [0, 1, 2, 3])
@pytest.mark.parametrize("odd", [1, -1, 3, -3, 5, -5, 7, -7, 9, -9, 11, -11, 13, -13])
def test_the_quotients_nearest_to_a_middle(odd, twos, shift):
    d = RNG.integers(2 ** (22 - twos), 2 ** (23 - twos), 100_000, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    j = odd * 2**twos
    bits = shift - twos
    # M is known modulo 2^bits; every M from 2^24 to 2^25 of that kind is one.
    m = (np.uint64(-odd % 2**bits) * inverse(d, bits)) & np.uint64(2**bits - 1)
    m = (m[:, None] + np.arange(0, 2**25, 2**bits, dtype=np.uint64)).ravel().astype(np.int64)
    d = np.repeat(d.astype(np.int64) << twos, 2**25 >> bits)
    x = (m * d + j) >> shift
    keep = (m >= 2**24) & (m < 2**25) & (x >= 2**23) & (x < 2**24)
    m, d, x = m[keep], d[keep], x[keep]
    assert keep.sum() > 10_000 and np.array_equal((x << shift) - m * d, np.full_like(x, j))
    x, d = x.astype(np.float32), d.astype(np.float32)
    assert np.array_equal(steps(x, d), x / d)


def test_any_quotients():
    for _ in range(10):
        x, d = (RNG.integers(2**23, 2**24, 200_000).astype(np.float32) for _ in range(2))
        assert np.array_equal(steps(x, d), x / d)


@pytest.mark.parametrize("dividend", [-96, 95])
@pytest.mark.parametrize("divisor", [-20, 0, 23])
def test_quotients_at_the_ends_of_the_bounds(dividend, divisor):
    """Of the least and largest dividends that fkl/bounds.py lets through, up to 2^96, by the least and largest moderate divisors."""
    for _ in range(10):
        x, d = (RNG.integers(2**23, 2**24, 200_000).astype(np.float32) for _ in range(2))
        x, d = np.ldexp(x, dividend - 23), np.ldexp(d, divisor - 23)
        assert x.dtype == d.dtype == np.float32
        assert np.array_equal(steps(x, d), x / d)


def test_every_byte_by_many_divisors():
    for d in (*RNG.uniform(1, 300, 500), 255.0, 127.5, 0.229, 0.224, 0.225):
        x = np.arange(1, 256, dtype=np.float32)
        d = np.full_like(x, d)
        assert np.array_equal(steps(x, d), x / d)


def test_reciprocals_of_all_kinds():
    values = np.array([3.0, -0.1, 2.0**-126, 1e-45, -1e-45, 0.0, -0.0, 3e38, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        want = np.float32(1) / values
    assert reciprocals(values.tobytes()) == want.tobytes()


def test_divisors_and_reciprocals_lie_in_the_block_for_float32_alone():
    chain = fkl.Div((3.0, 4.0))
    from fkl.dtypes import DType
    from fkl.operations.base import Extents

    extents = Extents(0, 0, 1, 2)
    assert chain.values(DType("float32", 2), extents) == (struct.pack("<2f", 3, 4), struct.pack("<2f", 1 / 3, 0.25))
    assert [len(chain.values(DType(base, 2), extents)) for base in ("float64", "float16", "uint8")] == [1, 1, 1]
