"""Scalars that the host knows when a loop is over that ran as one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu import persistent_ends, programs
from pyrelay.devices.gpu.persistent import Loop
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Immediate, Plan, PlanFunction, Slot
from tests.devices.fake_cupy import D2H, H2D, Machine, installed
from tests.devices.running_kernels import needs_compiler

#: Counts slot 1 down by 3 to slot 2, leaves 8 in slot 3 and what slot 4 has in slot 5.
BODY: list[Any] = [
    ins.Label("head"), ins.Poll(), ins.Unary("move", 3, Immediate(4)),
    ins.Unary("move", 3, Immediate(8)), ins.Unary("move", 5, Slot(4)),
    ins.LoopNext(1, -3, Slot(2), "head"),
]


def ends_of(*body: ins.Instruction, scalars: tuple[int, ...] = (1, 3, 5)) -> dict[int, Any]:
    function = PlanFunction("main", 0, 8, (*body, ins.Label("end")))
    loop = Loop(0, len(body), (), (), scalars, (), (), 0, ())
    return persistent_ends.ends(Plan((function,)), function, loop)


def test_counters_and_constants_are_known() -> None:
    assert ends_of(*BODY) == {1: BODY[-1], 3: BODY[3]}
    assert ends_of(*BODY, scalars=(5,)) == {}


def test_only_what_all_ways_through_a_round_leave_is_known() -> None:
    branch = [ins.JumpIf(Slot(4), "on"), ins.Unary("move", 3, Immediate(9)), ins.Label("on")]
    assert ends_of(*BODY[:-1], *branch, BODY[-1]) == {1: BODY[-1]}
    assert ends_of(BODY[0], *branch, *BODY[1:]) == {1: BODY[-1], 3: BODY[3]}


def test_rounds_that_something_else_ends_leave_nothing_that_is_known() -> None:
    for label in ("end", "head"):
        assert ends_of(BODY[0], ins.JumpIf(Slot(4), label), *BODY[1:]) == {}
    assert ends_of(*BODY[:-1], ins.JumpIf(Slot(4), "head")) == {}


def test_counters_whose_steps_or_limits_change_are_not_known() -> None:
    twice = ins.Binary("add.i64", 1, Slot(1), Immediate(1))
    assert ends_of(*BODY[:-1], twice, BODY[-1]) == {3: BODY[3]}
    moving = ins.Binary("add.i64", 2, Slot(2), Immediate(1))
    assert ends_of(*BODY[:-1], moving, BODY[-1]) == {3: BODY[3]}


def test_what_the_device_has_counted_from_or_to_is_not_known() -> None:
    def without(device: set[int]) -> Any:
        loop = Loop(0, 6, (), (), (1, 3, 5), (), (), 0, ())
        told = [[ends_of(*BODY)]]
        left, known, _ = persistent_ends.without(
            [[loop]], told, lambda leaves: [leaves[0] | device]
        )
        return left[0][0].scalars, set(known[0][0])

    assert without(set()) == ((5,), {1, 3})
    assert without({2}) == without({1}) == ((1, 5), {3})


def test_a_counter_that_another_loop_starts_from_is_asked_again() -> None:
    """The first loop's counter hangs on the device, and so does the second, which begins there."""
    loops = [[Loop(0, 6, (), (), (slot,), (), (), 0, ())] for slot in (1, 2)]
    told: Any = [
        [{1: ins.LoopNext(1, 1, Slot(7), "a")}], [{2: ins.LoopNext(2, 1, Immediate(5), "b")}]
    ]

    def on_device(leaves: Any) -> list[set[int]]:
        return [leaves[0] | {7}, leaves[1] | ({2} if 1 in leaves[0] else set())]

    left, known, slots = persistent_ends.without(loops, told, on_device)
    assert [[loop.scalars for loop in of] for of in left] == [[(1,)], [(2,)]]
    assert known == [[{}], [{}]]
    assert slots == [{1, 7}, {2}]


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -5])
@pytest.mark.parametrize("count", range(8))
def test_counters_end_where_a_loop_ends(step: int, count: int) -> None:
    start, limit = 10, 10 + (count if step > 0 else -count)
    wanted = start
    while True:  # at least once
        wanted += step
        if not (wanted < limit if step > 0 else wanted > limit):
            break
    names = {"s1": start, "s2": limit}
    text = persistent_ends.text(1, ins.LoopNext(1, step, Slot(2), "head"), lambda o: f"s{o.index}")
    exec(text, names)
    assert names["s1"] == wanted


# -- in programs -----------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 2)  # always one kernel
    with installed(made, monkeypatch):
        yield made


def same(x: Any) -> Any:
    for _ in range(17):
        total = (x * x).sum()
        x = np.tanh(x) + x / total
    return x


def counted(x: Any, n: int) -> Any:
    k = 0
    for k in range(n, 1, -3):
        x = np.tanh(x) + k
    return x * k


@needs_compiler
def test_the_host_waits_for_no_loop_whose_end_it_knows(machine: Machine) -> None:
    compiled = pyrelay.jit(same)
    x = np.linspace(0.1, 1, 40)
    given = machine.array(x)
    compiled(given)
    machine.copies.clear()
    launched = len(machine.launches)
    np.testing.assert_allclose(compiled(given).get(), same(x), rtol=1e-12)
    assert D2H not in machine.copies
    assert H2D not in machine.copies
    assert len(machine.launches) == launched + 1


@needs_compiler
def test_what_loops_leave_is_what_python_leaves(machine: Machine) -> None:
    compiled = pyrelay.jit(counted)
    x = np.linspace(0.1, 1, 40)
    for n in (1, 2, 4, 13):
        np.testing.assert_allclose(compiled(machine.array(x), n).get(), counted(x, n), rtol=1e-12)
