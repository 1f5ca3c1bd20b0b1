"""Sorts that keep what compares equal in its order."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyrelay
from tests.infer.running import interpreted


def stable(x: Any) -> Any:
    by_rows = np.sort(x, axis=1, stable=True)
    return np.sort(x, axis=0, kind="stable"), by_rows, np.sort(x[0], kind="stable")


def test_zeros_of_both_signs_stay_in_their_order() -> None:
    x = np.where(np.arange(60) % 7 % 2, 0.0, -0.0).reshape(6, 10)
    x[1, ::3], x[2, 4] = 1.5, np.nan
    for mine, theirs in zip(pyrelay.jit(stable)(x), stable(x), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(theirs))


def test_truth_values_are_put_in_order_without_being_sorted() -> None:
    def order(x: Any, y: Any) -> Any:
        return np.argsort(x), y[np.argsort(~x, kind="stable")] - y

    compiled = pyrelay.jit(order)
    rng = np.random.default_rng(0)
    for size in (1, 6, 500):
        for share in (0.0, 0.5, 1.0):
            x, y = rng.random(size) < share, rng.random(size)
            found, moved = compiled(x, y)
            np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))
            np.testing.assert_array_equal(moved, order(x, y)[1])
    names = [line for line in str(compiled.code(x, y)).splitlines() if "launch" in line]
    assert names
    assert not any("sort" in name for name in names)


def moved(x: Any) -> Any:
    """Markers among the least five, which later numbers move."""
    q = np.sort(x[:5])
    for k in range(5, len(x)):
        for i in range(1, 4):
            if x[k] > 0.3:
                if q[i - 1] < x[k]:
                    q[i] = 2.0
                else:
                    q[i] += x[k]
    return q


def test_what_is_sorted_is_written_in_place_by_a_loop_of_one_kernel() -> None:
    compiled, x = pyrelay.jit(moved), np.random.default_rng(1).random(40)
    np.testing.assert_array_equal(compiled(x), moved(x))
    assert str(compiled.code(x)).count("_kernel(block") <= 3


def reached(links):
    """Words of one letter, as many as the program finds."""
    found = {"a": 0.0}
    for one, other, far in links:
        if far < found.get(one, 9.0) + 2.5:
            found[other] = far + found.get(other, 0.0)
    return sorted(found), sorted(found.items())


def test_letters_are_sorted_beside_numbers():
    """A list of them was to be made an array."""
    links = [("a", "c", 1.0), ("c", "b", 2.0), ("a", "d", 5.0), ("d", "c", 1.0)]
    assert interpreted(reached, (links,)).result == reached(links)
