"""Rows of growing lists for wider templates: items of more kinds, lists that had none so far.

In: the content of a list and a template that joined its own with others (joining.py). Out: the
content with rows for all leaves of that template: what is new in it is filled with zeros.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from dataclasses import replace

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers.open_layouts import is_open, items_of_open
from pyrelay.infer.kinds import code
from pyrelay.infer.leaves import typed_by_rows
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import UNREAD, Atom
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType


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
    own = iter(content.rows)
    lead = len(content.prefix) + 1
    around: tuple[Extent, ...] = ()
    if content.rows:
        around = content.rows[0].type.shape[:lead]  # type: ignore[union-attr]
    rows: list[Atom] = []

    def fill(new: L.Layout, around: tuple[Extent, ...]) -> None:
        for leaf in L.template_types(new):
            shape = tuple(known_outside(d, bound) for d in leaf.shape)
            rows.append(builder.full(0, (*around, *shape), leaf.dtype).atom)

    def convert(
        old: L.Layout, new: L.Layout, around: tuple[Extent, ...], outer: tuple[Atom, ...] = ()
    ) -> None:
        match old, new:
            case (L.LKnown(v), _) if v is UNREAD and not isinstance(new, L.LKnown):
                fill(new, (*around, 0))  # no list has such items yet
            case L.LUnion(cases), _ if is_open(new):
                tag, several = next(own), []
                for case in cases:
                    first = len(rows)
                    convert(case, new, around, outer)
                    several.append(rows[first:])
                    del rows[first:]
                rows.extend(_chosen(builder, tag, several))
            case L.LKnown(v), L.LScalar(ty):
                rows.append(builder.full(v, around, ty.dtype).atom)
            case _, L.LNode(_, (L.LPlace(content=L.LGrown(inner)),)) if (
                is_open(new) and not is_open(old)
            ):
                items = items_of_open(old).children
                rows.append(builder.full(len(items), around, types.i64).atom)
                parts = []
                for item in items:
                    first = len(rows)
                    convert(item, inner, around, outer)
                    parts.append(rows[first:])
                    del rows[first:]
                if not parts:
                    fill(inner, (*around, 0))
                for column in zip(*parts, strict=True):
                    along = [
                        builder.call(OPS["expand_dims"], c, axes=(len(around),)) for c in column
                    ]
                    whole_row = builder.call(OPS["concatenate"], *along, axis=len(around))
                    rows.append(whole_row.atom)
            case _, L.LUnion(cases) if old != new:
                numbers = L.cases_in(old, new)
                assert numbers is not None
                olds = dict(zip(
                    numbers, old.cases if isinstance(old, L.LUnion) else (old,), strict=True
                ))
                if isinstance(old, L.LUnion):
                    rows.append(_renumbered(builder, next(own), numbers))
                else:
                    rows.append(builder.full(numbers[0], around, types.i64).atom)
                for k, case in enumerate(cases):
                    if k in olds:
                        convert(olds[k], case, around, outer)
                    else:
                        fill(case, around)
            case L.LPlace(_, "list", _, L.LGrown() as x), L.LPlace(_, "list", _, L.LGrown(y)):
                counts = (*outer, next(own))
                rows.append(counts[-1])
                empty = isinstance(x.template, L.LKnown) and x.template.value is UNREAD
                if len(x.leaves) > 1:
                    around = (*around, x.capacity)
                elif not empty and _has_leaves(y):
                    whole = count_atom(builder, content.count)
                    around = (*around, _most(builder, (whole, *counts)))
                convert(x.template, y, around, counts)
            case L.LKnown(None), L.LNode(("data", *_)):
                fill(new, around)  # zeros, as None is
            case L.LPlace(content=TensorType()), L.LPlace(content=L.LRagged(ty)):
                row = next(own)
                for extent in row.type.shape[lead:]:  # type: ignore[union-attr]
                    rows.append(builder.full(builder.extent(extent), around, types.i64).atom)
                rows.append(builder.cast(row, ty.dtype))
            case L.LNode(_, xs), L.LNode(_, ys):
                for one, other in zip(xs, ys, strict=True):
                    convert(one, other, around, outer)
            case L.LScalar(ty, kinds=before), L.LScalar(common, kinds=kinds) if kinds:
                row = next(own)
                rows.append(builder.cast(row, common.dtype))
                shape = row.type.shape  # type: ignore[union-attr]
                same = next(own) if before else builder.full(code(ty), shape, types.i64).atom
                rows.append(same)
            case _:
                for leaf in L.template_types(new):
                    rows.append(builder.cast(next(own), leaf.dtype))

    if isinstance(content.template, L.LKnown) and content.template.value is UNREAD:
        around = (*around[: len(content.prefix)],)
    elif not content.rows:
        around = (_room(builder, content),)
    convert(content.template, template, around)
    template = typed_by_rows(template, rows, lead)
    same = len(rows) == len(content.rows) and all(map(operator.is_, rows, content.rows))
    if same and template == content.template:
        return content
    return replace(content, rows=tuple(rows), template=template)


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


def _room(builder: Builder, content: V.Growing) -> Extent:
    """How many items a list has whose items have no leaves, and so no rows."""
    match content.count:
        case V.Known(count):
            return int(count)
        case V.Scalar(_, None, extent) if extent is not None:
            return extent
        case V.Scalar(_, atom) if atom is not None:
            _, (room,) = builder.call(OPS["as_extent"], atom, name="n")
            return room  # type: ignore[no-any-return]
    raise AssertionError(content.count)
