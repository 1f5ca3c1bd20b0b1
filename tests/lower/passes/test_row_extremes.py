"""The greatest number of a table, and where it is, found by rows that stand side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def alignment(a: Any, b: Any, w: Any) -> Any:
    """Smith and Waterman's, with where it ends."""
    n, m = len(a), len(b)
    h = np.zeros((n + 1, m + 1), w.dtype)
    best, row, column = w[0, 0] - w[0, 0], -1, -1
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            s = 2 if a[i - 1] == b[j - 1] else -1
            h[i, j] = max(0, h[i - 1, j - 1] + s, h[i - 1, j] - 2, h[i, j - 1] - 2)
            if h[i, j] > best:
                best, row, column = h[i, j], i, j
    return best, row, column, h


def least(a: Any, b: Any, w: Any) -> Any:
    """The least, found only where a condition allows it."""
    d, found = w.copy(), w[0, 0]
    for i in range(1, w.shape[0]):
        for j in range(1, w.shape[1]):
            d[i, j] = min(d[i - 1, j], d[i, j - 1]) + w[i, j]
            if a[i] == b[j]:
                found = min(found, d[i, j])
    return found, d


def last_of_equals(a: Any, b: Any, w: Any) -> Any:
    """Of several that are the greatest, the last one: rows cannot tell by themselves."""
    d, best, at = w.copy(), w[0, 0], 0
    for i in range(1, w.shape[0]):
        for j in range(1, w.shape[1]):
            d[i, j] = max(d[i - 1, j], d[i, j - 1] - 1) + w[i, j]
            if d[i, j] >= best:
                best, at = d[i, j], i * 1000 + j
    return best, at, d


def counted(a: Any, b: Any, w: Any) -> Any:
    """How often the greatest number changed hangs on all rows."""
    d, best, times = w.copy(), w[0, 0], 0
    for i in range(1, w.shape[0]):
        for j in range(1, w.shape[1]):
            d[i, j] = max(d[i - 1, j], d[i, j - 1] - 1) + w[i, j]
            if d[i, j] > best:
                best, times = d[i, j], times + 1
    return best, times, d


def something_else(a: Any, b: Any, w: Any) -> Any:
    """What is taken is not what is compared."""
    d, best = w.copy(), w[0, 0]
    for i in range(1, w.shape[0]):
        for j in range(1, w.shape[1]):
            d[i, j] = max(d[i - 1, j], d[i, j - 1] - 1) + w[i, j]
            if d[i, j] > best:
                best = w[i, j]
    return best, d


def told(a: Any, b: Any, w: Any) -> Any:
    """Where the greatest number changed is told, which hangs on all rows."""
    d, best, marks = w.copy(), w[0, 0], np.zeros(w.shape)
    for i in range(1, w.shape[0]):
        for j in range(1, w.shape[1]):
            d[i, j] = max(d[i - 1, j], d[i, j - 1] - 1) + w[i, j]
            mark = 0
            if d[i, j] > best:
                best, mark = d[i, j], 1
            marks[i, j] = mark
    return best, marks, d


def so_far(a: Any, b: Any, w: Any) -> Any:
    """Each row tells what is the greatest number so far."""
    d, best, found = w.copy(), w[0, 0], np.zeros(w.shape[0])
    for i in range(1, w.shape[0]):
        for j in range(1, w.shape[1]):
            d[i, j] = max(d[i - 1, j], d[i, j - 1] - 1) + w[i, j]
            if d[i, j] > best:
                best = d[i, j]
        found[i] = best
    return best, found, d


def from_the_edge(a: Any, b: Any, w: Any) -> Any:
    """The first column, which stands apart, may hold the greatest number."""
    d, best, row, column = np.zeros_like(w), w[0, 0] - 5, -1, -1
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            if i == 0 or j == 0:
                d[i, j] = w[i, j] * 3
            else:
                d[i, j] = max(d[i - 1, j], d[i, j - 1] - 2) + w[i, j]
            if d[i, j] > best:
                best, row, column = d[i, j], i, j
    return best, row, column, d


def but_for_the_edge(a: Any, b: Any, w: Any) -> Any:
    """The first column hands on what it has not looked at."""
    d, best = np.zeros_like(w), w[0, 0] - 5
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            if i == 0 or j == 0:
                d[i, j] = w[i, j]
            else:
                d[i, j] = max(d[i - 1, j], d[i, j - 1] - 2) + w[i, j]
                if d[i, j] > best:
                    best = d[i, j]
    return best, d


def begun_lower(a: Any, b: Any, w: Any) -> Any:
    """The first column sets the number back."""
    d, best = w.copy(), w[0, 0]
    for i in range(1, w.shape[0]):
        for j in range(w.shape[1]):
            if j == 0:
                best = best - 1
            else:
                d[i, j] = max(d[i - 1, j], d[i, j - 1] - 1) + w[i, j]
                if d[i, j] > best:
                    best = d[i, j]
    return best, d


SIDE_BY_SIDE = [alignment, least, from_the_edge, but_for_the_edge]
ROW_BY_ROW = [begun_lower, told, so_far, last_of_equals, counted, something_else]


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("f", [*SIDE_BY_SIDE, *ROW_BY_ROW])
def test_the_numbers_are_those_of_python(f: Callable[..., Any], dtype: Any) -> None:
    compiled = pyrelay.jit(f)
    for seed, (n, m) in enumerate([(40, 60), (9, 80), (1, 50), (17, 33), (50, 10)]):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 3, n), rng.integers(0, 3, m)
        w = rng.integers(-2, 3, (n, m)).astype(dtype)
        if dtype is np.float64 and seed == 1:
            w[3, 20] = np.nan
        for got, expected in zip(compiled(a, b, w), f(a, b, w), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("f", [*SIDE_BY_SIDE, *ROW_BY_ROW])
def test_which_rows_stand_side_by_side(f: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    a, b, w = rng.integers(0, 3, 40), rng.integers(0, 3, 60), rng.random((40, 60))
    stores = str(pyrelay.jit(f).code(a, b, w)).count("store_ordered_f64")
    assert (stores >= 6) == (f not in ROW_BY_ROW)
