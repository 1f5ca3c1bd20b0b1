"""Growing lists: the content of a list whose length is known only while the program runs.

In: items of one structure. Out: a `values.Growing`: a count, and for each leaf of an item (number,
array, tag of a union) one array of rows with room for more. Appending writes one row, and
doubles the room when it is used up, so that n appends cost O(n) (Cormen et al., Introduction to
Algorithms, 17.4). Items are copies: an array that became one may not be written in place any more.

What Python's list operations mean on such contents stands in lists.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyrelay.infer import coding
from pyrelay.infer import joining as J
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.heap import Heap
from pyrelay.ir import dims
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom, Const, If
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType

#: Room that a list gets beyond twice its length when it has to grow.
SPARE = 8

Read = Callable[[V.Value], Atom]


# -- from static lists -----------------------------------------------------------------------------


def template_of(heap: Heap, items: Sequence[V.Value]) -> L.Layout:
    """The common layout of items. Raises JoinError if they have none."""
    layouts = []
    for item in items:
        describer = L.Describer(heap, lambda root: False, 1 << 62, loosen=True)
        layouts.append(L.as_template(describer(item)))
    joined = layouts[0]
    for other in layouts[1:]:
        joined = J.join_items(joined, other)
    return joined


def item_atoms(
    builder: Builder, heap: Heap, read: Read, item: V.Value, template: L.Layout
) -> list[Atom]:
    """The leaves of an item, in the order of the rows."""
    encoder = coding.Encoder(builder, heap, read)
    encoder(item, template)
    return encoder.atoms


def from_items(
    builder: Builder, heap: Heap, read: Read, items: Sequence[V.Value], template: L.Layout
) -> V.Growing:
    """The growing content of these items, with no room to spare."""
    leaves = tuple(L.template_types(template))
    parts = [item_atoms(builder, heap, read, item, template) for item in items]
    rows = tuple(
        _stacked(builder, [p[k] for p in parts], leaf) for k, leaf in enumerate(leaves)
    )
    return V.Growing(V.Known(len(items)), rows, coding.typed_by_rows(template, rows))


def _stacked(builder: Builder, items: Sequence[Atom], leaf: TensorType) -> Atom:
    """The rows of one leaf."""
    if not items:
        nothing = {s: 0 for d in leaf.shape for s in dims.symbols(d)}
        shape = tuple(_known_outside(d, nothing) for d in leaf.shape)
        return builder.full(0, (0, *shape), leaf.dtype).atom
    items = [builder.cast(i, leaf.dtype) for i in items]
    first = items[0]
    if not leaf.shape and all(isinstance(i, Const) and _alike(i, first) for i in items):
        return builder.full(first, (len(items),), leaf.dtype).atom
    expanded = [builder.call(OPS["expand_dims"], i, axes=(0,)) for i in items]
    if len(expanded) == 1:
        atom: Atom = expanded[0].atom
        return atom
    joined: Handle = builder.call(OPS["concatenate"], *expanded, axis=0)
    return joined.atom


def _alike(a: Atom, b: Atom) -> bool:
    return isinstance(a, Const) and isinstance(b, Const) and repr(a.value) == repr(b.value)


def _known_outside(extent: Extent, nothing: dict[Symbol, int]) -> Extent:
    """The extent of items that a list without any will have; 0 where that is not known yet."""
    bound = any(s.name == "d" and s.origin is Origin.RUNTIME for s in dims.symbols(extent))
    return dims.substitute(extent, nothing) if bound else extent


def fitted(
    builder: Builder, heap: Heap, read: Read, root: V.Root, template: L.Layout
) -> V.Growing:
    """The content of a list as a growing one of this template, which the heap holds from now on."""
    content = heap.contents[root]
    if not isinstance(content, V.Growing):
        for item in content:
            keep(item, root.span)
        content = from_items(builder, heap, read, content, template)
    else:
        content = cast_rows(builder, content, template)
    heap.contents[root] = content
    return content


def cast_rows(builder: Builder, content: V.Growing, template: L.Layout) -> V.Growing:
    """The content with the numbers of a template that joined its own with others."""
    leaves = L.template_types(template)
    rows = tuple(
        builder.cast(row, leaf.dtype) for row, leaf in zip(content.rows, leaves, strict=True)
    )
    return replace(content, rows=rows, template=coding.typed_by_rows(template, rows))


def keep(item: V.Value, span: object) -> None:
    """Note that the arrays in an item are kept by a list, as copies."""
    for part in V.leaves_of((item,)):
        if isinstance(part, V.ArrayRef):
            part.root.stored = part.root.stored or span or part.root.span  # type: ignore[assignment]


# -- rows ------------------------------------------------------------------------------------------


def with_room(
    builder: Builder, content: V.Growing, count: Handle, more: Handle | int = 1
) -> V.Growing:
    """The content with room for `more` items behind its `count` first ones."""
    if not content.rows:
        return content
    capacity = content.capacity
    needed = count + more
    short = needed > builder.extent(capacity)
    symbol = Symbol("d", Origin.RUNTIME)
    then = builder.nested()
    if isinstance(more, int):
        larger: Extent = dims.add(dims.multiply(2, capacity), max(SPARE, more))
    else:
        _, (extra,) = then.call(OPS["as_extent"], Handle(then, more.atom), name="n")
        larger = dims.add(dims.add(dims.multiply(2, capacity), extra), SPARE)
    grown = [_extended(then, row, larger) for row in content.rows]
    orelse = builder.nested()
    out_types = []
    for row in content.rows:
        assert isinstance(row.type, TensorType)
        out_types.append(TensorType(row.type.dtype, (dims.of(symbol), *row.type.shape[1:])))
    node = If(
        short.atom, then.block(grown, (larger,)), orelse.block(content.rows, (capacity,))
    )
    rows = tuple(h.atom for h in builder.bind(node, out_types, dims=(symbol,)))
    return replace(content, rows=rows)


def _extended(builder: Builder, row: Atom, capacity: Extent) -> Atom:
    assert isinstance(row.type, TensorType)
    extra = dims.add(capacity, dims.multiply(-1, row.type.shape[0]))
    before = (0,) * row.type.rank
    after = (extra, *before[1:])
    zero = constant(0, TensorType(row.type.dtype))
    padded: Handle = builder.call(OPS["pad"], row, zero, before=before, after=after)
    return padded.atom


def read_row(
    builder: Builder, heap: Heap, content: V.Growing, position: Atom, span: object = None
) -> V.Value:
    """The item at a checked position; arrays in it are fresh ones, marked as items."""
    leaves: list[Atom] = []
    for row, ty in zip(content.rows, L.template_types(content.template), strict=True):
        element: Handle = builder.call(OPS["index"], row, position, axes=(0,))
        leaves.append(builder.cast(element, ty.dtype, weak=ty.weak))
    item = coding.Decoder(iter(leaves), heap)(content.template)
    keep(item, span)
    return item


def write_row(
    builder: Builder, content: V.Growing, position: Atom, leaves: Sequence[Atom]
) -> V.Growing:
    """The content with other leaves in one row."""
    rows = tuple(
        builder.call(OPS["index_update"], row, leaf, position, axes=(0,)).atom
        for row, leaf in zip(content.rows, leaves, strict=True)
    )
    return replace(content, rows=rows)


def items_array(builder: Builder, row: Atom, count: Extent) -> Handle:
    """The rows of one leaf that are items."""
    assert isinstance(row.type, TensorType)
    rank = row.type.rank
    part: Handle = builder.call(
        OPS["slice"], row, starts=(0,) * rank, sizes=(count, *row.type.shape[1:]),
        steps=(1,) * rank,
    )
    return part
