"""Positions of extremes as two reductions, which long rows can be cut into parts for.

In: the function of a fused group. Out: one in which `argmax` and `argmin` of the last axis, or of
all, are the least position of those whose element is the extreme, or no number.
"""

from __future__ import annotations

from typing import Any

from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Function, Let, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import i64
from pyrelay.opt.rewrite import Replacement, Scope, rewrite
from pyrelay.opt.shapes import shape_of

_NOWHERE = 2**63 - 1
_EXTREMES = {"argmax": "max", "argmin": "min"}


def extremes(function: Function) -> Function:
    """The function with two reductions for each position of an extreme."""
    return rewrite(function, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.name not in _EXTREMES:
        return None
    x = builder.handle(rhs.args[0])
    axes = tuple(sorted(axis % len(x.shape) for axis in rhs.attrs["axes"]))
    if axes != tuple(range(axes[0], len(x.shape))):
        return None
    call: Any = builder.call
    keepdims, shape = rhs.attrs["keepdims"], None
    if axes[0] and all(extent == 1 for extent in x.shape[: axes[0]]):
        # There is one row: then all is reduced, for which schedules look.
        axes, keepdims, shape = tuple(range(len(x.shape))), True, shape_of(let.outs[0])
    most = call(OPS[_EXTREMES[rhs.op.name]], x, axes=axes, keepdims=True)
    here = call(OPS["equal"], x, most)
    if x.dtype.kind == "f":
        here = here | call(OPS["not_equal"], x, x)
    reduced = x.shape[axes[0] :]
    size: Any = 1
    for extent in reduced:
        size = size * extent
    place = call(OPS["iota"], size=size, dtype=i64)
    if any(extent != 1 for extent in reduced[:-1]):
        place = call(OPS["reshape"], place, shape=reduced)
    found = call(OPS["where"], here, place, builder.cast(_NOWHERE, i64))
    least = call(OPS["min"], found, axes=axes, keepdims=keepdims)
    return ((least if shape is None else call(OPS["reshape"], least, shape=shape)).atom,)
