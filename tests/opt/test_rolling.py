"""Loops hand on the elements that the next round touches, where nothing else of an array is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def filtered(x: Any, a: float) -> Any:
    y = np.zeros_like(x)
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = (1 - a) * y[i - 1] + a * np.sin(x[i])
    return np.sum(y * y)


def summed(x: Any, a: float) -> Any:
    y = np.zeros(len(x))
    y[0] = x[0]
    for i in range(1, len(x)):
        y[i] = a * y[i - 1] + x[i]
    return np.sum(y)


def second_order(x: Any, a: float) -> Any:
    y = np.zeros(len(x) + 2)
    for i in range(2, len(x) + 2):
        y[i] = a * y[i - 1] - 0.3 * y[i - 2] + x[i - 2]
    return np.sum(y**2)


def backwards(x: Any, a: float) -> Any:
    y = np.empty(len(x))
    n = len(x)
    y[n - 1] = x[n - 1]
    for i in range(n - 2, -1, -1):
        y[i] = a * y[i + 1] * x[i] + x[i]
    return y[0] + y.sum()


def forwards(x: Any, a: float) -> Any:
    """A window without a derivative: an array of which only the last element is needed."""
    t = np.full(len(x) + 1, a)
    for i in range(len(x)):
        t[i + 1] = t[i + 1] + t[i] * x[i]
        t[i] = 0.0
    return t[len(x)]


def with_gaps(x: Any, a: float) -> Any:
    """Elements between those that a round touches: the array stays."""
    y = np.zeros(len(x) + 3)
    y[0] = a
    for i in range(3, len(x) + 3):
        y[i] = y[i - 3] * a + x[i - 3]
    return np.sum(y * y)


def read_in_the_middle(x: Any, a: float) -> Any:
    y = x.copy()
    for i in range(1, len(y)):
        y[i] += a * np.tanh(y[i - 1])
    return y[len(y) // 2] * y[-1]


def stores(function: Any, *args: Any) -> int:
    """Stores into arrays that are read in the loop: `index_update` in the optimised program."""
    return str(function.ir(*args, stage="optimise")).count("index_update(")


@pytest.mark.parametrize(
    ("function", "left"),
    [(filtered, 2), (summed, 0), (second_order, 1), (backwards, 2), (forwards, 0)],
)
def test_cotangents_of_recurrences_are_handed_on(function: Callable[..., Any], left: int) -> None:
    slopes = pyrelay.grad(function)
    for n in (1, 2, 6):
        x = np.linspace(0.5, 1.5, n)
        assert pyrelay.jit(function)(x, 0.4) == pytest.approx(function(x, 0.4), rel=1e-12)
        near = np.eye(n) * 1e-6
        wanted = [(function(x + d, 0.4) - function(x - d, 0.4)) / 2e-6 for d in near]
        np.testing.assert_allclose(slopes(x, 0.4), wanted, rtol=1e-5)
    counted = pyrelay.jit(function) if function is forwards else slopes
    assert stores(counted, x, 0.4) == left


@pytest.mark.parametrize("function", [with_gaps, read_in_the_middle])
def test_arrays_that_are_needed_stay(function: Callable[..., Any]) -> None:
    x = np.linspace(0.5, 1.5, 6)
    slopes = pyrelay.grad(function)
    near = np.eye(6) * 1e-6
    wanted = [(function(x + d, 0.4) - function(x - d, 0.4)) / 2e-6 for d in near]
    np.testing.assert_allclose(slopes(x, 0.4), wanted, rtol=1e-5, atol=1e-8)
