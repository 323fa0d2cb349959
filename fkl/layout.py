"""How arrays lie in memory: shapes and strides -> the records of a parameter block, and what may overlap what.

Pure arithmetic on shapes, strides (in bytes) and addresses; it touches no array, and what it found for a layout is kept, so that
composing and calling with another array of one layout costs little. Called by `fkl.binding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from fkl.dtypes import DType, fold_shape
from fkl.operations.base import Extents

__all__ = ["ShapeError", "Surface", "collapse", "destination_surface", "packed_surface", "planar_surface", "tight_strides"]


class ShapeError(ValueError):
    """An output of another shape than the chain writes, which another input may make right."""


class Surface(NamedTuple):
    """One array seen as planes of rows of pixels; strides in bytes.

    ``unit`` is the distance of neighbouring pixels in a row: the pixel's size, or the scalar's if planar.
    """

    extents: Extents
    dtype: DType
    pitch: int
    plane: int
    channel: int
    unit: int


def tight_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Row-major strides in bytes of an array without gaps."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@lru_cache(maxsize=512)
def packed_surface(shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, channels: int | None) -> Surface:
    """See an array as packed pixels, by the folding rule.

    Raises
    ------
    ValueError
        A 0-d array, a shape that does not fold, or strides that cannot be read in place.
    """
    folded = fold_shape(tuple(shape), channels)
    c = folded.channels if folded.packed else 1
    pixel = dtype.with_channels(c)
    spatial = list(strides[:-1] if folded.packed else strides)
    if folded.packed and c > 1 and 0 not in shape and strides[-1] != dtype.itemsize:
        raise ValueError(
            f"the channels of an array of shape {tuple(shape)} must lie beside each other (stride {dtype.itemsize} bytes), "
            f"this one has {strides[-1]}; make it contiguous (.contiguous(), ascontiguousarray), or read a planar "
            "array with TensorPack"
        )
    extents = Extents(folded.width, folded.height, folded.planes, folded.rank, folded.packed and c == 1)
    plane, pitch = _rows(shape, strides, spatial, extents, pixel.pixelsize)
    return Surface(extents, pixel, pitch, plane, 0, pixel.pixelsize)


@lru_cache(maxsize=512)
def planar_surface(shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, channels: int) -> Surface:
    """See a (C, H, W), (P*C, H, W) or (P, C, H, W) array as planar pixels.

    Raises
    ------
    ValueError
        Another shape, or strides that cannot be read in place.
    """
    if len(shape) == 4 and shape[1] == channels:
        planes, _, height, width = shape
        plane, channel, *spatial = strides
        rank = 3
    elif len(shape) == 3 and shape[0] % channels == 0:
        planes, height, width = shape[0] // channels, shape[1], shape[2]
        channel, *spatial = strides
        plane = channel * channels
        rank = 2 if planes == 1 else 3
    else:
        raise ValueError(
            f"TensorPack({channels}) reads (C, H, W), (P*C, H, W) or (P, C, H, W) with C = {channels}, "
            f"got shape {tuple(shape)}"
        )
    extents = Extents(width, height, planes, rank)
    if 0 not in shape:
        _check_order(shape, strides, dtype.itemsize)
    _, pitch = _rows(shape, strides, spatial, extents, dtype.itemsize)
    if channels == 1:
        channel = 0
    return Surface(extents, dtype.with_channels(channels), pitch, plane, channel, dtype.itemsize)


@lru_cache(maxsize=512)
def destination_surface(
    layout: str, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, expected: tuple[int, ...], extents: Extents
) -> Surface:
    """See a destination in the layout that a write stores.

    Parameters
    ----------
    layout : {"packed", "split", "tsplit", "separate"}
        The write's layout.
    shape, strides : tuple of int
        Of the array given.
    dtype : DType
        The pixel type written.
    expected : tuple of int
        The shape that the write gives; ``shape`` must equal it up to unit dimensions and to merging P with C.
    extents : Extents
        Size of the output.

    Raises
    ------
    ShapeError
        Another shape.
    ValueError
        Strides that cannot be written in place.
    """
    c = dtype.channels
    planar = layout != "packed" and c > 1
    matched = _match(shape, strides, expected, dtype.itemsize, mergeable=planar and len(expected) == 4)
    if matched is None:
        raise ShapeError(f"the output must have shape {tuple(expected)}, got {tuple(shape)}")
    if 0 not in shape:
        _check_order(shape, strides, dtype.itemsize)
    by_dim = list(matched)
    channel, unit = 0, dtype.pixelsize
    if planar:
        at = 1 if len(expected) == 4 and layout != "tsplit" else 0
        channel, unit = by_dim.pop(at), dtype.itemsize
    elif len(expected) > extents.rank:
        last = by_dim.pop()
        if c > 1 and last != dtype.itemsize and 0 not in shape:
            raise ValueError(
                f"the channels of the output must lie beside each other (stride {dtype.itemsize} bytes), "
                f"this one has {last}; give a contiguous output, or write planes with TensorSplit"
            )
    if planar and extents.rank == 1:
        by_dim = by_dim[1:]
    plane, pitch = _rows(shape, strides, by_dim, extents, unit)
    return Surface(extents, dtype, pitch, plane, channel, unit)


def _match(
    shape: Sequence[int], strides: Sequence[int], expected: Sequence[int], itemsize: int, *, mergeable: bool
) -> tuple[int, ...] | None:
    """The stride of every expected dimension, or None if the shape does not fit."""
    given = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    if [n for n, _ in given] == [n for n in expected if n != 1]:
        natural = tight_strides(expected, itemsize)
        rest = iter(given)
        return tuple(next(rest)[1] if n != 1 else natural[i] for i, n in enumerate(expected))
    if mergeable and len(shape) == 3 and shape[0] == expected[0] * expected[1] and tuple(shape[1:]) == tuple(expected[2:]):
        return (strides[0] * expected[1], *strides)
    return None


def _rows(
    shape: Sequence[int], strides: Sequence[int], spatial: Sequence[int], extents: Extents, unit: int
) -> tuple[int, int]:
    """Plane and row strides out of the strides of (P), (H), W; checks the distance of pixels in a row."""
    width, height, planes = extents.width, extents.height, extents.planes
    if 0 in (width, height, planes):
        return 0, 0
    x = spatial[-1]
    pitch = spatial[-2] if len(spatial) > 1 and height > 1 else width * unit
    plane = spatial[-3] if len(spatial) > 2 and planes > 1 else pitch * height
    if width > 1 and x != unit:
        raise ValueError(
            f"the pixels of a row must lie beside each other ({unit} bytes apart), an array of shape {tuple(shape)} and "
            f"strides {tuple(strides)} has {x}; make it contiguous (.contiguous(), ascontiguousarray)"
        )
    dims = sorted([(pitch, height), (plane, planes)])
    reach = width * unit
    for step, count in dims:
        if count == 1:
            continue
        if step < reach:
            raise ValueError(
                f"rows or planes of an array of shape {tuple(shape)} and strides {tuple(strides)} overlap or run "
                "backwards; make it contiguous (.contiguous(), ascontiguousarray)"
            )
        reach = step * (count - 1) + reach
    return plane, pitch


def _check_order(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> None:
    """Refuse negative and overlapping strides of any array."""
    reach = itemsize
    for step, count in sorted(zip(strides, shape, strict=True)):
        if count == 1:
            continue
        if step < reach:
            raise ValueError(
                f"an array of shape {tuple(shape)} and strides {tuple(strides)} overlaps itself or runs backwards; "
                "make it contiguous (.contiguous(), ascontiguousarray)"
            )
        reach = step * (count - 1) + reach


@lru_cache(maxsize=512)
def collapse(extents: Extents, surfaces: tuple[Surface, ...], *, planes: bool) -> tuple[Extents, bool, bool]:
    """Join rows, and then planes, of arrays without gaps into one long row.

    Parameters
    ----------
    extents : Extents
        Common size.
    surfaces : tuple of Surface
        Every array the kernel walks.
    planes : bool
        Whether planes may be joined: not if a plane has values of its own.

    Returns
    -------
    Extents, bool, bool
        The size to walk, and whether rows and planes were joined.
    """
    width, height, count = extents.width, extents.height, extents.planes
    if any(s.pitch != s.unit * width for s in surfaces) and height > 1:
        return extents, False, False
    joined = extents._replace(width=width * height, height=1)
    if planes and all(s.channel == 0 and s.plane == s.unit * width * height for s in surfaces) and count > 1:
        return joined._replace(width=width * height * count, planes=1), True, True
    return joined, True, False
