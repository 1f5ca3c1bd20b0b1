"""Sets of a few nodes in fields of nodes: `self.parents = set(parents)`.

In: sets that are made of one or two nodes, or none, which are keys by their identity. Out: ranges
of a table, as lists in fields are, of nodes that differ, in the order in which they were given:
Python's is that of their addresses, so any is one that it may have. They are gone through, looked
for in and counted; what else sets can do, be changed among it, has those that make them be
containers of their own (`Program.ranges`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.containers.open_keys import is_by_identity
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.annotations import is_record_class
from pyrelay.infer.nodes.datatypes import NO_NODE
from pyrelay.infer.nodes.plans import NeedsNodesOf
from pyrelay.infer.operators import binary, compare, number
from pyrelay.ir.nodes import PyCall

_MOST = 2


def is_of_nodes(it: Interpreter, items: Sequence[V.Value]) -> bool:
    """Whether these are so few nodes that a set of them may be a range.

    Raises NeedsNodesOf for objects that are not nodes yet, and would have to be.
    """
    if not 0 < len(items) <= _MOST or it.program.unfolds:
        return False
    for item in items:
        if isinstance(item, V.Ref) and is_record_class(item.cls) and is_by_identity(item.cls):
            it.heap.note_items(items)
            raise NeedsNodesOf(item.cls, it.heap.items.classes)
    return all(map(_is_key, items))


def _is_key(value: V.Value) -> bool:
    parts = V.node_of(value)
    if parts is None or NO_NODE in parts[1]:
        return False
    return all(is_by_identity(parts[0].cls.classes[kind]) for kind in parts[1])


def as_range(it: Interpreter, value: V.Value) -> tuple[V.Value, ...] | None:
    """The items of a set that can be a range in a field of a node; None for other values.

    An empty one is, if it is made of what is given: an empty display is to be filled.
    """
    if not isinstance(value, V.Ref) or value.root.kind != "set" or value.root.made is None:
        return None
    items: tuple[V.Value, ...] = it.content(value.root)
    made = value.root.made.rhs
    if not items:
        given = isinstance(made, PyCall) and made.kind == "call" and len(made.args) > 1
        return items if given else None
    return items if len(items) <= _MOST and all(map(_is_key, items)) else None


def kept(it: Interpreter, value: V.Value) -> V.Value:
    """How many of the items of a set differ, which becomes a range; the set is not changed."""
    assert isinstance(value, V.Ref)
    root = value.root
    root.stored = root.stored or (it.let.span if it.let else None) or True
    assert root.made is not None
    it.program.ranges.add(root.made)
    items = it.content(root)
    if len(items) < _MOST:
        return V.Known(len(items))
    same = number(it, compare(it, "is", *items))
    return binary(it, "-", V.Known(_MOST), same)


def outgrown(it: Interpreter, what: str) -> errors.PyrelayError:
    """The error for what ranges cannot do; in the next attempt the sets are none."""
    it.program.open_keys |= it.program.ranges
    return it.failure(
        errors.UnsupportedOperationError,
        f"a set in a field of one of many objects is {what} here",
        hints=("keep a dict in the field: dict.fromkeys(items)",),
    )
