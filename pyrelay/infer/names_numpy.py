"""NumPy's functions as handlers: creation, shape, reductions, selection, products.

Ufuncs whose name is an op need no handler of their own: they are entered in a loop at the end.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.adapters import (
    axes_of,
    cast,
    concatenate,
    dtype_of,
    extent,
    nested_items,
    normal_axis,
    operand,
    refuse_keywords,
    shape_of,
    stack,
    strong,
    to_array,
)
from pyrelay.infer.contraction import dot, matmul
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names import elementwise, handles, lookup
from pyrelay.infer.operators import binary, compare, extent_of
from pyrelay.ir import dims, types
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType, TensorType

FALSE, TRUE = V.Known(False), V.Known(True)
ZERO, ONE = V.Known(0), V.Known(1)


def view(it: Interpreter, x: V.Value, kind: str, ty: TensorType, **attrs: Any) -> V.Value:
    """A view of an array by one more step; a number is computed at once."""
    if isinstance(x, V.ArrayRef) and ty.shape:
        step = V.ViewStep(kind, (), tuple(attrs.items()))
        return V.ArrayRef(x.root, (*x.view, step), ty)
    return it.call(kind, x, **attrs)


# -- creation --------------------------------------------------------------------------------------


def _filled(it: Interpreter, value: Any, shape: V.Value, dtype: V.Value) -> V.Value:
    target = dtype_of(it, dtype) or types.f64
    return it.result(it.builder.full(value, shape_of(it, shape), target))


@handles(np.zeros, np.empty)
def zeros(
    it: Interpreter, shape: V.Value, dtype: V.Value = V.NONE, order: V.Value = V.Known("C")
) -> V.Value:
    """np.zeros; np.empty is zeros too, so that results do not depend on old memory."""
    return _filled(it, 0, shape, dtype)


@handles(np.ones)
def ones(
    it: Interpreter, shape: V.Value, dtype: V.Value = V.NONE, order: V.Value = V.Known("C")
) -> V.Value:
    """np.ones."""
    return _filled(it, 1, shape, dtype)


@handles(np.full)
def full(
    it: Interpreter, shape: V.Value, fill_value: V.Value, dtype: V.Value = V.NONE
) -> V.Value:
    """np.full."""
    value = operand(it, fill_value)
    target = dtype_of(it, dtype) or it.tensor(value).dtype
    return it.result(
        it.builder.handle(
            it.emit("broadcast_to", it.builder.cast(it.atom(value), target),
                    shape=shape_of(it, shape))
        )
    )


def _like(value: Any) -> Any:
    def handler(
        it: Interpreter, a: V.Value, dtype: V.Value = V.NONE, order: V.Value = V.NONE,
        subok: V.Value = TRUE, shape: V.Value = V.NONE,
    ) -> V.Value:
        ty = it.tensor(operand(it, a))
        target = dtype_of(it, dtype) or ty.dtype
        extents = ty.shape if shape == V.NONE else shape_of(it, shape)
        return it.result(it.builder.full(value, extents, target))

    return handler


handles(np.zeros_like, np.empty_like)(_like(0))
handles(np.ones_like)(_like(1))


@handles(np.full_like)
def full_like(
    it: Interpreter, a: V.Value, fill_value: V.Value, dtype: V.Value = V.NONE
) -> V.Value:
    """np.full_like."""
    ty = it.tensor(operand(it, a))
    target = dtype_of(it, dtype) or ty.dtype
    atom = it.builder.cast(it.atom(fill_value), target)
    return it.call("broadcast_to", atom, shape=ty.shape)


@handles(np.array)
def array(
    it: Interpreter, object: V.Value, dtype: V.Value = V.NONE, copy: V.Value = TRUE
) -> V.Value:
    """np.array: a fresh array."""
    return _as(it, to_array(it, object), dtype)


@handles(np.asarray, np.ascontiguousarray, np.asanyarray)
def asarray(it: Interpreter, a: V.Value, dtype: V.Value = V.NONE) -> V.Value:
    """np.asarray: the same array if it is one of that dtype."""
    value = a if isinstance(a, V.ArrayRef) else to_array(it, a)
    return _as(it, value, dtype)


def _as(it: Interpreter, value: V.Value, dtype: V.Value) -> V.Value:
    return cast(it, value, dtype) if dtype != V.NONE else value


@handles(np.copy)
def copy(it: Interpreter, a: V.Value) -> V.Value:
    """np.copy."""
    return to_array(it, a)


@handles(np.arange)
def arange(
    it: Interpreter, start: V.Value, stop: V.Value = V.NONE, step: V.Value = ONE,
    dtype: V.Value = V.NONE,
) -> V.Value:
    """np.arange(stop) or np.arange(start, stop, step)."""
    first, last = (ZERO, start) if stop == V.NONE else (start, stop)
    numbers = (first, last, step)
    tys = [it.tensor(v) for v in numbers]
    natural, _ = types.promote([t for t in tys])
    target = dtype_of(it, dtype) or natural
    if all(isinstance(v, V.Known) for v in numbers):
        size: Any = len(np.arange(*(v.value for v in numbers)))  # type: ignore[union-attr]
    elif all(extent_of(v) is not None for v in numbers) or all(
        t.dtype.is_integer for t in tys
    ):
        from pyrelay.infer.iteration import range_count

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
    scaled = index if step == ONE else binary(it, "*", index, step)
    shifted = scaled if first == ZERO else binary(it, "+", scaled, first)
    return cast(it, shifted, target)


@handles(np.linspace)
def linspace(
    it: Interpreter, start: V.Value, stop: V.Value, num: V.Value = V.Known(50),
    endpoint: V.Value = TRUE, dtype: V.Value = V.NONE,
) -> V.Value:
    """np.linspace of numbers."""
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
    return _as(it, values, dtype)


@handles(np.eye, np.identity)
def eye(
    it: Interpreter, N: V.Value, M: V.Value = V.NONE, k: V.Value = ZERO,  # noqa: N803
    dtype: V.Value = V.NONE,
) -> V.Value:
    """np.eye."""
    rows = extent(it, N)
    columns = rows if M == V.NONE else extent(it, M)
    row = it.emit("expand_dims", it.emit("iota", size=rows, dtype=types.i64), axes=(1,))
    column = it.emit("expand_dims", it.emit("iota", size=columns, dtype=types.i64), axes=(0,))
    offset = it.static(k, "the diagonal")
    mask = it.call("equal", row + offset, column)
    return cast(it, mask, dtype_of(it, dtype) or types.f64)


# -- shape -----------------------------------------------------------------------------------------


@handles(np.shape)
def shape(it: Interpreter, a: V.Value) -> V.Value:
    """np.shape."""
    return V.Tuple(tuple(V.Scalar.of_extent(d) for d in it.tensor(operand(it, a)).shape))


@handles(np.ndim)
def ndim(it: Interpreter, a: V.Value) -> V.Value:
    """np.ndim."""
    return V.Known(it.tensor(operand(it, a)).rank)


@handles(np.size)
def size(it: Interpreter, a: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.size."""
    ty = it.tensor(operand(it, a))
    if axis == V.NONE:
        return V.Scalar.of_extent(ty.size)
    return V.Scalar.of_extent(ty.shape[it.static(axis, "the axis")])


@handles(np.reshape)
def reshape(
    it: Interpreter, a: V.Value, shape: V.Value, order: V.Value = V.Known("C")
) -> V.Value:
    """np.reshape; one extent may be -1."""
    if order != V.Known("C"):
        raise it.failure(errors.UnsupportedOperationError, "reshape is supported in order 'C' only")
    a = operand(it, a)
    ty = it.tensor(a)
    wanted = [shape] if V.number_type(shape) is not None else list(_items(it, shape))
    known = [i for i, v in enumerate(wanted) if v == V.Known(-1)]
    if len(known) > 1:
        raise it.failure(errors.InvalidValueError, "reshape: only one extent can be -1")
    given = [extent(it, v) for v in wanted if v != V.Known(-1)]
    if known:
        rest = dims.product(given)
        if rest == 0:
            raise it.failure(errors.ShapeError, f"cannot reshape {ty} into {_spell(given)}")
        missing = dims.quotient(ty.size, rest)
        if it.program.guards.equal(dims.multiply(missing, rest), ty.size) is False:
            raise it.failure(
                errors.ShapeError,
                f"cannot reshape {ty}: {dims.show(ty.size)} elements do not divide into groups of "
                f"{dims.show(rest)}",
            )
        given.insert(known[0], missing)
    result = TensorType(ty.dtype, tuple(given))
    if it.program.guards.equal(ty.size, result.size) is False:
        raise it.failure(
            errors.ShapeError, f"cannot reshape {ty} into shape ({_spell(given)})",
            notes=(f"{dims.show(ty.size)} elements are not {dims.show(result.size)}",),
        )
    if not isinstance(a, V.ArrayRef) or any(s.kind in ("slice", "transpose") for s in a.view):
        a = it.result(it.builder.handle(it.atom(a)))  # NumPy copies where strides do not allow it
    if it.program.guards.equal(ty.size, result.size) is None:
        a = _of_size(it, a, result.size)
    return view(it, a, "reshape", result, shape=result.shape)


def _of_size(it: Interpreter, a: V.Value, size: Any) -> V.Value:
    """The elements of an array in one axis of this size, which is checked at run time."""
    ty = it.tensor(a)
    text = "the array cannot be reshaped: its size is not that of the new shape"
    it.emit("check_equal", left=ty.size, right=size, text=text)
    flat = view(it, a, "reshape", TensorType(ty.dtype, (ty.size,)), shape=(ty.size,))
    return view(it, flat, "refine", TensorType(ty.dtype, (size,)), shape=(size,))


def _items(it: Interpreter, value: V.Value) -> tuple[V.Value, ...]:
    if isinstance(value, V.Known):
        return tuple(map(V.Known, value.value))
    return nested_items(it, value)


def _spell(extents: Any) -> str:
    return ", ".join(dims.show(d) for d in extents)


@handles(np.ravel)
def ravel(it: Interpreter, a: V.Value, order: V.Value = V.Known("C")) -> V.Value:
    """np.ravel."""
    return reshape(it, a, V.Known(-1), order)


@handles(np.transpose, np.permute_dims)
def transpose(it: Interpreter, a: V.Value, axes: V.Value = V.NONE) -> V.Value:
    """np.transpose: a view."""
    a = operand(it, a)
    ty = it.tensor(a)
    order = (
        tuple(reversed(range(ty.rank))) if axes == V.NONE
        else tuple(normal_axis(it, x, ty.rank) for x in it.static(axes, "the axes"))
    )
    if sorted(order) != list(range(ty.rank)):
        raise it.failure(
            errors.InvalidValueError, f"axes {order} do not name each axis of {ty} once"
        )
    if order == tuple(range(ty.rank)):
        return a
    result = TensorType(ty.dtype, tuple(ty.shape[k] for k in order))
    return view(it, a, "transpose", result, axes=order)


@handles(np.swapaxes)
def swapaxes(it: Interpreter, a: V.Value, axis1: V.Value, axis2: V.Value) -> V.Value:
    """np.swapaxes: a view."""
    rank = it.tensor(a).rank
    order = list(range(rank))
    i = normal_axis(it, it.static(axis1, "the axis"), rank)
    j = normal_axis(it, it.static(axis2, "the axis"), rank)
    order[i], order[j] = order[j], order[i]
    return transpose(it, a, V.Known(tuple(order)))


@handles(np.moveaxis)
def moveaxis(it: Interpreter, a: V.Value, source: V.Value, destination: V.Value) -> V.Value:
    """np.moveaxis: a view."""
    rank = it.tensor(a).rank
    listed = [it.static(v, "the axis") for v in (source, destination)]
    sources, targets = (
        [normal_axis(it, k, rank) for k in (v if isinstance(v, (tuple, list)) else (v,))]
        for v in listed
    )
    order = [k for k in range(rank) if k not in sources]
    for target, from_axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, from_axis)
    return transpose(it, a, V.Known(tuple(order)))


@handles(np.expand_dims)
def expand_dims(it: Interpreter, a: V.Value, axis: V.Value) -> V.Value:
    """np.expand_dims: a view."""
    a = operand(it, a)
    ty = it.tensor(a)
    given = it.static(axis, "the axis")
    numbers = given if isinstance(given, (tuple, list)) else (given,)
    rank = ty.rank + len(numbers)
    axes = tuple(sorted(normal_axis(it, k, rank) for k in numbers))
    extents = list(ty.shape)
    for k in axes:
        extents.insert(k, 1)
    return view(it, a, "expand_dims", TensorType(ty.dtype, tuple(extents)), axes=axes)


@handles(np.squeeze)
def squeeze(it: Interpreter, a: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.squeeze: a view without the axes of extent 1."""
    a = operand(it, a)
    ty = it.tensor(a)
    if axis == V.NONE:
        axes = tuple(k for k, d in enumerate(ty.shape) if d == 1)
    else:
        axes = axes_of(it, axis, ty.rank)
        for k in axes:
            if it.program.guards.equal(ty.shape[k], 1) is False:
                raise it.failure(
                    errors.ShapeError,
                    f"cannot squeeze axis {k} of {ty}: its extent is not 1",
                )
    if not axes:
        return a
    result = TensorType(ty.dtype, tuple(d for k, d in enumerate(ty.shape) if k not in axes))
    return view(it, a, "squeeze", result, axes=axes)


@handles(np.broadcast_to)
def broadcast_to(it: Interpreter, array: V.Value, shape: V.Value) -> V.Value:
    """np.broadcast_to (a copy: NumPy's result cannot be written)."""
    return it.call("broadcast_to", operand(it, array), shape=shape_of(it, shape))


@handles(np.atleast_1d)
def atleast_1d(it: Interpreter, a: V.Value) -> V.Value:
    """np.atleast_1d."""
    a = operand(it, a)
    return reshape(it, strong(it, a), ONE) if not it.tensor(a).shape else a


@handles(np.concatenate, np.concat)
def np_concatenate(
    it: Interpreter, arrays: V.Value, axis: V.Value = ZERO, dtype: V.Value = V.NONE
) -> V.Value:
    """np.concatenate."""
    parts = [operand(it, v) for v in nested_items(it, arrays)]
    if not parts:
        raise it.failure(errors.InvalidValueError, "need at least one array to concatenate")
    if axis == V.NONE:
        parts = [ravel(it, p) for p in parts]
        axis = ZERO
    joined = concatenate(it, parts, it.static(axis, "the axis"))
    return _as(it, joined, dtype)


@handles(np.stack)
def np_stack(it: Interpreter, arrays: V.Value, axis: V.Value = ZERO) -> V.Value:
    """np.stack."""
    parts = [operand(it, v) for v in nested_items(it, arrays)]
    return stack(it, parts, it.static(axis, "the axis"))


@handles(np.vstack)
def vstack(it: Interpreter, tup: V.Value) -> V.Value:
    """np.vstack."""
    parts = [operand(it, v) for v in nested_items(it, tup)]
    rows = [p if it.tensor(p).rank > 1 else expand_dims(it, p, ZERO) for p in parts]
    return concatenate(it, rows, 0)


@handles(np.hstack)
def hstack(it: Interpreter, tup: V.Value) -> V.Value:
    """np.hstack."""
    parts = [atleast_1d(it, v) for v in nested_items(it, tup)]
    return concatenate(it, parts, 0 if it.tensor(parts[0]).rank == 1 else 1)


@handles(np.split)
def split(
    it: Interpreter, ary: V.Value, indices_or_sections: V.Value, axis: V.Value = ZERO
) -> V.Value:
    """np.split into equal parts, or at known indices: a list of views."""
    from pyrelay.infer.subscripts import get_item

    ty = it.tensor(ary)
    at = normal_axis(it, it.static(axis, "the axis"), ty.rank)
    given = it.static(indices_or_sections, "the sections of split")
    whole = ty.shape[at]
    if isinstance(given, int):
        part = dims.quotient(whole, given)
        if it.program.guards.equal(dims.multiply(part, given), whole) is False:
            raise it.failure(
                errors.ShapeError, f"an axis of {dims.show(whole)} does not split into {given}"
            )
        cuts: list[Any] = [dims.multiply(part, k) for k in range(given + 1)]
    else:
        cuts = [0, *given, whole]
    full_slice = V.Slice(V.NONE, V.NONE, V.NONE)
    parts = []
    for low, high in itertools.pairwise(cuts):
        piece = V.Slice(V.Scalar.of_extent(low), V.Scalar.of_extent(high), V.NONE)
        parts.append(get_item(it, ary, V.Tuple((*[full_slice] * at, piece))))
    return it.new_ref("list", tuple(parts))


@handles(np.flip)
def flip(it: Interpreter, m: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.flip: a view."""
    from pyrelay.infer.subscripts import get_item

    rank = it.tensor(m).rank
    axes = axes_of(it, axis, rank)
    back = V.Slice(V.NONE, V.NONE, V.Known(-1))
    same = V.Slice(V.NONE, V.NONE, V.NONE)
    return get_item(it, m, V.Tuple(tuple(back if k in axes else same for k in range(rank))))


@handles(np.tile)
def tile(it: Interpreter, A: V.Value, reps: V.Value) -> V.Value:  # noqa: N803
    """np.tile."""
    a = operand(it, A)
    ty = it.tensor(a)
    counts = list(shape_of(it, reps))
    extents = [1] * (len(counts) - ty.rank) + list(ty.shape)
    counts = [1] * (len(extents) - len(counts)) + counts
    spread: list[Any] = [d for e in extents for d in (1, e)]
    wide: list[Any] = [d for c, e in zip(counts, extents, strict=True) for d in (c, e)]
    expanded = it.emit("reshape", a, shape=tuple(spread))
    repeated = it.emit("broadcast_to", expanded, shape=tuple(wide))
    final = tuple(dims.multiply(c, e) for c, e in zip(counts, extents, strict=True))
    return it.call("reshape", repeated, shape=final)


@handles(np.repeat)
def repeat(it: Interpreter, a: V.Value, repeats: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.repeat by one count."""
    a = operand(it, a)
    if axis == V.NONE:
        a, axis = ravel(it, a), ZERO
    ty = it.tensor(a)
    at = normal_axis(it, it.static(axis, "the axis"), ty.rank)
    count = extent(it, repeats)
    expanded = it.emit("expand_dims", a, axes=(at + 1,))
    wide = (*ty.shape[: at + 1], count, *ty.shape[at + 1 :])
    repeated = it.emit("broadcast_to", expanded, shape=wide)
    final = (*ty.shape[:at], dims.multiply(ty.shape[at], count), *ty.shape[at + 1 :])
    return it.call("reshape", repeated, shape=final)


@handles(np.roll)
def roll(it: Interpreter, a: V.Value, shift: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.roll by a known shift."""
    from pyrelay.infer.subscripts import get_item

    ty = it.tensor(a)
    if axis == V.NONE and ty.rank > 1:
        return reshape(it, roll(it, ravel(it, a), shift), shape(it, a))
    at = normal_axis(it, it.static(axis, "the axis"), ty.rank) if axis != V.NONE else 0
    by = it.static(shift, "the shift of roll")
    whole = ty.shape[at]
    cut = V.Scalar.of_extent(dims.remainder(dims.multiply(-1, by), whole))
    before: list[V.Value] = [V.Slice(V.NONE, V.NONE, V.NONE)] * at
    tail = get_item(it, a, V.Tuple((*before, V.Slice(cut, V.NONE, V.NONE))))
    head = get_item(it, a, V.Tuple((*before, V.Slice(V.NONE, cut, V.NONE))))
    return concatenate(it, [tail, head], at)


@handles(np.pad)
def pad(
    it: Interpreter, array: V.Value, pad_width: V.Value, mode: V.Value = V.Known("constant"),
    constant_values: V.Value = ZERO,
) -> V.Value:
    """np.pad with a constant."""
    if mode != V.Known("constant"):
        raise it.failure(
            errors.UnsupportedOperationError, "np.pad is supported with mode='constant' only"
        )
    ty = it.tensor(array)
    widths = np.broadcast_to(np.asarray(it.static(pad_width, "pad_width")), (ty.rank, 2))
    value = it.builder.cast(it.atom(constant_values), ty.dtype)
    return it.call(
        "pad", array, value, before=tuple(int(w) for w in widths[:, 0]),
        after=tuple(int(w) for w in widths[:, 1]),
    )


# -- reductions ------------------------------------------------------------------------------------


def _reduction(op: str) -> Any:
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
    handles(_fn)(_reduction(_op))
handles(np.amax)(_reduction("max"))
handles(np.amin)(_reduction("min"))


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
    total = _reduction("sum")(it, cast(it, x, target), axis, V.NONE, out, keepdims)
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
    total = _reduction("sum")(it, squared, axis, V.NONE, out, keepdims)
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
    return _reduction("sum")(it, mask, axis)


# -- selection -------------------------------------------------------------------------------------


@handles(np.where)
def where(
    it: Interpreter, condition: V.Value, x: V.Value = V.NONE, y: V.Value = V.NONE
) -> V.Value:
    """np.where(condition, x, y)."""
    if x == V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError,
            "np.where(condition) alone gives a number of indices known only at run time, which is "
            "not supported",
            hints=("use np.where(condition, x, y)",),
        )
    cond = cast(it, operand(it, condition), types.bool_)
    a, b = operand(it, x), operand(it, y)
    dtype, _ = types.promote((it.tensor(a), it.tensor(b)))
    return it.call(
        "where", strong(it, cond), it.builder.cast(it.atom(a), dtype),
        it.builder.cast(it.atom(b), dtype),
    )


@handles(np.clip)
def clip(
    it: Interpreter, a: V.Value, a_min: V.Value = V.NONE, a_max: V.Value = V.NONE,
    out: V.Value = V.NONE, *, min: V.Value = V.NONE, max: V.Value = V.NONE,
) -> V.Value:
    """np.clip; a bound may be None."""
    low = a_min if a_min != V.NONE else min
    high = a_max if a_max != V.NONE else max
    x = operand(it, a)
    if low == V.NONE and high == V.NONE:
        return x
    if low == V.NONE:
        return it.call("minimum", x, operand(it, high))
    if high == V.NONE:
        return it.call("maximum", x, operand(it, low))
    return it.call("clip", x, operand(it, low), operand(it, high))


@handles(np.take)
def take(
    it: Interpreter, a: V.Value, indices: V.Value, axis: V.Value = V.NONE
) -> V.Value:
    """np.take."""
    from pyrelay.infer.subscripts import get_item

    a = operand(it, a)
    if axis == V.NONE:
        a, axis = ravel(it, a), ZERO
    at = normal_axis(it, it.static(axis, "the axis"), it.tensor(a).rank)
    index = indices if V.number_type(indices) is not None else operand(it, indices)
    same = V.Slice(V.NONE, V.NONE, V.NONE)
    return get_item(it, a, V.Tuple((*[same] * at, index)))


@handles(np.diag)
def diag(it: Interpreter, v: V.Value, k: V.Value = ZERO) -> V.Value:
    """np.diag of a vector (a matrix) or of a square matrix (its diagonal), main diagonal."""
    from pyrelay.infer.advanced import gather

    if k != ZERO:
        raise it.failure(errors.UnsupportedOperationError, "np.diag is supported with k=0 only")
    x = operand(it, v)
    ty = it.tensor(x)
    if ty.rank == 1:
        mask = eye(it, V.Scalar.of_extent(ty.shape[0]), dtype=V.Known(bool))
        row = it.emit("expand_dims", x, axes=(0,))
        zero = it.builder.handle(it.builder.cast(0, ty.dtype))
        return it.call("where", mask, row, zero)
    n = ty.shape[0] if it.program.guards.compare("<=", ty.shape[0], ty.shape[1]) else ty.shape[1]
    index = it.call("iota", size=n, dtype=types.i64)
    assert isinstance(x, V.ArrayRef)
    return gather(it, x, [index, index])


@handles(np.diagonal)
def diagonal(it: Interpreter, a: V.Value) -> V.Value:
    """np.diagonal of a matrix."""
    return diag(it, a)


@handles(np.trace)
def trace(it: Interpreter, a: V.Value) -> V.Value:
    """np.trace of a matrix."""
    return _reduction("sum")(it, diag(it, a))


def _triangle(it: Interpreter, m: V.Value, k: V.Value, lower: bool) -> V.Value:
    x = operand(it, m)
    ty = it.tensor(x)
    row = it.emit("expand_dims", it.emit("iota", size=ty.shape[-2], dtype=types.i64), axes=(1,))
    column = it.emit("expand_dims", it.emit("iota", size=ty.shape[-1], dtype=types.i64), axes=(0,))
    edge = row + it.static(k, "the diagonal")
    mask = it.call("less_equal" if lower else "greater_equal", column, edge)
    return it.call("where", mask, x, it.builder.cast(0, ty.dtype))


@handles(np.tril)
def tril(it: Interpreter, m: V.Value, k: V.Value = ZERO) -> V.Value:
    """np.tril."""
    return _triangle(it, m, k, True)


@handles(np.triu)
def triu(it: Interpreter, m: V.Value, k: V.Value = ZERO) -> V.Value:
    """np.triu."""
    return _triangle(it, m, k, False)


# -- products and norms ------------------------------------------------------------------------------


@handles(np.matmul)
def np_matmul(it: Interpreter, x1: V.Value, x2: V.Value) -> V.Value:
    """np.matmul."""
    return matmul(it, operand(it, x1), operand(it, x2))


@handles(np.dot)
def np_dot(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """np.dot."""
    return dot(it, operand(it, a), operand(it, b))


@handles(np.inner)
def inner(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """np.inner."""
    right = operand(it, b)
    rank = it.tensor(right).rank
    return dot(it, operand(it, a), swapaxes(it, right, V.Known(-1), V.Known(-2))
               if rank > 1 else right)


@handles(np.vdot)
def vdot(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """np.vdot."""
    left = ravel(it, a)
    if it.tensor(left).dtype.kind == "c":
        left = it.call("conj", left)
    return matmul(it, left, ravel(it, b))


@handles(np.outer)
def outer(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """np.outer."""
    left = it.emit("expand_dims", ravel(it, a), axes=(1,))
    right = it.emit("expand_dims", ravel(it, b), axes=(0,))
    return it.call("multiply", left, right)


@handles(np.linalg.norm)
def norm(
    it: Interpreter, x: V.Value, ord: V.Value = V.NONE, axis: V.Value = V.NONE,
    keepdims: V.Value = FALSE,
) -> V.Value:
    """np.linalg.norm: Frobenius, or of vectors with ord 1, 2 or inf."""
    a = operand(it, x)
    kind = it.static(ord, "ord")
    if kind in (None, 2, "fro"):
        magnitude = it.call("absolute", a) if it.tensor(a).dtype.kind == "c" else a
        squared = it.call("multiply", magnitude, magnitude)
        return it.call("sqrt", _reduction("sum")(it, squared, axis, keepdims=keepdims))
    if it.tensor(a).rank > 1 and axis == V.NONE:
        raise it.failure(
            errors.UnsupportedOperationError, f"matrix norms with ord={kind!r} are not supported"
        )
    magnitude = it.call("absolute", a)
    if kind == 1:
        return _reduction("sum")(it, magnitude, axis, keepdims=keepdims)
    if kind in (np.inf, -np.inf):
        return _reduction("max" if kind > 0 else "min")(it, magnitude, axis, keepdims=keepdims)
    raise it.failure(errors.UnsupportedOperationError, f"ord={kind!r} is not supported")


# -- dtypes and scalars ------------------------------------------------------------------------------


def _scalar_class(dtype: DType) -> Any:
    def handler(it: Interpreter, x: V.Value = ZERO) -> V.Value:
        value = operand(it, x)
        atom = it.builder.cast(it.atom(value), dtype)
        return it.result(it.builder.handle(atom))

    return handler


for _dtype in types.DTYPES.values():
    handles(_dtype.numpy.type)(_scalar_class(_dtype))


@handles(np.isclose)
def isclose(
    it: Interpreter, a: V.Value, b: V.Value, rtol: V.Value = V.Known(1e-5),
    atol: V.Value = V.Known(1e-8),
) -> V.Value:
    """np.isclose of finite numbers."""
    x, y = operand(it, a), operand(it, b)
    distance = it.call("absolute", binary(it, "-", x, y))
    bound = binary(it, "+", atol, binary(it, "*", rtol, it.call("absolute", y)))
    near = it.call("less_equal", distance, bound)
    return it.call("logical_or", near, it.call("equal", x, y))


@handles(np.allclose)
def allclose(
    it: Interpreter, a: V.Value, b: V.Value, rtol: V.Value = V.Known(1e-5),
    atol: V.Value = V.Known(1e-8),
) -> V.Value:
    """np.allclose."""
    return _reduction("all")(it, isclose(it, a, b, rtol, atol))


@handles(np.round, np.around)
def np_round(it: Interpreter, a: V.Value, decimals: V.Value = ZERO) -> V.Value:
    """np.round."""
    digits = it.static(decimals, "decimals")
    x = operand(it, a)
    if not digits:
        return it.call("rint", x) if it.tensor(x).dtype.is_float else x
    scale = V.Known(10.0**digits)
    return binary(it, "/", it.call("rint", binary(it, "*", x, scale)), scale)


@handles(np.power, np.float_power)
def np_power(it: Interpreter, x1: V.Value, x2: V.Value) -> V.Value:
    """np.power."""
    from pyrelay.infer.operators import power

    return power(it, strong(it, operand(it, x1)), operand(it, x2))


@handles(np.real)
def np_real(it: Interpreter, val: V.Value) -> V.Value:
    """np.real."""
    x = operand(it, val)
    return it.call("real", x) if it.tensor(x).dtype.kind == "c" else x


@handles(np.imag)
def np_imag(it: Interpreter, val: V.Value) -> V.Value:
    """np.imag."""
    x = operand(it, val)
    if it.tensor(x).dtype.kind == "c":
        return it.call("imag", x)
    return it.result(it.builder.zeros(it.tensor(x)))


def _enter_ufuncs() -> None:
    aliases = {
        "true_divide": "divide", "mod": "remainder", "abs": "absolute", "conjugate": "conj",
        "fabs": "absolute", "bitwise_not": "invert",
    }
    for fn in list(vars(np).values()):  # not dir(): that would load NumPy's lazy submodules
        if isinstance(fn, np.ufunc) and lookup(fn) is None:
            op = aliases.get(fn.__name__, fn.__name__)
            if op in OPS:
                handles(fn)(elementwise(op))


_enter_ufuncs()
