"""Every program of the corpus, compiled: what plain Python does, and the derivatives of that.

Values go through `jit`. Derivatives are pulled back along fixed seeds by a compiled program, and
compared with central differences along one direction: of the compiled program for the first order,
of the compiled first derivative for the second.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.cpu import TARGET
from pyrelay.devices.runtime.entry import Executable
from pyrelay.infer.structure import Flattened, flatten
from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Module, Var, Vjp
from pyrelay.ir.types import TensorType
from pyrelay.lower.planning.encode import encode
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.grad.checking import derived
from tests.grad.test_random_programs import random_program
from tests.infer.running import Outcome, assert_same_outcome, inferred, plainly
from tests.programs import PROGRAMS, Program

CALLS = [
    pytest.param(p, k, id=f"{p.name}-{k}") for p in PROGRAMS for k in range(len(p.inputs))
]
#: Second derivatives: one program of each form of control flow, and of each kind of op.
TWICE = frozenset([
    "newton", "power_by_loop", "running_sum_with_resets", "heat", "early_returns", "softmax_rows",
    "write_in_loop", "mlp", "layer_norm", "broadcasting", "mutual_recursion", "tree_sum",
    "swap_of_local_arrays", "helper_that_mutates", "write_through_view", "matrix_products",
])  # fmt: skip
STEP = 1e-6


def compiledly(function: Callable[..., Any], args: tuple[Any, ...]) -> Outcome:
    """The call of a jitted function."""
    mine = copy.deepcopy(args)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Outcome(function(*mine), None, mine)
        except Exception as error:
            return Outcome(None, error, mine)


@pytest.mark.parametrize(("program", "number"), CALLS)
def test_compiled_program_does_what_python_does(program: Program, number: int) -> None:
    args = program.arguments()[number]
    got = compiledly(pyrelay.jit(program.function), args)
    assert_same_outcome(got, plainly(program.function, args), program.joins)


# -- derivatives ---------------------------------------------------------------------------------


def pulled_back(module: Module, wrt: Sequence[int]) -> Module:
    """A module that takes the arguments of `module` and seeds of its floating results, and gives
    the cotangents of the parameters `wrt`."""
    main = module.main
    types = main.result_types
    floating = floating_results(module)
    builder = Builder()
    params = [Var(p.name, p.type) for p in main.params]
    seeds = [Var("seed", types[k]) for k in floating]
    extents = tuple(map(dims.of, main.dims))
    request = Vjp(
        module.entry, tuple(params), tuple(seeds), tuple(floating), tuple(wrt), extents
    )
    outs = builder.bind(request, [*types, *(main.params[i].type for i in wrt)])
    name = f"{module.entry}_pulled_back"
    entry = Function(name, (*params, *seeds), builder.block(outs[len(types) :]), main.dims)
    return Module({**module.functions, name: entry}, name)


def floating_results(module: Module) -> list[int]:
    """Positions of the results that carry derivatives."""
    return [
        k for k, ty in enumerate(module.main.result_types)
        if isinstance(ty, TensorType) and ty.dtype.kind == "f"
    ]


def executable(module: Module) -> Callable[..., tuple[Any, ...]]:
    """A compiled module; always gives a tuple."""
    run = Executable(encode(plan(lowered(module, "fuse"), TARGET))).call

    def call(*args: Any) -> tuple[Any, ...]:
        results = run(*map(copy.copy, args))
        return results if isinstance(results, tuple) else (results,)

    return call


def direction(value: Any, salt: int) -> Any:
    """Deterministic numbers of the shape and class of a number or array."""
    noise = np.cos(np.arange(np.size(value)) * 2.3 + salt).reshape(np.shape(value))
    return noise if isinstance(value, np.ndarray) else type(value)(noise[()])


def moved(values: Sequence[Any], along: Mapping[int, Any], by: float) -> list[Any]:
    """The values, those in `along` displaced."""
    return [
        v if k not in along
        else v + by * along[k] if isinstance(v, np.ndarray) else type(v)(v + by * along[k])
        for k, v in enumerate(values)
    ]


def seeds_of(
    run: Callable[..., tuple[Any, ...]], module: Module, values: Sequence[Any]
) -> list[Any]:
    """Seeds for the floating results of a module at these arguments."""
    results = run(*values)
    return [direction(results[k], 7 + k) for k in floating_results(module)]


def assert_pulls_back(
    module: Module, run: Callable[..., tuple[Any, ...]], pullback: Callable[..., tuple[Any, ...]],
    values: Sequence[Any], wrt: Sequence[int], step: float,
) -> None:
    """What `pullback` gives along one direction is the central difference of `run`."""
    along = {i: direction(values[i], i) for i in wrt}
    seeds = seeds_of(run, module, values)
    ahead, behind = (run(*moved(values, along, by)) for by in (step, -step))
    expected = sum(
        float(np.sum(seed * (np.asarray(ahead[k]) - np.asarray(behind[k])))) / (2 * step)
        for seed, k in zip(seeds, floating_results(module), strict=True)
    )
    gradients = pullback(*values, *seeds)
    got = sum(float(np.sum(g * along[i])) for g, i in zip(gradients, wrt, strict=True))
    assert got == pytest.approx(expected, rel=2e-5, abs=5e-6)


def differentiable(program: Program, number: int) -> tuple[Module, list[Any], list[int]]:
    """A program's module, its flat arguments, and which of them are differentiated."""
    args = program.arguments()[number]
    specialised = inferred(program.function, args)
    binding = specialised.binding
    flat, chosen = Flattened(apart=binding.apart), []
    for position, value in enumerate(args):
        before = len(flat.leaves)
        flatten([(value, "argument")], flat)
        if position in program.wrt:
            chosen += range(before, len(flat.leaves))
    chosen = [k for k in chosen if np.asarray(flat.leaves[k]).dtype == np.float64]
    for hidden in binding.hidden:
        flatten([(hidden.read(), hidden.name)], flat, captured=True)
    values = [flat.leaves[k] for k in binding.parameters]
    wrt = [
        i for i, k in enumerate(binding.parameters) if k in chosen and np.size(flat.leaves[k])
    ]
    return specialised.module, values, wrt


def with_derivative(names: frozenset[str] | None = None) -> list[Any]:
    """The calls whose programs have a derivative."""
    return [
        pytest.param(p, k, id=f"{p.name}-{k}")
        for p in PROGRAMS if p.wrt and (names is None or p.name in names)
        for k in range(len(p.inputs))
    ]


@pytest.mark.parametrize(("program", "number"), with_derivative())
def test_compiled_gradient_agrees_with_finite_differences(program: Program, number: int) -> None:
    module, values, wrt = differentiable(program, number)
    if not wrt:
        pytest.skip("no argument is float64 and not empty")
    run, pullback = executable(module), executable(pulled_back(module, wrt))
    with np.errstate(all="ignore"):
        assert_pulls_back(module, run, pullback, values, wrt, STEP)


@pytest.mark.parametrize(("program", "number"), with_derivative(TWICE))
def test_compiled_second_derivative_agrees_with_finite_differences(
    program: Program, number: int
) -> None:
    module, values, wrt = differentiable(program, number)
    if not wrt:
        pytest.skip("no argument is float64 and not empty")
    first = pulled_back(module, wrt)
    values = [*values, *seeds_of(executable(module), module, values)]
    with np.errstate(all="ignore"):
        assert_pulls_back(
            first, executable(first), executable(pulled_back(first, wrt)), values, wrt, 1e-5
        )


@pytest.mark.parametrize(
    "seed", [pytest.param(k, marks=[pytest.mark.slow] if k > 4 else []) for k in range(12)]
)
def test_random_programs_and_their_gradients_are_compiled_as_interpreted(seed: int) -> None:
    module = random_program(seed)
    args = [2, np.float64(0.7), 0.4, np.array([0.3, -0.6, 0.9])]
    for each in (module, derived(module, module.entry, (1, 2, 3), "gradient")):
        with np.errstate(all="ignore"):
            wanted = interpret(lowered(each, "grad"), args)
            got = executable(each)(*args)
        for mine, theirs in zip(got, wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)
