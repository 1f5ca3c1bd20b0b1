"""Scalars that nothing on a GPU reads are not computed."""

from __future__ import annotations

from typing import Any

import pytest

from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.devices.gpu.unread import without_unread
from pyrelay.devices.gpu.word_arithmetic import BINARY_MEANINGS
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.boundary import ScalarParameter, ScalarResult
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Immediate,
    Launch,
    Plan,
    PlanFunction,
    Slot,
)


def plan(*code: Any) -> Plan:
    return Plan((PlanFunction("main", 1, 8, tuple(code)),))


def left(*code: Any) -> tuple[Any, ...]:
    return without_unread(plan(*code)).functions[0].code


def times(target: int, a: int) -> ins.Binary:
    return ins.Binary("mul.i64", target, Slot(a), Immediate(3))


def test_chains_that_lead_nowhere_go() -> None:
    end = ins.Return((Slot(1),))
    assert left(times(1, 0), times(2, 1), times(3, 2), end) == (times(1, 0), end)


def test_what_may_raise_and_what_does_something_stays() -> None:
    code = (
        ins.Checked("add.i64", 1, Slot(0), Immediate(1), 0), ins.Alloc(2, Immediate(8)),
        ins.Guard(Slot(0)), ins.Return(()),
    )
    assert left(*code) == code


def test_costs_of_launches_count_in_loops() -> None:
    launch = Launch(0, (Slot(0), AddressOf(4)), Immediate(1), Slot(1))
    free = Launch(0, (Slot(0), AddressOf(4)), Immediate(1), Immediate(0))
    moved = ins.Unary("move", 4, Immediate(2))  # a kernel may look at its address
    end = ins.Return(())
    assert left(times(1, 0), moved, launch, end) == (moved, free, end)
    around = ins.Label("head"), launch, ins.LoopNext(2, 1, Slot(3), "head")
    counter = ins.Unary("move", 2, Immediate(0))
    assert left(times(1, 0), counter, moved, *around, end) == (
        times(1, 0), counter, moved, *around, end,
    )


@pytest.mark.parametrize("op", ["min.i64", "max.i64", "floordiv.i64"])
@pytest.mark.parametrize("divisor", [0, 1, 7, -7])
def test_words_are_what_the_meaning_of_an_instruction_gives(op: str, divisor: int) -> None:
    code = ins.Binary(op, 1, Slot(0), Immediate(divisor)), ins.Return((Slot(1),))
    made = plan_code(Plan(
        (PlanFunction("main", 1, 2, code),), parameters=(ScalarParameter("int"),),
        results=(ScalarResult("int"),),
    ))
    names: dict[str, Any] = {"binary": BINARY_MEANINGS}
    exec(made.source, names)
    for a in (-9, -7, 0, 5, 7, 1 << 62):
        assert names["f0"](None, a) == (BINARY_MEANINGS[op](a, divisor),)
    assert not made.fetches
