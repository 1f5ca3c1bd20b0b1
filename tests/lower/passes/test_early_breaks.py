"""Loops end where a round knows that it is the last, with what it hands on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def marched(x: Any, most: int) -> Any:
    """Steps of two ways to end; what is behind the first has not been added."""
    t, hit, count = 0.0, False, 0
    for i in range(most):
        step = 1.0 / (1.0 + x * t)
        if step < 0.3:
            hit = True
            count = i
            break
        t += step
        if t > 20.0:
            break
    return t, hit, count


def paired(x: Any, n: int) -> Any:
    """The first pair of neighbours that is out of order, or what ends the search before."""
    i, found = 0, -1
    while i + 1 < n:
        if x[i] > x[i + 1]:
            found = i
            break
        if x[i] < 0:
            if x[i + 1] > 90:
                found = -2
                break
            i += 1
        i += 1
    return i, found


def nested(x: Any) -> int:
    """A loop that is left inside one that goes on."""
    total = 0
    for i in range(len(x)):
        for j in range(i, len(x)):
            if x[j] > 5:
                total += j
                break
            total += 1
            if x[j] < -3:
                break
    return total


ROW = np.array([1, 2, 4, 4, 7, 9, -1, 8])

CASES: list[tuple[Callable[..., Any], Any]] = [
    (marched, (1.0, 60)), (marched, (0.0, 60)), (marched, (0.2, 4)), (marched, (9.0, 0)),
    (paired, (ROW, 8)), (paired, (ROW, 3)), (paired, (np.array([-1, 99]), 2)), (paired, (ROW, 0)),
    (paired, (np.array([-5, -4, -3, 1]), 4)),
    (nested, (ROW,)), (nested, (-ROW,)), (nested, (ROW[:0],)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args"), CASES)
def test_loops_leave_what_python_leaves(function: Callable[..., Any], args: Any) -> None:
    assert pyrelay.jit(function)(*args) == function(*args)


@pytest.mark.parametrize(("function", "args"), [(marched, (1.0, 60)), (paired, (ROW, 8))])
def test_each_break_stands_where_the_user_wrote_it(function: Callable[..., Any], args: Any) -> None:
    lines = str(pyrelay.jit(function).code(*args)).splitlines()
    alone = [
        n for n, line in enumerate(lines)
        if line.strip() == "break" and not lines[n - 1].strip().startswith("if ")
    ]
    assert alone, "no arm of a branch ends its loop"
