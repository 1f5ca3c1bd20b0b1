"""Native packing gives what Python's packing gives, or leaves the trees to it."""

from __future__ import annotations

import copy
import enum
import gc
import sys
import threading
import weakref
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.runtime import packing
from pyrelay.infer import structure
from pyrelay.infer.nodes.datatypes import EVERYWHERE
from pyrelay.infer.nodes.packing import Packer
from pyrelay.infer.nodes.pools import Packed, Unpacker

pytestmark = pytest.mark.skipif(
    not packing.is_layout_known(), reason="trees are packed by Python in this version of it"
)


class Operator(enum.Enum):
    PLUS = 1
    TIMES = 2


@dataclass
class Node:
    value: float
    first: Node | None = None
    others: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    number: int
    flag: bool
    left: Slotted | None = None
    right: Slotted | None = None


class Named(NamedTuple):
    name: str
    inner: tuple[Any, ...]
    operator: Operator


class Plain:
    def __init__(self, weights: Any, pair: Any, child: Plain | None = None) -> None:
        self.weights = weights
        self.pair = pair
        self.child = child


@dataclass(frozen=True)
class Number:
    value: float | None
    scalar: Any = None


@dataclass(frozen=True)
class Call:
    operator: str
    arguments: tuple[Number | Call, ...]
    rows: list[list[int]] = field(default_factory=list)


def told(value: Any, seen: dict[int, int]) -> Any:
    """All that a tree is, shared nodes as such, by its own objects' fields."""
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.str, value.shape, value.tobytes())
    if type(value) in (list, tuple):
        return (type(value).__name__, *(told(v, seen) for v in value))
    if EVERYWHERE.known(type(value)) is None:
        return type(value).__name__, repr(value)
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen[id(value)] = len(seen)
    names = getattr(value, "_fields", None) or getattr(value, "__slots__", None) or vars(value)
    return type(value).__name__, *((n, told(getattr(value, n), seen)) for n in names)


def made_again(packed: Packed, places: list[Any]) -> Any:
    unpack = Unpacker(packed.schema, packed.columns)
    return [unpack(place) for place in places]


def both(roots: list[Any]) -> tuple[Packed, list[Any]]:
    """Pack trees by Python, then natively; the two are compared."""
    family = EVERYWHERE.of(type(roots[0]))
    if family is None:
        EVERYWHERE.declare(list(dict.fromkeys(map(type, roots))))
        family = EVERYWHERE.of(type(roots[0]))
    assert family is not None
    packer = Packer(family)
    places = packer.add(roots)
    expected = packer.pack()
    found = packing.packed(family, roots)
    assert found is not None
    packed, now = found[0], list(zip(*(each.tolist() for each in found[1]), strict=True))
    assert packed.schema is expected.schema
    assert list(packed.columns) == list(expected.columns)
    for name, column in expected.columns.items():
        assert packed.columns[name].dtype == column.dtype
        assert packed.columns[name].shape == column.shape
        assert packed.columns[name].flags.writeable
    assert list(map(len, packed.objects)) == list(map(len, expected.objects))
    for place, root in zip(now, roots, strict=True):
        assert packed.object_at(place) is root
    for path, arrays in packed.arrays.items():
        assert sorted(map(id, arrays)) == sorted(map(id, expected.arrays[path]))
    seen: dict[int, int] = {}
    again = [told(v, seen) for v in made_again(packed, now)]
    seen = {}
    assert again == [told(v, seen) for v in made_again(expected, places)]
    return packed, now


def chain(length: int) -> Node:
    node = Node(0.0)
    for k in range(length):
        node = Node(float(k), node)
    return node


def some_trees() -> Iterator[list[Any]]:
    yield [chain(3)]
    yield [Node(1.0, Node(2.0), [Node(3.0), Node(4.0, others=[Node(5.0)])])]
    yield [Node(1.0), Node(2.0, Node(3.0)), Node(4.0)]
    shared = Node(7.0, Node(8.0))
    yield [Node(1.0, shared, [shared, Node(2.0, shared)]), shared]
    yield [Node(1), Node(2.5, Node(True))]
    yield [Slotted(1, True, Slotted(-(2**63), False), Slotted(2**63 - 1, True))]
    yield [Named("a", (Named("bcd", (), Operator.TIMES), Named("a", (), Operator.PLUS)),
                 Operator.PLUS)]  # fmt: skip
    weights = np.arange(6.0).reshape(2, 3)
    yield [Plain(weights, (1, 2.0), Plain(weights + 1, (3, 4.0))), Plain(weights * 2, (5, 6.0))]
    one, two = np.float32(1.5), np.float32(2.5)
    yield [Call("+", (Number(1.0, one), Call("neg", (Number(None, two),), [[1], [], [2, 3]])))]
    yield [Call("+", (Number(1j, np.complex128(2)), Number(2j, np.complex128(3j))))]
    yield [Call("-", (Number(None, np.int8(-3)), Number(2.0, np.int8(3)))), Number(1.0, np.int8(1))]


@pytest.mark.parametrize("roots", list(some_trees()), ids=lambda roots: type(roots[0]).__name__)
def test_columns_are_those_of_python(roots: list[Any]) -> None:
    both(roots)


def test_objects_with_a_dict_of_their_own_are_read_too() -> None:
    tree = copy.deepcopy(Node(1.0, Node(2.0), [Node(3.0)]))
    vars(tree)
    other = Node.__new__(Node)
    other.__dict__.update({"others": [], "value": 4.0, "first": tree})
    both([Node(5.0, other)])
    both([copy.deepcopy(Node(5.0, other))])


def test_nodes_of_a_shared_dict_or_list_are_met_once() -> None:
    leaves = [Node(1.0), Node(2.0)]
    packed, _ = both([Node(3.0, Node(4.0, others=leaves), leaves)])
    assert sum(map(len, packed.objects)) == 4
    borg, other = Node(5.0, Node(6.0)), Node(0.0)
    other.__dict__ = borg.__dict__
    packed, _ = both([Node(7.0, None, [borg, other])])
    assert sum(map(len, packed.objects)) == 4


def test_many_nodes_grow_the_columns_the_stack_and_the_table() -> None:
    nodes = [Node(float(k)) for k in range(5000)]
    for k in range(1, 5000):
        nodes[(k - 1) // 2].others.append(nodes[k])
    packed, _ = both([nodes[0]])
    assert len(packed.columns["1.value"]) == 5000
    row = {id(node): k for k, node in enumerate(packed.objects[1])}
    for node, start, count in zip(
        packed.objects[1], packed.columns["1.others.start"], packed.columns["1.others.count"],
        strict=True,
    ):
        inside = packed.columns["1.others[].row"][start : start + count]
        assert [row[id(n)] for n in node.others] == inside.tolist()


def test_trees_after_larger_and_smaller_ones_hold_their_own_nodes() -> None:
    both([Node(0.5)])
    family = EVERYWHERE.of(Node)
    trees = {count: Node(1.0, None, [Node(float(k)) for k in range(count)]) for count in (3, 900)}
    of_none = sys.getrefcount(None)
    for count in (900, 3, 900, 3, 0, 900) * 20:
        tree = trees.get(count) or Node(2.5)
        found = packing.packed(family, [tree])  # type: ignore[arg-type]
        assert found is not None
        assert found[0].objects[1][0] is tree
        assert set(map(id, found[0].objects[1][1:])) == set(map(id, tree.others))
        assert len(found[0].objects[1]) == 1 + len(tree.others)
        del found
    assert abs(sys.getrefcount(None) - of_none) < 1000  # 48,000 nodes took the place of a None


def test_ints_of_any_size_are_read() -> None:
    numbers = [s * n for n in (0, 1, 2**30 - 1, 2**30, 2**31, 2**60, 2**63 - 1) for s in (1, -1)]
    trees = [Slotted(n, True) for n in [*numbers, -(2**63)]]
    packed, _ = both([*trees])
    assert packed.columns["1.number"].tolist() == [*numbers, -(2**63)]
    assert packing.packed(EVERYWHERE.of(Slotted), [Slotted(2**63, True)]) is None  # type: ignore[arg-type]


def test_a_chain_of_any_length_is_packed() -> None:
    tree = chain(100_000)
    both([chain(2)])
    family = EVERYWHERE.of(Node)
    found = packing.packed(family, [tree])  # type: ignore[arg-type]
    assert found is not None
    assert found[0].columns["1.value"].sum() == sum(range(100_000))
    nodes = found[0].objects[1]
    del found
    while tree.first is not None:  # its end would come by recursion in Python
        tree = tree.first
    assert len(nodes) == 100_001


@dataclass
class Odd:
    value: Any
    child: Any = None


def unlike(change: Callable[[Odd], Any]) -> list[Odd]:
    tree = Odd(1.0, Odd(2.0))
    change(tree.child)
    return [tree]


class Strange(float):
    pass


class Loud:
    """Says so where anything is asked of its instances."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    def __eq__(self, other: object) -> bool:
        raise AssertionError

    def __hash__(self) -> int:
        raise AssertionError


@pytest.mark.parametrize(
    "change",
    [
        lambda n: setattr(n, "extra", 1), lambda n: delattr(n, "value"),
        lambda n: setattr(n, "value", "text"), lambda n: setattr(n, "value", 2**64),
        lambda n: setattr(n, "value", Strange(1.0)), lambda n: setattr(n, "value", np.float64(1)),
        lambda n: setattr(n, "child", Loud()), lambda n: setattr(n, "value", Loud()),
        lambda n: setattr(n, "child", [Odd(1.0)]), lambda n: n.__dict__.clear(),
        lambda n: setattr(n, "child", Node(1.0)), lambda n: setattr(n, "value", np.ones(2)),
    ],
)  # fmt: skip
def test_what_is_unlike_the_trees_before_is_left_to_python(change: Any) -> None:
    EVERYWHERE.declare([Odd])
    both([Odd(1.0, Odd(2.0))])
    family = EVERYWHERE.of(Odd)
    assert family is not None
    assert packing.packed(family, unlike(change)) is None
    both([Odd(1.0, Odd(2.0))])


@pytest.mark.parametrize("length", [1, 2, 5])
def test_links_back_are_packed_natively(length: int) -> None:
    EVERYWHERE.declare([Odd])
    both([Odd(1.0, Odd(2.0))])
    root = Odd(0.0)
    last = root
    for k in range(1, length):
        last.child = Odd(float(k))
        last = last.child
    last.child = root
    content, _ = both([root])
    assert content.columns["1.child.row"].tolist() == [*range(1, length), 0]


def test_numbers_of_several_classes_are_cases_of_a_schema() -> None:
    EVERYWHERE.declare([Odd])
    both([Odd(1.0, Odd(2.0))])
    whole, _ = both([Odd(1, Odd(2))])
    mixed, _ = both([Odd(1, Odd(2.0))])
    assert whole.columns["1.value"].dtype == np.int64
    assert mixed.columns["1.value|0"].tolist() == [0.0, 2.0]
    assert mixed.columns["1.value|1"].tolist() == [1, 0]
    assert mixed.columns["1.value.case"].tolist() == [1, 0]


@dataclass
class Held:
    weights: Any
    child: Held | None = None


def test_arrays_of_other_shapes_or_not_contiguous_are_left_to_python() -> None:
    both([Held(np.ones(3), Held(np.zeros(3)))])
    family = EVERYWHERE.of(Held)
    assert family is not None
    assert packing.packed(family, [Held(np.ones(3), Held(np.zeros(4)))]) is None
    assert packing.packed(family, [Held(np.ones(6)[::2], Held(np.zeros(3)))]) is None
    assert packing.packed(family, [Held(np.ones(1), Held(np.zeros(1)))]) is None
    assert packing.packed(family, [Held(np.ones(3, np.float32))]) is None
    both([Held(np.ones(5), Held(np.zeros(5)))])
    both([Held(np.ones(3), Held(np.asfortranarray(np.zeros(3))))])


def test_objects_whose_class_changed_are_read_as_what_they_are() -> None:
    class Other(Odd):
        pass

    EVERYWHERE.declare([Odd, Other])
    one, two = Odd(1.0), Other(2.0)
    both([Odd(3.0, Odd(0.0, two)), Odd(4.0, one)])
    one.__class__, two.__class__ = Other, Odd
    packed, _ = both([Odd(3.0, Odd(0.0, two)), Odd(4.0, one)])
    assert {type(n) for n in packed.objects[packed.schema.classes.index(Other)]} == {Other}


def test_classes_with_more_attributes_than_shared_names_are_read() -> None:
    class Wide:
        def __init__(self, child: Any, count: int) -> None:
            self.child = child
            for k in range(count):
                setattr(self, f"field{k}", float(k))

    EVERYWHERE.declare([Wide])
    both([Wide(Wide(None, 40), 40)])
    both([Wide(Wide(None, 40), 40)])


Pair = namedtuple("Pair", "left right")


class Inheriting(Pair):
    """A namedtuple with a dict."""


def test_namedtuples_are_read_by_their_fields() -> None:
    EVERYWHERE.declare([Pair, Inheriting])
    tree = Pair(Inheriting(1.0, 2.0), Pair(Pair(3.0, 4.0), 5.0))
    tree.left.note = "not a field"
    both([tree])


def test_slots_that_are_not_set_are_left_to_python() -> None:
    both([Slotted(1, True)])
    tree = Slotted(1, True, Slotted(2, False))
    del tree.left.flag  # type: ignore[union-attr]
    family = EVERYWHERE.of(Slotted)
    assert family is not None
    assert packing.packed(family, [tree]) is None


def test_no_reference_is_lost_or_kept() -> None:
    node, weights = Node(3.5), np.ones(3)
    tree, held = Node(1.5, node, [node, Node(4.5)]), Held(weights, Held(np.zeros(3)))
    both([tree]), both([held])
    unlike_tree = Node(1.5, node, [node, "x"])  # type: ignore[list-item]
    one = Operator.PLUS
    gc.collect()
    before = [sys.getrefcount(x) for x in (tree, node, node.value, weights, held, one)]
    alive = weakref.ref(tree.others[1])
    for _ in range(50):
        found = packing.packed(EVERYWHERE.of(Node), [tree])  # type: ignore[arg-type]
        assert found is not None
        assert packing.packed(EVERYWHERE.of(Node), [unlike_tree]) is None  # type: ignore[arg-type]
        packing.packed(EVERYWHERE.of(Held), [held])  # type: ignore[arg-type]
        del found
    gc.collect()
    after = [sys.getrefcount(x) for x in (tree, node, node.value, weights, held, one)]
    assert after == before
    tree.others.clear()
    assert alive() is None


def test_what_was_packed_holds_its_nodes() -> None:
    tree = Node(1.0, Node(2.0))
    both([tree])
    found = packing.packed(EVERYWHERE.of(Node), [tree])  # type: ignore[arg-type]
    assert found is not None
    child = weakref.ref(tree.first)  # type: ignore[arg-type]
    tree.first = None
    gc.collect()
    assert child() is not None
    del found
    assert child() is None


def test_threads_pack_at_the_same_time() -> None:
    trees = [chain(k) for k in range(50, 250, 10)]
    both([trees[0]])
    family = EVERYWHERE.of(Node)
    wrong: list[Any] = []

    def work(tree: Node, expected: float) -> None:
        for _ in range(30):
            found = packing.packed(family, [tree])  # type: ignore[arg-type]
            if found is None or found[0].columns["1.value"].sum() != expected:
                wrong.append(found)

    threads = [
        threading.Thread(target=work, args=(t, sum(range(k))))
        for k, t in zip(range(50, 250, 10), trees, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_calls_go_through_trees_natively_and_see_what_changed() -> None:
    @pyrelay.jit
    def total(node: Any) -> Any:
        return 0.0 if node is None else node.value + total(node.first)

    tree = Node(1.0, Node(2.0))
    assert total(tree) == 3.0
    both([tree])
    tree.first.value = 5.0  # type: ignore[union-attr]
    tree.first.first = Node(0.25)  # type: ignore[union-attr]
    assert total(tree) == 6.25
    tree.value = 1
    assert total(tree) == 6.25
    tree.others.append("x")  # type: ignore[arg-type]
    assert total(tree) == 6.25
    tree.extra = 3  # type: ignore[attr-defined]
    assert total(tree) == 6.25
    del tree.extra  # type: ignore[attr-defined]
    tree.first.first = tree  # type: ignore[union-attr]
    with pytest.raises(RecursionError):
        total(tree)
    assert total.cache_info().compilations == 4


def test_dicts_with_the_same_texts_as_keys_are_read_as_rows(monkeypatch: Any) -> None:
    def total(rows: Any) -> Any:
        found = 0.0
        for row in rows:
            found += (row["weight"] * row["scale"]).sum()
            row["seen"] = row["scale"] > 2.0
        return found

    def some(count: int, first: int = 0) -> list[dict[str, Any]]:
        return [
            {"weight": np.arange(3.0) + k, "scale": 0.5 * k, "seen": False}
            for k in range(first, first + count)
        ]

    compiled = pyrelay.jit(total)
    assert compiled(some(20)) == total(some(20))
    packer = structure.Packer
    monkeypatch.setattr(structure, "Packer", None)
    for count, first in ((20, 5), (33, 0), (17, -9)):
        rows, plain = some(count, first), some(count, first)
        assert compiled(rows) == pytest.approx(total(plain), rel=1e-14)
        assert [row["seen"] for row in rows] == [row["seen"] for row in plain]
    monkeypatch.setattr(structure, "Packer", packer)
    computed = [{"".join(iter(k)): v for k, v in row.items()} for row in some(20, 3)]
    assert compiled(computed) == pytest.approx(total(some(20, 3)), rel=1e-14)
    assert compiled.cache_info().compilations == 1
    fewer = [*some(19), {"weight": np.ones(3), "seen": False}]
    with pytest.raises(KeyError):
        compiled(fewer)
