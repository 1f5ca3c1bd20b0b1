"""The `__init__` that dataclasses generate, which has no text that could be compiled.

In: a dataclass and what its `__init__` is called with: to make an object, or, by a class behind it
in the hierarchy, for an object that is being made. Out: the object with its fields.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay import errors
from pyrelay.annotations import signature_of
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter


def has_generated(cls: type) -> bool:
    """Whether the `__init__` of a class is a generated one, of itself or of a class behind it."""
    return _is_generated(next(c for c in cls.__mro__ if "__init__" in vars(c)))


def _is_generated(cls: type) -> bool:
    """Whether a dataclass generated the `__init__` that the class itself has."""
    parameters = vars(cls).get("__dataclass_params__")
    return parameters is not None and bool(parameters.init) and (
        vars(cls)["__init__"].__code__.co_filename == "<string>"
    )


def class_of_init(function: Any, args: Sequence[V.Value]) -> type | None:
    """The dataclass that generated an `__init__`, which is called of an object of it; None for any
    other function."""
    from pyrelay.infer.names.operator import class_behind

    if function.__name__ != "__init__" or function.__code__.co_filename != "<string>" or not args:
        return None
    own = class_behind(args[0])
    order = () if own is None else own.__mro__
    found = next((c for c in order if vars(c).get("__init__") is function), None)
    return found if found is not None and _is_generated(found) else None


def made(
    it: Interpreter, cls: type, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    """A new object of a dataclass."""
    fields, handed = _fields(it, cls, signature_of(cls), args, keywords)
    obj = it.new_ref("object", fields, cls)
    _finished(it, obj, cls, handed)
    return obj


def initialise(
    it: Interpreter, cls: type, args: Sequence[V.Value], keywords: Mapping[str, V.Value]
) -> V.Value:
    """`cls.__init__(obj, ...)` of an object of a class that derives from the dataclass."""
    from pyrelay.infer.attributes import put_attribute, set_attribute
    from pyrelay.infer.names.operator import class_behind

    obj, *rest = args
    whole = signature_of(cls.__init__)  # type: ignore[misc]
    own = whole.replace(parameters=list(whole.parameters.values())[1:])
    fields, handed = _fields(it, cls, own, rest, keywords)
    for name, value in fields.items():
        if isinstance(obj, V.Ref) and cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            put_attribute(it, obj, name, value)
        else:
            set_attribute(it, obj, name, value)
    of = class_behind(obj)
    assert of is not None
    _finished(it, obj, of, handed)
    return V.NONE


def _fields(
    it: Interpreter, cls: Any, signature: inspect.Signature, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> tuple[dict[str, V.Value], list[V.Value]]:
    """The fields of an object of these arguments, with defaults, and what is no field (InitVar),
    but handed to `__post_init__`."""
    from pyrelay.infer.attributes import captured
    from pyrelay.infer.calls import call

    given = bound(it, cls.__name__, signature, args, keywords)
    content: dict[str, V.Value] = {}
    own = {f.name for f in dataclasses.fields(cls)}
    for f in cls.__dataclass_fields__.values():
        if f.name not in own and f.name not in signature.parameters:
            continue  # of the class
        if f.name in given:
            content[f.name] = given[f.name]
        elif f.default is not dataclasses.MISSING:
            content[f.name] = captured(it, f.default)
        elif f.default_factory is not dataclasses.MISSING:
            content[f.name] = call(it, V.Known(f.default_factory), (), {})
    handed = [content.pop(name) for name in list(content) if name not in own]
    return content, handed


def bound(
    it: Interpreter, name: str, signature: inspect.Signature, args: Sequence[V.Value],
    keywords: Mapping[str, V.Value],
) -> dict[str, Any]:
    """Arguments by the names of a signature. Raises SignatureError."""
    try:
        found = signature.bind(*args, **keywords)
    except TypeError as error:
        raise it.failure(errors.SignatureError, f"{name}(): {error}") from None
    return dict(found.arguments)


def _finished(it: Interpreter, obj: V.Value, cls: type, handed: Sequence[V.Value]) -> None:
    """What the class does once the fields are there."""
    from pyrelay.infer.attributes import of_class
    from pyrelay.infer.calls import call

    after = of_class(it, cls, "__post_init__")
    if after is None:
        return
    if isinstance(obj, V.Ref):
        it.constructing.setdefault(obj.root, it.builder)
    call(it, V.Known(after), (obj, *handed), {})


__all__ = ["bound", "class_of_init", "has_generated", "initialise", "made"]
