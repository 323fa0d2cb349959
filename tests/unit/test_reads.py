"""How many source pixels an output pixel needs, and the one warning about too many."""

import logging

import numpy as np
import pytest

import fkl
from fkl import plan


@pytest.mark.parametrize(
    ("op", "size", "most"),
    [
        (fkl.Resize(10, 10), (100, 100), 4), (fkl.Resize(10, 10, "cubic"), (100, 100), 16), (fkl.Resize(10, 10, "nearest"), (100, 100), 1),
        (fkl.Resize(10, 10, "area"), (100, 40), 55), (fkl.Resize(10, 10, antialias=True), (100, 40), 21 * 9),
        (fkl.Crop(0, 0, 2, 2), (9, 9), 1), (fkl.Deinterlace("blend"), (9, 9), 2),
        (fkl.Warping([[1, 0, 0], [0, 1, 0]], 3, 3, "cubic"), (9, 9), 16),
    ],
)  # fmt: skip
def test_reads(op, size, most):
    assert op.reads(*size) == most


def test_a_stack_of_filters_warns_once(caplog):
    plan._warned.clear()
    x = np.random.default_rng(0).random((64, 64), np.float32)
    k = fkl.compose(fkl.TensorRead(), fkl.Resize(60, 60, "cubic"), fkl.Resize(50, 50, "cubic"), fkl.Resize(40, 40), fkl.TensorWrite(), target="cpu")
    with caplog.at_level(logging.WARNING, "fkl"):
        k(x)
        k(x[:63])
    assert [r.args[0] for r in caplog.records] == [1024]
    assert "Resize(40, 40)" in caplog.text and "Two kernels" in caplog.text


def test_few_reads_say_nothing(caplog):
    plan._warned.clear()
    with caplog.at_level(logging.WARNING, "fkl"):
        fkl.compose(fkl.TensorRead(), fkl.Resize(8, 8, "cubic"), fkl.Resize(4, 4, "cubic"), fkl.TensorWrite(), target="cpu")(np.ones((9, 9), np.float32))
    assert not caplog.records
