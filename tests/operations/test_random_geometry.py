"""A fused stack of geometry and arithmetic gives, bit for bit, what its operations give one after another on whole arrays.

Each operation by itself has its oracle elsewhere; here a chain is compared with the kernels of its parts, run in turn.
"""

import numpy as np
import pytest

import fkl

MODES = ("replicate", "reflect", "wrap", "reflect101", "constant")


class Chains:
    """Draws parts, each a list of operations that make sense by themselves, for an image of some size and type."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def pick(self, *values):
        return values[self.random.integers(len(values))]

    def number(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def image(self):
        shape = (self.pick(1, 1, 3), self.number(1, 40), self.number(1, 50), self.pick(1, 3, 4))
        if self.pick(True, False):
            return self.random.integers(0, 256, shape, dtype=np.uint8)
        return self.random.normal(100, 60, shape).astype(np.float32)

    def part(self, shape, dtype):
        planes, height, width, channels = shape
        kind = self.pick("crop", "crops", "resize", "resize", "letterbox", "warp", "border", "deinterlace", "numbers", "numbers", "colour")
        if kind == "crop":
            w, h = self.number(1, width), self.number(1, height)
            return [fkl.Crop(self.number(0, width - w), self.number(0, height - h), w, h)]
        if kind == "crops":
            rectangles = []
            for _ in range(planes if planes > 1 else self.number(1, 5)):
                w, h = self.number(1, width), self.number(1, height)
                rectangles.append((self.number(0, width - w), self.number(0, height - h), w, h))
            return [fkl.Crop(rectangles), fkl.Resize(self.number(1, 30), self.number(1, 30), self.pick("linear", "nearest", "cubic"))]
        if kind == "resize":
            interp = self.pick("nearest", "linear", "cubic", "area", "linear")
            centers = self.pick("half_pixel", "half_pixel", "top_left") if interp != "area" else "half_pixel"
            antialias = interp in ("linear", "cubic") and centers == "half_pixel" and self.pick(True, False)
            return [fkl.Resize(self.number(1, 60), self.number(1, 60), interp, centers=centers, antialias=antialias)]
        if kind == "letterbox":
            return [fkl.Resize(self.number(4, 60), self.number(4, 60), self.pick("linear", "nearest"), self.pick("preserve", "preserve_left"), self.number(0, 255))]
        turn = self.random.normal(0, 0.3, 2)
        matrix = [[1 + turn[0], turn[1], self.number(-9, 9)], [-turn[1], 1 + turn[0], self.number(-9, 9)], [*self.random.normal(0, 1e-3, 2), 1]]
        if kind == "warp":
            return [fkl.Warping(matrix, self.number(1, 50), self.number(1, 50), self.pick("linear", "nearest", "cubic"))]
        if kind == "border":
            border = fkl.BorderReader(self.pick(*MODES[:4])) if self.pick(True, True, False) else fkl.BorderReader("constant", self.number(0, 255))
            between = self.pick([], [fkl.Add(3)])
            after = self.pick(
                fkl.Crop(self.number(-30, 20), self.number(-30, 20), self.number(1, 60), self.number(1, 60)), fkl.Warping(matrix, self.number(1, 50), self.number(1, 50)),
            )  # fmt: skip
            return [border, *between, after]
        if kind == "deinterlace":
            return [fkl.Deinterlace(self.pick("blend", "linear"), self.pick("even", "odd"))]
        if kind == "colour":
            return [fkl.VectorReorder(*reversed(range(channels)))] if channels > 1 else [fkl.Abs()]
        if dtype == np.uint8:
            return self.pick([fkl.Cast("float32"), fkl.Div(255.0)], [fkl.Add(7)], [fkl.Max(40)])
        return self.pick([fkl.Mul(1.7), fkl.Sub(3.1)], [fkl.SaturateCast("uint8")], [fkl.Div(3.0)], [fkl.Neg(), fkl.Abs()])


def run(ops, x):
    return fkl.compose(fkl.TensorRead(channels=x.shape[-1]), *ops, fkl.TensorWrite(), target="cpu")(x)


@pytest.mark.parametrize("seed", range(60))
def test_a_stack_means_its_parts_one_after_another(seed):
    chains = Chains(seed)
    x = want = chains.image()
    parts = []
    for _ in range(chains.number(2, 5)):
        part = chains.part(want.shape, want.dtype)
        parts.append(part)
        want = run(part, want)
    got = run([op for part in parts for op in part], x)
    assert got.dtype == want.dtype and got.shape == want.shape, parts
    assert got.tobytes() == want.tobytes() or np.array_equal(got, want, equal_nan=True), parts
