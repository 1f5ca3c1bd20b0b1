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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from pyrelay.infer.in_python.entries import entries_class, is_entries
from pyrelay.infer.in_python.fixed_lists import fixed_class, is_fixed
from pyrelay.infer.nodes.annotations import is_record_class, recursive_group
from pyrelay.ir import types
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

NO_NODE = 0
"""The kind of None."""

MOST_ITEMS = 8
"""Lists of more items in a list are no nodes: each item would be a field."""

_MOST_LENGTHS = 2
"""Tuples of numbers in a field that have more lengths than this have any."""

MOST_SCHEMAS = 256
"""Schemas of which what every call asks is kept."""


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
    """A number of this type; numbers of several kinds are a Choice (`of_numbers`)."""

    type: TensorType


@dataclass(frozen=True, slots=True)
class Array:
    """An array, of the same extents in all rows; `ones` marks axes of extent 1."""

    dtype: str
    ones: tuple[int | None, ...]


_NO_ITEMS = Constant((), tuple)


def ones_of(shape: Sequence[Extent]) -> tuple[int | None, ...]:
    """1 for each axis of extent 1, which broadcasts; None for each other one."""
    return tuple(1 if n == 1 else None for n in shape)


@dataclass(frozen=True, slots=True)
class Child:
    """A node of the same pool; `kinds` are the possible ones."""

    kinds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A node of one kind that a function captures (`captures`)."""

    kind: int


@dataclass(frozen=True, slots=True)
class Items:
    """A list or tuple of any length, or a set of nodes (sets_of_nodes.py)."""

    cls: type
    item: Sort


@dataclass(frozen=True, slots=True)
class Grows:
    """A list that the program changes in place; of nodes that it makes itself."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string of any length: a row of how many code points there are, and these."""


@dataclass(frozen=True, slots=True)
class Struct:
    """A tuple of known length."""

    children: tuple[Sort, ...]


@dataclass(frozen=True, slots=True)
class Callee:
    """A function of the program, or a method: `head` says which (layout.head_of), and what it
    captures, which is fixed from then on. Or a text: what makes it, and the numbers it is made of.
    """

    head: tuple[Any, ...]
    children: tuple[Sort, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several; told apart by an int."""

    cases: tuple[Sort, ...]


Sort = (
    Nothing | Constant | Number | Array | Child | Row | Items | Grows | Text | Struct | Callee
    | Choice
)


def is_function(sort: Sort) -> bool:
    """Whether what is of a sort is a function of the program, or a method."""
    return isinstance(sort, Callee) and sort.head[0] != "text"


@functools.lru_cache(MOST_SCHEMAS)
def captures(cases: tuple[Sort, ...]) -> tuple[tuple[Sort, ...], tuple[tuple[int, ...], ...]]:
    """What the functions among these capture, and where there is what each of the cases captures.

    As a field holds one of them at a time, numbers and nodes of one sort share a place.
    """
    places: list[Sort] = []
    of_cases = []
    for case in cases:
        own: list[int] = []
        for part in case.children if isinstance(case, Callee) and is_function(case) else ():
            if isinstance(part, Child) and len(part.kinds) == 1 and part.kinds != (NO_NODE,):
                part = Row(part.kinds[0])
            shared = isinstance(part, (Number, Child, Row))
            same = (k for k, place in enumerate(places) if place == part and k not in own)
            place = next(same, None) if shared else None
            if place is None:
                place = len(places)
                places.append(part)
            own.append(place)
        of_cases.append(tuple(own))
    return tuple(places), tuple(of_cases)


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

    def children(self) -> Iterator[Child]:
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


@functools.lru_cache(MOST_SCHEMAS)
def alternatives(schema: Schema, kind: int) -> tuple[int, ...]:
    """The kinds that may stand where this one does, by the fields that hold nodes."""
    groups = [set(c.kinds) for c in schema.children() if kind in c.kinds]
    least = min(groups, key=len) if groups else {kind}
    return tuple(sorted((least | {kind}) - {NO_NODE}))


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


def of_numbers(found: Iterable[TensorType]) -> Sort:
    """The sort of numbers of these types, each of which is a case of its own."""
    from pyrelay.infer.kinds import code

    told = sorted(set(found), key=code)
    return Choice(tuple(map(Number, told))) if len(told) > 1 else Number(told[0])


def merged(a: Sort, b: Sort, *, promote: bool = False) -> Sort:
    """The sort of both; with `promote` numbers of different types get one (`of_numbers`).

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
        case (Text(), other) | (other, Text()) if is_text(other):
            return Text()
        case (Grows(), Items(cls)) | (Items(cls), Grows()) if cls is list:
            return Grows()
        case (Grows(), _) | (_, Grows()):
            raise Incompatible
        case (Items(cls) as items, empty) | (empty, Items(cls) as items) if (
            cls is tuple and empty == _NO_ITEMS
        ):
            return items
        case Items(c, x), Items(d, y) if c is d:
            return Items(c, merged(x, y, promote=promote))
        case (Items(cls, Number() as item), Struct(xs)) | (
            Struct(xs), Items(cls, Number() as item)
        ) if cls is tuple and _one_number((*xs, item)) is not None:
            return Items(tuple, item)
        case Struct(xs), Struct(ys) if len(xs) == len(ys):
            pairs = zip(xs, ys, strict=True)
            return Struct(tuple(merged(x, y, promote=promote) for x, y in pairs))
        case Callee(h, xs), Callee(g, ys) if h == g:
            pairs = zip(xs, ys, strict=True)
            return Callee(h, tuple(merged(x, y, promote=promote) for x, y in pairs))
        case Number(s), Number(t) if promote:
            return of_numbers((s, t))
        case (Number(), Number()) | (Array(), Array()):
            raise Incompatible
        case Choice(cases), _:
            found = list(cases)
            for case in b.cases if isinstance(b, Choice) else (b,):
                enter(found, case, promote)
            return Choice(tuple(found)) if len(found) > 1 else found[0]
        case _, Choice():
            return merged(Choice((a,)), b, promote=promote)
    return Choice((a, b))


def _one_number(sorts: Sequence[Sort]) -> Number | None:
    """The number that all items of a tuple of any length are; None if they differ."""
    found = {sort for sort in sorts if not isinstance(sort, Nothing)}
    number = found.pop() if len(found) == 1 else None
    return number if isinstance(number, Number) else None


def enter(cases: list[Sort], new: Sort, promote: bool = False) -> None:
    """Add a case to those of a Choice, where none of them holds it. Raises Incompatible, also for
    tuples of too many lengths."""
    if new in cases or (is_text(new) and Text() in cases):
        return
    if isinstance(new, Text):
        cases[:] = [case for case in cases if not is_text(case)]
    if isinstance(new, Number) and promote:
        numbers = [case.type for case in cases if isinstance(case, Number)]
        every = of_numbers((*numbers, new.type))
        cases[:] = [case for case in cases if not isinstance(case, Number)]
        cases += every.cases if isinstance(every, Choice) else (every,)
        return
    for k, old in enumerate(cases):
        sides = {type(old), type(new)}
        alike = len(sides) == 1 or _holds_none(old, new) or sides == {Items, Struct} or (
            sides == {Items, Constant} and _NO_ITEMS in (old, new)
        )
        both = merged(old, new, promote=promote) if alike else None
        if both is not None and not isinstance(both, Choice):
            cases[k] = both
            return
    cases.append(new)
    tuples = [case for case in cases if isinstance(case, Struct)]
    if len(tuples) > _MOST_LENGTHS:
        number = _one_number([part for case in tuples for part in case.children])
        if number is not None:
            none = (_NO_ITEMS, Items(tuple, Nothing()))
            cases[:] = [case for case in cases if case not in tuples and case not in none]
            cases.append(Items(tuple, number))
        elif len(tuples) > MOST_ITEMS:
            raise Incompatible


def is_text(sort: Sort) -> bool:
    """Whether what is of a sort is a string."""
    match sort:
        case Constant(_, cls):
            return cls is str
        case Callee(head):
            return bool(head[0] == "text")
    return isinstance(sort, Text)


def _holds_none(a: Sort, b: Sort) -> bool:
    none = Constant(None, type(None))
    return (isinstance(a, Child) and b == none) or (isinstance(b, Child) and a == none)


def shown(sort: Sort) -> str:
    """A sort in the words of messages."""
    match sort:
        case Number(ty):
            return str(ty)
        case Array(dtype, ones):
            return f"{dtype}[{', '.join('1' if n == 1 else 'n' for n in ones)}]"
        case Constant(value):
            return repr(value)
        case Grows():
            return "a list"
        case Items(cls):
            return f"a {cls.__name__}"
        case Struct():
            return "a tuple"
        case Text():
            return "a text"
        case Callee():
            return "a function"
    return "of another type"


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
            if self.families.outer is None:
                self.families.changes.append(self.families.restoring())
            other = self.families.known(cls)
            for each in [cls] if other is None else other.classes[1:]:
                self.kinds[each] = len(self.classes)
                self.classes.append(each)
                self.families.entered[each] = self
        return self.kinds[cls]

    def taking_in(self, other: Family) -> Family:
        """The data type of the classes of both: that of a program if either is, which takes in what
        is one everywhere, and else the other one."""
        whole, part = (self, other) if self.families.outer is not None else (other, self)
        for cls in part.classes[1:]:
            whole.add(cls)
        return whole

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


_of_texts: dict[tuple[Any, ...], type] = {}
"""The classes of dicts whose keys are texts, by these: it is asked for each row of each call."""


@dataclass(eq=False)
class Families:
    """Which data type a class belongs to: everywhere, or in one program (`outer` is the former).

    rows: dicts in lists are nodes with a field for each key, and texts in fields are data.
    fixed: so are lists of a few items in lists, which keep their length; mixed: where all of a list
    are no arrays. sites: the numbers of the expressions that make such lists. apart: objects of the
    user's classes are records, whatever they refer to.
    changes: what undoes each class entered by calls on their way, see `withdraw`.
    """

    outer: Families | None = None
    entered: dict[type, Family | None] = field(default_factory=dict)
    rows: bool = False
    fixed: bool = False
    mixed: bool = False
    apart: bool = False
    sites: dict[Any, int] = field(default_factory=dict)
    changes: list[Callable[[], None]] = field(default_factory=list)

    @property
    def class_of(self) -> Callable[[Any], Any]:
        """What gives the class that says which node an object is."""
        return self._class_of_row if self.rows else type

    def _class_of_row(self, value: Any) -> type:
        """The class of an object, of dicts with the same keys, which are texts, or of lists of so
        many items."""
        if self.fixed and type(value) is list and 0 < len(value) <= MOST_ITEMS:
            return fixed_class(len(value), 0)
        if type(value) is not dict:
            return type(value)
        keys = (*value,)
        found = _of_texts.get(keys)
        if found is None and set(map(type, keys)) == {str}:
            found = _of_texts[keys] = entries_class(*keys)
        return dict if found is None else found

    def known(self, cls: type) -> Family | None:
        """The data type that a class was found to belong to so far."""
        found = self.entered.get(cls)
        return self.outer.known(cls) if found is None and self.outer is not None else found

    def of(self, cls: type) -> Family | None:
        """The data type that a class belongs to, None if its objects are records of their own."""
        if cls in self.entered:
            return self.entered[cls]
        if self.rows and is_entries(cls):
            return self.declare([*filter(is_entries, self.entered), cls])
        if self.fixed and is_fixed(cls):
            return self.declare([*filter(is_fixed, self.entered), cls])
        if self.apart:
            return None
        return self._looked_up(cls) if self.outer is None else self.outer.of(cls)

    def declare(self, classes: Sequence[type]) -> Family:
        """Make the classes one data type, with those that any of them is known to belong to."""
        known = [f for f in map(self.known, classes) if f is not None]
        family = known[0] if known else Family(self)
        for cls in classes:
            family.add(cls)
        return family

    def withdraw(self, since: int) -> None:
        """Undo all but so many changes: the call that made them failed.

        What annotations say is found again.
        """
        undone, self.changes[since:] = self.changes[since:], []
        if undone:
            undone[0]()

    def settle(self) -> None:
        """Keep what was declared: there are programs made with it."""
        self.changes.clear()

    def restoring(self) -> Callable[[], None]:
        """What makes the data types what they are now."""
        entered = dict(self.entered)
        families = {f: (len(f.classes), list(f.schemas)) for f in entered.values() if f is not None}

        def restore() -> None:
            for family, (count, schemas) in families.items():
                for cls in family.classes[count:]:
                    del family.kinds[cls]
                del family.classes[count:]
                family.schemas[:] = schemas
            self.entered.clear()
            self.entered.update(entered)

        return restore

    def _looked_up(self, cls: type) -> Family | None:
        for other in (cls, *_neighbours(cls)) if is_record_class(cls) else ():
            group = recursive_group(other)
            if cls in group:
                return self.declare(group)
        self.entered[cls] = None
        return None


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
