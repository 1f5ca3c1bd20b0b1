"""Which recursions can be laid out before they run, and what is said of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import core
from tree_programs import TREE, Forest, Tree, b, e, encoded, one, w

from pyrelay.ir.nodes import Function
from pyrelay.opt.call_trees import Cannot, recursion
from pyrelay.opt.cse import cse
from pyrelay.opt.inline import inline, recursive_functions


def recursive(program: Any, *args: Any) -> Function:
    module = cse(inline(core(program, *args)))
    (name,) = recursive_functions(module)
    return module.functions[name]


def test_a_case_is_a_path_and_those_without_calls_come_first() -> None:
    found = recursion(recursive(one, e, w, TREE))
    assert [len(c.calls) for c in found.cases] == [0, 2]
    assert found.leaves == 1
    assert [v.name for v in found.function.params][len(found.state):]
    leaf, node = found.cases
    assert len(leaf.numbers) == 1  # the word
    assert not node.numbers
    assert not any(let.rhs.op.name == "matmul" for let in leaf.work)  # type: ignore[union-attr]


def by_value(e: Any, w: Any, t: Any) -> Any:
    if t.left is None:
        return e[t.word]
    h = by_value(e, w, t.left) + by_value(e, w, t.right)
    return h if h.sum() > 0 else w @ h


def downward(e: Any, c: Any, t: Any) -> Any:
    if t.left is None:
        return e[t.word] * c
    return downward(e, np.tanh(c), t.left) + downward(e, c, t.right)


def in_turn(e: Any, t: Any) -> Any:
    if t.left is None:
        return e[t.word]
    left = in_turn(e, t.left)
    return left if left.sum() > 0 else left + in_turn(e, t.right)


def dividing(e: Any, d: Any, t: Any) -> Any:
    if t.left is None:
        return e[t.word] * (1 / d)
    return dividing(e, d, t.left) + dividing(e, d, t.right)


def children(e: Any, forest: Any) -> Any:
    h = e[0]
    for t in forest.trees:
        h = h + e[t.word]
    return h if forest.rest is None else h + children(e, forest.rest)


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (by_value, (e, w, TREE)), (downward, (e, b, TREE)), (in_turn, (e, TREE)),
        (dividing, (e, 2.0, TREE)), (children, (e, Forest([Tree(1)], Forest([])))),
    ],
)
def test_calls_that_depend_on_results_and_work_that_may_raise_are_not_laid_out(
    program: Any, args: Any
) -> None:
    with pytest.raises(Cannot):
        recursion(recursive(lambda *a: np.sum(program(*a)), *args))


def test_the_function_itself_is_left_alone() -> None:
    function = recursive(lambda e, w, t: encoded(e, w, t), e, w, TREE)
    assert set(recursion(function).function.params).isdisjoint(function.params)
