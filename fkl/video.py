"""How video surfaces lie in memory: shapes and strides -> the record that `ReadYUV` loads through. Used by `fkl.binding`."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from fkl.dtypes import DType
from fkl.operations.base import Extents
from fkl.operations.video import VideoFormat

__all__ = ["VideoSurface", "video_surface"]


#: Bits of a pitch that the record holds; with a single row it does not matter.
_PITCH = 2**32 - 1


class VideoSurface(NamedTuple):
    """One surface: the size and type of its pixels, and the record of the parameter block."""

    extents: Extents
    dtype: DType
    record: bytes


def _rows(view: Any, what: str) -> tuple[int, int, int, int, int]:
    """Planes, rows, columns, plane stride and pitch of an array (H, W) or (P, H, W) with tight rows."""
    shape, strides = tuple(view.shape), tuple(view.strides)
    if len(shape) not in (2, 3):
        raise ValueError(f"{what} has 2 dimensions, or 3 with frames first, got shape {shape}")
    plane, pitch = _steps(shape, strides, view.itemsize, what)
    return shape[0] if len(shape) == 3 else 1, shape[-2], shape[-1], plane, pitch


def _steps(shape: tuple[int, ...], strides: tuple[int, ...], item: int, what: str) -> tuple[int, int]:
    """Plane stride and pitch of (H, W) or (P, H, W), for rows whose samples lie beside each other."""
    row = shape[-1] * item
    if 0 in shape:  # the strides of an array without elements mean nothing
        return row * shape[-2], row
    if shape[-1] > 1 and strides[-1] != item:
        raise ValueError(f"the samples of a row of {what} must lie beside each other, got strides {strides}; make it contiguous")
    pitch = strides[-2] if shape[-2] > 1 else row
    plane = strides[0] if len(shape) == 3 else pitch * shape[-2]
    if pitch >= 2**32 and shape[-2] > 1:
        raise ValueError(f"the rows of {what} lie {pitch} bytes apart, ReadYUV takes pitches below 2^32 bytes")
    if pitch < row or plane < 0:
        raise ValueError(f"the rows of {what} overlap or run backwards, strides {strides}; make it contiguous")
    return plane, pitch


def video_surface(name: str, fmt: VideoFormat, views: Sequence[Any]) -> VideoSurface:
    """See an array, or a pair of luma and chroma, as a video surface.

    Raises
    ------
    ValueError
        A shape that the format does not have, odd sizes, or strides that cannot be read.
    """
    luma = views[0]
    item = luma.itemsize
    planes, rows, columns, plane, pitch = _rows(luma, f"a {name} surface")
    rank = len(luma.shape)
    base = luma.ptr
    if fmt.kind == "packed":
        width, height = columns // 2, rows
        _even(name, width, None, columns % 2 or width % 2)
        first = int(not fmt.swapped)  # where luma lies in a pair of bytes
        u, v = base + 1 - first, base + 3 - first
        strides = (plane, plane, pitch & _PITCH, pitch & _PITCH, width // 2, height)
        addresses = (base + first, u, v)
    else:
        chroma_pitch, chroma_plane = pitch, plane
        width = columns
        if len(views) == 2:
            height = rows
            chroma = views[1]
            start, chroma_plane, chroma_pitch = _chroma(name, chroma, planes, width, height, rank)
        else:
            height = rows * 2 // 3
            if rows % 3:
                raise ValueError(f"a {name} surface has H * 3/2 rows, got {rows}")
            start = base + height * pitch
        _even(name, width, height, width % 2 or height % 2)
        cw, ch = width // 2, height // 2
        if fmt.kind == "semi":
            u, v = (start + item, start) if fmt.swapped else (start, start + item)
        else:
            if pitch != columns * item:
                raise ValueError(
                    f"a {name} surface has rows without gaps ({columns * item} bytes), as two chroma rows share one; got "
                    f"{pitch} bytes; make it contiguous"
                )
            chroma_pitch = pitch // 2
            second = start + ch * chroma_pitch
            u, v = (second, start) if fmt.swapped else (start, second)
        strides = (plane, chroma_plane, pitch & _PITCH, chroma_pitch & _PITCH, cw, ch)
        addresses = (base, u, v)
    extents = Extents(width, height, planes, rank)
    paired = fmt.kind == "semi" and not any(n % (2 * item) for n in (min(addresses[1:]), strides[1], strides[3]))
    record = struct.pack("<3Q2q2I4i", *addresses, *strides, fmt.shift, paired)
    return VideoSurface(extents, luma.dtype.with_channels(3), record)


def _chroma(name: str, chroma: Any, frames: int, width: int, height: int, rank: int) -> tuple[int, int, int]:
    """Address, plane stride and pitch of the chroma of a pair."""
    shape, strides, item = tuple(chroma.shape), tuple(chroma.strides), chroma.itemsize
    what = f"the chroma of a {name} surface"
    if len(shape) == rank + 1 and shape[-1] == 2:
        if 0 not in shape and (strides[-1] != item or (shape[-2] > 1 and strides[-2] != 2 * item)):
            raise ValueError(f"the samples of {what} must lie beside each other, got strides {strides}; make it contiguous")
        shape, strides = (*shape[:-2], shape[-2] * 2), (*strides[:-2], item)
    first = (frames,) if rank == 3 else ()
    if shape != (*first, height // 2, width):
        raise ValueError(
            f"{what} of shape {(*first, height, width)} has shape {(*first, height // 2, width)} or "
            f"{(*first, height // 2, width // 2, 2)}, got {tuple(chroma.shape)}"
        )
    return (chroma.ptr, *_steps(shape, strides, item, what))


def _even(name: str, width: int, height: int | None, odd: int) -> None:
    if odd:
        size = f"width {width}" if height is None else f"{width} x {height}"
        rule = "an even width" if height is None else "an even width and height"
        raise ValueError(f"a {name} surface has {rule}, got {size}; crop after reading the whole surface")
