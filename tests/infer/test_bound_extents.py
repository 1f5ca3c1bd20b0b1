"""Numbers as extents: one number is one extent wherever what bound it can be seen, and before the
loops around where it is known there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyrelay.ir.show import show
from tests.infer.running import assert_same_outcome, inferred, interpreted, plainly


def as_many(n, rounds):
    state = np.zeros((n, n))
    kept = [np.ones(n)]
    for _ in range(rounds):
        state = np.ones((n, n)) + state
        kept.append(state.sum(0) * kept[-1] + np.full(n, 0.5))
    return kept


def in_one_arm(n, x):
    first = np.zeros(n).sum() if x > 0 else 1.0
    return np.ones(n) + first


def behind_a_handler(n):
    try:
        made = np.zeros(n)
    except ValueError:
        made = np.zeros(1)
    return made.size, np.ones(abs(n))


def appended(n, rounds):
    kept = []
    for k in range(rounds):
        kept.append(np.zeros(n) + k)
    return np.array(kept)


def computed_in_the_loop(n, rounds):
    kept = {}
    while rounds > 0:
        rounds -= 1
        kept[rounds] = np.ones((2 * n - 1, n // 2 + 1))
    return sum(kept.values(), np.zeros(1)).sum()


def two_deep(n, rounds):
    total = np.zeros(0)
    for k in range(rounds):
        rows = []
        for _ in range(rounds):
            rows.append([np.ones(n - 1), np.full(k, 2.0)])
        total = np.concatenate([total, rows[-1][0] + rounds, rows[0][1]])
    return total


def behind_a_branch(n, rounds):
    kept = []
    for k in range(rounds):
        if k > 1:
            kept.append(np.zeros(n))
    return len(kept)


def behind_a_handler_in_a_loop(n, rounds):
    failed = 0
    for _ in range(rounds):
        try:
            failed += np.zeros(n).size
        except ValueError:
            failed -= 1
    return failed


def in_a_loop_behind_a_handler(n, rounds):
    made = 0
    try:
        for k in range(rounds):
            made += np.zeros(n + k).size
    except ValueError:
        made -= 1
    return made


def test_arrays_of_one_number_of_elements_have_one_shape() -> None:
    text = show(inferred(as_many, (3, 2)).module)
    assert "as_extent" in text
    assert "check_equal" not in text


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (as_many, (3, 2)), (as_many, (-1, 2)), (in_one_arm, (3, 1.0)), (in_one_arm, (3, -1.0)),
        (behind_a_handler, (2,)), (behind_a_handler, (-2,)),
    ],
)  # fmt: skip
def test_extents_are_seen_where_what_binds_them_was_run(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    assert_same_outcome(interpreted(function, args), plainly(function, args))


@pytest.mark.parametrize("function", [appended, computed_in_the_loop])
def test_loops_carry_arrays_of_lengths_that_are_known_before_them(
    function: Callable[..., Any]
) -> None:
    text = show(inferred(function, (3, 4)).module)
    before, inside = text.split("loop (", 1)
    assert "as_extent(" in before
    assert "as_extent(" in inside  # which raises where the number is negative
    assert "check_equal" not in text
    assert "f64[0, 0" not in text  # rows that could be of any length


@pytest.mark.parametrize(
    "function",
    [appended, computed_in_the_loop, two_deep, behind_a_branch, behind_a_handler_in_a_loop,
     in_a_loop_behind_a_handler],
)  # fmt: skip
@pytest.mark.parametrize("args", [(3, 4), (1, 1), (-2, 3), (-2, 0), (-2, 2)])
def test_what_is_negative_raises_in_the_loop(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    assert_same_outcome(interpreted(function, args), plainly(function, args))
