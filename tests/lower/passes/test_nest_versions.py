"""Nests of loops in two versions: which checks leave one, and that the choice is right."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    Body,
    Break,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Local,
    Parameter,
    Store,
    statements,
)
from pyrelay.lower.passes.nest_versions import with_nest_versions


def number(value: int) -> Literal:
    return Literal(value, i64)


def checked(index: Local, size: Local) -> Body:
    """Stores at an index after checking both its ends."""
    below, beyond, outside = Local(bool_), Local(bool_), Local(bool_)
    return (
        Compute(below, "less", (index, number(0))), Compute(beyond, "greater_equal", (index, size)),
        Compute(outside, "logical_or", (below, beyond)), Fail(outside, 0),
        Store(Parameter(ARRAY, 0, f64), index, Literal(1.0, f64), parallel=False),
    )  # fmt: skip


def checks(body: Body) -> int:
    return sum(isinstance(s, Fail) for s in statements(body))


def nest(inner: Callable[[Local, Local, Local], Body]) -> For:
    """A loop around a loop, whose body gets both indices and the size of an array."""
    size, outer, index = Local(i64), Local(i64), Local(i64)
    loop = For(index, number(0), size, inner(outer, index, size), program=True)
    return For(outer, number(0), size, (loop,), program=True)


def test_a_check_of_both_indices_is_asked_once_in_front() -> None:
    place = Local(i64)
    loop = nest(lambda i, j, n: (Compute(place, "add", (i, j)), *checked(place, n)))
    *front, choice = with_nest_versions((loop,))
    assert isinstance(choice, If)
    assert choice.then == (loop,)
    assert checks(choice.orelse) == 0
    assert all(isinstance(s, Compute) for s in front)


def test_what_need_not_hold_in_all_rounds_is_not_asked() -> None:
    truth, place = Local(bool_), Local(i64)

    def chosen(i: Local, j: Local, n: Local) -> Body:
        return (Compute(place, "add", (i, j)), If(truth, checked(place, n)))

    def ended(i: Local, j: Local, n: Local) -> Body:
        return (Break(truth), Compute(place, "add", (i, j)), *checked(place, n))

    def never(i: Local, j: Local, n: Local) -> Body:  # -1 - i is below 0 in all rounds
        return (Compute(place, "subtract", (number(-1), i)), *checked(place, n))

    def squared(i: Local, j: Local, n: Local) -> Body:  # of which ends say nothing
        return (Compute(place, "multiply", (j, j)), *checked(place, n))

    for inner in (chosen, ended, never, squared):
        (left,) = with_nest_versions((nest(inner),))
        assert isinstance(left, For)


# -- programs ------------------------------------------------------------------------------------


def quarters(x: Any, out: Any, r: int, first: int, rows: int, columns: int) -> Any:
    """Windows of a size that is told, around places that may count from the end or lie outside."""
    for i in range(first, rows):
        for j in range(first, columns):
            best = -1.0
            for q in range(4):
                top = i - r if q < 2 else i
                left = j - r if q % 2 == 0 else j
                s = 0.0
                for a in range(top, top + r + 1):
                    for b in range(left, left + r + 1):
                        s += x[a, b]
                best = max(best, s / ((r + 1) * (r + 1)))
            out[i, j] = best
    return out


def added(x: Any, out: Any, r: int, first: int, rows: int, columns: int) -> Any:
    """The same, added up in memory."""
    for i in range(first, rows):
        for j in range(first, columns):
            for a in range(-r, r + 1):
                for b in range(-r, r + 1):
                    out[i, j] += x[i + a, j + b] * (a - b)
    return out


def turned(x: Any, out: Any, r: int, first: int, rows: int, columns: int) -> Any:
    """Places by multiples of what is told, downwards and modulo."""
    total = 0
    for i in range(rows, first, -1):
        for j in range(columns):
            total += j * r - i
            out[i, (i * 7 + j) % 9] += x[i - r, j * r]
    out[0, 0] += total
    return out


def triangle(x: Any, out: Any, r: int, first: int, rows: int, columns: int) -> Any:
    """A loop downwards as long as the index of the loop around says."""
    for i in range(first, columns):
        for j in range(rows, i - 1, -1):
            out[r, j] = x[r, j - i] + out[r, j]
    return out


def clipped(x: Any, out: Any, r: int, first: int, rows: int, columns: int) -> Any:
    """Windows that end at edges: the lesser and the greater of two, by functions and branches."""
    for i in range(rows):
        low = i - r if i > r else 0
        for j in range(min(columns, 10)):
            for a in range(low, min(rows, i + r + 1)):
                for b in range(max(0, j - r), min(10, j + first + 1)):
                    out[i, j] += x[a, b]
    return out


def banded(x: Any, out: Any, r: int, first: int, rows: int, columns: int) -> Any:
    """Diagonals that lie in columns."""
    for k in range(rows):
        for i in range(k + 1, min(rows, k + r + 1)):
            for j in range(k + 1, min(rows, k + first + 1)):
                out[i, j - i + r] -= x[k, j - k + r]
    return out


def nests(code: str) -> Iterator[str]:
    """The loops around loops of a text, each with what is in it."""
    lines = code.splitlines()
    for number, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        inside = list(itertools.takewhile(
            lambda each, depth=depth: len(each) - len(each.lstrip()) > depth, lines[number + 1 :]
        ))  # fmt: skip
        if line.lstrip().startswith("for ") and "for " in "".join(inside):
            yield "\n".join(inside)


CASES = [
    (1, 1, 5, 7), (2, 2, 6, 6), (0, 0, 8, 9), (1, 0, 7, 8), (2, 1, 7, 10), (1, 1, 5, 40),
    (3, 3, 2, 2), (-1, 1, 5, 5), (1, -2, 4, 4), (2**40, 1, 3, 3), (1, 2**62, 2**62 + 2, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    "function", [quarters, added, turned, triangle, clipped, banded], ids=lambda f: f.__name__
)
def test_programs_do_what_python_does(function: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(function)
    x = np.random.default_rng(1).random((8, 10))
    for case in CASES:
        if function not in (quarters, added) and max(case) > 2**32:
            continue  # sums and products that Python has more bits for, or 2^62 rounds
        outcomes = []
        for f in (function, compiled):
            out = np.zeros((8, 10))
            try:
                f(x, out, *case)
                outcomes.append(("", out))
            except (IndexError, ZeroDivisionError) as error:
                outcomes.append((str(error), out))
        assert outcomes[0][0] == outcomes[1][0], case
        np.testing.assert_array_equal(outcomes[1][1], outcomes[0][1])
    code = str(compiled.code(x, out, *CASES[0]))
    assert " > 1073741824" in code
    assert "floor_divide" not in code or function is not triangle
    if function in (clipped, banded):  # what only lies inside by both ends is not asked
        assert any("record" not in each and "store_" in each for each in nests(code))
