"""What the annotations of a function say of arrays (`pyrelay.annotations`).

In: a Python function, or one that is defined in another. Out: for each parameter, and the result,
a `Declaration` or a structure of those; nothing where annotations say nothing of arrays.

Annotations may be texts. Of the names in them that other objects may get, each is a guard, as of
names that a program reads. What a text means that names something unknown cannot be found out: then
it says nothing.
"""

from __future__ import annotations

import sys
import types as python_types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay.annotations import ANY_AXES, Declaration, Tensor, annotations_of, of_jaxtyping
from pyrelay.errors import PyrelayError, Span
from pyrelay.infer import values as V
from pyrelay.infer.guards import NameGuard
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.nodes.annotations import is_record_class
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Each:
    """A list or tuple of any length, or a dict: what is said of its items or values."""

    kind: type
    item: Any


@dataclass(frozen=True, slots=True)
class Fixed:
    """A tuple with an entry for each item; None where nothing is said."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of a class, or a dict with these keys: what is said of its fields."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several. arrays, others: whether any array fits, anything else."""

    cases: tuple[Any, ...]
    arrays: bool
    others: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """What is said of parameters, by position, and of the result."""

    parameters: Mapping[int, Any]
    result: Any


def signature(it: Interpreter, closure: V.Closure) -> Signature | None:
    """What a function's annotations say of arrays; None if nothing."""
    function, owner = closure.function, closure.owner
    declared = it.program.declared
    if (function, owner) not in declared:
        declared[function, owner] = _signature(it, closure, _hints(closure))
    found: Signature | None = declared[function, owner]
    return found


def _hints(closure: V.Closure) -> Mapping[str, Any]:
    owner, home = closure.owner, closure.home
    if home is None or str(owner.__globals__.get("__name__")).startswith("pyrelay."):
        return {}
    if home.module.functions[home.module.entry] is closure.function:
        found: Mapping[str, Any] = annotations_of(owner)
    else:
        found = home.annotations[closure.function.name]
    return found


def _signature(
    it: Interpreter, closure: V.Closure, hints: Mapping[str, Any]
) -> Signature | None:
    function = closure.function
    reader = _Reader(it, closure.owner)
    found: dict[int, Any] = {}
    for k, parameter in enumerate(function.signature):
        reader.span = function.params[k].span
        said = reader.read(hints.get(parameter.name))
        if said is not None:
            kind = {"var_positional": tuple, "var_keyword": dict}.get(parameter.kind)
            found[k] = said if kind is None else Each(kind, said)
        elif k == 0 and parameter.name == "self":
            found[k] = OfItself(reader)
    reader.span = function.span
    result = reader.read(hints.get("return"))
    return Signature(found, result) if found or result is not None else None


class OfItself:
    """`self`: the fields of the class of the object, whichever that is."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader

    def fields(self, cls: type) -> Fields | None:
        """What the annotations of its class say."""
        return self.reader.fields(cls)


@dataclass
class _Reader:
    """Reads annotations as the module of a function, or of a class, means them."""

    it: Interpreter
    owner: Any
    span: Span | None = None  # of the parameter at hand
    #: of classes that were met, None while one is read: what contains itself is not followed
    classes: dict[type, Fields | None] = field(default_factory=dict)

    def read(self, hint: Any) -> Any:
        """What an annotation says of arrays; None if nothing."""
        if isinstance(hint, typing.ForwardRef):
            hint = hint.__forward_arg__
        if isinstance(hint, str):
            hint = self._meaning(hint)
        if isinstance(hint, Declaration):
            return hint
        if hint is Tensor:
            return Declaration((ANY_AXES,))
        found = of_jaxtyping(hint)
        if found is not None:
            return found
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            said = [m for m in args[1:] if isinstance(m, Declaration)]
            return said[0] if said else self.read(args[0])
        if origin in _QUALIFIERS:
            return self.read(args[0])
        if origin in (typing.Union, python_types.UnionType):
            return self._either(args)
        base = hint if origin is None else origin
        if not isinstance(base, type):
            return None
        if args and base is tuple and args[-1] is not Ellipsis:
            items = tuple(map(self.read, args))
            return Fixed(items) if any(i is not None for i in items) else None
        if args and issubclass(base, Sequence):
            return self._each(list if issubclass(base, list) else tuple, args[0])
        if len(args) == 2 and issubclass(base, Mapping):
            return self._each(dict, args[1])
        return self.fields(base)

    def _each(self, kind: type, item: Any) -> Each | None:
        said = self.read(item)
        return None if said is None else Each(kind, said)

    def _either(self, args: Sequence[Any]) -> Either | None:
        said = [self.read(a) for a in args]
        rest = [a for a, s in zip(args, said, strict=True) if s is None]
        cases = tuple(s for s in said if s is not None)
        return Either(cases, not all(map(_has_no_arrays, rest)), bool(rest)) if cases else None

    def fields(self, cls: type) -> Fields | None:
        """What the annotations of a class say."""
        if not (is_record_class(cls) or typing.is_typeddict(cls)):
            return None
        if cls in self.classes:
            return self.classes[cls]
        self.classes[cls] = None
        found: dict[str, Any] = {}
        outer = self.owner
        for each in reversed(cls.__mro__):
            self.owner = each
            for name, hint in annotations_of(each).items():
                said = self.read(hint)
                if said is not None and getattr(each, name, hint) is None:  # its default
                    said = Either((said,), False, True)
                found[name] = said
        self.owner = outer
        found = {name: said for name, said in found.items() if said is not None}
        self.classes[cls] = Fields(found) if found else None
        return self.classes[cls]

    # -- texts -------------------------------------------------------------------------------------

    def _meaning(self, text: str) -> Any:
        try:
            code = compile(text.strip(), "<annotation>", "eval")
            return eval(code, {"__builtins__": {}}, dict(self._objects(code.co_names)))
        except PyrelayError as error:
            raise self.it.failure(
                type(error), error.message, span=self.span, hints=error.hints
            ) from None
        except Exception:  # any text can stand in an annotation
            return None

    def _objects(self, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """The objects of names, as far as there are any."""
        record = self.it.program.guards.record
        free = getattr(getattr(self.owner, "__code__", None), "co_freevars", ())
        is_class = isinstance(self.owner, type)
        namespace = (
            vars(sys.modules.get(self.owner.__module__, typing)) if is_class
            else self.owner.__globals__
        )
        built_in = namespace.get("__builtins__", {})
        table = built_in if isinstance(built_in, dict) else vars(built_in)
        for name in names:
            if name in free:
                cell = self.owner.__closure__[free.index(name)]
                value = cell.cell_contents
                record(NameGuard("cell", cell, name, value, _by_value(value)))
                yield name, value
            elif name in namespace:
                value = namespace[name]
                if not _is_of_library(value):
                    record(NameGuard("item", namespace, name, value, _by_value(value)))
                yield name, value
            elif is_class and name == self.owner.__name__:
                yield name, self.owner
            elif name in table:
                yield name, table[name]


_QUALIFIERS = (typing.Final, typing.ClassVar, typing.Required, typing.NotRequired)

_NO_ARRAYS = (type(None), bool, int, float, complex, str, bytes, list, tuple, dict, set)


def _has_no_arrays(hint: Any) -> bool:
    """Whether an annotation that says nothing of arrays allows none in its place."""
    base = typing.get_origin(hint) or hint
    return isinstance(base, type) and (issubclass(base, _NO_ARRAYS) or is_record_class(base))


def _by_value(value: Any) -> bool:
    return isinstance(value, (int, str, tuple, np.generic))


def _is_of_library(value: Any) -> bool:
    """Whether an object is one that nobody gives another meaning to: a module, a class of NumPy."""
    if isinstance(value, python_types.ModuleType):
        return True
    if isinstance(value, type):
        return value.__module__.partition(".")[0] in ("numpy", "pyrelay", "builtins", "typing")
    return type(value).__module__ == "typing" and not typing.get_args(value)
