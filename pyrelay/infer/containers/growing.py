"""Growing lists: the content of a list whose length is known only while the program runs.

In: items of one structure. Out: a `values.Growing`: a count, and for each leaf of an item (number,
array, tag of a union) one array of rows with room for more. Appending writes one row, and
doubles the room when it is used up, so that n appends cost O(n) (Cormen et al., Introduction to
Algorithms, 17.4). Items are copies: an array that became one may not be written in place any more.

What Python's list operations mean on such contents stands in lists.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyrelay.errors import AliasError, Span, UnsupportedOperationError
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import ragged
from pyrelay.infer.containers.item_shapes import note_check_of_shapes
from pyrelay.infer.containers.open_layouts import is_open
from pyrelay.infer.containers.widening import cast_rows, count_atom, known_outside, wide
from pyrelay.infer.decoding import Decoder
from pyrelay.infer.describing import Describer
from pyrelay.infer.encoding import Encoder
from pyrelay.infer.flow import joining as J
from pyrelay.infer.heap import Heap
from pyrelay.infer.leaves import typed_by_rows
from pyrelay.infer.slots import Inside, Moved, places_of
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import UNREAD, Atom, Const, If
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType

#: Room that a list gets beyond twice its length when it has to grow.
SPARE = 8
#: What a program says that checks extents of items.
ONE_SHAPE = (
    "the arrays in a compiled list, or in a field of objects that refer to each other, must have "
    "one shape: {} is not {}; pad them to one, or keep them in variables or lists of their own"
)

Read = Callable[[V.Value], Atom]


# -- from static lists -----------------------------------------------------------------------------


def template_of(heap: Heap, items: Sequence[V.Value]) -> L.Layout:
    """The common layout of items. Raises JoinError if they have none."""
    joined: L.Layout = L.LKnown(UNREAD)
    for item in items:
        describer = Describer(heap, _is_pool, 1 << 62, loosen=True, kinds=True)
        joined = J.join_items(joined, L.as_template(describer(item)))
    return joined


def _is_pool(root: V.Root) -> bool:
    """Nodes in a list stay in their pool."""
    return root.kind == "pool"


def item_atoms(
    builder: Builder, heap: Heap, read: Read, item: V.Value, template: L.Layout,
    bound: Collection[Symbol] = (),
) -> list[Atom]:
    """The leaves of an item, in the order of the rows; lists in it keep their own capacities."""
    encoder = Encoder(builder, heap, read, bound=bound, roomy=True)
    encoder(item, template)
    return encoder.finish()


def from_items(
    builder: Builder, heap: Heap, read: Read, items: Sequence[V.Value], template: L.Layout,
    bound: Collection[Symbol] | None = None,
) -> V.Growing:
    """The growing content of these items, with no room to spare. `bound`: see `fitted`."""
    leaves = tuple(L.template_types(template))
    inner = rooms(template)
    unknown = bound
    if unknown is None:
        unknown = {symbol for leaf in leaves for symbol in types.type_symbols(leaf)}
    parts = [item_atoms(builder, heap, read, item, template, unknown) for item in items]
    rows = []
    for k, leaf in enumerate(leaves):
        column = [p[k] for p in parts]
        for axis in (a for numbers, a in inner if k in numbers and column):
            widest: Extent = 0
            for atom in column:
                widest = dims.maximum(widest, atom.type.shape[axis])  # type: ignore[union-attr]
            column = [wide(builder, atom, axis, widest) for atom in column]
        rows.append(_stacked(builder, column, leaf, bound))
    return V.Growing(
        V.Known(len(items)), tuple(rows), typed_by_rows(template, rows), slots=object()
    )


def rooms(template: L.Layout) -> list[tuple[range, int]]:
    """Where the leaves of an item have room for more than it fills: their numbers, and the axis.

    These are the items of lists in it, of lists in those, and the arrays that are not of one shape
    in all items.
    """
    found: list[tuple[range, int]] = []
    pending = [(template, 0, 0)]
    while pending:
        here, start, axis = pending.pop()
        for _, own, layout in _insides(here):
            first = start + own
            match layout.content:
                case L.LGrown(item) as inner if len(inner.leaves) > 1:
                    found.append((range(first + 1, first + len(inner.leaves)), axis))
                    pending.append((item, first + 1, axis + 1))
                case L.LRagged(ty):
                    last = first + ty.rank
                    found += ((range(last, last + 1), axis + k) for k in range(ty.rank))
    return found


def inner_lists(template: L.Layout) -> dict[tuple[int, ...], tuple[int, L.LGrown]]:
    """The lists inside an item by their paths: the number of the first leaf, and the layout.

    Those that tuples and strings are made of are nobody's, and not among them.
    """
    return {
        path: (first, layout.content) for path, first, layout in _insides(template)
        if path is not None and isinstance(layout.content, L.LGrown)
    }


def slots_inside(template: L.Layout) -> list[object]:
    """What tells whether lists in lists in an item are where they were, for each level of them."""
    found: list[object] = []
    pending = [template]
    while pending:
        for _, _, layout in _insides(pending.pop()):
            if isinstance(layout.content, L.LGrown):
                if isinstance(layout.content.slots, Inside):
                    found.append(layout.content.slots.slots)
                pending.append(layout.content.template)
    return found


def _insides(template: L.Layout) -> Iterator[tuple[tuple[int, ...] | None, int, L.LPlace]]:
    """The objects inside an item: their paths, the numbers of their first leaves, their layouts.

    Those in cases of a union have the path of the union; what a tuple or a string of run-time
    length is made of has none.
    """
    first = 0
    pending: list[tuple[tuple[int, ...] | None, L.Layout]] = [((), template)]
    while pending:
        path, here = pending.pop()
        match here:
            case L.LNode(_, children):
                apart = path is None or is_open(here)
                pending += reversed([
                    (None if apart or path is None else (*path, k), c)
                    for k, c in enumerate(children)
                ])
                continue
            case L.LUnion(cases):
                first += 1
                pending += reversed([(path, c) for c in cases])
                continue
            case L.LPlace():
                yield path, first, here
        first += len(tuple(L.template_types(here)))


def value_at(value: V.Value, path: Sequence[int]) -> V.Value:
    """The part of an item at a path."""
    for k in path:
        assert isinstance(value, V.Tuple)
        value = value.items[k]
    return value


def _stacked(
    builder: Builder, items: Sequence[Atom], leaf: TensorType, bound: Collection[Symbol] | None
) -> Atom:
    """The rows of one leaf."""
    if not items:
        shape = tuple(known_outside(d, bound) for d in leaf.shape)
        return builder.full(0, (0, *shape), leaf.dtype).atom
    items = [builder.cast(i, leaf.dtype) for i in items]
    first = items[0]
    if not leaf.shape and all(isinstance(i, Const) and _alike(i, first) for i in items):
        return builder.full(first, (len(items),), leaf.dtype).atom
    expanded = [builder.call(OPS["expand_dims"], i, axes=(0,)) for i in items]
    if len(expanded) == 1:
        atom: Atom = expanded[0].atom
        return atom
    alike = [expanded[0], *(_of_shape(builder, h, expanded[0].type) for h in expanded[1:])]
    joined: Handle = builder.call(OPS["concatenate"], *alike, axis=0)
    return joined.atom


def _of_shape(builder: Builder, item: Handle, wanted: TensorType) -> Handle:
    """The item, of extents that the program computes, after a check that they are the wanted ones.

    That they may differ is noted: an attempt with room for arrays of several shapes is better.
    """
    assert isinstance(item.type, TensorType)
    for own, other in zip(item.type.shape, wanted.shape, strict=True):
        if not dims.equal(own, other):
            note_check_of_shapes()
            builder.call(OPS["check_equal"], left=other, right=own, text=ONE_SHAPE)
            shape = tuple(other if d == own else d for d in item.type.shape)
            item = builder.call(OPS["refine"], item, shape=shape)
    return item


def _alike(a: Atom, b: Atom) -> bool:
    return isinstance(a, Const) and isinstance(b, Const) and repr(a.value) == repr(b.value)


def fitted(
    builder: Builder, heap: Heap, read: Read, root: V.Root, template: L.Layout,
    bound: Collection[Symbol] | None = None,
) -> V.Growing:
    """The content of a list as a growing one of this template, which the heap holds from now on.

    bound: the symbols of the template that are not bound yet; None if any of joins may be.
    """
    content = heap.contents[root]
    if not isinstance(content, V.Growing):
        items = content
        _share_lists(heap, root, items, template)
        content = from_items(builder, heap, read, items, template, bound)
        for k, item in enumerate(items):
            keep(heap, item, root.span, root)
            moved(heap, root, content, V.Known(k), item)
    else:
        content = cast_rows(builder, content, template, bound)
    heap.contents[root] = content
    return content


_LENDS_ALL = 2
"""See `Program.lends`."""


def _share_lists(
    heap: Heap, root: V.Root, items: Sequence[V.Value], template: L.Layout
) -> None:
    """Have items that are one list be copies, if lists are lent, else refuse them: each is going to
    live in a place of its own."""
    _lend_lists(heap, root, items, template)
    seen: set[V.Root] = set()
    for inner in _lists_in(items, template):
        if not isinstance(inner, V.Ref):
            raise UnsupportedOperationError(
                "One of several lists, chosen while the program runs, becomes an item of a "
                "list whose length is known only then.",
                hints=("make each item a list of its own: rows.append(list(row))",),
            )
        elsewhere = isinstance(heap.contents[inner.root], (V.Part, V.Lost))
        if elsewhere or (inner.root in seen and not inner.root.stored):
            raise AliasError(
                "One list is an item in two places of lists whose length is known only at run "
                "time, and a change of one would have to show in the other.",
                hints=("make each item a list of its own: [[0] * m for _ in range(n)]",),
            )
        seen.add(inner.root)


def _lists_in(items: Sequence[V.Value], template: L.Layout) -> Iterator[V.Value]:
    for path in inner_lists(template):
        for item in items:
            yield value_at(item, path)


def _lend_lists(
    heap: Heap, root: V.Root, items: Sequence[V.Value], template: L.Layout
) -> None:
    """Lists that are items of a list are copies there, as far as lists are lent: those that are so
    twice, or all."""
    inner = Counter(v.root for v in _lists_in(items, template) if isinstance(v, V.Ref))
    twice = [own for own, times in inner.items() if times > 1]
    heap.items.would_lend |= bool(twice)
    if heap.items.lends:
        for own in inner if heap.items.lends >= _LENDS_ALL else twice:
            if not isinstance(heap.contents[own], (V.Part, V.Lost)):
                heap.lend(own, root.span)


def moved(
    heap: Heap, owner: V.Root, content: V.Growing, position: V.Value, item: V.Value
) -> None:
    """An item was put at a position: lists in it live there from now on, unless they are lent."""
    for path in inner_lists(content.template):
        inner = value_at(item, path)
        assert isinstance(inner, V.Ref)
        if not inner.root.stored:
            heap.contents[inner.root] = V.Part(owner, position, path, places_of(content.slots))


def moving(heap: Heap, root: V.Root, layout: object) -> dict[V.Root, L.LNode]:
    """The layouts of the lists in a static list that is to become a growing one of this layout."""
    content = heap.contents[root]
    if not isinstance(layout, L.LGrown) or not isinstance(content, tuple):
        return {}
    found: dict[V.Root, L.LNode] = {}
    _lend_lists(heap, root, content, layout.template)
    for k, item in enumerate(content):
        for path in inner_lists(layout.template):
            inner = value_at(item, path)
            assert isinstance(inner, V.Ref)
            if inner.root.stored:
                continue
            part = V.Part(root, V.Known(k), path, places_of(layout.slots))
            known = inner.root not in found and not isinstance(layout.slots, Moved)
            head = L.content_head(part) if known else ("lost",)
            found[inner.root] = L.LNode(head, (L.LKnown(k),) if known else ())
    return found


def keep(heap: Heap, item: V.Value, span: Span | None, owner: V.Root | None = None) -> None:
    """Note that the arrays in a new item are kept by a list, `owner` where that is known, as
    copies."""
    for part in V.leaves_of((item,)):
        if isinstance(part, V.ArrayRef):
            read = part.root.stored and part.root not in heap.items.kept
            if read or part.root in heap.kept or part.view:
                heap.items.shared = True
            elif not part.root.stored:
                heap.items.kept.add(part.root)
            heap.kept.add(part.root)
            if not part.root.stored:
                part.root.keeper = owner
            elif part.root.keeper is not owner:
                part.root.keeper = None
            part.root.stored = part.root.stored or span or part.root.span or True


# -- rows ------------------------------------------------------------------------------------------


def with_room(
    builder: Builder, content: V.Growing, count: Handle, more: Handle | int = 1
) -> V.Growing:
    """The content with room for `more` items behind its `count` first ones."""
    if not content.rows:
        return content
    if isinstance(more, int):
        larger = dims.add(dims.multiply(2, content.capacity), max(SPARE, more))
        short = count + more > builder.extent(content.capacity)
        return _widened(builder, content, short, larger)
    needed = count + more
    short = needed > builder.extent(content.capacity)
    _, (least,) = builder.call(OPS["as_extent"], needed, name="n")
    larger = dims.add(dims.add(least, content.capacity), SPARE)
    return _widened(builder, content, short, larger)


def _widened(
    builder: Builder, content: V.Growing, short: Handle, larger: Extent
) -> V.Growing:
    """The content, with a larger capacity if it is short of room."""
    axis = len(content.prefix)
    rows = widened(builder, content.rows, axis, short, larger)
    return replace(content, rows=rows, template=_typed(content, rows))


def widened(
    builder: Builder, rows: Sequence[Atom], axis: int, short: Handle, larger: Extent
) -> tuple[Atom, ...]:
    """The rows, with a larger extent along an axis if they are short of room."""
    symbol = Symbol("d", Origin.RUNTIME)
    then, orelse = builder.nested(), builder.nested()
    grown = [wide(then, row, axis, larger) for row in rows]
    out_types = []
    for row in rows:
        assert isinstance(row.type, TensorType)
        shape = row.type.shape
        out_types.append(
            TensorType(row.type.dtype, (*shape[:axis], dims.of(symbol), *shape[axis + 1 :]))
        )
    before = rows[0].type.shape[axis]  # type: ignore[union-attr]
    node = If(short.atom, then.block(grown, (larger,)), orelse.block(rows, (before,)))
    return tuple(h.atom for h in builder.bind(node, out_types, dims=(symbol,)))


def _typed(content: V.Growing, rows: Sequence[Atom]) -> L.Layout:
    return typed_by_rows(content.template, rows, len(content.prefix) + 1)


def plain(builder: Builder, content: V.Growing) -> V.Growing:
    """The content in rows of its own."""
    if not content.prefix:
        return content
    axes = tuple(range(len(content.prefix)))
    rows = tuple(
        builder.call(OPS["index"], row, *content.prefix, axes=axes).atom for row in content.rows
    )
    return replace(content, rows=rows, prefix=())


def read_row(
    builder: Builder, heap: Heap, content: V.Growing, position: Atom, span: Span | None = None,
    owner: V.Root | None = None,
) -> V.Value:
    """The item at a checked position; arrays in it are fresh ones, marked as items.

    Lists in it stay where they are, in the list `owner`; without one they are copied.
    """
    axes = tuple(range(len(content.prefix) + 1))
    types_ = tuple(L.template_types(content.template))
    kept = inner_lists(content.template) if owner is not None else {}
    skipped = {
        k for first, inner in kept.values() for k in range(first, first + len(inner.leaves))
    }
    leaves: list[Atom] = []
    for k, (row, ty) in enumerate(zip(content.rows, types_, strict=True)):
        if k in skipped:
            leaves.append(row)
            continue
        element: Handle = builder.call(OPS["index"], row, *content.prefix, position, axes=axes)
        leaves.append(builder.cast(element, ty.dtype, weak=ty.weak))
    template, leaves = ragged.cut(builder, content.template, leaves)
    item = Decoder(iter(leaves), heap)(template)
    for path in kept:
        inner = value_at(item, path)
        assert isinstance(inner, V.Ref)
        assert owner is not None
        place = V.Scalar(types.PY_INT, position)
        heap.contents[inner.root] = V.Part(owner, place, path, places_of(content.slots))
    for part in V.leaves_of((item,)):
        if isinstance(part, V.ArrayRef):
            part.root.stored = span or True
    return item


def write_row(
    builder: Builder, content: V.Growing, position: Atom, leaves: Sequence[Atom]
) -> V.Growing:
    """The content with other leaves in one row."""
    for k, leaf in enumerate(leaves):
        content = write_leaf(builder, content, position, k, leaf)
    return content


def write_leaf(
    builder: Builder, content: V.Growing, position: Atom, column: int, leaf: Atom
) -> V.Growing:
    """The content with another leaf in one row of one column."""
    axes = tuple(range(len(content.prefix) + 1))
    rows = list(content.rows)
    written = builder.call(
        OPS["index_update"], rows[column], leaf, *content.prefix, position, axes=axes
    )
    rows[column] = written.atom
    return replace(content, rows=tuple(rows))


def fit_inner(
    builder: Builder, content: V.Growing, leaves: Sequence[Atom], *, several: bool = False
) -> tuple[V.Growing, list[Atom]]:
    """Room for the lists in an item that is about to be written: theirs, and its own.

    several: the leaves are of several items, along a first axis.
    """
    leaves, rows = list(leaves), list(content.rows)
    lead = len(content.prefix) + 1
    for numbers, inside in rooms(content.template):
        axis = inside + 1 if several else inside
        own = leaves[numbers[0]].type.shape[axis]  # type: ignore[union-attr]
        there = rows[numbers[0]].type.shape[lead + inside]  # type: ignore[union-attr]
        if own == there:
            continue
        more = dims.add(own, dims.multiply(-1, there))
        new: Sequence[Atom] = [rows[k] for k in numbers]
        if not (own == 0 or (isinstance(more, int) and more < 0)):
            short = builder.extent(own) > builder.extent(there)
            new = widened(builder, new, lead + inside, short, own)
        for k, row in zip(numbers, new, strict=True):
            rows[k] = row
            shape = list(leaves[k].type.shape)  # type: ignore[union-attr]
            shape[axis] = row.type.shape[lead + inside]  # type: ignore[union-attr]
            leaf: TensorType = leaves[k].type  # type: ignore[assignment]
            if own == 0 and not several:  # nothing of it is read
                leaves[k] = builder.undef(replace(leaf, shape=tuple(shape))).atom
            else:
                leaves[k] = ragged.filled_up(builder, leaves[k], shape)
    return replace(content, rows=tuple(rows), template=_typed(content, rows)), leaves


def of_one_room(
    builder: Builder, first: V.Growing, second: V.Growing
) -> tuple[V.Growing, V.Growing]:
    """Two contents of one structure whose inner lists have room for as many items as either's."""
    rows = list(first.rows), list(second.rows)
    for numbers, axis in rooms(first.template):
        for k in numbers:
            one, other = (part[k].type.shape[1 + axis] for part in rows)  # type: ignore[union-attr]
            widest = dims.maximum(one, other)
            for part in rows:
                part[k] = wide(builder, part[k], 1 + axis, widest)
    return (
        replace(first, rows=tuple(rows[0]), template=_typed(first, rows[0])),
        replace(second, rows=tuple(rows[1]), template=_typed(second, rows[1])),
    )


def inner_content(
    builder: Builder, content: V.Growing, path: tuple[int, ...], position: Atom
) -> V.Growing:
    """The content of the list at a path in the item at a position."""
    first, inner = inner_lists(content.template)[path]
    axes = tuple(range(len(content.prefix) + 1))
    prefix = (*content.prefix, position)
    count: Handle = builder.call(OPS["index"], content.rows[first], *prefix, axes=axes)
    number = V.Scalar(types.PY_INT, builder.cast(count, types.i64, weak=True))
    rows = content.rows[first + 1 : first + len(inner.leaves)]
    slots = inner.slots.slots if isinstance(inner.slots, Inside) else None
    return V.Growing(number, rows, inner.template, frozenset(), prefix, slots)


def with_inner(
    builder: Builder, content: V.Growing, path: tuple[int, ...], inner: V.Growing
) -> V.Growing:
    """The content after one of its lists, whose rows are of this content, was changed."""
    first, old = inner_lists(content.template)[path]
    axes = tuple(range(len(inner.prefix)))
    number = builder.cast(count_atom(builder, inner.count), types.i64)
    counts = builder.call(
        OPS["index_update"], content.rows[first], number, *inner.prefix, axes=axes
    ).atom
    rows = (*content.rows[:first], counts, *inner.rows, *content.rows[first + len(old.leaves) :])
    template = replaced(content.template, path, inner.template, inner.slots)
    content = replace(content, rows=rows, template=template)
    return replace(content, template=_typed(content, rows))


def replaced(
    template: L.Layout, path: Sequence[int], item: L.Layout, slots: Any = None
) -> L.Layout:
    """The template with another item of the list at a path; slots: where its items are, if they
    are lists."""
    if isinstance(template, L.LPlace):
        own = template.content.slots if slots is None else Inside(slots)
        inner = replace(template.content, template=item)
        return replace(template, content=L.with_inside(inner, (own,), of_one_list=True))
    assert isinstance(template, L.LNode)
    k = path[0]
    children = list(template.children)
    children[k] = replaced(children[k], path[1:], item, slots)
    return replace(template, children=tuple(children))


def items_array(builder: Builder, row: Atom, count: Extent) -> Handle:
    """The rows of one leaf that are items."""
    assert isinstance(row.type, TensorType)
    rank = row.type.rank
    part: Handle = builder.call(
        OPS["slice"], row, starts=(0,) * rank, sizes=(count, *row.type.shape[1:]),
        steps=(1,) * rank,
    )
    return part
