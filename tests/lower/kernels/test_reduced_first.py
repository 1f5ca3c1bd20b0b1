"""Slow functions of what rows are reduced to have a loop of their own behind that over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lowered import function_of

import pyrelay
from pyrelay.ir import dims
from pyrelay.ir.dims import Symbol
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f32
from pyrelay.lower.kernels.kernel import For
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.kernels.schedule import Result
from pyrelay.lower.kernels.slice_phases import slice_plan

N = Symbol("n")
n = dims.of(N)


def logistic(x: Any, c: Any) -> Any:
    return 1 / (1 + np.exp(-(x * x).sum(1)))


def of_two(x: Any, c: Any) -> Any:
    largest = x.max(1)
    total = np.exp(x - largest[:, None]).sum(1)
    return np.log(total) * c + largest, total, np.log(total) > c


def of_pairs(x: Any, c: Any) -> Any:
    return np.exp(-((x[:, None] - x[None]) ** 2).sum(-1) / c[:, None])


def all_of(x: Any, c: Any) -> Any:
    return np.tanh((x > -1).all(1) + c), np.exp(x.sum(1, keepdims=True)), np.exp(x.argmax(1))


def at_other_places(x: Any, c: Any) -> Any:
    total = x.sum(1)
    return np.exp(total[::-1] + total)


@pytest.mark.parametrize("function", [logistic, of_two, of_pairs, all_of, at_other_places])
def test_the_results_are_numpy_s(function: Any) -> None:
    random = np.random.default_rng(3)
    compiled = pyrelay.jit(function)
    for rows in (70, 3):
        x, c = random.standard_normal((rows, 5)), random.random(rows) + 1
        found, wanted = compiled(x, c), function(x, c)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for mine, numpys in pairs:
            assert mine.dtype == numpys.dtype
            np.testing.assert_allclose(mine, numpys, rtol=1e-12)


def late(body: Any, *shape: Any) -> list[int]:
    """How many reductions are stored first for each late result of rows."""
    function = function_of([TensorType(f32, shape)], body, [N])
    results = [Result(k, a, a.type.shape) for k, a in enumerate(function.body.results)]
    plan = slice_plan(function, results, lambda let: True)
    assert plan is not None
    return [len(stored) for stored in plan.late.values()]


def exponential(b: Any, x: Any) -> Any:
    return OPS["exp"](OPS["sum"](x, axes=(1,), keepdims=False))


def root(b: Any, x: Any) -> Any:
    return OPS["sqrt"](OPS["sum"](x * x, axes=(1,), keepdims=False))


def inside(b: Any, x: Any) -> Any:
    scale = OPS["exp"](OPS["max"](x, axes=(1,), keepdims=True))
    return x * scale, scale


def test_only_slow_functions_of_many_rows_that_no_element_reads_are_late() -> None:
    assert late(exponential, n, 16) == [1]
    assert late(exponential, 100, 16) == [1]
    assert late(exponential, 20, 16) == []
    assert late(root, n, 16) == []
    assert late(inside, n, 16) == []


def test_a_late_result_is_computed_by_a_second_loop_of_the_same_kernel() -> None:
    function = function_of([TensorType(f32, (n, 16))], exponential, [N])
    (kernel,) = kernelise(function).kernels
    rows, results = (s for s in kernel.body if isinstance(s, For))
    assert any(isinstance(s, For) for s in rows.body)
    assert not any(isinstance(s, For) for s in results.body)
