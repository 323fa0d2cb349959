"""Arrays and values -> a filled parameter block: what a read or write accepts, and what one launch needs.

Called by `fkl.kernel` for GPU launches and by `fkl.host` for the CPU target. Every check that can refuse an array
stands here or in `fkl.layout`, before anything is launched.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fkl.dtypes import DType
from fkl.grid import EMPTY, Grid, launch_grid
from fkl.layout import Surface, collapse, destination_surface, packed_surface, planar_surface
from fkl.operations.base import Extents, Read, Write
from fkl.overlap import overlaps
from fkl.plan import GRID_OFFSET, MODERATE_OFFSET, Plan
from fkl.video import VideoSurface, video_surface

__all__ = [
    "Array", "Block", "bind_destination", "bind_list", "bind_operand", "bind_pair", "bind_source", "check_operand",
    "check_operand_type", "check_overlap", "check_pitches", "fill", "image_record", "list_extents", "place", "target_record",
]  # fmt: skip


class Array(NamedTuple):
    """An array that a chain reads or writes: its view (kept alive) and how its pixels lie, a Surface or VideoSurface.

    The second array of a pair has None: the first one's surface tells of both.
    """

    view: Any
    surface: Any

    @property
    def span(self) -> tuple[int, Sequence[int], Sequence[int], int]:
        """What `fkl.overlap.overlaps` needs."""
        return self.view.ptr, self.view.shape, self.view.strides, self.view.itemsize


class Block(NamedTuple):
    """One launch, ready: the parameter block, the plane table if it outgrew the block, the grid for one pixel a thread (in
    the block), and the one for runs of pixels if strides allow the kernel's widest words."""

    data: bytearray
    table: bytes
    walk: Extents
    grid: Grid
    wide: Grid | None


def place(device: int) -> str:
    """How messages name a device."""
    return "the host (CPU memory)" if device < 0 else f"cuda:{device}"


def bind_source(op: Read, view: Any) -> Array:
    """See an array in the layout that a read loads.

    Raises
    ------
    ValueError
        A shape or strides that the read cannot take.
    """
    if op.layout == "yuv":  # type: ignore[attr-defined]
        return Array(view, video_surface(op.name, op.video, [view]))  # type: ignore[attr-defined]
    channels = op.channels  # type: ignore[attr-defined]
    if op.layout == "planar":  # type: ignore[attr-defined]
        surface = planar_surface(view.shape, view.strides, view.dtype, channels)
    else:
        surface = packed_surface(view.shape, view.strides, view.dtype, view.channels if channels is None else channels)
    return Array(view, surface)


def bind_pair(op: Read, views: Sequence[Any]) -> list[Array]:
    """See a pair of luma and chroma arrays as one video surface.

    Raises
    ------
    ValueError
        Shapes, types or devices that do not fit each other.
    """
    luma, chroma = views
    if (luma.dtype, luma.device) != (chroma.dtype, chroma.device):
        raise ValueError(
            f"luma and chroma have one dtype and lie on one device; got {luma.dtype} on {place(luma.device)} and "
            f"{chroma.dtype} on {place(chroma.device)}"
        )
    return [Array(luma, video_surface(op.name, op.video, views)), Array(chroma, None)]  # type: ignore[attr-defined]


def bind_operand(op: Any, view: Any) -> Array:
    """See the second array of a two-source operation.

    Raises
    ------
    ValueError
        A shape or strides that cannot be read.
    """
    return bind_source(op.operand, view)


def check_operand(plan: Plan, index: int, array: Array, extents: Extents) -> None:
    """Refuse an operand that does not match the chain where it stands.

    Raises
    ------
    ValueError
        Another type or size.
    """
    here, s = plan.extents_before(index, extents), array.surface
    expected = plan.dtypes[index]
    size = (s.extents.width, s.extents.height)
    fits = here.sizes is None and size == (here.width, here.height) and s.extents.planes in (1, here.planes)
    if s.dtype != expected or not fits:
        raise ValueError(
            f"operation {index}, {plan.ops[index]!r:.80}: the operand must be {expected} of {here.width} x {here.height} with "
            f"{here.planes} planes or one, got {s.dtype} of {s.extents.width} x {s.extents.height} with {s.extents.planes}"
        )


def check_operand_type(plan: Plan, index: int, array: Array) -> None:
    """Refuse an operand of another type than the chain has where it stands.

    Raises
    ------
    ValueError
        Another type.
    """
    if array.surface.dtype != plan.dtypes[index]:
        raise ValueError(
            f"operation {index}, {plan.ops[index]!r:.80}: the operand must be {plan.dtypes[index]}, got {array.surface.dtype}"
        )


def bind_list(images: Sequence[list[Array]], *, resized: bool = False, places: Sequence[int] | None = None) -> list[Array]:
    """The images of a list, each seen by the read (a pair as two arrays), as planes: one array a plane, then the chroma of
    pairs. Sizes may differ if the chain resizes them. ``places`` are the images' indices in the user's list, if not all of
    it is here.

    Raises
    ------
    ValueError
        An empty list, images that differ in size, type or device, or arrays that have planes themselves.
    """
    if not images:
        raise ValueError("a list of no images has no dtype; give at least one image")
    if len(images) > 65536:
        raise ValueError(f"a list holds up to 65,536 images, got {len(images)}; stack them into one array")
    arrays = [image[0] for image in images]
    places = range(len(arrays)) if places is None else places
    first = arrays[0]
    for i, array in zip(places, arrays, strict=True):
        if array.surface.extents.rank == 3:
            raise ValueError(f"image {i} of the list has planes itself, shape {tuple(array.view.shape)}; give (H, W[, C])")
        same = array.surface.extents == first.surface.extents
        if array.surface.dtype != first.surface.dtype or not (same or resized):
            raise ValueError(
                "the images of a list have one shape and dtype (sizes may differ before a Resize or Warping); "
                f"image {places[0]} is {tuple(first.view.shape)} {first.view.dtype}, "
                f"image {i} is {tuple(array.view.shape)} {array.view.dtype}"
            )
        if array.view.device != first.view.device:
            raise ValueError(
                f"the images of a list lie on one device; image {places[0]} is on {place(first.view.device)}, "
                f"image {i} on {place(array.view.device)}"
            )
    return arrays + [array for image in images for array in image[1:]]


def list_extents(arrays: Sequence[Array]) -> Extents:
    """Size of a list of images, one plane each."""
    arrays = [a for a in arrays if a.surface is not None]
    extents: Extents = arrays[0].surface.extents._replace(planes=len(arrays), rank=3)
    sizes = tuple((a.surface.extents.width, a.surface.extents.height) for a in arrays)
    return extents if len(set(sizes)) == 1 else extents._replace(sizes=sizes)


def bind_destination(op: Write, views: Any, plan: Plan, extents: Extents) -> list[Array]:
    """See a destination, one view or a list of one per channel, in the layout that a write stores.

    Raises
    ------
    ValueError
        Another dtype or shape, read-only memory, or strides that the write cannot take.
    """
    dtype = plan.out_dtype
    expected = op.shape(extents, dtype)  # type: ignore[attr-defined]
    layout = op.layout  # type: ignore[attr-defined]
    if isinstance(views, list):
        return _bind_channels(views, dtype, extents)
    _check_dtype(views, dtype, expected)
    return [Array(views, destination_surface(layout, views.shape, views.strides, dtype, expected, extents))]


def _bind_channels(views: list[Any], dtype: DType, extents: Extents) -> list[Array]:
    if len(views) != dtype.channels:
        raise ValueError(f"the output list needs one buffer per channel, {dtype.channels} for {dtype}, got {len(views)}")
    expected = (extents.planes, extents.height, extents.width)[3 - max(extents.rank, 2) :]
    scalar = dtype.with_channels(1)
    arrays = []
    for i, view in enumerate(views):
        _check_dtype(view, dtype, expected)
        surface = destination_surface("packed", view.shape, view.strides, scalar, expected, extents)
        arrays.append(Array(view, surface))
        for j in range(i):
            if overlaps(arrays[j].span, arrays[i].span):
                raise ValueError(f"the buffers for channels {j} and {i} share memory; give each channel its own")
    return arrays


def _check_dtype(view: Any, dtype: DType, expected: Sequence[int]) -> None:
    if view.readonly:
        raise ValueError("the output is read-only; give writable memory")
    if view.dtype.base != dtype.base:
        raise ValueError(
            f"the output must be {dtype.base} of shape {tuple(expected)}, got {view.dtype.base} of shape "
            f"{tuple(view.shape)}; change the output's dtype or end the chain with Cast({view.dtype.base!r})"
        )


def check_overlap(plan: Plan, sources: Sequence[Array], dests: Sequence[Array]) -> None:
    """Refuse an output that shares memory with an input, unless each pixel is written where it was read.

    Raises
    ------
    ValueError
        They overlap.
    """
    for source in sources:
        for dest in dests:
            if not overlaps(source.span, dest.span):
                continue
            a, b = source.surface, dest.surface
            same = (
                plan.elementwise
                and len(dests) == 1
                and not plan.source.field.per_plane
                and source.view.ptr == dest.view.ptr
                and (a.unit, a.dtype.pixelsize, a.channel) == (b.unit, b.dtype.pixelsize, b.channel)
                and (a.extents.height == 1 or a.pitch == b.pitch)
                and a.extents.planes == b.extents.planes
                and (a.extents.planes == 1 or a.plane == b.plane)
            )
            if not same:
                raise ValueError(
                    "the output overlaps the input in memory; in place works for elementwise chains whose output has the "
                    "input's address, strides and item size; else give an output of its own"
                )


def check_pitches(arrays: Iterable[Array]) -> None:
    """Refuse rows too far apart for chains with geometry, which multiply 32-bit rows with 32-bit pitches.

    Raises
    ------
    ValueError
        Rows 4 GiB or more apart.
    """
    for array in arrays:
        s = array.surface
        if isinstance(s, Surface) and s.extents.height > 1 and s.pitch >= 2**32:
            raise ValueError(
                f"the rows of an array of shape {tuple(array.view.shape)} lie {s.pitch} bytes apart: a chain with geometry, "
                "or one of several, takes pitches below 2^32 bytes"
            )


def fill(
    plan: Plan, out: Extents, values: list[tuple[bytes, ...]], sources: Sequence[Array], dests: Sequence[Array],
    operands: Mapping[int, Array],
) -> Block:  # fmt: skip
    """Fill the parameter block for one launch.

    Parameters
    ----------
    plan : Plan
    out : Extents
        Size of the output.
    values : list of tuple of bytes
        Of `Plan.values`, for the input's size.
    sources : sequence of Array
        None for a chain that generates its input, one array, or one image per plane.
    dests : sequence of Array
        One array, or one per channel.
    operands : mapping of int to Array
        The second arrays of two-source operations, by the operation's index.
    """
    listed = plan.source.field.per_plane
    walk = out
    if plan.elementwise:
        surfaces = [a.surface for a in (*sources, *dests)]
        shared = [a.surface for a in operands.values()]
        surfaces += [s._replace(plane=0) if s.extents.planes == 1 and out.planes > 1 else s for s in shared]
        walk = collapse(out, tuple(dict.fromkeys(surfaces)), planes=not plan.plane_slots)[0]
    else:
        check_pitches((*sources, *dests, *operands.values()))
    data = bytearray(plan.size)
    struct.pack_into("<qqq", data, 0, walk.width, walk.height, walk.planes)
    for slot in plan.slots:
        if slot is plan.target:
            raw = target_record(plan, dests)
        elif slot is plan.source and sources:
            raw = _shared(sources[0])
        elif slot.op in operands:
            raw = _shared(operands[slot.op])
        else:
            raw = values[slot.op][slot.number]
        data[slot.offset : slot.offset + slot.field.size] = raw
    table = b""
    if plan.plane_slots:
        table = _plane_table(plan, values, sources if listed else [], out.planes)
        if len(table) <= plan.inline_planes * plan.plane_size:
            start = plan.table_offset + 16
            data[start : start + len(table)] = table
            table = b""
    wide = plan.elementwise and plan.pixels > 1 and _strides_fit(plan, walk, sources, dests)
    empty = 0 in (walk.width, walk.height, walk.planes)
    rows = walk.height if plan.elementwise else -(-walk.height // plan.pixels)
    grid = EMPTY if empty else launch_grid(walk.width, rows, walk.planes)
    data[GRID_OFFSET:MODERATE_OFFSET] = grid.pack()
    struct.pack_into("<i", data, MODERATE_OFFSET, plan.moderate(values))
    return Block(data, table, walk, grid, launch_grid(*walk[:3], plan.pixels) if wide and not empty else None)


def _plane_table(plan: Plan, values: list[tuple[bytes, ...]], listed: Sequence[Array], planes: int) -> bytes:
    """The records that every plane has for itself, one behind the other."""
    records = bytearray(planes * plan.plane_size)
    listed = [array for array in listed if array.surface is not None]
    for slot in plan.plane_slots:
        size = slot.field.size
        for z in range(planes):
            if slot.op == 0:
                raw = image_record(listed[min(z, len(listed) - 1)], single=True)
            else:
                # Before a list of rectangles there are fewer planes, each of which serves those that come of it.
                rows = values[slot.op][slot.number]
                row = min(z, len(rows) // size - 1)
                raw = rows[row * size : (row + 1) * size]
            at = z * plan.plane_size + slot.offset
            records[at : at + size] = raw
    return bytes(records)


def image_record(array: Array, *, single: bool = False) -> bytes:
    """The record that a read loads through; ``single``: of a plane with an address of its own, without a plane stride."""
    s = array.surface
    if isinstance(s, VideoSurface):
        return s.record[:24] + bytes(16) + s.record[40:] if single else s.record
    if single:
        s = s._replace(plane=0)
    return struct.pack("<Qqqq", array.view.ptr, s.pitch, s.plane, s.channel)


def _shared(array: Array) -> bytes:
    """The record of a source or an operand; a single plane serves all planes of the chain."""
    return image_record(array, single=array.surface.extents.planes == 1)


def target_record(plan: Plan, dests: Sequence[Array]) -> bytes:
    if plan.write.layout != "separate":  # type: ignore[attr-defined]
        return image_record(dests[0])
    if len(dests) == 1:
        s = dests[0].surface
        step, base = s.channel, dests[0].view.ptr
        return b"".join(struct.pack("<Qqq", base + c * step, s.pitch, s.plane) for c in range(plan.out_dtype.channels))
    return b"".join(struct.pack("<Qqq", d.view.ptr, d.surface.pitch, d.surface.plane) for d in dests)


def _strides_fit(plan: Plan, walk: Extents, sources: Sequence[Array], dests: Sequence[Array]) -> bool:
    """Whether every row of every array starts on the alignment of the widest words, if the arrays themselves do."""
    for arrays, align in ((sources, plan.source_align), (dests, plan.target_align)):
        for array in arrays:
            s = array.surface
            if (walk.height > 1 and s.pitch % align) or (walk.planes > 1 and s.plane % align) or s.channel % align:
                return False
            if len(arrays) > 1 and array.view.ptr % align:
                return False
    return True
