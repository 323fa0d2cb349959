"""Chains of one form share a plan and a text, and nothing else."""

import gc
import weakref

import numpy as np
import pytest
from matrix import every
from oracle import BASES

import fkl
import fkl.variant
from fkl.bounds import Bounds
from fkl.dtypes import DType
from fkl.plan import check_chain
from fkl.variant import Variant


def variant(*ops, dtype="uint8", channels=3, fused=True):
    return Variant(check_chain((fkl.TensorRead(), *ops, fkl.TensorWrite())), DType(dtype, channels), False, False, fused)


def test_other_values_take_over_plan_and_text():
    one, other = (variant(fkl.Cast("float32"), fkl.Mul(v), fkl.Sub((v, 2, 3))) for v in (1.5, 2.5))
    assert one.source is other.source
    assert one.plan.slots is other.plan.slots
    assert repr(one.plan.ops[2]) == "Mul(1.5)" and repr(other.plan.ops[2]) == "Mul(2.5)"


@pytest.mark.parametrize(
    "changed",
    [
        dict(ops=(fkl.Cast("float64"), fkl.Mul(2.0))), dict(ops=(fkl.Cast("float32"), fkl.Add(2.0))), dict(ops=(fkl.Cast("float32"),)),
        dict(ops=(fkl.VectorReorder(2, 1, 0),)), dict(ops=(fkl.VectorReorder(1, 1, 0),)), dict(dtype="int8"), dict(channels=4), dict(fused=False),
        dict(ops=(fkl.SaturateCast("float32"), fkl.Mul(2.0))),
    ],
)  # fmt: skip
def test_other_types_do_not(changed):
    base = dict(ops=(fkl.Cast("float32"), fkl.Mul(2.0)), dtype="uint8", channels=3, fused=True)
    found = []
    for options in (base, {**base, **changed}):
        found.append(variant(*options["ops"], **{k: v for k, v in options.items() if k != "ops"}))
    assert (found[0].source, found[0].plan.pixels) != (found[1].source, found[1].plan.pixels)


def test_what_is_shared_is_what_would_be_planned():
    ops = [fkl.Cast("float32"), fkl.Div(255.0), fkl.Sub((1, 2, 3)), fkl.Abs(), fkl.VectorReorder(2, 1, 0), fkl.Max(0.5)]
    variant(*ops)
    shared = variant(*ops)
    fkl.variant._plans.clear()
    fresh = variant(*ops)
    assert fresh.plan._replace(ops=()) == shared.plan._replace(ops=()) and fresh.source == shared.source


def test_no_array_is_kept():
    class Array(np.ndarray):
        pass

    x = np.zeros((4, 5), np.float32).view(Array)
    gone = weakref.ref(x)
    k = fkl.compose(fkl.TensorRead(), fkl.Mul(2.0), fkl.TensorWrite(), target="cpu")
    k(x)
    other = fkl.compose(fkl.TensorRead(), fkl.Add(fkl.TensorRead(x)), fkl.TensorWrite(), target="cpu")
    other(np.ones((4, 5), np.float32))
    del x, k, other
    gc.collect()
    assert gone() is None


def test_the_memory_for_plans_is_bounded(monkeypatch):
    monkeypatch.setattr(fkl.variant, "_MOST_PLANS", 3)
    for count in range(1, 9):
        variant(*[fkl.Abs()] * count, dtype="int8")
    assert len(fkl.variant._plans) <= 3


def test_equal_forms_are_spelled_alike():
    """Over all operations of the matrix: what has one form has one spelling and one rule of bounds in every type that takes it."""
    found = {}
    for case in every():
        for op in case.ops:
            form = op.form
            if form is None:
                continue
            for base in BASES:
                for channels in (1, 3):
                    dtype = DType(base, channels)
                    try:
                        low = op.lower(dtype)
                    except (TypeError, ValueError):
                        low = None
                    spelled = (low, op.bounds(Bounds(0, 0, 8)), op.bounds(Bounds(-3, -5, 9, True)), op.nonzero if hasattr(op, "nonzero") else None)
                    assert found.setdefault((form, dtype), spelled) == spelled, (op, dtype)
    assert len({form[0] for form, _ in found}) > 20
