"""Every read and write with every type and channel count, packed and with rows apart, against NumPy's own transposes."""

import itertools

import numpy as np
import oracle
import pytest
from oracle import BASES

import fkl

P, H, W = 3, 5, 37


def storage(base):
    """The NumPy type that arrays of a base have on the CPU target."""
    if base != "bfloat16":
        return np.dtype(base)
    return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)


def array(base, shape):
    """Values of the whole range, as the CPU target takes them."""
    return oracle.encode(oracle.samples(base, shape), base).view(storage(base))


def with_rows_apart(x, axis):
    """The same values where the elements of an axis lie further apart than they would have to."""
    wide = np.zeros([n + 3 * (i == axis) for i, n in enumerate(x.shape)], x.dtype)
    part = wide[tuple(slice(1, n + 1) if i == axis else slice(None) for i, n in enumerate(x.shape))]
    part[...] = x
    return part


def same(got, want):
    return got.shape == want.shape and got.dtype == want.dtype and got.tobytes() == np.ascontiguousarray(want).tobytes()


def split(x):
    """(P, H, W, C) -> (P, C, H, W); one channel has no dimension."""
    return x.transpose(0, 3, 1, 2) if x.shape[-1] > 1 else x[..., 0]


def split_over_planes(x):
    """(P, H, W, C) -> (C, P, H, W); one channel has no dimension."""
    return x.transpose(3, 0, 1, 2) if x.shape[-1] > 1 else x[..., 0]


READS = ["TensorRead", "PerThreadRead", "TensorPack"]
WRITES = {"TensorWrite": None, "PerThreadWrite": None, "TensorSplit": split, "TensorTSplit": split_over_planes, "SplitWrite": split}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("read", READS)
def test_copies(read, write):
    """Every type and channel count: whole arrays, windows of wider ones, one pixel, one column, outputs with rows apart."""
    planar, packed = read == "TensorPack", WRITES[write] is None
    for base, c in itertools.product(BASES, (1, 2, 3, 4)):
        k = fkl.compose(getattr(fkl, read)(c) if planar else getattr(fkl, read)(), getattr(fkl, write)(), target="cpu")
        for shape in ((P, H, W), (1, H, 1), (P, 1, 1), (2, 1, 16)):
            x = array(base, (*shape, c))
            given = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if planar else x
            want = np.ascontiguousarray((x[..., 0] if planar and c == 1 else x) if packed else WRITES[write](x))
            assert same(k(given), want), (base, c, shape)
            # Windows of wider arrays: rows start where no wide word may.
            apart = with_rows_apart(given, 3 if planar else 2)
            out = with_rows_apart(want, 2 if packed else want.ndim - 1)
            out[...] = 1
            assert k(apart, out=out) is out and same(np.ascontiguousarray(out), want), (base, c, shape)


def test_channels_with_memory_of_their_own():
    x = array("uint16", (H, W, 3))
    parts = [np.zeros((H, W + i), np.uint16)[:, :W] for i in range(3)]
    fkl.compose(fkl.TensorRead(), fkl.SplitWrite(), target="cpu")(x, out=parts)
    assert all(np.array_equal(part, x[..., i]) for i, part in enumerate(parts))


@pytest.mark.parametrize("base", BASES)
def test_constants(base):
    for c in (1, 2, 3, 4):
        value = oracle.samples(base, (c,))
        numbers = tuple(v.item() for v in value)
        k = fkl.compose(fkl.ReadSet(numbers if c > 1 else numbers[0], W, H, (base, c)), fkl.TensorWrite(), target="cpu")
        want = np.broadcast_to(oracle.encode(value, base).view(storage(base)), (H, W, c))
        assert same(k(), want if c > 1 else want[..., 0])
