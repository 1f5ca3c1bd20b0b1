"""Numbers as extents: one number is one extent wherever what bound it can be seen."""

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
