"""The records of a compiled program as bytes and back.

In: pyrelay's own records (a `Binding`, an `EncodedPlan`) and the `Places` of the objects they refer
to. Out: bytes; from bytes the records again, over the objects of this process.

Python's `pickle` writes them, with what is not pyrelay's, NumPy's or plain data replaced by a
reference: a path, a module, the name of an op. Reading can run what the bytes say, as calling the
machine code that lies beside them does: the cache reads only what nobody but the user can write.
"""

from __future__ import annotations

import io
import pickle
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay.errors import SourceText
from pyrelay.infer.guards import ABSENT
from pyrelay.infer.in_python.entries import entries_class, is_entries
from pyrelay.infer.in_python.fixed_lists import fixed_class, is_fixed
from pyrelay.infer.nodes.datatypes import anonymous_class, is_anonymous
from pyrelay.ir.op import OPS, Op
from pyrelay.ir.types import DTYPES, DType
from pyrelay.lower.planning.encoded import Kernel
from pyrelay.records import dataclass
from pyrelay.store.descriptions import importable, imported, is_versioned
from pyrelay.store.places import Places


class NotStorableError(Exception):
    """A record refers to an object that another process cannot find."""


_DATA = (
    type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, slice,
    range, type(...), np.ndarray, np.generic, np.dtype,
)  # fmt: skip
_OWN = ("pyrelay", "numpy")


_INLINE = (type(None), bool, str, bytes, int, float, complex, list, dict, np.ndarray)


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, places: Places, files: Sequence[str]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.places = places
        self.files = {name: number for number, name in enumerate(files)}
        self.nodes: dict[type, int] = {}  # classes of tuples that are nodes

    def persistent_id(self, value: Any) -> Any:
        if type(value) in _INLINE:
            return None
        match value:
            case _File():
                return "file", value.number
            case Op():
                return "op", value.name
            case DType():
                return "dtype", value.name
            case type() if is_anonymous(value):
                number = self.nodes.setdefault(value, len(self.nodes))
                return "nodes", number, len(vars(value)["_fields"])
            case type() if is_entries(value):
                return "entries", vars(value)["labels"]
            case type() if is_fixed(value):
                return "fixed", len(vars(value)["names"]), vars(value)["site"]
            case type() | types.FunctionType() if _root(value) in _OWN:
                return None
            case types.ModuleType():
                return "module", value.__name__
        if value is ABSENT:
            return ("absent",)
        path = self.places.path(value)
        if path is not None:
            return "at", path
        if not _is_record(value) and not isinstance(value, _DATA):
            place = importable(value)
            if place is not None and is_versioned(place[0]) and _root(value) not in _OWN:
                return "import", *place
        return None

    def reducer_override(self, value: Any) -> Any:
        if type(value) is Kernel:  # its code and spans are for people and other devices
            return Kernel, (value.name, value.source)
        if type(value) is SourceText and value.filename in self.files:
            return SourceText, (_File(self.files[value.filename]), value.lines, value.first_line)
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
            if _root(value) in _OWN or value is getattr:
                return NotImplemented
            raise NotStorableError(f"{value!r}")
        if not (_is_record(value) or isinstance(value, _DATA)):
            raise NotStorableError(f"{type(value).__qualname__} {value!r}")
        return NotImplemented


@dataclass(frozen=True, slots=True)
class _File:
    """The name of a file of the user's, which may be another in another process."""

    number: int


def _root(value: Any) -> str:
    """The package of a class or function."""
    return (getattr(value, "__module__", None) or "").partition(".")[0]


def _is_record(value: Any) -> bool:
    """Whether this is an instance of a class of pyrelay, or a method of one."""
    if isinstance(value, types.MethodType):
        value = value.__self__
    return type(value).__module__.startswith("pyrelay.")


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, places: Places, files: Sequence[str]) -> None:
        super().__init__(file)
        self.places, self.files = places, files
        self.nodes: dict[int, type] = {}

    def persistent_load(self, reference: Any) -> Any:
        match reference:
            case ("at", path):
                return self.places.at(path)
            case ("op", name):
                import pyrelay.ops  # noqa: F401 -- ops register themselves

                return OPS[name]
            case ("file", number):
                return self.files[number]
            case ("dtype", name):
                return DTYPES[name]
            case ("nodes", number, length):
                if number not in self.nodes:
                    self.nodes[number] = anonymous_class(length)
                return self.nodes[number]
            case ("entries", labels):
                return entries_class(*labels)
            case ("fixed", count, site):
                return fixed_class(count, site)
            case ("module", name):
                return sys.modules[name]
            case ("import", module, name):
                return self._imported(module, name)
            case ("absent",):
                return ABSENT
        raise pickle.UnpicklingError(f"no reference is called {reference!r}")

    def _imported(self, module: str, name: str) -> Any:
        if module.startswith("pyrelay."):
            __import__(module)
        found = imported(module, name)
        if found is ABSENT or not is_versioned(module):
            raise pickle.UnpicklingError(f"{module} has no {name}")
        return found


def to_bytes(records: Any, places: Places, files: Sequence[str]) -> bytes:
    """The records as bytes.

    files: names that count as their numbers. Raises NotStorableError where the records refer to an
    object without a path.
    """
    file = io.BytesIO()
    try:
        _Writer(file, places, files).dump(records)
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
        raise NotStorableError(str(error)) from error
    return file.getvalue()


def from_bytes(data: bytes, places: Places, files: Sequence[str]) -> Any:
    """The records that `to_bytes` wrote.

    Raises an error of `pickle`'s, LookupError or AttributeError on bytes that are something else,
    and where a path leads nowhere.
    """
    return _Reader(io.BytesIO(data), places, files).load()


__all__ = ["NotStorableError", "from_bytes", "to_bytes"]
