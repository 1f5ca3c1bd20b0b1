"""Nodes that a program gives back, made by native code.

In: a schema, columns, and the nodes that exist already. Out: what gives the object of a place, as
`infer.nodes.pools.Unpacker` does, or None for schemas with objects that only Python can make.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import types as python_types
from array import array
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyrelay.devices.runtime import packing_fields as F  # noqa: N812
from pyrelay.devices.runtime.entry import numpy_function
from pyrelay.devices.runtime.library import trees
from pyrelay.devices.runtime.packing import tables_of
from pyrelay.infer.in_python.entries import is_entries
from pyrelay.infer.in_python.fixed_lists import is_fixed
from pyrelay.infer.in_python.nested import standing_for
from pyrelay.infer.nodes.datatypes import MOST_SCHEMAS, NO_NODE, Schema, is_anonymous
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
    for kind in schema.known():
        if not _is_made_plainly(schema.classes[kind], list(schema.of(kind))):
            return None
    tables = tables_of(schema)
    if tables is None or tables.holds_arrays:
        return None
    for name, dtype in tables.columns():
        column = columns[name]
        if column.dtype != dtype or column.ndim != 1 or not column.flags.c_contiguous:
            return None
    for name in tables.arrays:
        texts = columns[name]
        if texts.dtype != np.int64 or texts.ndim != 2 or not texts.flags.c_contiguous:
            return None
    return _Unpacker(tables, columns, given)


class _Unpacker:
    """Nodes made so far, and the record that native code makes more with."""

    def __init__(
        self, tables: Any, columns: Mapping[str, np.ndarray[Any, Any]], given: Packed | None
    ) -> None:
        known = [] if given is None else given.objects
        number = len(tables.schema.classes)
        self.known = [known[k] if k < len(known) else [] for k in range(number)]
        self.made: list[list[Any]] = []
        self.firsts: list[int] = []  # of the states of each kind
        words, starts, members = _template(tables)
        counts = [
            min((len(columns[name]) for name in group if name in columns), default=_UNKNOWN_COUNT)
            for group in members
        ]
        nodes: list[int] = []
        states = 0
        for kind, objects in enumerate(self.known):
            total = counts[tables.own[kind]] if kind in tables.own else 0
            count = 0 if total == _UNKNOWN_COUNT else max(total - len(objects), 0)
            self.made.append([None] * count)
            self.firsts.append(states)
            nodes += id(objects), len(objects), id(self.made[-1]), count, states
            states += count
        self.states = np.zeros(states, np.uint8)
        first = _address(self.states)
        record = self.record = words[:]
        self.address, _ = record.buffer_info()
        for place in range(4, len(nodes), F.Nodes.WORDS):
            nodes[place] += first
        columns_at, groups_at, nodes_at, texts_at = starts
        self.stack = bytearray()
        record[_PARTS] = array("q", [self.address + F.WORD * start for start in starts])
        record[F.Walk.STACK_OWNER // F.WORD] = id(self.stack)
        record[columns_at : groups_at : F.Column.WORDS] = array("q", [
            _address(columns[name]) if name in columns else 0 for name in tables.numbers
        ])
        record[groups_at : nodes_at : F.Group.WORDS] = array("q", counts)
        record[nodes_at:texts_at] = array("q", nodes)
        for k, name in enumerate(tables.arrays):
            own = texts_at + k * F.Arrays.WORDS
            record[own : own + 2] = array("q", [_address(columns[name]), columns[name].shape[1]])
        self.keep = tables, columns

    def __call__(self, place: Place) -> Any:
        kind, row = place
        if kind == NO_NODE:
            return None
        objects = self.known[kind]
        if 0 <= row < len(objects):
            return objects[row]
        own = row - len(objects)
        if not 0 <= own < len(self.made[kind]):
            return None
        if self.states[self.firsts[kind] + own] != _MADE:
            self.record[_ROOTS : _ROOTS + 2] = array("q", (kind, row))
            if not _walk()(self.address):
                return None
        return self.made[kind][own]

    def items(self, kinds: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> list[Any] | None:
        """The nodes of many places, int64; None where one cannot be made."""
        places = [np.ascontiguousarray(each, np.int64) for each in (kinds, rows)]
        made: list[Any] = [None] * len(kinds)
        found = _walk_all()(self.address, *map(_address, places), len(made), id(made))
        return made if found else None


_ROOTS = F.Walk.ROOTS // F.WORD
_PARTS = slice(F.Walk.COLUMNS // F.WORD, F.Walk.ARRAYS // F.WORD + 1)


def _address(array: np.ndarray[Any, Any]) -> int:
    """Where the elements of an array are."""
    found: int = array.__array_interface__["data"][0]
    return found


@functools.lru_cache(MOST_SCHEMAS)
def _template(tables: Any) -> tuple[array[int], tuple[int, ...], list[list[str]]]:
    """The record of a call without what is of one call, where its parts begin, and the columns of
    each group."""
    words = [0] * F.Walk.WORDS
    for place, value in (
        (F.Walk.KINDS, _address(tables.tables[-1])),
        (F.Walk.KIND_COUNT, len(tables.schema.classes)), (F.Walk.STACK_SIZE, _FIRST_STACK),
        (F.Walk.NONE, id(None)), (F.Walk.TRUE, id(True)), (F.Walk.FALSE, id(False)),
        (F.Walk.TUPLE, id(tuple)), (F.Walk.NEW_OBJECT, id(_NEW_OBJECT)),
        (F.Walk.NEW_SCALAR, numpy_function("PyArray_Scalar")),
    ):  # fmt: skip
        words[place // F.WORD] = value
    starts = [len(words)]
    for group in tables.groups:
        for dtype in group.values():
            words += 0, dtype.itemsize, 0
    starts.append(len(words))
    for count, width in (
        (len(tables.groups), F.Group.WORDS), (len(tables.schema.classes), F.Nodes.WORDS),
    ):
        words += [0] * (count * width)
        starts.append(len(words))
    words += [0] * (len(tables.arrays) * F.Arrays.WORDS)
    members = [[*group] for group in tables.groups]
    for name, (home, _) in tables.arrays.items():
        members[home].append(name)
    return array("q", words), tuple(starts), members


_NEW_OBJECT = object.__new__


def _is_made_plainly(cls: Any, names: list[str]) -> bool:
    """Whether making an object and setting its fields runs no code of the user's."""
    if is_anonymous(cls) or is_entries(cls) or is_fixed(cls):
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
