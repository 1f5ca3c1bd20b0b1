"""What a branch stores is read behind it as plain Python reads it, and not loaded again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def reflected(x: Any, v: Any, low: float, high: float) -> Any:
    for i in range(len(x)):
        x[i] += v[i]
        if x[i] < low:
            x[i] = 2 * low - x[i]
            v[i] = -v[i]
        if x[i] > high:
            x[i] = 2 * high - x[i]
            v[i] = -v[i]
    return x, v


def spiking(v: Any, u: Any, fired: Any) -> Any:
    count = 0
    for i in range(len(v)):
        if fired[i] > 0:
            v[i] = 0.25
            u[i] += 1.5
        else:
            u[i] -= 0.5
        v[i] += v[i] * v[i] - u[i]
        fired[i] = int(v[i] > 1.0)
        count += fired[i]
    return v, u, fired, count


def overlapping(x: Any, places: Any) -> Any:
    """What is stored is read again, at another place of the same array, and at one that moves."""
    for i in range(len(places)):
        k = places[i]
        if x[k] < 4:
            x[k] = x[k] + 10
            k = 0
        x[0] += x[k]
    return x


def twice(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 2:
            x[i] = 7
            x[i] = x[i] - i
        else:
            x[i] = -x[i]
        x[i] = x[i] * 2
    return x


RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (reflected, (RNG.random(21), RNG.normal(size=21), 0.1, 0.9)),
        (spiking, (RNG.random(19), RNG.random(19), np.arange(19) % 2)),
        (overlapping, (np.arange(7), np.array([1, 6, 1, 0, 3, 2, 2]))),
        (twice, (np.arange(9),)),
    ],
)
def test_arrays_are_those_of_python(function: Callable[..., Any], args: Any) -> None:
    ours, theirs = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
    expected, got = function(*theirs), pyrelay.jit(function)(*ours)
    for a, b in zip((*ours, *got), (*theirs, *expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_what_is_behind_a_branch_loads_nothing_that_the_branch_stores() -> None:
    args = RNG.random(5), RNG.random(5), np.arange(5)
    lines = [line.strip() for line in str(pyrelay.jit(spiking).code(*args)).splitlines()]
    branch = next(n for n, line in enumerate(lines) if line.startswith("if "))
    store = next(n for n, line in enumerate(lines) if n > branch and "1.0" in line)
    behind = lines[lines.index("else:", branch) + 3 : store]
    assert behind
    assert not [line for line in behind if "load" in line]


def test_nothing_is_read_where_python_would_not_get() -> None:
    def guarded(x: Any, k: int) -> Any:
        total = 0
        for i in range(k):
            if i < 3:
                x[i] = 1
            total += x[i]
        return total

    with pytest.raises(IndexError):
        pyrelay.jit(guarded)(np.zeros(4, dtype=np.int64), 6)
    assert pyrelay.jit(guarded)(np.zeros(8, dtype=np.int64), 6) == 3
