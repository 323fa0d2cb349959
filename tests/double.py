"""The driver test double: built once, used in fresh interpreters, so that every test has a driver of its own."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import fkl

HERE = Path(__file__).parent / "driver" / "double"

#: What every script starts with: the double's own functions, and chains that run on the host compiler's code.
PREAMBLE = """
import ctypes, gc, os, subprocess, sys, tempfile, threading
import numpy as np
D = ctypes.CDLL(os.environ["FKL_CUDA_DRIVER"])
D.double_log.restype = ctypes.c_char_p
D.double_alloc.restype = ctypes.c_uint64
D.double_alloc.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_int]
D.double_capture.argtypes = [ctypes.c_void_p, ctypes.c_int]
D.double_fault.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]

def log():
    return D.double_log().decode()

def calls(name):
    return sum(line.split()[0] == name for line in log().splitlines())

HOOK = '''
extern "C" void fkl_double_launch(const void* argument, const unsigned*, const unsigned*) {
#ifdef FKL_LARGE_PARAMETERS
  const Params* p = *(const Params* const*)argument;
#else
  const Params* p = (const Params*)argument;
#endif
  const fkl::i64 units = (p->out.width + 16383) / 16384 * p->out.height * p->out.planes;
  fkl_band(p, 0, units, 16384);
}
extern "C" unsigned fkl_double_size;
#ifdef FKL_LARGE_PARAMETERS
unsigned fkl_double_size = sizeof(void*);
#else
unsigned fkl_double_size = sizeof(Params);
#endif
'''
compiled = []

def binary(source, capability, *, fast_math, driver_major):
    import hashlib
    from fkl.compiler import headers
    compiled.append(capability)
    path = os.path.join(os.environ["FKL_DOUBLE_CODE"], hashlib.sha256(source.encode()).hexdigest()[:24] + ".so")
    if not os.path.exists(path):
        text = path[:-3] + f"-{os.getpid()}.cpp"
        with open(text, "w") as file:
            file.write(source + HOOK)
        subprocess.run(["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-w", "-I" + headers.include_root(),
                        text, "-o", path + ".new"], check=True)
        os.replace(path + ".new", path)
    return b"FKLDOUBLE " + path.encode() + bytes(1)

import fkl
import fkl.compiler.gpu
fkl.compiler.gpu.binary = binary
"""


def _folder(prefix: str) -> str:
    """A directory that goes with this process."""
    path = tempfile.mkdtemp(prefix=prefix)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@functools.cache
def library() -> str:
    """Path of the double, compiled by the host's C compiler."""
    folder = _folder("fkl-double-")
    path = f"{folder}/libfakecuda.so"
    abi = Path(fkl.__file__).parent / "runtime" / "abi"
    include = abi if abi.is_dir() else Path(__file__).parents[1] / "fkl" / "runtime" / "abi"
    compiler = shutil.which("cc") or shutil.which("gcc") or "clang"
    subprocess.run(
        [compiler, "-std=gnu11", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{include}",
         str(HERE / "fake_cuda.c"), "-o", path, "-ldl", "-lpthread"],
        check=True,
    )  # fmt: skip
    return path


@functools.cache
def code_folder() -> str:
    """Where chains compiled for the double are kept between the tests of a run."""
    return _folder("fkl-double-code-")


def run(script: str, *, preamble: str = PREAMBLE, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh interpreter whose CUDA driver is the double."""
    env = {**os.environ, "FKL_CUDA_DRIVER": library(), "FKL_DOUBLE_CODE": code_folder(), "FKL_LAUNCH": "graph", **environment}
    return subprocess.run(
        [sys.executable, "-P", "-c", preamble + textwrap.dedent(script)], env=env, capture_output=True, text=True, timeout=300, check=False
    )


def check(script: str, **environment: str) -> str:
    """Run a script that must end well and say nothing on stderr; returns its output."""
    done = run(script, **environment)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.stderr == "", done.stderr
    return done.stdout


#: More words for scripts: chains, images, and calls that must raise.
MORE = """
from fkl.layout import ShapeError

def raises(kind, words, f, *args, **kwargs):
    before = D.double_launches()
    try:
        f(*args, **kwargs)
    except kind as e:
        assert type(e) in (kind, fkl.ChainError, ShapeError), (type(e), e)
        for word in words.split("&"):
            assert word in str(e), (word, str(e))
    else:
        raise SystemExit(f"no {kind.__name__} ({words})")
    assert D.double_launches() == before, "something was launched"
rng = np.random.default_rng(1)
def image(h=9, w=14, c=3, dtype="uint8"):
    return rng.integers(0, 200, (h, w, c)).astype(dtype)
dev = fkl.asarray
def chain(x=None, out=None, v=2.0, **kw):
    return fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.Mul(v), fkl.TensorSplit(out), **kw)
want = lambda a, v=2.0: (a.astype(np.float32) * np.float32(v)).transpose(2, 0, 1)
same = lambda buffer, array: bool((buffer.to_numpy() == array).all())
"""


def script(text: str) -> None:
    """Check a script that uses these words."""
    check(MORE + textwrap.dedent(text))
