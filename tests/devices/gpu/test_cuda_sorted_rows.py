"""Numbers of rows, and the places that sort them, found by one block where indices are few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import cuda_scatters
from pyrelay.devices.gpu.cuda_sorted_rows import MOST, THREADS
from pyrelay.ir.types import f32
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


@pytest.mark.parametrize("count", [4096, 4097, MOST])
def test_rows_are_added_in_order(count: int) -> None:
    # Sums of whole numbers are the same in any order; that of places shows in the small ones.
    i = RNG.integers(-70_000, 70_000, count)
    i[::5] = 69_999
    x, y = RNG.integers(0, 9, (count, 2)).astype("f4"), np.zeros((70_000, 2), "f4")
    mine = pyrelay.jit(added, device="cuda_emulator")(y.copy(), i, x)
    np.testing.assert_array_equal(mine, added(y.copy(), i, x))


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


def test_a_thread_has_no_more_registers_than_there_are_for_so_many() -> None:
    assert f"__launch_bounds__({THREADS})" in cuda_scatters.scatter("scatter_add", f32, 1).few


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
