"""Dataclasses whose methods are written when they are first used.

In: a class with annotated fields, as `dataclasses.dataclass` takes it. Out: the same class, as that
would give it, with the parameters `frozen`, `eq` and `slots`, and `field` with all of its own but
`hash`. `dataclasses.fields`, `replace`, `asdict` and `is_dataclass` know these classes.

The standard decorator writes and compiles five functions for each class when its module is
imported. This package has hundreds of small classes, of which one program uses a part: that was two
fifths of the first call in a fresh process.

`once` makes a method whose answer is kept: for values that are asked over and over.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import reprlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

__all__ = ["dataclass", "once"]

_T = TypeVar("_T", bound=type)
_R = TypeVar("_R")
_FIELDS = "__dataclass_fields__"  # where `dataclasses` looks for them
_OWN = "__record_fields__"
_NO_INSTANCE = ("ClassVar", "typing.ClassVar")


def once(work: Callable[[Any], _R]) -> Callable[[Any], _R]:
    """A method whose answer is kept in the slot of its name, with a line before it."""
    slot = f"_{work.__name__.strip('_')}"

    @functools.wraps(work)
    def kept(self: Any) -> _R:
        try:
            known: _R = getattr(self, slot)
        except AttributeError:
            known = work(self)
            object.__setattr__(self, slot, known)
        return known

    return kept


class _Field:
    """A field of a class: its name, its annotation, and what `field` says of it."""

    __slots__ = ("annotation", "name", "spec")

    def __init__(self, name: str, annotation: Any, spec: dataclasses.Field[Any]) -> None:
        self.name, self.annotation, self.spec = name, annotation, spec


class _Fields:
    """The fields as `dataclasses` keeps them, made when it asks."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    def __get__(self, instance: object, owner: type) -> dict[str, dataclasses.Field[Any]]:
        own: list[_Field] = getattr(self.cls, _OWN)
        namespace: dict[str, Any] = {each.name: each.spec for each in own}
        namespace["__annotations__"] = {each.name: each.annotation for each in own}
        namespace["__module__"] = self.cls.__module__
        namespace["__doc__"] = "Without one, `dataclasses` would spell the signature."
        twin: Any = type(self.cls.__name__, (), namespace)
        dataclasses.dataclass(init=False, repr=False, eq=False)(twin)
        found: dict[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(twin)}
        setattr(self.cls, _FIELDS, found)
        return found


def _record(
    cls: _T | None = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False
) -> Any:
    """The decorator, with or without parameters."""
    if cls is None:
        return lambda each: _made(each, frozen, eq, slots)
    return _made(cls, frozen, eq, slots)


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _record


def _made(cls: _T, frozen: bool, eq: bool, slots: bool) -> _T:
    fields: dict[str, _Field] = {}
    for base in reversed(cls.__mro__[1:]):
        fields.update((each.name, each) for each in base.__dict__.get(_OWN, ()))
    for name, annotation in inspect.get_annotations(cls).items():
        if not str(annotation).startswith(_NO_INSTANCE):
            fields[name] = _Field(name, annotation, _spec(cls, name))
    ordered = list(fields.values())
    if slots:
        cls = _with_slots(cls, fields)
    setattr(cls, _OWN, ordered)
    setattr(cls, _FIELDS, _Fields(cls))
    given = cls.__dict__
    positional = tuple(
        f.name for f in ordered if f.spec.init and f.spec.kw_only is not True
    )
    explicit_hash = "__hash__" in given and not (
        given["__hash__"] is None and "__eq__" in given
    )
    attributes: dict[str, Any] = {
        "__match_args__": positional, "__repr__": _shown,
        "__init__": _when_called(cls, "__init__", lambda: _init(cls, ordered, frozen)),
    }  # fmt: skip
    if eq:
        compared = [f.name for f in ordered if f.spec.compare]
        attributes["__eq__"] = _when_called(cls, "__eq__", lambda: _eq(compared))
        if explicit_hash:
            pass
        elif frozen:
            cls.__hash__ = _when_called(  # type: ignore[method-assign]
                cls, "__hash__", lambda: _hash(compared)
            )
        else:
            cls.__hash__ = None  # type: ignore[assignment]
    if frozen:
        attributes.update(_frozen(cls, frozenset(fields)))
        if slots:
            attributes.update(__getstate__=_state, __setstate__=_set_state)
    for name, value in attributes.items():
        if name not in given:
            setattr(cls, name, value)
    return cls


def _spec(cls: type, name: str) -> dataclasses.Field[Any]:
    """What `field` says of a field; its default becomes the attribute of the class."""
    default = cls.__dict__.get(name, dataclasses.MISSING)
    if not isinstance(default, dataclasses.Field):
        return cast("dataclasses.Field[Any]", dataclasses.field(default=default))
    if default.default is dataclasses.MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, default.default)
    return default


def _with_slots(cls: _T, fields: Iterable[str]) -> _T:
    """The class anew, with slots for the fields that no base has one for."""
    taken = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    namespace = {name: value for name, value in cls.__dict__.items() if name not in fields}
    for name in ("__dict__", "__weakref__"):
        namespace.pop(name, None)
    namespace["__slots__"] = tuple(name for name in fields if name not in taken)
    made = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


# -- methods ---------------------------------------------------------------------------------------


def _when_called(cls: type, name: str, make: Callable[[], Any]) -> Any:
    """A method that puts what `make` gives in its own place, and calls that."""

    def first(self: Any, *args: Any, **named: Any) -> Any:
        method = make()
        method.__qualname__ = f"{cls.__qualname__}.{name}"
        setattr(cls, name, method)
        return method(self, *args, **named)

    first.__name__ = name
    return first


def _written(name: str, parameters: Iterable[str], lines: Iterable[str], known: Any) -> Any:
    body = "\n  ".join(lines) or "pass"
    exec(f"def {name}({', '.join(parameters)}):\n  {body}", known)  # names of fields, no values
    return known[name]


def _init(cls: type, fields: list[_Field], frozen: bool) -> Any:
    known: dict[str, Any] = {"_set": object.__setattr__, "_unset": dataclasses.MISSING}
    parameters, lines = ["self"], []
    by_name: list[str] = []
    for f in fields:
        value, spec = f.name, f.spec
        if spec.default_factory is not dataclasses.MISSING:
            known[f"_make_{f.name}"] = spec.default_factory
            value = f"_make_{f.name}()"
            if spec.init:
                value = f"{value} if {f.name} is _unset else {f.name}"
        elif not spec.init:
            continue
        if spec.init:
            default = ""
            if value != f.name:
                default = "=_unset"
            elif spec.default is not dataclasses.MISSING:
                known[f"_default_{f.name}"] = spec.default
                default = f"=_default_{f.name}"
            (by_name if spec.kw_only is True else parameters).append(f.name + default)
        lines.append(
            f"_set(self, {f.name!r}, {value})" if frozen else f"self.{f.name} = {value}"
        )
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _written("__init__", [*parameters, *["*"] * bool(by_name), *by_name], lines, known)


def _tuple_of(obj: str, names: list[str]) -> str:
    return f"({''.join(f'{obj}.{name}, ' for name in names)})"


def _eq(names: list[str]) -> Any:
    lines = [
        "if other.__class__ is self.__class__:",
        f" return {_tuple_of('self', names)} == {_tuple_of('other', names)}",
        "return NotImplemented",
    ]
    return _written("__eq__", ("self", "other"), lines, {})


def _hash(names: list[str]) -> Any:
    return _written("__hash__", ("self",), [f"return hash({_tuple_of('self', names)})"], {})


@reprlib.recursive_repr()
def _shown(self: Any) -> str:
    shown = (
        f"{f.name}={getattr(self, f.name)!r}" for f in getattr(self, _OWN) if f.spec.repr
    )
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _frozen(cls: Any, names: frozenset[str]) -> dict[str, Any]:
    def refuse(self: Any, name: str, what: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")

    def set_attribute(self: Any, name: str, value: Any) -> None:
        refuse(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        refuse(self, name, "delete")
        super(cls, self).__delattr__(name)

    return {"__setattr__": set_attribute, "__delattr__": delete_attribute}


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in getattr(self, _OWN)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(getattr(self, _OWN), state, strict=True):
        object.__setattr__(self, f.name, value)
