"""Numbers of rows, and the places that sort them, found in one launch where indices are few."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu.cuda_sorted_adds import CHUNK
from pyrelay.devices.gpu.cuda_sorted_rows import MOST, MOST_SHARE, SHARES
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler

pytestmark = needs_compiler
RNG = np.random.default_rng(3)


def added(y: Any, i: Any, x: Any) -> Any:
    np.add.at(y, i, x)
    return y


def added_to_pairs(y: Any, i: Any, j: Any, x: Any) -> Any:
    np.add.at(y, (i, j), x)
    return y


@pytest.mark.parametrize("count", [4096, 4097, 8192, 9001])
def test_rows_are_added_in_order(count: int) -> None:
    # Sums of whole numbers are the same in any order; that of places shows in the small ones.
    i = RNG.integers(-70_000, 70_000, count)
    i[::5] = 69_999
    x, y = RNG.integers(0, 9, (count, 2)).astype("f4"), np.zeros((70_000, 2), "f4")
    mine = pyrelay.jit(added, device="cuda_emulator")(y.copy(), i, x)
    np.testing.assert_array_equal(mine, added(y.copy(), i, x))


def summed(y: Any, i: Any, x: Any) -> Any:
    """What rows are that are added in order, where each chunk begins a sum of its own."""
    rows = np.where(i < 0, i + len(y), i)
    order, sums = np.argsort(rows, kind="stable"), {k: [value] for k, value in enumerate(y)}
    for place, k in enumerate(order):
        own = sums[rows[k]]
        if place % CHUNK == 0 and place and rows[order[place - 1]] == rows[k]:
            own.append(type(y[0])(-0.0))
        own[-1] = own[-1] + x[k]
    return np.array([functools.reduce(operator.add, sums[k]) for k in range(len(y))])


@pytest.mark.parametrize("same", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("rows", [1, 3, 5000])
def test_equal_places_stay_in_order_however_many_there_are(same: float, rows: int) -> None:
    i = np.where(RNG.random(4321) < same, rows // 2, RNG.integers(-rows, rows, 4321))
    x, y = RNG.normal(size=4321).astype("f4"), RNG.normal(size=rows).astype("f4")
    mine = pyrelay.jit(added, device="cuda_emulator")(y.copy(), i, x)
    np.testing.assert_array_equal(mine, summed(y, i, x))


@pytest.mark.parametrize("count", [SHARES * (MOST_SHARE - 1) - 3, MOST])
def test_parts_have_as_many_indices_as_there_are_for_each(count: int) -> None:
    i, x = RNG.integers(-300, 300, count), RNG.integers(0, 9, count).astype("f4")
    mine = pyrelay.jit(added, device="cuda_emulator")(np.zeros(300, "f4"), i, x)
    np.testing.assert_array_equal(mine, added(np.zeros(300, "f4"), i, x))


def test_few_indices_are_sorted_by_one_launch_and_more_by_digits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    function, found = pyrelay.jit(added, device="cuda_emulator"), []
    for count in (MOST, MOST + 1):
        i, before = RNG.integers(0, 300, count), driver.launched
        x = np.ones(count)
        np.testing.assert_array_equal(function(np.zeros(300), i, x), added(np.zeros(300), i, x))
        found.append(driver.launched - before)
    assert found == [4, 7]


def test_rows_of_two_axes_have_the_order_of_python() -> None:
    i, j = RNG.integers(-7, 7, 4500), RNG.integers(0, 40, 4500)
    x, y = RNG.integers(0, 9, 4500).astype("f8"), np.zeros((7, 40))
    mine = pyrelay.jit(added_to_pairs, device="cuda_emulator")(y.copy(), i, j, x)
    np.testing.assert_array_equal(mine, added_to_pairs(y.copy(), i, j, x))


def test_the_first_index_outside_is_told() -> None:
    i = np.zeros(5000, np.int64)
    i[[4000, 900]] = 7, -8
    y = np.zeros(5)
    with pytest.raises(IndexError, match="index -8 is out of bounds for axis 0 with size 5"):
        pyrelay.jit(added, device="cuda_emulator")(y, i, np.ones(5000))
    assert not y.any()
