"""Native unpacking makes the objects that Python's unpacking makes, or leaves them to it."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest
from test_packing import Call, Held, Node, Number, Slotted, chain, some_trees, told

import pyrelay
from pyrelay.devices.runtime import packing, unpacking
from pyrelay.errors import TypeMismatchError
from pyrelay.infer.nodes.datatypes import EVERYWHERE, Families
from pyrelay.infer.nodes.packing import Packer
from pyrelay.infer.nodes.pools import Packed, Place, Unpacker


def packed(roots: list[Any]) -> tuple[Packed, list[Place]]:
    family = EVERYWHERE.of(type(roots[0]))
    assert family is not None
    packer = Packer(family)
    places = packer.add(roots)
    return packer.pack(), places


def native(roots: list[Any]) -> tuple[Callable[[Place], Any], list[Place]]:
    content, places = packed(roots)
    made = unpacking.unpacker(content.schema, content.columns, None)
    assert made is not None
    return made, places


NATIVE = (Node, Slotted, Call)


class Link(NamedTuple):
    value: float
    next: Any


EVERYWHERE.declare([Link])


@pytest.mark.parametrize("roots", list(some_trees()), ids=lambda roots: type(roots[0]).__name__)
def test_objects_are_those_of_python(roots: list[Any]) -> None:
    if EVERYWHERE.of(type(roots[0])) is None:
        EVERYWHERE.declare(list(dict.fromkeys(map(type, roots))))
    content, places = packed(roots)
    python = Unpacker(content.schema, content.columns)
    made = unpacking.unpacker(content.schema, content.columns, None)
    assert (made is not None) == isinstance(roots[0], NATIVE)
    if made is None:
        return
    seen, other = dict[int, int](), dict[int, int]()
    for place in places:
        assert told(made(place), seen) == told(python(place), other)
        assert made(place) is made(place)


def test_objects_are_made_where_their_layout_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_IS_OF_3_11", False)
    monkeypatch.setattr(packing, "_known", {})
    made, (place,) = native([chain(3)])
    assert told(made(place), {}) == told(chain(3), {})


def test_a_chain_of_any_length_is_made() -> None:
    made, (place,) = native([chain(3)])
    assert told(made(place), {}) == told(chain(3), {})
    links = np.arange(100_000)
    columns = {
        "1.value": links.astype(float), "1.first.kind": np.minimum(links, 1),
        "1.first.row": np.maximum(links - 1, 0), "1.others.start": np.zeros_like(links),
        "1.others.count": np.zeros_like(links), "1.others[].kind": np.zeros(0, np.int64),
        "1.others[].row": np.zeros(0, np.int64),
    }
    schema = packed([Node(1.0, Node(2.0), [Node(3.0)])])[0].schema
    make = unpacking.unpacker(schema, columns, None)
    assert make is not None
    node = make((1, 99_999))
    count = 0
    while node is not None:
        assert node.value == 99_999 - count
        node, count = node.first, count + 1
    assert count == 100_000


def test_what_contains_itself_or_is_not_there_is_not_made() -> None:
    content, (place,) = packed([Node(1.0, Node(2.0), [Node(3.0)])])
    for name, value in (("1.first.row", 0), ("1.first.row", 9), ("1.first.row", -1),
                        ("1.first.kind", 7), ("1.others.count", 5), ("1.others.start", -2)):
        columns = {k: c.copy() for k, c in content.columns.items()}
        columns[name][0] = value
        made = unpacking.unpacker(content.schema, columns, None)
        assert made is not None
        assert made(place) is None
    columns = {k: c.copy() for k, c in content.columns.items()}
    columns["1.first.row"][0] = 0
    made = unpacking.unpacker(content.schema, columns, None)
    found = Unpacker(content.schema, columns, making=lambda: made)(place)
    assert found.first is found
    assert found.others[0].value == 3.0


def test_texts_dicts_and_lists_are_those_of_python() -> None:
    families = Families(EVERYWHERE, rows=True, fixed=True)
    rows = [{"name": "é" * k, "pair": [k, "x" * (140 * k)], "or": k if k % 2 else "\U0001f600"}
            for k in range(3)]
    family = families.declare([families.class_of(rows[0]), families.class_of([1, 2])])
    packer = Packer(family)
    places = packer.add(rows)
    content = packer.pack()
    for columns in (content.columns, {
        name: c if c.ndim == 1 else np.hstack([c, np.ones((len(c), 2), np.int64)])
        for name, c in content.columns.items()
    }):
        made = unpacking.unpacker(content.schema, columns, None)
        assert made is not None
        assert [made(place) for place in places] == rows
    texts = next(name for name, c in content.columns.items() if c.ndim == 2)
    wrong = {**content.columns, texts: content.columns[texts].copy()}
    wrong[texts][:, 0] = 1000
    made = unpacking.unpacker(content.schema, wrong, None)
    assert made is not None
    assert made(places[1]) is None


def test_a_tuple_that_contains_itself_is_refused() -> None:
    content, (place,) = packed([Link(1.0, Link(2.0, None))])
    columns = {k: c.copy() for k, c in content.columns.items()}
    columns["1.next.row"][0] = 0
    with pytest.raises(TypeMismatchError, match="gives back a Link that contains itself"):
        Unpacker(content.schema, columns)(place)


def test_the_first_rows_are_the_objects_given() -> None:
    tree = Node(1.0, Node(2.0))
    content, (place,) = packed([tree])
    columns = {
        name: np.concatenate([c, [4.5, 5.5] if name == "1.value" else np.zeros(2, c.dtype)])
        if "[]" not in name else c for name, c in content.columns.items()
    }
    columns["1.first.kind"][2:], columns["1.first.row"][2:] = 1, (1, 2)
    made = unpacking.unpacker(content.schema, columns, content)
    assert made is not None
    assert made(place) is tree
    new = made((1, 3))
    assert (new.value, new.first.value, new.first.first) == (5.5, 4.5, tree.first)
    assert new.first.first is tree.first
    assert made((0, 0)) is None


@dataclass
class Watched:
    value: float
    child: Watched | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AssertionError("fields of new objects are set past this")


class Made:
    def __new__(cls, *args: Any) -> Made:
        return super().__new__(cls)

    def __init__(self, child: Any) -> None:
        self.child = child


class Guarded:
    def __init__(self, child: Any) -> None:
        self.__dict__["child"] = child

    @property
    def child(self) -> Any:
        return self.__dict__["child"]

    @child.setter
    def child(self, value: Any) -> None:
        raise AssertionError("the user's code")


def test_objects_whose_making_runs_the_users_code_are_left_to_python() -> None:
    one = Watched.__new__(Watched)
    one.__dict__.update(value=1.5, child=None)
    made, (place,) = native([one])
    assert made(place).value == 1.5
    for cls in (Made, Guarded):
        EVERYWHERE.declare([cls])
        content, _ = packed([cls(cls(None))])
        assert unpacking.unpacker(content.schema, content.columns, None) is None
    content, _ = packed([Held(np.ones(2))])
    assert unpacking.unpacker(content.schema, content.columns, None) is None


def test_no_reference_is_lost_or_kept() -> None:
    name, scalar = "a name of its own", np.float32(2.5)
    roots = [Call(name, (Number(1.0, scalar), Call(name, (), [[1], []])))]
    content, (place,) = packed(roots)
    watched = (name, Call, Number, Number.__new__, np.dtype(np.float32))
    make = unpacking.unpacker(content.schema, content.columns, None)
    assert make is not None
    make(place)
    del make
    gc.collect()
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(50):
        make = unpacking.unpacker(content.schema, content.columns, None)
        assert make is not None
        node = make(place)
        inner, value = weakref.ref(node.arguments[1]), node.arguments[0].scalar
        other = np.float32(1.5)  # held by one name
        assert sys.getrefcount(value) == sys.getrefcount(other) + 1
        assert value == 2.5
        del make
        gc.collect(0)
        assert inner() is not None
        del node, value
        assert inner() is None
    gc.collect()
    assert [sys.getrefcount(x) for x in watched] == before


def test_collections_of_garbage_while_objects_are_made_do_no_harm() -> None:
    nodes = [Node(float(k)) for k in range(3000)]
    for k in range(1, 3000):
        nodes[(k - 1) // 3].others.append(nodes[k])
    made, (place,) = native([nodes[0]])
    threshold = gc.get_threshold()
    gc.set_threshold(5)
    try:
        again = made(place)
    finally:
        gc.set_threshold(*threshold)
    assert told(again, {}) == told(nodes[0], {})


@dataclass
class Grown:
    value: float
    children: list[Grown] = field(default_factory=list)


def test_programs_give_new_trees_that_share_what_is_shared() -> None:
    def doubled(tree: Any) -> Any:
        leaf = Grown(0.5)
        return Grown(tree.value * 2, [leaf, tree, leaf, tree.children[0]])

    fast = pyrelay.jit(doubled)
    tree = Grown(1.0, [Grown(2.0)])
    for _ in range(2):
        made = fast(tree)
        assert told(made, {}) == told(doubled(tree), {})
        assert made.children[0] is made.children[2]
        assert made.children[1] is tree
        assert made.children[3] is tree.children[0]


class Paired:
    def __init__(self, pair: Any, child: Paired | None = None) -> None:
        self.pair, self.child = pair, child


def test_plain_objects_with_tuples_are_made() -> None:
    made, (place,) = native([Paired((1, 2.0), Paired((3, 4.0)))])
    again = made(place)
    assert (again.pair, again.child.pair, again.child.child) == ((1, 2.0), (3, 4.0), None)
