"""Steps of linear congruences are taken from the first number of a round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay

Program = Callable[..., Any]


def pairs(n: int, seed: int) -> Any:
    state, inside = seed, 0
    for _ in range(n):
        state = (1103515245 * state + 12345) % 2147483648
        x = state / 2147483648
        state = (state * 1103515245 + 12345) % 2147483648
        y = state / 2147483648
        if x * x + y * y < 1.0:
            inside += 1
    return inside, state


def wrapping(n: int, seed: int) -> Any:
    out, state = np.zeros(n), np.uint64(seed)
    for i in range(n):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        out[i] = (state >> np.uint64(33)) / 2147483648.0
    return out, state


def of_32_bits(n: int, seed: int) -> Any:
    out, state = np.zeros(n, np.int32), np.int32(seed)
    for i in range(n - 1, -1, -1):
        state = state * np.int32(1664525) + np.int32(-7)
        out[i] = state
    return out


def walk(n: int, seed: int) -> Any:
    """A check in each round."""
    state, place, far = seed, 0, 0
    for _ in range(n):
        state = (1664525 * state + 1013904223) & 0xFFFFFFFF
        place += 1 if state >> 31 else -1
        far = max(far, abs(place))
    return state, place, far


def rejected(n: int, seed: int) -> Any:
    state, tries = seed, 0
    while tries < n:
        state = (69069 * state + 1) & 0xFFFF
        first = state
        state = (69069 * state + 1) & 0xFFFF
        tries += 1
        if first + state > 130_000:
            break
    return state, tries


COMPOSED = [pairs, wrapping, of_32_bits, walk, rejected]


def masked_less(n: int, seed: int) -> Any:
    """A mask between two products that leaves fewer bits than the last one."""
    state, total = seed, 0
    for _ in range(n):
        small = (5 * state + 3) & 0xFF
        state = (69069 * small + 1) & 0xFFFF
        total += state
    return state, total


def mixed(n: int, seed: int) -> Any:
    """Something else between two steps."""
    state = seed
    for i in range(n):
        state = (69069 * state + 1) & 0xFFFF
        state = (69069 * (state ^ i) + 1) & 0xFFFF
    return state


def chosen(n: int, seed: int) -> Any:
    """A step that is not taken in each round."""
    state, other = seed, 1
    for _ in range(n):
        state = (69069 * state + 1) & 0xFFFF
        if state & 1:
            state = (5 * state + 1) & 0xFFFF
        other = (5 * other + state) & 0xFFFF
    return state, other


def middle_bits(n: int, seed: int) -> Any:
    """A mask that leaves some bits in the middle."""
    state = seed
    for _ in range(n):
        high = (69069 * state + 1) & 0xFF00
        state = (5 * high + 1) & 0xFFFF
    return state


ALONE = [masked_less, mixed, chosen, middle_bits]


def many(n: int, seed: int) -> Any:
    s = seed
    for _ in range(n):
        s = (5 * s + 1) & 0xFF
        s = (5 * s + 1) & 0xFF
        s = (5 * s + 1) & 0xFF
        s = (5 * s + 1) & 0xFF
        s = (5 * s + 1) & 0xFF
    return s


@pytest.mark.parametrize("f", [*COMPOSED, *ALONE, many])
def test_the_numbers_are_those_of_python(f: Program) -> None:
    compiled = pyrelay.jit(f)
    for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 100):
        for seed in (0, 12345, 2**31 - 1):
            with np.errstate(over="ignore"):
                expected = f(n, seed)
            for got, number in zip(_all(compiled(n, seed)), _all(expected), strict=True):
                np.testing.assert_array_equal(got, number)


def _all(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("f", [pairs, rejected])
def test_factors_are_multiplied(f: Program) -> None:
    factor, bits = (1103515245, 31) if f is pairs else (69069, 16)
    text = str(pyrelay.jit(f).code(9, 1))
    assert str(factor**2 % 2**bits) in text


@pytest.mark.parametrize(("f", "factor"), [(wrapping, 6364136223846793005), (walk, 1664525)])
def test_rounds_are_written_out(f: Program, factor: int) -> None:
    text = str(pyrelay.jit(f).code(9, 1))
    found = factor**4 % 2 ** (64 if f is wrapping else 32)
    assert str(found - 2**64 if found >= 2**63 else found) in text


@pytest.mark.parametrize("f", ALONE)
def test_other_steps_wait_for_each_other(f: Program) -> None:
    text = str(pyrelay.jit(f).code(9, 1))
    for product in (69069 * 5, 69069**2, 5 * 5):
        assert str(product % 2**16) + ")" not in text
        assert f"* {product % 2**16}" not in text
