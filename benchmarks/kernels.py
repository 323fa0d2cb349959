"""GPU time of whole workloads beside torch and a copy of the same bytes, in one run.

    python benchmarks/bench_kernels.py

Buffers rotate past the L2 cache, launches are back to back between CUDA events, the median of interleaved rounds counts.
Every result is compared with a reference first. Needs a GPU and torch.
"""

from __future__ import annotations

import sys

import numpy as np
from common import arguments, interleaved, save, table

import fkl
from fkl.runtime.context import available

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
NORMALISE = (fkl.Div(255.0), fkl.Sub(MEAN), fkl.Div(STD))


def timer(torch, calls):
    """Microseconds a call of functions that rotate over buffers."""

    def run():
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        repeats = max(1, 200 // len(calls))
        for call in calls[:2]:
            call()
        torch.cuda.synchronize()
        torch.cuda._sleep(2_000_000)  # the queue fills while the GPU is busy, so that only GPU time is seen
        start.record()
        for _ in range(repeats):
            for call in calls:
                call()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e3 / (repeats * len(calls))

    return run


def copies(torch, total: int, count: int):
    """Device-to-device copies that read and write as many bytes together as the workload."""
    half = max(total // 2 // 16 * 16, 16)
    pairs = [(torch.empty(half, dtype=torch.uint8, device="cuda"), torch.empty(half, dtype=torch.uint8, device="cuda")) for _ in range(count)]
    return [lambda a=a, b=b: b.copy_(a) for a, b in pairs]


def workload(torch, name, inputs, outputs, ops, eager, reference, tolerance, moved, read=fkl.TensorRead, write=fkl.TensorWrite):
    kernels = [fkl.compose(read(x), *ops, write(o)) for x, o in zip(inputs, outputs, strict=True)]
    outputs[0].fill_(77)
    kernels[0]()
    torch.cuda.synchronize()
    difference = float(np.abs(outputs[0].float().cpu().numpy().astype(np.float64) - reference(inputs[0])).max())
    assert difference <= tolerance, f"{name}: off by {difference}"
    contenders = {"fkl": timer(torch, kernels), "equal copy": timer(torch, copies(torch, moved, len(inputs)))}
    if eager is not None:
        contenders["torch eager"] = timer(torch, [lambda x=x: eager(x) for x in inputs])
    times = interleaved(contenders, rounds=5)
    return {**times, "GB/s": moved / times["fkl"] / 1e3, "largest difference": difference}


def buffers(bytes_each: int) -> int:
    """How many buffers go past a 60 MB cache."""
    return max(2, min(64, -(-160_000_000 // max(bytes_each, 1))))


def main() -> None:
    args = arguments(__doc__)
    if not available():
        sys.exit("this benchmark needs a CUDA GPU")
    import torch

    F = torch.nn.functional
    mean, std = (torch.tensor(v, device="cuda").view(3, 1, 1) for v in (MEAN, STD))
    results = {}

    def floats(*shape):
        return torch.rand(shape, device="cuda") * 10 - 5

    def bytes_(*shape):
        return torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")

    for label, shape in (("W1a float32 3840x2160", (2160, 3840)), ("W1b float32 8192x8192", (8192, 8192))):
        moved = 2 * 4 * shape[0] * shape[1]
        n = buffers(moved)
        x, o = [floats(*shape) for _ in range(n)], [torch.empty(shape, device="cuda") for _ in range(n)]
        ops = [fkl.Mul(2.0), fkl.Add(1.0), fkl.Mul(3.0), fkl.Sub(4.0), fkl.Div(5.0), fkl.Max(0.0)]
        results[label] = workload(
            torch, label, x, o, ops, lambda t: (((t * 2 + 1) * 3 - 4) / 5).clamp_min(0),
            lambda t: np.maximum(((t.cpu().numpy().astype(np.float64) * 2 + 1) * 3 - 4) / 5, 0), 1e-5, moved,
        )  # fmt: skip

    def preprocess(t):
        return ((t.permute(2, 0, 1).float() / 255 - mean) / std) if t.dim() == 3 else ((t.permute(0, 3, 1, 2).float() / 255 - mean) / std)

    def preprocess_reference(t):
        a = t.cpu().numpy().astype(np.float64) / 255
        return np.moveaxis((a - MEAN) / STD, -1, -3)

    for label, lead in (("W2a uint8x3 1920x1080 -> CHW", ()), ("W2b 16 images", (16,))):
        shape = (*lead, 1080, 1920, 3)
        moved = int(np.prod(shape)) * 5
        n = buffers(moved)
        x = [bytes_(*shape) for _ in range(n)]
        o = [torch.empty((*lead, 3, 1080, 1920), device="cuda") for _ in range(n)]
        results[label] = workload(torch, label, x, o, [fkl.Cast("float32"), *NORMALISE], preprocess, preprocess_reference, 1e-5, moved,
                                  write=fkl.TensorSplit)  # fmt: skip

    rng = np.random.default_rng(0)
    rois = [(int(rng.integers(0, 3600)), int(rng.integers(0, 1900)), int(rng.integers(60, 200)), int(rng.integers(60, 200))) for _ in range(50)]
    frame = [bytes_(2160, 3840, 3) for _ in range(8)]
    crops = [torch.empty((50, 3, 128, 64), device="cuda") for _ in range(8)]

    def crop_eager(t):
        planes = t.permute(2, 0, 1)[None].float()
        return torch.cat([F.interpolate(planes[:, :, b : b + d, a : a + c], size=(128, 64), mode="bilinear", align_corners=False) for a, b, c, d in rois])

    def crop_reference(t):
        planes = t.cpu().permute(2, 0, 1)[None].double()
        got = torch.cat([F.interpolate(planes[:, :, b : b + d, a : a + c], size=(128, 64), mode="bilinear", align_corners=False) for a, b, c, d in rois])
        return ((got.flip(1) / 255 - mean.cpu().double()) / std.cpu().double()).numpy()

    moved = sum(min(w * h, 4 * 64 * 128) * 3 for _, _, w, h in rois) + 50 * 3 * 128 * 64 * 4
    results["W3 50 crops -> 64x128 -> BGR -> normalise -> NCHW"] = workload(
        torch, "W3", frame, crops, [fkl.Crop(rois), fkl.Resize(64, 128), fkl.VectorReorder(2, 1, 0), *NORMALISE],
        lambda t: (crop_eager(t).flip(1) / 255 - mean) / std, crop_reference, 1e-3, moved, write=fkl.TensorSplit,
    )  # fmt: skip

    nv12 = [bytes_(2160 * 3 // 2, 3840) for _ in range(12)]
    boxes = [torch.empty((3, 640, 640), device="cuda") for _ in range(12)]
    chain = [fkl.ConvertYUVToRGB(), fkl.Resize(640, 640, "linear", "preserve", 114), fkl.Div(255.0)]
    cpu = fkl.compose(fkl.ReadYUV("nv12"), *chain, fkl.TensorSplit(), target="cpu")
    moved = 640 * 360 * 4 * (1 + 0.5) + 3 * 640 * 640 * 4
    results["W4 NV12 4K -> RGB -> letterbox 640 -> CHW"] = workload(
        torch, "W4", nv12, boxes, chain, None, lambda t: cpu(t.cpu().numpy()).astype(np.float64), 0.0, int(moved),
        read=lambda x: fkl.ReadYUV("nv12", x), write=fkl.TensorSplit,
    )  # fmt: skip

    m = [[0.9, 0.1, 30], [-0.05, 1.1, -40], [1e-5, 2e-5, 1]]
    images = [bytes_(1080, 1920, 3) for _ in range(24)]
    warped = [torch.empty((1080, 1920, 3), dtype=torch.uint8, device="cuda") for _ in range(24)]
    chain = [fkl.Warping(m, 1920, 1080), fkl.SaturateCast("uint8")]
    host = fkl.compose(fkl.TensorRead(), *chain, fkl.TensorWrite(), target="cpu")
    results["W5 1080p perspective warp, linear"] = workload(
        torch, "W5", images, warped, chain, None, lambda t: host(t.cpu().numpy()).astype(np.float64), 0.0, 2 * 1080 * 1920 * 3,
    )  # fmt: skip

    rows = [("workload", "fkl us", "equal copy us", "x copy", "torch eager us", "GB/s")]
    for name, r in results.items():
        eager = f"{r['torch eager']:.1f}" if "torch eager" in r else "-"
        rows.append((name, f"{r['fkl']:.1f}", f"{r['equal copy']:.1f}", f"{r['fkl'] / r['equal copy']:.2f}", eager, f"{r['GB/s']:.0f}"))
    table(rows)
    save(args.out, "kernels", {"microseconds": results})


if __name__ == "__main__":
    main()
