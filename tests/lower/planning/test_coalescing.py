"""Slots that a move joins are one where neither is written while the other is still read."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

import pyrelay
from pyrelay import pipeline
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.coalescing import coalesced
from pyrelay.lower.planning.instructions import Immediate, Plan, PlanFunction, Slot


def made(f: Any, *args: Any) -> Plan:
    """The plan of a program for the CPU."""
    spec = pyrelay.jit(f)._specialised(args, {})
    return pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))


def moves(plan: Plan) -> int:
    return sum(
        isinstance(i, ins.Unary) and i.op == "move" and isinstance(i.a, Slot)
        for f in plan.functions for i in f.code
    )


def of(*code: ins.Instruction, parameters: int = 1, slots: int = 8) -> PlanFunction:
    """Function 1 of a plan whose entry only calls it, with joined slots."""
    entry = PlanFunction("entry", parameters, 8, (
        ins.Call(1, tuple(map(Slot, range(parameters))), (7,)), ins.Return((Slot(7),)),
    ))  # fmt: skip
    plan = Plan((entry, PlanFunction("f", parameters, slots, code)))
    return coalesced(plan).functions[1]


def move(target: int, source: int) -> ins.Unary:
    return ins.Unary("move", target, Slot(source))


def negative(target: int, source: int) -> ins.Unary:
    return ins.Unary("neg.i64", target, Slot(source))


def test_results_of_nested_branches_need_no_moves() -> None:
    leave = ins.Return((Slot(3),))
    found = of(
        ins.JumpUnless(Slot(0), "else"), negative(1, 0), move(2, 1), ins.Jump("end"),
        ins.Label("else"), ins.Unary("move", 2, Immediate(5)), ins.Label("end"), move(3, 2), leave,
    )  # fmt: skip
    assert found.code == (
        ins.JumpUnless(Slot(0), "else"), negative(1, 0), ins.Jump("end"),
        ins.Label("else"), ins.Unary("move", 1, Immediate(5)), ins.Label("end"),
        ins.Return((Slot(1),)),
    )  # fmt: skip
    assert found.slots == 2


def test_a_slot_that_is_still_read_is_not_overwritten() -> None:
    found = of(move(1, 0), negative(1, 1), ins.Binary("add.i64", 2, Slot(0), Slot(1)),
               ins.Return((Slot(2),)))  # fmt: skip
    assert found.code[0] == move(1, 0)
    assert found.code[2] == ins.Binary("add.i64", 2, Slot(0), Slot(1))


def test_a_value_that_a_loop_reads_again_is_kept() -> None:
    code = (
        move(1, 0), ins.Unary("move", 2, Immediate(0)), ins.Label("head"), negative(1, 1),
        ins.Binary("add.i64", 1, Slot(1), Slot(0)), ins.LoopNext(2, 1, Slot(0), "head"),
        ins.Return((Slot(1),)),
    )  # fmt: skip
    assert of(*code, slots=3).code == code


def test_parameters_stay_apart_and_where_they_are() -> None:
    code = (move(0, 1), ins.Return((Slot(0),)))
    assert of(*code, parameters=2).code == code


def test_an_error_tells_the_operands_that_it_had() -> None:
    """The result of what is checked lies elsewhere: the record is made of both operands."""
    found = of(ins.Checked("index", 1, Slot(0), Immediate(3), 0), move(0, 1),
               ins.Return((Slot(0),)))  # fmt: skip
    assert found.code[0] == ins.Checked("index", 1, Slot(0), Immediate(3), 0)


def test_jumps_to_what_follows_go_and_those_over_jumps_turn() -> None:
    found = of(
        ins.Label("head"), ins.JumpUnless(Slot(0), "else"), move(1, 0), ins.Jump("end"),
        ins.Label("else"), ins.Label("end"), negative(0, 0), ins.JumpIf(Slot(0), "next"),
        move(1, 0), ins.Jump("head"), ins.Label("next"), ins.Return((Slot(0),)),
    )  # fmt: skip
    jumps = [i for i in found.code if isinstance(i, (ins.Jump, ins.JumpIf, ins.JumpUnless))]
    assert jumps == [ins.JumpUnless(Slot(0), "head")]


def test_slots_are_numbered_without_gaps() -> None:
    found = of(negative(5, 0), move(6, 5), ins.Return((Slot(6),)))
    assert found == PlanFunction("f", 1, 2, (negative(1, 0), ins.Return((Slot(1),))))


def longest(n):
    a, b = [(i * i) % 7 for i in range(n)], [(i * 3) % 5 for i in range(n)]

    @lru_cache(None)
    def go(i, j):
        if i == n or j == n:
            return 0
        if a[i] == b[j]:
            return 1 + go(i + 1, j + 1)
        return max(go(i + 1, j), go(i, j + 1))

    return go(0, 0)


def test_a_recursive_function_hands_its_table_on_without_moves() -> None:
    plan = made(longest, 5)
    (recursive,) = [f for f in plan.functions if "answer" in f.name and "part" not in f.name]
    own = plan.functions.index(recursive)
    calls = [
        k for k, i in enumerate(recursive.code) if isinstance(i, ins.Call) and i.function == own
    ]
    between = recursive.code[calls[0] : calls[-1]]
    assert not any(isinstance(i, ins.Unary) and i.op == "move" for i in between)
    assert pyrelay.jit(longest)(30) == longest(30)


def exchanged(x, n):
    y, a, b = x, 1 + 2j, 0.5j
    for k in range(n):
        y = np.roll(y, 1) if k % 2 else y * 0.5
        x, y, a, b = y, x, b, a - b * x[0]
    return x, y, a, b


def test_values_that_change_places_keep_their_values() -> None:
    args = np.arange(5.0), 4
    for found, wanted in zip(pyrelay.jit(exchanged)(*args), exchanged(*args), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert moves(made(exchanged, *args)) > 0
