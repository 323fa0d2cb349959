"""Chains that count in 32-bit columns and rows refuse larger images instead of wrapping."""

import pytest

import fkl
from fkl.dtypes import parse_dtype
from fkl.operations.base import Extents
from fkl.plan import make_plan


@pytest.mark.parametrize("size", [(2**31, 1), (1, 2**31)])
def test_too_large(size):
    plan = make_plan((fkl.TensorRead(), fkl.BorderReader(), fkl.TensorWrite()), parse_dtype("uint8"))
    with pytest.raises(ValueError, match="fewer than 2\\^31 columns and rows"):
        plan.values(Extents(*size, 1, 2))
    assert plan.values(Extents(2**31 - 1, 1, 1, 2))


def test_elementwise_chains_have_no_bound():
    plan = make_plan((fkl.TensorRead(), fkl.Neg(), fkl.TensorWrite()), parse_dtype("uint8"))
    assert plan.values(Extents(2**40, 1, 1, 2))
