"""Sorting on a GPU: stable, NaNs last, tiles first and then runs of twice the length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import cuda_sorts
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler

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


def test_a_vector_of_several_tiles_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", driver)
    function = pyrelay.jit(lambda x: np.argsort(x, kind="stable"), device=ON)
    counts = []
    for n in (0, 900, 1500, 5000):
        x, before = awkward(n), driver.launched
        np.testing.assert_array_equal(function(x), np.argsort(x, kind="stable"))
        counts.append(driver.launched - before)
    # One launch sorts tiles of 1024, one kernel merges pairs of runs until there is one.
    assert counts == [1, 2, 2, 2]


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


def test_tiles_are_whole_parts() -> None:
    # A part of a merge never lies in two pairs of runs.
    assert cuda_sorts.TILE % cuda_sorts.PART == 0
