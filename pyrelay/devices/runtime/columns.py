"""What reads a list of a known structure into arrays, in native code (`columns_native.py`).

In: the key of its items, as `infer.containers.columns` makes them. Out: a function from a list to
the tuple of its arrays, None where that or its items are of another key; or no function, where
native code cannot read such items, and Python has to.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay.devices.runtime import columns_fields as F  # noqa: N812
from pyrelay.devices.runtime.entry import Record, c_function, numpy_function, one_argument
from pyrelay.devices.runtime.library import lists
from pyrelay.devices.runtime.packing_fields import WORD
from pyrelay.ir import types

Key = tuple[Any, ...]

_PYTHON = {
    "int": (int, np.dtype(np.int64)), "float": (float, np.dtype(np.float64)),
    "bool": (bool, np.dtype(bool)), "complex": (complex, np.dtype(np.complex128)),
}  # fmt: skip
_WORDS = np.dtype(np.int64)


class _UnsupportedError(Exception):
    """The native code cannot read items of a key."""


def reader(
    key: Key, *, apart: bool = False
) -> Callable[[list[Any]], tuple[Any, ...] | None] | None:
    """What reads lists of items of a key. apart: no list is given that has one
    list in two places; else none is read in which a list has other references."""
    made: list[list[int]] = []
    found: list[tuple[np.dtype[Any], int, int]] = []
    kept: list[Any] = []
    of_lists = key[0] == "list"
    if of_lists:
        found.append((_WORDS, -1, -1))
    try:
        made.append([])
        _fill(key[1] if of_lists else key, 0, made, found, kept, 0 if of_lists else -1)
    except _UnsupportedError:
        return None
    if len(found) > F.MOST_COLUMNS:
        return None
    sorts = np.array(made, np.int64)
    is_tuple = sorts[:, 0] == F.SORTS.index("tuple")
    sorts[is_tuple, 1] = sorts.ctypes.data + sorts[is_tuple, 1] * sorts.strides[0]
    rows = [[id(dtype), dtype.itemsize, *rooms] for dtype, *rooms in found]
    columns = np.array(rows, np.int64)
    texts = any(row[0] == F.SORTS.index("text") for row in made)
    head = np.zeros(F.Head.WORDS, np.int64).view(Record)
    different = F.APART if apart else F.ALONE
    for place, value in (
        (F.Head.SORT, sorts.ctypes.data), (F.Head.LISTS, different if of_lists else 0),
        (F.Head.MEASURED, int(texts)),
        (F.Head.COLUMN_COUNT, len(found)), (F.Head.COLUMNS, columns.ctypes.data),
        (F.Head.NDARRAY, id(np.ndarray)), *_known(),
    ):  # fmt: skip
        head[place // WORD] = value
    head.owners = sorts, columns, kept, found
    return c_function(head, _method("pyrelay_columns"))


def _fill(
    key: Key, at: int, made: list[list[int]], found: list[tuple[np.dtype[Any], int, int]],
    kept: list[Any], room: int,
) -> None:
    """Enter the row of an item, those of its parts, and their columns. Raises _UnsupportedError.

    room: 0, that of the items of lists, where they are such, else -1.
    """
    column = len(found)
    match key:
        case ("number", name):
            cls, dtype = _PYTHON[name]
            made[at] = [F.SORTS.index(name), column, id(cls), 0]
            found.append((dtype, room, -1))
        case ("scalar", name):
            dtype = types.DTYPES[name].numpy
            if dtype.kind not in "biufc" or dtype.itemsize not in (1, 2, 4, 8, 16):
                raise _UnsupportedError
            kind = "pair" if dtype.itemsize == 16 else f"raw{8 * dtype.itemsize}"
            made[at] = [F.SORTS.index(kind), column, id(dtype.type), 0]
            found.append((dtype, room, -1))
        case ("letter",):
            made[at] = [F.SORTS.index("letter"), column, id(str), 0]
            found.append((_WORDS, room, -1))
        case ("text",):
            own = 1 + sum(1 for *_, other in found if other >= 0)
            made[at] = [F.SORTS.index("text"), column, id(str), 0]
            found += [(_WORDS, room, -1), (_WORDS, room, own)]
        case ("tuple", cls, *parts):
            kept.append(tuple if cls is None else cls)
            first = len(made)
            made[at] = [F.SORTS.index("tuple"), first, id(kept[-1]), len(parts)]
            made += [[] for _ in parts]
            for k, part in enumerate(parts):
                _fill(part, first + k, made, found, kept, room)
        case _:
            raise _UnsupportedError


@functools.cache
def single() -> Callable[[Any], bool | None]:
    """What gives True for a list that alone refers to each of its items, else None."""
    head = np.zeros(F.Head.WORDS, np.int64).view(Record)
    for place, value in _known():
        head[place // WORD] = value
    return c_function(head, _method("pyrelay_single"))


def _known() -> tuple[tuple[int, int], ...]:
    """Words that every head has."""
    return (
        (F.Head.NEW_ARRAY, numpy_function("PyArray_NewFromDescr")), (F.Head.NONE, id(None)),
        (F.Head.TRUE, id(True)), (F.Head.LIST, id(list)),
    )  # fmt: skip


@functools.cache
def _method(name: str) -> ctypes.Structure:
    """The one definition that all functions of a kind share; CPython keeps its address."""
    return one_argument(lists()[name], b"Reads lists.")
