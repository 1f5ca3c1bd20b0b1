"""The tables of a pool: where columns of a schema lie, and what opened pools keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer.nodes.datatypes import Array, Child, Grows, Items, Number, Schema
from pyrelay.infer.nodes.pool_tables import table_of, tables_of
from pyrelay.infer.nodes.pools import schema_columns
from pyrelay.ir import types
from tests.infer.running import assert_same_outcome, interpreted, plainly


@dataclass
class Node:
    value: float
    marks: np.ndarray[Any, Any]
    children: list[Node] = field(default_factory=list)


SCHEMA = Schema((type(None), Node), ((), (
    ("changed", Grows()), ("value", Number(types.PY_FLOAT)), ("marks", Array("float64", (None,))),
    ("children", Items(list, Child((1,)))),
)))


def test_each_column_of_a_schema_lies_in_one_table() -> None:
    tables = tables_of(SCHEMA)
    assert sorted(tables) == ["1", "1.children[]"]
    assert sorted(c for own in tables.values() for c in own) == sorted(schema_columns(SCHEMA))
    for column in schema_columns(SCHEMA):
        table, position = table_of(SCHEMA, column)
        assert list(tables[table])[position] == column


def test_lists_that_grow_are_the_last_columns() -> None:
    assert list(tables_of(SCHEMA)["1"])[-1] == "1.changed"


def under_a_new_root(tree: Node, x: float) -> Node:
    return Node(tree.value + x, np.full(2, x), [tree, Node(x, np.full(2, -x), [])])


def test_a_pool_of_the_caller_keeps_its_nodes_when_some_are_added() -> None:
    tree = Node(1.0, np.zeros(2), [Node(2.0, np.ones(2))])
    made = pyrelay.jit(under_a_new_root)(tree, 3.0)
    assert made.children[0] is tree
    assert repr(made) == repr(under_a_new_root(tree, 3.0))


class Body:
    def __init__(self, x: float, v: float, after: Any = None) -> None:
        self.x, self.v, self.mass, self.after = x, v, 1.0, after


def moved(n: int) -> float:
    first: Any = None
    for k in range(n):
        first = Body(0.5 * k, 1.0, first)
    body, total = first, 0.0
    while body is not None:
        body.x += body.v
        total += body.x
        body = body.after
    return total


def test_a_number_is_written_into_its_column_alone() -> None:
    assert_same_outcome(interpreted(moved, (4,)), plainly(moved, (4,)))
    text = str(pyrelay.jit(moved).ir(4, stage="infer"))
    loop = text[text.rindex("= loop (") :]
    assert loop.count("index_update") == 1


class Cell:
    def __init__(self, value: Any, marks: Any, after: Any) -> None:
        self.value, self.marks, self.after = value, marks, after
        self.given: Any = None
        self.step: Any = lambda t: t + value


def total_of(cell: Any) -> Any:
    total = 0.0
    while cell is not None:
        if cell.marks is not None:
            total = total * 0.5 + cell.marks[1]
        if cell.given is not None:
            total += cell.given.sum()
        total, cell = cell.step(total), cell.after
    return total


def some_with_arrays(x: Any, n: int) -> Any:
    """Rows of no array come first, and are of no shape yet."""
    first: Any = None
    for k in range(n):
        first = Cell(x[k], x[:3] * k if k % 3 == 1 else None, first)
        if k % 2:
            first.given = x[:2] * k
        if k > 2:
            first.step = lambda t, a=x[1:4], k=k: t - a[2] * k
    return total_of(first)


def no_items_in_some(x: Any, n: int) -> Any:
    first: Any = None
    for k in range(n):
        first = Cell(x[k], None, first)
        first.given = x[: (0 if k == 1 else 2)] if k else None
    return total_of(first)


@pytest.mark.parametrize("n", [0, 2, 6])
def test_arrays_that_some_nodes_have(n: int) -> None:
    args = (np.array([0.5, -2.0, 1.5, 0.25, 3.0, -1.0]), n)
    assert_same_outcome(interpreted(some_with_arrays, args), plainly(some_with_arrays, args))


def test_arrays_of_nodes_have_one_shape() -> None:
    x = np.array([0.5, -2.0, 1.5])
    assert_same_outcome(interpreted(no_items_in_some, (x, 2)), plainly(no_items_in_some, (x, 2)))
    with pytest.raises(ValueError, match="must have one shape: 2 is not 0"):
        pyrelay.jit(no_items_in_some)(x, 3)
