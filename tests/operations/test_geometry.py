"""Geometry on the CPU target against OpenCV, PIL, NumPy and float64 formulas, at the tolerances of the contract."""

import cv2
import numpy as np
import pytest
from PIL import Image

import fkl

RNG = np.random.default_rng(0)
IMAGE = RNG.integers(0, 256, (67, 93, 3), dtype=np.uint8)
FLOAT = IMAGE.astype(np.float32)
SIZES = [(40, 31), (200, 150), (93, 67), (33, 140), (1, 1), (94, 66), (7, 67), (186, 134)]


def run(x, *ops, **kw):
    return fkl.compose(fkl.TensorRead(**kw), *ops, fkl.TensorWrite(), target="cpu")(x)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("interp", "flag", "tolerance"), [("linear", cv2.INTER_LINEAR, 2e-6), ("cubic", cv2.INTER_CUBIC, 5e-6)])
def test_resize_like_opencv(size, interp, flag, tolerance):
    assert np.abs(run(FLOAT, fkl.Resize(*size, interp)) - cv2.resize(FLOAT, size, interpolation=flag)).max() <= tolerance * 255
    assert (run(IMAGE, fkl.Resize(*size, interp)) == run(FLOAT, fkl.Resize(*size, interp))).all()


@pytest.mark.parametrize("size", SIZES)
def test_nearest(size):
    w, h = size
    ys, xs = ((2 * np.arange(h) + 1) * 67) // (2 * h), ((2 * np.arange(w) + 1) * 93) // (2 * w)
    assert (run(IMAGE, fkl.Resize(w, h, "nearest")) == IMAGE[ys][:, xs]).all()
    got = run(IMAGE, fkl.Resize(w, h, "nearest", centers="top_left"))
    assert (got == cv2.resize(IMAGE, size, interpolation=cv2.INTER_NEAREST)).all() and got.dtype == np.uint8


@pytest.mark.parametrize("size", SIZES)
def test_top_left_linear(size):
    w, h = size

    def axis(n, t):
        c = np.arange(t) * (n / t)
        i = np.floor(c).astype(int)
        return np.clip(i, 0, n - 1), np.clip(i + 1, 0, n - 1), c - i

    (y0, y1, wy), (x0, x1, wx) = axis(67, h), axis(93, w)
    f = FLOAT.astype(np.float64)
    top = f[y0][:, x0] * (1 - wx)[None, :, None] + f[y0][:, x1] * wx[None, :, None]
    low = f[y1][:, x0] * (1 - wx)[None, :, None] + f[y1][:, x1] * wx[None, :, None]
    want = top * (1 - wy)[:, None, None] + low * wy[:, None, None]
    assert np.abs(run(FLOAT, fkl.Resize(w, h, centers="top_left")) - want).max() <= 1e-6 * 255


def overlap(n, t):
    """Box-overlap weights of an axis, (t, n), in float64."""
    lo, hi = np.arange(t)[:, None] * n / t, (np.arange(t)[:, None] + 1) * n / t
    s = np.arange(n)[None]
    return np.clip(np.minimum(hi, s + 1) - np.maximum(lo, s), 0, None) / (n / t)


@pytest.mark.parametrize("size", SIZES)
def test_area(size):
    w, h = size
    want = np.einsum("yj,jic,xi->yxc", overlap(67, h), FLOAT.astype(np.float64), overlap(93, w))
    got = run(FLOAT, fkl.Resize(w, h, "area"))
    assert np.abs(got - want).max() <= 1e-5 * 255
    if (w <= 93 and h <= 67) or (w >= 93 and h >= 67):
        limit = 2.5e-3 if w <= 93 else 1e-5
        assert np.abs(got - cv2.resize(FLOAT, size, interpolation=cv2.INTER_AREA)).max() <= limit * 255


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("interp", "flag"), [("linear", Image.BILINEAR), ("cubic", Image.BICUBIC)])
def test_antialias_like_pil(size, interp, flag):
    gray = np.ascontiguousarray(FLOAT[..., 0])
    want = np.asarray(Image.fromarray(gray).resize(size, flag))
    assert np.abs(run(gray, fkl.Resize(*size, interp, antialias=True)) - want).max() <= 1e-5 * 255


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float16", "bfloat16", "float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_types_of_results(dtype, channels):
    import ml_dtypes

    numpy_type = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = RNG.integers(0, 2 if dtype == "bool" else 100, (12, 15, channels)).astype(numpy_type)
    out = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float64": np.float64}.get(dtype, np.float32)
    kw = {"channels": channels}
    got = run(x, fkl.Resize(9, 7), **kw)
    assert got.dtype == out and got.shape == (7, 9, channels)
    want = cv2.resize(x.astype(np.float32), (9, 7)).reshape(7, 9, channels)
    assert np.abs(got.astype(np.float64) - want).max() <= {"float16": 0.05, "bfloat16": 0.5}.get(dtype, 1e-4)
    assert run(x, fkl.Resize(9, 7, "nearest"), **kw).dtype == numpy_type
    assert (run(x, fkl.Crop(2, 3, 5, 4), **kw) == x[3:7, 2:7]).all()


MATRICES = {
    "identity": [[1, 0, 0], [0, 1, 0]],
    "affine": [[0.9, 0.1, 3.2], [-0.05, 1.1, -4.7]],
    "perspective": [[0.9, 0.1, 3], [-0.05, 1.1, -4], [1e-4, 2e-4, 1]],
    "far": [[50, 0, -4000], [0, 50, 1000]],
}


def warp_formula(x, m, w, h):
    """Bilinear inverse warp with a border of 0, in float64."""
    m = np.vstack([m, [0, 0, 1]]) if len(m) == 2 else np.asarray(m)
    yy, xx = np.mgrid[:h, :w].astype(np.float64)
    d = m[2][0] * xx + m[2][1] * yy + m[2][2]
    sx, sy = (m[0][0] * xx + m[0][1] * yy + m[0][2]) / d, (m[1][0] * xx + m[1][1] * yy + m[1][2]) / d
    x0, y0 = np.floor(sx), np.floor(sy)
    out = np.zeros((h, w, x.shape[2]))
    for j in (0, 1):
        for i in (0, 1):
            xi, yi = x0 + i, y0 + j
            ok = (xi >= 0) & (yi >= 0) & (xi < x.shape[1]) & (yi < x.shape[0])
            weight = (sx - x0 if i else 1 - (sx - x0)) * (sy - y0 if j else 1 - (sy - y0))
            out[ok] += (x[yi[ok].astype(int), xi[ok].astype(int)] * weight[ok][:, None])
    return out


@pytest.mark.parametrize("name", MATRICES)
def test_warping(name):
    m = np.array(MATRICES[name], np.float64)
    got = run(FLOAT, fkl.Warping(m, 80, 90))
    assert np.abs(got - warp_formula(FLOAT.astype(np.float64), m, 80, 90)).max() <= 4e-7 * 93 * 255
    full = np.vstack([m, [0, 0, 1]]) if len(m) == 2 else m
    for interp, flag in (("nearest", cv2.INTER_NEAREST), ("linear", cv2.INTER_LINEAR), ("cubic", cv2.INTER_CUBIC)):
        want = cv2.warpPerspective(FLOAT, full, (80, 90), flags=flag | cv2.WARP_INVERSE_MAP)
        difference = np.abs(run(FLOAT, fkl.Warping(m, 80, 90, interp)) - want)
        # Nearest differs at ties, which this affine matrix has in every tenth pixel.
        assert np.quantile(difference, 0.85 if interp == "nearest" else 0.98) <= 1e-3 * 255
    assert run(IMAGE, fkl.Warping(m, 8, 9, "nearest")).dtype == np.uint8


def test_warping_without_a_place_and_with_borders():
    assert (run(IMAGE, fkl.Warping([[1, 0, 0], [0, 1, 0], [0, 0, 0]], 5, 4)) == 0).all()
    shifted = run(IMAGE, fkl.BorderReader("replicate"), fkl.Warping([[1, 0, -20], [0, 1, -10]], 93, 67, "nearest"))
    assert (shifted == np.pad(IMAGE, ((10, 0), (20, 0), (0, 0)), "edge")[:67, :93]).all()
    seven = run(IMAGE, fkl.BorderReader("constant", 7), fkl.Warping([[1, 0, -200], [0, 1, 0]], 20, 9, "linear"))
    assert (seven == 7).all()
    # After a Crop the crop is the whole image.
    assert (run(IMAGE, fkl.Crop(10, 10, 20, 20), fkl.Warping([[1, 0, -5], [0, 1, 0]], 5, 20, "nearest")) == 0).all()


@pytest.mark.parametrize(("mode", "numpy_mode"), [("replicate", "edge"), ("reflect", "symmetric"), ("wrap", "wrap"), ("reflect101", "reflect"), ("constant", "constant")])
def test_borders_at_any_distance(mode, numpy_mode):
    extra = {"constant_values": 7} if mode == "constant" else {}
    border = fkl.BorderReader(mode, 7) if mode == "constant" else fkl.BorderReader(mode)
    want = np.pad(IMAGE, ((150, 183), (100, 107), (0, 0)), numpy_mode, **extra)
    assert (run(IMAGE, border, fkl.Crop(-100, -150, 300, 400)) == want).all()
    # Later operations apply to the border too; nothing asked outside: identity.
    assert (run(IMAGE, border, fkl.Cast("int32"), fkl.Add(5), fkl.Crop(-100, -150, 300, 400)) == want.astype(np.int32) + 5).all()
    assert (run(IMAGE, border) == IMAGE).all()
    one = IMAGE[:1, :1]
    assert (run(one, border, fkl.Crop(-3, -3, 7, 7)) == np.pad(one, ((3, 3), (3, 3), (0, 0)), numpy_mode, **extra)).all()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int64", "float32", "float16"])
def test_deinterlace(dtype):
    x = RNG.integers(-100 if dtype.startswith(("int", "float")) else 0, 100, (9, 11, 3)).astype(dtype)
    exact = x.astype(np.float64) if dtype.startswith("float") else x.astype(object)

    def mean(a, b):
        return ((a + b) / 2).astype(dtype) if dtype.startswith("float") else ((a + b + 1) // 2).astype(dtype)

    want = x.copy()
    want[1:] = mean(exact[1:], exact[:-1])
    assert (run(x, fkl.Deinterlace("blend")) == want).all()
    for keep, first in (("even", 1), ("odd", 0)):
        want = x.copy()
        for y in range(first, 9, 2):
            above, below = (y - 1 if y > 0 else y + 1), (y + 1 if y < 8 else y - 1)
            want[y] = mean(exact[above], exact[below]) if above != below else x[above]
        assert (run(x, fkl.Deinterlace("linear", keep)) == want).all()


def test_letterbox():
    op = fkl.Resize(64, 64, aspect_ratio="preserve", background=(114, 115, 116))
    p = op.placement(93, 67)
    assert (p.x, p.y, p.width, p.height) == (0, 9, 64, 46)
    got = run(FLOAT, op)
    want = np.broadcast_to(np.array([114, 115, 116], np.float32), (64, 64, 3)).copy()
    want[9:55] = cv2.resize(FLOAT, (64, 46))
    assert np.abs(got - want).max() <= 2e-6 * 255
    left = fkl.Resize(64, 20, aspect_ratio="preserve_left", background=0).placement(93, 67)
    assert (left.x, left.width, left.height) == (0, (2 * 93 * 20 + 67) // (2 * 67), 20)
    even = fkl.Resize(63, 63, aspect_ratio="preserve_even", background=0).placement(93, 67)
    assert even.width % 2 == even.height % 2 == 0
    assert fkl.Resize(5, 500, aspect_ratio="preserve", background=0).placement(1000, 1).height == 1
    near = run(IMAGE, fkl.Resize(64, 64, "nearest", "preserve", 300 % 256))
    assert near.dtype == np.uint8 and (near[0] == 44).all()


def test_batches():
    rects = [(0, 0, 10, 20), (5, 6, 30, 12), (40, 20, 50, 40), (92, 66, 1, 1)]
    got = run(IMAGE, fkl.Crop(rects), fkl.Cast("float32"), fkl.Resize(16, 8), fkl.Mul(2.0))
    for i, (x, y, w, h) in enumerate(rects):
        assert np.abs(got[i] - 2 * cv2.resize(FLOAT[y : y + h, x : x + w], (16, 8))).max() <= 1e-3
    images = [IMAGE, IMAGE[:50, :60].copy(), IMAGE[5:, 7:].copy()]
    got = run(images, fkl.Resize(20, 10))
    assert all(np.abs(got[i] - cv2.resize(a.astype(np.float32), (20, 10))).max() <= 1e-3 for i, a in enumerate(images))
    got = run(images, fkl.Crop([(1, 2, 9, 8), (3, 3, 20, 20), (0, 0, 5, 5)]), fkl.Resize(8, 8))
    assert np.abs(got[1] - cv2.resize(FLOAT[3:23, 3:23], (8, 8))).max() <= 1e-3
    stack = np.stack([IMAGE, IMAGE[::-1]])
    assert (run(stack, fkl.Crop([(0, 0, 5, 6), (7, 8, 5, 6)])) == np.stack([stack[0, :6, :5], stack[1, 8:14, 7:12]])).all()
    assert (run(stack, fkl.Crop(3, 4, 5, 6)) == stack[:, 4:10, 3:8]).all()
    assert run(IMAGE, fkl.Crop([]), fkl.Resize(4, 5)).shape == (0, 5, 4, 3)
    assert run(IMAGE, fkl.Crop([(0, 0, 5, 6)] * 400)).shape == (400, 6, 5, 3)
    split = fkl.compose(fkl.TensorRead(), fkl.Crop(rects), fkl.Resize(16, 8), fkl.TensorSplit(), target="cpu")(IMAGE)
    assert split.shape == (4, 3, 8, 16) and (split.transpose(0, 2, 3, 1) == run(IMAGE, fkl.Crop(rects), fkl.Resize(16, 8))).all()


def test_stacks_of_geometry():
    got = run(IMAGE, fkl.Resize(50, 40), fkl.Crop(3, 4, 30, 30), fkl.Resize(20, 20, "cubic"), fkl.Warping([[1, 0, 0], [0, 1, 0]], 20, 20))
    inner = np.ascontiguousarray(cv2.resize(FLOAT, (50, 40))[4:34, 3:33])
    assert np.abs(got - cv2.resize(inner, (20, 20), interpolation=cv2.INTER_CUBIC)).max() <= 1e-5 * 255
    five = run(IMAGE, *[fkl.Resize(30 - i, 20 + i) for i in range(5)])
    want = FLOAT
    for i in range(5):
        want = cv2.resize(want, (30 - i, 20 + i))
    assert np.abs(five - want).max() <= 1e-5 * 255


@pytest.mark.parametrize(
    ("ops", "words"),
    [
        ([fkl.Crop(80, 0, 20, 20)], r"operation 1, Crop\(80, 0, 20, 20\).*BorderReader"),
        ([fkl.Crop(-1, 0, 5, 5)], "outside"),
        ([fkl.Crop([(0, 0, 5, 5), (0, 0, 6, 6)])], "different sizes"),
        ([fkl.BorderReader(), fkl.Crop(-5, -5, 20, 20), fkl.Crop(-1, 0, 5, 5)], "outside"),
    ],
)
def test_sizes_that_do_not_fit(ops, words):
    with pytest.raises(ValueError, match=words):
        run(IMAGE, *ops)


def test_refusals():
    for make in (lambda: fkl.Crop(0, 0, 0, 5), lambda: fkl.Crop(0, 0, 5, -1), lambda: fkl.Crop(1, 2, 3), lambda: fkl.Resize(0, 4),
                 lambda: fkl.Resize(4, 4, "bilinear"), lambda: fkl.Resize(4, 4, aspect_ratio="preserve"),
                 lambda: fkl.Resize(4, 4, background=1), lambda: fkl.Resize(4, 4, "area", antialias=True),
                 lambda: fkl.Resize(4, 4, "area", centers="top_left"), lambda: fkl.Warping([1, 2], 4, 4), lambda: fkl.Warping([[1, 2], [3, 4], [5, 6]], 4, 4),
                 lambda: fkl.Warping([[float("nan")] * 3] * 2, 4, 4), lambda: fkl.BorderReader("mirror"), lambda: fkl.Deinterlace("bob")):  # fmt: skip
        with pytest.raises(ValueError):
            make()
    for make in (lambda: fkl.Crop(0, 0, 1.5, 5), lambda: fkl.Resize("4", 4), lambda: fkl.Resize(4, 4, antialias=1)):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(ValueError, match="without pixels"):
        run(IMAGE[:0], fkl.Resize(4, 4))
    with pytest.raises(ValueError, match="2 rectangles for 3 source planes"):
        run(np.stack([IMAGE] * 3), fkl.Crop([(0, 0, 2, 2)] * 2))
    with pytest.raises(ValueError, match="overlaps"):
        fkl.compose(fkl.TensorRead(), fkl.Crop(0, 0, 8, 8), fkl.TensorWrite(), target="cpu")(IMAGE, out=IMAGE[:8, :8])


def test_one_image_as_a_list_serves_all_rectangles():
    """What comes before the rectangles has one record, which every plane that comes of it has to find."""
    x = IMAGE
    ops = fkl.Resize(24, 20), fkl.Crop([(0, 0, 5, 4), (3, 3, 5, 4), (9, 1, 5, 4)])
    assert np.array_equal(run([x], *ops), run(x, *ops))


def test_one_rectangle_in_a_tuple_is_explained():
    with pytest.raises(TypeError, match=r"got 1; write Crop\(x, y, width, height\)"):
        fkl.Crop((1, 0, 2, 1))


@pytest.mark.parametrize("shape", [(0, 5, 3), (4, 0, 3)])
def test_no_border_of_an_image_without_pixels(shape):
    empty = np.zeros(shape, np.uint8)
    for mode in ("replicate", "reflect", "wrap", "reflect101"):
        with pytest.raises(ValueError, match=r"operation 1, BorderReader.*without pixels has none to repeat"):
            run(empty, fkl.BorderReader(mode), fkl.Crop(-1, -1, 3, 3))
    assert (run(empty, fkl.BorderReader("constant", 7), fkl.Crop(-1, -1, 3, 3)) == np.full((3, 3, 3), 7)).all()
    # Nothing is asked for, so nothing has to be repeated.
    for mode in ("replicate", "reflect", "wrap", "reflect101"):
        assert run(IMAGE[:0], fkl.BorderReader(mode)).shape == IMAGE[:0].shape
        assert run(IMAGE[:, :0], fkl.BorderReader(mode), fkl.Cast("float32")).shape == IMAGE[:, :0].shape
    # A batch of no images has nothing to repeat, and nothing to make.
    assert run(np.zeros((0, 4, 5, 3), np.uint8), fkl.BorderReader("wrap"), fkl.Crop(-1, -1, 3, 3)).shape == (0, 3, 3, 3)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_positions_on_a_pixel_are_that_pixel(dtype):
    x = np.where(np.indices((8, 8)).sum(0) % 2, 1e6 if dtype != "uint8" else 255, 1e-3 if dtype != "uint8" else 0).astype(dtype)
    wide = x.astype(np.float32 if dtype == "uint8" else dtype)
    assert np.array_equal(run(x, fkl.Resize(8, 8)), wide)
    assert np.array_equal(run(x, fkl.Resize(4, 4, centers="top_left")), wide[::2, ::2])
    assert np.array_equal(run(x, fkl.Resize(24, 24))[1::3, 1::3], wide)


def test_numbers_beyond_everything_are_refused():
    with pytest.raises(ValueError, match="beyond float32"):
        fkl.Warping([[10**400, 0, 0], [0, 1, 0]], 2, 2)
    for shift in (fkl.ShiftLeft, fkl.ShiftRight):
        for n in (float("inf"), float("nan"), 10**400):
            with pytest.raises(ValueError, match="a shift is a whole number"):
                shift(n)
    wide = fkl.Resize(2**21, 8, "nearest", "preserve", 0)
    with pytest.raises(ValueError, match=r"operation 1, Resize.*too far for a source of 4096"):
        run(np.zeros((65536, 4096), np.uint8), wide)
