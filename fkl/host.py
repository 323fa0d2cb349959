"""The CPU target: a chain compiled by the host compiler and run by bands over threads. Used by `fkl.kernel`."""

from __future__ import annotations

from typing import Any

from fkl.binding import fill
from fkl.chain import Chain
from fkl.dtypes import DType
from fkl.operations.base import Extents, Operation
from fkl.variant import host_function

__all__ = ["HostChain", "run_block"]

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
        variant = self.variant(dtype, listed=listed)
        host_function(variant.source, variant.fast_math)
        self.keep(dtype, listed)

    def call(self, x: Any, out: Any, stream: Any) -> Any:
        """Run one call and return its output."""
        if stream is not None:
            raise ValueError('target="cpu" runs at once and takes no stream')
        request = self.request(x, out)
        plan = request.variant.plan
        block = fill(plan, request.result, request.values, request.sources, request.dests, request.operands)
        if 0 not in block.walk[:3]:
            code = host_function(request.variant.source, self.fast_math)
            run_block(code, block.data, block.table, plan.table_offset, block.walk)
        return request.out


def _aligned(data: bytes | bytearray) -> Any:
    """A copy at an address that is a multiple of 16, as the structures of the generated code want it."""
    import ctypes

    memory = ctypes.create_string_buffer(len(data) + 15)
    copy = (ctypes.c_char * len(data)).from_buffer(memory, -ctypes.addressof(memory) % 16)
    ctypes.memmove(copy, bytes(data), len(data))
    return copy


def run_block(library: Any, block: bytes | bytearray, table: bytes, table_offset: int, walk: Extents) -> None:
    """Run a compiled chain over its output, in bands over the threads."""
    import ctypes

    from fkl.compiler.threads import run_bands

    band = library.function("fkl_band")
    data = _aligned(block)
    records = _aligned(table) if table else None
    if records is not None:
        ctypes.c_void_p.from_buffer(data, table_offset).value = ctypes.addressof(records)
    units = -(-walk.width // _CHUNK) * walk.height * walk.planes
    grain = max(1, _CHUNK // min(walk.width, _CHUNK))
    run_bands(lambda begin, end: band(data, begin, end, _CHUNK), units, grain)
