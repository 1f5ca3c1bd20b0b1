"""What classes of the user's say about operators: Python's special methods.

In: an operator and values, one of them an object of the program. Out: what the class's method
gives, or None where the class has none, so that the operator is looked up elsewhere. The order in
which methods are asked is that of Python's data model (language reference, 3.3.8).
"""

from __future__ import annotations

import collections.abc
from typing import Any, TypeGuard

from pyrelay.infer import values as V
from pyrelay.infer.attributes import of_class
from pyrelay.infer.calls import call
from pyrelay.infer.interpreter import Interpreter

_BINARY = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
    "divmod": "divmod",
}
_COMPARISONS = {
    "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__"), "<": ("__lt__", "__gt__"),
    "<=": ("__le__", "__ge__"), ">": ("__gt__", "__lt__"), ">=": ("__ge__", "__le__"),
}


def is_object(value: V.Value) -> TypeGuard[V.Ref | V.Data]:
    """True for an object of a class of the user's, a node of a tree too, whose methods decide."""
    if isinstance(value, V.Data):
        return not issubclass(value.cls, tuple)
    return isinstance(value, V.Ref) and value.cls is not None and value.root.kind == "object"


def special(it: Interpreter, value: V.Value, name: str, *args: V.Value) -> V.Value | None:
    """`type(value).name(value, *args)`; None if there is none, or it gives NotImplemented."""
    named = isinstance(value, V.Tuple) and value.cls is not None
    if not (is_object(value) or named or _is_named(value)):
        return None
    cls: Any = value.cls  # type: ignore[union-attr]
    method = of_class(it, cls, name)
    if name == "__iter__" and method in (None, collections.abc.Sequence.__iter__):
        method = _by_index(it, cls)
    if method is None or method is getattr(object, name, None) or is_generated(method):
        return None
    if method is getattr(tuple, name, None):  # what a namedtuple has of its own
        return None
    found = call(it, V.Known(method), (value, *args), {})
    return None if found == V.Known(NotImplemented) else found


def _by_index(it: Interpreter, cls: type) -> Any:
    """What goes through an object of a class that has a `__getitem__` and no `__iter__`.

    `collections.abc.Sequence` spells it out, with a yield within a try.
    """
    from pyrelay.infer.in_python.iteration import indexed

    return None if of_class(it, cls, "__getitem__") is None else indexed


def has_next(it: Interpreter, value: V.Value) -> bool:
    """True for an object of a user's class with a `__next__`."""
    from pyrelay.infer.in_python.iteration import Items

    if not is_object(value) or value.cls is None or value.cls is Items:
        return False
    return of_class(it, value.cls, "__next__") is not None


def iterated(it: Interpreter, value: V.Value) -> V.Value | None:
    """What an object's `__iter__` gives to go through; None if it has none.

    An object with a `__next__` is a generator of what that gives.
    """
    from pyrelay.infer.in_python.iteration import stepped

    own = special(it, value, "__iter__")
    if own is None or not has_next(it, own):
        return own
    return call(it, V.Known(stepped), (own,), {})


def gone_through(it: Interpreter, value: V.Value) -> V.Value:
    """What an object of a user's class gives to go through, asked for once; others unchanged.

    What goes through it twice would have what `__iter__` does done twice.
    """
    if not is_object(value) or value.cls is None:
        return value
    if value.cls.__module__.startswith("pyrelay.infer."):
        return value
    from pyrelay.infer.flow.generators import taken
    from pyrelay.infer.flow.revisits import reachable
    from pyrelay.infer.in_python.iteration import Items

    before = set(it.heap.contents)
    own = iterated(it, value)
    if not (isinstance(own, V.Ref) and own.cls is Items):
        return value if own is None else taken(it, own)
    if own.root not in before and own.root not in reachable(value, it.heap):
        sequence: V.Value = it.content(own.root)["sequence"]
        return sequence  # of iter(...), of which nobody else knows
    return special(it, own, "__iter__") or own


def _is_named(value: V.Value) -> bool:
    """True for a node of a tree that is a namedtuple."""
    return isinstance(value, V.Data) and issubclass(value.cls, tuple)


def is_generated(method: Any) -> bool:
    """True for what `dataclass` wrote: it compares objects of one class (comparison.py)."""
    code = getattr(method, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def binary(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y`: the left one's method, then the reflected one of the right one."""
    name = _BINARY.get(op)
    if name is None:
        return None
    mine = (x, f"__{name}__", y)
    theirs = (y, f"__r{name}__", x)
    ordered = (theirs, mine) if _derives(y, x) else (mine, theirs)
    for value, method, other in ordered:
        found = special(it, value, method, other)
        if found is not None:
            return found
    return None


def _derives(y: V.Value, x: V.Value) -> bool:
    """True if the right one is of a class derived from the left one's: it is asked first."""
    if not (is_object(x) and is_object(y)):
        return False
    assert x.cls is not None
    assert y.cls is not None
    return y.cls is not x.cls and issubclass(y.cls, x.cls)


def inplace(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op= y` by the method that changes x."""
    return special(it, x, f"__i{_BINARY[op]}__", y)


def compare(it: Interpreter, op: str, x: V.Value, y: V.Value) -> V.Value | None:
    """`x op y` by the methods of the class; `!=` may be the opposite of `==`."""
    mine, theirs = _COMPARISONS[op]
    for value, name, other in ((x, mine, y), (y, theirs, x)):
        found = special(it, value, name, other)
        if found is not None:
            return found
    if op == "!=":
        equal = compare(it, "==", x, y)
        if equal is not None:
            from pyrelay.infer.operators import unary

            return unary(it, "not", equal)
    return None
