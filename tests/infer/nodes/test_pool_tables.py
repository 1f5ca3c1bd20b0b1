"""The tables of a pool: where columns of a schema lie, and what opened pools keep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
