"""What phases of a kernel wait for."""

from __future__ import annotations

from dataclasses import replace

from pyrelay.devices.gpu.hazards import ALL, BLOCK, NOBODY, Buffers, Monomial, Owned, Pending, Place
from pyrelay.lower.planning.instructions import Immediate, Select, Slot, Unary

A, B, C, D = map(Slot, range(4))


def pending() -> Pending:
    """Slots 0 and 3 may hold the same buffer."""
    return Pending(Buffers([Unary("move", 3, A)]))


def test_what_is_read_waits_for_what_was_written() -> None:
    made = pending()
    made.add([A], [B])
    assert not made.waits([A], [C])
    assert made.waits([B], [])
    assert made.waits([], [D])
    assert made.waits([], [A])
    made.clear()
    assert not made.waits([B], [A, B])


def test_what_was_freed_is_in_use_until_all_have_met() -> None:
    made = pending()
    made.own(2)
    made.add([A], [C])
    assert made.uses(D)  # slot 0's
    assert made.uses(C)
    assert not made.uses(B)
    made.clear()
    assert not made.uses(A)


def test_what_was_freed_is_waited_for_by_nobody() -> None:
    made = pending()
    made.add([A], [B])
    made.add([D], [])
    made.free(A)
    assert made.waits([], [A]) == ALL  # what the other slot held may be the same buffer
    made.rebound(3)
    made.free(D)
    assert made.waits([], [A]) == ALL  # that was another buffer of slot 3
    made.own(2)
    made.add([], [C])
    made.move(0, C)
    made.free(A)
    assert made.waits([C], []) == NOBODY
    assert made.waits([B], []) == ALL


N: Monomial = ("n",)


def place(extent: dict[Monomial, int], addend: dict[Monomial, int], size: int = 8) -> Place:
    return Place(frozenset(addend.items()), frozenset(extent.items()), size)


def test_places_of_items_are_their_own() -> None:
    here, twenty = place({N: 1}, {}), place({(): 20}, {})
    assert here.is_own(here)
    assert here.is_own(twenty)  # the same item, however many there are
    assert here.is_own(place({N: 1}, {N: 3}))  # three times as many behind
    assert place({N: 1}, {N: 2, ("t", "n"): 1}).is_own(place({N: 1}, {("n", "t")[::-1]: 1}))
    assert not here.is_own(place({N: 1}, {(): 1}))  # its neighbour
    assert not here.is_own(place({N: 1}, {("m",): 1}))
    assert not here.is_own(place({("m",): 1}, {N: 1}))  # how many there are is not known
    assert not here.is_own(place({N: 1}, {}, 4))  # elements of another size
    assert twenty.is_own(place({(): 20}, {(): -20}))
    assert not twenty.is_own(place({(): 20}, {(): 19}))


def test_phases_that_go_on_with_their_own_items_do_not_wait() -> None:
    made, own, next_one = pending(), place({N: 1}, {}), place({N: 1}, {(): 1})
    made.add([A], [B], {A: frozenset([own]), B: frozenset([own])})
    assert not made.waits([B], [A], {A: frozenset([own]), B: frozenset([own])})
    assert made.waits([B], [], {B: frozenset([own, next_one])})
    assert made.waits([B], [], {B: frozenset([own, None])})
    assert made.waits([B], [])
    assert made.waits([], [D], {D: frozenset([next_one])})
    made.add([], [B])
    assert made.waits([B], [], {B: frozenset([own])})


def test_what_was_allocated_is_nobody_elses() -> None:
    made = Pending(Buffers([Unary("move", 3, A), Select(1, Immediate(1), C, D)]))
    made.add([], [A])
    made.own(3)
    assert not made.waits([], [D])
    made.add([], [D])
    made.move(2, D)
    assert made.waits([C], [])
    made.select(1, (C, A))
    assert made.waits([B], [])
    made.own(3)
    made.add([], [D])
    made.clear()
    made.join()
    made.add([], [D])
    assert made.waits([A], [])


H: Monomial = ("h",)
UNIT = frozenset([(H, 1)])


def part(units: int, stride: int = 4, wide: int = 1, single: bool = False) -> Owned:
    """Columns from so many units on, of rows of so many; `wide` units of each."""
    addend = frozenset([(H, units)]) if units else frozenset[tuple[Monomial, int]]()
    line = frozenset([(H, wide)])
    return Owned(frozenset([(H, stride)]), addend, UNIT, line, single, 4, line)


def test_what_a_block_owns_is_no_others() -> None:
    row = part(0, wide=4)
    assert part(1).waits(part(1)) == (NOBODY, ((UNIT, row.stride),))
    assert part(1).waits(part(3))[0] == NOBODY  # a thread has the same element of all parts
    assert part(3).waits(row)[0] == BLOCK  # here one thread has another's
    assert row.waits(row)[0] == NOBODY
    assert replace(row, lanes=None).waits(row)[0] == BLOCK
    # Three units behind lies in the same row, if that has four.
    assert part(0).waits(part(3))[1] == ((frozenset([(H, 4)]), row.stride),)
    assert row.waits(part(1))[0] == BLOCK
    assert row.waits(part(-1))[0] == ALL
    assert part(0).waits(part(0, stride=5))[0] == ALL
    assert part(0, single=True).waits(part(9, stride=5, single=True)) == (NOBODY, ())
    neighbour = replace(part(0), addend=frozenset([((), 1)]))
    assert part(0).waits(neighbour)[0] == ALL
    assert part(0).waits(replace(part(0), size=8))[0] == ALL


def test_blocks_wait_for_their_own_threads_once() -> None:
    made, row, second = pending(), part(0, wide=4), part(1)
    made.add([], [B], {B: frozenset([row])})
    assert made.waits([B], [], {B: frozenset([second])}) == BLOCK
    made.joined()
    assert made.waits([B], [], {B: frozenset([second])}) == NOBODY
    assert made.waits([B], []) == ALL
    assert made


def test_a_round_leaves_what_the_next_one_waits_for() -> None:
    made, own = pending(), part(0)
    turned = replace(own, addend=frozenset([(("s4.2", "h"), 1)]))
    made.own(1)
    made.add([A], [B, C], {B: frozenset([own]), C: frozenset([turned])})
    made.free(C)
    left = made.left()
    made.clear()
    made.join()
    made.resume(left)
    assert made.waits([B], [], {B: frozenset([own])}) == ALL  # where it was is not known: "h"
    fixed = Owned(*(frozenset([(("s1",), 1)]),) * 4, True, 4, None)
    made.clear()
    made.add([], [B], {B: frozenset([fixed])})
    made.resume(made.left())
    assert made.waits([B], [], {B: frozenset([fixed])}) == BLOCK
