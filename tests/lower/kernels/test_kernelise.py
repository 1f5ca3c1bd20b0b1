"""Fused groups as kernels: every op's rule against the interpreter, and how groups are lowered."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from lowered import Failed, function_of, reference, run

import pyrelay.ops
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Symbol
from pyrelay.ir.op import OPS, Op
from pyrelay.ir.types import PY_FLOAT, PY_INT, TensorType, f32, f64
from pyrelay.lower.kernels.kernelise import kernelise

N, M = Symbol("n"), Symbol("m")
n, m = dims.of(N), dims.of(M)
LAST = {"axes": (1,), "keepdims": False}
FIRST = {"axes": (0,), "keepdims": False}
ALL = {"axes": (0, 1), "keepdims": False}
random = np.random.default_rng(7)


def op(name: str) -> Op:
    return OPS[name]


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def typed(value: Any) -> TensorType:
    return types.of_scalar(value) or TensorType(types.from_numpy(value.dtype), value.shape)


def outcome(compute: Any) -> Any:
    try:
        return compute()
    except Failed as failure:
        return failure.raised()
    except (ArithmeticError, ValueError, IndexError) as error:
        return error


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(expected, Exception):
        assert type(got) is type(expected)
        assert str(got) == str(expected)
        return
    for a, b in zip(got, expected, strict=True):
        wanted = np.asarray(b)
        if wanted.dtype.kind in "fc":
            single = wanted.dtype.name in ("float32", "complex64")
            np.testing.assert_allclose(a, wanted, rtol=1e-4 if single else 1e-9, atol=1e-6)
        else:
            np.testing.assert_array_equal(a, wanted)


def test_an_elementwise_chain_over_several_axes_is_one_flat_loop() -> None:
    def body(b: Any, x: Any, y: Any) -> Any:
        return op("tanh")(x * y) + 1

    function = function_of([TensorType(f32, (m, n))] * 2, body, [M, N])
    lowering = kernelise(function)
    (kernel,) = lowering.kernels
    assert kernel.extent == dims.multiply(m, n)
    assert {p.role for p in kernel.parameters} == {"array", "output"}
    assert lowering.shares == (frozenset({0, 1}),)
    args = [floats(3, 5), floats(3, 5)]
    assert_same(run(function, args, chunks=4), reference(function, args))


def test_a_broadcast_row_is_added_row_by_row() -> None:
    function = function_of(
        [TensorType(f32, (m, n, 4)), TensorType(f32, (n, 4))], lambda b, x, w: x + w, [M, N]
    )
    (kernel,) = kernelise(function).kernels
    assert kernel.extent == m
    args = [floats(3, 5, 4), floats(5, 4)]
    assert_same(run(function, args), reference(function, args))


def test_a_transposed_argument_may_not_lend_its_buffer() -> None:
    def body(b: Any, x: Any, y: Any) -> Any:
        return b.call(op("transpose"), x, axes=(1, 0)) + y

    function = function_of([TensorType(f32, (n, n))] * 2, body, [N])
    lowering = kernelise(function)
    assert lowering.shares == (frozenset({1}),)
    args = [floats(5, 5), floats(5, 5)]
    assert_same(run(function, args), reference(function, args))


@pytest.mark.parametrize("attrs", [LAST, FIRST, ALL], ids=["rows", "columns", "everything"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (1300, 7), (7, 1300), (70, 900)])
def test_reductions_with_prologue_and_epilogue_agree_with_the_interpreter(
    attrs: Any, shape: tuple[int, int]
) -> None:
    def body(b: Any, x: Any, w: Any) -> Any:
        return op("sum")(x * w, **attrs) * 0.5

    function = function_of([TensorType(f32, (m, n)), TensorType(f32, (n,))], body, [M, N])
    args = [floats(*shape), floats(shape[1])]
    whole, pieces = run(function, args), run(function, args, chunks=3)
    np.testing.assert_array_equal(whole[0], pieces[0])  # the result depends on no thread count
    expected = reference(function, args)[0]
    np.testing.assert_allclose(whole[0], expected, rtol=1e-4, atol=1e-3)


def test_sums_are_more_accurate_than_numpys() -> None:
    for dtype, numpy in ((f32, np.float32), (f64, np.float64)):
        values = random.random(1_000_003).astype(numpy) + numpy(1000)
        exact = np.sum(values.astype(np.longdouble))
        function = function_of(
            [TensorType(dtype, (n,))], lambda b, x: op("sum")(x, axes=(0,), keepdims=False), [N]
        )
        ours = abs(np.longdouble(run(function, [values])[0]) - exact)
        assert ours <= abs(np.longdouble(values.sum()) - exact) + np.spacing(numpy(exact))


def test_infinities_survive_compensated_summation() -> None:
    function = function_of(
        [TensorType(f64, (n,))], lambda b, x: op("sum")(x, axes=(0,), keepdims=False), [N]
    )
    values = np.ones(5000)
    values[77] = np.inf
    assert run(function, [values])[0] == np.inf
    values[78] = -np.inf
    assert np.isnan(run(function, [values])[0])


def test_a_reduction_of_something_constant_counts_every_element() -> None:
    def body(b: Any, x: Any) -> Any:
        ones = b.call(op("broadcast_to"), x, shape=(n,))
        return op("sum")(ones, axes=(0,), keepdims=False)

    function = function_of([TensorType(f64)], body, [N])
    lowering = kernelise(function)
    args = [np.float64(1.5)]
    # The extent is not told by an argument's shape, so it is bound through a second parameter.
    assert lowering.kernels
    function = function_of(
        [TensorType(f64), TensorType(f64, (n,))], lambda b, x, y: body(b, x) + y, [N]
    )
    np.testing.assert_allclose(run(function, [*args, np.zeros(10)])[0], np.full(10, 15.0))


def test_results_of_different_spaces_have_kernels_of_their_own() -> None:
    def body(b: Any, x: Any) -> Any:
        return op("exp")(x), op("sum")(x, **FIRST), op("sum")(x, **LAST), op("sum")(x, **ALL)

    function = function_of([TensorType(f32, (m, n))], body, [M, N])
    args = [floats(40, 30)]
    assert_same(run(function, args), reference(function, args))
    assert len(kernelise(function).kernels) == 6


def test_an_updated_row_is_written_in_the_argument_s_buffer() -> None:
    def body(b: Any, x: Any, v: Any, t: Any) -> Any:
        here = b.call(op("index"), x, t, axes=(0,))
        return b.call(op("index_update"), x, here * 0.5 + op("tanh")(v), t, axes=(0,))

    shapes = [TensorType(f32, (m, n)), TensorType(f32, (n,)), PY_INT]
    function = function_of(shapes, body, [M, N])
    lowering = kernelise(function)
    assert lowering.aliases == (0,)
    assert lowering.written == {0}
    assert lowering.kernels[0].extent == n
    args = [floats(6, 5), floats(5), 2]
    assert_same(run(function, args), reference(function, args))


def test_a_row_made_of_other_rows_of_the_array_is_not_updated_in_place() -> None:
    def body(b: Any, x: Any) -> Any:
        part = {"sizes": (4,), "steps": (1,)}
        shifted = b.call(op("slice"), x, starts=(0,), **part)
        return b.call(op("slice_update"), x, shifted, starts=(1,), **part)

    function = function_of([TensorType(f32, (5,))], body)
    assert kernelise(function).aliases == (None,)
    args = [floats(5)]
    assert_same(run(function, args), reference(function, args))


def test_python_arithmetic_fails_as_python_does() -> None:
    function = function_of([PY_FLOAT, PY_FLOAT], lambda b, x, y: op("exp")(x / y))
    with pytest.raises(Failed) as failure:
        run(function, [1.0, 0.0])
    assert isinstance(failure.value.raised(), ZeroDivisionError)


def test_a_gather_out_of_range_reports_index_axis_and_size() -> None:
    def body(b: Any, x: Any, k: Any) -> Any:
        return b.call(op("gather"), x, k, axes=(0,))

    function = function_of([TensorType(f32, (n,)), TensorType(types.i64, (m,))], body, [N, M])
    args = [floats(5), np.array([0, -1, 7])]
    expected = outcome(lambda: reference(function, args))
    assert isinstance(expected, IndexError)
    assert_same(outcome(lambda: run(function, args)), expected)
    args[1] = np.array([0, -1, 4])
    assert_same(run(function, args), reference(function, args))


def test_a_tree_of_selections_stays_linear() -> None:
    def body(b: Any, x: Any) -> Any:
        for k in range(12):
            x = op("where")(x > 0.1 * k, op("exp")(x) * 0.1, op("tanh")(x) + x)
        return x

    from pyrelay.lower.kernels.kernel import statements

    function = function_of([TensorType(f32, (n,))], body, [N])
    (kernel,) = kernelise(function).kernels
    assert sum(1 for _ in statements(kernel.body)) < 12 * 10
    args = [floats(50)]
    assert_same(run(function, args), reference(function, args))


def test_a_chain_of_two_thousand_ops_needs_no_recursion() -> None:
    def body(b: Any, x: Any) -> Any:
        for _ in range(2000):
            x = x + 1
        return x

    (kernel,) = kernelise(function_of([TensorType(f32, (n,))], body, [N])).kernels
    assert kernel.extent == n


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap", "constant"])
def test_what_is_joined_along_several_axes_is_stored_part_by_part(mode: str) -> None:
    def padded(x: Any) -> Any:
        return np.pad(x, ((2, 1), (1, 2), (0, 0)), mode=mode) * 2

    compiled = pyrelay.jit(padded)
    for shape in ((3, 4, 3), (9, 7, 1), (40, 33, 2)):
        x = np.arange(math.prod(shape), dtype=np.int16).reshape(shape)
        np.testing.assert_array_equal(compiled(x), padded(x))


def test_no_element_of_a_padded_image_asks_where_it_lies() -> None:
    def padded(x: Any) -> Any:
        return np.pad(x, ((2, 2), (2, 2), (0, 0)), mode="edge")

    assert "if " not in str(pyrelay.jit(padded).code(np.ones((5, 6, 3), np.uint8)))


def test_parts_that_are_read_twice_are_joined_twice() -> None:
    def both(x: Any) -> Any:
        rows = np.concatenate([x[:1], x * 2, x[:2]])
        return np.concatenate([rows, rows[:, :1], rows, x[:1].repeat(len(x) + 3, axis=0)], axis=1)

    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(pyrelay.jit(both)(x), both(x))
