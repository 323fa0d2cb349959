"""A checked chain with its compiled variants and bindings: the part of a kernel that both targets share.

`fkl.gpu.GpuChain` and `fkl.host.HostChain` add how a target prepares and runs a call; `fkl.kernel` owns them.
"""

from __future__ import annotations

from typing import Any

from fkl.binding import (
    Array,
    bind_destination,
    bind_list,
    bind_operand,
    bind_pair,
    bind_source,
    check_operand,
    check_operand_type,
    check_overlap,
    list_extents,
    place,
)  # fmt: skip
from fkl.dtypes import DType
from fkl.operations.base import Extents, Operation
from fkl.operations.reads import ReadSet
from fkl.plan import Plan
from fkl.variant import Variant

__all__ = ["Chain", "Request"]


class Request:
    """One call, checked: the variant, the arrays it reads and writes, and the object to return.

    Attributes
    ----------
    variant : Variant
    extents : Extents
        Size of the input.
    result : Extents
        Size of the output.
    values : list of tuple of bytes
        What the operations' fields hold, `Plan.values` of the input's size.
    sources, dests : list of Array
    operands : dict of int to Array
        The second arrays of two-source operations, by the operation's index.
    out : object
        The array given or allocated for the output.
    device : int
        CUDA ordinal, -1 for the host.
    """

    __slots__ = ("dests", "device", "extents", "operands", "out", "result", "sources", "values", "variant")

    def __init__(
        self, variant: Variant, extents: Extents, result: Extents, values: list[tuple[bytes, ...]], sources: list[Array],
        dests: list[Array], operands: dict[int, Array], out: Any, device: int,
    ) -> None:  # fmt: skip
        self.variant = variant
        self.extents = extents
        self.result = result
        self.values = values
        self.sources = sources
        self.dests = dests
        self.operands = operands
        self.out = out
        self.device = device


class Chain:
    """A checked chain, its variants by input type, and what is bound to it.

    Parameters
    ----------
    ops : tuple of Operation
        A checked chain.
    fast_math : bool
        Compile with contraction and approximate division.
    fused : bool
        Whether a thread may move several pixels.
    """

    target: str = ""

    def __init__(self, ops: tuple[Operation, ...], fast_math: bool, fused: bool = True) -> None:
        self.ops = ops
        self.fast_math = fast_math
        self.fused = fused
        #: Those that calls went through or that were compiled, which `replaced` keeps to; and all that were planned.
        self.variants: dict[tuple[DType, bool], Variant] = {}
        self._planned: dict[tuple[DType, bool], Variant] = {}
        self.sources: list[Array] = []
        self.dest: Any = None
        self.operands: dict[int, Array] = {}

    @property
    def source(self) -> Array | None:
        """The bound input, None if there is none; of a pair the first."""
        return self.sources[0] if self.sources else None

    def see_source(self, x: Any) -> list[Array]:
        """See one input, an array or (for video) a pair, in the layout of the chain's read."""
        if self.read.layout == "yuv" and isinstance(x, tuple):
            if len(x) != 2:
                raise ValueError(f"a video surface is one array or a pair (luma, chroma), got {len(x)} arrays")
            if self.read.video.kind != "semi":
                raise ValueError(f"{self.read.name} comes as one array, not as a pair")
            return bind_pair(self.read, [self.view(v, "input") for v in x])
        return [bind_source(self.read, self.view(x, "input"))]

    def bind_operands(self) -> None:
        """See the second arrays of two-source operations; they are bound at compose on both targets."""
        for i, op in enumerate(self.ops):
            operand = getattr(op, "operand", None)
            if operand is not None:
                self.operands[i] = bind_operand(op, self.view(operand.source, "operand"))

    @property
    def read(self) -> Any:
        """The chain's read."""
        return self.ops[0]

    @property
    def write(self) -> Any:
        """The chain's write."""
        return self.ops[-1]

    @property
    def generates(self) -> bool:
        """Whether the chain makes its own input (`ReadSet`)."""
        return isinstance(self.read, ReadSet)

    def replaced(self, ops: tuple[Operation, ...]) -> Chain:
        """The same chain with other values; raises if that would be another kernel.

        Raises
        ------
        ValueError
            The generated source would change.
        """
        other = self.rebuilt(ops)
        if self.source is not None and other.source is not None and self.source.surface.dtype != other.source.surface.dtype:
            raise ValueError(
                f"the bound input is {self.source.surface.dtype}, the new one {other.source.surface.dtype}: that is another "
                "kernel; compose anew"
            )
        for (dtype, listed), variant in list(self.variants.items()):
            made = other.variant(dtype, listed=listed)
            if made.source != variant.source:
                raise ValueError(
                    "this update would change the kernel (types, channel counts, modes and layouts are compiled in); compose anew"
                )
            made.plan.check_values()
            for i, array in other.operands.items():
                check_operand_type(made.plan, i, array)
            other.variants[dtype, listed] = made
        return other

    def rebuilt(self, ops: tuple[Operation, ...]) -> Chain:
        """A chain of this target with other operations, bound to what they hold."""
        raise NotImplementedError

    def variant(self, dtype: DType, *, listed: bool = False) -> Variant:
        """The chain for this input type, planned once."""
        key = (dtype, listed)
        found = self._planned.get(key)
        if found is None:
            found = self._planned[key] = Variant(self.ops, dtype, self.fast_math, listed, self.fused)
        return found

    def keep(self, dtype: DType, listed: bool = False) -> Variant:
        """The chain for this input type, as a kernel that updates must not change."""
        made = self.variants[dtype, listed] = self.variant(dtype, listed=listed)
        return made

    # -- what a target defines ------------------------------------------------------------------------------------

    def view(self, obj: Any, role: str) -> Any:
        """A view of an array on the chain's target; raises if it lies elsewhere."""
        raise NotImplementedError

    def allocate(self, like: Any, shape: tuple[int, ...], base: str, device: int, stream: int) -> Any:
        """A fresh output in the framework of ``like`` (None: the target's own)."""
        raise NotImplementedError

    def default_device(self) -> int:
        """Where a chain without input runs."""
        raise NotImplementedError

    # -- one call -------------------------------------------------------------------------------------------------

    def request(self, x: Any, out: Any, stream: int = 0) -> Request:
        """Check one call against the chain and its bindings, and allocate the output if none is given.

        Raises
        ------
        TypeError
            No input, or an input the chain cannot take at all.
        ValueError
            An array that does not fit.
        """
        sources, extents, variant, device = self._input(x)
        plan = variant.plan
        result = plan.out_extents(extents)
        values = plan.values(extents)
        target = out if out is not None else self.dest
        if target is None:
            like = sources[0].view if sources else None
            shape = plan.write.shape(result, plan.out_dtype)  # type: ignore[attr-defined]
            target = self.allocate(like, shape, plan.out_dtype.base, device, stream)
        dests = self.bind_dests(target, plan, result)
        for array in dests:
            if array.view.device != device:
                raise ValueError(
                    f"input and output lie on one device; the input is on {place(device)}, the output on "
                    f"{place(array.view.device)}"
                )
        for i, array in self.operands.items():
            check_operand(plan, i, array, extents)
            if array.view.device != device:
                at = place(array.view.device)
                raise ValueError(f"the operand of operation {i} lies on {at}, the chain runs on {place(device)}")
        check_overlap(plan, [*sources, *self.operands.values()], dests)
        self.keep(plan.dtypes[0], plan.source.field.per_plane)
        return Request(variant, extents, result, values, sources, dests, self.operands, target, device)

    def bind_dests(self, target: Any, plan: Plan, result: Extents) -> list[Array]:
        """See the output, one array or one per channel, in the layout of the plan's write."""
        if isinstance(target, (list, tuple)):
            if plan.write.layout != "separate":  # type: ignore[attr-defined]
                name = type(plan.write).__name__
                raise TypeError(f"{name} writes one array, not a list; SplitWrite takes a list of channels")
            views: Any = [self.view(t, "output") for t in target]
        else:
            views = self.view(target, "output")
        return bind_destination(plan.write, views, plan, result)

    def _input(self, x: Any) -> tuple[list[Array], Extents, Variant, int]:
        if self.generates:
            if x is not None:
                raise TypeError("this chain starts with ReadSet and generates its input; call it without one")
            read = self.read
            device = self.default_device()
            if self.dest is not None and not isinstance(self.dest, list):
                device = self.view(self.dest, "output").device
            return [], Extents(read.width, read.height, 1, 2), self.variant(read.dtype), device
        if isinstance(x, list) or (isinstance(x, tuple) and self.read.layout != "yuv"):
            if self.source is not None:
                raise ValueError("a bound kernel reads one array, not a list; compose without binding to call with a list")
            resized = any(op.role == "geometry" for op in self.ops)
            arrays = bind_list([self.see_source(v) for v in x], resized=resized)
            return arrays, list_extents(arrays), self.variant(arrays[0].surface.dtype, listed=True), arrays[0].view.device
        if x is None:
            if self.source is None:
                raise TypeError(
                    "this kernel has no bound input: call k(x), or bind one at compose: "
                    f"compose({type(self.read).__name__}(x), ...)"
                )
            arrays = self.sources
        else:
            arrays = self.see_source(x)
            self._check_like_bound(arrays[0])
        first = arrays[0]
        return arrays, first.surface.extents, self.variant(first.surface.dtype), first.view.device

    def _check_like_bound(self, array: Array) -> None:
        """An override has the dtype, shape and device of the bound input."""
        if self.source is None:
            return
        bound, given = self.source.view, array.view
        if bound.dtype != given.dtype or tuple(bound.shape) != tuple(given.shape) or bound.device != given.device:
            raise ValueError(
                f"the input must be like the bound one: {bound.dtype} of shape {tuple(bound.shape)} on "
                f"{place(bound.device)}; got {given.dtype} of shape {tuple(given.shape)} on {place(given.device)}. "
                "Compose without binding for inputs that change"
            )
