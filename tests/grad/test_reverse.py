"""Reverse mode over straight-line code."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pyrelay.ops  # noqa: F401  registers the ops
from pyrelay.errors import GradientError
from pyrelay.grad.expand import expand
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Function, Module, Var, Vjp
from pyrelay.ir.types import PY_FLOAT, PY_INT, TensorType
from tests.grad.checking import (
    F64,
    ONE,
    check,
    cotangents,
    derived,
    expanded_orders,
    function,
    matrix,
    op,
    op_names,
    program,
    size,
    vector,
)

RNG = np.random.default_rng(3)


def test_a_product_of_functions_has_its_derivatives_to_order_three():
    f = function("f", [F64], lambda b, x: op("sin", x) * op("exp", x) + x * x * x)
    check(program(f), [np.float64(0.4)])


def test_a_broadcast_operand_gets_the_sum_over_the_axes_it_was_broadcast_along():
    n, m = dims.Symbol("n"), dims.Symbol("m")

    def body(b, x, row, column, scalar):
        y = op("tanh", x * row + column) * scalar + row
        return op("sum", y * y, axes=(0, 1), keepdims=False)

    f = function(
        "f", [matrix(dims.of(n), dims.of(m)), vector(dims.of(m)),
              matrix(dims.of(n), 1), F64], body, (n, m),
    )
    args = [RNG.standard_normal(s) for s in [(3, 4), (4,), (3, 1), ()]]
    args[3] = np.float64(args[3])
    check(program(f), args)


def test_a_cotangent_has_the_dtype_of_its_argument():
    def body(b, x, y):
        z = x * b.handle(b.cast(y, types.f64))
        return op("sum", z * z, axes=(0,), keepdims=False)

    f = function("f", [TensorType(types.f64, (3,)), TensorType(types.f32, (3,))], body)
    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.5, -1.0], np.float32)
    gx, gy = cotangents(program(f), [x, y])
    assert (gx.dtype, gy.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(gx, 2 * x * y**2)
    np.testing.assert_allclose(gy, 2 * x**2 * y, rtol=1e-6)


def test_a_python_float_gets_a_python_float_and_division_by_zero_does_not_raise_in_the_gradient():
    f = function("f", [PY_FLOAT], lambda b, x: b.handle(b.cast(op("sqrt", x), types.f64)))
    module = expand(derived(program(f), "f", (0,), "g"))
    from pyrelay.ir.interp import interpret

    value, g = interpret(module, [0.0])
    assert value == np.inf
    assert type(g) is float
    assert g == np.inf


def test_values_that_do_not_reach_the_result_cost_nothing_in_the_backward_pass():
    def body(b, x):
        op("exp", op("sin", x))
        return x * x

    names = op_names(expand(derived(program(function("f", [F64], body)), "f", (0,), "g")))
    assert names.count("cos") == 0


def test_an_argument_without_influence_gets_zeros():
    f = function(
        "f", [vector(3), vector(2)], lambda b, x, y: op("sum", x, axes=(0,), keepdims=False)
    )
    _, g = cotangents(program(f), [np.ones(3), np.ones(2)])
    np.testing.assert_array_equal(g, np.zeros(2))


def test_integer_results_stop_the_derivative_silently():
    def body(b, x):
        steps = b.handle(b.cast(x * 4.0, types.i64))
        return x * b.handle(b.cast(steps, types.f64))

    assert cotangents(program(function("f", [F64], body)), [np.float64(1.3)])[0] == 5.0


def test_the_derivative_with_respect_to_an_integer_is_refused():
    f = function("f", [PY_INT, F64], lambda b, n, x: x * x)
    module = program(f)
    request = Vjp("f", (Var("n", PY_INT), Var("x", F64)), (ONE,), (0,), (0,))
    builder = Builder()
    params = request.args
    outs = builder.bind(request, [F64, PY_INT])
    entry = Function("g", params, builder.block(outs))
    with pytest.raises(GradientError, match="only floating arguments"):
        expand(Module({**module.functions, "g": entry}, "g"))


def test_a_function_that_asks_for_its_own_derivative_is_refused():
    builder, x = Builder(), Var("x", F64)
    _, g = builder.bind(Vjp("f", (x,), (ONE,), (0,), (0,)), [F64, F64])
    f = Function("f", (x,), builder.block((g,)))
    with pytest.raises(GradientError, match="its own derivative"):
        expand(Module({"f": f}, "f"))


def test_the_real_argument_of_a_complex_computation_gets_a_real_cotangent():
    def body(b, x):
        z = b.handle(b.cast(x, types.c128)) * np.complex128(1 + 2j)
        w = z * z
        return op("real", w) + op("imag", w)

    check(program(function("f", [F64], body)), [np.float64(0.7)])


def test_elements_and_slices_update_one_accumulator():
    def body(b, x):
        parts = [op("index", x, k, axes=(0,)) for k in range(6)]
        total = parts[0]
        for part in parts[1:]:
            total = total * part + op("sin", part)
        tail = op("slice", x, starts=(1,), sizes=(3,), steps=(2,))
        return total + op("sum", tail * tail, axes=(0,), keepdims=False)

    module = program(function("f", [vector(6)], body))
    check(module, [RNG.standard_normal(6)])
    names = op_names(expand(derived(module, "f", (0,), "g")))
    assert names.count("index_add") == 6
    assert names.count("slice_add") == 1


def test_replacing_elements_hides_the_old_ones():
    def body(b, x, v):
        y = op("index_update", x, v * v, 1, axes=(0,))
        y = op("index_update", y, op("index", y, 0, axes=(0,)) * v, 2, axes=(0,))
        return op("sum", y * y * y, axes=(0,), keepdims=False)

    check(program(function("f", [vector(4), F64], body)), [RNG.standard_normal(4), np.float64(0.8)])


def test_calls_of_functions_that_do_not_recurse_are_inlined():
    from tests.grad.checking import call

    square = function("square", [F64], lambda b, x: x * x)
    quartic = function(
        "quartic", [F64], lambda b, x: call(b, "square", [call(b, "square", [x], [F64])], [F64])
    )
    f = function("f", [F64], lambda b, x: call(b, "quartic", [op("sin", x)], [F64]) * x)
    check(program(f, square, quartic), [np.float64(0.9)])


def test_the_program_grows_by_a_bounded_factor_per_order():
    def body(b, x, w):
        y = x
        for _ in range(5):
            y = op("tanh", y * w)
        return op("sum", y * y, axes=(0,), keepdims=False)

    sizes = [
        size(m) for m in expanded_orders(program(function("f", [vector(3), vector(3)], body)), 3)
    ]
    for before, after in pairwise(sizes):
        assert after < 6 * before + 60, sizes
