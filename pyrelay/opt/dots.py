"""Products of a row and a column inside loops, as sums of products.

In: a module. Out: the module in which a matrix product of one element, as NumPy's `dot` of two
vectors gives, is a sum where it stands inside a loop: that fuses with what makes the vectors and
becomes part of a kernel that runs the loop. A library call for a row costs more than the row.
"""

from __future__ import annotations

from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module


def dots(module: Module) -> Module:
    """The module with its dot products inside loops as sums."""
    return rewrite_module(module, _rule)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    call = let.rhs
    if not scope.loops or not isinstance(call, OpCall) or call.op.name != "matmul":
        return None
    a, b = call.args
    out = let.outs[0].type
    assert isinstance(out, TensorType)
    assert isinstance(a.type, TensorType)
    assert isinstance(b.type, TensorType)
    if out.shape != (1, 1) or a.type.rank != 2 or b.type.rank != 2 or out.dtype.kind not in "fc":
        return None
    row, column = builder.handle(a), builder.handle(b)
    if call.attrs["transpose_a"]:
        row = builder.call(OPS["transpose"], row, axes=(1, 0))
    if not call.attrs["transpose_b"]:
        column = builder.call(OPS["transpose"], column, axes=(1, 0))
    product = builder.call(OPS["multiply"], row, column)
    return (builder.call(OPS["sum"], product, axes=(1,), keepdims=True).atom,)
