"""What a field of nodes is stored as, once more nodes are seen."""

from __future__ import annotations

import pytest

from pyrelay.infer.nodes.datatypes import (
    Child,
    Choice,
    Constant,
    Items,
    Nothing,
    Number,
    Sort,
    Struct,
    merged,
)
from pyrelay.ir import types

FLOAT = Number(types.PY_FLOAT)
EMPTY, HALVES = Constant((), tuple), Constant((0.5, 0.5), tuple)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ((EMPTY, Items(tuple, Child((1,)))), Items(tuple, Child((1,)))),
        ((Items(tuple, Child((1,))), EMPTY), Items(tuple, Child((1,)))),
    ],
)  # fmt: skip
def test_no_items_fit_tuples_of_nodes(
    found: tuple[Sort, ...], wanted: Sort
) -> None:
    sort: Sort = Nothing()
    for each in found:
        sort = merged(sort, each, promote=True)
    assert sort == wanted


@pytest.mark.parametrize(
    "found",
    [(Struct((FLOAT,)), Struct((FLOAT, FLOAT))), (EMPTY, HALVES), (EMPTY, Items(list, FLOAT))],
)
def test_others_are_told_apart(found: tuple[Sort, Sort]) -> None:
    """A program that calls a function with all items knows how many they are."""
    assert merged(*found, promote=True) == Choice(found)
