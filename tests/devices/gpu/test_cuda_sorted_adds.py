"""Rows added at many indices on a GPU: sorted by their places, then in Python's order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu.cuda_sorted_adds import CHUNK
from pyrelay.devices.gpu.cuda_sorted_rows import MOST
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler

ON = "cuda_emulator"
pytestmark = needs_compiler
RNG = np.random.default_rng(8)


def added(y: Any, i: Any, x: Any) -> Any:
    np.add.at(y, i, x)
    return y


adding = pyrelay.jit(added, device=ON)


def test_rows_of_one_place_are_added_as_python_does_where_they_lie_in_a_chunk() -> None:
    # So many for each place, in no order: none of them is in two chunks.
    i = RNG.permutation(np.repeat(np.arange(300), CHUNK // 2))
    x, y = RNG.normal(size=(len(i), 3)), RNG.normal(size=(300, 3))
    mine, wanted = adding(y.copy(), i - 300 * (i % 2), x), added(y.copy(), i, x)
    np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize(
    ("rows", "width"), [(3, 1), (1, 5), (40, 130), (3, 300), (9, 600)],
    ids=["elements", "one row", "several parts", "wide rows", "wide parts"],
)
def test_rows_of_one_place_go_on_from_chunk_to_chunk(rows: int, width: int) -> None:
    i = RNG.integers(-rows, rows, 5000)
    i[: len(i) // 2] = 0  # many chunks in a row are of one place
    x = RNG.normal(size=(len(i), width))
    x, y = (x[:, 0].copy(), np.ones(rows)) if width == 1 else (x, np.ones((rows, width)))
    first, again = adding(y.copy(), i, x), adding(y.copy(), i, x)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_allclose(first, added(y.copy(), i, x), rtol=1e-12, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "c16", "i1", "u2", "?"])
def test_every_type_that_is_not_counted(dtype: str) -> None:
    i = RNG.integers(0, 70_000, 4100)
    i[::9] = 69_999
    x, y = RNG.integers(0, 2, (4100, 2)).astype(dtype), np.zeros((70_000, 2), dtype)
    np.testing.assert_array_equal(adding(y.copy(), i, x), added(y.copy(), i, x))


def test_digits_that_no_row_has_are_not_sorted_by(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    function = pyrelay.jit(lambda y, i: added(y, i, 1.5), device=ON)
    found = []
    for rows in (256, 257, 65_537):
        i, before = np.arange(MOST + 1) % rows, driver.launched
        y = np.zeros(rows)
        np.testing.assert_array_equal(function(y.copy(), i), added(y.copy(), i, 1.5))
        found.append(driver.launched - before)
    assert [count - found[0] for count in found] == [0, 1, 2]


def test_few_indices_and_empty_rows_are_not_sorted() -> None:
    i = np.array([3, 3, -1])
    np.testing.assert_array_equal(adding(np.zeros(4), i, np.ones(3)), [0, 0, 0, 3])
    many = np.zeros(5000, np.int64)
    assert adding(np.zeros((4, 0)), many, np.zeros((5000, 0))).shape == (4, 0)


def test_an_index_outside_of_its_axis_is_told_before_anything_is_added() -> None:
    i = np.zeros(5000, np.int64)
    i[[4000, 900]] = 7, -8
    y = np.zeros(5)
    with pytest.raises(IndexError, match="index -8 is out of bounds for axis 0 with size 5"):
        adding(y, i, np.ones(5000))
    assert not y.any()
