"""Positions of extremes as two reductions, for which long rows can be cut into parts, and columns
be vectors.

In: the function of a fused group. Out: one in which `argmax` and `argmin` of the last axes, or of
the leading ones, are the least position of those whose element is the extreme, or no number.
"""

from __future__ import annotations

from typing import Any

from pyrelay.ir import dims
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Function, Let, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import i64
from pyrelay.opt.rewrite import Replacement, rewrite
from pyrelay.opt.shapes import shape_of

_NOWHERE = 2**63 - 1
_EXTREMES = {"argmax": "max", "argmin": "min"}


def extremes(function: Function) -> Function:
    """The function with two reductions for each position along the last axes."""
    return rewrite(function, lambda let, builder, _: _rule(let, builder, leading=False))


def extremes_of_columns(function: Function) -> Function:
    """The function with two reductions for each position along the leading axes."""
    return rewrite(function, lambda let, builder, _: _rule(let, builder, leading=True))


def columns_of_extremes(let: Let) -> Extent | None:
    """How many columns there are in whose rows a Let seeks the place of an extreme, if it does."""
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.name not in _EXTREMES:
        return None
    shape = shape_of(rhs.args[0])
    axes = sorted(axis % len(shape) for axis in rhs.attrs["axes"])
    if axes != list(range(len(axes))) or len(axes) == len(shape):
        return None
    return dims.product(shape[len(axes) :])


def _rule(let: Let, builder: Builder, *, leading: bool) -> Replacement:
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.name not in _EXTREMES:
        return None
    x = builder.handle(rhs.args[0])
    axes = tuple(sorted(axis % len(x.shape) for axis in rhs.attrs["axes"]))
    behind = len(x.shape) - axes[-1] - 1
    if axes != tuple(range(axes[0], axes[-1] + 1)) or leading != bool(behind) or leading * axes[0]:
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
    reduced = x.shape[axes[0] : axes[-1] + 1]
    line = reduced + (1,) * behind
    size: Any = 1
    for extent in reduced:
        size = size * extent
    place = call(OPS["iota"], size=size, dtype=i64)
    if any(extent != 1 for extent in line[:-1]):
        place = call(OPS["reshape"], place, shape=line)
    found = call(OPS["where"], here, place, builder.cast(_NOWHERE, i64))
    least = call(OPS["min"], found, axes=axes, keepdims=keepdims)
    return ((least if shape is None else call(OPS["reshape"], least, shape=shape)).atom,)
