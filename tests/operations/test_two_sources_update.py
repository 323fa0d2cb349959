"""Operations that read a second array, and `k.update`, on the CPU target."""

import copy
import pickle

import numpy as np
import oracle
import pytest

import fkl

RNG = np.random.default_rng(0)
CPU = {"target": "cpu"}
X = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)
BACKGROUND = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)


def kernel(*ops, **kw):
    return fkl.compose(fkl.TensorRead(**kw), *ops, fkl.TensorWrite(), **CPU)


@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div", "Max", "Min", "AbsDiff", "BwAnd", "BwOr", "BwXor"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float16", "int64"])
def test_operands(name, dtype):
    if dtype.startswith("float") and name.startswith("Bw"):
        return
    a, b = oracle.samples(dtype, (6, 7, 3), 1), oracle.samples(dtype, (6, 7, 3), 2)
    got = kernel(getattr(fkl, name)(fkl.TensorRead(b)))(a)
    with np.errstate(all="ignore"):
        if name == "Div" and dtype.startswith(("int", "uint")):
            want = oracle.each(lambda p, q: oracle.wrap(abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1), dtype) if q else 0, dtype, a, b)
        elif name == "AbsDiff" and not dtype.startswith("float"):
            want = oracle.each(lambda p, q: min(abs(p - q), np.iinfo(dtype).max), dtype, a, b)
        else:
            f = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Max": np.fmax, "Min": np.fmin,
                 "AbsDiff": lambda p, q: np.abs(p - q), "BwAnd": np.bitwise_and, "BwOr": np.bitwise_or, "BwXor": np.bitwise_xor}[name]  # fmt: skip
            want = oracle.to_base(f(oracle.wide(a), oracle.wide(b)), dtype) if dtype.startswith("float") else f(a, b)
    assert oracle.difference(got, want, zeros_equal=name in ("Max", "Min")) == ""


def test_planes_pitches_and_geometry():
    planes = np.stack([X, BACKGROUND, X])
    shared = kernel(fkl.Sub(fkl.TensorRead(BACKGROUND)))
    assert (shared(planes) == planes - BACKGROUND).all()
    own = np.stack([BACKGROUND, X, X])
    assert (kernel(fkl.Sub(fkl.TensorRead(own)))(planes) == planes - own).all()
    big = np.zeros((20, 40, 3), np.uint8)
    big[:, 5:35] = BACKGROUND
    assert (kernel(fkl.Sub(fkl.TensorRead(big[:, 5:35])))(X) == X - BACKGROUND).all()
    small = RNG.random((8, 9, 3)).astype(np.float32)
    k = kernel(fkl.Sub(fkl.TensorRead(BACKGROUND)), fkl.Crop(3, 4, 18, 16), fkl.Cast("float32"), fkl.Resize(9, 8), fkl.Mul(fkl.TensorRead(small)))
    import cv2

    want = cv2.resize((X - BACKGROUND)[4:20, 3:21].astype(np.float32), (9, 8)) * small
    assert np.abs(k(X) - want).max() <= 1e-3
    alpha = RNG.random((20, 30, 3)).astype(np.float32)
    blend = kernel(fkl.Cast("float32"), fkl.Mul(fkl.TensorRead(alpha)), fkl.Add(fkl.TensorRead(alpha)))
    assert (blend(X) == X.astype(np.float32) * alpha + alpha).all()


def test_no_second_array_behind_a_border():
    border, less = fkl.BorderReader("replicate"), fkl.Sub(fkl.TensorRead(BACKGROUND))
    for outside in (fkl.Crop(-3, -3, 7, 7), fkl.Warping([[1, 0, -5], [0, 1, 0]], 5, 20)):
        with pytest.raises(ValueError, match=r"operation 2, Sub.*no pixels outside of its size.*put the BorderReader behind it"):
            kernel(border, less, outside)(X)
    want = np.pad(X - BACKGROUND, ((3, 0), (3, 0), (0, 0)), "edge")[:7, :7]
    assert (kernel(less, border, fkl.Crop(-3, -3, 7, 7))(X) == want).all()


@pytest.mark.parametrize("shared", [slice(0, 1), 0])
def test_one_plane_of_the_output_is_no_second_array(shared):
    """Other planes would read it after it was written."""
    planes = RNG.random((4, 20, 30)).astype(np.float32)
    k = kernel(fkl.Sub(fkl.TensorRead(planes[shared])))
    with pytest.raises(ValueError, match="overlaps the input in memory"):
        k(planes, out=planes)
    assert (k(planes) == planes - planes[:1]).all()
    own = RNG.random((20, 30)).astype(np.float32)
    want = own * 0
    assert (kernel(fkl.Sub(fkl.TensorRead(own)))(own, out=own) == want).all()


def test_operand_refusals():
    with pytest.raises(ValueError, match="bound at once"):
        fkl.Add(fkl.TensorRead())
    with pytest.raises(TypeError, match="TensorRead"):
        fkl.Add(fkl.ReadSet(1, 4))
    with pytest.raises(TypeError, match="numbers, not a read"):
        kernel(fkl.Cast("float32"), fkl.Pow(fkl.TensorRead(BACKGROUND)))(X)
    with pytest.raises(TypeError, match="StaticLoop"):
        fkl.StaticLoop(fkl.Add(fkl.TensorRead(BACKGROUND)), 3)
    for operand in (BACKGROUND[:10], BACKGROUND.astype(np.float32), BACKGROUND[..., 0].copy(), np.stack([X, X])):
        with pytest.raises(ValueError, match=r"operation 1, Sub.*operand must be uint8x3 of 30 x 20"):
            kernel(fkl.Sub(fkl.TensorRead(operand)))(X)
    k = kernel(fkl.Sub(fkl.TensorRead(BACKGROUND)))
    with pytest.raises(ValueError, match="overlaps"):
        fkl.compose(fkl.TensorRead(), fkl.Sub(fkl.TensorRead(BACKGROUND)), fkl.TensorSplit(), **CPU)(
            X, out=BACKGROUND.reshape(3, 20, 30)
        )
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(k)


def test_update_values():
    mul, crop = fkl.Mul(2.0), fkl.Crop(1, 2, 8, 9)
    k = kernel(crop, fkl.Cast("float32"), mul)
    f = X.astype(np.float32)
    assert (k(X) == f[2:11, 1:9] * 2).all()
    signature = k.signature
    k.update(mul, 3.0)
    k.update(crop, 3, 4, 5, 6)
    assert (k(X) == f[4:10, 3:8] * 3).all()
    k.update(3, (0.5, 1.5, 2.5))
    assert (k(X) == f[4:10, 3:8] * np.array([0.5, 1.5, 2.5], np.float32)).all() and k.signature == signature
    assert "0.5" in repr(k.ops[3]) and "0.5" in repr(k)
    # The object itself, and other kernels of it, stay as they were.
    assert mul.value == 2.0 and (kernel(crop, fkl.Cast("float32"), mul)(X) == f[2:11, 1:9] * 2).all()
    k.update(mul, 7.0)
    assert (k(X) == f[4:10, 3:8] * 7).all() and (copy.copy(k)(X) == k(X)).all()


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [("mul", ((1, 2),), "3 channels"), ("mul", (1e39,), "range"), ("crop", ([(0, 0, 2, 2)],), "change the kernel"), ("crop", (0, 0, 0, 1), "1 or more"),
     ("cast", ("float64",), "change the kernel"), ("none", (1,), "no operation"), (99, (1,), "no index")],
)  # fmt: skip
def test_updates_that_do_not_fit_change_nothing(name, args, words):
    ops = {"crop": fkl.Crop(1, 2, 8, 9), "cast": fkl.Cast("float32"), "mul": fkl.Mul(2.0)}
    k = kernel(*ops.values())
    before = k(X)
    with pytest.raises(ValueError, match=words):
        k.update(ops.get(name, fkl.Add(1)) if isinstance(name, str) else name, *args)
    assert (k(X) == before).all()


def test_an_index_of_numpy_and_constants_of_geometry():
    mul, border = fkl.Mul(2.0), fkl.BorderReader("constant", 7)
    k = kernel(border, fkl.Crop(-1, 0, 4, 4), fkl.Cast("float32"), mul)
    before = k(X)
    k.update(np.int64(4), 2.0)
    assert (k(X) == before).all()
    with pytest.raises(ValueError, match=r"BorderReader: value: the chain is uint8"):
        k.update(border, "constant", 300)
    letterbox = fkl.Resize(9, 9, "nearest", "preserve", 7)
    k2 = kernel(letterbox)
    k2(X)
    with pytest.raises(ValueError, match="Resize: background: the chain is uint8"):
        k2.update(letterbox, 9, 9, "nearest", "preserve", -1)
    assert (k(X) == before).all()


def test_updates_of_many_kinds():
    rois = fkl.Crop([(0, 0, 5, 5), (3, 3, 8, 9)])
    k = kernel(rois, fkl.Resize(4, 4, "nearest"))
    assert k(X).shape == (2, 4, 4, 3)
    for n in (7, 1, 0, 40):
        k.update(rois, [(i % 20, i % 9, 5, 6) for i in range(n)])
        assert k(X).shape == (n, 4, 4, 3)
    resize = fkl.Resize(4, 4, "nearest")
    k = kernel(resize)
    k(X)
    k.update(resize, 9, 8, "nearest")
    assert k(X).shape == (8, 9, 3)
    with pytest.raises(ValueError, match="change the kernel"):
        k.update(resize, 9, 8)
    difference = fkl.Sub(fkl.TensorRead(BACKGROUND))
    k = kernel(difference)
    assert (k(X) == X - BACKGROUND).all()
    k.update(difference, fkl.TensorRead(X))
    assert (k(X) == 0).all()
    loop = fkl.StaticLoop(fkl.Add(1), 3)
    k = kernel(loop)
    k(X)
    k.update(loop, fkl.Add(1), 5)
    assert (k(X) == X + 5).all()
    twice = fkl.Add(1)
    k = kernel(twice, twice)
    k.update(twice, 10)
    assert (k(X) == X + 20).all()
    k.update(2, 1)
    assert (k(X) == X + 11).all()
