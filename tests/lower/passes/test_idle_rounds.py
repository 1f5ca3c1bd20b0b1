"""Blocks of rounds that change nothing are skipped, and what is found is what Python finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def greatest(x: Any) -> Any:
    most, at = x[0], 0
    for i in range(1, len(x)):
        if x[i] > most:
            most = x[i]
            at = i
    return most, at


def least_and_greatest(x: Any) -> Any:
    low = high = x[0]
    for i in range(len(x)):
        v = x[i]
        if v < low:
            low = v
        elif v > high:
            high = v
    return low, high


def both(x: Any) -> Any:
    low = high = x[0]
    last = 0
    for v in x:
        if v <= low:
            low = v
            last = 1
        if v > high:
            high = v
            last = 2
    return low, high, last


def two_greatest(x: Any) -> Any:
    first = second = -1
    for v in x:
        if v > first:
            second = first
            first = v
        elif v > second:
            second = v
    return first, second


def farthest(x: Any) -> Any:
    """The greatest of what is computed, and what a step stores."""
    most = x.dtype.type(0)
    found = np.zeros(len(x), dtype=np.int64)
    n = 0
    for i in range(1, len(x)):
        step = abs(x[i] - x[i - 1])
        if step > most:
            most = step
            found[n] = i
            n += 1
    return most, n, found


def onto_itself(x: Any) -> Any:
    """Rounds that store what later ones compare."""
    y = x.copy()
    most = y[0]
    for i in range(len(y) - 20):
        if y[i] > most:
            most = y[i]
            y[i + 20] = most + 1
    return most, y


SKIPPED = [greatest, least_and_greatest, both, two_greatest, farthest, onto_itself]


def same(ours: Any, theirs: Any) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
        assert np.array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize("f", SKIPPED)
def test_what_is_found_is_what_python_finds(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(6)
    for dtype in (np.float64, np.int64):
        whole = (rng.random(600) * 1000).astype(dtype)
        for x in (whole, np.sort(whole), np.sort(whole)[::-1].copy(), np.full_like(whole, 3)):
            for n in (1, 255, 256, 257, 272, 600):
                same(compiled(x[:n]), f(x[:n]))
            for k in (0, 16, 17, 575, 576, 599):
                other = x.copy()
                other[k] = 2000
                same(compiled(other), f(other))
    x = rng.random(400)
    x[[0, 20, 260]] = np.nan, -0.0, 0.0
    same(compiled(x), f(x))
    same(compiled(-x[1:]), f(-x[1:]))


@pytest.mark.parametrize("f", SKIPPED)
def test_they_are_vectors(f: Callable[..., Any]) -> None:
    assert " in lanes(16, 8)" in str(pyrelay.jit(f).code(np.zeros(300)))
    if f is not onto_itself:
        assert " in lanes(32, 4)" in str(pyrelay.jit(f).code(np.zeros(300, dtype=np.float32)))


def changes(x: Any) -> Any:
    last, n = x[0], 0
    for v in x:
        if v != last:
            last = v
            n += 1
    return n


def above(x: Any) -> Any:
    n = 0
    for v in x:
        if v > 0.5:
            n += 1
    return n


def disjoint(x: Any) -> Any:
    end, n = 0.0, 0
    for v in x:
        if v > end:
            end = v + 0.1
            n += 1
    return n


def of_a_column(x: Any) -> Any:
    most = 0.0
    y = np.stack((x, x), axis=1)
    for i in range(len(y)):
        if y[i, 1] > most:
            most = y[i, 1]
    return most


def greatest_integer(x: Any) -> Any:
    most = 0
    for v in x.astype(np.int64):
        if v > most:
            most = v
    return most


@pytest.mark.parametrize("f", [changes, above, disjoint, of_a_column, greatest_integer])
def test_conditions_that_may_be_true_often_are_no_reason(f: Callable[..., Any]) -> None:
    x = np.random.default_rng(7).random(400) * 2
    compiled = pyrelay.jit(f)
    assert compiled(x) == f(x)
    assert " in lanes(" not in str(compiled.code(x))
