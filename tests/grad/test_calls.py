"""Reverse mode through recursive functions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pyrelay.ops  # noqa: F401  registers the ops
from pyrelay.grad.expand import expand
from pyrelay.ir import dims, types
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import FnCall, OpCall, Vjp
from pyrelay.ir.types import PY_INT, TensorType
from pyrelay.ir.walk import nested_lets
from tests.grad.checking import (
    F64,
    ONE,
    call,
    check,
    cleaned,
    cotangents,
    derived,
    expanded_orders,
    function,
    op,
    op_names,
    program,
    size,
    vector,
)

RNG = np.random.default_rng(6)


def recursive(base, step, params=(PY_INT, F64), name="f"):
    """`base(b, *args)` where the first argument is below 1, else `step(b, *args)`."""

    def body(b, n, *args):
        (y,) = b.cond(
            b.handle(n) < 1,
            lambda b: [base(b, *map(b.handle, (n, *args)))],
            lambda b: [step(b, *map(b.handle, (n, *args)))],
        )
        return y

    return function(name, params, body)


def test_linear_recursion():
    f = recursive(
        lambda b, n, x: op("sin", x),
        lambda b, n, x: op("tanh", call(b, "f", [n - 1, x * 1.1], [F64])) * x,
    )
    for n in (0, 1, 4):
        check(program(f), [n, np.float64(0.7)])


def test_recursion_like_fibonacci_whose_two_calls_share_one_tape():
    f = recursive(
        lambda b, n, x: op("exp", x * 0.3),
        lambda b, n, x: op("sin", call(b, "f", [n - 1, x * x], [F64]))
        * call(b, "f", [n - 2, op("cos", x)], [F64]),
    )
    check(program(f), [5, np.float64(0.8)], tolerance=1e-5)


def test_double_recursion_over_a_tree_in_arrays():
    tree = TensorType(types.i64, (7,))

    def body(b, node, left, right, weight, x):
        def leaf(b):
            return [op("index", b.handle(weight), node, axes=(0,)) * x]

        def branch(b):
            where = [
                b.handle(b.cast(op("index", b.handle(side), node, axes=(0,)), types.i64, weak=True))
                for side in (left, right)
            ]
            below = [call(b, "f", [w, left, right, weight, x], [F64]) for w in where]
            here = op("index", b.handle(weight), node, axes=(0,))
            return [op("tanh", below[0] * here + below[1]) * op("sin", here)]

        at = op("index", b.handle(left), node, axes=(0,))
        (y,) = b.cond(at < 0, leaf, branch)
        return y

    f = function("f", [PY_INT, tree, tree, vector(7), F64], body)
    args = [0, np.array([1, 3, 5, -1, -1, -1, -1]), np.array([2, 4, 6, -1, -1, -1, -1]),
            RNG.standard_normal(7), np.float64(0.9)]
    module = program(f)
    check(module, args, wrt=[3, 4], tolerance=1e-5)
    for name, found in expand(derived(module, "f", (3, 4), "g")).functions.items():
        full = [
            let.rhs.op.name for let in nested_lets(found.body)
            if isinstance(let.rhs, OpCall) and any(
                isinstance(o.type, TensorType) and o.type.rank for o in let.outs
            )
        ]
        if name.startswith("f.") and name != "f.vjp":
            assert set(full) <= {"index_add"}, "one element of the array's cotangent per call"


def test_mutual_recursion():
    even = recursive(
        lambda b, n, x: x, name="even",
        step=lambda b, n, x: op("sin", call(b, "odd", [n - 1, x * x], [F64])),
    )
    odd = recursive(
        lambda b, n, x: op("exp", x), name="odd",
        step=lambda b, n, x: call(b, "even", [n - 1, x + 0.3], [F64]) * x,
    )
    check(program(even, odd), [5, np.float64(0.4)])


def test_recursion_with_a_loop_inside_and_inside_a_loop():
    def step(b, n, x):
        (y,) = b.counted(n, [b.handle(x)], lambda b, i, v: [op("sin", v[0] * x) * 0.4 + x])
        return call(b, "f", [n - 1, op("tanh", y)], [F64]) * y

    f = recursive(lambda b, n, x: op("exp", x * 0.5), step)

    def body(b, n, x):
        (y,) = b.counted(n, [x], lambda b, i, v: [call(b, "f", [i, v[0]], [F64])])
        return y

    check(program(function("main", [PY_INT, F64], body), f), [3, np.float64(0.6)], tolerance=1e-5)


def test_a_recursive_function_of_arrays_with_a_symbolic_size():
    n = dims.Symbol("n")
    ty = vector(dims.of(n))

    def body(b, k, x, w):
        def step(b):
            y = op("tanh", b.handle(x) * w)
            outs = b.bind(
                FnCall("f", (b.atom(b.handle(k) - 1), y.atom, b.atom(w)), (dims.of(n),)), [F64]
            )
            return [outs[0] * op("sum", y, axes=(0,), keepdims=False)]

        (y,) = b.cond(
            b.handle(k) < 1,
            lambda b: [op("sum", b.handle(x) * x, axes=(0,), keepdims=False)], step,
        )
        return y

    module = program(function("f", [PY_INT, ty, ty], body, (n,)))
    check(module, [3, RNG.standard_normal(4), RNG.standard_normal(4)], tolerance=1e-5)
    pushed = [
        let.rhs.args[1].type
        for f in expand(derived(module, "f", (1, 2), "g")).functions.values()
        for let in nested_lets(f.body)
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "tape_push"
    ]
    assert sum(ty.rank for ty in pushed) == 1, "w does not change along the recursion"


def test_a_recursion_that_updates_an_array_costs_one_element_per_call():
    n = dims.Symbol("n")
    vec = vector(dims.of(n))

    def body(b, k, x):
        def step(b):
            here, last = b.handle(x.atom), b.handle(k.atom)
            left, right = (op("index", here, i, axes=(0,)) for i in (last - 1, last))
            y = op("index_update", here, op("sin", left) * right, last, axes=(0,))
            return b.bind(FnCall("f", (b.atom(last - 1), b.atom(y)), (dims.of(n),)), [vec])

        (y,) = b.cond(b.handle(k) < 1, lambda b: [x], step)
        return y

    def main(b, k, x):
        (y,) = b.bind(FnCall("f", (b.atom(k), b.atom(x)), (dims.of(n),)), [vec])
        return op("sum", y * y, axes=(0,), keepdims=False)

    f = function("f", [PY_INT, vec], body, (n,))
    module = program(function("main", [PY_INT, vec], main, (n,)), f)
    check(module, [4, RNG.standard_normal(5)], orders=2)
    (_, expanded) = expanded_orders(module, 1)
    halves = [f for name, f in expanded.functions.items() if "ward" in name]
    arrays = {
        let.rhs.op.name for f in halves for let in nested_lets(f.body)
        if isinstance(let.rhs, OpCall) for o in let.outs
        if isinstance(o.type, TensorType) and o.type.shape
    }
    assert arrays == {"index_update", "index_add"}


@pytest.mark.parametrize("depth", [2_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_deep_recursion(depth):
    f = recursive(
        lambda b, n, x: x,
        lambda b, n, x: op("sin", call(b, "f", [n - 1, x], [F64])) * 1.0001,
    )
    (g,) = cotangents(program(f), [depth, np.float64(0.5)], wrt=[1])
    x, expected = 0.5, 1.0
    for _ in range(depth):
        expected *= np.cos(x) * 1.0001
        x = np.sin(x) * 1.0001
    np.testing.assert_allclose(g, expected, rtol=1e-9)


def test_a_recursion_that_only_counts_carries_no_derivative():
    count = recursive(
        lambda b, n, x: x, name="count", params=(PY_INT, PY_INT),
        step=lambda b, n, x: call(b, "count", [n - 1, x + 2], [PY_INT]),
    )

    def body(b, n, x):
        k = call(b, "count", [n, b.handle(0)], [PY_INT])
        return x * b.handle(b.cast(k, types.f64)) * x

    module = program(function("main", [PY_INT, F64], body), count)
    check(module, [3, np.float64(0.4)])
    names = op_names(expand(derived(module, "main", (1,), "g")))
    assert "tape_new" not in names


def test_the_program_grows_by_a_bounded_factor_per_order_through_recursion():
    f = recursive(
        lambda b, n, x: op("exp", x * 0.3),
        lambda b, n, x: op("sin", call(b, "f", [n - 1, x * x], [F64]))
        * call(b, "f", [n - 2, op("cos", x)], [F64]),
    )
    sizes = [size(m) for m in expanded_orders(program(f), 3)]
    for before, after in pairwise(sizes):
        assert after < 6 * before + 60, sizes


@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_gradient_that_is_computed_and_not_used_keeps_pushes_and_pops_in_balance(n):
    """Dead code elimination takes what nothing reads, but never a pop."""
    f = recursive(
        lambda b, n, x: op("exp", x * 0.3),
        lambda b, n, x: op("sin", call(b, "f", [n - 1, x * x], [F64])) * x,
    )

    def body(b, n, x):
        value, _ = b.bind(Vjp("f", (n.atom, x.atom), (ONE,), (0,), (1,)), [F64, F64])
        return value * value

    module = program(function("main", [PY_INT, F64], body), f)
    plain = program(
        function("main", [PY_INT, F64], lambda b, n, x: (v := call(b, "f", [n, x], [F64])) * v), f
    )
    args = [n, np.float64(0.7)]
    request = derived(derived(module, "main", (1,), "g"), "g", (1,), "h")
    expected = derived(derived(plain, "main", (1,), "g"), "g", (1,), "h")
    found = interpret(expand(request, cleaned), args)
    np.testing.assert_allclose(found[0], interpret(expand(expected), args)[0], rtol=1e-12)


def test_an_array_that_the_recursion_passes_on_has_one_array_of_cotangents():
    f = recursive(
        lambda b, n, x, w: x,
        lambda b, n, x, w: op(
            "sum",
            op("tanh", w * call(b, "f", [n - 1, x, w], [F64]) * call(b, "f", [n - 2, x, w], [F64])),
            axes=(0,), keepdims=False,
        ),
        (PY_INT, F64, vector(3)),
    )
    check(program(f), [4, np.float64(0.7), np.array([0.3, -0.5, 1.1])], orders=2)
    made = cleaned(expand(derived(program(f), "f", [1, 2], "gradient")))
    (backward,) = (g for name, g in made.functions.items() if ".backward" in name)
    zeros = [
        let for let in nested_lets(backward.body)
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "broadcast_to"
        and let.rhs.args[0].type.rank == 0 and getattr(let.rhs.args[0], "value", None) == 0
    ]
    assert not zeros
