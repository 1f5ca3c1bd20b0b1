"""Trees of Python objects collected into columns, a level of all trees at a time.

In: objects of recursive data types. Out: `Packed`. The nodes of a level are gone through by class
and field, with functions that Python runs in C over whole lists: this is on the path of every call
with trees.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay.errors import InvalidValueError
from pyrelay.infer.containers.columns import columns_of_texts
from pyrelay.infer.in_python.entries import is_entries
from pyrelay.infer.in_python.fixed_lists import is_fixed
from pyrelay.infer.nodes.annotations import is_record_class
from pyrelay.infer.nodes.datatypes import (
    NO_NODE,
    Array,
    Child,
    Choice,
    Constant,
    Family,
    Items,
    Number,
    Sort,
    Struct,
    Text,
)
from pyrelay.infer.nodes.instances import columns_of, slots_of
from pyrelay.infer.nodes.observing import Observer
from pyrelay.infer.nodes.pools import Packed, Place, column_sorts
from pyrelay.ir import types
from pyrelay.records import dataclass

_PLAIN = frozenset({float, int, bool, complex, str, type(None), np.ndarray, np.float64, np.float32})
"""Classes of values that have no nodes inside: most fields of most nodes."""

_ABSENT: Any = object()
"""In place of a value in a row that holds another case."""

_ROW = 1 << 16
"""A place as one number: row * _ROW + kind."""


@dataclass(eq=False)
class Packer:
    """Collects the nodes of trees, then packs them. Lists are by kind, columns in order of rows."""

    family: Family
    objects: list[list[Any]] = field(default_factory=list)
    fields: list[dict[str, list[Any]]] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=lambda: {id(None): 0, id(_ABSENT): 0})
    arrays: dict[str, list[np.ndarray[Any, Any] | None]] = field(default_factory=dict)

    def add(self, roots: Sequence[Any]) -> list[Place]:
        """Collect trees; the places of their roots."""
        level = list(roots)
        while level:
            level = self._enter(level)
        codes = [self.places[id(root)] for root in roots]
        return [(code % _ROW, code // _ROW) for code in codes]

    def _enter(self, nodes: list[Any]) -> list[Any]:
        """Enter the nodes that are new; the nodes in their fields."""
        numbers = list(map(id, nodes))
        if len(set(numbers)) < len(numbers) or not self.places.keys().isdisjoint(numbers):
            pairs = zip(numbers, nodes, strict=True)
            nodes = list({i: n for i, n in pairs if i not in self.places}.values())
        inside: list[Any] = []
        class_of = self.family.families.class_of
        classes = dict.fromkeys(map(class_of, nodes))
        for cls in classes:
            members = nodes if len(classes) == 1 else [n for n in nodes if class_of(n) is cls]
            kind = self._kind(cls)
            while len(self.objects) <= kind:
                self.objects.append([])
                self.fields.append({})
            first = len(self.objects[kind]) * _ROW + kind
            places = range(first, first + len(members) * _ROW, _ROW)
            self.places.update(zip(map(id, members), places, strict=True))
            known, values = self.fields[kind], _values(cls, members)
            if known.keys() != values.keys():
                _even_out(known, values, len(self.objects[kind]), len(members))
            self.objects[kind] += members
            for name, column in values.items():
                known[name] += column
                inside += self._nodes(column)
        return inside

    def _nodes(self, values: Sequence[Any]) -> list[Any]:
        """The nodes among some values, and in lists and tuples among them."""
        classes = set(map(type, values)) - _PLAIN
        if not classes:
            return []
        class_of = self.family.families.class_of
        own = {cls for cls in classes if self._kind(cls)}
        found = list(itertools.compress(values, map(own.__contains__, map(type, values))))
        if dict in classes:
            found += [v for v in values if type(v) is dict and self._kind(class_of(v))]
        if not classes.isdisjoint((list, tuple)):
            sequences = [v for v in values if type(v) in (list, tuple)]
            found += self._nodes(list(itertools.chain.from_iterable(sequences)))
        return found

    def _kind(self, cls: Any) -> int:
        """The kind of a class, which a user's class gets when it is first seen; 0 for others."""
        kind = self.family.kinds.get(cls)
        if kind is None:
            kind = self.family.add(cls) if is_record_class(cls) else NO_NODE
        return kind

    def pack(self) -> Packed:
        """The columns of everything collected."""
        observer = Observer(self.family)
        seen = {
            kind: _counted(observer.of_class(self.family.classes[kind], self.fields[kind]))
            for kind, objects in enumerate(self.objects) if objects
        }
        for kind in range(1, len(self.family.classes)):
            if kind not in seen:
                fields = observer.predicted(self.family.classes[kind])
                if fields is not None:
                    seen[kind] = fields
        schema = self.family.schema_for(seen)
        columns: dict[str, np.ndarray[Any, Any]] = {}
        for kind in schema.known():
            values = self.fields[kind] if kind < len(self.fields) else {}
            for name, sort in schema.of(kind).items():
                self._column(sort, values.get(name, ()), f"{kind}.{name}", columns)
        return Packed(schema, columns, self.objects, self.arrays)

    def _column(
        self, sort: Sort, values: Sequence[Any], path: str, into: dict[str, np.ndarray[Any, Any]]
    ) -> None:
        match sort:
            case Number(ty):
                given = [0 if v is _ABSENT else v for v in values]
                try:
                    into[path] = np.array(given, dtype=ty.dtype.numpy)
                except OverflowError:
                    raise InvalidValueError(
                        f"an integer in {self._shown(path)} does not fit into 64 bits."
                    ) from None
            case Array(dtype, ones):
                arrays = self.arrays[path] = [None if v is _ABSENT else v for v in values]
                into[path] = stacked(self.family, arrays, types.DTYPES[dtype].numpy, ones, path)
            case Text():
                texts = ["" if v is _ABSENT else v for v in values]
                counts, codes = columns_of_texts(texts)
                into[path] = np.column_stack([counts, codes])
            case Child():
                places = map(self.places.__getitem__, map(id, values))
                rows, kinds = np.divmod(np.fromiter(places, np.int64, len(values)), _ROW)
                into[f"{path}.kind"], into[f"{path}.row"] = kinds, rows
            case Items(_, item):
                counts = np.array([0 if v is _ABSENT else len(v) for v in values], np.int64)
                into[f"{path}.start"] = np.cumsum(counts) - counts
                into[f"{path}.count"] = counts
                every = [x for v in values if v is not _ABSENT for x in v]
                self._column(item, every, f"{path}[]", into)
            case Struct(parts):
                for k, part in enumerate(parts):
                    inner = [v if v is _ABSENT else v[k] for v in values]
                    self._column(part, inner, f"{path}[{k}]", into)
            case Choice(cases):
                chosen = [0 if v is _ABSENT else self._case(cases, v) for v in values]
                into[f"{path}.case"] = np.array(chosen, np.int64)
                for k, case in enumerate(cases):
                    own = [v if c == k else _ABSENT for v, c in zip(values, chosen, strict=True)]
                    self._column(case, own, f"{path}|{k}", into)

    def _case(self, cases: Sequence[Sort], value: Any) -> int:
        ty = types.of_scalar(value)
        if ty is not None and Number(ty) in cases:
            return cases.index(Number(ty))
        return next(k for k, case in enumerate(cases) if self._fits(case, value))

    def _fits(self, sort: Sort, value: Any) -> bool:
        match sort:
            case Constant(v, cls):
                return type(value) is cls and bool(v is value or v == value)
            case Number():
                return types.of_scalar(value) is not None
            case Array(dtype, ones):
                return (
                    type(value) is np.ndarray and value.ndim == len(ones)
                    and types.from_numpy(value.dtype) is types.DTYPES[dtype]
                )
            case Text():
                return type(value) is str
            case Child(kinds):
                cls = self.family.families.class_of(value)
                own = NO_NODE if value is None else self._kind(cls) or -1
                return own in kinds
            case Items(cls, _):
                return type(value) is cls
            case Struct(parts):
                return type(value) is tuple and len(value) == len(parts) and all(
                    self._fits(p, v) for p, v in zip(parts, value, strict=True)
                )
            case Choice(cases):
                return any(self._fits(c, value) for c in cases)
        return False

    def _shown(self, path: str) -> str:
        kind, _, name = path.partition(".")
        return f"{self.family.classes[int(kind)].__name__}.{name}"


def _counted(fields: tuple[tuple[str, Sort], ...]) -> tuple[tuple[str, Sort], ...]:
    """The same, with one column at least: its rows say how many nodes there are."""
    if not fields or any(True for name, sort in fields for _ in column_sorts(sort, name)):
        return fields
    (name, sort), *others = fields
    return ((name, Choice((sort,))), *others)


def stacked(
    family: Family, arrays: Sequence[np.ndarray[Any, Any] | None], dtype: Any,
    ones: tuple[int | None, ...], path: str,
) -> np.ndarray[Any, Any]:
    """The arrays of a field as rows, zeros in place of None; their extents are noted."""
    every = [a for a in arrays if a is not None]
    if every:
        family.shapes[path] = every[0].shape
    shape = family.shapes.get(path, tuple(1 if n == 1 else 0 for n in ones))
    if shape and every and len(every) == len(arrays):
        joined: np.ndarray[Any, Any] = np.concatenate(every, dtype=dtype)
        return joined.reshape(len(every), *shape)
    rows = np.zeros((len(arrays), *shape), dtype)
    for k, array in enumerate(arrays):
        if array is not None:
            rows[k] = array
    return rows


def _values(cls: Any, nodes: list[Any]) -> dict[str, list[Any]]:
    """The values of each field of nodes of one class; UNSET in those that do not have it."""
    if is_entries(cls):
        return {f"_{k}": [node[key] for node in nodes] for k, key in enumerate(cls.labels)}
    if is_fixed(cls):
        columns = map(list, zip(*nodes, strict=True))
        return dict(zip(cls.names, columns, strict=True))
    if issubclass(cls, tuple):
        return {n: list(map(operator.itemgetter(k), nodes)) for k, n in enumerate(cls._fields)}
    if cls.__dictoffset__:
        found = columns_of(cls, nodes)
        if found is not None:
            return found
    from pyrelay.ir.nodes import UNSET  # `import pyrelay` needs none of it

    slots = slots_of(cls)
    rows = [
        vars(n) if cls.__dictoffset__ else {s: getattr(n, s) for s in slots if hasattr(n, s)}
        for n in nodes
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, UNSET) for row in rows] for name in names}


def _even_out(
    known: dict[str, list[Any]], values: dict[str, list[Any]], before: int, count: int
) -> None:
    """Columns for all fields of so many nodes before and of others, UNSET where these have none."""
    from pyrelay.ir.nodes import UNSET  # `import pyrelay` needs none of it

    for name in values:
        known.setdefault(name, [UNSET] * before)
    for name in known:
        values.setdefault(name, [UNSET] * count)
