"""Equal computations appear once, where one dominates the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from core_programs import PROGRAMS
from passes import after, assert_same_runs, core, lets, loops, ops, ops_in

from pyrelay.ir.nodes import FnCall
from pyrelay.opt.cse import cse
from tests.infer.running import inferred

X = np.linspace(-1, 2, 4)


def _merged(function: Any, *args: Any) -> Any:
    before = core(function, *args)
    module = after(before, cse)
    assert_same_runs(before, module, args)
    return module


def test_what_is_computed_twice_is_computed_once() -> None:
    def program(x: Any) -> Any:
        return np.tanh(x) * np.exp(np.tanh(x)) + np.exp(np.tanh(x))

    assert ops(_merged(program, X)) == {"tanh": 1, "exp": 1, "multiply": 1, "add": 1}


def test_chains_merge_because_their_operands_did() -> None:
    def program(x: Any, y: Any) -> Any:
        return np.sqrt(np.abs(x - y)) + np.sqrt(np.abs(x - y)), np.abs(x - y)

    assert ops(_merged(program, X, X[::-1].copy()))["absolute"] == 1


def test_attributes_and_constants_tell_computations_apart() -> None:
    def program(a: Any) -> Any:
        return np.sum(a, axis=0), np.sum(a, axis=1), a * 0.0, a * -0.0, a * 1, a * True

    counts = ops(_merged(program, np.ones((2, 2))))
    assert counts["sum"] == 2
    assert counts["multiply"] == 3  # 1 and True are the same number after the cast


def test_a_branch_uses_what_stands_before_it_and_shares_nothing_with_its_sibling() -> None:
    def program(x: Any, n: Any) -> Any:
        y = np.tanh(x)
        y = y + np.tanh(x) * np.exp(x) if n > 1 else y - np.exp(x)
        return y + np.exp(x)

    counts = ops(_merged(program, X, 2))
    assert counts["tanh"] == 1
    assert counts["exp"] == 3


def test_a_loop_uses_what_stands_before_it() -> None:
    def program(x: Any, n: Any) -> Any:
        total = np.tanh(x)
        for i in range(n):
            total = total * np.tanh(x) + i
        return total

    module = _merged(program, X, 3)
    assert ops(module)["tanh"] == 1
    assert not ops_in(loops(module)[0].body)["tanh"]


def test_an_op_that_may_raise_is_merged_with_the_one_before_it() -> None:
    def program(a: Any, b: Any) -> Any:
        return a // b + a // b

    module = after(core(program, 7, 2), cse)
    assert ops(module)["floor_divide"] == 1
    assert_same_runs(core(program, 7, 2), module, (7, 0))


def test_placeholders_extents_that_are_bound_and_tapes_are_not_merged() -> None:
    for name in ("tape_of_everything", "tape_through_recursion", "results_with_their_own_extents"):
        made = PROGRAMS[name]()
        module = after(made.module, cse)
        for each in ("tape_push", "tape_pop", "tape_new", "as_extent", "undef"):
            assert ops(module)[each] == ops(made.module)[each]


def test_a_key_is_sought_once_as_long_as_nothing_changes() -> None:
    def program(text: Any) -> Any:
        counts = {}
        for c in text:
            if c in counts:
                counts[c] += 1
            else:
                counts[c] = 1
        return len(counts)

    def searches(module: Any) -> int:
        found = [let.rhs for let in lets(module) if isinstance(let.rhs, FnCall)]
        return sum(call.function.startswith("place_of") for call in found)

    before = inferred(program, ("a text of more than sixteen",)).module
    module = after(before, cse)
    assert (searches(before), searches(module)) == (6, 3)
