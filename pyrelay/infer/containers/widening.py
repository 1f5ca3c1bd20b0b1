"""Rows of growing lists for wider templates: items of more kinds, lists that had none so far.

In: the content of a list and a template that joined its own with others (joining.py). Out: the
content with rows for all leaves of that template: what is new in it is filled with zeros.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers.open_layouts import is_open, items_of_open
from pyrelay.infer.kinds import code
from pyrelay.infer.leaves import typed_by_rows
from pyrelay.infer.wide import bits_of_all
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

Shape = tuple[Extent, ...]


def count_atom(builder: Builder, count: V.Value) -> Atom:
    """The number of items of a list."""
    match count:
        case V.Known(n):
            return constant(n)
        case V.Scalar(_, None, extent):
            assert extent is not None
            return builder.extent(extent).atom
        case V.Scalar(_, atom):
            assert atom is not None
            return atom
    raise AssertionError(count)


def known_outside(extent: Extent, bound: Collection[Symbol] | None) -> Extent:
    """The extent of items that a list without any will have; 0 where that is not known yet."""
    nothing = dict.fromkeys(dims.symbols(extent), 0)
    unknown = any(
        s.name == "d" and s.origin is Origin.RUNTIME and (bound is None or s in bound)
        for s in nothing
    )
    return dims.substitute(extent, nothing) if unknown else extent


def wide(builder: Builder, row: Atom, axis: int, capacity: Extent) -> Atom:
    """The rows with more room along an axis."""
    assert isinstance(row.type, TensorType)
    extra = dims.add(capacity, dims.multiply(-1, row.type.shape[axis]))
    if extra == 0:
        return row
    none = (0,) * row.type.rank
    after = (*none[:axis], extra, *none[axis + 1 :])
    zero = constant(0, TensorType(row.type.dtype))
    padded: Handle = builder.call(OPS["pad"], row, zero, before=none, after=after)
    return padded.atom


def cast_rows(
    builder: Builder, content: V.Growing, template: L.Layout,
    bound: Collection[Symbol] | None = None,
) -> V.Growing:
    """The content with the leaves of a template that joined its own with others."""
    lead = len(content.prefix) + 1
    around: Shape = ()
    if content.rows:
        around = content.rows[0].type.shape[:lead]  # type: ignore[union-attr]
    elif not L.is_unread(content.template):
        around = (_room(builder, content.count),)
    widening = _Widening(builder, content.count, lead, bound, iter(content.rows))
    rows = widening.converted(content.template, template, around)
    template = typed_by_rows(template, rows, lead)
    same = len(rows) == len(content.rows) and all(map(operator.is_, rows, content.rows))
    if same and template == content.template:
        return content
    return replace(content, rows=tuple(rows), template=template)


@dataclass
class _Widening:
    """The rows of one list, on their way to a wider template.

    count: of its items. lead: the axes that all rows have. own: the rows that are not read yet, in
    the order of the leaves of the list's own template.

    The methods below take the shape `around` each item that they convert, and return rows in the
    order of the leaves of the new layout.
    """

    builder: Builder
    count: V.Value
    lead: int
    bound: Collection[Symbol] | None
    own: Iterator[Atom]

    def converted(
        self, old: L.Layout, new: L.Layout, around: Shape, outer: tuple[Atom, ...] = ()
    ) -> list[Atom]:
        """The rows of what was laid out as `old`; outer: the counts of the lists around it."""
        match old, new:
            case _ if L.is_unread(old) and not isinstance(new, L.LKnown):
                return self.zeros(new, (*around, 0))  # no list has such items yet
            case L.LUnion(cases), _ if is_open(new):
                tag = next(self.own)
                several = [self.converted(case, new, around, outer) for case in cases]
                return _chosen(self.builder, tag, several)
            case L.LKnown(v), L.LScalar(ty):
                return [self.builder.full(v, around, ty.dtype).atom]
            case L.LScalar(), L.LNode(("natural",)):
                return [bits_of_all(self.builder, next(self.own))]
            case _, L.LNode(_, (L.LPlace(content=L.LGrown(inner)),)) if (
                is_open(new) and not is_open(old)
            ):
                return self.opened(items_of_open(old).children, inner, around, outer)
            case _, L.LUnion() if old != new:
                return self.as_case(old, new, around, outer)
            case L.LPlace(_, "list", _, L.LGrown() as x), L.LPlace(_, "list", _, L.LGrown(y)):
                return self.inner_list(x, y, around, outer)
            case L.LKnown(None), L.LNode(("data", *_)):
                return self.zeros(new, around)  # as None is
            case L.LPlace(content=TensorType()), L.LPlace(content=L.LRagged(ty)):
                return self.ragged(ty, around)
            case L.LNode(_, xs), L.LNode(_, ys):
                pairs = zip(xs, ys, strict=True)
                return [row for x, y in pairs for row in self.converted(x, y, around, outer)]
            case L.LScalar(), L.LScalar(kinds=kinds) if kinds:
                return self.number(old, new)
        return [
            self.builder.cast(next(self.own), leaf.dtype) for leaf in L.template_types(new)
        ]

    def zeros(self, new: L.Layout, around: Shape) -> list[Atom]:
        """The rows of what no item has so far."""
        return [
            self.builder.full(
                0, (*around, *(known_outside(d, self.bound) for d in leaf.shape)), leaf.dtype
            ).atom
            for leaf in L.template_types(new)
        ]

    def opened(
        self, items: Sequence[L.Layout], inner: L.Layout, around: Shape, outer: tuple[Atom, ...]
    ) -> list[Atom]:
        """A tuple or a string of known length as one of run-time length."""
        count = self.builder.full(len(items), around, types.i64).atom
        parts = [self.converted(item, inner, around, outer) for item in items]
        if not parts:
            return [count, *self.zeros(inner, (*around, 0))]
        rows = [count]
        for column in zip(*parts, strict=True):
            along = [
                self.builder.call(OPS["expand_dims"], c, axes=(len(around),)) for c in column
            ]
            rows.append(self.builder.call(OPS["concatenate"], *along, axis=len(around)).atom)
        return rows

    def as_case(
        self, old: L.Layout, new: L.LUnion, around: Shape, outer: tuple[Atom, ...]
    ) -> list[Atom]:
        """What was of one kind, or of a few, as one case of a union."""
        numbers = L.cases_in(old, new)
        if numbers is None:
            raise errors.UnsupportedOperationError(
                "The items of a list whose length is known only at run time have no common type.",
                hints=("give the items one type and shape, or keep them in lists of their own",),
            )
        if isinstance(old, L.LUnion):
            before, tags = old.cases, _renumbered(self.builder, next(self.own), numbers)
        else:
            before, tags = (old,), self.builder.full(numbers[0], around, types.i64).atom
        olds = dict(zip(numbers, before, strict=True))
        rows = [tags]
        for k, case in enumerate(new.cases):
            rows += (
                self.converted(olds[k], case, around, outer) if k in olds
                else self.zeros(case, around)
            )
        return rows

    def inner_list(
        self, old: L.LGrown, template: L.Layout, around: Shape, outer: tuple[Atom, ...]
    ) -> list[Atom]:
        """A list in the items: the count of its items, and their rows."""
        counts = (*outer, next(self.own))
        if len(old.leaves) > 1:
            around = (*around, old.capacity)
        elif not L.is_unread(old.template) and _has_leaves(template):
            whole = count_atom(self.builder, self.count)
            around = (*around, _most(self.builder, (whole, *counts)))
        return [counts[-1], *self.converted(old.template, template, around, counts)]

    def ragged(self, ty: TensorType, around: Shape) -> list[Atom]:
        """Arrays of one shape as arrays that have their extents beside them."""
        row = next(self.own)
        extents = [
            self.builder.full(self.builder.extent(extent), around, types.i64).atom
            for extent in row.type.shape[self.lead :]  # type: ignore[union-attr]
        ]
        return [*extents, self.builder.cast(row, ty.dtype)]

    def number(self, old: L.LScalar, new: L.LScalar) -> list[Atom]:
        """A number as one of several kinds, of which it was one or a few."""
        row = next(self.own)
        shape = row.type.shape  # type: ignore[union-attr]
        number = self.builder.cast(row, new.type.dtype)
        if old.kinds:
            return [number, next(self.own)]
        return [number, self.builder.full(code(old.type), shape, types.i64).atom]


def _chosen(builder: Builder, tags: Atom, cases: Sequence[Sequence[Atom]]) -> list[Atom]:
    """Of each item the leaves of the case that its tag says, with room for the longest case."""
    lead: int = tags.type.rank  # type: ignore[union-attr]
    chosen = []
    for column in zip(*cases, strict=True):
        parts = list(column)
        rank: int = parts[0].type.rank
        if rank > lead:
            widest: Extent = 0
            for part in parts:
                widest = dims.maximum(widest, part.type.shape[lead])
            parts = [wide(builder, part, lead, widest) for part in parts]
        result = builder.handle(parts[-1])
        for k, part in reversed(list(enumerate(parts[:-1]))):
            test = builder.call(OPS["equal"], tags, k)
            if rank > lead:
                test = builder.call(OPS["expand_dims"], test, axes=tuple(range(lead, rank)))
            result = builder.call(OPS["where"], test, part, result)
        chosen.append(result.atom)
    return chosen


def _renumbered(builder: Builder, tags: Atom, numbers: Sequence[int]) -> Atom:
    """The tags of a union's cases as they are numbered in another one."""
    if all(k == number for k, number in enumerate(numbers)):
        return tags
    result = builder.handle(tags)
    for k, number in enumerate(numbers):
        test = builder.call(OPS["equal"], tags, k)
        result = builder.call(OPS["where"], test, number, result)
    return builder.cast(result.atom, types.i64)


def _has_leaves(template: L.Layout) -> bool:
    return next(L.template_types(template), None) is not None


def _most(builder: Builder, counts: Sequence[Atom]) -> Extent:
    """How many items the longest of the lists in lists has, 0 if there are none.

    counts: of the outer list, of the lists in it, and so on. Rows beyond a count hold anything.
    """
    lengths = builder.handle(counts[-1])
    rank = lengths.rank
    for depth, count in enumerate(counts[:-1]):
        places = builder.call(OPS["iota"], size=lengths.shape[depth], dtype=types.i64)
        others = tuple(k for k in range(rank) if k != depth)
        if others:
            places = builder.call(OPS["expand_dims"], places, axes=others)
        counted = builder.call(OPS["expand_dims"], count, axes=tuple(range(depth, rank)))
        inside = builder.call(OPS["less"], places, counted)
        lengths = builder.call(OPS["where"], inside, lengths, 0)
    some = builder.call(
        OPS["pad"], lengths, constant(0, TensorType(types.i64)), before=(1,) * rank,
        after=(0,) * rank,
    )
    most = builder.call(OPS["max"], some, axes=tuple(range(rank)), keepdims=False)
    _, (extent,) = builder.call(OPS["as_extent"], most, name="n")
    return extent  # type: ignore[no-any-return]


def _room(builder: Builder, count: V.Value) -> Extent:
    """How many items a list has whose items have no leaves, and so no rows."""
    match count:
        case V.Known(n):
            return int(n)
        case V.Scalar(_, None, extent) if extent is not None:
            return extent
    _, (room,) = builder.call(OPS["as_extent"], count_atom(builder, count), name="n")
    return room  # type: ignore[no-any-return]
