"""Kernel IR: walking statements, and what a parameter takes of a block."""

from __future__ import annotations

from pyrelay.ir.types import bool_, c64, c128, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    SCALAR,
    Assign,
    Break,
    Compute,
    For,
    If,
    Literal,
    Local,
    Parameter,
    Store,
    While,
    operands,
    statements,
)


def test_only_a_complex128_by_value_takes_two_words() -> None:
    assert Parameter(SCALAR, 0, c128).words == 2
    assert Parameter(SCALAR, 0, c64).words == 1
    assert Parameter(ARRAY, 0, c128).words == 1


def test_statements_are_walked_outer_ones_first_and_in_order() -> None:
    zero, yes = Literal(0, i64), Literal(True, bool_)
    x, v, i = Local(f64), Local(f64, variable=True), Local(i64)
    first, second = Assign(v, x), Store(Parameter(ARRAY, 0, f64), i, v, True)
    third, last = Break(yes), Compute(x, "add", (v, v))
    inner = For(i, zero, zero, (second,))
    branch = If(yes, (first, inner), (third,))
    loop = While((branch,))
    assert list(statements((loop, last))) == [loop, branch, first, inner, second, third, last]


def test_operands_are_those_of_the_statement_itself() -> None:
    i, x = Local(i64), Local(f64)
    zero = Literal(0, i64)
    assert operands(Store(Parameter(ARRAY, 0, f64), i, x, True)) == (i, x)
    assert operands(For(i, zero, i, (Assign(x, x),))) == (zero, i)
    assert operands(While(())) == ()
