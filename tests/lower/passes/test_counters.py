"""Which overflow checks of sums leave a kernel."""

from __future__ import annotations

from pyrelay.ir.types import bool_, i32, i64, u8
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Local,
    Operand,
    Statement,
    While,
    statements,
)
from pyrelay.lower.passes.counters import without_counter_checks


def literal(value: int) -> Literal:
    return Literal(value, i64)


def variable() -> Local:
    return Local(i64, variable=True)


def stepped(to: Local, a: Operand, b: Operand, name: str = "add") -> list[Statement]:
    """`to = a + b`, checked."""
    total, overflows = Local(i64), Local(bool_)
    return [
        Compute(total, name, (a, b)), Compute(overflows, f"{name}_overflows", (a, b)),
        Fail(overflows, 0), Assign(to, total),
    ]


def fails(body: Body) -> int:
    return sum(isinstance(s, Fail) for s in statements(without_counter_checks(body)))


def test_a_counter_of_an_endless_loop_is_not_checked() -> None:
    k = variable()
    assert fails((Assign(k, literal(0)), While(tuple(stepped(k, k, literal(1)))))) == 0


def test_nor_one_that_steps_down_from_another_in_some_branches_only() -> None:
    j, k, i = variable(), variable(), Local(i64)
    down = If(Local(bool_), tuple(stepped(j, j, literal(2), "subtract")), (Assign(j, k),))
    body = For(i, literal(1), Local(i64), (*stepped(k, literal(1), i), down))
    assert fails((Assign(j, literal(7)), Assign(k, literal(0)), body)) == 0


def test_a_sum_of_two_variables_may_grow_too_fast() -> None:
    a, b = variable(), variable()
    start = Assign(a, literal(1)), Assign(b, literal(1))
    assert fails((*start, While((*stepped(a, a, b), *stepped(b, b, a))))) == 2


def test_a_large_step_or_a_start_near_the_end_is_checked() -> None:
    k = variable()
    assert fails((Assign(k, literal(0)), While(tuple(stepped(k, k, literal(1 << 40)))))) == 1
    assert fails((Assign(k, literal(2**62)), While(tuple(stepped(k, k, literal(1)))))) == 1


def test_what_was_read_or_multiplied_is_checked() -> None:
    k, given, twice = variable(), Local(i64), Local(i64)
    assert fails((Assign(k, given), While(tuple(stepped(k, k, literal(1)))))) == 1
    doubled = (Compute(twice, "multiply", (k, literal(2))), *stepped(k, twice, literal(1)))
    assert fails((Assign(k, literal(1)), While(doubled))) == 1


def test_steps_that_are_certainly_small_are_not_checked() -> None:
    k, step, masked = variable(), Local(i64), Local(i64)
    either, chosen = variable(), Local(i64)
    for by in (
        [Compute(step, "bitwise_and", (Local(i64), literal(255)))],
        [Compute(step, "remainder", (Local(i64), literal(10)))],
        [Compute(step, "cast", (Local(u8),))],
        [If(Local(bool_), (Assign(either, literal(1)),), (Assign(either, literal(3)),)),
         Compute(step, "where", (Local(bool_), either, literal(-7)))],
    ):  # fmt: skip
        assert fails((Assign(k, literal(0)), While((*by, *stepped(k, step, k))))) == 0
    for unknown in (
        [Compute(step, "bitwise_and", (Local(i64), literal(-256)))],
        [Compute(step, "bitwise_and", (Local(i64), literal(256)))],
        [Compute(step, "remainder", (Local(i64), Local(i64)))],
        [Compute(step, "cast", (Local(i32),))],
        [Compute(masked, "bitwise_and", (k, literal(15))),
         Compute(step, "where", (Local(bool_), masked, chosen))],
    ):  # fmt: skip
        assert fails((Assign(k, literal(0)), While((*unknown, *stepped(k, k, step))))) == 1


def test_what_starts_from_a_remainder_is_a_counter() -> None:
    k, rest = variable(), Local(i64)
    start = Compute(rest, "remainder", (Local(i64), literal(10))), Assign(k, rest)
    assert fails((*start, While(tuple(stepped(k, k, literal(1)))))) == 0
