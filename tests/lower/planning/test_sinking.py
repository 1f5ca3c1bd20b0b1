"""Scalars are computed on the ways on which they are read, and in no other loop."""

from __future__ import annotations

import pyrelay
from pyrelay import pipeline
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Immediate, Plan, PlanFunction, Slot
from pyrelay.lower.planning.sinking import sunk

ELSE, END, HEAD = ins.Label("else"), ins.Label("end"), ins.Label("head")
AWAY = ins.JumpUnless(Slot(0), "else")


def of(*code: ins.Instruction) -> tuple[ins.Instruction, ...]:
    """The code of a function of two words with its scalars computed later."""
    plan = Plan((PlanFunction("f", 2, 9, code),))
    return sunk(plan).functions[0].code


def doubled(target: int, source: int) -> ins.Binary:
    return ins.Binary("mul.i64", target, Immediate(2), Slot(source))


def give(slot: int) -> ins.Return:
    return ins.Return((Slot(slot),))


def test_what_one_branch_reads_is_computed_there() -> None:
    first, second = doubled(2, 1), doubled(3, 2)
    assert of(first, second, AWAY, give(3), ELSE, give(1)) == (
        AWAY, first, second, give(3), ELSE, give(1),
    )  # fmt: skip
    assert of(first, second, AWAY, give(1), ELSE, give(3)) == (
        AWAY, give(1), ELSE, first, second, give(3),
    )  # fmt: skip


def test_what_is_read_on_every_way_stays() -> None:
    both = (doubled(2, 1), AWAY, give(2), ELSE, ins.Binary("add.i64", 3, Slot(2), Slot(1)), give(3))
    assert of(*both) == both
    behind = (doubled(2, 1), AWAY, doubled(3, 1), ELSE, give(2))
    assert of(*behind)[0] == behind[0]


def test_nothing_sinks_into_a_loop() -> None:
    code = (
        doubled(2, 1), AWAY, ins.Poll(), HEAD, ins.Binary("add.i64", 1, Slot(1), Slot(2)),
        ins.LoopNext(1, 1, Immediate(9), "head"), ELSE, give(1),
    )  # fmt: skip
    assert of(*code) == (AWAY, ins.Poll(), code[0], *code[3:])


def test_nothing_sinks_past_what_writes_an_operand() -> None:
    code = (doubled(2, 1), ins.Unary("neg.i64", 1, Slot(1)), AWAY, give(2), ELSE, give(1))
    assert of(*code) == code


def test_an_only_instruction_leaves_no_gap() -> None:
    again = ins.JumpIf(Slot(1), "end")
    assert of(AWAY, doubled(2, 1), again, give(2), ELSE, END, give(1)) == (
        AWAY, again, doubled(2, 1), give(2), ELSE, END, give(1),
    )  # fmt: skip


def sums(n):
    found, chosen = [], []

    def go(k):
        if k == n:
            found.append(sum(chosen))
            return
        go(k + 1)
        chosen.append(k)
        go(k + 1)
        chosen.pop()

    go(0)
    return found


def test_sizes_of_lists_that_grow_are_computed_where_they_do() -> None:
    spec = pyrelay.jit(sums)._specialised((4,), {})
    plan = pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))
    (recursive,) = [
        f for f in plan.functions if any(isinstance(i, ins.Poll) for i in f.code[:1])
    ]
    entered = recursive.code[: next(
        k for k, i in enumerate(recursive.code) if isinstance(i, (ins.JumpIf, ins.JumpUnless))
    )]  # fmt: skip
    assert not any(isinstance(i, ins.Binary) and i.op.startswith("mul") for i in entered)
    assert pyrelay.jit(sums)(6) == sums(6)
