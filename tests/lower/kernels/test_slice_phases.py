"""The loops of kernels over rows or columns: how many, what is kept between them, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowered import function_of, reference, run

import pyrelay.ops  # noqa: F401  (registers the ops)
from pyrelay.devices.compiler.kernel_compiler import optimised_module
from pyrelay.ir import dims
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Function
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f32
from pyrelay.lower.kernels.kernel import OUTPUT, ROW
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.kernels.schedule import Result
from pyrelay.lower.kernels.slice_phases import SlicePlan, slice_plan
from pyrelay.lower.text.emit_kernel import emit

N, M, K = Symbol("n"), Symbol("m"), Symbol("k")
n, m, k = dims.of(N), dims.of(M), dims.of(K)
random = np.random.default_rng(11)


def reduced(x: Any, *axes: int, name: str = "sum") -> Any:
    return OPS[name](x, axes=axes, keepdims=True)


def softmax(b: Any, x: Any) -> Any:
    e = OPS["exp"](x - reduced(x, 1, name="max"))
    return e / reduced(e, 1)


def entropy(b: Any, x: Any) -> Any:
    p = softmax(b, x)
    return OPS["sum"](p * OPS["log"](p), axes=(1,), keepdims=False)


def normal(b: Any, x: Any) -> Any:
    """Columns with mean 0 and variance 1."""
    d = x - reduced(x, 0) * 0.25
    return d / OPS["sqrt"](reduced(d * d, 0) + 1.0)


def spread(b: Any, x: Any) -> Any:
    e = OPS["exp"](x - reduced(x, 0, name="max"))
    return e * OPS["tanh"](reduced(e, 0)), OPS["sum"](OPS["tanh"](e), axes=(0,), keepdims=False)


def group(body: Any, *shapes: Any) -> Function:
    symbols = [s for s in (M, N, K) if any(s in dims.symbols(d) for e in shapes for d in e)]
    return function_of([TensorType(f32, s) for s in shapes], body, symbols)


def plan_of(body: Any, *shapes: Any) -> SlicePlan:
    function = group(body, *shapes)
    results = [
        Result(position, atom, atom.type.shape)
        for position, atom in enumerate(function.body.results)
    ]
    plan = slice_plan(function, results, lambda let: True)
    assert plan is not None
    return plan


def test_what_depends_on_a_reduction_belongs_to_the_next_phase() -> None:
    plan = plan_of(softmax, (m, n))
    assert [len(p.reductions) for p in plan.phases] == [1, 1, 0]
    assert [len(p.results) for p in plan.phases] == [0, 0, 1]


def test_an_exponential_waits_in_the_row_of_the_result() -> None:
    plan = plan_of(softmax, (m, n))
    ((var, buffer),) = plan.buffers.items()
    assert plan.phases[1].saved == plan.phases[2].loaded == [var]
    assert buffer.result is plan.phases[2].results[0]
    (kernel,) = kernelise(group(softmax, (m, n))).kernels
    assert emit(kernel).count("exp(") == 1


def test_without_a_result_of_that_size_it_waits_in_a_row_of_the_kernel() -> None:
    plan = plan_of(entropy, (m, n))
    assert plan.own == ((f32, (n,)),)
    lowering = kernelise(group(entropy, (m, n)))
    assert [p.role for p in lowering.kernels[0].parameters][-1] == ROW
    assert len(lowering.scratch) == 1


def test_cheap_elements_are_computed_again() -> None:
    def centred(b: Any, x: Any) -> Any:
        d = x - reduced(x, 1) * 0.25
        return d / reduced(d * d, 1)

    plan = plan_of(centred, (m, n))
    assert len(plan.phases) == 3
    assert not plan.buffers


def test_rows_of_the_kernel_are_given_out_again() -> None:
    def chain(b: Any, x: Any) -> Any:
        for _ in range(4):
            e = OPS["exp"](x)
            x = OPS["tanh"](e / reduced(e, 1))
        return OPS["sum"](x, axes=(1,), keepdims=False)

    plan = plan_of(chain, (m, n))
    assert len(plan.buffers) > 2
    assert len(plan.own) <= 2


def test_sibling_reductions_share_a_loop() -> None:
    def moments(b: Any, x: Any) -> Any:
        return tuple(OPS[name](x, axes=(1,), keepdims=False) for name in ("sum", "max", "min"))

    plan = plan_of(moments, (m, n))
    assert [len(p.reductions) for p in plan.phases] == [3]
    assert len(plan.slice_results) == 3


BODIES = {
    "softmax": (softmax, [(m, n)]),
    "entropy": (entropy, [(m, n)]),
    "two lengths": (
        lambda b, x, y: OPS["exp"](x) * reduced(x, 1) + reduced(OPS["exp"](y), 1),
        [(m, n), (m, k)],
    ),
    "element, row and sum": (
        lambda b, x: (e := OPS["exp"](x), s := reduced(e, 1), e / s),
        [(m, n)],
    ),
    "normal columns": (normal, [(m, n)]),
    "spread columns": (spread, [(m, n)]),
    "columns of two axes": (
        lambda b, x: OPS["tanh"](x - reduced(x, 0)) * reduced(OPS["exp"](x), 0),
        [(m, n, k)],
    ),
    "columns of one axis": (
        lambda b, x, w: (x * OPS["exp"](w) - reduced(x * w, 0, 1), reduced(x, 0, 1)),
        [(m, n, k), (k,)],
    ),
    "columns of another length": (
        lambda b, x, y: x * 2.0 - reduced(OPS["exp"](y), 0),
        [(m, n), (k, n)],
    ),
    "two inner axes": (
        lambda b, x, w: OPS["tanh"](x - reduced(x, 1, 2)) * w + reduced(x * w, 1, 2),
        [(m, n, k), (n, 1)],
    ),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("extents", [(0, 3, 2), (3, 0, 2), (1, 1, 1), (5, 7, 3), (3, 2500, 2)])
def test_kernels_over_rows_compute_what_the_interpreter_computes(
    name: str, extents: tuple[int, int, int]
) -> None:
    body, shapes = BODIES[name]
    if 0 in extents[:2] and name in ("softmax", "entropy", "spread columns"):
        return  # the maximum of nothing is refused before
    function = group(body, *shapes)
    known = dict(zip((M, N, K), extents, strict=True))
    args = [
        random.standard_normal([dims.evaluate(d, known) for d in shape]).astype(np.float32)
        for shape in shapes
    ]
    assert len(kernelise(function).kernels) == 1
    whole = run(function, args)
    pieces = run(function, args, chunks=3)
    for a, b, c in zip(whole, pieces, reference(function, args), strict=True):
        np.testing.assert_array_equal(a, b)  # the result depends on no thread count
        np.testing.assert_allclose(a, c, rtol=2e-5, atol=1e-5)


def whole(b: Any, x: Any, w: Any) -> Any:
    e = OPS["exp"](x - reduced(x, 0, 1, name="max"))
    total = OPS["sum"](e, axes=(0, 1), keepdims=False)
    return e / total * w, OPS["log"](total)


@pytest.mark.parametrize("extents", [(1, 1), (5, 7), (70, 900), (3, 20_000)])
def test_everything_is_reduced_in_chunks_by_a_kernel_per_phase(extents: tuple[int, int]) -> None:
    function = group(whole, (m, n), (n,))
    args = [random.standard_normal(s).astype(np.float32) for s in (extents, extents[1:])]
    lowering = kernelise(function)
    assert len(lowering.kernels) == 4  # one of them for the result of one element
    results = run(function, args), run(function, args, chunks=3), reference(function, args)
    for a, b, c in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)  # the result depends on no thread count
        np.testing.assert_allclose(a, c, rtol=2e-5, atol=1e-5)


def test_a_few_elements_are_reduced_by_one_kernel() -> None:
    function = group(whole, (3, 4), (4,))
    assert len(kernelise(function).kernels) == 1
    args = [random.standard_normal(s).astype(np.float32) for s in ((3, 4), (4,))]
    for a, b in zip(run(function, args), reference(function, args), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_rows_of_a_few_elements_do_not_meet_in_the_kernel_s_row() -> None:
    # Their loops are unrolled, which leaves the loop over rows for vectorisation.
    function = group(entropy, (m, 4))
    args = [random.standard_normal((67, 4)).astype(np.float32)]
    (got,), (expected,) = run(function, args), reference(function, args)
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("body", [softmax, entropy, normal, spread], ids=lambda f: f.__name__)
def test_every_phase_is_vector_code(body: Any) -> None:
    (kernel,) = kernelise(group(body, (m, n))).kernels
    text = str(optimised_module(emit(kernel), "rows"))
    labels = [line for line in text.splitlines() if line.startswith("vector.body")]
    assert len(labels) >= len(plan_of(body, (m, n)).phases)


def test_columns_of_another_length_are_reduced_before_the_elements() -> None:
    def scaled(b: Any, x: Any, y: Any) -> Any:
        return x * reduced(OPS["exp"](y), 0)

    plan = plan_of(scaled, (m, n), (k, n))
    assert [(p.inner, len(p.reductions)) for p in plan.phases] == [((k,), 1), ((m,), 0)]


def test_a_reduction_in_two_shapes_is_computed_once() -> None:
    def twice(b: Any, x: Any) -> Any:
        flat = OPS["expand_dims"](OPS["sum"](x, axes=(1,), keepdims=False), axes=(1,))
        return x * reduced(x, 1) + flat

    plan = plan_of(twice, (m, n))
    assert [len(p.reductions) for p in plan.phases] == [1, 0]
    ((_, twins),) = plan.phases[0].twins.items()
    assert len(twins) == 2


def test_what_a_column_has_once_is_computed_between_the_phases() -> None:
    (kernel,) = kernelise(group(normal, (m, n))).kernels
    text = emit(kernel)
    assert text.count("sqrt(") == 1
    loops = [line for line in text.splitlines() if "sqrt(" in line or "for " in line]
    position = next(k for k, line in enumerate(loops) if "sqrt(" in line)
    assert len(loops[position]) - len(loops[position].lstrip()) == 12  # in a loop over columns only


def test_a_result_that_serves_as_a_row_takes_no_argument_s_buffer() -> None:
    lowering = kernelise(group(softmax, (m, n)))
    assert [p.role for p in lowering.kernels[0].parameters].count(OUTPUT) == 1
    assert lowering.shares == (frozenset(),)
