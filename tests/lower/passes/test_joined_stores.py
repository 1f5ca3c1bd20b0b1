"""Stores that end both arms of a branch, in one place, stand behind it."""

from __future__ import annotations

from pyrelay.ir.types import bool_, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    Assign,
    Compute,
    If,
    Literal,
    Local,
    Parameter,
    Statement,
    Store,
)
from pyrelay.lower.passes.distinct_places import Integers
from pyrelay.lower.passes.joined_stores import with_joined_stores

TABLE, OTHER = Parameter(ARRAY, 0, f64), Parameter(ARRAY, 1, f64)
COND = Local(bool_)
I = Local(i64)  # noqa: E741


def arm(offset: int, value: float, array: Parameter = TABLE) -> tuple[Statement, ...]:
    place = Local(i64)
    made = Compute(place, "add", (I, Literal(offset, i64)))
    return made, Store(array, place, Literal(value, f64), False)


def known() -> Integers:
    integers = Integers()
    integers.note(Compute(I, "add", (Literal(3, i64), Literal(4, i64))))
    return integers


def test_one_store_behind_the_branch() -> None:
    branch, made, store = with_joined_stores((If(COND, arm(1, 2.0), arm(1, 3.0)),), known())
    assert isinstance(branch, If)
    assert isinstance(made, Compute)
    assert isinstance(store, Store)
    assert store.index is made.out
    values = []
    for body in (branch.then, branch.orelse):
        last = body[-1]
        assert isinstance(last, Assign)
        assert last.variable is store.value
        assert isinstance(last.value, Literal)
        values.append(last.value.value)
    assert values == [2.0, 3.0]


def test_branches_in_branches() -> None:
    inner = If(COND, arm(1, 2.0), arm(1, 3.0))
    *_, store = with_joined_stores((If(COND, arm(1, 4.0), (inner,)),), known())
    assert isinstance(store, Store)


def test_other_places_stay() -> None:
    for orelse in (arm(2, 3.0), arm(1, 3.0, OTHER), ()):
        body = (If(COND, arm(1, 2.0), orelse),)
        (branch,) = with_joined_stores(body, known())
        assert isinstance(branch, If)
        assert isinstance(branch.then[-1], Store)
