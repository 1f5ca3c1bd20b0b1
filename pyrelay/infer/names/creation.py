"""NumPy's functions that make arrays, as handlers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.arrays import memory_order, strides
from pyrelay.infer.attributes import is_our_own
from pyrelay.infer.calls import call
from pyrelay.infer.in_python import arrangement
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import (
    cast,
    dtype_of,
    extent,
    operand,
    shape_of,
    to_array,
)
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.operators import binary, compare, extent_of
from pyrelay.infer.protocols import gone_through
from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import DType, TensorType

FALSE, TRUE = V.Known(False), V.Known(True)
ZERO, ONE = V.Known(0), V.Known(1)


def of_no_axes(it: Interpreter, value: V.Value) -> V.Value:
    """A number as the array of no axes that a program asked for; anything else as it is.

    In functions of ours, which are NumPy's seen from within, it stays a number.
    """
    if V.number_type(value) is None or is_our_own(it):
        return value
    return it.new_array(it.atom(value))


def _filled(it: Interpreter, value: Any, shape: V.Value, dtype: V.Value) -> V.Value:
    target = dtype_of(it, dtype) or types.f64
    return of_no_axes(it, it.result(it.builder.full(value, shape_of(it, shape), target)))


def _laid(it: Interpreter, made: V.Value, order: V.Value, given: V.Value = V.NONE) -> V.Value:
    """A new array, which lies in memory in an order, or as what it is made of or like."""
    if order == V.Known("F"):
        memory_order.turned(it.program, made)
    elif order in (V.Known("K"), V.Known("A"), V.NONE):
        memory_order.of_result(it, (given,), made)
    return made


def in_order(it: Interpreter, value: V.Value, order: V.Value) -> V.Value:
    """The array itself if it lies in an order, 'C' or 'F', else a copy that does."""
    if not isinstance(value, V.ArrayRef) or order not in (V.Known("C"), V.Known("F")):
        return value
    if strides.lies_in(it, value, it.static(order, "order")):
        return value
    if order == V.Known("C"):
        return strides.copied(it, value)
    from pyrelay.infer.names.shape import transpose

    return transpose(it, in_order(it, transpose(it, value), V.Known("C")))


@handles(np.zeros)
def zeros(
    it: Interpreter, shape: V.Value, dtype: V.Value = V.NONE, order: V.Value = V.Known("C")
) -> V.Value:
    """np.zeros."""
    return _laid(it, _filled(it, 0, shape, dtype), order)


@handles(np.empty)
def empty(
    it: Interpreter, shape: V.Value, dtype: V.Value = V.NONE, order: V.Value = V.Known("C")
) -> V.Value:
    """np.empty: zeros, which `opt/fills` leaves out where a loop starts from them."""
    made = _unwritten(it, shape_of(it, shape), dtype_of(it, dtype) or types.f64)
    return _laid(it, made, order)


def _unwritten(it: Interpreter, shape: Sequence[Extent], dtype: DType) -> V.Value:
    if not shape:
        return of_no_axes(it, it.result(it.builder.full(0, shape, dtype)))
    zero = it.builder.cast(0, dtype)
    return it.call("broadcast_to", zero, shape=tuple(shape), arbitrary=True)


@handles(np.ndarray)
def ndarray(
    it: Interpreter, shape: V.Value, dtype: V.Value = V.NONE, buffer: V.Value = V.NONE
) -> V.Value:
    """np.ndarray(shape, dtype): as np.empty."""
    if buffer != V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError, "np.ndarray of a buffer cannot be compiled",
            hints=("write np.frombuffer(...) outside the function, or x.reshape(shape)",),
        )
    return empty(it, shape, dtype)


@handles(np.ones)
def ones(
    it: Interpreter, shape: V.Value, dtype: V.Value = V.NONE, order: V.Value = V.Known("C")
) -> V.Value:
    """np.ones."""
    return _laid(it, _filled(it, 1, shape, dtype), order)


@handles(np.full)
def full(
    it: Interpreter, shape: V.Value, fill_value: V.Value, dtype: V.Value = V.NONE,
    order: V.Value = V.Known("C"),
) -> V.Value:
    """np.full."""
    value = operand(it, fill_value)
    target = dtype_of(it, dtype) or it.tensor(value).dtype
    filled = it.call(
        "broadcast_to", it.builder.cast(it.atom(value), target), shape=shape_of(it, shape)
    )
    return _laid(it, of_no_axes(it, filled), order)


def _like(value: Any) -> Any:
    def handler(
        it: Interpreter, a: V.Value, dtype: V.Value = V.NONE, order: V.Value = V.NONE,
        subok: V.Value = TRUE, shape: V.Value = V.NONE,
    ) -> V.Value:
        ty = it.tensor(operand(it, a))
        target = dtype_of(it, dtype) or ty.dtype
        extents = ty.shape if shape == V.NONE else shape_of(it, shape)
        if value is None:
            return _laid(it, _unwritten(it, extents, target), order, a)
        made = of_no_axes(it, it.result(it.builder.full(value, extents, target)))
        return _laid(it, made, order, a)

    return handler


handles(np.zeros_like)(_like(0))
handles(np.empty_like)(_like(None))
handles(np.ones_like)(_like(1))


@handles(np.full_like)
def full_like(
    it: Interpreter, a: V.Value, fill_value: V.Value, dtype: V.Value = V.NONE,
    order: V.Value = V.NONE, subok: V.Value = TRUE, shape: V.Value = V.NONE,
) -> V.Value:
    """np.full_like."""
    ty = it.tensor(operand(it, a))
    target = dtype_of(it, dtype) or ty.dtype
    value = it.builder.cast(it.atom(operand(it, fill_value)), target)  # out of bounds it wraps
    extents = ty.shape if shape == V.NONE else shape_of(it, shape)
    return _laid(it, of_no_axes(it, it.call("broadcast_to", value, shape=extents)), order, a)


@handles(np.array)
def array(
    it: Interpreter, object: V.Value, dtype: V.Value = V.NONE, copy: V.Value = TRUE,
    order: V.Value = V.NONE, subok: V.Value = FALSE, ndmin: V.Value = ZERO,
) -> V.Value:
    """np.array: a fresh array (the same one if `copy` is False or None)."""
    if isinstance(object, V.ArrayRef) and copy in (FALSE, V.NONE):
        made = in_order(it, cast(it, object, dtype), order)
    else:
        target = dtype_of(it, dtype)
        made = cast(it, to_array(it, object, missing=_of_floats(it, dtype), dtype=target), target)
        _laid(it, made, order, object)
    missing = it.static(ndmin, "ndmin") - it.tensor(made).rank
    if missing <= 0:
        return of_no_axes(it, made)
    return it.call("expand_dims", made, axes=tuple(range(missing)))


@handles(np.ascontiguousarray)
def ascontiguousarray(it: Interpreter, a: V.Value, dtype: V.Value = V.NONE) -> V.Value:
    """np.ascontiguousarray: a copy of a view whose elements do not lie one after the other."""
    value = asarray(it, a, dtype)
    if it.tensor(value).rank == 0:  # which NumPy makes a vector of one number
        return it.new_array(it.atom(it.call("reshape", value, shape=(1,))))
    if not isinstance(value, V.ArrayRef):
        return it.new_array(it.atom(value))
    return in_order(it, value, V.Known("C"))


@handles(np.asarray, np.asanyarray)
def asarray(
    it: Interpreter, a: V.Value, dtype: V.Value = V.NONE, order: V.Value = V.NONE, *,
    device: V.Value = V.NONE, copy: V.Value = V.NONE, like: V.Value = V.NONE,
) -> V.Value:
    """np.asarray: the same array if it is one of that dtype and order, unless `copy`."""
    value, target = a, dtype_of(it, dtype)
    if not isinstance(a, V.ArrayRef):
        value = to_array(it, a, missing=_of_floats(it, dtype), dtype=target)
    found = of_no_axes(it, cast(it, value, target))
    if found is a and copy == TRUE:
        return _laid(it, it.new_array(it.atom(found)), order, a)
    return in_order(it, found, order)


def _of_floats(it: Interpreter, dtype: V.Value) -> bool:
    """Whether an array is made as one of floats, in which None is NaN."""
    given = dtype_of(it, dtype)
    return given is not None and given.kind == "f"


@handles(np.astype)
def astype(
    it: Interpreter, x: V.Value, dtype: V.Value, /, *, copy: V.Value = TRUE
) -> V.Value:
    """np.astype: a fresh array unless `copy` is False."""
    result = cast(it, x, dtype)
    fresh = result is x and isinstance(x, V.ArrayRef) and copy == TRUE
    return _laid(it, it.new_array(it.atom(x)), V.NONE, x) if fresh else result


@handles(np.fromiter)
def fromiter(
    it: Interpreter, iter: V.Value, dtype: V.Value, count: V.Value = V.Known(-1)
) -> V.Value:
    """np.fromiter of an iterable of known length."""
    whole = cast(it, to_array(it, gone_through(it, iter)), dtype)
    if count == V.Known(-1):
        return whole
    return call(it, V.Known(arrangement.first_items), (whole, count), {})


@handles(np.copy)
def copy(
    it: Interpreter, a: V.Value, order: V.Value = V.Known("K"), subok: V.Value = FALSE
) -> V.Value:
    """np.copy."""
    return _laid(it, of_no_axes(it, to_array(it, a)), order, a)


@handles(np.arange)
def arange(
    it: Interpreter, start: V.Value, stop: V.Value = V.NONE, step: V.Value = ONE,
    dtype: V.Value = V.NONE,
) -> V.Value:
    """np.arange(stop) or np.arange(start, stop, step)."""
    first, last = (ZERO, start) if stop == V.NONE else (start, stop)
    numbers = (first, last, step)
    tys = [it.tensor(v) for v in numbers]
    natural, _ = types.promote(tys)
    if natural is types.bf16 and dtype == V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError,
            "np.arange of bfloat16 makes an array of objects in NumPy, which is not supported",
            hints=("say which type is meant, as with dtype=np.float32",),
        )
    target = dtype_of(it, dtype) or types.promote([TensorType(natural), TensorType(types.i64)])[0]
    if all(isinstance(v, V.Known) for v in numbers):
        size: Any = len(np.arange(*(v.value for v in numbers)))  # type: ignore[union-attr]
    elif all(extent_of(v) is not None for v in numbers) or all(
        t.dtype.is_integer for t in tys
    ):
        from pyrelay.infer.flow.iteration import range_count

        count = range_count(it, V.Range(first, last, step))
        known = extent_of(count)
        if known is not None and it.program.guards.compare(">=", known, 0):
            size = known
        else:
            size = extent(it, it.call("maximum", count, ZERO))
    else:
        length = binary(it, "/", binary(it, "-", last, first), step)
        whole = it.builder.cast(it.emit("ceil", length), types.i64, weak=True)
        size = extent(it, it.call("maximum", whole, ZERO))
    index = it.call("iota", size=size, dtype=types.i64)
    if natural.kind == "f" and first != ZERO:
        return _filled_on(it, index, first, step, target)
    scaled = index if step == ONE else binary(it, "*", index, step)
    shifted = scaled if first == ZERO else binary(it, "+", scaled, first)
    return cast(it, shifted, target)


def _filled_on(
    it: Interpreter, index: V.Value, first: V.Value, step: V.Value, target: DType
) -> V.Value:
    """The numbers of a range of floats, as NumPy fills one: on from its first two, which are of
    the type of the result by then."""
    start, second = (
        it.result(it.builder.handle(it.builder.cast(it.atom(v), target)))
        for v in (first, binary(it, "+", first, step))
    )
    if target is types.f16:
        start, second = cast(it, start, types.f32), cast(it, second, types.f32)
    along = cast(it, index, it.tensor(start).dtype)
    on = binary(it, "*", along, binary(it, "-", second, start))
    return cast(it, binary(it, "+", start, on), target)


@handles(np.linspace)
def linspace(
    it: Interpreter, start: V.Value, stop: V.Value, num: V.Value = V.Known(50),
    endpoint: V.Value = TRUE, retstep: V.Value = FALSE, dtype: V.Value = V.NONE,
    axis: V.Value = ZERO,
) -> V.Value:
    """np.linspace; of numbers without `retstep` it is one kernel."""
    plain = all(
        t is not None and (t.weak or t.dtype in (types.f64, types.i64)) and t.dtype.kind != "c"
        for t in map(V.number_type, (start, stop))
    )
    target = dtype_of(it, dtype)
    if not plain or retstep != FALSE or (target is not None and target.kind in "iu"):
        from pyrelay.infer.in_python import arrangement
        from pyrelay.infer.names.composed import in_python

        return in_python("np.linspace", arrangement.linspace)(
            it, start, stop, num, endpoint, retstep, dtype, axis
        )
    size = extent(it, num)
    closed = it.static(endpoint, "endpoint")
    steps = dims.add(size, -1) if closed else size
    index = it.call("iota", size=size, dtype=types.f64)
    divisor = it.call("maximum", it.builder.extent(steps), 1)
    step = binary(it, "/", binary(it, "-", stop, start), divisor)
    values = binary(it, "+", binary(it, "*", index, step), start)
    if closed and size != 1:
        position = it.call("iota", size=size, dtype=types.i64)
        several = compare(it, ">", V.Scalar.of_extent(steps), ZERO)
        last = it.call(
            "logical_and", compare(it, "==", position, V.Scalar.of_extent(steps)), several
        )
        values = it.call("where", last, it.builder.cast(it.atom(stop), types.f64), values)
    return cast(it, values, dtype)


@handles(np.identity)
def identity(it: Interpreter, n: V.Value, dtype: V.Value = V.NONE) -> V.Value:
    """np.identity."""
    return eye(it, n, dtype=dtype)


@handles(np.eye)
def eye(
    it: Interpreter, N: V.Value, M: V.Value = V.NONE, k: V.Value = ZERO,  # noqa: N803
    dtype: V.Value = V.NONE, order: V.Value = V.Known("C"),
) -> V.Value:
    """np.eye."""
    rows = extent(it, N)
    columns = rows if M == V.NONE else extent(it, M)
    row = it.emit("expand_dims", it.emit("iota", size=rows, dtype=types.i64), axes=(1,))
    column = it.emit("expand_dims", it.emit("iota", size=columns, dtype=types.i64), axes=(0,))
    mask = it.call("equal", on_diagonal(it, row, k), column)
    return _laid(it, cast(it, mask, dtype_of(it, dtype) or types.f64), order)


def on_diagonal(it: Interpreter, row: Handle, k: V.Value) -> Handle:
    """The columns in which the rows of a matrix meet its diagonal `k`, which may be computed."""
    ty = V.number_type(k)
    if ty is None or ty.dtype.kind not in "iub":
        raise it.failure(
            errors.TypeMismatchError, f"the diagonal k must be an int, not {V.describe(k)}"
        )
    columns: Handle = row + it.builder.handle(it.builder.cast(it.atom(k), types.i64))
    return columns
