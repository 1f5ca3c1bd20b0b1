"""Calling one op: its arguments as variables of their own types, its result by the interpreter."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import pyrelay.ops  # noqa: F401  registers the ops
from pyrelay.ir import types
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Module, Var
from pyrelay.ir.op import OPS, Op, Sample
from pyrelay.ir.types import TAPE, TensorType, Type


def type_of(value: Any) -> Type:
    """The type of a NumPy or Python value; a list is a tape."""
    if isinstance(value, list):
        return TAPE
    scalar = types.of_scalar(value)
    if scalar is not None:
        return scalar
    dtype = types.from_numpy(value.dtype)
    assert dtype is not None
    return TensorType(dtype, value.shape)


def program(args: Sequence[Any], body: Callable[..., Any]) -> Module:
    """A module of one function, whose parameters have the types of `args`."""
    builder = Builder()
    params = tuple(Var(f"x{k}", type_of(a)) for k, a in enumerate(args))
    results = body(builder, *map(builder.handle, params))
    results = results if isinstance(results, tuple) else (results,)
    return Module({"f": Function("f", params, builder.block(results))}, "f")


def run(args: Sequence[Any], body: Callable[..., Any]) -> tuple[Any, ...]:
    """The results of a body on handles, applied to `args` by the interpreter.

    The interpreter checks that every value has exactly the type that relations gave it.
    """
    return interpret(program(args, body), args)


def call(name: str, *args: Any, **attrs: Any) -> Any:
    """The result of an op, promotion included."""
    return run(args, lambda build, *handles: build.call(OPS[name], *handles, **attrs))[0]


def result_type(name: str, *arg_types: Type, **attrs: Any) -> Any:
    """The type that the builder finds for the result of an op on operands of these types."""
    builder = Builder()
    operands = [builder.handle(Var("x", t)) for t in arg_types]
    return builder.call(OPS[name], *operands, **attrs).type


def samples(*, differentiable: bool = False) -> list[Any]:
    """Every sample of every op as a pytest parameter (op, sample)."""
    return [
        pytest.param(op, sample, id=f"{op.name}-{k}")
        for op in OPS.values()
        for k, sample in enumerate(op.samples)
        if not differentiable or _has_derivative(op, sample)
    ]


def _has_derivative(op: Op, sample: Sample) -> bool:
    floating = any(np.asarray(a).dtype.kind in "fc" for a in sample.args if not isinstance(a, list))
    return sample.differentiable and callable(op.vjp) and floating and "tape" not in op.name


def weighted_sum(build: Builder, y: Handle | tuple[Handle, ...], seed: float = 0.7) -> Handle:
    """A real number that tells all elements of the results apart, complex parts included."""
    if isinstance(y, tuple):
        sums = [weighted_sum(build, part, seed + 0.4 * k) for k, part in enumerate(y)]
        whole: Handle = functools.reduce(operator.add, sums)
        return whole
    if y.dtype.kind == "c":
        parts = (build.call(OPS["real"], y), build.call(OPS["imag"], y))
        total: Handle = weighted_sum(build, parts[0], 0.7) + weighted_sum(build, parts[1], 1.9)
        return total
    if not y.rank:
        return build.handle(build.cast(y * seed, types.f64))
    size = y.type.size
    flat = build.call(OPS["reshape"], y, shape=(size,))
    weights = build.call(OPS["iota"], size=size, dtype=types.f64) * 0.31 + seed
    summed: Handle = build.call(OPS["sum"], flat * weights, axes=(0,), keepdims=False)
    return summed
