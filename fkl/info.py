"""``python -m fkl info``: what fkl finds on this machine, and what to do about what is missing."""

from __future__ import annotations

import platform
import sys

__all__ = ["print_info"]


def print_info() -> int:
    """Print everything; 0 if at least one target can be used."""
    from fkl import __version__

    _line("fkl", f"{__version__}, Python {sys.version.split()[0]}, {platform.machine()}")
    gpu = _driver()
    gpu = _nvrtc() and gpu
    cpu = _host()
    _cache()
    print()
    for name, ready in (("GPU target", gpu), ("CPU target", cpu)):
        _line(name, "ready" if ready else "not usable, see above")
    return 0 if gpu or cpu else 1


def _line(name: str, text: str) -> None:
    print(f"{name:<15} {text}")


def _driver() -> bool:
    from fkl.runtime.context import compute_capability, device_count, device_name, memory_info
    from fkl.runtime.driver import driver_version
    from fkl.runtime.errors import CudaError

    try:
        version = driver_version()
        count = device_count()
    except CudaError as error:
        _line("CUDA driver", f"none: {error}")
        return False
    _line("CUDA driver", f"supports CUDA {version // 1000}.{version % 1000 // 10}")
    for i in range(count):
        try:
            available, total = memory_info(i)
            memory = f"{available / 2**30:.1f} of {total / 2**30:.1f} GiB free"
        except CudaError as error:
            memory = f"cannot be used: {error}"
        _line(f"device {i}", "{}, compute capability {}.{}, {}".format(device_name(i), *compute_capability(i), memory))
    if count == 0:
        _line("devices", 'none; target="cpu" works without one')
    return count > 0


def _nvrtc() -> bool:
    from fkl.compiler.errors import CompileError
    from fkl.compiler.finder import choose, installed
    from fkl.runtime.driver import driver_version, is_loaded

    try:
        found = installed()
        for one in found:
            _line("NVRTC", "{}.{} at {}".format(*one.version, one.path))
        if not is_loaded() and found:
            return True
        choose(found, driver_version() // 1000 if is_loaded() else 13)
    except CompileError as error:
        _line("NVRTC", str(error))
        return False
    return True


def _host() -> bool:
    from fkl.compiler.errors import CompileError
    from fkl.compiler.host import compiler_info
    from fkl.compiler.threads import thread_count

    try:
        command, version = compiler_info()
    except CompileError as error:
        _line("host compiler", str(error))
        return False
    _line("host compiler", f"{' '.join(command)} ({version}), {thread_count()} threads (FKL_NUM_THREADS)")
    return True


def _cache() -> None:
    from fkl.compiler import cache

    folder, count, size = cache.statistics()
    if folder is None:
        _line("cache", f"none in use, kernels are compiled in each process: {cache.why_none()}")
    else:
        _line("cache", f"{folder}: {count} entries, {size / 2**20:.1f} MiB (FKL_CACHE_DIR, FKL_CACHE_SIZE)")
