"""What loops push on tapes lies in arrays where the loops become kernels by that."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, lets, ops

import pyrelay
from pyrelay.ir.nodes import KernelCall, Loop, Module, OpCall
from pyrelay.opt.dots import dots
from pyrelay.opt.stacks import stacks
from pyrelay.pipeline import lowered
from tests.infer.running import inferred


def fixed_points(x):
    total = 0.0
    for i in range(len(x)):
        y = 0.0
        while abs(y - math.cos(y) * x[i] * 0.2) > 1e-6:
            y = math.cos(y) * x[i] * 0.2
        total += y * y
    return total


def with_exits(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * x[i]
        if total > 2.0:
            break
        if total < 0.5:
            continue
        total = math.sin(total)
    return total


def by_rows(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i] - np.tanh(y[:i]) @ x[:i]
    return np.sum(y * y)


def of_several_types(x):
    total = np.float32(1.0)
    k = 0
    while k < 3 and total < 50.0:
        for i in range(len(x)):
            if x[i] > total:
                total = np.float32(total + np.float32(x[i]) * total)
                break
        k += 1
        total = total * np.float32(1.25)
    return total


def halves(x):
    s = x[0]
    while s > 1.0:
        if s > 2.0:
            r = math.sqrt(s)
            s = r - 0.01 * r * s
        else:
            s = s * s * 0.3
    return s


X = np.array([0.4, 0.7, 1.9, 0.2, 2.5])
PROGRAMS = (fixed_points, with_exits, by_rows, of_several_types, halves)


def _gradient(function: Callable[..., Any], *args: Any) -> Module:
    return after(lowered(inferred(pyrelay.grad(function), args).module, "optimise"), dots)


@pytest.mark.parametrize("function", PROGRAMS)
def test_gradients_are_the_same_without_a_tape(function: Any) -> None:
    before = _gradient(function, X)
    module = after(before, stacks)
    assert ops(before)["tape_push"]
    assert not ops(module)["tape_push"] + ops(module)["tape_pop"]
    assert_same_runs(before, module, (X,))
    assert_same_runs(before, module, (X * 2.0,))
    assert_same_runs(before, module, (X * 0.0,))


@pytest.mark.parametrize("function", PROGRAMS)
def test_the_loops_become_kernels(function: Any) -> None:
    module = lowered(inferred(pyrelay.grad(function), (X,)).module, "fuse")
    assert not any(isinstance(let.rhs, Loop) for let in lets(module))


@pytest.mark.parametrize("function", PROGRAMS)
def test_compiled_gradients_agree_with_differences(function: Any) -> None:
    got = pyrelay.grad(function)(X.copy())
    for k in range(len(X)):
        h = np.zeros(len(X))
        h[k] = 1e-6 if function is not of_several_types else 1e-3
        difference = (float(function(X + h)) - float(function(X - h))) / (2 * h[k])
        assert got[k] == pytest.approx(difference, rel=1e-2, abs=1e-4)


def test_a_loop_is_counted_first_only_if_its_rounds_have_no_bound() -> None:
    counted, bounded = after(_gradient(fixed_points, X), stacks), after(
        _gradient(with_exits, X), stacks
    )
    assert sum(isinstance(let.rhs, Loop) for let in lets(counted)) == 6
    assert sum(isinstance(let.rhs, Loop) for let in lets(bounded)) == 2


def test_loops_of_work_for_the_plan_keep_their_tape() -> None:
    def scaled(x, a):
        while np.sum(x * x) > 1.0:
            x = np.tanh(a @ x)
        return np.sum(x)

    module = _gradient(scaled, np.ones(17), np.eye(17) * 0.9)
    assert ops(module)["tape_push"]
    assert stacks(module) is module


def test_second_derivatives_of_loops_without_a_count() -> None:
    def root(a):
        x = a
        while abs(x * x - a) > 1e-13:
            x = 0.5 * (x + a / x)
        return x

    second = pyrelay.grad(pyrelay.grad(root))
    assert second(2.0) == pytest.approx(-0.25 * 2.0**-1.5, rel=1e-9)
    assert pyrelay.grad(second)(2.0) == pytest.approx(0.375 * 2.0**-2.5, rel=1e-9)


def test_what_a_loop_raises_is_raised_as_before() -> None:
    def divided(x):
        s = 1.0
        while s < 100.0:
            s = s + 1.0 / (x - s)
        return s

    with pytest.raises(ZeroDivisionError, match="division by zero"):
        pyrelay.grad(divided)(1.0)


def test_kernels_replace_what_the_plan_stepped_through() -> None:
    module = lowered(inferred(pyrelay.grad(fixed_points), (X,)).module, "fuse")
    here = [let for let in module.main.body.lets if isinstance(let.rhs, KernelCall)]
    assert len(here) <= 5
    assert not [
        let for let in lets(module) if isinstance(let.rhs, OpCall) and "tape" in let.rhs.op.name
        and let.rhs.op.name != "tape_new"
    ]
