"""Items of growing lists that change places: sorted, reversed, exchanged.

In: a list whose items only move. Out: its content in the new order. Where the items are lists of
the caller's, a list of where each was at the start is put in the same order (`slots.Placed`), so
that the caller's very lists are where the program put them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing, lists
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.slots import Placed, places_of
from pyrelay.ir import types
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS

Order = Callable[[V.Growing], V.Growing]


def placed(it: Interpreter, content: V.Growing) -> V.Growing:
    """The content of a list of the caller's lists, with a list of where each of them is."""
    numbers = it.builder.call(OPS["iota"], size=content.capacity, dtype=types.i64).atom
    places = it.new_ref("list", V.Growing(
        content.count, (numbers,), L.LScalar(types.PY_INT), slots=object()
    ))
    return replace(content, slots=Placed(places.root))


def rearrange(it: Interpreter, ref: V.Ref, order: Order) -> None:
    """Put the items of a list in another order."""
    content = it.content(ref.root)
    slots = lists.followed(it, content, lambda places: rearrange(it, places, order))
    lists.write_content(it, ref.root, replace(order(content), slots=slots))


def reverse(it: Interpreter, ref: V.Ref) -> None:
    """`lst.reverse()`."""
    rearrange(it, ref, lambda rows: lists.reversed_items(it, growing.plain(it.builder, rows)))


def exchanged(
    it: Interpreter, obj: V.Value, keys: Sequence[V.Value], items: Sequence[V.Value]
) -> bool:
    """Let two items of a list change places, if they are lists, or have lists in them.

    False where they do not, or the list is of another kind: values can be stored one by one.
    """
    content = it.content(obj.root) if V.is_list(obj) else None
    if not isinstance(content, V.Growing) or not growing.inner_lists(content.template) or any(
        isinstance(key, V.Slice) for key in keys
    ):
        return False
    assert isinstance(obj, V.Ref)
    one, other = (lists.position(it, content, key, lists.OUTSIDE) for key in keys)
    before = places_of(content.slots)
    rearrange(it, obj, lambda rows: _with_exchanged(it, rows, one, other))
    for place, item in ((other, items[0]), (one, items[1])):
        _follow(it, obj.root, before, place, item)
    return True


def _with_exchanged(it: Interpreter, content: V.Growing, one: Atom, other: Atom) -> V.Growing:
    rows, b = [], it.builder
    content = growing.plain(b, content)
    for row in content.rows:
        first, second = (b.call(OPS["index"], row, place, axes=(0,)) for place in (one, other))
        half = b.call(OPS["index_update"], row, second, one, axes=(0,))
        rows.append(b.call(OPS["index_update"], half, first, other, axes=(0,)).atom)
    return replace(content, rows=tuple(rows))


def _follow(
    it: Interpreter, owner: V.Root, before: object, place: Atom, item: V.Value
) -> None:
    """Lists in an item that is at another place now: their names go on to mean them."""
    content = it.content(owner)
    for path in growing.inner_lists(content.template):
        inner = growing.value_at(item, path)
        held = it.heap.contents[inner.root] if isinstance(inner, V.Ref) else None
        if isinstance(held, V.Part) and (held.owner, held.slots) == (owner, before):
            assert isinstance(inner, V.Ref)
            it.heap.contents[inner.root] = V.Part(
                owner, V.Scalar(types.PY_INT, place), path, places_of(content.slots)
            )
