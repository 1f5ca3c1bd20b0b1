"""Kinds of numbers that the numbers tell: which are not carried along, and what is told of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    SLOT,
    Assign,
    Body,
    Compute,
    If,
    Literal,
    Local,
    Parameter,
    Store,
    statements,
)
from pyrelay.lower.passes import followed_kinds
from pyrelay.lower.passes.followed_kinds import without_followed_kinds


def number(value: int) -> Literal:
    return Literal(value, i64)


def greatest(x: Any) -> Any:
    best = 0
    for i in range(x.size):
        if x[i] > best:
            best = x[i]
    return best


def least(x: Any) -> Any:
    low = 1.5
    for v in x:
        if v < low:
            low = v
    return low


def alignment(x: Any) -> Any:
    best = 0
    last = np.zeros(x.size + 1, np.int64)
    for i in range(x.size):
        last[i + 1] = max(0, last[i] + x[i], x[i] - 2)
        v = max(0, last[i + 1] - 1, last[i] - 2)
        if v > best:
            best = v
    return best


def inside(x: Any) -> Any:
    """The kind is asked for in each round."""
    best, numbers = 0, 0
    for v in x:
        if v > best:
            best = v
        numbers += isinstance(best, np.int64)
    return best, numbers


def later(x: Any) -> Any:
    """The number tells nothing: what is not beyond it is assigned too."""
    best = 0
    for v in x:
        if v >= best:
            best = v
    return best


def again(x: Any) -> Any:
    best = 0
    for v in x:
        if v > best:
            best = v
        elif v == -7:
            best = x[0]
    return best


def two(x: Any) -> Any:
    """Two starts."""
    best = 0
    for v in x:
        if v > best:
            best = v
        elif v == -7:
            best = 3
    return best


def turned(x: Any) -> Any:
    """Numbers that change places with their kinds."""
    first, second = 0, 0
    for v in x:
        if v > first:
            first, second = v, first
        elif v > second:
            second = v
    return first, second


INTEGERS = [
    np.array(each, np.int64) for each in (
        [], [0], [-3], [0, 0, 5, 0], [-7, 2, -7, 4, 3], [4, -7, 9], [0, -7, 1], [2, 5, 3, 5],
    )
]  # fmt: skip
FLOATS = [
    np.array(each) for each in ([], [2.0], [1.5], [1.0, 2.0], [np.nan], [np.nan, -1.0], [-np.inf])
]


@pytest.mark.parametrize(
    "function", [greatest, alignment, inside, later, again, two, turned], ids=lambda f: f.__name__
)
def test_kinds_are_those_of_python(function: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(function)
    for x in INTEGERS:
        found, expected = compiled(x), function(x)
        assert found == expected
        if isinstance(expected, tuple):
            assert list(map(type, found)) == list(map(type, expected))
        assert type(found) is type(expected)


def test_kinds_of_floats_are_those_of_python() -> None:
    compiled = pyrelay.jit(least)
    for x in FLOATS:
        found, expected = compiled(x), least(x)
        assert found == expected
        assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("function", "x"), [(greatest, INTEGERS[3]), (alignment, INTEGERS[3]), (least, FLOATS[1])],
    ids=["greatest", "alignment", "least"],
)
def test_loops_carry_no_kind_that_the_number_tells(function: Callable[..., Any], x: Any) -> None:
    text = pyrelay.jit(function).code(x)
    assert not re.search(r"^ +v\d+ = [89]$", text, re.MULTILINE)


def test_loops_carry_a_kind_that_the_number_does_not_tell() -> None:
    text = pyrelay.jit(later).code(INTEGERS[3])
    assert re.search(r"^ +v\d+ = [89]$", text, re.MULTILINE)


def _chosen(beyond: str, start: int, value: Local, kind: Local, other: int = 8) -> Body:
    """A number and its kind: 5 and `other`, or 0 and 9 where `found` is not beyond it."""
    found, cond, is_kind = Local(i64), Local(bool_), Local(bool_)
    return (
        Compute(found, "add", (number(2), number(3))),
        Compute(cond, beyond, (found, number(start))),
        If(cond, (Assign(value, found), Assign(kind, number(other))),
           (Assign(value, number(0)), Assign(kind, number(9)))),
        Compute(is_kind, "equal", (kind, number(9))),
        Store(Parameter(SLOT, 0, bool_), number(0), is_kind, parallel=False),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("beyond", "start", "follows"),
    [("greater", 0, True), ("less", 0, True), ("greater_equal", 0, False), ("greater", 1, False)],
)
def test_a_kind_follows_from_a_strict_order_against_the_start(
    beyond: str, start: int, follows: bool
) -> None:
    value, kind = Local(i64, variable=True), Local(i64, variable=True)
    body = _chosen(beyond, start, value, kind)
    after = without_followed_kinds(body)
    assigned = {s.variable for s in statements(after) if isinstance(s, Assign)}
    assert assigned == ({value} if follows else {value, kind})
    asked = [s for s in after if isinstance(s, Compute) and s.primitive == "where"]
    assert len(asked) == follows


def test_numbers_that_are_assigned_alone_tell_no_kind() -> None:
    value, kind = Local(i64, variable=True), Local(i64, variable=True)
    body = (*_chosen("greater", 0, value, kind), Assign(value, number(0)))
    assert without_followed_kinds(body) is body


def test_each_pair_is_held_against_the_rule_of_its_own_literals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not against all of them: there are as many rules as kinds."""
    looked: list[object] = []

    def follows(site: Any, *args: Any) -> bool:
        looked.append(site)
        return real(site, *args)

    real = followed_kinds._follows
    monkeypatch.setattr(followed_kinds, "_follows", follows)
    each = [
        _chosen("greater", 0, Local(i64, variable=True), Local(i64, variable=True), other=10 + k)
        for k in range(20)
    ]
    pairs = tuple(s for body in each for s in body)
    after = without_followed_kinds(pairs)
    assert sum(isinstance(s, Assign) for s in statements(after)) == 40
    assert len(looked) <= 20 * 4


def test_variables_that_are_more_than_two_numbers_are_no_kinds() -> None:
    variables = [Local(i64, variable=True) for _ in range(6)]
    body = tuple(
        If(Local(bool_), tuple(Assign(v, number(k)) for v in variables), ()) for k in range(3)
    )
    assert not followed_kinds._sites(body, {})
