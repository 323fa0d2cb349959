"""Mixed calls from eight threads for some minutes: results stay right, memory stays flat.

    python tests/gpu/soak.py [seconds] [--no-captures]

Bound and unbound calls, overrides, updates, sequences, waits and outputs of calls in seven threads; an eighth captures
graphs, replays them and drops them. Every result is checked. Memory of the device and of the process is looked at after a
tenth of the time and at the end.
"""

import gc
import resource
import sys
import threading
import time

import torch

import fkl


def resident() -> int:
    """Bytes of memory the process holds now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Worker:
    """What one thread has: a stream, arrays, kernels."""

    def __init__(self, number: int) -> None:
        self.number, self.calls = number, 0
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            self.x = torch.full((64, 48), float(number + 1), device="cuda")
            self.out, self.other, self.mid = (torch.zeros_like(self.x) for _ in range(3))
        self.mul, self.add = fkl.Mul(2.0), fkl.Add(1.0)
        self.bound = fkl.compose(fkl.TensorRead(self.x), self.mul, fkl.TensorWrite(self.mid))
        self.second = fkl.compose(fkl.TensorRead(self.mid), self.add, fkl.TensorWrite(self.out))
        self.both = fkl.sequence(self.bound, self.second)
        self.unbound = fkl.compose(fkl.TensorRead(), fkl.Mul(3.0), fkl.TensorWrite())
        self.buffer = fkl.asarray(self.x.cpu().numpy())

    def check(self, got, want: float) -> None:
        self.stream.synchronize()
        if not bool((got == want).all()):
            raise AssertionError(f"thread {self.number}: {got.flatten()[0].item()} instead of {want}")

    def turn(self, i: int) -> None:
        v, s = float(self.number + 1), self.stream
        with torch.cuda.stream(s):
            factor, shift = float(i % 50), float(i % 7)
            self.bound.update(self.mul, factor)
            self.second.update(self.add, shift)
            if i % 3 == 0:
                self.both()
            elif i % 3 == 1:
                self.both.run(s)
            else:
                self.bound()
                self.second.run()
            self.check(self.out, v * factor + shift)
            self.bound(out=self.other)
            self.check(self.other, v * factor)
            self.unbound(self.x, out=self.other, stream=s)
            self.check(self.other, v * 3)
            self.check(self.unbound(self.x), v * 3)
            made = self.unbound(self.buffer, stream=s)
            self.check(torch.from_dlpack(made), v * 3)
            if i % 40 == 0:
                fresh = fkl.compose(fkl.TensorRead(self.x), fkl.Sub(shift), fkl.TensorWrite(self.other))
                fresh(stream=s)
                self.check(self.other, v - shift)
        self.calls += 9

    def capture(self, i: int) -> None:
        v = float(self.number + 1)
        factor = float(i % 30)
        self.bound.update(self.mul, factor)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self.both()
        self.bound.update(self.mul, 0.0)
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self.out.zero_()
                graph.replay()
                self.check(self.out, v * factor + 1.0)
        self.calls += 4


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 300.0
    captures = "--no-captures" not in sys.argv
    workers, failures = [Worker(i) for i in range(8)], []
    torch.cuda.synchronize()
    end = time.monotonic() + seconds

    def work(worker: Worker) -> None:
        i = 0
        try:
            while time.monotonic() < end and not failures:
                worker.capture(i) if worker.number == 7 and captures else worker.turn(i)
                i += 1
        except Exception as error:  # noqa: BLE001 - shown at the end
            failures.append(error)

    def look():
        gc.collect()
        info = fkl.memory_info()
        return {"device MB used": (info.total - info.free) >> 20, "resident MB": resident() >> 20, "pool MB": info.pool_reserved >> 20,
                "graphs": info.graphs, "modules": info.modules}  # fmt: skip

    threads = [threading.Thread(target=work, args=(w,)) for w in workers]
    [t.start() for t in threads]
    time.sleep(seconds / 10)
    early = look()
    [t.join() for t in threads]
    late = look()
    made = f", {workers[7].calls // 4} captures" if captures else ""
    print(f"{sum(w.calls for w in workers)} calls in {seconds:.0f} s from {len(workers)} threads{made}")
    for name, value in early.items():
        print(f"  {name}: {value} after a tenth, {late[name]} at the end")
    if failures:
        raise failures[0]
    grown = late["device MB used"] - early["device MB used"], late["resident MB"] - early["resident MB"]
    assert grown[0] <= 64 and grown[1] <= 64, f"memory grew by {grown[0]} MB on the device and {grown[1]} MB in the process"
    print("every result right, memory flat")


if __name__ == "__main__":
    main()
