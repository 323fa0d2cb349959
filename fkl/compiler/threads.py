"""The threads of the CPU target: bands of rows in a pool that survives forks."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["run_bands", "thread_count"]

_log = logging.getLogger("fkl")
_lock = threading.Lock()
#: The pools of this process, by the number of their threads; one but for changes of ``FKL_NUM_THREADS``.
_pools: dict[int, ThreadPoolExecutor] = {}


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
    """The pool of this many threads. None is ever shut down, as another thread may be using it."""
    with _lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="fkl")
        return _pools[workers]


def _after_fork() -> None:
    """A child has none of the threads."""
    global _lock
    _lock = threading.Lock()
    _pools.clear()


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
    available = thread_count()
    threads = min(available, max(units // max(grain, 1), 1))
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

    futures = []
    try:
        for _ in range(threads - 1):
            futures.append(_executor(available - 1).submit(work))
    except RuntimeError as error:  # the interpreter is ending, or the system gives no more threads: those that are there do it
        _log.debug("%d of %d threads help: %s", len(futures), threads - 1, error)
    try:
        work()
    finally:
        # Helpers that have not begun find nothing left to do; waiting for them could wait for this very thread.
        errors = [future.exception() for future in futures if not future.cancel()]
    for failure in errors:
        if failure is not None:
            raise failure
