"""What Python objects are, as digests that mean the same in every process.

In: objects that a program was compiled for: functions, classes, modules, constants. Out: a digest
of all that a compiler may have read of them without noting it as a guard: code, defaults, the text
of functions, members and bases of classes, values of constants. Two objects with one digest are
interchangeable to a compiled program; so are two lists of objects, also in which of them are one.

What a program never takes as a constant (arrays, containers, objects with attributes) counts as
its class alone: it enters programs as an argument, with its own key. File names count as numbers
in order of occurrence, so that the same text in another folder, or in another notebook's cell, is
the same.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import linecache
import operator
import os
import sys
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pyrelay.annotations import Declaration, annotations_of
from pyrelay.infer.guards import ABSENT
from pyrelay.infer.nodes.datatypes import Schema, Sort
from pyrelay.infer.objects import below_numba, is_constant_object, loaded_classes
from pyrelay.infer.structure import Identity
from pyrelay.ir.types import DType, TensorType


class NoDescriptionError(Exception):
    """An object that means something in this process only."""


_ATOMS = (type(None), bool, int, str, bytes, type(...), type(NotImplemented))

#: Of a class: what is made anew for each, or tells nothing.
_UNTOLD = frozenset((
    "__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl",
    "__firstlineno__", "__pyrelay_derivatives__", "_member_map_", "_value2member_map_",
))  # fmt: skip

#: Records in keys of arguments.
_SORTS: tuple[Any, ...] = (Schema, TensorType, *typing.get_args(Sort))

_DESCRIPTORS = (
    types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType,
    types.GetSetDescriptorType, types.MemberDescriptorType,
)  # fmt: skip


def is_versioned(module: str | None) -> bool:
    """Whether a module is Python's, NumPy's or pyrelay's own: its version decides its contents."""
    return module is not None and _is_versioned(module.partition(".")[0])


@functools.cache
def _is_versioned(name: str) -> bool:
    """The same for a package; a user's file may well have the name of a module of Python's."""
    if name in ("numpy", "pyrelay", *sys.builtin_module_names):
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    home = os.path.dirname(os.path.abspath(os.__file__))
    if name not in sys.stdlib_module_names or not isinstance(file, str):
        return False
    path = os.path.abspath(file)
    return path.startswith(home + os.sep) and "site-packages" not in path


def importable(value: Any) -> tuple[str, str] | None:
    """Module and qualified name under which an object is found; None if it is not."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if imported(module, name) is value:
        return module, name
    return ("types", name) if vars(types).get(name) is value else None  # NoneType and the like


def imported(module: str, name: str) -> Any:
    """The object that a loaded module has under a qualified name; ABSENT if there is none."""
    found: Any = sys.modules.get(module, ABSENT)
    for part in name.split("."):
        found = getattr(found, part, ABSENT)
    return found


class Description:
    """A digest under construction: `add` objects in order, then ask for the `digest`."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.files: dict[str, int] = {}  # file name -> its number
        self._numbers: dict[int, int] = {}
        self._keep: list[Any] = []
        self._without: set[int] = set()  # ids of those without a description

    def digest(self) -> str:
        """The digest of all that was added."""
        return self.hash.hexdigest()

    def text(self, *parts: object) -> None:
        """Add texts, or things whose `str` says it all."""
        for part in parts:
            data = str(part).encode(errors="surrogatepass")
            self.hash.update(b"%d:" % len(data))
            self.hash.update(data)

    def add(self, value: Any) -> None:
        """Add an object. Raises NoDescriptionError where it has no meaning in another process."""
        if isinstance(value, _ATOMS) and type(value) in _ATOMS:
            self.text(type(value).__name__, repr(value) if type(value) is not str else value)
        elif type(value) is float:
            self.text("float", value.hex())
        elif type(value) is complex:
            self.text("complex", value.real.hex(), value.imag.hex())
        elif value is ABSENT:
            self.text("absent")
        elif type(value) is Identity:
            self.text("identity")
            self.add(value.value)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, DType):
            self.text("dtype", value.name)
        elif isinstance(value, _SORTS):
            self.text(type(value).__name__)
            self.add_all(getattr(value, name) for name in type(value).__match_args__)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, (np.generic, np.dtype, slice, range, frozenset)):
            self._constant(value)
        elif type(value) is tuple:
            self.text("tuple", len(value))
            self.add_all(value)
        else:
            self._object(value)

    def add_all(self, values: Iterable[Any]) -> None:
        """Add objects in order."""
        for value in values:
            self.add(value)

    def member(self, owner: Any, name: str, value: Any) -> None:
        """Add what an object, or a module's namespace, has under a name."""
        home = owner.get("__name__") if isinstance(owner, dict) else getattr(owner, "__name__", "")
        of_c = isinstance(value, (types.BuiltinFunctionType, np.ufunc)) or (
            not isinstance(value, type) and type(value).__module__ == "numpy"
        )
        if of_c and isinstance(home, str) and is_versioned(home):
            own = getattr(value, "__name__", "")
            self.text("member", home, name, type(value).__qualname__, own)
        else:
            self.add(value)

    def _module(self, value: types.ModuleType) -> None:
        root = sys.modules.get(value.__name__.partition(".")[0])
        self.text("module", value.__name__, getattr(root, "__version__", ""))

    # -- objects with an identity ------------------------------------------------------------------

    def _object(self, value: Any) -> None:
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if number < len(self._keep):
            if id(value) in self._without:
                raise NoDescriptionError(f"{value!r} cannot be described")
            self.text("again", number)
            return
        self._keep.append(value)
        try:
            self._fresh(value)
        except NoDescriptionError:
            self._without.add(id(value))
            raise

    def _fresh(self, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif _pyrelay(value):
            kind, function, options = value.__pyrelay__
            self.text("pyrelay", kind, getattr(value, "device", None), sorted(options))
            self.add(function)
            self.add_all(options[name] for name in sorted(options))
        else:
            self._other(value)

    def _constant(self, value: Any) -> None:
        match value:
            case np.generic():
                self.text("scalar", value.dtype.str, value.tobytes().hex())
            case np.dtype():
                self.text("dtype", value.str, value.descr)
            case slice():
                self.text("slice")
                self.add_all((value.start, value.stop, value.step))
            case range():
                self.text("range", value)
            case frozenset():
                self.text("frozenset")
                self.add_all(sorted(value, key=lambda each: (type(each).__name__, repr(each))))

    def _other(self, value: Any) -> None:
        match value:
            case enum.Enum():
                self.text("enum", value.name)
                self.add(type(value))
                self.inner(value.value)
            case types.MethodType():
                self.text("method")
                self.add_all((value.__func__, value.__self__))
            case operator.itemgetter() | operator.attrgetter() | operator.methodcaller():
                self.text("getter", type(value).__name__)
                self.add_all(value.__reduce__()[1])
            case functools.partial():
                self.text("partial", sorted(value.keywords))
                self.add_all((value.func, value.args))
                self.add_all(value.keywords[name] for name in sorted(value.keywords))
            case Declaration():
                self.text("Tensor", value)
            case property():
                self.text("property")
                self.add_all((value.fget, value.fset, value.fdel))
            case staticmethod() | classmethod():
                self.text(type(value).__name__)
                self.add(value.__func__)
            case functools.cached_property():
                self.text("cached property", value.attrname)
                self.add(value.func)
            case dataclasses.Field():
                self.text("field", value.name, value.init, value.kw_only)
                self.inner(value.default)
                self.inner(value.default_factory)
            case _:
                self._unlike(value)

    def _unlike(self, value: Any) -> None:
        """What is neither a function, a class nor a constant of one of the usual classes."""
        streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
        stream = next((name for name, each in streams.items() if each is value), None)
        place = importable(value)
        owner = getattr(value, "__self__", None)
        if stream is not None:
            self.text("stream", stream)
        elif isinstance(value, loaded_classes("logging", "Logger")):
            self.text("logger", getattr(value, "name", ""))
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            self.text("namedtuple", len(value))
            self.add(type(value))
            self.add_all(value)
        elif hasattr(value, "cache_parameters") and hasattr(value, "__wrapped__"):
            self.text("cached", sorted(value.cache_parameters().items()))
            self.add(value.__wrapped__)
        elif (function := below_numba(value)) is not None:
            self.text("of numba", type(value).__qualname__)
            self.add(function)
        elif place is not None and is_versioned(place[0]):
            self.text("imported", *place)
        elif typing.get_origin(value) is not None:  # of an annotation
            self.text("of", len(typing.get_args(value)))
            for each in (typing.get_origin(value), *typing.get_args(value)):
                self.inner(each)
        elif isinstance(value, np.ufunc) and (home := _home_of(value)) is not None:
            self.text("ufunc", value.__name__, home.__name__)
        elif isinstance(value, _DESCRIPTORS):
            self.text("descriptor", getattr(value, "__name__", ""))
            self.add(value.__objclass__)
        elif type(value) is types.BuiltinMethodType and owner is not None:
            self.text("bound", value.__qualname__)
            self.add(owner)
        elif place is not None and not isinstance(value, type):
            root = sys.modules.get(place[0].partition(".")[0])
            version = getattr(root, "__version__", None)
            if version is None:
                raise NoDescriptionError(f"{value!r} is of a module without a version")
            self.text("imported", *place, version)
        elif not is_constant_object(value):
            self.text("an object")
            self.add(type(value))
        else:
            raise NoDescriptionError(f"{value!r} cannot be described")

    def inner(self, value: Any) -> None:
        """Add what a program may read only under a guard of its own: it may lack a description."""
        try:
            self.add(value)
        except NoDescriptionError:
            self.text("unknown", type(value).__qualname__)

    # -- functions and classes ---------------------------------------------------------------------

    def _function(self, value: types.FunctionType) -> None:
        if is_versioned(value.__module__) and importable(value) is not None:
            self.text("imported", value.__module__, value.__qualname__)
            return
        self.text("function", value.__module__, value.__qualname__)
        self._code(value.__code__)
        lines = _lines(value)
        self.text(len(lines), *lines)
        self.inner(value.__defaults__)
        for each in (value.__kwdefaults__, annotations_of(value), value.__dict__):
            self.text(len(each or ()))
            for name, item in (each or {}).items():
                self.text(name)
                self.inner(item)
        for cell in value.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not set yet
                self.text("empty")
            else:
                self.inner(content)

    def _code(self, code: types.CodeType) -> None:
        number = self.files.setdefault(code.co_filename, len(self.files))
        counts = (
            code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags,
            code.co_firstlineno,
        )  # fmt: skip
        self.text("code", number, code.co_qualname, *counts)
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self.text(len(names), *names)
        for data in (code.co_code, code.co_linetable, code.co_exceptiontable):
            self.text(data.hex())
        self.add(code.co_consts)

    def _class(self, value: type) -> None:
        place = importable(value)
        if place is not None and is_versioned(place[0]):
            self.text("imported", *place)
            return
        if not value.__flags__ & 1 << 9:  # of a C library
            raise NoDescriptionError(f"{value!r} is a class of a library")
        self.text("class", value.__module__, value.__qualname__)
        self.add_all((type(value), *value.__bases__))
        for name, item in vars(value).items():
            if name not in _UNTOLD:
                self.text(name)
                self.inner(item if not isinstance(item, (dict, types.MappingProxyType))
                            else tuple(item.items()))  # fmt: skip


def described(values: Sequence[Any]) -> str:
    """The digest of some objects. Raises NoDescriptionError where one has none."""
    made = Description()
    made.add_all(values)
    return made.digest()


def _pyrelay(value: Any) -> bool:
    return hasattr(type(value), "__pyrelay__") or "__pyrelay__" in getattr(value, "__dict__", ())


def _home_of(ufunc: np.ufunc) -> types.ModuleType | None:
    """The module that has a ufunc under its name: ufuncs themselves do not tell."""
    homes = (np, sys.modules.get("scipy.special"))
    return next((m for m in homes if getattr(m, ufunc.__name__, None) is ufunc), None)


def _lines(function: types.FunctionType) -> list[str]:
    """The text of a function, as far as it can be found: comments stand in messages, too."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    return lines[code.co_firstlineno - 1 : last]


__all__ = [
    "Description", "NoDescriptionError", "described", "importable", "imported", "is_versioned",
]  # fmt: skip
