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
from pyrelay.infer.in_python.set_order import OrderedMembers, OrderedTable
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
#: When a set is made, its table is a dict of Python's already.
standing_for[NestedMembers] = (set, set, lambda x: (x.table,))

__all__ = ["ORDERED", "NestedTable", "nested_for", "standing_for"]
