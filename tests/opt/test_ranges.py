"""Checks of indices that cannot fail go, all others stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core_programs import do, single
from passes import after, assert_same_runs, core, loops, ops, run

from pyrelay.ir import dims
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Const, Loop, Var
from pyrelay.ir.types import PY_INT, TensorType, f64
from pyrelay.opt.dce import dce
from pyrelay.opt.ranges import ranges

SCALAR = TensorType(f64, ())

X = np.arange(1.0, 8.0)
A = np.arange(12.0).reshape(3, 4)


def _loop(bounds: Callable[..., Any], element: Callable[..., Any]) -> Callable[..., Any]:
    """Sums `element(x, i, n)` over a range that `bounds(x, n)` gives."""

    def program(x: Any, n: Any) -> Any:
        total = 0.0
        for i in bounds(x, n):
            total += element(x, i, n)
        return total

    return program


SAFE: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (lambda x, n: range(len(x)), lambda x, i, n: x[i]),
    (lambda x, n: range(x.shape[0]), lambda x, i, n: x[len(x) - 1 - i]),
    (lambda x, n: range(1, len(x)), lambda x, i, n: x[i - 1] * x[i]),
    (lambda x, n: range(len(x) - 2), lambda x, i, n: x[i] + x[i + 1] + x[2 + i]),
    (lambda x, n: range(len(x) - 1, -1, -1), lambda x, i, n: x[i]),
    (lambda x, n: range(0, len(x), 3), lambda x, i, n: x[i]),
    (lambda x, n: range(n), lambda x, i, n: x[i % len(x)]),
    (lambda x, n: range(n), lambda x, i, n: x[(i * 5 + 1) % len(x)]),
    (lambda x, n: range(-n, n), lambda x, i, n: x[i % len(x)]),
    (lambda x, n: range(len(x)), lambda x, i, n: x[i // 2]),
    (lambda x, n: range(len(x) // 2), lambda x, i, n: x[2 * i] + x[2 * i + 1]),
    (lambda x, n: range(1, len(x)), lambda x, i, n: x[(i - 1) // 2]),
)


@pytest.mark.parametrize(("bounds", "element"), SAFE, ids=range(len(SAFE)))
def test_indices_that_stay_inside_are_not_checked(
    bounds: Callable[..., Any], element: Callable[..., Any]
) -> None:
    before = core(_loop(bounds, element), X, 5)
    module = after(before, ranges)
    assert not ops(module)["check_index"]
    for size in (7, 6, 2, 1, 0):
        assert_same_runs(before, module, (X[:size], 5))


UNSAFE: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (lambda x, n: range(n), lambda x, i, n: x[i]),
    (lambda x, n: range(len(x)), lambda x, i, n: x[i + 1]),
    (lambda x, n: range(len(x)), lambda x, i, n: x[i - 1]),
    (lambda x, n: range(len(x) + 1), lambda x, i, n: x[i]),
    (lambda x, n: range(len(x)), lambda x, i, n: x[i * 2]),
    (lambda x, n: range(len(x)), lambda x, i, n: x[i // n]),
    (lambda x, n: range(len(x)), lambda x, i, n: x[i % n]),
    (lambda x, n: range(len(x)), lambda x, i, n: x[-i]),
    (lambda x, n: range(0, len(x) + 2, 3), lambda x, i, n: x[i]),
    (lambda x, n: range(0, n, 3), lambda x, i, n: x[i]),
)


@pytest.mark.parametrize(("bounds", "element"), UNSAFE, ids=range(len(UNSAFE)))
def test_indices_that_may_leave_are_checked(
    bounds: Callable[..., Any], element: Callable[..., Any]
) -> None:
    before = core(_loop(bounds, element), X[:6], 5)
    module = after(before, ranges)
    assert ops(module)["check_index"] == ops(before)["check_index"] > 0
    for n in (5, 9, -3, 0):
        for size in (7, 6, 2, 0):
            assert_same_runs(before, module, (X[:size], n))


N = Symbol("n")
n = dims.of(N)
Expression = Callable[[Builder, Handle], Any]

EXPRESSIONS: tuple[tuple[Any, Expression, bool], ...] = (
    (n, lambda b, i: i, True),
    (n, lambda b, i: i + 1, False),
    (n, lambda b, i: i - 1, False),
    (dims.add(n, -1), lambda b, i: i + 1, True),
    (dims.add(n, 1), lambda b, i: i, False),
    (n, lambda b, i: b.extent(dims.add(n, -1)) - i, True),
    (n, lambda b, i: i * -1 + b.extent(dims.add(n, -1)), True),
    (n, lambda b, i: -i, False),
    # With n = 0 the least of them is -1: that no iteration runs then is not used.
    (n, lambda b, i: do(b, "minimum", i, b.extent(dims.add(n, -1))), False),
    (4, lambda b, i: do(b, "maximum", do(b, "minimum", i * 7 - 3, 6), 2), False),
    (n, lambda b, i: do(b, "minimum", i * 7, b.extent(n)), False),
    (dims.quotient(dims.add(n, 2), 3), lambda b, i: i * 3, True),
    (dims.quotient(dims.add(n, 3), 3), lambda b, i: i * 3, False),
    (dims.quotient(n, 2), lambda b, i: i * 2 + 1, True),
    (n, lambda b, i: do(b, "floor_divide", i * 2, 2), False),
    (n, lambda b, i: do(b, "floor_divide", i, 2), True),
    (n, lambda b, i: do(b, "remainder", i * 9 - 5, b.extent(n)), True),
    (n, lambda b, i: do(b, "remainder", i, b.extent(dims.add(n, -1))), False),
    (3, lambda b, i: i, False),
)


@pytest.mark.parametrize(("count", "index", "safe"), EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_bounds_follow_the_arithmetic_on_indices(
    count: Any, index: Expression, safe: bool
) -> None:
    def body(b: Builder, x: Handle) -> list[Any]:
        inner = b.nested()
        total, i = Var("total", SCALAR), Var("i", PY_INT)
        at = do(inner, "check_index", index(inner, Handle(inner, i)), size=n, axis=0)
        summed = Handle(inner, total) + do(inner, "index", x, at, axes=(0,))
        loop = Loop(
            (total,), (Const(np.float64(0.0), SCALAR),), inner.block([summed]),
            count=b.extent(count).atom, index=i,
        )
        return list(b.bind(loop, [SCALAR]))

    before = single("f", {"x": TensorType(f64, (n,))}, body)
    module = after(before, ranges)
    assert ops(module)["check_index"] == (0 if safe else 1)
    for size in (7, 4, 3, 2, 1, 0):
        assert_same_runs(before, module, (X[:size],))


def test_numpy_integers_wrap_round_and_prove_nothing() -> None:
    def program(x: Any, n: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            total += x[np.int64(i) % n]
        return total

    before = core(program, X, np.int64(3))
    assert ops(after(before, ranges))["check_index"] == ops(before)["check_index"]


def test_the_bounds_of_inner_loops_build_on_those_of_outer_ones() -> None:
    def program(a: Any) -> Any:
        total = 0.0
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                total += a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]
        for i in range(a.shape[0]):
            for j in range(i):
                total += a[i, 0] * a[j, 0]
        return total

    before = core(program, A)
    module = after(before, ranges)
    assert not ops(module)["check_index"]
    assert_same_runs(before, module, (A,))


def test_the_error_of_a_check_that_stays_is_the_one_of_numpy() -> None:
    module = after(core(_loop(*UNSAFE[0]), X, 5), ranges)
    error = run(module, (X, 9))
    assert isinstance(error, IndexError)
    assert str(error) == "index 7 is out of bounds for axis 0 with size 7"


def test_arithmetic_of_extents_is_an_extent_so_that_a_loop_knows_its_count() -> None:
    before = core(_loop(lambda x, n: range(len(x) - 1, -1, -1), lambda x, i, n: x[i]), X, 5)
    module = after(before, ranges, dce)
    assert_same_runs(before, module, (X, 5))
    (loop,) = loops(module)
    (x,) = (p for p in module.main.params if isinstance(p.type, TensorType) and p.type.rank)
    (counting,) = (let for let in module.main.body.lets if loop.count in let.outs)
    assert counting.rhs.attrs["size"] == x.type.shape[0]
