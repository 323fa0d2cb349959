"""What may overlap what, and which strides are taken: against NumPy's own answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fkl
from fkl.layout import packed_surface
from fkl.overlap import overlaps

memory = np.zeros(512, np.uint8)


@st.composite
def windows(draw):
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    strides = tuple(draw(st.integers(0, 24)) for _ in shape)
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    start = draw(st.integers(0, 511 - min(reach, 511)))
    return np.lib.stride_tricks.as_strided(memory[start:], shape, strides) if start + reach < 512 else memory[:3]


@settings(max_examples=300)
@given(windows(), windows())
def test_overlap_is_exact(a, b):
    def span(x):
        return x.__array_interface__["data"][0], x.shape, x.strides, 1

    assert overlaps(span(a), span(b)) == np.shares_memory(a, b)


CPU = {"target": "cpu"}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 3), st.integers(1, 4), st.integers(0, 3), st.data())
def test_any_view_is_read_right_or_refused_with_help(h, w, p, c, pad, data):
    big = np.arange(4 * 12 * 15 * 4, dtype=np.int32).reshape(4, 12, 15, 4)
    view = big[:p, :h, pad : pad + w, :c]
    k = fkl.compose(fkl.TensorRead(channels=c), fkl.Add(1), fkl.TensorWrite(), **CPU)
    if c < 4 and view.size and w > 1:
        with pytest.raises(ValueError, match="contiguous"):
            k(view)
        view = np.ascontiguousarray(view)[:, :, :, :]
    out = np.full((4, 12, 15, c), -1, np.int32)[:p, :h, :w]
    assert (k(view) == view + 1).all()
    assert k(view, out=out) is out and (out == view + 1).all()


@pytest.mark.parametrize("index", [np.s_[::-1], np.s_[:, ::-1], np.s_[:, ::2], np.s_[..., ::-1]])
def test_views_that_cannot_be_read(index):
    x = np.zeros((6, 8, 3), np.uint8)[index]
    with pytest.raises(ValueError, match="contiguous"):
        fkl.compose(fkl.TensorRead(), fkl.TensorWrite(), **CPU)(x)


def test_broadcast_views_are_refused():
    x = np.broadcast_to(np.zeros((1, 8), np.uint8), (6, 8))
    with pytest.raises(ValueError, match="overlap"):
        fkl.compose(fkl.TensorRead(), fkl.TensorWrite(), **CPU)(x)


def test_pitched_rows_and_planes():
    s = packed_surface((5, 6, 3), (64, 3, 1), fkl.DType("uint8"), None)
    assert (s.pitch, s.extents.width, s.extents.height, s.dtype.channels) == (64, 6, 5, 3)
