"""Recursion over data runs level by level, with the same results, derivatives and exceptions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import core, ops_in
from tree_programs import BAD_WORD, NO_CHILD, TREE, Tree, b, e, encoded, one, w

import pyrelay
from pyrelay.ir.verify import verify
from pyrelay.opt.cse import cse
from pyrelay.opt.inline import inline
from pyrelay.opt.levels import levels


def levelled(program: Any, *args: Any) -> Any:
    before = cse(inline(core(program, *args)))
    module = levels(before)
    verify(module, "infer")
    return before, module


def test_a_level_is_one_product_of_matrices() -> None:
    _, module = levelled(one, e, w, TREE)
    (name,) = (n for n in module.functions if n.endswith(".levels"))
    assert ops_in(module.functions[name].body)["matmul"] == 1
    f = pyrelay.jit(one)
    np.testing.assert_allclose(f(e, w, TREE), one(e, w, TREE), rtol=1e-12)


def repeated(e: Any, w: Any, t: Any) -> Any:
    h = x = e[t.word]
    if t.left is not None:
        h = repeated(e, w, t.left) - repeated(e, w, t.right)
    for k in range(e.shape[0]):
        h = np.tanh(w @ h + k * x)
    return h


def test_a_loop_that_is_the_same_for_all_nodes_runs_once_per_level() -> None:
    def program(e: Any, w: Any, t: Any) -> Any:
        return np.sum(repeated(e, w, t) * b)

    _, module = levelled(program, e, w, TREE)
    (name,) = (n for n in module.functions if n.endswith(".levels"))
    assert ops_in(module.functions[name].body)["matmul"] == 2  # of the leaves, and of a level
    np.testing.assert_allclose(pyrelay.jit(program)(e, w, TREE), program(e, w, TREE), rtol=1e-9)
    pyrelay.check_grads(program, (e, w, TREE), order=1, modes="rev", argnums=0)


def turning(e: Any, w: Any, t: Any) -> Any:
    if t.left is None:
        return e[t.word]
    h = turning(e, w, t.left) + turning(e, w, t.right)
    for _ in range(t.word):
        h = np.tanh(w @ h)
    return h


def count(e: Any, t: Any) -> Any:
    if t.left is None:
        return np.sum(e[t.word])
    return count(e, t.left) + count(e, t.right)


def chain(e: Any, w: Any, t: Any) -> Any:
    if t.left is None:
        return e[t.word]
    return np.tanh(w @ chain(e, w, t.left))


def by_value(e: Any, w: Any, t: Any) -> Any:
    if t.left is None:
        return e[t.word]
    h = by_value(e, w, t.left) + by_value(e, w, t.right)
    return h if h.sum() > 0 else w @ h


def test_numbers_chains_and_recursion_on_values_stay_recursive() -> None:
    full = (e, w, TREE)
    cases = ((count, (e, TREE)), (chain, full), (by_value, full), (turning, full))
    for program, args in cases:
        before, module = levelled(lambda *a, p=program: np.sum(p(*a)), *args)
        assert module is before


@pytest.mark.parametrize(
    "bad",
    [
        BAD_WORD, NO_CHILD, Tree(0, NO_CHILD, BAD_WORD), Tree(0, BAD_WORD, NO_CHILD),
        Tree(0, Tree(-8), NO_CHILD),
    ],
)
def test_what_is_raised_is_what_plain_python_meets_first(bad: Any) -> None:
    with pytest.raises((IndexError, AttributeError)) as plain:
        one(e, w, bad)
    for transformed in (pyrelay.jit(one), pyrelay.grad(one)):
        with pytest.raises(type(plain.value)) as compiled:
            transformed(e, w, bad)
        assert str(plain.value) in str(compiled.value)


@pytest.mark.slow
def test_derivatives_of_the_first_and_second_order() -> None:
    def energy(e: Any, w: Any, t: Any) -> Any:
        return np.sum(encoded(e, w, t) ** 2 * b)

    pyrelay.check_grads(energy, (e, w, TREE), modes="rev", argnums=0)


def test_a_tree_as_deep_as_a_list() -> None:
    deep = Tree(0)
    for k in range(3000):
        deep = Tree(0, deep, Tree(k % 7))
    h = e[0]
    for k in range(3000):
        h = np.tanh(w @ h + e[k % 7])
    np.testing.assert_allclose(pyrelay.jit(encoded)(e, w, deep), h, rtol=1e-9)


def test_a_tree_larger_than_its_pool_because_its_parts_are_shared() -> None:
    t, h = Tree(1), e[1]
    for _ in range(9):
        t, h = Tree(0, t, t), np.tanh(w @ h + h)
    np.testing.assert_allclose(pyrelay.jit(encoded)(e, w, t), h, rtol=1e-9)
