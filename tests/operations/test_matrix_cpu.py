"""Every operation x type x channel count on the CPU target, against NumPy and Python integers."""

import ml_dtypes
import numpy as np
import oracle
import pytest
from matrix import Case, every, input_of, verdict

import fkl


def on_host(x: np.ndarray, base: str) -> np.ndarray:
    """The array as NumPy users have it."""
    raw = oracle.encode(x, base)
    return raw.view(ml_dtypes.bfloat16) if base == "bfloat16" else raw


def run_cpu(case: Case, x: np.ndarray) -> np.ndarray:
    k = fkl.compose(fkl.TensorRead(channels=case.channels), *case.ops, fkl.TensorWrite(), target="cpu")
    y = k(on_host(x, case.base))
    if case.out == "bfloat16":
        y = y.view(np.uint16)
    y = oracle.decode(y, case.out)
    return y if y.ndim == 3 else y[..., None]


@pytest.mark.parametrize("case", every(), ids=lambda c: c.id)
def test_operation(case):
    x = input_of(case)
    assert verdict(case, run_cpu(case, x), x) == ""
