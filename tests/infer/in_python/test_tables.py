"""Tables of keys that only the running program knows: how long a key is sought."""

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
