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
