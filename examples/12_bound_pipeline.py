"""A bound pipeline: compiled and wired to its buffers once, then `k()` for every frame.

    python examples/12_bound_pipeline.py

The loop of a camera or a decoder: a frame arrives in the same memory again and again (here a raw pointer is wrapped, as
a C library would hand it out), and a network reads its input from a fixed buffer. Needs a CUDA GPU; says so without one.
"""

import sys
import time

import numpy as np

import fkl
from fkl.runtime.context import available

if not available():
    print("This example binds device buffers and needs a CUDA GPU. `python -m fkl info` says what is missing here;")
    print('without a GPU, fkl.compose(..., target="cpu") runs unbound chains on NumPy arrays (examples/01).')
    sys.exit(0)

HEIGHT, WIDTH, FRAMES = 1080, 1920, 500

# The surface of a decoder: memory that somebody else owns, rows padded to 6144 bytes.
surface = fkl.empty((HEIGHT, 6144), "uint8")
frame = fkl.DeviceBuffer.from_ptr(surface.ptr, (HEIGHT, WIDTH, 3), "uint8", pitch=6144, owner=surface)
network_input = fkl.empty((3, HEIGHT, WIDTH), "float32")

begin = time.perf_counter()
k = fkl.compose(
    fkl.TensorRead(frame),
    fkl.Cast("float32"),
    fkl.Div(255.0),
    fkl.Sub((0.485, 0.456, 0.406)),
    fkl.Div((0.229, 0.224, 0.225)),
    fkl.TensorSplit(network_input),
)
print(f"compose: {(time.perf_counter() - begin) * 1e3:.1f} ms (compiled once; later from the cache)")

rng = np.random.default_rng(0)
for _ in range(3):
    pixels = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    frame.copy_from_host(pixels)  # "the decoder writes the next frame"
    assert k() is network_input
    expected = pixels.astype(np.float32) / np.float32(255)
    expected = (expected - np.array((0.485, 0.456, 0.406), np.float32)) / np.array((0.229, 0.224, 0.225), np.float32)
    assert np.array_equal(network_input.to_numpy(), expected.transpose(2, 0, 1))
print("three frames equal NumPy bit for bit")

stream = fkl.Stream()
k(stream=stream)
stream.synchronize()
begin = time.perf_counter()
start = stream.record(timing=True)
for _ in range(FRAMES):
    k(stream=stream)
queued = time.perf_counter() - begin
end = stream.record(timing=True)
end.synchronize()
host, gpu = queued / FRAMES * 1e6, end.elapsed(start) / FRAMES * 1e3
print(f"{FRAMES} frames: {host:.2f} us a call for the host, {gpu:.1f} us for the GPU")
