"""Sums of what lies between constants are asked about once, in front of the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def congruence(n: int, x: Any) -> Any:
    seed, total = 12345, 0
    for _ in range(n):
        seed = (seed * 1103515245 + 12345) % 2147483648
        total += seed >> 16
    return total


def both_ways(n: int, x: Any) -> Any:
    total, left = 2**62, -(2**62)
    for i in range(n):
        k = i * 7 % 1000
        if k > 300:
            total += k
        else:
            total -= 3 * k
        left -= min(k, 500) & 255
    return total, left


def narrow(n: int, x: Any) -> Any:
    total = 0
    for i in range(n):
        total += int(x[i])
    return total


@pytest.mark.parametrize("function", [congruence, both_ways, narrow])
def test_one_question_in_front_stands_for_those_of_all_rounds(function: Any) -> None:
    x = np.random.default_rng(0).integers(-100, 100, 50, np.int32)
    compiled = pyrelay.jit(function)
    for n in (0, 1, 7, 50):
        assert compiled(n, x) == function(n, x)
    _, loops, fast = str(compiled.code(50, x)).rpartition("    for ")
    assert loops
    assert "overflows" not in fast


def near_the_end(n: int, start: int) -> Any:
    for i in range(n):
        start += i % 1000
    return start


def test_what_may_leave_64_bits_is_asked_round_by_round() -> None:
    compiled = pyrelay.jit(near_the_end)
    assert compiled(2000, 2**63 - 1000_000) == near_the_end(2000, 2**63 - 1000_000)
    with pytest.raises(OverflowError):
        compiled(2000, 2**63 - 900_000)


def squared(n: int, k: int) -> Any:
    total = 0
    for i in range(n):
        total += (i * k) * (i * k)
    return total


def test_what_nothing_bounds_is_no_total() -> None:
    compiled = pyrelay.jit(squared)
    assert compiled(9, 3) == squared(9, 3)
    assert "overflows" in str(compiled.code(9, 3)).rpartition("for ")[2]


def set_behind(n: int, step: int) -> Any:
    total = 2**62
    for i in range(n):
        total += step
        if i % 3 == 0:
            step = 1
            total -= 1
        else:
            step = 2
    return total


def test_a_step_that_a_branch_sets_later_may_be_any_in_the_first_round() -> None:
    compiled = pyrelay.jit(set_behind)
    assert compiled(9, 5) == set_behind(9, 5)
    with pytest.raises(OverflowError):
        compiled(9, 2**62)
