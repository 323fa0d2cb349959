"""Vertical fusion: any number of operations on every pixel, one kernel, one pass over memory.

    python examples/01_basic_vertical_fusion.py

Runs on a CUDA GPU; without one it says so and runs the same chain on the CPU target.
"""

import numpy as np

import fkl
from fkl.runtime.context import available

frame = np.random.default_rng(0).integers(0, 256, (1080, 1920, 3), dtype=np.uint8)
operations = [
    fkl.Cast("float32"),
    fkl.Mul(1 / 255),
    fkl.Sub((0.485, 0.456, 0.406)),
    fkl.Div((0.229, 0.224, 0.225)),
]

if available():
    # Unbound: the kernel compiles at its first call and allocates an output each time.
    k = fkl.compose(fkl.TensorRead(), *operations, fkl.TensorWrite())
    result = k(fkl.asarray(frame)).to_numpy()
else:
    print('No CUDA GPU here (python -m fkl info says why); the same chain on the CPU: compose(..., target="cpu")')
    k = fkl.compose(fkl.TensorRead(), *operations, fkl.TensorWrite(), target="cpu")
    result = k(frame)

# The same four operations in NumPy, each a pass over memory of its own.
expected = frame.astype(np.float32) * np.float32(1 / 255)
expected = (expected - np.array((0.485, 0.456, 0.406), np.float32)) / np.array((0.229, 0.224, 0.225), np.float32)

print(k)
print("equal to NumPy bit for bit:", np.array_equal(result, expected))
assert np.array_equal(result, expected)
