"""`getattr`, `hasattr` and `vars`: attributes by a name that is known while compiling.

In: an object and a name. Out: the attribute, what stands for it, or whether it is there. A class's
own `__getattr__`, or property, is asked as plain Python asks it.
"""

from __future__ import annotations

import functools
import inspect

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.attributes import (
    dict_of_attributes,
    get_attribute,
    of_class,
    put_attribute,
)
from pyrelay.infer.calls import call
from pyrelay.infer.flow import unset
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.unions import distribute
from pyrelay.infer.in_python import attributes, getters
from pyrelay.infer.in_python.containers import standing_for
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.builtins import is_of_builtin_class
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.nodes.annotations import is_record_class
from pyrelay.infer.protocols import is_object


@handles(getattr)
def getattr_(
    it: Interpreter, obj: V.Value, name: V.Value, default: V.Value | None = None
) -> V.Value:
    """getattr(obj, name[, default])."""
    known = it.static(name, "the name of an attribute")
    if default is not None and _asks_its_class(it, obj, known):
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
    if _asks_its_class(it, obj, known):
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


@handles(vars)
def vars_(it: Interpreter, obj: V.Value) -> V.Value:
    """vars(obj) of an object of the user's."""
    if not is_object(obj) or obj.cls in standing_for:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"vars() of {V.describe(obj)} is not compiled: it is for objects of your classes",
        )
    if not obj.cls.__dictoffset__:
        said = "vars() argument must have __dict__ attribute"
        raise certain(it, it.failure(errors.TypeMismatchError, said), TypeError, said)
    return dict_of_attributes(it, obj)


@handles(attributes.names_of)
def names_of(it: Interpreter, obj: V.Value) -> V.Value:
    """The names of the attributes of an object, those that only some paths assign included."""
    if isinstance(obj, V.Data):
        return V.Known(tuple(obj.schema.of(obj.kind)))
    assert isinstance(obj, V.Ref)
    return V.Known(tuple(it.content(obj.root)))


@handles(attributes.is_assigned)
def is_assigned(it: Interpreter, obj: V.Value, name: V.Value) -> V.Value:
    """Whether an object has one of these attributes."""
    perhaps = unset.attribute_of(it, obj, it.static(name, "the name of an attribute"))
    return V.Known(True) if perhaps is None else unset.is_set(it, perhaps)


@handles(attributes.assigned)
def assigned(it: Interpreter, obj: V.Value, name: V.Value, value: V.Value) -> V.Value:
    """vars(obj)[name] = value."""
    known = it.static(name, "the name of an attribute")
    assert isinstance(obj, (V.Ref, V.Data))
    put_attribute(it, obj, known, value)
    return V.NONE


@handles(object.__new__)
def new_object(it: Interpreter, cls: V.Value) -> V.Value:
    """object.__new__(cls): an object of the user's without attributes."""
    known = it.static(cls, "the class of an object")
    if not is_record_class(known) or it.program.families.of(known) is not None:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"object.__new__({known.__name__}) is not compiled: there are as many objects of it as "
            "the program makes, or they refer to each other",
            hints=(f"make it by {known.__name__}(...)",),
        )
    return it.new_ref("object", {}, known)


def _has_of_class(obj: V.Value, name: str) -> bool:
    """Whether the class of an object has an attribute, which stands in for the object's own."""
    found = inspect.getattr_static(obj.cls, name, None)  # type: ignore[union-attr]
    return found is not None and not inspect.ismemberdescriptor(found)


def _asks_its_class(it: Interpreter, obj: V.Value, name: str) -> bool:
    """Whether code of the user's says if there is an attribute: a `__getattr__`, or a property,
    which may raise AttributeError."""
    if not is_object(obj):
        return False
    found = of_class(it, obj.cls, name)
    return of_class(it, obj.cls, "__getattr__") is not None or isinstance(
        found, (property, functools.cached_property)
    )
