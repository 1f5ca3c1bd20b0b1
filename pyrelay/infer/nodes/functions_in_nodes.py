"""Functions and methods in fields of nodes: `out.backward = step`, called through the node.

In: a function of the program. Out: what it captures, which become columns of the node; and such a
function again, of what the columns hold. The variables that it captures are not assigned any more
from then on: each node has copies of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.datatypes import Callee, Choice, Items, Schema, Sort, Struct
from pyrelay.ir.nodes import UNSET

_ITSELF = V.Known(object())
"""What a function captures that is the function itself."""


def captured(it: Interpreter, function: V.Value) -> tuple[V.Value, ...]:
    """The values that a function captures, in place of the cells that hold them; a function that
    captures itself, to call itself, has a mark there.

    Raises UnsupportedOperationError for a variable that is assigned afterwards.
    """
    found = []
    for part in L.children_of(function):
        if isinstance(part, V.Ref) and part.root.kind == "cell":
            part = it.content(part.root)
            if isinstance(part, V.Known) and part.value is UNSET:
                raise it.failure(
                    errors.UnsupportedOperationError,
                    f"{V.describe(function)} is put into a field of a node before all variables "
                    "are assigned that it captures",
                    hints=("put it there afterwards",),
                )
            part = _ITSELF if _is_one(part, function) else part
        found.append(part)
    return tuple(found)


def _is_one(part: V.Value, function: V.Value) -> bool:
    """Whether what a function captures is this very function."""
    return isinstance(part, V.Closure) and isinstance(function, V.Closure) and (
        part.function is function.function
        and [c.root for c in part.cells] == [c.root for c in function.cells]  # type: ignore[union-attr]
    )


def fix(it: Interpreter, function: V.Value) -> None:
    """Note that the variables which a function captures must not be assigned any more."""
    for part in L.children_of(function):
        if isinstance(part, V.Ref) and part.root.kind == "cell":
            part.root.stored = part.root.stored or (it.let.span if it.let else None) or True


def rebuilt(it: Interpreter, head: tuple[Any, ...], parts: Sequence[V.Value]) -> V.Value:
    """The function that a node has, with variables of its own."""
    children, own = list(parts), []
    if head[0] == "closure":
        for k in range(len(head[4]), len(children)):
            cell = it.new_ref("cell", children[k])
            if children[k] == _ITSELF:
                own.append(cell.root)
            cell.root.stored, children[k] = True, cell
    function = L.rebuild(head, children)
    it.heap.contents.update(dict.fromkeys(own, function))
    return function


def is_text(head: tuple[Any, ...]) -> bool:
    """Whether this is the head of a text, which a function of Python's makes of what it has."""
    return bool(head[0] == "text")


def refuse_leaving(it: Interpreter, schema: Schema) -> None:
    """Refuse that nodes with functions of the program in their fields leave it."""
    for kind in schema.known():
        for name, sort in schema.of(kind).items():
            if _holds_functions(sort):
                raise it.failure(
                    errors.UnsupportedOperationError,
                    f"the field {name!r} of {schema.classes[kind].__name__} holds functions that "
                    "the program makes, so these objects cannot leave it",
                    hints=("return numbers and arrays that are computed from them",),
                )


def _holds_functions(sort: Sort) -> bool:
    match sort:
        case Callee(head):
            return not is_text(head)
        case Items(_, item):
            return _holds_functions(item)
        case Struct(parts) | Choice(parts):
            return any(map(_holds_functions, parts))
    return False
