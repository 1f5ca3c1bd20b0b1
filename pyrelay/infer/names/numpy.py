"""NumPy's functions as handlers: selection, products, element types, ufuncs.

Ufuncs whose name is an op need no handler of their own: they are entered in a loop at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.arrays.contraction import dot, matmul, product
from pyrelay.infer.attributes import get_attribute
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import (
    as_element,
    cast,
    operand,
    strong,
)
from pyrelay.infer.names.complex_order import clipped, extreme, is_complex
from pyrelay.infer.names.creation import eye, of_no_axes, on_diagonal
from pyrelay.infer.names.handlers import elementwise, handles, lookup, of_ufunc
from pyrelay.infer.names.shape import ravel, swapaxes, with_axis
from pyrelay.infer.operators import beside_unsigned, binary, raised
from pyrelay.infer.spellings import OP_NAMES
from pyrelay.ir import types
from pyrelay.ir.op import OPS
from pyrelay.ir.types import DType
from pyrelay.numpy_release import RELEASE

FALSE, TRUE = V.Known(False), V.Known(True)
ZERO, ONE = V.Known(0), V.Known(1)


# -- selection -------------------------------------------------------------------------------------


@handles(np.where)
def where(
    it: Interpreter, condition: V.Value, x: V.Value = V.NONE, y: V.Value = V.NONE
) -> V.Value:
    """np.where(condition, x, y)."""
    if x == V.NONE:
        from pyrelay.infer.names.composed import nonzero

        return nonzero(it, condition)
    cond = cast(it, operand(it, condition), types.bool_)
    a, b = operand(it, x), operand(it, y)
    dtype, _ = types.promote((it.tensor(a), it.tensor(b)))
    if RELEASE < (2, 5):  # Python's ints lose the bits that the type has not, without a word
        a, b = strong(it, a), strong(it, b)
    given = (it.builder.cast(it.atom(v), dtype) for v in (a, b))
    return of_no_axes(it, it.call("where", strong(it, cond), *given))


@handles(np.clip)
def clip(
    it: Interpreter, a: V.Value, a_min: V.Value = V.NONE, a_max: V.Value = V.NONE,
    out: V.Value = V.NONE, *, min: V.Value = V.NONE, max: V.Value = V.NONE,
) -> V.Value:
    """np.clip; a bound may be None."""
    if V.NONE not in (a_min, min) or V.NONE not in (a_max, max):
        raise raised(it, ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is "
            "forbidden."
        ))
    low = a_min if a_min != V.NONE else min
    high = a_max if a_max != V.NONE else max
    from pyrelay.infer.names.reduction import stored

    x = strong(it, operand(it, a))
    low, high = _within(it, x, low, "min"), _within(it, x, high, "max")
    if low == V.NONE and high == V.NONE:
        found = x
    elif low == V.NONE:
        found = extreme("minimum")(it, x, high)
    elif high == V.NONE:
        found = extreme("maximum")(it, x, low)
    elif is_complex(it, x, operand(it, low), operand(it, high)):
        found = clipped(it, x, operand(it, low), operand(it, high))
    else:
        if it.tensor(x).dtype is types.bf16:
            x = cast(it, x, types.f32)  # the one function of elements that has no loop for it
        found = it.call("clip", x, operand(it, low), operand(it, high))
    return stored(it, out, found)


def _within(it: Interpreter, x: V.Value, bound: V.Value, end: str) -> V.Value:
    """A bound; the end of the type for a Python int beyond that end, which no element passes."""
    dtype = it.tensor(x).dtype
    if not (isinstance(bound, V.Known) and type(bound.value) is int and dtype.kind in "iu"):
        return bound
    last = int(getattr(np.iinfo(dtype.numpy), end))
    beyond = bound.value < last if end == "min" else bound.value > last
    return V.Known(last) if beyond else bound


@handles(np.take)
def take(
    it: Interpreter, a: V.Value, indices: V.Value, axis: V.Value = V.NONE,
    out: V.Value = V.NONE, mode: V.Value = V.Known("raise"),
) -> V.Value:
    """np.take; indices outside raise, are clipped, or wrap around."""
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.names.reduction import stored

    a, at = with_axis(it, operand(it, a), axis)
    index = indices if V.number_type(indices) is not None else operand(it, indices)
    places = it.tensor(index)
    if places.dtype.kind == "b" or (V.is_list(indices) and 0 in places.shape):
        index = cast(it, index, types.i64)  # truth values are no mask, but the places 0 and 1
    size = V.Scalar.of_extent(it.tensor(a).shape[at])
    if mode == V.Known("wrap"):
        index = binary(it, "%", index, size)
    elif mode == V.Known("clip"):
        index = clip(it, index, ZERO, binary(it, "-", size, ONE))
    same = V.Slice(V.NONE, V.NONE, V.NONE)
    return stored(it, out, get_item(it, a, V.Tuple((*[same] * at, index))))


@handles(np.diag)
def diag(it: Interpreter, v: V.Value, k: V.Value = ZERO) -> V.Value:
    """np.diag of a vector (a matrix) or of a matrix (its diagonal)."""
    x = operand(it, v)
    ty = it.tensor(x)
    if ty.rank == 1 and k == ZERO:
        mask = eye(it, V.Scalar.of_extent(ty.shape[0]), dtype=V.Known(bool))
        row = it.emit("expand_dims", x, axes=(0,))
        zero = it.builder.handle(it.builder.cast(0, ty.dtype))
        return it.call("where", mask, row, zero)
    from pyrelay.infer.in_python import arrangement
    from pyrelay.infer.names.composed import in_python

    return in_python("np.diag", arrangement.diag)(it, x, k)


def _triangle(it: Interpreter, m: V.Value, k: V.Value, lower: bool) -> V.Value:
    x = operand(it, m)
    ty = it.tensor(x)
    if not ty.shape:
        raise it.failure(errors.ShapeError, "a triangle needs an array of at least one axis")
    rows = ty.shape[max(ty.rank - 2, 0)]  # a vector is broadcast to a square matrix
    row = it.emit("expand_dims", it.emit("iota", size=rows, dtype=types.i64), axes=(1,))
    column = it.emit("expand_dims", it.emit("iota", size=ty.shape[-1], dtype=types.i64), axes=(0,))
    edge = on_diagonal(it, row, k)
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


# -- products and norms ----------------------------------------------------------------------------


def np_matmul(it: Interpreter, x1: V.Value, x2: V.Value) -> V.Value:
    """np.matmul."""
    return matmul(it, operand(it, x1), operand(it, x2))


handles(np.matmul)(of_ufunc(np.matmul, np_matmul))


@handles(np.dot)
def np_dot(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """np.dot, to which Python's numbers are NumPy's."""
    return dot(it, strong(it, operand(it, a)), strong(it, operand(it, b)))


@handles(np.inner)
def inner(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """np.inner, to which Python's numbers are NumPy's."""
    left, right = strong(it, operand(it, a)), strong(it, operand(it, b))
    if it.tensor(left).rank and it.tensor(right).rank > 1:
        right = swapaxes(it, right, V.Known(-1), V.Known(-2))
    return dot(it, left, right)


@handles(np.vdot)
def vdot(it: Interpreter, a: V.Value, b: V.Value) -> V.Value:
    """np.vdot."""
    left = ravel(it, a)
    if it.tensor(left).dtype.kind == "c":
        left = it.call("conj", left)
    return product(it, left, ravel(it, b))


@handles(np.outer)
def outer(it: Interpreter, a: V.Value, b: V.Value, out: V.Value = V.NONE) -> V.Value:
    """np.outer."""
    from pyrelay.infer.names.reduction import stored

    left = it.emit("expand_dims", ravel(it, a), axes=(1,))
    right = it.emit("expand_dims", ravel(it, b), axes=(0,))
    return stored(it, out, it.call("multiply", left, right))


# -- dtypes and scalars ----------------------------------------------------------------------------


def _scalar_class(dtype: DType) -> Any:
    def handler(it: Interpreter, x: V.Value = ZERO) -> V.Value:
        value = operand(it, x)
        if isinstance(value, V.Known) and type(value.value) is int and dtype.name == "u64" and (
            2**63 <= value.value < 2**64  # which no int64 holds, as constants of hashes
        ):
            value = V.Known(np.uint64(value.value))
        if isinstance(value, V.ArrayRef) and value.type.shape:
            return cast(it, value, dtype)
        return it.result(it.builder.handle(as_element(it, value, dtype)))

    return handler


for _dtype in types.DTYPES.values():
    if _dtype.own is not None:
        handles(_dtype.own.type)(_scalar_class(_dtype))


def enter_ml_dtypes(module: Any) -> None:
    """The names of ml_dtypes, which a program has imported."""
    from pyrelay.infer.names.composed import limits

    handles(module.bfloat16)(_scalar_class(types.bf16))
    for cls in (module.finfo, module.iinfo):
        handles(cls)(limits(cls))


@handles(np.round, np.around)
def np_round(
    it: Interpreter, a: V.Value, decimals: V.Value = ZERO, out: V.Value = V.NONE
) -> V.Value:
    """np.round, half to even."""
    from pyrelay.infer.names.reduction import stored

    digits = it.static(decimals, "decimals")
    x = strong(it, operand(it, a))
    dtype = it.tensor(x).dtype
    if dtype.kind == "c":
        parts = (np_round(it, it.call(part, x), decimals) for part in ("real", "imag"))
        return stored(it, out, cast(it, it.call("make_complex", *parts), dtype))
    if dtype is types.bool_:
        return stored(it, out, cast(it, x, types.f16))
    if dtype.kind in "iu" and digits >= 0:
        if isinstance(x, V.ArrayRef) and out == V.NONE:
            if x.type.shape:
                return it.new_array(it.atom(x))
            x = it.result(it.builder.handle(it.atom(x)))
        return stored(it, out, x)
    if not digits:
        return stored(it, out, it.call("rint", x))
    scale = V.Known(10.0 ** abs(digits) if abs(digits) < 309 else np.inf)
    there, back = ("*", "/") if digits > 0 else ("/", "*")
    rounded = binary(it, back, it.call("rint", binary(it, there, x, scale)), scale)
    return stored(it, out, cast(it, rounded, dtype))


def _power(it: Interpreter, x1: V.Value, x2: V.Value) -> V.Value:
    from pyrelay.infer.powers import power

    x, y = operand(it, x1), operand(it, x2)
    return power(it, strong(it, x) if it.tensor(y).weak else x, y)


handles(np.power)(of_ufunc(np.power, _power))


@handles(np.real)
def np_real(it: Interpreter, val: V.Value) -> V.Value:
    """np.real."""
    return get_attribute(it, operand(it, val), "real")


@handles(np.imag)
def np_imag(it: Interpreter, val: V.Value) -> V.Value:
    """np.imag."""
    x = operand(it, val)
    if it.tensor(x).dtype.kind == "c":
        return get_attribute(it, x, "imag")
    none = it.result(it.builder.zeros(it.tensor(x)))
    return of_no_axes(it, none) if isinstance(x, V.ArrayRef) else none


def _comparison(symbol: str) -> Any:
    """The handler of a ufunc that compares."""
    plain = elementwise(OP_NAMES[symbol])

    def handler(it: Interpreter, x1: V.Value, x2: V.Value) -> V.Value:
        x, y = operand(it, x1), operand(it, x2)
        found = beside_unsigned(it, symbol, x, y)
        return plain(it, x, y) if found is None else found

    return handler


for _symbol in ("==", "!=", "<", "<=", ">", ">="):
    _compared = getattr(np, OP_NAMES[_symbol])
    handles(_compared)(of_ufunc(_compared, _comparison(_symbol)))


def _enter_ufuncs() -> None:
    aliases = {
        "true_divide": "divide", "mod": "remainder", "abs": "absolute", "conjugate": "conj",
        "bitwise_not": "invert",
    }
    for fn in list(vars(np).values()):  # not dir(): that would load NumPy's lazy submodules
        if isinstance(fn, np.ufunc) and lookup(fn) is None:
            op = aliases.get(fn.__name__, fn.__name__)
            if op in OPS:
                handles(fn)(of_ufunc(fn, elementwise(op)))


_enter_ufuncs()
for _name in ("outer", "cross", "matmul", "tensordot", "vecdot", "matrix_transpose"):
    _plain = lookup(getattr(np, _name))
    if _plain is not None and hasattr(np.linalg, _name):
        handles(getattr(np.linalg, _name))(_plain)
