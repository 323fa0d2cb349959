"""A chain compiled for one input type: plan, source text, and the code loaded for it. Called by `fkl.binding`.

Compiled code is shared: two chains with one source text share one library, whatever their values and bindings.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from fkl.codegen import generate
from fkl.dtypes import DType
from fkl.operations.base import Operation
from fkl.plan import Plan, make_plan

if TYPE_CHECKING:
    from fkl.runtime.launch import Library

__all__ = ["Variant", "gpu_library", "host_function", "loaded_modules", "module_limit", "tidy", "tidy_is_due"]

_lock = threading.Lock()
#: Code loaded on GPUs, least recently composed first: (source, fast_math, capability) -> Library.
_libraries: OrderedDict[tuple[str, bool, tuple[int, int]], Library] = OrderedDict()
#: Whether there may be more of it than the limit.
_crowded = False
#: Code loaded on the host: (source, fast_math) -> HostLibrary. Never unloaded.
_host: dict[tuple[str, bool], Any] = {}
#: Plans and their texts by the forms of the operations (`Operation.form`).
_plans: dict[tuple[Any, ...], tuple[Plan, str]] = {}
_MOST_PLANS = 256


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def module_limit() -> int:
    """How many GPU modules stay loaded although no kernel uses them (``FKL_MODULE_CACHE``, 128)."""
    text = os.environ.get("FKL_MODULE_CACHE", "").strip() or "128"
    if not text.isdecimal():
        raise ValueError(f"FKL_MODULE_CACHE must be a whole number, got {text!r}")
    return int(text)


def _planned(ops: tuple[Operation, ...], dtype: DType, listed: bool, fused: bool) -> tuple[Plan, str]:
    """The plan of a chain and its text; those of a chain of the same form with other values are taken over."""
    key = (tuple(op.form for op in ops), dtype, listed, fused)
    found = _plans.get(key)
    if found is not None:
        return found[0]._replace(ops=ops), found[1]
    plan = make_plan(ops, dtype, listed=listed, fused=fused)
    source = generate(plan)
    if None not in key[0]:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        # Without the operations, which hold arrays.
        _plans[key] = plan._replace(ops=()), source
    return plan, source


class Variant:
    """A chain for one input type.

    Parameters
    ----------
    ops : tuple of Operation
        A checked chain.
    dtype : DType
        The pixel type it reads.
    fast_math : bool
        Compile with contraction and approximate division.
    listed : bool
        Whether the input is a list of images.
    fused : bool
        Whether a thread may move several pixels.

    Attributes
    ----------
    plan : Plan
    source : str
        The generated text.
    """

    __slots__ = ("fast_math", "plan", "source")

    def __init__(self, ops: tuple[Operation, ...], dtype: DType, fast_math: bool, listed: bool, fused: bool) -> None:
        self.plan, self.source = _planned(ops, dtype, listed, fused)
        self.fast_math = fast_math

    @property
    def signature(self) -> str:
        """Digest of everything that would cause a compile."""
        return hashlib.sha256(f"{self.fast_math}\n{self.source}".encode()).hexdigest()[:32]

    def library(self, device: int) -> Library:
        """The chain's code for a device, compiled and loaded if it is not yet.

        Raises
        ------
        fkl.CompileError
            NVRTC is missing or refuses the source.
        fkl.CudaError
            The driver refuses the binary.
        """
        return gpu_library(self.source, self.fast_math, device)


def gpu_library(source: str, fast_math: bool, device: int) -> Library:
    """The code of a source for a device, compiled and loaded if it is not yet; see `Variant.library`."""
    from fkl.runtime.context import compute_capability

    capability = compute_capability(device)
    key = (source, fast_math, capability)
    with _lock:
        found = _libraries.get(key)
        if found is not None:
            _libraries.move_to_end(key)
            return found
    from fkl.compiler.gpu import binary
    from fkl.runtime.driver import driver_version
    from fkl.runtime.launch import Library

    global _crowded
    limit = max(module_limit(), 1)
    image = binary(source, capability, fast_math=fast_math, driver_major=driver_version() // 1000)
    made = Library(image)
    with _lock:
        _crowded = len(_libraries) >= limit
        return _libraries.setdefault(key, made)


def host_function(source: str, fast_math: bool) -> Any:
    """A source's band function on the host, compiled and loaded if it is not yet.

    Raises
    ------
    fkl.CompileError
        No host compiler, or it refuses the source.
    """
    key = (source, fast_math)
    found = _host.get(key)
    if found is None:
        from fkl.compiler.host import library

        found = _host.setdefault(key, library(source, fast_math=fast_math))
    return found


def tidy_is_due() -> bool:
    """Whether modules beyond the limit, or ones that no kernel uses any more, are still loaded."""
    import sys

    launch = sys.modules.get("fkl.runtime.launch")
    return launch is not None and (_crowded or launch.retired() > 0)


def tidy() -> None:
    """Forget the modules composed longest ago beyond the limit, and unload what nothing uses. Not while a stream captures."""
    from fkl.runtime.launch import unload_retired

    global _crowded
    with _lock:
        while len(_libraries) > max(module_limit(), 1):
            _libraries.popitem(last=False)
        _crowded = False
    unload_retired()


def loaded_modules() -> int:
    """How many GPU modules this process keeps loaded."""
    with _lock:
        return len(_libraries)
