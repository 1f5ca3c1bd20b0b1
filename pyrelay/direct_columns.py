"""What the short way into a program makes arrays of lists and dicts with (`direct`).

In: lists, dicts that enter as tables, and dicts of dicts or sets, and the keys of their items. Out:
the arrays that these are for the program, by native code where that knows such items; ValueError
for other items; and the text that has them made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from pyrelay.direct_text import Text
from pyrelay.infer.containers import columns
from pyrelay.infer.structure import Key

COLUMN: Key = ("column",)
"""The key of an array that parts of a list's items are."""


def columns_of(items: list[Any], key: Key) -> list[ndarray[Any, Any]]:
    """The arrays that the items of a list are. Raises ValueError if they are not of this key."""
    found = columns.columns_of(items, listed=True, several=True)
    if found is None or found[0] != key:
        raise ValueError
    return found[1]


def reader_of(key: Key | None) -> Callable[[list[Any]], Sequence[Any] | None] | None:
    """What reads lists of this key natively, if anything does."""
    from pyrelay.devices.runtime.columns import reader

    if key is None:
        return None
    if not columns.holds_lists(key):
        return reader(key)
    alone, apart = reader(key), reader(key, apart=True)
    if alone is None or apart is None:
        return None

    def read(items: list[Any]) -> Sequence[Any] | None:
        found = alone(items)
        if found is None and len({*map(id, items)}) == len(items):
            found = apart(items)  # others refer to the lists as well, as a dict does
        return found

    return read


def are_apart(nested: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether the lists in some containers are in one of these only, and none of the others."""
    from pyrelay.devices.runtime.columns import single

    return all(map(single(), nested)) or are_all_apart(nested, others)


def are_all_apart(nested: Sequence[Any], others: Sequence[Any]) -> bool:
    """The same of lists in lists in them, too."""
    inner = [
        id(item) for each in nested
        for item in columns.lists_in(each.values() if isinstance(each, dict) else each)
    ]
    return len({*inner, *map(id, others)}) == len(inner) + len(others)


def entries_of(entries: dict[Any, Any], of: Key) -> list[ndarray[Any, Any]]:
    """The arrays of a dict that is a table. Raises ValueError if they are not of this key."""
    found = columns.columns_of_dict(entries)
    if found is None or found[0] != of:
        raise ValueError
    return found[1]


def read_entries(entries: dict[Any, Any], readers: tuple[Any, Any]) -> tuple[Any, ...] | None:
    """The same by native code, None where that cannot read them."""
    names, held = readers[0](list(entries)), readers[1](list(entries.values()))
    return None if names is None or held is None else (*names, *held)


def nested_of(entries: Any, of: Key) -> list[ndarray[Any, Any]]:
    """The arrays of a dict of dicts, or of sets, or of a list of sets. Raises ValueError if they
    are not of this key."""
    found = columns.columns_of_nested(entries)
    if found is None or found[:3] != of:
        raise ValueError
    return found[3]


def read_nested(
    entries: Any, cls: type, readers: tuple[Any, Any], *, layouts: bool
) -> Sequence[Any] | None:
    """The same by native code, None where that cannot read them; of sets without what says where
    their items stand, if the program does not read it."""
    found = columns.items_of_nested(entries)
    if found is None or found[0] is not cls:
        raise ValueError
    names = readers[0](list(entries)) if readers[0] is not None else ()
    held = readers[1](found[1])
    if names is None or held is None:
        return None
    places: Any = (None, None) * (cls is set)
    if layouts:
        places = columns.columns_of_layouts(entries)
    return None if places is None else (*names, *held, *places)


def text_of_table(text: Text, name: str, of: Sequence[Any]) -> tuple[Key, str]:
    """The keys of the arrays of a dict that enters as a table, and where they are found."""
    count = sum(map(columns.count_of, of))
    made = f"{text.name(entries_of)}({name}, {text.name(tuple(of))})"
    readers = [reader_of(each) for each in of]
    if None not in readers:
        made = f"{text.name(read_entries)}({name}, {text.name(tuple(readers))}) or {made}"
    return (COLUMN,) * count, made


def text_of_nested(text: Text, name: str, of: Sequence[Any]) -> tuple[Key, str]:
    """The keys of the arrays of a dict of dicts, or of sets, and where they are found."""
    cls, names, held = of
    count = columns.count_of(held) + (columns.count_of(names) if names is not None else 0)
    keys = (COLUMN,) * (count + (columns.count_of(columns.LAYOUTS) if cls is set else 0))
    made = f"{text.name(nested_of)}({name}, {text.name(tuple(of))})"
    readers = reader_of(names), reader_of(held)
    if readers[1] is not None and (readers[0] is not None or names is None):
        layouts = cls is set and len(text.leaves) + count in text.handed
        made = (f"{text.name(read_nested)}({name}, {text.name(cls)}, {text.name(readers)}, "
                f"layouts={layouts}) or {made}")
    return keys, made
