"""NumPy's reductions and scans, as handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.attributes import is_our_own
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import complex_order
from pyrelay.infer.names.adapters import (
    axes_of,
    cast,
    dtype_of,
    one_axis,
    operand,
    strong,
)
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.names.shape import ravel
from pyrelay.infer.operators import binary, raised
from pyrelay.ir import dims, types
from pyrelay.ir.types import DType

FALSE, TRUE = V.Known(False), V.Known(True)
ZERO, ONE = V.Known(0), V.Known(1)


def stored(it: Interpreter, out: V.Value, result: V.Value) -> V.Value:
    """The result, written to `out` where that is given."""
    if out == V.NONE:
        return result
    from pyrelay.infer.arrays.subscripts import set_item

    set_item(it, out, V.Known(Ellipsis), result)
    return out


def type_of_out(it: Interpreter, x: V.Value, out: V.Value) -> V.Value:
    """The type in which NumPy adds or multiplies up for `out`; None for that of the elements."""
    if not isinstance(out, V.ArrayRef):
        return V.NONE
    dtype = out.type.dtype.numpy
    return V.Known(dtype) if np.can_cast(it.tensor(x).dtype.numpy, dtype, "same_kind") else V.NONE


#: what stands for an element that `where` leaves out
_NEUTRAL = {"sum": 0, "prod": 1, "any": False, "all": True}
_NO_IDENTITY = {
    op: f"zero-size array to reduction operation {op}imum which has no identity"
    for op in ("max", "min")
}
#: how `initial` joins in
_JOIN = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def as_number(it: Interpreter, x: V.Value) -> V.Value:
    """The element of an array of no axes as a number, which NumPy's functions give."""
    return it.result(it.builder.handle(it.atom(x)))


def _narrow(it: Interpreter, dtype: V.Value) -> tuple[DType | None, DType | None]:
    """Bools or ints of fewer than 64 bits that `dtype=` asks for, and what sums of them have.

    These are cut at the end: the last bits of a sum or a product depend on no others.
    """
    asked = dtype_of(it, dtype)
    if asked is None or asked.kind not in "biu" or asked in (types.i64, types.u64):
        return None, None
    return asked, types.u64 if asked.kind == "u" else types.i64


def reduction(op: str) -> Callable[..., V.Value]:
    """A reduction with all the arguments that any has."""

    def handler(
        it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
        out: V.Value = V.NONE, keepdims: V.Value = FALSE, initial: V.Value = V.NONE,
        where: V.Value = TRUE,
    ) -> V.Value:
        x = strong(it, operand(it, a))
        if op in ("sum", "prod") and dtype == V.NONE:
            dtype = type_of_out(it, x, out)
        narrow, wide = _narrow(it, dtype)
        if narrow is not None:
            x = cast(it, cast(it, x, narrow), wide)
            found = handler(it, x, axis, V.NONE, V.NONE, keepdims, initial, where)
            return stored(it, out, cast(it, found, narrow))
        x = cast(it, x, dtype)
        ty = it.tensor(x)
        if op in ("sum", "prod") and dtype == V.NONE and ty.dtype.kind in "biu":
            x = cast(it, x, types.u64 if ty.dtype.kind == "u" else types.i64)
        if op in ("any", "all"):
            x = cast(it, x, types.bool_)
        if where != TRUE:
            x = _chosen(it, op, x, where, initial)
            ty = it.tensor(x)
        axes = axes_of(it, axis, ty.rank)
        keep = bool(it.static(keepdims, "keepdims"))
        if initial != V.NONE and op in ("max", "min"):
            return stored(it, out, _with_initial(it, op, x, initial, axes, keep))
        if initial != V.NONE:
            found = it.call(op, x, axes=axes, keepdims=keep) if ty.shape else as_number(it, x)
            first = it.builder.cast(it.atom(initial), it.tensor(found).dtype)
            return stored(it, out, it.call(_JOIN[op], found, first))
        if not ty.shape:
            return stored(it, out, as_number(it, x))
        if op in _NO_IDENTITY:
            refuse_empty(it, ty, axes, _NO_IDENTITY[op])
        if op in ("max", "min") and ty.dtype.kind == "c":
            return stored(it, out, complex_order.reduced(it, op, x, axes, keep))
        return stored(it, out, it.call(op, x, axes=axes, keepdims=keep))

    return handler


def refuse_empty(
    it: Interpreter, ty: types.TensorType, axes: tuple[int, ...], text: str
) -> None:
    """Raise ValueError, as NumPy does, if there is nothing along these axes to make a result of.

    Extents of arguments are asked by guards.
    """
    size = dims.product(ty.shape[k] for k in axes)
    nothing = it.program.guards.compare("==", size, 0)
    if nothing is False or (nothing is None and is_our_own(it)):
        return
    if nothing:
        raise raised(it, ValueError(text))
    from pyrelay.infer.flow.effects import raise_where

    empty = it.emit("equal", V.Scalar.of_extent(size), 0)
    raise_where(it, empty.atom, ValueError, V.Known(text))


def _extreme(op: str) -> Callable[..., V.Value]:
    reduce = reduction(op)

    def handler(
        it: Interpreter, a: V.Value, axis: V.Value = V.NONE, out: V.Value = V.NONE,
        keepdims: V.Value = FALSE, initial: V.Value = V.NONE, where: V.Value = TRUE,
    ) -> V.Value:
        return reduce(it, a, axis, V.NONE, out, keepdims, initial, where)

    return handler


def _quantifier(op: str) -> Callable[..., V.Value]:
    reduce = reduction(op)

    def handler(
        it: Interpreter, a: V.Value, axis: V.Value = V.NONE, out: V.Value = V.NONE,
        keepdims: V.Value = FALSE, *, where: V.Value = TRUE,
    ) -> V.Value:
        return reduce(it, a, axis, V.NONE, out, keepdims, V.NONE, where)

    return handler


def _chosen(
    it: Interpreter, op: str, x: V.Value, where: V.Value, initial: V.Value
) -> V.Value:
    """The elements where the mask holds, and elsewhere what does not change the result."""
    from pyrelay.infer.names.numpy import where as select

    neutral = V.Known(_NEUTRAL[op]) if op in _NEUTRAL else initial
    if neutral == V.NONE:
        raise it.failure(
            errors.InvalidValueError,
            f"np.{op} has no identity, so to use where= one has to give initial=",
        )
    other = it.builder.cast(it.atom(neutral), it.tensor(x).dtype)
    return select(it, where, x, it.result(it.builder.handle(other)))


def _with_initial(
    it: Interpreter, op: str, x: V.Value, initial: V.Value, axes: tuple[int, ...], keep: bool
) -> V.Value:
    """The extreme with one more element, so that an empty array has one too."""
    ty = it.tensor(x)
    rest = tuple(k for k in range(ty.rank) if k not in axes)
    order = rest + axes
    moved = it.emit("transpose", x, axes=order) if order != tuple(range(ty.rank)) else x
    outer = tuple(ty.shape[k] for k in rest)
    lanes = it.emit("reshape", moved, shape=(*outer, dims.product(ty.shape[k] for k in axes)))
    first = it.builder.cast(it.atom(initial), ty.dtype)
    column = it.emit("broadcast_to", first, shape=(*outer, 1))
    joined = it.emit("concatenate", lanes, column, axis=len(rest))
    if ty.dtype.kind == "c":
        found = complex_order.reduced(it, op, it.result(joined), (len(rest),), False)
    else:
        found = it.call(op, joined, axes=(len(rest),), keepdims=False)
    return it.call("expand_dims", found, axes=axes) if keep and axes else found


handles(np.sum)(reduction("sum"))
handles(np.prod)(reduction("prod"))
handles(np.max, np.amax)(_extreme("max"))
handles(np.min, np.amin)(_extreme("min"))
handles(np.any)(_quantifier("any"))
handles(np.all)(_quantifier("all"))


def _count(it: Interpreter, x: V.Value, axis: V.Value, where: V.Value, keep: V.Value) -> V.Value:
    """How many elements each result is made of."""
    ty = it.tensor(x)
    if where == TRUE:
        extents = dims.product(ty.shape[k] for k in axes_of(it, axis, ty.rank))
        return V.Scalar.of_extent(extents)
    mask = it.call("broadcast_to", operand(it, where), shape=ty.shape)
    return reduction("sum")(it, mask, axis, keepdims=keep)


@handles(np.mean)
def mean(
    it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
    out: V.Value = V.NONE, keepdims: V.Value = FALSE, where: V.Value = TRUE,
) -> V.Value:
    """np.mean."""
    x = strong(it, operand(it, a))
    target = dtype_of(it, dtype)
    if target is None and it.tensor(x).dtype.kind not in "fc":
        target = types.f64
    x = cast(it, x, target)
    given = it.tensor(x).dtype
    if target is None and given.kind == "f" and given.size == 2:  # as NumPy, lest a sum overflow
        found = _sum_over_count(it, cast(it, x, types.f32), axis, keepdims, where)
        return stored(it, out, cast(it, found, given))
    return stored(it, out, cast(it, _sum_over_count(it, x, axis, keepdims, where), target))


def _sum_over_count(
    it: Interpreter, x: Any, axis: V.Value, keepdims: V.Value, where: V.Value
) -> V.Value:
    total = reduction("sum")(it, x, axis, keepdims=keepdims, where=where)
    return _divided(it, total, _count(it, x, axis, where, keepdims))


def _divided(it: Interpreter, total: V.Value, count: V.Value, lost: V.Value = ZERO) -> V.Value:
    """A sum over how many elements it is of, less `lost`. Of 16-bit floats the count is one of
    float32, as not all numbers beyond 2,048 are theirs."""
    given = it.tensor(total).dtype
    kind = types.f32 if given in (types.f16, types.bf16) else given
    divisor = it.builder.cast(it.atom(binary(it, "-", count, lost)), kind)
    if lost != ZERO:  # of too few elements it is infinite, or no number
        divisor = it.emit("maximum", divisor, it.builder.cast(it.atom(ZERO), kind))
    return cast(it, it.call("divide", cast(it, total, kind), divisor), given)


@handles(np.var)
def var(
    it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
    out: V.Value = V.NONE, ddof: V.Value = ZERO, keepdims: V.Value = FALSE,
    where: V.Value = TRUE, mean: V.Value = V.NONE, correction: V.Value = V.NONE,
) -> V.Value:
    """np.var; `mean` is one computed before with keepdims=True."""
    x = strong(it, operand(it, a))
    ty = it.tensor(x)
    target = dtype_of(it, dtype)
    if target is not None and target.kind not in "fc":
        raise it.failure(
            errors.UnsupportedOperationError,
            f"a variance is not computed with elements of {target.numpy}",
            hints=("leave dtype out, and convert the result",),
        )
    x = cast(it, x, target or (None if ty.dtype.kind in "fc" else types.f64))
    centre = _sum_over_count(it, x, axis, TRUE, where) if mean == V.NONE else mean
    centred = binary(it, "-", x, centre)
    if ty.dtype.kind == "c":
        squared = it.call("square", it.call("absolute", centred))
    else:
        squared = it.call("multiply", centred, centred)
    total = reduction("sum")(it, squared, axis, keepdims=keepdims, where=where)
    lost = ddof if correction == V.NONE else correction
    count = _count(it, x, axis, where, keepdims)
    return stored(it, out, _divided(it, total, count, lost))


@handles(np.std)
def std(
    it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
    out: V.Value = V.NONE, ddof: V.Value = ZERO, keepdims: V.Value = FALSE,
    where: V.Value = TRUE, mean: V.Value = V.NONE, correction: V.Value = V.NONE,
) -> V.Value:
    """np.std; the gradient of what is all alike is 0, as in PyTorch (autograd and JAX give NaN)."""
    found = var(it, a, axis, dtype, V.NONE, ddof, keepdims, where, mean, correction)
    flat = it.call("equal", found, ZERO)
    none, one = (it.builder.cast(k, it.tensor(found).dtype) for k in (0, 1))
    root = it.call("sqrt", it.call("where", flat, one, found))
    return stored(it, out, it.call("where", flat, none, root))


def _arg_reduction(op: str) -> Any:
    def handler(
        it: Interpreter, a: V.Value, axis: V.Value = V.NONE, out: V.Value = V.NONE,
        *, keepdims: V.Value = FALSE,
    ) -> V.Value:
        x = strong(it, operand(it, a))
        keep = bool(it.static(keepdims, "keepdims"))
        if it.tensor(x).rank == 0:  # a number lies at 0 of its only axis
            x, keep = ravel(it, x), False
        ty = it.tensor(x)
        axes = tuple(range(ty.rank)) if axis == V.NONE else (one_axis(it, axis, ty.rank),)
        refuse_empty(it, ty, axes, f"attempt to get {op} of an empty sequence")
        if ty.dtype.kind == "c":
            return stored(it, out, complex_order.reduced(it, op, x, axes, keep))
        return stored(it, out, it.call(op, x, axes=axes, keepdims=keep))

    return handler


handles(np.argmax)(_arg_reduction("argmax"))
handles(np.argmin)(_arg_reduction("argmin"))


def scan(op: str) -> Callable[..., V.Value]:
    """np.cumsum or np.cumprod."""

    def handler(
        it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
        out: V.Value = V.NONE,
    ) -> V.Value:
        x = operand(it, a)
        dtype = type_of_out(it, x, out) if dtype == V.NONE else dtype
        narrow, wide = _narrow(it, dtype)
        if narrow is not None:
            x = cast(it, cast(it, x, narrow), wide)
            return stored(it, out, cast(it, handler(it, x, axis), narrow))
        x = cast(it, x, dtype)
        ty = it.tensor(x)
        if dtype == V.NONE and ty.dtype.kind in "biu":
            x = cast(it, x, types.u64 if ty.dtype.kind == "u" else types.i64)
        if axis == V.NONE or not ty.rank:
            if ty.rank != 1:
                x = ravel(it, x)
            axis = ZERO
        at = one_axis(it, axis, it.tensor(x).rank)
        return stored(it, out, it.call(op, x, axis=at, reverse=False))

    return handler


handles(np.cumsum)(scan("cumsum"))
handles(np.cumprod)(scan("cumprod"))


@handles(np.count_nonzero)
def count_nonzero(
    it: Interpreter, a: V.Value, axis: V.Value = V.NONE, *, keepdims: V.Value = FALSE
) -> V.Value:
    """np.count_nonzero."""
    mask = cast(it, operand(it, a), types.bool_)
    return reduction("sum")(it, mask, axis, keepdims=keepdims)
