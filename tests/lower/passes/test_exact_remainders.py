"""Remainders of products that need more than 64 bits are Python's; what else reads these raises."""

from __future__ import annotations

from typing import Any

import pytest

import pyrelay
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import Assign, Compute, Fail, If, Local, Statement, statements
from pyrelay.lower.passes.exact_remainders import with_exact_remainders

PRIME = 2**61 - 1


def product(a: Any, b: Any, n: Any) -> Any:
    return a * b % n


def of_a_sum(a: Any, b: Any, n: Any) -> Any:
    return (a * b + 3 * a * a - b) % n, (b * b - 1) % n


def of_powers(a: Any, b: Any, n: Any) -> Any:
    total = 0
    for k in range(3, 9):
        total = (total + pow(a, k) % n + 2 * b ** (k + 1) % n) % n
    return total, a**17 % n, (7 - b**30) % n


def of_what_changes(a: Any, b: Any, n: Any) -> Any:
    found = 0
    for k in range(20):
        found = (found * 31 + a) % n
        whole = found * b
        found = found + k
        found = whole % n
    return found


def recursive(a: Any, b: Any, n: Any) -> Any:
    if b == 0:
        return 1 % n
    half = recursive(a, b // 2, n)
    return half * half * (a if b % 2 else 1) % n


@pytest.mark.parametrize("function", [
    product, of_a_sum, of_powers, of_what_changes, recursive,
])
@pytest.mark.parametrize("args", [
    (3, 5, 7), (2**62, 2**62 + 1, PRIME), (10**18, 999999999999999989, 10**18 + 9),
    (-(10**18), 10**17 + 3, 2**63 - 1), (2**60 + 7, 2**61, -(10**18) - 9), (2**40, 2**41, -(2**63)),
    (10**10, 10**10, 1),
])
def test_remainders_are_pythons(function: Any, args: tuple[int, int, int]) -> None:
    if function is recursive and args[1] < 0:
        return
    assert pyrelay.jit(function)(*args) == function(*args)


def test_a_product_that_something_else_reads_too_raises() -> None:
    def read_twice(a: Any, b: Any, n: Any) -> Any:
        whole = a * b
        return whole % n, whole

    assert pyrelay.jit(read_twice)(3, 5, 7) == (1, 15)
    with pytest.raises(OverflowError, match="does not fit in 64 bits"):
        pyrelay.jit(read_twice)(2**40, 2**40, 7)


def test_a_divisor_of_zero_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        pyrelay.jit(product)(2**60, 2**60, 0)


def test_an_operand_that_is_set_between_is_left_alone() -> None:
    a, made, lost, rest = Local(i64, variable=True), Local(i64), Local(bool_), Local(i64)
    parts: list[Statement] = [
        Compute(made, "multiply", (a, a)), Compute(lost, "multiply_overflows", (a, a)),
        Fail(lost, 0),
    ]
    last = Compute(rest, "remainder", (made, Local(i64)))
    changed = with_exact_remainders((*parts, last), (rest,))
    assert any(isinstance(s, If) for s in statements(changed))
    assert not any(isinstance(s, Fail) for s in statements(changed))
    kept = (*parts, Assign(a, rest), last)
    assert with_exact_remainders(kept, (rest,)) == kept
    assert with_exact_remainders((*parts, last), (rest, made)) == (*parts, last)
