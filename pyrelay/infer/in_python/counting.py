"""Subclasses of dict, as classes in plain Python: `OrderedDict`, `defaultdict` and `Counter`.

In and out: what their methods take and give. Their entries are a dict, or the table of one.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from typing import Any


class Entries:
    """What a subclass of dict does as a dict does; `entries` is a dict, or the table of one."""

    def __init__(self, entries: Any) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, key: Any) -> bool:
        return key in self.entries

    def __setitem__(self, key: Any, value: Any) -> None:
        self.entries[key] = value

    def __delitem__(self, key: Any) -> None:
        del self.entries[key]

    def __iter__(self) -> Iterator[Any]:
        yield from self.entries

    def __reversed__(self) -> Any:
        return reversed(list(self.entries))

    def keys(self) -> Any:
        return self.entries.keys()

    def values(self) -> Any:
        return self.entries.values()

    def items(self) -> Any:
        return self.entries.items()

    def get(self, key: Any, default: Any = None) -> Any:
        return self.entries.get(key, default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self.entries.setdefault(key, default)

    def pop(self, key: Any, *default: Any) -> Any:
        return self.entries.pop(key, *default)

    def popitem(self) -> Any:
        return self.entries.popitem()

    def update(self, pairs: Any = (), /, **named: Any) -> None:
        self.entries.update(pairs, **named)

    def clear(self) -> None:
        self.entries.clear()

    def copy(self) -> Any:
        return type(self)(self.entries.copy())

    def __or__(self, other: Any) -> Any:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: Any) -> Any:
        return self.entries == other

    __hash__ = None  # type: ignore[assignment]


class Ordered(Entries):
    """collections.OrderedDict."""

    def __getitem__(self, key: Any) -> Any:
        return self.entries[key]

    def move_to_end(self, key: Any, last: bool = True) -> None:
        if last:
            value = self.entries.pop(key)
            self.entries[key] = value
        else:
            moved, rest = (key, self.entries[key]), list(self.entries.items())
            self.entries.clear()
            self.entries[moved[0]] = moved[1]
            for other, value in rest:
                if other != key:
                    self.entries[other] = value

    def popitem(self, last: bool = True) -> Any:
        if last or len(self.entries) == 0:
            return self.entries.popitem()
        first = next(iter(self.entries))
        return first, self.entries.pop(first)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, (Ordered, OrderedDict)):  # the latter is what programs take it for
            return list(self.entries.items()) == list(other.items())
        return self.entries == other

    __hash__ = None


class Defaults(Entries):
    """collections.defaultdict."""

    def __init__(self, default_factory: Any, entries: Any) -> None:
        Entries.__init__(self, entries)
        self.default_factory = default_factory

    def __getitem__(self, key: Any) -> Any:
        if self.default_factory is None:
            return self.entries[key]
        if hasattr(self.entries, "find"):  # a table, in which the key is sought once
            return self.entries.found_or_made(key, self.default_factory)
        if key not in self.entries:
            self.entries[key] = self.default_factory()
        return self.entries[key]

    def copy(self) -> Any:
        return Defaults(self.default_factory, self.entries.copy())


class Counts(Entries):
    """collections.Counter."""

    def __init__(self, iterable: Any, entries: Any) -> None:
        Entries.__init__(self, entries)
        self.update(iterable)

    def __getitem__(self, key: Any) -> Any:
        return self.entries.get(key, 0)

    def __delitem__(self, key: Any) -> None:
        if key in self.entries:
            del self.entries[key]

    def update(self, pairs: Any = (), /, **named: Any) -> None:
        if isinstance(pairs, dict):
            for key in pairs:
                self[key] = self[key] + pairs[key]
        else:
            for key in pairs:
                self[key] = self[key] + 1
        for name in named:
            self[name] = self[name] + named[name]

    def subtract(self, iterable: Any = (), /, **named: Any) -> None:
        if isinstance(iterable, dict):
            for key in iterable:
                self[key] = self[key] - iterable[key]
        else:
            for key in iterable:
                self[key] = self[key] - 1
        for name in named:
            self[name] = self[name] - named[name]

    def most_common(self, n: Any = None) -> Any:
        pairs = sorted(self.entries.items(), key=lambda pair: pair[1], reverse=True)
        return pairs if n is None else pairs[:n]

    def total(self) -> Any:
        return sum(self.entries.values())

    def elements(self) -> Iterator[Any]:
        for key in self.entries:
            for _ in range(self.entries[key]):
                yield key

    def copy(self) -> Any:
        return Counts((), self.entries.copy())

    def _positive(self, other: Any, combined: Any) -> Any:
        """What two counts say of each item of either, where that is positive."""
        made = Counts((), {})
        for key in self.entries:
            count = combined(self[key], other[key])
            if count > 0:
                made[key] = count
        for key in other:
            if key not in self.entries:
                count = combined(0, other[key])
                if count > 0:
                    made[key] = count
        return made

    def __add__(self, other: Any) -> Any:
        return self._positive(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._positive(other, lambda a, b: a - b)

    def __and__(self, other: Any) -> Any:
        return self._positive(other, lambda a, b: a if a < b else b)

    def __or__(self, other: Any) -> Any:
        return self._positive(other, lambda a, b: b if a < b else a)

    def __pos__(self) -> Any:
        return self + Counts((), {})

    def __neg__(self) -> Any:
        return Counts((), {}) - self

    def __iadd__(self, other: Any) -> Any:
        for key in other:
            self[key] = self[key] + other[key]
        for key in list(self.entries):
            if not self[key] > 0:
                del self.entries[key]
        return self


STAND_FOR: dict[type, Any] = {Counter: Counts, OrderedDict: Ordered, defaultdict: Defaults}
"""The classes here by those that they stand for."""
