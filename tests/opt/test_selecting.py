"""Partitioned lines in loops: what is at the asked places, on devices without a kernel for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

from pyrelay.opt.sorting import sorting

RNG = np.random.default_rng(4)
TIES = np.array([2.0, -0.0, np.nan, 0.0, -1.0, 2.0, np.nan, np.inf, -np.inf])


def middles(x: Any) -> Any:
    found = np.zeros((x.shape[0], 3), x.dtype)
    for k in range(x.shape[0]):
        line = np.partition(x[k], [x.shape[1] - 1, 0, x.shape[1] // 2])
        found[k] = line[0], line[x.shape[1] // 2], line[-1]
    return found


@pytest.mark.parametrize(
    "line",
    [
        TIES, TIES[:1], TIES[:2], np.full(9, np.nan), np.ones(40), np.arange(41.0),
        np.arange(41.0)[::-1], RNG.integers(-4, 4, 150), RNG.random(17) > 0.5,
        RNG.integers(0, 9, 8).astype(np.uint8), RNG.normal(size=99).astype(np.float32),
    ],
    ids=lambda x: f"{x.dtype}-{x.shape[0]}",
)
def test_loops_find_what_is_at_the_places(line: Any) -> None:
    x = np.stack([line, line[::-1], RNG.permutation(line)])
    before = core(middles, x)
    module = after(before, sorting)
    assert ops(before)["partition"] == 1
    assert ops(module)["partition"] == 0
    assert_same_runs(before, module, (x,))


def test_each_line_may_have_places_of_its_own() -> None:
    def medians(x: Any) -> Any:
        total = 0.0
        for k in range(2):
            total = total + np.nanmedian(x + k, axis=1)
        return total

    x = RNG.normal(size=(4, 11))
    x[1, 3] = x[2, :9] = np.nan
    before = core(medians, x)
    assert_same_runs(before, after(before, sorting), (x,))


def test_smaller_elements_are_before_a_place_and_greater_ones_behind() -> None:
    def rows(x: Any, place: int) -> Any:
        found = np.zeros_like(x)
        for k in range(x.shape[0]):
            found[k] = np.partition(x[k], place)
        return found

    x = RNG.integers(0, 30, (20, 33))
    for place in (0, 7, 32):
        module = after(core(rows, x, place), sorting)
        from pyrelay.ir.interp import interpret

        found = interpret(module, [x, place])[0]
        assert (found[:, :place].max(1, initial=-1) <= found[:, place]).all()
        assert (found[:, place:].min(1) >= found[:, place]).all()
        np.testing.assert_array_equal(np.sort(found), np.sort(x))
