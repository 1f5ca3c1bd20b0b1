"""Rows of tables whose elements wait for their neighbours are filled several at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay

Program = Callable[..., Any]
SIZES = [(40, 60), (9, 80), (1, 50), (2, 90), (17, 30), (60, 12), (3, 3), (33, 41)]


def sweep(u: Any, x: Any, y: Any) -> Any:
    for _ in range(2):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return u


def nine(u: Any, x: Any, y: Any) -> Any:
    n, m = u.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            above = u[i - 1, j - 1] + u[i - 1, j] + u[i - 1, j + 1]
            below = u[i + 1, j - 1] + u[i + 1, j] + u[i + 1, j + 1]
            u[i, j] = (above + u[i, j - 1] + u[i, j] + u[i, j + 1] + below) / 9.0
    return u


def turned(u: Any, x: Any, y: Any) -> Any:
    """Columns outside, from the last row to the first one."""
    n, m = u.shape
    for j in range(1, m):
        for i in range(n - 2, -1, -1):
            u[i, j] = min(u[i, j - 1], u[i + 1, j], u[i + 1, j - 1]) + abs(x[j] - y[i])
    return u


def warped(u: Any, x: Any, y: Any) -> Any:
    n, m = u.shape
    d = np.full((n + 1, m + 1), np.inf)
    d[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i, j] = abs(x[i - 1] - y[j - 1]) + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d


def smoothed(u: Any, x: Any, y: Any) -> Any:
    """Rows that do not wait for each other at all."""
    v, sums, total = np.zeros_like(u), np.zeros(len(u)), 0.0
    for i in range(u.shape[0]):
        s = x[i]
        for j in range(u.shape[1]):
            v[i, j] = s
            s = 0.9 * s + u[i, j]
        sums[i] = s
        total += s
    return v, sums, total


def one_row(u: Any, x: Any, y: Any) -> Any:
    """A row that is replaced from its beginning to its end, with what stood there in a variable."""
    row = np.arange(u.shape[1] + 1)
    for i in range(u.shape[0]):
        left_above = row[0]
        row[0] = i + 1
        for j in range(u.shape[1]):
            above = row[j + 1]
            best = left_above if x[i] < y[j] else left_above + 1
            row[j + 1] = min(best, above + 1, row[j] + 1)
            left_above = above
    return row


def two_rows(u: Any, x: Any, y: Any) -> Any:
    previous, row = np.arange(u.shape[1] + 1), np.zeros(u.shape[1] + 1, np.int64)
    for i in range(1, u.shape[0] + 1):
        row[0] = previous[0] + 1
        for j in range(1, u.shape[1] + 1):
            if x[i - 1] < y[j - 1]:
                row[j] = previous[j - 1]
            else:
                row[j] = 1 + min(previous[j], row[j - 1], previous[j - 1])
        previous, row = row, previous
    return previous, row


def two_rows_from(u: Any, x: Any, y: Any) -> Any:
    """What the row before begins with is read before all columns, and replaced by the next one."""
    previous, row = x[: u.shape[1] + 1].copy(), y[: u.shape[1] + 1].copy()
    for _ in range(u.shape[0]):
        first = previous[0]
        row[0] = first * 0.5 + 1.0
        for j in range(1, len(row)):
            row[j] = min(row[j - 1], previous[j]) * 0.5 + first
        previous, row = row, previous
    return previous, row


def in_turn(u: Any, x: Any, y: Any) -> Any:
    """One line in many rounds."""
    line = x.copy()
    for _ in range(u.shape[0]):
        for j in range(1, len(line) - 1):
            line[j] = 0.5 * (line[j - 1] + line[j + 1])
    return line


def spread(u: Any, x: Any, y: Any) -> Any:
    """Errors of rounding, handed on to four neighbours (Floyd and Steinberg, 1976)."""
    for i in range(u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            old = u[i, j]
            u[i, j] = 1.0 if old > 0.5 else 0.0
            e = old - u[i, j]
            u[i, j + 1] += e * 7 / 16
            u[i + 1, j - 1] += e * 3 / 16
            u[i + 1, j] += e * 5 / 16
            u[i + 1, j + 1] += e * 1 / 16
    return u


def handed_on(u: Any, x: Any, y: Any) -> Any:
    """What a row stores is what the row above it stored a column before."""
    v = u.copy()
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            v[i, j] = v[i - 1, j - 1]
            u[i, j] = u[i, j - 1] * 0.5 + v[i - 1, j]
    return u, v


def changed_later(u: Any, x: Any, y: Any) -> Any:
    """What is stored is a variable that the round changes behind that."""
    for i in range(1, u.shape[0]):
        s = x[i]
        for j in range(1, u.shape[1]):
            s = s * 0.5 + u[i - 1, j]
            u[i, j] = s
            s = s + u[i, j - 1] * 0.25
    return u


SKEWED = [
    sweep, nine, turned, warped, smoothed, one_row, two_rows, two_rows_from,
    in_turn, spread, handed_on,
    changed_later,
]  # fmt: skip


def rows_of_two(u: Any, x: Any, y: Any) -> Any:
    """Each row is read whole by the next one."""
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i, j - 1] * 0.5 + u[i - 1, u.shape[1] - j]
    return u


def row_by_row(u: Any, x: Any, y: Any) -> Any:
    """What is behind a row is there for the next one."""
    s = 0.0
    for i in range(1, u.shape[0]):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i, j - 1] * 0.5 + s
        s = u[i, u.shape[1] - 1]
    return u


def overtaken(u: Any, x: Any, y: Any) -> Any:
    """Rows that are longer than the table: positions of one are those of the next one."""
    flat = u.reshape(-1)
    for i in range(2):
        for j in range(1, u.shape[1] + 5):
            flat[i * u.shape[1] + j] = flat[i * u.shape[1] + j - 1] * 0.5 + 1.0
    return flat


ALONE = [rows_of_two, row_by_row, overtaken]


@pytest.mark.parametrize("f", [*SKEWED, *ALONE])
def test_tables_have_the_values_of_python(f: Program) -> None:
    compiled = pyrelay.jit(f)
    for n, m in SIZES:
        if f is overtaken and min(n, m) < 9:
            continue  # it would leave the table
        rng = np.random.default_rng(0)
        x, y = rng.random(max(n, m)), rng.random(max(n, m))
        one = rng.random((n, m))
        other = one.copy()
        for got, expected in zip(_all(compiled(one, x, y)), _all(f(other, x, y)), strict=True):
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(one, other)


def _all(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _stores(f: Program) -> int:
    rng = np.random.default_rng(0)
    text = str(pyrelay.jit(f).code(rng.random((40, 60)), rng.random(60), rng.random(60)))
    return text.count("store_ordered_") + text.count("store_f64") + text.count("store_i64")


@pytest.mark.parametrize("f", SKEWED)
def test_rows_stand_side_by_side(f: Program) -> None:
    assert _stores(f) >= 7  # one for each of four rows, in front of them, behind them, and alone


@pytest.mark.parametrize("f", ALONE)
def test_rows_that_wait_for_all_of_another_stand_alone(f: Program) -> None:
    assert _stores(f) < 7


def test_floats_beyond_all_bounds_and_none_at_all() -> None:
    compiled = pyrelay.jit(sweep)
    rng = np.random.default_rng(1)
    one = rng.random((30, 60))
    one[4, 9], one[11, 50], one[20, 3] = np.inf, np.nan, -np.inf
    other = one.copy()
    nothing = np.zeros(1)
    with np.errstate(invalid="ignore"):
        expected = sweep(other, nothing, nothing)
    np.testing.assert_array_equal(compiled(one, nothing, nothing), expected)


def test_a_wait_of_two_cycles_is_one() -> None:
    def greatest_so_far(u: Any) -> Any:
        return np.maximum.accumulate(u, axis=1)

    u = np.random.default_rng(2).random((300, 400))
    compiled = pyrelay.jit(greatest_so_far)
    np.testing.assert_array_equal(compiled(u), greatest_so_far(u))
    assert str(compiled.code(u)).count("maximum(v") >= 8  # rows of a block
