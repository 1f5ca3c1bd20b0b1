"""Lists of many numbers and texts as arguments: an array for each leaf of an item.

In: a list of the caller's whose items have one structure: numbers, texts, tuples of them, lists of
these, to any depth. Out: a key that says nothing of its length, and the arrays;
`column_content` is what a program sees of them. So a new length compiles nothing, nor does it which
items of `[1, 2.5, 3, ...]` are ints: numbers of several kinds have a second array that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pyrelay.infer.containers.code_points import codes_of
from pyrelay.infer.containers.set_layouts import layout_of_set, was_emptied
from pyrelay.ir import types

#: All lists enter as arrays that can.
NONE_APART = 0
#: Lists of up to this length are a structure of their items: loops over them unroll.
MOST_APART = 4
#: The same where lists of lists of lists are structures of these, whatever their length.
MOST_APART_SHALLOW = 3
#: The same where dicts of any length enter as tables, since a program gives them computed keys.
MOST_APART_OPEN = 5
#: All lists enter as arrays that can, and all dicts as tables.
NONE_APART_OPEN = -1
#: Lists of objects of up to this length are a structure of these; objects in longer ones are nodes.
MOST_RECORDS = 16
#: The same of lists of texts, which are names of choices where there are few.
MOST_TEXTS = 16
#: Dicts of up to this length are a structure of their values.
MOST_KEYS = 16
#: The same of lists that a program reads from outside itself, which seldom change.
MOST_APART_CAPTURED = 16
#: The same where a program was refused with arrays: it may need to know the lengths.
MOST_APART_NEEDED = 64
#: All lists are structures of their items.
ALL_APART = 1 << 62

#: Not all ints from here on are floats.
_EXACT = 2**53
#: Items that lists in a list may be filled up by, to be of one length.
_FEW = 64

Key = tuple[Any, ...]
Found = tuple[Key, list[np.ndarray[Any, Any]]]

TEXT: Key = ("text",)
"""The key of a text that is data."""
LETTER: Key = ("letter",)
"""The key of texts in a list that are of one letter each, which are its code point."""

#: The classes of numbers that columns are made of.
NUMBERS: dict[type, Any] = {int: np.int64, float: np.float64, complex: np.complex128, bool: bool}


def columns_of(
    items: Sequence[Any], *, inner: bool = False, texts: bool = True, listed: bool = False,
    deep: bool = True, several: bool = False
) -> Found | None:
    """The key of an item, and its leaves for all items; None unless they are of one structure.

    inner: they are inside others, where lists have no place. texts: some may be texts. listed: they
    are items of lists. deep: these may hold lists. several: numbers may be of several kinds.
    """
    kind = type(items[0]) if items else None
    if kind is None or [*map(type, items)].count(kind) != len(items):
        return _columns_of_numbers(items) if several and items else None
    if kind in NUMBERS:
        try:
            return ("number", kind.__name__), [np.array(items, NUMBERS[kind])]
        except OverflowError:
            return None
    if issubclass(kind, np.generic):
        dtype = types.from_numpy(items[0].dtype)
        return None if dtype is None else (("scalar", dtype.name), [np.array(items)])
    if kind is str and texts and listed and set(map(len, items)) == {1}:
        return LETTER, [codes_of("".join(items)).astype(np.int64)]
    if kind is str and texts:
        return TEXT, columns_of_texts(items)
    if kind is tuple or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return _columns_of_tuples(kind, items, texts, several)
    if kind is list and not inner:
        return _columns_of_lists(items, deep, several)
    return None


def _columns_of_numbers(items: Sequence[Any]) -> Found | None:
    """Real numbers of several kinds, held as one type, and which kind each is (`infer.kinds`)."""
    from pyrelay.infer.kinds import code, numbers_as

    examples = dict(zip(map(type, items), items, strict=True))
    of_class = {cls: types.of_scalar(each) for cls, each in examples.items()}
    met = [ty for ty in of_class.values() if ty is not None and ty.dtype.kind in "biuf"]
    if len(met) < len(of_class) or types.bf16 in [ty.dtype for ty in met]:
        return None
    dtype, weak = types.promote(met)
    common, kinds = numbers_as(
        types.TensorType(dtype, (), weak), [(ty, (ty,), frozenset()) for ty in met]
    )
    if not kinds:
        return None
    try:
        numbers = np.array(items, common.dtype.numpy)
    except OverflowError:
        return None
    if common.dtype.kind == "f" and (np.abs(numbers) >= _EXACT).any() and any(
        float(each) != each == each for each in items
    ):
        return None
    codes = {cls: code(ty) for cls, ty in of_class.items() if ty is not None}
    own = np.fromiter(map(codes.__getitem__, map(type, items)), np.int64, len(items))
    key = ("numbers", *((ty.dtype.name, ty.weak) for ty in (common, *kinds)))
    return key, [numbers, own]


def columns_of_texts(items: Sequence[str]) -> list[np.ndarray[Any, Any]]:
    """How long each text is, and rows of code points with room for the longest."""
    counts = np.fromiter(map(len, items), np.int64, len(items))
    rows = np.zeros((len(items), max(int(counts.max(initial=0)), 1)), np.int64)
    rows[np.arange(rows.shape[1]) < counts[:, None]] = codes_of("".join(items))
    return [counts, rows]


def _columns_of_tuples(
    kind: type, items: Sequence[Any], texts: bool, several: bool
) -> Found | None:
    if len(set(map(len, items))) != 1 or not items[0]:
        return None
    parts: list[Found] = []
    for part in zip(*items, strict=True):
        found = columns_of(part, inner=True, texts=texts, several=several)
        if found is None:
            return None
        parts.append(found)
    key = ("tuple", None if kind is tuple else kind, *(k for k, _ in parts))
    return key, [array for _, arrays in parts for array in arrays]


def _columns_of_lists(
    items: Sequence[Any], deep: bool, several: bool = False
) -> Found | None:
    """Lists in a list: their lengths, and rows with room for the longest."""
    if len(set(map(id, items))) != len(items):
        return None  # one list in two places
    lengths = list(map(len, items))
    room = max(lengths)
    flat = list(chain.from_iterable(items))
    plain = bool(flat) and type(flat[0]) is not list
    if plain and len(flat) < room * len(items) <= 2 * len(flat) + _FEW:  # by NumPy it takes longer
        spare = flat[:1] * room
        filled = ([*i, *spare[n:]] for i, n in zip(items, lengths, strict=True))
        flat = list(chain.from_iterable(filled))
    found = columns_of(flat, inner=not deep, listed=True, several=several) if flat else None
    if found is None:
        return None
    key, columns = found
    counts = np.array(lengths, np.int64)
    if len(flat) == room * len(items):
        whole = [c.reshape(len(items), room, *c.shape[1:]) for c in columns]
        return ("list", key), [counts, *whole]
    there = np.arange(room) < counts[:, None]
    rows = []
    for column in columns:
        row = np.zeros((len(items), room, *column.shape[1:]), column.dtype)
        row[there] = column
        rows.append(row)
    return ("list", key), [counts, *rows]


def most_apart(items: Sequence[Any], apart: int) -> int:
    """Up to which length a list of such items is a structure, where lists are up to `apart`: texts
    in lists are letters on a board more often than names of choices."""
    if apart > MOST_APART_CAPTURED or not items:
        return apart
    first = items[0]
    spelled = type(first) is list and bool(first) and type(first[0]) is str
    return NONE_APART if spelled else apart


def holds_lists(key: Key) -> bool:
    """Whether the items of this key are lists."""
    return bool(key[0] == "list")


def is_deep(key: Key | None) -> bool:
    """Whether the items of this key are lists of lists."""
    return key is not None and holds_lists(key) and holds_lists(key[1])


def is_nested(key: Key) -> bool:
    """Whether this is the key of a list or dict of lists, or of a dict of dicts or sets, that
    enters as arrays."""
    held = held_in(key)
    return key[0] == "nested" or (held is not None and holds_lists(held))


def held_in(key: Key) -> Key | None:
    """The key of the items of a list, or of the values of a dict, that enters as arrays; None of
    anything else."""
    match key:
        case ("grown", held) | ("table", _, held) | ("subclass", _, _, ("table", _, held)):
            return tuple(held) if held is not None else None
    return None


def lists_in(items: Iterable[Any]) -> Iterator[Any]:
    """The lists, dicts and sets among the items of a container that enters as arrays, and the lists
    in lists."""
    for item in items:
        if type(item) in (list, dict, set):
            yield item
            if type(item) is list and item and type(item[0]) is list:
                yield from lists_in(item)


def count_of(key: Key) -> int:
    """How many arrays there are for an item of this key."""
    match key:
        case ("tuple", _, *parts):
            return sum(map(count_of, parts))
        case ("list", item):
            return 1 + count_of(item)
        case ("text",) | ("numbers", *_):
            return 2
    return 1


def holds_texts(key: Key | None) -> bool:
    """Whether there are texts in the items of this key."""
    match key:
        case ("tuple", _, *parts):
            return any(map(holds_texts, parts))
        case ("list", item):
            return holds_texts(item)
    return key in (TEXT, LETTER)


def columns_of_dict(
    entries: dict[Any, Any], *, texts: bool = True, deep: bool = True
) -> tuple[Key, list[np.ndarray[Any, Any]]] | None:
    """The keys of the keys and values of a dict, and their leaves; None if some differ in kind."""
    if not entries:
        return (None, None), []
    names = columns_of(list(entries), inner=True, texts=texts)
    held = columns_of(list(entries.values()), texts=texts, deep=deep) if names is not None else None
    if names is None or held is None:
        return None
    return (names[0], held[0]), [*names[1], *held[1]]


def columns_of_nested(
    entries: dict[Any, Any] | list[Any],
) -> tuple[type, Key | None, Key, list[np.ndarray[Any, Any]]] | None:
    """Dicts or sets in a dict, or in a list: their class, the keys of what finds them in a dict and
    of a list of what each has, and the leaves of both; of sets, where their items stand as well.
    None if some differ in kind, or one is there twice."""
    found = items_of_nested(entries)
    if found is None:
        return None
    cls, lists = found
    held = _columns_of_lists(lists, deep=False)
    names: Found | None = (None, [])  # type: ignore[assignment]
    if isinstance(entries, dict):
        names = columns_of(list(entries), inner=True)
    if names is None or held is None:
        return None
    arrays = [*names[1], *held[1]]
    if cls is set:
        layouts = columns_of_layouts(entries)
        if layouts is None:
            return None
        arrays += layouts
    return cls, names[0], held[0], arrays


def items_of_nested(
    entries: dict[Any, Any] | list[Any],
) -> tuple[type, list[list[Any]]] | None:
    """The class of dicts or sets in a dict, or in a list, and a list of what each has; None if
    there are others, or one is there twice."""
    values = values_of(entries)
    kinds = set(map(type, values))
    if len(kinds) != 1 or len(set(map(id, values))) != len(values):
        return None
    (cls,) = kinds
    if cls is dict:
        return dict, [list(v.items()) for v in values]
    return (set, [*map(list, values)]) if cls is set else None


def values_of(entries: dict[Any, Any] | list[Any]) -> list[Any]:
    """The values of a dict, or the items of a list."""
    return list(entries.values()) if isinstance(entries, dict) else entries


def columns_of_layouts(
    entries: dict[Any, Any] | list[Any],
) -> list[np.ndarray[Any, Any]] | None:
    """Where the items of each set in a dict or list stand; None if that is not followed."""
    sets = values_of(entries)
    if any(map(was_emptied, sets)):
        return None
    found = _columns_of_lists([layout_of_set(v).tolist() for v in sets], deep=False)
    return None if found is None else found[1]


LAYOUTS: Key = ("list", ("number", "int"))
"""The key of where the items of each of several sets stand."""


def store_entries(container: dict[Any, Any], entries: dict[Any, Any]) -> None:
    """Give a caller's dict the entries it has after the program, lists in it their own items."""
    kept = {}
    for name, new in entries.items():
        mine = container.get(name)
        if type(mine) is list and type(new) is list:
            store([mine], [new])
            new = mine
        kept[name] = new
    container.clear()
    container.update(kept)


def store_members(container: set[Any], items: Iterable[Any]) -> None:
    """Give a caller's set the items it has after the program; what is there already keeps its
    place."""
    kept = dict.fromkeys(items)
    for item in [item for item in container if item not in kept]:
        container.remove(item)
    for item in kept:
        container.add(item)


def store_nested(
    container: dict[Any, Any] | list[Any], given: list[Any], *entries: list[Any]
) -> None:
    """Give the dicts or sets in a caller's dict or list what those that entered in their places
    have after the program, and the container, if it has others, its items: of a dict the values,
    the names and which of them are there."""
    mine = {}
    for own, new in zip(values_of(container), given, strict=True):
        mine[id(new)] = own
        if isinstance(own, set):
            store_members(own, new)
        else:
            own.clear()
            own.update(new)
    if entries and isinstance(container, list):
        container[:] = [mine.get(id(v), v) for v in entries[0]]
    elif entries and isinstance(container, dict):
        kept = {k: mine.get(id(v), v) for v, k, there in zip(*entries, strict=True) if there}
        container.clear()
        container.update(kept)


def store(container: list[Any], items: list[Any]) -> None:
    """Give a caller's list of lists the items it has after the program, its lists their own."""
    for mine, new in zip(container, items, strict=False):
        if type(new) is list and new and type(new[0]) is list:
            store(mine, new)
        else:
            mine[:] = new
    container[len(items):] = items[len(container):]


def store_placed(container: list[Any], items: list[Any], places: list[int]) -> None:
    """As `store`, where the lists are now in the order of `places`: their positions before, or -1
    for new ones."""
    container[:] = [
        new if place < 0 else container[place] for place, new in zip(places, items, strict=True)
    ]
    store(container, items)
