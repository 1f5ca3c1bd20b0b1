"""How sets of the caller's lie in their tables."""

from __future__ import annotations

from pyrelay.infer.containers.set_layouts import layout_of_set, was_emptied


def test_the_slots_of_a_set_are_those_of_its_items():
    items = {3, 8, 17}
    slots = layout_of_set(items)
    assert [list(items)[k] for k in slots[:-1] if k >= 0] == list(items)
    assert slots.tolist() == [0, 1, -1, 2, -1, -1, -1, -1, 0]


def test_items_that_were_taken_out_have_places_behind_all_others():
    items = {3, 8, 17}
    items.discard(8)
    assert layout_of_set(items).tolist() == [2, 0, -1, 1, -1, -1, -1, -1, 0]
    assert items.pop() == 17
    assert layout_of_set(items)[-1] == 2
    assert not was_emptied(items)


def test_a_set_with_no_items_may_have_had_some():
    items = {3}
    items.discard(3)
    assert was_emptied(items)
    items.clear()
    assert not was_emptied(items)
    assert layout_of_set(items).tolist() == [-1] * 8 + [0]
