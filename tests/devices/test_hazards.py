"""What phases of a kernel wait for."""

from __future__ import annotations

from pyrelay.devices.hazards import Buffers, Monomial, Pending, Place
from pyrelay.lower.instructions import Immediate, Select, Slot, Unary

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


def test_what_is_taken_again_waits_for_those_that_used_it() -> None:
    made = pending()
    made.take(2)
    made.add([A], [B])
    made.free(A)
    assert not made.waits([], [C])
    made.take(2)
    assert made.waits([], [C])
    made.clear()
    assert not made.waits([], [C])


def test_what_nobody_uses_may_be_taken_again() -> None:
    made = pending()
    made.add([A], [B])
    made.free(C)
    made.take(2)
    assert not made.waits([], [C])


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
    made.take(3)
    assert not made.waits([], [D])
    made.add([], [D])
    made.move(2, D)
    assert made.waits([C], [])
    made.select(1, (C, A))
    assert made.waits([B], [])
    made.take(3)
    made.add([], [D])
    made.clear()
    made.join()
    made.add([], [D])
    assert made.waits([A], [])
