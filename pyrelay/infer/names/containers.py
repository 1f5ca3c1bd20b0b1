"""`collections`, `heapq`, `bisect`, `queue`, and dicts and sets with keys known only at run time.

In: iterables, keys. Out: objects of the classes of in_python/containers.py, which have the methods
of the containers they stand for. A dict or set of the program is one if an attempt with keys that
are known failed at it (`Program.tables`).
"""

from __future__ import annotations

import array
import bisect
import collections
import functools
import heapq
import queue
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.containers import growing, lists, sets
from pyrelay.infer.containers.open_keys import (
    is_by_identity,
    is_hashable,
    is_known,
    unhashable,
)
from pyrelay.infer.containers.open_layouts import holds_objects
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.iteration import order_wanted as order_wanted_at
from pyrelay.infer.in_python import (
    byte_arrays,
    containers,
    counting,
    entries,
    few,
    fixed_lists,
    hashed_sets,
    heaps,
    queues,
    set_order,
    tables,
    typed_arrays,
)
from pyrelay.infer.in_python.nested import nested_for
from pyrelay.infer.in_python.set_order import OrderedMembers
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import keys
from pyrelay.infer.names.builtins import dict_
from pyrelay.infer.names.handlers import handles, keeps_unions
from pyrelay.infer.nodes.dicts import refuse_keys
from pyrelay.infer.operators import compare, raised
from pyrelay.infer.slots import lessened


def _in_python(fn: Callable[..., Any]) -> Callable[..., V.Value]:
    def handler(it: Interpreter, *args: V.Value, **keywords: V.Value) -> V.Value:
        return call(it, V.Known(fn), args, keywords)

    return handler


# Some have two names: bisect.bisect is bisect.bisect_right.
_BY_OBJECT = {getattr(bisect if hasattr(bisect, n) else heapq, n): n for n in heaps.__all__}
for _object, _name in _BY_OBJECT.items():
    handles(_object)(_in_python(getattr(heaps, _name)))


def _of_a_heap(fn: Callable[..., Any]) -> Callable[..., V.Value]:
    """A function that moves the items of a list as the running program compares them: one of more
    items than are chosen among has a run-time length from there on."""
    def handler(it: Interpreter, heap: V.Value, *args: V.Value) -> V.Value:
        if V.is_list(heap):
            content = it.content(heap.root)
            many = isinstance(content, tuple) and len(content) > lists.MOST_CHOICES
            if many and not all(map(is_known, content)):
                lists.grow(it, heap.root)
        return call(it, V.Known(fn), (heap, *args), {})

    return handler


for _name in ("heapify", "heappop", "heappush", "heappushpop", "heapreplace"):
    handles(getattr(heapq, _name))(_of_a_heap(getattr(heaps, _name)))


@handles(heaps.holds_lists)
def holds_lists(it: Interpreter, heap: V.Value) -> V.Value:
    """Whether lists are items of a heap, or in its items."""
    content = it.content(heap.root) if V.is_list(heap) else None
    if isinstance(content, V.Growing):
        return V.Known(bool(growing.inner_lists(content.template)))
    return V.Known(isinstance(content, tuple) and any(map(V.is_list, V.leaves_of(content))))


@handles(collections.namedtuple)
def namedtuple(
    it: Interpreter, typename: V.Value, field_names: V.Value, *, rename: V.Value = V.Known(False),
    defaults: V.Value = V.NONE, module: V.Value = V.NONE,
) -> V.Value:
    """collections.namedtuple: the same class for the same words, whichever call makes it."""
    given = (typename, field_names, rename, defaults, module)
    name, fields, *options = (it.static(v, "what a named tuple is made of") for v in given)
    try:
        words = (name, fields if isinstance(fields, str) else tuple(fields), *options[:1])
        own = None if options[1] is None else _Defaults(tuple(options[1]))
        return V.Known(_named(*words, own, options[2] or it.frames[-1].owner.__module__))
    except (TypeError, ValueError) as error:
        raise raised(it, error) from None


class _Defaults(tuple[Any, ...]):
    """Defaults of a named tuple, of which 1 and 1.0 are different ones."""

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@functools.cache
def _named(
    name: str, fields: str | tuple[str, ...], rename: bool, defaults: _Defaults | None, module: str
) -> type:
    return collections.namedtuple(
        name, fields, rename=rename, defaults=defaults, module=module
    )


handles(bytearray)(_in_python(byte_arrays.ByteArray))
handles(array.array)(_in_python(typed_arrays.TypedArray))
handles(int.from_bytes)(_in_python(byte_arrays.from_bytes))


@handles(bytes)
def bytes_(it: Interpreter, source: V.Value = V.Tuple(())) -> V.Value:
    """bytes(source)."""
    if isinstance(source, V.Known) and isinstance(source.value, bytes):
        return source
    return call(it, V.Known(byte_arrays.ByteString), (source,), {})


handles(queue.SimpleQueue)(_in_python(queues.SimpleQueue))
for _ours, _theirs in queues.STANDS_FOR.items():
    handles(_theirs)(_in_python(_ours))


def class_here(it: Interpreter, cls: type) -> V.Known:
    """The class of a container that is made here: one of many is a node (in_python/nested.py)."""
    if it.program.unfolds:
        return V.Known(few.few_for.get(cls, cls))
    if cls is hashed_sets.Members and it.program.ordered:
        cls = OrderedMembers
    return V.Known(nested_for[cls] if it.let in it.program.nested else cls)


@handles(collections.deque)
def deque(
    it: Interpreter, iterable: V.Value = V.Tuple(()), maxlen: V.Value = V.NONE
) -> V.Value:
    """collections.deque(iterable, maxlen)."""
    return call(it, class_here(it, containers.Queue), (iterable, maxlen), {})


@handles(collections.OrderedDict)
def ordered_dict(
    it: Interpreter, pairs: V.Value = V.Tuple(()), /, **named: V.Value
) -> V.Value:
    """collections.OrderedDict(mapping or pairs, **named)."""
    return call(it, class_here(it, counting.Ordered), (dict_(it, pairs, **named),), {})


@handles(collections.defaultdict)
def defaultdict(
    it: Interpreter, default_factory: V.Value = V.NONE, pairs: V.Value = V.Tuple(()), /,
    **named: V.Value
) -> V.Value:
    """collections.defaultdict(default_factory, mapping or pairs, **named)."""
    entries = dict_(it, pairs, **named)
    return call(it, class_here(it, counting.Defaults), (default_factory, entries), {})


@handles(collections.Counter)
def counter(it: Interpreter, iterable: V.Value = V.Tuple(()), /, **named: V.Value) -> V.Value:
    """collections.Counter(iterable or mapping, **named)."""
    counted = call(it, class_here(it, counting.Counts), (iterable, dict_(it)), {})
    if named:
        given = dict_(it, **named)
        call(it, V.Known(counting.Counts.update), (counted, given), {})
    return counted


def table(it: Interpreter, entries: Sequence[tuple[bool, V.Value, V.Value]] = ()) -> V.Value:
    """A dict with these entries and others to come: keys and values, or, where it says so, a dict.
    """
    made = call(it, class_here(it, tables.Table), (), {})
    for is_merged, key, value in entries:
        if is_merged:
            call(it, V.Known(tables.Table.update), (made, value), {})
        else:
            call(it, V.Known(tables.Table.__setitem__), (made, key, value), {})
    return made


@handles(tables.set_of, set_order.ordered)
def members(it: Interpreter, items: V.Value = V.Tuple(())) -> V.Value:
    """A set with these items and others to come."""
    return call(it, class_here(it, hashed_sets.Members), (items,), {})


@handles(few.place_among)
def place_among(it: Interpreter, key: V.Value, names: V.Value) -> V.Value:
    """The place of a key among those of a list."""
    assert isinstance(names, V.Ref)
    content = it.content(names.root)
    if isinstance(content, tuple):
        answers = [compare(it, "==", name, key) for name in content]
        if V.Known(True) in answers and all(isinstance(a, V.Known) for a in answers):
            return V.Known(answers.index(V.Known(True)))
        if all(answer == V.Known(False) for answer in answers):
            return V.Known(-1)
    return call(it, V.Known(few.sought), (key, names), {})


@handles(tables.not_by_key)
def not_by_key(it: Interpreter, held: V.Value) -> V.Value:
    """Forget by which keys the arrays and lists were found that were read from a table."""
    assert isinstance(held, V.Ref)
    content = it.heap.contents[held.root]
    if isinstance(content, V.Growing) and holds_objects(content.template):
        lists.write_content(it, held.root, replace(content, slots=lessened(content.slots)))
    return V.NONE


@handles(hashed_sets.order_wanted)
def order_wanted(it: Interpreter, members: V.Value) -> V.Value:
    """Have the next attempt keep the order of sets."""
    raise order_wanted_at(it)


@keeps_unions
@handles(hashed_sets.in_any_order)
def in_any_order(it: Interpreter, members: V.Value, item: V.Value) -> V.Value:
    """An item of a set that keeps no order. Raises NeedsOrder for what has one in Python."""
    if isinstance(item, V.Data) and is_by_identity(item.cls):
        return item
    content = it.content(members.root) if isinstance(members, V.Ref) else {}
    if content.get("given") == V.Known(True):
        return item
    raise order_wanted_at(it)


@keeps_unions
@handles(set_order.told_in_order)
def told_in_order(it: Interpreter, item: V.Value) -> V.Value:
    """An item of a set that is gone through. Raises UnsupportedOperationError for what is hashed by
    a method of its class."""
    without = keys.without_order(it, item)
    if without is None:
        return item
    raise it.failure(
        errors.UnsupportedOperationError,
        f"the order of a set of {without}, which their class hashes, is not known",
        hints=("go through sorted(items), or keep them in a list or dict: dict.fromkeys(items)",),
    )


@handles(entries.field_of)
def field_of(it: Interpreter, dict_: V.Value, key: V.Value) -> V.Value:
    """The name of the field of a key, which is known while compiling."""
    assert isinstance(dict_, V.Data)
    cls = dict_.cls
    known = key
    if isinstance(key, V.Tuple) and all(isinstance(k, V.Known) for k in key.items):
        known = V.Known(it.static(key, "the key of a dict"))
    if not isinstance(known, V.Known):
        raise refuse_keys(it, cls)
    if not is_hashable(known.value):
        said = unhashable(type(known.value).__name__, "a dict key")
        raise certain(it, it.failure(errors.TypeMismatchError, said), TypeError, said)
    place = next((k for k, label in enumerate(cls.labels) if label == known.value), None)
    return V.Known(None if place is None else f"_{place}")


@handles(entries.outgrown)
def outgrown(it: Interpreter, dict_: V.Value) -> V.Value:
    """Refuse to give a dict other keys than it was made with."""
    assert isinstance(dict_, V.Data)
    raise refuse_keys(it, dict_.cls)


@handles(fixed_lists.item_name)
def item_name(it: Interpreter, items: V.Value, key: V.Value) -> V.Value:
    """The name of the field of an item, where it is known which."""
    assert isinstance(items, V.Data)
    if not isinstance(key, V.Known):
        return V.NONE
    names = items.cls.names
    if not -len(names) <= key.value < len(names):
        raise raised(it, IndexError("list index out of range"))
    return V.Known(names[key.value])


@handles(fixed_lists.lengthened)
def lengthened(it: Interpreter, items: V.Value) -> V.Value:
    """Refuse to make a list longer or shorter whose items are fields of a node."""
    raise it.failure(
        errors.UnsupportedOperationError,
        "this list is an item of another one, and gets another length here",
        hints=("make a new list: [*items, more]",),
    )


def without_order(it: Interpreter, iterable: V.Value, *, ranked: bool = False) -> V.Value:
    """The items of a set in a list, for what does not depend on their order; else the iterable.

    ranked: of items of one rank the first is meant, so the order counts that such items have.
    """
    if isinstance(iterable, (V.Ref, V.Data)) and (
        isinstance(iterable.cls, type) and issubclass(iterable.cls, hashed_sets.Members)
    ):
        if ranked and isinstance(iterable, V.Ref) and _are_numbers(it, iterable):
            return iterable
        return call(it, V.Known(hashed_sets.items_of), (iterable,), {})
    known = None if ranked else sets.in_no_order(it, iterable)
    return iterable if known is None else V.Tuple(known)


def _are_numbers(it: Interpreter, members: V.Ref) -> bool:
    """Whether the items of a set are numbers or tuples of them, which have an order in Python."""
    table = it.content(members.root)["table"]
    names = it.content(it.content(table.root)["names"].root)

    def is_number(layout: Any) -> bool:
        return isinstance(layout, L.LScalar) or (
            isinstance(layout, L.LNode) and all(map(is_number, layout.children))
        )

    return isinstance(names, V.Growing) and is_number(names.template)


def given_back(it: Interpreter, ref: V.Ref) -> tuple[Callable[..., Any], list[V.Value]] | None:
    """What makes the Python container that an object stands for, and the arguments for it."""
    standing = containers.standing_for.get(ref.cls)
    if standing is None:
        return None
    _, made, arguments = standing
    found = call(it, V.Known(arguments), (ref,), {})
    assert isinstance(found, V.Tuple)
    return made, list(found.items)
