"""Chains that count in 32-bit columns and rows refuse larger images instead of wrapping."""

import numpy as np
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


def far_rows(rows, columns=6, channels=None):
    """An array that claims rows 4 GiB apart; refused before any of it is touched."""
    shape = (rows, columns) if channels is None else (rows, columns, channels)
    memory = np.zeros(64, np.uint8)
    return np.lib.stride_tricks.as_strided(memory, shape, (2**32, *((1,) if channels is None else (channels, 1))))


@pytest.mark.parametrize("as_output", [False, True])
def test_pitches_beyond_32_bits_are_refused(as_output):
    kernel = fkl.compose(fkl.TensorRead(), fkl.Crop(0, 0, 6, 2), fkl.TensorWrite(), target="cpu")
    near = np.zeros((2, 6), np.uint8)
    arrays = (near, far_rows(2)) if as_output else (far_rows(2), near)
    with pytest.raises(ValueError, match=r"lie 4294967296 bytes apart: a chain with geometry.*below 2\^32"):
        kernel(arrays[0], out=arrays[1])
    assert kernel(near, out=near.copy()).shape == (2, 6)


def test_pitches_between_31_and_32_bits(tmp_path):
    """Of a file with a hole, so that little of it exists."""
    pitch = 3 << 30
    with open(tmp_path / "hole", "w+b") as file:
        file.truncate(pitch + 6)
        memory = np.memmap(file, np.uint8, "r+")
    x = np.lib.stride_tricks.as_strided(memory, (2, 6), (pitch, 1))
    x[...] = np.arange(12).reshape(2, 6)
    kernel = fkl.compose(fkl.TensorRead(), fkl.Crop(1, 0, 5, 2), fkl.Add(1), fkl.TensorWrite(), target="cpu")
    assert (kernel(x) == x[:, 1:] + 1).all()
    want = x[:, 1:] + 1
    kernel(np.asarray(x[:, :6].copy()), out=x[:, :5])
    assert (x[:, :5] == want).all()


def test_video_pitches_beyond_32_bits_are_refused():
    kernel = fkl.compose(fkl.ReadYUV("nv12"), fkl.TensorWrite(), target="cpu")
    luma, chroma = np.zeros((4, 6), np.uint8), np.zeros((2, 6), np.uint8)
    for pair in ((far_rows(4), chroma), (luma, far_rows(2)), far_rows(6)):
        with pytest.raises(ValueError, match=r"rows of .* lie 4294967296 bytes apart"):
            kernel(pair)


def test_divergent_pitches_beyond_32_bits_are_refused():
    chain = (fkl.TensorRead(), fkl.Crop(0, 0, 6, 2), fkl.TensorWrite())
    kernel = fkl.compose_divergent([1], chain, target="cpu")
    with pytest.raises(ValueError, match="lie 4294967296 bytes apart"):
        kernel([far_rows(2)])


def test_one_row_of_any_pitch_is_read():
    kernel = fkl.compose(fkl.TensorRead(), fkl.Crop(1, 0, 2, 1), fkl.TensorWrite(), target="cpu")
    assert kernel(far_rows(1)).shape == (1, 2)


def test_chroma_that_runs_backwards_is_refused():
    kernel = fkl.compose(fkl.ReadYUV("nv12"), fkl.TensorWrite(), target="cpu")
    with pytest.raises(ValueError, match="chroma of a nv12 surface overlap or run backwards"):
        kernel((np.zeros((4, 6), np.uint8), np.zeros((2, 6), np.uint8)[::-1]))
