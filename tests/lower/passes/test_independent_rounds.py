"""Loops over rows that are one row or have nothing in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay

Program = Callable[..., Any]


def pivoted(a: Any, p: Any) -> Any:
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            f = a[i, 0] * 0.5
            for j in range(a.shape[1]):
                a[i, j] -= f * a[k, j]
    return a


def gathered(a: Any, p: Any) -> Any:
    """Rows of which only the call knows which they are."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[p[i], j] = a[p[i], j] * 0.5 + a[i, j]
    return a


def seldom(a: Any, p: Any) -> Any:
    """What is read on a condition need not be there: vectors are read under a mask."""
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if k > 0:
                    a[i, j] = a[i, j] * 0.5 + a[k - 1, j]
    return a


INDEPENDENT = [pivoted, gathered, seldom]


def mixed(a: Any, p: Any) -> Any:
    """Rows that differ from round to round, and have to be checked."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = a[i, j] * 0.5 + a[p[j], j]
    return a


def shifted(a: Any, p: Any) -> Any:
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(1, a.shape[1]):
                a[i, j] = a[i, j] * 0.5 + a[k, j - 1]
    return a


def jumping(a: Any, p: Any) -> Any:
    """Places that differ by what is not known are not those of rows."""
    flat = a.reshape(-1)
    for _ in range(a.shape[0]):
        for j in range(a.shape[1]):
            flat[p[j] + j] = flat[p[j] + j] * 0.5 + 1.0
    return a


def turned(a: Any, p: Any) -> Any:
    """One goes up and the other one down."""
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                a[i, j] = a[i, j] * 0.5 + a[k, a.shape[1] - 1 - j]
    return a


ORDERED = [mixed, shifted, jumping, turned]


@pytest.mark.parametrize("f", [*INDEPENDENT, *ORDERED])
def test_arrays_have_the_values_of_python(f: Program) -> None:
    compiled = pyrelay.jit(f)
    for shape in [(9, 9), (24, 40), (40, 24), (1, 30)]:
        rng = np.random.default_rng(0)
        one, p = rng.random(shape), rng.integers(0, shape[0], max(shape))
        other = one.copy()
        np.testing.assert_array_equal(compiled(one, p), f(other, p))


@pytest.mark.parametrize("f", [*INDEPENDENT, *ORDERED])
def test_which_loops_are_independent(f: Program) -> None:
    text = str(pyrelay.jit(f).code(np.ones((9, 14)), np.zeros(14, np.int64)))
    assert ("store_inner_f64" in text) == (f in INDEPENDENT)
