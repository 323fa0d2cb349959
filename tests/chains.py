"""Chains of everything beyond single operations, for comparing the GPU with the CPU target bit for bit."""

from __future__ import annotations

import numpy as np

import fkl

RNG = np.random.default_rng(7)
IMAGE = RNG.integers(0, 256, (61, 83, 3), dtype=np.uint8)
BATCH = RNG.integers(0, 256, (4, 31, 44, 3), dtype=np.uint8)
NV12 = RNG.integers(0, 256, (48 * 3 // 2, 64), dtype=np.uint8)
P010 = (RNG.integers(0, 1024, (48 * 3 // 2, 64)) << 6).astype(np.uint16)
M = [[0.9, 0.1, 3], [-0.05, 1.1, -4], [1e-4, 2e-4, 1]]
RECTS = [(0, 0, 10, 20), (5, 6, 30, 12), (40, 20, 43, 40), (80, 60, 1, 1)]
NORMALISE = [fkl.Div(255.0), fkl.Sub((0.4, 0.5, 0.6)), fkl.Div((0.2, 0.3, 0.4))]


def catalogue() -> list[tuple[str, np.ndarray, fkl.Operation, list, fkl.Operation]]:
    """(name, input, read, operations, write)."""
    R, W, S = fkl.TensorRead, fkl.TensorWrite, fkl.TensorSplit
    out = []
    for interp in ("nearest", "linear", "cubic", "area"):
        for size in ((40, 31), (200, 150), (33, 140)):
            out.append((f"resize-{interp}-{size}", IMAGE, R(), [fkl.Resize(*size, interp)], W()))
            out.append((f"letterbox-{interp}-{size}", IMAGE, R(), [fkl.Resize(*size, interp, "preserve", 114), fkl.Cast("float32"), *NORMALISE], S()))
    for interp in ("linear", "cubic"):
        out.append((f"antialias-{interp}", IMAGE, R(), [fkl.Resize(20, 15, interp, antialias=True)], W()))
    for interp in ("nearest", "linear", "cubic"):
        out.append((f"top-left-{interp}", IMAGE, R(), [fkl.Resize(50, 33, interp, centers="top_left")], W()))
        out.append((f"warp-{interp}", IMAGE, R(), [fkl.Warping(M, 70, 80, interp)], W()))
        out.append((f"warp-border-{interp}", IMAGE, R(), [fkl.BorderReader("reflect"), fkl.Warping(M, 70, 80, interp)], W()))
    for mode in ("replicate", "constant", "reflect", "wrap", "reflect101"):
        out.append((f"border-{mode}", IMAGE, R(), [fkl.BorderReader(mode, 9), fkl.Add(3), fkl.Crop(-100, -90, 300, 280)], W()))
    for mode in ("blend", "linear"):
        out.append((f"deinterlace-{mode}", IMAGE, R(), [fkl.Deinterlace(mode)], W()))
    out.append(("crop", IMAGE, R(), [fkl.Crop(5, 7, 40, 30), fkl.Cast("float32"), fkl.Mul(2.0)], S()))
    out.append(("rois", IMAGE, R(), [fkl.Crop(RECTS), fkl.Resize(16, 24), fkl.VectorReorder(2, 1, 0), *NORMALISE], S()))
    out.append(("many-rois", IMAGE, R(), [fkl.Crop(RECTS * 100), fkl.Resize(8, 8)], fkl.TensorTSplit()))
    out.append(("no-rois", IMAGE, R(), [fkl.Crop([]), fkl.Resize(8, 8)], W()))
    out.append(("batch-crop", BATCH, R(), [fkl.Crop([(i, 2 * i, 20, 21) for i in range(4)])], W()))
    out.append(("batch-resize", BATCH, R(), [fkl.Resize(50, 20)], S()))
    out.append(("stack", IMAGE, R(), [fkl.Resize(50, 40), fkl.Crop(3, 4, 30, 30), fkl.Resize(20, 20, "cubic"), fkl.Warping(M, 20, 20)], W()))
    out.append(("half", IMAGE.astype(np.float16), R(), [fkl.Resize(30, 20)], W()))
    out.append(("double", IMAGE.astype(np.float64), R(), [fkl.Resize(30, 20, "cubic"), fkl.Mul(0.1)], W()))
    for name in ("BGR2RGB", "BGR2GRAY", "RGB2YCrCb", "YCrCb2BGR", "RGB2YUV", "YUV2RGB", "BGR2HSV", "HSV2RGB", "BGR2RGBA"):
        out.append((name, IMAGE, R(), [fkl.ColorConversion(name)], W()))
        out.append((name + "-float", IMAGE.astype(np.float32) / np.float32(255), R(), [fkl.ColorConversion(name)], W()))
    for name in ("nv12", "nv21", "i420", "yv12"):
        for chroma in ("replicate", "linear"):
            out.append((f"{name}-{chroma}", NV12, fkl.ReadYUV(name, chroma=chroma), [fkl.ConvertYUVToRGB()], W()))
    out.append(("uyvy", NV12, fkl.ReadYUV("uyvy", chroma="linear", siting="center"), [fkl.ConvertYUVToRGB("bt601", "full")], W()))
    out.append(("p010", P010, fkl.ReadYUV("p010"), [fkl.ConvertYUVToRGB("bt2020", "limited", 10), fkl.ConvertRGBToYUV("bt2020", "full", 10)], W()))
    out.append(("decoder", NV12, fkl.ReadYUV("nv12"), [fkl.ConvertYUVToRGB(), fkl.Crop(3, 5, 41, 33), fkl.Resize(40, 40, "linear", "preserve", 114), fkl.Div(255.0)], S()))
    return out
