"""Branches whose arms compute integers only are choices, and overflow as the arm taken does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay

GREATEST = 2**63 - 1


def collatz(n: int, most: int) -> Any:
    steps = 0
    while n != 1 and steps < most:
        if n % 2 == 0:  # noqa: SIM108 -- a branch is what is tested
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return n, steps


def rotated(angle: int, table: Any) -> Any:
    """Coordinates after rotations towards an angle, in 16 bits behind the point."""
    x, y, z = 39797, 0, angle
    for i in range(len(table)):
        if z >= 0:
            x, y, z = x - (y >> i), y + (x >> i), z - int(table[i])
        else:
            x, y, z = x + (y >> i), y - (x >> i), z + int(table[i])
    return x, y, z


def balanced(changes: Any, start: int) -> Any:
    """What is left, with fees on what is taken out."""
    left, taken = start, 0
    for change in changes:
        amount = int(change)
        if amount < 0:
            left, taken = left + amount - 1, taken - amount
        else:
            left = left + amount
    return left, taken


def _branches(code: str) -> list[str]:
    lines = (line.strip() for line in code.splitlines())
    return [line for line in lines if line.startswith("if ") and "unlikely" not in line
            and "status" not in line]


TABLE = (np.arctan(2.0 ** -np.arange(14)) * 65536).astype(np.int64)
CHANGES = np.array([4, -3, 0, -(2**62), 9, -1, 77])


@pytest.mark.parametrize(
    ("function", "cases"),
    [
        (collatz, [(27, 500), (1, 9), (6, 3), (0, 7), (-7, 9), (97, 1000)]),
        (rotated, [(a, TABLE) for a in (-90000, -1, 0, 1, 3000, 90000)]),
        (balanced, [(CHANGES, 5), (CHANGES[:3], 0), (CHANGES[:0], GREATEST)]),
    ],
)
def test_programs_do_what_python_does(function: Callable[..., Any], cases: Any) -> None:
    compiled = pyrelay.jit(function)
    for args in cases:
        assert compiled(*args) == function(*args)


def test_arms_are_chosen_from() -> None:
    compiled = pyrelay.jit(rotated)
    compiled(3, TABLE)
    code = str(compiled.code(3, TABLE))
    assert "where(" in code
    assert not [line for line in _branches(code) if ">= 0" in line]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (collatz, (GREATEST, 9)),  # odd: three times it has no room
        (collatz, ((GREATEST - 1) // 3 + 1, 9)),
        (balanced, (np.array([3]), GREATEST - 2)),
        (balanced, (np.array([-3]), -GREATEST + 1)),
        (balanced, (np.array([2, -GREATEST, -GREATEST]), GREATEST - 2)),
    ],
)
def test_the_arm_that_is_taken_overflows(function: Callable[..., Any], args: Any) -> None:
    with pytest.raises(OverflowError):
        pyrelay.jit(function)(*args)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (collatz, (GREATEST - 1, 1)),  # even: the other arm alone would overflow
        (collatz, (-(2**63), 40)),
        (balanced, (np.array([-5]), GREATEST)),
        (balanced, (np.array([5]), -GREATEST)),
    ],
)
def test_the_other_arm_may_overflow(function: Callable[..., Any], args: Any) -> None:
    assert pyrelay.jit(function)(*args) == function(*args)


def test_arms_that_read_the_same_element_are_chosen_without_checks() -> None:
    def rotated(angles: Any, table: Any) -> Any:
        out = np.zeros(len(angles), dtype=np.int64)
        for k in range(len(angles)):
            x, z = 1000, angles[k]
            for i in range(8):
                if z >= 0:
                    x, z = x - (x >> i), z - table[i]
                else:
                    x, z = x + (x >> i), z + table[i]
            out[k] = x + z
        return out

    compiled = pyrelay.jit(rotated)
    angles, table = np.arange(-9, 9), np.arange(8)[::-1].copy()
    np.testing.assert_array_equal(compiled(angles, table), rotated(angles, table))
    text = str(compiled.code(angles, table))
    assert "where(" in text
    assert "else:" not in text


def test_products_with_numbers_are_asked_about_at_their_ends() -> None:
    def stepped(n: int) -> int:
        k = n
        for _ in range(1):
            k = k // 2 if k % 2 == 0 else 3 * k + 1
        return k

    def lowered(n: int) -> int:
        k = n
        for _ in range(1):
            k = k * 7 - 3 if k > 5 else k * -5
        return k

    for f, by in ((stepped, 3), (lowered, 7), (lowered, 5)):
        compiled = pyrelay.jit(f)
        ends = [sign * ((2**63 - 1) // by) + d for sign in (-1, 1) for d in range(-4, 5)]
        for n in [*ends, 0, 1, -1, 7]:
            product = (n * (3 * (n % 2))) if f is stepped else n * (7 if n > 5 else 5)
            if all(-(2**63) <= each < 2**63 for each in (f(n), product)):
                assert compiled(n) == f(n)
            else:
                with pytest.raises(OverflowError):
                    compiled(n)
        assert "if unlikely(outside(" in str(compiled.code(1))
