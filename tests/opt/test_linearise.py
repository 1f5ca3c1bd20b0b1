"""The calls of a recursion, in the order in which they can be computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from passes import core

from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Module, Var
from pyrelay.ir.types import TensorType
from pyrelay.ir.verify import verify
from pyrelay.opt.call_trees import recursion
from pyrelay.opt.cse import cse
from pyrelay.opt.inline import inline, recursive_functions
from pyrelay.opt.linearise import Lineariser

e = np.arange(12.0).reshape(6, 2)


def summed(left: Any, right: Any, e: Any, n: Any) -> Any:
    if left[n] < 0:
        return e[right[n]]
    return summed(left, right, e, left[n]) + summed(left, right, e, right[n])


def linear(left: list[int], right: list[int], roots: list[int]) -> list[Any]:
    """fine, order, place, first, groups, levels of the calls for these nodes."""
    columns = np.array(left), np.array(right)
    module = cse(inline(core(lambda *a: np.sum(summed(*a)), *columns, e, np.int64(0))))
    (name,) = recursive_functions(module)
    found = recursion(module.functions[name])
    n = Symbol("n")
    start = Var("p", TensorType(types.i64, (dims.of(n),)))
    builder = Builder()
    made = Lineariser(found, builder).run([builder.handle(start)])
    results = [made.fine, made.order, made.place, made.first, made.groups, made.levels]
    shared = [p for k, p in enumerate(found.function.params) if k not in found.state]
    dimensions = (n, *found.function.dims)
    function = Function("f", (start, *shared), builder.block(results), dimensions)
    verify(Module({"f": function}, "f"), "optimise")
    return list(interpret(Module({"f": function}, "f"), [np.array(roots), *columns, e]))


#: ((word 4, word 1), word 2), rows 4, 3 and 0, 1, 2.
LEFT, RIGHT = [-1, -1, -1, 0, 3], [4, 1, 2, 1, 2]


def test_every_call_comes_after_those_it_makes() -> None:
    fine, order, place, first, groups, levels = linear(LEFT, RIGHT, [4])
    assert fine
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert list(order[place]) == [0, 1, 2, 3, 4]
    assert levels == 2
    assert list(groups) == [0, 3, 3, 4, 5]  # three leaves, none with calls as deep, one, the first
    for call in order[3:]:
        assert place[first[call]] < place[call]
        assert place[first[call] + 1] < place[call]


def test_a_shared_node_is_called_as_often_as_plain_python_calls_it() -> None:
    fine, order, *_ = linear([-1, -1, 0, 2], [4, 1, 1, 2], [3])
    assert fine
    assert len(order) == 7


def test_more_calls_than_the_arrays_have_room_for() -> None:
    depth = 8
    left = [-1, *range(depth)]
    fine, order, *_ = linear(left, [1, *range(depth)], [depth])
    assert fine
    assert len(order) == 2 ** (depth + 1) - 1


def test_several_first_calls() -> None:
    fine, order, place, *_ = linear(LEFT, RIGHT, [0, 3, 4, 4])
    assert fine
    assert len(order) == len(place) == 1 + 3 + 5 + 5


def test_where_a_call_fails_there_is_nothing_to_compute() -> None:
    fine, _, place, _, groups, levels = linear(LEFT, [4, 99, 2, 1, 2], [4])
    assert not fine
    assert len(place) == 1
    assert not groups.any()
    assert levels == 0


def test_a_recursion_without_end_is_not_fine(monkeypatch: Any) -> None:
    monkeypatch.setattr("pyrelay.opt.linearise._MOST_CALLS", 100)
    fine, *_ = linear([0], [0], [0])
    assert not fine
