"""Tables of keys that only the running program knows: how long keys and entries are sought."""

from __future__ import annotations

from typing import Any

from pyrelay.infer.in_python.tables import Members, Table, place_of


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


def test_copies_of_sets_are_their_tables_and_change_alone() -> None:
    first = Members(range(12))
    for gone in (3, 7):
        first.remove(gone)
    copied = first.copy()
    assert copied.table.slots == first.table.slots  # nothing was entered anew
    assert copied.table.slots is not first.table.slots
    copied.add(3)
    first.discard(0)
    assert sorted(copied) == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11]
    assert sorted(first.union([40])) == [1, 2, 4, 5, 6, 8, 9, 10, 11, 40]
    assert (len(copied), len(first)) == (11, 9)


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


def test_items_of_a_set_that_come_back_are_found_at_either_end() -> None:
    members = Members(range(6))
    for gone in (0, 1, 5, 4):
        members.remove(gone)
    assert (list(members.table), members.pop()) == ([2, 3], 3)
    members.add(1)
    members.add(5)
    assert list(members.table) == [1, 2, 5]
    assert (members.pop(), members.pop(), members.pop()) == (5, 2, 1)
