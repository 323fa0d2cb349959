"""`compose_divergent`: one kernel in which every plane of a batch goes through a chain of its own."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from fkl.binding import (
    Array,
    bind_list,
    check_overlap,
    check_pitches,
    image_record,
    list_extents,
    place,
    target_record,
)
from fkl.checks import index_of, one_of
from fkl.codegen import generate_divergent
from fkl.dtypes import DType
from fkl.gpu import GpuChain
from fkl.grid import EMPTY, launch_grid
from fkl.host import HostChain, run_block
from fkl.operations.base import Extents, Operation
from fkl.plan import (
    GRID_OFFSET,
    HEAD,
    INLINE_TABLE,
    MODERATE_OFFSET,
    PARAMETER_LIMIT,
    Plan,
    Slot,
    Structure,
    check_chain,
    check_sampled,
    make_plan,
)
from fkl.variant import gpu_library, host_function

__all__ = ["DivergentKernel", "compose_divergent"]

#: Kernels of other types that are kept for when the types come back.
_MOST_LAYOUTS = 32


class DivergentLayout(NamedTuple):
    """The plans of the chains, None for one that is left out, and where all their fields lie; names carry the chain's number."""

    plans: tuple[Plan | None, ...]
    first: Plan
    slots: tuple[Slot, ...]
    plane_slots: tuple[Slot, ...]
    owners: dict[str, tuple[int, Slot]]
    size: int
    plane_size: int
    inline_planes: int
    table_offset: int


def lay_out(plans: tuple[Plan | None, ...]) -> DivergentLayout:
    """Place the fields of several plans in one block: the common target, then each chain's own.

    A chain without a plan has no place in the kernel.

    Raises
    ------
    ChainError
        More values than a launch carries.
    """
    block, planes = Structure(HEAD), Structure(8)
    owners: dict[str, tuple[int, Slot]] = {}
    first = next(plan for plan in plans if plan is not None)
    block.add(0, "dst", first.target.field, 0)
    for i, plan in enumerate(plans):
        if plan is None:
            continue
        for slots, to in ((plan.slots, block), (plan.plane_slots, planes)):
            for slot in slots:
                if slot is not plan.target:
                    name = f"c{i}_{slot.name}"
                    to.add(slot.op, name, slot.field, slot.number)
                    owners[name] = (i, slot)
    plane_size = planes.size(16)
    inline = max(1, INLINE_TABLE // plane_size)
    table_offset = block.size(16)
    size = table_offset + 16 + inline * plane_size
    return DivergentLayout(plans, first, tuple(block.slots), tuple(planes.slots), owners, size, plane_size, inline, table_offset)


class DivergentKernel:
    """Made by `compose_divergent`; see there."""

    def __init__(self, plane_map: Sequence[int], chains: Sequence[tuple[Operation, ...]], target: str, fast_math: bool) -> None:
        self.target, self.fast_math = target, fast_math
        self.chains = tuple(chains)
        self._sides = [GpuChain(c, fast_math, None) if target == "gpu" else HostChain(c, fast_math) for c in self.chains]
        # By the type of every chain, None for one that is left out; and the one used last.
        self._layouts: dict[tuple[DType | None, ...], tuple[DivergentLayout, str]] = {}
        self._current: tuple[DivergentLayout, str] | None = None
        self._last: list[DType | None] = [None] * len(self.chains)
        self.plane_map: tuple[int, ...] = ()
        self.update(plane_map)

    def update(self, plane_map: Sequence[int]) -> None:
        """Assign chains to planes anew. It compiles nothing by itself; a chain that had no planes yet, and takes none of the
        types that were seen, is compiled with the others at the next call.

        Parameters
        ----------
        plane_map : sequence of int
            For every plane the 1-based number of its chain.

        Raises
        ------
        TypeError
            Something that is no sequence.
        ValueError
            An empty map, or a number that is no chain's.
        """
        if isinstance(plane_map, (str, bytes, dict)) or not hasattr(plane_map, "__iter__") or getattr(plane_map, "ndim", 1) != 1:
            raise TypeError(f"the plane map is a sequence with the number of a chain for every plane, got {plane_map!r:.80}")
        numbers: list[int] = []
        for z, given in enumerate(plane_map):
            n = index_of(given)
            if n is None or not 1 <= n <= len(self.chains):
                raise ValueError(
                    f"the plane map names chain {given!r:.80} for plane {z}; there are chains 1 to {len(self.chains)}"
                )
            numbers.append(n)
        if not numbers:
            raise ValueError("the plane map is empty; give the number of a chain for every plane")
        self.plane_map = tuple(numbers)

    def __call__(self, images: Any, out: Any = None, stream: Any = None) -> Any:
        """Run every plane through its chain.

        Parameters
        ----------
        images : list of arrays, or one array with planes first
            One image a plane (for `ReadYUV` also a pair of luma and chroma); those of one chain have one type.
        out : array, optional
        stream : stream or int, optional
            GPU only.

        Returns
        -------
        array
            What was written, one plane an image.
        """
        handle = 0
        plane_map = self.plane_map  # once: another thread may update it meanwhile
        arrays = self._arrays(images, plane_map)
        device = arrays[0].view.device
        if stream is not None and self.target == "cpu":
            raise ValueError('target="cpu" runs at once and takes no stream')
        if self.target == "gpu":
            from fkl.runtime.stream import stream_handle

            handle = stream_handle(stream) if stream is not None else _current(arrays[0].view)
        planes = arrays[: len(plane_map)]
        layout, source = self._layout(planes, plane_map)
        extents, data, table = self._fill(layout, planes, plane_map)
        plan = layout.first
        if out is None:
            shape = plan.write.shape(extents, plan.out_dtype)  # type: ignore[attr-defined]
            out = self._sides[0].allocate(arrays[0].view, shape, plan.out_dtype.base, device, handle)
        dests = self._dests(out, plan, extents, arrays)
        check_pitches((*planes, *dests))
        raw = target_record(plan, dests)
        offset = layout.slots[0].offset
        data[offset : offset + len(raw)] = raw
        grid = EMPTY if 0 in extents[:3] else launch_grid(*extents[:3])
        data[GRID_OFFSET:MODERATE_OFFSET] = grid.pack()
        if self.target == "cpu":
            if grid is not EMPTY:
                run_block(host_function(source, self.fast_math), data, table, layout.table_offset, extents)
            return out
        from fkl.runtime.frameworks import order_view_after
        from fkl.runtime.launch import Launch

        library = gpu_library(source, self.fast_math, device)
        for array in (*arrays, *dests):
            order_view_after(array.view, stream is not None, handle)
        large = layout.size > PARAMETER_LIMIT
        launch = Launch(library, device, data, table, layout.table_offset, large, grid, None, GRID_OFFSET, -1, 1, 0, -1, 1, 0)
        launch.launch(handle)
        for array in (*arrays, *dests):
            used = getattr(array.view.obj, "used_on", None)
            if used is not None:
                used(handle if stream is None else stream)
        return out

    def _arrays(self, images: Any, plane_map: tuple[int, ...]) -> list[Array]:
        """One image a plane, each seen by the read of its chain; then the chroma of pairs."""
        if not isinstance(images, (list, tuple)):
            shape: tuple[int, ...] = getattr(images, "shape", ())
            images = [images[z] for z in range(shape[0])] if len(shape) > 2 and hasattr(images, "__getitem__") else [images]
        if len(images) != len(plane_map):
            raise ValueError(f"the plane map has {len(plane_map)} planes, got {len(images)} images; give one image a plane")
        arrays: list[Array | None] = [None] * len(images)
        chroma: list[Array] = []
        for i, side in enumerate(self._sides):
            own = [z for z, n in enumerate(plane_map) if n == i + 1]
            if own:
                bound = bind_list([side.see_source(images[z]) for z in own], resized=True, places=own)
                for z, array in zip(own, bound, strict=False):
                    arrays[z] = array
                chroma += bound[len(own) :]
        seen = [a for a in arrays if a is not None] + chroma
        if len({a.view.device for a in seen}) > 1:
            raise ValueError(f"the images lie on several devices: {', '.join(sorted({place(a.view.device) for a in seen}))}")
        return seen

    def _layout(self, arrays: list[Array], plane_map: tuple[int, ...]) -> tuple[DivergentLayout, str]:
        """Plans and source for these input types.

        A chain without planes is planned for the type it had last, or for one that another chain has, so that planes can come
        to it without a compile. It never keeps the others from running: if it takes none of them, or ends otherwise, it is left
        out until it has planes.
        """
        used: list[DType | None] = [None] * len(self.chains)
        for array, n in zip(arrays, plane_map, strict=True):
            used[n - 1] = used[n - 1] or array.surface.dtype
        found = self._current
        if found is None or not _serves(found[0], used):
            plans = self._plans(used)
            key = tuple(None if plan is None else plan.dtypes[0] for plan in plans)
            found = self._layouts.get(key)
            if found is None:
                layout = lay_out(plans)
                found = layout, generate_divergent(layout)
                if len(self._layouts) >= _MOST_LAYOUTS:
                    self._layouts.clear()
                self._layouts[key] = found
            self._current = found
        self._last = [dtype or last for dtype, last in zip(used, self._last, strict=True)]
        return found

    def _plans(self, used: Sequence[DType | None]) -> tuple[Plan | None, ...]:
        """The plan of every chain; None for one without planes that does not go with the others."""
        plans = [None if t is None else make_plan(c, t, listed=True) for c, t in zip(self.chains, used, strict=True)]
        number, first = next((i, plan) for i, plan in enumerate(plans, 1) if plan is not None)
        for i, plan in enumerate(plans, 1):
            if plan is not None and not _alike(plan, first):
                raise ValueError(
                    f"all chains end in the same write and type; chain {number} ends with {first.write!r} of {first.out_dtype}, "
                    f"chain {i} with {plan.write!r} of {plan.out_dtype}"
                )
        for i, last in enumerate(self._last):
            if plans[i] is None:
                tried = (_planned(self.chains[i], dtype) for dtype in dict.fromkeys((last, *used)) if dtype is not None)
                plans[i] = next((plan for plan in tried if plan is not None and _alike(plan, first)), None)
        return tuple(plans)

    def _fill(
        self, layout: DivergentLayout, arrays: list[Array], plane_map: tuple[int, ...]
    ) -> tuple[Extents, bytearray, bytes]:
        """The output's size, the block but for the target, and the plane table if it outgrew the block."""
        data = bytearray(layout.size)
        table = bytearray(len(arrays) * layout.plane_size)
        out: Extents | None = None
        values: list[list[tuple[bytes, ...]] | None] = []
        ranks = [0] * len(arrays)
        for i, plan in enumerate(layout.plans):
            own = [z for z, n in enumerate(plane_map) if n == i + 1]
            if plan is None or not own:
                values.append(None)
                continue
            for rank, z in enumerate(own):
                ranks[z] = rank
            extents = list_extents([arrays[z] for z in own])
            check_sampled(extents)
            result = plan.out_extents(extents)
            values.append(plan.values(extents))
            if result.planes != len(own):
                raise ValueError(f"chain {i + 1} makes {result.planes} planes of {len(own)}; divergent chains make one of each")
            if out is not None and (result.width, result.height) != (out.width, out.height):
                raise ValueError(
                    f"all chains make planes of one size; one makes {out.width} x {out.height}, chain {i + 1} "
                    f"{result.width} x {result.height}"
                )
            out = result
        assert out is not None
        out = out._replace(planes=len(arrays), rank=3)
        struct.pack_into("<qqq", data, 0, out.width, out.height, out.planes)
        for slot in layout.slots[1:]:
            i, origin = layout.owners[slot.name]
            rows = values[i]
            if rows is not None:
                data[slot.offset : slot.offset + slot.field.size] = rows[origin.op][origin.number]
        for z, n in enumerate(plane_map):
            at = z * layout.plane_size
            struct.pack_into("<i", table, at, n - 1)
            for slot in layout.plane_slots:
                i, origin = layout.owners[slot.name]
                rows = values[i]
                if i != n - 1 or rows is None:
                    continue
                size = slot.field.size
                if origin.op == 0:
                    raw = image_record(arrays[z], single=True)
                else:
                    raw = rows[origin.op][origin.number][ranks[z] * size : (ranks[z] + 1) * size]
                assert len(raw) == size
                table[at + slot.offset : at + slot.offset + size] = raw
        if len(arrays) <= layout.inline_planes:
            start = layout.table_offset + 16
            data[start : start + len(table)] = table
            return out, data, b""
        return out, data, bytes(table)

    def _dests(self, out: Any, plan: Plan, extents: Extents, arrays: list[Array]) -> list[Array]:
        dests = self._sides[0].bind_dests(out, plan, extents)
        for array in dests:
            if array.view.device != arrays[0].view.device:
                raise ValueError(
                    f"input and output lie on one device; the input is on {place(arrays[0].view.device)}, the output on "
                    f"{place(array.view.device)}"
                )
        check_overlap(plan, arrays, dests)
        return dests

    def source(self) -> str | None:
        """The generated source for the input types used last; None before the first call."""
        found = self._current
        return None if found is None else found[1]

    def __repr__(self) -> str:
        return f"<fkl.DivergentKernel {self.target}, {len(self.chains)} chains over {len(self.plane_map)} planes>"


def _serves(layout: DivergentLayout, used: Sequence[DType | None]) -> bool:
    """Whether every chain that has planes is in the kernel for their type."""
    return all(t is None or (plan is not None and plan.dtypes[0] == t) for plan, t in zip(layout.plans, used, strict=True))


def _alike(plan: Plan, other: Plan) -> bool:
    """Whether two chains write in the same way, and the same type."""
    return (type(plan.write), plan.out_dtype) == (type(other.write), other.out_dtype)


def _planned(chain: tuple[Operation, ...], dtype: DType) -> Plan | None:
    """The plan of a chain for a type, None if it does not take the type."""
    try:
        return make_plan(chain, dtype, listed=True)
    except (TypeError, ValueError):
        return None


def _current(view: Any) -> int:
    from fkl.runtime.frameworks import current_stream_of

    return int(current_stream_of(view))


def compose_divergent(
    plane_map: Sequence[int], *chains: Sequence[Operation], target: str = "gpu", fast_math: bool = False
) -> DivergentKernel:
    """Fuse several chains into one kernel in which each plane goes through one of them.

    Parameters
    ----------
    plane_map : sequence of int
        For every plane the 1-based number of its chain. A value: `DivergentKernel.update` changes it.
    *chains : sequence of Operation
        Each from a read to a write, nothing bound. All end in the same write, type and size; geometry is allowed.
    target : {"gpu", "cpu"}
    fast_math : bool
        As in `fkl.compose`.

    Returns
    -------
    DivergentKernel
        ``k(images, out=None, stream=None)`` with one image a plane.

    Raises
    ------
    ValueError
        An empty map, a number outside of it, no chain, a bound read, write or operand.
    TypeError
        Something that is no operation, a chain or a map that is no sequence.
    """
    one_of(target, ("gpu", "cpu"), "target")
    if not isinstance(fast_math, bool):
        raise TypeError(f"fast_math is a bool, got {fast_math!r:.80}")
    if not chains:
        raise ValueError("compose_divergent needs at least one chain")
    checked = []
    for i, chain in enumerate(chains):
        if not hasattr(chain, "__iter__"):
            raise TypeError(f"chain {i + 1} is a sequence of operations, from a read to a write; got {chain!r:.80}")
        try:
            ops = check_chain(tuple(chain))
        except (TypeError, ValueError) as error:
            raise type(error)(f"chain {i + 1}: {error}") from None
        bound = ops[0].source is not None or ops[-1].dest is not None  # type: ignore[attr-defined]
        if bound or any(getattr(op, "operand", None) is not None for op in ops):
            raise ValueError(f"chain {i + 1} binds an array; divergent chains bind nothing, images come at the call")
        if ops[0].layout == "constant":  # type: ignore[attr-defined]
            raise ValueError(f"chain {i + 1} generates its input; divergent chains read one image a plane")
        checked.append(ops)
    return DivergentKernel(plane_map, checked, target, fast_math)
