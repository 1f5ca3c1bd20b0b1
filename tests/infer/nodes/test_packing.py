"""Trees become columns, a level at a time."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from pyrelay.infer.nodes.datatypes import EVERYWHERE, Choice, Constant, Families
from pyrelay.infer.nodes.packing import Packer
from pyrelay.infer.structure import Flattened, flatten


@dataclass
class Node:
    value: float
    first: Node | None = None
    others: list[Node] = field(default_factory=list)


def packer() -> Packer:
    family = EVERYWHERE.of(Node)
    assert family is not None
    return Packer(family)


def balanced(depth: int) -> Node:
    if depth == 0:
        return Node(1.0)
    return Node(float(depth), balanced(depth - 1), [balanced(depth - 1)])


def test_children_are_found_in_fields_and_lists_and_shared_ones_once() -> None:
    leaf = Node(3.0)
    root = Node(1.0, Node(2.0, leaf), [leaf, Node(4.0)])
    p = packer()
    (place,) = p.add([root])
    packed = p.pack()
    assert packed.object_at(place) is root
    assert [n.value for n in packed.objects[1]] == [1.0, 2.0, 3.0, 4.0]
    columns = packed.columns
    np.testing.assert_array_equal(columns["1.first.kind"], [1, 1, 0, 0])
    np.testing.assert_array_equal(columns["1.first.row"], [1, 2, 0, 0])
    np.testing.assert_array_equal(columns["1.others.count"], [2, 0, 0, 0])
    np.testing.assert_array_equal(columns["1.others[].row"], [2, 3])


def calls_of_python(roots: list[Node]) -> int:
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    p = packer()
    sys.setprofile(count)
    try:
        p.add(roots)
        p.pack()
    finally:
        sys.setprofile(None)
    assert sum(map(len, p.objects)) == len(roots) * (2**7 - 1)
    return calls


def test_trees_are_packed_without_a_call_of_python_per_node() -> None:
    roots = [balanced(6) for _ in range(8)]
    calls_of_python(roots[:1])
    few = calls_of_python(roots[:1])
    assert calls_of_python(roots) < few + 8 * 20


def test_a_chain_is_as_deep_as_it_likes() -> None:
    root = Node(0.0)
    for k in range(3000):
        root = Node(float(k), root)
    p = packer()
    p.add([root])
    assert p.pack().columns["1.first.row"][0] == 1


@pytest.mark.parametrize("through_list", [False, True])
def test_an_object_that_contains_itself_has_one_place(through_list: bool) -> None:
    inner = Node(1.0)
    root = Node(2.0, Node(3.0, inner))
    if through_list:
        inner.others.append(root)
    else:
        inner.first = root
    p = packer()
    places = p.add([Node(0.0), root])
    packed = p.pack()
    back = packed.columns["1.others[].row" if through_list else "1.first.row"]
    assert packed.columns["1.value"].tolist() == [0.0, 2.0, 3.0, 1.0]
    assert places == [(1, 0), (1, 1)]
    assert back[0 if through_list else 3] == 1


def test_an_attribute_is_unset_in_objects_that_do_not_have_it() -> None:
    odd = Node(1.0)
    odd.colour = "red"  # type: ignore[attr-defined]
    for root in (Node(1.0, odd), Node(1.0, None, [Node(2.0), odd])):
        made = packer()
        made.add([root])
        packed = made.pack()
        colours = dict(packed.schema.fields[1] or ())["colour"]
        assert isinstance(colours, Choice)
        red = colours.cases.index(Constant("red", str))
        has = [int(case) for case in packed.columns["1.colour.case"]]
        assert has == [red if each is odd else 1 - red for each in packed.objects[1]]


@dataclass
class Paint:
    shade: float


@dataclass
class Ball:
    radius: float
    paint: Paint


@dataclass
class Floor:
    height: float
    paint: Paint


def test_data_types_that_share_a_field_are_one_pool_at_once() -> None:
    families = Families(EVERYWHERE)
    for cls in (Ball, Paint, Floor):
        families.declare([cls])
    things = [(Ball(1.0, Paint(0.2)), ""), (Floor(-1.0, Paint(0.7)), "")]
    first, again = (Flattened(families=families) for _ in range(2))
    assert flatten(things, first) == flatten(things, again)
    assert len(first.pools) == 1
