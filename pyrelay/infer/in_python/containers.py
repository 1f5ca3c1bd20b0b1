"""Containers whose keys or length only the running program knows, as classes in plain Python.

In and out: what the methods of `collections.deque` take and give (dicts and sets: tables.py,
counting.py). Derivatives follow from the bodies; back in Python each is the container that it
stands for (`standing_for`).
"""

from __future__ import annotations

import functools
import queue
from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from operator import attrgetter
from typing import Any

import numpy as np

from pyrelay.infer.in_python import queues
from pyrelay.infer.in_python.byte_arrays import ByteArray, ByteString
from pyrelay.infer.in_python.counting import Counts, Defaults, Ordered
from pyrelay.infer.in_python.hashed_sets import Members
from pyrelay.infer.in_python.iteration import Items
from pyrelay.infer.in_python.missing import missing
from pyrelay.infer.in_python.polynomials import Poly1d
from pyrelay.infer.in_python.set_order import OrderedMembers, OrderedTable
from pyrelay.infer.in_python.tables import Keys, Pairs, Table, Values
from pyrelay.infer.in_python.typed_arrays import TypedArray, entered_array


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

    def __mul__(self, count: Any) -> Any:
        return Queue(list(self) * count, self.maxlen)

    __rmul__ = __mul__

    def __imul__(self, count: Any) -> Any:
        items = list(self)
        self.clear()
        self.extend(items * count)
        return self

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

    def index(self, wanted: Any, start: Any = 0, stop: Any = None) -> Any:
        size = len(self)
        first = max(start + size, 0) if start < 0 else start
        last = size if stop is None else (stop + size if stop < 0 else min(stop, size))
        for k in range(first, last):
            if self[k] == wanted:
                return k
        raise ValueError(missing(wanted, "deque"))

    def _lay_out(self) -> None:
        """Have all items stand in one list."""
        items = list(self)
        self.clear()
        self.items.extend(items)

    def insert(self, index: Any, item: Any) -> None:
        if self.maxlen is not None and len(self) >= self.maxlen:
            raise IndexError("deque already at its maximum size")
        self._lay_out()
        self.items.insert(index, item)

    def remove(self, wanted: Any) -> None:
        for k in range(len(self)):
            if self[k] == wanted:
                del self[k]
                return
        raise ValueError(missing(wanted, "deque", "remove"))

    def __delitem__(self, index: Any) -> None:
        place = self._place(index)
        self._lay_out()
        del self.items[place]

    def reverse(self) -> None:
        self._lay_out()
        self.items.reverse()

    def __iadd__(self, items: Any) -> Any:
        self.extend(list(items))
        return self


# -- back in Python --------------------------------------------------------------------------------


def _pairs(names: list[Any], held: list[Any], alive: list[bool]) -> dict[Any, Any]:
    return dict(compress(zip(names, held, strict=True), alive))


def _set(names: list[Any], held: list[Any], alive: list[bool]) -> set[Any]:
    # One by one, not of a dict: that gives it room at once, and so perhaps another order.
    return {*compress(names, alive)}


def in_order(
    names: list[Any], alive: list[bool], items: list[Any], slots: int
) -> set[Any]:
    """The set of these items, which Python goes through in this order.

    names, alive: what was put into a table of so many slots, in turn, and is there still. It is
    made in the ways that programs make sets, until one has the order.
    """
    added = [*compress(names, alive)]
    ways: tuple[Callable[[], set[Any]], ...] = (
        lambda: set(added), lambda: _in_table(names, alive, slots),
        lambda: at_once(added), lambda: set(items), lambda: at_once(items),
    )
    for way in ways:
        made = way()
        if list(made) == items:
            break
    return made


def at_once(items: list[Any]) -> set[Any]:
    """A set with the table of one that is joined of others, or made of a dict."""
    return set(dict.fromkeys(items))


def _in_table(names: list[Any], alive: list[bool], slots: int) -> set[Any]:
    """A set that gets its table at once, as from a dict: CPython gives it more than twice, at most
    four times as many slots as that has keys. Some are taken out again."""
    extra = [object() for _ in range(slots // 4 - len(names))]
    most = slots // 2 - 1
    made = at_once([*names[:most], *extra])
    made.update(names[most:])
    gone = [name for name, here in zip(names, alive, strict=True) if not here]
    made.difference_update(extra, gone)
    return made


def _keys(*parts: Any) -> Any:
    return _pairs(*parts).keys()


def _values(*parts: Any) -> Any:
    return _pairs(*parts).values()


def _items(*parts: Any) -> Any:
    return _pairs(*parts).items()


def _table_of(view: Any) -> tuple[Any, ...]:
    return (view.of.names, view.of.held, view.of.alive)


#: What each class stands for, what makes that in Python, and the arguments for it.
standing_for: dict[type, tuple[type, Callable[..., Any], Callable[[Any], Any]]] = {
    Queue: (deque, deque, lambda x: (list(x), x.maxlen)),
    Table: (dict, _pairs, attrgetter("names", "held", "alive")),
    Ordered: (OrderedDict, OrderedDict, lambda x: (x.entries,)),
    Defaults: (defaultdict, defaultdict, lambda x: (x.default_factory, x.entries)),
    Counts: (Counter, Counter, lambda x: (x.entries,)),
    Members: (set, _set, lambda x: (x.table.names, x.table.held, x.table.alive)),
    OrderedTable: (dict, dict.fromkeys, lambda x: (list(x),)),
    OrderedMembers: (
        set, in_order, lambda x: (x.table.names, x.table.alive, list(x.table), len(x.table.slots))
    ),
    Keys: (type({}.keys()), _keys, _table_of),
    Values: (type({}.values()), _values, _table_of),
    Pairs: (type({}.items()), _items, _table_of),
    queues.SimpleQueue: (queue.SimpleQueue, queues.simple, lambda x: (list(x.queue),)),
    **{
        ours: (theirs, functools.partial(queues.filled, theirs),
               lambda x: (list(x.queue), x.maxsize, x.unfinished_tasks))
        for ours, theirs in queues.STANDS_FOR.items()
    },
    Items: (type(iter([])), iter, lambda x: (x.sequence[x.position:],)),
    ByteArray: (bytearray, bytearray, lambda x: (x.items,)),
    ByteString: (bytes, bytes, lambda x: (x.items,)),
    TypedArray: (array, array, lambda x: (x.typecode, x.items)),
    Poly1d: (np.poly1d, np.poly1d, lambda x: (x.given,)),
}


def entered_queue(items: list[Any], most: Any) -> Queue:
    """The deque of the caller's with these items."""
    made = Queue((), most)
    made.items = items
    return made


def entered_bytes(items: list[Any], most: Any) -> ByteArray:
    """The bytearray of the caller's with these items."""
    made = ByteArray()
    made.items = items
    return made


ENTERED: dict[type, Callable[[list[Any], Any], Any]] = {
    deque: entered_queue, bytearray: entered_bytes, array: entered_array,
}
