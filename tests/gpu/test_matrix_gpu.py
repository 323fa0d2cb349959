"""Every operation x type x channel count on the GPU: by the oracle, and equal to the CPU target bit for bit.

Many cases share one compile: NVRTC takes some 50 ms a kernel, so this is also a stress of compiles in threads.
"""

import os
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracle
import pytest
from matrix import every, input_of, verdict

import fkl


def sampled(cases, step: int) -> list:
    """Of every operation every so many cases, its first in any case."""
    seen = defaultdict(int)
    kept = []
    for case in cases:
        if seen[case.name] % step == 0:
            kept.append(case)
        seen[case.name] += 1
    return kept


CASES = sampled(every(), int(os.environ.get("FKL_EVERY", "1")))


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Compile everything beforehand, in threads."""

    def one(case):
        k = fkl.compose(fkl.TensorRead(channels=case.channels), *case.ops, fkl.TensorWrite())
        k.compile((case.base, case.channels), (5, 37, case.channels) if case.channels > 1 else (5, 37))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(one, CASES))


def run_gpu(case, x: np.ndarray, height=5, width=37) -> np.ndarray:
    shape = (height, width, case.channels) if case.channels > 1 else (height, width)
    source = fkl.DeviceBuffer(width, height, case.base, case.channels)
    source.copy_from_host(oracle.encode(x, case.base).tobytes())
    k = fkl.compose(fkl.TensorRead(source, channels=case.channels), *case.ops, fkl.TensorWrite())
    y = k()
    assert source.shape == shape and str(y.dtype) == case.out
    raw = np.frombuffer(y.copy_to_host(), np.uint16 if case.out == "bfloat16" else case.out)
    return oracle.decode(raw.reshape(height, width, -1), case.out)


def run_cpu(case, x: np.ndarray) -> np.ndarray | None:
    if "bfloat16" in (case.base, case.out):
        ml_dtypes = pytest.importorskip("ml_dtypes")
    raw = oracle.encode(x, case.base)
    if case.base == "bfloat16":
        raw = raw.view(ml_dtypes.bfloat16)
    k = fkl.compose(fkl.TensorRead(channels=case.channels), *case.ops, fkl.TensorWrite(), target="cpu")
    y = k(raw)
    if case.out == "bfloat16":
        y = y.view(np.uint16)
    y = oracle.decode(y, case.out)
    return y if y.ndim == 3 else y[..., None]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_operation_against_the_oracle(case):
    x = input_of(case)
    assert verdict(case, run_gpu(case, x), x) == ""


@pytest.mark.parametrize("case", [c for c in CASES if not c.ulps][::7], ids=lambda c: c.id)
def test_gpu_equals_cpu_bit_for_bit(case):
    x = input_of(case, 6, 53)
    assert oracle.difference(run_gpu(case, x, 6, 53), run_cpu(case, x), zeros_equal=case.zeros_equal) == ""
