"""Attributes of many objects are read as their dicts have them, and no object is given a dict."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import pyrelay
from pyrelay.infer.nodes.instances import columns_of

without_dicts = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="other versions keep attributes elsewhere"
)


@dataclass
class Leaf:
    value: float


@dataclass
class Fork:
    left: Leaf | Fork
    right: Leaf | Fork


class Linked:  # by no annotation a class that contains itself
    def __init__(self, value, after):  # type: ignore[no-untyped-def]
        self.value = value
        self.after = after


def forest(depth: int) -> Leaf | Fork:
    return Fork(forest(depth - 1), forest(depth - 1)) if depth else Leaf(float(depth))


def total(node: Leaf | Fork) -> float:
    if isinstance(node, Leaf):
        return node.value
    return total(node.left) + total(node.right)


def length(node: Any) -> int:
    count = 0
    while node is not None:
        count += node.value
        node = node.after
    return count


def has_dict(value: Any) -> bool:
    return any(type(each) is dict for each in gc.get_referents(value))


def nodes_below(root: Any) -> list[Any]:
    """Every object of a class of this module that is below one, without looking at dicts."""
    found, pending = {}, [root]
    while pending:
        each = pending.pop()
        if isinstance(each, (Leaf, Fork, Linked)) and id(each) not in found:
            found[id(each)] = each
            pending += gc.get_referents(each)
    return list(found.values())


@without_dicts
def test_a_first_call_leaves_trees_as_fast_as_they_were() -> None:
    tree = forest(6)
    compiled = pyrelay.jit(total)
    assert compiled(tree) == total(tree)
    assert compiled(tree) == total(tree)
    nodes = nodes_below(tree)
    assert len(nodes) == 127
    assert not any(map(has_dict, nodes))


@without_dicts
def test_shared_nodes_and_classes_without_annotations() -> None:
    shared = Fork(Leaf(1.0), Leaf(2.0))
    tree = Fork(shared, Fork(shared, Leaf(3.0)))
    assert pyrelay.jit(total)(tree) == total(tree)
    assert not any(map(has_dict, nodes_below(tree)))
    chain: Any = None
    for k in range(20):
        chain = Linked(k, chain)
    assert pyrelay.jit(length)(chain) == 190
    assert sum(map(has_dict, nodes_below(chain))) <= 1  # that which shows what the class is


class Several:
    default = None
    number = 1

    def __init__(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)


def fresh() -> type:
    """A class with no names of attributes yet."""
    return type("Fresh", (Several,), {})


class Watched(Several):
    def __getattr__(self, name: str) -> Any:
        return 0


class Computed(Several):
    @property
    def first(self) -> int:
        return 7


def alike(cls: Any) -> list[Any]:
    return [cls(a=k, b=[k], c=None) for k in range(4)]


def in_other_orders(cls: Any) -> list[Any]:
    return [cls(a=1, b=2), cls(b=3, a=4), cls(a=5, b=6)]


def with_dicts(cls: Any) -> list[Any]:
    found = alike(cls)
    vars(found[1])
    vars(found[3])["a"] = 8
    return found


def only_dicts(cls: Any) -> list[Any]:
    return [cls(a={"b": 1}), cls(a={"c": 2})]


def of_a_class_with_more(cls: Any) -> list[Any]:
    cls(a=1, later=2, b=3)
    return [cls(a=4, b=5), cls(b=6, a=7)]


def with_a_default(cls: Any) -> list[Any]:
    cls(a=1, default=2, b=3)
    return [cls(a=4, b=5), cls(b=6, a=7)]


def in_place_of_a_default(cls: Any) -> list[Any]:
    return [cls(a=1, default=None), cls(a=1, other=None)]


def deleted(cls: Any) -> list[Any]:
    found = [cls(a=1, number=1), cls(a=2, number=1)]
    del found[1].number
    return found


def others(cls: Any) -> list[Any]:
    return [cls(a=1, b=2), cls(a=1, c=2)]


def many(cls: Any) -> list[Any]:
    return [cls(**{f"x{k}": k + j for k in range(60)}) for j in range(3)]


def nothing(cls: Any) -> list[Any]:
    return [cls(), cls()]


@pytest.mark.parametrize("make", [
    alike, in_other_orders, with_dicts, only_dicts, of_a_class_with_more, with_a_default,
    in_place_of_a_default, deleted, others, many, nothing,
])  # fmt: skip
@pytest.mark.parametrize("base", [None, Watched, Computed])
def test_columns_are_what_the_dicts_have(make: Callable[[Any], list[Any]], base: Any) -> None:
    cls = fresh() if base is None else type("Fresh", (base,), {})
    objects = make(cls)
    found = columns_of(cls, objects)
    rows = list(map(vars, objects))
    if any(row.keys() != rows[0].keys() for row in rows):
        assert found is None
    else:
        assert found is not None
        assert found == {name: [row[name] for row in rows] for name in rows[0]}


def test_slots_beside_a_dict() -> None:
    class Both(Several):
        __slots__ = ("inner",)
        inner: int

    objects = [Both(a=1), Both(a=2)]
    objects[0].inner = 5
    assert columns_of(Both, objects) == {"a": [1, 2]}


class Alone:
    __slots__ = "value"

    def __init__(self, value):  # type: ignore[no-untyped-def]
        self.value = value


class Chained:
    __slots__ = ("__weakref__", "after", "value")

    def __init__(self, value, after):  # type: ignore[no-untyped-def]
        self.value = value
        self.after = after


def double(item: Any) -> Any:
    item.value *= 2.0
    return item.value


def sum_of(items: Any) -> float:
    return sum(item.value for item in items)  # type: ignore[no-any-return]


def test_a_slot_may_be_named_by_a_text_alone() -> None:
    one = Alone(3.0)
    assert pyrelay.jit(double)(one) == one.value == 6.0
    items = [Alone(float(k)) for k in range(50)]
    assert pyrelay.jit(sum_of)(items) == sum_of(items)


def test_a_slot_for_weak_references_is_no_attribute() -> None:
    head = None
    for k in range(50):
        head = Chained(k, head)
    assert pyrelay.jit(length)(head) == length(head)
