"""Checks in unlikely branches: what leaves the way of a loop, and that all still fail as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.types import bool_, f64, i64
from pyrelay.lower.kernels.kernel import (
    ARRAY,
    EXTENT,
    Assign,
    Body,
    Compute,
    Fail,
    If,
    Literal,
    Load,
    Local,
    Parameter,
    Read,
    Store,
    While,
    statements,
)
from pyrelay.lower.passes.cold_paths import with_cold_paths

X = Parameter(ARRAY, 0, i64)
ZERO = Literal(0, i64)


def element(k: Local, n: Local, out: Local) -> Body:
    """Loads an element at a checked index that may count from the end."""
    least, low, high, beyond, total, place = (
        Local(i64), Local(bool_), Local(bool_), Local(bool_), Local(i64), Local(i64)
    )  # fmt: skip
    return (
        Compute(least, "subtract", (ZERO, n)), Compute(low, "less", (k, least)),
        Compute(high, "greater_equal", (k, n)), Compute(beyond, "logical_or", (low, high)),
        Fail(beyond, 0, (k, n)), Compute(low, "less", (k, ZERO)), Compute(total, "add", (k, n)),
        Compute(place, "where", (low, total, k)), Load(out, X, place, parallel=False),
    )  # fmt: skip


def store(value: Local) -> Store:
    return Store(Parameter(ARRAY, 1, i64), ZERO, value, parallel=False)


def primitives(body: Body) -> list[str]:
    return [s.primitive for s in statements(body) if isinstance(s, Compute)]


def test_an_index_is_checked_by_one_comparison() -> None:
    k, n, out = Local(i64), Local(i64), Local(i64)
    body = with_cold_paths((*element(k, n, out), store(out)))
    assert primitives(body) == ["outside", "add", "outside"]
    (branch,) = (s for s in body if isinstance(s, If))
    assert branch.unlikely
    assert sum(isinstance(s, Fail) for s in statements(branch.then)) == 1


def test_an_index_that_is_known_to_be_below_the_extent_is_wrapped_in_an_unlikely_branch() -> None:
    k, n, out, least, low, total, place = (
        Local(i64), Local(i64), Local(i64), Local(i64), Local(bool_), Local(i64), Local(i64)
    )  # fmt: skip
    below = Local(bool_)
    checked: Body = (
        Compute(least, "subtract", (ZERO, n)), Compute(low, "less", (k, least)),
        Fail(low, 0, (k, n)), Compute(below, "less", (k, ZERO)), Compute(total, "add", (k, n)),
        Compute(place, "where", (below, total, k)), Load(out, X, place, parallel=False),
        store(out),
    )  # fmt: skip
    body = with_cold_paths((Read(n, Parameter(EXTENT, 2, i64)), *checked))
    assert "where" not in primitives(body)
    (branch,) = (s for s in body if isinstance(s, If))
    assert branch.unlikely
    assert [type(s) for s in branch.then] == [Fail, Compute, Assign]
    assert with_cold_paths(checked) == checked  # a number that may be negative is no extent


def test_a_variable_that_changes_is_checked_again() -> None:
    k, n, first, second = Local(i64, variable=True), Local(i64), Local(i64), Local(i64)
    same = with_cold_paths((*element(k, n, first), Assign(k, first), store(first)))
    again = element(k, n, first), Assign(k, first), element(k, n, second), store(second)
    body = with_cold_paths((*again[0], again[1], *again[2], again[3]))
    assert primitives(body) == 2 * primitives(same)


def test_what_a_loop_does_not_change_is_left_to_llvm() -> None:
    k, n, out = Local(i64), Local(i64), Local(i64)
    loop = While((*element(k, n, out), store(out)))
    (kept,) = with_cold_paths((loop,))
    assert isinstance(kept, While)
    assert kept.body == loop.body


def test_checks_of_one_float_have_one_condition() -> None:
    x, nan, infinite, finite = Local(f64), Local(bool_), Local(bool_), Local(bool_)
    body = (
        Compute(nan, "isnan", (x,)), Fail(nan, 0), Compute(infinite, "isinf", (x,)),
        Fail(infinite, 1),
    )  # fmt: skip
    out = with_cold_paths(body)
    (branch,) = (s for s in out if isinstance(s, If))
    assert branch.unlikely
    assert [s.site for s in branch.then if isinstance(s, Fail)] == [0, 1]
    asked = [s.primitive for s in out if isinstance(s, Compute)]
    assert asked == ["isfinite", "logical_not"]  # which of the two it is, the branch asks
    assert not any(isinstance(s, Fail) for s in out)
    either = Compute(finite, "isfinite", (Local(f64),)), Fail(finite, 1)
    assert with_cold_paths((*body[:2], *either)) == (*body[:2], *either)


def int_of(x: Local, out: Local) -> Body:
    """`int(x)`: for NaN and for what no int64 holds there is no such number."""
    nan, low, high, both, beyond = (Local(bool_) for _ in range(5))
    least, limit = Literal(-(2.0**63), f64), Literal(2.0**63, f64)
    return (
        Compute(nan, "isnan", (x,)), Fail(nan, 0), Compute(low, "greater_equal", (x, least)),
        Compute(high, "less", (x, limit)), Compute(both, "logical_and", (low, high)),
        Compute(beyond, "logical_not", (both,)), Fail(beyond, 1), Compute(out, "cast", (x,)),
    )  # fmt: skip


def test_an_int_of_a_float_is_checked_by_its_result() -> None:
    x, k = Local(f64), Local(i64)
    body = with_cold_paths((*int_of(x, k), store(k)))
    (branch,) = (s for s in body if isinstance(s, If))
    assert branch.unlikely
    assert [s.site for s in branch.then if isinstance(s, Fail)] == [0, 1]
    (test,) = (s for s in body if isinstance(s, Compute) and s.out is branch.cond)
    assert (test.primitive, test.args[0]) == ("equal", k)


def test_an_int_that_is_an_index_is_checked_as_such() -> None:
    x, k, n, out = Local(f64), Local(i64), Local(i64), Local(i64)
    body = with_cold_paths((*int_of(x, k), *element(k, n, out), store(out)))
    (branch,) = (s for s in body if isinstance(s, If))
    assert [s.site for s in statements(branch.then) if isinstance(s, Fail)] == [0, 1, 0]
    between = with_cold_paths((*int_of(x, k), store(k), *element(k, n, out), store(out)))
    assert sum(isinstance(s, If) for s in between) == 2


# -- as programs ---------------------------------------------------------------------------------


def taken(x: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(k)):
        total = total * 0.5 + x[k[i]]
        x[k[i]] = total
    return total


def followed(x: Any, k: Any) -> Any:
    at = 0
    for _ in range(len(k)):
        at = k[at]
        x[at] += 1.0
        at = at - 1
    return at


def moved(x: Any, k: Any) -> Any:
    j = k[0]
    while j < 4:
        j += 1
        x[j - 1] = x[j]
        j += k[1]
    return j


def binned(x: Any, k: Any) -> Any:
    counts = np.zeros(4)
    for i in range(len(x)):
        counts[int(x[i])] += 1
    return counts


def periodic(x: Any, k: Any) -> Any:
    n, m = len(x), len(k)
    out = np.zeros(n)
    for i in range(n):
        for d in range(-1, 2):
            out[i] += x[(i + d) % n] + 10 * x[(i - 1) % n] + 100 * x[(i + 2) % n] + (i + 1) % m
            out[(i - n) % n] += x[(i + n) % n] + k[(d + 1) % 3]
    return out


INDICES = [
    [0, 1, 2, 3], [-4, 3, -1, 0], [3, 0, 4, 0], [-5, 1, 1, 1], [1, 1, -2, 2], [2**62, 0, 0, 0],
    [-(2**63), 0, 0, 0],
]  # fmt: skip
NUMBERS = [
    [0.0, 1.5, 2.0, 3.9], [-1.0, -4.9, 0.0, 0.0], [-5.0, 0.0, 0.0, 0.0], [0.0, np.nan, 0.0, 0.0],
    [np.inf, 0.0, 0.0, 0.0], [0.0, 0.0, -np.inf, 0.0], [1e300, 0.0, 0.0, 0.0],
    [-(2.0**63), 0.0, 0.0, 0.0], [2.0**63, 0.0, 0.0, 0.0],
]  # fmt: skip


def outcome(f: Callable[..., Any], x: Any, k: Any) -> tuple[Any, ...]:
    try:
        value = np.asarray(f(x, k)).tolist()
    except (IndexError, ValueError, OverflowError) as error:
        value = type(error).__name__, str(error)
    return value, x.tolist()


@pytest.mark.parametrize("f", [taken, followed, moved, periodic], ids=lambda f: f.__name__)
def test_indices_are_checked_as_python_does(f: Callable[..., Any]) -> None:
    compiled = pyrelay.jit(f)
    for indices in INDICES:
        k, start = np.array(indices), np.arange(4.0)
        value, x = outcome(f, start.copy(), k)
        found, changed = outcome(compiled, start.copy(), k)
        assert found == value
        if not isinstance(value, tuple):  # what is written before an error is not promised
            assert changed == x


def test_numbers_are_checked_as_python_does() -> None:
    compiled = pyrelay.jit(binned)
    for numbers in NUMBERS:
        x, k = np.array(numbers), np.array([0])
        value, _ = outcome(binned, x, k)
        found, _ = outcome(compiled, x, k)
        if x[0] in (1e300, 2.0**63):  # Python's integers have no end, and fail as positions
            assert found[0] == "OverflowError"
        else:
            assert found == value
