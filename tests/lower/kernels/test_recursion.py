"""Recursive functions of scalars, which may read arrays: native where the stack allows it, and the
same where not."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay

NATIVE = " on this thread"


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def power(x: float, n: int) -> float:
    if n == 0:
        return 1.0
    if n < 0:
        return 1.0 / power(x, -n)
    half = power(x, n // 2)
    return half * half if n % 2 == 0 else half * half * x


def counted(n: int, k: int) -> Any:
    if n == 0:
        return k, 1.5, True
    a, b, c = counted(n - 1, k + 1)
    return a + n, b * 0.5, not c


def catalan(n: int) -> int:
    if n <= 1:
        return 1
    total = 0
    for i in range(n):
        total += catalan(i) * catalan(n - 1 - i)
    return total


def female(n: int) -> int:
    return 1 if n == 0 else n - male(female(n - 1))


def male(n: int) -> int:
    return 0 if n == 0 else n - female(male(n - 1))


def narrow(x: Any, n: int) -> Any:
    if n == 0:
        return x
    return np.float32(0.5) * narrow(np.sin(x), n - 1)


def divides(n: int) -> float:
    return 1.0 / (n - 2) + divides(n - 1) if n > 0 else 0.0


def factorial(n: int) -> int:
    return 1 if n <= 1 else n * factorial(n - 1)


def depth(n: int, a: float) -> float:
    return 0.0 if n == 0 else 1.0 + a * depth(n - 1, a)


def with_array(x: Any, n: int) -> Any:
    return 0.0 if n < 0 else x[n] + with_array(x, n - 1)


def found_in(x: Any, wanted: float, low: int, high: int) -> int:
    if low >= high:
        return -1
    middle = (low + high) // 2
    if x[middle] == wanted:
        return middle
    if x[middle] < wanted:
        return found_in(x, wanted, middle + 1, high)
    return found_in(x, wanted, low, middle)


def tree_depth(left: Any, right: Any, k: int) -> int:
    if k < 0:
        return 0
    return 1 + max(tree_depth(left, right, left[k]), tree_depth(left, right, right[k]))


def paths(grid: Any, i: int, j: int) -> int:
    if i == grid.shape[0] - 1 and j == grid.shape[1] - 1:
        return 1
    total = 0
    if i + 1 < grid.shape[0] and grid[i + 1, j] == 0:
        total += paths(grid, i + 1, j)
    if j + 1 < len(grid[0]) and grid[i, j + 1] == 0:
        total += paths(grid, i, j + 1)
    return total


def even(x: Any, y: Any, n: int) -> Any:
    return x[0] if n == 0 else x[n] - odd(y, x, n - 1)


def odd(y: Any, x: Any, n: int) -> Any:
    return y[0] if n == 0 else y[-n] * even(x, y, n - 1)


def knapsack(weights: Any, values: Any, k: int, room: float) -> float:
    if k == len(weights):
        return 0.0
    best = knapsack(weights, values, k + 1, room)
    for _ in range(1):
        if weights[k] <= room:
            best = max(best, values[k] + knapsack(weights, values, k + 1, room - weights[k]))
    return best


def turned(x: Any, y: Any, n: int) -> Any:
    return 0.0 if n < 0 else x[n] + turned(y, x, n - 1)


def halves(x: Any) -> Any:
    return x[0] if len(x) == 1 else halves(x[: len(x) // 2]) - halves(x[len(x) // 2 :])


def shifted(x: Any, y: Any, n: int) -> Any:
    return 0.0 if n == 0 else y[n] + shifted(x, x * 2.0, n - 1)


def endless(n: int) -> int:
    return 0 if n < 0 else endless(n + 1) + 1


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return f(*args)
    except (ZeroDivisionError, IndexError) as error:
        return str(error)


NUMBERS = np.arange(5.0)


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (fibonacci, [(0,), (1,), (17,)]),
        (power, [(2.0, 10), (1.5, -3), (0.0, -1), (2.0, 0)]),
        (counted, [(0, 4), (5, 2)]),
        (catalan, [(1,), (6,)]),
        (female, [(0,), (25,)]),
        (narrow, [(np.float32(0.3), 5)]),
        (divides, [(1,), (5,)]),
        (factorial, [(0,), (20,)]),
        (with_array, [(NUMBERS, 4), (NUMBERS, 0), (NUMBERS, 5)]),
        (found_in, [(NUMBERS, 3.0, 0, 5), (NUMBERS, 2.5, 0, 5), (NUMBERS, 9.0, 0, 7)]),
        (tree_depth, [(np.array([1, -1, -1]), np.array([2, -1, -1]), 0)]),
        (paths, [(np.zeros((3, 4)), 0, 0), (np.eye(3), 0, 1)]),
        (even, [(NUMBERS, NUMBERS * 2, 4), (NUMBERS, NUMBERS[:3] + 1, 4)]),
        (knapsack, [(NUMBERS, NUMBERS**2, 0, 6.0)]),
        (turned, [(NUMBERS, NUMBERS * 3, 4), (NUMBERS, NUMBERS[:3], 4)]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_native_recursion_does_what_python_does(
    f: Callable[..., Any], inputs: list[tuple[Any, ...]]
) -> None:
    fast = pyrelay.jit(f)
    for args in inputs:
        expected = outcome(f, args)
        got = outcome(fast, args)
        assert type(got) is type(expected)
        assert got == (
            expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-6)
        )
    assert NATIVE in fast.code(*inputs[0])


def test_what_leaves_64_bits_is_an_error_in_native_code_too() -> None:
    with pytest.raises(OverflowError):
        pyrelay.jit(factorial)(21)


def test_calls_that_nest_deeper_than_the_native_stack_are_made_by_the_plan() -> None:
    fast = pyrelay.jit(depth)
    assert fast(200_000, 1.0) == 200_000.0
    assert math.isclose(fast(10**6, 0.5), 2.0)


def test_a_recursion_without_an_end_is_python_s_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pyrelay.devices.runtime.entry.STACK_LIMIT", 1 << 22)
    with pytest.raises(RecursionError):
        pyrelay.jit(endless)(0)


def test_complex_numbers_stay_in_the_plan() -> None:
    def spiral(z: complex, n: int) -> complex:
        return z if n == 0 else spiral(z * z * 0.5, n - 1)

    assert pyrelay.jit(spiral)(1 + 2j, 3) == spiral(1 + 2j, 3)
    assert NATIVE not in pyrelay.jit(spiral).code(1 + 2j, 3)


@pytest.mark.parametrize(
    ("f", "args"),
    [(halves, (NUMBERS,)), (shifted, (NUMBERS, NUMBERS, 3))],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_arrays_that_calls_make_stay_in_the_plan(
    f: Callable[..., Any], args: Any
) -> None:
    fast = pyrelay.jit(f)
    plain, given = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
    assert fast(*given) == f(*plain)
    for one, other in zip(given, plain, strict=True):
        np.testing.assert_array_equal(one, other)
    assert NATIVE not in fast.code(*args)


def test_recursion_over_arrays_goes_on_in_the_plan_where_it_is_deep() -> None:
    x = np.arange(200_000.0)
    assert pyrelay.jit(with_array)(x, len(x) - 1) == x.sum()


def test_a_kernel_is_entered_once_per_recursion() -> None:
    def both(n: int) -> int:
        return fibonacci(n) + factorial(n)

    fast = pyrelay.jit(both)
    assert fast(9) == both(9)
    assert fast.code(9).count(NATIVE) == 2
