"""What nobody needs goes: Lets, branch results, carried values, functions; effects stay."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from core_programs import single
from passes import after, assert_same_runs, core, lets, loops, ops, run

from pyrelay.ir.nodes import If
from pyrelay.ir.types import PY_FLOAT
from pyrelay.opt.dce import dce
from pyrelay.opt.inline import inline

X = np.arange(4.0)


def _swept(function: Any, *args: Any) -> Any:
    before = core(function, *args)
    module = after(before, dce)
    assert_same_runs(before, module, args)
    return module


def test_unread_computations_go_with_all_that_only_they_read() -> None:
    def program(x: Any) -> Any:
        unread = np.exp(np.tanh(x))
        unread = unread @ unread
        return x + 1.0

    assert ops(_swept(program, X)) == {"add": 1}


def test_what_may_raise_stays_though_nobody_reads_it() -> None:
    def program(x: Any, i: Any, d: Any) -> Any:
        x[i]
        1 // d
        x + 1.0
        return x

    module = _swept(program, X, 2, 1)
    assert ops(module)["check_index"] == 1
    assert ops(module)["floor_divide"] == 1
    assert not ops(module)["add"]
    assert not ops(module)["index"]
    assert isinstance(run(module, (X, 9, 1)), IndexError)
    assert isinstance(run(module, (X, 0, 0)), ZeroDivisionError)


def test_carried_values_nobody_reads_go_even_if_they_read_themselves() -> None:
    def program(x: Any, n: Any) -> Any:
        a, dead, other = x, 0.0, 1.0
        for i in range(n):
            dead = dead + other
            other = other * 2.0 + dead
            a = a + i
        return a

    (loop,) = loops(_swept(program, 1.0, 4))
    assert len(loop.carried) == 1


def test_a_carried_value_that_decides_when_the_loop_ends_stays() -> None:
    def program(x: Any) -> Any:
        steps, dead = 0, 0.0
        while x < 100.0:
            x = x * 3.0
            steps += 1
            dead += x
        return steps

    (loop,) = loops(_swept(program, 1.0))
    assert len(loop.carried) == 2


def test_what_a_test_hands_over_goes_if_the_body_does_not_read_it() -> None:
    def program(x: Any) -> Any:
        total = 0.0
        while np.sum(y := np.exp(x)) + np.sum(z := np.sin(x)) > 8.0:
            total += np.sum(y)
            _unread = np.cos(z)
            x = x * 0.5
        return x, total

    (loop,) = loops(_swept(program, X))
    assert len(loop.handed) == 1


def test_branch_results_nobody_reads_go_and_their_effects_stay() -> None:
    def program(x: Any, n: Any) -> Any:
        if n > 1:
            _unread, z = np.exp(x), 10 // n
        else:
            _unread, z = x, 10 // (n - 1)
        return z

    module = _swept(program, X, 3)
    (node,) = (let.rhs for let in lets(module) if isinstance(let.rhs, If))
    assert len(node.then.results) == 1
    assert not ops(module)["exp"]
    assert isinstance(run(module, (X, 1)), ZeroDivisionError)


def test_a_loop_that_only_computes_goes_and_one_that_may_raise_stays() -> None:
    def computes(x: Any, n: Any) -> Any:
        total = 0.0
        for _ in range(n):
            total = total + x
        return x

    def raises(x: Any, n: Any) -> Any:
        for i in range(n):
            1 // (3 - i)
        return x

    assert not ops(_swept(computes, 1.0, 2))["loop"]
    module = _swept(raises, 1.0, 2)
    assert ops(module)["loop"] == 1
    assert isinstance(run(module, (1.0, 9)), ZeroDivisionError)


def test_functions_that_nobody_calls_any_more_go() -> None:
    def helper(n: Any) -> Any:
        return n if n < 1 else helper(n - 1)

    def program(x: Any, n: Any) -> Any:
        helper(n)
        return x

    before = core(program, 1.0, 3)
    assert len(before.functions) > 1
    module = after(before, inline, dce)
    if ops(module)["call"]:  # the call may raise: n - 1 can leave 64 bits
        assert len(module.functions) == 2
    else:
        assert set(module.functions) == {module.entry}


def test_extents_that_results_need_keep_what_binds_them() -> None:
    def program(x: Any, n: Any) -> Any:
        return x[:n] + 1.0, len(x[n:])

    module = _swept(program, X, 2)
    assert ops(module)["slice"] == 1


def test_a_long_program_is_swept_in_linear_time() -> None:
    def body(b: Any, x: Any) -> Any:
        dead = x
        for _ in range(5_000):
            x = x * 1.5
            dead = dead + x
        return [x]

    module = single("f", {"x": PY_FLOAT}, body)
    started = time.process_time()
    small = dce(module)
    assert time.process_time() - started < 0.75
    assert ops(small) == {"multiply": 5_000}
