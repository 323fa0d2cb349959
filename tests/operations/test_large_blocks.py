"""Chains whose values exceed what a launch can carry."""

import numpy as np

import fkl


def test_on_the_cpu_target():
    x = np.random.default_rng(1).integers(-9, 9, (5, 7, 4)).astype(np.float64)
    k = fkl.compose(fkl.TensorRead(), *[fkl.Add((1.0, 2.0, 3.0, 4.0))] * 1100, fkl.Mul(0.5), fkl.TensorWrite(), target="cpu")
    assert np.array_equal(k(x), (x + 1100 * np.arange(1.0, 5.0)) * 0.5)
