"""Arguments that are no integers, no words of those that are known, or memory that cannot be used as it is."""

import numpy as np
import pytest

import fkl
from fkl.checks import index_of, integer, one_of

ARRAY = np.array([1, 2])


class Counted:
    def __index__(self):
        return 7


def test_integers():
    for value, want in ((5, 5), (-3, -3), (np.int8(4), 4), (np.array(6), 6), (Counted(), 7)):
        found = integer(value, "n")
        assert found == want and type(found) is int
    for value in (True, np.True_, 1.0, np.float32(2), "1", None, ARRAY, np.array([1]), [1]):
        assert index_of(value) is None
        with pytest.raises(TypeError, match="n is an integer, got"):
            integer(value, "n")


def test_words():
    assert one_of("a", ("a", "b"), "w") == "a"
    for value in ("c", "", None, 1, ARRAY, ["a"]):
        with pytest.raises(ValueError, match="w is one of a, b, got"):
            one_of(value, ("a", "b"), "w")


@pytest.mark.parametrize(
    "make",
    [
        lambda x: fkl.Resize(x, 4), lambda x: fkl.Resize(4, 4, x), lambda x: fkl.Resize(4, 4, centers=x), lambda x: fkl.Crop(x, 0, 1, 1),
        lambda x: fkl.Crop([(x, 0, 1, 1)]), lambda x: fkl.Warping([1, 0, 0, 0, 1, 0], 4, 4, x), lambda x: fkl.Deinterlace(x), lambda x: fkl.Deinterlace("linear", x),
        lambda x: fkl.ReadYUV("nv12", siting=x), lambda x: fkl.ReadYUV("nv12", chroma=x), lambda x: fkl.ConvertYUVToRGB(x), lambda x: fkl.ConvertYUVToRGB(depth=x),
        lambda x: fkl.ConvertYUVToRGB(range=x), lambda x: fkl.VectorReorder(x, 1), lambda x: fkl.Discard(x), lambda x: fkl.TensorRead(channels=x), lambda x: fkl.TensorPack(x),
        lambda x: fkl.ReadSet(1, x, 4), lambda x: fkl.StaticLoop(fkl.Neg(), x), lambda x: fkl.CircularTensor(x, 4, 4, target="cpu"), lambda x: fkl.CircularTensor(4, 4, 4, target=x),
        lambda x: fkl.CircularTensor(4, 4, 4, channels=x, target="cpu"), lambda x: fkl.CircularTensor(4, 4, 4, order=x, target="cpu"), lambda x: fkl.compose(fkl.TensorRead(), fkl.TensorWrite(), target=x),
    ],
)  # fmt: skip
def test_arrays_where_an_integer_or_a_word_is_wanted(make):
    with pytest.raises((TypeError, ValueError), match=r"array\(\[1, 2\]\)"):
        make(ARRAY)


def test_an_index_that_is_none():
    k = fkl.compose(fkl.TensorRead(), fkl.Mul(2.0), fkl.TensorWrite(), target="cpu")
    for bad in (np.array([1]), True, 1.0, "1"):
        with pytest.raises(ValueError, match="no operation of this chain"):
            k.update(bad, 3.0)
    with pytest.raises(TypeError, match="Mul: missing 1 required positional argument"):
        k.update(1)
    k.update(np.array(1), 3.0)
    assert k(np.ones((2, 8), np.float32))[0, 0] == 3


def test_numpy_arrays_that_cannot_be_used_as_they_are():
    k = fkl.compose(fkl.TensorRead(), fkl.Mul(2.0), fkl.TensorWrite(), target="cpu")
    raw = np.zeros(4 * 8 * 4 + 8, np.uint8)
    shifted = raw[1 : 1 + 128].view(np.float32).reshape(4, 8)
    fields = np.zeros((4, 8), np.dtype([("a", "u1"), ("x", "<f4")]))["x"]
    for x in (shifted, fields):
        with pytest.raises(ValueError, match="not aligned to their 4 bytes"):
            k(x)
        with pytest.raises(ValueError, match="not aligned to their 4 bytes"):
            k(np.zeros((4, 8), np.float32), out=x)
    assert k(raw[1:1].view(np.float32)).shape == (0,)
    with pytest.raises(TypeError, match="masked arrays"):
        k(np.ma.array(np.zeros((4, 8), np.float32), mask=True))


def test_sizes_that_no_array_has():
    k = fkl.compose(fkl.TensorRead(), fkl.Cast("float64"), fkl.TensorWrite(), target="cpu")
    with pytest.raises(ValueError, match=r"input of shape .* fewer than 2"):
        k.output_for("uint8", (2**40, 2**40))
    with pytest.raises(ValueError, match="the output would take"):
        k.output_for("uint8", (2**30, 2**31))
