"""Where extremes stand in rows: by lanes, one by one, block by block, and where a NaN is first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def largest(x: Any) -> Any:
    return np.argmax(x, axis=1)


def smallest_of_others(x: Any) -> Any:
    return np.argmin(1 - x * 2, axis=1)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_rows_are_looked_at_in_lanes_and_none_of_their_elements_is_left_over(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for function in (largest, smallest_of_others):
        compiled = pyrelay.jit(function)
        for columns in (1, 7, 8, 15, 16, 17, 31, 32, 100, 255, 256):
            few, many = (rng.integers(-n, n, (60, columns)).astype(dtype) for n in (2, 1000))
            for x in (few, many, np.full((2, columns), many.min())):
                np.testing.assert_array_equal(compiled(x), function(x))
        assert " in lanes(16, " in str(compiled.code(few))


def test_places_of_what_is_many_instructions_for_each_element_are_found() -> None:
    def highest(x: Any) -> Any:
        return np.argmax(np.sin(x))

    compiled, rng = pyrelay.jit(highest), np.random.default_rng(0)
    for size in (1, 15, 16, 33, 100, 9000):
        for scale in (1.0, 1e7):  # of angles that vectors do not take, too
            x = scale * rng.normal(size=size)
            assert compiled(x) == highest(x)


def test_the_first_nan_of_a_row_and_the_first_of_equal_infinities_are_found() -> None:
    compiled = pyrelay.jit(largest)
    for columns in (5, 16, 23, 40):
        x = np.zeros((columns + 2, columns))
        for row in range(columns):
            x[row, row:] = np.inf
            x[row, row] = np.nan
            x[row, columns - 1 - row // 2] = np.nan
        x[columns] = -np.inf
        x[columns + 1, columns // 2 :] = np.inf
        np.testing.assert_array_equal(compiled(x), largest(x))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i1", "?"])
def test_few_columns_are_gone_through_one_after_the_other(dtype: str) -> None:
    @pyrelay.jit
    def of_columns(x: Any) -> Any:
        return np.argmax(x, axis=0), np.argmin(x, axis=0, keepdims=True)

    rng = np.random.default_rng(0)
    for columns in (1, 3, 10, 11):
        for rows in (1, 7, 16, 255, 256, 300, 1100):
            x = rng.integers(0, 2 * rows, (rows, columns)).astype(dtype)
            if dtype in ("f8", "f4") and rows > 20:
                x[rows // 2, 0] = np.nan
                x[rows // 3 :, -1] = np.inf
            found = of_columns(x)
            np.testing.assert_array_equal(found[0], np.argmax(x, axis=0))
            np.testing.assert_array_equal(found[1], np.argmin(x, axis=0, keepdims=True))
    of_three_axes = pyrelay.jit(lambda x: np.argmax(x.transpose(1, 0, 2), axis=1))
    x = rng.integers(0, 9, (40, 3, 2)).astype(dtype)
    np.testing.assert_array_equal(of_three_axes(x), np.argmax(x, axis=0))


def test_elements_that_lie_apart_are_gathered() -> None:
    x = np.random.default_rng(0).normal(size=(600, 2))
    code = str(pyrelay.jit(lambda x: np.argmin(x, axis=0)).code(x))
    assert "local_f64(512)" in code
    assert "local_f64(32)" in code  # columns as lanes, where there are more


def test_truths_are_looked_at_in_blocks_up_to_the_first() -> None:
    def first(x: Any, y: Any) -> Any:
        return np.argmax(x, axis=1), np.argmin(~x, axis=1), np.argmax(y > 0.5), x[:, ::2].argmin()

    compiled = pyrelay.jit(first)
    for columns in (1, 31, 32, 33, 64, 96, 97, 511, 576, 577, 1200):
        x = np.eye(columns + 1, columns, dtype=bool)  # of the last row none is true
        y = np.zeros(columns)
        y[columns * 3 // 4 :] = 1.0
        for found, wanted in zip(compiled(x, y), first(x, y), strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert " in lanes(512, 1)" in str(compiled.code(x, y))
