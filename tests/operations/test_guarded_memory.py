"""Chains with geometry touch nothing but their arrays: these end, or begin, at a page that no one may touch."""

import ctypes
import mmap
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fkl

PAGE = mmap.PAGESIZE


def guarded(shape, dtype, rng, *, at_end: bool) -> np.ndarray:
    """A tight array of small numbers between two protected pages, at the end of the memory between them or at its start."""
    count = int(np.prod(shape))
    pages = -(-count * np.dtype(dtype).itemsize // PAGE)
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    for page in (0, pages + 1):
        assert protect(ctypes.c_void_p(start + page * PAGE), ctypes.c_size_t(PAGE), 0) == 0
    offset = PAGE + (pages * PAGE - count * np.dtype(dtype).itemsize if at_end else 0)
    array = np.frombuffer(memory, dtype, count, offset).reshape(shape)
    array[...] = rng.integers(0, 100, shape)
    return array


class Maker:
    """A random chain with geometry, of one seed, over guarded arrays."""

    def __init__(self, seed: int) -> None:
        self.r, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.width, self.height = self.r.choice([1, 2, 3, 5, 7, 16, 33]), self.r.choice([1, 2, 3, 5, 8, 17])
        self.planes, self.channels = self.r.choice([1, 1, 3]), self.r.choice([1, 3, 4])

    def array(self, *shape: int, dtype: str = "uint8") -> np.ndarray:
        return guarded(shape, dtype, self.rng, at_end=self.r.random() < 0.5)

    def frames(self, dtype: str) -> np.ndarray:
        return self.array(self.planes, self.height, self.width, self.channels, dtype=dtype)

    def source(self):
        chroma = self.r.choice(["replicate", "linear"])
        kind = self.r.randrange(7)
        if kind > 2:
            return fkl.TensorRead(channels=self.channels), self.frames(self.r.choice(["uint8", "float32", "uint16"]))
        self.channels, self.planes = 3, 1
        self.width, self.height = 2 * self.width, 2 * self.height
        if kind == 2:
            pair = self.array(self.height, self.width), self.array(self.height // 2, self.width)
            return fkl.ReadYUV(self.r.choice(["nv12", "nv21"]), chroma=chroma), pair
        if kind == 0:
            return fkl.ReadYUV(self.r.choice(["nv12", "nv21", "i420", "yv12"]), chroma=chroma), self.array(self.height * 3 // 2, self.width)
        return fkl.ReadYUV(self.r.choice(["uyvy", "yuyv"]), chroma=chroma), self.array(self.height, 2 * self.width)

    def operations(self) -> list:
        r = self.r
        kind = r.randrange(8)
        if kind == 0:
            return [fkl.BorderReader(r.choice(["replicate", "constant", "reflect", "wrap", "reflect101"]))]
        if kind == 1:
            x, y = r.randint(-40, self.width), r.randint(-40, self.height)
            self.width, self.height = r.randint(1, self.width + 40), r.randint(1, self.height + 40)
            return [fkl.Crop(x, y, self.width, self.height)]
        if kind == 2:
            width, height, count = r.randint(1, self.width), r.randint(1, self.height), 3 if self.planes == 1 else self.planes
            boxes = [(r.randint(0, self.width - width), r.randint(0, self.height - height), width, height) for _ in range(count)]
            self.width, self.height, self.planes = width, height, count
            return [fkl.Crop(boxes)]
        if kind == 3:
            operand = fkl.TensorRead(self.frames("float32"), channels=self.channels)
            return [fkl.Cast("float32"), fkl.Sub(operand)]
        if kind == 4:
            return [fkl.Deinterlace(r.choice(["blend", "linear"]))]
        self.width, self.height = r.randint(1, 40), r.randint(1, 40)
        interp = r.choice(["nearest", "linear", "cubic"])
        if kind == 5:
            m = [[r.uniform(-2, 2) for _ in range(2)] + [r.uniform(-20, 20)] for _ in range(2)]
            return [fkl.Warping([*m, [r.uniform(-0.05, 0.05), r.uniform(-0.05, 0.05), 1]], self.width, self.height, interp)]
        if interp != "nearest" and r.random() < 0.3:
            return [fkl.Resize(self.width, self.height, interp, antialias=True)]
        letterbox = r.choice([("ignore",), ("preserve", 114), ("preserve_left", 114), ("preserve_even", 114)])
        return [fkl.Resize(self.width, self.height, r.choice([interp, "area"]), *letterbox)]

    def run(self) -> str:
        """What it ran over: "list" or "array"; nothing for a chain that was refused."""
        read, x = self.source()
        first = []
        if isinstance(x, np.ndarray) and x.ndim == 4 and self.r.random() < 0.3:
            # A list of images, each in memory of its own; before a Resize they may have any sizes.
            sizes = [(self.height, self.width)] * 3
            if self.r.random() < 0.5:
                sizes = [(self.r.randint(1, 20), self.r.randint(1, 40)) for _ in range(3)]
                first = [fkl.Resize(self.width, self.height, self.r.choice(["nearest", "linear", "cubic"]))]
            x, self.planes = [self.array(h, w, self.channels, dtype=str(x.dtype)) for h, w in sizes], 3
        try:
            ops = first + [op for _ in range(self.r.randint(1, 4)) for op in self.operations()]
            kernel = fkl.compose(read, *ops, self.r.choice([fkl.TensorWrite, fkl.TensorSplit])(), target="cpu")
            made = kernel(x)
        except (TypeError, ValueError):
            return ""
        out = self.array(*made.shape, dtype=str(made.dtype))
        kernel(x, out=out)
        assert np.array_equal(out, made, equal_nan=True)
        return "list" if isinstance(x, list) else "array"


def child(code: str) -> subprocess.CompletedProcess:
    """Run code behind an import of this file; a touched page ends the process."""
    text = f"from test_guarded_memory import *; {code}"
    return subprocess.run([sys.executable, "-c", text], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("at_end", [False, True])
def test_the_guard_guards(at_end):
    look = f"a = guarded((5, 7), 'uint8', np.random.default_rng(0), at_end={at_end}); print(int(a.sum()), flush=True); "
    look += f"ctypes.string_at(a.ctypes.data {'+ 35' if at_end else '- 1'}, 1); print('not guarded')"
    done = child(look)
    assert done.returncode < 0 and done.stdout.strip().isdecimal(), done.stdout + done.stderr


@pytest.mark.parametrize("first", [0, 40])
def test_chains_stay_within_their_arrays(first):
    done = child(f"print(*[Maker(seed).run() for seed in range({first}, {first} + 40) if print(seed, file=sys.stderr) is None])")
    assert done.returncode == 0, f"seed {done.stderr.split()[-1] if done.stderr else '?'}: {done.stderr[-2000:]}"
    ran = done.stdout.split()
    assert len(ran) >= 24 and ran.count("list") >= 3
