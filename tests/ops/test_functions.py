"""Powers by known exponents: products, as exact as the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [2, 3, 3.0, 4, 5, 6, 7.0, 12, -2, -3, -4, -7, 16])
def test_small_whole_powers_are_products(exponent: Any, dtype: Any) -> None:
    fast = pyrelay.jit(lambda x: x**exponent)
    x = np.concatenate([
        np.random.default_rng(1).normal(size=500) * 10.0 ** np.arange(-250, 250) / 2,
        [0.0, -0.0, np.inf, -np.inf, np.nan],
    ])
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        exact = np.power(x.astype(np.longdouble), np.longdouble(exponent))
        expected = x**exponent
        got = fast(x)
    assert "power(" not in fast.code(x)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))
    finite = np.isfinite(expected) & (expected != 0)
    assert (np.isfinite(got) == np.isfinite(expected)).all()
    error = np.abs(got[finite] - exact[finite]) / np.spacing(np.abs(expected[finite]))
    assert error.max() <= (1.5 if exponent == 3 else 1.1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [0.5, 1.5, -0.5, -1.5])
def test_powers_by_halves_are_roots(exponent: float, dtype: Any) -> None:
    fast = pyrelay.jit(lambda x: x**exponent)
    sizes = 10.0 ** np.arange(-300, 300) * np.random.default_rng(2).uniform(1, 10, 600)
    x = np.concatenate([sizes, [5e-324, 0.0, -0.0, np.inf, -np.inf, np.nan, -1.0]])
    with np.errstate(all="ignore"):
        x = x.astype(dtype)
        exact = np.power(x.astype(np.longdouble), np.longdouble(exponent))
        expected = np.array([np.float64(v) ** np.float64(exponent) for v in x]).astype(dtype)
        got = fast(x)
    if exponent != 0.5:  # of an array: np.sqrt, in NumPy too
        np.testing.assert_array_equal(np.signbit(got[:-2]), np.signbit(expected[:-2]))
        assert (np.isnan(got) == np.isnan(expected)).all()
    finite = np.isfinite(expected) & (expected != 0)
    error = np.abs(got[finite] - exact[finite]) / np.spacing(np.abs(expected[finite]))
    assert error.max() <= 1.8


def test_roots_by_powers_of_pythons_numbers_are_refused_where_they_are_complex() -> None:
    root = pyrelay.jit(lambda x: x**0.5)
    assert [root(x) for x in (2.0, -0.0, -np.inf)] == [2.0**0.5, 0.0, np.inf]
    assert not np.signbit(root(-0.0))
    assert "power(" not in root.code(2.0)
    with pytest.raises(ValueError, match="complex"):
        root(-2.0)


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
