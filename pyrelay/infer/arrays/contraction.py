"""`@`, np.dot, np.matmul: operands of rank 1 get an axis, which the result loses again."""

from __future__ import annotations

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.arrays.numpys_words import not_multiplied
from pyrelay.infer.flow.handling import without_words
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.nodes import Atom
from pyrelay.ir.op import OPS

_MOST = 5, 16
"""Rows and columns of matrices whose elements are added sooner than a product of them begins."""


def matmul(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """`x @ y`. Raises ShapeError if the inner extents differ or an operand is a scalar.

    NumPy has no such product of bfloat16, and takes that of float32.
    """
    given = [it.tensor(v) for v in (x, y)]
    wide = [types.TensorType(types.f32, t.shape) if t.dtype is types.bf16 else t for t in given]
    dtype, _ = types.promote(wide)
    return product(it, x, y, dtype)


def product(
    it: Interpreter, x: V.Value, y: V.Value, dtype: types.DType | None = None
) -> V.Value:
    """The same, an array of the operands' common type if none is given; of bfloat16 too, as np.dot
    has it."""
    tx, ty = it.tensor(x), it.tensor(y)
    if not tx.shape or not ty.shape:
        failure = it.failure(
            errors.ShapeError, f"'@' cannot take a scalar: {tx} @ {ty}",
            hints=("use * to multiply by a number",),
        )
        raise failure if tx.shape == ty.shape else without_words(it, failure, ValueError)
    inner = ty.shape[0] if ty.rank == 1 else ty.shape[-2]
    if it.program.guards.equal(tx.shape[-1], inner) is False:
        failure = it.failure(
            errors.ShapeError, f"'@' cannot combine {tx} and {ty}",
            notes=(
                "the last axis of the left operand and the "
                f"{'first' if ty.rank == 1 else 'second to last'} axis of the right one must be "
                f"equal: {dims.show(tx.shape[-1])} and {dims.show(inner)} differ",
            ),
        )
        said = not_multiplied(it, tx, ty)
        as_said = it.operation(OPS["matmul"]) == "'@'"
        raise without_words(it, failure, ValueError, said if as_said else None)
    if dtype is None:
        dtype, _ = types.promote((tx, ty))
    a, b = it.atom(x), it.atom(y)
    squeezed = []
    if tx.rank == 1:
        a = it.emit("expand_dims", a, axes=(0,)).atom
        squeezed.append(-2)
    if ty.rank == 1:
        b = it.emit("expand_dims", b, axes=(1,)).atom
        squeezed.append(-1)
    a, b = it.builder.cast(a, dtype), it.builder.cast(b, dtype)
    result = _columns_of_many(it, a, b)
    if result is None:
        result = it.emit("matmul", a, b, transpose_a=False, transpose_b=False)
    rank = result.rank
    axes = tuple(sorted(k + rank for k in squeezed))
    if axes:
        result = it.emit("squeeze", result, axes=axes)
    return it.result(result)


def _columns_of_many(it: Interpreter, a: Atom, b: Atom) -> Handle | None:
    """Many small matrices, each times a column of its own, as sums of lines; None for others.

    A product takes longer to begin than so few elements to add.
    """
    left, right = it.builder.handle(a), it.builder.handle(b)
    if left.rank < 3 or right.rank < 3 or right.shape[-1] != 1 or left.dtype.kind != "f":
        return None
    for extent, most in zip(left.shape[-2:], _MOST, strict=True):
        if it.program.guards.compare("<=", extent, most) is not True:
            return None
    order = (*range(right.rank - 2), right.rank - 1, right.rank - 2)
    lines = it.emit("multiply", left, it.emit("transpose", right, axes=order))
    found: Handle = it.emit("sum", lines, axes=(lines.rank - 1,), keepdims=True)
    return found


def dot(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """np.dot: a product with scalars, else a contraction of the last and second to last axes."""
    tx, ty = it.tensor(x), it.tensor(y)
    if not tx.shape or not ty.shape:
        return it.call("multiply", x, y)
    if tx.rank <= 2 and ty.rank <= 2:
        return product(it, x, y)
    if ty.rank == 1:
        return product(it, x, y)
    # np.dot of higher ranks: result[i..., j..., n] = sum_k x[i..., k] y[j..., k, n]
    lead = it.emit("reshape", x, shape=(dims.product(tx.shape[:-1]), tx.shape[-1]))
    order = (ty.rank - 2, *range(ty.rank - 2), ty.rank - 1)
    moved = it.emit("transpose", y, axes=order)
    rest = (*ty.shape[:-2], ty.shape[-1])
    flat = it.emit("reshape", moved, shape=(ty.shape[-2], dims.product(rest)))
    flat_result = product(it, it.result(lead), it.result(flat))
    return it.call("reshape", flat_result, shape=(*tx.shape[:-1], *rest))
