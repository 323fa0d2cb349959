"""Geometry, colour, video, two-source chains and updates on the GPU: equal to the CPU target bit for bit."""

import functools
import os
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracle
import pytest
from chains import BATCH, IMAGE, NV12, catalogue
from matrix import every

import fkl
from fkl.compiler.gpu import compile_count


def both(x, read, ops, write):
    cpu = fkl.compose(read, *ops, write, target="cpu")(x)
    gpu = fkl.compose(read, *ops, write)(fkl.asarray(x) if x.size else fkl.empty(x.shape, str(x.dtype)))
    return gpu.to_numpy().reshape(cpu.shape), cpu


@pytest.mark.parametrize("case", catalogue(), ids=lambda c: c[0])
def test_gpu_equals_cpu(case):
    _, x, read, ops, write = case
    got, want = both(x, read, ops, write)
    assert oracle.difference(got, want) == ""


SEEDS = range(0, 500, int(os.environ.get("FKL_EVERY", "1")))


@functools.cache
def pool() -> list:
    """Operations whose results are exact, zeros included."""
    return [c for c in every() if not c.ulps and "bfloat16" not in (c.base, c.out) and not (c.zeros_equal and c.base.startswith("float"))]


@functools.cache
def random_chain(seed: int):
    """Operations that follow each other, drawn from the matrix; their values as they stand there."""
    rng = random.Random(seed)
    base, channels = rng.choice(["uint8", "float32", "int16", "float16", "float64", "int64"]), rng.choice([1, 3, 4])
    start, ops = (base, channels), []
    for _ in range(rng.randrange(1, 9)):
        fitting = [c for c in pool() if (c.base, c.channels) == (base, channels)]
        case = rng.choice(fitting)
        ops += case.ops
        x = np.zeros((1, 1, channels), oracle.carrier(base))
        with np.errstate(all="ignore"):
            channels = np.asarray(case.expect(x)).shape[-1]
        base = case.out
    return start, ops


@pytest.fixture(scope="module")
def compiled():
    """Both targets of all random chains, compiled beforehand in threads."""

    def one(seed):
        (base, channels), ops = random_chain(seed)
        for target in ("cpu", "gpu"):
            k = fkl.compose(fkl.TensorRead(channels=channels), *ops, fkl.TensorWrite(), target=target)
            k.compile((base, channels), (9, 21, channels) if channels > 1 else (9, 21))

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(one, SEEDS))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_chains(seed, compiled):
    (base, channels), ops = random_chain(seed)
    x = oracle.samples(base, (9, 21, channels), seed)
    got, want = both(oracle.encode(x, base), fkl.TensorRead(channels=channels), ops, fkl.TensorWrite())
    assert oracle.difference(got, want) == ""


@pytest.mark.parametrize("reduce", ["Max", "Min"])
def test_negations_before_a_minimum_of_three(reduce):
    """ptxas 13.0 loses a sign here unless the negation is hidden from it."""
    x = np.array([[[64, 0, 16, 32], [0, 64, 16, 32], [1, 2, 3, 4]]], np.int32)
    for first in (fkl.Neg(), fkl.Abs(), fkl.Div(-1), fkl.AbsDiff(40)):
        ops = [first, fkl.Sub((3, 2147483647, 5, -2147483648)), fkl.VectorReduce(reduce)]
        got, want = both(x, fkl.TensorRead(), ops, fkl.TensorWrite())
        assert (got == want).all(), first


def test_two_sources():
    a, b = fkl.asarray(IMAGE), fkl.asarray(IMAGE[::-1].copy())
    for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "AbsDiff", "BwXor"):
        op = getattr(fkl, name)
        got = fkl.compose(fkl.TensorRead(a), op(fkl.TensorRead(b)), fkl.TensorWrite())().to_numpy()
        want = fkl.compose(fkl.TensorRead(), op(fkl.TensorRead(IMAGE[::-1].copy())), fkl.TensorWrite(), target="cpu")(IMAGE)
        assert (got == want).all(), name
    shared = fkl.compose(fkl.TensorRead(fkl.asarray(BATCH)), fkl.Sub(fkl.TensorRead(fkl.asarray(BATCH[0].copy()))), fkl.TensorWrite())()
    assert (shared.to_numpy() == BATCH - BATCH[0]).all()
    with pytest.raises(ValueError, match="overlaps"):
        fkl.compose(fkl.TensorRead(a), fkl.Add(fkl.TensorRead(b)), fkl.TensorSplit(fkl.DeviceBuffer.from_ptr(b.ptr, (3, 61, 83), "uint8")))


def test_updates_reach_bound_kernels_and_compile_nothing():
    x, out = fkl.asarray(IMAGE), fkl.empty((9, 8, 3), "float32")
    crop, mul = fkl.Crop(1, 2, 8, 9), fkl.Mul(2.0)
    k = fkl.compose(fkl.TensorRead(x), crop, fkl.Cast("float32"), mul, fkl.TensorWrite(out))
    f, count = IMAGE.astype(np.float32), compile_count()
    assert k() is out and (out.to_numpy() == f[2:11, 1:9] * 2).all()
    k.update(mul, 3.0)
    k.update(crop, 5, 6, 8, 9)
    assert k() is out and (out.to_numpy() == f[6:15, 5:13] * 3).all()
    with pytest.raises(ValueError, match="outside"):
        k.update(crop, 80, 6, 8, 9)
    assert (k().to_numpy() == f[6:15, 5:13] * 3).all()
    k.update(crop, 0, 0, 4, 5)
    fitting = fkl.empty((5, 4, 3), "float32")
    assert (k(out=fitting).to_numpy() == f[:5, :4] * 3).all()
    with pytest.raises(ValueError, match=r"\(5, 4, 3\)"):
        k()
    k.update(crop, 0, 0, 8, 9)
    assert (k().to_numpy() == f[:9, :8] * 3).all()
    read = k.ops[0]
    k.update(read, fkl.asarray(IMAGE[::-1].copy()))
    assert (k().to_numpy() == f[::-1][:9, :8] * 3).all() and compile_count() == count


def test_a_changing_number_of_rois_compiles_once():
    x = fkl.asarray(IMAGE)
    rois = fkl.Crop([(0, 0, 5, 5)])
    k = fkl.compose(fkl.TensorRead(x), rois, fkl.Resize(16, 12, "area"), fkl.TensorSplit())
    k()
    count = compile_count()
    for frame in range(100):
        n = 1 + frame % 40
        boxes = [((7 * i + frame) % 60, (5 * i) % 40, 10 + i % 9, 12 + i % 7) for i in range(n)]
        k.update(rois, boxes)
        got = k().to_numpy()
        assert got.shape == (n, 3, 12, 16)
    want = fkl.compose(fkl.TensorRead(), fkl.Crop(boxes), fkl.Resize(16, 12, "area"), fkl.TensorSplit(), target="cpu")(IMAGE)
    assert (got == want).all() and compile_count() == count


def test_surfaces_by_pointer_and_pair():
    whole = fkl.asarray(NV12)
    luma = fkl.DeviceBuffer.from_ptr(whole.ptr, (48, 64), "uint8", owner=whole)
    chroma = fkl.DeviceBuffer.from_ptr(whole.ptr + 48 * 64, (24, 64), "uint8", owner=whole)
    want = fkl.compose(fkl.ReadYUV("nv12"), fkl.ConvertYUVToRGB(), fkl.TensorWrite(), target="cpu")(NV12)
    bound = fkl.compose(fkl.ReadYUV("nv12", (luma, chroma)), fkl.ConvertYUVToRGB(), fkl.TensorWrite())
    assert (bound().to_numpy() == want).all()
    unbound = fkl.compose(fkl.ReadYUV("nv12"), fkl.ConvertYUVToRGB(), fkl.TensorWrite())
    assert (unbound((luma, chroma)).to_numpy() == want).all() and (unbound(whole).to_numpy() == want).all()
    assert (unbound([whole, whole]).to_numpy() == np.stack([want, want])).all()
    assert (unbound([(luma, chroma), whole]).to_numpy() == np.stack([want, want])).all()


@pytest.mark.parametrize("pitch", [64, 65, 66, 68])
@pytest.mark.parametrize("offset", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["nv12", "nv21", "p010"])
def test_chroma_at_any_address_and_pitch(name, offset, pitch):
    """Samples that are aligned as pairs are read as such; the others one by one, with the same results."""
    base, item = ("uint16", 2) if name == "p010" else ("uint8", 1)
    surface = NV12.astype(base) << (8 * (item - 1))
    memory = np.zeros(72 * pitch + 4, base)
    np.lib.stride_tricks.as_strided(memory[offset:], surface.shape, (pitch * item, item))[...] = surface
    held = fkl.asarray(memory)
    x = fkl.DeviceBuffer.from_ptr(held.ptr + offset * item, surface.shape, base, pitch=pitch * item, owner=held)
    chroma = fkl.DeviceBuffer.from_ptr(x.ptr + 48 * pitch * item, (24, 64), base, pitch=pitch * item, owner=held)
    luma = fkl.DeviceBuffer.from_ptr(x.ptr, (48, 64), base, pitch=pitch * item, owner=held)
    for ops in ([fkl.TensorWrite()], [fkl.ConvertYUVToRGB(depth=8 if item == 1 else 10), fkl.Resize(40, 40, "linear", "preserve", 3), fkl.TensorSplit()]):
        want = fkl.compose(fkl.ReadYUV(name), *ops, target="cpu")(surface)
        for given in (x, (luma, chroma)):
            assert (fkl.compose(fkl.ReadYUV(name, given), *ops)().to_numpy() == want).all()


def test_divergent_chains():
    small = np.ascontiguousarray(IMAGE[:40, :50]).astype(np.float32)
    one = [fkl.TensorRead(), fkl.Crop(2, 3, 30, 24), fkl.Resize(20, 16), fkl.Div(255.0), fkl.TensorSplit()]
    two = [fkl.TensorRead(), fkl.Resize(20, 16, "nearest"), fkl.Mul(2.0), fkl.VectorReorder(2, 1, 0), fkl.TensorSplit()]
    plane_map, images = [1, 2, 2, 1], [IMAGE, small, small * 2, BATCH[0]]
    gpu, cpu = fkl.compose_divergent(plane_map, one, two), fkl.compose_divergent(plane_map, one, two, target="cpu")
    assert (gpu([fkl.asarray(a) for a in images]).to_numpy() == cpu(images)).all()
    count = compile_count()
    for new in ([2, 1, 1], [1] * 150, [2, 1] * 100):
        gpu.update(new)
        cpu.update(new)
        given = [images[0] if n == 1 else images[1] for n in new]
        assert (gpu([fkl.asarray(a) for a in given]).to_numpy() == cpu(given)).all()
    assert compile_count() == count


@pytest.mark.parametrize("layout", ["packed", "planar"])
@pytest.mark.parametrize("order", ["newest_first", "oldest_first"])
def test_windows(order, layout):
    settings = {"channels": 3, "order": order, "layout": layout, "out_dtype": "float32"}
    gpu, cpu = fkl.CircularTensor(20, 10, 4, **settings), fkl.CircularTensor(20, 10, 4, **settings, target="cpu")
    ops = [fkl.Resize(20, 10), fkl.Mul(0.5)]
    for i in range(9):
        frame = np.roll(IMAGE, i, 0)
        gpu.update(fkl.asarray(frame), ops)
        cpu.update(frame, ops)
        assert (gpu.snapshot().to_numpy() == cpu.snapshot()).all()
