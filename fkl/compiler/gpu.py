"""Source text -> GPU binary: cache, NVRTC, and threads that share one compile. Called by `fkl.variant`."""

from __future__ import annotations

import functools
import os
import threading
from typing import TYPE_CHECKING

from fkl.compiler import cache, headers
from fkl.compiler.errors import CompileError, failed
from fkl.compiler.finder import Found, choose, installed
from fkl.compiler.shared import SharedWork

if TYPE_CHECKING:
    from fkl.compiler.nvrtc import Nvrtc

__all__ = ["binary", "compile_count"]

_lock = threading.Lock()
_compiles = 0
_shared = SharedWork()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def compile_count() -> int:
    """How many programs this process has compiled with NVRTC."""
    return _compiles


@functools.cache
def _nvrtc(found: Found) -> Nvrtc:
    from fkl.compiler.nvrtc import Nvrtc

    try:
        return Nvrtc(found.path, found.builtins)
    except OSError as error:
        raise CompileError(f"NVRTC at {found.path} cannot be opened: {error}") from None


def options_for(architecture: str, fast_math: bool) -> list[str]:
    """NVRTC's options. Without ``fast_math`` every operation rounds by itself, as on the CPU target."""
    options = [f"-arch={architecture}", "-std=c++17", "-minimal"]
    # Denormals are kept in both modes; fast_math contracts and approximates division and square root.
    if fast_math:
        return [*options, "--fmad=true", "--prec-div=false", "--prec-sqrt=false", "-DFKL_FAST_MATH"]
    return [*options, "--fmad=false"]


def binary(source: str, capability: tuple[int, int], *, fast_math: bool, driver_major: int) -> bytes:
    """The cubin of a source for a device, from the cache or compiled.

    Parameters
    ----------
    source : str
        A generated chain.
    capability : (int, int)
        The device's compute capability.
    fast_math : bool
        Allow contraction and approximate division.
    driver_major : int
        Major CUDA version of the driver; what NVRTC is chosen by.

    Returns
    -------
    bytes
        A cubin for exactly this capability; PTX, ending in a NUL, for a device newer than NVRTC knows.

    Raises
    ------
    CompileError
        No usable NVRTC, a device it no longer knows, or a source it refuses.
    """
    arch = f"sm_{capability[0]}{capability[1]}"
    options = options_for(arch, fast_math)
    known = installed(search=False)
    key = cache.key_of("gpu", arch, *options, headers.digest(), source)
    if not known:
        # Without any NVRTC at hand the newest entry that another one left will do.
        found = cache.newest(key)
        if found is not None:
            return found
        known = installed()
    chosen = choose(known, driver_major)
    entry = "{}-{}.{}".format(key, *chosen.version)
    found = cache.get(entry)
    if found is not None:
        return found

    def build() -> bytes:
        with cache.claim(entry):
            image = cache.get(entry)
            if image is None:
                image = _compile(chosen, source, capability, options)
                cache.put(entry, image)
        return image

    return _shared.once(entry, build)


def _compile(chosen: Found, source: str, capability: tuple[int, int], options: list[str]) -> bytes:
    global _compiles
    nvrtc = _nvrtc(chosen)
    name = "NVRTC {}.{}".format(*nvrtc.version)
    number = capability[0] * 10 + capability[1]
    archs = nvrtc.supported_archs()
    ptx = False
    if archs and number < archs[0]:
        raise CompileError(
            f"{name} ({chosen.path}) no longer compiles for compute capability {capability[0]}.{capability[1]}; "
            'its oldest is {}.{}. pip install "fkl-cuda[cuda12]", or use target="cpu"'.format(*divmod(archs[0], 10))
        )
    if archs and number not in archs:
        # A device that came after this NVRTC: the driver translates PTX of the newest level below it.
        level = max(a for a in archs if a < number)
        options = [f"-arch=compute_{level}", *options[1:]]
        ptx = True
    status, image, log = nvrtc.compile(source.encode(), headers.header_texts(), options, ptx)
    with _lock:
        _compiles += 1
    if status != 0:
        raise failed(name, options, log, source, ".cu")
    return image
