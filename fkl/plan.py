"""A chain of operations -> a plan: the type before each operation, the parameter block, the size of the output.

Knows operations and types; knows nothing of source text, compilers or devices. Called by `fkl.variant`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from fkl.bounds import Bounds, moderate, of_integers
from fkl.dtypes import DType
from fkl.operations.base import Extents, Field, Geometry, Lowered, Operation, Read, Write

__all__ = ["ChainError", "Plan", "Slot", "Structure", "check_chain", "located", "make_plan"]

#: Largest parameter block that a launch can carry by value (CUDA 12.1 and newer); a larger one lies in device memory.
PARAMETER_LIMIT = 32764

#: Bytes of `Extents` at the head of every block: width, height, planes of the output, runs of wide words in a row, and
#: the grid's longest side.
HEAD = 40
#: Offset of the last two, which belong to a grid: 64 and 32 bits.
GRID_OFFSET = 24
#: Offset of the word behind them: whether all values are moderate.
MODERATE_OFFSET = 36


#: Source pixels an output pixel may need before a warning says so.
MOST_READS = 256

_log = logging.getLogger("fkl")
_warned: set[tuple[str, ...]] = set()


class ChainError(ValueError):
    """A chain that cannot be: no read, no write, or something after the write."""


#: Scalar operations a thread's text may hold before its run of pixels gets shorter.
BODY_BUDGET = 96

#: Bytes of plane records that travel inside the block; longer tables lie in memory of their own.
INLINE_TABLE = 3584


class Slot(NamedTuple):
    """A placed field: the operation it belongs to, its name, its offset in the block (or in a plane's record), and which of
    its operation's fields it is."""

    op: int
    name: str
    field: Field
    offset: int
    number: int


class Plan(NamedTuple):
    """Everything about a chain that its types decide.

    Attributes
    ----------
    ops : tuple of Operation
    dtypes : tuple of DType
        The type before each operation; the last is the output's.
    lowered : tuple of Lowered
    slots : tuple of Slot
    size : int
        Bytes of the parameter block.
    source, target : Slot
        The records of the chain's read and write.
    plane_slots : tuple of Slot
        Fields of the record that every plane has in the plane table; empty if planes differ in nothing.
    plane_size, inline_planes : int
        Bytes of such a record, and how many the block itself holds.
    table_offset : int
        Offset of the table's address in the block; the inline records follow it.
    elementwise : bool
        Whether output pixel (x, y, z) depends on input pixel (x, y, z) alone.
    pixels : int
        Pixels a thread moves at once: neighbours in a row, or, if the chain is not elementwise, in a column.
    math : str
        How quotients of the last level are made on the GPU: the name of a struct in quotient.h.
    watched : tuple of (int, int, bool)
        The float32 fields that it takes for moderate: operation, which of its fields, whether it holds divisors.
    source_align, target_align : int
        Alignment in bytes that its widest words need of addresses and strides on each side.
    """

    ops: tuple[Operation, ...]
    dtypes: tuple[DType, ...]
    lowered: tuple[Lowered, ...]
    slots: tuple[Slot, ...]
    size: int
    source: Slot
    target: Slot
    plane_slots: tuple[Slot, ...]
    plane_size: int
    inline_planes: int
    table_offset: int
    elementwise: bool
    pixels: int
    math: str
    watched: tuple[tuple[int, int, bool], ...]
    source_align: int
    target_align: int

    @property
    def read(self) -> Read:
        """The chain's read."""
        return self.ops[0]  # type: ignore[return-value]

    @property
    def write(self) -> Write:
        """The chain's write."""
        return self.ops[-1]  # type: ignore[return-value]

    @property
    def in_dtype(self) -> DType:
        """The pixel type that is read."""
        return self.dtypes[1]

    @property
    def out_dtype(self) -> DType:
        """The pixel type that is written."""
        return self.dtypes[-1]

    @property
    def large(self) -> bool:
        """Whether the parameter block is too large for a launch to carry."""
        return self.size > PARAMETER_LIMIT

    @property
    def last_level(self) -> int:
        """The first operation after the read or the last geometry."""
        return max(i for i, op in enumerate(self.ops) if op.role in ("read", "geometry")) + 1

    @property
    def operands(self) -> tuple[int, ...]:
        """Which operations read a second array."""
        return tuple(i for i, op in enumerate(self.ops) if getattr(op, "operand", None) is not None)

    def extents_before(self, index: int, extents: Extents) -> Extents:
        """Size of the array that an operation gets, for an input of this size."""
        for i, op in enumerate(self.ops[:index]):
            extents = located(i, op, op.extents, extents, self.dtypes[i], self.lowered[i].out)
        return extents

    def out_extents(self, extents: Extents) -> Extents:
        """Size of the output for an input of this size."""
        for i, op in enumerate(self.ops):
            if extents.sizes is not None and op.role == "write":
                raise ChainError("planes of different sizes cannot be written as one array; put a Resize or a Warping before "
                                 "the write")
            extents = located(i, op, op.extents, extents, self.dtypes[i], self.lowered[i].out)
        return extents

    def check_values(self) -> None:
        """Refuse values that the chain's types cannot hold, as far as no size is needed for that."""
        for i, op in enumerate(self.ops):
            if op.role == "elementwise":
                located(i, op, op.values, self.dtypes[i], Extents(0, 0, 1, 2))
            elif isinstance(op, Geometry):
                located(i, op, op.check_values, self.lowered[i].out)

    def moderate(self, values: Sequence[tuple[bytes, ...]]) -> bool:
        """Whether the values keep quotients within what ``math`` takes for granted."""
        return self.bounded and moderate((values[op][number], divisors) for op, number, divisors in self.watched)

    @property
    def bounded(self) -> bool:
        """Whether the types bound all operands of quotients, so that only values are to be looked at."""
        return self.math in ("Bounded", "BoundedPlus")

    def values(self, extents: Extents) -> list[tuple[bytes, ...]]:
        """The bytes of every operation's fields for an input of this size; per-plane fields hold all planes' records.

        Raises
        ------
        ValueError
            A value that the chain's type cannot hold, or that does not fit the size; the message names the operation.
        """
        if not self.elementwise:
            check_sampled(extents)
        out = []
        reads = 1
        bare = -1  # an operation that repeats pixels of an image without any
        for i, op in enumerate(self.ops):
            after = op.extents(extents, self.dtypes[i], self.lowered[i].out)
            if isinstance(op, Geometry):
                if op.repeats and any(0 in size for size in extents.sizes or [extents[:2]]):
                    bare = i
                reads *= op.reads(*extents.size_of(0)) if extents.planes and 0 not in extents.size_of(0) else 1
                per_plane = any(field.per_plane for field in self.lowered[i].fields)
                count = after.planes if per_plane else 1
                rows = [
                    located(i, op, op.plane_values, self.dtypes[i], *extents.size_of(min(z, extents.planes - 1)), z, extents)
                    for z in range(count)
                ]
                out.append(tuple(b"".join(column) for column in zip(*rows, strict=True)))
            elif self.lowered[i].fields:
                out.append(located(i, op, op.values, self.dtypes[i], extents))
            else:
                out.append(())
            extents = after
        if bare >= 0 and 0 not in extents[:3]:
            located(bare, self.ops[bare], _no_pixel_to_repeat)
        if reads > MOST_READS:
            _warn_of_reads(reads, [op for op in self.ops if isinstance(op, Geometry)])
        return out


def located(index: int, op: Operation, function, *args):  # type: ignore[no-untyped-def]
    """Call and, if it refuses, say which operation of the chain did."""
    try:
        return function(*args)
    except (TypeError, ValueError) as error:
        raise type(error)(f"operation {index}, {op!r:.120}: {error}") from None


def _warn_of_reads(reads: int, ops: Sequence[Geometry]) -> None:
    """Once for chains of these kinds of operations, whatever their sizes."""
    kinds = tuple(type(op).__name__ for op in ops)
    if kinds in _warned:
        return
    _warned.add(kinds)
    _log.warning(
        "every output pixel reads %d source pixels, since stacked geometry multiplies: %s. Two kernels, with the array "
        "between them written out, may be faster", reads, "; ".join(f"{op!r:.80}" for op in ops),
    )  # fmt: skip


def check_sampled(extents: Extents) -> None:
    """Refuse sizes beyond the 32-bit columns and rows that chains with geometry count in."""
    if max(extents.width, extents.height) >= 2**31:
        raise ValueError(
            f"images of {extents.width} x {extents.height} pixels (width x height): a chain with geometry or ReadYUV, "
            "or one of several, takes fewer than 2^31 columns and rows"
        )


def check_chain(ops: Sequence[object]) -> tuple[Operation, ...]:
    """The chain as a tuple, if it starts with a read, ends with a write and has neither in between.

    Raises
    ------
    TypeError
        Something that is no operation.
    ValueError
        A chain without a read or a write, or with one in the wrong place.
    """
    for i, op in enumerate(ops):
        if not isinstance(op, Operation):
            hint = "; operations are objects: write fkl.Sqr(), not fkl.Sqr" if isinstance(op, type) else ""
            raise TypeError(f"position {i} of the chain holds no operation but {op!r:.80}{hint}")
    chain: tuple[Operation, ...] = tuple(ops)  # type: ignore[arg-type]
    if not chain or chain[0].role != "read":
        first = f"starts with {chain[0]!r:.80}" if chain else "is empty"
        raise ChainError(f"a chain starts with a read, such as TensorRead(); this one {first}")
    if chain[-1].role != "write":
        raise ChainError(f"a chain ends with a write, such as TensorWrite(); this one ends with {chain[-1]!r:.80}")
    for i, op in enumerate(chain[1:-1], 1):
        if op.role in ("read", "write"):
            raise ChainError(f"operation {i}, {op!r:.80}: a {op.role} stands inside the chain; it belongs at the "
                             f"{'start' if op.role == 'read' else 'end'}")
    return chain


def make_plan(ops: tuple[Operation, ...], dtype: DType, *, listed: bool = False, fused: bool = True) -> Plan:
    """Plan a checked chain for this input type.

    Parameters
    ----------
    ops : tuple of Operation
        A checked chain.
    dtype : DType
        The pixel type it reads.
    listed : bool
        Whether the input is a list of images, each with a record of its own.
    fused : bool
        Whether a thread may move several pixels.

    Raises
    ------
    TypeError, ValueError
        An operation that does not take the type the chain has there.
    """
    dtypes, lowered = [dtype], []
    # What is known of the values, and how the last level's quotients can be made.
    bounds, math = None, "Exact"
    # Whether planes have records of their own from here on, whether the array may be asked outside, and how many levels
    # so far need several pixels for one.
    spread, extended, depth, taps = listed, False, 0, 1
    for i, op in enumerate(ops):
        if isinstance(op, Geometry):
            sampled = located(i, op, partial(op.sample, extended=extended, roll=depth > 0), dtypes[-1])
            spread = spread or any(f.per_plane for f in sampled.fields)
            extended, depth = sampled.extended, depth + (sampled.taps > 1)
            taps = max(taps, sampled.taps)
            fields = tuple(f._replace(per_plane=spread) for f in sampled.fields)
            low = Lowered(sampled.code, fields, sampled.out)
        else:
            if extended and getattr(op, "operand", None) is not None:
                located(i, op, _no_pixels_outside)
            low = located(i, op, op.lower, dtypes[-1])
            if listed and i == 0:
                low = low._replace(fields=tuple(f._replace(per_plane=True) for f in low.fields))
        if op.role in ("read", "geometry"):
            math = "Exact"
        after = _bounds(op, bounds, low.out)
        if "{m}" in low.code and math != "Noted":
            # An operation that cannot tell its bounds, such as a division by another array, cannot do without the test.
            if bounds is None or not bounds.divisible or after is None:
                math = "Noted"
            elif math != "Bounded":
                math = "Bounded" if bounds.negative_zero else "BoundedPlus"
        bounds = after
        lowered.append(low)
        dtypes.append(low.out)
    block, planes = Structure(HEAD), Structure(0)
    # The records of write and read come first: they change most often.
    for i in (len(ops) - 1, *range(len(ops) - 1)):
        for k, field in enumerate(lowered[i].fields):
            name = "dst" if i == len(ops) - 1 else "src" if i == 0 else f"v{i}_{k}"
            (planes if field.per_plane else block).add(i, name, field, k)
    plane_size = planes.size(16)
    inline_planes = max(1, INLINE_TABLE // plane_size) if plane_size else 0
    table_offset = block.size(16)
    size = table_offset + (16 + inline_planes * plane_size if plane_size else 0)
    target = block.slots[0]
    source = next(slot for slot in (*planes.slots, *block.slots) if slot.op == 0)
    elementwise = all(op.role != "geometry" for op in ops) and ops[0].layout != "yuv"  # type: ignore[attr-defined]
    if not elementwise:
        # Two where that does not make much more text to compile: at most one level of taps, few operations, and pixels
        # that are read from one place. Planes with records of their own are small, and many threads hide more than they share.
        two = fused and depth < 2 and taps <= 4 and len(ops) <= 16 and ops[0].layout != "yuv" and not plane_size  # type: ignore[attr-defined]
        pixels, source_align, target_align = 2 if two else 1, 1, 1
    else:
        pixels, source_align, target_align = _width(ops, lowered, fused=fused)
    placed = [s for s in (*block.slots, *planes.slots) if s.op > 0 and s.field.ctype.startswith("pixel<f32")]
    divides = [bool(getattr(ops[s.op], "nonzero", False)) for s in placed]
    # Of divisors the first field; the other holds their reciprocals.
    watched = tuple((s.op, s.number, d) for s, d in zip(placed, divides, strict=True) if not d or s.number == 0)
    return Plan(
        ops, tuple(dtypes), tuple(lowered), tuple(block.slots), size, source, target, tuple(planes.slots), plane_size,
        inline_planes, table_offset, elementwise, pixels, math, watched, source_align, target_align,
    )  # fmt: skip


def _no_pixels_outside() -> None:
    raise ValueError(
        "a second array has no pixels outside of its size, where the BorderReader before this operation has some; "
        "put the BorderReader behind it"
    )


def _no_pixel_to_repeat() -> None:
    raise ValueError('an image without pixels has none to repeat; leave it out, or use the mode "constant"')


def _bounds(op: Operation, before: Bounds | None, out: DType) -> Bounds | None:
    """What is known of the values that an operation makes."""
    if not out.is_float:
        return of_integers(out)
    return op.bounds(before) if before is not None and out.base == "float32" else None


class Structure:
    """Places fields as a C compiler would."""

    def __init__(self, head: int) -> None:
        self.slots: list[Slot] = []
        self.end = head

    def add(self, op: int, name: str, field: Field, number: int) -> None:
        offset = -(-self.end // field.align) * field.align
        self.slots.append(Slot(op, name, field, offset, number))
        self.end = offset + field.size

    def size(self, align: int) -> int:
        return -(-self.end // align) * align


def _width(ops: tuple[Operation, ...], lowered: Sequence[Lowered], *, fused: bool) -> tuple[int, int, int]:
    """Pixels a thread moves at once, so that the wider side moves 16 bytes, and the alignment each side then needs.

    Long chains compute more than they move, and their text is compiled once a pixel: there the run is shorter.
    """
    if not fused:
        return 1, 1, 1
    sides = [(ops[-1].layout, lowered[-1].out)]  # type: ignore[attr-defined]
    if ops[0].layout != "constant":  # type: ignore[attr-defined]
        sides.append((ops[0].layout, lowered[0].out))  # type: ignore[attr-defined]
    pixels = 16
    packed = all(layout == "packed" for layout, _ in sides)
    for _, dtype in sides:
        # Runs of up to four words are handed around in a warp, so planes set the pace where there are any.
        unit = dtype.pixelsize if packed and dtype.channels != 3 else dtype.itemsize
        pixels = min(pixels, max(1 if unit <= 16 else 2, 16 // unit))
    work = sum(low.out.channels * low.weight for low in lowered[:-1])
    while pixels > 1 and pixels * work > BODY_BUDGET:
        pixels //= 2
    aligns = [_word(pixels * (d.pixelsize if layout == "packed" else d.itemsize)) for layout, d in sides]
    return pixels, aligns[1] if len(aligns) > 1 else 1, aligns[0]


def _word(run: int) -> int:
    """The largest machine word that divides a run of bytes; the same rule as word_size() in image.h."""
    return next(word for word in (16, 8, 4, 2, 1) if run % word == 0)
