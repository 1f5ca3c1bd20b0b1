"""Dicts and sets whose keys are known apart from each other while compiling, objects among them.

In and out: as of the classes that these are subclasses of. A key is looked for among all there are,
which programs do whose objects are all records (`infer/unfolding`): what is found is known then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrelay.infer.in_python.containers import standing_for
from pyrelay.infer.in_python.hashed_sets import Members, items_of
from pyrelay.infer.in_python.tables import Table


def place_among(key: Any, names: list[Any]) -> int:
    """The place of a key among some, -1 if it is none of them; a handler says that of a program, as
    far as it is known there."""
    return sought(key, names)


def sought(key: Any, names: list[Any]) -> int:
    """The same, found by comparing the key with one after the other."""
    for place, name in enumerate(names):
        if name == key:
            return place
    return -1


class FewEntries(Table):
    """dict."""

    def __init__(self, pairs: Any = ()) -> None:
        self.names: list[Any] = []
        self.held: list[Any] = []
        self.update(pairs)

    def __len__(self) -> int:
        return len(self.names)

    def take_over(self, other: Any) -> None:
        self.names, self.held = other.names[:], other.held[:]

    def find(self, key: Any) -> Any:
        return place_among(key, self.names)

    def __contains__(self, key: Any) -> bool:
        return place_among(key, self.names) >= 0

    def __getitem__(self, key: Any) -> Any:
        place = place_among(key, self.names)
        if place < 0:
            raise KeyError(key)
        return self.held[place]

    def __setitem__(self, key: Any, value: Any) -> None:
        place = place_among(key, self.names)
        if place >= 0:
            self.held[place] = value
        else:
            self.names.append(key)
            self.held.append(value)

    def enter(self, key: Any, place: Any, value: Any) -> None:
        self.names.append(key)
        self.held.append(value)

    def take_up(self, key: Any, value: Any) -> None:
        if self.find(key) < 0:
            self.enter(key, -1, value)

    def remove(self, place: Any) -> None:
        del self.names[place]
        del self.held[place]

    def places(self) -> Iterator[Any]:
        for place, _ in enumerate([*self.names]):
            yield place

    def __iter__(self) -> Iterator[Any]:
        yield from [*self.names]

    def pop(self, key: Any, *default: Any) -> Any:
        place = self.find(key)
        if place < 0:
            if len(default) == 1:
                return default[0]
            raise KeyError(key)
        value = self.held[place]
        self.remove(place)
        return value

    def popitem(self) -> Any:
        if len(self.names) == 0:
            raise KeyError("popitem(): dictionary is empty")
        return self.names.pop(), self.held.pop()

    def clear(self) -> None:
        self.names.clear()
        self.held.clear()

    def copy(self) -> Any:
        made = FewEntries()
        made.take_over(self)
        return made


class FewMembers(Members):
    """set."""

    def __init__(self, iterable: Any = ()) -> None:
        self.table = FewEntries()
        self.given = False
        for item in items_of(iterable):
            self.add(item)

    def __contains__(self, item: Any) -> bool:
        return place_among(item, self.table.names) >= 0

    def add(self, item: Any) -> None:
        names = self.table.names
        if place_among(item, names) < 0:
            names.append(item)
            self.table.held.append(True)

    def __iter__(self) -> Iterator[Any]:
        yield from [*self.table.names]

    def pop(self) -> Any:
        if len(self.table) == 0:
            raise KeyError("pop from an empty set")
        return self.table.popitem()[0]

    def copy(self) -> Any:
        return FewMembers(self)


#: The class in place of each where keys are known apart.
few_for: dict[type, type] = {Table: FewEntries, Members: FewMembers}

standing_for[FewEntries] = (dict, dict, lambda x: (list(zip(x.names, x.held, strict=True)),))
standing_for[FewMembers] = (set, set, lambda x: (x.table.names,))

__all__ = ["FewEntries", "FewMembers", "few_for"]
