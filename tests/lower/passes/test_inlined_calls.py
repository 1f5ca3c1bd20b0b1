"""Calls made in line give what calls give, in the same order, and leave fewer calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pyrelay


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


def paths(n: int, m: int) -> int:
    """A loop around a call that is made in line, and one that ends early."""
    if n == 0:
        return 1
    total = 0
    for k in range(m):
        if k > n:
            break
        step = k
        while step > 1 and step * step > k:
            step -= 1
        total += paths(n - 1, k + step % 2)
    return total


def left(n: int, k: int) -> int:
    if n <= 0:
        return k
    total, at = 0, k
    for _ in range(2):
        before = right(n, at)  # gives back what it is given
        at = at - 3
        total += before * 10 + at
    return total


def right(n: int, k: int) -> int:
    left(n - 2, k + 1)
    return k


def shares(n: int, by: float) -> Any:
    """Two results, and a failure that depends on how far the recursion came."""
    if n == 0:
        return 1.0, 0
    value, count = shares(n - 1, by - 1.0)
    return value / by + n, count + 1


def outcome(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    try:
        return f(*args)
    except ZeroDivisionError as error:
        return str(error)


@pytest.mark.parametrize(
    ("f", "inputs"),
    [
        (fibonacci, [(1,), (2,), (3,), (16,)]),
        (ackermann, [(0, 3), (1, 5), (2, 3)]),
        (paths, [(0, 3), (3, 4), (4, 6)]),
        (left, [(0, 5), (3, 4), (7, 2)]),
        (shares, [(0, 2.0), (4, 9.5), (6, 4.0), (3, 1.0)]),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_calls_in_line_give_what_calls_give(
    f: Callable[..., Any], inputs: list[tuple[Any, ...]]
) -> None:
    fast = pyrelay.jit(f)
    for args in inputs:
        wanted = outcome(f, args)
        assert outcome(fast, args) == wanted
        assert type(outcome(fast, args)) is type(wanted)


def test_a_small_recursion_is_some_calls_deep_in_one() -> None:
    text = str(pyrelay.jit(fibonacci).code(5))
    calls = text.split("def ")[1].count("call0(")
    assert 4 <= calls <= 16
    assert text.count("stack_address() <") == 1
