"""Products of matrices of integers and complex numbers, for which there are no tiles.

In: Core before fusion. Out: Core in which a product with one column or one row is a sum of products
of elements, which reads a matrix once and as it lies, and a product of complex matrices is one of
their parts. Parts stand below each other in the left matrix, side by side in the right one: one
product of real matrices gives all products of parts, two of which are subtracted and two added. A
matrix that was real before it met complex ones has one part. What has a few elements stays.
"""

from __future__ import annotations

from pyrelay.ir import dims, limits
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Let, Module, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.ops.relations import real_part
from pyrelay.opt.dce import dce
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module

FEWEST = 6
"""Rows, columns and elements of a sum from which on a complex product is one of parts."""


def plain_products(module: Module) -> Module:
    """The module with such products written out, and without casts that nobody reads then."""
    found = rewrite_module(module, _rule)
    return module if found is module else dce(found)


def _rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
    call = let.rhs
    if not isinstance(call, OpCall) or call.op.name != "matmul":
        return None
    out = let.outs[0].type
    assert isinstance(out, TensorType)
    if out.dtype.kind not in "iuc" or out.shape[-2:] == (1, 1):
        return None
    left, right = map(builder.handle, call.args)
    turned_left, turned_right = call.attrs["transpose_a"], call.attrs["transpose_b"]
    if out.shape[-1] == 1:
        return (_of_a_line(builder, left, turned_left, right, turned_right, out).atom,)
    if out.shape[-2] == 1:
        return (_of_a_line(builder, right, not turned_right, left, not turned_left, out).atom,)
    inner = left.shape[-2] if turned_left else left.shape[-1]
    extents = (*out.shape[-2:], inner)
    if out.dtype.kind != "c" or any(map(_is_few, extents)):
        return None
    if scope.loops and all(map(limits.is_short, extents)):
        return None  # loops over short arrays are one kernel
    parts = _parts(builder, scope, call.args[0]), _parts(builder, scope, call.args[1])
    return (_of_parts(builder, parts, turned_left, turned_right, out).atom,)


def _is_few(extent: Extent) -> bool:
    most = limits.greatest(extent)
    return most is not None and most < FEWEST


def _of_a_line(
    b: Builder, matrix: Handle, turned: bool, line: Handle, row: bool, out: TensorType
) -> Handle:
    """The product of a matrix and one column. turned: whether the columns of `matrix` are what its
    rows would be. row: whether `line` lies as a row already."""
    across = -2 if turned else -1
    if row == turned:  # it is to lie along the axis that is added up
        line = _transposed(b, line)
    product = b.call(OPS["multiply"], matrix, line)
    rank = len(product.shape)
    total = b.call(OPS["sum"], product, axes=(rank + across,), keepdims=False)
    if total.dtype != out.dtype:  # integers, which are added in 64 bits
        total = b.handle(b.cast(total, out.dtype))
    made: Handle = b.call(OPS["reshape"], total, shape=out.shape)
    return made


def _transposed(b: Builder, x: Handle) -> Handle:
    rank = len(x.shape)
    made: Handle = b.call(OPS["transpose"], x, axes=(*range(rank - 2), rank - 1, rank - 2))
    return made


def _parts(b: Builder, scope: Scope, matrix: Atom) -> list[Handle]:
    """The real and the imaginary part, or what a matrix was before it was made complex."""
    made = scope.op(matrix, "cast")
    source = made.args[0] if made is not None else matrix
    assert isinstance(source.type, TensorType)
    assert isinstance(matrix.type, TensorType)
    if source.type.dtype.kind != "c":
        return [b.handle(b.cast(source, real_part(matrix.type.dtype)))]
    return [b.call(OPS[name], matrix) for name in ("real", "imag")]


def _of_parts(
    b: Builder, parts: tuple[list[Handle], list[Handle]], turned_left: bool, turned_right: bool,
    out: TensorType,
) -> Handle:
    down, across = (-1 if turned_left else -2), (-2 if turned_right else -1)
    stacked = [
        each[0] if len(each) == 1 else b.call(
            OPS["concatenate"], *each, axis=len(each[0].shape) + axis
        )
        for each, axis in zip(parts, (down, across), strict=True)
    ]
    product = b.call(
        OPS["matmul"], *stacked, transpose_a=turned_left, transpose_b=turned_right
    )
    rows, columns = out.shape[-2:]

    def block(k: int, j: int) -> Handle:
        rank = len(product.shape)
        starts = (*[0] * (rank - 2), dims.multiply(rows, k), dims.multiply(columns, j))
        made: Handle = b.call(
            OPS["slice"], product, starts=starts, sizes=out.shape, steps=(1,) * rank
        )
        return made

    two_left, two_right = (len(each) == 2 for each in parts)
    real = block(0, 0)
    if two_left and two_right:
        real = b.call(OPS["subtract"], real, block(1, 1))
        imaginary = b.call(OPS["add"], block(0, 1), block(1, 0))
    else:
        imaginary = block(1, 0) if two_left else block(0, 1)
    made: Handle = b.call(OPS["make_complex"], real, imaginary)
    return made
