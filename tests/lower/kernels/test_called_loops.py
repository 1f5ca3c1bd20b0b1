"""Loops that call recursive functions are entered once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay

NATIVE = " on this thread"


def filled(grid: Any, i: int, j: int, label: Any) -> int:
    if i < 0 or j < 0 or i >= grid.shape[0] or j >= grid.shape[1] or grid[i, j] != 0:
        return 0
    grid[i, j] = label
    around = filled(grid, i + 1, j, label) + filled(grid, i - 1, j, label)
    return 1 + around + filled(grid, i, j + 1, label) + filled(grid, i, j - 1, label)


def found(parent: Any, i: Any) -> Any:
    if parent[i] != i:
        parent[i] = found(parent, parent[i])
    return parent[i]


def regions(x: Any) -> Any:
    grid = x.copy()
    sizes = np.zeros(20, np.int64)
    label = 0
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            if grid[i, j] == 0:
                label += 1
                sizes[label] = filled(grid, i, j, label)
    return grid, sizes, label


def joined(a: Any, b: Any, n: int) -> int:
    parent = np.arange(n)
    left = n
    for k in range(len(a)):
        one, other = found(parent, a[k]), found(parent, b[k])
        if one != other:
            parent[one] = other
            left -= 1
    return left


def printed(x: Any) -> int:
    total = 0
    for i in range(3):
        y = x * i
        total += found(y, 0)
    return total


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


GRID = np.array([[0, 0, -1, 0], [-1, -1, 0, 0], [0, -1, 0, -1]])
CASES = [
    (regions, (GRID,)), (joined, (np.array([0, 3, 1, 4]), np.array([1, 4, 3, 0]), 6)),
]


@pytest.mark.parametrize(("f", "args"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_a_loop_is_one_kernel_with_what_it_calls(f: Any, args: tuple[Any, ...]) -> None:
    fast = pyrelay.jit(f)
    for one, other in zip(as_tuple(fast(*args)), as_tuple(f(*args)), strict=True):
        np.testing.assert_array_equal(one, other)
    main = fast.code(*args).split("# plan main(")[-1].split("# plan ")[0]
    assert main.count(NATIVE) == 1
    assert "go to loop" not in main


def test_a_loop_that_makes_arrays_stays_in_the_plan() -> None:
    x = np.zeros(4, np.int64)
    fast = pyrelay.jit(printed)
    assert fast(x) == printed(x)
    assert "loop" in fast.code(x)
    assert "loop1" not in fast.code(x).split("# plan entry")[0]


def test_what_a_loop_changes_of_an_argument_is_seen_outside() -> None:
    def all_found(parent: Any) -> int:
        total = 0
        for i in range(len(parent)):
            total += found(parent, i)
        return total

    plain, given = (np.array([0, 0, 1, 2, 3, 3]) for _ in "ab")
    assert pyrelay.jit(all_found)(given) == all_found(plain)
    np.testing.assert_array_equal(given, plain)
