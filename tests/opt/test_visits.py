"""Loops over parts of arrays that append have as many rounds as the arrays have places."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, lets

import pyrelay
from pyrelay.ir.nodes import KernelCall, Loop, Module
from pyrelay.ir.walk import nested_lets
from pyrelay.opt.rooms import rooms
from pyrelay.pipeline import lowered
from tests.infer.running import inferred

RNG = np.random.default_rng(3)
STARTS = np.concatenate([[0], np.cumsum(RNG.integers(0, 5, 40))])
TARGETS = RNG.integers(0, 40, STARTS[-1])
WEIGHTS = RNG.random(STARTS[-1])


def steps(starts, targets):
    """Steps from the first node, by a queue."""
    found = np.full(len(starts) - 1, -1)
    found[0] = 0
    waiting = [0]
    at = 0
    while at < len(waiting):
        node = waiting[at]
        at += 1
        for k in range(starts[node], starts[node + 1]):
            if found[targets[k]] < 0:
                found[targets[k]] = found[node] + 1
                waiting.append(targets[k])
    return found, at


def stack(starts, targets):
    """Nodes in the order of their last visit, by a stack and a `while` over neighbours."""
    seen = np.zeros(len(starts) - 1, dtype=np.bool_)
    waiting, order = [0], []
    while waiting:
        node = waiting.pop()
        if seen[node]:
            continue
        seen[node] = True
        order.append(node)
        k = starts[node + 1] - 1
        while k >= starts[node]:
            waiting.append(targets[k])
            waiting.append(targets[k])
            k -= 1
    return np.array(order)


def paths(starts, targets, weights):
    """Lengths of the shortest paths from the first node, by a heap."""
    found = np.full(len(starts) - 1, np.inf)
    found[0] = 0.0
    heap = [(0.0, 0)]
    while heap:
        far, node = heapq.heappop(heap)
        if far > found[node]:
            continue
        for k in range(starts[node], starts[node + 1]):
            further = far + weights[k]
            if further < found[targets[k]]:
                found[targets[k]] = further
                heapq.heappush(heap, (further, targets[k]))
    return found


def both_ends(bounds, targets):
    """Every element twice: places count from either end."""
    found = []
    for i in range(len(bounds) - 1):
        for k in range(bounds[i], bounds[i + 1]):
            found.append(targets[k] + i)
    return np.array(found)


GRAPH = {n: TARGETS[STARTS[n] : STARTS[n + 1]].tolist() for n in range(40)}


def steps_in_a_dict(graph):
    """Steps from the first node, by a queue, of a dict of lists."""
    found = {0: 0}
    waiting = deque([0])
    while waiting:
        node = waiting.popleft()
        for near in graph[node]:
            if near not in found:
                found[near] = found[node] + 1
                waiting.append(near)
    return np.array([found[node] for node in found])


TURNS = np.array([-len(TARGETS), len(TARGETS), 0, 0, 3])
PROGRAMS = (
    (steps, (STARTS, TARGETS)), (stack, (STARTS, TARGETS)), (paths, (STARTS, TARGETS, WEIGHTS)),
    (both_ends, (TURNS, TARGETS)),
)  # fmt: skip


def _appending(module: Module) -> list[Loop]:
    return [let.rhs for let in lets(module) if isinstance(let.rhs, Loop) and let.rhs.dims]


@pytest.mark.parametrize(("function", "args"), PROGRAMS)
def test_loops_that_append_for_each_neighbour_are_kernels(
    function: Callable[..., Any], args: Any
) -> None:
    module = lowered(inferred(function, args).module, "fuse")
    for loop in _appending(module):
        assert not [each for each in loop.body.lets if isinstance(each.rhs, Loop)]
        assert any(isinstance(each.rhs, KernelCall) for each in loop.body.lets)


@pytest.mark.parametrize(("function", "args"), PROGRAMS)
def test_compiled_programs_do_what_python_does(function: Callable[..., Any], args: Any) -> None:
    before = lowered(inferred(function, args).module, "optimise")
    assert_same_runs(before, after(before, rooms), args)
    got, wanted = pyrelay.jit(function)(*args), function(*args)
    parts = [r if isinstance(r, tuple) else (r,) for r in (got, wanted)]
    for a, b in zip(*parts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_loop_over_lists_of_a_dict_is_parted_with_the_loop_over_its_items() -> None:
    module = after(lowered(inferred(steps_in_a_dict, (GRAPH,)).module, "optimise"), rooms)
    parted = [loop for loop in _appending(module) if loop.carried[-1].name == "again"]
    inside = {
        let.rhs for loop in _appending(module) for let in nested_lets(loop.body)
        if isinstance(let.rhs, Loop)
    }
    assert [loop for loop in parted if loop not in inside and len(loop.dims) > 4]
    assert not [loop for loop in parted if loop in inside]
    compiled = pyrelay.jit(steps_in_a_dict)
    np.testing.assert_array_equal(compiled(GRAPH), steps_in_a_dict(GRAPH))


def test_a_round_beyond_the_array_raises_after_the_same_rounds() -> None:
    def beyond(bounds, x, seen):
        found = []
        for i in range(len(bounds) - 1):
            for k in range(bounds[i], bounds[i + 1]):
                seen[0] += 1
                found.append(k)
                seen[1] += x[k]
        return len(found)

    bounds, x = np.array([0, 3, 2, 10**15]), np.arange(7)
    seen = [np.zeros(2, dtype=np.int64) for _ in range(2)]
    for function, each in zip((beyond, pyrelay.jit(beyond)), seen, strict=True):
        with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 7"):
            function(bounds, x, each)
    np.testing.assert_array_equal(*seen)


def test_an_array_that_grows_bounds_nothing() -> None:
    def own_items(n):
        found = [3]
        for i in range(n):
            for k in range(found[i]):
                found.append(found[k] - 1)
        return len(found), sum(found)

    before = lowered(inferred(own_items, (3,)).module, "optimise")
    assert_same_runs(before, after(before, rooms), (3,))
    for n in (0, 1, 3):
        assert pyrelay.jit(own_items)(n) == own_items(n)
