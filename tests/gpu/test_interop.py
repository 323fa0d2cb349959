"""torch, cupy and raw pointers with the real libraries: streams, ownership, protocols."""

import copy
import gc
import subprocess
import sys

import numpy as np
import pytest

import fkl

torch = pytest.importorskip("torch")
cupy = pytest.importorskip("cupy")


def add(x, value=1.0, **kw):
    return fkl.compose(fkl.TensorRead(**kw), fkl.Add(value), fkl.TensorWrite())(x)


# -- cupy -----------------------------------------------------------------------------------------------------------


def test_cupy_in_cupy_out():
    x = cupy.arange(60, dtype=cupy.float32).reshape(4, 5, 3)
    y = add(x)
    assert type(y) is cupy.ndarray and (y == x + 1).all()
    out = cupy.zeros_like(x)
    k = fkl.compose(fkl.TensorRead(x), fkl.Mul(2.0), fkl.TensorWrite(out))
    assert k() is out and (out == x * 2).all()
    x += 1
    assert k() is out and (out == x * 2).all()
    z = cupy.zeros_like(x)
    assert k(out=z) is z and (z == x * 2).all()


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64"])
def test_every_dtype_through_cupy(name):
    x = (cupy.arange(60) % (2 if name == "bool" else 50)).astype(name).reshape(4, 5, 3)
    k = fkl.compose(fkl.TensorRead(), fkl.VectorReorder(2, 1, 0), fkl.TensorWrite())
    for _ in range(2):
        y = k(x)
        assert y.dtype == x.dtype and (y == x[..., ::-1]).all()
    assert (k(x[1:, 1:4]) == x[1:, 1:4, ::-1]).all()
    with pytest.raises(TypeError, match="complex"):
        k(cupy.zeros((4, 5, 3), cupy.complex64))


def test_a_cupy_array_of_another_stream():
    x, out = cupy.zeros(1 << 22, cupy.float32), cupy.zeros(1 << 22, cupy.float32)
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())
    k(x, out=out)
    cupy.cuda.runtime.deviceSynchronize()
    s, producer = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    with producer:
        for _ in range(200):
            x += 1
        k(x, out=out, stream=s)
    s.synchronize()
    assert (out == 201).all()


def test_cupy_current_stream():
    x, out = cupy.zeros((1024, 1024), cupy.float32), cupy.zeros((1024, 1024), cupy.float32)
    k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(out))
    unbound = fkl.compose(fkl.TensorRead(), fkl.Add(2.0), fkl.TensorWrite())
    cupy.cuda.runtime.deviceSynchronize()
    s = cupy.cuda.Stream(non_blocking=True)
    with s:
        torch.cuda._sleep(1)  # torch and cupy in one process
        for _ in range(50):
            x += 1
        k()
        y = unbound(x)
    s.synchronize()
    assert (out == 51).all() and (y == 52).all()
    k(stream=s)
    s.synchronize()
    assert (out == 51).all()


# -- torch ----------------------------------------------------------------------------------------------------------


def test_an_explicit_stream_waits_for_arrays_handed_over():
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())
    x, out = torch.zeros(1 << 20, device="cuda"), torch.zeros(1 << 20, device="cuda")
    k(x, out=out)
    torch.cuda.synchronize()
    s, producer = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(producer):
        torch.cuda._sleep(100_000_000)
        x.fill_(5)
        k(x, out=out, stream=s)
    s.synchronize()
    assert (out == 6).all()


def test_outputs_on_a_side_stream_belong_to_it():
    k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())
    x, s = torch.ones(1000, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    for _ in range(20):
        y = k(x, stream=s)
        del y
    y = k(x, stream=s)
    s.synchronize()
    assert (y == 2).all()


def test_tensors_that_need_care():
    parameter = torch.nn.Parameter(torch.ones(4, 8, device="cuda"))
    assert (add(parameter) == 2).all()
    with pytest.raises(ValueError, match="requires grad"):
        fkl.compose(fkl.TensorRead(), fkl.TensorWrite())(torch.ones(4, 8, device="cuda"), out=parameter)
    negated = torch.tensor([1 + 2j, 3 + 4j], device="cuda").conj().imag
    assert negated.is_neg()
    with pytest.raises(ValueError, match="resolve_neg"):
        add(negated)
    with pytest.raises(TypeError, match="complex"):
        add(torch.zeros(4, 8, dtype=torch.complex64, device="cuda"))
    with pytest.raises(TypeError, match="fp8"):
        add(torch.zeros(4, 8, dtype=torch.float8_e4m3fn, device="cuda"))
    with pytest.raises(TypeError):
        add(torch.zeros(4, 8, device="meta"))
    with pytest.raises(TypeError):
        add(torch.eye(4, device="cuda").to_sparse())
    with pytest.raises(ValueError, match=r"reshape\(1\)"):
        add(torch.tensor(3.0, device="cuda"))
    with pytest.raises(ValueError, match="CPU memory"):
        add(torch.ones(4, 8))
    assert (add(torch.ones(4, 8, device="cuda")) == 2).all()


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "float64"])
def test_every_dtype_through_torch(name):
    dtype = getattr(torch, name)
    x = (torch.arange(60, device="cuda") % (2 if name == "bool" else 50)).to(dtype).reshape(4, 5, 3)
    y = fkl.compose(fkl.TensorRead(), fkl.VectorReorder(2, 1, 0), fkl.TensorWrite())(x)
    assert y.dtype is dtype and torch.equal(y.to(torch.float64), x.to(torch.float64).flip(-1))
    b = fkl.from_dlpack(x)
    back = torch.from_dlpack(b)
    assert back.dtype is dtype and back.data_ptr() == x.data_ptr() and b.dtype == name


# -- DeviceBuffer ---------------------------------------------------------------------------------------------------


def test_buffers_are_shared_with_torch_and_cupy():
    b = fkl.empty((4, 5), "float32")
    b.fill(3.0)
    t, c = torch.from_dlpack(b), cupy.asarray(b)
    assert t.data_ptr() == b.ptr == c.data.ptr and (t == 3).all() and (c == 3).all()
    t.add_(1)
    torch.cuda.synchronize()
    assert (b.to_numpy() == 4).all() and (cupy.from_dlpack(b) == 4).all()
    bits = fkl.empty((1, 5), "bool")
    assert torch.from_dlpack(bits).dtype is torch.bool
    host = torch.from_dlpack(b, device="cpu") if sys.version_info >= (3, 12) else torch.from_dlpack(b).cpu()
    assert (host == 4).all()


def test_memory_lives_as_long_as_its_exports():
    def free():
        gc.collect()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]

    b = fkl.empty((1 << 24,), "uint8")
    del b
    start = free()
    b = fkl.empty((1 << 26,), "uint8")
    b.fill(7)
    t, u = torch.from_dlpack(b), b.__dlpack__(max_version=(1, 0))
    del b
    assert start - free() >= 1 << 26 and (t == 7).all()
    del u
    assert (t == 7).all()
    del t
    assert start - free() < 1 << 21
    for _ in range(200):
        b = fkl.empty((1 << 22,), "uint8")
        c, d = b.__dlpack__(), b.__dlpack__(max_version=(1, 0))
        del b, c, d
    assert start - free() < 1 << 21


def test_borrowed_pointers():
    t = torch.arange(64, dtype=torch.float32, device="cuda").reshape(8, 8)
    for _ in range(3):
        b = fkl.DeviceBuffer.from_ptr(t.data_ptr(), (8, 8), "float32")
        capsule = b.__dlpack__()
        del b, capsule
        gc.collect()
    assert (t.flatten() == torch.arange(64, device="cuda")).all()
    b = fkl.DeviceBuffer.from_ptr(t.data_ptr(), (8, 8), "float32", owner=t)
    assert b.device == 0 and (copy.deepcopy(b).to_numpy() == t.cpu().numpy()).all()
    host = np.zeros(64, np.float32)
    with pytest.raises(ValueError, match="pageable host memory"):
        fkl.DeviceBuffer.from_ptr(host.ctypes.data, (64,), "float32")
    pinned = torch.zeros(64).pin_memory()
    y = add(fkl.DeviceBuffer.from_ptr(pinned.data_ptr(), (64,), "float32"))
    assert (y.to_numpy() == 1).all()
    managed = cupy.cuda.malloc_managed(256)
    m = fkl.DeviceBuffer.from_ptr(managed.ptr, (64,), "float32")
    m.fill(2.0)
    assert (add(m).to_numpy() == 3).all()


def test_expandable_segments():
    code = """
import torch, fkl
x = torch.arange(4096, dtype=torch.float32, device="cuda").reshape(64, 64)
k = fkl.compose(fkl.TensorRead(), fkl.Add(1.0), fkl.TensorWrite())
assert (k(x) == x + 1).all()
b = fkl.DeviceBuffer.from_ptr(x.data_ptr(), (64, 64), "float32")
assert b.device == 0 and (torch.from_dlpack(k(b)) == x + 1).all()
"""
    import os

    for setting in ("expandable_segments:True", "backend:cudaMallocAsync"):
        env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": setting}
        subprocess.run([sys.executable, "-P", "-c", code], check=True, env=env)


def test_a_buffer_dropped_while_in_use():
    for _ in range(20):
        x, out, s = fkl.asarray(np.ones((1 << 20,), np.float32)), torch.zeros(1 << 20, device="cuda"), torch.cuda.Stream()
        k = fkl.compose(fkl.TensorRead(x), fkl.Add(1.0), fkl.TensorWrite(out))
        with torch.cuda.stream(s):
            torch.cuda._sleep(2_000_000)
        k(stream=s)
        del x, k
        y = fkl.empty((1 << 20,), "float32")
        y.fill(9.0)
        s.synchronize()
        assert (out == 2).all()


def test_exit_and_fork():
    exits = """
import fkl, sys, threading
b = fkl.empty((64,), "float32"); k = fkl.compose(fkl.TensorRead(b), fkl.Add(1.0), fkl.TensorWrite()); r = k(); s = fkl.Stream()
sys.kept = [b, k, r, s]; sys.kept.append(sys.kept); c = b.__dlpack__()
raise SystemExit(0)
"""
    done = subprocess.run([sys.executable, "-P", "-c", exits], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
    forks = """
import fkl, os, gc
b = fkl.empty((64,), "float32"); b.fill(1.0); k = fkl.compose(fkl.TensorRead(b), fkl.Add(1.0), fkl.TensorWrite(fkl.empty((64,)))); k()
pid = os.fork()
if pid == 0:
    try: k(); os._exit(3)
    except fkl.CudaError as e: ok = "fork" in str(e) and "spawn" in str(e)
    del b, k; gc.collect(); os._exit(0 if ok else 4)
assert os.waitpid(pid, 0)[1] == 0
assert (k().to_numpy() == 2).all()
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-P", "-c", forks], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_first_gpu_use_of_a_process_in_a_thread():
    code = """
import threading, numpy as np, fkl
r = []
def work():
    b = fkl.asarray(np.ones((8, 8), np.float32)); k = fkl.compose(fkl.TensorRead(b), fkl.Mul(3.0), fkl.TensorWrite())
    r.append(k().to_numpy()); del b, k
t = threading.Thread(target=work); t.start(); t.join()
assert (r[0] == 3).all()
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=True)
