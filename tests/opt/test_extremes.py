"""Positions of extremes are the least positions of what equals them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

import pyrelay
from pyrelay.ir.nodes import Module
from pyrelay.opt.extremes import extremes, extremes_of_columns
from pyrelay.pipeline import CLEAN

X = np.array([[3.0, 1.0, 3.0], [0.0, np.nan, -1.0], [-2.0, -2.0, -5.0]])
POSITIONS = ("argmax", "argmin")


def _written(function: Any, x: Any, rewritten: Any = extremes) -> tuple[Module, Module]:
    before = after(core(function, x), *CLEAN)
    functions = {name: rewritten(f) for name, f in before.functions.items()}
    return before, replace(before, functions=functions)


@pytest.mark.parametrize(
    "x", [X, X[2:], (X[::2] * 2).astype(np.int64), X > 0.0], ids=["floats", "row", "ints", "bools"]
)
@pytest.mark.parametrize("function", [
    lambda x: (x.argmax(axis=1), x.argmin(axis=1)),
    lambda x: (x.argmax(), x.argmin()),
    lambda x: np.argmax(x, axis=-1, keepdims=True),
])
def test_the_first_of_equal_ones_or_of_no_numbers_is_found(function: Any, x: Any) -> None:
    before, module = _written(function, x)
    assert any(ops(before)[name] for name in POSITIONS)
    assert not any(ops(module)[name] for name in POSITIONS)
    assert_same_runs(before, module, (x,))


def test_positions_along_other_axes_stay() -> None:
    before, module = _written(lambda x: x.argmax(axis=0), X)
    assert all(module.functions[name] is f for name, f in before.functions.items())


@pytest.mark.parametrize("function", [
    lambda x: (x.argmax(axis=0), x.argmin(axis=0)),
    lambda x: np.argmax(x, axis=0, keepdims=True),
    lambda x: np.argmin(np.stack([x, x[::-1]]), axis=0),
])
def test_the_first_of_equal_ones_of_each_column_is_found(function: Any) -> None:
    for x in (X, (X[::2] * 2).astype(np.int64), X > 0.0):
        before, module = _written(function, x, extremes_of_columns)
        assert not any(ops(module)[name] for name in POSITIONS)
        assert_same_runs(before, module, (x,))
        np.testing.assert_array_equal(pyrelay.jit(function)(x), function(x))


def test_positions_along_rows_and_middle_axes_are_no_columns() -> None:
    for function in (lambda x: x.argmax(axis=1), lambda x: x.argmax(axis=2)):
        before, module = _written(function, np.stack([X, X]), extremes_of_columns)
        assert all(module.functions[name] is f for name, f in before.functions.items())
