"""Places that loops hand on, and the elements there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay

Program = Callable[..., Any]


def least(a: Any, first: int) -> Any:
    at = 0
    for i in range(1, len(a)):
        if a[i] < a[at]:
            at = i
    return at


def last_of_the_greatest(a: Any, first: int) -> Any:
    at = 0
    for i in range(len(a)):
        if a[at] <= a[i]:
            at = i
    return at, a[at]


def sorted_by_choice(a: Any, first: int) -> Any:
    a = a.copy()
    for i in range(len(a)):
        m = i
        for j in range(i + 1, len(a)):
            if a[j] < a[m]:
                m = j
        a[i], a[m] = a[m], a[i]
    return a


def from_a_given_place(a: Any, first: int) -> Any:
    """It may be none, counted from the end, or never looked at."""
    at = first
    for i in range(1, len(a)):
        if a[i] > a[at]:
            at = i
    return at


def from_the_end(a: Any, first: int) -> Any:
    at = -1
    for i in range(len(a)):
        if a[i] < a[at]:
            at = i
    return at


def changed(a: Any, first: int) -> Any:
    """What a round stores may be the element."""
    a, at = a.copy(), 0
    for i in range(1, len(a)):
        if a[i] < a[at]:
            at = i
        a[i - 1] = a[i] + 0.5
    return at, a


def of_the_first(a: Any, first: int) -> Any:
    """As many as is said, which may be more than there are: then the first place is none either."""
    at = 100
    for i in range(101, first):
        if a[i] < a[at]:
            at = i
    return at


def of_some(a: Any, first: int) -> Any:
    at, times = 0, 0
    for i in range(1, len(a)):
        if i % 3 and a[i] < a[at]:
            at = i
            times += 1
    return at, times


def beside_another(a: Any, first: int) -> Any:
    """Two arrays, one of which is shorter."""
    b = a[: len(a) // 2 + 1]
    at, total = 0, 0.0
    for i in range(1, len(a)):
        if a[i] < a[at]:
            at = i
        total += b[at]
    return at, total


PROGRAMS = [
    least, last_of_the_greatest, sorted_by_choice, from_a_given_place, from_the_end, changed,
    of_the_first, of_some, beside_another,
]  # fmt: skip


def _outcome(f: Program, *args: Any) -> Any:
    try:
        return f(*args)
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_values_are_those_of_python(program: Program) -> None:
    compiled = pyrelay.jit(program)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 6, n).astype(float) for n in (0, 1, 2, 3, 17, 400)]
    arrays += [rng.random(600), np.arange(300.0), -np.arange(300.0)]
    arrays[5][[7, 90]] = np.nan
    for a in arrays:
        for first in (0, 5, -1, -3, 400):
            got, wanted = _outcome(compiled, a, first), _outcome(program, a, first)
            if isinstance(wanted, str) or isinstance(got, str):
                assert got == wanted, (len(a), first)
                continue
            if not isinstance(wanted, tuple):
                got, wanted = (got,), (wanted,)
            for one, other in zip(got, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("program", PROGRAMS)
def test_which_elements_are_handed_on(program: Program) -> None:
    text = str(pyrelay.jit(program).code(np.arange(9.0), 0))
    blocks = " >> 4" in text  # of rounds that change nothing
    assert blocks is (program in (least, last_of_the_greatest, sorted_by_choice, from_the_end))
