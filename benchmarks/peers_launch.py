"""The launches of other libraries for `launch.py`: the same 64 floats, doubled."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CODE = 'extern "C" __global__ void twice(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] * 2; }'


def contenders(torch, x, z, side, pairs_of):
    """Name -> (function, how many calls it makes), for every library that is installed."""
    found = {}
    for add in (_cupy, _cuda_core, _fkl_cpp, _triton, _torch, _jax):
        try:
            found |= add(torch, x, z, side, pairs_of)
        except ImportError as error:
            print(f"not measured: {error}")
    return found


def _cupy(torch, x, z, side, pairs_of):
    import cupy

    import fkl

    stream = cupy.cuda.ExternalStream(side.cuda_stream)
    stream.use()
    kernel = cupy.RawKernel(CODE, "twice")
    a, b = cupy.asarray(x), cupy.asarray(z)
    kernel((1,), (64,), (a, b))
    arrays = [(cupy.random.rand(64).astype("f4"), cupy.zeros(64, "f4")) for _ in range(10)]
    k = fkl.compose(fkl.TensorRead(a), fkl.Mul(2.0), fkl.TensorWrite(b))
    unbound = fkl.compose(fkl.TensorRead(), fkl.Mul(2.0), fkl.TensorWrite())
    unbound(a, out=b)
    return {
        "k(), cupy": (lambda: (k(), k(), k(), k(), k()), 5),
        "k(x, out=y), cupy": (pairs_of(unbound, arrays), 10),
        "k(x), cupy": (lambda: (unbound(a), unbound(a), unbound(a), unbound(a), unbound(a)), 5),
        "cupy RawKernel": (lambda: kernel((1,), (64,), (a, b)), 1),
        "cupy multiply(x, 2, out=y)": (lambda: cupy.multiply(a, 2, out=b), 1),
    }


def _cuda_core(torch, x, z, side, pairs_of):
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, Stream, launch

    device = Device(0)
    device.set_current()
    major, minor = torch.cuda.get_device_capability()
    program = Program(CODE, code_type="c++", options=ProgramOptions(arch=f"sm_{major}{minor}"))
    kernel = program.compile("cubin").get_kernel("twice")
    stream, config = Stream.from_handle(side.cuda_stream), LaunchConfig(grid=1, block=64)
    a, b = x.data_ptr(), z.data_ptr()
    launch(stream, config, kernel, a, b)
    return {"cuda.core launch": (lambda: launch(stream, config, kernel, a, b), 1)}


def _fkl_cpp(torch, x, z, side, pairs_of):
    """FKL's C++ called through ctypes, as its Python front-end does."""
    folder, nvcc = os.environ.get("FKL_CPP"), shutil.which("nvcc")
    if not folder or nvcc is None:
        raise ImportError("FKL C++ (FKL_CPP names its include folder, nvcc is on PATH)")
    major, minor = torch.cuda.get_device_capability()
    with tempfile.TemporaryDirectory() as build:
        options = ["-w", "-std=c++20", "-O3", f"-arch=sm_{major}{minor}", "--expt-relaxed-constexpr", "-Xcompiler", "-fPIC", "-shared"]
        source = Path(__file__).with_name("peer_fkl.cu")
        subprocess.run([nvcc, *options, "-I", folder, source, "-o", f"{build}/peer.so"], check=True)
        twice = ctypes.CDLL(f"{build}/peer.so").twice
    twice.argtypes, twice.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint], None
    stream, a, b = side.cuda_stream, x.data_ptr(), z.data_ptr()
    twice(stream, a, b, 64)
    torch.cuda.synchronize()
    assert (z == x * 2).all()
    return {"FKL C++ through ctypes": (lambda: twice(stream, a, b, 64), 1)}


def _jax(torch, x, z, side, pairs_of):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax

    twice = jax.jit(lambda t: t * 2)
    a = jax.numpy.asarray(x.cpu().numpy())
    twice(a).block_until_ready()
    return {"jax jit": (lambda: twice(a), 1)}


def _triton(torch, x, z, side, pairs_of):
    from importlib.util import module_from_spec, spec_from_file_location

    import triton  # noqa: F401

    # triton reads a kernel's text from its file.
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(
            "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef twice(x, y, n: tl.constexpr):\n"
            "    at = tl.arange(0, n)\n    tl.store(y + at, tl.load(x + at) * 2)\n"
        )
    spec = spec_from_file_location("fkl_triton_peer", file.name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.twice[(1,)](x, z, 64)
    return {"triton kernel[grid](...)": (lambda: module.twice[(1,)](x, z, 64), 1)}


def _torch(torch, x, z, side, pairs_of):
    compiled = torch.compile(lambda t: t * 2)
    compiled(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        torch.mul(x, 2, out=z)
    return {"torch CUDAGraph.replay()": (graph.replay, 1), "torch.compile": (lambda: compiled(x), 1)}
