"""Elements that a loop reads and stores in all its rounds are variables of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def added(c: Any, a: Any, b: Any) -> Any:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]
    return c


def begun(c: Any, a: Any, b: Any) -> Any:
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 0.5
            for k in range(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
    return c


def windows(c: Any, a: Any, b: Any) -> Any:
    for i in range(c.shape[0] - 2):
        for j in range(c.shape[1] - 2):
            for u in range(3):
                for v in range(b.shape[0]):
                    c[i, j] += c[i + 1 + u % 2, j + u] * b[v, 0]
    return c


def two(c: Any, a: Any, b: Any) -> Any:
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            c[i, 0] += a[i, k]
            c[i, 1] -= a[i, k] * c[i, 0]
    return c


def sometimes(c: Any, a: Any, b: Any) -> Any:
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            if a[i, k] > 0.5:
                c[i, 0] += a[i, k]
    return c


def beside(c: Any, a: Any, b: Any) -> Any:
    """Reads the element under another index now and then."""
    for i in range(c.shape[0]):
        for k in range(c.shape[1]):
            c[i, 1] += c[i, k] * 0.5
    return c


def counted(c: Any, a: Any, b: Any) -> Any:
    counts = np.zeros(3, dtype=np.int64)
    for i in range(c.shape[0]):
        for k in range(a.shape[1]):
            counts[1] += k
            if a[i, k] > 0.5:
                break
    return counts


FUNCTIONS = [added, begun, windows, two, sometimes, beside, counted]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_elements_have_the_values_of_python(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(0)
    for inner, columns in [(0, 5), (1, 4), (3, 2), (7, 21), (20, 40)]:
        c, a = rng.random((5, columns)), rng.random((5, inner))
        b = rng.random((inner, columns))
        one, other = c.copy(), c.copy()
        np.testing.assert_array_equal(compiled(one, a, b), f(other, a, b))
        np.testing.assert_array_equal(one, other)


def test_places_that_no_round_touches_are_not_touched() -> None:
    def outside(c: Any, n: int, m: int) -> Any:
        for _ in range(n):
            for k in range(m):
                c[7] += k
        return c

    compiled = pyrelay.jit(outside)
    for n, m in [(0, 3), (3, 0), (0, 0)]:
        np.testing.assert_array_equal(compiled(np.ones(3), n, m), np.ones(3))
    np.testing.assert_array_equal(compiled(np.ones(8), 2, 4), outside(np.ones(8), 2, 4))
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        compiled(np.ones(3), 1, 1)


def test_what_was_stored_before_a_failure_stays() -> None:
    def failing(c: Any, places: Any) -> Any:
        for k in range(len(places)):
            c[0] += c[places[k]]
        return c

    compiled = pyrelay.jit(failing)
    places = np.array([1, 2, 1, 9, 1])
    one, other = np.arange(1.0, 5.0), np.arange(1.0, 5.0)
    for f, c in ((compiled, one), (failing, other)):
        with pytest.raises(IndexError):
            f(c, places)
    np.testing.assert_array_equal(one, other)


def test_a_product_that_adds_to_its_result_runs_in_lanes() -> None:
    compiled = pyrelay.jit(added)
    c, a, b = np.zeros((5, 9)), np.ones((5, 4)), np.ones((4, 9))
    assert " in lanes(" in str(compiled.code(c, a, b))
    inner = str(pyrelay.jit(begun).code(c, a, b))
    assert inner.count("store_ordered_f64(") <= 3  # one behind each form of the loop
