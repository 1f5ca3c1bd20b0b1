"""Sorting in loops: what the op means, on devices without a kernel for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

from pyrelay.opt.sorting import sorting

RNG = np.random.default_rng(2)
TIES = np.array([2.0, -0.0, np.nan, 0.0, -1.0, 2.0, np.nan, np.inf, -np.inf])


@pytest.mark.parametrize(
    "x",
    [
        TIES, TIES[:0], TIES[:1], TIES[:2], RNG.integers(-4, 4, 33), RNG.integers(-9, 9, 150),
        RNG.integers(0, 9, 8).astype(np.uint8), RNG.normal(size=5).astype(np.float32),
    ],
    ids=lambda x: f"{x.dtype}-{x.shape[0]}",
)
def test_loops_find_the_order_of_the_op(x: Any) -> None:
    def order(x: Any) -> Any:
        found = np.zeros((2, x.shape[0]), dtype=np.int64)
        for k in range(2):
            found[k] = np.argsort(x, kind="stable")
        return found

    before = core(order, x)
    assert ops(before)["argsort"] == 1
    module = after(before, sorting)
    assert ops(module)["argsort"] == 0
    assert_same_runs(before, module, (x,))


def test_outside_of_loops_the_ops_are_left_to_kernels() -> None:
    def both(x: Any) -> Any:
        return np.argsort(x, kind="stable"), np.sort(x)

    x = RNG.normal(size=9)
    before = core(both, x)
    assert after(before, sorting) is before
    narrow = core(both, x.astype(np.float16))
    assert_same_runs(narrow, after(narrow, sorting), (x.astype(np.float16),))


def test_numbers_in_loops_are_picked_by_their_places() -> None:
    def rows(x: Any) -> Any:
        total = 0.0
        for row in x:
            total += np.sort(row)[1]
        return total

    x = RNG.normal(size=(4, 5))
    before = core(rows, x)
    module = after(before, sorting)
    assert ops(before)["sort"] == 1
    assert ops(module)["sort"] == 0
    assert_same_runs(before, module, (x,))


def test_lines_are_sorted_one_by_one() -> None:
    def order(x: Any) -> Any:
        return np.argsort(x, axis=0), np.sort(x, axis=1), np.sort(x, axis=None)

    x = RNG.permutation(12.0 * np.arange(12)).reshape(3, 4)
    before = core(order, x)
    assert_same_runs(before, after(before, sorting), (x,))
