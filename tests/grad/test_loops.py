"""Reverse mode through loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import pyrelay.ops  # noqa: F401  registers the ops
from pyrelay.grad.expand import expand
from pyrelay.ir import dims, types
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import FnCall, Loop, OpCall, Var, Vjp
from pyrelay.ir.types import PY_INT, TensorType
from pyrelay.ir.walk import nested_lets
from pyrelay.ops import logic
from tests.grad.checking import (
    F64,
    ONE,
    check,
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

RNG = np.random.default_rng(5)


def while_loop(b, init, test, body, handed=(), exits=False, count=None):
    """A loop with a test; `test` returns (condition, handed...), `body` the next values."""
    carried = tuple(Var("c", b.atom(a).type) for a in init)
    passed = tuple(Var("h", ty) for ty in handed)
    index = Var("i", PY_INT)
    inner = b.nested()
    values = [inner.handle(v) for v in carried]
    tested = None
    if test is not None:
        tested = inner.block(test(inner, *values))
    inner = b.nested()
    arguments = [inner.handle(v) for v in carried + passed]
    following = inner.block(body(inner, inner.handle(index), *arguments))
    node = Loop(
        carried, tuple(b.atom(a) for a in init), following, tested, passed, exits=exits,
        index=index, count=None if count is None else b.atom(count),
    )
    return b.bind(node, [v.type for v in carried])


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_counted_loop_of_scalars(n):
    def body(b, n, x, y):
        a, c = b.counted(
            n, [x, y], lambda b, i, v: [op("sin", v[0] * v[1]) + x, v[0] * op("exp", v[1] * 0.3)]
        )
        return a * c

    module = program(function("f", [PY_INT, F64, F64], body))
    check(module, [n, np.float64(0.7), np.float64(0.4)])


def test_a_counted_loop_over_the_rows_of_a_sequence():
    n, m = dims.Symbol("n"), dims.Symbol("m")

    def body(b, xs, w):
        count = b.extent(dims.of(n))
        h0 = b.zeros(vector(dims.of(m)))

        def step(b, i, v):
            row = op("index", b.handle(xs), i, axes=(0,))
            return [op("tanh", row + v[0] * w)]

        (h,) = b.counted(count, [h0], step)
        return op("sum", h * h, axes=(0,), keepdims=False)

    f = function("f", [matrix(dims.of(n), dims.of(m)), vector(dims.of(m))], body, (n, m))
    check(program(f), [RNG.standard_normal((4, 3)), RNG.standard_normal(3)])


@pytest.mark.parametrize("length", [0, 1, 4])
def test_a_loop_over_all_but_the_first_of_a_sequence(length):
    n = dims.Symbol("n")

    def body(b, xs, w):
        def step(b, i, v):
            return [op("tanh", op("index", b.handle(xs), i, axes=(0,)) + v[0] * w)]

        (h,) = b.counted(b.extent(dims.of(n) - 1), [w], step)
        return h * h

    f = function("f", [vector(dims.of(n)), F64], body, (n,))
    check(program(f), [RNG.standard_normal(length), np.float64(0.4)])


def test_nested_counted_loops_with_an_inner_count_that_varies():
    def body(b, n, x):
        def outer(b, i, v):
            def inner(b, j, u):
                return [op("sin", u[0] * x) + u[0]]

            (y,) = b.counted(i, [v[0]], inner)
            return [y * 0.9]

        (y,) = b.counted(n, [x], outer)
        return y

    check(program(function("f", [PY_INT, F64], body)), [4, np.float64(0.6)], tolerance=1e-5)


def test_nested_counted_loops_with_an_inner_count_from_outside_keep_arrays():
    def body(b, n, m, x):
        def outer(b, i, v):
            (y,) = b.counted(m, [v[0]], lambda b, j, u: [op("sin", u[0] * x) + u[0]])
            return [y * 0.9]

        (y,) = b.counted(n, [x], outer)
        return y

    module = program(function("f", [PY_INT, PY_INT, F64], body))
    check(module, [3, 2, np.float64(0.6)], tolerance=1e-5)
    assert "tape_push" not in op_names(expand(derived(module, "f", (2,), "g")))


def newton(b, target, x):
    (y,) = while_loop(
        b, [x],
        lambda b, y: [op("absolute", y * y - target) > 1e-3],
        lambda b, i, y: [(y + b.handle(target) / y) * 0.5],
    )
    return y


def test_a_while_loop_whose_length_depends_on_data():
    module = program(function("f", [F64, F64], newton))
    check(module, [np.float64(2.0), np.float64(1.0)], tolerance=1e-4)


def test_a_test_that_hands_a_value_to_the_body():
    def body(b, target, x):
        (y,) = while_loop(
            b, [x],
            lambda b, y: [op("absolute", (r := op("exp", y) * y - target)) > 1e-2, r],
            lambda b, i, y, r: [y - op("tanh", r) * 0.3],
            handed=[F64],
        )
        return y * y

    module = program(function("f", [F64, F64], body))
    check(module, [np.float64(2.0), np.float64(0.5)], tolerance=1e-4)


def test_a_test_with_a_loop_of_its_own_that_hands_a_value_to_the_body():
    def body(b, target, x):
        def test(b, y):
            (r,) = while_loop(
                b, [y], lambda b, z: [z < 3.0], lambda b, i, z: [z * 1.5 + op("sin", z) * 0.1]
            )
            return [r - y * 2.0 > target, r]

        (y,) = while_loop(b, [x], test, lambda b, i, y, r: [y + r * 0.1], handed=[F64])
        return y * y

    module = program(function("f", [F64, F64], body))
    check(module, [np.float64(0.5), np.float64(0.5)], tolerance=1e-4)


def test_a_loop_that_leaves_early():
    def body(b, n, x):
        def step(b, i, y):
            following = op("sin", y) * 1.5 + x * 0.2
            return [following > 1.2, following]

        (y,) = while_loop(b, [x], None, step, exits=True, count=n)
        return y * y

    module = program(function("f", [PY_INT, F64], body))
    check(module, [10, np.float64(0.4)])
    check(module, [2, np.float64(0.4)])


def test_a_while_loop_inside_a_counted_loop_inside_a_branch():
    def body(b, n, x):
        def step(b, i, v):
            (y,) = while_loop(
                b, [v[0]], lambda b, y: [y < 2.0], lambda b, i, y: [y * 1.3 + op("sin", y * x)]
            )
            return [y * 0.4]

        (y,) = b.cond(
            b.handle(n) > 1, lambda b: b.counted(n, [x], step), lambda b: [b.handle(x)]
        )
        return y * y

    module = program(function("f", [PY_INT, F64], body))
    check(module, [3, np.float64(0.7)], tolerance=1e-4)
    check(module, [0, np.float64(0.7)])


def test_a_branch_inside_a_while_loop():
    def body(b, x):
        def step(b, i, y):
            return b.cond(
                b.call(logic.greater, op("sin", y * 3.0), 0.0),
                lambda b: [op("exp", b.handle(y) * 0.2)],
                lambda b: [b.handle(y) * y + x],
            )

        (y,) = while_loop(b, [x], None, step, count=b.handle(5))
        (y,) = while_loop(b, [y], lambda b, y: [y < 8.0], step)
        return y

    check(program(function("f", [F64], body)), [np.float64(1.3)], tolerance=1e-4)


def test_replacing_the_elements_of_an_array_in_a_loop_costs_one_element_each():
    n = dims.Symbol("n")

    def body(b, x):
        def step(b, i, v):
            following = i + 1
            left = op("index", v[0], i, axes=(0,))
            right = op("index", v[0], following, axes=(0,))
            return [op("index_update", v[0], op("sin", left) * right, following, axes=(0,))]

        (y,) = b.counted(b.extent(dims.add(dims.of(n), -1)), [x], step)
        return op("sum", y * y, axes=(0,), keepdims=False)

    module = program(function("f", [vector(dims.of(n))], body, (n,)))
    check(module, [RNG.standard_normal(6)])
    for expanded in expanded_orders(module, 2)[1:]:
        assert arrays_in_loops(expanded) == {"index_update", "index_add"}


def test_reading_elements_of_an_outer_array_in_a_loop_costs_one_element_each():
    n = dims.Symbol("n")

    def body(b, x):
        (y,) = b.counted(
            b.extent(dims.of(n)), [b.handle(np.float64(1.0))],
            lambda b, i, v: [v[0] + op("sin", op("index", b.handle(x), i, axes=(0,)))],
        )
        return y * y

    module = program(function("f", [vector(dims.of(n))], body, (n,)))
    check(module, [RNG.standard_normal(5)])
    for expanded in expanded_orders(module, 2)[1:]:
        assert arrays_in_loops(expanded) <= {"index_update", "index_add"}


def test_elements_read_on_one_branch_in_a_loop_are_saved_and_not_the_array():
    n = dims.Symbol("n")

    def body(b, x):
        def step(b, i, v):
            left = op("index", v[0], i, axes=(0,))
            after = (i + 1).atom

            def scaled(b):
                here = b.handle(v[0].atom)
                right = op("index", here, after, axes=(0,))
                new = op("sin", b.handle(left.atom)) * right
                return [op("index_update", here, new, after, axes=(0,))]

            def squared(b):
                here = b.handle(v[0].atom)
                right = op("index", here, after, axes=(0,))
                return [op("index_update", here, right * right, after, axes=(0,))]

            return b.cond(left > 0.1, scaled, squared)

        (y,) = b.counted(b.extent(dims.add(dims.of(n), -1)), [x], step)
        return op("sum", y * y, axes=(0,), keepdims=False)

    module = program(function("f", [vector(dims.of(n))], body, (n,)))
    check(module, [RNG.standard_normal(6)])
    for expanded in expanded_orders(module, 2)[1:]:
        assert arrays_in_loops(expanded) == {"index_update", "index_add"}


def test_a_short_inner_loop_that_reads_an_updated_array_saves_elements_and_not_the_array():
    n = dims.Symbol("n")

    def body(b, x, k):
        def step(b, i, v):
            def add(b, j, w):
                element = op("index", b.handle(v[0].atom), b.handle(i.atom) + j, axes=(0,))
                return [w[0] + op("square", element)]

            (total,) = b.counted(k.atom, [b.handle(np.float64(0.0))], add)
            place = i + k.atom
            return [op("index_update", v[0], op("sin", total), place, axes=(0,))]

        (y,) = b.counted(b.extent(dims.add(dims.of(n), -2)), [x], step)
        return op("sum", y * y, axes=(0,), keepdims=False)

    module = program(function("f", [vector(dims.of(n)), PY_INT], body, (n,)))
    check(module, [RNG.standard_normal(6), 2], orders=2)
    (_, expanded) = expanded_orders(module, 1)
    saved = [
        v.type.shape for f in expanded.functions.values() for let in nested_lets(f.body)
        if isinstance(let.rhs, Loop) for v in let.rhs.carried if v.name == "rows"
    ]
    assert saved
    assert not any(len(shape) == 2 and shape[1] == dims.of(n) for shape in saved)


def arrays_in_loops(module):
    """The ops inside loops whose results are arrays."""
    return {
        let.rhs.op.name
        for f in module.functions.values() for outer in nested_lets(f.body)
        if isinstance(outer.rhs, Loop) for let in nested_lets(outer.rhs.body)
        if isinstance(let.rhs, OpCall) and any(o.type.shape for o in let.outs)
    }


def test_an_array_that_grows_from_one_iteration_to_the_next():
    def body(b, k, x):
        size, final = dims.Symbol("s", dims.Origin.RUNTIME), dims.Symbol("t", dims.Origin.RUNTIME)
        carried = Var("c", vector(dims.of(size)))
        inner = b.nested()
        y = inner.handle(carried)
        y = op("concatenate", op("sin", y), y * x, axis=0)
        node = Loop(
            (carried,), (b.full(x, (1,), types.f64).atom,),
            inner.block([y], [dims.multiply(2, dims.of(size))]), count=b.atom(k),
            dims=(size,), init_dims=(1,),
        )
        (y,) = b.bind(node, [vector(dims.of(final))], dims=(final,))
        return op("sum", y * y, axes=(0,), keepdims=False)

    check(program(function("f", [PY_INT, F64], body)), [3, np.float64(0.6)])


def test_what_is_the_same_in_every_iteration_is_not_saved():
    def body(b, n, x, w):
        def step(b, i, v):
            return [v[0] * op("exp", b.handle(w)) + op("tanh", b.handle(w) * w)]

        (y,) = b.counted(n, [x], step)
        return y

    module = program(function("f", [PY_INT, F64, F64], body))
    check(module, [4, np.float64(0.3), np.float64(0.2)])
    names = op_names(expand(derived(module, "f", (1, 2), "g")))
    assert names.count("undef") == 1, "only the carried value is kept"


def test_a_recurrent_network_with_matrix_products():
    t, batch, k, h = (dims.Symbol(c) for c in "tbkh")

    def body(b, xs, w, u, bias):
        state = b.zeros(matrix(dims.of(batch), dims.of(h)))
        flags = {"transpose_a": False, "transpose_b": False}

        def step(b, i, v):
            row = op("index", b.handle(xs), i, axes=(0,))
            z = op("matmul", row, w, **flags) + op("matmul", v[0], u, **flags) + bias
            gate = op("sigmoid", z)
            hidden = gate * op("tanh", v[1] + z)
            return [hidden, v[1] * gate + hidden]

        y, c = b.counted(b.extent(dims.of(t)), [state, state], step)
        return op("sum", y * c, axes=(0, 1), keepdims=False)

    f = function(
        "f", [TensorType(types.f64, tuple(map(dims.of, (t, batch, k)))),
              matrix(dims.of(k), dims.of(h)), matrix(dims.of(h), dims.of(h)), vector(dims.of(h))],
        body, (t, batch, k, h),
    )
    args = [RNG.standard_normal(s) * 0.5 for s in [(3, 2, 4), (4, 3), (3, 3), (3,)]]
    check(program(f), args, tolerance=1e-5)
    inside = [
        let.rhs.op.name for outer in nested_lets(expand(derived(program(f), "f", (1, 2, 3), "g"))
                                                 .functions["f.vjp"].body)
        if isinstance(outer.rhs, Loop) for let in nested_lets(outer.rhs.body)
        if isinstance(let.rhs, OpCall)
    ]
    assert inside.count("matmul") == 3, "two forward, one backward; the gradients come after"
    assert "sum" not in inside, "so does the bias's"


def test_what_a_bias_is_added_to_may_be_a_sum_of_equal_terms_of_equal_terms():
    batch, h = (dims.Symbol(c) for c in "bh")

    def body(b, w, bias):
        def step(b, i, v):
            z = v[0]
            for _ in range(64):
                z = z + z
            return [op("tanh", z + bias)]

        (y,) = b.counted(2, [b.handle(w)], step)
        return op("sum", y, axes=(0, 1), keepdims=False)

    f = function("f", [matrix(dims.of(batch), dims.of(h)), vector(dims.of(h))], body, (batch, h))
    expanded = expand(derived(program(f), "f", (0, 1), "g"))
    inside = [
        let.rhs.op.name for each in expanded.functions.values() for outer in nested_lets(each.body)
        if isinstance(outer.rhs, Loop) for let in nested_lets(outer.rhs.body)
        if isinstance(let.rhs, OpCall)
    ]
    assert inside.count("sum") == 1, "no product's rows are written down with those of the bias"


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_matrix_multiplied_in_every_iteration(transpose_a, transpose_b, columns):
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}

    def body(b, n, x, left, right):
        def step(b, i, v):
            y = op("tanh", op("matmul", b.handle(left), v[0], **flags))
            z = op("sin", op("matmul", v[0], b.handle(right), **flags))
            if transpose_b:
                y = op("transpose", y, axes=(1, 0))
            if transpose_a:
                z = op("transpose", z, axes=(1, 0))
            return [y * 0.5 + z]

        (y,) = b.counted(n, [x], step)
        return op("sum", y * y, axes=(0, 1), keepdims=False)

    # left acts on the rows of a (3, columns) state, right on its columns, as the flags say
    state = (3, columns)
    inner = 3 if not transpose_b else columns
    other = columns if not transpose_a else 3
    args = [3, *(RNG.standard_normal(s) * 0.5 for s in (state, (inner, inner), (other, other)))]
    types_of = [matrix(*a.shape) for a in args[1:]]
    check(program(function("f", [PY_INT, *types_of], body)), args, orders=2, tolerance=1e-5)


def test_a_matrix_multiplied_in_two_nested_loops():
    flags = {"transpose_a": False, "transpose_b": False}

    def body(b, n, x, w):
        def outer(b, i, v):
            (y,) = b.counted(
                2, [v[0]], lambda b, j, u: [op("tanh", op("matmul", u[0], b.handle(w), **flags))]
            )
            return [y + op("matmul", v[0], b.handle(w), **flags)]

        (y,) = b.counted(n, [x], outer)
        return op("sum", y * y, axes=(0, 1), keepdims=False)

    args = [3, RNG.standard_normal((1, 3)), RNG.standard_normal((3, 3)) * 0.5]
    check(program(function("f", [PY_INT, matrix(1, 3), matrix(3, 3)], body)), args, orders=2,
          tolerance=1e-5)


def test_the_program_grows_by_a_bounded_factor_per_order_through_a_loop():
    sizes = [size(m) for m in expanded_orders(program(function("f", [F64, F64], newton)), 3)]
    for before, after in pairwise(sizes):
        assert after < 6 * before + 60, sizes


def test_a_loop_that_exchanges_its_values():
    def body(b, n, x, y):
        p, q = b.counted(n, [x, y], lambda b, i, v: [v[1], op("sin", v[0]) * v[1]])
        return p + q * q

    module = program(function("f", [PY_INT, F64, F64], body))
    check(module, [4, np.float64(0.7), np.float64(1.2)])


def test_a_loop_with_a_negative_count_does_nothing():
    def body(b, n, x):
        (y,) = b.counted(n, [op("exp", x)], lambda b, i, v: [op("sin", v[0])])
        return y * y

    check(program(function("f", [PY_INT, F64], body)), [-3, np.float64(0.7)])


def test_a_loop_that_gives_the_same_outer_value_twice():
    def body(b, n, x):
        p, q = b.counted(n, [x, x], lambda b, i, v: [b.handle(x), b.handle(x) * v[0]])
        return p * q

    check(program(function("f", [PY_INT, F64], body)), [2, np.float64(0.7)])


def test_derivatives_asked_for_inside_a_loop():
    """A few steps of gradient descent, differentiated by the start and by the step."""
    inner = function(
        "loss", [vector(3), F64],
        lambda b, w, a: op("sum", op("sin", w * a) * w, axes=(0,), keepdims=False),
    )

    def body(b, n, w, a, rate):
        def step(b, i, v):
            vjp = Vjp("loss", (v[0].atom, b.atom(a)), (ONE,), (0,), (0,))
            _, g = b.bind(vjp, [F64, vector(3)])
            return [v[0] - g * rate]

        (w,) = b.counted(n, [w], step)
        (end,) = b.bind(FnCall("loss", (w.atom, b.atom(a))), [F64])
        return end

    f = function("f", [PY_INT, vector(3), F64, F64], body)
    args = [3, RNG.standard_normal(3), np.float64(0.8), np.float64(0.1)]
    check(program(f, inner), args, orders=2, tolerance=1e-5)


def test_mixed_second_derivatives():
    f = function(
        "f", [F64, F64],
        lambda b, x, y: b.counted(3, [x], lambda b, i, v: [op("sin", v[0] * y) + y])[0],
    )
    first = derived(program(f), "f", (0,), "fx")
    second = derived(first, "fx", (1,), "fxy")
    other = derived(derived(program(f), "f", (1,), "fy"), "fy", (0,), "fyx")
    args = [np.float64(0.4), np.float64(1.1)]
    one, two = (interpret(expand(m), args)[1] for m in (second, other))
    np.testing.assert_allclose(one, two, rtol=1e-12)


def test_a_long_program_is_reversed_in_linear_time_and_without_recursion():
    def body(b, x):
        y = x
        for _ in range(3000):
            y = op("sin", y) + x
        return y

    module = expand(derived(program(function("f", [F64], body)), "f", (0,), "g"))
    assert size(module) < 40_000
