"""Products of rows that data choose: each is computed once while a loop runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops_in

import pyrelay
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import If, Module
from pyrelay.ir.walk import nested_lets
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.fold import fold
from pyrelay.opt.remember import remember
from pyrelay.opt.simplify import simplify

RNG = np.random.default_rng(5)
ROWS, W, U, V = (RNG.standard_normal(s) for s in ((6, 4), (4, 3), (3, 3), (3, 6)))
STATE, TEXT = RNG.standard_normal(3), np.array([1, 4, 1, 1, -1, 4])


def greedy(rows, w, u, v, h, n):
    k = 0
    for _ in range(n):
        h = np.tanh(rows[k] @ w + h @ u)
        k = np.argmax(h @ v)
    return h


def greedy_until(rows, w, u, v, h, stop):
    k, steps = 0, 0
    while steps < 9:
        h = np.tanh(rows[k] @ w + h @ u)
        k = int(np.argmax(h @ v))
        if k == stop:
            break
        steps += 1
    return h, k, steps


def read_text(rows, w, u, h, text):
    for letter in text:
        h = np.tanh(rows[letter] @ w + h @ u)
    return h


def columns(rows, w, u, h, text):
    for letter in text:
        h = np.tanh(w @ rows[:, letter] + h @ u)
    return h


def written(rows, w, text):
    total = np.zeros(3)
    for letter in text:
        part = rows[letter] @ w
        part[0] = 1.0
        total += part * part
    return total


def previous(rows, w, text):
    last, total = np.zeros(3), 0.0
    for letter in text:
        part = rows[letter] @ w
        total += np.sum(part * last)
        last = part
    return total


def in_order(rows, w, u, h, n):
    i = 0
    while i < n and h[0] < 2:
        h = np.tanh(rows[i] @ w + h @ u)
        i += 1
    return h


def changing(rows, w, text):
    total = np.zeros(3)
    for letter in text:
        rows[letter] += 1.0
        total += rows[letter] @ w
    return total


def products(module: Module) -> tuple[int, int]:
    """How many products there are, and how many of them in branches."""
    body = module.functions[module.entry].body
    within = sum(
        ops_in(branch)["matmul"] for let in nested_lets(body) if isinstance(let.rhs, If)
        for branch in (let.rhs.then, let.rhs.orelse)
    )
    return ops_in(body)["matmul"], within


REMEMBERED: list[tuple[Any, tuple[Any, ...], tuple[int, int]]] = [
    (greedy, (ROWS, W, U, V, STATE, 7), (3, 1)),
    (greedy_until, (ROWS, W, U, V, STATE, 8), (3, 1)),
    (read_text, (ROWS, W, U, STATE, TEXT), (2, 1)),
    (columns, (ROWS.T.copy(), W.T.copy(), U, STATE, TEXT), (2, 1)),
    (written, (ROWS, W, TEXT), (1, 1)),
    (previous, (ROWS, W, TEXT), (1, 1)),
    (in_order, (ROWS, W, U, STATE, 5), (2, 0)),
    (changing, (ROWS, W, TEXT), (1, 0)),
]


@pytest.mark.parametrize(
    ("function", "args", "counts"), REMEMBERED, ids=[f.__name__ for f, _, _ in REMEMBERED]
)
def test_rows_that_data_choose_are_remembered(function: Any, args: Any, counts: Any) -> None:
    before = after(core(function, *args), fold, simplify, cse, dce)
    module = after(before, remember, fold, simplify, cse, dce)
    assert products(module) == counts
    assert (remember(before) is before) == (counts[1] == 0)
    assert_same_runs(before, module, args)


def test_what_is_known_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = after(core(read_text, ROWS, W, U, STATE, TEXT), fold, simplify, cse, dce, remember)
    seen: list[tuple[int, ...]] = []
    multiply = np.matmul

    def counted(a: Any, b: Any) -> Any:
        seen.append(np.shape(b))
        return multiply(a, b)

    monkeypatch.setattr(np, "matmul", counted)
    interpret(made, (ROWS, W, U, STATE, TEXT))
    assert seen.count(U.shape) == len(TEXT)
    assert seen.count(W.shape) == len(set(TEXT.tolist()))


@pytest.mark.parametrize("count", [6, 40])
def test_many_rows_of_a_small_product_are_not_remembered_but_right(count: int) -> None:
    rows, text = RNG.standard_normal((count, 4)), np.array([1, count - 1, 1, -1, 0])
    compiled = pyrelay.jit(read_text)
    np.testing.assert_allclose(
        compiled(rows, W, U, STATE, text), read_text(rows, W, U, STATE, text), rtol=1e-12
    )
    with pytest.raises(IndexError, match=f"index {count} is out of bounds"):
        compiled(rows, W, U, STATE, np.array([1, count]))


def test_gradients_of_remembered_products() -> None:
    def loss(rows, w, u, h, text):
        total = 0.0
        for letter in text:
            h = np.tanh(rows[letter] @ w + h @ u)
            total += np.sum(h * h)
        return total

    args = ROWS, W, U, STATE, TEXT
    found = pyrelay.grad(loss, argnums=(0, 1))(*args)
    for k, part in enumerate(found):
        way = RNG.standard_normal(part.shape)
        ends = []
        for step in (1e-6, -1e-6):
            moved = list(args)
            moved[k] = args[k] + step * way
            ends.append(loss(*moved))
        assert np.sum(part * way) == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
