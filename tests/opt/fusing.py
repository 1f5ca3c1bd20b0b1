"""What the tests of fusion share: programs written with a builder, and the kernels they become.

In: types of parameters, a function that builds a body. Out: a module (`program`), its kernels once
it is fused (`kernels`), and the ops of each (`fused`, `names`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pyrelay.ops  # noqa: F401  (registers the ops)
from pyrelay.ir import dims, interp, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Function, KernelCall, Module, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, f32
from pyrelay.ir.verify import verify
from pyrelay.opt.fuse import fuse

N, M = Symbol("n"), Symbol("m")
n, m = dims.of(N), dims.of(M)
random = np.random.default_rng(3)
Body = Callable[..., Any]


def op(name: str) -> Any:
    return OPS[name]


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def array(*shape: Any) -> TensorType:
    return TensorType(f32, shape)


def program(params: Sequence[TensorType], body: Body, symbols: Sequence[Symbol] = ()) -> Module:
    b = Builder()
    variables = tuple(Var(f"p{k}", ty) for k, ty in enumerate(params))
    results = body(b, *(Handle(b, p) for p in variables))
    results = results if isinstance(results, (tuple, list)) else (results,)
    return Module({"f": Function("f", variables, b.block(results), tuple(symbols))}, "f")


def fused(module: Module, args: Sequence[Any] = ()) -> list[list[str]]:
    """The ops of each kernel, after checking that the fused program is right on `args`."""
    after = fuse(module)
    verify(after, "fuse")
    if args:
        expected = interp.interpret(module, args)
        for a, b in zip(interp.interpret(after, args), expected, strict=True):
            np.testing.assert_array_equal(a, b)
    return [names(let.rhs.function) for let in kernels(after)]


def kernels(module: Module) -> list[Any]:
    lets = walk.nested_lets(module.main.body)
    return [let for let in lets if isinstance(let.rhs, KernelCall)]


def names(function: Function) -> list[str]:
    return [
        let.rhs.op.name if isinstance(let.rhs, OpCall) else type(let.rhs).__name__.lower()
        for let in function.body.lets
    ]
