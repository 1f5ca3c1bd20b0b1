"""The time to infer grows with the program, not with its nesting."""

from __future__ import annotations

import contextlib
import linecache
import time
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import errors
from pyrelay.frontend.parse import parse
from pyrelay.infer import layout, specialisation
from pyrelay.infer.attempt import Attempt
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.specialise import specialise
from pyrelay.ir import types
from pyrelay.ir.types import TensorType


def defined(source: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function `f` of a source text."""
    lines = source.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "generated.py", (len(source), None, lines, "generated.py"))
    namespace: dict[str, Any] = {"np": np}
    exec(compile(source, "generated.py", "exec"), namespace)
    return namespace["f"]


def seconds(function: Any, *args: Any) -> float:
    """Processor time that inference takes."""
    started = time.process_time()
    specialise(function, args, {}, parse)
    return time.process_time() - started


def test_four_hundred_statements_take_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [f"    a{k} = x * {k}.0 + {f'a{k - 1}' if k else 'x'}" for k in range(400)]
    function = defined("def f(x):\n" + "\n".join(steps) + "\n    return a399\n", monkeypatch)
    assert seconds(function, np.ones(3)) < 3.0


def test_six_nested_loops_take_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["def f(x, n):", "    s = 0", "    m = 0.0", "    y = np.zeros(n)"]
    lines += ["    " * (k + 1) + f"for i{k} in range(n):" for k in range(6)]
    inside = ("s = s + x[i0]", "y[i1] = y[i0] + s", "if s > m:", "    m = s")
    lines += ["    " * 7 + text for text in inside]
    function = defined("\n".join([*lines, "    return s, y, m", ""]), monkeypatch)
    assert seconds(function, np.ones(3), 3) < 3.0


def test_six_nested_loops_that_swap_arrays_take_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["def f(u, v, n):"] + ["    " * (k + 1) + f"for i{k} in range(n):" for k in range(6)]
    for depth in range(7, 1, -1):
        lines += ["    " * depth + text for text in ("v[1:] = u[:-1] * 0.5", "u, v = v, u")]
    function = defined("\n".join([*lines, "    return u, v", ""]), monkeypatch)
    assert seconds(function, np.ones(5), np.ones(5), 3) < 3.0


def interpreted(function: Any, *args: Any) -> int:
    """How many statements inference interprets, each as often as it is looked at, until it ends or
    refuses the program."""
    count = 0
    step = Interpreter.step

    def counted(it: Interpreter, let: Any) -> None:
        nonlocal count
        count += 1
        step(it, let)

    with pytest.MonkeyPatch.context() as patched, contextlib.suppress(errors.PyrelayError):
        patched.setattr(Interpreter, "step", counted)
        specialise(function, args, {}, parse)
    return count


def nested(depth: int, begun: str, inside: str) -> str:
    """Loops in loops: at each depth `begun` before the loop, `inside` at the end of its body."""
    lines = ["def f(m):", "    s = 0.0"]
    for k in range(depth):
        lines += ["    " * (k + 1) + text for text in (begun.format(k), f"for i{k} in range(m):")]
    lines.append("    " * (depth + 1) + "s += 1.0")
    for k in reversed(range(depth)):
        lines += ["    " * (k + 2) + line for line in inside.format(k).splitlines()]
    return "\n".join([*lines, "    return s", ""])


@pytest.mark.parametrize(("begun", "inside"), [
    pytest.param("b{0} = None", "if b{0} is None or s < b{0}:\n    b{0} = s", id="None at first"),
    pytest.param("b{0} = []", "b{0}.append(s)", id="lists that grow"),
])
def test_what_inner_loops_carry_is_found_once(
    begun: str, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    three, six = (
        interpreted(defined(nested(depth, begun, inside), monkeypatch), 2) for depth in (3, 6)
    )
    assert six < 4 * three  # it was more than 8 times as many


def test_generators_in_loops_are_looked_at_as_often_as_their_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = """def walk(n, depth):
    if depth == 0:
        yield 1.0
    else:
        for i in range(n):
            for s in walk(n, depth - 1):
                yield s + i
def f(n):
    count = 0
    for s in walk(n, {}):
        if s > 2:
            count += 1
    return count
"""
    three, six = (interpreted(defined(source.format(k), monkeypatch), 2) for k in (3, 6))
    assert six < 4 * three


def stores(count: int) -> str:
    """So many keys of the program's put into a dict, one after another."""
    lines = [f"    d[int(m[{k}])] = d.get(int(m[{k}]), 0) + {k}" for k in range(count)]
    return "\n".join(["def f(m):", "    d = {}", *lines, "    return d", ""])


def draws(count: int) -> str:
    """So many numbers drawn, one after another."""
    lines = ["import random", "def f(m):", "    random.seed(m)"]
    return "\n".join([*lines, f"    return [{'random.randrange(3 + m), ' * count}]", ""])


def samples(count: int) -> str:
    """So many numbers of a distribution that is made of others, by what reads tables."""
    lines = ["def f(m):", "    rng = np.random.default_rng(m)"]
    return "\n".join([*lines, f"    return [{'rng.beta(m, 2.5), ' * count}]", ""])


@pytest.mark.parametrize(("source", "argument", "most"), [
    pytest.param(stores, np.arange(20) % 5, 100, id="look up and store"),
    pytest.param(draws, 3, 20, id="draw"),
    pytest.param(samples, 3, 60, id="sample"),
])
def test_what_a_table_and_a_generator_do_is_inferred_once(
    source: Any, argument: Any, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    four, eight = (
        interpreted(defined(source(count), monkeypatch), argument) for count in (4, 8)
    )
    assert eight - four <= 4 * most  # in line some 220 statements for each store


def in_dicts(count: int) -> str:
    """So many entries of dicts that are values of a dict, stored and looked up one by one."""
    at = "d[int(m[{0}])]"
    lines = [f"    {at}[k] = {at}.get(int(m[{{0}}]), 0.0) + 1".format(k) for k in range(count)]
    start = ["from collections import defaultdict", "def f(m, k):", "    d = defaultdict(dict)"]
    return "\n".join([*start, *lines, "    return sum(len(e) for e in d.values())", ""])


def test_what_a_table_in_a_table_does_is_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    two, four = (
        interpreted(defined(in_dicts(count), monkeypatch), np.arange(9) % 5, 3)
        for count in (2, 4)
    )
    assert four - two <= 2 * 350  # some 470 for each store where both were in line


class Linked:
    """A node with a set of those before it."""

    def __init__(self, x: float, before: Any = ()) -> None:
        self.x = x
        self.before = set(before)


def reached(last: Linked) -> float:
    todo, total = [last], 0.0
    while todo:
        node = todo.pop()
        total += node.x
        for other in node.before:
            todo.append(other)
    return total


def two_linked(m: float) -> float:
    a, b = Linked(m), Linked(m)
    a, b = b, Linked(a.x + b.x, (a, b))
    return reached(Linked(a.x + b.x, (a, b)))


def four_linked(m: float) -> float:
    a, b = Linked(m), Linked(m)
    a, b = b, Linked(a.x + b.x, (a, b))
    a, b = b, Linked(a.x + b.x, (a, b))
    a, b = b, Linked(a.x + b.x, (a, b))
    return reached(Linked(a.x + b.x, (a, b)))


def test_sets_of_nodes_are_not_tried_as_functions_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bodies, interpret = 0, specialisation.interpret_function

    def counted(*given: Any) -> Any:
        nonlocal bodies
        bodies += 1
        return interpret(*given)

    def looked_at(function: Any) -> int:
        nonlocal bodies
        bodies = 0
        specialise(function, (1.5,), {}, parse)
        return bodies

    monkeypatch.setattr(specialisation, "interpret_function", counted)
    assert looked_at(two_linked) == looked_at(four_linked)  # it was one more for each look-up


def test_a_program_that_loses_writes_is_not_made_again_in_other_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = """import random
def f(weights, n):
    random.seed(n)
    total = 0.0
    for _ in range(n):
        left = set(range(len(weights))) - {n}
        while left:
            near = sorted(left)
            shares = [1.0 / weights[j] for j in near]
            goal = random.random() * sum(shares)
            chosen = near[-1]
            for j, share in zip(near, shares):
                goal -= share
                if goal <= 0:
                    chosen = j
                    break
            total += weights[chosen]
            left.remove(chosen)
    return total
"""
    attempts = 0
    run = Attempt.run

    def counted(attempt: Attempt, *args: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return run(attempt, *args)

    monkeypatch.setattr(Attempt, "run", counted)
    specialise(defined(source, monkeypatch), (np.array([1.0, 2.0, 4.0]), 2), {}, parse)
    assert attempts <= 3, attempts  # with tables, with what it raises; some twelve more before


def test_loops_over_combinations_are_looked_at_once_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = """import itertools
def f(x):
    best = {}
    for size in range(1, len(x)):
        for chosen in itertools.combinations(range(len(x)), size):
            for k in chosen:
                best[(size, k)] = best.get((size, k), 0.0) + x[k]
    return sum(best.values())
"""
    four, eight = (
        interpreted(defined(source, monkeypatch), np.linspace(1.0, 2.0, n)) for n in (4, 8)
    )
    assert eight < four + 100  # each of 254 was looked at


def test_a_chain_of_more_calls_than_are_written_in_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["def g0(x):", "    return x + 1.0"]
    for k in range(1, 260):
        lines += [f"def g{k}(x):", f"    return g{k - 1}(x) + 1.0"]
    function = defined("\n".join([*lines, "def f(x):", "    return g259(x)", ""]), monkeypatch)
    assert pyrelay.jit(function)(1.0) == function(1.0) == 261.0


def test_a_generator_that_lengthens_a_list_of_the_callers_is_refused_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["def walk(n, found):", "    found.append(n)", "    yield n", "    if n > 1:"]
    lines += ["        yield from walk(n // 2, found)", "def f(n):", "    found = []"]
    lines += ["    return list(walk(n, found)), found", ""]
    function = defined("\n".join(lines), monkeypatch)
    with pytest.raises(pyrelay.PyrelayError, match="changes objects"):
        specialise(function, (9,), {}, parse)
    assert interpreted(function, 9) < 3000


def dicts_in_dicts(depth: int) -> str:
    """A loop that makes anew what a name means, and what is in that, and in that."""
    first, read = "0.0", "d"
    for _ in range(depth):
        first, read = f"{{'in': {first}}}", f"{read}['in']"
    made = f"{read} + 1.0"
    for _ in range(depth):
        made = f"{{'in': {made}}}"
    lines = ["def f(m):", f"    d = {first}", "    for i in range(m):", f"        d = {made}"]
    return "\n".join([*lines, f"    return {read}", ""])


def test_one_pass_finds_the_objects_that_a_loop_makes_anew_at_all_depths(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    three, six = (interpreted(defined(dicts_in_dicts(k), monkeypatch), 2) for k in (3, 6))
    assert six < 2 * three  # it was one pass for each level: almost three times as many


def test_lists_of_other_lengths_are_not_joined_to_tell_that_a_function_will_not_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A network that takes its layers from a list has one more function for each length."""
    def joined(*_: Any) -> Any:
        raise AssertionError("they are joined")

    def given(*counts: int) -> list[layout.Layout]:
        items = layout.LPlace(0, "array", None, TensorType(types.f64, (3,)))
        return [
            layout.LPlace(1, "list", None, layout.LNode(("items", n), (items,) * n)) for n in counts
        ]

    it: Any = None
    monkeypatch.setattr(specialisation, "_widened", joined)
    assert not specialisation.would_do(it, given(2, 3), given(2, 4))
    grown = layout.LPlace(1, "list", None, layout.LGrown(layout.LScalar(types.PY_INT), 8))
    assert not specialisation.would_do(it, given(2), [grown])
    monkeypatch.setattr(specialisation, "_widened", lambda it, old, new: new)
    assert specialisation.would_do(it, given(2, 3), given(2, 3))
