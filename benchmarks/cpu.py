"""The CPU target beside NumPy, operation by operation, and OpenCV's own calls: W1b and W2a.

    python benchmarks/cpu.py

Needs no GPU. NumPy works in place where it can; OpenCV does what its users write: arithmetic with scalars, split. Every result is compared with a float64 reference first; medians of interleaved rounds.
"""

from __future__ import annotations

import os
import time

import numpy as np
from common import arguments, interleaved, save, table

import fkl

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def timer(call):
    """Milliseconds a call."""

    def run():
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            call()
            times.append((time.perf_counter() - begin) * 1e3)
        return min(times)

    return run


def w1b():
    rng = np.random.default_rng(0)
    x, out = rng.uniform(-5, 5, (8192, 8192)).astype(np.float32), np.full((8192, 8192), 77, np.float32)
    k = fkl.compose(fkl.TensorRead(), fkl.Mul(2.0), fkl.Add(1.0), fkl.Mul(3.0), fkl.Sub(4.0), fkl.Div(5.0), fkl.Max(0.0), fkl.TensorWrite(), target="cpu")
    f, work = np.float32, np.empty_like(x)

    def numpy():
        np.multiply(x, f(2), out=work)
        np.add(work, f(1), out=work)
        np.multiply(work, f(3), out=work)
        np.subtract(work, f(4), out=work)
        np.divide(work, f(5), out=work)
        return np.maximum(work, f(0), out=work)

    k(x, out=out)
    reference = np.maximum(((x[::64].astype(np.float64) * 2 + 1) * 3 - 4) / 5, 0)
    assert np.abs(out[::64] - reference).max() < 1e-5 and np.array_equal(numpy(), out)
    return {"fkl": timer(lambda: k(x, out=out)), "NumPy": timer(numpy)}


def w2a():
    rng = np.random.default_rng(0)
    x, out = rng.integers(0, 256, (1080, 1920, 3), dtype=np.uint8), np.full((3, 1080, 1920), 77, np.float32)
    chain = fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub(MEAN), fkl.Div(STD)
    k = fkl.compose(fkl.TensorRead(), *chain, fkl.TensorSplit(), target="cpu")
    mean, std = np.asarray(MEAN, np.float32), np.asarray(STD, np.float32)

    def numpy():
        work = x.astype(np.float32)
        work /= np.float32(255)
        work -= mean
        work /= std
        return np.ascontiguousarray(work.transpose(2, 0, 1))

    k(x, out=out)
    reference = np.moveaxis((x.astype(np.float64) / 255 - MEAN) / STD, -1, 0)
    assert np.abs(out - reference).max() < 1e-5 and np.array_equal(numpy(), out)
    found = {"fkl": timer(lambda: k(x, out=out)), "NumPy": timer(numpy)}
    try:
        import cv2
    except ImportError:
        return found
    planes = [np.empty((1080, 1920), np.float32) for _ in range(3)]

    def opencv():
        work = cv2.multiply(x, (1 / 255.0,) * 4, dtype=cv2.CV_32F)
        cv2.subtract(work, (*MEAN, 0.0), dst=work)
        cv2.divide(work, (*STD, 1.0), dst=work)
        return cv2.split(work, planes)

    assert np.abs(np.stack(opencv()) - reference).max() < 1e-5
    found["OpenCV"] = timer(opencv)
    return found


def main() -> None:
    args = arguments(__doc__)
    results = {name: interleaved(make()) for name, make in (("W1b float32 8192x8192", w1b), ("W2a uint8x3 1080p -> CHW", w2a))}
    rows = [("workload", "fkl ms", "peer", "ms", "peer / fkl")]
    for name, times in results.items():
        for peer, value in times.items():
            if peer != "fkl":
                rows.append((name, f"{times['fkl']:.2f}", peer, f"{value:.2f}", f"{value / times['fkl']:.1f}"))
    table(rows)
    save(args.out, "cpu", {"threads": len(os.sched_getaffinity(0)), "milliseconds": results})


if __name__ == "__main__":
    main()
