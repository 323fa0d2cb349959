"""Colour conversions against OpenCV, video matrices against float64 formulas, video surfaces against NumPy."""

import cv2
import numpy as np
import pytest

import fkl

RNG = np.random.default_rng(0)
ORDERS = {"BGR": 3, "RGB": 3, "BGRA": 4, "RGBA": 4, "GRAY": 1}
SPACES = ("YCrCb", "YUV", "HSV")
CODES = [f"{a}2{b}" for a in ORDERS for b in ORDERS if a != b]
CODES += [f"{a}2{s}" for a in ("BGR", "RGB") for s in SPACES] + [f"{s}2{a}" for a in ("BGR", "RGB") for s in SPACES]


def run(x, *ops, read=None, **kw):
    return fkl.compose(read or fkl.TensorRead(**kw), *ops, fkl.TensorWrite(), target="cpu")(x)


@pytest.mark.parametrize(("dtype", "tolerance"), [("uint8", 1), ("uint16", 2), ("float32", 1e-6)])
@pytest.mark.parametrize("code", CODES)
def test_codes_like_opencv(code, dtype, tolerance):
    source = code.split("2")[0]
    c = ORDERS.get(source, 3)
    if "HSV" in code and dtype == "uint16":
        with pytest.raises(TypeError, match="HSV takes"):
            run(np.zeros((2, 6, c), dtype), fkl.ColorConversion(code), channels=c)
        return
    x = RNG.random((40, 50, c)).astype(dtype) if dtype == "float32" else RNG.integers(0, np.iinfo(dtype).max + 1, (40, 50, c)).astype(dtype)
    if source == "HSV":
        x[..., 0] = x[..., 0] * 360 if dtype == "float32" else x[..., 0] % 180
    got = run(x, fkl.ColorConversion("COLOR_" + code if dtype == "uint8" else code.lower()), channels=c)
    want = cv2.cvtColor(x if c > 1 else x[..., 0], getattr(cv2, "COLOR_" + code))
    assert got.dtype == x.dtype
    difference = np.abs(got.reshape(want.shape).astype(np.float64) - want)
    if code.endswith("HSV"):
        turn = 180 if dtype == "uint8" else 360
        difference[..., 0] = np.minimum(difference[..., 0], turn - difference[..., 0]) / (1 if dtype == "uint8" else 1000)
    assert difference.max() <= tolerance


@pytest.mark.parametrize("dtype", ["int16", "int32", "float16", "float64", "uint32", "int8"])
def test_gray_of_types_that_opencv_refuses(dtype):
    top = 1.0 if dtype.startswith("float") else min(np.iinfo(dtype).max, 30000)
    x = (RNG.random((20, 30, 3)) * top).astype(dtype)
    want = x.astype(np.float64) @ [0.299, 0.587, 0.114]
    got = run(x, fkl.ColorConversion("RGB2GRAY")).astype(np.float64)
    limit = {"float16": 1e-3, "float64": 1e-15}.get(dtype, 0.51)
    assert got.shape == (20, 30) and np.abs(got - want).max() <= limit


def test_alpha_and_refusals():
    x = RNG.integers(0, 256, (4, 6, 3), dtype=np.uint8)
    assert (run(x, fkl.ColorConversion("RGB2BGRA", alpha=7)) == np.concatenate([x[..., ::-1], np.full((4, 6, 1), 7, np.uint8)], -1)).all()
    assert (run(x.astype(np.float32), fkl.ColorConversion("RGB2RGBA"))[..., 3] == 1).all()
    assert (run(x.astype(np.uint16), fkl.ColorConversion("RGB2RGBA"))[..., 3] == 65535).all()
    for code in ("RGB2RGB", "RGB2LAB", "GRAY2HSV", "", "RGBA2YUV", "RGB"):
        with pytest.raises(ValueError, match="unknown colour code"):
            fkl.ColorConversion(code)
    with pytest.raises(ValueError, match="no alpha"):
        fkl.ColorConversion("RGB2BGR", alpha=1)
    with pytest.raises(ValueError, match="300"):
        run(x, fkl.ColorConversion("RGB2RGBA", alpha=300))
    with pytest.raises(TypeError, match=r"RGBA2RGB.*4 channels.*uint8x3"):
        run(x, fkl.ColorConversion("RGBA2RGB"))
    with pytest.raises(TypeError, match="put a Cast"):
        run(x.astype(np.int32), fkl.ColorConversion("RGB2YUV"))


K = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


@pytest.mark.parametrize("depth", [8, 10, 12])
@pytest.mark.parametrize("range_", ["limited", "full"])
@pytest.mark.parametrize("primaries", K)
def test_video_matrices(primaries, range_, depth):
    kr, kb = K[primaries]
    kg, top, unit = 1 - kr - kb, 2**depth - 1, 2 ** (depth - 8)
    oy, sy, sc = (16 * unit, 219 * unit, 224 * unit) if range_ == "limited" else (0, top, top)
    x = RNG.integers(0, top + 1, (30, 40, 3)).astype(np.uint8 if depth == 8 else np.uint16)
    y, u, v = ((x[..., 0] - float(oy)) / sy, (x[..., 1] - 128.0 * unit) / sc, (x[..., 2] - 128.0 * unit) / sc)
    r, b = y + 2 * (1 - kr) * v, y + 2 * (1 - kb) * u
    want = np.stack([r, (y - kr * r - kb * b) / kg, b], -1) * top
    settings = {"primaries": primaries, "range": range_, "depth": depth}
    got = run(x, fkl.ConvertYUVToRGB(**settings))
    assert got.dtype == np.float32 and np.abs(got - want).max() <= 1e-5 * top
    back = run(want.astype(np.float32), fkl.ConvertRGBToYUV(**settings))
    assert np.abs(back - x).max() <= 1e-5 * top
    with_alpha = run(x, fkl.ConvertYUVToRGB(**settings, alpha=0.5))
    assert with_alpha.shape == (30, 40, 4) and (with_alpha[..., 3] == 0.5).all() and (with_alpha[..., :3] == got).all()


def test_known_colours():
    def p(primaries, range_, *yuv):
        return run(np.array([[yuv]], np.uint8), fkl.ConvertYUVToRGB(primaries=primaries, range=range_))[0, 0]

    for args, want in {("bt601", "limited", 81, 90, 240): (254.440, -0.480, -0.970), ("bt709", "limited", 81, 90, 240): (276.472, 24.103, -4.586),
                       ("bt601", "full", 81, 90, 240): (238.024, 14.094, 13.664), ("bt709", "full", 81, 90, 240): (257.378, 35.688, 10.487),
                       ("bt709", "limited", 16, 128, 128): (0, 0, 0), ("bt709", "limited", 235, 128, 128): (255, 255, 255)}.items():  # fmt: skip
        assert np.abs(p(*args) - want).max() <= 0.01
    for bad in ({"primaries": "bt470"}, {"range": "tv"}, {"depth": 9}):
        with pytest.raises(ValueError):
            fkl.ConvertYUVToRGB(**bad)


H, W = 24, 32
NV12 = RNG.integers(16, 236, (H * 3 // 2, W), dtype=np.uint8)


def expected(y, u, v):
    return np.stack([y, u.repeat(2, 0).repeat(2, 1), v.repeat(2, 0).repeat(2, 1)], -1)


def test_420_formats():
    want = expected(NV12[:H], NV12[H:, 0::2], NV12[H:, 1::2])
    read = fkl.ReadYUV
    assert (run(NV12, read=read("NV12")) == want).all()
    assert (run(NV12, read=read("nv21")) == want[..., [0, 2, 1]]).all()
    luma, chroma = NV12[:H].copy(), NV12[H:].copy()
    wide = np.zeros((H, 64), np.uint8)
    wide[:, :W] = luma
    for pair in ((luma, chroma), (luma, chroma.reshape(H // 2, W // 2, 2)), (wide[:, :W], chroma)):
        assert (run(pair, read=read("nv12")) == want).all()
    planar = np.concatenate([luma.ravel(), NV12[H:, 0::2].ravel(), NV12[H:, 1::2].ravel()]).reshape(H * 3 // 2, W)
    assert (run(planar, read=read("i420")) == want).all() and (run(planar, read=read("yv12")) == want[..., [0, 2, 1]]).all()
    padded = np.zeros((H * 3 // 2, 48), np.uint8)
    padded[:, :W] = NV12
    assert (run(padded[:, :W], read=read("nv12")) == want).all()
    batch = np.stack([NV12, NV12[::-1]])
    assert (run(batch, read=read("nv12"))[0] == want).all() and (run([NV12, NV12], read=read("nv12"))[1] == want).all()


@pytest.mark.parametrize("pitch", [W, W + 1, W + 2])
@pytest.mark.parametrize("offset", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["nv12", "nv21", "p010"])
def test_chroma_at_any_address_and_pitch(name, offset, pitch):
    dtype, shift = (np.uint16, 6) if name == "p010" else (np.uint8, 0)
    surface = (RNG.integers(0, 2 ** (8 * np.dtype(dtype).itemsize - shift), (H * 3 // 2, W)) << shift).astype(dtype)
    memory = np.zeros(H * 3 // 2 * pitch + 4, dtype)
    x = np.lib.stride_tricks.as_strided(memory[offset:], surface.shape, (pitch * memory.itemsize, memory.itemsize))
    x[...] = surface
    want = expected(surface[:H], surface[H:, 0::2], surface[H:, 1::2]) >> shift
    want = want[..., [0, 2, 1]] if name == "nv21" else want
    assert (run(x, read=fkl.ReadYUV(name)) == want).all() and (run((x[:H], x[H:]), read=fkl.ReadYUV(name)) == want).all()


def test_pairs_are_announced_where_they_are_aligned():
    """The flag that lets a GPU read both chroma samples at once: address, pitch and plane stride are multiples of the pair."""
    from types import SimpleNamespace

    from fkl.dtypes import DType
    from fkl.operations.video import FORMATS
    from fkl.video import video_surface

    def flag(name, item, address, pitch, plane=None, chroma=None):
        def view(ptr, rows, pitch, plane):
            shape, strides = ((rows, 8), (pitch, item)) if plane is None else ((2, rows, 8), (plane, pitch, item))
            return SimpleNamespace(ptr=ptr, shape=shape, strides=strides, itemsize=item, dtype=DType("uint8" if item == 1 else "uint16"))

        views = [view(address, 6 if chroma is None else 4, pitch, plane)]
        if chroma is not None:
            views.append(view(chroma, 2, pitch, plane))
        return np.frombuffer(video_surface(name, FORMATS[name], views).record, np.int32)[-1]

    for name, item in (("nv12", 1), ("nv21", 1), ("p010", 2)):
        pair = 2 * item
        for address in range(4096, 4096 + 2 * pair, item):
            for pitch in range(8 * item, 8 * item + 2 * pair + 1, item):
                start = address + 4 * pitch
                assert flag(name, item, address, pitch) == (start % pair == 0 and pitch % pair == 0)
                for chroma in range(8192, 8192 + 2 * pair, item):
                    assert flag(name, item, address, pitch, chroma=chroma) == (chroma % pair == 0 and pitch % pair == 0)
        assert flag(name, item, 4096, 8 * item, plane=6 * 8 * item) == 1
        assert flag(name, item, 4096, 8 * item, plane=6 * 8 * item + item) == 0
    assert flag("i420", 1, 4096, 8) == 0 and flag("uyvy", 1, 4096, 8) == 0


def test_lists_of_pairs():
    want = expected(NV12[:H], NV12[H:, 0::2], NV12[H:, 1::2])
    luma, chroma = NV12[:H].copy(), NV12[H:].copy()
    pair = (luma, chroma)
    got = run([pair, NV12, pair], read=fkl.ReadYUV("nv12"))
    assert got.shape == (3, H, W, 3) and all((plane == want).all() for plane in got)
    crops = fkl.compose(fkl.ReadYUV("nv12"), fkl.Crop([(0, 0, 4, 4), (3, 5, 4, 4)]), fkl.TensorWrite(), target="cpu")
    assert (crops([pair, pair])[1] == want[5:9, 3:7]).all() and (crops([pair])[1] == want[5:9, 3:7]).all()
    divergent = fkl.compose_divergent([2, 1], [fkl.ReadYUV("nv12"), fkl.TensorWrite()], [fkl.ReadYUV("nv21"), fkl.TensorWrite()], target="cpu")
    got = divergent([pair, pair])
    assert (got[1] == want).all() and (got[0] == want[..., [0, 2, 1]]).all()
    with pytest.raises(ValueError, match="chroma"):
        run([pair, (luma, chroma[1:])], read=fkl.ReadYUV("nv12"))
    with pytest.raises(ValueError, match="one array"):
        run([(luma, chroma)], read=fkl.ReadYUV("i420"))
    wide = np.zeros((H // 2, 2 * W), np.uint8)
    for split in (wide[:, ::2], chroma[:, ::-1], chroma[::-1], wide[:, ::2].reshape(H // 2, W // 2, 2)[:, ::-1]):
        with pytest.raises(ValueError, match=r"the chroma of a nv12 surface.*make it contiguous"):
            run((luma, split), read=fkl.ReadYUV("nv12"))
    lumas = np.stack([luma] * 3)
    for frames in (2, 4):
        for shape in ((H // 2, W), (H // 2, W // 2, 2)):
            with pytest.raises(ValueError, match=r"shape \(3, "):
                run((lumas, np.zeros((frames, *shape), np.uint8)), read=fkl.ReadYUV("nv12"))
    assert (run((lumas, np.stack([chroma] * 3)), read=fkl.ReadYUV("nv12")) == run((luma, chroma), read=fkl.ReadYUV("nv12"))).all()


@pytest.mark.parametrize("name", ["nv12", "i420", "uyvy"])
@pytest.mark.parametrize("shape", [(0, 6, 4), (2, 0, 4), (2, 6, 0), (0, 4), (6, 0)])
def test_surfaces_without_elements(name, shape):
    for x in (np.zeros(shape, np.uint8), np.zeros((8, 12, 8), np.uint8)[tuple(slice(n) for n in shape[-2:])][..., 0] if len(shape) == 2 else np.empty(shape, np.uint8)):
        rows = x.shape[-2] if name == "uyvy" else x.shape[-2] * 2 // 3
        width = x.shape[-1] // 2 if name == "uyvy" else x.shape[-1]
        assert run(x, read=fkl.ReadYUV(name)).shape == (*shape[:-2], rows, width, 3)


@pytest.mark.parametrize(("name", "shift"), [("p010", 6), ("p012", 4), ("p016", 0)])
def test_samples_in_the_high_bits(name, shift):
    x = (RNG.integers(0, 2 ** (16 - shift), (H * 3 // 2, W)) << shift).astype(np.uint16)
    got = run(x, read=fkl.ReadYUV(name))
    assert got.dtype == np.uint16 and (got == expected(x[:H], x[H:, 0::2], x[H:, 1::2]) >> shift).all()


def test_white_in_ten_bits():
    y, uv = np.full((4, 6), 940 << 6, np.uint16), np.full((2, 6), 512 << 6, np.uint16)
    got = run((y, uv), fkl.ConvertYUVToRGB(depth=10), read=fkl.ReadYUV("p010"))
    assert np.abs(got - 1023).max() < 1e-3


@pytest.mark.parametrize(("name", "code"), [("nv12", cv2.COLOR_YUV2RGB_NV12), ("nv21", cv2.COLOR_YUV2RGB_NV21), ("i420", cv2.COLOR_YUV2RGB_I420), ("yv12", cv2.COLOR_YUV2RGB_YV12)])
def test_to_rgb_like_opencv(name, code):
    got = run(NV12, fkl.ConvertYUVToRGB("bt601"), fkl.SaturateCast("uint8"), read=fkl.ReadYUV(name))
    assert np.abs(got.astype(int) - cv2.cvtColor(NV12, code)).max() <= 1


@pytest.mark.parametrize(("name", "code"), [("uyvy", cv2.COLOR_YUV2RGB_UYVY), ("yuyv", cv2.COLOR_YUV2RGB_YUYV)])
def test_422_like_opencv(name, code):
    x = RNG.integers(16, 236, (H, W, 2), dtype=np.uint8)
    got = run(x.reshape(H, 2 * W), fkl.ConvertYUVToRGB("bt601"), fkl.SaturateCast("uint8"), read=fkl.ReadYUV(name))
    assert np.abs(got.astype(int) - cv2.cvtColor(x, code)).max() <= 1


@pytest.mark.parametrize("siting", ["left", "center"])
@pytest.mark.parametrize("name", ["nv12", "uyvy"])
def test_linear_chroma(name, siting):
    if name == "nv12":
        x, u = NV12, NV12[H:, 0::2].astype(np.float64)
        rows = (np.arange(H) - 0.5) / 2
    else:
        x = RNG.integers(0, 256, (H, 2 * W), dtype=np.uint8)
        u, rows = x[:, 0::4].astype(np.float64), np.arange(H).astype(float)
    columns = np.arange(W) / 2 if siting == "left" else (np.arange(W) - 0.5) / 2

    def line(a, at, axis):
        lo = np.floor(at).astype(int)
        t = (at - lo).reshape([-1, 1] if axis == 0 else [1, -1])
        n = a.shape[axis]
        return np.take(a, np.clip(lo, 0, n - 1), axis) * (1 - t) + np.take(a, np.clip(lo + 1, 0, n - 1), axis) * t

    want = line(line(u, rows, 0), columns, 1)
    got = run(x, read=fkl.ReadYUV(name, chroma="linear", siting=siting))[..., 1]
    assert (got == np.floor(want + 0.5)).all()


def test_only_the_pixels_needed():
    chain = [fkl.ConvertYUVToRGB(), fkl.Crop(3, 5, 21, 15), fkl.Resize(10, 10), fkl.Div(255.0)]
    got = run(NV12, *chain, read=fkl.ReadYUV("nv12"))
    rgb = run(NV12, fkl.ConvertYUVToRGB(), read=fkl.ReadYUV("nv12"))
    want = cv2.resize(np.ascontiguousarray(rgb[5:20, 3:24]), (10, 10)) / np.float32(255)
    assert np.abs(got - want).max() <= 2e-6


@pytest.mark.parametrize(
    ("name", "x", "kind", "words"),
    [
        ("nv12", NV12[:, :31], ValueError, "even width and height.*31"), ("nv12", NV12[:35], ValueError, "35"),
        ("p010", NV12, TypeError, "uint16"), ("nv12", NV12[None, None], ValueError, "dimensions"),
        ("uyvy", np.zeros((4, 62), np.uint8), ValueError, "even width"), ("nv12", (NV12[:H], NV12[: H // 2 - 1]), ValueError, "chroma"),
        ("i420", (NV12[:H], NV12[H:]), ValueError, "one array"), ("nv12", NV12[:, ::2], ValueError, "beside each other"),
        ("nv12", (NV12[:H], NV12[H:].astype(np.uint16)), ValueError, "one dtype"),
        ("i420", np.zeros((36, 40), np.uint8)[:, :32], ValueError, "rows without gaps"), ("yv12", NV12[:, 4:36], ValueError, "rows without gaps"),
    ],
)  # fmt: skip
def test_surfaces_that_are_none(name, x, kind, words):
    with pytest.raises(kind, match=words):
        run(x, read=fkl.ReadYUV(name))


def test_read_refusals():
    with pytest.raises(ValueError, match="nv13"):
        fkl.ReadYUV("nv13")
    with pytest.raises(TypeError, match="not a list"):
        fkl.ReadYUV("nv12", [NV12, NV12])
    with pytest.raises(ValueError, match="one of replicate, linear"):
        fkl.ReadYUV("nv12", chroma="cubic")
