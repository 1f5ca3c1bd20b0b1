"""Reverse mode through branches."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay.ops
from pyrelay.grad.expand import expand
from pyrelay.ir import dims, types
from pyrelay.ir.build import constant
from pyrelay.ir.nodes import If
from pyrelay.ir.types import PY_INT
from pyrelay.ir.walk import nested_lets
from tests.grad.checking import (
    F64,
    check,
    derived,
    function,
    op,
    program,
    vector,
)

RNG = np.random.default_rng(4)


@pytest.mark.parametrize("x", [0.8, -0.8])
def test_the_taken_branch_alone_is_differentiated(x):
    def body(b, x):
        (y,) = b.cond(
            x > 0.0,
            lambda b: [op("sin", b.handle(x)) * x],
            lambda b: [op("exp", b.handle(x)) + op("exp", op("sin", b.handle(x)))],
        )
        return y * y

    check(program(function("f", [F64], body)), [np.float64(x)])


@pytest.mark.parametrize("x", [0.8, -0.8])
def test_a_branch_may_use_outer_values_and_give_them_back_unchanged(x):
    def body(b, x, w):
        s = op("sin", x)
        y, z = b.cond(
            x > 0.0,
            lambda b: [b.handle(s), op("sum", b.handle(w) * x, axes=(0,), keepdims=False)],
            lambda b: [b.handle(s) * s, b.handle(x)],
        )
        return y * z + s

    module = program(function("f", [F64, vector(3)], body))
    check(module, [np.float64(x), RNG.standard_normal(3)])


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_nested_branches_keep_what_each_needs(n):
    def body(b, k, x):
        def inner(b):
            y = op("tanh", b.handle(x))
            return b.cond(
                b.call(pyrelay.ops.logic.equal, k, 1),
                lambda b: [op("exp", b.handle(y))],
                lambda b: [op("sin", b.handle(y)) * y],
            )

        (y,) = b.cond(b.handle(k) < 2, inner, lambda b: b.cond(
            b.handle(k) < 3, lambda b: [op("cos", b.handle(x))], lambda b: [b.handle(x)],
        ))
        return y * y

    module = program(function("f", [PY_INT, F64], body))
    check(module, [n, np.float64(0.6)])


def test_residuals_of_the_two_branches_share_their_outputs():
    def body(b, x):
        (y,) = b.cond(
            x > 0.0,
            lambda b: [op("exp", op("sin", b.handle(x)))],
            lambda b: [op("tanh", op("cos", b.handle(x)))],
        )
        return y

    module = expand(derived(program(function("f", [F64], body)), "f", (0,), "g"))
    first = next(
        let for f in module.functions.values() for let in nested_lets(f.body)
        if isinstance(let.rhs, If)
    )
    assert len(first.outs) <= 3


@pytest.mark.parametrize("n", [1, 4])
def test_a_branch_may_find_the_size_of_what_it_computes(n):
    def body(b, k, x):
        def long(b):
            _, (m,) = b.call(pyrelay.ops.program.as_extent, k)
            y = b.full(b.handle(x), (m,), types.f64)
            count = b.call(pyrelay.ops.index.iota, size=m, dtype=types.f64)
            return [op("sum", op("sin", y * count + 0.3), axes=(0,), keepdims=False)]

        (y,) = b.cond(b.handle(k) > 2, long, lambda b: [b.handle(x) * x])
        return y

    module = program(function("f", [PY_INT, F64], body))
    check(module, [n, np.float64(0.6)])


@pytest.mark.parametrize("n", [1, 4])
def test_a_branch_may_give_an_array_of_its_own_size(n):

    def body(b, k, x):
        symbol = dims.Symbol("s", dims.Origin.RUNTIME)
        arms = []
        for plus in (1, 3):
            inner = b.nested()
            _, (m,) = inner.call(pyrelay.ops.program.as_extent, k)
            y = inner.full(op("exp", inner.handle(x)), (dims.add(m, plus),), types.f64)
            arms.append(inner.block([op("sin", y)], [dims.add(m, plus)]))
        (y,) = b.bind(
            If(b.atom(b.handle(k) > 2), *arms), [vector(dims.of(symbol))], dims=(symbol,)
        )
        return op("sum", y * y, axes=(0,), keepdims=False)

    check(program(function("f", [PY_INT, F64], body)), [n, np.float64(0.6)])


def test_an_array_read_in_one_branch_has_its_cotangent_updated_in_place():
    def body(b, k, x):
        total = op("sum", x, axes=(0,), keepdims=False)
        (y,) = b.cond(
            b.handle(k) > 2,
            lambda b: [op("index", b.handle(x), 1, axes=(0,)) * 3.0],
            lambda b: [b.handle(constant(np.float64(1.0)))],
        )
        return y * total

    module = program(function("f", [PY_INT, vector(4)], body))
    check(module, [3, RNG.standard_normal(4)])
    check(module, [1, RNG.standard_normal(4)])
