"""What a call costs the host, beside bare driver calls from C in the same run; and what composing and importing cost.

    python benchmarks/bench_launch.py

64 floats, one block. Batches of 100 calls with a synchronise after each, median of interleaved rounds. On a machine
without a GPU only import and compile times are measured.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time

from common import ROOT, arguments, interleaved, save, table

import fkl
from fkl.runtime.context import available

BATCH = 100


def import_time() -> float:
    """Milliseconds of ``import fkl`` in fresh interpreters, the best of ten (the interpreter's own start taken off)."""
    code = "import time; t = time.perf_counter(); import fkl; print((time.perf_counter() - t) * 1e3)"
    runs = [subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True) for _ in range(10)]
    return sorted(float(run.stdout) for run in runs)[5]


def w2(value: float):
    """The preprocessing chain; another count of operations is another kernel."""
    return [fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub((0.4, 0.5, value)), fkl.Div((0.2, 0.3, 0.4))]


def compose_times(x, out) -> dict[str, float]:
    """Milliseconds of a bound compose: cold, from disk, from this process."""
    warm_up = fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.TensorSplit(out))  # loads NVRTC
    warm_up()
    os.environ["FKL_CACHE"] = "0"
    import torch

    plain_x, plain_out = torch.rand(64, device="cuda"), torch.rand(64, device="cuda")
    simple = []
    for i in range(5):
        # Another count of operations is another kernel, which no cache of the driver knows.
        begin = time.perf_counter()
        fkl.compose(fkl.TensorRead(plain_x), fkl.Mul(2.0), *[fkl.Abs()] * i, fkl.TensorWrite(plain_out))
        simple.append((time.perf_counter() - begin) * 1e3)
    cold = []
    for i in range(5):
        begin = time.perf_counter()
        fkl.compose(fkl.TensorRead(x), *w2(0.5), *[fkl.Abs()] * (i + 1), fkl.TensorSplit(out))
        cold.append((time.perf_counter() - begin) * 1e3)
    first = fkl.compose(fkl.TensorRead(x), *w2(0.5), fkl.TensorSplit(out))
    os.environ["FKL_CACHE"] = "1"
    again = []
    for i in range(200):
        begin = time.perf_counter()
        fkl.compose(fkl.TensorRead(x), *w2(i / 200), fkl.TensorSplit(out))
        again.append((time.perf_counter() - begin) * 1e3)
    del first
    code = f"""
import sys, time, torch, fkl
x = torch.zeros({tuple(x.shape)}, dtype=torch.uint8, device="cuda"); out = torch.zeros({tuple(out.shape)}, device="cuda")
fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.TensorSplit(out))
begin = time.perf_counter()
fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub((0.4, 0.5, 0.6)), fkl.Div((0.2, 0.3, 0.4)), fkl.TensorSplit(out))
print((time.perf_counter() - begin) * 1e3)
"""
    disk = [float(subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    return {
        "cold bound compose, float32 x * 2 + n operations, median (ms)": sorted(simple)[2],
        "cold bound compose, w2 chain + n operations, median (ms)": sorted(cold)[2],
        "bound compose, on disk (ms)": sorted(disk[1:])[0], "bound compose, in this process (ms)": sorted(again)[100],
    }  # fmt: skip


def c_library() -> ctypes.CDLL:
    folder = tempfile.mkdtemp(prefix="fkl-bench-")
    source, path = ROOT / "benchmarks" / "c_loop.c", f"{folder}/loop.so"
    subprocess.run([shutil.which("cc") or "gcc", "-O2", "-shared", "-fPIC", "-w", str(source), "-o", path, "-ldl"], check=True)
    lib = ctypes.CDLL(path)
    lib.load.restype = lib.graph.restype = ctypes.c_void_p
    lib.load.argtypes = [ctypes.c_char_p]
    lib.graph.argtypes = [ctypes.c_void_p] * 3
    lib.loop_kernel.restype = lib.loop_graph.restype = ctypes.c_double
    lib.loop_kernel.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int]
    lib.loop_graph.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return lib


def launch_times(torch) -> dict[str, float]:
    """Nanoseconds a call."""
    from fkl.binding import fill
    from fkl.compiler.gpu import binary
    from fkl.gpu import GpuChain
    from fkl.plan import check_chain
    from fkl.runtime.context import compute_capability
    from fkl.runtime.driver import driver_version

    x, o, z = (torch.rand(64, device="cuda") for _ in range(3))
    ops = fkl.TensorRead(x), fkl.Mul(2.0), fkl.TensorWrite(o)
    k = fkl.compose(*ops)
    unbound = fkl.compose(fkl.TensorRead(), fkl.Mul(2.0), fkl.TensorWrite())
    unbound(x, out=o)
    own = fkl.compose(fkl.TensorRead(fkl.asarray(x.cpu().numpy())), fkl.Mul(2.0), fkl.TensorWrite(fkl.empty((64,))))
    # The same function, parameters and grid for the loops in C.
    chain = GpuChain(check_chain(ops), False, None)
    _, request = chain.bind()
    block = fill(request.variant.plan, request.extents, request.sources, request.dests)
    image = binary(request.variant.source, compute_capability(0), fast_math=False, driver_major=driver_version() // 1000)
    lib = c_library()
    function = lib.load(image)
    data = ctypes.create_string_buffer(bytes(block.data), len(block.data))
    grid = (ctypes.c_uint * 5)(*block.grid[:5])
    graph = lib.graph(function, data, grid)
    side = torch.cuda.Stream()
    handle = side.cuda_stream

    def loop(f):
        def run():
            best = []
            for _ in range(20):
                begin = time.perf_counter_ns()
                for _ in range(BATCH):
                    f()
                best.append((time.perf_counter_ns() - begin) / BATCH)
                torch.cuda.synchronize()
            return sorted(best)[10]

        return run

    def c_loop(f):
        def run():
            best = []
            for _ in range(20):
                best.append(f())
                torch.cuda.synchronize()
            return sorted(best)[10]

        return run

    empty = loop(lambda: None)
    pairs = [(torch.rand(64, device="cuda"), torch.rand(64, device="cuda")) for _ in range(8)]
    state = [0]

    def rotating():
        state[0] = (state[0] + 1) & 7
        a, b = pairs[state[0]]
        unbound(a, out=b)

    contenders = {
        "C cuLaunchKernel": c_loop(lambda: lib.loop_kernel(function, data, grid, handle, BATCH)),
        "C cuGraphLaunch": c_loop(lambda: lib.loop_graph(graph, handle, BATCH)),
        "empty Python loop": empty,
        "k()": loop(k),
        "k(stream=s), torch stream": loop(lambda: k(stream=side)),
        "k(stream=handle)": loop(lambda: k(stream=handle)),
        "k(), DeviceBuffer": loop(own),
        "k(x, out=y), torch, new pointers": loop(rotating),
        "k(x), torch output allocated": loop(lambda: unbound(x)),
        "torch x.mul(2)": loop(lambda: x.mul(2)),
        "torch mul(x, 2, out=y)": loop(lambda: torch.mul(x, 2, out=z)),
    }
    for run in contenders.values():
        run()
    return interleaved(contenders, rounds=5)


def main() -> None:
    args = arguments(__doc__)
    results: dict[str, float] = {"import fkl (ms)": import_time()}
    if not available():
        print("no GPU: only the import is measured")
        table([(name, f"{value:.2f}") for name, value in results.items()])
        return
    import torch

    x = torch.randint(0, 256, (1080, 1920, 3), dtype=torch.uint8, device="cuda")
    out = torch.empty((3, 1080, 1920), device="cuda")
    results |= compose_times(x, out)
    launches = launch_times(torch)
    floor = launches["C cuLaunchKernel"]
    rows = [("what", "value", "x C cuLaunchKernel")]
    rows += [(name, f"{value:.2f} ms", "") for name, value in results.items()]
    rows += [(name, f"{value:.0f} ns", f"{value / floor:.2f}") for name, value in launches.items()]
    table(rows)
    ratios = {name: round(value / floor, 3) for name, value in launches.items()}
    save(args.out, "launch", {"milliseconds": results, "nanoseconds a call": launches, "ratio to C cuLaunchKernel": ratios})


if __name__ == "__main__":
    main()
