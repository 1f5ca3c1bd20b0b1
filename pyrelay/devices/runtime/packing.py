"""Trees packed by native code, where it knows their schema: all calls but the first.

In: a family of classes and trees. Out: what `infer.nodes.packing.Packer` makes of them, from one
walk in native code (`packing_native.py`), or None where a node is unlike what the family has seen,
and Python has to look.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import types as python_types
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np

from pyrelay.devices.runtime import packing_fields as F  # noqa: N812
from pyrelay.devices.runtime.library import trees, want_trees
from pyrelay.infer.containers.columns import columns_of_texts
from pyrelay.infer.in_python.entries import is_entries
from pyrelay.infer.in_python.fixed_lists import is_fixed
from pyrelay.infer.nodes.datatypes import (
    MOST_SCHEMAS,
    Array,
    Callee,
    Child,
    Choice,
    Constant,
    Family,
    Grows,
    Items,
    Number,
    Schema,
    Sort,
    Struct,
    Text,
)
from pyrelay.infer.nodes.instances import CLASS_KEYS, MANAGED_DICT, class_keys, slots_of, word_at
from pyrelay.infer.nodes.packing import stacked
from pyrelay.infer.nodes.pools import Packed, schema_columns
from pyrelay.infer.structure import Places
from pyrelay.ir import types
from pyrelay.ir.nodes import UNSET

_MOST_SCHEMAS = 4
"""Schemas of a family that are tried, one after the other."""

_MOST_KINDS = 63
_LEAST_ROWS = 64
_FIRST_STACK = 256
_FIRST_TABLE = 64
_IS_OF_3_11 = sys.implementation.name == "cpython" and sys.version_info[:2] == (3, 11)

_PYTHON = {"b": (bool, "bool"), "i": (int, "int"), "f": (float, "float"), "c": (complex, "complex")}
"""Python's class of numbers by the kind of a dtype, and the sort's name."""


def packed(family: Family, trees: list[Any]) -> tuple[Packed, Places] | None:
    """Trees of a family in columns, and where their roots are; None where Python has to look.

    Raises nothing: what is wrong with a tree is for Python to say.
    """
    if not is_layout_known():
        return None
    want_trees()
    for schema in family.schemas[:_MOST_SCHEMAS]:
        tables = tables_of(schema)
        found = tables.packed(family, trees) if tables is not None else None
        if found is not None:
            return found
    return None


# -- tables ----------------------------------------------------------------------------------------


class _UnsupportedError(Exception):
    """The native walk cannot read objects of a class, or fill a column."""


class _Tables:
    """What the native walk is told of a schema."""

    def __init__(self, schema: Schema) -> None:
        """Raises _UnsupportedError."""
        if len(schema.classes) > _MOST_KINDS:
            raise _UnsupportedError
        self.schema = schema
        self.groups: list[dict[str, np.dtype[Any]]] = [{"kind": _WORD, "row": _WORD}]
        #: by path: the group and the sort of what is collected as objects
        self.arrays: dict[str, tuple[int, Array | Text]] = {}
        self._homes: dict[str, int] = {}  # by path: the group of a sequence's items
        own = self.own = dict[int, int]()  # the groups of kinds
        for kind in schema.known():
            own[kind] = self._new_group()
            for name, sort in schema.of(kind).items():
                self._enter(sort, f"{kind}.{name}", own[kind])
        names = [name for group in self.groups for name in group]
        self.numbers = {name: k for k, name in enumerate(names)}
        self.sorts: list[list[int]] = []
        self._moved: list[tuple[int, int]] = []  # rows and words of sorts that name a row of them
        self.fields: list[list[int]] = []
        self.names: list[str] = []  # which must live as long as their addresses are known
        rows = []
        self.keeps_for_good = True
        for kind, cls in enumerate(schema.classes):
            rows.append(self._kind(kind, cls, own.get(kind, 0)))
        sorts, fields = _table(self.sorts, F.Sort), _table(self.fields, F.Field)
        kinds = _table(rows, F.Kind)
        self.tables = sorts, fields, kinds
        for row, word in self._moved:
            sorts[row, word] = sorts.ctypes.data + sorts[row, word] * sorts.strides[0]
        fields[:, 0] = sorts.ctypes.data + fields[:, 0] * sorts.strides[0]
        kinds[:, F.Kind.FIRST // F.WORD] *= fields.strides[0]
        kinds[:, F.Kind.FIRST // F.WORD] += fields.ctypes.data
        self.rooms = [0] * len(self.groups)
        self.template = self._template()

    def _new_group(self) -> int:
        self.groups.append({})
        return len(self.groups) - 1

    def _enter(self, sort: Sort, path: str, group: int) -> None:
        """Enter the columns of a field."""
        into = self.groups[group]
        match sort:
            case Number(ty):
                into[path] = ty.dtype.numpy
            case Array() | Text():
                self.arrays[path] = group, sort
            case Child():
                into.update({f"{path}.kind": _WORD, f"{path}.row": _WORD})
            case Items(_, item):
                into.update({f"{path}.start": _WORD, f"{path}.count": _WORD})
                self._homes[path] = self._new_group()
                self._enter(item, f"{path}[]", self._homes[path])
            case Struct(parts):
                for k, part in enumerate(parts):
                    self._enter(part, f"{path}[{k}]", group)
            case Choice(cases):
                into[f"{path}.case"] = _WORD
                for k, case in enumerate(cases):
                    self._enter(case, f"{path}|{k}", group)
            case Callee() | Grows():
                raise _UnsupportedError

    @property
    def holds_arrays(self) -> bool:
        """Whether nodes hold arrays."""
        return any(isinstance(sort, Array) for _, sort in self.arrays.values())

    def columns(self) -> Iterator[tuple[str, np.dtype[Any]]]:
        """The names and dtypes of the columns of a pool."""
        for group in self.groups[1:]:
            yield from group.items()

    # -- sorts

    def _sort(self, sort: Sort, path: str, at: int) -> None:
        """Fill a row of the table of sorts, and those it needs."""
        found: tuple[Any, ...] = ()
        name = type(sort).__name__.lower()
        match sort:
            case Number(ty):
                name, cls = _number(ty)
                found = self.numbers[path], id(cls), id(ty.dtype.numpy)
            case Constant(value):
                if value is UNSET:  # no attribute
                    raise _UnsupportedError
                found = (id(value),)
            case Child(kinds):
                mask = sum(1 << k for k in kinds)
                found = self.numbers[f"{path}.kind"], mask
            case Items(cls, item):
                inner = self._rows(at, 4, [(item, f"{path}[]")])
                found = self.numbers[f"{path}.start"], id(cls), self._homes[path], inner
            case Struct(parts):
                first = self._rows(at, 1, [(p, f"{path}[{k}]") for k, p in enumerate(parts)])
                found = first, len(parts), id(tuple)
            case Choice(cases):
                first = self._rows(at, 2, [(c, f"{path}|{k}") for k, c in enumerate(cases)])
                found = self.numbers[f"{path}.case"], first, len(cases)
            case Array(dtype, ones):
                if len(ones) > F.MOST_AXES:
                    raise _UnsupportedError
                number = list(self.arrays).index(path)
                found = number, id(types.DTYPES[dtype].numpy), len(ones), id(np.ndarray)
            case Text():
                found = list(self.arrays).index(path), id(str)
        row = (F.SORTS.index(name), *found)
        self.sorts[at] = [*row, *[0] * (F.Sort.WORDS - len(row))]

    def _rows(self, at: int, word: int, inner: Sequence[tuple[Sort, str]]) -> int:
        """Rows for the sorts inside one; the number of the first."""
        first = len(self.sorts)
        self.sorts += [[]] * len(inner)
        self._moved.append((at, word))
        for k, (sort, path) in enumerate(inner):
            self._sort(sort, path, first + k)
        return first

    # -- classes

    def _kind(self, kind: int, cls: type, group: int) -> list[int]:
        """A row of the table of kinds, and those of its fields."""
        if not kind:
            return [id(type(None)), 0, 0, 0, 0, 0]
        if self.schema.fields[kind] is None:
            return [0] * F.Kind.WORDS  # no object has this class
        fields = self.schema.of(kind)
        names = [sys.intern(name) for name in fields]
        met = cls
        if is_fixed(cls):
            reading, places, met = "list", [F.WORD * k for k in range(len(fields))], list
        elif is_entries(cls):
            labels = cls.labels  # type: ignore[attr-defined]
            if not all(type(label) is str for label in labels):
                raise _UnsupportedError
            names = [sys.intern(labels[int(name[1:])]) for name in fields]
            reading, places, met = "row", [0] * len(fields), dict
        else:
            reading, places = _reading(cls, names)
        self.names += names
        # The names of a class's values come with its instances.
        self.keeps_for_good &= reading != "dict" or not _IS_OF_3_11
        first = len(self.fields)
        for (name, sort), own, place in zip(fields.items(), names, places, strict=True):
            at = len(self.sorts)
            self.sorts.append([])
            self._sort(sort, f"{kind}.{name}", at)
            self.fields.append([at, place, id(own)])
        keys = word_at(id(cls) + CLASS_KEYS) if reading == "attributes" else 0
        if reading == "row":  # which of several a dict is, its keys say
            keys = int(sum(map(is_entries, self.schema.classes)) > 1)
        elif reading == "list":
            keys = int(not cls.site)  # type: ignore[attr-defined]
        return [id(met), F.READINGS.index(reading), group, first, len(fields), keys]

    # -- calls

    def _template(self) -> array[int]:
        """The record of a call, without what is of one call."""
        walk = [0] * F.Walk.WORDS
        *_, kinds = self.tables
        for place, value in (
            (F.Walk.KINDS, kinds.ctypes.data), (F.Walk.KIND_COUNT, len(self.schema.classes)),
            (F.Walk.STACK_SIZE, _FIRST_STACK), (F.Walk.TABLE_SIZE, _FIRST_TABLE),
            (F.Walk.NONE, id(None)), (F.Walk.TRUE, id(True)), (F.Walk.INT, id(int)),
            (F.Walk.FLOAT, id(float)), (F.Walk.BOOL, id(bool)), (F.Walk.TEXT, id(str)),
            (F.Walk.TUPLE, id(tuple)), (F.Walk.GROUP_COUNT, len(self.groups)),
        ):  # fmt: skip
            walk[place // F.WORD] = value
        parts = (
            [walk],
            [[0, d.itemsize, 0] for group in self.groups for d in group.values()],
            [[0, 0, 0, len(group), 0] for group in self.groups],
            [
                [0, 0, *(1 if n == 1 else -1 for n in ones), *[0] * (F.MOST_AXES - len(ones))]
                for _, sort in self.arrays.values()
                for ones in [sort.ones if isinstance(sort, Array) else ()]
            ],
            [[0]] * len(self.schema.classes),
        )  # fmt: skip
        words = [list(chain.from_iterable(rows)) for rows in parts]
        self._arrange(*accumulate(map(len, words)))
        return array("q", chain.from_iterable(words))

    def _arrange(self, columns: int, groups: int, arrays: int, lists: int, end: int) -> None:
        """Say where in a record is what calls write or read; arguments: where its parts begin."""
        self.parts = columns * F.WORD, groups * F.WORD, lists * F.WORD, arrays * F.WORD
        self.owners = slice(columns + F.Column.OWNER // F.WORD, groups, F.Column.WORDS)
        self.counts = slice(groups + F.Group.COUNT // F.WORD, arrays, F.Group.WORDS)
        self.met = slice(arrays + F.Arrays.LIST // F.WORD, lists, F.Arrays.WORDS)
        self.lists = slice(lists, end)
        before = accumulate(map(len, self.groups), initial=0)
        self.columns_of = [(columns + n * F.Column.WORDS) * F.WORD for n in before][:-1]
        self.group_rows = range(groups, arrays, F.Group.WORDS)
        self.kinds = [self.own.get(k) for k in range(len(self.schema.classes))]
        homes = [(n, dtype) for n, group in enumerate(self.groups) for dtype in group.values()]
        self.homes = homes[2:]
        places = {name: n for n, (name, _) in enumerate(self.columns())}
        self.order = [(name, places.get(name)) for name in schema_columns(self.schema)]

    def packed(
        self, family: Family | None, trees: list[Any] | tuple[Any, ...]
    ) -> tuple[Packed, Places] | None:
        """The trees in columns; None where they are unlike this schema. family: theirs, which
        schemas without arrays do not need."""
        record = self.template[:]
        base, _ = record.buffer_info()
        owners = [bytearray() for _ in self.numbers]
        stack, table = bytearray(), bytearray()
        rooms = self.rooms  # what the call before needed, of any thread
        objects: list[list[Any]] = [
            [] if group is None else [None] * rooms[group] for group in self.kinds
        ]
        met: list[list[Any]] = [
            [""] * rooms[home] if isinstance(sort, Text) else []
            for home, sort in self.arrays.values()
        ]
        record[self.owners], record[self.lists] = _ids(owners), _ids(objects)
        if met:
            record[self.met] = _ids(met)
        for row, start, room in zip(self.group_rows, self.columns_of, rooms, strict=True):
            record[row + _GROUP_COLUMNS] = base + start
            record[row + _GROUP_ROOM] = max(room + (room >> 3), _LEAST_ROWS)
        columns, groups, lists, arrays = self.parts
        record[_PARTS] = array("q", (base + columns, base + groups, base + lists, base + arrays))
        record[_STACK_OWNER], record[_TABLE_OWNER] = id(stack), id(table)
        record[_ROOTS], record[_ROOT_COUNT] = _items(trees), len(trees)
        if not _walk()(base):
            return None
        counts = self.rooms = record[self.counts].tolist()
        for each, group in zip(objects, self.kinds, strict=True):
            if group is not None:
                del each[counts[group] :]
        kinds, rows, *rest = owners
        places = np.frombuffer(kinds, _WORD, counts[0]), np.frombuffer(rows, _WORD, counts[0])
        found = [
            np.frombuffer(owner, dtype, counts[group])
            for owner, (group, dtype) in zip(rest, self.homes, strict=True)
        ]
        kept: dict[str, list[Any]] = {}
        stacks: dict[str, np.ndarray[Any, Any]] = {}
        for (path, (home, sort)), every in zip(self.arrays.items(), met, strict=True):
            if isinstance(sort, Text):
                texts = every[: counts[home]]
                if len(every) > rooms[home]:  # rows of other cases
                    texts = [text or "" for text in every]
                texts += [""] * (counts[home] - len(texts))
                stacks[path] = np.column_stack(columns_of_texts(texts))
                continue
            every += [None] * (counts[home] - len(every))
            assert family is not None
            stacks[path] = stacked(family, every, types.DTYPES[sort.dtype].numpy, sort.ones, path)
            kept[path] = every
        ordered = {
            name: stacks[name] if place is None else found[place] for name, place in self.order
        }
        return Packed(self.schema, ordered, objects, kept), places


_GROUP_COLUMNS, _GROUP_ROOM = F.Group.COLUMNS // F.WORD, F.Group.FIRST_ROOM // F.WORD
_PARTS = slice(F.Walk.COLUMNS // F.WORD, F.Walk.ARRAYS // F.WORD + 1)
_STACK_OWNER, _TABLE_OWNER = F.Walk.STACK_OWNER // F.WORD, F.Walk.TABLE_OWNER // F.WORD
_ROOTS, _ROOT_COUNT = F.Walk.ROOTS // F.WORD, F.Walk.ROOT_COUNT // F.WORD


def _items(objects: list[Any] | tuple[Any, ...]) -> int:
    """Where a list or tuple has the addresses of its items."""
    if type(objects) is list:
        return word_at(id(objects) + F.LIST_ITEMS)
    return id(objects) + tuple.__basicsize__


def _ids(objects: Iterable[Any]) -> array[int]:
    """The addresses of objects."""
    return array("q", map(id, objects))


_WORD = np.dtype(np.int64)


def _table(rows: list[list[int]], of: Any) -> np.ndarray[Any, Any]:
    """Rows of words as an array; a row of zeros if there is none."""
    return np.array(rows or [[0] * of.WORDS], np.uint64).view(np.int64)


def _number(ty: types.TensorType) -> tuple[str, type]:
    """The sort of a number, and its class in Python."""
    dtype = ty.dtype.numpy
    if ty.weak:
        cls, name = _PYTHON[dtype.kind]
        return name, cls
    return "pair" if dtype.itemsize == 16 else f"raw{8 * dtype.itemsize}", dtype.type


_known: dict[Schema, _Tables | None] = {}


def tables_of(schema: Schema) -> _Tables | None:
    """The tables of a schema, None if native code cannot pack its nodes."""
    try:
        return _known[schema]
    except KeyError:
        pass
    try:
        made = _Tables(schema)
    except _UnsupportedError:
        made = None
    while len(_known) >= MOST_SCHEMAS:
        _known.pop(next(iter(_known)), None)
    if made is None or made.keeps_for_good:
        _known[schema] = made
    return made


# -- where objects keep their fields ---------------------------------------------------------------


def _reading(cls: type, names: list[str]) -> tuple[str, list[int]]:
    """How objects of a class are read, and where each field is. Raises _UnsupportedError."""
    if issubclass(cls, tuple):
        if list(getattr(cls, "_fields", ())) != names:
            raise _UnsupportedError
        return "items", [tuple.__basicsize__ + F.WORD * k for k in range(len(names))]
    if cls.__flags__ & MANAGED_DICT:
        keys = class_keys(cls) if _IS_OF_3_11 else []
        if not all(sys.intern(name) in keys for name in names):
            return "dict", [0] * len(names)
        return "attributes", [F.WORD * keys.index(name) for name in names]
    if cls.__dictoffset__ or sorted(slots_of(cls)) != sorted(names):
        raise _UnsupportedError
    return "slots", [_slot(cls, name) for name in names]


def _slot(cls: type, name: str) -> int:
    """Where objects of a class have a slot."""
    found = next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)
    if not isinstance(found, python_types.MemberDescriptorType):
        raise _UnsupportedError
    member = word_at(id(found) + F.MEMBER)
    kind = ctypes.c_int32.from_address(member + F.MEMBER_KIND).value
    if kind != F.MEMBER_OBJECT:
        raise _UnsupportedError
    return word_at(member + F.MEMBER_PLACE)


@functools.cache
def _walk() -> Callable[[int], int]:
    """The native walk; it is called with the interpreter's lock."""
    made: Callable[[int], int] = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(
        trees()["pyrelay_pack"]
    )
    return made


@functools.cache
def is_layout_known() -> bool:
    """Whether this interpreter keeps attributes where the walk looks for them.

    The values of instances are no part of CPython's interface, and move with its versions.
    """
    if not _IS_OF_3_11:
        return False

    class Pair:
        def __init__(self, first: Any, second: Any) -> None:
            self.first, self.second = first, second

    pair = Pair(1.5, [2.5])
    reading, (first, second) = _reading(Pair, ["first", "second"])
    values = word_at(id(pair) - F.INSTANCE_VALUES)
    if reading != "attributes" or not values or word_at(id(pair) - F.INSTANCE_DICT):
        return False
    count = ctypes.c_uint8.from_address(values - F.VALUES_COUNT)
    found = word_at(values + first), word_at(values + second), count.value
    expected = id(pair.first), id(pair.second), 2
    del pair.first
    fewer = count.value
    attributes = vars(pair)
    after = word_at(id(pair) - F.INSTANCE_VALUES), word_at(id(pair) - F.INSTANCE_DICT)
    ints = [
        (word_at(id(x) + F.INT_SIZE), ctypes.c_uint32.from_address(id(x) + F.INT_DIGITS).value)
        for x in (5, -(2**30 - 1))
    ]
    expected_ints = [(1, 5), (-1, 2**30 - 1)]
    return (
        found == expected and fewer == 1 and after == (0, id(attributes)) and ints == expected_ints
    )


__all__ = ["is_layout_known", "packed", "tables_of"]
