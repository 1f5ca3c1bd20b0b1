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
    assert str(compiled.code(np.zeros(5), np.zeros(5))).count("store_ordered_f64(") <= 2
