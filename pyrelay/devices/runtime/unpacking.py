"""Nodes that a program gives back, made by native code.

In: a schema, columns, and the nodes that exist already. Out: what gives the object of a place, as
`infer.nodes.pools.Unpacker` does, or None for schemas with objects that only Python can make.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import types as python_types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyrelay.devices.runtime import packing_fields as F  # noqa: N812
from pyrelay.devices.runtime.entry import numpy_function
from pyrelay.devices.runtime.library import trees
from pyrelay.devices.runtime.packing import is_layout_known, tables_of
from pyrelay.infer.in_python.entries import is_entries
from pyrelay.infer.in_python.nested import standing_for
from pyrelay.infer.nodes.datatypes import NO_NODE, Schema, is_anonymous
from pyrelay.infer.nodes.pools import NativeUnpacker, Packed, Place

_UNKNOWN_COUNT = 1 << 62
_MADE = 2
_FIRST_STACK = 256


def unpacker(
    schema: Schema, columns: Mapping[str, np.ndarray[Any, Any]], given: Packed | None
) -> NativeUnpacker | None:
    """What makes the nodes of a pool whose first rows are the given nodes.

    It gives None where it cannot make a node, such as one that contains itself.
    """
    if not is_layout_known():
        return None
    tables = tables_of(schema)
    if tables is None or tables.arrays:
        return None
    for kind in schema.known():
        if not _is_made_plainly(schema.classes[kind], list(schema.of(kind))):
            return None
    for name, dtype in tables.columns():
        column = columns[name]
        if column.dtype != dtype or column.ndim != 1 or not column.flags.c_contiguous:
            return None
    return _Unpacker(tables, columns, given)


class _Unpacker:
    """Nodes made so far, and the record that native code makes more with."""

    def __init__(
        self, tables: Any, columns: Mapping[str, np.ndarray[Any, Any]], given: Packed | None
    ) -> None:
        schema = tables.schema
        known = [] if given is None else given.objects
        self.known = [known[k] if k < len(known) else [] for k in range(len(schema.classes))]
        self.made: list[list[Any]] = []
        self.states: list[np.ndarray[Any, Any]] = []
        counts = [
            min((len(columns[name]) for name in group if name in columns), default=_UNKNOWN_COUNT)
            for group in tables.groups
        ]
        nodes = []
        for kind, objects in enumerate(self.known):
            total = counts[tables.own[kind]] if kind in tables.own else 0
            count = 0 if total == _UNKNOWN_COUNT else max(total - len(objects), 0)
            self.made.append([None] * count)
            self.states.append(np.zeros(count, np.uint8))
            states = self.states[-1].ctypes.data
            nodes.append([id(objects), len(objects), id(self.made[-1]), count, states])
        columns_table = [
            [columns[name].ctypes.data if name in columns else 0, dtype.itemsize, 0]
            for group in tables.groups for name, dtype in group.items()
        ]
        groups = [[count, 0, 0, 0, 0] for count in counts]
        parts = [np.array(p, np.int64) for p in (columns_table, groups, nodes)]
        self.stack = bytearray()
        self.walk = np.zeros(F.Walk.WORDS, np.int64)
        kinds = tables.tables[-1]
        for place, value in (
            (F.Walk.KINDS, kinds.ctypes.data), (F.Walk.KIND_COUNT, len(schema.classes)),
            (F.Walk.COLUMNS, parts[0].ctypes.data), (F.Walk.GROUPS, parts[1].ctypes.data),
            (F.Walk.LISTS, parts[2].ctypes.data), (F.Walk.STACK_SIZE, _FIRST_STACK),
            (F.Walk.STACK_OWNER, id(self.stack)), (F.Walk.NONE, id(None)),
            (F.Walk.TRUE, id(True)), (F.Walk.FALSE, id(False)), (F.Walk.TUPLE, id(tuple)),
            (F.Walk.NEW_OBJECT, id(_NEW_OBJECT)),
            (F.Walk.NEW_SCALAR, numpy_function("PyArray_Scalar")),
        ):  # fmt: skip
            self.walk[place // F.WORD] = value
        self.keep = tables, columns, parts
        self.address = self.walk.ctypes.data

    def __call__(self, place: Place) -> Any:
        kind, row = place
        if kind == NO_NODE:
            return None
        objects = self.known[kind]
        if 0 <= row < len(objects):
            return objects[row]
        own = row - len(objects)
        if not 0 <= own < len(self.states[kind]):
            return None
        if self.states[kind][own] != _MADE:
            self.walk[F.Walk.ROOTS // F.WORD : F.Walk.ROOTS // F.WORD + 2] = kind, row
            if not _walk()(self.address):
                return None
        return self.made[kind][own]


    def items(self, kinds: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> list[Any] | None:
        """The nodes of many places, int64; None where one cannot be made."""
        places = [np.ascontiguousarray(each, np.int64) for each in (kinds, rows)]
        made: list[Any] = [None] * len(kinds)
        addresses = (each.ctypes.data for each in places)
        return made if _walk_all()(self.address, *addresses, len(made), id(made)) else None


_NEW_OBJECT = object.__new__


def _is_made_plainly(cls: Any, names: list[str]) -> bool:
    """Whether making an object and setting its fields runs no code of the user's."""
    if is_anonymous(cls) or is_entries(cls):
        return True
    if issubclass(cls, tuple) or cls.__new__ is not _NEW_OBJECT or cls in standing_for:
        return False
    for name in names:
        found = inspect.getattr_static(cls, name, None)
        if hasattr(type(found), "__set__") and not isinstance(
            found, python_types.MemberDescriptorType
        ):
            return False
    return True


@functools.cache
def _walk() -> Callable[[int], int]:
    """The native walk; it is called with the interpreter's lock."""
    made: Callable[[int], int] = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(
        trees()["pyrelay_unpack"]
    )
    return made


@functools.cache
def _walk_all() -> Callable[..., int]:
    """The same for the nodes of many places."""
    made: Callable[..., int] = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)(
        trees()["pyrelay_unpack_all"]
    )
    return made


__all__ = ["unpacker"]
