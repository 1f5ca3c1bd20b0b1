"""Dicts that all have the same keys, of which there are as many as the running program decides.

Such a dict is a node (`infer/nodes`) with a field for each key: rows of a table are columns. In and
out: what the methods of `dict` take and give. A key that the dict does not have cannot be given to
it, nor one taken away: where a program does that, its dicts are tables (nested.py).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from pyrelay.infer.in_python.containers import standing_for
from pyrelay.infer.in_python.tables import Keys, Pairs, Values


def field_of(entries: Any, key: Any) -> Any:
    """The name of the field of a key, None if there is none; a handler says that of a program."""
    return f"_{entries.labels.index(key)}" if key in entries.labels else None


def outgrown(entries: Any) -> Any:
    """Called where a dict would get other keys; a handler refuses that, so that it is a table."""
    raise NotImplementedError


class Entries:
    """dict: its keys are `labels`, their values the fields `_0`, `_1`, ..."""

    labels: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, key: Any) -> bool:
        return key in self.labels

    def __getitem__(self, key: Any) -> Any:
        name = field_of(self, key)
        if name is None:
            raise KeyError(key)
        return getattr(self, name)

    def __setitem__(self, key: Any, value: Any) -> None:
        name = field_of(self, key)
        if name is None:
            outgrown(self)
        setattr(self, name, value)

    def __delitem__(self, key: Any) -> None:
        if field_of(self, key) is None:
            raise KeyError(key)
        outgrown(self)

    def __iter__(self) -> Iterator[Any]:
        yield from self.labels

    def __reversed__(self) -> Iterator[Any]:
        yield from self.labels[::-1]

    def keys(self) -> Any:
        return EntryKeys(self)

    def values(self) -> Any:
        return EntryValues(self)

    def items(self) -> Any:
        return EntryPairs(self)

    def get(self, key: Any, default: Any = None) -> Any:
        name = field_of(self, key)
        if name is None:
            return default
        return getattr(self, name)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        name = field_of(self, key)
        if name is None:
            outgrown(self)
        return getattr(self, name)

    def pop(self, key: Any, *default: Any) -> Any:
        if field_of(self, key) is not None:
            outgrown(self)
        if len(default) == 1:
            return default[0]
        raise KeyError(key)

    def popitem(self) -> Any:
        outgrown(self)

    def clear(self) -> None:
        outgrown(self)

    def update(self, pairs: Any = (), /, **named: Any) -> None:
        if isinstance(pairs, dict):
            for key in pairs:
                self[key] = pairs[key]
        else:
            for key, value in pairs:
                self[key] = value
        for name in named:
            self[name] = named[name]

    def copy(self) -> Any:
        return {**self}

    __copy__ = copy

    def __or__(self, other: Any) -> Any:
        return {**self, **other}

    def __ror__(self, other: Any) -> Any:
        return {**other, **self}

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, dict) or len(self) != len(other):
            return False
        for key in self.labels:  # noqa: SIM110
            if key not in other or self[key] != other[key]:
                return False
        return True

    __hash__ = None  # type: ignore[assignment]


class EntryValues(Values):
    """dict.values()."""

    def __iter__(self) -> Iterator[Any]:
        for key in self.of.labels:
            yield self.of[key]


class EntryKeys(Keys):
    """dict.keys()."""

    def __iter__(self) -> Iterator[Any]:
        yield from self.of.labels


class EntryPairs(Pairs):
    """dict.items()."""

    def __contains__(self, item: Any) -> bool:
        return item[0] in self.of and bool(self.of[item[0]] == item[1])

    def __iter__(self) -> Iterator[Any]:
        for key in self.of.labels:
            yield key, self.of[key]


@functools.lru_cache(maxsize=None, typed=True)
def entries_class(*labels: Any) -> type[Entries]:
    """The class of dicts with these keys: one for ever, as it is part of what a program is for."""
    contents = {"labels": labels, "of_many": True, "__module__": __name__}
    cls = type("dict", (Entries,), contents)
    standing_for[cls] = (dict, dict, _pairs)
    return cls


def _pairs(entries: Any) -> tuple[Any, ...]:
    names = (f"_{k}" for k in range(len(entries.labels)))
    return ([(key, getattr(entries, n)) for key, n in zip(entries.labels, names, strict=True)],)


def is_entries(cls: Any) -> bool:
    """True for the class of a dict whose keys are fields."""
    return isinstance(cls, type) and issubclass(cls, Entries)


standing_for.update({
    EntryKeys: (type({}.keys()), dict.keys, lambda view: ({**view.of},)),
    EntryValues: (type({}.values()), dict.values, lambda view: ({**view.of},)),
    EntryPairs: (type({}.items()), dict.items, lambda view: ({**view.of},)),
})

__all__ = ["Entries", "entries_class", "is_entries"]
