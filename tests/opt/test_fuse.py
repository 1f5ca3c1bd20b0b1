"""Which Lets become one kernel, and that fused programs mean the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import pyrelay.ops
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.nodes import Loop, Var
from pyrelay.ir.types import PY_FLOAT, TensorType, f32, i64
from pyrelay.opt.fuse import fuse
from pyrelay.pipeline import lowered
from tests.opt.fusing import Body, M, N, array, floats, fused, kernels, m, n, op, program


def test_an_elementwise_chain_is_one_kernel() -> None:
    module = program(
        [array(n), array(n)], lambda b, x, w: op("tanh")(x * w + 1) * op("exp")(-(x * x)), [N]
    )
    assert len(fused(module, [floats(9), floats(9)])) == 1


def test_the_elementwise_part_of_an_lstm_cell_is_one_kernel_with_two_results() -> None:
    def cell(b: Builder, z: Any, c: Any) -> Any:
        def gate(k: int) -> Any:
            return b.call(op("slice"), z, starts=(0, 8 * k), sizes=(n, 8), steps=(1, 1))

        i, f, g, o = gate(0), gate(1), gate(2), gate(3)
        following = op("sigmoid")(f) * c + op("sigmoid")(i) * op("tanh")(g)
        return op("sigmoid")(o) * op("tanh")(following), following

    module = program([array(n, 32), array(n, 8)], cell, [N])
    assert len(fused(module, [floats(3, 32), floats(3, 8)])) == 1


def test_numbers_that_all_rows_read_are_not_stored_first() -> None:
    def widest(x: Any) -> Any:
        return np.lib.stride_tricks.sliding_window_view(x, 5).max(axis=1)

    module = lowered(pyrelay.jit(widest)._specialised([np.arange(9.0)], {}).module, "fuse")
    assert len(kernels(module)) == 1


def test_only_the_windows_that_steps_lead_to_are_read_whatever_their_width() -> None:
    def frames(x: Any, width: int, hop: int) -> Any:
        return np.lib.stride_tricks.sliding_window_view(x, width)[::hop] * np.arange(width)

    module = lowered(pyrelay.jit(frames)._specialised([np.arange(9.0), 4, 2], {}).module, "fuse")
    made = [out.type for call in kernels(module) for out in call.outs]
    assert sum(isinstance(ty, TensorType) and ty.rank > 0 for ty in made) == 1


def test_overlapping_parts_of_a_stack_of_products_are_no_gates() -> None:
    def parts(x: Any, w: Any) -> Any:
        y = np.matmul(x, w)
        return np.maximum(y[:, :3, :3], y[:, 1:, 1:])

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 4, 5)), rng.normal(size=(2, 5, 4))
    np.testing.assert_allclose(pyrelay.jit(parts)(x, w), parts(x, w), rtol=1e-12)


def test_each_group_widens_an_array_by_itself() -> None:
    def squares(x: Any, w: Any) -> Any:
        wide = x.astype(np.float64)
        first = (np.maximum(wide, 0.5) @ w).T
        return first * wide

    rng = np.random.default_rng(0)
    args = [rng.normal(size=(6, 6)).astype(np.float32), rng.normal(size=(6, 6))]
    module = lowered(pyrelay.jit(squares)._specialised(args, {}).module, "fuse")
    for call in kernels(module):
        body = call.rhs.function.body
        assert not any(
            walk.is_call(let, "cast") and let.outs[0] in body.results for let in body.lets
        )
    np.testing.assert_allclose(pyrelay.jit(squares)(*args), squares(*args), rtol=1e-12)


def test_a_loss_is_one_kernel_from_difference_to_mean() -> None:
    def loss(b: Builder, x: Any, y: Any) -> Any:
        d = x - y
        return op("sum")(d * d, axes=(0, 1), keepdims=False) * np.float32(0.5)

    assert len(fused(program([array(m, n)] * 2, loss, [M, N]), [floats(4, 5), floats(4, 5)])) == 1


def test_reductions_of_rows_share_a_kernel_with_what_follows() -> None:
    def deviation(b: Builder, x: Any) -> Any:
        mean = op("sum")(x, axes=(1,), keepdims=False) * np.float32(0.25)
        square = op("sum")(x * x, axes=(1,), keepdims=False) * np.float32(0.25)
        return op("sqrt")(square - mean * mean)

    assert len(fused(program([array(m, 4)], deviation, [M]), [floats(5, 4)])) == 1


def test_views_of_arrays_in_memory_are_no_part_of_a_kernel() -> None:
    def view(b: Builder, x: Any) -> Any:
        flat = b.call(op("reshape"), x, shape=(dims.multiply(m, n),))
        return op("exp")(flat)

    module = program([array(m, n)], view, [M, N])
    assert fused(module, [floats(4, 5)]) == [["exp"]]

    def between(b: Builder, x: Any) -> Any:
        return b.call(op("reshape"), op("exp")(x), shape=(dims.multiply(m, n),)) * 2

    module = program([array(m, n)], between, [M, N])
    assert fused(module, [floats(4, 5)]) == [["exp", "reshape", "multiply"]]


def test_a_view_waits_for_what_it_shows() -> None:
    def both(b: Builder, x: Any, w: Any) -> Any:
        y = op("tanh")(x) * w
        flat = b.call(op("reshape"), y, shape=(dims.multiply(m, n),))
        top = op("max")(op("tanh")(flat), axes=(0,), keepdims=False)
        return op("exp")(y), top

    module = program([array(m, n), array(n)], both, [M, N])
    assert fused(module, [floats(4, 5), floats(5)]) == [
        ["tanh"], ["multiply", "reshape", "tanh", "max"], ["multiply", "exp"]
    ]


def while_true(b: Builder, x: Any, body: Body) -> Any:
    carried = Var("c", x.type)
    inner = b.nested()
    block = inner.block(body(inner, Handle(inner, carried)))
    return b.bind(Loop((carried,), (x.atom,), block, exits=True), [x.type])[0]


def test_a_loop_over_scalars_is_one_kernel_with_the_scalars_around_it() -> None:
    def halve(b: Builder, x: Any) -> Any:
        def body(b: Builder, x: Any) -> Any:
            y = x * 0.5
            return [op("less")(y, 1.0), y]

        return while_true(b, x * 3.0, body) + 1.0

    module = program([PY_FLOAT], halve)
    assert fused(module, [100.0]) == [["multiply", "loop", "add"]]


def test_a_loop_over_arrays_stays_in_the_plan_and_is_fused_inside() -> None:
    def grow(b: Builder, x: Any) -> Any:
        def body(b: Builder, x: Any) -> Any:
            y = op("tanh")(x) * 2
            total = op("sum")(y, axes=(0,), keepdims=False)
            return [op("greater")(total, np.float32(-1e9)), y]

        return while_true(b, x, body)

    module = program([array(n)], grow, [N])
    kernels_ = fused(module, [floats(4)])
    assert ["tanh", "multiply"] in kernels_


def test_a_loop_that_reads_the_old_state_of_what_it_updates_gets_a_copy() -> None:
    def double(b: Builder, x: Any) -> Any:
        def body(b: Builder, i: Any, carried: Any) -> Any:
            (y,) = carried
            place = b.call(op("check_index"), i, size=n, axis=0)
            old = b.call(op("index"), b.handle(x), place, axes=(0,))
            return [b.call(op("index_update"), y, old * 2, place, axes=(0,))]

        return b.counted(b.extent(n), [x], body)

    module = program([array(n)], double, [N])
    assert fused(module, [floats(4)]) == [["extent", "loop"]]
    (call,) = kernels(fuse(module))
    assert call.rhs.args == (module.main.params[0],) * 2


def test_arrays_that_change_places_are_part_of_the_loops_kernel() -> None:
    def swap(b: Builder, x: Any, y: Any) -> Any:
        def body(b: Builder, i: Any, carried: Any) -> Any:
            old, new = carried
            place = b.call(op("check_index"), i, size=n, axis=0)
            value = b.call(op("index"), old, place, axes=(0,))
            return [b.call(op("index_update"), new, value * 2, place, axes=(0,)), old]

        return b.counted(b.extent(n), [x, y], body)

    module = program([array(n), array(n)], swap, [N])
    assert fused(module, [floats(4), floats(4)]) == [["extent", "loop"]]


def test_branches_over_scalars_join_the_scalars_they_read() -> None:
    def body(b: Builder, x: Any) -> Any:
        y = x * 2.0
        chosen = b.cond(
            op("greater")(y, 0.0), lambda b: [b.handle(y) / 2.0], lambda b: [b.handle(x)]
        )
        return chosen[0] - 1.0

    module = program([PY_FLOAT], body)
    assert fused(module, [3.0]) == [["multiply", "greater", "if", "subtract"]]


def test_an_array_read_by_a_loop_over_its_elements_is_computed_beside_another_of_its_size() -> None:
    def body(b: Builder, x: Handle) -> Any:
        y, z = op("exp")(x), x * 2.0

        def step(b: Builder, i: Handle, v: Sequence[Handle]) -> list[Handle]:
            return [v[0] * 0.5 + op("index")(b.handle(y.atom), i, axes=(0,))]

        (total,) = b.counted(b.extent(n), [b.handle(np.float32(0.0))], step)
        return z, total

    assert fused(program([array(n)], body, (N,)), (floats(5),)) == [
        ["exp", "multiply"], ["extent", "loop"],
    ]


def test_a_scalar_for_an_array_is_computed_in_its_kernel() -> None:
    def update(b: Builder, p: Any, t: Any) -> Any:
        rate = op("sqrt")(1 - op("power")(np.float32(0.9), t))
        return p * rate

    module = program([array(n), TensorType(f32)], update, [N])
    assert len(fused(module, [floats(5), np.float32(2)])) == 1


def test_three_thousand_ops_are_fused_in_linear_time() -> None:
    def chain(b: Builder, x: Any) -> Any:
        for k in range(3_000):
            x = x * 1.5 if k % 2 else x + 0.5
        return x

    module = program([array(n)], chain, [N])
    start = time.process_time()
    after = fuse(module)
    assert time.process_time() - start < 6
    assert 1 < len(kernels(after)) <= 3_000 / 100


def test_a_table_in_the_programs_text_is_one_kernel() -> None:
    def table(b: Builder) -> Any:
        rows = [b.call(op("expand_dims"), k / 7, axes=(0,)) for k in range(400)]
        return b.call(op("concatenate"), *rows, axis=0)

    (names,) = fused(program([], table))
    assert len(names) == 401


def test_integers_and_conditions_fuse_as_well() -> None:
    def pick(b: Builder, x: Any) -> Any:
        even = op("equal")(op("remainder")(x, 2), 0)
        return op("where")(even, x, -x), op("cast")(even, dtype=types.f32, weak=False)

    module = program([TensorType(i64, (n,))], pick, [N])
    assert len(fused(module, [np.arange(7)])) == 1
