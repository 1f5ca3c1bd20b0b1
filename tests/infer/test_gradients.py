"""Gradients of the corpus agree with finite differences, along one direction per call."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from pyrelay.infer.structure import Flattened, flatten
from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Module, Var, Vjp
from pyrelay.ir.types import TensorType
from pyrelay.pipeline import lowered
from tests.infer.running import inferred
from tests.programs import PROGRAMS, Program

CALLS = [
    pytest.param(p, k, id=f"{p.name}-{k}")
    for p in PROGRAMS if p.wrt for k in range(len(p.inputs))
]
STEP = 1e-6


def pulled_back(module: Module, wrt: tuple[int, ...]) -> tuple[Module, list[int]]:
    """A module that takes the arguments, then seeds of the floating results, and gives the
    cotangents of the parameters `wrt`; and which results are floating."""
    main = module.main
    floating = [
        k for k, t in enumerate(main.result_types)
        if isinstance(t, TensorType) and t.dtype.kind == "f"
    ]
    builder = Builder()
    params = [Var(p.name, p.type) for p in main.params]
    seeds = [Var("seed", main.result_types[k]) for k in floating]
    request = Vjp(
        module.entry, tuple(params), tuple(seeds), tuple(floating), wrt,
        tuple(map(dims.of, main.dims)),
    )
    outs = builder.bind(
        request, [*main.result_types, *(main.params[i].type for i in wrt)]  # type: ignore[list-item]
    )
    body = builder.block(outs[len(main.result_types):])
    entry = Function("derivative", (*params, *seeds), body, main.dims)
    return Module({**module.functions, "derivative": entry}, "derivative"), floating


def direction(value: Any, salt: int) -> Any:
    """Deterministic numbers of the shape and class of `value`."""
    noise = np.cos(np.arange(np.size(value)) * 2.3 + salt).reshape(np.shape(value))
    return np.asarray(noise, np.asarray(value).dtype)[()] if np.ndim(value) == 0 else noise


@pytest.mark.parametrize(("program", "number"), CALLS)
def test_gradient_agrees_with_finite_differences(program: Program, number: int) -> None:
    args = program.arguments()[number]
    specialised = inferred(program.function, args)
    flat = Flattened(apart=specialised.binding.apart)
    chosen = []
    for position, value in enumerate(args):
        before = len(flat.leaves)
        flatten([(value, "argument")], flat)
        if position in program.wrt:
            chosen += range(before, len(flat.leaves))
    chosen = [k for k in chosen if np.asarray(flat.leaves[k]).dtype == np.float64]
    if not chosen:
        pytest.skip("no argument is float64")
    for hidden in specialised.binding.hidden:
        flatten([(hidden.read(), hidden.name)], flat, captured=True)
    values = [flat.leaves[k] for k in specialised.binding.parameters]
    wrt = tuple(i for i, k in enumerate(specialised.binding.parameters) if k in chosen)
    if any(np.size(values[i]) == 0 for i in wrt):
        pytest.skip("an argument is empty")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(specialised.module, values, wrt)


def compare(module: Module, values: list[Any], wrt: tuple[int, ...]) -> None:
    """The pulled-back seeds against a central difference along one direction."""
    derivative, floating = pulled_back(module, wrt)
    along = {i: direction(values[i], i) for i in wrt}

    def moved(by: float) -> list[Any]:
        shifted = [
            type(v)(v + by * along[i]) if i in along and np.ndim(v) == 0
            else v + by * along[i] if i in along else v
            for i, v in enumerate(values)
        ]
        results = interpret(module, shifted)
        return [results[k] for k in floating]

    plain = moved(0.0)
    seeds = [direction(r, 7 + k) for k, r in enumerate(plain)]
    seeds = [type(r)(s) if np.ndim(r) == 0 else s for r, s in zip(plain, seeds, strict=True)]
    expected = sum(
        float(np.sum(s * (np.asarray(high) - np.asarray(low)))) / (2 * STEP)
        for s, high, low in zip(seeds, moved(STEP), moved(-STEP), strict=True)
    )
    gradients = interpret(lowered(derivative, "grad"), [*values, *seeds])
    got = sum(float(np.sum(g * along[i])) for g, i in zip(gradients, wrt, strict=True))
    assert got == pytest.approx(expected, rel=2e-5, abs=2e-6)
