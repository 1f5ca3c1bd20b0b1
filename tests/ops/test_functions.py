"""Powers by known exponents: products, as exact as the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [2, 3, 3.0])
def test_small_whole_powers_are_products(exponent: Any, dtype: Any) -> None:
    fast = pyrelay.jit(lambda x: x**exponent)
    x = np.concatenate([
        np.random.default_rng(1).normal(size=500) * 10.0 ** np.arange(-250, 250) / 2,
        [0.0, -0.0, np.inf, -np.inf, np.nan],
    ])
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        exact = np.power(x.astype(np.longdouble), int(exponent))
        expected = x**exponent
        got = fast(x)
    assert "power(" not in fast.code(x)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    finite = np.isfinite(expected) & (expected != 0)
    assert (np.isfinite(got) == np.isfinite(expected)).all()
    error = np.abs(got[finite] - exact[finite]) / np.spacing(np.abs(expected[finite]))
    assert error.max() <= 1.5


def test_a_number_whose_power_is_too_large_raises_as_in_python() -> None:
    cube = pyrelay.jit(lambda x: x**3)
    assert cube(1.5) == 1.5**3
    with pytest.raises(OverflowError, match="Numerical result out of range"):
        cube(1e200)


def test_the_derivative_of_a_cube_needs_no_power_either() -> None:
    slope = pyrelay.grad(lambda x: np.sum(x**3))
    x = np.array([-2.0, 0.0, 1.5])
    np.testing.assert_allclose(slope(x), 3 * x * x, rtol=1e-15)
    assert "power(" not in slope.code(x)
