"""Quotients where their test fails: the bits of the CPU target, in every kind of kernel that divides."""

import numpy as np
import pytest

import fkl

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(7)
#: Dividends that need plain division, and some at the borders of what does not.
ODD = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 2.0**-126, 2.0**-61, 2.0**-60, 2.0**60, 2.0**61, -3e38, 3.4e38], np.float32
)


def floats(shape, odd: float) -> np.ndarray:
    """Values over all exponents, ``odd`` of them from the list above."""
    x = np.ldexp(RNG.uniform(1, 2, shape), RNG.integers(-30, 30, shape)).astype(np.float32) * RNG.choice([-1, 1], shape).astype(np.float32)
    return np.where(RNG.random(shape) < odd, RNG.choice(ODD, shape), x).astype(np.float32)


def same(x: np.ndarray, make, write=fkl.TensorWrite, **options) -> None:
    """``make(put)`` is the chain between read and write, with arrays that ``put`` brings to the target."""
    with np.errstate(all="ignore"):
        want = fkl.compose(fkl.TensorRead(), *make(lambda a: a), write(), target="cpu")(x)
    got = fkl.compose(fkl.TensorRead(), *make(lambda a: torch.from_numpy(a).cuda()), write(), **options)(torch.from_numpy(x).cuda())
    got = got.cpu().numpy()
    nan = np.isnan(want)
    assert np.array_equal(nan, np.isnan(got))
    assert np.array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan])


@pytest.mark.parametrize("odd", [0.0, 1e-3, 0.5])
@pytest.mark.parametrize("divisor", [3.0, -7.5, 1e-30, 1e-42, 3e38, -1e25])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_floats(channels, divisor, odd):
    x = floats((67, 131, channels), odd)
    same(x, lambda put: [fkl.Div(divisor)])
    same(x, lambda put: [fkl.Add(1.0), fkl.Div(divisor), fkl.Sub(0.5), fkl.Div(0.25)])


@pytest.mark.parametrize("write", [fkl.TensorWrite, fkl.TensorSplit])
@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("odd", [0.0, 1e-3])
def test_runs_planes_and_single_pixels(odd, fused, write):
    same(floats((64, 128, 3), odd), lambda put: [fkl.Div((3.0, -0.7, 1e-3))], write, thread_fusion=fused)


def test_all_bytes_by_moderate_numbers():
    x = np.arange(256, dtype=np.uint8).repeat(12).reshape(16, 64, 3)
    for d in (255.0, -255.0, 0.229, 1 / 3, 2.0**-20, -(2.0**24), 16777215.0):
        same(x, lambda put, d=d: [fkl.Cast("float32"), fkl.Div(d)])
        same(x, lambda put, d=d: [fkl.Cast("float32"), fkl.Neg(), fkl.Div(d), fkl.Sub(0.5), fkl.Div(0.225)])
        # Zeros of both signs, with and without a kernel that expects them.
        for c in (0.0, -0.0, 3.0, -3.0):
            same(x, lambda put, d=d, c=c: [fkl.Cast("float32"), fkl.Sub(c), fkl.Div(d), fkl.Add(-0.0), fkl.Div(d)])
            same(x, lambda put, d=d, c=c: [fkl.Cast("float32"), fkl.Mul(c), fkl.Div(d)])


@pytest.mark.parametrize("divisor", [1e-9, 1e-38, 1e-44, 3e38, (1.0, 2e9, 3.0)])
def test_bytes_by_numbers_that_are_not_moderate(divisor):
    x = RNG.integers(0, 256, (37, 91, 3), dtype=np.uint8)
    same(x, lambda put: [fkl.Cast("float32"), fkl.Div(divisor)])
    same(x, lambda put: [fkl.Resize(53, 41), fkl.Div(divisor), fkl.Div(1e-3)])  # two rows a thread, the last one alone


@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("odd", [0.0, 1e-2])
def test_after_geometry(odd, fused):
    x = floats((37, 91, 3), odd)
    same(x, lambda put: [fkl.Resize(53, 41, "nearest"), fkl.Div((3.0, 0.7, -1e-3))], fkl.TensorSplit, thread_fusion=fused)
    same(x, lambda put: [fkl.Crop(1, 2, 50, 33), fkl.Div(1e-33)], thread_fusion=fused)


def test_by_another_array():
    divisors = floats((37, 92), 0.3)
    same(floats((37, 92), 0.3), lambda put: [fkl.Div(fkl.TensorRead(put(divisors)))])
    # Integers are bounded; what they are divided by is not.
    same(RNG.integers(0, 256, (37, 92), dtype=np.uint8), lambda put: [fkl.Cast("float32"), fkl.Div(fkl.TensorRead(put(divisors)))])


def test_updates_to_numbers_that_are_not_moderate_and_back():
    x = RNG.integers(0, 256, (37, 92, 3), dtype=np.uint8)
    out, div = torch.empty((37, 92, 3), device="cuda"), fkl.Div(4.0)
    k = fkl.compose(fkl.TensorRead(torch.from_numpy(x).cuda()), fkl.Cast("float32"), div, fkl.TensorWrite(out))
    for d in (3.0, 1e-44, 5.0, 1e30, 7.0):
        k.update(div, d)
        k()
        with np.errstate(all="ignore"):
            want = x.astype(np.float32) / np.float32(d)
        got = out.cpu().numpy()
        assert np.array_equal(got, want, equal_nan=True), d


def test_in_place_with_and_without_the_test():
    for channels in (3, 4):
        x = floats((64, 128, channels), 1e-3)
        t = torch.from_numpy(x.copy()).cuda()
        fkl.compose(fkl.TensorRead(t), fkl.Div(3.0), fkl.TensorWrite(t))()
        with np.errstate(all="ignore"):
            want = x / np.float32(3)
        assert np.array_equal(t.cpu().numpy(), want, equal_nan=True)
