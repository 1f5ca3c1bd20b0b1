"""Which parts of a round over examples go together is what takes less time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, loops

from pyrelay.ir import walk
from pyrelay.ir.nodes import Loop
from pyrelay.opt.batch_rounds import batch_rounds
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.ranges import ranges
from pyrelay.opt.simplify import simplify

_RANDOM = np.random.RandomState(1)


def network(x: Any, w: Any) -> Any:
    out = np.empty((len(x), w.shape[0]))
    for i in range(len(x)):
        state = np.zeros(w.shape[0])
        for t in range(x.shape[1]):
            state = np.tanh(state @ w + x[i, t])
        out[i] = state
    return out


def steps(x: Any, w: Any) -> Any:
    out = np.empty((len(x), w.shape[0]))
    for i in range(len(x)):
        state = x[i, 0]
        for _ in range(7):
            state = state + 0.1 * (w @ state)
        out[i] = state
    return out


def total(x: Any, w: Any) -> Any:
    found = 0.0
    for i in range(len(x)):
        state = x[i, 0]
        for t in range(x.shape[1]):
            state = np.tanh(w @ state + x[i, t])
        found += state.sum()
    return found


def of_its_own(x: Any, w: Any) -> Any:
    out = np.empty((len(x), w.shape[0]))
    for i in range(len(x)):
        own, state = np.outer(x[i, 0], x[i, 1]), x[i, 0]
        for _ in range(7):
            state = np.tanh(own @ state)
        out[i] = state
    return out


def of_its_own_length(x: Any, w: Any) -> Any:
    out = np.empty((len(x), w.shape[0]))
    for i in range(len(x)):
        state = x[i, 0]
        for _ in range(i):
            state = np.tanh(w @ state)
        out[i] = state
    return out


def until_small(x: Any, w: Any) -> Any:
    out = np.empty((len(x), w.shape[0]))
    for i in range(len(x)):
        state = x[i, 0]
        while state[0] > 0.5:
            state = 0.3 * np.tanh(w @ state)
        out[i] = state
    return out


def rounds(function: Any, n: int) -> list[Loop]:
    """The loops after the pass; the same results as before."""
    args = _RANDOM.rand(9, 4, n), _RANDOM.rand(n, n)
    before = after(core(function, *args), ranges, simplify, cse, dce)
    module = after(before, batch_rounds, simplify, cse, dce)
    assert_same_runs(before, module, args)
    return loops(module)


def holds_a_product(loop: Loop) -> bool:
    """Whether one of the Lets of a loop's body, and of no loop in it, is a product."""
    return any(walk.is_call(let, "matmul") for let in loop.body.lets)


@pytest.mark.parametrize(("function", "n"), [
    (network, 30), (network, 8), (network, 3), (steps, 8), (total, 30), (total, 8),
])
def test_loops_over_products_with_what_all_share_are_run_through_together(
    function: Any, n: int
) -> None:
    (inner,) = (loop for loop in rounds(function, n) if holds_a_product(loop))
    assert inner.carried[0].type.rank == 2


@pytest.mark.parametrize(("function", "n"), [
    (steps, 3), (of_its_own, 30), (of_its_own_length, 30), (until_small, 30),
])
def test_other_loops_are_run_through_one_after_the_other(function: Any, n: int) -> None:
    (inner,) = (loop for loop in rounds(function, n) if holds_a_product(loop))
    assert inner.carried[0].type.rank == 1
