"""Products of vectors, and in loops of small matrices, as sums of products of elements.

In: a module. Out: the module in which a matrix product of a single element, as NumPy's `dot` of two
vectors gives, is a sum, which threads share and whose operands need not be in memory. Inside a loop
so is one where a library call would cost more than the product: one of a column and a row, and
those of matrices of short axes or of known and small size. They fuse with what makes the operands,
and become part of a kernel that runs the loop. Anywhere so is the product of a vector and a matrix
of few columns that the program computes, such as all windows of a series: it need not be in memory.
"""

from __future__ import annotations

from pyrelay.ir import dims, limits
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.ir.op import OPS, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.opt.halves import is_half
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module

MOST_PRODUCTS = 256  # of elements, in a product of matrices that becomes a sum
MOST_COLUMNS = 16  # of a matrix that the program computes


def dots(module: Module) -> Module:
    """The module with its products of vectors, and small matrix products in loops, as sums."""
    return rewrite_module(module, as_sum)


def as_sum(let: Let, builder: Builder, scope: Scope) -> Replacement:
    """The rule: a product of vectors, or a small one in a loop, as a sum."""
    call = let.rhs
    if not isinstance(call, OpCall) or call.op.name != "matmul":
        return None
    a, b = call.args
    out = let.outs[0].type
    assert isinstance(out, TensorType)
    assert isinstance(a.type, TensorType)
    assert isinstance(b.type, TensorType)
    if a.type.rank != 2 or b.type.rank != 2:
        return None
    if not scope.loops or out.dtype.kind not in "fc":
        if out.dtype.kind == "b" or is_half(a.type.dtype):
            return None
        if out.shape == (1, 1):
            return _of_vectors(let, call, builder)
        return _of_rows(call, builder) if _is_made(call, scope) else None
    left, right = builder.handle(a), builder.handle(b)
    if call.attrs["transpose_a"]:
        left = builder.call(OPS["transpose"], left, axes=(1, 0))
    inner = left.shape[1]
    if inner == 1:
        if call.attrs["transpose_b"]:
            right = builder.call(OPS["transpose"], right, axes=(1, 0))
        return (builder.call(OPS["multiply"], left, right).atom,)
    work = dims.product((*out.shape, inner))
    most = limits.greatest(work)
    small = (most is not None and most <= MOST_PRODUCTS) or all(
        map(limits.is_short, (*out.shape, inner))
    )
    if out.shape != (1, 1) and not small:
        return None
    if not call.attrs["transpose_b"]:
        right = builder.call(OPS["transpose"], right, axes=(1, 0))
    if out.shape[0] == 1:  # the rows of `right` are the columns of the product
        product = builder.call(OPS["multiply"], left, right)
        total = builder.call(OPS["sum"], product, axes=(1,), keepdims=False)
        return (builder.call(OPS["reshape"], total, shape=out.shape).atom,)
    if out.shape[1] == 1:
        return _of_rows(call, builder)
    left = builder.call(OPS["expand_dims"], left, axes=(1,))
    right = builder.call(OPS["expand_dims"], right, axes=(0,))
    product = builder.call(OPS["multiply"], left, right)
    return (builder.call(OPS["sum"], product, axes=(2,), keepdims=False).atom,)


def _is_made(call: OpCall, scope: Scope) -> bool:
    """Whether it is a vector's product with a matrix of few columns that are computed or lie in
    many places."""
    (a, b), out = call.args, scope.definition(call.args[0])
    assert isinstance(a.type, TensorType)
    assert isinstance(b.type, TensorType)
    columns = a.type.shape[-1]
    if call.attrs["transpose_a"] or not isinstance(columns, int) or columns > MOST_COLUMNS:
        return False
    if b.type.shape[0 if call.attrs["transpose_b"] else 1] != 1 or not isinstance(out, OpCall):
        return False
    return out.op.fusion is Fusion.ELEMENTWISE or out.op.name in ("gather", "gather_inside")


def _of_rows(call: OpCall, builder: Builder) -> Replacement:
    """Each row times a column: the sum of the products of their elements."""
    left, right = map(builder.handle, call.args)
    if call.attrs["transpose_a"]:
        left = builder.call(OPS["transpose"], left, axes=(1, 0))
    if not call.attrs["transpose_b"]:
        right = builder.call(OPS["transpose"], right, axes=(1, 0))
    product = builder.call(OPS["multiply"], left, right)
    return (builder.call(OPS["sum"], product, axes=(1,), keepdims=True).atom,)


def _of_vectors(let: Let, call: OpCall, builder: Builder) -> Replacement:
    """A row times a column: the sum of all products of their elements, in the type of these."""
    left, right = map(builder.handle, call.args)
    row = left.shape[::-1] if call.attrs["transpose_a"] else left.shape
    left, right = (builder.call(OPS["reshape"], x, shape=(row[1],)) for x in (left, right))
    product = builder.call(OPS["multiply"], left, right)
    total = builder.call(OPS["sum"], product, axes=(0,), keepdims=False)
    out = let.outs[0].type
    assert isinstance(out, TensorType)
    if total.dtype != out.dtype:  # integers, which are added in 64 bits
        total = builder.cast(total, out.dtype)
    return (builder.call(OPS["reshape"], total, shape=out.shape).atom,)
