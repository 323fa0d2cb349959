"""The GPU target: bindings, and calls that end in one launch. Used by `fkl.kernel`."""

from __future__ import annotations

from typing import Any

from fkl.binding import fill
from fkl.chain import Chain, Request
from fkl.dtypes import DType
from fkl.operations.base import Extents, Operation
from fkl.plan import GRID_OFFSET

__all__ = ["GpuChain"]


class GpuChain(Chain):
    """A chain on the GPU. A bound read compiles it at once.

    Parameters
    ----------
    ops : tuple of Operation
        A checked chain.
    fast_math : bool
        Compile with contraction and approximate division.
    thread_fusion : bool or None
        False makes a thread move one pixel.
    """

    target = "gpu"

    def __init__(self, ops: tuple[Operation, ...], fast_math: bool, thread_fusion: bool | None) -> None:
        super().__init__(ops, fast_math, thread_fusion is not False)
        self.thread_fusion = thread_fusion
        if self.read.source is not None:
            self.sources = self.see_source(self.read.source)
        self.dest = self.write.dest
        self.bind_operands()

    def rebuilt(self, ops: tuple[Operation, ...]) -> Chain:
        return GpuChain(ops, self.fast_math, self.thread_fusion)

    def bind(self) -> tuple[Any, Request] | None:
        """Compile and prepare the launch of a fully bound chain; compile one whose read is bound.

        Returns
        -------
        (Launch, Request) or None
            None if the output is not bound, or if the input is neither bound nor generated.
        """
        if self.dest is not None:
            # Seen at once, so that an array that can never be written is refused here.
            for target in self.dest if isinstance(self.dest, list) else [self.dest]:
                self.view(target, "output")
        if self.source is None and not self.generates:
            return None
        if self.dest is None:
            if self.source is not None:
                self.compile(self.source.surface.dtype, self.source.surface.extents, self.source.view.device)
            return None
        request = self.request(None, None)
        return self.prepare(request), request

    def view(self, obj: Any, role: str) -> Any:
        from fkl.runtime.view import view

        seen = view(obj, writable=role == "output")
        if seen.device < 0:
            raise ValueError(
                f"the {role} is in CPU memory, the chain runs on the GPU; copy it with fkl.asarray(x) (or x.cuda()), "
                'or compose with target="cpu"'
            )
        return seen

    def allocate(self, like: Any, shape: tuple[int, ...], base: str, device: int, stream: int) -> Any:
        from fkl.runtime.frameworks import allocate

        return allocate(like, shape, base, device, stream)

    def default_device(self) -> int:
        from fkl.runtime.context import current_device_index

        return current_device_index()

    def compile(self, dtype: DType, extents: Extents | None = None, device: int | None = None) -> None:
        """Compile and load the chain for this input type, and check its values if the size is known."""
        variant = self.variant(dtype)
        if extents is not None:
            variant.plan.out_extents(extents)
            variant.plan.values(extents)
        index = self.default_device() if device is None else device
        variant.library(index).load(index)
        self.keep(dtype)

    def prepare(self, request: Request) -> Any:
        """The launch for a checked call."""
        from fkl.runtime.launch import Launch

        plan = request.variant.plan
        block = fill(plan, request.result, request.values, request.sources, request.dests, request.operands)
        single = len(request.sources) == 1 and not plan.plane_slots and plan.read.layout != "yuv"  # type: ignore[attr-defined]
        return Launch(
            request.variant.library(request.device),
            request.device,
            block.data,
            block.table,
            plan.table_offset,
            plan.large,
            block.grid,
            block.wide,
            GRID_OFFSET,
            plan.source.offset if single else -1,
            plan.source_align,
            request.sources[0].view.ptr if single else 0,
            plan.target.offset if plan.write.layout != "separate" else -1,  # type: ignore[attr-defined]
            plan.target_align,
            request.dests[0].view.ptr,
        )
