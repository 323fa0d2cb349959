"""Waiting, sequences, updates in place, pooled outputs, and other libraries' compilers and launchers, on the real driver."""

import gc
import threading
import time

import numpy as np
import pytest

import fkl
from fkl.runtime.launch import launch_trial

torch = pytest.importorskip("torch")


def chain(x=None, out=None, value=2.0):
    return fkl.compose(fkl.TensorRead(x), fkl.Mul(value), fkl.TensorWrite(out))


def pair(shape=(64, 64)):
    return torch.rand(shape, device="cuda"), torch.full(shape, -1.0, device="cuda")


# -- k.run ----------------------------------------------------------------------------------------------------------


def test_run_returns_when_the_result_is_there():
    x, out = torch.rand((1 << 22,), device="cuda"), torch.zeros((1 << 22,), pin_memory=True)
    device_out = torch.zeros_like(x)
    k = chain(x, device_out)
    s = torch.cuda.Stream()
    host = fkl.compose(fkl.TensorRead(x), fkl.Mul(3.0), fkl.TensorWrite(fkl.DeviceBuffer.from_ptr(out.data_ptr(), (1 << 22,), "float32", owner=out)))
    want = (x * 3).cpu()
    torch.cuda.synchronize()
    for stream in (None, s, s.cuda_stream):
        out.zero_()
        assert k.run(stream) is device_out
        host.run(stream)
        # Pinned memory that the kernel wrote: read without any other wait.
        assert torch.equal(out, want)
    assert torch.equal(device_out, x * 2)


def test_run_waits_for_what_was_queued_before():
    x, out = pair()
    k, s = chain(x, out), torch.cuda.Stream()
    with torch.cuda.stream(s):
        torch.cuda._sleep(300_000_000)
    begin = time.perf_counter()
    k.run(s)
    assert s.query() and time.perf_counter() - begin > 0.01
    assert torch.equal(out, x * 2)


def test_run_lets_other_threads_go_on_while_it_waits():
    x, out = pair()
    k, s, turns = chain(x, out), torch.cuda.Stream(), [0]
    with torch.cuda.stream(s):
        torch.cuda._sleep(600_000_000)
    over = threading.Event()

    def count():
        while not over.is_set():
            turns[0] += 1
            time.sleep(0.001)

    other = threading.Thread(target=count)
    other.start()
    k.run(s)
    over.set()
    other.join()
    assert turns[0] > 20


def test_run_in_eight_threads():
    wrong = []

    def work(i):
        x, out = torch.full((4096,), float(i), device="cuda"), torch.empty(4096, device="cuda")
        s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        k = chain(x, out)
        for _ in range(300):
            k.run(s)
        if not (out == 2.0 * i).all():
            wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_run_is_refused_while_the_stream_is_captured():
    x, out = pair()
    k, s = chain(x, out), torch.cuda.Stream()
    k()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=s):
        with pytest.raises(ValueError, match="being captured"):
            k.run()
        k()
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, x * 2)


# -- sequences ------------------------------------------------------------------------------------------------------


def test_a_sequence():
    x, mid = pair()
    out = torch.zeros_like(x)
    mul, add = fkl.Mul(2.0), fkl.Add(1.0)
    first = fkl.compose(fkl.TensorRead(x), mul, fkl.TensorWrite(mid))
    second = fkl.compose(fkl.TensorRead(mid), add, fkl.TensorWrite(out))
    both = fkl.sequence(first, second)
    assert both() is out and torch.equal(out, x * 2 + 1)
    first.update(mul, 3.0)
    second.update(add, 5.0)
    assert both() is out and torch.equal(out, x * 3 + 5)
    first.update(mul, np.float64(4.0))
    x.copy_(torch.rand_like(x))
    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    both.run(s)
    assert torch.equal(out, x * 4 + 5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        both()
    first.update(mul, 1.0)
    both.run()
    assert torch.equal(out, x + 5)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, x * 4 + 5)  # what was captured keeps its values


# -- updates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "float64"])
def test_updates_reach_the_next_call_and_no_other(dtype):
    x = torch.arange(60, device="cuda").reshape(4, 5, 3).to(getattr(torch, dtype))
    outs = [torch.zeros_like(x) for _ in range(2)]
    add = fkl.Add(1)
    k = fkl.compose(fkl.TensorRead(x), add, fkl.TensorWrite(outs[0]))
    s = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(s):
        torch.cuda._sleep(20_000_000)
    k(stream=s)  # in flight while the next numbers are written
    k.update(add, (5, 6, 7))
    k(out=outs[1], stream=s)
    s.synchronize()
    assert torch.equal(outs[0], x + 1)
    assert torch.equal(outs[1], x + torch.tensor([5, 6, 7], device="cuda", dtype=x.dtype))
    for v in range(20):
        k.update(add, v)
        k()
        assert torch.equal(outs[0], x + v)


# -- memory ---------------------------------------------------------------------------------------------------------


def test_outputs_come_from_a_pool():
    x = fkl.asarray(np.ones((1 << 20,), np.float32))
    k = chain()
    k(x)
    gc.collect()
    torch.cuda.synchronize()
    start = fkl.memory_info()
    for _ in range(300):
        k(x)
    torch.cuda.synchronize()
    gc.collect()
    end = fkl.memory_info()
    assert end.pool_reserved - start.pool_reserved <= 64 << 20 and end.pool_used <= start.pool_used + (8 << 20)
    assert end.buffers == start.buffers
    y = k(x)
    assert fkl.memory_info().pool_used >= 4 << 20 and (y.to_numpy() == 2).all()
    t = torch.from_dlpack(y)
    del y
    gc.collect()
    k(x)
    assert (t == 2).all()


def test_memory_info():
    before = fkl.memory_info()
    b = fkl.empty((1 << 24,), "uint8")
    after = fkl.memory_info()
    assert after.buffers - before.buffers == 1 << 24 and after.device == 0 and 0 < after.free < after.total
    k = chain(*pair())
    assert fkl.memory_info().graphs >= 1 or launch_trial()[3] == "kernel"
    b.close()
    assert fkl.memory_info().buffers == before.buffers
    k.close()


def test_more_graphs_than_the_bound():
    before = fkl.memory_info()
    x, out = pair((8, 8))
    kernels = [chain(x, out, float(i)) for i in range(before.most_graphs + 40)]
    info = fkl.memory_info()
    assert info.graphs <= info.most_graphs
    for i in (0, 500, len(kernels) - 1):
        kernels[i]()
        assert torch.equal(out, x * float(i))
    del kernels
    gc.collect()
    chain(x, out)()
    assert fkl.memory_info().graphs < 200


def test_launches_were_measured():
    x, out = pair()
    k = chain(x, out)
    for _ in range(70):
        k()
    left, graph, direct, verdict = launch_trial()
    assert left == 0 and verdict == ("kernel" if graph > direct else "graph")
    assert torch.equal(out, x * 2)


# -- other libraries ------------------------------------------------------------------------------------------------


def test_a_kernel_inside_torch_compile():
    k = fkl.compose(fkl.TensorRead(), fkl.Cast("float32"), fkl.Div(255.0), fkl.TensorSplit())
    prepare = fkl.torch_op("fkl_test::prepare", k)
    x = torch.randint(0, 256, (32, 48, 3), dtype=torch.uint8, device="cuda")
    assert torch.equal(prepare(x), k(x))
    torch.library.opcheck(prepare, (x,), test_utils=("test_schema", "test_faketensor"))

    def model(t):
        return prepare(t).mean(dim=(1, 2)) * 2

    compiled = torch.compile(model, fullgraph=True)
    assert torch.allclose(compiled(x), model(x))
    assert torch.allclose(compiled(x.flip(0)), model(x.flip(0)))


def test_cuda_core_streams_buffers_and_kernels():
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    stream = device.create_stream()
    x, out = pair((64,))
    torch.cuda.synchronize()
    chain(x, out)(stream=stream)
    stream.sync()
    assert torch.equal(out, x * 2)
    # Its kernels on our memory, our kernels on its memory.
    b = fkl.asarray(np.arange(64, dtype=np.float32))
    code = 'extern "C" __global__ void negate(float* x) { x[threadIdx.x] = -x[threadIdx.x]; }'
    major, minor = torch.cuda.get_device_capability()
    program = core.Program(code, code_type="c++", options=core.ProgramOptions(arch=f"sm_{major}{minor}"))
    kernel = program.compile("cubin").get_kernel("negate")
    core.launch(stream, core.LaunchConfig(grid=1, block=64), kernel, b.ptr)
    stream.sync()
    assert (b.to_numpy() == -np.arange(64)).all()
    theirs = device.allocate(256, stream=stream)
    seen = fkl.DeviceBuffer.from_ptr(int(theirs.handle), (64,), "float32", owner=theirs, stream=stream)
    chain(b, seen)(stream=stream)
    stream.sync()
    assert (seen.to_numpy() == -2 * np.arange(64)).all()
    # A Buffer speaks DLPack as bytes.
    raw = fkl.compose(fkl.TensorRead(), fkl.TensorWrite())(theirs)
    assert raw.to_numpy().view(np.uint8).tobytes() == seen.copy_to_host()


def test_outputs_come_from_cupys_pool():
    cupy = pytest.importorskip("cupy")
    x = cupy.ones(1 << 20, cupy.float32)
    k = chain()
    k(x)
    pool = cupy.get_default_memory_pool()
    before = pool.total_bytes()
    for _ in range(100):
        y = k(x)
    assert pool.total_bytes() <= before + (16 << 20) and (y == 2).all()


class Interface:
    """An object that only has the array interface, as numba's arrays and decoders' frames do."""

    def __init__(self, array, **changes):
        self.kept = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **changes}


def test_objects_with_only_an_array_interface():
    x, out = pair((16, 24))
    s = torch.cuda.Stream()
    k = chain()
    k(Interface(x), out=Interface(out))
    assert torch.equal(out, x * 2)
    with torch.cuda.stream(s):
        torch.cuda._sleep(30_000_000)
        x.fill_(3.0)
    k(Interface(x, stream=s.cuda_stream), out=out)
    assert (out == 6).all()
    assert torch.equal(torch.as_tensor(k(Interface(x, stream=None)), device="cuda"), x * 2)
    with pytest.raises(ValueError, match="forbids"):
        k(Interface(x, stream=0))
    with pytest.raises(ValueError, match="read-only"):
        k(x, out=Interface(out, data=(out.data_ptr(), True)))


class Frame:
    """A pitched decoder surface that speaks DLPack, as cvcuda's and PyNvVideoCodec's do."""

    def __init__(self, height, width, pitch):
        self.memory = torch.randint(0, 256, (height, pitch), dtype=torch.uint8, device="cuda")
        self.seen = self.memory[:, :width]

    def __dlpack_device__(self):
        return self.seen.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **_):
        return self.seen.__dlpack__(stream=stream)


def test_pitched_frames_by_dlpack_and_by_pointer():
    height, width, pitch = 180, 300, 512
    frame = Frame(height * 3 // 2, width, pitch)
    k = fkl.compose(fkl.ReadYUV("nv12"), fkl.ConvertYUVToRGB(), fkl.Resize(64, 48), fkl.TensorSplit())
    cpu = fkl.compose(fkl.ReadYUV("nv12"), fkl.ConvertYUVToRGB(), fkl.Resize(64, 48), fkl.TensorSplit(), target="cpu")
    want = cpu(frame.seen.cpu().numpy())
    torch.cuda.synchronize()
    assert np.array_equal(k(frame).to_numpy(), want)
    engine_input = torch.zeros((3, 48, 64), device="cuda")
    by_pointer = fkl.DeviceBuffer.from_ptr(frame.memory.data_ptr(), (height * 3 // 2, width), "uint8", pitch=pitch)
    binding = fkl.DeviceBuffer.from_ptr(engine_input.data_ptr(), (3, 48, 64), "float32")
    k(by_pointer, out=binding)
    torch.cuda.synchronize()
    assert np.array_equal(engine_input.cpu().numpy(), want)


def test_jax_arrays():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(24, dtype="float32").reshape(4, 6)
    y = chain()(x)
    assert (jax.numpy.from_dlpack(y) == x * 2).all()


def test_numba_arrays_and_streams():
    cuda = pytest.importorskip("numba.cuda")
    host = np.arange(24, dtype=np.float32).reshape(4, 6)
    x, out = cuda.to_device(host), cuda.device_array((4, 6), np.float32)
    k = chain()
    assert k(x, out=out) is out and np.array_equal(out.copy_to_host(), host * 2)
    bound = fkl.compose(fkl.TensorRead(x), fkl.Mul(3.0), fkl.TensorWrite(out))
    s = cuda.stream()
    bound(stream=s)
    s.synchronize()
    assert np.array_equal(out.copy_to_host(), host * 3)

    # An array that lives on a stream says so in its interface, and the call waits for what is queued there.
    y = cuda.to_device(np.zeros((4, 6), np.float32), stream=s)
    s.synchronize()
    seen = torch.as_tensor(y, device="cuda")
    with torch.cuda.stream(torch.cuda.ExternalStream(int(getattr(s.handle, "value", s.handle)))):
        torch.cuda._sleep(30_000_000)
        seen.fill_(3.0)
    z = k(y)
    assert np.array_equal(cuda.as_cuda_array(z).copy_to_host(), np.full((4, 6), 6, np.float32))


def test_data_loader_workers_spawn():
    """Workers of a DataLoader are processes that compose for themselves."""
    from loader_of_images import Images

    loader = torch.utils.data.DataLoader(Images(8), batch_size=2, num_workers=2, multiprocessing_context="spawn")
    batches = [b for b in loader]
    assert len(batches) == 4 and all(torch.equal(b, torch.full((2, 3, 8, 8), 2.0)) for b in batches)
