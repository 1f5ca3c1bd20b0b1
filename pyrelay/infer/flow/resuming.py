"""Generators whose end is not known that are left and gone on with: objects that give an item each.

In: a generator. Out: an object whose `__next__` gives the next item, and which stands for the
generator from when it is made (the frontend's `resuming` writes what it does).
"""

from __future__ import annotations

import types
from typing import Any
from weakref import WeakKeyDictionary

from pyrelay.infer import values as V
from pyrelay.infer.in_python import iteration
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir.nodes import Function
from pyrelay.python_trees import MADE

_Classes = dict[Function, type | None]
_classes: WeakKeyDictionary[types.FunctionType, _Classes] = WeakKeyDictionary()
"""By the Python function, and by what was parsed: notebooks give functions another code."""


def class_of(closure: V.Closure) -> type | None:
    """The class of what a generator function gives; None where that cannot be gone on with."""
    if not isinstance(closure.owner, types.FunctionType) or closure.home is None:
        return None
    known, function = _classes.setdefault(closure.owner, {}), closure.function
    if function not in known:
        functions: dict[str, Any] | None = closure.home.resumable(closure.owner, function)
        known[function] = None
        if functions is not None:
            functions |= {"__indexed__": staticmethod(iteration.as_indexed), MADE: True}
            known[function] = type(function.name, (), functions)
    return known[function]


def resumed(it: Interpreter, made: type, closure: V.Closure, bound: list[V.Value]) -> V.Ref:
    """The object for a generator that has not begun. What it captures is what it is now."""
    from pyrelay.infer.calls import call

    captured = [it.content(cell.root) for cell in closure.cells if isinstance(cell, V.Ref)]
    found = call(it, V.Known(made), [*bound, *captured], {})
    assert isinstance(found, V.Ref)
    return found
