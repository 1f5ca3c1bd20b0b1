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

FLOAT, INT = Number(types.PY_FLOAT), Number(types.PY_INT)
EITHER = Choice((INT, FLOAT))
EMPTY, ONES, HALVES = Constant((), tuple), Constant((1, 1), tuple), Constant((0.5, 0.5), tuple)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ((EMPTY, Struct((FLOAT, FLOAT)), Struct((FLOAT,))), Items(tuple, FLOAT)),
        ((EMPTY, ONES, Struct((FLOAT, FLOAT))), Items(tuple, EITHER)),
        ((ONES, Struct((FLOAT, FLOAT))), Struct((EITHER, EITHER))),
        ((HALVES, Struct((FLOAT, FLOAT))), Struct((FLOAT, FLOAT))),
        ((Items(tuple, Nothing()), Struct((FLOAT,))), Items(tuple, FLOAT)),
        ((Constant(None, type(None)), Struct((FLOAT,)), Struct((FLOAT, FLOAT))),
         Choice((Constant(None, type(None)), Items(tuple, FLOAT)))),
        ((EMPTY, Items(tuple, Child((1,)))), Items(tuple, Child((1,)))),
        ((Items(tuple, Child((1,))), EMPTY), Items(tuple, Child((1,)))),
    ],
)  # fmt: skip
def test_tuples_of_floats_or_of_nodes_may_have_any_length(
    found: tuple[Sort, ...], wanted: Sort
) -> None:
    sort: Sort = Nothing()
    for each in found:
        sort = merged(sort, each, promote=True)
    assert sort == wanted


@pytest.mark.parametrize(
    "found",
    [
        (Struct((INT,)), Struct((INT, INT))),
        (EMPTY, HALVES),
        (Struct((FLOAT,)), Constant(("x", 1.0), tuple)),
        (EMPTY, Items(list, FLOAT)),
    ],
)
def test_others_are_told_apart(found: tuple[Sort, Sort]) -> None:
    """Shapes are, whose number a program asks for, and constants, which it knows."""
    assert merged(*found, promote=True) == Choice(found)
