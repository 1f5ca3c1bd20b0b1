"""Derivatives of Core programs checked against finite differences, to any order.

A program is a module whose entry takes floating arrays (and integers) and returns one f64 scalar.
`f1` is the sum of its cotangents times fixed weights, `f2` the same of `f1`, and so on; each is
compared with a central difference of the one before along a fixed direction, and so is what forward
mode gives for the first two, along that direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.grad.expand import expand
from pyrelay.ir import dims, types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import FnCall, Function, Jvp, Module, OpCall, Var, Vjp
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ir.verify import verify
from pyrelay.ir.walk import nested_lets
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.fold import fold
from pyrelay.opt.simplify import simplify

F64 = TensorType(types.f64)
ONE = constant(np.float64(1.0))


def vector(n: dims.Extent) -> TensorType:
    """The type of a vector."""
    return TensorType(types.f64, (n,))


def matrix(n: dims.Extent, m: dims.Extent) -> TensorType:
    """The type of a matrix."""
    return TensorType(types.f64, (n, m))


def op(name: str, *operands: Any, **attrs: Any) -> Any:
    """Emit an op through the builder of its first handle."""
    return OPS[name](*operands, **attrs)


def function(
    name: str, params: Sequence[TensorType], body: Callable[..., Any],
    symbols: Sequence[dims.Symbol] = (),
) -> Function:
    """A function whose body is written on handles; it returns a handle or a tuple of them."""
    builder = Builder()
    variables = tuple(Var(f"x{k}", ty) for k, ty in enumerate(params))
    results = body(builder, *(builder.handle(v) for v in variables))
    results = results if isinstance(results, tuple) else (results,)
    return Function(name, variables, builder.block(results), tuple(symbols))


def call(builder: Builder, name: str, args: Sequence[Any], out_types: Sequence[Any]) -> Any:
    """Emit a call of a function without symbols."""
    outs = builder.bind(FnCall(name, tuple(builder.atom(a) for a in args)), out_types)
    return outs[0] if len(outs) == 1 else outs


def program(*functions: Function) -> Module:
    """A module; the first function is the entry."""
    return Module({f.name: f for f in functions}, functions[0].name)


def _weighted(builder: Builder, g: Handle, seed: float) -> Handle:
    """The sum of g's elements times weights that tell them apart."""
    size = g.type.size
    flat = op("reshape", g, shape=(size,)) if g.rank != 1 else g
    count = builder.call(OPS["iota"], size=size, dtype=types.f64)
    weights = count * constant(np.float64(0.31)) + constant(np.float64(seed))
    total: Handle = op("sum", flat * weights, axes=(0,), keepdims=False)
    return total


def derived(module: Module, name: str, wrt: Sequence[int], new: str) -> Module:
    """The module with a new entry: the weighted sum of the cotangents of function `name`."""
    source = module.functions[name]
    builder = Builder()
    params = tuple(Var(p.name, p.type) for p in source.params)
    vjp = Vjp(name, params, (ONE,), (0,), tuple(wrt), tuple(dims.of(s) for s in source.dims))
    results = [r.type for r in source.body.results]
    outs = builder.bind(vjp, [*results, *(params[k].type for k in wrt)])
    cotangents = outs[len(results):]
    total = builder.handle(np.float64(0.0))
    for k, g in enumerate(cotangents):
        part = builder.handle(builder.cast(g, types.f64))
        if part.rank:
            part = _weighted(builder, part, 0.7 + 0.2 * k)
        else:
            part = part * np.float64(0.7 + 0.2 * k)
        total = total + part
    body = builder.block((total, *cotangents))
    entry = Function(new, params, body, source.dims)
    return Module({**module.functions, new: entry}, new)


def cotangents(
    module: Module, args: Sequence[Any], wrt: Sequence[int] | None = None
) -> list[np.ndarray]:
    """The gradient of the entry at `args`."""
    wrt = _floating(module) if wrt is None else wrt
    request = derived(module, module.entry, wrt, "gradient")
    expanded = expand(request)
    verify(expanded, "grad")
    return [np.asarray(g) for g in interpret(expanded, args)[1:]]


def cleaned(module: Module) -> Module:
    """What the pipeline does between two orders."""
    for each in (fold, simplify, cse, dce):
        module = each(module)
    return module


def _floating(module: Module) -> list[int]:
    return [k for k, p in enumerate(module.main.params) if p.type.dtype.is_float]


def expanded_orders(
    module: Module, orders: int, wrt: Sequence[int] | None = None,
    clean: Callable[[Module], Module] | None = None,
) -> list[Module]:
    """The expanded programs of order 0, 1, ..., `orders`, cleaned between the orders."""
    wrt = _floating(module) if wrt is None else wrt
    found, requests = [expand(module)], module
    for order in range(1, orders + 1):
        requests = derived(requests, requests.entry, wrt, f"order{order}")
        found.append(expand(requests, clean))
        verify(found[-1], "grad")
    return found


def tangent(
    module: Module, args: Sequence[Any], directions: Mapping[int, Any],
    clean: Callable[[Module], Module] | None = None,
) -> Any:
    """The tangent of the entry's first result, by forward mode over what the module asks for."""
    source = module.main
    builder = Builder()
    params = tuple(Var(p.name, p.type) for p in source.params)
    given = tuple(directions)
    seeds = tuple(Var("seed", params[k].type) for k in given)
    extents = tuple(dims.of(s) for s in source.dims)
    results = [r.type for r in source.body.results]
    outs = builder.bind(
        Jvp(module.entry, params, seeds, given, (0,), extents), [*results, results[0]]
    )
    entry = Function("tangent", params + seeds, builder.block((outs[-1],)), source.dims)
    expanded = expand(Module({**module.functions, "tangent": entry}, "tangent"), clean)
    verify(expanded, "grad")
    return interpret(expanded, (*args, *directions.values()))[0]


def check(
    module: Module, args: Sequence[Any], orders: int = 3, wrt: Sequence[int] | None = None,
    step: float = 1e-5, tolerance: float = 2e-6,
) -> None:
    """Compare the derivatives of orders 1 to `orders` with central differences."""
    verify(module, "infer")
    wrt = _floating(module) if wrt is None else list(wrt)
    random = np.random.default_rng(5)
    directions = {k: random.standard_normal(np.shape(args[k]))[()] for k in wrt}
    programs = expanded_orders(module, orders, wrt)
    requests = module

    def moved(by: float) -> list[Any]:
        return [
            a + by * directions[k] if k in directions else a for k, a in enumerate(args)
        ]

    for order in range(1, orders + 1):
        gradient = interpret(programs[order], args)[1:]
        found = sum(np.sum(g * directions[k]) for k, g in zip(wrt, gradient, strict=True))
        above = interpret(programs[order - 1], moved(step))[0]
        below = interpret(programs[order - 1], moved(-step))[0]
        expected = (above - below) / (2 * step)
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance, err_msg=f"order {order}"
        )
        if order <= 2:
            forward = tangent(requests, args, directions)
            np.testing.assert_allclose(
                forward, found, rtol=1e-9, atol=1e-11, err_msg=f"forward, order {order}"
            )
            requests = derived(requests, requests.entry, wrt, f"derived{order}")


def op_names(module: Module) -> list[str]:
    """The names of all ops in a module, once per occurrence."""
    return [
        let.rhs.op.name for f in module.functions.values() for let in nested_lets(f.body)
        if isinstance(let.rhs, OpCall)
    ]


def size(module: Module) -> int:
    """The number of Lets of a module."""
    return sum(1 for f in module.functions.values() for _ in nested_lets(f.body))
