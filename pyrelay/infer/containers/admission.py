"""Items that growing lists take: whether one fits, and the rows that take it.

In: a list's content and an item. Out: content whose template takes the item, made anew where it did
not, and the item's leaves; a failure that says what does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing, widening
from pyrelay.infer.containers.open_sequences import as_item
from pyrelay.infer.flow import joining as J
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import typed_by_rows
from pyrelay.infer.nodes import anonymous
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType


def admit(
    it: Interpreter, root: V.Root, content: V.Growing, item: V.Value
) -> tuple[V.Growing, list[Atom]]:
    """The content with a template that takes the item, and the item's leaves."""
    span = it.let.span if it.let else None
    item = lent(it, as_item(it, item))
    it.heap.note_items((item,))
    if isinstance(item, V.Ref) and item.cls is None:
        J.refuse_display(content.template, item.root.kind, item.root.made)
    try:
        own = growing.template_of(it.heap, (item,))
        joined = J.join_items(content.template, own, it.program.guards.same)
        if not L.same_structure(content.template, joined):
            raise L.JoinError(content.template, own, "the items differ in structure")
    except L.JoinError as error:
        failure = it.failure(
            errors.TypeMismatchError,
            f"{V.describe(item)} does not fit the other items of this list: {error.what}",
            notes=("a list whose length is known only at run time holds items of one structure",),
            hints=("give the items one type and shape, or keep them in lists of their own",),
        )
        sites = anonymous.made_in(error.left) | anonymous.made_in(error.right)
        if sites:
            raise anonymous.NeedsNodes(sites, (), failure) from None
        raise failure from None
    _refuse_parts(it, item, joined)
    content = with_template(it, root, content, joined)
    _note_again(it, item)
    growing.keep(it.heap, item, span, root)
    leaves = growing.item_atoms(it.builder, it.heap, it.atom, item, content.template)
    content, leaves = growing.fit_inner(it.builder, content, leaves)
    return _shaped(it, content, leaves)


def _note_again(it: Interpreter, item: V.Value) -> None:
    """Note an array that each iteration, or each call, makes an item again."""
    before = it.before.contents if it.before is not None else {}
    for part in V.leaves_of((item,)):
        if isinstance(part, V.ArrayRef) and part.root in before:
            it.heap.items.shared = True


def with_template(
    it: Interpreter, root: V.Root, content: V.Growing, template: L.Layout
) -> V.Growing:
    """The content of a list with a template that takes more; of an inner list, in its owner."""
    if template == content.template:
        return content
    held = it.heap.contents[root]
    if not isinstance(held, V.Part):
        content = widening.cast_rows(it.builder, content, template)
        it.heap.contents[root] = content
        return content
    owner = it.content(held.owner)
    wanted = growing.replaced(owner.template, held.path, template)
    with_template(it, held.owner, owner, wanted)
    return it.content(root)  # type: ignore[no-any-return]


def lent(it: Interpreter, item: V.Value) -> V.Value:
    """An item, with copies of the lists in it that are items already where these are lent."""
    if isinstance(item, V.Tuple):
        parts = tuple(lent(it, part) for part in item.items)
        same = all(a is b for a, b in zip(parts, item.items, strict=True))
        return item if same else replace(item, items=parts)
    if not isinstance(item, V.Ref) or not _is_elsewhere(it, item.root):
        return item
    if it.place not in it.program.lent_at:
        it.program.shared_at.add(it.place)
        return item
    span = it.let.span if it.let else None
    it.heap.share_inner(span)
    it.program.lent = 2  # had it been a copy from the first, it could not have moved
    content = it.content(item.root)
    if isinstance(content, V.Growing):
        content = replace(growing.plain(it.builder, content), slots=object())
    copy = it.new_ref("list", content)
    copy.root.stored = span or True
    return copy


def _is_elsewhere(it: Interpreter, root: V.Root) -> bool:
    """Whether a list is an item of another one, or one of several lists, which are told apart by
    the running program only."""
    return root.kind == "list" and (
        bool(root.may_be) or isinstance(it.heap.contents.get(root), (V.Part, V.Lost))
    )


def _refuse_parts(it: Interpreter, item: V.Value, template: L.Layout) -> None:
    """Refuse an item with a list that is an item of another list already, or is there twice."""
    roots: set[V.Root] = set()
    for path in growing.inner_lists(template):
        inner = growing.value_at(item, path)
        assert isinstance(inner, V.Ref)
        if _is_elsewhere(it, inner.root) or inner.root in roots:
            it.program.shared_at.add(it.place)
            raise it.failure(
                errors.AliasError,
                "one list would be an item in two places, and a change of one would have to show "
                "in the other",
                hints=("put a copy there: rows.append(row.copy())",),
            )
        roots.add(inner.root)


def placed(it: Interpreter, ref: V.Ref, position: V.Value, item: V.Value) -> None:
    """Note where an item of a list is now; lists in it are what its rows hold."""
    content = it.heap.contents[ref.root]
    if isinstance(content, V.Growing):
        _lend(it, content, item)
        growing.moved(it.heap, ref.root, content, position, item)


def _lend(it: Interpreter, content: V.Growing, item: V.Value) -> None:
    """Lists in an item, as far as the program lends them: the item has copies of them."""
    before = it.before.contents if it.before is not None else {}
    for path in growing.inner_lists(content.template):
        inner = growing.value_at(item, path)
        assert isinstance(inner, V.Ref)
        made_by_others = inner.root in before or inner.root.stored
        needed = 1 if made_by_others else 2
        it.program.lent = max(it.program.lent, needed)
        if it.program.lends >= needed:
            it.heap.lend(inner.root, it.let.span if it.let else None)


def _shaped(
    it: Interpreter, content: V.Growing, leaves: list[Atom]
) -> tuple[V.Growing, list[Atom]]:
    """Leaves with the extents of the rows; equalities that only the program can tell are checked.

    The first item of an empty list says the extents of all items.
    """
    unequal: list[tuple[Extent, Extent]] = []
    lead = len(content.prefix) + 1
    for leaf, row in zip(leaves, content.rows, strict=True):
        assert isinstance(leaf.type, TensorType)
        assert isinstance(row.type, TensorType)
        for own, other in zip(leaf.type.shape, row.type.shape[lead:], strict=True):
            if it.program.guards.equal(own, other) is None and (own, other) not in unequal:
                unequal.append((own, other))
    if unequal and content.prefix:
        raise it.failure(
            errors.UnsupportedOperationError,
            "arrays of a shape known only at run time cannot be items of a list in a list",
        )
    if unequal:
        content = _adopting(it, content, leaves, unequal)
    rows = content.rows
    refined = []
    for leaf, row in zip(leaves, rows, strict=True):
        shape = row.type.shape[lead:]  # type: ignore[union-attr]
        if leaf.type.shape != shape:  # type: ignore[union-attr]
            leaf = it.builder.call(OPS["refine"], leaf, shape=shape).atom
        refined.append(leaf)
    return content, refined


def checked_shape(it: Interpreter, leaf: Atom, shape: tuple[Extent, ...]) -> Atom:
    """A leaf with the extents of rows that are there; what only the program can tell is checked."""
    assert isinstance(leaf.type, TensorType)
    for own, other in zip(leaf.type.shape, shape, strict=True):
        if it.program.guards.equal(own, other) is None:
            it.program.checks_shapes |= _is_of_run_time(own)
            it.builder.call(
                OPS["check_equal"], left=own, right=other, text=growing.ONE_SHAPE
            )
    if leaf.type.shape == shape:
        return leaf
    return it.builder.call(OPS["refine"], leaf, shape=shape).atom  # type: ignore[no-any-return]


def _is_of_run_time(extent: Extent) -> bool:
    return any(s.origin is dims.Origin.RUNTIME for s in dims.symbols(extent))


def _adopting(
    it: Interpreter, content: V.Growing, leaves: Sequence[Atom],
    unequal: Sequence[tuple[Extent, Extent]],
) -> V.Growing:
    """The rows, made anew with the item's extents if the list is empty; else these are checked."""
    from pyrelay.ir.dims import Origin, Symbol
    from pyrelay.ir.nodes import If

    b = it.builder
    it.program.checks_shapes |= any(_is_of_run_time(own) for own, _ in unequal)
    empty = b.call(OPS["equal"], it.atom(content.count), 0)
    then, orelse = b.nested(), b.nested()
    made = [
        then.full(0, (growing.SPARE, *leaf.type.shape), leaf.type.dtype)  # type: ignore[union-attr]
        for leaf in leaves
    ]
    for own, other in unequal:
        orelse.call(OPS["check_equal"], left=own, right=other, text=growing.ONE_SHAPE)
    symbols: dict[Extent, Symbol] = {content.capacity: Symbol("d", Origin.RUNTIME)}
    for _, other in unequal:
        symbols.setdefault(other, Symbol("d", Origin.RUNTIME))
    kept = list(symbols)
    owns = {other: own for own, other in unequal}
    firsts: list[Extent] = [growing.SPARE, *(owns[e] for e in kept[1:])]
    out_types = [
        TensorType(
            row.type.dtype,  # type: ignore[union-attr]
            tuple(dims.of(symbols[d]) if d in symbols else d for d in row.type.shape),  # type: ignore[union-attr]
        )
        for row in content.rows
    ]
    node = If(empty.atom, then.block(made, firsts), orelse.block(content.rows, kept))
    rows = tuple(h.atom for h in b.bind(node, out_types, dims=tuple(symbols.values())))
    template = typed_by_rows(content.template, rows)
    return replace(content, rows=rows, template=template)
