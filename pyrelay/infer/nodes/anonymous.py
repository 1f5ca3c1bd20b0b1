"""Nodes without a class: tuples that a program nests in each other as deep as it likes.

In: the expressions of a program whose tuples turned out to nest without end, found where an attempt
met such a tuple (`NeedsNodes`). Out: a class for each length of them, and for the texts known while
compiling that stand in them (`("+", a, b)`), made for this program: its tuples are then nodes of a
data type like any other (pools.py, building.py), which behave as namedtuples do, and are plain
tuples again where they leave the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pyrelay.infer import layout as L
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.in_python.nested_lists import NestedList
from pyrelay.infer.nodes.datatypes import (
    Child,
    Choice,
    Families,
    Family,
    Items,
    Schema,
    Sort,
    Struct,
    anonymous_class,
    is_anonymous,
)
from pyrelay.ir.nodes import Let, PyCall
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter


Fields = tuple[tuple[str, Sort], ...]

_MOST_WORDS = 4
"""Texts in the tuples that one expression makes, by which these are told apart."""


@dataclass(eq=False)
class Group:
    """Expressions that make nodes of one data type, and its classes by what `_key` tells.

    words: the keys that each expression was met with; of those with many, texts are data.
    nests: its tuples stand in each other without end, whatever the lengths of tuples may be.
    """

    sites: set[Let] = field(default_factory=set)
    classes: dict[Any, type] = field(default_factory=dict)
    family: Family | None = None
    words: dict[Let, set[Any]] = field(default_factory=dict)
    nests: bool = False

    def class_of(self, families: Families, site: Let, items: Sequence[V.Value]) -> type:
        """The class of the tuples that are like one with these items, made by an expression.

        Raises NeedsNodes where the texts in what it makes turn out to be data.
        """
        key, met = _key(items), self.words.setdefault(site, set())
        if len(met) > _MOST_WORDS:
            key = (len(items),)
        elif key not in met:
            met.add(key)
            if len(met) > _MOST_WORDS:
                raise NeedsNodes(frozenset((site,)), (self,), begins_anew=True)
        cls = self.classes.get(key)
        if cls is None:
            cls = self.classes[key] = anonymous_class(len(items), self)
            if self.family is None:
                self.family = families.declare([cls])
            else:
                self.family.add(cls)
        return cls


def _key(items: Sequence[V.Value]) -> tuple[Any, ...]:
    """The number of items, and the texts among them: a test of one tells what the others are."""
    texts = (
        (k, v.value) for k, v in enumerate(items)
        if isinstance(v, V.Known) and isinstance(v.value, str)
    )
    return (len(items), *texts)


@dataclass(eq=False)
class NeedsNodes(Exception):
    """Tuples made at these places nest without end, or meet nodes of these groups.

    error: what is wrong if nodes are no help. begins_anew: the nodes are of other classes now.
    nests: they stand in each other without end.
    """

    sites: frozenset[Let]
    groups: Sequence[Group] = ()
    error: Exception | None = None
    begins_anew: bool = False
    nests: bool = False


@dataclass
class Groups:
    """All groups of a program."""

    groups: list[Group] = field(default_factory=list)

    def of(self, site: Let | None) -> Group | None:
        """The group of an expression, if it makes nodes."""
        return next((g for g in self.groups if site in g.sites), None)

    def nesting(self) -> Groups:
        """Those whose tuples nest without end."""
        return Groups([group for group in self.groups if group.nests])

    def note(self, need: NeedsNodes) -> bool:
        """Enter what an attempt found; false if that is nothing new."""
        known = [self.of(s) for s in need.sites]
        met = list(dict.fromkeys(g for g in (*need.groups, *known) if g is not None))
        if len(met) == 1 and need.sites <= met[0].sites and not need.begins_anew:
            return False
        joined = met[0] if len(met) == 1 and not need.begins_anew else Group()
        joined.sites |= need.sites.union(*(g.sites for g in met))
        joined.nests |= need.nests or any(g.nests for g in met)
        joined.words = {site: keys for g in met for site, keys in g.words.items()}
        self.groups = [g for g in self.groups if g not in met] + [joined]
        return True


def group_of(schema: Schema | Family) -> Group | None:
    """The group whose nodes a pool holds, None for nodes of the user's classes."""
    return next((g for c in schema.classes if (g := vars(c).get("group")) is not None), None)


def tuple_of(it: Interpreter, items: Sequence[V.Value]) -> V.Value:
    """The tuple that the expression at hand makes."""
    from pyrelay.infer.nodes.building import build

    group = it.program.nodes.of(it.let)
    if group is None:
        return V.Tuple(tuple(items), made=frozenset((it.let,)) if it.let else frozenset())
    assert it.let is not None
    cls: Any = group.class_of(it.program.families, it.let, items)
    return build(it, cls, dict(zip(cls._fields, items, strict=True)))


def refuse_groups(*schemas: Schema) -> None:
    """Raises NeedsNodes if these are nodes of several groups."""
    groups = {g for s in schemas if (g := group_of(s)) is not None}
    if len(groups) > 1:
        raise NeedsNodes(frozenset(), tuple(groups))


def refuse_tuples(cls: type, fields: Fields, values: Mapping[str, V.Value]) -> None:
    """Raises NeedsNodes for tuples in fields of a node that hold nodes, too."""
    if not is_anonymous(cls):
        return
    for name, sort in fields:
        if isinstance(sort, Choice) and any(isinstance(c, Child) for c in sort.cases):
            value = values[name]
            cases = value.possible if isinstance(value, V.Union) else (value,)
            made = frozenset(s for c in cases if isinstance(c, V.Tuple) for s in c.made)
            if made:
                raise NeedsNodes(made, (vars(cls)["group"],))


# -- finding them ----------------------------------------------------------------------------------


def refuse_deeper_fields(
    known: Mapping[str, Sort], now: Fields, values: Mapping[str, V.Value]
) -> None:
    """Raises NeedsNodes where a field is to hold tuples in tuples, deeper than those that the last
    attempt found in it: they were made of what was read from it."""
    for name, sort in now:
        if name in known and _tuples(sort) > max(_tuples(known[name]), 1):
            value = values[name]
            cases = value.possible if isinstance(value, V.Union) else (value,)
            made = frozenset(s for c in cases if isinstance(c, V.Tuple) for s in c.made)
            if made and _tuples(known[name]):
                raise NeedsNodes(made, nests=True)


def _tuples(sort: Sort) -> int:
    """How deep tuples stand in each other in what is of a sort."""
    match sort:
        case Struct(children):
            return 1 + max(map(_tuples, children), default=0)
        case Choice(cases):
            return max(map(_tuples, cases))
        case Items(item=item):
            return _tuples(item)
    return 0


def refuse_depth(before: Iterable[Any], now: Iterable[Any]) -> None:
    """Raises NeedsNodes where tuples stand deeper in tuples than they did, in others made at the
    same place; NeedsEntries for such dicts, and lists of known length; NeedsNested for other
    lists."""
    now = tuple(now)
    deepest = _deepest(now)
    if deepest <= _deepest(before):
        return
    tuples, others = _nested(now)
    if tuples:
        raise NeedsNodes(tuples, nests=True)
    grown = next(filter(_makes_empty_list, others), None)
    if grown is not None:
        raise needs.NeedsNested(grown, NestedList)
    if others:
        raise needs.NeedsEntries(others, endless=True)


def _makes_empty_list(let: Let) -> bool:
    """Whether a display makes a list that is empty at first."""
    return isinstance(let.rhs, PyCall) and let.rhs.kind == "list" and not let.rhs.args


def _deepest(layouts: Iterable[Any]) -> int:
    """How deep tuples, dicts and lists stand in each other, those of the caller among them: made
    anew of those, as by a function that goes through a tree, they are no deeper."""
    return max((_depth(x) for x in layouts), default=0)


def _depth(layout: Any) -> int:
    deepest = _deepest(_inside(layout))
    match layout:
        case L.LNode(("tuple", *_)) | L.LPlace(kind="dict"):
            return deepest + 1
        case _:
            return deepest + 1 if made_here(layout) else deepest


def made_here(layout: Any) -> frozenset[Let]:
    """Where this tuple, dict or list is made."""
    match layout:
        case L.LNode(made=made):
            return made
        case L.LPlace(kind="dict" | "list", made=made) if made is not None:
            return frozenset((made,))
    return frozenset()


def _nested(layouts: Iterable[Any]) -> tuple[frozenset[Let], frozenset[Let]]:
    """Where the tuples are made that stand in others of as many items made at the same place, and
    where the dicts and lists that stand in others made there."""
    tuples: set[Let] = set()
    others: set[Let] = set()

    def visit(here: Any, around: dict[Any, frozenset[Let]]) -> None:
        own = made_here(here)
        if own:
            is_tuple = isinstance(here, L.LNode)
            what = here.head if is_tuple else here.kind
            outer = around.get(what)
            if outer is not None and outer & own:
                (tuples if is_tuple else others).update(outer, own)
            around = {**around, what: own | (outer or frozenset())}
        for part in _inside(here):
            visit(part, around)

    for layout in layouts:
        visit(layout, {})
    return frozenset(tuples), frozenset(others)


def _inside(layout: Any) -> Iterator[Any]:
    match layout:
        case L.LNode(_, parts) | L.LUnion(parts):
            yield from parts
        case L.LPlace(content=(L.LNode() | L.LGrown()) as content):
            yield content
        case L.LGrown(template):
            yield template


def made_in(layout: Any) -> frozenset[Let]:
    """Where the tuples in a layout are made."""
    own = layout.made if isinstance(layout, L.LNode) else frozenset()
    return own.union(*map(made_in, _inside(layout)))
