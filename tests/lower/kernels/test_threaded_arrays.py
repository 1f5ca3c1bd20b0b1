"""Functions that hand arrays on: what native code stores, and what it leaves to the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config

NATIVE = " on this thread"
X = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 0.0, 1.5])
COUNTS = np.arange(6)


def counting(x: Any, n: int) -> Any:
    if n == 0:
        return 0.0
    x[n] += 1.0
    return x[n] + counting(x, n - 1)


def partitioned(a: Any, low: int, high: int) -> int:
    i = low
    for j in range(low, high):
        if a[j] < a[high]:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[high] = a[high], a[i]
    return i


def quicksort(a: Any, low: int, high: int) -> None:
    if low < high:
        middle = partitioned(a, low, high)
        quicksort(a, low, middle - 1)
        quicksort(a, middle + 1, high)


def merged(a: Any, spare: Any, low: int, high: int) -> None:
    if high - low < 2:
        return
    middle = (low + high) // 2
    merged(a, spare, low, middle)
    merged(a, spare, middle, high)
    i, j = low, middle
    for k in range(low, high):
        if i < middle and (j >= high or a[i] <= a[j]):
            spare[k] = a[i]
            i += 1
        else:
            spare[k] = a[j]
            j += 1
    for k in range(low, high):
        a[k] = spare[k]


def placed(columns: Any, rising: Any, falling: Any, row: int) -> int:
    n = len(columns)
    if row == n:
        return 1
    total = 0
    for c in range(n):
        if not columns[c] and not rising[row + c] and not falling[row - c + n - 1]:
            columns[c] = rising[row + c] = falling[row - c + n - 1] = True
            total += placed(columns, rising, falling, row + 1)
            columns[c] = rising[row + c] = falling[row - c + n - 1] = False
    return total


def filled(grid: Any, i: int, j: int, label: Any) -> int:
    if i < 0 or j < 0 or i >= grid.shape[0] or j >= grid.shape[1] or grid[i, j] != 0:
        return 0
    grid[i, j] = label
    return (
        1 + filled(grid, i + 1, j, label) + filled(grid, i - 1, j, label)
        + filled(grid, i, j + 1, label) + filled(grid, i, j - 1, label)
    )


def found(parent: Any, i: Any) -> Any:
    if parent[i] != i:
        parent[i] = found(parent, parent[i])
    return parent[i]


def rises(x: Any, y: Any, n: int) -> Any:
    if n < 0:
        return x[0]
    y[n] = x[n] + 1
    return falls(y, x, n - 1) + 1


def falls(y: Any, x: Any, n: int) -> Any:
    if n < 0:
        return y[0]
    x[n] = y[-1] - x[n]
    return rises(x, y, n - 2)


def narrow(x: Any, flags: Any, n: int) -> Any:
    if n < 0:
        return np.float32(1.5), True
    a, b = narrow(x, flags, n - 1)
    x[n] = a + x[n]
    flags[n] = b and x[n] > 2
    return x[n], not b


def too_far(x: Any, n: int) -> int:
    x[n] = -1.0
    return 0 if n > 100 else too_far(x, n + 1)


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return f(*args)
    except IndexError as error:
        return str(error)


CASES = [
    (counting, (X, 6)), (quicksort, (X, 0, 6)), (merged, (X, X * 0, 0, 7)),
    (placed, (np.zeros(5, bool), np.zeros(9, bool), np.zeros(9, bool), 0)),
    (filled, (np.array([[0, 0, 9], [9, 0, 9], [0, 9, 0]]), 0, 0, 7)),
    (found, (np.array([0, 0, 1, 2, 3]), 4)), (rises, (X, X * 2, 6)),
    (narrow, (X.astype(np.float32), np.zeros(7, bool), 6)), (too_far, (X, 3)),
]


@pytest.mark.parametrize("room", [1 << 18, 3000, 0])
@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_native_code_stores_as_python_does(
    f: Callable[..., Any], args: tuple[Any, ...], room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as much of the stack as it may use, and with so little that the plan goes on."""
    monkeypatch.setattr("pyrelay.lower.text.call_spelling.STACK_BYTES", room)
    fast = pyrelay.jit(f)
    plain, given = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
    with config.override(cache=False):
        assert outcome(fast, tuple(given)) == outcome(f, tuple(plain))
    for one, other in zip(given, plain, strict=True):
        np.testing.assert_array_equal(one, other)
    assert NATIVE in fast.code(*args)


def sized(x: Any, n: int) -> Any:
    y = np.zeros(3)
    y[n] = x[n]
    y[0] += x[0]
    return y[n - 1] if n == 0 else y[n] + sized(x, n - 1)


def kept(x: Any, n: int) -> Any:
    if n == 0:
        return x[0]
    before = x.copy()
    x[n] = 0.0
    return kept(x, n - 1) + before[n]


def with_rows(x: Any, n: int) -> Any:
    if n == 0:
        return x.sum()
    x[n] = x[n - 1] * 2
    return with_rows(x, n - 1)


@pytest.mark.parametrize(
    ("f", "args"),
    [(sized, (X, 2)), (kept, (X, 6)), (with_rows, (np.ones((4, 3)), 3))],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_functions_that_make_arrays_stay_in_the_plan(
    f: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    fast = pyrelay.jit(f)
    plain, given = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
    assert fast(*given) == f(*plain)
    np.testing.assert_array_equal(given[0], plain[0])
    assert NATIVE not in fast.code(*args)


def test_an_array_that_is_needed_as_it_was_is_copied() -> None:
    def doubled(x: Any, n: int) -> Any:
        y = x.copy()
        total = counting(y, n)
        return total, x.sum(), y

    fast = pyrelay.jit(doubled)
    for got, expected in zip(fast(X, 6), doubled(X, 6), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert NATIVE in fast.code(X, 6)


def test_an_array_that_is_given_twice_is_python_s() -> None:
    def twice(x: Any) -> Any:
        return rises(x, x, 6)

    fast = pyrelay.jit(twice)
    plain, given = X.copy(), X.copy()
    assert fast(given) == twice(plain)
    np.testing.assert_array_equal(given, plain)
