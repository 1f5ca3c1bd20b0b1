"""What Python's list operations mean on growing lists.

In: a reference to a list whose content is a `values.Growing`, or is made one here. Out: values, and
new contents on the heap. Lists of a length that is known stay tuples of values; what is done to
those stands where the operation does (subscripts.py, methods.py, names/builtins.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.infer.containers import found_items, growing, widening
from pyrelay.infer.containers.admission import admit, placed, with_template
from pyrelay.infer.containers.open_layouts import holds_objects
from pyrelay.infer.flow import joining as J
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.leaves import typed_by_rows
from pyrelay.infer.slots import Placed, places_of
from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS

#: Static lists up to this length are indexed at run time by a choice among their items.
MOST_CHOICES = 4
#: What Python says of a position that no item can be put at.
OUTSIDE = "list assignment index out of range"
#: What is said where a list may be another one than the program takes it for.
TAKEN_OUT = (
    "a list that was an item of another list is used where it has been taken out of that, or "
    "stands elsewhere in it, which is not compiled: use what pop() gives, or a copy, row.copy()"
)
#: Repetition makes static lists up to this length.
MOST_STATIC = 64


def growing_content(it: Interpreter, value: V.Value) -> V.Growing | None:
    """The content of a list or tuple of run-time length; None for anything else."""
    if isinstance(value, V.OpenTuple):
        value = value.items
    if not V.is_list(value):
        return None
    content = it.content(value.root)
    return content if isinstance(content, V.Growing) else None


def of_field(it: Interpreter, value: V.Value) -> V.Value:
    """A list or tuple in a field of a node of the caller's as a list of the program; other values
    unchanged."""
    if not isinstance(value, V.Items):
        return value
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python.lists import listed

    return call(it, V.Known(listed), (value,), {})


def grow(it: Interpreter, root: V.Root) -> V.Growing | None:
    """Make the content of a list a growing one; None if its items have no common structure."""
    content = it.content(root)
    if isinstance(content, V.Growing):
        return content
    if not content:
        return None
    try:
        template = growing.template_of(it.heap, content)
    except (L.JoinError, J.NeedsPlace):
        return None
    return growing.fitted(it.builder, it.heap, it.atom, root, template)


def must_grow(it: Interpreter, ref: V.Ref, key: V.Value) -> bool:
    """Whether an operation at a position needs a growing list; makes the list one if so."""
    if isinstance(it.content(ref.root), V.Growing):
        return True
    if not isinstance(key, V.Scalar) or (
        key.extent is not None and it.program.guards.fix(key.extent) is not None
    ):
        return False
    return grow(it, ref.root) is not None


def has_known_length(it: Interpreter, iterable: V.Value) -> bool:
    """Whether the number of items of an iterable is known while compiling."""
    from pyrelay.infer.flow.generators import is_generator
    from pyrelay.infer.flow.iteration import iterate
    from pyrelay.infer.protocols import has_next

    if is_generator(iterable) or has_next(it, iterable):
        return False
    return isinstance(iterate(it, iterable).count, V.Known)


def length(content: V.Growing) -> V.Value:
    """The number of items, which unrolling the loops that made the list may make known."""
    count = content.count
    if content.loops and isinstance(count, V.Scalar):
        return replace(count, origin=("loops", content.loops))
    return count


def new(it: Interpreter, content: V.Growing) -> V.Ref:
    """A fresh list."""
    return it.new_ref("list", content)


def part_content(it: Interpreter, part: V.Part | V.Lost) -> V.Growing:
    """The content of a list that is an item of another one. Raises AliasError if it moved."""
    owner = it.content(part.owner) if isinstance(part, V.Part) else None
    if not isinstance(part, V.Part) or not isinstance(owner, V.Growing) or (
        places_of(owner.slots) is not part.slots
    ) or (part.gone is not None and not may_refuse(it)):
        it.program.lent = 2  # a copy would have stayed where it is
        raise it.failure(
            errors.AliasError,
            "this list became an item of another list, in which it may have moved since",
            hints=("read it again from the list that it is in: row = rows[i]",
                   "or put a copy there: rows.append(row.copy())"),
        )
    if part.gone is not None:
        from pyrelay.infer.flow.effects import raise_where

        raise_where(it, part.gone, errors.AliasError, V.Known(TAKEN_OUT))
    return growing.inner_content(it.builder, owner, part.path, it.atom(part.position))


def may_refuse(it: Interpreter) -> bool:
    """Whether the running program can refuse what it finds: nothing handles the exception, and the
    program does not end here."""
    return bool(it.frames) and not it.guarded


def _follow_pop(it: Interpreter, owner: V.Root, before: object, place: Atom) -> None:
    """Lists that are items behind one that is taken out: their names go on to mean them.

    Whether a list is that one, only the running program knows.
    """
    content, b = it.content(owner), it.builder
    if isinstance(content.slots, Placed):
        return
    for root, held in list(it.heap.contents.items()):
        if not isinstance(held, V.Part) or held.owner is not owner or held.slots is not before:
            continue
        at = b.handle(it.atom(held.position))
        gone = b.call(OPS["equal"], at, place)
        if held.gone is not None:
            gone = b.call(OPS["logical_or"], gone, held.gone)
        moved = b.call(OPS["where"], at > place, at - 1, at)
        position = V.Scalar(types.PY_INT, b.cast(moved.atom, types.i64, weak=True))
        it.heap.contents[root] = V.Part(
            owner, position, held.path, places_of(content.slots), gone.atom
        )


def write_content(
    it: Interpreter, root: V.Root, content: V.Growing, *, moves: bool = False
) -> None:
    """Change the content of a list; with `moves` items may have other positions now."""
    span = it.let.span if it.let else None
    held = it.heap.contents[root]
    if moves:
        content = replace(content, slots=object())
    if not isinstance(held, V.Part):
        it.heap.write(root, content, span)
        return
    owner = it.content(held.owner)
    if not content.prefix:  # in rows of its own
        position = it.atom(held.position)
        before = growing.inner_content(it.builder, owner, held.path, position)
        if len(before.rows) != len(content.rows) or L.is_unread(before.template):
            # it had no item that says of what kind they are
            before = with_template(it, root, before, content.template)
            owner = it.content(held.owner)
        leaves, slots = [it.atom(content.count), *content.rows], content.slots
        content = replace(_put_inside(it, before, leaves), slots=slots)
    it.heap.written[root] = span
    it.heap.write_inner(span)
    write_content(it, held.owner, growing.with_inner(it.builder, owner, held.path, content))


def _put_inside(it: Interpreter, before: V.Growing, leaves: Sequence[Atom]) -> V.Growing:
    """The inner list with other rows, for which there is room then."""
    count, *own = leaves
    number = it.result(it.builder.handle(count))
    if not own:
        return replace(before, count=number)
    b, axis = it.builder, len(before.prefix)
    before, own = growing.fit_inner(b, before, own, several=True)
    size = own[0].type.shape[0]  # type: ignore[union-attr]
    there = before.capacity
    short = b.extent(size) > b.extent(there)
    rows = growing.widened(b, before.rows, axis, short, size)
    written = []
    for row, part in zip(rows, own, strict=True):
        prefix = before.prefix
        old = b.call(OPS["index"], row, *prefix, axes=tuple(range(axis))).atom
        new = put_rows(it, old, part, 0, size)
        written.append(
            b.call(OPS["index_update"], row, new, *prefix, axes=tuple(range(axis))).atom
        )
    return replace(before, count=number, rows=tuple(written))


def followed(it: Interpreter, content: V.Growing, move: Callable[[V.Ref], object]) -> object:
    """The slots of a list behind a move, which is done to the list of its items' places, too, if
    it has one."""
    if not holds_objects(content.template):
        return content.slots
    it.program.moves = True
    slots = content.slots
    if not isinstance(slots, Placed) or slots.places not in it.heap.contents:
        return object()
    move(V.Ref(slots.places))
    return Placed(slots.places)


def _taking(
    it: Interpreter, content: V.Growing, item: V.Value, move: Callable[[V.Ref], object]
) -> object:
    """As `followed`, for a move that puts an item in, which is none of the caller's before."""
    for path in growing.inner_lists(content.template):
        inner = growing.value_at(item, path)
        if isinstance(inner, V.Ref) and isinstance(it.heap.contents[inner.root], (V.Part, V.Lost)):
            return object()
    return followed(it, content, move)


def clear(it: Interpreter, ref: V.Ref) -> None:
    """`lst.clear()`."""
    content = it.content(ref.root)
    write_content(it, ref.root, replace(content, count=V.Known(0)), moves=True)


def count_of(it: Interpreter, content: V.Growing) -> Handle:
    """The number of items as the program has it."""
    return it.builder.handle(it.atom(content.count))


def count_extent(it: Interpreter, content: V.Growing) -> Extent:
    """The number of items as an extent."""
    if isinstance(content.count, V.Known):
        return int(content.count.value)
    _, (extent,) = it.builder.call(OPS["as_extent"], it.atom(content.count), name="n")
    return extent  # type: ignore[no-any-return]


# -- one item --------------------------------------------------------------------------------------


def position(
    it: Interpreter, content: V.Growing, key: V.Value, text: str, *, checked: bool = False
) -> Atom:
    """A position in the list; with `checked` it is known to be one."""
    ty = V.number_type(key)
    if ty is None or not (ty.dtype.is_integer or ty.dtype is types.bool_):
        from pyrelay.infer.flow.choice import wrong_index

        raise wrong_index(it, "list indices must be integers or slices", key)
    index = it.builder.cast(it.atom(key), types.i64, weak=True)
    if checked:
        return index
    place: Handle = it.builder.call(
        OPS["check_item"], index, count_of(it, content), text=text
    )
    return place.atom


def get_item(
    it: Interpreter, ref: V.Ref, content: V.Growing, key: V.Value, *, checked: bool = False
) -> V.Value:
    """`lst[key]`."""
    if isinstance(key, V.Slice):
        from pyrelay.infer.containers.list_slices import get_slice

        return get_slice(it, content, key)
    place = position(it, content, key, "list index out of range", checked=checked)
    _reach(content)
    span = it.let.span if it.let else None
    item = growing.read_row(it.builder, it.heap, content, place, span, ref.root)
    if isinstance(item, (V.ArrayRef, V.Ref)) and content is it.heap.contents[ref.root]:
        item.root.item = V.Item(ref.root, it.atom(key), place, content)
    return item


def _reach(content: V.Growing) -> None:
    """Raises Diverges for a list that has had no item yet: what follows a read of one is not
    reached. (In the first look at a loop, whose later rounds fill it.)"""
    if L.is_unread(content.template):
        raise needs.Diverges


def set_item(
    it: Interpreter, ref: V.Ref, key: V.Value, value: V.Value, *, moves: bool | None = None
) -> None:
    """`lst[key] = value`. moves: whether an array or list may be another one now; None if that is
    to be seen from the items."""
    value = _complete(it, value)
    content = it.content(ref.root)
    if found_items.stands_at(it, value, ref.root, key):
        return
    if isinstance(key, V.Slice):
        from pyrelay.infer.containers.list_slices import set_slice

        set_slice(it, ref, key, value)
        return
    content, leaves = admit(it, ref.root, content, value)
    place = position(it, content, key, OUTSIDE)
    if moves is not False:
        slots = _taking(it, content, value, lambda at: set_item(it, at, key, V.Known(-1)))
        content = replace(content, slots=slots)
    write_content(it, ref.root, growing.write_row(it.builder, content, place, leaves))
    placed(it, ref, V.Scalar(types.PY_INT, place), value)


def _complete(it: Interpreter, item: V.Value) -> V.Value:
    """An item that its own `__init__` puts into a list is a node from there on."""
    from pyrelay.infer.nodes.constructing import begun

    return begun(it, item)


def append(it: Interpreter, ref: V.Ref, item: V.Value) -> None:
    """`lst.append(item)`."""
    item = _complete(it, item)
    content, leaves = admit(it, ref.root, it.content(ref.root), item)
    if isinstance(content.slots, Placed):
        slots = _taking(it, content, item, lambda at: append(it, at, V.Known(-1)))
        content = replace(content, slots=slots)
    count = count_of(it, content)
    content = growing.with_room(it.builder, content, count)
    content = growing.write_row(it.builder, content, count.atom, leaves)
    write_content(it, ref.root, counting(it, content, count + 1))
    placed(it, ref, it.result(count), item)


def counting(it: Interpreter, content: V.Growing, count: Handle) -> V.Growing:
    return replace(content, count=it.result(count))


def pop(
    it: Interpreter, ref: V.Ref, key: V.Value, outside: str = "pop index out of range"
) -> V.Value:
    """`lst.pop(key)`; IndexError with the text `outside` for a key that is none."""
    content = it.content(ref.root)
    before = places_of(content.slots)
    count = count_of(it, content)
    span = it.let.span if it.let else None
    if key == V.Known(-1):
        text = "pop from empty list" if outside.startswith("pop") else outside
        place = it.builder.call(OPS["check_item"], -1, count, text=text).atom
        _reach(content)
        item = growing.read_row(it.builder, it.heap, content, place, span)
        slots = followed(it, content, lambda places: pop(it, places, key))
        content = replace(content, slots=slots)
        write_content(it, ref.root, counting(it, content, it.builder.handle(place)))
        _follow_pop(it, ref.root, before, place)
        return item
    slots = followed(it, content, lambda places: pop(it, places, key))
    content = growing.plain(it.builder, content)
    place = position(it, content, key, outside)
    item = growing.read_row(it.builder, it.heap, content, place, span)
    at = extent_of_atom(it, place)
    behind = dims.add(count_extent(it, content), dims.add(dims.multiply(-1, at), -1))
    rows = []
    for row in content.rows:
        moved = part_rows(it, row, dims.add(at, 1), behind)
        rows.append(put_rows(it, row, moved, at, behind))
    changed = replace(content, count=it.result(count - 1), rows=tuple(rows), slots=slots)
    write_content(it, ref.root, changed)
    _follow_pop(it, ref.root, before, place)
    return item


def insert(it: Interpreter, ref: V.Ref, key: V.Value, item: V.Value) -> None:
    """`lst.insert(key, item)`: positions beyond the ends mean the ends."""
    item = _complete(it, item)
    content, leaves = admit(it, ref.root, it.content(ref.root), item)
    slots = _taking(it, content, item, lambda places: insert(it, places, key, V.Known(-1)))
    count, b = count_of(it, content), it.builder
    content = growing.with_room(b, growing.plain(b, content), count)
    raw = b.handle(b.cast(it.atom(key), types.i64, weak=True))
    wrapped = b.call(OPS["where"], raw < 0, raw + count, raw)
    place = b.call(OPS["minimum"], b.call(OPS["maximum"], wrapped, 0), count)
    at = extent_of_atom(it, place.atom)
    behind = dims.add(count_extent(it, content), dims.multiply(-1, at))
    rows = []
    for row in content.rows:
        moved = part_rows(it, row, at, behind)
        rows.append(put_rows(it, row, moved, dims.add(at, 1), behind))
    content = replace(content, rows=tuple(rows), slots=slots)
    content = growing.write_row(b, content, place.atom, leaves)
    write_content(it, ref.root, counting(it, content, count + 1))
    placed(it, ref, it.result(place), item)


def unpacked(
    it: Interpreter, items: V.Value, count: V.Value, before: int, after: int, starred: bool
) -> list[V.Value]:
    """The items of a list of run-time length as `before` names, `*name` if starred, and `after`
    names take them. The running program raises ValueError for another number of items."""
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.containers.text import text
    from pyrelay.infer.flow.effects import raise_where

    wanted = before + after
    counted = V.Known(not isinstance(items, V.ArrayRef))
    said = text(it, wrong_number, V.Known(wanted), V.Known(starred), count, counted)
    wrong = it.emit("less" if starred else "not_equal", it.atom(count), wanted)
    raise_where(it, wrong.atom, ValueError, said)
    found = [get_item(it, items, V.Known(k)) for k in range(before)]
    if starred:
        middle = V.Slice(V.Known(before), V.Known(-after) if after else V.NONE, V.NONE)
        found.append(get_item(it, items, middle))
    return [*found, *(get_item(it, items, V.Known(k)) for k in range(-after, 0))]


_COUNTS = sys.version_info >= (3, 14)


def wrong_number(expected: int, starred: bool, given: int, counted: bool) -> str:
    """Python's words where there are more or fewer items than names take. counted: of a list, tuple
    or dict, of which Python since 3.14 says how many there are."""
    if given > expected:
        got = f", got {given}" if counted and _COUNTS else ""
        return f"too many values to unpack (expected {expected}{got})"
    least = "at least " if starred else ""
    return f"not enough values to unpack (expected {least}{expected}, got {given})"


# -- several items ---------------------------------------------------------------------------------


def extent_of_atom(it: Interpreter, atom: Atom) -> Extent:
    _, (extent,) = it.builder.call(OPS["as_extent"], atom, name="k")
    return extent  # type: ignore[no-any-return]


def part_rows(
    it: Interpreter, row: Atom, start: Extent, size: Extent, step: Extent = 1
) -> Atom:
    """So many rows from one on."""
    rest = row.type.shape[1:]  # type: ignore[union-attr]
    none = (0,) * len(rest)
    part: Handle = it.builder.call(
        OPS["slice"], row, starts=(start, *none), sizes=(size, *rest),
        steps=(step, *(1 for _ in rest)),
    )
    return part.atom


def put_rows(it: Interpreter, row: Atom, part: Atom, start: Extent, size: Extent) -> Atom:
    rest = row.type.shape[1:]  # type: ignore[union-attr]
    none = (0,) * len(rest)
    result: Handle = it.builder.call(
        OPS["slice_update"], row, part, starts=(start, *none), sizes=(size, *rest),
        steps=(1, *(1 for _ in rest)),
    )
    return result.atom


def copied(it: Interpreter, content: V.Growing, *, deep: bool = False) -> V.Growing:
    """The content for another list; with `deep` its lists are others as well.

    Raises AliasError for lists of lists that would be shared, unless none of them is written.
    """
    if growing.inner_lists(content.template) and not deep:
        it.program.lent = max(it.program.lent, 1)
        if not it.program.lends and it.place not in it.program.lent_at:
            it.program.shared_at.add(it.place)
            raise it.failure(
                errors.AliasError,
                "this list holds lists, which the new list would share with it",
                hints=("copy the inner lists as well: [row.copy() for row in rows]",),
            )
        it.heap.share_inner(it.let.span if it.let else None)
        content = replace(content, slots=object())
    if any(leaf.shape for leaf in L.template_types(content.template)):
        it.heap.items.shared = True
    return growing.plain(it.builder, content)


def in_order(it: Interpreter, content: V.Growing, places: V.Value) -> V.Growing:
    """The items at as many places, an array of ints."""
    content = growing.plain(it.builder, content)
    order = it.atom(places)
    rows = tuple(
        it.builder.call(OPS["gather"], row, order, axes=(0,)).atom for row in content.rows
    )
    return replace(content, rows=rows, template=typed_by_rows(content.template, rows))


def reversed_items(it: Interpreter, content: V.Growing) -> V.Growing:
    """The items in the opposite order."""
    size = count_extent(it, content)
    rows = tuple(part_rows(it, row, dims.add(size, -1), size, -1) for row in content.rows)
    return replace(content, rows=rows)


def extend(it: Interpreter, ref: V.Ref, content: V.Growing) -> None:
    """`lst.extend(other)` by the content of another growing list."""
    content = copied(it, content)
    own = it.content(ref.root)
    if isinstance(own, V.Growing):
        own = growing.plain(it.builder, own)
    if not isinstance(own, V.Growing):
        if not own:
            it.heap.write(ref.root, content, it.let.span if it.let else None)
            return
        found = grow(it, ref.root)
        if found is None:
            raise it.failure(
                errors.TypeMismatchError, "the items of the two lists have no common type",
            )
        own = found
    try:
        joined = J.join_items(own.template, content.template, it.program.guards.same)
    except L.JoinError as error:
        raise it.failure(
            errors.TypeMismatchError, f"the items of the two lists differ: {error.what}",
        ) from None
    if isinstance(it.heap.contents[ref.root], V.Part):
        own = with_template(it, ref.root, it.content(ref.root), joined)
        own = growing.plain(it.builder, own)
    else:
        own = widening.cast_rows(it.builder, own, joined)
    content = widening.cast_rows(it.builder, content, joined)
    count, more = count_of(it, own), count_of(it, content)
    own = growing.with_room(it.builder, own, count, more)
    own, content = growing.of_one_room(it.builder, own, content)
    if any(
        it.program.guards.equal(one, other) is None
        for row, more_rows in zip(own.rows, content.rows, strict=True)
        for one, other in zip(row.type.shape[1:], more_rows.type.shape[1:], strict=True)  # type: ignore[union-attr]
    ):
        raise it.failure(
            errors.TypeMismatchError, "the arrays in the two lists may differ in shape",
        )
    start, size = extent_of_atom(it, count.atom), extent_of_atom(it, more.atom)
    rows = tuple(
        put_rows(it, row, part_rows(it, other, 0, size), start, size)
        for row, other in zip(own.rows, content.rows, strict=True)
    )
    write_content(it, ref.root, replace(own, count=it.result(count + more), rows=rows))


def repeated(it: Interpreter, ref: V.Ref, times: V.Value) -> V.Value:
    """`lst * times` for a number known only at run time, or a list of run-time length."""
    from pyrelay.infer.calls import call

    items = it.content(ref.root)
    if isinstance(items, V.Growing) or len(items) != 1:
        if not isinstance(items, V.Growing) and not items:
            return it.new_ref("list", ())
        from pyrelay.infer.in_python.lists import repeat_items

        return call(it, V.Known(repeat_items), (ref, times), {})
    ty = V.number_type(times)
    if ty is None or not ty.dtype.is_integer:
        raise it.failure(
            errors.TypeMismatchError, f"a list cannot be multiplied by {V.describe(times)}",
        )
    try:
        template = growing.template_of(it.heap, items)
    except L.JoinError as error:
        raise it.failure(
            errors.UnsupportedOperationError, f"this list cannot be repeated here: {error.what}",
            hints=("build it with a comprehension, so that each item is one of its own",),
        ) from None
    growing.keep(it.heap, items[0], it.let.span if it.let else None)
    it.heap.items.shared |= any(leaf.shape for leaf in L.template_types(template))
    if growing.inner_lists(template):
        raise it.failure(
            errors.AliasError,
            "the items of this list would all be one list, and a change of one would have to show "
            "in all",
            hints=("make each item a list of its own: [[0] * m for _ in range(n)]",),
        )
    leaves = growing.item_atoms(it.builder, it.heap, it.atom, items[0], template)
    size = _times(it, times)
    rows = tuple(
        it.builder.call(
            OPS["broadcast_to"], leaf, shape=(size, *leaf.type.shape)  # type: ignore[union-attr]
        ).atom
        for leaf in (
            it.builder.cast(a, t.dtype) for a, t in zip(
                leaves, L.template_types(template), strict=True
            )
        )
    )
    return new(it, V.Growing(V.Scalar.of_extent(size), rows, template, slots=object()))


def _times(it: Interpreter, times: V.Value) -> Extent:
    from pyrelay.infer.operators import extent_of

    known = extent_of(times)
    if known is not None and dims.non_negative(known):
        return known
    b = it.builder
    number = b.cast(it.atom(times), types.i64, weak=True)
    return extent_of_atom(it, b.call(OPS["maximum"], number, 0).atom)
