"""Methods of built-in classes that are called by their class: `map(str.strip, lines)`.

In: a method descriptor, as `str.lower` and `list.__add__` are, and arguments. Out: what the method
of the first argument gives, if that is exactly of the class; None if nothing is known of it.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter

#: Operators whose second operand may be of any class.
_OF_ITEMS = frozenset({"__getitem__", "__setitem__", "__delitem__", "__contains__"})


def call_unbound(
    it: Interpreter, fn: Any, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value | None:
    """`cls.method(first, ...)`. Raises what Python does for a first argument of another class."""
    from pyrelay.infer.attributes import get_attribute
    from pyrelay.infer.calls import call
    from pyrelay.infer.flow.unions import distribute
    from pyrelay.infer.names.builtins import class_of

    if not isinstance(fn, _DESCRIPTORS) or not args:
        return None
    first, *rest = args
    if isinstance(first, V.Union):
        return distribute(
            it, first, lambda case: call(it, V.Known(fn), (case, *rest), keywords), fn
        )
    cls = class_of(first)
    if cls is None:
        return None
    if not issubclass(cls, fn.__objclass__):
        raise _of_another_class(it, fn, cls)
    if cls is not fn.__objclass__:
        return None  # its own method may be another one
    if isinstance(fn, types.MethodDescriptorType):
        return call(it, get_attribute(it, first, fn.__name__), rest, keywords)
    same = fn.__name__ in _OF_ITEMS or all(class_of(v) is cls for v in rest)
    if not same or not hasattr(operator, fn.__name__):
        return None
    return call(it, V.Known(getattr(operator, fn.__name__)), args, keywords)


_DESCRIPTORS = (types.MethodDescriptorType, types.WrapperDescriptorType)


def _of_another_class(it: Interpreter, fn: Any, cls: type) -> BaseException:
    from pyrelay.infer.flow.handling import certain

    of, name = fn.__objclass__.__name__, fn.__name__
    if isinstance(fn, types.MethodDescriptorType):
        said = f"descriptor {name!r} for {of!r} objects doesn't apply to a {cls.__name__!r} object"
    else:
        said = f"descriptor {name!r} requires a {of!r} object but received a {cls.__name__!r}"
    failure = it.failure(errors.TypeMismatchError, said)
    return certain(it, failure, TypeError, said)
