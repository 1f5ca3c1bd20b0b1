"""Sets that are gone through in Python's order, as classes in plain Python.

In and out: what the methods of `set` take and give. The order of a set in CPython is that of its
hash table, which depends on how its items came there: these classes keep that table. Programs that
look at no order have the tables of tables.py, which are quicker. Derivatives follow from the
bodies.

Source: CPython 3.11 to 3.13, Objects/setobject.c (tables, what combines sets, hash of a frozenset),
Objects/tupleobject.c (hash of a tuple, after Collet's xxHash), Python/pyhash.c (hash of a number).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyrelay.infer.in_python import once
from pyrelay.infer.in_python.hashed_sets import Members, order_wanted, set_for
from pyrelay.infer.in_python.tables import Table, differ

# -- hashes ----------------------------------------------------------------------------------------


def python_hash(key: Any) -> Any:
    """hash(key); a handler says that of a program."""
    return hash(key)


_PRIME, _BITS = (1 << 61) - 1, 61
_ONE, _TWO, _FIVE = (
    np.uint64(11400714785074694791), np.uint64(14029467366897019727), np.uint64(2870177450012600261)
)
_TAIL, _MINUS_ONE, _IN_ITS_PLACE = (
    _FIVE ^ np.uint64(3527539), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1546275796)
)
_LEFT, _RIGHT = np.uint64(31), np.uint64(33)


@once
def hash_of_int(x: Any) -> Any:
    """hash(x) of an int: its remainder by 2**61 - 1, with its sign; never -1."""
    size = abs(x)
    size = (size & _PRIME) + (size >> _BITS)
    size = size - _PRIME if size >= _PRIME else size
    signed = -size if x < 0 else size
    return -2 if signed == -1 else signed


@once
def hash_of_float(x: Any) -> Any:
    """hash(x) of a float: of the ratio that it is by 2**61 - 1, where a factor 2 turns the bits."""
    if np.isnan(x):
        return 0
    if np.isinf(x):
        return 314159 if x > 0.0 else -314159
    mantissa, exponent = np.frexp(np.float64(x))
    whole = int(abs(mantissa) * 2.0**53)
    turn = (int(exponent) - 53) % _BITS
    low = whole & ((1 << (_BITS - turn)) - 1)
    turned = (low << turn) | (whole >> (_BITS - turn))
    signed = -turned if x < 0.0 else turned
    return -2 if signed == -1 else signed


def hash_of_own(number: Any) -> Any:
    """hash(x) of an object whose `__hash__` gives a number."""
    return -2 if number == -1 else number


def mixed(mix: Any, lane: Any) -> Any:
    """The hash of the items of a tuple before one, and that of this, both np.uint64."""
    mix = mix + lane * _TWO
    return ((mix << _LEFT) | (mix >> _RIGHT)) * _ONE


def hash_of_lanes(lanes: Any) -> Any:
    """hash(t) of a tuple, np.uint64, whose items have these hashes."""
    mix = _FIVE
    for lane in lanes:
        mix = mixed(mix, lane)
    return finished(mix, np.uint64(len(lanes)))


def hash_of_items(items: Any) -> Any:
    """hash(t) of a tuple whose length only the running program knows, np.uint64."""
    mix = _FIVE
    for item in items:
        mix = mixed(mix, as_word(python_hash(item)))
    return finished(mix, np.uint64(len(items)))


def as_word(number: Any) -> Any:
    """The 64 bits of an int; a handler says that of a program."""
    return np.uint64(number % (1 << 64))


def finished(mix: Any, count: Any) -> Any:
    """The hash of a tuple of so many items; never -1."""
    mix = mix + (count ^ _TAIL)
    return _IN_ITS_PLACE if mix == _MINUS_ONE else mix


_SHUFFLED, _SHUFFLING = np.uint64(89869747), np.uint64(3644798167)
_SHUFFLED_BY, _NEAR_BITS, _FAR_BITS = np.uint64(16), np.uint64(11), np.uint64(25)
_COUNTED, _DISPERSING = np.uint64(1927868237), np.uint64(69069)
_DISPERSED, _SET_IN_ITS_PLACE = np.uint64(907133923), np.uint64(590923713)


def hash_of_members(lanes: Any) -> Any:
    """hash(s) of a frozenset, np.uint64, whose items have these hashes."""
    mix = np.uint64(len(lanes) + 1) * _COUNTED
    for lane in lanes:
        mix = mix ^ (lane ^ _SHUFFLED ^ (lane << _SHUFFLED_BY)) * _SHUFFLING
    mix = mix ^ (mix >> _NEAR_BITS) ^ (mix >> _FAR_BITS)
    mix = mix * _DISPERSING + _DISPERSED
    return _SET_IN_ITS_PLACE if mix == _MINUS_ONE else mix


# -- tables ----------------------------------------------------------------------------------------

_NEAR = 9  # so many slots behind one are looked at before another
_SHIFT, _SHIFTED = 5, (1 << 59) - 1
_SMALLEST, _LARGE = 8, 50000


@once
def place_in_order(
    key: Any, hashed: Any, slots: list[int], names: list[Any], hashes: list[int], alive: list[bool]
) -> Any:
    """The place of the entry of a key, with its hash; of none, -1 - the slot that it would have.

    That is the last on the way whose entry is not alive, or the free one at the end.
    """
    last = len(slots) - 1
    perturbed = hashed
    start = perturbed & last
    at, end = start, (start + _NEAR if start + _NEAR <= last else start)
    dead = -1
    while slots[at] >= 0:
        place = slots[at]
        if not alive[place]:
            dead = at
        elif hashes[place] == hashed and names[place] == key:
            return place
        if at < end:
            at += 1
        else:
            perturbed = (perturbed >> _SHIFT) & _SHIFTED
            start = (start * 5 + 1 + perturbed) & last
            at, end = start, (start + _NEAR if start + _NEAR <= last else start)
    return -1 - (at if dead < 0 else dead)


@once
def lay_out(
    least: Any, slots: list[int], names: list[Any], hashes: list[int], alive: list[bool]
) -> None:
    """Make the smallest table of more slots than `least`: the entries, in order, and no others."""
    places = [place for place in slots if place >= 0 and alive[place]]
    kept, kept_hashes = [names[place] for place in places], [hashes[place] for place in places]
    names.clear()
    hashes.clear()
    alive.clear()
    size = _SMALLEST
    while size <= least:
        size *= 2
    slots.clear()
    slots.extend([-1] * size)
    for name, hashed in zip(kept, kept_hashes, strict=True):
        slots[-1 - place_in_order(name, hashed, slots, names, hashes, alive)] = len(names)
        names.append(name)
        hashes.append(hashed)
        alive.append(True)


def _roomier(size: Any) -> Any:
    return 2 * size if size > _LARGE else 4 * size


@once
def put(
    key: Any, hashed: Any, slots: list[int], names: list[Any], hashes: list[int],
    alive: list[bool], size: Any,
) -> Any:
    """Add a key to a table of so many, unless it has it; how many it has then."""
    place = place_in_order(key, hashed, slots, names, hashes, alive)
    if place >= 0:
        return size
    dead = slots[-1 - place]
    if dead >= 0:
        names[dead] = key
        hashes[dead] = hashed
        alive[dead] = True
        return size + 1
    slots[-1 - place] = len(names)
    names.append(key)
    hashes.append(hashed)
    alive.append(True)
    if 5 * len(names) >= 3 * (len(slots) - 1):
        lay_out(_roomier(size + 1), slots, names, hashes, alive)
    return size + 1


def keys_of(slots: list[int], names: list[Any], alive: list[bool]) -> Iterator[Any]:
    """The keys, in order, of a table that nothing changes meanwhile."""
    for place in slots:
        if place >= 0 and alive[place]:
            yield names[place]


@once
def merge(
    slots: list[int], names: list[Any], hashes: list[int], alive: list[bool], size: Any,
    other_slots: list[int], other_names: list[Any], other_hashes: list[int],
    other_alive: list[bool], other_size: Any,
) -> Any:
    """Add the keys of another table; into an empty one of as many slots they go as they lie.

    How many there are then.
    """
    if other_size == 0:
        return size
    if 5 * (len(names) + other_size) >= 3 * (len(slots) - 1):
        lay_out(2 * (size + other_size), slots, names, hashes, alive)
    if len(names) == 0 and len(other_names) == other_size and len(other_slots) == len(slots):
        slots[:] = other_slots
        names[:] = other_names
        hashes[:] = other_hashes
        alive[:] = other_alive
        return other_size
    for place in other_slots:
        if place >= 0 and other_alive[place]:
            key, hashed = other_names[place], other_hashes[place]
            size = put(key, hashed, slots, names, hashes, alive, size)
    return size


class OrderedTable(Table):
    """The items of a set, as keys without values, in slots that are those of CPython's.

    A slot whose entry is not alive is what CPython calls a dummy.
    """

    def __init__(self) -> None:
        self.names: list[Any] = []
        self.hashes: list[int] = []
        self.alive: list[bool] = []
        self.slots = [-1] * _SMALLEST
        self.size = 0
        self.finger = 0  # where pop() of the set looks first

    def find(self, key: Any) -> Any:
        hashed = python_hash(key)
        return place_in_order(key, hashed, self.slots, self.names, self.hashes, self.alive)

    def put(self, key: Any) -> None:
        hashed = python_hash(key)
        self.size = put(
            key, hashed, self.slots, self.names, self.hashes, self.alive, self.size
        )

    def remove(self, place: Any) -> None:
        self.alive[place] = False
        self.size -= 1

    def drop(self, key: Any) -> None:
        place = self.find(key)
        if place >= 0:
            self.remove(place)

    def toggle(self, key: Any) -> None:
        """Take a key out; put it in if the table did not have it."""
        place = self.find(key)
        if place >= 0:
            self.remove(place)
        else:
            self.put(key)

    def merge(self, other: Any) -> None:
        self.size = merge(
            self.slots, self.names, self.hashes, self.alive, self.size,
            other.slots, other.names, other.hashes, other.alive, other.size,
        )

    def expect(self, count: Any) -> None:
        """Make room for so many entries more, where CPython does before it merges two sets."""
        if 5 * (len(self.names) + count) >= 3 * (len(self.slots) - 1):
            lay_out(
                2 * (self.size + count), self.slots, self.names, self.hashes, self.alive
            )

    def tidy(self) -> None:
        """Lay it out anew where more than a quarter of its slots are of entries not alive."""
        if len(self.names) - self.size > (len(self.slots) - 1) // 4:
            lay_out(_roomier(self.size), self.slots, self.names, self.hashes, self.alive)

    def take_over(self, other: Any) -> None:
        """Become what another is."""
        self.slots[:] = other.slots
        self.names[:] = other.names
        self.hashes[:] = other.hashes
        self.alive[:] = other.alive
        self.size = other.size

    def keys_unchanged(self) -> Iterator[Any]:
        """The keys, in order, where nothing changes the table meanwhile."""
        return keys_of(self.slots, self.names, self.alive)

    def places(self) -> Iterator[Any]:
        size, count = self.size, len(self.slots)
        for at in range(count):
            if differ(self.size, size):
                raise RuntimeError("Set changed size during iteration")
            place = self.slots[at]
            if place >= 0 and self.alive[place]:
                yield place
        if differ(self.size, size):
            raise RuntimeError("Set changed size during iteration")

    def clear(self) -> None:
        self.names.clear()
        self.hashes.clear()
        self.alive.clear()
        self.slots.clear()
        self.slots.extend([-1] * _SMALLEST)
        self.size = 0


# -- sets ------------------------------------------------------------------------------------------


def told_in_order(item: Any) -> Any:
    """An item of a set that is gone through; a handler refuses what has no order."""
    return item


def ordered(iterable: Any = ()) -> Any:
    """set(iterable), in an order of its own; a handler makes one of many where it is."""
    return OrderedMembers(iterable)


def _is_set(other: Any) -> Any:
    return hasattr(other, "keeps_order") or isinstance(other, (set, frozenset))


def _is_dict(other: Any) -> Any:
    """Whether this is a dict, and of no subclass: CPython asks for that, too."""
    return isinstance(other, dict) and not hasattr(other, "entries")


def as_ordered(other: Any) -> Any:
    """A set, or the set of an iterable's items, with its table."""
    if hasattr(other, "keeps_order"):
        return other
    return order_wanted(other) if hasattr(other, "table") else ordered(list(other))


def entered(names: list[Any], layout: Any) -> Any:
    """The set of the caller's with these items, in the order of its slots (`set_layouts`)."""
    return laid_out(OrderedMembers(), names, layout)


def laid_out(made: Any, names: list[Any], layout: Any) -> Any:
    """A new set, given these items in the order of its slots."""
    table = made.table
    table.size = len(names)
    table.slots = [int(place) for place in layout[:-1]]
    table.finger = int(layout[-1])
    table.hashes = [python_hash(name) for name in names]
    table.alive = [True] * len(names)
    table.names = names
    for _ in range(max(table.slots) + 1 - table.size):
        names.append(names[0])
        table.hashes.append(0)
        table.alive.append(False)
    return made


PARTS = "names", "hashes", "alive", "slots"
"""The lists that a table is of."""


class OrderedMembers(Members):
    """set, in Python's order."""

    keeps_order = True

    def __init__(self, iterable: Any = ()) -> None:
        self.table: Any = OrderedTable()
        self.update(iterable)

    def __iter__(self) -> Iterator[Any]:
        for place in self.table.places():
            yield told_in_order(self.table.names[place])

    def add(self, item: Any) -> None:
        self.table.put(item)

    def discard(self, item: Any) -> None:
        self.table.drop(item)

    def update(self, *iterables: Any) -> None:
        for iterable in iterables:
            if hasattr(iterable, "table"):
                if iterable is not self:
                    self.table.merge(as_ordered(iterable).table)
            else:
                if _is_dict(iterable) or _is_set(iterable):
                    self.table.expect(len(iterable))
                for item in iterable:
                    self.table.put(item)

    def pop(self) -> Any:
        table = self.table
        if table.size == 0:
            raise KeyError("pop from an empty set")
        last = len(table.slots) - 1
        at = table.finger & last
        while table.slots[at] < 0 or not table.alive[table.slots[at]]:
            at = 0 if at == last else at + 1
        place = table.slots[at]
        table.remove(place)
        table.finger = at + 1
        return told_in_order(table.names[place])

    def copy(self) -> Any:
        return ordered(self)

    def union(self, *others: Any) -> Any:
        made = self.copy()
        for other in others:
            if other is not self:
                made.update(other)
        return made

    def _common(self, other: Any) -> Any:
        """self & other, which may be any iterable: this then is gone through."""
        made = ordered()
        if _is_set(other):
            others = as_ordered(other)
            if len(others) > len(self):
                for item in self.table.keys_unchanged():
                    if item in others.table:
                        made.table.put(item)
            else:
                for item in others.table.keys_unchanged():
                    if item in self.table:
                        made.table.put(item)
        else:
            for item in other:
                if item in self.table:
                    made.table.put(item)
        return made

    def intersection(self, *others: Any) -> Any:
        made = self
        for other in others:
            made = made.copy() if other is made else made._common(other)
        return self.copy() if len(others) == 0 else made

    def intersection_update(self, *others: Any) -> None:
        self.table.take_over(self.intersection(*others).table)

    def _drop_all(self, other: Any) -> None:
        """self -= other, which may be any iterable."""
        if _is_set(other):
            others = as_ordered(other)
            if len(others) >> 3 > len(self):
                others = self._common(others)
            for item in others.table.keys_unchanged():
                self.table.drop(item)
        else:
            for item in other:
                self.table.drop(item)
        self.table.tidy()

    def difference_update(self, *others: Any) -> None:
        for other in others:
            if other is self:
                self.clear()
            else:
                self._drop_all(other)

    def difference(self, *others: Any) -> Any:
        if len(others) == 0:
            return self.copy()
        first = others[0]
        made = ordered()
        if (_is_set(first) or _is_dict(first)) and len(self) >> 2 <= len(first):
            for item in self.table.keys_unchanged():
                if item not in first:
                    made.table.put(item)
        else:
            made.table.merge(self.table)
            if first is self:
                made.clear()
            else:
                made._drop_all(first)
        made.difference_update(*others[1:])
        return made

    def symmetric_difference_update(self, other: Any) -> None:
        if other is self:
            self.clear()
            return
        for item in other if _is_dict(other) else as_ordered(other).table.keys_unchanged():
            self.table.toggle(item)

    def symmetric_difference(self, other: Any) -> Any:
        made = ordered(other)
        for item in self.table.keys_unchanged():
            made.table.toggle(item)
        return made

    def __rand__(self, other: Any) -> Any:
        return ordered(set_for("&", other)).intersection(self)

    def __ror__(self, other: Any) -> Any:
        return ordered(set_for("|", other)).union(self)

    def __rxor__(self, other: Any) -> Any:
        return ordered(set_for("^", other)).symmetric_difference(self)

    def __rsub__(self, other: Any) -> Any:
        return ordered(set_for("-", other)).difference(self)

    __hash__ = None
