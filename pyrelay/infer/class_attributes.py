"""Attributes of classes and functions, and variables of modules and of functions around, that a
program assigns: `Account.count += 1`, `global count; count += 1`.

In: a class, a function, a module or the cell of a variable, and the names of those that are
assigned. Out: an object that stands for them. What is read or assigned of it is the class's own, so
a program captures it as any object of the caller's: it reads what the class has at each call, and
the class has what the program assigned afterwards.
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


class Variables:
    """The variables of a module, as attributes."""

    __slots__ = ("__dict__",)

    def __init__(self, held: dict[str, Any]) -> None:
        object.__setattr__(self, "__dict__", held)


class Variable:
    """A variable of a function around the program, as an attribute."""

    __slots__ = ("_place",)
    _place: tuple[str, python_types.CellType]

    def __init__(self, name: str, cell: python_types.CellType) -> None:
        object.__setattr__(self, "_place", (name, cell))

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        name, cell = self._place
        try:
            return {name: cell.cell_contents}
        except ValueError:  # it has no value yet
            return {}

    def __setattr__(self, name: str, value: Any) -> None:
        self._place[1].cell_contents = value


Owner = type | python_types.FunctionType | Variables | Variable

_modules: dict[int, Variables] = {}


def variables_of(held: dict[str, Any]) -> Variables:
    """Those of the module whose namespace this is: the same ones whenever it is asked for."""
    found = _modules.get(id(held))
    if found is None:
        found = _modules[id(held)] = Variables(held)
    return found


_variables: dict[int, Variable] = {}


def variable_in(cell: python_types.CellType, name: str) -> Variable:
    """The variable that lives in a cell: the same one whenever it is asked for."""
    found = _variables.get(id(cell))
    if found is None:
        found = _variables[id(cell)] = Variable(name, cell)
    return found


class _Attributes:
    __slots__ = ()


@functools.cache
def standing_for(owner: Owner, names: tuple[str, ...]) -> Any:
    """The object whose attributes are those of a class, a function or a module."""
    held = vars(owner)
    module = held.get("__name__") if isinstance(owner, Variables) else owner.__module__
    own = type(_name(owner), (_Attributes,), {"__slots__": names, "__module__": module})
    for name in names:
        setattr(own, name, property(
            lambda _, name=name: vars(owner)[name],  # type: ignore[misc]
            lambda _, value, name=name: setattr(owner, name, value),  # type: ignore[misc]
        ))
    return own()


def _name(owner: Owner) -> str:
    if isinstance(owner, Variable):
        return "variables"
    return str(vars(owner).get("__name__")) if isinstance(owner, Variables) else owner.__name__


def assigned(it: Interpreter, of: Owner, name: str) -> V.Value | None:
    """What stands for the attributes of the class, or its base, that has this one, or for those of
    the function or the module, if the program assigns it."""
    if not it.program.class_attributes:
        return None
    classes = of.__mro__ if isinstance(of, type) else (of,)
    owner = next((c for c in classes if name in vars(c)), None)
    names = it.program.class_attributes.get(owner, ())
    return _captured(it, owner, names) if name in names else None  # type: ignore[arg-type]


def assigned_in(it: Interpreter, cell: python_types.CellType, name: str) -> V.Value | None:
    """What stands for the variable that lives in a cell, if the program assigns it."""
    variable = _variables.get(id(cell))  # nobody's that is not assigned
    return None if variable is None else assigned(it, variable, name)


def assign(it: Interpreter, owner: Owner, name: str, value: V.Value) -> None:
    """`owner.name = value`. Raises NeedsClassAttribute where the program does not know of it yet.
    """
    from pyrelay.infer.attributes import put_attribute

    if isinstance(owner, type):
        _check(it, owner, name)
    elif isinstance(owner, (Variables, Variable)):
        _check_variable(it, owner, name)
    else:
        _check_attribute(it, owner, name)
    names = it.program.class_attributes.get(owner, ())
    if name not in names:
        raise needs.NeedsClassAttribute(owner, name)
    put_attribute(it, _captured(it, owner, names), name, value)


def _captured(it: Interpreter, owner: Owner, names: tuple[str, ...]) -> V.Ref:
    from pyrelay.infer.attributes import captured

    ref = captured(it, standing_for(owner, names))
    assert isinstance(ref, V.Ref)
    return ref


def _check_variable(it: Interpreter, module: Variables | Variable, name: str) -> None:
    """Refuse a variable of a module, or of a function around, that holds no value."""
    held = vars(module).get(name)
    if name in vars(module) and not callable(held) and not isinstance(
        held, python_types.ModuleType
    ):
        return
    hint = "keep what changes in attributes of an object" if name in vars(module) else (
        f"assign {name} in the module, before the first call"
    )
    raise it.failure(
        errors.UnsupportedOperationError,
        f"the variable {name!r} of the module cannot be assigned in a compiled function",
        hints=(hint,),
    )


def _check_attribute(it: Interpreter, function: python_types.FunctionType, name: str) -> None:
    """Refuse an attribute that a function does not have before the program runs, or of its own."""
    if name not in vars(function) or callable(vars(function)[name]):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"the attribute {name!r} of the function {function.__name__} cannot be assigned in a "
            "compiled function",
            hints=(f"assign {function.__name__}.{name} outside, before the first call",),
        )


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


__all__ = [
    "Variable", "Variables", "assign", "assigned", "assigned_in", "standing_for", "variable_in",
    "variables_of",
]
