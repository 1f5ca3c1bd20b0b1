"""Elements at one place of a row are read once, not looked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.ir.nodes import KernelCall
from pyrelay.lower.kernels.kernel import Compute, For, If, statements
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.planning.normalise import kernels_only
from pyrelay.pipeline import lowered
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

ON = "cuda_emulator"


def cross_entropies(x: Any, y: Any) -> Any:
    z = x - x.max(axis=1, keepdims=True)
    return np.log(np.exp(z).sum(axis=1)) - z[np.arange(x.shape[0]), y]


def scaled(x: Any, y: Any) -> Any:
    z = x * 0.25 + 1.0
    return z.max(axis=1), z[np.arange(x.shape[0]), y]


def kernels_of(function: Any, args: tuple[Any, ...]) -> Any:
    module = kernels_only(lowered(inferred(function, args).module, "fuse", on=ON), TARGET)
    calls = [x.rhs for x in module.main.body.lets if isinstance(x.rhs, KernelCall)]
    return [k for call in calls for k in kernelise(call.function, splits=True).kernels]


@pytest.mark.parametrize("function", [cross_entropies, scaled])
def test_loops_compare_no_places(function: Any) -> None:
    args = np.ones((4, 50), np.float32), np.zeros(4, np.int64)
    found = 0
    for kernel in kernels_of(function, args):
        for loop in statements(kernel.body):
            if not isinstance(loop, For) or any(isinstance(s, For) for s in loop.body):
                continue
            inside = list(statements(loop.body))
            assert not any(isinstance(s, Compute) and s.primitive == "equal" for s in inside)
            found += any(isinstance(s, Compute) and s.primitive == "maximum" for s in inside)
        found += 10 * any(isinstance(s, If) for s in statements(kernel.body))
    assert found >= 11


@needs_compiler
@pytest.mark.parametrize("function", [cross_entropies, scaled])
@pytest.mark.parametrize("shape", [(5, 7), (3, 1000), (2, 70_000)])
def test_results_are_those_of_python(function: Any, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=shape), rng.integers(-shape[1], shape[1], shape[0])
    x[0, y[0]], x[1, y[1]] = np.inf, np.nan
    with np.errstate(all="ignore"):
        wanted = function(x, y)
    for mine, theirs in zip(pyrelay.jit(function, device=ON)(x, y), wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@needs_compiler
def test_places_outside_are_errors_as_before() -> None:
    x = np.ones((4, 50))
    with pytest.raises(IndexError, match="50 is out of bounds for axis 1 with size 50"):
        pyrelay.jit(cross_entropies, device=ON)(x, np.array([0, 1, 50, 2]))
