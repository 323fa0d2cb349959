"""How a chain ends: `TensorWrite TensorSplit TensorTSplit SplitWrite`."""

from __future__ import annotations

from typing import Any, ClassVar

from fkl.dtypes import DType
from fkl.operations.base import Extents, Field, Lowered, Write
from fkl.operations.reads import IMAGE_FIELD

__all__ = ["PerThreadWrite", "SplitWrite", "TensorSplit", "TensorTSplit", "TensorWrite"]


class TensorWrite(Write):
    """Write packed pixels: (H, W[, C]), with planes (P, H, W[, C]).

    Parameters
    ----------
    dest : array, optional
        The array to bind; without it each call allocates one in the input's own framework, unless given ``out=``.
    """

    layout: ClassVar[str] = "packed"

    def __init__(self, dest: Any = None) -> None:
        if isinstance(dest, (list, tuple)):
            raise TypeError(f"{type(self).__name__} writes one array, not a list; SplitWrite takes a list of channels")
        self.dest = dest

    def shape(self, extents: Extents, dtype: DType) -> tuple[int, ...]:
        """The array's shape for this size and type."""
        spatial = _spatial(extents, extents.rank)
        return (*spatial, dtype.channels) if dtype.channels > 1 or extents.unit_channel else spatial

    def format(self, dtype: DType) -> str:
        """The C++ type that stores a pixel."""
        return f"Packed<{dtype.ctype}, {dtype.channels}>"

    @property
    def form(self) -> tuple[Any, ...] | None:
        return (type(self),)

    def lower(self, dtype: DType) -> Lowered:
        return Lowered("", (IMAGE_FIELD,), dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'<bound>' if self.dest is not None else ''})"


class PerThreadWrite(TensorWrite):
    """Another name of `TensorWrite`."""


class TensorSplit(TensorWrite):
    """Write each channel to a plane of its own: (C, H, W), with planes (P, C, H, W).

    A one-channel chain is a plain write, (H, W) or (P, H, W).

    Parameters
    ----------
    dest : array, optional
        The array to bind.
    """

    layout: ClassVar[str] = "split"

    def shape(self, extents: Extents, dtype: DType) -> tuple[int, ...]:
        height_width = (extents.height, extents.width)
        planes = (extents.planes,) if extents.rank == 3 else ()
        channels = (dtype.channels,) if dtype.channels > 1 else ()
        return (*planes, *channels, *height_width)

    def format(self, dtype: DType) -> str:
        return f"Planar<{dtype.ctype}, {dtype.channels}>"


class TensorTSplit(TensorSplit):
    """Write each channel of all planes together: (C, H, W), with planes (C, P, H, W).

    Parameters
    ----------
    dest : array, optional
        The array to bind.
    """

    layout: ClassVar[str] = "tsplit"

    def shape(self, extents: Extents, dtype: DType) -> tuple[int, ...]:
        height_width = (extents.height, extents.width)
        planes = (extents.planes,) if extents.rank == 3 else ()
        channels = (dtype.channels,) if dtype.channels > 1 else ()
        return (*channels, *planes, *height_width)


class SplitWrite(TensorSplit):
    """Write each channel to memory of its own: (C, H, W), with planes (P, C, H, W), or a list of C buffers (H, W).

    Parameters
    ----------
    dest : array or list of arrays, optional
        The array, or one array per channel, to bind.
    """

    layout: ClassVar[str] = "separate"

    def __init__(self, dest: Any = None) -> None:
        self.dest = list(dest) if isinstance(dest, (list, tuple)) else dest

    def format(self, dtype: DType) -> str:
        return f"Separate<{dtype.ctype}, {dtype.channels}>"

    def lower(self, dtype: DType) -> Lowered:
        return Lowered("", (Field(f"Images<{dtype.channels}>", 24 * dtype.channels, 8),), dtype)


def _spatial(extents: Extents, rank: int) -> tuple[int, ...]:
    return (extents.planes, extents.height, extents.width)[3 - rank :]
