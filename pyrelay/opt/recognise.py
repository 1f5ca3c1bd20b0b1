"""Functions that are written out in arithmetic, as the ops that they are.

In: a module before its derivatives are expanded. Out: one that computes 1 / (1 + exp(-x)) by the op
for it. That rounds once or twice less than the formula, does not overflow inside, and its
derivative needs its result only: the formula's needs the exponential too, so a loop would keep both
for every round.

Python's own floats stay as they are: `math.exp` raises an exception where the result is too large.
"""

from __future__ import annotations

from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Atom, Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ir.walk import is_number
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module


def recognise(module: Module) -> Module:
    """The module with the ops in place of the formulas."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall):
        return None
    if rhs.op.name == "reciprocal":
        below = rhs.args[0]
    elif rhs.op.name == "divide" and is_number(rhs.args[0], 1):
        below = rhs.args[1]
    else:
        return None
    x = _exponent(below, scope)
    ty = let.outs[0].type
    if x is None or not isinstance(ty, TensorType) or ty.dtype.kind != "f" or ty.weak:
        return None
    if x.type != ty:
        return None
    return (builder.call(OPS["sigmoid"], x).atom,)


def _exponent(below: Atom, scope: Scope) -> Atom | None:
    """`x` of `1 + exp(-x)`."""
    total = scope.op(below, "add")
    if total is None:
        return None
    for one, power in (total.args, total.args[::-1]):
        exp = scope.op(power, "exp") if is_number(one, 1) else None
        turned = None if exp is None else scope.op(exp.args[0], "negative")
        if turned is not None:
            return turned.args[0]
    return None
