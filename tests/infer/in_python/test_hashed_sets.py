"""Sets of items that only the running program knows: their tables, and what is found in them."""

from __future__ import annotations

from pyrelay.infer.in_python.hashed_sets import Members


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


def test_items_of_a_set_that_come_back_are_found_at_either_end() -> None:
    members = Members(range(6))
    for gone in (0, 1, 5, 4):
        members.remove(gone)
    assert (list(members.table), members.pop()) == ([2, 3], 3)
    members.add(1)
    members.add(5)
    assert list(members.table) == [1, 2, 5]
    assert (members.pop(), members.pop(), members.pop()) == (5, 2, 1)
