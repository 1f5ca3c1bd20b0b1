"""Rows that read columns of an array are taken block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def turned(x, y):
    return np.ascontiguousarray(x.T)


def beside(x, y):
    return x.T * 2.0 + y


def by_row(x, y):
    return np.exp(x.T - y[:, :1]) + y


def two(x, y):
    return x[1:, ::-1].T + x[:-1].T * y[:, 1:]


def in_place(x, y):
    y += x.T
    y[:, 1:] -= x.T[:, :-1]
    return y


SHAPES = (
    (0, 3), (3, 0), (1, 1), (5, 7), (15, 70), (16, 9), (17, 8), (64, 64), (65, 63), (130, 33),
    (3, 200),
)


@pytest.mark.parametrize("function", [turned, beside, by_row, two, in_place])
def test_results_are_those_of_numpy(function: Any) -> None:
    rng, compiled = np.random.default_rng(0), pyrelay.jit(function)
    for shape in SHAPES:
        for dtype in ("f8", "f4"):
            x, y = (rng.random(s).astype(dtype) for s in (shape, shape[::-1]))
            if function is two and 0 in shape:
                continue
            expected, found = function(x, y.copy()), compiled(x, y.copy())
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "f4" else 1e-12)


def test_small_numbers_and_complex_ones_are_turned() -> None:
    compiled = pyrelay.jit(lambda x: np.ascontiguousarray(x.T))
    for dtype in ("i1", "i2", "?", "c16"):
        for shape in ((5, 90), (90, 70), (70, 5)):
            x = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
            np.testing.assert_array_equal(compiled(x), x.T)


@pytest.mark.parametrize("function", [turned, by_row, in_place])
def test_blocks_have_as_many_rows_as_a_line_has_elements(function: Any) -> None:
    code = str(pyrelay.jit(function).code(np.ones((90, 80)), np.ones((80, 90))))
    assert " in lanes(8, 8)" in code
    assert " + 64, " in code


def test_what_is_read_as_it_lies_goes_row_by_row() -> None:
    for function in (lambda x, y: x * 2.0 + y[:1], lambda x, y: x[::2] + x[1::2]):
        code = str(pyrelay.jit(function).code(np.ones((90, 80)), np.ones((90, 80))))
        assert "lanes(" not in code
