"""Methods of ufuncs: np.add.at, np.subtract.outer, np.maximum.reduce and the like.

In: a ufunc and the name of its method. Out: the handler of that, which is made of handlers of
functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.in_python import placement, products
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import handlers
from pyrelay.infer.names.adapters import cast, dtype_of, one_axis, operand, strong
from pyrelay.infer.names.composed import in_python
from pyrelay.infer.names.reduction import scan, stored
from pyrelay.infer.operators import raised
from pyrelay.ir import types
from pyrelay.ops.running import RUNNING

_REDUCTIONS = {
    "add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min,
    "logical_and": np.all, "logical_or": np.any,
}

#: How an `initial` joins the results of those that do not take one.
_JOINS = {np.all: "logical_and", np.any: "logical_or"}


def ufunc_method(ufunc: np.ufunc, method: str) -> Callable[..., V.Value] | None:
    """The handler of np.add.at, np.subtract.outer, np.maximum.reduce, ...; None for others."""
    name = ufunc.__name__
    if method == "reduce" and name in _REDUCTIONS:
        return functools.partial(_along_first, _REDUCTIONS[name])
    if method == "accumulate" and ufunc.nin == 2 and ufunc.nout == 1:
        return functools.partial(_accumulate, ufunc)
    if method == "reduce" and ufunc.nin == 2 and ufunc.nout == 1:
        return functools.partial(_reduce, ufunc)
    if method == "reduceat" and ufunc.nin == 2:
        return functools.partial(_reduceat, ufunc)
    plain = handlers.lookup(ufunc)
    if method == "outer" and plain is not None:
        return functools.partial(_outer, plain)
    if method == "at" and name == "add":
        return _add_at
    if method == "at" and name == "subtract":
        return in_python("np.subtract.at", placement.subtracted_at)
    if method == "at" and ufunc.nin <= 2 and ufunc.nout == 1:
        handler = in_python(f"np.{name}.at", placement.applied_at)
        return functools.partial(_with_ufunc, handler, ufunc)
    return None


def _along_first(
    fn: Any, it: Interpreter, array: V.Value, axis: V.Value = V.Known(0),
    dtype: V.Value = V.NONE, out: V.Value = V.NONE, keepdims: V.Value = V.Known(False),
    initial: V.Value = V.NONE, where: V.Value = V.Known(True),
) -> V.Value:
    """A reduction; unlike NumPy's functions, methods take the first axis by default."""
    handler = handlers.lookup(fn)
    assert handler is not None
    given = {"dtype": dtype, "out": out, "initial": initial}
    keywords = {name: value for name, value in given.items() if value != V.NONE}
    keywords |= {"keepdims": keepdims, "where": where}
    if fn not in (np.sum, np.prod):
        wanted = dtype_of(it, keywords.pop("dtype", V.NONE))
        if fn in _JOINS and wanted not in (None, types.bool_):
            raise raised(it, TypeError(
                "No loop matching the specified signature and casting was found for ufunc "
                f"{_JOINS[fn]}"
            ))
        array = cast(it, strong(it, operand(it, array)), wanted)
    start = keywords.pop("initial", V.NONE) if fn in _JOINS and "out" not in keywords else V.NONE
    found = handlers.apply(it, fn, handler, (array, axis), keywords)
    if start == V.NONE:
        return found
    return it.call(_JOINS[fn], found, strong(it, operand(it, start)))


_SCANS = {"add": scan("cumsum"), "multiply": scan("cumprod")}
#: what scans of truths are in NumPy's loops: of bools
_OF_TRUTHS = {
    "logical_and": "bitwise_and", "logical_or": "bitwise_or", "logical_xor": "bitwise_xor",
}


def _accumulate(
    ufunc: np.ufunc, it: Interpreter, array: V.Value, axis: V.Value = V.Known(0),
    dtype: V.Value = V.NONE, out: V.Value = V.NONE,
) -> V.Value:
    """ufunc.accumulate(array, axis, dtype, out): one scan, or a loop where there is none."""
    name, x = ufunc.__name__, strong(it, operand(it, array))
    rank = it.tensor(x).rank
    if rank == 0:
        raise raised(it, TypeError("cannot accumulate on a scalar"))
    if axis == V.NONE:
        if rank != 1:
            raise raised(it, ValueError("accumulate does not allow multiple axes"))
        axis = V.Known(0)
    if name in _SCANS:
        return _SCANS[name](it, x, axis, dtype, out)
    x = cast(it, x, _type_of_loop(it, ufunc, "accumulate", it.tensor(x).dtype, dtype))
    running = RUNNING.get(_OF_TRUTHS.get(name, name))
    if running is not None and it.tensor(x).dtype.kind != "c":
        at = one_axis(it, axis, rank)
        return stored(it, out, it.call(running.name, x, axis=at, reverse=False))
    handler = in_python(f"np.{name}.accumulate", products.accumulated)
    return stored(it, out, handler(it, V.Known(ufunc), x, axis))


def _reduce(
    ufunc: np.ufunc, it: Interpreter, array: V.Value, axis: V.Value = V.Known(0),
    dtype: V.Value = V.NONE, out: V.Value = V.NONE, keepdims: V.Value = V.Known(False),
    initial: V.Value = V.NONE, where: V.Value = V.Known(True),
) -> V.Value:
    """ufunc.reduce(array, axis, dtype, out, keepdims, initial, where) as a loop."""
    x = strong(it, operand(it, array))
    x = cast(it, x, _type_of_loop(it, ufunc, "reduce", it.tensor(x).dtype, dtype))
    handler = in_python(f"np.{ufunc.__name__}.reduce", products.reduced)
    found = handler(
        it, V.Known(ufunc), x, axis, keepdims=keepdims, initial=initial, where=where
    )
    return stored(it, out, found)


def _type_of_loop(
    it: Interpreter, ufunc: np.ufunc, method: str, given: types.DType, dtype: V.Value
) -> types.DType:
    """The type of the loop that NumPy would run, whose result is its first operand as well."""
    wanted = dtype_of(it, dtype)
    if types.bf16 in (given, wanted):
        return given if wanted is None else wanted
    taken = given if wanted is None else wanted
    try:
        loop = ufunc.resolve_dtypes((None, taken.numpy, None), reduction=True)
    except TypeError:
        raise it.failure(
            errors.TypeMismatchError,
            f"np.{ufunc.__name__}.{method} does not take numbers of {taken.numpy_name}",
        ) from None
    found = types.from_numpy(loop[0])
    if found is None or loop[0] != loop[1] or wanted not in (None, found):
        raise it.failure(
            errors.UnsupportedOperationError,
            f"np.{ufunc.__name__}.{method} is not compiled for numbers of {taken.numpy_name}",
        )
    return found


def _reduceat(
    ufunc: np.ufunc, it: Interpreter, array: V.Value, indices: V.Value,
    axis: V.Value = V.Known(0), dtype: V.Value = V.NONE, out: V.Value = V.NONE,
) -> V.Value:
    """ufunc.reduceat(array, indices, axis, dtype, out) as a loop."""
    handler = in_python(f"np.{ufunc.__name__}.reduceat", products.reduced_between)
    return stored(it, out, handler(it, V.Known(ufunc), array, indices, axis, dtype))


def _with_ufunc(
    handler: Callable[..., V.Value], ufunc: np.ufunc, it: Interpreter, *args: V.Value,
    **keywords: V.Value,
) -> V.Value:
    return handler(it, V.Known(ufunc), *args, **keywords)


def _outer(
    plain: Callable[..., V.Value], it: Interpreter, a: V.Value, b: V.Value, **keywords: V.Value
) -> V.Value:
    """All pairs: the axes of a, then those of b."""
    left, right = strong(it, operand(it, a)), strong(it, operand(it, b))
    rank, more = it.tensor(left).rank, it.tensor(right).rank
    if more:
        left = it.call("expand_dims", left, axes=tuple(range(rank, rank + more)))
    return plain(it, left, right, **keywords)


def _add_at(it: Interpreter, a: V.Value, indices: V.Value, b: V.Value) -> V.Value:
    """np.add.at: repeated indices add up."""
    from pyrelay.infer.arrays.subscripts import add_item

    add_item(it, a, indices, b)
    return V.NONE
