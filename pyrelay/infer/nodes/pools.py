"""Pools: trees of Python objects as columns of arrays, and back.

In: objects of recursive data types. Out: `Packed`: the schema, one array per column, and the place
(kind and row) of each object; shared objects have one place. From columns and a place the objects
are made again. Nothing here recurses over a tree: a depth of 100,000 is like any other.

The columns of a field are named by its path, `Node.weight`: a number or array is `path`, a child
`path.kind` and `path.row`, a list `path.start`, `path.count` and the columns of its items `path[]`,
a tuple the columns of its parts `path[k]`, one of several cases `path.case` and `path|k`; what
functions capture is `path|f0` and so on, which the cases share, and their nodes of one kind a row.
"""

from __future__ import annotations

import functools
import itertools
import keyword
import operator
import types as python_types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

import numpy as np

from pyrelay.errors import TypeMismatchError
from pyrelay.infer.containers.code_points import from_codes, texts_of
from pyrelay.infer.in_python.nested import standing_for
from pyrelay.infer.nodes.datatypes import (
    MOST_SCHEMAS,
    NO_NODE,
    Array,
    Callee,
    Child,
    Choice,
    Constant,
    Grows,
    Items,
    Nothing,
    Number,
    Row,
    Schema,
    Sort,
    Struct,
    Text,
    captures,
    is_anonymous,
    is_function,
)
from pyrelay.ir import types
from pyrelay.records import dataclass

Place = tuple[int, int]
Columns = Mapping[str, np.ndarray[Any, Any]]


@dataclass(eq=False)
class Packed:
    """Trees as columns.

    `objects` are the nodes by kind, in the order of their rows; `arrays` are the arrays that the
    rows of a column are copies of, None in rows that hold another case.
    """

    schema: Schema
    columns: dict[str, np.ndarray[Any, Any]]
    objects: list[list[Any]]
    arrays: dict[str, list[np.ndarray[Any, Any] | None]]
    reused: bool = False  # by `pack`: a program may not change the nodes

    def object_at(self, place: Place) -> Any:
        """The node at a place; None for a row beyond those packed, and for the place of None."""
        kind, row = place
        if kind == NO_NODE or kind >= len(self.objects) or row >= len(self.objects[kind]):
            return None
        return self.objects[kind][row]

    def objects_at(
        self, kinds: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
    ) -> list[Any]:
        """`object_at` of many places."""
        first = int(kinds[0]) if len(kinds) else NO_NODE
        if first != NO_NODE and bool((kinds == first).all()):
            own = self.objects[first]
            return [own[row] for row in rows.tolist()]
        return list(map(self.object_at, zip(kinds.tolist(), rows.tolist(), strict=True)))

    def assign(self, fields: Sequence[tuple[int, str]], nodes: Unpacker) -> None:
        """Give fields of the packed objects the values that other columns hold, where they differ.

        fields: kinds and names. nodes: the columns, and how objects are made of them.
        """
        for kind, name in fields:
            own = self.objects[kind] if kind < len(self.objects) else []
            if not own:
                continue
            sort = nodes.schema.of(kind)[name]
            columns = [c for c, _ in column_sorts(sort, f"{kind}.{name}") if "[]" not in c]
            changed: Any = False
            for column in columns:
                changed = changed | self._changed(nodes.columns[column], column, len(own))
            rows = np.flatnonzero(changed).tolist()
            if not rows:
                continue
            here = own if len(rows) == len(own) else [own[row] for row in rows]
            _assign(here, name, nodes.column(kind, name, rows))

    def _changed(self, column: np.ndarray[Any, Any], name: str, count: int) -> Any:
        """Which of the first rows of a column are other than they were, to the bit."""
        before = self.columns.get(name)
        now = column[:count]
        if before is not None and before.ndim == 1 and before.dtype == now.dtype:
            bits = _UNSIGNED.get(before.itemsize)
            if bits is not None:  # the usual case
                return now.view(bits) != before.view(bits)
        if before is None:
            before = np.zeros_like(now)
        if before.shape[1:] != now.shape[1:]:  # texts, some of which are longer than any was
            pairs = zip(now, before, strict=True)
            return np.array([_text_of(x) != _text_of(y) for x, y in pairs])
        both = (np.ascontiguousarray(x, before.dtype) for x in (now, before))
        one, other = (x.reshape(count, -1).view(np.uint8).reshape(count, -1) for x in both)
        return (one != other).any(axis=1)

    def write_back(self, column: str) -> None:
        """Give the objects' arrays what the rows of a column contain."""
        rows = self.columns[column]
        for array, row in zip(self.arrays[column], rows, strict=True):
            if array is not None:
                array[...] = row


_FEW = 3  # objects that are not worth going through columns
_UNSIGNED = {dtype().itemsize: dtype for dtype in (np.uint8, np.uint16, np.uint32, np.uint64)}
"""Dtypes by the bytes of a number whose bits they have."""

Column = Number | Array | Grows | Text
"""What a column may hold."""


def column_sorts(sort: Sort, path: str) -> Iterator[tuple[str, Column]]:
    """Names and sorts of the columns of a field; ids, counts and cases are Python ints."""
    whole = Number(types.PY_INT)
    match sort:
        case Number() | Array() | Grows() | Text():
            yield path, sort
        case Child():
            yield f"{path}.kind", whole
            yield f"{path}.row", whole
        case Row():
            yield f"{path}.row", whole
        case Callee() if is_function(sort):
            yield from _captured((sort,), path)
        case Items(_, item):
            yield f"{path}.start", whole
            yield f"{path}.count", whole
            yield from column_sorts(item, f"{path}[]")
        case Struct(parts) | Callee(_, parts):
            for k, part in enumerate(parts):
                yield from column_sorts(part, f"{path}[{k}]")
        case Choice(cases):
            yield f"{path}.case", whole
            for k, case in enumerate(cases):
                if not is_function(case):
                    yield from column_sorts(case, f"{path}|{k}")
            yield from _captured(cases, path)


def _captured(cases: tuple[Sort, ...], path: str) -> Iterator[tuple[str, Column]]:
    """The columns of what functions capture."""
    for k, sort in enumerate(captures(cases)[0]):
        yield from column_sorts(sort, f"{path}|f{k}")


@functools.lru_cache(MOST_SCHEMAS)
def schema_columns(schema: Schema) -> Mapping[str, Column]:
    """All columns of a pool."""
    return python_types.MappingProxyType({
        column: sort
        for kind in schema.known()
        for name, field_sort in schema.of(kind).items()
        for column, sort in column_sorts(field_sort, f"{kind}.{name}")
    })


@functools.lru_cache(MOST_SCHEMAS)
def column_names(schema: Schema) -> tuple[str, ...]:
    """What errors call the columns of a pool."""
    return tuple(f"{schema} {column}" for column in schema_columns(schema))


def _assign(nodes: Sequence[Any], name: str, values: Sequence[Any]) -> None:
    """Assign a field of nodes of one class."""
    cls = type(nodes[0])
    own: Any = cls.__setattr__
    plain = cls not in (dict, list) and own is object.__setattr__
    if plain and name.isidentifier() and not keyword.iskeyword(name):
        _statement(name)(nodes, values)
        return
    for node, value in zip(nodes, values, strict=True):
        set_field(node, name, value)


@functools.cache
def _statement(name: str) -> Callable[[Sequence[Any], Sequence[Any]], None]:
    """The loop that assigns an attribute, by a statement, which takes a fifth of what a call of
    `object.__setattr__` does."""
    made: dict[str, Any] = {}
    exec(f"def assign(nodes, values):\n  for n, v in zip(nodes, values): n.{name} = v", made)
    assign: Callable[[Sequence[Any], Sequence[Any]], None] = made["assign"]
    return assign


def set_field(node: Any, name: str, value: Any) -> None:
    """Assign a field of a node that is an object, or a dict or list with a field for each item."""
    if type(node) is dict:
        node[list(node)[int(name[1:])]] = value
    elif type(node) is list:
        node[int(name[1:])] = value
    else:
        object.__setattr__(node, name, value)


def _object(cls: Any, names: Sequence[str], values: Iterable[Any]) -> Any:
    """An object with these fields, or what it stands for."""
    from pyrelay.ir.nodes import UNSET  # `import pyrelay` needs none of it

    node = cls.__new__(cls)
    if cls in standing_for:
        vars(node).update(zip(names, values, strict=True))
        _, make, arguments = standing_for[cls]
        return make(*arguments(node))
    for name, value in zip(names, values, strict=True):
        if value is not UNSET:
            object.__setattr__(node, name, value)
    return node


@functools.cache
def _read(cls: Any) -> tuple[str, ...]:
    """The fields that what a node stands for is made of, where these are all that it takes."""
    arguments = standing_for[cls][2] if cls in standing_for else None
    if not isinstance(arguments, operator.attrgetter):
        return ()
    names: Any = arguments.__reduce__()[1]
    return tuple(names)


def _text_of(row: np.ndarray[Any, Any]) -> str:
    """The string in a row of a column of texts."""
    return from_codes(row[1 : 1 + row[0]])


# -- packing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PackedTree:
    """A tree packed once (`pack`): it may be passed wherever the tree may, as it was then."""

    root: Any
    packed: Packed
    place: Place

    def __repr__(self) -> str:
        count = sum(map(len, self.packed.objects))
        return f"<packed {type(self.root).__name__} in a pool of {count} nodes>"


# -- unpacking -------------------------------------------------------------------------------------


class NativeUnpacker(Protocol):
    """Native code that makes nodes; it gives None for what it cannot make."""

    def __call__(self, place: Place, /) -> Any:
        """The node of a place."""

    def items(self, kinds: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> list[Any] | None:
        """The nodes of many places."""


@dataclass(eq=False)
class Unpacker:
    """Makes the objects of places again. `known`, if there are such, gives an object that exists
    already, or None.

    making: gives what makes most objects in native code, if anything does; asked for once there is
    an object to make.
    """

    schema: Schema
    columns: Columns
    known: Callable[[Place], Any] | None = None
    making: Callable[[], NativeUnpacker | None] = lambda: None
    made: dict[Place, Any] = field(default_factory=dict)
    fields: dict[int, list[tuple[str, Sort, str]]] = field(default_factory=dict)
    numbers: dict[str, list[Any]] = field(default_factory=dict)
    under_way: set[int] = field(default_factory=set)  # kinds that are made column by column now

    @functools.cached_property
    def native(self) -> NativeUnpacker | None:
        """What makes most objects in native code; it gives None for one that it cannot make."""
        return self.making()

    def __call__(self, root: Place) -> Any:
        """The object at a place. Shared places become shared objects."""
        if root in self.made:
            return self.made[root]
        ready = None if self.native is None else self.native(root)
        if ready is not None:
            return ready
        made, begun = self.made, set[Place]()
        pending: list[tuple[Place, bool]] = [(root, False)]
        while pending:
            place, is_ready = pending.pop()
            if is_ready:
                if place in made:
                    self._fill(made[place], place)
                else:
                    made[place] = self._node(place)
            elif place in begun and place not in made:
                cls = self.schema.classes[place[0]].__name__
                raise TypeMismatchError(
                    f"the program gives back a {cls} that contains itself.",
                    hints=("make it of an ordinary class, whose fields can be set later",),
                )
            elif place[0] != NO_NODE and place not in made:
                begun.add(place)
                before = None if self.known is None else self.known(place)
                if before is not None:
                    made[place] = before
                    continue
                cls = self.schema.classes[place[0]]
                if not issubclass(cls, tuple) and cls not in standing_for:
                    made[place] = cls.__new__(cls)  # what it contains may contain it
                pending.append((place, True))
                kind, row = place
                for _, sort, path in self._fields(kind):
                    if type(sort) is Child:
                        pending.append((self._place(path, row), False))
                    elif type(sort) not in (Number, Array, Constant):
                        pending.extend((p, False) for p in self._places(sort, path, row))
        return None if root[0] == NO_NODE else made[root]

    def several(
        self, kinds: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
    ) -> list[Any]:
        """The objects at some places; where native code does not make them, those of a kind are
        made column by column, unless they hold others of their kind."""
        found = None if self.native is None else self.native.items(kinds, rows)
        if found is not None:
            return found
        if self.native is None and len(rows) >= _FEW:
            for kind in set(kinds.tolist()) - {NO_NODE}:
                self.under_way.add(kind)
                self._make_alike(kind, set(rows[kinds == kind].tolist()))
                self.under_way.discard(kind)
        made = self.made
        places = zip(kinds.tolist(), rows.tolist(), strict=True)
        return [made[p] if p in made else self(p) for p in places]

    def _make_alike(self, kind: int, wanted: Iterable[int]) -> None:
        """Make the objects of some rows, unless there are others of a kind being made in them."""
        new = [r for r in wanted if (kind, r) not in self.made]
        if self.known is not None:
            new = [r for r in new if self.known((kind, r)) is None]
        places, cls = np.array(new, np.int64), self.schema.classes[kind]
        fields = {name: (sort, path) for name, sort, path in self._fields(kind)}
        read = _read(cls)
        if not fields.keys() >= set(read):
            read = ()
        columns = {}
        for name in read or fields:
            column = self._listed(*fields[name], places)
            if column is None:
                return
            columns[name] = column
        if not columns or any((kind, r) in self.made for r in new):  # some hold each other
            return
        values = zip(*columns.values(), strict=True)
        made: Iterable[Any] = values
        if read:
            made = itertools.starmap(standing_for[cls][1], values)
        elif not issubclass(cls, tuple):
            made = (_object(cls, tuple(fields), own) for own in values)
        elif not is_anonymous(cls):
            made = itertools.starmap(cls, values)
        self.made.update(zip(zip(itertools.repeat(kind), new), made, strict=True))

    def _listed(self, sort: Sort, path: str, rows: np.ndarray[Any, Any]) -> list[Any] | None:
        """The values of a field in some rows; None if nodes that are being made are in it."""
        match sort:
            case Constant(value):
                return [value] * len(rows)
            case Array():
                return [array.copy() for array in self.columns[path][rows]]
            case Nothing():
                return [None] * len(rows)
            case Child():
                kinds = self.columns[f"{path}.kind"][rows]
                if not self.under_way.isdisjoint(kinds.tolist()):
                    return None
                return self.several(kinds, self.columns[f"{path}.row"][rows])
            case Items(cls, item):
                counts = self.columns[f"{path}.count"][rows]
                ends = counts.cumsum()
                starts = self.columns[f"{path}.start"][rows] - (ends - counts)
                inner = np.arange(counts.sum()) + np.repeat(starts, counts)
                items = self._listed(item, f"{path}[]", inner)
                if items is None:
                    return None
                return [
                    cls(items[end - count : end])
                    for end, count in zip(ends.tolist(), counts.tolist(), strict=True)
                ]
            case Number(ty):
                numbers = self.columns[path][rows]
                return numbers.tolist() if ty.weak else list(numbers)
            case Text():
                texts = self.columns[path][rows]
                return texts_of(texts[:, 1:], texts[:, 0])
            case Choice(cases):
                chosen = self.columns[f"{path}.case"][rows]
                found: list[Any] = [None] * len(rows)
                for k in set(chosen.tolist()):
                    own = np.flatnonzero(chosen == k)
                    values = self._listed(cases[k], f"{path}|{k}", rows[own])
                    if values is None:
                        return None
                    for place, value in zip(own.tolist(), values, strict=True):
                        found[place] = value
                return found
            case Struct(parts) | Callee(_, parts):
                columns = [self._listed(p, f"{path}[{k}]", rows) for k, p in enumerate(parts)]
                known = [column for column in columns if column is not None]
                if len(known) < len(columns):
                    return None
                tuples: list[Any] = list(zip(*known, strict=True)) if known else [()] * len(rows)
                return tuples if isinstance(sort, Struct) else [sort.head[1](*v) for v in tuples]
        return None

    def column(self, kind: int, name: str, rows: Sequence[int]) -> list[Any]:
        """The values of a field of some nodes."""
        sort, path = self.schema.of(kind)[name], f"{kind}.{name}"
        if isinstance(sort, Number):
            if not sort.type.weak:
                return [*self.columns[path][rows]]
            cells = self._cells(path)
            return cells if len(rows) == len(cells) else [cells[row] for row in rows]
        for row in rows:
            for place in self._places(sort, path, row):
                self.made[place] = self(place)
        return [self._value(sort, path, row) for row in rows]

    def _places(self, sort: Sort, path: str, row: int) -> Iterator[Place]:
        match sort:
            case Child():
                yield self._place(path, row)
            case Items(_, Number() | Text()):
                return
            case Items(_, item):
                for k in self._range(path, row):
                    yield from self._places(item, f"{path}[]", k)
            case Struct(parts) | Callee(_, parts):
                for k, part in enumerate(parts):
                    yield from self._places(part, f"{path}[{k}]", row)
            case Choice(cases):
                chosen = int(self.columns[f"{path}.case"][row])
                yield from self._places(cases[chosen], f"{path}|{chosen}", row)

    def _fields(self, kind: int) -> list[tuple[str, Sort, str]]:
        """Names, sorts and paths of the fields of a kind."""
        found = self.fields.get(kind)
        if found is None:
            found = self.fields[kind] = [
                (name, sort, f"{kind}.{name}") for name, sort in self.schema.of(kind).items()
            ]
        return found

    def _cells(self, column: str) -> list[Any]:
        """The Python numbers of a column."""
        found = self.numbers.get(column)
        if found is None:
            found = self.numbers[column] = self.columns[column].tolist()
        return found

    def _place(self, path: str, row: int) -> Place:
        return self._cells(f"{path}.kind")[row], self._cells(f"{path}.row")[row]

    def _range(self, path: str, row: int) -> range:
        start = int(self.columns[f"{path}.start"][row])
        return range(start, start + int(self.columns[f"{path}.count"][row]))

    def _node(self, place: Place) -> Any:
        """A tuple, or what an object stands for, which are not changed once they are made."""
        kind, row = place
        cls = self.schema.classes[kind]
        if issubclass(cls, tuple):
            values = [self._value(sort, path, row) for _, sort, path in self._fields(kind)]
            return tuple(values) if is_anonymous(cls) else cls(*values)
        node = cls.__new__(cls)
        self._fill(node, place)
        _, make, arguments = standing_for[cls]
        return make(*arguments(node))

    def _fill(self, node: Any, place: Place) -> None:
        from pyrelay.ir.nodes import UNSET  # `import pyrelay` needs none of it

        kind, row = place
        for name, sort, path in self._fields(kind):
            value = self._value(sort, path, row)
            if value is not UNSET:
                object.__setattr__(node, name, value)

    def _value(self, sort: Sort, path: str, row: int) -> Any:
        match sort:
            case Constant(value):
                return value
            case Number(ty):
                return self._cells(path)[row] if ty.weak else self.columns[path][row]
            case Array():
                return self.columns[path][row].copy()
            case Text():
                return _text_of(self.columns[path][row])
            case Child():
                place = self._place(path, row)
                return None if place[0] == NO_NODE else self.made[place]
            case Items(cls, Text()):
                there = self._range(path, row)
                texts = self.columns[f"{path}[]"][there.start : there.stop]
                return cls(texts_of(texts[:, 1:], texts[:, 0]))
            case Items(cls, Number(ty)) if ty.weak:
                there = self._range(path, row)
                return cls(self._cells(f"{path}[]")[there.start : there.stop])
            case Items(cls, item):
                return cls(self._value(item, f"{path}[]", k) for k in self._range(path, row))
            case Struct(parts):
                return tuple(
                    self._value(p, f"{path}[{k}]", row) for k, p in enumerate(parts)
                )
            case Callee((_, function, *_), parts):  # a text: no function leaves a program
                values = [self._value(p, f"{path}[{k}]", row) for k, p in enumerate(parts)]
                return function(*values)
            case Choice(cases):
                chosen = int(self.columns[f"{path}.case"][row])
                return self._value(cases[chosen], f"{path}|{chosen}", row)
        assert isinstance(sort, Nothing)
        return None
