"""Plans and source text: what reaches the source, what the parameter block, and the limits."""

import struct

import pytest

import fkl
from fkl.codegen import generate
from fkl.operations.base import Extents
from fkl.plan import PARAMETER_LIMIT, check_chain, make_plan

HERE = Extents(8, 4, 1, 2)


def plan(*ops, dtype="float32", **kw):
    return make_plan(check_chain([fkl.TensorRead(), *ops, fkl.TensorWrite()]), fkl.dtypes.parse_dtype(dtype), **kw)


def test_values_never_reach_the_source():
    assert generate(plan(fkl.Mul(1.5), fkl.Add((2.25,)))) == generate(plan(fkl.Mul(-7.125), fkl.Add(99.0)))
    assert generate(plan(fkl.StaticLoop(fkl.Add(1.0), 3))) == generate(plan(fkl.StaticLoop(fkl.Add(1.0), 300)))
    assert generate(plan(fkl.VectorReorderRT(0, 1, 2), dtype="uint8x3")) == generate(
        plan(fkl.VectorReorderRT(2, 1, 0), dtype="uint8x3")
    )
    assert generate(plan(fkl.VectorReorder(0, 1, 2), dtype="uint8x3")) != generate(
        plan(fkl.VectorReorder(2, 1, 0), dtype="uint8x3")
    )


@pytest.mark.parametrize(
    ("dtype", "value", "raw"),
    [("int64", 2**53 + 1, struct.pack("<q", 2**53 + 1)), ("float64", 0.1, struct.pack("<d", 0.1)), ("uint8", 255.0, b"\xff"),
     ("float32", 0.1, struct.pack("<f", 0.1)), ("float16", 65504, struct.pack("<e", 65504)), ("bfloat16", 1.00390625, b"\x80\x3f"),
     ("uint64", 2**64 - 1, b"\xff" * 8)],
)  # fmt: skip
def test_values_keep_the_chain_type(dtype, value, raw):
    assert plan(fkl.Add(value), dtype=dtype).values(HERE)[1] == (raw,)


@pytest.mark.parametrize("dtype", ["uint8", "uint8x3", "uint16x3", "float32", "float64x4", "float16x2", "bool"])
def test_runs_are_as_wide_as_sixteen_bytes_allow(dtype):
    p = plan(dtype=dtype)
    d = p.in_dtype
    assert 1 <= p.pixels <= 16 and p.pixels & (p.pixels - 1) == 0
    assert (p.pixels * d.pixelsize) % p.source_align == 0
    assert plan(dtype=dtype, fused=False).pixels == 1


def test_long_chains_have_short_runs():
    assert plan(*[fkl.Add(1)] * 200, dtype="uint8x3").pixels == 1


def test_a_block_beyond_the_limit_lies_in_memory():
    large = plan(*[fkl.Add((1.0, 2.0, 3.0, 4.0))] * 2100, dtype="float32x4")
    assert large.large and large.size > PARAMETER_LIMIT
    assert generate(large).startswith("#define FKL_LARGE_PARAMETERS")
    small = plan(*[fkl.Add(1.0)] * 2000)
    assert not small.large and "FKL_LARGE_PARAMETERS" not in generate(small)


def test_errors_name_the_operation():
    with pytest.raises(ValueError, match=r"operation 2, Mul\(300\).*uint8.*Cast"):
        plan(fkl.Add(1), fkl.Mul(300), dtype="uint8").values(HERE)
    with pytest.raises(TypeError, match=r"operation 1, Sqrt\(\).*uint8"):
        plan(fkl.Sqrt(), dtype="uint8")


def test_output_types_and_sizes():
    p = plan(fkl.Cast("float16"), fkl.Discard(2), fkl.AddLast(1.0), fkl.VectorReduce("Add"), fkl.Cast("bool"), dtype="uint8x4")
    assert p.out_dtype == "bool" and p.out_extents(HERE) == HERE
