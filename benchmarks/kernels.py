"""GPU time of whole workloads, W1 to W6, beside torch, triton, kernels written by hand and a copy of the same bytes.

    python benchmarks/kernels.py [--only W2] [--no-compile]

Every contender's launches, over buffers that rotate past the L2 cache, are captured in one graph and replayed between CUDA
events, so that only GPU time is seen; the median of five interleaved rounds counts. Outputs are poisoned and compared with a
float64 reference first. Needs a GPU and torch; takes cupy and triton along where they are installed.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import peers_kernels
from common import arguments, interleaved, resources, save, table

import fkl
from fkl.runtime.context import available

NORMALISE = (fkl.Div(255.0), fkl.Sub(peers_kernels.MEAN), fkl.Div(peers_kernels.STD))
MATRIX = [[0.9, 0.1, 30], [-0.05, 1.1, -40], [1e-5, 2e-5, 1]]


class Workload(NamedTuple):
    """What is computed, over which buffers, and how far a peer may be from the reference.

    ``moved`` are the bytes that must be read and written; ``limit`` the ratio to reach, of the best peer or of "copy".
    """

    key: str
    name: str
    inputs: list[Any]
    outputs: list[Any]
    ops: list[Any]
    reference: Any
    tolerance: float
    moved: int
    limit: tuple[str, float]
    read: Any = fkl.TensorRead
    write: Any = fkl.TensorWrite
    fast_math: bool = False
    rough: float = 1e-4


def buffers(bytes_each: int) -> int:
    """How many buffers go past a 60 MB cache."""
    return max(2, min(64, -(-160_000_000 // max(bytes_each, 1))))


def captured(torch, calls, milliseconds: float = 3.0):
    """Microseconds a call, of calls that are captured one after the other and replayed. None if a call cannot be captured."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls[:3] * 2:
            call()
        stream.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for call in calls:
            call()
        end.record()
        end.synchronize()
    once = start.elapsed_time(end)
    passes = max(1, min(int(milliseconds / max(once, 1e-3)), 400 // len(calls)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(passes):
            for call in calls:
                call()

    def run():
        graph.replay()
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end) * 1e3 / (passes * len(calls))

    return run


def copies(torch, total: int, count: int):
    """Device-to-device copies that read and write as many bytes together as the workload."""
    half = max(total // 2 // 16 * 16, 16)
    pairs = [(torch.randint(0, 256, (half,), dtype=torch.uint8, device="cuda"), torch.empty(half, dtype=torch.uint8, device="cuda")) for _ in range(count)]
    return [lambda a=a, b=b: b.copy_(a) for a, b in pairs]


def difference(output, expected) -> float:
    return float((output.double() - expected).abs().max())


def measure(torch, w: Workload, functions, hands, tritons, compiled: bool) -> dict[str, Any]:
    kernels = [fkl.compose(w.read(x), *w.ops, w.write(o), fast_math=w.fast_math) for x, o in zip(w.inputs, w.outputs, strict=True)]
    expected = torch.from_numpy(np.ascontiguousarray(w.reference(w.inputs[0]))).cuda()
    contenders: dict[str, Any] = {}
    errors: dict[str, float] = {}

    def add(name, calls, output, tolerance):
        w.outputs[0].fill_(77)
        got = calls[0]()
        torch.cuda.synchronize()
        errors[name] = difference(w.outputs[0] if output else got, expected)
        if errors[name] > tolerance:
            assert not name.startswith("fkl"), f"{w.name}, {name}: off by {errors[name]}"
            print(f"left out: {w.name}, {name}: off by {errors[name]}")
            return
        contenders[name] = captured(torch, calls)

    add("fkl", kernels, True, w.tolerance)
    if w.key == "W6":
        exact = [fkl.compose(w.read(x), *w.ops, w.write(o)) for x, o in zip(w.inputs, w.outputs, strict=True)]
        add("fkl, exact", exact, True, w.tolerance)
    contenders["equal copy"] = captured(torch, copies(torch, w.moved, len(w.inputs)))
    for name, found in (("by hand", hands), ("triton", tritons)):
        if w.key[:2] in found:
            call = found[w.key[:2]]
            add(name, [lambda x=x, o=o, call=call: call(x, o) for x, o in zip(w.inputs, w.outputs, strict=True)], True, w.rough)
    if w.key[:2] in functions:
        eager = functions[w.key[:2]]
        add("torch eager", [lambda x=x: eager(x) for x in w.inputs], False, w.rough)
        if compiled:
            fused = torch.compile(eager, dynamic=False)
            add("torch.compile", [lambda x=x: fused(x) for x in w.inputs], False, w.rough)
    times = interleaved(contenders, rounds=5)
    peers = {n: t for n, t in times.items() if not n.startswith("fkl") and n != "equal copy"}
    kind, most = w.limit
    against = times["equal copy"] if kind == "copy" or not peers else min(peers.values())
    found = {
        "microseconds": times, "largest differences": errors, "bytes": w.moved, "GB/s": w.moved / times["fkl"] / 1e3,
        "compared with": kind, "ratio": times["fkl"] / against, "at most": most,
        **resources((w.read(w.inputs[0]), *w.ops, w.write(w.outputs[0])), w.fast_math),
    }  # fmt: skip
    if "fkl, exact" in times and peers:
        found["exact ratio"], found["exact at most"] = times["fkl, exact"] / min(peers.values()), 2.1
    torch.cuda.empty_cache()
    return found


def workloads(torch, rois):
    """W1 to W6, one after the other, so that their buffers are not all alive at once."""
    mean, std = np.array(peers_kernels.MEAN), np.array(peers_kernels.STD)

    def floats(*shape):
        return torch.rand(shape, device="cuda") * 10 - 5

    def bytes_(*shape):
        return torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")

    for key, shape in (("W1a", (2160, 3840)), ("W1b", (8192, 8192))):
        moved = 2 * 4 * shape[0] * shape[1]
        n = buffers(moved)
        yield Workload(
            key, f"float32 {shape[1]}x{shape[0]}, six operations", [floats(*shape) for _ in range(n)],
            [torch.empty(shape, device="cuda") for _ in range(n)],
            [fkl.Mul(2.0), fkl.Add(1.0), fkl.Mul(3.0), fkl.Sub(4.0), fkl.Div(5.0), fkl.Max(0.0)],
            lambda t: np.maximum(((t.cpu().numpy().astype(np.float64) * 2 + 1) * 3 - 4) / 5, 0), 1e-5, moved, ("copy", 1.02),
        )  # fmt: skip
    for key, lead in (("W2a", ()), ("W2b", (16,))):
        shape = (*lead, 1080, 1920, 3)
        moved = int(np.prod(shape)) * 5
        n = buffers(moved)
        yield Workload(
            key, f"{'16 x ' if lead else ''}uint8x3 1080p, normalised, to planes", [bytes_(*shape) for _ in range(n)],
            [torch.empty((*lead, 3, 1080, 1920), device="cuda") for _ in range(n)], [fkl.Cast("float32"), *NORMALISE],
            lambda t: np.moveaxis((t.cpu().numpy().astype(np.float64) / 255 - mean) / std, -1, -3), 1e-5, moved, ("best peer", 1.02),
            write=fkl.TensorSplit,
        )  # fmt: skip

    def crops(t):
        planes = t.cpu().permute(2, 0, 1)[None].double()
        cut = [torch.nn.functional.interpolate(planes[:, :, b : b + d, a : a + c], size=(128, 64), mode="bilinear") for a, b, c, d in rois]
        return (torch.cat(cut).flip(1).numpy() / 255 - mean[:, None, None]) / std[:, None, None]

    yield Workload(
        "W3", "50 crops of 4K, resized, BGR, normalised, to planes", [bytes_(2160, 3840, 3) for _ in range(8)],
        [torch.empty((50, 3, 128, 64), device="cuda") for _ in range(8)],
        [fkl.Crop(rois), fkl.Resize(64, 128), fkl.VectorReorder(2, 1, 0), *NORMALISE], crops, 1e-3,
        sum(min(w * h, 4 * 64 * 128) * 3 for _, _, w, h in rois) + 50 * 3 * 128 * 64 * 4, ("best peer", 1.02), write=fkl.TensorSplit,
        rough=1e-3,
    )  # fmt: skip
    chain = [fkl.ConvertYUVToRGB(), fkl.Resize(640, 640, "linear", "preserve", 114), fkl.Div(255.0)]
    boxed = fkl.compose(fkl.ReadYUV("nv12"), *chain, fkl.TensorSplit(), target="cpu")
    yield Workload(
        "W4", "NV12 4K, to RGB, letterbox 640, to planes", [bytes_(2160 * 3 // 2, 3840) for _ in range(14)],
        [torch.empty((3, 640, 640), device="cuda") for _ in range(14)], chain, lambda t: boxed(t.cpu().numpy()).astype(np.float64), 0.0,
        int(640 * 360 * 4 * 1.5 + 3 * 640 * 640 * 4), ("best peer", 1.02), lambda x: fkl.ReadYUV("nv12", x), fkl.TensorSplit,
    )  # fmt: skip
    chain = [fkl.Warping(MATRIX, 1920, 1080), fkl.SaturateCast("uint8")]
    warped = fkl.compose(fkl.TensorRead(), *chain, fkl.TensorWrite(), target="cpu")
    yield Workload(
        "W5", "uint8x3 1080p, perspective warp, linear", [bytes_(1080, 1920, 3) for _ in range(26)],
        [torch.empty((1080, 1920, 3), dtype=torch.uint8, device="cuda") for _ in range(26)], chain,
        lambda t: warped(t.cpu().numpy()).astype(np.float64), 0.0, 2 * 1080 * 1920 * 3, ("best peer", 1.02), rough=1.01,
    )  # fmt: skip

    def thousand(t):
        a, b = float(np.float32(0.999)), float(np.float32(0.001))
        return t.cpu().numpy().astype(np.float64) * a**1000 + b * (1 - a**1000) / (1 - a)

    yield Workload(
        "W6", "float32 4096x4096, 1000 multiply-adds", [floats(4096, 4096) for _ in range(2)],
        [torch.empty((4096, 4096), device="cuda") for _ in range(2)], [fkl.StaticLoop([fkl.Mul(0.999), fkl.Add(0.001)], 1000)],
        thousand, 1e-3, 2 * 4 * 4096 * 4096, ("best peer", 1.05), fast_math=True, rough=1e-3,
    )  # fmt: skip


def main() -> None:
    args = arguments(__doc__, lambda p: (p.add_argument("--only", default=""), p.add_argument("--no-compile", action="store_true")))
    if not available():
        sys.exit("this benchmark needs a CUDA GPU")
    import torch

    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    rois = [(int(rng.integers(0, 3600)), int(rng.integers(0, 1900)), int(rng.integers(60, 200)), int(rng.integers(60, 200))) for _ in range(50)]
    functions = peers_kernels.torch_functions(torch, rois, MATRIX)
    found: dict[str, Any] = {}
    for name, make in (("by hand", lambda: peers_kernels.by_hand(torch, rois, MATRIX)), ("triton", lambda: peers_kernels.by_triton(torch))):
        try:
            found[name] = make()
        except ImportError as error:
            print(f"not measured: {name}: {error}")
            found[name] = {}
    big = 256 << 20
    ceiling = 2 * big / captured(torch, copies(torch, 2 * big, 2))() / 1e3
    results: dict[str, Any] = {}
    for w in workloads(torch, rois):
        if args.only and not w.key.startswith(args.only):
            continue
        results[f"{w.key} {w.name}"] = measure(torch, w, functions, found["by hand"], found["triton"], not args.no_compile)
    rows = [("workload", "fkl us", "copy", "by hand", "triton", "compile", "eager", "GB/s", "regs", "spills", "ratio", "at most")]
    for name, r in results.items():
        t = r["microseconds"]
        cells = [f"{t[n]:.1f}" if n in t else "-" for n in ("fkl", "equal copy", "by hand", "triton", "torch.compile", "torch eager")]
        rows.append((name, *cells, f"{r['GB/s']:.0f}", str(r["registers"]), str(r["local bytes"]), f"{r['ratio']:.3f}", f"{r['at most']:.2f}"))
        if "exact ratio" in r:
            rows.append((f"{name}, exact", f"{t['fkl, exact']:.1f}", *[""] * 8, f"{r['exact ratio']:.3f}", f"{r['exact at most']:.2f}"))
    table(rows)
    print(f"ceiling: a copy of 256 MB moves {ceiling:.0f} GB/s")
    save(args.out, "kernels", {"ceiling GB/s": ceiling, "workloads": results})


if __name__ == "__main__":
    main()
