"""Dicts whose keys only the running program knows, and their views, as classes in plain Python.

In and out: what the methods of `dict` take and give. Keys are what `hash_of` takes. Derivatives
follow from the bodies. Sets of such keys stand in hashed_sets.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyrelay.infer.in_python import once


def hash_of(key: Any) -> Any:
    """A number for a key; a handler says that of a program, and refuses other keys."""
    return hash(key)


def number_of(key: Any) -> Any:
    """What the hash of a key is made of; a handler says that of a program."""
    return hash(key)


LOW_BITS, SPREAD = (1 << 28) - 1, 1000003
"""What the numbers of the items of a key are mixed by."""


def number_of_codes(codes: Any) -> Any:
    """The number of a string, by its code points: of a character that of its own."""
    mixed = 0
    for code in codes:
        mixed = ((mixed & LOW_BITS) * SPREAD) ^ int(code)
    return mixed


def number_of_items(items: Any) -> Any:
    """The number of a tuple whose length only the running program knows."""
    mixed = len(items)
    for item in items:
        mixed = ((mixed & LOW_BITS) * SPREAD) ^ number_of(item)
    return mixed


def differ(now: Any, before: Any) -> bool:
    """Whether two ints differ; known not to where nothing has changed what they were read from."""
    return bool(now != before)


def crowded(entries: Any, slots: Any) -> bool:
    """Whether a table of so many slots is too full for so many entries.

    A handler says that of a program, whose loops make tables larger before it is so: what is done
    where it is must leave no other trace, and read nothing but the table.
    """
    return bool(2 * entries > slots)


def not_by_key(held: Any) -> None:
    """Called where a key goes: from here on no value that was found by a key is known to be the
    one of that key. A handler notes that."""


@once
def place_of(key: Any, slots: list[int], names: list[Any], alive: list[bool]) -> Any:
    """The place of the entry of a key; of none, -1 - the slot that it would have.

    Slots are tried in an order that comes to all of them, and soon leaves those of neighbouring
    numbers, which follow one another. A key that comes and goes has one slot, that of its entry
    that was deleted, however often it comes.
    """
    last = len(slots) - 1
    at = hash_of(key) & last
    while slots[at] >= 0:
        place = slots[at]
        if names[place] == key:
            return place if alive[place] else -1 - at
        at = (5 * at + 1) & last
    return -1 - at


@once
def fill(slots: list[int], names: list[Any], alive: list[bool]) -> None:
    """Write the places of all entries into slots that are free."""
    last = len(slots) - 1
    for place in range(len(names)):
        if alive[place]:
            at = hash_of(names[place]) & last
            while slots[at] >= 0:
                at = (5 * at + 1) & last
            slots[at] = place


@once
def make_room(slots: list[int], names: list[Any], alive: list[bool]) -> None:
    """Make a table twice as long, with the places of all entries."""
    for at in range(len(slots)):
        slots[at] = -1
    slots.extend([-1] * len(slots))
    fill(slots, names, alive)


@once
def enter_name(
    key: Any, place: Any, slots: list[int], names: list[Any], alive: list[bool]
) -> None:
    """Enter a key that is not there as the last one; place: what `place_of` gives of it."""
    if crowded(len(names) + 1, len(slots)):
        make_room(slots, names, alive)
        place = place_of(key, slots, names, alive)
    slots[-1 - place] = len(names)
    names.append(key)
    alive.append(True)


class Table:
    """dict: the entries in order of insertion, and a table of their places by open addressing.

    Sources: Knuth, The Art of Computer Programming 3, 6.4; the order of slots is that of CPython's
    dictobject.c without the perturbation. An entry that was deleted keeps its place, so that
    probing goes on behind it.
    """

    def __init__(self, pairs: Any = ()) -> None:
        self.names: list[Any] = []
        self.held: list[Any] = []
        self.alive: list[bool] = []
        self.slots = [-1] * 8  # one list for ever: it grows in place
        self.size = 0
        self.deletes = False  # whether entries were deleted: known in programs that delete none
        self.before, self.behind = 0, 0  # how many at either end, as far as was looked
        if isinstance(pairs, dict) and hasattr(pairs, "slots"):
            self.take_over(pairs)
        else:
            self.update(pairs)

    def take_over(self, other: Any) -> None:
        """Become what another is, with the entries that it deleted."""
        self.names, self.held = other.names[:], other.held[:]
        self.alive, self.slots = other.alive[:], other.slots[:]
        self.size = other.size
        self.deletes, self.before, self.behind = other.deletes, other.before, other.behind

    def find(self, key: Any) -> Any:
        """The place of the entry; of none, -1 - the free slot."""
        return place_of(key, self.slots, self.names, self.alive)

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
        else:
            self.enter(key, place, value)

    def add(self, key: Any, value: Any) -> None:
        """Give a key that is not there a value."""
        self.enter(key, self.find(key), value)

    def enter(self, key: Any, place: Any, value: Any) -> None:
        """Give a key that is not there a value; place: what `find` gives of it."""
        enter_name(key, place, self.slots, self.names, self.alive)
        self.held.append(value)
        self.size += 1
        self.behind = 0

    def take_up(self, key: Any, value: Any) -> None:
        """Give a key a value that it always has: no other entry, nor another place in the order,
        if it was there before."""
        place = self.find(key)
        if place < 0:
            before = self.slots[-1 - place]
            if before < 0:
                self.enter(key, place, value)
            else:
                self.alive[before] = True
                self.before = min(self.before, before)
                self.behind = min(self.behind, len(self.names) - 1 - before)
                self.size += 1

    def __delitem__(self, key: Any) -> None:
        place = self.find(key)
        if place < 0:
            raise KeyError(key)
        self.remove(place)

    def remove(self, place: Any) -> None:
        """Take the entry at a place out."""
        self.alive[place] = False
        self.size -= 1
        self.deletes = True
        not_by_key(self.held)

    def begins(self) -> Any:
        """The place of the first entry, or of none."""
        if self.deletes:
            while self.before < len(self.names) and not self.alive[self.before]:
                self.before += 1
        return self.before

    def places(self) -> Iterator[Any]:
        """Where the entries are, in order. Raises RuntimeError where one comes or goes meanwhile.
        """
        size, count = self.size, len(self.names)
        for place in range(self.begins(), count):
            if differ(self.size, size):
                raise RuntimeError("dictionary changed size during iteration")
            if self.alive[place]:
                yield place
        if differ(self.size, size):
            raise RuntimeError("dictionary changed size during iteration")
        if differ(len(self.names), count):
            raise RuntimeError("dictionary keys changed during iteration")

    def __iter__(self) -> Iterator[Any]:
        for place in self.places():
            yield self.names[place]

    def __reversed__(self) -> Any:
        return reversed(list(self))

    def keys(self) -> Any:
        return Keys(self)

    def values(self) -> Any:
        return Values(self)

    def items(self) -> Any:
        return Pairs(self)

    def popitem(self) -> Any:
        if self.size == 0:
            raise KeyError("popitem(): dictionary is empty")
        place = len(self.names) - 1 - self.behind
        while not self.alive[place]:
            place -= 1
        self.behind = len(self.names) - place
        self.remove(place)
        return self.names[place], self.held[place]

    def __or__(self, other: Any) -> Any:
        made = Table(self)
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        made = Table(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def get(self, key: Any, default: Any = None) -> Any:
        place = self.find(key)
        if place < 0:
            return default
        return self.held[place]

    def setdefault(self, key: Any, default: Any = None) -> Any:
        place = self.find(key)
        if place < 0:
            self.enter(key, place, default)
            place = len(self.names) - 1
        return self.held[place]

    def found_or_made(self, key: Any, make: Any) -> Any:
        """The value of a key, which `make()` is where the key was not there."""
        place = self.find(key)
        if place < 0:
            value = make()
            self.enter(key, self.find(key), value)
            place = len(self.names) - 1
        return self.held[place]

    def pop(self, key: Any, *default: Any) -> Any:
        place = self.find(key)
        if place < 0:
            if len(default) == 1:
                return default[0]
            raise KeyError(key)
        self.remove(place)
        return self.held[place]

    def update(self, pairs: Any = (), /, **named: Any) -> None:
        if isinstance(pairs, dict):
            for key in pairs:
                self[key] = pairs[key]
        else:
            for key, value in pairs:
                self[key] = value
        for name in named:
            self[name] = named[name]

    def clear(self) -> None:
        self.names.clear()
        self.held.clear()
        self.alive.clear()
        for at in range(len(self.slots)):
            self.slots[at] = -1
        self.size, self.before, self.behind = 0, 0, 0

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


def entered(names: list[Any], held: list[Any]) -> Table:
    """The dict of the caller's with these keys and values, each key once."""
    made = Table()
    made.names, made.held = names, held
    made.alive = [True] * len(names)
    made.size = len(names)
    made.slots = [-1] * 8
    while len(made.slots) < 2 * len(names) + 2:
        made.slots.extend([-1] * len(made.slots))
    fill(made.slots, names, made.alive)
    return made


def from_keys(iterable: Any, value: Any) -> Table:
    """dict.fromkeys(iterable, value)."""
    made = Table()
    for key in iterable:
        made[key] = value
    return made


# -- views ---------------------------------------------------------------------------------------


def set_of(iterable: Any) -> Any:
    """set(iterable); a handler says of which class, as a program keeps the order of sets or not."""
    return set(iterable)


class Values:
    """dict.values()."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __len__(self) -> int:
        return len(self.of)

    def __iter__(self) -> Iterator[Any]:
        for place in self.of.places():
            yield self.of.held[place]

    def __reversed__(self) -> Any:
        return reversed(list(self))

    __hash__ = None  # type: ignore[assignment]


class Keys(Values):
    """dict.keys(): in operators, the set of them."""

    def __contains__(self, key: Any) -> bool:
        return key in self.of

    def __iter__(self) -> Iterator[Any]:
        for place in self.of.places():
            yield self.of.names[place]

    def __eq__(self, other: Any) -> Any:
        return set_of(self) == set_of(other)

    __hash__ = None

    def isdisjoint(self, other: Any) -> Any:
        return set_of(self).isdisjoint(other)

    def __or__(self, other: Any) -> Any:
        made = set_of(self)
        made.update(other)
        return made

    def __and__(self, other: Any) -> Any:
        if isinstance(other, set) and len(self) <= len(other):
            return other.intersection(self)
        return set_of([key for key in other if key in self])

    def __sub__(self, other: Any) -> Any:
        made = set_of(self)
        made.difference_update(other)
        return made

    def __xor__(self, other: Any) -> Any:
        made = set_of(self)
        made.symmetric_difference_update(other)
        return made

    __ror__, __rand__, __rxor__ = __or__, __and__, __xor__

    def __rsub__(self, other: Any) -> Any:
        return set_of(other).difference(self)

    def __le__(self, other: Any) -> Any:
        return set_of(self) <= set_of(other)

    def __lt__(self, other: Any) -> Any:
        return set_of(self) < set_of(other)

    def __ge__(self, other: Any) -> Any:
        return set_of(self) >= set_of(other)

    def __gt__(self, other: Any) -> Any:
        return set_of(self) > set_of(other)


class Pairs(Keys):
    """dict.items(): in operators, the set of them."""

    def __contains__(self, item: Any) -> bool:
        place = self.of.find(item[0])
        return place >= 0 and bool(self.of.held[place] == item[1])

    def __iter__(self) -> Iterator[Any]:
        for place in self.of.places():
            yield self.of.names[place], self.of.held[place]
