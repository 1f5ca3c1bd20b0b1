"""Loops that append to lists are kernels between one growth of the lists and the next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, lets

import pyrelay
from pyrelay.ir.nodes import If, KernelCall, Loop, Module
from pyrelay.opt.rooms import rooms
from pyrelay.pipeline import lowered
from tests.infer.running import inferred


def chosen(x):
    found = []
    for v in x:
        if v > 0.0:
            found.append(v * 2.0)
    return np.array(found)


def left(x):
    found, places = [], []
    for i, v in enumerate(x):
        if v > 4.0:
            break
        if v < 0.0:
            continue
        found.append(v)
        places.append(i)
        places.append(-i)
    return len(places), np.array(found)


def stack(x):
    """The largest rectangle under a row of bars."""
    waiting, best = [], 0.0
    for i in range(len(x) + 1):
        height = abs(x[i]) if i < len(x) else 0.0
        while waiting and abs(x[waiting[-1]]) >= height:
            top = waiting.pop()
            best = max(best, abs(x[top]) * (i - waiting[-1] - 1 if waiting else i))
        waiting.append(i)
    return best


def queue(x):
    """Steps from place to place."""
    n = len(x)
    steps = np.full(n, -1)
    steps[0] = 0
    waiting = [0]
    k = 0
    while k < len(waiting):
        here = waiting[k]
        k += 1
        for j in range(n):
            if steps[j] < 0 and abs(x[j] - x[here]) < 1.2:
                steps[j] = steps[here] + 1
                waiting.append(j)
    return steps, k


def pairs(x):
    found = []
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] > 1.0:
                found.append((x[i], j))
    return sum(a + b for a, b in found)


def windows(x):
    found = []
    for i in range(len(x) - 2):
        if x[i] > 0.0:
            found.append(x[i : i + 3] * 2.0)
    return len(found), sum(w[0] + w[2] for w in found)


def keyed(x):
    """Numbers in order of their first appearance, and those that came once."""
    places, once = {}, set()
    out = np.zeros(len(x), dtype=int)
    for i in range(len(x)):
        key = int(x[i] * 20.0)
        if key not in places:
            places[key] = len(places)
            once.add(key)
        elif key in once:
            once.remove(key)
        out[i] = places[key]
    return out, len(once)


def pairs_of(x):
    """How often rounds of a known number and rounds by the length of an array meet each key."""
    counts = {}
    for i in range(len(x)):
        for step in (1, 2):
            key = (int(x[i] * 4.0), step)
            counts[key] = counts.get(key, 0) + 1
        for j in range(len(x)):
            if j < i % 3:
                counts[i, j] = i
    return len(counts), sum(k * c for k, (key, c) in enumerate(counts.items()))


def grouped(x):
    """Lists in a list, which become longer, and shorter."""
    groups = [[] for _ in range(7)]
    taken = 0
    for i in range(len(x)):
        group = int(abs(x[i]) * 20.0) % 7
        if len(groups[group]) > 5:
            taken += groups[group].pop()
        groups[group].append(i)
        for k in range(2):
            groups[(group + k) % 7].append(-i)
    return taken, [len(g) for g in groups], groups[0]


def neighbours(x):
    """Lists by key."""
    near = defaultdict(list)
    for i in range(len(x)):
        a, b = int(x[i] * 4.0), int(x[i - 1] * 4.0)
        near[a].append(b)
        near[b].append(a)
    return sum(k * v for u in near for k, v in enumerate(near[u])), len(near)


def machine(x):
    """What texts in a list say is done to a stack and to a dict."""
    code = [("push", 3), ("add", 0), ("store", 1), ("again", 2), ("load", 1), ("drop", 0)]
    stack, memory, at = [1, 2], {1: 0}, 0
    for v in x:
        op, arg = code[at % len(code)]
        at += 1
        if op == "push":
            stack.append(arg + int(v))
        elif op == "add":
            stack.append(stack.pop() + stack.pop())
        elif op == "store":
            memory[arg + at % 9] = stack[-1]
        elif op == "load":
            stack.append(memory[arg])
        elif op == "again" and v > 0.0:
            at += arg
    return sum(stack), len(memory)


def recent(x):
    """How often one of the last five keys is met again."""
    kept, met = {}, 0
    for v in x:
        key = int(v * 4.0)
        if key in kept:
            kept[key] = kept.pop(key) + 1
            met += 1
        else:
            kept[key] = 0
            if len(kept) > 5:
                del kept[next(iter(kept))]
    return met, list(kept)


X = np.sin(np.arange(1.0, 90.0) * 1.7) * 2.5
PROGRAMS = (
    chosen, left, stack, queue, pairs, keyed, pairs_of, grouped, neighbours, machine, recent,
)


def _before(function: Callable[..., Any], *args: Any) -> Module:
    return lowered(inferred(function, args).module, "optimise")


def _appending(module: Module) -> list[Loop]:
    return [let.rhs for let in lets(module) if isinstance(let.rhs, Loop) and let.rhs.dims]


@pytest.mark.parametrize("function", [*PROGRAMS, windows])
def test_programs_do_the_same_in_parts(function: Any) -> None:
    before = _before(function, X)
    module = after(before, rooms)
    for x in (X[:12], X[:1], X[:5] * 0.0):
        assert_same_runs(before, module, (x,))


@pytest.mark.parametrize("function", PROGRAMS)
def test_the_plan_steps_through_growths_only(function: Any) -> None:
    module = lowered(inferred(function, (X,)).module, "fuse")
    for loop in _appending(module):
        rounds = [each.rhs for each in loop.body.lets if isinstance(each.rhs, Loop)]
        assert all(each.dims for each in rounds)  # those that make tables larger
        assert any(isinstance(each.rhs, KernelCall) for each in loop.body.lets)
        for each in loop.body.lets:  # branches make room, and do nothing else
            if isinstance(each.rhs, If):
                inner = [let for b in (each.rhs.then, each.rhs.orelse) for let in b.lets]
                assert not any(isinstance(let.rhs, (If, Loop)) for let in inner)
    kernels = [let.rhs for let in lets(module) if isinstance(let.rhs, KernelCall)]
    inside = [let for k in kernels for let in lets(Module({"": k.function}, ""))]
    assert any(isinstance(let.rhs, Loop) for let in inside)


@pytest.mark.parametrize("function", PROGRAMS)
def test_compiled_programs_do_what_python_does(function: Any) -> None:
    compiled = pyrelay.jit(function)
    for x in (X, X * 3.0, X[:2]):
        got, wanted = compiled(x.copy()), function(x.copy())
        parts = [r if isinstance(r, tuple) else (r,) for r in (got, wanted)]
        for a, b in zip(*parts, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_loops_that_append_who_knows_how_much_stay_with_the_plan() -> None:
    def halved(x):
        found = []
        for v in x:
            while v > 0.1:
                v *= 0.5
                found.append(v)
        return np.array(found)

    module = after(_before(halved, X), rooms)
    (outer,) = [loop for loop in _appending(module) if loop.count is not None]
    assert any(isinstance(let.rhs, Loop) for let in outer.body.lets)  # the `while` is in parts
    assert_same_runs(_before(halved, X), module, (X[:5],))


def doublings(x, most):
    """How often each number is doubled before it is 4."""
    found = []
    for v in x:
        for k in range(most):
            if v >= 4.0:
                break
            found.append(k)
            v = 2.0 * v + 1.0
    return len(found), sum(found)


@pytest.mark.parametrize("most", [2**62, 10**18])
def test_rounds_that_end_long_before_their_count_ask_for_no_room(most: int) -> None:
    def known(x):
        return doublings(x, most)

    values = np.abs(X[:30])
    assert pyrelay.jit(known)(values) == known(values)


def test_more_room_than_there_is_raises_before_anything_is_written() -> None:
    compiled = pyrelay.jit(doublings)
    assert compiled(np.abs(X), 12) == doublings(np.abs(X), 12)
    with pytest.raises(MemoryError):
        compiled(np.abs(X), 2**63 - 1)


def test_what_a_round_raises_is_raised_after_the_same_rounds() -> None:
    def beyond(x, seen):
        found = []
        for i in range(200):
            seen[0] = i
            found.append(x[i])
        return len(found)

    seen = np.zeros(1)
    with pytest.raises(IndexError, match="index 89 is out of bounds for axis 0 with size 89"):
        pyrelay.jit(beyond)(X, seen)
    assert seen[0] == 89


def test_tables_without_a_bound_on_what_a_round_enters_grow_in_it() -> None:
    def halved(x, most):
        found = {}
        for v in x:
            for k in range(most):  # the room for so many would be written
                if v < 0.1:
                    break
                v *= 0.5
                found[k] = v
        return len(found)

    module = after(_before(halved, X, 2**40), rooms)
    (outer,) = [loop for loop in _appending(module) if loop.index is not None]
    assert any(isinstance(let.rhs, Loop) for let in outer.body.lets)
    assert pyrelay.jit(halved)(X, 2**40) == halved(X, 2**40)


def test_lists_in_lists_that_are_emptied_become_no_longer_by_that() -> None:
    def emptied(x):
        waiting = [[0] * 2 for _ in range(4)]
        most = 0
        for _ in range(6):
            for i in range(len(x)):
                waiting[i % 4].append(i)
            most = max(most, len(waiting[1]))
            for k in range(4):
                waiting[k] = []
        return most, [len(w) for w in waiting]

    assert pyrelay.jit(emptied)(X) == emptied(X)
