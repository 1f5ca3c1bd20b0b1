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
        RNG.random(17) > 0.5,
        RNG.integers(0, 9, 8).astype(np.uint8), RNG.normal(size=5).astype(np.float32),
    ],
    ids=lambda x: f"{x.dtype}-{x.shape[0]}",
)
def test_loops_find_the_order_of_the_op(x: Any) -> None:
    def order(x: Any) -> Any:
        return np.argsort(x, kind="stable")

    before = core(order, x)
    assert ops(before)["argsort"] == 1
    module = after(before, sorting)
    assert ops(module)["argsort"] == 0
    assert_same_runs(before, module, (x,))


def test_lines_are_sorted_one_by_one() -> None:
    def order(x: Any) -> Any:
        return np.argsort(x, axis=0), np.sort(x, axis=1), np.sort(x, axis=None)

    x = RNG.permutation(12.0 * np.arange(12)).reshape(3, 4)
    before = core(order, x)
    assert_same_runs(before, after(before, sorting), (x,))
