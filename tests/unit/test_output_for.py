"""`output_for` and `compile` without buffers: what a chain makes of an input, told beforehand."""

import numpy as np
import pytest

import fkl


@pytest.mark.parametrize(
    ("ops", "dtype", "shape", "want"),
    [
        ([fkl.TensorRead(), fkl.Cast("float32"), fkl.TensorSplit()], "uint8", (9, 7, 3), ((3, 9, 7), "float32")),
        ([fkl.TensorRead(), fkl.Cast("float16"), fkl.TensorWrite()], "uint8x4", (9, 7), ((9, 7, 4), "float16")),
        ([fkl.TensorPack(3), fkl.TensorWrite()], "int16", (2, 3, 9, 7), ((2, 9, 7, 3), "int16")),
        ([fkl.ReadYUV("nv12"), fkl.ConvertYUVToRGB(), fkl.Resize(5, 4), fkl.TensorSplit()], "uint8", (12, 8), ((3, 4, 5), "float32")),
        ([fkl.ReadSet(1, 6, 2), fkl.TensorWrite()], "uint8", (), ((2, 6), "float32")),
        ([fkl.TensorRead(), fkl.Crop([(0, 0, 2, 2)] * 3), fkl.TensorSplit()], "uint8", (9, 7, 3), ((3, 3, 2, 2), "uint8")),
    ],
)  # fmt: skip
def test_output_for(ops, dtype, shape, want):
    k = fkl.compose(*ops, target="cpu")
    assert k.output_for(dtype, shape) == want
    if ops[0].__class__ is not fkl.ReadSet and "x" not in dtype:
        assert k(np.zeros(shape, dtype)).shape == want[0]


def test_refusals():
    k = fkl.compose(fkl.TensorRead(), fkl.Crop(0, 0, 5, 5), fkl.TensorWrite(), target="cpu")
    with pytest.raises(ValueError, match="reaches outside"):
        k.output_for("uint8", (4, 4))
    with pytest.raises(ValueError, match="negative"):
        k.output_for("uint8", (-1, 4))
    for wrong in ((2.5, 9), ("9", 9), (True, 9), 9, "99", None):
        with pytest.raises(TypeError, match="integer"):
            k.output_for("uint8", wrong)
        with pytest.raises(TypeError, match="integer"):
            k.compile("uint8", wrong)
        if wrong is not None:
            with pytest.raises(TypeError, match=r"size is a tuple of integers|a size is an integer"):
                k.source_for("uint8", size=wrong)
    assert k.output_for("uint8", [np.int64(9), np.uint8(8)])[0] == (5, 5)
    k.close()
    with pytest.raises(ValueError, match="closed"):
        k.output_for("uint8", (9, 9))
