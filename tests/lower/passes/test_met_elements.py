"""An element that a loop reads in all its rounds, and stores in one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay

Program = Callable[..., Any]


def shortest(a: Any) -> Any:
    """Floyd's and Warshall's paths."""
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(a.shape[0]):
                a[i, j] = min(a[i, j], a[i, k] + a[k, j])
    return a


def reduced(a: Any) -> Any:
    """Gauss and Jordan: the round in which the element is stored changes it."""
    for k in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[k, j] = a[k, j] / (1 + abs(a[k, k]))
        for i in range(a.shape[0]):
            if i != k:
                for j in range(a.shape[1]):
                    a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


def from_behind(a: Any) -> Any:
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(a.shape[1] - 1, -1, -1):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def factors(a: Any) -> Any:
    """Doolittle's: the element is surely not among those that the loop stores."""
    for k in range(a.shape[0]):
        for i in range(k + 1, a.shape[0]):
            a[i, k] /= 1 + abs(a[k, k])
            for j in range(k + 1, a.shape[0]):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def sometimes(a: Any) -> Any:
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if a[i, k] > a[k, j]:
                    a[i, j] = a[i, k] * 2 - a[k, j]
    return a


def marked(a: Any) -> Any:
    """A branch that stores stands in the same rounds."""
    marks = np.zeros(a.shape)
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                if a[k, j] > 0:
                    marks[i, j] = k + 1
                a[i, j] = min(a[i, j], a[i, k] + a[k, j])
    return marks


PARTED = [marked, shortest, reduced, from_behind, factors, sometimes]


def before(a: Any) -> Any:
    """What is behind the element is read in the next round."""
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(1, a.shape[1]):
                a[i, j] = a[i, j - 1] + a[i, k]
    return a


def roundabout(a: Any) -> Any:
    """The element's place is computed by way of the loop's index."""
    for k in range(a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(min(a.shape)):
                place = j + k - j
                if place < a.shape[1]:
                    a[i, j] = a[i, j] * 0.5 + a[i, place]
    return a


def two(a: Any) -> Any:
    """Two elements."""
    for k in range(1, a.shape[0]):
        for i in range(a.shape[0]):
            for j in range(a.shape[1]):
                a[i, j] = a[i, j] * 0.5 + a[i, k] * 0.25 + a[i, k - 1] * 0.25
    return a


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float32])
@pytest.mark.parametrize("f", [*PARTED, before, two, roundabout])
def test_arrays_have_the_values_of_python(f: Program, dtype: Any) -> None:
    compiled = pyrelay.jit(f)
    for seed, shape in enumerate([(9, 9), (24, 24), (1, 1), (9, 14), (14, 17), (2, 2)]):
        rng = np.random.default_rng(seed)
        one = (rng.random(shape) * 4 - 1).astype(dtype)
        if dtype is not np.int64:
            one[rng.random(shape) < 0.1] = -0.0
            one[rng.random(shape) < 0.02] = np.nan
        other = one.copy()
        with np.errstate(all="ignore"):
            expected = f(other)
            got = compiled(one)
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(one, other)
        if dtype is not np.int64:
            signs = np.signbit(got) == np.signbit(expected)
            assert (signs | np.isnan(expected)).all()


def test_places_outside_of_the_array_are_not_read() -> None:
    def late(a: Any, rows: int, columns: int) -> Any:
        for i in range(rows):
            for j in range(columns):
                a[i, j] = a[i, j] + a[i, 90]
        return a

    compiled = pyrelay.jit(late)
    for rows, columns in [(0, 5), (5, 0)]:
        np.testing.assert_array_equal(compiled(np.ones((5, 5)), rows, columns), np.ones((5, 5)))
    with pytest.raises(IndexError, match="index 90 is out of bounds"):
        compiled(np.ones((5, 5)), 1, 1)


@pytest.mark.parametrize("f", [*PARTED, before, two])
def test_which_loops_are_parted(f: Program) -> None:
    text = str(pyrelay.jit(f).code(np.ones((9, 9))))
    assert ("load_inner_f64" in text) == (f in PARTED)
