"""Containers whose keys or length only the running program knows, as classes in plain Python.

In and out: what the methods of `collections.deque`, `dict`, `defaultdict`, `Counter` and `set` take
and give. Keys are ints or tuples of ints. Derivatives follow from the bodies; back in Python each
is the container that it stands for (`standing_for`).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from pyrelay.infer.in_python.polynomials import Poly1d


def hash_of(key: Any) -> Any:
    """A number for a key; a handler says that of a program, and refuses other keys."""
    return hash(key)


class Queue:
    """collections.deque: what was put at the left end in reverse, then `items` from `head` on."""

    def __init__(self, iterable: Iterable[Any] = (), maxlen: Any = None) -> None:
        self.items: list[Any] = []
        self.left: list[Any] = []
        self.head = 0
        self.maxlen = maxlen
        for item in iterable:
            self.append(item)

    def __len__(self) -> int:
        return len(self.left) + len(self.items) - self.head

    def append(self, item: Any) -> None:
        if self.maxlen is not None and len(self) >= self.maxlen:
            if self.maxlen == 0:
                return
            self.popleft()
        self.items.append(item)

    def appendleft(self, item: Any) -> None:
        if self.maxlen is not None and len(self) >= self.maxlen:
            if self.maxlen == 0:
                return
            self.pop()
        self.left.append(item)

    def extend(self, iterable: Iterable[Any]) -> None:
        for item in iterable:
            self.append(item)

    def extendleft(self, iterable: Iterable[Any]) -> None:
        for item in iterable:
            self.appendleft(item)

    def popleft(self) -> Any:
        if len(self) == 0:
            raise IndexError("pop from an empty deque")
        if self.left:
            return self.left.pop()
        item = self.items[self.head]
        self.head += 1
        return item

    def pop(self) -> Any:
        if len(self) == 0:
            raise IndexError("pop from an empty deque")
        if self.head == len(self.items):
            return self.left.pop(0)
        return self.items.pop()

    def clear(self) -> None:
        self.items.clear()
        self.left.clear()
        self.head = 0

    def rotate(self, n: Any = 1) -> None:
        if len(self) > 0:
            for _ in range(n % len(self)):
                self.appendleft(self.pop())

    def _place(self, index: Any) -> Any:
        """The index counted from the left end."""
        place = index + len(self) if index < 0 else index
        if place < 0 or place >= len(self):
            raise IndexError("deque index out of range")
        return place

    def __getitem__(self, index: Any) -> Any:
        place = self._place(index)
        if place < len(self.left):
            return self.left[len(self.left) - 1 - place]
        return self.items[self.head + place - len(self.left)]

    def __setitem__(self, index: Any, item: Any) -> None:
        place = self._place(index)
        if place < len(self.left):
            self.left[len(self.left) - 1 - place] = item
        else:
            self.items[self.head + place - len(self.left)] = item

    def __contains__(self, item: Any) -> bool:
        return any(each == item for each in self)

    def __iter__(self) -> Iterator[Any]:
        for k in range(len(self.left)):
            yield self.left[len(self.left) - 1 - k]
        for k in range(self.head, len(self.items)):
            yield self.items[k]

    def copy(self) -> Any:
        return Queue(self, self.maxlen)

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, deque) or len(self) != len(other):
            return False
        for k in range(len(self)):  # noqa: SIM110
            if self[k] != other[k]:
                return False
        return True

    __hash__ = None  # type: ignore[assignment]

    def count(self, wanted: Any) -> Any:
        return sum([1 for item in self if item == wanted])


class Table:
    """dict: the entries in order of insertion, and a table of their places by open addressing.

    Source: Knuth, The Art of Computer Programming 3, 6.4, algorithm L. An entry that was deleted
    keeps its place, so that probing goes on behind it.
    """

    def __init__(self, pairs: Any = ()) -> None:
        self.names: list[Any] = []
        self.held: list[Any] = []
        self.alive: list[bool] = []
        self.slots = [-1] * 8  # one list for ever: it grows in place
        self.size = 0
        self.update(pairs)

    def find(self, key: Any) -> Any:
        """The place of the entry; of none, -1 - the free slot."""
        last = len(self.slots) - 1
        at = hash_of(key) & last
        while self.slots[at] >= 0:
            place = self.slots[at]
            if self.alive[place] and self.names[place] == key:
                return place
            at = (at + 1) & last
        return -1 - at

    def _make_room(self) -> None:
        for at in range(len(self.slots)):
            self.slots[at] = -1
        self.slots.extend([-1] * len(self.slots))
        last = len(self.slots) - 1
        for place in range(len(self.names)):
            at = hash_of(self.names[place]) & last
            while self.slots[at] >= 0:
                at = (at + 1) & last
            self.slots[at] = place

    def __len__(self) -> int:
        return self.size

    def __contains__(self, key: Any) -> bool:
        place: int = self.find(key)
        return place >= 0

    def __getitem__(self, key: Any) -> Any:
        place = self.find(key)
        if place < 0:
            raise KeyError(key)
        return self.held[place]

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self.find(key)
        if place >= 0:
            self.held[place] = value
            return
        if 2 * len(self.names) + 2 > len(self.slots):
            self._make_room()
            place = self.find(key)
        self.slots[-1 - place] = len(self.names)
        self.names.append(key)
        self.held.append(value)
        self.alive.append(True)
        self.size += 1

    def __delitem__(self, key: Any) -> None:
        place = self.find(key)
        if place < 0:
            raise KeyError(key)
        self.alive[place] = False
        self.size -= 1

    def __iter__(self) -> Iterator[Any]:
        for place in range(len(self.names)):
            if self.alive[place]:
                yield self.names[place]

    def keys(self) -> Any:
        return [self.names[k] for k in range(len(self.names)) if self.alive[k]]

    def values(self) -> Any:
        return [self.held[k] for k in range(len(self.names)) if self.alive[k]]

    def items(self) -> Any:
        return [(self.names[k], self.held[k]) for k in range(len(self.names)) if self.alive[k]]

    def get(self, key: Any, default: Any = None) -> Any:
        place = self.find(key)
        if place < 0:
            return default
        return self.held[place]

    def setdefault(self, key: Any, default: Any = None) -> Any:
        place = self.find(key)
        if place < 0:
            self[key] = default
            place = len(self.names) - 1
        return self.held[place]

    def pop(self, key: Any, *default: Any) -> Any:
        place = self.find(key)
        if place < 0:
            if len(default) == 1:
                return default[0]
            raise KeyError(key)
        self.alive[place] = False
        self.size -= 1
        return self.held[place]

    def update(self, pairs: Any) -> None:
        if isinstance(pairs, dict):
            for key in pairs:
                self[key] = pairs[key]
        else:
            for key, value in pairs:
                self[key] = value

    def clear(self) -> None:
        self.names.clear()
        self.held.clear()
        self.alive.clear()
        for at in range(len(self.slots)):
            self.slots[at] = -1
        self.size = 0

    def copy(self) -> Any:
        return Table(self)

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, dict) or len(self) != len(other):
            return False
        for key in self:  # noqa: SIM110
            if key not in other or self[key] != other[key]:
                return False
        return True

    __hash__ = None  # type: ignore[assignment]


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

    def update(self, pairs: Any) -> None:
        self.entries.update(pairs)

    def clear(self) -> None:
        self.entries.clear()

    def __eq__(self, other: Any) -> Any:
        return self.entries == other

    __hash__ = None  # type: ignore[assignment]


class Defaults(Entries):
    """collections.defaultdict."""

    def __init__(self, default_factory: Any, entries: Any) -> None:
        Entries.__init__(self, entries)
        self.default_factory = default_factory

    def __getitem__(self, key: Any) -> Any:
        if key not in self.entries:
            if self.default_factory is None:
                raise KeyError(key)
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

    def update(self, iterable: Any = ()) -> None:
        if isinstance(iterable, dict):
            for key in iterable:
                self[key] = self[key] + iterable[key]
        else:
            for key in iterable:
                self[key] = self[key] + 1

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


def items_of(iterable: Any) -> Any:
    """What an iterable has; of a set in order of insertion, for what does not depend on it."""
    return iterable.table.keys() if hasattr(iterable, "table") else iterable


def _with_membership(iterable: Any) -> Any:
    """A set with the items of an iterable."""
    return iterable if isinstance(iterable, (set, frozenset)) else Members(iterable)


def _set_for(operator: str, other: Any) -> Any:
    """The right operand of an operator of sets."""
    if not isinstance(other, (set, frozenset)):
        raise TypeError(
            f"unsupported operand type(s) for {operator}: 'set' and '{type(other).__name__}'"
        )
    return other


class Members:
    """set: the keys of a table."""

    def __init__(self, iterable: Any = ()) -> None:
        self.table = Table()
        self.update(iterable)

    def __len__(self) -> int:
        return len(self.table)

    def __contains__(self, item: Any) -> bool:
        return item in self.table

    def add(self, item: Any) -> None:
        if item not in self.table:
            self.table[item] = True

    def update(self, *iterables: Any) -> None:
        for iterable in iterables:
            for item in items_of(iterable):
                self.add(item)

    def discard(self, item: Any) -> None:
        if item in self.table:
            del self.table[item]

    def remove(self, item: Any) -> None:
        del self.table[item]

    def clear(self) -> None:
        self.table.clear()

    def copy(self) -> Any:
        return Members(self)

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, (set, frozenset)) or len(self) != len(other):
            return False
        return self.issubset(other)

    def issubset(self, other: Any) -> Any:
        members = _with_membership(other)
        for item in self.table:  # noqa: SIM110
            if item not in members:
                return False
        return True

    def issuperset(self, other: Any) -> Any:
        for item in items_of(other):  # noqa: SIM110
            if item not in self.table:
                return False
        return True

    def isdisjoint(self, other: Any) -> Any:
        for item in items_of(other):  # noqa: SIM110
            if item in self.table:
                return False
        return True

    def union(self, *others: Any) -> Any:
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Any) -> Any:
        made = self.copy()
        made.intersection_update(*others)
        return made

    def difference(self, *others: Any) -> Any:
        made = self.copy()
        made.difference_update(*others)
        return made

    def symmetric_difference(self, other: Any) -> Any:
        made = self.copy()
        made.symmetric_difference_update(other)
        return made

    def intersection_update(self, *others: Any) -> None:
        for other in others:
            members = _with_membership(other)
            for item in items_of(self):
                if item not in members:
                    del self.table[item]

    def difference_update(self, *others: Any) -> None:
        for other in others:
            for item in items_of(other):
                self.discard(item)

    def symmetric_difference_update(self, other: Any) -> None:
        for item in items_of(_with_membership(other)):
            if item in self.table:
                del self.table[item]
            else:
                self.add(item)

    def __or__(self, other: Any) -> Any:
        return self.union(_set_for("|", other))

    def __and__(self, other: Any) -> Any:
        return self.intersection(_set_for("&", other))

    def __sub__(self, other: Any) -> Any:
        return self.difference(_set_for("-", other))

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(_set_for("^", other))

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__

    def __rsub__(self, other: Any) -> Any:
        return Members(other).difference(self)

    def __ior__(self, other: Any) -> Any:
        self.update(_set_for("|=", other))
        return self

    def __iand__(self, other: Any) -> Any:
        self.intersection_update(_set_for("&=", other))
        return self

    def __isub__(self, other: Any) -> Any:
        self.difference_update(_set_for("-=", other))
        return self

    def __ixor__(self, other: Any) -> Any:
        self.symmetric_difference_update(_set_for("^=", other))
        return self

    def __le__(self, other: Any) -> Any:
        return self.issubset(other)

    def __lt__(self, other: Any) -> Any:
        return len(self) < len(other) and self.issubset(other)

    def __ge__(self, other: Any) -> Any:
        return self.issuperset(other)

    def __gt__(self, other: Any) -> Any:
        return len(self) > len(other) and self.issuperset(other)

    __hash__ = None  # type: ignore[assignment]


# -- back in Python --------------------------------------------------------------------------------


def _pairs(names: list[Any], held: list[Any], alive: list[bool]) -> dict[Any, Any]:
    return {k: v for k, v, here in zip(names, held, alive, strict=True) if here}


def _set(*parts: Any) -> set[Any]:
    return set(_pairs(*parts))


#: What each class stands for, what makes that in Python, and the arguments for it.
standing_for: dict[type, tuple[type, Callable[..., Any], Callable[[Any], Any]]] = {
    Queue: (deque, deque, lambda x: (list(x), x.maxlen)),
    Table: (dict, _pairs, lambda x: (x.names, x.held, x.alive)),
    Defaults: (defaultdict, defaultdict, lambda x: (x.default_factory, x.entries)),
    Counts: (Counter, Counter, lambda x: (x.entries,)),
    Members: (set, _set, lambda x: (x.table.names, x.table.held, x.table.alive)),
    Poly1d: (np.poly1d, np.poly1d, lambda x: (x.given,)),
}
