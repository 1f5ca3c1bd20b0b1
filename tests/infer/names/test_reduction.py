"""Reductions by their NumPy names: what differs from the op that they are made of."""

from __future__ import annotations

import numpy as np

import pyrelay


def test_the_gradient_of_a_deviation_is_0_where_there_is_none():
    def spread(x):
        return np.sum(np.std(x, axis=1) * np.array([1.0, 2.0]))

    x = np.array([[3.0, 3.0, 3.0], [1.0, 2.0, 6.0]])
    gradient = pyrelay.grad(spread)(x)
    np.testing.assert_array_equal(gradient[0], 0.0)
    np.testing.assert_allclose(gradient[1], 2.0 * (x[1] - 3.0) / (3.0 * np.std(x[1])))
    np.testing.assert_array_equal(pyrelay.jit(spread)(x * 0.0), 0.0)
