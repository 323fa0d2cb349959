"""What arguments must be: an integer, or one of some words. Used wherever users hand in either."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

__all__ = ["index_of", "integer", "one_of"]


def index_of(value: Any) -> int | None:
    """The value of whatever counts as an integer; None for all else, such as booleans and arrays with dimensions."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def integer(value: Any, what: str) -> int:
    """An integer.

    Raises
    ------
    TypeError
        Something else.
    """
    found = index_of(value)
    if found is None:
        raise TypeError(f"{what} is an integer, got {value!r:.80}")
    return found


def one_of(value: Any, known: Sequence[str], what: str) -> Any:
    """One of some words.

    Raises
    ------
    ValueError
        Something else.
    """
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{what} is one of {', '.join(known)}, got {value!r:.80}")
    return value
