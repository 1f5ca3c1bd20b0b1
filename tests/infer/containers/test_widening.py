"""Rows of growing lists for wider templates: what is in them stays, what is new is zero or None."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.errors import UnsupportedOperationError
from pyrelay.infer import layout, values
from pyrelay.infer.containers import widening
from pyrelay.ir import types
from pyrelay.ir.build import Builder, constant

PLACES = np.array([3, 1, 2, 1, 0])


def nothing_in_lists_in_lists(n: int, places: Any) -> Any:
    found = []
    for p in places:
        rows = []
        for k in range(p):
            rows.append([None] * (k + 1))
        found.append(rows)
    found[0][n - 4][1] = 2.0
    return found


def texts_in_lists(n: int, places: Any) -> Any:
    found = [["no"] * (k + 1) for k in range(n)]
    found[places[1]][places[4]] = "yes"
    return found


def whole_numbers_first(n: int, places: Any) -> Any:
    found = []
    for p in places:
        found.append(p)
    found[n - 1] = 0.5
    return sum(found)


@pytest.mark.parametrize(
    "function", [nothing_in_lists_in_lists, texts_in_lists, whole_numbers_first],
)
def test_lists_take_items_of_more_kinds(function: Any) -> None:
    assert pyrelay.jit(function)(5, PLACES) == function(5, PLACES)


def test_there_is_room_for_all_items_where_the_first_list_is_the_longest() -> None:
    def marked(counts: Any, row: int, place: int) -> Any:
        rows = []
        for n in counts:
            rows.append([None] * n)
        rows[row][place] = 1.0
        return rows

    compiled = pyrelay.jit(marked)
    for counts in ([9, 1, 2], [0, 0, 4], [1] * 20):
        row = max(range(len(counts)), key=counts.__getitem__)
        args = np.array(counts), row, counts[row] - 1
        assert compiled(*args) == marked(*args)
    with pytest.raises(IndexError):
        compiled(np.array([2, 1]), 1, 1)


def test_items_that_are_no_case_of_what_a_list_takes_are_refused() -> None:
    rows = (constant(0),)
    content = values.Growing(values.Known(1), rows, layout.LScalar(types.PY_INT))
    wanted = layout.LUnion((layout.LKnown("a"), layout.LKnown(None)))
    with pytest.raises(UnsupportedOperationError, match="have no common type"):
        widening.cast_rows(Builder(), content, wanted)
