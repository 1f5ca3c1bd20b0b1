"""Calls of a loop are made before it, and what they raise is raised where it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import core, loops, ops_in
from tree_programs import BAD_WORD, FOREST, NO_CHILD, TREE, Forest, e, encoded, many, w

import pyrelay
from pyrelay.ir.nodes import FnCall
from pyrelay.ir.verify import verify
from pyrelay.opt.cse import cse
from pyrelay.opt.inline import inline
from pyrelay.opt.levels import levels


def levelled(program: Any, *args: Any) -> Any:
    before = cse(inline(core(program, *args)))
    module = levels(before)
    verify(module, "infer")
    return before, module


def calls(module: Any) -> list[str]:
    from pyrelay.ir.walk import nested_lets

    return [
        let.rhs.function for let in nested_lets(module.main.body) if isinstance(let.rhs, FnCall)
    ]


def test_all_trees_of_a_loop_are_one_forest() -> None:
    _, module = levelled(many, e, w, FOREST)
    loop = next(x for x in loops(module) if "multiply" in ops_in(x.body))
    assert ops_in(loop.body)["index"]
    assert sum(".levels" in name for name in calls(module)) == 1
    assert not any(".batched" in name for name in calls(module))


def leaving(e: Any, w: Any, forest: Any) -> Any:
    total = 0.0
    for t in forest.trees:
        total += np.sum(encoded(e, w, t))
        if total > 1.0:
            break
    return total


def feeding_back(e: Any, w: Any, forest: Any) -> Any:
    h = e
    for t in forest.trees:
        h = h + encoded(h, w, t)
    return np.sum(h)


@pytest.mark.parametrize("program", [leaving, feeding_back])
def test_a_loop_that_may_end_early_or_feeds_results_back_calls_one_tree_at_a_time(
    program: Any,
) -> None:
    _, module = levelled(program, e, w, FOREST)
    assert any(".batched" in name for name in calls(module))
    got = pyrelay.jit(program)(e, w, FOREST)
    np.testing.assert_allclose(got, program(e, w, FOREST), rtol=1e-12)


def shouting(e: Any, w: Any, forest: Any) -> Any:
    total = 0.0
    for k, t in enumerate(forest.trees):
        print(k)
        total += np.sum(encoded(e, w, t))
    return total


@pytest.mark.parametrize("bad", [BAD_WORD, NO_CHILD])
def test_what_one_tree_raises_comes_after_the_effects_of_those_before(
    bad: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    forest = Forest([TREE, bad, NO_CHILD])
    with pytest.raises(Exception) as plain:  # noqa: PT011  any exception
        shouting(e, w, forest)
    assert capsys.readouterr().out == "0\n1\n"
    with pytest.raises(type(plain.value)) as compiled:
        pyrelay.jit(shouting)(e, w, forest)
    assert capsys.readouterr().out == "0\n1\n"
    assert str(plain.value) in str(compiled.value)


def test_no_trees() -> None:
    assert pyrelay.jit(many)(e, w, Forest([])) == 0.0
