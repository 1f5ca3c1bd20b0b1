"""Functions in fields of nodes: what they capture lies in columns that they share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyrelay.infer.nodes.datatypes import Array, Callee, Child, Nothing, Number, Row, captures
from pyrelay.ir import types
from tests.infer.running import assert_same_outcome, interpreted, plainly

FLOAT, INT = Number(types.PY_FLOAT), Number(types.PY_INT)


def function(name: str, *parts: Any) -> Callee:
    return Callee(("closure", name), parts)


def test_numbers_and_nodes_of_one_sort_share_a_place() -> None:
    one, perhaps, array = Child((1,)), Child((0, 1)), Array("f64", (None,))
    sorts, places = captures((
        function("add", one, one, one), function("scale", FLOAT, one), Nothing(),
        function("power", one, INT, FLOAT, FLOAT), function("none", perhaps, perhaps, array),
        function("shift", array, one),
    ))  # fmt: skip
    assert sorts == (
        Row(1), Row(1), Row(1), FLOAT, INT, FLOAT, perhaps, perhaps, array, array,
    )  # fmt: skip
    assert places == ((0, 1, 2), (3, 0), (), (0, 4, 3, 5), (6, 7, 8), (9, 0))


def test_texts_are_no_functions() -> None:
    assert captures((Callee(("text", str), (FLOAT,)),)) == ((), ((),))


class Cell:
    def __init__(self, value: Any) -> None:
        self.value = value
        self.step: Any = lambda x: x
        self.after: Any = None


class Gate(Cell):
    pass


def chained(x: Any, n: int) -> Any:
    """Functions that capture numbers of two kinds, tuples, and nodes of two classes or none."""
    first: Any = None
    for k in range(n):
        cell = Gate(x[k]) if k % 3 == 1 else Cell(x[k] + 1.0)
        cell.after = first
        if k % 4 == 0:
            cell.step = lambda t, k=k, cell=cell: t * k + cell.value
        elif k % 4 == 1:
            cell.step = lambda t, s=x[k] * 0.5, before=first: t + s * before.value
        elif k % 4 == 2:
            cell.step = lambda t, cell=cell, a=(k, x[k]): t + a[1] - a[0] * cell.value
        else:
            cell.step = lambda t, a=x[k], k=k, before=first: t - a * k + before.step(t)
        first = cell
    total, found = 1.0, []
    while first is not None:
        total = first.step(total)
        found.append(total)
        first = first.after
    return found


@pytest.mark.parametrize("n", [0, 6])
def test_functions_keep_what_they_capture(n: int) -> None:
    args = (np.array([0.5, -2.0, 1.5, 0.25, 3.0, -1.0]), n)
    assert_same_outcome(interpreted(chained, args), plainly(chained, args))
