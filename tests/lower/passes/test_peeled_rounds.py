"""Loops that ask whether it is their first or last round."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, f64, i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Assign,
    Compute,
    Fail,
    For,
    If,
    Literal,
    Local,
    Parameter,
    Read,
    Statement,
    statements,
)
from pyrelay.lower.passes.peeled_rounds import with_peeled_rounds

Program = Callable[..., Any]


def distance(u: Any, r: Any) -> Any:
    n, m = u.shape
    d = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            if i == 0:
                d[i, j] = j
            elif j == 0:
                d[i, j] = i
            elif u[i, j] < 0.3:
                d[i, j] = d[i - 1, j - 1] * 1.5
            else:
                d[i, j] = u[i, j] + min(d[i, j - 1], d[i - 1, j], d[i - 1, j - 1])
    return d


def summed(u: Any, r: Any) -> Any:
    """A table of sums over all that lies above and to the left."""
    n, m = u.shape
    s = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            v = u[i, j]
            if i > 0:
                v += s[i - 1, j]
            if j > 0:
                v += s[i, j - 1]
            if i > 0 and j > 0:
                v -= s[i - 1, j - 1]
            s[i, j] = v
    return s


def averaged(u: Any, r: Any) -> Any:
    n, m = u.shape
    out = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            total, count = 0.0, 0
            for a in range(-r, r + 1):
                for b in range(-r, r + 1):
                    if 0 <= i + a < n and j + b >= 0 and j + b < m:
                        total += u[i + a, j + b]
                        count += 1
            if count:
                out[i, j] = total / count
    return out


def clamped(u: Any, r: Any) -> Any:
    n, m = u.shape
    out = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            total = 0.0
            for k in range(-r, r + 1):
                total += u[i, min(max(j + k, 0), m - 1)] * (k + 1)
            out[i, j] = total
    return out


def reflected(u: Any, r: Any) -> Any:
    """More than two rounds at each end, as many as is written."""
    x = u.ravel()
    out = np.zeros(len(x))
    for i in range(len(x)):
        total = 0.0
        for k in range(-4, 5):
            j = i + k
            if j < 0:
                j = -j
            elif j >= len(x):
                j = 2 * len(x) - 2 - j
            if 0 <= j < len(x):
                total += x[j] * (k + r)
        out[i] = total
    return out


def bounded(u: Any, r: Any) -> Any:
    """Loops from the greater to the lesser of two, and a variable that is set twice."""
    x = u.ravel()
    out = np.zeros(len(x))
    for i in range(len(x)):
        low, high = max(0, i - r), min(len(x), i + r + 1)
        for j in range(low, high):
            out[i] += x[j]
        k = i - 1 if i > 0 else len(x) - 1
        k = k + 2 if k + 2 < len(x) else 0
        out[i] += x[k] * high
        low += 1
        if low < len(x) - 1:
            out[i] -= low
    return out


def wrapped(u: Any, r: Any) -> Any:
    n, m = u.shape
    out = np.zeros((n, m))
    for i in range(n):
        down = i + 1
        if down == n:
            down = 0
        for j in range(m):
            out[i, j] = u[i - 1, j] + u[down, j] + u[i, j - 1] - 3 * u[i, (j + 1) % m]
    return out


def inner_points(u: Any, r: Any) -> Any:
    n, m = u.shape
    out = u.copy()
    for i in range(n):
        for j in range(m):
            if i == 0 or i == n - 1 or j == 0 or j == m - 1:
                continue
            out[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])
    return out


def carried(u: Any, r: Any) -> Any:
    """What rounds hand on, from what the first one and the last but one set."""
    x = u.ravel()
    y = np.zeros(len(x))
    last, v = 0.0, 0.0
    for i in range(len(x)):
        if i == 0:
            v = 2.0
        elif i < 2:
            v = v + x[i]
        if i == len(x) - 2:
            last = v
        y[i] = v * x[i]
    return y, last, v


def downwards(u: Any, r: Any) -> Any:
    n, m = u.shape
    d = u.copy()
    for i in range(n - 1, -1, -1):
        for j in range(m - 1, -1, -1):
            if i < n - 1:
                d[i, j] = min(d[i, j], d[i + 1, j] + 0.1)
            if j < m - 1:
                d[i, j] = min(d[i, j], d[i, j + 1] + 0.1)
    return d


def pulled(u: Any, r: Any) -> Any:
    """All others but one, which takes long."""
    x = u.ravel()
    out = np.zeros(len(x))
    for i in range(len(x)):
        total = 0.0
        for j in range(len(x)):
            if i != j:
                total += math.sin(x[j] - x[i])
        for j in range(2, len(x) - 1):
            if j == i + r:
                total -= 1.0
                continue
            total += 1.0 / (1.0 + x[j])
        out[i] = total
    return out


SHAPES = [(0, 3), (1, 1), (1, 6), (2, 2), (3, 1), (2, 70), (5, 6), (12, 90)]


@pytest.mark.parametrize("r", [0, 1, 2, 5, -1, 2**62, -(2**62)])
@pytest.mark.parametrize("program", [averaged, clamped, reflected, bounded])
def test_windows_have_the_values_that_python_gives_them(program: Program, r: int) -> None:
    if program in (averaged, clamped) and r > 5:
        return  # Python would take years
    compiled = pyrelay.jit(program)
    for shape in SHAPES:
        u = np.random.default_rng(1).random(shape)
        np.testing.assert_allclose(compiled(u, r), program(u, r), rtol=1e-12)


@pytest.mark.parametrize(
    "program", [distance, summed, wrapped, inner_points, carried, downwards, pulled]
)
def test_edges_have_the_values_that_python_gives_them(program: Program) -> None:
    compiled = pyrelay.jit(program)
    for shape in SHAPES:
        u = np.random.default_rng(2).random(shape)
        for got, wanted in zip(compiled(u, 1), program(u, 1), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=0)


def test_what_fails_in_the_last_round_fails_there() -> None:
    def ends(x: Any, y: Any, out: Any) -> Any:
        for i in range(len(x)):
            if i == len(x) - 1:
                out[i] = y[i + 1]
            elif i == 0:
                out[i] = y[i]
            else:
                out[i] = x[i - 1]
        return out

    x, y = np.arange(6.0), np.arange(6.0)
    got, wanted = np.zeros(6), np.zeros(6)
    with pytest.raises(IndexError, match="index 6 is out of bounds"):
        pyrelay.jit(ends)(x, y, got)
    with pytest.raises(IndexError, match="index 6 is out of bounds"):
        ends(x, y, wanted)
    np.testing.assert_array_equal(got, wanted)


# -- statements ----------------------------------------------------------------------------------


def _asked(body: tuple[Statement, ...]) -> list[str]:
    return [s.primitive for s in statements(body) if isinstance(s, Compute) and "l" in s.primitive]


def test_all_but_the_first_round_and_the_last_ask_nothing() -> None:
    i, n, v, end = Local(i64), Local(i64), Local(i64, variable=True), Local(i64)
    first, last = Local(bool_), Local(bool_)
    loop = For(i, Literal(0, i64), n, (
        Compute(end, "subtract", (n, Literal(1, i64))),
        Compute(first, "equal", (i, Literal(0, i64))), If(first, (Assign(v, i),)),
        Compute(last, "less", (i, end)), If(last, (), (Assign(v, n),)),
    ))  # fmt: skip
    read = Read(n, Parameter(EXTENT, 0, i64))
    one, between, other = (
        s for s in with_peeled_rounds((read, loop)) if isinstance(s, (If, For))
    )  # fmt: skip
    assert isinstance(one, If)
    assert isinstance(other, If)
    assert isinstance(between, For)
    assert isinstance(between.start, Literal)
    assert between.start.value == 1
    assert _asked(between.body) == []


@pytest.mark.parametrize("slow", [False, True])
def test_a_round_in_the_middle_stands_apart_where_all_others_take_long(slow: bool) -> None:
    i, n, at, same = Local(i64), Local(i64), Local(i64), Local(bool_)
    v, x, y = Local(f64, variable=True), Local(f64), Local(f64)
    step = Compute(y, "divide" if slow else "add", (x, v))
    loop = For(i, Literal(0, i64), n, (
        Compute(same, "equal", (i, at)), If(same, (Assign(v, x),), (step, Assign(v, y))),
    ))  # fmt: skip
    reads = Read(n, Parameter(EXTENT, 0, i64)), Read(at, Parameter(EXTENT, 1, i64))
    body = with_peeled_rounds((*reads, loop))
    loops = [s for s in body if isinstance(s, For)]
    assert len(loops) == (2 if slow else 1)
    assert _asked(loops[0].body) == ([] if slow else ["equal"])
    assert loops[0].start is loop.start
    assert loops[-1].stop is n


@pytest.mark.parametrize("away", [3, 1000])
def test_what_is_asked_far_from_both_ends_parts_nothing(away: int) -> None:
    i, n, v, first = Local(i64), Local(i64), Local(i64, variable=True), Local(bool_)
    loop = For(i, Literal(0, i64), n, (
        Compute(first, "equal", (i, Literal(away, i64))), If(first, (Assign(v, i),)),
    ))  # fmt: skip
    assert with_peeled_rounds((loop,)) == (loop,)


def test_what_only_checks_ask_parts_nothing() -> None:
    i, n, lost, none = Local(i64), Local(i64), Local(bool_), Local(bool_)
    below = Local(i64)
    loop = For(i, Literal(0, i64), n, (
        Compute(below, "subtract", (i, Literal(1, i64))),
        Compute(none, "less", (below, Literal(0, i64))),
        Compute(lost, "logical_or", (none, none)),
        Fail(lost, 0, (below,)),
    ))  # fmt: skip
    assert with_peeled_rounds((loop,)) == (loop,)
