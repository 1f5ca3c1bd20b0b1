"""What the annotations of a class say about its fields, and which classes contain themselves.

In: user classes (dataclasses, namedtuples, plain classes). Out: per field an `Expected`, as far as
the annotation says something that can be relied on, and the classes of one recursive data type.
Annotations that cannot be resolved (a name of a function's scope, say) count as unknown.
"""

from __future__ import annotations

import dataclasses
import enum
import re
import sys
import types as python_types
import typing
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pyrelay.annotations import annotations_of
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
    """What a field may hold: instances of user classes, None, numbers of one Python class, items.

    items: what a list or tuple holds (`fixed`: one entry per place of a tuple). `complete`: nothing
    else is allowed.
    """

    classes: tuple[type, ...] = ()
    none: bool = False
    number: type | None = None
    sequence: type | None = None
    items: tuple[Expected, ...] = ()
    fixed: bool = False
    complete: bool = True


UNKNOWN = Expected(complete=False)
_NONE = Expected(none=True)


def is_of_many(cls: Any) -> bool:
    """True for the class of containers of which there are many (in_python/nested.py)."""
    return "of_many" in getattr(cls, "__dict__", ())


def is_record_class(cls: Any) -> bool:
    """True for a class of the user whose instances are structures of fields, and for those of
    containers of which there are many (in_python/nested.py)."""
    return is_of_many(cls) or (
        isinstance(cls, type)
        and cls.__module__ not in ("builtins", "numpy", "typing", "collections", "functools", "abc")
        and not issubclass(cls, (enum.Enum, BaseException, np.generic))
        and isinstance(cls.__module__, str)  # classes of extension modules may have none
        and not cls.__module__.startswith(("numpy.", "pyrelay."))
        and (dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")
             or not issubclass(cls, (tuple, list, dict, str, int, float, complex)))
    )


def expected_fields(cls: type) -> dict[str, Expected]:
    """What the annotations of a class say about its fields.

    The parameters of a plain class's `__init__` count for the attributes of the same names.
    """
    init = vars(cls).get("__init__")
    found: dict[str, Expected] = {}
    if isinstance(init, python_types.FunctionType) and not dataclasses.is_dataclass(cls):
        hints = _hints(init, cls)
        found.update((k, _expected(h, cls)) for k, h in hints.items() if k != "return")
    found.update((k, _expected(h, cls)) for k, h in _hints(cls, cls).items())
    return found


def _hints(owner: Any, cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(owner, localns={cls.__name__: cls})
    except Exception:  # any text can stand in an annotation
        pass
    namespace = {**vars(typing), **vars(sys.modules.get(cls.__module__, typing))}
    namespace[cls.__name__] = cls
    sources = reversed(cls.__mro__) if owner is cls else (owner,)
    return {
        k: _resolved(hint, namespace) for s in sources for k, hint in annotations_of(s).items()
    }


def _resolved(hint: Any, namespace: dict[str, Any]) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, namespace)
    except Exception:
        pass
    known = [namespace[w] for w in re.findall(r"\w+", hint) if is_record_class(namespace.get(w))]
    return _Unresolved(tuple(dict.fromkeys(known)))


@dataclass(frozen=True, slots=True)
class _Unresolved:
    """An annotation with unknown names in it, and the user's classes among the known ones."""

    classes: tuple[type, ...]


def _expected(hint: Any, cls: type) -> Expected:
    if hint is None or hint is type(None):
        return _NONE
    if hint in (int, float, bool, complex):
        return Expected(number=hint)
    if isinstance(hint, _Unresolved):
        return Expected(classes=hint.classes, complete=False)
    if isinstance(hint, (str, typing.ForwardRef)):
        name = hint if isinstance(hint, str) else hint.__forward_arg__
        return Expected(classes=(cls,)) if name == cls.__name__ else UNKNOWN
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Annotated, typing.Final, typing.ClassVar):
        return _expected(args[0], cls)
    if origin in (typing.Union, python_types.UnionType):
        return _either([_expected(a, cls) for a in args])
    base = hint if origin is None else origin
    if isinstance(base, type) and issubclass(base, (tuple, list, Sequence)) and not hasattr(
        base, "_fields"
    ):
        return _sequence(base, args, cls)
    if is_record_class(base):
        return Expected(classes=(base,))
    return UNKNOWN


def _either(parts: list[Expected]) -> Expected:
    numbers = {p.number for p in parts if p.number is not None}
    sequences = [p for p in parts if p.sequence is not None]
    first = sequences[0] if sequences else UNKNOWN
    return Expected(
        tuple(dict.fromkeys(c for p in parts for c in p.classes)), any(p.none for p in parts),
        next(iter(numbers), None), first.sequence, first.items, first.fixed,
        all(p.complete for p in parts) and len(numbers) + len(sequences) <= 1,
    )


def _sequence(base: type, args: tuple[Any, ...], cls: type) -> Expected:
    kind = list if issubclass(base, list) else tuple if issubclass(base, tuple) else None
    if kind is None or not args:
        items = tuple(_expected(a, cls) for a in args)
        return Expected(tuple(c for e in items for c in e.classes), complete=False)
    if kind is tuple and args[-1] is not Ellipsis:
        return Expected(
            sequence=tuple, items=tuple(_expected(a, cls) for a in args), fixed=True
        )
    return Expected(sequence=kind, items=(_expected(args[0], cls),))


def mentioned(expected: Expected) -> tuple[type, ...]:
    """The user classes in an annotation, at any depth."""
    return expected.classes + tuple(c for e in expected.items for c in mentioned(e))


def with_subclasses(classes: Iterable[type]) -> list[type]:
    """The classes and everything derived from them."""
    found: dict[type, None] = {}
    pending = list(classes)
    while pending:
        cls = pending.pop(0)
        if cls not in found:
            found[cls] = None
            pending.extend(cls.__subclasses__())
    return list(found)


def recursive_group(cls: type) -> list[type]:
    """The classes of the data type that `cls` belongs to by its annotations; empty if it is none.

    Those that reach `cls` and are reached from it, and what may stand in place of one of them.
    """
    uses: dict[type, list[list[type]]] = {}
    pending = [cls]
    while pending:
        here = pending.pop()
        if here in uses:
            continue
        alternatives = [
            with_subclasses(e.classes) for field in expected_fields(here).values()
            for e in _nested(field) if e.classes
        ]
        uses[here] = alternatives
        pending.extend(c for group in alternatives for c in group)
    reached = _closure(cls, uses)
    if cls not in reached:
        return []
    core = [c for c in uses if c in reached and cls in _closure(c, uses)]
    found = dict.fromkeys(core)
    for member in core:
        for group in uses[member]:
            if any(c in core for c in group):
                found.update(dict.fromkeys(group))
    return list(found)


def _nested(expected: Expected) -> list[Expected]:
    return [expected, *(inner for e in expected.items for inner in _nested(e))]


def _closure(cls: type, uses: dict[type, list[list[type]]]) -> set[type]:
    """The classes that can be reached from a class in one step or more."""
    found: set[type] = set()
    pending = [c for group in uses[cls] for c in group]
    while pending:
        here = pending.pop()
        if here not in found:
            found.add(here)
            pending.extend(c for group in uses[here] for c in group)
    return found


def are_related(a: type, b: type) -> bool:
    """Whether two classes have a base class of the user in common."""
    common = set(a.__mro__) & set(b.__mro__)
    return any(map(is_record_class, common))
