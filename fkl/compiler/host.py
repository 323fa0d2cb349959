"""Source text -> code for the CPU target: the host's C++ compiler, the cache, and dlopen. Called by `fkl.variant`."""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from typing import Any

from fkl.compiler import cache, headers
from fkl.compiler.errors import CompileError, failed
from fkl.compiler.shared import SharedWork

__all__ = ["HostLibrary", "compiler_info", "library"]

_log = logging.getLogger("fkl")
_shared = SharedWork()
_CANDIDATES = ("c++", "g++", "clang++")


class HostLibrary:
    """A loaded chain on the CPU; stays loaded for the life of the process."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        self._handle = handle

    def function(self, name: str) -> Any:
        """A function ``(params, begin, end, chunk)`` of the library, which runs without the GIL."""
        found = self._handle[name]
        found.argtypes = [ctypes.c_char_p, ctypes.c_longlong, ctypes.c_longlong, ctypes.c_longlong]
        found.restype = None
        return found


def compiler_info() -> tuple[list[str], str]:
    """The host compiler's command and its version line.

    Raises
    ------
    CompileError
        There is none, or ``CXX`` names one that does not work.
    """
    return _compiler(os.environ.get("CXX", ""), os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _compiler(named: str, search_path: str) -> tuple[list[str], str]:
    try:
        words = shlex.split(named)
    except ValueError as error:
        raise CompileError(f"CXX={named!r} is no command: {error}; set CXX to the command of g++ or clang++") from None
    candidates = [words] if words else [[name] for name in _CANDIDATES]
    for command in candidates:
        path = shutil.which(command[0])
        if path is None:
            continue
        try:
            answer = subprocess.run(
                [path, *command[1:], "--version"], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            _log.debug("%s does not run: %s", path, error)
            continue
        if answer.returncode == 0 and answer.stdout.strip():
            return [path, *command[1:]], answer.stdout.splitlines()[0]
    wanted = f"CXX={named!r} does not run" if words else f"none of {', '.join(_CANDIDATES)} was found on PATH"
    raise CompileError(
        f'target="cpu" needs a C++17 compiler: {wanted}. Install g++ or clang++, or set CXX to the command of one'
    )


def options_for(fast_math: bool) -> list[str]:
    """Flags under which g++ and clang++ compute what the GPU computes, bit for bit (without ``fast_math``)."""
    flags = ["-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-w"]
    if platform.machine() == "aarch64":
        flags[2] = "-mcpu=native"
    # No errno and no traps only drop side effects; values stay IEEE.
    flags += ["-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing"]
    return [*flags, "-ffp-contract=fast", "-freciprocal-math"] if fast_math else [*flags, "-ffp-contract=off"]


@functools.cache
def _cpu() -> str:
    """What ``-march=native`` depends on: model and features."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = {line.split(":")[0].strip(): line for line in file}
    except OSError as error:
        _log.debug("no /proc/cpuinfo: %s", error)
        return platform.processor()
    return "".join(lines.get(name, "") for name in ("model name", "flags", "Features", "CPU implementer", "CPU part"))


def library(source: str, *, fast_math: bool) -> HostLibrary:
    """The loaded library of a source, from the cache or compiled.

    Raises
    ------
    CompileError
        No host compiler, or it refuses the source.
    """
    command, version = compiler_info()
    options = options_for(fast_math)
    key = cache.key_of("cpu", *command, version, _cpu(), *options, headers.digest(), source)
    return _shared.once(key, lambda: _load(key, command, version, options, source))


def _load(key: str, command: list[str], version: str, options: list[str], source: str) -> HostLibrary:
    found = _cached(key)
    if found is not None:
        return found
    with cache.claim(key):
        found = _cached(key)
        if found is not None:
            return found
        image = _compile(command, version, options, source)
        cache.put(key, image)
    try:
        return _open(image)
    except OSError as error:
        raise CompileError(f"a compiled CPU kernel cannot be loaded: {error}") from None


def _cached(key: str) -> HostLibrary | None:
    image = cache.get(key)
    if image is None:
        return None
    try:
        return _open(image)
    except OSError as error:
        _log.warning("a cached CPU kernel does not load and will be rebuilt: %s", error)
        return None


def _compile(command: list[str], version: str, options: list[str], source: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="fkl-", ignore_cleanup_errors=True) as folder:
        text, result = f"{folder}/chain.cpp", f"{folder}/chain.so"
        with open(text, "w") as file:
            file.write(source)
        answer = subprocess.run(
            [*command, *options, f"-I{headers.include_root()}", text, "-o", result],
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
        if answer.returncode != 0:
            raise failed(f"{command[0]} ({version})", options, answer.stderr or answer.stdout, source, ".cpp")
        with open(result, "rb") as file:
            return file.read()


def _open(image: bytes) -> HostLibrary:
    """Load an image through a file that is deleted at once.

    The loader knows libraries by name, so each gets a name of its own. The temporary directory may be mounted without
    the right to execute; the cache directory is tried then.
    """
    problem: OSError | None = None
    for folder in (None, cache.directory()):
        if folder is None and problem is not None:
            break
        try:
            with tempfile.NamedTemporaryFile(prefix="fkl-", suffix=".so", dir=folder) as file:
                file.write(image)
                file.flush()
                return HostLibrary(ctypes.CDLL(file.name))
        except OSError as error:
            problem = error
    assert problem is not None
    raise problem
