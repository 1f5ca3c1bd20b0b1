"""Quotients that a loop does not change are computed in front of it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay


def cells(x: Any, m: Any) -> Any:
    found = 0
    for i in range(len(x)):
        for a in range(-1, 2):
            for b in range(len(x)):
                found += (x[i] + a) % m * m + (x[b] + a) // m
                if found > 100_000:
                    return -1
    return found


def until(x: Any, m: Any) -> Any:
    total = 0
    for i in range(len(x)):
        k = 0
        while k < x[i]:
            k += x[i] % m + 1
        total += k
    return total


@pytest.mark.parametrize("program", [cells, until])
def test_numbers_and_errors_are_those_of_the_program_as_it_is(program: Any) -> None:
    compiled = pyrelay.jit(program)
    x = np.array([3, 0, 7, -2, 5])
    for m in (1, 2, 5, 2**40, -3)[: 5 if program is cells else 4]:
        assert compiled(x, m) == program(x, m)
        assert compiled(x[:0], m) == program(x[:0], m) == 0
    assert compiled(x[:0], 0) == 0  # no round divides


def numbers(xs: list[int], m: int) -> int:
    found = 0
    for a in range(3):
        for b in range(4 + a):
            found += (len(xs) + a) % m * b
    return found


def test_a_remainder_by_nothing_is_an_error_where_a_round_asks_for_it() -> None:
    compiled = pyrelay.jit(numbers)
    assert compiled([1, 2], 5) == numbers([1, 2], 5)
    with pytest.raises(ZeroDivisionError):
        compiled([1, 2], 0)


def met(heads: Any, x: Any, m: Any) -> Any:
    found = 0
    for a in range(-1, 2):
        for b in range(-1, 2):
            for c in range(-1, 2):
                j = heads[((x + a) % m * m + (x + b) % m) * m + (x + c) % m]
                while j >= 0:
                    found += j
                    j -= 2
    return found


def test_a_remainder_stands_in_front_of_the_loop_that_does_not_change_it() -> None:
    heads = np.arange(27) - 3
    compiled = pyrelay.jit(met)
    assert compiled(heads, 2, 3) == met(heads, 2, 3)
    lines = str(compiled.code(heads, 2, 3)).splitlines()
    innermost = [re.split(r"\S", line)[0] for line in lines if "while True" in line]
    inside = [line for line in lines if " = remainder(" in line and (
        re.split(r"\S", line)[0] in innermost
    )]  # fmt: skip
    assert len(inside) == len(innermost) > 0  # (x + c) % m, in each version of the loops
