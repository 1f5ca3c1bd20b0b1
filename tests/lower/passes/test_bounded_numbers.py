"""Remainders and shifts of integers with known bounds are choices, and masked counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.lower.passes.test_bounded_places import around, bits, by_three


def ring(x: Any) -> Any:
    """Neighbours on a ring, and on one that is turned by any number of places below its length."""
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[(i + 1) % n] - x[(i - 1) % n]
        for j in range(n):
            out[i] += x[(i + j) % n] * x[j]
    return out


def test_places_on_a_ring_are_chosen() -> None:
    compiled = pyrelay.jit(ring)
    for n in (0, 1, 2, 7):
        x = np.arange(float(n))
        np.testing.assert_array_equal(compiled(x), ring(x))
    code = str(compiled.code(np.arange(7.0)))
    assert "remainder(" not in code
    assert code.count("where(") >= 3


@pytest.mark.parametrize("function", [around, by_three])
def test_remainders_of_what_may_lie_further_away_stay(function: Any) -> None:
    x = np.arange(9.0)
    args = (x, 9) if function is around else (x, 9, 9)
    assert ("remainder(" in str(pyrelay.jit(function).code(*args))) is (function is by_three)


def test_shifts_by_few_bits_are_not_looked_at() -> None:
    assert "& 63)" in str(pyrelay.jit(bits).code(np.array([5]), 9))


def drawn(n: int) -> float:
    seed, total = 1, 0.0
    for _ in range(n):
        seed = seed * 48271 % 2147483647
        total += seed / 2147483647
    return total


def written_out(n: int) -> int:
    total = 0
    while n > 0:
        total += n % 10
        n = n // 10
    return total


@pytest.mark.parametrize("function", [drawn, written_out])
def test_natural_numbers_are_divided_by_constants_without_a_sign(function: Any) -> None:
    compiled = pyrelay.jit(function)
    for n in (0, 1, 7, 1999):
        assert compiled(n) == function(n)
    assert "remainder(bits_u64(" in str(compiled.code(7))


def below_zero(n: int) -> int:
    total = 0
    for i in range(-n, n):
        total += i // 7 * 10 + i % 7
    return total


def test_numbers_that_may_be_below_zero_keep_their_sign() -> None:
    compiled = pyrelay.jit(below_zero)
    assert [compiled(n) for n in (0, 1, 30)] == [below_zero(n) for n in (0, 1, 30)]
    assert "bits_u64" not in str(compiled.code(7))
