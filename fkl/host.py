"""The CPU target: a chain compiled by the host compiler and run by bands over threads. Used by `fkl.kernel`."""

from __future__ import annotations

from typing import Any

from fkl.binding import fill
from fkl.chain import Chain
from fkl.dtypes import DType
from fkl.operations.base import Operation
from fkl.variant import host_function

__all__ = ["HostChain"]

#: Pixels of a row that one unit of work covers: small enough for the threads to share an image of one row.
_CHUNK = 1 << 14


class HostChain(Chain):
    """A chain on the CPU. It binds nothing but operand reads; arrays come at the call.

    Raises
    ------
    ValueError
        A bound read or write.
    """

    target = "cpu"

    def __init__(self, ops: tuple[Operation, ...], fast_math: bool) -> None:
        super().__init__(ops, fast_math)
        if ops[0].source is not None or ops[-1].dest is not None:  # type: ignore[attr-defined]
            raise ValueError(
                'target="cpu" binds no read or write; compose with TensorRead() and TensorWrite() and call k(x, out=y)'
            )
        self.bind_operands()

    def rebuilt(self, ops: tuple[Operation, ...]) -> Chain:
        return HostChain(ops, self.fast_math)

    def view(self, obj: Any, role: str) -> Any:
        from fkl.runtime.view import view

        seen = view(obj, writable=role == "output")
        if seen.device >= 0:
            raise ValueError(
                f'target="cpu" takes arrays in CPU memory, the {role} is on cuda:{seen.device}; '
                'copy it to the host, or compose with target="gpu"'
            )
        return seen

    def allocate(self, like: Any, shape: tuple[int, ...], base: str, device: int, stream: int) -> Any:
        from fkl.runtime.frameworks import allocate

        return allocate(like, shape, base, -1, 0)

    def default_device(self) -> int:
        return -1

    def compile(self, dtype: DType, listed: bool = False) -> None:
        """Compile and load the chain for this input type."""
        host_function(self.variant(dtype, listed=listed))

    def call(self, x: Any, out: Any, stream: Any) -> Any:
        """Run one call and return its output."""
        if stream is not None:
            raise ValueError('target="cpu" runs at once and takes no stream')
        import ctypes

        from fkl.compiler.threads import run_bands

        request = self.request(x, out)
        plan = request.variant.plan
        block = fill(plan, request.extents, request.sources, request.dests, request.operands)
        width, height, planes = block.walk[:3]
        if 0 in (width, height, planes):
            return request.out
        band = host_function(request.variant).function("fkl_band")
        data = ctypes.create_string_buffer(bytes(block.data), len(block.data))
        table = ctypes.create_string_buffer(block.table, len(block.table)) if block.table else None
        if table is not None:
            ctypes.c_void_p.from_buffer(data, plan.table_offset).value = ctypes.addressof(table)
        units = -(-width // _CHUNK) * height * planes
        grain = max(1, _CHUNK // min(width, _CHUNK))
        run_bands(lambda begin, end: band(data, begin, end, _CHUNK), units, grain)
        return request.out
