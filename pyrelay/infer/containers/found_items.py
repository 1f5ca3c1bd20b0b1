"""Arrays and lists that were read from lists of run-time length: which items they are.

In: an array, or a list, and what it was read from (`values.Item`). Out: whether it still is the
item at that place, so that a write in place is one of the list, too, an item is read again after
another one was written that may be it, and `d[key] += x` stores nothing anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import ragged
from pyrelay.infer.heap import Heap
from pyrelay.infer.in_python.containers import standing_for
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.slots import places_of
from pyrelay.ir import dims
from pyrelay.ir.build import constant
from pyrelay.ir.nodes import Atom, Const
from pyrelay.ir.op import OPS


def write_through(it: Interpreter, root: V.Root, value: Atom) -> bool:
    """Write an array that was read from a list where the list has it; False if it is no item.

    Other arrays that are items may be the same one: they are stale from then on. Raises AliasError
    for an array of which a list has a copy, where nobody knows in which item.
    """
    if not root.stored:
        return False
    from pyrelay.infer.containers.lists import write_content

    item, content = root.item, owner_content(it, root)
    if item is not None and content is not None and not it.heap.items.shared:
        span = it.let.span if it.let else None
        with dims.decided_by(it.program.guards.same):  # that it fits is certain
            written = ragged.write_array(it.builder, content, item, value)
        write_content(it, item.owner, written)
        it.heap.contents[root] = value
        for other in it.heap.contents:
            if other.kind == "array" and other.stored and other is not root and not (
                _is_kept_apart(it, other, item)
            ):
                other.outdated = span or True
        return True
    raise it.failure(
        errors.AliasError,
        f"{repr(root.name) if root.name else 'this array'} is an item of a list whose length is "
        "known only at run time, and a write in place would have to show in both",
        related=[(root.stored, "here the list has or gets it")] if root.stored is not True else [],
        hints=("put a copy into the list: items.append(x.copy())",
               "or make a new array: x = x + 1 instead of x += 1"),
    )


def at_places(heaps: Sequence[Heap], roots: Iterable[V.Root]) -> dict[V.Root, list[V.Root | None]]:
    """The arrays that are items of lists of known length, at the same places in all these heaps."""
    found: dict[V.Root, list[V.Root | None]] = {}
    for root in roots:
        held: list[Any] = [heap.contents[root] for heap in heaps]
        if root.kind == "list" and all(isinstance(content, tuple) for content in held):
            found[root] = [
                items[0].root if isinstance(items[0], V.ArrayRef) and not items[0].view
                and all(item == items[0] for item in items) else None
                for items in zip(*held, strict=False)
            ]
    return found


def stay(
    heap: Heap, arrays: Mapping[V.Root, Sequence[V.Root | None]], before: Heap | None
) -> None:
    """Note which items of lists that grow from now on such arrays are, but for those from before a
    loop, which are not at its start."""
    for owner, places in arrays.items():
        content = heap.contents[owner]
        if not isinstance(content, V.Growing) or not isinstance(content.template, L.LPlace):
            continue
        for k, array in enumerate(places):
            if array is None or (before is not None and array in before.contents):
                continue
            if array.item is None:
                array.item = V.Item(owner, constant(k), constant(k), content)


def owner_content(it: Interpreter, root: V.Root) -> V.Growing | None:
    """The present content of the list that an array was read from, where it still is the item at
    its position; None if it may not be."""
    item = root.item
    content = it.heap.contents.get(item.owner) if item is not None else None
    if item is None or not isinstance(content, V.Growing) or (
        content.slots is None or places_of(content.slots) is not places_of(item.content.slots)
    ):
        return None
    return content


def read_again(it: Interpreter, root: V.Root) -> bool:
    """Read an item anew, after one that may be it was written; False if its place is not known."""
    item, content = root.item, owner_content(it, root)
    before: Any = it.heap.contents[root]
    if item is None or content is None or L.is_ragged(content.template):
        return False
    row: Any = content.rows[item.leaf].type
    lead = len(content.prefix) + 1
    places = (*content.prefix, item.position)
    value = it.builder.call(
        OPS["index"], content.rows[item.leaf], *places, axes=tuple(range(lead))
    )
    if row.shape[lead:] != before.type.shape:
        value = it.builder.call(OPS["refine"], value, shape=before.type.shape)
    it.heap.contents[root] = it.builder.cast(value, before.type.dtype, weak=before.type.weak)
    return True


def _is_kept_apart(it: Interpreter, array: V.Root, item: V.Item) -> bool:
    """Whether an array is an item of another list than this one, or another part of its items,
    where no array is in two."""
    owner, holder, leaf = item.owner, array.keeper, array.keeper_leaf
    if array.item is not None:
        holder, leaf = array.item.owner, array.item.leaf
    if holder is owner and leaf is not None and leaf != item.leaf:
        return True
    if holder is None or holder.may_alias(owner):
        return False
    found = (it.heap.contents.get(each) for each in (holder, owner))
    return all(isinstance(content, (V.Growing, tuple)) for content in found)


def stands_at(
    it: Interpreter, value: V.Value, owner: V.Root, key: V.Value, leaf: int = 0
) -> bool:
    """Whether an array or a list is what a list has at `key`: `items[key] += x` has changed it
    already."""
    if isinstance(value, V.Ref):
        held, content = it.heap.contents[value.root], it.heap.contents.get(owner)
        from pyrelay.infer.containers.lists import may_refuse

        there = value.root.item
        if there is None or not isinstance(held, V.Part) or not isinstance(content, V.Growing):
            return False
        here = owner, places_of(content.slots), owner
        if (held.owner, held.slots, there.owner) != here or not _is_one_atom(
            there.key, it.atom(key)
        ):
            return False
        if held.gone is not None and may_refuse(it):
            _must_stand_at(it, held, held.gone, content, key)
            return True
        return held.gone is None and (
            _is_from_start(key) or content.count is there.content.count
        )
    item = value.root.item if isinstance(value, V.ArrayRef) and not value.view else None
    if item is None or (item.owner, item.leaf) != (owner, leaf) or not _is_one_atom(
        item.key, it.atom(key)
    ):
        return False
    content = owner_content(it, value.root)  # type: ignore[union-attr]
    from_start = item.key is item.position or _is_from_start(key)
    return content is not None and (from_start or content.count is item.content.count)


def _must_stand_at(
    it: Interpreter, held: V.Part, gone: Atom, content: V.Growing, key: V.Value
) -> None:
    """Raise where a list that stood at a key is elsewhere, since another one was taken out."""
    from pyrelay.infer.containers.lists import OUTSIDE, TAKEN_OUT, position
    from pyrelay.infer.flow.effects import raise_where

    b, place = it.builder, position(it, content, key, OUTSIDE)
    elsewhere = b.call(OPS["not_equal"], it.atom(held.position), place)
    wrong = b.call(OPS["logical_or"], elsewhere, gone)
    raise_where(it, wrong.atom, errors.AliasError, V.Known(TAKEN_OUT))


def note_key(holder: V.Value, key: V.Value, found: V.Value) -> None:
    """Note by which key of a dict an array or list was found that is an item of its list."""
    if isinstance(holder, V.Ref) and holder.cls in standing_for and (
        isinstance(found, (V.ArrayRef, V.Ref)) and found.root.item is not None
    ):
        found.root.item = replace(found.root.item, found=(holder.root, key))


def is_found_at(it: Interpreter, holder: V.Value, key: V.Value, value: V.Value) -> bool:
    """Whether an array or list is what a dict has at `key`: `d[key] += x` has changed it already.
    """
    whole = isinstance(value, V.Ref) or (isinstance(value, V.ArrayRef) and not value.view)
    if not whole or not isinstance(holder, V.Ref):
        return False
    item = value.root.item  # type: ignore[union-attr]
    if item is None or item.found is None or item.found[0] is not holder.root:
        return False
    content = owner_content(it, value.root)  # type: ignore[union-attr]
    if content is None or content.slots is not item.content.slots:  # the key may have gone
        return False
    return _is_one_key(it, item.found[1], key)


def _is_one_key(it: Interpreter, one: V.Value, other: V.Value) -> bool:
    """Whether two keys are certainly one, because they are the same value of the program."""
    if isinstance(one, V.Tuple) and isinstance(other, V.Tuple):
        return len(one.items) == len(other.items) and all(
            _is_one_key(it, a, b) for a, b in zip(one.items, other.items, strict=True)
        )
    if isinstance(one, V.Scalar) and isinstance(other, V.Scalar):
        return _is_one_atom(it.atom(one), it.atom(other))
    return one is other or (isinstance(one, V.Known) and one == other)


def _is_one_atom(a: Atom, b: Atom) -> bool:
    """Whether two atoms are certainly one value."""
    return a is b or (isinstance(a, Const) and isinstance(b, Const) and a.value == b.value)


def _is_from_start(key: V.Value) -> bool:
    """Whether a position is one from the start of a list, which stays it where the list grows."""
    return isinstance(key, V.Known) and int(key.value) >= 0
