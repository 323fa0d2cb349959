"""Bad input on the CPU target: each a clear message, nothing written, the kernel usable after."""

import numpy as np
import pytest

import fkl


def k(*ops, **kw):
    return fkl.compose(fkl.TensorRead(**kw), *ops, fkl.TensorWrite(), target="cpu")


X = np.ones((4, 6, 3), np.uint8)


@pytest.mark.parametrize(
    ("x", "out", "kind", "words"),
    [
        (None, None, TypeError, "no bound input"),
        (3.5, None, TypeError, "__dlpack__"),
        ("x", None, TypeError, "__dlpack__"),
        (np.zeros(()), None, ValueError, "reshape"),
        (np.zeros((2, 2, 2, 2, 2)), None, ValueError, "at most 4"),
        (X.astype(">i4"), None, TypeError, "byte order"),
        (X.astype(np.complex64), None, TypeError, "complex"),
        (np.zeros(3, object), None, TypeError, "unknown dtype"),
        (np.zeros(3, [("a", "f4")]), None, TypeError, "structured|unknown"),
        (X, np.zeros((4, 6, 3), np.int8), ValueError, "uint8 of shape .4, 6, 3., got int8"),
        (X, np.zeros((4, 6), np.uint8), ValueError, r"\(4, 6, 3\), got \(4, 6\)"),
        (X, np.zeros((4, 7, 3), np.uint8), ValueError, r"\(4, 6, 3\), got \(4, 7, 3\)"),
        (X, np.zeros((4, 12, 3), np.uint8)[:, ::2], ValueError, "contiguous"),
        (X, np.zeros((4, 6, 3), np.uint8, order="F"), ValueError, "channels of the output"),
        (X, X[:], None, ""),
        (X, "out", TypeError, "__dlpack__"),
        (X, [X], TypeError, "not a list"),
        ([X, X[:2]], None, ValueError, "image 1"),
        ([X, X.astype(np.int8)], None, ValueError, "image 1"),
        ([X, "x"], None, TypeError, "__dlpack__"),
        ([], None, ValueError, "no images"),
    ],
)
def test_bad_arrays(x, out, kind, words):
    kernel = k(fkl.Add(0))
    if kind is None:
        assert kernel(x, out=out) is out
        return
    before = out.copy() if isinstance(out, np.ndarray) else None
    with pytest.raises(kind, match=words):
        kernel(x, out=out)
    if before is not None:
        assert (out == before).all()
    assert (kernel(X) == X).all()


def test_read_only_and_overlapping_outputs():
    kernel = k(fkl.Add(1))
    out = np.zeros_like(X)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernel(X, out=out)
    y = np.ones((5, 6, 3), np.uint8)
    with pytest.raises(ValueError, match="overlaps"):
        kernel(y[:4], out=y[1:])
    kernel(y, out=y)
    assert (y == 2).all()


def test_streams_and_bindings_belong_to_the_gpu():
    with pytest.raises(ValueError, match="takes no stream"):
        k()(X, stream=0)
    with pytest.raises(ValueError, match="binds no read or write"):
        fkl.compose(fkl.TensorRead(X), fkl.TensorWrite(), target="cpu")


def test_gpu_without_a_driver_says_what_to_do(monkeypatch):
    from fkl.runtime.context import available

    if available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(fkl.CudaError, match='target="cpu"'):
        fkl.empty((4,))
    with pytest.raises(ValueError, match=r"CPU memory.*fkl.asarray"):
        fkl.compose(fkl.TensorRead(X), fkl.TensorWrite())
    with pytest.raises(ValueError, match="CPU memory"):
        fkl.compose(fkl.TensorRead(), fkl.TensorWrite())(X)


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda: fkl.Add("x"), TypeError, "number"),
        (lambda: fkl.Add([1, 2, 3, 4, 5]), ValueError, "1 to 4 numbers"),
        (lambda: fkl.Add(np.zeros((2, 2))), ValueError, "shape"),
        (lambda: fkl.Add(None), TypeError, "number"),
        (lambda: fkl.Div((1, 0)), ValueError, "zero"),
        (lambda: fkl.Saturate(3, 1), ValueError, "exceed"),
        (lambda: fkl.Saturate(float("nan"), 1), ValueError, "exceed"),
        (lambda: fkl.ShiftLeft(-1), ValueError, "0 to bits"),
        (lambda: fkl.ShiftLeft(1.5), ValueError, "whole number"),
        (lambda: fkl.VectorReorder(), ValueError, "1 to 4"),
        (lambda: fkl.VectorReorder(0, 5), ValueError, "outside"),
        (lambda: fkl.VectorReorder(0, 1.5), TypeError, "integer"),
        (lambda: fkl.Discard(4), ValueError, "1 to 3"),
        (lambda: fkl.VectorReduce("Mean"), ValueError, "Mean"),
        (lambda: fkl.StaticLoop([], 3), ValueError, "at least one"),
        (lambda: fkl.StaticLoop(fkl.Add(1), -1), ValueError, "0 to"),
        (lambda: fkl.StaticLoop(fkl.TensorRead(), 1), TypeError, "elementwise"),
        (lambda: fkl.MxVFloat3([1, 2]), ValueError, "3x3"),
        (lambda: fkl.TensorRead(channels=5), ValueError, "1 to 4"),
        (lambda: fkl.TensorPack("x"), TypeError, "number of channels"),
        (lambda: fkl.ReadSet(1, -1), ValueError, "negative"),
        (lambda: fkl.ReadSet(300, 4, 4, "uint8"), ValueError, "300"),
        (lambda: fkl.Cast("uint9"), TypeError, "unknown dtype"),
    ],
)
def test_bad_operations(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


@pytest.mark.parametrize(
    ("ops", "x", "kind", "words"),
    [
        ([fkl.Add(0.5)], X, ValueError, "Cast"),
        ([fkl.Add(300)], X, ValueError, "300"),
        ([fkl.Add(-1)], X, ValueError, "-1"),
        ([fkl.Sqrt()], X, TypeError, 'Cast."float32"'),
        ([fkl.BwAnd(1)], X.astype(np.float32), TypeError, "integer"),
        ([fkl.Add(1)], X.astype(bool), TypeError, "bool"),
        ([fkl.Discard(3)], X, ValueError, "fewer"),
        ([fkl.VectorReorder(1, 0)], X, ValueError, "2 indices"),
        ([fkl.Cast("float32x2")], X, TypeError, "keeps the channels"),
        ([fkl.MxVFloat3(np.eye(3))], X, TypeError, "float32x3"),
        ([fkl.StaticLoop(fkl.Cast("float32"), 2)], X, TypeError, "keeps its type"),
        ([fkl.Add((1, 2))], X, ValueError, "3 channels"),
        ([fkl.Add(1e39)], X.astype(np.float32), ValueError, "range"),
    ],
)
def test_operations_on_types_they_do_not_take(ops, x, kind, words):
    with pytest.raises(kind, match=words):
        k(*ops)(x)


def test_values_from_numpy_and_every_channel():
    y = X.astype(np.float32)
    assert (k(fkl.Add(np.float32(1)))(y) == 2).all()
    assert (k(fkl.Add(np.array([1, 2, 3])))(y)[0, 0] == [2, 3, 4]).all()
    assert (k(fkl.Add(np.array([1.0, 2.0, 3.0], np.float32)))(y)[0, 0] == [2, 3, 4]).all()
    assert k(fkl.Add(float("inf")))(y)[0, 0, 0] == np.inf
