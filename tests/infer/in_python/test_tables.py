"""Tables of keys that only the running program knows: how long keys and entries are sought."""

from __future__ import annotations

from typing import Any

from pyrelay.infer.in_python.hashed_sets import Members
from pyrelay.infer.in_python.tables import Table, place_of


class Counted(list[Any]):
    """A list that counts how often an item is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)


def test_keys_that_lack_among_neighbouring_numbers_are_not_sought_for_long() -> None:
    table = Table((k, k) for k in range(4000))
    slots = Counted(table.slots)
    lacking = [len(slots) * 3 + 10 * k for k in range(400)]
    assert all(place_of(key, slots, table.names, table.alive) < 0 for key in lacking)
    assert slots.reads < 20 * len(lacking)


def test_keys_that_come_and_go_have_one_slot_each() -> None:
    members, table = Members(), Table()
    for k in range(300):
        members.add(k % 3)
        members.remove(k % 3)
        table[k % 3] = k
        del table[k % 3]
    members.add(2)
    table[2] = 5
    assert len(members.table.names) == 3  # of a set, the entries that were there before
    assert list(members.table) == list(table) == [2]
    assert sum(place >= 0 for place in table.slots) <= 3


def test_the_first_and_the_last_entry_are_not_sought_behind_those_that_left() -> None:
    table = Table((k, -k) for k in range(4000))
    table.alive = Counted(table.alive)
    for k in range(1000):
        assert next(iter(table)) == k
        del table[k]
        assert table.popitem() == (3999 - k, k - 3999)
    assert table.alive.reads < 10 * 2000
    assert list(table) == list(range(1000, 3000))
    table[5] = 1
    assert table.popitem() == (5, 1)
    table.clear()
    table[7] = 2
    assert list(table.items()) == [(7, 2)]
