"""The launches of other libraries for `launch.py`: the same 64 floats, doubled."""

from __future__ import annotations

CODE = 'extern "C" __global__ void twice(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x] * 2; }'


def contenders(torch, x, z, side, pairs_of):
    """Name -> (function, how many calls it makes), for every library that is installed."""
    found = {}
    for add in (_cupy, _cuda_core, _triton, _torch):
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


def _triton(torch, x, z, side, pairs_of):
    import tempfile
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
