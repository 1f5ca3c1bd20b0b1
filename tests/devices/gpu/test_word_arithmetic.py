"""Words computed in Python are those that the executor computes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pyrelay.devices.gpu.word_arithmetic import (
    BINARY_MEANINGS,
    CHECKED_MEANINGS,
    HIGHEST,
    LOWEST,
    UNARY_MEANINGS,
    of_double,
    of_single,
    signed,
)
from pyrelay.devices.runtime.entry import Executable
from pyrelay.lower.planning.boundary import ScalarParameter, ScalarResult
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.instructions import (
    Binary,
    Checked,
    Plan,
    PlanFunction,
    Return,
    Site,
    Slot,
    Unary,
)
from pyrelay.lower.planning.opcodes import BINARY, CHECKED, UNARY

INTEGERS = [0, 1, -1, 2, 3, -7, 63, 64, 65, -64, 2**31, 2**53 + 1, HIGHEST, LOWEST, LOWEST + 1]
NUMBERS = [
    0.0, -0.0, 1.5, -2.0, 7.0, 0.1, -0.7, 1e300, -1e-300, 1e-320, 2.0**63, -(2.0**63), 9.3e18,
    float("inf"), float("-inf"), float("nan"),
]  # fmt: skip


def operands(op: str) -> list[int]:
    kind = op.rpartition(".")[2]
    if kind.startswith("f64"):
        return [signed(of_double(x)) for x in NUMBERS]
    if kind.startswith("f32"):
        return [of_single(x) for x in NUMBERS]
    return INTEGERS


def executed(instruction: Any, count: int) -> Any:
    """The instruction in the executor; None where it raises."""
    plan = Plan(
        (PlanFunction("f", count, 3, (instruction, Return((Slot(2),)))),),
        sites=(Site("ArithmeticError", ("failed",)),),
        parameters=(ScalarParameter("int"),) * count, results=(ScalarResult("int"),), single=True,
    )  # fmt: skip
    call = Executable(encode(plan)).call

    def run(*words: int) -> int | None:
        try:
            return int(call(*words))
        except ArithmeticError:
            return None

    return run


def is_nan(op: str, word: int) -> bool:
    """NaNs may have any bits: they are compared as what they are."""
    if "f32" in op.rpartition("_to_")[2]:
        return word & 0x7FFFFFFF > 0x7F800000
    return word & HIGHEST > 0x7FF0000000000000


def agrees(op: str, mine: int | None, theirs: int | None) -> bool:
    if mine == theirs:
        return True
    if mine is None or theirs is None or "f" not in op:
        return False
    return is_nan(op, mine) and is_nan(op, theirs)


@pytest.mark.parametrize("op", UNARY)
def test_unary(op: str) -> None:
    run = executed(Unary(op, 2, Slot(0)), 1)
    for a in operands(op):
        assert agrees(op, UNARY_MEANINGS[op](a), run(a)), (op, a)


@pytest.mark.parametrize("op", BINARY)
def test_binary(op: str) -> None:
    run = executed(Binary(op, 2, Slot(0), Slot(1)), 2)
    for a, b in itertools.product(operands(op), repeat=2):
        assert agrees(op, BINARY_MEANINGS[op](a, b), run(a, b)), (op, a, b)


@pytest.mark.parametrize("op", CHECKED)
def test_checked(op: str) -> None:
    run = executed(Checked(op, 2, Slot(0), Slot(1), 0), 2)
    for a, b in itertools.product(operands(op), repeat=2):
        assert agrees(op, CHECKED_MEANINGS[op](a, b), run(a, b)), (op, a, b)


def test_every_operation_has_a_meaning() -> None:
    assert set(UNARY_MEANINGS) == set(UNARY)
    assert set(BINARY_MEANINGS) == set(BINARY)
    assert set(CHECKED_MEANINGS) == set(CHECKED)
