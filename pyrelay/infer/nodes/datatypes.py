"""Recursive data types: which classes contain themselves, and how their nodes are stored.

A tree of user objects is stored in a pool: a struct of arrays per class (Cortex calls making it
linearisation; Fegade et al., MLSys 2021). A node is a pair of ints: its kind, which is 0 for None
and else says which class, and its row in the columns of that class. A `Schema` says what columns
there are: it depends on the classes and on the types of their fields, never on a tree's shape.

In: classes, and the values of a field over all nodes. Out: `Family`s of classes and `Sort`s of
fields, which merge as more trees are seen.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from pyrelay.errors import TypeMismatchError
from pyrelay.infer.nodes.annotations import (
    Expected,
    expected_fields,
    is_record_class,
    recursive_group,
)
from pyrelay.ir import types
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

NO_NODE = 0
"""The kind of None."""


# -- sorts -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nothing:
    """The items of sequences that were all empty: fits everything."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same object, compared by value and class."""

    value: Any
    cls: type


@dataclass(frozen=True, slots=True)
class Number:
    """A number of this type."""

    type: TensorType


@dataclass(frozen=True, slots=True)
class Array:
    """An array, of the same extents in all rows; `ones` marks axes of extent 1."""

    dtype: str
    ones: tuple[int | None, ...]


def ones_of(shape: Sequence[Extent]) -> tuple[int | None, ...]:
    """1 for each axis of extent 1, which broadcasts; None for each other one."""
    return tuple(1 if n == 1 else None for n in shape)


@dataclass(frozen=True, slots=True)
class Child:
    """A node of the same pool; `kinds` are the possible ones."""

    kinds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list or tuple of any length."""

    cls: type
    item: Sort


@dataclass(frozen=True, slots=True)
class Grows:
    """A list that the program changes in place; of nodes that it makes itself."""


@dataclass(frozen=True, slots=True)
class Struct:
    """A tuple of known length."""

    children: tuple[Sort, ...]


@dataclass(frozen=True, slots=True)
class Callee:
    """A function of the program, or a method: `head` says which (layout.head_of), and what it
    captures, which is fixed from then on."""

    head: tuple[Any, ...]
    children: tuple[Sort, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several; told apart by an int."""

    cases: tuple[Sort, ...]


Sort = Nothing | Constant | Number | Array | Child | Items | Grows | Struct | Callee | Choice


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """The columns of a pool: per kind the names and sorts of the fields, None for unknown kinds.

    Interned by its family: equal schemas are the same object.
    """

    classes: tuple[Any, ...]  # by kind; the first is NoneType
    fields: tuple[tuple[tuple[str, Sort], ...] | None, ...]

    def of(self, kind: int) -> dict[str, Sort]:
        """The fields of a kind."""
        return dict(self.fields[kind] or ())

    def known(self) -> tuple[int, ...]:
        """The kinds of which there can be nodes."""
        return tuple(k for k, f in enumerate(self.fields) if k and f is not None)

    def alternatives(self, kind: int) -> tuple[int, ...]:
        """The kinds that may stand where this one does, by the fields that hold nodes."""
        groups = [set(c.kinds) for c in self._children() if kind in c.kinds]
        least = min(groups, key=len) if groups else {kind}
        return tuple(sorted((least | {kind}) - {NO_NODE}))

    def _children(self) -> Iterator[Child]:
        pending = [s for fields in self.fields for _, s in fields or ()]
        while pending:
            sort = pending.pop()
            match sort:
                case Child():
                    yield sort
                case Items(_, item):
                    pending.append(item)
                case Struct(parts) | Choice(parts) | Callee(_, parts):
                    pending.extend(parts)

    def __str__(self) -> str:
        return " | ".join(self.classes[k].__name__ for k in self.known())


@functools.cache
def gradient_schema(schema: Schema) -> Schema:
    """The schema of a gradient: floats as they are, nodes in the same places, None for the rest."""
    fields = tuple(
        None if own is None else tuple((n, _of_gradient(s)) for n, s in own)
        for own in schema.fields
    )
    return schema if fields == schema.fields else Schema(schema.classes, fields)


def _of_gradient(sort: Sort) -> Sort:
    match sort:
        case Number(ty) if ty.dtype.is_float:
            return sort
        case Array(dtype) if types.DTYPES[dtype].is_float:
            return sort
        case Child() | Nothing():
            return sort
        case Items(cls, item):
            return Items(cls, _of_gradient(item))
        case Struct(parts):
            return Struct(tuple(map(_of_gradient, parts)))
        case Choice(cases):
            return Choice(tuple(map(_of_gradient, cases)))
    return Constant(None, type(None))


class Incompatible(Exception):
    """Two sorts have no common one."""


def merged(a: Sort, b: Sort, *, promote: bool = False) -> Sort:
    """The sort of both; with `promote` numbers get their common type.

    Raises Incompatible for arrays, and without `promote` for numbers, of different types.
    """
    if a == b or isinstance(b, Nothing):
        return a
    match a, b:
        case Nothing(), _:
            return b
        case Child(k), Child(m):
            return Child(tuple(sorted({*k, *m})))
        case (Child(k), Constant(None)) | (Constant(None), Child(k)):
            return Child(tuple(sorted({NO_NODE, *k})))
        case (Grows(), Items(cls)) | (Items(cls), Grows()) if cls is list:
            return Grows()
        case (Grows(), _) | (_, Grows()):
            raise Incompatible
        case Items(c, x), Items(d, y) if c is d:
            return Items(c, merged(x, y, promote=promote))
        case Struct(xs), Struct(ys) if len(xs) == len(ys):
            pairs = zip(xs, ys, strict=True)
            return Struct(tuple(merged(x, y, promote=promote) for x, y in pairs))
        case Callee(h, xs), Callee(g, ys) if h == g:
            pairs = zip(xs, ys, strict=True)
            return Callee(h, tuple(merged(x, y, promote=promote) for x, y in pairs))
        case Number(s), Number(t) if promote:
            dtype, weak = types.promote((s, t))
            return Number(TensorType(dtype, (), weak))
        case (Number(), Number()) | (Array(), Array()):
            raise Incompatible
        case Choice(cases), _:
            found = list(cases)
            for case in b.cases if isinstance(b, Choice) else (b,):
                _enter(found, case, promote)
            return Choice(tuple(found))
        case _, Choice():
            return merged(Choice((a,)), b, promote=promote)
    return Choice((a, b))


def _enter(cases: list[Sort], new: Sort, promote: bool = False) -> None:
    for k, old in enumerate(cases):
        if old == new:
            return
        alike = type(old) is type(new) or _holds_none(old, new)
        both = merged(old, new, promote=promote) if alike else None
        if both is not None and not isinstance(both, Choice):
            cases[k] = both
            return
    cases.append(new)


def _holds_none(a: Sort, b: Sort) -> bool:
    none = Constant(None, type(None))
    return (isinstance(a, Child) and b == none) or (isinstance(b, Child) and a == none)


# -- families --------------------------------------------------------------------------------------


@dataclass(eq=False)
class Family:
    """Classes whose instances are nodes of one pool; the kind of a class is its position.

    families: where it is entered. schemas: those met so far. shapes: the extents of array columns
    when they last had rows, for pools in which they have none.
    """

    families: Families
    classes: list[Any] = field(default_factory=lambda: [type(None)])
    kinds: dict[Any, int] = field(default_factory=lambda: {type(None): NO_NODE})
    schemas: list[Schema] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def add(self, cls: type) -> int:
        """The kind of a class, which is entered with the data type it belonged to, if it is new."""
        if cls not in self.kinds:
            other = self.families.known(cls)
            for each in [cls] if other is None else other.classes[1:]:
                self.kinds[each] = len(self.classes)
                self.classes.append(each)
                self.families.entered[each] = self
        return self.kinds[cls]

    def schema_for(self, seen: dict[int, tuple[tuple[str, Sort], ...]]) -> Schema:
        """A schema that nodes with these sorts of fields by kind fit.

        A known one if there is any, else one that joins them to a known one if that is possible.
        """
        for known in self.schemas:
            if self._joined(known, seen) is known:
                return known
        for k in reversed(range(len(self.schemas))):
            joined = self._joined(self.schemas[k], seen)
            if joined is not None:
                self.schemas[k] = joined
                return joined
        first = Schema(tuple(self.classes), self._padded(seen))
        self.schemas.append(first)
        return first

    def _padded(
        self, seen: dict[int, tuple[tuple[str, Sort], ...]]
    ) -> tuple[tuple[tuple[str, Sort], ...] | None, ...]:
        return ((), *(seen.get(k) for k in range(1, len(self.classes))))

    def _joined(
        self, known: Schema, seen: dict[int, tuple[tuple[str, Sort], ...]]
    ) -> Schema | None:
        """The schema of both, `known` itself if it is that, None if there is none."""
        fields = list(known.fields) + [None] * (len(self.classes) - len(known.classes))
        for kind, new in seen.items():
            old = fields[kind]
            if old is None:
                fields[kind] = new
                continue
            if [n for n, _ in old] != [n for n, _ in new]:
                return None
            try:
                fields[kind] = tuple(
                    (n, merged(a, b)) for (n, a), (_, b) in zip(old, new, strict=True)
                )
            except Incompatible:
                return None
        same = tuple(fields[: len(known.fields)]) == known.fields
        if same and all(f is None for f in fields[len(known.fields):]):
            return known
        return Schema(tuple(self.classes), tuple(fields))


@dataclass(eq=False)
class Families:
    """Which data type a class belongs to: everywhere, or in one program (`outer` is the former)."""

    outer: Families | None = None
    entered: dict[type, Family | None] = field(default_factory=dict)

    def known(self, cls: type) -> Family | None:
        """The data type that a class was found to belong to so far."""
        found = self.entered.get(cls)
        return self.outer.known(cls) if found is None and self.outer is not None else found

    def of(self, cls: type) -> Family | None:
        """The data type that a class belongs to, None if its objects are records of their own."""
        if cls in self.entered:
            return self.entered[cls]
        return self._looked_up(cls) if self.outer is None else self.outer.of(cls)

    def declare(self, classes: Sequence[type]) -> Family:
        """Make the classes one data type, with those that any of them is known to belong to."""
        known = [f for f in map(self.known, classes) if f is not None]
        family = known[0] if known else Family(self)
        for cls in classes:
            family.add(cls)
        return family

    def _looked_up(self, cls: type) -> Family | None:
        self.entered[cls] = None
        if not is_record_class(cls):
            return None
        for other in (cls, *_neighbours(cls)):
            group = recursive_group(other)
            if cls in group:
                self.declare(group)
                break
        return self.entered[cls]


def _neighbours(cls: type) -> list[type]:
    """The user's classes of the same module, which may name `cls` in their annotations."""
    import sys

    module = sys.modules.get(cls.__module__)
    return [c for c in vars(module).values() if is_record_class(c)] if module is not None else []


EVERYWHERE = Families()
"""The classes that contain themselves, by their annotations or by objects that were met."""


def anonymous_class(length: int, group: Any = None) -> type:
    """A new class for nodes that are tuples of some length; group: that of `anonymous`."""
    names = tuple(f"_{k}" for k in range(length))
    contents = {"_fields": names, "__module__": "anonymous", "group": group}
    return type(f"tuple of {length}", (tuple,), contents)


def is_anonymous(cls: Any) -> bool:
    """True for the class of a node without one: a tuple that nests without end (anonymous.py)."""
    return cls is not None and "group" in vars(cls)


# -- the sort of a field ---------------------------------------------------------------------------


@dataclass
class Observer:
    """Finds the sorts of fields from their values over all nodes, with the help of annotations."""

    family: Family

    def of_class(
        self, cls: type, columns: Mapping[str, Sequence[Any]]
    ) -> tuple[tuple[str, Sort], ...]:
        """Names and sorts of the fields of a class, of which these are the values in all nodes."""
        expected = expected_fields(cls)
        return tuple(
            (n, self.of(values, expected.get(n), f"{cls.__name__}.{n}"))
            for n, values in columns.items()
        )

    def predicted(self, cls: type) -> tuple[tuple[str, Sort], ...] | None:
        """The fields of a class without nodes, if the annotations settle them."""
        if cls.__subclasses__():
            return None
        found = []
        for name, expected in expected_fields(cls).items():
            sort = self._promised(expected)
            if sort is None:
                return None
            found.append((name, sort))
        return tuple(found) if found else None

    def _promised(self, expected: Expected) -> Sort | None:
        if not expected.complete:
            return None
        plain = expected.number is None and expected.sequence is None
        nodes = self._kinds(expected)
        if nodes and plain:
            return Child(nodes)
        if expected.number is not None and not nodes and not expected.none:
            return Number(_NUMBER_TYPES[expected.number])
        if expected.sequence is not None and not nodes and not expected.none:
            items = [self._promised(e) for e in expected.items]
            if any(i is None for i in items):
                return None
            known = [i for i in items if i is not None]
            if expected.fixed:
                return Struct(tuple(known))
            return Items(expected.sequence, known[0])
        return None

    def _kinds(self, expected: Expected) -> tuple[int, ...]:
        """The kinds that an annotation names, None's among them; empty if it names no class."""
        found = {
            self.family.kinds[c] for c in expected.classes
            if c in self.family.kinds and not c.__subclasses__()
        }
        if found and expected.none:
            found.add(NO_NODE)
        return tuple(sorted(found))

    def of(self, values: Sequence[Any], expected: Expected | None, name: str) -> Sort:
        """The sort of these values."""
        quick = self._of_one_kind(values, expected, name)
        if quick is not None:
            return quick
        groups: dict[Any, list[Any]] = {}
        for value in values:
            groups.setdefault(self._group(value), []).append(value)
        self._join_tuples(groups, expected)
        named = self._kinds(expected) if expected is not None else ()
        sorts: list[Sort] = []
        for group, members in groups.items():
            _enter(sorts, self._of_group(group, members, expected, name))
        if named and _CHILD not in groups and set(groups) <= {("constant", type(None), None)}:
            _enter(sorts, Child(named))
        elif named:
            sorts = [merged(s, Child(named)) if isinstance(s, Child) else s for s in sorts]
        if not sorts:
            return Nothing()
        ordered = sorted(sorts, key=repr)
        return ordered[0] if len(ordered) == 1 else Choice(tuple(ordered))

    def _of_one_kind(
        self, values: Sequence[Any], expected: Expected | None, name: str
    ) -> Sort | None:
        """The sort of Python numbers of one class, arrays of one type, lists, or nodes."""
        classes = set(map(type, values))
        if len(classes) == 1:
            (cls,) = classes
            if cls in _NUMBER_TYPES:
                return Number(_NUMBER_TYPES[cls])
            if cls is np.ndarray and len({(v.dtype, v.ndim) for v in values}) == 1:
                return self._array(list(values), values[0].dtype, name)
            if cls is list and (expected is None or not self._kinds(expected)):
                return self._sequence(list, None, list(values), expected, name)
        kinds = {self.family.kinds.get(cls, -1) for cls in classes}
        if not kinds or kinds == {NO_NODE} or -1 in kinds:
            return None
        named = self._kinds(expected) if expected is not None else ()
        return Child(tuple(sorted({*kinds, *named})))

    def _join_tuples(self, groups: dict[Any, list[Any]], expected: Expected | None) -> None:
        """Tuples with nodes in them, or of several lengths, are sequences of any length."""
        lengths = [g for g in groups if isinstance(g, tuple) and g[0] is tuple]
        told = expected if expected is not None and expected.sequence is tuple else None
        if told is None or not told.fixed:
            nodes = any(
                self.family.kinds.get(type(x)) for g in lengths for v in groups[g] for x in v
            )
            if nodes or len(lengths) > 1 or told is not None:
                joined = [v for g in lengths for v in groups.pop(g)]
                if lengths:
                    groups[tuple, None] = joined

    def _group(self, value: Any) -> Any:
        """Values of one group have one sort."""
        cls = type(value)
        if self.family.kinds.get(cls):
            return _CHILD
        if types.of_scalar(value) is not None:
            return _NUMBER
        if cls is np.ndarray:
            return ("array", value.dtype, value.ndim)
        if value is None or isinstance(value, (str, bytes)):
            return ("constant", cls, value)
        if cls is list or cls is tuple:
            return (cls, None if cls is list else len(value))
        if cls is dict or cls is set:
            return ("other", cls)
        try:
            hash(value)
        except TypeError:
            return ("other", cls)
        return ("constant", cls, value)

    def _of_group(
        self, group: Any, members: list[Any], expected: Expected | None, name: str
    ) -> Sort:
        if group == _CHILD:
            return Child(tuple(sorted({self.family.kinds[type(v)] for v in members})))
        if group == _NUMBER:
            found = {types.of_scalar(v) for v in members}
            dtype, weak = types.promote(t for t in found if t is not None)
            return Number(TensorType(dtype, (), weak))
        match group:
            case ("constant", cls, value):
                return Constant(value, cls)
            case ("array", dtype, _):
                return self._array(members, dtype, name)
            case (cls, length) if cls is list or cls is tuple:
                return self._sequence(cls, length, members, expected, name)
        raise TypeMismatchError(
            f"{name} is an object of class {type(members[0]).__name__}, which cannot be a field of "
            "a tree.",
            hints=("keep numbers, arrays, texts, lists, tuples and other nodes in it",),
        )

    def _array(self, members: list[Any], dtype: Any, name: str) -> Sort:
        known = types.from_numpy(dtype)
        if known is None:
            raise TypeMismatchError(f"{name} is an array of {dtype}, which is not supported.")
        shapes = {v.shape for v in members}
        if len(shapes) > 1:
            shown = " and ".join(map(str, sorted(shapes)[:2]))
            raise TypeMismatchError(
                f"the arrays in {name} have different shapes, {shown}.",
                notes=("the arrays of a field are stored as rows of one array",),
                hints=("pad them to one shape",),
            )
        return Array(known.name, ones_of(shapes.pop()))

    def _sequence(
        self, cls: type, length: int | None, members: list[Any], expected: Expected | None,
        name: str,
    ) -> Sort:
        told = expected if expected is not None and expected.sequence is cls else None
        if length is not None:
            parts = []
            for k in range(length):
                inner = told.items[k] if told is not None and k < len(told.items) else None
                parts.append(self.of([v[k] for v in members], inner, f"{name}[{k}]"))
            return Struct(tuple(parts))
        inner = told.items[0] if told is not None else None
        item = self.of([v for each in members for v in each], inner, f"{name}[...]")
        if isinstance(item, Nothing) and inner is not None:
            item = self._promised(inner) or item
        return Items(cls, item)


_CHILD = "child"
_NUMBER = "number"
_NUMBER_TYPES = {
    float: types.PY_FLOAT, int: types.PY_INT, bool: types.PY_BOOL, complex: types.PY_COMPLEX,
}
