"""Which chains' quotients need no test: what types say, and what values must keep to."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import fkl
from fkl.bounds import Bounds, moderate
from fkl.dtypes import DType
from fkl.plan import check_chain, make_plan

MEAN = (0.485, 0.456, 0.406)
NORMALISE = (fkl.Div(255.0), fkl.Sub(MEAN), fkl.Div(MEAN))


def math_of(dtype, *ops):
    return make_plan(check_chain((fkl.TensorRead(), *ops, fkl.TensorWrite())), DType(dtype, 3)).math


@pytest.mark.parametrize(
    ("dtype", "ops", "expected"),
    [
        ("uint8", (fkl.Cast("float32"), *NORMALISE), "BoundedPlus"),
        ("uint8", (fkl.Crop([(0, 0, 4, 4)]), fkl.Resize(8, 8), *NORMALISE), "BoundedPlus"),
        ("uint8", (fkl.ConvertYUVToRGB(), fkl.Resize(8, 8), fkl.Div(255.0)), "BoundedPlus"),
        ("uint8", (fkl.Cast("float32"), fkl.Mul(2.0), *NORMALISE), "Bounded"),  # 0 times a negative number is -0
        ("uint8", (fkl.Cast("float32"), fkl.Neg(), fkl.Div(3.0)), "Bounded"),
        ("uint8", (fkl.Cast("float32"), fkl.Div(3.0), fkl.Mul(2.0)), "BoundedPlus"),
        ("float32", NORMALISE, "Noted"),  # whatever a float array holds
        ("uint8", (fkl.Cast("float32"), fkl.Exp(), fkl.Div(3.0)), "Noted"),  # no rule for Exp
        ("uint8", (fkl.Cast("float32"), *[fkl.Mul(0.5)] * 5, fkl.Div(3.0)), "Noted"),  # may get too small
        ("float32", (fkl.Add(1.0),), "Exact"),  # no quotient
        ("float64", NORMALISE, "Exact"),
        ("uint8", (fkl.Div(3),), "Exact"),
    ],
)
def test_quotients_are_made_as_the_types_allow(dtype, ops, expected):
    assert math_of(dtype, *ops) == expected


def test_a_division_by_another_array_is_tested():
    divisors = np.array([[0, 1, np.inf, 1e-42]], np.float32)
    assert math_of("uint8", fkl.Cast("float32"), fkl.Div(fkl.TensorRead(divisors))) == "Noted"
    assert math_of("uint8", fkl.Cast("float32"), fkl.Div(2.0), fkl.Div(fkl.TensorRead(divisors))) == "Noted"


def test_bounds_hold_for_values_drawn_at_random():
    rng = np.random.default_rng(1)
    count = 200_000
    values = (2.0 ** rng.uniform(-20, 24, count) * rng.choice([-1, 1], count)).astype(np.float32)
    values[rng.random(count) < 0.05] = 0
    x = rng.integers(0, 256, count).astype(np.float32)
    bounds = Bounds(0, 0, 8)
    some = values.copy()
    some[some == 0] = 3
    for step, result in (("over_moderate", lambda a: a / some), ("plus", lambda a: a - values)):
        x, bounds = result(x).astype(np.float32), getattr(bounds, step)()
        size = np.abs(x[x != 0].astype(np.float64))
        assert size.min() >= 2.0**bounds.least
        assert size.max() <= 2.0**bounds.most
        assert np.array_equal(np.rint(np.ldexp(size, -bounds.grain)), np.ldexp(size, -bounds.grain))


@pytest.mark.parametrize(("value", "expected"), [(0.0, 1), (-3.5, 1), (2.0**-20, 1), (2.0**24, 1), (-0.0, 0), (1e-7, 0), (3e7, 0), (np.inf, 0), (np.nan, 0)])
def test_moderate_values(value, expected):
    assert moderate([(struct.pack("<2f", 1.0, value), False)]) == bool(expected)


def test_moderate_divisors_are_positive():
    raw = struct.pack("<2f", 3.0, -3.0)
    assert moderate([(raw, False)])
    assert not moderate([(raw, True)])
    assert moderate([(raw[:4], True), (raw, False)])
