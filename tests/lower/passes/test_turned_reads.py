"""Rows that read columns of an array are taken block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowered import function_of, reference, run

import pyrelay
from pyrelay.ir import dims
from pyrelay.ir.dims import Symbol
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f32
from pyrelay.lower.kernels.spaces import Space, turned_space


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


def moved_to_the_end(b: Any, x: Any) -> Any:
    return OPS["transpose"](x, axes=(0, 2, 3, 1))


def moved_and_added(b: Any, x: Any) -> Any:
    return OPS["transpose"](x, axes=(0, 2, 3, 1)) + OPS["transpose"](x, axes=(0, 2, 3, 1)) * x


@pytest.mark.parametrize("body", [moved_to_the_end, moved_and_added])
def test_planes_are_turned_one_by_one(body: Any) -> None:
    symbols = tuple(Symbol(name) for name in "abcd")
    shape = tuple(map(dims.of, symbols))
    if body is moved_and_added:
        shape, shapes = (shape[0], *shape[1:2] * 3), ((3, 5, 5, 5), (2, 17, 17, 17))
    else:
        shapes = ((3, 4, 5, 7), (3, 2, 3, 5), (2, 20, 3, 7), (1, 1030, 5, 4), (0, 2, 3, 4),
                  (2, 0, 20, 3), (2, 3, 0, 4))
    used = [s for s in symbols if any(s in dims.symbols(d) for d in shape)]
    function = function_of([TensorType(f32, shape)], body, used)
    for each in shapes:
        x = np.random.default_rng(0).random(each).astype("f4")
        for chunks in (1, 3):
            (expected,) = reference(function, [x])
            (found,) = run(function, [x], chunks=chunks)
            np.testing.assert_array_equal(found, expected)


def test_axes_that_stay_neighbours_are_one_run_of_a_plane() -> None:
    assert turned_space((2, 3, 4, 5), [(0, 2, 3, 1)]) == Space((2, 3, 4, 5), (1, 2, 1), turned=True)
    assert turned_space((2, 3, 4, 5), [(0, 2, 1, 3)]) is None  # rows are read as they lie
    assert turned_space((2, 3), [(1, 0)]) is None  # one plane
    code = str(pyrelay.jit(lambda x: np.moveaxis(x, 1, 3).copy()).code(np.ones((9, 4, 5, 6))))
    assert " in lanes(8, 8)" in code
