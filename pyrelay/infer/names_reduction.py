"""NumPy's reductions and scans, as handlers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay.infer import values as V
from pyrelay.infer.adapters import (
    axes_of,
    cast,
    dtype_of,
    normal_axis,
    operand,
    refuse_keywords,
    strong,
)
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import handles
from pyrelay.infer.names_shape import ravel
from pyrelay.infer.operators import binary
from pyrelay.ir import dims, types

FALSE, TRUE = V.Known(False), V.Known(True)
ZERO, ONE = V.Known(0), V.Known(1)


def reduction(op: str) -> Callable[..., V.Value]:
    def handler(
        it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
        out: V.Value = V.NONE, keepdims: V.Value = FALSE, **more: V.Value,
    ) -> V.Value:
        refuse_keywords(it, {"out": out, **more}, f"np.{op}")
        x = strong(it, operand(it, a))
        ty = it.tensor(x)
        x = cast(it, x, dtype)
        if op in ("sum", "prod") and dtype == V.NONE and ty.dtype.kind in "biu":
            wide = types.u64 if ty.dtype.kind == "u" else types.i64
            x = cast(it, x, wide)
        if op in ("any", "all"):
            x = cast(it, x, types.bool_)
        axes = axes_of(it, axis, ty.rank)
        keep = bool(it.static(keepdims, "keepdims"))
        if not ty.shape:
            return x
        return it.call(op, x, axes=axes, keepdims=keep)

    return handler


for _fn, _op in (
    (np.sum, "sum"), (np.prod, "prod"), (np.max, "max"), (np.min, "min"), (np.any, "any"),
    (np.all, "all"),
):
    handles(_fn)(reduction(_op))
handles(np.amax)(reduction("max"))
handles(np.amin)(reduction("min"))


@handles(np.mean)
def mean(
    it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
    out: V.Value = V.NONE, keepdims: V.Value = FALSE,
) -> V.Value:
    """np.mean."""
    x = strong(it, operand(it, a))
    ty = it.tensor(x)
    target = dtype_of(it, dtype)
    if target is None and not ty.dtype.is_float:
        target = types.f64
    total = reduction("sum")(it, cast(it, x, target), axis, V.NONE, out, keepdims)
    count = dims.product(ty.shape[k] for k in axes_of(it, axis, ty.rank))
    divisor = it.builder.cast(it.builder.extent(count), it.tensor(total).dtype)
    return it.call("divide", total, divisor)


@handles(np.var)
def var(
    it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
    out: V.Value = V.NONE, ddof: V.Value = ZERO, keepdims: V.Value = FALSE,
) -> V.Value:
    """np.var."""
    x = strong(it, operand(it, a))
    ty = it.tensor(x)
    target = dtype_of(it, dtype) or (None if ty.dtype.is_float else types.f64)
    x = cast(it, x, target)
    centred = binary(it, "-", x, mean(it, x, axis, keepdims=TRUE))
    if ty.dtype.kind == "c":
        squared = it.call("square", it.call("absolute", centred))
    else:
        squared = it.call("multiply", centred, centred)
    total = reduction("sum")(it, squared, axis, V.NONE, out, keepdims)
    count = dims.product(ty.shape[k] for k in axes_of(it, axis, ty.rank))
    degrees = binary(it, "-", V.Scalar.of_extent(count), ddof)
    divisor = it.builder.cast(it.atom(degrees), it.tensor(total).dtype)
    return it.call("divide", total, divisor)


@handles(np.std)
def std(
    it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE,
    out: V.Value = V.NONE, ddof: V.Value = ZERO, keepdims: V.Value = FALSE,
) -> V.Value:
    """np.std; the gradient at a constant is 0."""
    return it.call("sqrt", var(it, a, axis, dtype, out, ddof, keepdims))


def _arg_reduction(op: str) -> Any:
    def handler(
        it: Interpreter, a: V.Value, axis: V.Value = V.NONE, out: V.Value = V.NONE,
        *, keepdims: V.Value = FALSE,
    ) -> V.Value:
        x = strong(it, operand(it, a))
        ty = it.tensor(x)
        axes = axes_of(it, axis, ty.rank)
        keep = bool(it.static(keepdims, "keepdims"))
        return it.call(op, x, axes=axes, keepdims=keep)

    return handler


handles(np.argmax)(_arg_reduction("argmax"))
handles(np.argmin)(_arg_reduction("argmin"))


def _scan(op: str) -> Any:
    def handler(
        it: Interpreter, a: V.Value, axis: V.Value = V.NONE, dtype: V.Value = V.NONE
    ) -> V.Value:
        x = cast(it, operand(it, a), dtype)
        ty = it.tensor(x)
        if dtype == V.NONE and ty.dtype.kind in "biu":
            x = cast(it, x, types.u64 if ty.dtype.kind == "u" else types.i64)
        if axis == V.NONE:
            if ty.rank != 1:
                x = ravel(it, x)
            axis = ZERO
        at = normal_axis(it, it.static(axis, "the axis"), it.tensor(x).rank)
        return it.call(op, x, axis=at, reverse=False)

    return handler


handles(np.cumsum)(_scan("cumsum"))
handles(np.cumprod)(_scan("cumprod"))


@handles(np.count_nonzero)
def count_nonzero(it: Interpreter, a: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.count_nonzero."""
    mask = cast(it, operand(it, a), types.bool_)
    return reduction("sum")(it, mask, axis)
