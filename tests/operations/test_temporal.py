"""`CircularTensor` on the CPU target, and on the driver test double."""

import numpy as np
import pytest
from double import check

import fkl

RNG = np.random.default_rng(0)
FRAMES = [RNG.integers(0, 256, (6, 8, 3), dtype=np.uint8) for _ in range(11)]


def window(pushed: int, batch: int, order: str) -> list:
    last = FRAMES[max(pushed - batch, 0) : pushed]
    blank = [np.zeros_like(FRAMES[0])] * (batch - len(last))
    return [*last[::-1], *blank] if order == "newest_first" else [*blank, *last]


@pytest.mark.parametrize("layout", ["packed", "planar"])
@pytest.mark.parametrize("order", ["newest_first", "oldest_first"])
def test_window(order, layout):
    t = fkl.CircularTensor(8, 6, 4, channels=3, order=order, layout=layout, out_dtype="float32", target="cpu")
    half = [fkl.Cast("float32"), fkl.Mul(0.5)]
    for i, frame in enumerate(FRAMES):
        assert t.frames_pushed == i and len(t) == min(i, 4)
        got = t.snapshot()
        want = np.stack(window(i, 4, order)).astype(np.float32) * np.float32(0.5)
        want = want.transpose(0, 3, 1, 2) if layout == "planar" else want
        assert got.dtype == np.float32 and got.shape == want.shape and (got == want).all()
        t.update(frame, half)
    kept = t.snapshot()
    t.update(FRAMES[0], half)
    assert not (t.snapshot() == kept).all()
    assert "12 pushed" in repr(t)


def test_casts_resizes_and_refusals():
    t = fkl.CircularTensor(4, 3, 2, channels=3, out_dtype="int16", target="cpu")
    with pytest.raises(ValueError, match=r"\(3, 4, 3\)"):
        t.update(FRAMES[0])
    with pytest.raises(ValueError, match="int16"):
        t.update(FRAMES[0], fkl.Resize(4, 3))
    assert t.frames_pushed == 0 and (t.snapshot() == 0).all()
    t.update(FRAMES[0], [fkl.Crop(0, 0, 4, 3), fkl.Cast("int16")])
    t.update(FRAMES[1][:3, :4].copy())
    assert (t.snapshot() == np.stack([FRAMES[1][:3, :4], FRAMES[0][:3, :4]]).astype(np.int16)).all()
    for bad in ({"batch": 0}, {"order": "random"}, {"layout": "nhwc"}, {"target": "tpu"}):
        with pytest.raises(ValueError):
            fkl.CircularTensor(**{"width": 4, "height": 3, "batch": 2, "target": "cpu", **bad})


def test_types_of_frames():
    t = fkl.CircularTensor(8, 6, 2, "uint8x3", out_dtype="float32", target="cpu")
    t.update(FRAMES[0])
    assert t.snapshot().shape == (2, 6, 8, 3) and (t.snapshot()[0] == FRAMES[0]).all()
    with pytest.raises(ValueError, match="takes frames of uint8x3, got float32"):
        t.update(FRAMES[1].astype(np.float32))
    with pytest.raises(TypeError, match="ops is an operation or a sequence"):
        t.update(FRAMES[1], 3)
    assert t.frames_pushed == 1 and (t.snapshot()[0] == FRAMES[0]).all()
    for bad, hint in (
        ({"dtype": "uint8x3", "channels": 4}, "channels says 4"),
        ({"dtype": "uint8x3", "out_dtype": "float32x4"}, "frames have 3 channels, out_dtype is float32x4"),
        ({"out_dtype": "uint8x3"}, "frames have 1 channel, out_dtype is uint8x3"),
        ({"channels": 5}, "channels"),
    ):
        with pytest.raises((ValueError, TypeError), match=hint):
            fkl.CircularTensor(8, 6, 2, **{"dtype": "uint8", "target": "cpu", **bad})


def test_frames_that_only_seem_to_fit():
    for width, height in ((1, 5), (5, 1)):
        t = fkl.CircularTensor(width, height, 2, "float32", target="cpu")
        right = np.arange(5, dtype=np.float32).reshape(height, width)
        with pytest.raises(ValueError, match=f"of {width} x {height} .*becomes {height} x {width}"):
            t.update(right.T.copy())
        with pytest.raises(ValueError, match="becomes"):
            t.update(np.zeros((3, 3), np.float32), fkl.Resize(height, width))
        assert t.frames_pushed == 0
        t.update(right)
        t.update(np.zeros((3, 3), np.float32), fkl.Resize(width, height))
        assert (t.snapshot()[1] == right).all()
    t = fkl.CircularTensor(8, 6, 2, channels=np.int64(3), target="cpu")
    with pytest.raises(TypeError, match="one frame, not a list"):
        t.update([FRAMES[0]])
    with pytest.raises(ValueError, match="takes no stream"):
        t.snapshot(stream=0)

    class Foreign:
        def __init__(self, array):
            self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    with pytest.raises(ValueError, match="takes frames of uint8x3, got int8"):
        t.update(Foreign(FRAMES[0].view(np.int8)))
    assert t.frames_pushed == 0
    t.update(Foreign(FRAMES[0]))
    assert (t.snapshot()[0] == FRAMES[0]).all()
    with pytest.raises(ValueError, match="2\\^63"):
        fkl.CircularTensor(2**30, 2**30, 2**10, target="cpu")


def test_on_a_device():
    check("""
    frames = [np.random.default_rng(i).integers(0, 256, (6, 8, 3), dtype=np.uint8) for i in range(7)]
    for order in ("newest_first", "oldest_first"):
        for layout in ("packed", "planar"):
            t = fkl.CircularTensor(8, 6, 3, channels=3, order=order, layout=layout)
            s = fkl.Stream()
            for n, f in enumerate(frames):
                t.update(fkl.asarray(f), stream=s)
                last = frames[max(n - 2, 0): n + 1]; blank = [np.zeros_like(f)] * (3 - len(last))
                want = np.stack([*last[::-1], *blank] if order == "newest_first" else [*blank, *last])
                want = want.transpose(0, 3, 1, 2) if layout == "planar" else want
                assert (t.snapshot(stream=s).to_numpy() == want).all()
    one = fkl.CircularTensor(5, 4, 2, "float32"); one.update(fkl.asarray(np.ones((4, 5), np.float32))); assert one.snapshot().shape == (2, 4, 5)
    """)
