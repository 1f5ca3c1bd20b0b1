"""Constant folding: scalar ops on constants are computed, known branches and empty loops resolved.

In: a module. Out: the module with scalar constants in place of what computes them. An op that
raises for its constants stays, to raise when the program runs.
"""

from __future__ import annotations

import numpy as np

from pyrelay.ir import types
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.nodes import Atom, Const, If, Let, Loop, Module, OpCall
from pyrelay.ir.op import Effect
from pyrelay.ir.types import TensorType
from pyrelay.opt.rewrite import Replaced, Replacement, Scope, rewrite_module


def fold(module: Module) -> Module:
    """Compute what is constant."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    match let.rhs:
        case OpCall():
            return _op(let, let.rhs)
        case If(Const(value), then, orelse):
            chosen = then if value else orelse
            builder.lets.extend(chosen.lets)
            return Replaced(chosen.results, chosen.dims)
        case Loop(count=Const(value)) as loop if value <= 0:
            return Replaced(loop.init, loop.init_dims)
    return None


def _op(let: Let, call: OpCall) -> Replacement:
    if call.op.effect is not Effect.PURE or len(let.outs) != 1 or call.op.name == "undef":
        return None
    ty = let.outs[0].type
    if not isinstance(ty, TensorType) or ty.shape or let.dims:
        return None
    if call.op.name == "extent":
        size = call.attrs["size"]
        return (constant(size, ty),) if isinstance(size, int) else None
    if not call.args or not all(isinstance(a, Const) for a in call.args):
        return None
    return _evaluated(call, ty)


def _evaluated(call: OpCall, ty: TensorType) -> tuple[Atom, ...] | None:
    values = [a.value for a in call.args if isinstance(a, Const)]
    try:
        with np.errstate(all="ignore"):
            value = call.op.numpy(*values, **call.attrs)
    except (ArithmeticError, ValueError):
        return None
    if types.of_scalar(value) is None:
        return None
    if ty.weak and type(value) is int and not -(2**63) <= value < 2**63:
        return None
    return (constant(value, ty),)
