"""Loops that fill arrays ask once for a block of rounds whether one of their checks fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def small(x: Any, y: Any, out: Any, limit: int) -> None:
    """What is put into bytes; of two rows, one after the other."""
    for i in range(len(x)):
        v = abs(int(x[i]) - int(y[i]))
        out[i] = 255 if v > limit else v // 2


def quotients(x: Any, y: Any, out: Any, limit: int) -> None:
    """Divisors that may be zero."""
    for i in range(len(x)):
        out[i] = (float(x[i]) + 1.0) / float(y[i])


def sums(x: Any, y: Any, out: Any, limit: int) -> None:
    """Sums, differences and products that may overflow."""
    for i in range(len(x)):
        v = int(x[i]) + int(y[i])
        w = int(x[i]) - int(y[i])
        out[i] = v * limit - w * int(y[i]) + 3 * v


def truncated(x: Any, y: Any, out: Any, limit: int) -> None:
    """Floats that may be no integers, and are one in a branch only."""
    for i in range(len(x)):
        v = -1
        if y[i] > 0:
            v = int(float(x[i]) * limit)
        out[i] = v


def chosen(x: Any, y: Any, out: Any, limit: int) -> None:
    """A check in a branch."""
    for i in range(len(x)):
        v = int(y[i])
        if x[i] > limit:
            v = v + int(x[i])
        out[i] = v


def digits(x: Any, y: Any, out: Any, limit: int) -> None:
    """Two digits of a byte, which lie side by side, by a loop of two rounds."""
    for i in range(len(x) // 2):
        v = 0
        for j in range(2):
            c = int(x[2 * i + j])
            if c > limit:
                c -= 87
            v = v * 16 + c
        out[i] = v


def _outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, Any]:
    """What a call raises, and what it leaves in its arrays."""
    x, y, out, limit = args
    out = out.copy()
    try:
        function(x, y, out, limit)
    except Exception as error:
        return type(error).__name__, out
    return "", out


INT, BYTES, FLOATS = np.int64, np.uint8, np.float64
CASES = [
    (small, INT, INT, BYTES, 100, [(0, 0), (101, 0), (-200, 3)], (600, 30), 700),
    (quotients, FLOATS, FLOATS, FLOATS, 0, [(1.5, 2.0), (0.1, -3.0)], (1.0, 0.0), 0),
    (sums, INT, INT, INT, 7, [(3, -4), (2**33, 2**20), (-5, 9)], (2**62, 2**62), 7),
    (sums, INT, INT, INT, 7, [(3, -4), (2**33, 2**20), (-5, 9)], (2**40, -(2**40)), 7),
    (truncated, FLOATS, INT, INT, 3, [(1.7, 1), (np.nan, 0), (-2.5, 1)], (np.nan, 1), 3),
    (truncated, FLOATS, INT, INT, 3, [(1.7, 1), (np.inf, -1), (-2.5, 1)], (np.inf, 1), 3),
    (chosen, INT, INT, np.int32, 5, [(1, 2), (7, 8)], (2**40, 1), 5),
    (digits, INT, INT, BYTES, 57, [(3, 0), (97, 0), (15, 0), (102, 0)], (2000, 0), 57),
]  # fmt: skip


@pytest.mark.parametrize(("function", "of_x", "of_y", "of_out", "limit", "fine", "bad", "other"),
                         CASES)
def test_blocks_store_and_raise_what_rounds_one_by_one_do(
    function: Callable[..., Any], of_x: Any, of_y: Any, of_out: Any, limit: int,
    fine: list[tuple[Any, Any]], bad: tuple[Any, Any], other: int,
) -> None:
    compiled = pyrelay.jit(function)
    for size in (0, 5, 31, 32, 33, 64, 95):
        size *= 2 if function is digits else 1
        for place in (None, 0, 31, 32, 50, size - 1):
            if place is not None and not 0 <= place < size:
                continue
            pairs = [fine[k % len(fine)] for k in range(size)]
            if place is not None:
                pairs[place] = bad
            x = np.array([a for a, _ in pairs], of_x)
            y = np.array([b for _, b in pairs], of_y)
            args = x, y, np.full(size, 77, of_out), limit if place is None else other
            raised, left = _outcome(compiled, args)
            expected, kept = _outcome(function, args)
            assert raised == expected, (size, place)
            assert bool(raised) is (place is not None)
            np.testing.assert_array_equal(left, kept)
    assert "in lanes(32, " in str(compiled.code(*args))


def shifted(x: Any, out: Any, limit: int) -> None:
    """A loop that reads what rounds before it have stored."""
    for i in range(1, len(x)):
        out[i] = int(out[i - 1]) // 2 + int(x[i])


def spread(x: Any, out: Any, limit: int) -> None:
    """A loop that stores far apart."""
    for i in range(len(x) // 2):
        out[2 * i] = int(x[i]) + limit


@pytest.mark.parametrize("function", [shifted, spread])
def test_other_loops_go_one_by_one(function: Callable[..., Any]) -> None:
    x, out = np.arange(70), np.zeros(70, np.uint8)
    compiled = pyrelay.jit(function)
    expected = out.copy()
    function(x, expected, 3)
    compiled(x, out, 3)
    np.testing.assert_array_equal(out, expected)
    assert "lanes" not in str(compiled.code(x, out, 3))


def in_a_row(x: Any, out: Any, row: int) -> None:
    """A check of what all places in memory are made of."""
    for i in range(len(out)):
        out[i] = x[row, i] * 2.0


def test_checks_of_places_come_before_the_places() -> None:
    x, out = np.ones((3, 70)), np.zeros(70)
    compiled = pyrelay.jit(in_a_row)
    compiled(x, out, 2)
    np.testing.assert_array_equal(out, np.full(70, 2.0))
    assert "lanes" not in str(compiled.code(x, out, 2))
    with pytest.raises(IndexError):
        compiled(x, out, 2**40)
