"""What does not depend on a loop leaves it, and products of rows leave recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np
from passes import after, assert_same_runs, core, loops, ops, ops_in, run

from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.hoist import hoist
from pyrelay.opt.ranges import ranges
from pyrelay.opt.simplify import simplify

X = np.linspace(0.0, 1.0, 4)
rng = np.random.default_rng(5)


def _hoisted(function: Any, *args: Any) -> Any:
    before = core(function, *args)
    module = after(before, ranges, simplify, cse, hoist, dce)
    assert_same_runs(before, module, args)
    return module


def test_invariant_code_leaves_all_the_loops_it_does_not_depend_on() -> None:
    def program(x: Any, n: Any) -> Any:
        total = x
        for i in range(n):
            for j in range(n):
                total = total + np.exp(x) * np.sin(x * i) * j
        return total

    outer, inner = loops(_hoisted(program, X, 3))
    assert not ops_in(outer.body)["exp"]
    assert ops_in(outer.body)["sin"] == 1
    assert not ops_in(inner.body)["sin"]


def test_invariant_code_of_a_test_leaves_the_loop_too() -> None:
    def program(x: Any, w: Any) -> Any:
        while np.sum(x) < np.sum(np.exp(w)):
            x = x + 0.5
        return x

    (loop,) = loops(_hoisted(program, X, X))
    assert loop.test is not None
    assert ops_in(loop.test)["sum"] == 1
    assert not ops_in(loop.test)["exp"]


def test_what_may_raise_and_what_stands_in_a_branch_stays() -> None:
    def program(x: Any, n: Any, d: Any) -> Any:
        total = 0
        for i in range(n):
            if i > 1:
                total += int(np.sum(np.exp(x)) > 0.0)
            total += 7 // d
        return total

    module = _hoisted(program, X, 4, 2)
    (loop,) = loops(module)
    assert ops_in(loop.body)["floor_divide"] == 1
    assert ops_in(loop.body)["exp"] == 1
    assert run(module, (X, 0, 0)) == (0,)


def test_arrays_that_cost_nothing_leave_only_with_something_that_does_not() -> None:
    def filled(x: Any, n: Any) -> Any:
        for i in range(n):
            row = np.zeros(4)
            row[i] = 1.0
            x = x + row
        return x

    def used(x: Any, n: Any) -> Any:
        total = x
        for _ in range(n):
            total = total + np.exp(np.arange(4) * 0.5) * x
        return total

    (loop,) = loops(_hoisted(filled, X, 3))
    assert ops_in(loop.body)["broadcast_to"] == 1
    (loop,) = loops(_hoisted(used, X, 3))
    assert set(ops_in(loop.body)) == {"add"}


def test_rows_of_a_sequence_are_multiplied_at_once() -> None:
    def program(x: Any, w: Any, u: Any) -> Any:
        h = np.zeros(w.shape[1])
        for t in range(x.shape[0]):
            h = np.tanh(x[t] @ w + h @ u)
        return h

    x, w, u = rng.normal(size=(5, 3)), rng.normal(size=(3, 4)), rng.normal(size=(4, 4))
    module = _hoisted(program, x, w, u)
    (loop,) = loops(module)
    assert ops_in(loop.body)["matmul"] == 1
    assert ops(module)["matmul"] == 2
    for steps in (2, 1, 0):
        assert_same_runs(core(program, x, w, u), module, (x[:steps], w, u))


def test_batches_of_rows_are_multiplied_at_once() -> None:
    def program(x: Any, w: Any) -> Any:
        h = np.zeros((x.shape[1], w.shape[0]))
        for t in range(len(x)):
            h = np.tanh(x[t] @ w.T + h)
        return h

    x, w = rng.normal(size=(5, 2, 3)), rng.normal(size=(4, 3))
    module = _hoisted(program, x, w)
    (loop,) = loops(module)
    assert not ops_in(loop.body)["matmul"]


def test_products_stay_where_the_loop_may_stop_early_or_the_matrix_changes() -> None:
    def stops(x: Any, w: Any) -> Any:
        h = np.zeros(3)
        for t in range(x.shape[0]):
            h = np.tanh(x[t] @ w + h)
            if h[0] > 0.5:
                break
        return h

    def changes(x: Any, w: Any) -> Any:
        h = np.zeros(3)
        for t in range(x.shape[0]):
            h = np.tanh(x[t] @ w + h)
            w = w * 0.5
        return h

    x, w = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
    for function in (stops, changes):
        (loop,) = loops(_hoisted(function, x, w))
        assert ops_in(loop.body)["matmul"] == 1


def test_a_loop_that_never_runs_computes_nothing_that_raises() -> None:
    def program(x: Any, n: Any) -> Any:
        total = 0.0 * np.sum(x)
        for _ in range(n):
            total += np.sum(1.0 / x)
        return total

    module = _hoisted(program, X, 2)
    assert run(module, (X, 0)) == (0.0,)
