"""Which blocks of a loop are the host's, and its tape."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyrelay
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.persistent import loops
from pyrelay.devices.gpu.persistent_leaving import (
    Tape,
    blocks,
    counter_of,
    left_to_host,
    once_a_round,
    tape_of,
)
from pyrelay.devices.gpu.stretches import tape_slots
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Immediate, Slot
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.infer.running import inferred

#: A loop with a branch, and a host call behind it or in it.
RARE: list[Any] = [
    ins.Label("head"), ins.JumpUnless(Slot(1), "on"), ins.HostCall(0, (), ()), ins.Label("on"),
    ins.LoopNext(2, 1, Slot(3), "head"),
]
ALWAYS: list[Any] = [
    ins.Label("head"), ins.JumpUnless(Slot(1), "on"), ins.Label("on"), ins.HostCall(0, (), ()),
    ins.LoopNext(2, 1, Slot(3), "head"),
]
TAPED: list[Any] = [
    ins.Label("head"), ins.TapePush(Slot(5), (Slot(6), Slot(7))), ins.Label("inner"),
    ins.TapePush(Slot(5), (Slot(7),)), ins.JumpIf(Slot(1), "inner"),
    ins.LoopNext(2, 1, Immediate(9), "head"),
]


def is_fit(step: ins.Instruction) -> bool:
    return not isinstance(step, ins.HostCall)


def test_blocks_begin_at_labels_and_behind_jumps() -> None:
    assert blocks(RARE, 0, 5) == [range(2), range(2, 3), range(3, 5)]


def test_the_host_does_what_rounds_go_without() -> None:
    assert left_to_host(RARE, 0, 5, is_fit) == [range(2, 3)]
    assert left_to_host(ALWAYS, 0, 5, is_fit) is None
    assert left_to_host(RARE, 0, 5, lambda _: True) == []


def test_a_tape_is_pushed_to_once_in_a_round() -> None:
    made = tape_of(TAPED, [0, 1, 5], {6})
    assert made == Tape(5, True, 3, ((True, False),))
    assert tape_of(TAPED, range(6), {6}) is False
    assert tape_of(RARE, range(5), set()) is True
    assert tape_of([*TAPED[:2], ins.TapePop(Slot(5), (8,)), TAPED[5]], range(4), set()) is False
    assert once_a_round(TAPED, range(6), [1])
    assert not once_a_round(TAPED, range(6), [3])


def test_what_counts_the_rounds() -> None:
    assert counter_of(TAPED, range(6), {2}) == (2, Immediate(9))
    assert counter_of(RARE, range(5), {2}) == (2, Slot(3))
    assert counter_of(RARE, range(5), {2, 3}) is None


def root(a: Any, start: Any) -> Any:
    x = start
    for _ in range(20):
        y = 0.5 * (x + a / x)
        if abs(y - x) < 1e-12:
            return y
        x = y
    return x


def roots_and_slopes(a: Any, start: Any) -> Any:
    roots = pyrelay.vmap(root, in_axes=(0, None))(a, start)
    slopes = pyrelay.vmap(pyrelay.grad(root), in_axes=(0, None))(a, start)
    return roots.sum() + 2 * slopes.sum()


def test_the_host_alone_moves_tapes_and_loops_inside_are_the_kernels() -> None:
    args = np.array([2.0, 3.0, 4.5]), 1.0
    module = inferred(pyrelay.grad(roots_and_slopes), args).module
    made = plan(lowered(module, "fuse", on="cuda_emulator"), TARGET)
    (taped,) = (f for f in made.functions if tape_slots(f.code))
    found = loops(made, taped)
    assert [each.tape.pushes for each in found if each.tape] == [True, False, True, False]
    assert not tape_slots(taped.code) & {k for each in found for k in (*each.given, *each.state)}
