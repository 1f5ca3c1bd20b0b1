"""`getattr` and `hasattr`: attributes by a name that is known while compiling.

In: an object and a name. Out: the attribute, what stands for it, or whether it is there. A class's
own `__getattr__` is asked as plain Python asks it.
"""

from __future__ import annotations

import inspect

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.attributes import get_attribute, of_class
from pyrelay.infer.calls import call
from pyrelay.infer.flow import unset
from pyrelay.infer.flow.unions import distribute
from pyrelay.infer.in_python import getters
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.builtins import is_of_builtin_class
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.protocols import is_object


@handles(getattr)
def getattr_(
    it: Interpreter, obj: V.Value, name: V.Value, default: V.Value | None = None
) -> V.Value:
    """getattr(obj, name[, default])."""
    known = it.static(name, "the name of an attribute")
    if default is not None and _asks_its_class(it, obj):
        return call(it, V.Known(getters.attribute_or), (obj, V.Known(known), default), {})
    perhaps = unset.attribute_of(it, obj, known)
    if perhaps is not None and default is not None and not _has_of_class(obj, known):
        return distribute(
            it, perhaps, lambda case: default if unset.may_be_unset(case) else case
        ) if isinstance(perhaps, V.Union) else default
    try:
        return get_attribute(it, obj, known)
    except errors.AttributeMissingError:
        if default is None or is_of_builtin_class(obj, known):
            raise
        return default


@handles(hasattr)
def hasattr_(it: Interpreter, obj: V.Value, name: V.Value) -> V.Value:
    """hasattr(obj, name)."""
    known = it.static(name, "the name of an attribute")
    if _asks_its_class(it, obj):
        return call(it, V.Known(getters.has_attribute), (obj, V.Known(known)), {})
    if is_of_builtin_class(obj, known):
        return V.Known(True)
    perhaps = unset.attribute_of(it, obj, known)
    if perhaps is not None and not _has_of_class(obj, known):
        return unset.is_set(it, perhaps)
    try:
        get_attribute(it, obj, known)
    except errors.AttributeMissingError:
        return V.Known(False)
    return V.Known(True)


def _has_of_class(obj: V.Value, name: str) -> bool:
    """Whether the class of an object has an attribute, which stands in for the object's own."""
    found = inspect.getattr_static(obj.cls, name, None)  # type: ignore[union-attr]
    return found is not None and not inspect.ismemberdescriptor(found)


def _asks_its_class(it: Interpreter, obj: V.Value) -> bool:
    """Whether a `__getattr__` of the user's says which attributes there are."""
    return is_object(obj) and of_class(it, obj.cls, "__getattr__") is not None
