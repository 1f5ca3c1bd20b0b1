"""Which Lets join the group that reads them, and which must not."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyrelay.ops  # noqa: F401  (registers the ops)
from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Symbol
from pyrelay.ir.types import PY_FLOAT, PY_INT, TensorType, i64
from pyrelay.opt.fuse import fuse
from tests.opt.fusing import M, N, array, floats, fused, kernels, m, n, names, op, program

K = Symbol("k")
k = dims.of(K)


def test_two_reductions_of_columns_are_two_kernels() -> None:
    def both(b: Builder, x: Any) -> Any:
        first = op("sum")(x, axes=(0,), keepdims=False)
        return first - op("sum")(x * x, axes=(0,), keepdims=False)

    assert len(fused(program([array(m, n)], both, [M, N]), [floats(5, 4)])) == 2


def test_expensive_work_is_not_repeated_for_every_row() -> None:
    module = program([array(m, n), array(n)], lambda b, x, w: x + op("exp")(w), [M, N])
    assert fused(module, [floats(3, 4), floats(4)]) == [["exp"], ["add"]]
    module = program([array(m, n), array(n)], lambda b, x, w: x + w * w, [M, N])
    assert fused(module, [floats(3, 4), floats(4)]) == [["multiply", "add"]]


def test_what_takes_long_is_computed_before_it_is_repeated_and_laid_out() -> None:
    def repeated(b: Builder, x: Any) -> Any:
        column = b.call(op("expand_dims"), op("exp")(x), axes=(1,))
        return b.call(
            op("reshape"), b.call(op("broadcast_to"), column, shape=(m, 7)), shape=(m * 7,)
        ) * 2.0

    def turned(b: Builder, x: Any, y: Any) -> Any:
        scaled = b.call(op("expand_dims"), op("exp")(x), axes=(1,)) * y
        return b.call(op("transpose"), scaled, axes=(1, 0)) + 1.0

    assert fused(program([array(m)], repeated, [M]), [floats(3)])[0] == ["exp"]
    assert fused(program([array(m), array(m, n)], turned, [M, N]), [floats(3), floats(3, 4)])[
        0
    ] == ["exp"]


def test_a_table_is_computed_before_it_is_looked_up() -> None:
    def table(b: Builder, x: Any, places: Any) -> Any:
        return b.call(op("gather_inside"), x + x, places, axes=(0,))

    places = np.array([[0, 2], [1, 1]])
    for given, kernels_ in (
        (places, [["add"], ["gather_inside"]]), (places[0], [["add", "gather_inside"]]),
    ):
        image = TensorType(i64, (m, n)[: given.ndim])
        module = program([array(k), image], table, [K, M, N][: 1 + given.ndim])
        assert fused(module, [floats(3), given]) == kernels_


def test_expensive_neighbours_are_computed_once() -> None:
    def stencil(b: Builder, x: Any) -> Any:
        y = op("exp")(x)
        part = {"sizes": (n - 2,), "steps": (1,)}
        left, here, right = (b.call(op("slice"), y, starts=(k,), **part) for k in range(3))
        return left + right - here * 2

    kernels_ = fused(program([array(n)], stencil, [N]), [floats(9)])
    assert kernels_[0] == ["exp"]
    assert len(kernels_) == 2


def test_a_cheap_value_for_a_kernel_and_for_a_product_is_stored_once() -> None:
    def backward(b: Builder, g: Any, h: Any) -> Any:
        dz = op("where")(h > 0, g, np.float32(0))
        dw = b.call(op("matmul"), h, dz, transpose_a=True, transpose_b=False)
        return dw, op("sum")(dz, axes=(0,), keepdims=False)

    module = program([array(m, n)] * 2, backward, [M, N])
    assert fused(module, [floats(4, 5), floats(4, 5)]) == [["greater", "where"], ["sum"]]


def test_what_a_library_call_separates_is_not_merged_in_a_circle() -> None:
    def around(b: Builder, x: Any) -> Any:
        a = op("exp")(x)
        c = b.call(op("matmul"), a, a, transpose_a=False, transpose_b=False)
        return op("tanh")(a) + c

    module = program([array(n, n)], around, [N])
    assert fused(module, [floats(4, 4)]) == [["exp"], ["matmul", "tanh", "add"]]


def test_reading_the_row_that_is_written_belongs_to_the_update() -> None:
    def step(b: Builder, x: Any, v: Any, t: Any) -> Any:
        row = b.call(op("index"), x, t, axes=(0,))
        return b.call(op("index_update"), x, row + op("tanh")(v), t, axes=(0,))

    module = program([array(m, n), array(n), PY_INT], step, [M, N])
    assert fused(module, [floats(3, 4), floats(4), 1]) == [
        ["index", "tanh", "add", "index_update"]
    ]


def test_an_update_of_nearly_all_reads_its_old_state_anywhere() -> None:
    def stencil(edge: Any) -> Any:
        part = {"starts": (1,), "sizes": (n - edge,), "steps": (1,)}

        def body(b: Builder, x: Any) -> Any:
            left = b.call(op("slice"), x, starts=(0,), sizes=part["sizes"], steps=(1,))
            return b.call(op("slice_update"), x, op("exp")(left), **part)

        return body

    near = program([array(n)], stencil(1), [N])
    assert fused(near, [floats(6)]) == [["slice", "exp", "slice_update"]]
    (call,) = kernels(fuse(near))
    assert len(call.rhs.args) == 2  # what is written, and its old state
    assert call.rhs.args[0] is call.rhs.args[1]
    # Where little is written, a copy of everything would cost more than the part.
    assert len(fused(program([array(n)], stencil(n - 2), [N]), [floats(6)])) == 2


def test_a_cheap_value_for_two_groups_with_rows_is_computed_in_both() -> None:
    def body(b: Builder, x: Any, y: Any) -> Any:
        d = x - y
        s = op("sum")(op("exp")(d), axes=(1,), keepdims=True)
        return s, op("transpose")(d * s, axes=(1, 0))

    module = program([array(m, n)] * 2, body, [M, N])
    first, _ = kernels(fuse(module))
    assert len(first.outs) == 1


def test_a_read_is_not_delayed_past_an_update_of_what_it_reads() -> None:
    def step(b: Builder, x: Any, v: Any) -> Any:
        old = b.call(op("index"), x, 0, axes=(0,))
        new = b.call(op("index_update"), x, v, 1, axes=(0,))
        product = b.call(op("matmul"), new, new, transpose_a=True, transpose_b=False)
        return product + old

    after = fuse(program([array(m, n), array(n)], step, [M, N]))
    order = [names(let.rhs.function) for let in kernels(after)]
    assert order[0] == ["index"]
    fused(program([array(m, n), array(n)], step, [M, N]), [floats(3, 4), floats(4)])


def test_what_may_fail_is_not_moved_past_what_may_fail() -> None:
    def body(b: Builder, x: Any, y: Any) -> Any:
        first = x / y
        second = op("floor_divide")(x, y)
        return first + 1.0, second

    after = fuse(program([PY_FLOAT, PY_FLOAT], body))
    order = [name for let in kernels(after) for name in names(let.rhs.function)]
    assert order.index("divide") < order.index("floor_divide")
    fused(program([PY_FLOAT, PY_FLOAT], body), [3.0, 2.0])


def test_slices_that_have_no_element_in_common_compute_each_once() -> None:
    def rolled(b: Builder, x: Any) -> Any:
        y = op("exp")(x)
        parts = (
            b.call(op("slice"), y, starts=(start,), sizes=(size,), steps=(1,))
            for start, size in ((n - 2, 2), (0, n - 2))
        )
        return b.call(op("concatenate"), *parts, axis=0)

    assert len(kernels(fuse(program([array(n)], rolled, [N])))) == 1
    assert fused(program([array(n)], rolled, [N]), [floats(9)])[0].count("exp") == 1


def test_an_array_rolled_along_two_axes_is_stored_once() -> None:
    def rolled(b: Builder, x: Any) -> Any:
        for axis, extent in enumerate((m, n)):
            whole = [m, n]
            ends = []
            for start, size in ((extent - 2, 2), (0, extent - 2)):
                starts, sizes = [0, 0], list(whole)
                starts[axis], sizes[axis] = start, size
                ends.append(b.call(
                    op("slice"), x, starts=tuple(starts), sizes=tuple(sizes), steps=(1, 1)
                ))
            x = b.call(op("concatenate"), *ends, axis=axis)
        return x

    assert len(fused(program([array(m, n)], rolled, [M, N]), [floats(5, 6)])) == 1
