"""Which NVRTC to use: the libraries found on this machine, by file name, and the choice among them."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import NamedTuple

from fkl.compiler.errors import CompileError

__all__ = ["Found", "choose", "installed"]

_LIBRARY = re.compile(r"libnvrtc\.so\.(\d+)$")
_BUILTINS = re.compile(r"libnvrtc-builtins\.so\.(\d+)\.(\d+)$")
#: Where the wheels put it, below a folder of sys.path: CUDA 13 shares one tree, CUDA 12 has one per component.
_WHEELS = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib")


class Found(NamedTuple):
    """One NVRTC on disk; its version is read from the name of its companion, without loading it."""

    version: tuple[int, int]
    path: str
    builtins: str | None


def in_folder(folder: str) -> Found | None:
    """The newest NVRTC of a folder."""
    try:
        names = os.listdir(folder)
    except OSError:  # most of the folders looked at do not exist
        return None
    libraries = {int(m[1]): m[0] for m in map(_LIBRARY.match, names) if m}
    builtins = {(int(m[1]), int(m[2])): m[0] for m in map(_BUILTINS.match, names) if m}
    if not libraries:
        return None
    major = max(libraries)
    versions = [v for v in builtins if v[0] == major]
    version = max(versions, default=(major, 0))
    companion = f"{folder}/{builtins[version]}" if versions else None
    return Found(version, f"{folder}/{libraries[major]}", companion)


@functools.lru_cache(maxsize=8)
def _installed(named: str, folders: tuple[str, ...]) -> tuple[Found, ...]:
    if named:
        found = in_folder(os.path.dirname(os.path.abspath(named)))
        if not os.path.isfile(named):
            raise CompileError(f"FKL_NVRTC names {named}, which is no file; name libnvrtc.so.<major>, or unset it")
        if found is not None and os.path.samefile(found.path, named):
            return (found,)
        match = re.search(r"\.so\.(\d+)(?:\.(\d+))?", named)
        version = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
        return (Found(version, os.path.abspath(named), None),)
    every = [in_folder(f"{folder}/{wheel}") for folder in folders for wheel in _WHEELS]
    return tuple(dict.fromkeys(f for f in every if f is not None))


def installed(*, search: bool = True) -> list[Found]:
    """Every NVRTC found, in order of preference.

    Parameters
    ----------
    search : bool
        Ask cuda-pathfinder (conda, toolkits, the system) if no wheel is installed; it takes some 50 ms.

    Raises
    ------
    CompileError
        ``FKL_NVRTC`` names no file.
    """
    found = list(_installed(os.environ.get("FKL_NVRTC", ""), tuple(p for p in sys.path if p)))
    if not found and search:
        other = _pathfinder()
        if other is not None:
            found.append(other)
    return found


@functools.cache
def _pathfinder() -> Found | None:
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib  # type: ignore[import-untyped]

    try:
        path = load_nvidia_dynamic_lib("nvrtc").abs_path
    except DynamicLibNotFoundError:
        return None
    if path is None:
        return None
    real = os.path.realpath(path)
    found = in_folder(os.path.dirname(path)) or in_folder(os.path.dirname(real))
    if found is not None:
        return found
    match = re.search(r"\.so\.(\d+)(?:\.(\d+))?", real)
    return Found((int(match[1]), int(match[2] or 0)) if match else (0, 0), path, None)


def choose(found: list[Found], driver_major: int) -> Found:
    """The NVRTC whose binaries this driver can load: of its own major version, else the newest lower one.

    Raises
    ------
    CompileError
        None is installed, or newer ones only.
    """
    if not found:
        raise CompileError(
            "no NVRTC was found (looked for wheels on sys.path, conda, CUDA_PATH and the system): "
            f'pip install "fkl-cuda[cuda{_extra(driver_major)}]", or set FKL_NVRTC to the path of a libnvrtc.so'
        )
    fit = [f for f in found if f.version[0] <= driver_major]
    if not fit:
        have = ", ".join(f"{f.version[0]}.{f.version[1]} ({f.path})" for f in found)
        raise CompileError(
            f"the driver supports CUDA {driver_major}, the NVRTC found is newer: {have}. Its code would not load; "
            f'pip install "fkl-cuda[cuda{_extra(driver_major)}]", or update the driver'
        )
    return max(fit, key=lambda f: f.version[0])


def _extra(major: int) -> int:
    return 12 if major <= 12 else 13
