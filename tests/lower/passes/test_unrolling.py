"""Short loops over checked indices do four rounds at a time, and fail as one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def counted(counts: Any, places: Any) -> Any:
    for i in range(len(places)):
        counts[places[i]] += 1.0
    return counts


def binned(counts: Any, x: Any) -> Any:
    for value in x:
        counts[int(value)] += 1.0
    return counts


def followed(next_: Any, places: Any) -> Any:
    at = 0
    for _ in range(len(places)):
        at = places[at]
        next_[at] += 1.0
    return at


def outcome(f: Callable[..., Any], counts: Any, places: Any) -> Any:
    try:
        return np.asarray(f(counts, places)).tolist(), counts.tolist()
    except IndexError as error:
        return str(error), counts.tolist()


@pytest.mark.parametrize("f", [counted, binned, followed])
def test_rounds_are_done_in_order_and_end_where_one_fails(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(0)
    for size in range(1, 11):
        good = rng.integers(-min(5, size), min(5, size), size)
        for wrong in range(size + 1):
            places = good.copy()
            places[wrong:wrong + 1] = 70
            given = places if f is not binned else places.astype(np.float64)
            wanted = outcome(f, np.zeros(5), given)
            assert outcome(compiled, np.zeros(5), given) == wanted
    assert str(compiled.code(np.zeros(5), given)).count("store_ordered_f64(a") == 5


def test_long_loops_and_those_without_checks_stay() -> None:
    def summed(x: Any, y: Any) -> Any:
        for i in range(len(x)):
            x[i] = x[i - 1] + x[i]
        return x

    compiled = pyrelay.jit(summed)
    assert str(compiled.code(np.zeros(5), np.zeros(5))).count("store_ordered_f64(") <= 3
    # (the first round, which goes around the end, is apart)


def steps_down(x: Any, seen: Any) -> Any:
    """How far each number is from the next smaller one to its left."""
    total = 0
    for i in range(len(x)):
        j = i
        while j > 0 and x[j - 1] >= x[i]:
            j -= 1
            seen[0] += 1
        total += i - j
    return total


def walked(x: Any, seen: Any) -> Any:
    """Steps from place to place until one points to itself; places may lie outside."""
    at = 0
    while True:
        seen[0] += 1
        if x[at] == at:
            break
        at = x[at]
        if seen[0] > 20:
            return -1
    return at


def chained(n: int) -> Any:
    """Places that lead through `n` others."""
    return np.append(np.arange(1, n + 1), n)


@pytest.mark.parametrize("f", [steps_down, walked])
def test_while_loops_end_after_any_round(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    rng = np.random.default_rng(1)
    ways = [chained(n) for n in range(25)] + [rng.integers(0, 6, n) for n in range(1, 25)]
    wrong = [np.append(chained(n)[:-1], n + 1) for n in range(12)]
    for x in [*ways, *wrong]:
        seen = [np.zeros(1, dtype=np.int64) for _ in range(2)]
        outcomes = [outcome(g, x, s) for g, s in zip((f, compiled), seen, strict=True)]
        assert outcomes[0] == outcomes[1]
        assert seen[0] == seen[1]
    assert "rounds = rounds - 1\n" not in str(compiled.code(x, seen[0]))


def test_a_loop_that_ends_soon_counts_no_round_of_its_own() -> None:
    def roots(parent: Any) -> Any:
        out = np.empty(len(parent), dtype=np.int64)
        for i in range(len(parent)):
            k = i
            while parent[k] != k:
                k = parent[k]
            out[i] = k
        return out

    compiled = pyrelay.jit(roots)
    parent = np.array([0, 0, 1, 2, 4, 3])
    np.testing.assert_array_equal(compiled(parent), roots(parent))
    text = str(compiled.code(parent))
    loop = text[text.index("while True:"):]
    assert loop.count("rounds = rounds - 4") == 1
    assert loop.index("break") < loop.index("rounds = rounds - 4")
    assert "stop0 = start0 + minimum(" in text  # rounds of the loop around it count in pieces


def agreeing(x: Any, i: int, j: int) -> int:
    k = i
    while i < x.size and j < x.size and x[i] == x[j]:
        i += 1
        j += 1
    return i - k


def falling(x: Any, i: int) -> int:
    while i > 0 and x[i - 1] > x[i]:
        i -= 1
    return i


def test_a_loop_that_asks_for_several_conditions_does_its_rounds_one_by_one() -> None:
    x = np.array([5, 4, 3, 5, 4, 3, 1])
    several, two = pyrelay.jit(agreeing), pyrelay.jit(falling)
    assert "rounds - 1\n" in several.code(x, 0, 3)
    assert "rounds - 4\n" in two.code(x, 6)
    for i, j in [(0, 3), (0, 0), (2, 5), (6, 6), (7, 9)]:
        assert several(x, i, j) == agreeing(x, i, j)
    for i in range(7):
        assert two(x, i) == falling(x, i)
