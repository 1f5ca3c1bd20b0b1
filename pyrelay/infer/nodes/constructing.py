"""Objects that others get to know while their `__init__` runs, of classes whose objects are nodes.

In: an object that is a record until its `__init__` ends, or hands it to a list or another object.
Out: the node that it is from there on, in place of the record wherever that was left: in lists, in
other objects, in functions, in variables.
"""

from __future__ import annotations

import operator
from dataclasses import replace

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter


def begun(it: Interpreter, value: V.Value) -> V.Value:
    """A node in place of an object whose `__init__` hands it on: it is one from there on.

    Only where every path through that `__init__` does; else the object is given back.
    """
    if not isinstance(value, V.Ref) or it.constructing.get(value.root) is not it.builder:
        return value
    from pyrelay.infer.nodes.building import build

    family, content = it.program.families.of(value.cls), it.content(value.root)
    if family is None:
        return value
    node = build(it, value.cls, content, value.root)
    assert isinstance(node, V.Data)
    for frame in it.frames:
        frame.env.update({x: in_place_of(value.root, node, v) for x, v in frame.env.items()})
    it.constructing[value.root] = node
    return node


def in_place_of(made: V.Root, node: V.Data, value: V.Value) -> V.Value:
    """The value with a node in place of what it was while it was made."""
    if isinstance(value, V.Ref):
        return node if value.root is made else value
    if isinstance(value, V.Union) and V.node_of(value) is None:
        cases = tuple(in_place_of(made, node, case) for case in value.cases)
        same = all(map(operator.is_, cases, value.cases))
        return value if same else replace(value, cases=cases)
    children = L.children_of(value)
    new = [in_place_of(made, node, child) for child in children]
    if all(map(operator.is_, new, children)):
        return value
    head = L.head_of(value)
    assert head is not None
    return L.rebuild(head, new, value.made if isinstance(value, V.Tuple) else frozenset())


def known_as(it: Interpreter, made: V.Root, node: V.Data) -> None:
    """Put a node where its `__init__` left what it was then: in lists, objects, closures."""
    for root, content in list(it.heap.contents.items()):
        children = [] if root is made else L.content_children(content)
        new = [in_place_of(made, node, child) for child in children]
        if not all(map(operator.is_, new, children)):
            it.heap.contents[root] = L.rebuild_content(L.content_head(content), new)


def incomplete(it: Interpreter, cls: type) -> errors.PyrelayError:
    """The error for an object that is not made yet and is to be a field of a node."""
    return it.failure(
        errors.UnsupportedOperationError,
        f"the __init__ of {cls.__name__} hands the object on before it is complete, to an object "
        "that is made there or on some paths only",
        hints=("do that behind the call: child = Node(...); child.parent = node",),
    )
