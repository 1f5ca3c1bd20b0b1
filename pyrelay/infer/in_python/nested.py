"""Dicts, sets and deques that are items of lists, of other dicts, or fields of nodes.

The running program decides how many of these there are, so they are nodes (`infer/nodes`): their
lists are those of all of them. In and out: as of the classes that these are subclasses of. Those
that are no items keep lists of their own, whose room is not that of the largest of many.
"""

from __future__ import annotations

from typing import Any

from pyrelay.infer.in_python.containers import Queue, standing_for
from pyrelay.infer.in_python.counting import Counts, Defaults, Ordered
from pyrelay.infer.in_python.hashed_sets import Members
from pyrelay.infer.in_python.set_order import OrderedMembers, OrderedTable, laid_out
from pyrelay.infer.in_python.tables import Table


class NestedTable(Table):
    """dict."""

    of_many = True


class NestedMembers(Members):
    """set."""

    of_many = True

    def __init__(self, iterable: Any = ()) -> None:
        self.table = NestedTable()
        self.given = False
        self.begin(iterable)


class NestedOrderedTable(OrderedTable):
    """The keys of a set, in Python's order."""

    of_many = True


class NestedOrderedMembers(OrderedMembers):
    """set, in Python's order."""

    of_many = True

    def __init__(self, iterable: Any = ()) -> None:
        self.table = NestedOrderedTable()
        self.update(iterable)


class NestedQueue(Queue):
    """collections.deque."""

    of_many = True


class NestedOrdered(Ordered):
    """collections.OrderedDict."""

    of_many = True


class NestedDefaults(Defaults):
    """collections.defaultdict."""

    of_many = True


class NestedCounts(Counts):
    """collections.Counter."""

    of_many = True


class GivenTable(NestedTable):
    """A dict of the caller's in another. Looking at it writes nothing."""

    def begins(self) -> Any:
        return 0


class GivenMembers(NestedMembers):
    """A set of the caller's in a dict."""

    def __init__(self, iterable: Any = ()) -> None:
        self.table = GivenTable()
        self.given = False
        self.begin(iterable)


class GivenOrderedTable(NestedOrderedTable):
    """The keys of a set of the caller's in a dict, in Python's order."""


class GivenOrderedMembers(NestedOrderedMembers):
    """A set of the caller's in a dict, in Python's order."""

    def __init__(self, iterable: Any = ()) -> None:
        self.table = GivenOrderedTable()
        self.update(iterable)


def entered_dicts(held: list[Any]) -> Any:
    """Dicts of the caller's that have these pairs."""
    return [GivenTable(pairs) for pairs in held]


def entered_sets(held: list[Any]) -> Any:
    """Sets of the caller's that have these items."""
    return [GivenMembers(items) for items in held]


def entered_ordered_sets(held: list[Any], layouts: list[Any]) -> Any:
    """The same in the order of their slots (`set_layouts`)."""
    return [
        laid_out(GivenOrderedMembers(), list(items), slots)
        for items, slots in zip(held, layouts, strict=True)
    ]


#: What dicts and sets of the caller's in a dict or list are, by what makes them.
GIVEN: dict[Any, tuple[type, ...]] = {
    entered_dicts: (GivenTable,), entered_sets: (GivenTable, GivenMembers),
    entered_ordered_sets: (GivenOrderedTable, GivenOrderedMembers),
}

GIVEN_CLASSES = frozenset(cls for given in GIVEN.values() for cls in given)

#: The class in place of each where there are many; of what keys decide about, its kind.
nested_for: dict[type | str, type] = {
    "dict": NestedTable, "set": NestedMembers, Table: NestedTable, Members: NestedMembers,
    OrderedTable: NestedOrderedTable, OrderedMembers: NestedOrderedMembers, Queue: NestedQueue,
    Ordered: NestedOrdered, Defaults: NestedDefaults, Counts: NestedCounts,
}

standing_for.update({
    nested: standing_for[cls] for cls, nested in nested_for.items() if isinstance(cls, type)
})
#: What sets that keep their order are where there are many.
ORDERED = (NestedOrderedTable, NestedOrderedMembers)
#: When a set is made, its table is a dict of Python's already; one that keeps its order needs all
#: that its table says.
standing_for[NestedMembers] = (set, set, lambda x: (x.table,))
standing_for[NestedOrderedTable] = (dict, lambda x: x, lambda x: (x,))
standing_for.update({cls: standing_for[cls.__bases__[0]] for cls in GIVEN_CLASSES})

__all__ = ["ORDERED", "NestedTable", "nested_for", "standing_for"]
