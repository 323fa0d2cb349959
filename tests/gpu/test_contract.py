"""The binding contract, line by line, on torch tensors."""

import gc
import threading

import numpy as np
import pytest

import fkl
from fkl.compiler.gpu import compile_count

torch = pytest.importorskip("torch")


def image(h=33, w=70, c=3, dtype=torch.uint8, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (h, w, c), generator=g).to(dtype).cuda()


def chain(x=None, out=None, value=2.0):
    return fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.Mul(value), fkl.TensorSplit(out))


def expected(x, value=2.0):
    return (x.float() * value).permute(2, 0, 1)


# 1. read and write bound


def test_bound_call_returns_the_output_and_reads_by_pointer():
    x, out = image(), torch.full((3, 33, 70), -1.0, device="cuda")
    before = compile_count()
    k = chain(x, out)
    assert k.is_bound and compile_count() - before <= 1
    assert k() is out
    assert torch.equal(out, expected(x))
    x.copy_(image(seed=1))
    assert k() is out
    assert torch.equal(out, expected(x))


def test_bound_call_on_a_stream_is_asynchronous():
    x, out = image(), torch.zeros((3, 33, 70), device="cuda")
    k = chain(x, out)
    torch.cuda.synchronize()
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        torch.cuda._sleep(200_000_000)
    assert k(stream=s) is out
    assert not s.query()  # the host did not wait
    s.synchronize()
    assert torch.equal(out, expected(x))


@pytest.mark.parametrize("kind", ["torch", "int", "fkl", "protocol", "old protocol"])
def test_stream_objects(kind):
    x, out = image(), torch.zeros((3, 33, 70), device="cuda")
    k = chain(x, out)
    torch.cuda.synchronize()
    s = torch.cuda.Stream()
    handle = s.cuda_stream
    own = fkl.Stream()
    stream = {
        "torch": s, "int": handle, "fkl": own,
        "protocol": type("S", (), {"__cuda_stream__": lambda self: (0, handle)})(),
        "old protocol": type("S", (), {"__cuda_stream__": (0, handle)})(),
    }[kind]  # fmt: skip
    k(stream=stream)
    own.synchronize()
    s.synchronize()
    assert torch.equal(out, expected(x))


@pytest.mark.parametrize("stream", [True, "s", 1.5, object(), [], torch.cuda.Event])
def test_unknown_stream_objects_are_type_errors(stream):
    x, out = image(), torch.zeros((3, 33, 70), device="cuda")
    k = chain(x, out)
    with pytest.raises(TypeError, match="a stream is"):
        k(stream=stream)
    with pytest.raises(TypeError, match="a stream is"):
        k(stream=out)
    with pytest.raises(TypeError, match="a stream is"):
        k(stream=k)
    with pytest.raises(ValueError, match="negative"):
        k(stream=-1)
    assert torch.equal(k(), expected(x))


# 2. same chain, other values


def test_second_compose_compiles_nothing():
    x, a, b = image(), torch.zeros((3, 33, 70), device="cuda"), torch.zeros((3, 33, 70), device="cuda")
    k = chain(x, a, 2.0)
    count = compile_count()
    q = chain(x, b, 3.5)
    assert compile_count() == count
    assert k.signature == q.signature
    k(), q(), k()
    assert torch.equal(a, expected(x, 2.0)) and torch.equal(b, expected(x, 3.5))


# 3. partly bound and unbound


def test_only_the_read_bound_allocates_each_time():
    x = image()
    k = chain(x)
    first, second = k(), k()
    assert type(first) is torch.Tensor and first.device == x.device
    assert first.data_ptr() != second.data_ptr()
    assert torch.equal(first, expected(x)) and torch.equal(second, first)


def test_only_the_write_bound_is_the_default_output():
    out = torch.zeros((3, 33, 70), device="cuda")
    count = compile_count()
    k = fkl.compose(fkl.TensorRead(), fkl.Cast("float32"), fkl.Mul(2.0), fkl.Add(0.125), fkl.TensorSplit(out))
    assert compile_count() == count and not k.is_bound
    x = image()
    assert k(x) is out
    assert torch.equal(out, expected(x) + 0.125)


def test_unbound():
    k, x = chain(), image()
    assert torch.equal(k(x), expected(x))
    z = torch.zeros((3, 33, 70), device="cuda")
    assert k(x, out=z) is z and torch.equal(z, expected(x))
    small = image(5, 6)
    assert torch.equal(k(small), expected(small))
    halves = image(dtype=torch.float16)
    assert torch.equal(k(halves), expected(halves))


# 4. overrides


def test_overrides_leave_the_binding():
    x, o = image(), torch.zeros((3, 33, 70), device="cuda")
    k = chain(x, o)
    y, z = image(seed=2), torch.full((3, 33, 70), -1.0, device="cuda")
    assert k(y) is o and torch.equal(o, expected(y))
    assert k(out=z) is z and torch.equal(z, expected(x))
    assert k(y, out=z) is z and torch.equal(z, expected(y))
    z.fill_(-1)
    assert k() is o and torch.equal(o, expected(x))
    assert (z == -1).all()
    for wrong, words in [
        (image(9, 9), "9"),
        (image(dtype=torch.float32), "float32"),
        (x.cpu(), "CPU memory"),
    ]:
        count = compile_count()
        with pytest.raises(ValueError, match=words):
            k(wrong)
        assert compile_count() == count
    assert k() is o and torch.equal(o, expected(x))


def test_repeated_overrides_with_new_pointers():
    k = chain()
    for i in range(50):
        x = image(seed=i)
        z = torch.full((3, 33, 70), -1.0, device="cuda")
        assert k(x, out=z) is z
        assert torch.equal(z, expected(x))


# 5. refusals


def test_refusals():
    x, o = image(), torch.zeros((3, 33, 70), device="cuda")
    with pytest.raises(TypeError, match="bind"):
        chain()()
    with pytest.raises(TypeError, match="list"):
        fkl.TensorRead([x, x])
    k = chain(x, o)
    with pytest.raises(ValueError, match="list"):
        k([x, x])
    with pytest.raises(ValueError, match="shape"):
        chain(x, torch.zeros((3, 33, 71), device="cuda"))
    with pytest.raises(ValueError, match="float32"):
        chain(x, torch.zeros((3, 33, 70), device="cuda", dtype=torch.float16))
    for ops in ([fkl.TensorRead(x), fkl.TensorWrite()], [fkl.TensorRead(), fkl.TensorWrite(o)]):
        with pytest.raises(ValueError, match="cpu"):
            fkl.compose(*ops, target="cpu")
    with pytest.raises(ValueError, match="overlap"):
        fkl.compose(fkl.TensorRead(x[1:]), fkl.Add(1), fkl.TensorWrite(x[:-1]))
    with pytest.raises(ValueError, match="requires grad"):
        fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.TensorSplit(o.clone().requires_grad_()))
    assert torch.equal(k(), expected(x))


# 6. the source


def test_source_is_the_same_bound_or_not():
    x, o = image(), torch.zeros((3, 33, 70), device="cuda")
    texts = {
        k.source_for("uint8x3", (70, 33, 1))
        for k in (chain(), chain(x), chain(x, o), chain(None, o), chain(x, o, 77.25), chain(image(5, 6)))
    }
    assert len(texts) == 1
    text = texts.pop()
    assert "77.25" not in text and str(x.data_ptr()) not in text and f"{x.data_ptr():x}" not in text


# 7. torch streams, threads, capture


def test_torch_current_stream_is_used_without_being_told():
    x, o = image(), torch.zeros((3, 33, 70), device="cuda")
    k, q = chain(x, o), chain()
    torch.cuda.synchronize()
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        torch.cuda._sleep(50_000_000)
        x.fill_(7)
        k()
        r = q(x)
    s.synchronize()
    assert (o == 14).all() and (r == 14).all()


def test_fresh_thread():
    x, o = image(), torch.zeros((3, 33, 70), device="cuda")
    k, results = chain(x, o), []

    def work():
        results.append(k())
        results.append(chain(x, torch.zeros_like(o), 5.0)())
        torch.cuda.synchronize()

    t = threading.Thread(target=work)
    t.start()
    t.join()
    assert results[0] is o and torch.equal(o, expected(x)) and torch.equal(results[1], expected(x, 5.0))


@pytest.mark.parametrize("bound", [True, False])
def test_capture(bound):
    x, o = image(), torch.zeros((3, 33, 70), device="cuda")
    k = chain(x, o) if bound else chain()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        if bound:
            k()
        else:
            o = k(x)
    del k
    gc.collect()
    x.copy_(image(seed=5))
    g.replay()
    torch.cuda.synchronize()
    assert torch.equal(o, expected(x))


def test_cold_first_call_inside_a_capture():
    k = fkl.compose(fkl.TensorRead(), fkl.Cast("float32"), fkl.Sub(3.0), fkl.Abs(), fkl.Sqrt(), fkl.TensorWrite())
    x = image()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        o = k(x)
    g.replay()
    torch.cuda.synchronize()
    assert torch.equal(o, (x.float() - 3).abs().sqrt())


def test_close_and_clone():
    x, o = image(), torch.zeros((3, 33, 70), device="cuda")
    k = chain(x, o)
    q = k.clone()
    k.close()
    k.close()
    with pytest.raises(ValueError, match="closed"):
        k()
    assert q() is o and torch.equal(o, expected(x))
    assert "closed" in repr(k) and "bound" in repr(q)


# layouts


def test_pitched_views_in_and_out():
    big = image(40, 50)
    view = big[10:25, 5:29]
    out = torch.full((40, 50, 3), -1.0, device="cuda")
    k = fkl.compose(fkl.TensorRead(view), fkl.Cast("float32"), fkl.TensorWrite(out[10:25, 5:29]))
    k()
    want = torch.full((40, 50, 3), -1.0, device="cuda")
    want[10:25, 5:29] = view.float()
    assert torch.equal(out, want)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_every_start_alignment(dtype, channels):
    for offset in range(16):
        base = torch.arange(64 * 64, device="cuda").remainder(100).to(dtype)
        x = base[offset : offset + 60 * 63].reshape(60 // channels, 63, channels) if channels > 1 else (
            base[offset : offset + 60 * 63].reshape(60, 63))  # fmt: skip
        k = fkl.compose(fkl.TensorRead(channels=channels), fkl.Add(1), fkl.TensorWrite())
        assert torch.equal(k(x), x + 1), offset


def test_permuted_tensor_is_refused():
    p = torch.rand(3, 32, 48, device="cuda").permute(1, 2, 0)
    with pytest.raises(ValueError, match=r"contiguous.*TensorPack|TensorPack"):
        fkl.compose(fkl.TensorRead(p), fkl.Mul(2.0), fkl.TensorWrite())


def test_planes_lists_and_splits():
    batch = torch.stack([image(seed=i) for i in range(5)])
    want = batch.float().permute(0, 3, 1, 2)
    ops = [fkl.Cast("float32")]
    assert torch.equal(fkl.compose(fkl.TensorRead(), *ops, fkl.TensorSplit())(batch), want)
    assert torch.equal(fkl.compose(fkl.TensorRead(), *ops, fkl.TensorTSplit())(batch), want.transpose(0, 1))
    assert torch.equal(fkl.compose(fkl.TensorRead(), *ops, fkl.SplitWrite())(batch), want)
    assert torch.equal(fkl.compose(fkl.TensorRead(), *ops, fkl.TensorSplit())(list(batch)), want)
    assert torch.equal(fkl.compose(fkl.TensorPack(3), fkl.TensorWrite())(want.contiguous()), batch.float())
    merged = torch.zeros((15, 33, 70), device="cuda")
    fkl.compose(fkl.TensorRead(batch), *ops, fkl.TensorSplit(merged))()
    assert torch.equal(merged.view_as(want), want)
    parts = [torch.zeros((33, 70), device="cuda") for _ in range(3)]
    k = fkl.compose(fkl.TensorRead(batch[0]), *ops, fkl.SplitWrite(parts))
    assert all(a is b for a, b in zip(k(), parts, strict=True))
    assert torch.equal(torch.stack(parts), want[0])


def test_a_long_list_needs_a_table_in_device_memory():
    images = [image(4, 8, seed=i) for i in range(500)]
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1), fkl.TensorWrite())
    assert torch.equal(k(images), torch.stack(images) + 1)


def test_many_rows_and_planes():
    rows = torch.arange(70_000 * 2, device="cuda", dtype=torch.float32).reshape(70_000, 2)
    pitched = torch.zeros((70_000, 6), device="cuda")[:, :2]
    k = fkl.compose(fkl.TensorRead(channels=1), fkl.Add(1.0), fkl.TensorWrite())
    assert torch.equal(k(rows, out=pitched), rows + 1)
    planes = torch.arange(70_000 * 6, device="cuda", dtype=torch.float32).reshape(70_000, 2, 3)
    out = torch.zeros((70_000, 2, 5), device="cuda")[:, :, :3]
    q = fkl.compose(fkl.TensorRead(channels=1), fkl.Add(1.0), fkl.TensorWrite())
    assert torch.equal(q(planes, out=out), planes + 1)


@pytest.mark.parametrize("shape", [(0,), (0, 8), (5, 0), (0, 4, 3), (2, 0, 3)])
def test_empty_arrays(shape):
    x = torch.zeros(shape, device="cuda")
    r = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())(x)
    assert r.shape == x.shape


def test_more_than_two_to_the_31_elements():
    n = 2**31 + 4099
    x = torch.zeros(n, dtype=torch.uint8, device="cuda")
    x[-1], x[2**31], x[5] = 7, 9, 1
    fkl.compose(fkl.TensorRead(x), fkl.Add(1), fkl.TensorWrite(x))()
    assert x[-1] == 8 and x[2**31] == 10 and x[5] == 2 and x[6] == 1
    assert int(x.sum(dtype=torch.int64)) == n + 7 + 9 + 1


def test_in_place():
    y = torch.rand(16, 16, device="cuda")
    want = y * 2
    fkl.compose(fkl.TensorRead(y), fkl.Mul(2.0), fkl.TensorWrite(y))()
    assert torch.equal(y, want)


def test_long_chains():
    x = torch.rand(64, 64, device="cuda")
    ops = [op for i in range(500) for op in (fkl.Mul(1.0 + i * 1e-4), fkl.Add(0.5))]
    got = fkl.compose(fkl.TensorRead(), *ops, fkl.TensorWrite())(x).cpu().numpy()
    want = x.cpu().numpy()
    for i in range(500):
        want = want * np.float32(1.0 + i * 1e-4) + np.float32(0.5)
    assert np.array_equal(got, want)


def test_blocks_too_large_for_a_launch():
    x, o = torch.ones((9, 5, 4), dtype=torch.float64, device="cuda"), torch.empty((9, 5, 4), dtype=torch.float64, device="cuda")
    last = fkl.Mul((1.0, 2.0, 3.0, 4.0))
    k = fkl.compose(fkl.TensorRead(x), *[fkl.Add((1.0, 2.0, 3.0, 4.0))] * 1100, last, fkl.TensorWrite(o))
    want = (1.0 + 1100 * torch.arange(1.0, 5.0, dtype=torch.float64)) * torch.arange(1.0, 5.0, dtype=torch.float64)
    for _ in range(100):
        k()
    assert torch.equal(o.cpu(), want.expand(9, 5, 4))
    graph, z = torch.cuda.CUDAGraph(), torch.zeros_like(o)
    with torch.cuda.graph(graph):
        k(out=z)
    k.update(last, 0.0)
    k()
    assert not o.any()
    graph.replay()
    assert torch.equal(z.cpu(), want.expand(9, 5, 4))


@pytest.mark.parametrize("count", [3, 300])
def test_records_of_planes_in_a_block_too_large_for_a_launch(count):
    """Of lists: in the block, which lies in memory, and in a table behind it."""
    k = fkl.compose(fkl.TensorRead(), *[fkl.Add((1.0, 2.0, 3.0, 4.0))] * 1100, fkl.TensorWrite())
    images = [torch.full((3, 5, 4), float(i), dtype=torch.float64, device="cuda") for i in range(count)]
    want = torch.arange(float(count), dtype=torch.float64).reshape(-1, 1, 1, 1) + 1100 * torch.arange(1.0, 5.0, dtype=torch.float64)
    assert torch.equal(k(images).cpu(), want.expand(count, 3, 5, 4))


def test_threads_share_one_kernel():
    k, errors = chain(), []

    def work(seed):
        try:
            for i in range(60):
                x = image(16 + seed, 32, seed=seed * 100 + i)
                if not torch.equal(k(x, out=torch.empty((3, 16 + seed, 32), device="cuda")), expected(x)):
                    errors.append((seed, i))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors


@pytest.mark.parametrize("width", [1, 37, 64])
def test_generated_images(width):
    out = torch.full((5, width, 3), 7, dtype=torch.uint8, device="cuda")
    fkl.compose(fkl.ReadSet((1, 2, 3), width, 5, "uint8"), fkl.Add(1), fkl.TensorWrite(out))()
    assert out.tolist() == [[[2, 3, 4]] * width] * 5
