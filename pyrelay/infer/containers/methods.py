"""Methods of lists, dicts and tuples.

In: a container and the arguments of a call. Out: what the method returns; `LIST`, `DICT`, `TUPLE`
and `NAMEDTUPLE` have them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay import errors
from pyrelay.infer import calls
from pyrelay.infer import values as V
from pyrelay.infer.containers import characters, lists, mappings, moving, views
from pyrelay.infer.containers.admission import lent
from pyrelay.infer.containers.columns import MOST_RECORDS
from pyrelay.infer.containers.open_keys import ask, key_of
from pyrelay.infer.containers.open_sequences import as_item
from pyrelay.infer.flow import choice
from pyrelay.infer.flow.handling import is_raised
from pyrelay.infer.flow.iteration import sequence_of
from pyrelay.infer.in_python import lists as in_python
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import handlers
from pyrelay.infer.nodes.dicts import new_dict
from pyrelay.infer.operators import raised
from pyrelay.infer.protocols import gone_through


def _span(it: Interpreter) -> Any:
    return it.let.span if it.let else None


@handlers.keeps_unions
def _list_append(it: Interpreter, x: V.Ref, item: V.Value) -> V.Value:
    if lists.growing_content(it, x) is not None:
        lists.append(it, x, item)
        return V.NONE
    item = lent(it, as_item(it, item))
    it.heap.write(x.root, (*it.content(x.root), item), _span(it))
    return V.NONE


def _list_extend(it: Interpreter, x: V.Ref, items: V.Value) -> V.Value:
    items = gone_through(it, items)
    more = lists.growing_content(it, items)
    if more is not None:
        lists.extend(it, x, more)
        return V.NONE
    if lists.growing_content(it, x) is not None or not lists.has_known_length(it, items):
        calls.call(it, V.Known(in_python.add_items), (x, items), {})
        return V.NONE
    it.heap.write(x.root, (*it.content(x.root), *sequence_of(it, items)), _span(it))
    return V.NONE


def _list_pop(it: Interpreter, x: V.Ref, index: V.Value = V.Known(-1)) -> V.Value:
    if lists.must_grow(it, x, index):
        return lists.pop(it, x, index)
    items = list(it.content(x.root))
    at = it.static(index, "the index of a list")
    if not -len(items) <= at < len(items):
        if is_raised(it, IndexError):
            text = "pop index out of range" if items else "pop from empty list"
            raise raised(it, IndexError(text))
        raise it.failure(errors.IndexRangeError, "pop from an empty list" if not items else
                         f"pop index {at} is out of range")
    taken = items.pop(at)
    it.heap.write(x.root, tuple(items), _span(it))
    return taken  # type: ignore[no-any-return]


def _list_insert(it: Interpreter, x: V.Ref, index: V.Value, item: V.Value) -> V.Value:
    item = as_item(it, item)
    if lists.must_grow(it, x, index):
        lists.insert(it, x, index, item)
        return V.NONE
    items = list(it.content(x.root))
    if not items and isinstance(index, V.Scalar):
        index = V.Known(0)
    items.insert(it.static(index, "the index of a list"), item)
    it.heap.write(x.root, tuple(items), _span(it))
    return V.NONE


def _list_sort(
    it: Interpreter, x: V.Ref, *, key: V.Value = V.NONE, reverse: V.Value = V.Known(False)
) -> V.Value:
    compares = isinstance(key, V.Partial) and key.callee == V.Known(in_python.compared)
    if compares or lists.growing_content(it, x) is None:
        _refuse_many(it, x)
        return calls.call(it, V.Known(in_python.sort_items), (x, key, reverse), {})
    if key == V.NONE and characters.are_characters(it, x):
        key = V.Known(ord)
    return calls.call(it, V.Known(in_python.sort_in_place), (x, key, reverse), {})


def _refuse_many(it: Interpreter, x: V.Ref) -> None:
    """Refuse to sort many lists of the caller's: each would be a choice among all of them, which
    takes minutes to compile for a hundred."""
    items = it.content(x.root)
    lists_of_lists = isinstance(items, tuple) and any(map(V.is_list, items))
    if x.root in it.program.containers and lists_of_lists and len(items) > MOST_RECORDS:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"the caller's list has {len(items)} lists, which cannot change places in it",
            notes=("after the call each would have to be the very list that it was",),
            hints=("sort a list of your own: rows = sorted(rows), with the same key",),
        )


def _list_reverse(it: Interpreter, x: V.Ref) -> V.Value:
    if lists.growing_content(it, x) is not None:
        moving.reverse(it, x)
        return V.NONE
    it.heap.write(x.root, tuple(reversed(it.content(x.root))), _span(it))
    return V.NONE


def _list_copy(it: Interpreter, x: V.Ref) -> V.Value:
    content = it.content(x.root)
    if isinstance(content, V.Growing):
        content = lists.copied(it, content)
    return it.new_ref("list", content)


def _list_clear(it: Interpreter, x: V.Ref) -> V.Value:
    if lists.growing_content(it, x) is not None:
        lists.clear(it, x)
        return V.NONE
    it.heap.write(x.root, (), _span(it))
    return V.NONE


def _list_index(it: Interpreter, x: V.Ref, item: V.Value, *bounds: V.Value) -> V.Value:
    if bounds:
        return calls.call(it, V.Known(in_python.index_between), (x, item, *bounds), {})
    return calls.call(it, V.Known(in_python.index_of), (x, item), {})


def _list_count(it: Interpreter, x: V.Ref, item: V.Value) -> V.Value:
    return calls.call(it, V.Known(in_python.count_of), (x, item), {})


def _list_remove(it: Interpreter, x: V.Ref, item: V.Value) -> V.Value:
    return calls.call(it, V.Known(in_python.remove_item), (x, item), {})


LIST: dict[str, Callable[..., Any]] = {
    "append": _list_append, "extend": _list_extend, "pop": _list_pop, "insert": _list_insert,
    "sort": _list_sort,
    "reverse": _list_reverse, "copy": _list_copy, "clear": _list_clear,
    "index": _list_index, "count": _list_count, "remove": _list_remove,
}


def _dict_keys(it: Interpreter, x: V.Ref) -> V.Value:
    return views.view(it, x, "keys")


def _dict_values(it: Interpreter, x: V.Ref) -> V.Value:
    return views.view(it, x, "values")


def _dict_items(it: Interpreter, x: V.Ref) -> V.Value:
    return views.view(it, x, "items")


def _dict_get(it: Interpreter, x: V.Ref, key: V.Value, default: V.Value = V.NONE) -> V.Value:
    content = it.content(x.root)
    if choice.chooses(it, content, key):
        return choice.choose_by_key(it, x, content, key, lambda: default)
    return content.get(key_of(it, x, key, "the key of a dict"), default)  # type: ignore[no-any-return]


def _dict_pop(
    it: Interpreter, x: V.Ref, key: V.Value, default: V.Value | None = None
) -> V.Value:
    content = dict(it.content(x.root))
    known = key_of(it, x, key, "the key of a dict")
    if known not in content:
        if default is not None:
            return default
        if is_raised(it, KeyError):
            raise raised(it, KeyError(known))
        raise it.failure(errors.KeyMissingError, f"this dict has no key {known!r}")
    taken = content.pop(known)
    it.heap.write(x.root, content, _span(it))
    return taken  # type: ignore[no-any-return]


def _dict_update(
    it: Interpreter, x: V.Ref, other: V.Value = V.Tuple(()), /, **named: V.Value
) -> V.Value:
    content = it.content(x.root)
    if other != V.Tuple(()):
        if not (isinstance(other, V.Ref) and other.root.kind == "dict"):
            ask(it, x.root)
        content = mappings.taken(
            it, content, other, lambda key: key_of(it, x, key, "the key of a dict")
        )
    it.heap.write(x.root, {**content, **named}, _span(it))
    return V.NONE


def _dict_setdefault(
    it: Interpreter, x: V.Ref, key: V.Value, default: V.Value = V.NONE
) -> V.Value:
    content = it.content(x.root)
    known = key_of(it, x, key, "the key of a dict")
    if known not in content:
        it.heap.write(x.root, {**content, known: default}, _span(it))
    return it.content(x.root)[known]  # type: ignore[no-any-return]


def _dict_copy(it: Interpreter, x: V.Ref) -> V.Value:
    return new_dict(it, it.content(x.root))


def _dict_popitem(it: Interpreter, x: V.Ref) -> V.Value:
    content = dict(it.content(x.root))
    if not content:
        raise raised(it, KeyError("popitem(): dictionary is empty"))
    key, value = content.popitem()
    it.heap.write(x.root, content, _span(it))
    return V.Tuple((V.Known(key), value))


def _dict_clear(it: Interpreter, x: V.Ref) -> V.Value:
    it.heap.write(x.root, {}, _span(it))
    return V.NONE


DICT: dict[str, Callable[..., Any]] = {
    "popitem": _dict_popitem, "clear": _dict_clear,
    "keys": _dict_keys, "values": _dict_values, "items": _dict_items, "get": _dict_get,
    "pop": _dict_pop, "update": _dict_update, "setdefault": _dict_setdefault, "copy": _dict_copy,
}


def _tuple_index(it: Interpreter, x: V.Tuple, item: V.Value, *bounds: V.Value) -> V.Value:
    return calls.call(it, V.Known(in_python.index_in_tuple), (x, item, *bounds), {})


def _tuple_count(it: Interpreter, x: V.Tuple, item: V.Value) -> V.Value:
    return calls.call(it, V.Known(in_python.count_of), (x, item), {})


TUPLE: dict[str, Callable[..., Any]] = {"index": _tuple_index, "count": _tuple_count}


def _namedtuple_replace(it: Interpreter, x: V.Tuple, /, **changes: V.Value) -> V.Value:
    fields: tuple[str, ...] = x.cls._fields  # type: ignore[union-attr]
    return V.Tuple(tuple(changes.get(f, v) for f, v in zip(fields, x.items, strict=True)), x.cls)


def _namedtuple_asdict(it: Interpreter, x: V.Tuple) -> V.Value:
    fields: tuple[str, ...] = x.cls._fields  # type: ignore[union-attr]
    return it.new_ref("dict", dict(zip(fields, x.items, strict=True)))


NAMEDTUPLE: dict[str, Callable[..., Any]] = {
    **TUPLE, "_replace": _namedtuple_replace, "_asdict": _namedtuple_asdict,
}
