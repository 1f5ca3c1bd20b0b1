"""Branches that only compute are choices."""

from __future__ import annotations

from pyrelay.ir.types import bool_, f64, i64
from pyrelay.lower.kernels.kernel import ARRAY, Assign, Compute, If, Literal, Load, Local, Parameter
from pyrelay.lower.passes.flat_branches import with_flat_branches

COND, OTHER = Local(bool_), Local(bool_)
X, Y = Local(i64), Local(i64)
NONE: frozenset[Local] = frozenset()


def test_both_arms_are_computed() -> None:
    v, t = Local(i64, variable=True), Local(i64)
    arm = Compute(t, "add", (Y, Literal(1, i64))), Assign(v, t)
    made, choice, assigned = with_flat_branches((If(COND, (Assign(v, X),), arm),), NONE, NONE)
    assert isinstance(made, Compute)
    assert isinstance(choice, Compute)
    assert choice.primitive == "where_unpredictable"
    assert choice.args == (COND, X, made.out)
    assert isinstance(assigned, Assign)
    assert (assigned.variable, assigned.value) == (v, choice.out)


def test_branches_in_branches_and_floats() -> None:
    v = Local(f64, variable=True)
    one, two, three = (Literal(float(k), f64) for k in (1, 2, 3))
    inner = If(OTHER, (Assign(v, two),), (Assign(v, three),))
    first, second, _ = with_flat_branches((If(COND, (Assign(v, one),), (inner,)),), NONE, NONE)
    assert isinstance(first, Compute)
    assert isinstance(second, Compute)
    assert (first.primitive, first.args) == ("where", (OTHER, two, three))
    assert second.args == (COND, one, first.out)


def test_a_variable_of_one_arm_is_what_it_was() -> None:
    v = Local(i64, variable=True)
    branch = If(COND, (Assign(v, X),))
    choice, _ = with_flat_branches((branch,), frozenset([v]), NONE)
    assert isinstance(choice, Compute)
    assert choice.args == (COND, X, v)
    assert with_flat_branches((branch,), NONE, NONE) == ()  # which nobody may read behind it


def test_what_reads_or_is_unlikely_or_kept_stays() -> None:
    v, t = Local(f64, variable=True), Local(f64)
    load = Load(t, Parameter(ARRAY, 0, f64), Literal(0, i64), False)
    number = Assign(v, Literal(0.0, f64))
    for branch, kept in [
        (If(COND, (load, Assign(v, t)), (number,)), NONE),
        (If(COND, (number,), (number,), unlikely=True), NONE),
        (If(COND, (number,), (Assign(v, t),)), frozenset([t])),
    ]:
        (found,) = with_flat_branches((branch,), NONE, kept)
        assert isinstance(found, If)
