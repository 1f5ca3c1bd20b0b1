"""Attributes of classes that a program assigns: `Account.count += 1`.

In: a class, and the names of those that are assigned. Out: an object that stands for them. What is
read or assigned of it is the class's own, so a program captures it as any object of the caller's:
it reads what the class has at each call, and the class has what the program assigned afterwards.
"""

from __future__ import annotations

import abc
import functools
import types as python_types
from typing import Any

from pyrelay import errors
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.python_trees import MADE


class _Attributes:
    __slots__ = ()


@functools.cache
def standing_for(cls: type, names: tuple[str, ...]) -> Any:
    """The object whose attributes are those of a class."""
    own = type(cls.__name__, (_Attributes,), {"__slots__": names, "__module__": cls.__module__})
    for name in names:
        setattr(own, name, property(
            lambda _, name=name: vars(cls)[name],  # type: ignore[misc]
            lambda _, value, name=name: setattr(cls, name, value),  # type: ignore[misc]
        ))
    return own()


def assigned(it: Interpreter, cls: type, name: str) -> V.Value | None:
    """What stands for the attributes of the class that has this one, if the program assigns it."""
    if not it.program.class_attributes:
        return None
    owner = next((c for c in cls.__mro__ if name in vars(c)), None)
    names = it.program.class_attributes.get(owner, ())
    return _captured(it, owner, names) if name in names else None  # type: ignore[arg-type]


def assign(it: Interpreter, cls: type, name: str, value: V.Value) -> None:
    """`cls.name = value`. Raises NeedsClassAttribute where the program does not know of it yet."""
    from pyrelay.infer.attributes import put_attribute

    _check(it, cls, name)
    names = it.program.class_attributes.get(cls, ())
    if name not in names:
        raise needs.NeedsClassAttribute(cls, name)
    put_attribute(it, _captured(it, cls, names), name, value)


def _captured(it: Interpreter, cls: type, names: tuple[str, ...]) -> V.Ref:
    from pyrelay.infer.attributes import captured

    ref = captured(it, standing_for(cls, names))
    assert isinstance(ref, V.Ref)
    return ref


def _check(it: Interpreter, cls: type, name: str) -> None:
    """Refuse what is no value in the body of a class of the user's."""
    held = vars(cls).get(name)
    hint = ""
    if hasattr(cls, MADE):
        hint = "define the class outside of the function: inside, it begins anew with each call"
    elif name not in vars(cls):
        hint = f"assign {name} in the body of {cls.__name__}"
    elif type(cls) not in (type, abc.ABCMeta) or isinstance(held, (type, property)) or (
        callable(held) or isinstance(held, python_types.MemberDescriptorType)
        or hasattr(type(held), "__get__")
    ):
        hint = "keep what changes in attributes of an object"
    if hint:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"the attribute {name!r} of the class {cls.__name__} cannot be assigned in a compiled "
            "function",
            hints=(hint,),
        )


__all__ = ["assign", "assigned", "standing_for"]
