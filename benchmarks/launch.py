"""What a call costs the host, beside bare driver calls from C and other libraries, in one run.

    python benchmarks/launch.py

64 floats, one block. Batches of 100 calls with a synchronise after each, medians of interleaved rounds, everything on one
side stream that is torch's and cupy's current one. Waits are measured call by call, median and 99th percentile. Needs a
GPU and torch; takes cupy, triton, jax and cuda.core along where they are installed, and FKL's C++ where FKL_CPP names its
include folder and nvcc is there.
"""

from __future__ import annotations

import ctypes
import sys
import time

import peers_launch
from common import arguments, c_library, interleaved, save, table, text_of

import fkl
from fkl.runtime.context import available

BATCH = 100

#: Row -> (row it is compared with, the most it may cost of that).
LIMITS = {
    "k()": [("C cuLaunchKernel", 0.55), ("C cuGraphLaunch", 1.10)],
    "k(stream=s)": [("C cuLaunchKernel", 0.55), ("C cuGraphLaunch", 1.10)],
    "k(), cupy": [("C cuLaunchKernel", 0.55), ("C cuGraphLaunch", 1.10)],
    "k(), DeviceBuffer": [("C cuLaunchKernel", 0.55), ("C cuGraphLaunch", 1.10)],
    "k(x, out=y)": [("C cuLaunchKernel", 0.80)],
    "k(x, out=y), cupy": [("C cuLaunchKernel", 1.3)],
    "k(x, out=y), DeviceBuffer": [("C cuLaunchKernel", 1.3)],
    "k(x)": [("torch x.mul(2)", 1.0)],
    "k.update(op, v); k()": [("C cuLaunchKernel", 0.80)],
    "k(stream=s); s.synchronize()": [("C graph + synchronise", 1.05)],
    "k.run(s)": [("C kernel + synchronise", 0.70)],
    "k.run(s), p99": [("C kernel + synchronise, p99", 0.70)],
}


class Floor:
    """The same kernel, launched by loops in C."""

    def __init__(self, ops) -> None:
        self.lib = c_library()
        image, data, grid = text_of(ops)
        self.function = self.lib.load(image)
        self.data = ctypes.create_string_buffer(data, len(data))
        self.grid = (ctypes.c_uint * 5)(*grid)
        self.graph = self.lib.graph(self.function, self.data, self.grid)

    def graph_of(self, count: int):
        functions = (ctypes.c_void_p * count)(*[self.function] * count)
        blocks = (ctypes.c_void_p * count)(*[ctypes.addressof(self.data)] * count)
        grids = (ctypes.c_uint * (5 * count))(*list(self.grid) * count)
        return self.lib.graph_of(functions, blocks, grids, count)

    def latencies(self, how: int, stream: int, count: int = 4000) -> list[float]:
        out = (ctypes.c_double * count)()
        status = self.lib.latencies(how, self.function, self.data, self.grid, self.graph, stream, out, count)
        assert status == 0, f"the C loop failed at {status}"
        return sorted(out)


def loop(torch, call, inner: int = 1):
    """Nanoseconds a call, of batches with a synchronise after each. The call may stand for several."""

    def run():
        times = []
        for _ in range(20):
            begin = time.perf_counter_ns()
            for _ in range(BATCH // inner):
                call()
            times.append((time.perf_counter_ns() - begin) / (BATCH // inner * inner))
            torch.cuda.synchronize()
        return sorted(times)[10]

    return run


def c_loop(torch, call):
    def run():
        times = []
        for _ in range(20):
            times.append(call())
            torch.cuda.synchronize()
        return sorted(times)[10]

    return run


def many(text, **names):
    """A function of ten calls written out, so that nothing but the calls is timed; ``{i}`` is the number of the call."""
    exec("def run():\n" + "".join(f"    {text.replace('{i}', str(i))}\n" for i in range(10)), names)
    return names["run"]


def pairs_of(call, pairs):
    """A function that calls with pair after pair, written out so that nothing but the calls is timed."""
    names = {"call": call, "pairs": pairs}
    text = "def run():\n" + "".join(f"    call(a{i}, out=b{i})\n" for i in range(len(pairs)))
    head = "".join(f"a{i}, b{i} = pairs[{i}]\n" for i in range(len(pairs)))
    exec(head + text, names)
    return names["run"]


def launches(torch, floor: Floor, side) -> dict[str, float]:
    """Nanoseconds a call."""
    x, o, z = (torch.rand(64, device="cuda") for _ in range(3))
    handle, mul = side.cuda_stream, fkl.Mul(2.0)
    k = fkl.compose(fkl.TensorRead(x), mul, fkl.TensorWrite(o))
    chain = [fkl.compose(fkl.TensorRead(x), fkl.Mul(2.0), fkl.TensorWrite(o)) for _ in range(3)]
    three = fkl.sequence(*chain)
    unbound = fkl.compose(fkl.TensorRead(), fkl.Mul(2.0), fkl.TensorWrite())
    unbound(x, out=o)

    def buffers():
        t = torch.rand(64, device="cuda")
        return fkl.DeviceBuffer.from_ptr(t.data_ptr(), (64,), "float32", stream=handle, owner=t)

    own = fkl.compose(fkl.TensorRead(buffers()), fkl.Mul(2.0), fkl.TensorWrite(buffers()))
    tensors = [(torch.rand(64, device="cuda"), torch.rand(64, device="cuda")) for _ in range(10)]
    owned = [(buffers(), buffers()) for _ in range(10)]
    lib, c3 = floor.lib, floor.graph_of(3)

    def singly():
        for one in chain:
            one()

    contenders = {
        "C cuLaunchKernel": c_loop(torch, lambda: lib.loop_kernel(floor.function, floor.data, floor.grid, handle, BATCH)),
        "C cuGraphLaunch": c_loop(torch, lambda: lib.loop_graph(floor.graph, handle, BATCH)),
        "C cuGraphLaunch, three nodes": c_loop(torch, lambda: lib.loop_graph(c3, handle, BATCH)),
        "empty Python loop": loop(torch, lambda: None),
        "k()": loop(torch, many("k()", k=k), 10),
        "k(stream=s)": loop(torch, many("k(stream=s)", k=k, s=side), 10),
        "k(stream=handle)": loop(torch, many("k(stream=s)", k=k, s=handle), 10),
        "k(), DeviceBuffer": loop(torch, many("k()", k=own), 10),
        "k(x, out=y)": loop(torch, pairs_of(unbound, tensors), 10),
        "k(x, out=y), DeviceBuffer": loop(torch, pairs_of(unbound, owned), 10),
        "k(x)": loop(torch, many("k(x)", k=unbound, x=x), 10),
        "k(x), DeviceBuffer": loop(torch, many("k(x)", k=unbound, x=owned[0][0]), 10),
        "k.update(op, v); k()": loop(torch, many("k.update(op, {i}.5); k()", k=k, op=mul), 10),
        "three k()": loop(torch, singly),
        "fkl.sequence of three": loop(torch, three),
        "torch x.mul(2)": loop(torch, many("x.mul(2)", x=x), 10),
        "torch mul(x, 2, out=y)": loop(torch, many("mul(x, 2, out=z)", mul=torch.mul, x=x, z=z), 10),
        "torch add(x, 1, out=y)": loop(torch, many("add(x, 1, out=z)", add=torch.add, x=x, z=z), 10),
    }
    for name, (call, inner) in peers_launch.contenders(torch, x, z, side, pairs_of).items():
        contenders[name] = loop(torch, call, inner)
    for run in contenders.values():
        run()
    return interleaved(contenders, rounds=7)


def waits(torch, floor: Floor) -> dict[str, float]:
    """Nanoseconds from before the launch until the result is there, median and 99th percentile."""
    s = fkl.Stream()
    x, o = torch.rand(64, device="cuda"), torch.rand(64, device="cuda")
    k = fkl.compose(fkl.TensorRead(x), fkl.Mul(2.0), fkl.TensorWrite(o))
    torch.cuda.synchronize()

    def python(call):
        def run():
            clock, times = time.perf_counter_ns, []
            for _ in range(4000):
                begin = clock()
                call()
                times.append(clock() - begin)
            return sorted(times)

        return run

    def wait():
        k(stream=s)
        s.synchronize()

    def torch_wait():
        torch.mul(x, 2, out=o)
        torch.cuda.current_stream().synchronize()

    contenders = {
        "C kernel + synchronise": lambda: floor.latencies(0, s.handle),
        "C graph + synchronise": lambda: floor.latencies(1, s.handle),
        "C graph + flag": lambda: floor.latencies(2, s.handle),
        "k(stream=s); s.synchronize()": python(wait),
        "k.run(s)": python(lambda: k.run(s)),
        "torch mul, synchronize": python(torch_wait),
    }
    median, tail = {}, {}
    for run in contenders.values():
        run()
    found: dict[str, list[list[float]]] = {name: [] for name in contenders}
    for _ in range(5):
        for name, run in contenders.items():
            found[name].append(run())
    for name, rounds in found.items():
        median[name] = sorted(r[len(r) // 2] for r in rounds)[2]
        tail[name + ", p99"] = sorted(r[len(r) * 99 // 100] for r in rounds)[2]
    return {**median, **tail}


def ratios(values: dict[str, float]) -> dict[str, dict[str, object]]:
    """Every limit with what was found."""
    found = {}
    for name, limits in LIMITS.items():
        for other, most in limits:
            if name in values and other in values:
                ratio = values[name] / values[other]
                found[f"{name} / {other}"] = {"ratio": round(ratio, 3), "at most": most, "holds": ratio <= most}
    return found


def main() -> None:
    args = arguments(__doc__)
    if not available():
        sys.exit("this benchmark needs a CUDA GPU")
    import torch

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x, o = torch.rand(64, device="cuda"), torch.rand(64, device="cuda")
        floor = Floor((fkl.TensorRead(x), fkl.Mul(2.0), fkl.TensorWrite(o)))
        values = launches(torch, floor, side)
    values |= waits(torch, floor)
    base = values["C cuLaunchKernel"]
    table([("what", "ns", "x C cuLaunchKernel"), *((name, f"{v:.0f}", f"{v / base:.2f}") for name, v in values.items())])
    limits = ratios(values)
    table([("ratio", "found", "at most", ""), *((n, f"{r['ratio']:.2f}", f"{r['at most']:.2f}", "" if r["holds"] else "MISSED") for n, r in limits.items())])
    save(args.out, "launch", {"nanoseconds a call": values, "ratios": limits})


if __name__ == "__main__":
    main()
