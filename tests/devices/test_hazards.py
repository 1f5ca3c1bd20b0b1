"""What phases of a kernel wait for."""

from __future__ import annotations

from pyrelay.devices.hazards import Buffers, Pending
from pyrelay.lower.instructions import Slot, Unary

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
