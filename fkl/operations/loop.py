"""Operations that repeat or combine others: `StaticLoop`, and the 3x3 matrix `MxVFloat3`."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from fkl.checks import integer
from fkl.dtypes import DType
from fkl.operations.base import Elementwise, Extents, Field, Lowered, Operation
from fkl.operations.values import number, pack_i32, scalar_bytes

__all__ = ["MxVFloat3", "StaticLoop"]


class StaticLoop(Elementwise):
    """Apply operations ``n`` times in registers.

    Parameters
    ----------
    operations : operation or sequence of operations
        Elementwise operations whose output type is their input type.
    n : int
        How often, 0 or more. A value: changing it compiles nothing.

    Raises
    ------
    TypeError
        An operation that is not elementwise, or a body that changes the chain's type.
    ValueError
        ``n`` negative or above 2^31 - 1, or no operation.
    """

    takes = ("float", "integer", "bool")

    def __init__(self, operations: Any, n: int) -> None:
        body = tuple(operations) if isinstance(operations, (list, tuple)) else (operations,)
        if not body:
            raise ValueError("StaticLoop needs at least one operation")
        for op in body:
            if not isinstance(op, Operation) or op.role != "elementwise":
                raise TypeError(f"StaticLoop repeats elementwise operations, got {op!r}")
            if getattr(op, "operand", None) is not None:
                raise TypeError(f"StaticLoop repeats operations with numbers, not with reads as operands: {op!r}")
        self.body, self.n = body, integer(n, "StaticLoop: the count")
        if not 0 <= self.n < 2**31:
            raise ValueError(f"StaticLoop: the count must be 0 to 2147483647, got {n}")

    @property
    def headers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The headers of its operations."""
        return tuple(dict.fromkeys(h for op in self.body for h in op.headers))

    def lower(self, dtype: DType) -> Lowered:
        fields: list[Field] = [Field("i32", 4, 4)]
        lines: list[str] = []
        current, inner, weight = dtype, "{y}", 0
        for k, op in enumerate(self.body):
            lowered = op.lower(current)
            names = {str(i): f"{{{len(fields) + i}}}" for i in range(len(lowered.fields))}
            target = f"{{y}}_{k}"
            lines.append(_rename(lowered.code.replace("{m}", ""), inner, target, names))
            fields.extend(lowered.fields)
            current, inner = lowered.out, target
            weight += lowered.weight
        if current != dtype:
            raise TypeError(f"StaticLoop: the operations turn {dtype} into {current}; a loop keeps its type")
        body = " ".join(lines)
        step = f"{{{{ {body} {{y}} = {inner}; }}}}"
        code = "auto {y} = {x}; i32 {y}_n = {0}; "
        turns = self._turns(weight * dtype.channels)
        if turns > 1:
            code += (
                f"for (; {{y}}_n >= {turns}; {{y}}_n -= {turns}) {{{{ FKL_UNROLL_BY({turns}) "
                f"for (int {{y}}_j = 0; {{y}}_j < {turns}; ++{{y}}_j) {step} }}}} "
            )
        if turns > 16:
            code += (
                "for (; {y}_n >= 8; {y}_n -= 8) {{ FKL_UNROLL_BY(8) "
                f"for (int {{y}}_j = 0; {{y}}_j < 8; ++{{y}}_j) {step} }}}} "
            )
        code += f"FKL_UNROLL_BY(1) for (; {{y}}_n > 0; --{{y}}_n) {step}"
        return Lowered(code, tuple(fields), dtype, weight)

    def _turns(self, work: int) -> int:
        """How many turns are written out, so that counting them costs little: some 240 scalar operations."""
        if any(isinstance(op, StaticLoop) for op in self.body):
            return 1
        return min(120, 240 // max(work, 1))

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        out: list[bytes] = [pack_i32(self.n)]
        for op in self.body:
            out.extend(op.values(dtype, extents))
            dtype = op.lower(dtype).out
        return tuple(out)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (list(self.body), self.n), {}


def _rename(code: str, x: str, y: str, names: dict[str, str]) -> str:
    """Fill a statement template with names that are themselves templates; escaped braces stay escaped."""

    def fill(match: re.Match[str]) -> str:
        key = match[1]
        return match[0] if key is None else x if key == "x" else y if key == "y" else names[key]

    return re.sub(r"\{\{|\}\}|\{(\w+)\}", fill, code)


class MxVFloat3(Elementwise):
    """Multiply every float32x3 pixel by a 3x3 matrix: row i gives ``(m[i][0]*x0 + m[i][1]*x1) + m[i][2]*x2``.

    Parameters
    ----------
    matrix : 3x3 numbers
        Rows of the matrix, nested or flat.
    """

    headers: ClassVar[tuple[str, ...]] = ("fkl/elementwise.h",)

    def __init__(self, matrix: Any) -> None:
        rows = matrix.tolist() if hasattr(matrix, "tolist") else matrix
        if isinstance(rows, (list, tuple)) and len(rows) == 3 and all(isinstance(r, (list, tuple)) for r in rows):
            rows = [v for row in rows for v in row]
        if not isinstance(rows, (list, tuple)) or len(rows) != 9:
            raise ValueError(f"MxVFloat3 takes a 3x3 matrix, got {matrix!r:.80}")
        self.matrix = tuple(number(v, "MxVFloat3") for v in rows)

    def lower(self, dtype: DType) -> Lowered:
        if dtype.name != "float32x3":
            raise TypeError(f'MxVFloat3 takes float32x3, the chain has {dtype} there; put Cast("float32") before it')
        return Lowered("auto {y} = mxv3({x}, {0});", (Field("mat3", 36, 4),), dtype)

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        return (b"".join(scalar_bytes("float32", v, "MxVFloat3") for v in self.matrix),)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return ([list(self.matrix[i : i + 3]) for i in (0, 3, 6)],), {}
