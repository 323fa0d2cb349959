"""Types and shape folding, by examples and by properties."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fkl.dtypes import BASES, DType, fold_shape, parse_dtype

bases = st.sampled_from(BASES)
channel_counts = st.integers(1, 4)


@given(bases, channel_counts)
def test_every_spelling_parses_to_the_same_type(base, channels):
    want = DType(base, channels)
    assert parse_dtype(want) == parse_dtype(want.name) == parse_dtype((base, channels)) == want
    assert hash(parse_dtype(want.name)) == hash(want) and want == want.name
    if base != "bfloat16":
        assert parse_dtype(np.dtype(base)) == parse_dtype(np.dtype(base).type) == DType(base)
        assert np.dtype(base).itemsize == want.itemsize
    assert want.pixelsize == want.itemsize * channels


def test_foreign_spellings():
    assert parse_dtype(ml_dtypes.bfloat16) == parse_dtype(np.dtype(ml_dtypes.bfloat16)) == "bfloat16"
    assert parse_dtype(float) == "float64" and parse_dtype(int) == "int64" and parse_dtype(bool) == "bool"


@pytest.mark.parametrize(
    ("spec", "words"),
    [("float3", "unknown"), ("uint8x5", "1 to 4"), ("uint8x0", "1 to 4"), (("uint8", 5), "1 to 4"), (("uint8",), "tuple"),
     (("uint8x2", 2), "no channels of its own"), ("complex64", "complex"), ("float8_e4m3fn", "fp8"), (np.complex64, "complex"),
     (np.dtype(">f4"), "byte order"), (np.dtype([("a", "f4")]), "structured"), (None, "unknown"), (object(), "unknown"), (3, "unknown"),
     ("uint8x", "unknown"), ("", "unknown"), (("uint8", True), "1 to 4"), (np.str_, "unknown")],
)  # fmt: skip
def test_what_is_refused(spec, words):
    with pytest.raises(TypeError, match=words):
        parse_dtype(spec)


@given(st.text(max_size=12))
def test_any_text_parses_or_is_a_type_error(text):
    try:
        assert parse_dtype(text).name == text or parse_dtype(text).name == text.removesuffix("x1")
    except TypeError as error:
        assert text in str(error) or repr(text) in str(error)


def test_dtypes_cannot_change():
    with pytest.raises(AttributeError):
        DType("uint8").base = "int8"


@given(st.lists(st.integers(0, 9), min_size=0, max_size=6).map(tuple), st.none() | channel_counts)
def test_folding(shape, channels):
    try:
        f = fold_shape(shape, channels)
    except ValueError:
        assert not 1 <= len(shape) <= 4 or len(shape) == 4 or channels is not None
        return
    assert f.planes * f.height * f.width * f.channels == int(np.prod(shape))
    assert f.rank == len(shape) - f.packed
    if channels is not None:
        assert f.channels == channels
    elif len(shape) > 2:
        assert f.packed == (1 <= shape[-1] <= 4)
    elif len(shape) == 2:
        assert f.packed == (2 <= shape[-1] <= 4)


@pytest.mark.parametrize(
    ("shape", "channels", "want"),
    [((480, 640), None, (1, 480, 640, 1)), ((480, 640, 3), None, (1, 480, 640, 3)), ((5, 480, 640), None, (5, 480, 640, 1)),
     ((5, 480, 640, 4), None, (5, 480, 640, 4)), ((480, 3), None, (1, 1, 480, 3)), ((480, 3), 1, (1, 480, 3, 1)),
     ((480, 1), None, (1, 480, 1, 1)), ((4, 5, 1), None, (1, 4, 5, 1)), ((7,), None, (1, 1, 7, 1)), ((3,), None, (1, 1, 3, 1))],
)  # fmt: skip
def test_folding_by_example(shape, channels, want):
    assert fold_shape(shape, channels)[:4] == want


def test_folding_errors_help():
    with pytest.raises(ValueError, match=r"reshape\(1\)"):
        fold_shape(())
    with pytest.raises(ValueError, match="TensorPack"):
        fold_shape((2, 3, 480, 640))
