"""What importing and composing cost: cold, from disk, in this process.

    python benchmarks/compose.py

Without a GPU only the import is measured. Medians; NVRTC is loaded before cold composes are timed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from common import arguments, save, table

import fkl
from fkl.runtime.context import available

#: Milliseconds to stay below.
LIMITS = {
    "import fkl": 15.0, "cold, float32 x * 2": 60.0, "cold, W3 chain": 150.0, "cold, W4 chain": 150.0, "cold, 200 operations": 300.0,
    "on disk": 1.0,
}  # fmt: skip

NORMALISE = (fkl.Div(255.0), fkl.Sub((0.485, 0.456, 0.406)), fkl.Div((0.229, 0.224, 0.225)))


def import_time() -> float:
    """Milliseconds of ``import fkl`` in fresh interpreters (the interpreter's own start taken off)."""
    code = "import time; t = time.perf_counter(); import fkl; print((time.perf_counter() - t) * 1e3)"
    runs = [subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True) for _ in range(10)]
    return sorted(float(run.stdout) for run in runs)[5]


def cold(make) -> float:
    """Median of five composes, each of a chain with another count of operations: no cache, the driver's neither, knows it."""
    times = []
    for i in range(5):
        begin = time.perf_counter()
        make([fkl.Abs()] * i)
        times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times)[2]


def empty_kernel() -> float:
    """Milliseconds that NVRTC takes for a kernel without a body; the median of five."""
    from fkl.compiler.gpu import binary
    from fkl.runtime.context import compute_capability
    from fkl.runtime.driver import driver_version

    times = []
    for i in range(5):
        begin = time.perf_counter()
        binary(f'extern "C" __global__ void kernel{i}() {{}}\n', compute_capability(0), fast_math=False, driver_major=driver_version() // 1000)
        times.append((time.perf_counter() - begin) * 1e3)
    return sorted(times)[2]


def compose_times(torch) -> dict[str, float]:
    """Milliseconds of bound composes."""
    frame = torch.randint(0, 256, (1080, 1920, 3), dtype=torch.uint8, device="cuda")
    nv12 = torch.randint(0, 256, (1080 * 3 // 2, 1920), dtype=torch.uint8, device="cuda")
    planes, crops = torch.empty((3, 1080, 1920), device="cuda"), torch.empty((8, 3, 128, 64), device="cuda")
    box, x, o = torch.empty((3, 640, 640), device="cuda"), torch.rand(64, device="cuda"), torch.rand(64, device="cuda")
    rois = [(i * 10, i * 20, 100, 150) for i in range(8)]
    fkl.compose(fkl.TensorRead(frame), fkl.Cast("float32"), fkl.TensorSplit(planes))()  # loads NVRTC
    os.environ["FKL_CACHE"] = "0"
    results = {
        "cold, float32 x * 2": cold(lambda more: fkl.compose(fkl.TensorRead(x), fkl.Mul(2.0), *more, fkl.TensorWrite(o))),
        "cold, W2 chain": cold(lambda more: fkl.compose(fkl.TensorRead(frame), fkl.Cast("float32"), *NORMALISE, *more, fkl.TensorSplit(planes))),
        "cold, W3 chain": cold(lambda more: fkl.compose(fkl.TensorRead(frame), fkl.Crop(rois), fkl.Resize(64, 128), fkl.VectorReorder(2, 1, 0),
                                                        *NORMALISE, *more, fkl.TensorSplit(crops))),
        "cold, W4 chain": cold(lambda more: fkl.compose(fkl.ReadYUV("nv12", nv12), fkl.ConvertYUVToRGB(), fkl.Resize(640, 640, "linear", "preserve", 114),
                                                        fkl.Div(255.0), *more, fkl.TensorSplit(box))),
        "cold, 200 operations": cold(lambda more: fkl.compose(fkl.TensorRead(x), *[fkl.Mul(1.01), fkl.Add(0.5)] * 100, *more, fkl.TensorWrite(o))),
    }  # fmt: skip
    results["an empty kernel, NVRTC alone"] = empty_kernel()
    os.environ["FKL_CACHE"] = "1"

    def w2(value):
        return fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub((0.4, 0.5, value)), fkl.Div((0.2, 0.3, 0.4))

    first = fkl.compose(fkl.TensorRead(frame), *w2(0.5), fkl.TensorSplit(planes))
    times, alone, kept = [], [], []
    for i in range(200):
        begin = time.perf_counter()
        made = fkl.compose(fkl.TensorRead(frame), *w2(i / 200), fkl.TensorSplit(planes))
        times.append((time.perf_counter() - begin) * 1e3)
        kept.append(made)
    del first, kept
    os.environ["FKL_LAUNCH"] = "kernel"
    for i in range(200):
        begin = time.perf_counter()
        fkl.compose(fkl.TensorRead(frame), *w2(i / 200), fkl.TensorSplit(planes))
        alone.append((time.perf_counter() - begin) * 1e3)
    del os.environ["FKL_LAUNCH"]
    results["in this process"] = sorted(times)[100]
    results["in this process, without its graph"] = sorted(alone)[100]
    code = """
import time, torch, fkl
x = torch.zeros((1080, 1920, 3), dtype=torch.uint8, device="cuda"); out = torch.zeros((3, 1080, 1920), device="cuda")
fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.TensorSplit(out))
begin = time.perf_counter()
fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub((0.4, 0.5, 0.6)), fkl.Div((0.2, 0.3, 0.4)), fkl.TensorSplit(out))
print((time.perf_counter() - begin) * 1e3)
"""
    disk = [float(subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(4)]
    results["on disk"] = sorted(disk[1:])[1]
    return results


def main() -> None:
    args = arguments(__doc__)
    results = {"import fkl": import_time()}
    if available():
        import torch

        results |= compose_times(torch)
    else:
        print("no GPU: only the import is measured")
    table([("what", "ms", "at most"), *((name, f"{value:.2f}", str(LIMITS.get(name, ""))) for name, value in results.items())])
    if args.out and available():
        save(args.out, "compose", {"milliseconds": results, "limits": LIMITS})


if __name__ == "__main__":
    main()
