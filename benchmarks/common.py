"""What the benchmarks share: rounds, medians, the machine, and where results go."""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[1]


def arguments(description: str, more=None) -> argparse.Namespace:
    """The command line; ``more(parser)`` adds arguments of its own."""
    parser = argparse.ArgumentParser(description=description)
    if more:
        more(parser)
    parser.add_argument("--out", default=str(ROOT / "benchmarks" / "results"), help="folder for the JSON file")
    return parser.parse_args()


def machine() -> dict[str, object]:
    """Device, driver, versions and the commit that was measured."""
    from fkl.runtime.context import available, device_name
    from fkl.runtime.driver import driver_version

    packages = {}
    for name in ("numpy", "torch", "cupy-cuda13x", "cupy-cuda12x", "cuda-core", "triton", "opencv-python-headless"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            continue
    gpu = available()
    with open("/proc/cpuinfo") as file:
        cpu = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    return {
        "commit": commit(), "gpu": device_name(0) if gpu else None, "cuda_driver": driver_version() if gpu else None,
        "cpu": cpu, "cpus": len(os.sched_getaffinity(0)), "python": platform.python_version(), "packages": packages,
    }  # fmt: skip


def commit() -> str:
    named = os.environ.get("FKL_COMMIT")
    if named:
        return named
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def interleaved(contenders: dict[str, object], rounds: int = 7) -> dict[str, float]:
    """Median over rounds in which every contender (a function that returns its time) has one turn."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            times[name].append(run())  # type: ignore[operator]
    return {name: statistics.median(values) for name, values in times.items()}


def save(folder: str, name: str, results: dict[str, object]) -> None:
    """Write one JSON file that says what was measured where, and by which command."""
    os.makedirs(folder, exist_ok=True)
    path = Path(folder) / f"{name}.json"
    data = {"command": f"python benchmarks/{Path(sys.argv[0]).name}", "machine": machine(), **results}
    path.write_text(json.dumps(data, indent=1) + "\n")
    print(f"wrote {path}")


@functools.cache
def c_library() -> ctypes.CDLL:
    """The loops in C, compiled by the host's compiler."""
    folder = tempfile.mkdtemp(prefix="fkl-bench-")
    source, path = ROOT / "benchmarks" / "c_loop.c", f"{folder}/loop.so"
    subprocess.run([shutil.which("cc") or "gcc", "-O2", "-shared", "-fPIC", "-w", str(source), "-o", path, "-ldl"], check=True)
    lib = ctypes.CDLL(path)
    lib.load.restype = lib.graph.restype = lib.graph_of.restype = ctypes.c_void_p
    lib.load.argtypes = [ctypes.c_char_p]
    lib.graph.argtypes = [ctypes.c_void_p] * 3
    lib.graph_of.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int]
    lib.attribute.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lib.loop_kernel.restype = lib.loop_graph.restype = ctypes.c_double
    lib.loop_kernel.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int]
    lib.loop_graph.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    lib.latencies.argtypes = [ctypes.c_int] + [ctypes.c_void_p] * 6 + [ctypes.c_int]
    return lib


def text_of(ops, fast_math: bool = False) -> tuple[bytes, bytes, list[int]]:
    """The binary of a bound chain, its parameter block, and its grid (blocks in x, y, z, threads in x, y)."""
    from fkl.binding import fill
    from fkl.compiler.gpu import binary
    from fkl.gpu import GpuChain
    from fkl.plan import check_chain
    from fkl.runtime.context import compute_capability
    from fkl.runtime.driver import driver_version

    _, request = GpuChain(check_chain(ops), fast_math, None).bind()
    block = fill(request.variant.plan, request.result, request.values, request.sources, request.dests, request.operands)
    image = binary(request.variant.source, compute_capability(0), fast_math=fast_math, driver_major=driver_version() // 1000)
    return image, bytes(block.data), list(block.grid[:5])


def resources(ops, fast_math: bool = False) -> dict[str, int]:
    """Registers, and bytes of local memory (spills), of a thread of a bound chain's kernel, as the driver reports them."""
    lib = c_library()
    function = lib.load(text_of(ops, fast_math)[0])
    return {"registers": lib.attribute(function, 4), "local bytes": lib.attribute(function, 3)}


def table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)))
