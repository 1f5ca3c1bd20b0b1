"""`sorted`: items in the order of their ranks; the order of the elements of arrays.

In: an iterable, a key, whether the greatest come first. Out: a new list. Where all ranks are known
the order is; else `in_python.lists` sorts, with numbers in place of strings.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.calls import call, call_closure, function_value
from pyrelay.infer.containers import characters, lists, moving
from pyrelay.infer.containers.open_layouts import is_open
from pyrelay.infer.containers.text import known_object
from pyrelay.infer.flow.iteration import sequence_of
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.in_python import lists as in_lists
from pyrelay.infer.in_python import sorting as in_sorting
from pyrelay.infer.in_python import tables
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.builtins import list_, lookup_of
from pyrelay.infer.names.containers import without_order
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.operators import binary, compare
from pyrelay.infer.protocols import is_object


@handles(sorted)
def sorted_(
    it: Interpreter, iterable: V.Value, *, key: V.Value = V.NONE,
    reverse: V.Value = V.Known(False),
) -> V.Value:
    """sorted(iterable, key=key, reverse=reverse)."""
    if isinstance(key, V.Partial) and key.callee == V.Known(in_lists.compared):
        return call(it, V.Known(in_lists.sorted_by), (iterable, *key.args, reverse), {})
    key = lookup_of(iterable, key)
    if key == V.NONE and _are_entries(iterable):
        key = V.Known(_KEY)  # no two are equal: what they are keys of is never compared
    if isinstance(iterable, V.ArrayRef):
        iterable = list_(it, iterable)
    elif key == V.NONE:
        iterable = without_order(it, iterable)
    if not lists.has_known_length(it, iterable):
        if key == V.NONE and characters.are_characters(it, iterable):
            key = V.Known(ord)
        if key == V.NONE and V.is_list(iterable):  # which nothing changes meanwhile
            return call(it, V.Known(in_lists.ordered_by), (iterable, iterable, reverse), {})
        return call(it, V.Known(in_lists.sorted_items), (iterable, key, reverse), {})
    items = sequence_of(it, iterable)
    ranks = items if key == V.NONE else tuple(call(it, key, (i,), {}) for i in items)
    if any(map(is_object, ranks)):
        ranks = _counted(it, ranks)
    ranks = _with_texts_numbered(ranks)
    if all(isinstance(leaf, (V.Known, V.Tuple)) for leaf in V.leaves_of(ranks)):
        objects = [known_object(rank) for rank in ranks]
        falling = it.static(reverse, "reverse")
        try:
            order = sorted(range(len(items)), key=objects.__getitem__, reverse=falling)
        except TypeError as error:
            raise it.failure(errors.TypeMismatchError, str(error)) from None
        return it.new_ref("list", tuple(items[k] for k in order))
    return call(it, V.Known(in_lists.ordered_by), (V.Tuple(items), V.Tuple(ranks), reverse), {})


_KEY = operator.itemgetter(0)


def _are_entries(iterable: V.Value) -> bool:
    """Whether that is `d.items()` of a dict."""
    if isinstance(iterable, V.View):
        return iterable.kind == "items"
    return isinstance(iterable, (V.Ref, V.Data)) and (
        isinstance(iterable.cls, type) and issubclass(iterable.cls, tables.Pairs)
    )


def _as_written(it: Interpreter, function: Any, *args: V.Value) -> V.Value:
    """A call of a function that this file stands in for, where its text is what is meant."""
    return call_closure(it, function_value(it, function), args, {})


@handles(in_sorting.order_of)
def order_of(it: Interpreter, x: V.Value) -> V.Value:
    """The places that sort lines of numbers, by the op for it."""
    return _by_op(it, "argsort", in_sorting.order_of, x)


@handles(in_sorting.sorted_lines)
def sorted_lines(it: Interpreter, x: V.Value) -> V.Value:
    """Lines of numbers sorted, by the op for it."""
    return _by_op(it, "sort", in_sorting.sorted_lines, x)


@handles(in_sorting.partitioned_lines)
def partitioned_lines(it: Interpreter, x: V.Value, places: V.Value) -> V.Value:
    """Lines of numbers partitioned, by the op for it."""
    return _by_op(it, "partition", in_sorting.partitioned_lines, x, places)


def _by_op(it: Interpreter, op: str, function: Any, x: V.Value, *others: V.Value) -> V.Value:
    """Of complex numbers what the function's text says."""
    ty = V.tensor_type(x)
    if ty is None or ty.dtype.kind == "c":
        return _as_written(it, function, x, *others)
    return it.result(it.emit(op, x, *others))


@handles(in_sorting.places_among)
def places_among(it: Interpreter, a: V.Value, v: V.Value, right: V.Value) -> V.Value:
    """The places of numbers among sorted ones, by the op for it.

    A single number is looked for where it is: then the loop around, if there is one, is a kernel.
    """
    types = V.tensor_type(a), V.tensor_type(v)
    if any(ty is None or not ty.rank or ty.dtype.kind == "c" for ty in types):
        return _as_written(it, in_sorting.places_among, a, v, right)
    return it.result(it.emit("search", a, v, right=bool(it.static(right, "side"))))


@handles(in_sorting.items_inside)
def items_inside(it: Interpreter, x: V.Value, k: V.Value) -> V.Value:
    """Elements at places that lie in a vector, by the op for it."""
    ty = V.tensor_type(k)
    if ty is None or not ty.rank:
        return _as_written(it, in_sorting.items_inside, x, k)
    return it.result(it.emit("gather_inside", x, k, axes=(0,)))


@handles(in_lists.are_numbers)
def are_numbers(it: Interpreter, ranks: V.Value) -> V.Value:
    """Whether ranks are numbers, or tuples of them: no strings, objects, lists, tuples of run-time
    length, or tuples in tuples.
    """
    content = lists.growing_content(it, ranks)
    if content is not None:
        return V.Known(not _needs_order(content.template))
    items = it.content(ranks.root) if V.is_list(ranks) else _parts(ranks)
    return V.Known(not any(
        isinstance(leaf, (V.Text, V.OpenTuple)) or V.is_list(leaf)
        or (isinstance(leaf, V.Known) and isinstance(leaf.value, str))
        for leaf in V.leaves_of(tuple(items))
    ) and not any(_parts(part) for item in items for part in _parts(item)))


def _parts(item: V.Value) -> tuple[V.Value, ...]:
    """The items of a tuple."""
    if isinstance(item, V.Known) and isinstance(item.value, tuple):
        return tuple(map(V.Known, item.value))
    return item.items if isinstance(item, V.Tuple) else ()


def _needs_order(template: L.Layout) -> bool:
    """Whether strings, objects, lists, tuples in tuples or tuples of run-time length are in an
    item."""
    if isinstance(template, L.LUnion):
        return any(map(_needs_order, template.cases))
    if isinstance(template, L.LKnown):
        return isinstance(template.value, (str, tuple))
    if isinstance(template, L.LPlace):
        return template.kind == "list"
    if isinstance(template, L.LNode):
        nested = any(isinstance(c, L.LNode) and c.head[0] == "tuple" for c in template.children)
        return nested or template.head[0] in ("data", "text") or is_open(template) or (
            any(map(_needs_order, template.children))
        )
    return False


@handles(in_lists.picked)
def picked(it: Interpreter, items: V.Value, places: V.Value) -> V.Value:
    """The items at these places, in a new list."""
    content = lists.growing_content(it, items)
    if content is None:
        return _as_written(it, in_lists.picked, items, places)
    return lists.new(it, lists.in_order(it, lists.copied(it, content), places))


@handles(in_lists.arrange)
def arrange(it: Interpreter, items: V.Value, places: V.Value) -> V.Value:
    """A list put in another order: its items move, lists among them, too."""
    assert isinstance(items, V.Ref)
    moving.rearrange(it, items, lambda content: lists.in_order(it, content, places))
    return V.NONE


def _counted(it: Interpreter, ranks: tuple[V.Value, ...]) -> tuple[V.Value, ...]:
    """For each object how many are less than it, which their `__lt__` tells."""
    numbers: list[V.Value] = []
    for rank in ranks:
        number: V.Value = V.Known(0)
        for other in ranks:
            less = truth(it, compare(it, "<", other, rank))
            number = binary(it, "+", number, less)
        numbers.append(number)
    return tuple(numbers)


@handles(functools.cmp_to_key)
def cmp_to_key(it: Interpreter, mycmp: V.Value) -> V.Value:
    """functools.cmp_to_key(function), as the key of a sort."""
    return V.Partial(V.Known(in_lists.compared), (mycmp,), ())


def _with_texts_numbered(ranks: tuple[V.Value, ...]) -> tuple[V.Value, ...]:
    """Items to sort by, where strings that stand in the same place of all are numbers in order."""
    rows = [r.items for r in ranks if isinstance(r, V.Tuple) and r.cls is None]
    if len(rows) == len(ranks) and len({len(row) for row in rows}) == 1 and rows[0]:
        numbered = [_with_texts_numbered(column) for column in zip(*rows, strict=True)]
        return tuple(V.Tuple(items) for items in zip(*numbered, strict=True))
    if ranks and all(isinstance(r, V.Known) and isinstance(r.value, str) for r in ranks):
        texts: list[str] = [r.value for r in ranks]  # type: ignore[union-attr]
        place = {text: k for k, text in enumerate(sorted(set(texts)))}
        return tuple(V.Known(place[text]) for text in texts)
    return ranks
