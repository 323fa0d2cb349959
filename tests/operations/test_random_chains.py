"""Random chains on the CPU target against an interpreter that applies NumPy's operations one after another."""

import functools

import numpy as np
import oracle
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from matrix import every

import fkl


@functools.cache
def rows() -> dict:
    """(base, channels) -> the exact operations it takes, each with its oracle."""
    found: dict = {}
    for case in every():
        if not case.ulps and "bfloat16" not in (case.base, case.out):
            found.setdefault((case.base, case.channels), []).append(case)
    return found


@st.composite
def chains(draw):
    """An input type and cases that follow each other."""
    start = here = draw(st.sampled_from(sorted(rows())))
    cases = []
    for _ in range(draw(st.integers(1, 10))):
        case = draw(st.sampled_from(rows()[here]))
        cases.append(case)
        with np.errstate(all="ignore"):
            after = case.expect(np.zeros((1, 1, here[1]), oracle.carrier(here[0])))
        here = case.out, np.asarray(after).shape[-1]
    return start, cases


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(chains(), st.integers(0, 1000))
def test_a_chain_means_its_operations_one_after_another(chain, seed):
    (base, channels), cases = chain
    # Which zero Max and Min give is open; a division by it would show.
    loose = any(case.zeros_equal for case in cases)
    assume(not (loose and any(case.name == "Div" for case in cases)))
    x = want = oracle.samples(base, (4, 11, channels), seed)
    for case in cases:
        want = np.asarray(case.expect(want), oracle.carrier(case.out))
    ops = [op for case in cases for op in case.ops]
    got = fkl.compose(fkl.TensorRead(channels=channels), *ops, fkl.TensorWrite(), target="cpu")(np.ascontiguousarray(x))
    assert oracle.difference(got if got.ndim == 3 else got[..., None], want, zeros_equal=loose) == ""
