"""What makes lists of a known structure from arrays, in native code (`items_native.py`).

In: the tree of an item (`infer.result_trees`). Out: a function from some of the arrays that have a
row for each item, and how many items there are, to the list of these, None where an array is not as
the tree says; or no function, where native code makes no such items, and Python has to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay.devices.runtime import items_fields as F  # noqa: N812
from pyrelay.devices.runtime.entry import Record, c_function, many_arguments, numpy_function
from pyrelay.devices.runtime.library import lists
from pyrelay.devices.runtime.packing_fields import WORD
from pyrelay.infer.containers.code_points import from_items
from pyrelay.infer.result_trees import (
    CaseResult,
    ConstantResult,
    GrownResult,
    LeafResult,
    NodeResult,
    ResultTree,
)
from pyrelay.records import dataclass

_WORDS = np.dtype(np.int64)
_PYTHON = {"i": "int", "f": "float", "b": "bool", "c": "complex"}


class UnsupportedError(Exception):
    """Native code makes no items of a tree."""


def writer(item: ResultTree) -> tuple[Callable[..., list[Any] | None], list[int]] | None:
    """What makes lists of such items, and of which columns; None if native code does not."""
    tables = _Tables()
    try:
        tables.enter(item)
    except UnsupportedError:
        return None
    return c_function(tables.head(), _method()), list(tables.columns)


@dataclass
class _Tables:
    """Rows of the tables, as items are gone through."""

    sorts: list[list[int]] = field(default_factory=list)
    moved: list[tuple[int, int]] = field(default_factory=list)  # words that name a row of them
    columns: dict[int, tuple[np.dtype[Any], tuple[int, ...]]] = field(default_factory=dict)
    rooms: int = 0
    kept: list[Any] = field(default_factory=list)

    def enter(self, item: ResultTree) -> None:
        """Enter an item. Raises UnsupportedError."""
        self.sorts.append([])
        self._fill(item, 0, None, ())
        if len(self.columns) > F.MOST_COLUMNS or self.rooms > F.MOST_COLUMNS:
            raise UnsupportedError

    def _fill(
        self, tree: ResultTree, at: int, names: Sequence[int] | None, rooms: tuple[int, ...]
    ) -> None:
        """The row of an item and those of its parts. names: which columns its numbers are, None if
        these themselves. rooms: those of the axes of its columns."""
        found: tuple[int, ...]
        match tree:
            case LeafResult(index, ty) if not ty.shape:
                dtype = ty.dtype.numpy
                column = self._column(index, names, dtype, rooms)
                if ty.weak:
                    name, found = _PYTHON[dtype.kind], (column,)
                elif dtype.kind in "biufc":
                    name, found = "numpy", (column, id(dtype), dtype.itemsize)
                else:
                    raise UnsupportedError
            case ConstantResult(value):
                self.kept.append(value)
                name, found = "constant", (id(value),)
            case NodeResult("call", made, _, (GrownResult((row,), count, LeafResult()),), key) if (
                made is from_items and key < 0
            ):
                room = self._room(rooms)
                sizes = self._column(count, names, _WORDS, rooms)
                codes = self._column(row, names, _WORDS, (*rooms, room))
                name, found = "text", (sizes, codes, room)
            case NodeResult("tuple", None, _, children, key) if key < 0:
                name, found = "tuple", self._parts(children, at, 1, names, rooms)
            case NodeResult("list", _, _, children, key) if key < 0:
                name, found = "list", self._parts(children, at, 1, names, rooms)
            case NodeResult("dict", _, keys, children, key) if key < 0:
                addresses = np.array([id(k) for k in keys], np.int64)
                self.kept += [keys, addresses]
                parts = self._parts(children, at, 1, names, rooms)
                name, found = "dict", (*parts, addresses.ctypes.data)
            case GrownResult(inner, count, each, key) if key < 0:
                room = self._room(rooms)
                sizes = self._column(count, names, _WORDS, rooms)
                own = inner if names is None else [names[k] for k in inner]
                first = len(self.sorts)
                self.sorts.append([])
                self.moved.append((at, 2))
                self._fill(each, first, own, (*rooms, room))
                name, found = "items", (sizes, first, room)
            case CaseResult(tag, cases):
                column = self._column(tag, names, _WORDS, rooms)
                name, found = "choice", (column, *self._parts(cases, at, 2, names, rooms))
            case _:
                raise UnsupportedError
        self.sorts[at] = [F.SORTS.index(name), *found, *[0] * (F.Sort.WORDS - 1 - len(found))]

    def _parts(
        self, trees: Sequence[ResultTree], at: int, word: int, names: Sequence[int] | None,
        rooms: tuple[int, ...],
    ) -> tuple[int, int]:  # fmt: skip
        """Enter parts; the number of the first, and how many there are."""
        first = len(self.sorts)
        self.sorts += [[] for _ in trees]
        self.moved.append((at, word))
        for k, tree in enumerate(trees):
            self._fill(tree, first + k, names, rooms)
        return first, len(trees)

    def _room(self, rooms: tuple[int, ...]) -> int:
        if len(rooms) + 1 >= F.MOST_AXES:
            raise UnsupportedError
        self.rooms += 1
        return self.rooms - 1

    def _column(
        self, index: int, names: Sequence[int] | None, dtype: np.dtype[Any], rooms: tuple[int, ...]
    ) -> int:
        """The number of a column. Raises UnsupportedError where it is met as two."""
        own = index if names is None else names[index]
        if self.columns.setdefault(own, (dtype, rooms)) != (dtype, rooms):
            raise UnsupportedError
        return list(self.columns).index(own)

    def head(self) -> Record:
        """The words that native code reads."""
        sorts = np.array(self.sorts, np.int64)
        for row, word in self.moved:
            sorts[row, word] = sorts.ctypes.data + sorts[row, word] * sorts.strides[0]
        rows = [
            [id(dtype), 1 + len(rooms), *rooms, *[-1] * (F.MOST_AXES - len(rooms))]
            for dtype, rooms in self.columns.values()
        ]
        columns = np.array(rows or [[0] * F.Column.WORDS], np.int64)
        head = np.zeros(F.Head.WORDS, np.int64).view(Record)
        for place, value in (
            (F.Head.SORT, sorts.ctypes.data), (F.Head.COLUMN_COUNT, len(rows)),
            (F.Head.COLUMNS, columns.ctypes.data), (F.Head.NDARRAY, id(np.ndarray)),
            (F.Head.NEW_SCALAR, numpy_function("PyArray_Scalar")), (F.Head.NONE, id(None)),
            (F.Head.TRUE, id(True)), (F.Head.FALSE, id(False)),
        ):  # fmt: skip
            head[place // WORD] = value
        head.owners = sorts, columns, self.kept, tuple(self.columns.values())
        return head


@functools.cache
def _method() -> Any:
    """The one definition that all functions share; CPython keeps its address."""
    return many_arguments(lists()["pyrelay_items"], b"Makes lists.")
