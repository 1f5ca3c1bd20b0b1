"""Assertions of `numpy.testing`, in plain Python.

In: what the function of the same name takes. Out: None, or an AssertionError with the first line of
NumPy's message: the tables of differences that NumPy adds are not made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any

__all__ = [
    "assert_", "assert_allclose", "assert_almost_equal", "assert_array_almost_equal",
    "assert_array_equal", "assert_array_less", "assert_equal",
]


def assert_(val: Any, msg: Any = "") -> None:
    """The value is true."""
    if not val:
        raise AssertionError(msg)


def assert_allclose(
    actual: Array, desired: Array, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True,
    err_msg: str = "", verbose: bool = True,
) -> None:
    """The arrays differ by no more than atol + rtol * abs(desired)."""
    close = np.isclose(actual, desired, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not np.all(close):
        raise AssertionError(f"\nNot equal to tolerance rtol={rtol:g}, atol={atol:g}\n")


def assert_array_equal(
    actual: Array, desired: Array, err_msg: str = "", verbose: bool = True,
) -> None:
    """The arrays have the same elements; NaNs are equal."""
    if not _alike(actual, desired):
        raise AssertionError("\nArrays are not equal\n")


def assert_equal(actual: Any, desired: Any, err_msg: str = "", verbose: bool = True) -> None:
    """The numbers, arrays, or the items of the lists, tuples and dicts are equal."""
    if isinstance(desired, dict):
        assert_equal(len(actual), len(desired))
        for key, value in desired.items():
            assert_equal(actual[key], value)
    elif isinstance(desired, (list, tuple)) and isinstance(actual, (list, tuple)):
        assert_equal(len(actual), len(desired))
        for mine, theirs in zip(actual, desired, strict=True):
            assert_equal(mine, theirs)
    elif desired is None or isinstance(desired, (str, bool)):
        if not actual == desired:
            raise AssertionError("\nItems are not equal:")
    elif not _alike(actual, desired):
        raise AssertionError("\nItems are not equal:")


def _alike(actual: Array, desired: Array) -> Any:
    x, y = np.asarray(actual), np.asarray(desired)
    if x.ndim and y.ndim and x.shape != y.shape:
        return False
    return np.all((x == y) | (np.isnan(x) & np.isnan(y)))


def assert_almost_equal(
    actual: Any, desired: Any, decimal: int = 7, err_msg: str = "", verbose: bool = True,
) -> None:
    """The differences are below 1.5 * 10**-decimal."""
    assert_array_almost_equal(actual, desired, decimal)


def assert_array_almost_equal(
    actual: Array, desired: Array, decimal: int = 6, err_msg: str = "", verbose: bool = True,
) -> None:
    """The differences are below 1.5 * 10**-decimal."""
    x, y = np.asarray(actual), np.asarray(desired)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if not np.all(same | (np.abs(x - y) < 1.5 * 10.0**-decimal)):
        raise AssertionError("Arrays are not almost equal")


def assert_array_less(x: Array, y: Array, err_msg: str = "", verbose: bool = True) -> None:
    """Each element of x is less than that of y."""
    if not np.all(np.asarray(x) < np.asarray(y)):
        raise AssertionError("Arrays are not strictly ordered `x < y`")
