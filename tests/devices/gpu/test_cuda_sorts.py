"""Sorting on a GPU: stable, NaNs last, short lines several at once, long ones by their digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import cuda_sorts
from pyrelay.devices.gpu.driver import Text
from pyrelay.ir.types import from_numpy
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler
from tests.devices.running_kernels import words as words_of

ON = "cuda_emulator"
pytestmark = needs_compiler


def ordered(x: Any, table: Any) -> Any:
    return np.sort(x), np.argsort(x, kind="stable"), np.argsort(table, axis=0, kind="stable")


def awkward(n: int, dtype: str = "f8") -> Any:
    """Numbers with ties, zeros of both signs, infinities and NaNs, in no order."""
    x = np.random.default_rng(n).integers(-n // 3 - 2, n // 3 + 2, n).astype(dtype)
    if x.dtype.kind == "f" and n > 5:
        x[[1, n // 2]] = np.nan
        x[[2, n // 3]] = -0.0
        x[[0, n - 1]] = np.inf, -np.inf
    return x


def assert_sorted(function: Any, *args: Any) -> None:
    for mine, theirs in zip(pyrelay.jit(function, device=ON)(*args), function(*args), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.dtype == theirs.dtype


def test_long_lines_are_sorted_by_each_digit(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    function = pyrelay.jit(lambda x: np.argsort(x, kind="stable"), device=ON)
    counts = []
    for n in (0, 900, 4096, 5000):
        x, before = awkward(n, "f4"), driver.launched
        np.testing.assert_array_equal(function(x), np.argsort(x, kind="stable"))
        counts.append(driver.launched - before)
    # Of a long line digits are counted, and then it is sorted by the four of them.
    assert counts == [0, 1, 1, 5]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u1", "?"])
@pytest.mark.parametrize("n", [1, 77, 1100])
def test_every_type_of_numbers(dtype: str, n: int) -> None:
    assert_sorted(ordered, awkward(n, dtype), awkward(7 * n, dtype).reshape(7, n))


def medians(x: Any, k: Any) -> Any:
    values, places, counts = np.unique(k, return_inverse=True, return_counts=True)
    top = np.argsort(-x)[:3]
    return (
        np.median(x), np.quantile(x, 0.3), values, places, counts, x[top],
        np.searchsorted(np.sort(x), x[:5]), np.lexsort((x, k)),
    )


@pytest.mark.slow
def test_what_is_made_of_sorting() -> None:
    rng = np.random.default_rng(4)
    assert_sorted(medians, rng.normal(size=40), rng.integers(0, 6, 40))


@pytest.mark.slow
def test_the_gradient_of_sorting_goes_where_elements_came_from() -> None:
    def weighted(x: Any) -> Any:
        return (np.sort(x, axis=0) * np.arange(12.0).reshape(4, 3)).sum() + np.median(x)

    x = np.random.default_rng(4).normal(size=(4, 3))
    mine, theirs = pyrelay.grad(weighted, device=ON)(x), pyrelay.grad(weighted)(x)
    np.testing.assert_allclose(mine, theirs, rtol=1e-13)
    expected = np.zeros((4, 3))
    np.put_along_axis(expected, np.argsort(x, 0), np.arange(12.0).reshape(4, 3), 0)
    expected[np.isin(x, np.sort(x.ravel())[5:7])] += 0.5
    np.testing.assert_allclose(mine, expected, rtol=1e-13)


def by_digits(
    x: Any, name: str, wide: bool, blocks: int, turns: int, in_loop: bool = False
) -> Any:
    """Long lines sorted by so many blocks at the same time, which take turns in an order."""
    kernels = cuda_sorts.sort(name, from_numpy(x.dtype), wide, in_loop)
    (lines, n), places = x.shape, name == "argsort"
    assert n > kernels.tile
    parts = lines * (tiles := -(-n // kernels.part))
    groups = lines * -(-tiles // kernels.group)
    words = kernels.head + (lines * kernels.passes + parts + groups) * kernels.values
    memory, found = np.zeros(words, "u8"), np.zeros(x.shape, "i8" if places else x.dtype)
    keys = [np.zeros(x.shape, f"u{kernels.key_bytes}") for _ in range(2)]
    order = [np.zeros(x.shape, f"u{kernels.place_bytes or 4}") for _ in range(2)]
    chunks = lines * -(-n // kernels.chunk)
    calls = [(kernels.count, chunks, (x, memory, n))]
    for number in range(kernels.passes):
        ends = number + 1 == kernels.passes
        turned = [pair[number % 2 ^ k] for pair in (keys, order)[: 1 + places] for k in (1, 0)]
        calls.append((kernels.move, parts, (x, *turned, found, memory, n, lines, number, ends)))
    driver, record = cuda_emulator.EmulatorDriver(), np.zeros(21, np.int64)
    driver.turns = turns
    for text, items, parameters in calls:
        text = f"#define MEETS 1\n{text}"  # so that blocks run side by side
        (function,) = driver.load([Text(text, ())])
        for each in parameters:
            if isinstance(each, np.ndarray):
                driver.sizes[each.ctypes.data] = each.nbytes
        driver.launch_meeting(function, blocks, words_of(record, 0, 0, items, *parameters), 0)
    return found


@pytest.mark.parametrize("turns", cuda_emulator.ORDERS)
def test_tiles_wait_for_those_before_in_every_order_of_blocks(turns: int) -> None:
    x = awkward(2 * 9000, "f2").reshape(2, 9000)
    expected = np.argsort(x, axis=1, kind="stable")
    for wide, in_loop in ((False, False), (True, True)):
        found = by_digits(x, "argsort", wide, 5, turns, in_loop)
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(by_digits(x, "sort", False, 5, turns), np.sort(x, axis=1))


@pytest.mark.parametrize("in_loop", [False, True])
def test_tiles_look_back_by_groups(in_loop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_sorts, "GROUP", 2)
    x = awkward(40000, "f2").reshape(1, 40000)
    np.testing.assert_array_equal(by_digits(x, "sort", False, 4, 3, in_loop), np.sort(x, axis=1))


@pytest.mark.parametrize("dtype", ["?", "u2", "i2"])
def test_digits_that_a_line_shares_move_nothing(dtype: str) -> None:
    x = (np.random.default_rng(2).integers(0, 2, (2, 5000)) * [[1], [0]]).astype(dtype)
    np.testing.assert_array_equal(
        by_digits(x, "argsort", False, 3, 1), np.argsort(x, axis=1, kind="stable")
    )
    np.testing.assert_array_equal(by_digits(x, "sort", False, 3, 1), np.sort(x, axis=1))


@pytest.mark.parametrize("shape", [(300, 1), (300, 7), (3, 2000), (2, 4096), (1, 1), (0, 5)])
def test_short_lines_are_sorted_several_at_once(shape: tuple[int, int]) -> None:
    x = awkward(shape[0] * shape[1], "f4").reshape(shape)
    assert_sorted(lambda x: (np.sort(x, axis=1), np.argsort(x, axis=1, kind="stable")), x)
