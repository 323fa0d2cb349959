"""Whether two arrays share bytes, exactly, from addresses, shapes and strides alone. Called by `fkl.binding`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

__all__ = ["overlaps"]


def overlaps(
    a: tuple[int, Sequence[int], Sequence[int], int], b: tuple[int, Sequence[int], Sequence[int], int]
) -> bool:
    """Whether two strided arrays have a byte in common.

    Parameters
    ----------
    a, b : (address, shape, strides in bytes, itemsize)
        Strides must not be negative. The memory is not touched, so device addresses are fine.

    Returns
    -------
    bool
        Exact: interleaved windows of one allocation do not overlap. (`numpy.shares_memory` decides where the address
        ranges cross; if that is too hard, the answer is True.)
    """
    (low_a, high_a), (low_b, high_b) = _range(*a), _range(*b)
    if low_a >= high_b or low_b >= high_a:
        return False
    import numpy

    try:
        return bool(numpy.shares_memory(_shadow(numpy, *a), _shadow(numpy, *b), max_work=1 << 20))  # type: ignore[arg-type]
    except numpy.exceptions.TooHardError:
        return True


def _range(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    return address, address + _reach(tuple(shape), tuple(strides), itemsize)


@lru_cache(maxsize=512)
def _reach(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> int:
    """Bytes from the first element's to behind the last one's."""
    return 0 if 0 in shape else sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + itemsize


class _Shadow:
    """An array interface over an address that is never read."""

    def __init__(self, interface: dict[str, object]) -> None:
        self.__array_interface__ = interface


def _shadow(numpy, address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int):  # type: ignore[no-untyped-def]
    interface = {"version": 3, "shape": tuple(shape), "strides": tuple(strides), "data": (address, False)}
    return numpy.asarray(_Shadow({**interface, "typestr": f"|V{itemsize}"}))
