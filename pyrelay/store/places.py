"""Objects by the way that leads to them, so that another process finds its own.

In: objects that a program was compiled for: what was called, the key of its arguments, what was
read under names. Out: for each object within them a path, and by a path the object of this process.

A path is a tuple: where it begins (`"callee"`, `"key"`, `"module"`, `"import"`, the number of a
read), then steps into the object found so far. It says where an object is; what it is tell
`descriptions`.
"""

from __future__ import annotations

import enum
import functools
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from pyrelay.infer.nodes.datatypes import Schema
from pyrelay.infer.objects import below_numba
from pyrelay.infer.own_arrays import maker_of
from pyrelay.infer.structure import Identity
from pyrelay.store.descriptions import importable, imported, is_versioned

Path = tuple[Any, ...]

_IN_PYTHON = "pyrelay.infer.in_python."

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(...))


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """The objects that one leads to, with the step that leads there."""
    if isinstance(value, tuple):
        yield from enumerate(value)
    elif isinstance(value, Identity):
        yield "value", value.value
    elif isinstance(value, Schema):
        yield "classes", value.classes
    elif isinstance(value, types.FunctionType):
        yield "__globals__", value.__globals__
        for number, cell in enumerate(value.__closure__ or ()):
            yield ("cell", number), cell
        if hasattr(value, "__wrapped__"):
            yield "__wrapped__", value.__wrapped__
    elif isinstance(value, type):
        yield from ((("base", k), cls) for k, cls in enumerate(value.__mro__) if k)
        if not is_versioned(value.__module__):
            yield from _members(value)
    else:
        for name in _ATTRIBUTES.get(type(value), ()):
            yield name, getattr(value, name)
        if (function := below_numba(value)) is not None:
            yield "of numba", function
        if type(value).__module__.startswith("pyrelay") and hasattr(value, "__pyrelay__"):
            yield "__pyrelay__", value.__pyrelay__
        if not isinstance(value, (types.ModuleType, dict, types.CellType)):
            yield "__class__", type(value)


_MEMBERS = (property, functools.cached_property, staticmethod, classmethod, enum.Enum)


def _members(cls: type) -> Iterator[tuple[Any, Any]]:
    """What a class leads to: what it has itself, and what makes the fields of a dataclass."""
    yield from ((("own", name), each) for name, each in vars(cls).items() if callable(each)
                or isinstance(each, _MEMBERS))  # fmt: skip
    for name, each in vars(cls).get("__dataclass_fields__", {}).items():
        yield ("field", name), each.default_factory


_ATTRIBUTES: dict[type, tuple[str, ...]] = {
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args"),
    property: ("fget", "fset"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    functools.cached_property: ("func",),
    type(functools.lru_cache(len)): ("__wrapped__",),
}


def _step(value: Any, step: Any) -> Any:
    match step:
        case int():
            return value[step]
        case ("cell", number):
            return value.__closure__[number]
        case ("base", number):
            return value.__mro__[number]
        case "of numba":
            return below_numba(value)
        case ("made", args):
            return value(*args)
        case ("own", name):
            return vars(value)[name]
        case ("field", name):
            return value.__dataclass_fields__[name].default_factory
    return getattr(value, step)


class Places:
    """The objects of this process by path, and their paths."""

    def __init__(self) -> None:
        self._paths: dict[int, Path] = {}
        self._found: dict[Any, Any] = {}  # by name: where paths begin
        self._keep: list[Any] = []  # what has a path stays, so that its id stays its own

    def enter(self, start: Any, value: Any) -> None:
        """Let paths begin at an object, under a name."""
        self._found[start] = value
        pending: list[tuple[Path, Any]] = [((start,), value)]
        while pending:
            path, each = pending.pop()
            if type(each) in _ATOMS or id(each) in self._paths:
                continue
            self._paths[id(each)] = path
            self._keep.append(each)
            pending += [((*path, step), part) for step, part in _parts(each)]

    def path(self, value: Any) -> Path | None:
        """The path of an object that paths lead to; of a module, or the namespace of one."""
        found = self._paths.get(id(value))
        if found is not None:
            return found
        if isinstance(value, types.ModuleType):
            known = sys.modules.get(value.__name__) is value
            return ("module", value.__name__) if known else None
        place = importable(value) if isinstance(value, type) else None
        if place is not None and is_versioned(place[0]):
            return "import", *place
        if isinstance(value, types.FunctionType) and is_versioned(value.__module__):
            return _of_a_library(value)
        if isinstance(value, dict):
            name = value.get("__name__")
            home = sys.modules.get(name) if isinstance(name, str) else None
            if home is not None and vars(home) is value:
                return ("module", name, "__dict__")
        return None

    def at(self, path: Path) -> Any:
        """The object at a path. Raises LookupError or AttributeError where there is none."""
        start, *steps = path
        if start == "module":
            name, *steps = steps
            _import_own(name)
            value = sys.modules[name]
        elif start == "import":
            _import_own(steps[0])
            value, steps = imported(steps[0], steps[1]), steps[2:]
        else:
            value = self._found[start]
        for step in steps:
            value = _step(value, step)
        return value


def _import_own(module: str) -> None:
    """Import what compiling imports, where it may not have been yet: pyrelay's and Python's."""
    if module.partition(".")[0] in ("pyrelay", *sys.stdlib_module_names):
        importlib.import_module(module)


def _of_a_library(function: types.FunctionType) -> Path | None:
    """The path of a function that a class of a library has, itself or as a method of the class."""
    owner, _, name = function.__qualname__.rpartition(".")
    cls = imported(function.__module__, owner) if owner else None
    if not isinstance(cls, type):
        return None
    found = vars(cls).get(name)
    path = "import", function.__module__, owner, ("own", name)
    if found is function:
        return path
    return (*path, "__func__") if getattr(found, "__func__", None) is function else None


def own_place(value: Any) -> Path | None:
    """The path of an object that pyrelay's own functions in Python read under a global name, or of
    an array that pyrelay made while it compiled."""
    maker = maker_of(value)
    if maker is not None:
        function, args = maker
        return "module", maker_of.__module__, function, ("made", args)
    for home in [m for name, m in sys.modules.items() if name.startswith(_IN_PYTHON)]:
        for name, each in vars(home).items():
            if each is value:
                return "module", home.__name__, name
    return None


def constant(value: Any) -> bool:
    """Whether an object needs no path: a number, a text, None."""
    return type(value) in _ATOMS


__all__ = ["Path", "Places", "constant", "own_place"]
