"""What a field of nodes is stored as, once more nodes are seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import pyrelay
from pyrelay.infer.nodes.datatypes import (
    Child,
    Choice,
    Constant,
    Incompatible,
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


def lengths(part: Sort, count: int) -> Sort:
    sort: Sort = EMPTY
    for k in range(1, count):
        sort = merged(sort, Struct((part,) * k), promote=True)
    return sort


def test_numbers_in_tuples_of_many_lengths_are_of_any_number() -> None:
    assert lengths(FLOAT, 9) == Items(tuple, FLOAT)


def test_other_tuples_have_few_lengths() -> None:
    """They were told apart without end."""
    with pytest.raises(Incompatible):
        lengths(Struct((FLOAT, FLOAT)), 12)


@dataclass
class Leaf:
    value: float


@dataclass
class Negated:
    of: Any


@dataclass
class Pair:
    left: Any
    right: Any


def value_of(tree: Any) -> Any:
    match tree:
        case Leaf(value):
            return value
        case Negated(of):
            return -value_of(of)
        case Pair(left, right):
            return value_of(left) * value_of(right)


def mirrored(tree: Any) -> Any:
    match tree:
        case Leaf(value):
            return Leaf(value + 1.0)
        case Pair(left, right):
            return Pair(mirrored(right), mirrored(left))


def test_trees_without_a_kind_that_others_have_are_taken_by_functions_that_have_no_case_for_it(
) -> None:
    """What other trees of the data type hold makes them records: a program for each structure."""
    few = Pair(Leaf(2.0), Pair(Leaf(3.0), Leaf(4.0)))
    assert pyrelay.jit(value_of)(Pair(few, Negated(Leaf(5.0)))) == -120.0
    compiled = pyrelay.jit(mirrored)
    assert compiled(few) == compiled(few) == mirrored(few)
    assert compiled.cache_info().compilations == 1
