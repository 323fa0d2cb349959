"""The threads of the CPU target: bands of rows in a pool that survives forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["run_bands", "thread_count"]

_lock = threading.Lock()
_pool: tuple[int, int, ThreadPoolExecutor] | None = None


def thread_count() -> int:
    """Threads to use: the CPUs this process may run on, capped by ``FKL_NUM_THREADS``.

    Raises
    ------
    ValueError
        ``FKL_NUM_THREADS`` is not a positive whole number.
    """
    available = len(os.sched_getaffinity(0))
    text = os.environ.get("FKL_NUM_THREADS", "").strip()
    if not text:
        return available
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"FKL_NUM_THREADS must be a whole number of 1 or more, got {text!r}")
    return min(available, int(text))


def _executor(workers: int) -> ThreadPoolExecutor:
    """The pool of this process; a forked child and a changed thread count get a new one."""
    global _pool
    with _lock:
        if _pool is None or _pool[:2] != (os.getpid(), workers):
            if _pool is not None:
                _pool[2].shutdown(wait=False)
            _pool = (os.getpid(), workers, ThreadPoolExecutor(workers, thread_name_prefix="fkl"))
        return _pool[2]


def _after_fork() -> None:
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def run_bands(function: Callable[[int, int], object], units: int, grain: int) -> None:
    """Call ``function(begin, end)`` for bands that cover [0, units), in several threads.

    Parameters
    ----------
    function : callable
        Should release the GIL; an exception of any band is raised here, after all bands have ended.
    units : int
    grain : int
        Fewest units worth a band of their own; the caller's thread takes part.
    """
    threads = min(thread_count(), max(units // max(grain, 1), 1))
    if threads <= 1:
        function(0, units)
        return
    # Four bands a thread even out uneven ones.
    bands = min(threads * 4, max(units // max(grain, 1), 1))
    edges = [units * i // bands for i in range(bands + 1)]
    todo = iter([(edges[i], edges[i + 1]) for i in range(bands)])
    turn = threading.Lock()

    def work() -> None:
        while True:
            with turn:
                band = next(todo, None)
            if band is None:
                return
            function(*band)

    futures = [_executor(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        # Helpers that have not begun find nothing left to do; waiting for them could wait for this very thread.
        errors = [future.exception() for future in futures if not future.cancel()]
    for error in errors:
        if error is not None:
            raise error
