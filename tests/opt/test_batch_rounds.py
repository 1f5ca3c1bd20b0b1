"""Products in loops over examples are computed for many examples at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, loops, ops, ops_in

from pyrelay.opt import batch_rounds as module_of_pass
from pyrelay.opt.batch_rounds import batch_rounds
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.inline import inline
from pyrelay.opt.ranges import ranges
from pyrelay.opt.simplify import simplify
from pyrelay.pipeline import derivatives

_RANDOM = np.random.RandomState(0)
X, W, V = _RANDOM.rand(21, 20), _RANDOM.randn(20, 30) / 5, _RANDOM.randn(30, 12)
PLACES = _RANDOM.randint(-20, 20, 21)


@pytest.fixture(params=[None, 1], ids=["together", "in parts"], autouse=True)
def _parts(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rounds go together, or as few as do."""
    if request.param:
        monkeypatch.setattr(module_of_pass, "_AT_ONCE", request.param)


def _batched(function: Any, *args: Any) -> Any:
    before = after(core(function, *args), derivatives, inline, ranges, simplify, cse, dce)
    module = after(before, batch_rounds, simplify, cse, dce)
    assert_same_runs(before, module, args)
    return module


def _inner(module: Any) -> list[Any]:
    """The loops over examples that are left, in the loop over parts."""
    return loops(module)[1:]


def test_all_of_a_round_is_computed_for_many() -> None:
    def program(x: Any, w: Any, v: Any) -> Any:
        out, sums = np.empty((len(x), 12)), np.zeros(len(x))
        for i in range(len(x)):
            hidden = np.tanh(w.T @ x[i] + i) * np.max(x[i])
            out[i] = np.concatenate([hidden, hidden[::-1]])[9:39].reshape(30) @ v
            sums[i] = hidden.sum()
        return out, sums

    module = _batched(program, X, W, V)
    (parts,) = loops(module)
    assert ops_in(parts.body)["matmul"] == 2
    assert not ops_in(parts.body)["index"]
    _batched(program, X[:0], W, V)


def test_what_gains_nothing_stays_a_loop_behind() -> None:
    def program(x: Any, w: Any, v: Any) -> Any:
        out, total, wide = np.empty((len(x), 20, 30)), np.zeros(12), np.ones((len(x), 30))
        for i in range(len(x)):
            hidden = np.exp(x[i] @ w)
            out[i] = np.outer(x[i], hidden) @ np.outer(hidden, hidden)
            wide[i] = hidden.sum()
            total += hidden @ v
        return out, total, wide

    module = _batched(program, X, W, V)
    (rest,) = _inner(module)
    assert ops_in(rest.body)["matmul"] == 1
    assert not ops_in(rest.body)["exp"]


def test_checks_come_between_in_their_order() -> None:
    def program(x: Any, w: Any, v: Any, places: Any) -> Any:
        out, more = np.empty(len(x)), np.empty((len(x), 12))
        for i in range(len(x)):
            hidden = np.sin(x[i] @ w)
            if hidden[0] > 2.0:
                raise ValueError("too large")
            chosen = np.zeros(30)
            chosen[places[i]] = x[i, 0]
            chosen[0] += 1.0
            out[i] = hidden[places[i]]
            more[i] = (chosen + hidden) @ v
        return out, more

    module = _batched(program, X, W, V, PLACES)
    checks, *_ = _inner(module)
    assert ops_in(checks.body)["check_index"]
    assert ops_in(checks.body)["raise"] == 1
    assert ops(module)["scatter_update"]
    wrong = PLACES.copy()
    wrong[[3, 7]] = 50, 90
    _batched(program, X, W, V, wrong)


def test_gradients_of_each_example() -> None:
    import pyrelay

    def program(x: Any, w: Any, v: Any) -> Any:
        def loss(w: Any, v: Any, x: Any) -> Any:
            return np.sum(np.tanh(np.tanh(x @ w) @ v) ** 2)

        return pyrelay.vmap(pyrelay.grad(loss, argnums=(0, 1)), (None, None, 0))(w, v, x)

    module = _batched(program, X, W, V)
    (rest,) = _inner(module)
    assert ops_in(rest.body)["matmul"] == 2  # the outer products
    assert ops(module)["matmul"] == 5


MATRICES = _RANDOM.rand(12, 9, 8), _RANDOM.rand(12, 8, 8), _RANDOM.rand(8, 6)


def test_short_products_of_two_of_their_own_are_computed_for_many() -> None:
    def program(x: Any, y: Any, w: Any) -> Any:
        out = np.empty((len(x), 9, 6))
        for i in range(len(x)):
            out[i] = np.tanh(x[i] @ y[i]) @ w
        return out

    module = _batched(program, *MATRICES)
    (parts,) = loops(module)
    assert ops_in(parts.body)["matmul"] == 2
    assert not ops_in(parts.body)["index"]


@pytest.mark.parametrize("shape", [(9, 8), (30, 20), (1, 20)])
def test_a_product_that_is_all_of_a_round_needs_no_parts(shape: tuple[int, int]) -> None:
    def program(x: Any, y: Any) -> Any:
        out = np.empty((len(x), x.shape[1], y.shape[2]))
        for i in range(len(x)):
            out[i] = x[i] @ y[i]
        return out

    x, y = _RANDOM.rand(12, *shape), _RANDOM.rand(12, shape[1], 7)
    module = _batched(program, x[:10], y)
    assert not loops(module)
    assert not ops(module)["gather"]
    _batched(program, x[:0], y)


def test_what_a_kernel_would_compute_anew_for_each_element_is_computed_for_many() -> None:
    def program(x: Any, w: Any) -> Any:
        small, out = w[:8, :8].copy(), np.empty((len(x), 8))
        for i in range(len(x)):
            out[i] = np.maximum(x[i, :8] @ small + 1.0, 0.0) @ small
        return out

    module = _batched(program, X, W)
    assert sum(ops_in(each.body)["matmul"] for each in loops(module)) == 2
    assert not sum(ops_in(each.body)["index"] for each in loops(module))


def test_what_stays_leaves_products_of_short_rows_to_many_rounds() -> None:
    def program(x: Any, w: Any) -> Any:
        small, out, outer = w[:8, :8].copy(), np.empty((len(x), 8)), np.empty((len(x), 8, 8))
        for i in range(len(x)):
            hidden = np.tanh(x[i, :8] @ small)
            out[i] = hidden @ small
            outer[i] = hidden[:, None] @ x[i, None, :8]
        return out, outer

    module = _batched(program, X, W)
    (rest,) = _inner(module)
    assert ops_in(rest.body)["matmul"] == 1
    assert not ops_in(rest.body)["tanh"]


@pytest.mark.parametrize("kind", [
    "recurrence", "matrices", "no product", "kernel", "few", "neighbours", "vectors", "sum", "tiny",
])
def test_other_loops_stay(kind: str) -> None:
    def recurrence(x: Any, w: Any) -> Any:
        state = np.zeros(20)
        for i in range(len(x)):
            state = np.tanh(state @ w @ w.T + x[i])
        return state

    def matrices(x: Any, w: Any) -> Any:
        y, out = np.stack([x] * 9), np.empty((9, 21, 30))
        for i in range(9):
            out[i] = y[i] @ w
        return out

    def no_product(x: Any, w: Any) -> Any:
        out = np.empty(len(x))
        for i in range(len(x)):
            out[i] = np.sum(x[i])
        return out

    def kernel(x: Any, w: Any) -> Any:
        small, out = w[:3, :3].copy(), np.empty((len(x), 3))
        for i in range(len(x)):
            out[i] = x[i, :3] @ small
        return out

    def few(x: Any, w: Any) -> Any:
        return np.stack([x[i] @ w for i in range(4)])

    def neighbours(x: Any, w: Any) -> Any:
        out = np.zeros((len(x), 30))
        for i in range(1, len(x)):
            out[i] = x[i] @ w + out[i - 1]
        return out

    def vectors(x: Any, w: Any) -> Any:
        out = np.empty(len(x))
        for i in range(len(x)):
            out[i] = x[i] @ x[i]
        return out

    def sum(x: Any, w: Any) -> Any:
        y, total = x[:, :16].reshape(21, 4, 4), np.zeros((4, 4))
        for i in range(len(x)):
            total += y[i] @ y[i]
        return total

    def tiny(x: Any, w: Any) -> Any:
        y, out = x[:, :4].reshape(21, 2, 2), np.empty((len(x), 2, 2))
        for i in range(len(x)):
            out[i] = y[i] @ y[i] @ y[i]
        return out

    before = after(core(locals()[kind.replace(" ", "_")], X, W), ranges, simplify)
    assert batch_rounds(before) is before
