"""What fusing gives: the same preprocessing as one kernel, and operation by operation.

    python examples/09_performance.py

On a GPU against torch, if it is installed; on the CPU target against NumPy, and OpenCV if it is installed. One run on one
machine; `benchmarks/` measures properly.
"""

import time

import numpy as np
from places import TARGET

import fkl

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
frame = np.random.default_rng(0).integers(0, 256, (1080, 1920, 3), dtype=np.uint8)
ops = [fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub(MEAN), fkl.Div(STD)]


def milliseconds(call, wait=lambda: None, count=20) -> float:
    """The best of five rounds, a call."""
    call()
    rounds = []
    for _ in range(5):
        wait()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        rounds.append((time.perf_counter() - begin) / count * 1e3)
    return min(rounds)


def on_the_gpu() -> dict[str, float]:
    x, out = fkl.asarray(frame), fkl.empty((3, 1080, 1920), "float32")
    k = fkl.compose(fkl.TensorRead(x), *ops, fkl.TensorSplit(out))
    stream = fkl.Stream()
    times = {"one kernel": milliseconds(lambda: k(stream=stream), stream.synchronize, 400)}
    try:
        import torch
    except ImportError:
        print("torch is not installed: nothing to compare with")
        return times
    t = torch.from_numpy(frame).cuda()
    mean, std = (torch.tensor(v, device="cuda").view(3, 1, 1) for v in (MEAN, STD))

    def eager():
        return (t.permute(2, 0, 1).float() / 255 - mean) / std

    times["torch, operation by operation"] = milliseconds(eager, torch.cuda.synchronize, 400)
    assert np.abs(out.to_numpy() - eager().cpu().numpy()).max() < 1e-5
    return times


def on_the_cpu() -> dict[str, float]:
    k = fkl.compose(fkl.TensorRead(), *ops, fkl.TensorSplit(), target="cpu")
    out = np.empty((3, 1080, 1920), np.float32)
    mean, std = np.float32(MEAN), np.float32(STD)

    def numpy():
        return np.ascontiguousarray(((frame.astype(np.float32) / np.float32(255) - mean) / std).transpose(2, 0, 1))

    times = {"one pass": milliseconds(lambda: k(frame, out=out), count=3)}
    times["NumPy, operation by operation"] = milliseconds(numpy, count=1)
    assert np.array_equal(out, numpy())
    try:
        import cv2
    except ImportError:
        return times

    def opencv():
        scaled = cv2.divide(frame.astype(np.float32), (255.0, 255.0, 255.0, 0.0))
        return cv2.split(cv2.divide(cv2.subtract(scaled, (*MEAN, 0.0)), (*STD, 0.0)))

    times["OpenCV, call by call"] = milliseconds(opencv, count=1)
    assert np.abs(out - np.stack(opencv())).max() < 1e-5
    return times


times = on_the_gpu() if TARGET == "gpu" else on_the_cpu()
first = next(iter(times.values()))
for name, value in times.items():
    print(f"{name:32} {value:8.3f} ms  {value / first:5.1f} x  {'#' * min(60, round(value / first * 4))}")
