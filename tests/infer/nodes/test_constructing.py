"""Objects that others get to know while their `__init__` runs: each is one object afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay

X = np.array([0.5, -2.0, 1.5])


class Node:
    def __init__(self, value: Any, kept: Any) -> None:
        self.value = value
        self.after: Any = None
        self.itself = self
        kept.append(self)


def in_a_list(x: Any) -> Any:
    kept: Any = []
    a, b = Node(x[0], kept), Node(x[1], kept)
    a.after = b
    kept[1].value = x[2]
    return b.value, kept[0] is a, a.itself is a, kept[0].after is kept[1]


def in_a_list_of_run_time_length(x: Any) -> Any:
    kept: Any = []
    last = None
    for v in x:
        node = Node(v, kept)
        node.after, last = last, node
    kept[0].value = x[1] * 2.0
    total = 0.0
    while last is not None:
        total, last = total + last.itself.value, last.after
    return total, len(kept)


def in_another_node(x: Any) -> Any:
    first = Parent(x[0], None)
    second = Parent(x[1], first)
    second.value = x[2]
    return first.child.value, first.child is second, second.child is None


class Parent:
    def __init__(self, value: Any, above: Any) -> None:
        self.value = value
        self.child: Any = None
        if above is not None:
            above.child = self


class Ranked:
    def __init__(self, value: Any, every: Any) -> None:
        self.value, self.before = value, None
        every.append(self)
        self.rank = len(every)
        self.owned = Owned(self)


class Owned:
    def __init__(self, owner: Any) -> None:
        self.owner = owner


def before_all_fields_are_assigned(x: Any) -> Any:
    every: Any = []
    last: Any = None
    for v in x:
        node: Any = Ranked(v, every)
        node.before, last = last, node
    return last.rank, every[1].owned.owner.value, last.before.rank


@pytest.mark.parametrize("function", [
    in_a_list, in_a_list_of_run_time_length, in_another_node, before_all_fields_are_assigned,
])
def test_what_is_kept_is_the_object(function: Any) -> None:
    assert pyrelay.jit(function)(X) == function(X)
