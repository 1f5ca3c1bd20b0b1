"""Extremes and where they stand: in blocks, among equal elements, NaNs and ends of ranges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i1", "u1", "u8", "?"]
SHAPES = [(1,), (127,), (128,), (129,), (1030,), (3, 200), (200, 3), (6, 50), (600, 2), (2, 3, 300),
          (8191,), (8192,), (9001,)]


def places(x):
    return np.argmax(x), np.argmin(x), np.argmax(x, axis=0), np.argmin(x, axis=-1)


def turned(x):
    return np.argmax(x.T), np.argmin(np.abs(x)), np.argmax(x[::-1])


def of_columns(x):
    return np.max(x, axis=0), np.min(x, axis=0), np.any(x, axis=0)


def sums_of_columns(x):
    return np.sum(x, axis=0), np.sum(np.abs(x) + 1, axis=0)


def contents(dtype: str, shape: tuple[int, ...]) -> list[Any]:
    """Few different elements, many, all the same, and for floats NaNs and infinities."""
    rng = np.random.default_rng(0)
    low = 0 if dtype[0] in "u?" else -50
    found = [rng.integers(low, low + n, shape).astype(dtype) for n in (1, 2, 100)]
    found.append(np.zeros(shape, dtype))
    found[-1][tuple(n - 1 for n in shape)] = 1
    if dtype[0] == "f":
        infinite = np.full(shape, -np.inf, dtype)
        some = found[2].copy()
        some[rng.random(shape) < 0.02] = np.nan
        last = found[2].copy()
        last[tuple(n - 1 for n in shape)] = np.nan
        found += [infinite, -infinite, some, last, np.full(shape, np.nan, dtype)]
    if dtype[0] == "i":
        found += [np.full(shape, np.iinfo(dtype).min), np.full(shape, np.iinfo(dtype).max)]
    return found


#: np.abs of truth values is tested among the elementwise functions.
COMBINATIONS = [
    pytest.param(function, dtype, marks=() if (function, dtype) in often else pytest.mark.slow)
    for often in [{(places, "f8"), (places, "u1"), (turned, "i4"), (of_columns, "f4"),
                   (of_columns, "i8"), (places, "?"), (turned, "f2")}]
    for function in (places, turned, of_columns) for dtype in DTYPES
    if (function, dtype) != (turned, "?")
]


@pytest.mark.parametrize(("function", "dtype"), COMBINATIONS)
def test_extremes_and_their_places_are_those_of_numpy(function: Any, dtype: str) -> None:
    compiled = pyrelay.jit(function)
    for shape in SHAPES:
        for x in contents(dtype, shape):
            for found, wanted in zip(compiled(x), function(x), strict=True):
                assert found.dtype == wanted.dtype
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "rows",
    [1, 7, 513, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 4, 5, 8, 511, 1030))],
)
def test_columns_of_any_number_of_rows_are_reduced(rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 600))
    for function in (of_columns, sums_of_columns):
        compiled = pyrelay.jit(function)
        for each in (x, x.astype("f4"), (x * 100).astype("i8"), x[:, :5].copy()):
            for found, wanted in zip(compiled(each), function(each), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)


def least_times(compiled: Any, x: Any, places: tuple[int, ...], wanted: Any) -> list[float]:
    """The seconds that a call takes where one element alone is true, at each of these places."""
    import time

    spent = []
    for place in places:
        x[:] = False
        x[place] = True
        assert compiled(x) == wanted(place)
        times = []
        for _ in range(5):
            started = time.perf_counter()
            compiled(x)
            times.append(time.perf_counter() - started)
        spent.append(min(times))
    return spent


def test_the_place_of_the_first_truth_is_found_without_looking_further() -> None:
    def first(x: Any) -> Any:
        return np.argmax(x)

    x = np.zeros(4_000_000, bool)
    near, far = least_times(pyrelay.jit(first), x, (0, len(x) - 1), lambda place: place)
    assert near * 4 < far


def test_any_and_all_look_no_further_than_where_they_are_decided() -> None:
    def some(x: Any) -> Any:
        return np.any(x)

    def every(x: Any) -> Any:
        return not np.all(np.logical_not(x))

    def greatest(x: Any) -> Any:
        return np.max(x)

    x = np.zeros(4_000_000, bool)
    for function in (some, every, greatest):
        compiled = pyrelay.jit(function)
        with pyrelay.config.override(num_threads=1):  # another one reads its own part to its end
            near, far = least_times(compiled, x, (0, len(x) - 1), lambda place: True)
        assert near * 3 < far
        x[:] = False
        assert not compiled(x)
        x = x.reshape(2000, -1).copy() if x.ndim == 1 else x
        x[1900, 3] = True
        assert compiled(x)
        x = x.ravel()
