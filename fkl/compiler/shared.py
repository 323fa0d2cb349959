"""Work that several threads want at once is done by one of them. Used by both compilers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["SharedWork"]

T = TypeVar("T")


class SharedWork:
    """A lock for every key in use: whoever comes second waits, and gets the result of the first."""

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        """Begin anew; a forked child has none of the threads whose work it would wait for."""
        self._lock = threading.Lock()
        self._running: dict[str, _Task] = {}

    def once(self, key: str, work: Callable[[], T]) -> T:
        """The result of ``work()``, run by one thread for all that ask for this key meanwhile.

        An exception reaches all of them.
        """
        while True:
            with self._lock:
                task = self._running.get(key)
                mine = task is None
                if task is None:
                    task = self._running[key] = _Task()
            if mine:
                return self._run(key, task, work)
            task.done.wait()
            if task.failed is not None:
                raise task.failed
            if task.finished:
                return task.result  # type: ignore[return-value]
            # The thread that worked was interrupted; this one takes over.

    def _run(self, key: str, task: _Task, work: Callable[[], T]) -> T:
        try:
            result = work()
            task.result, task.finished = result, True
            return result
        except Exception as error:
            task.failed = error
            raise
        finally:
            with self._lock:
                self._running.pop(key, None)
            task.done.set()


class _Task:
    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: object = None
        self.finished = False
        self.failed: Exception | None = None
