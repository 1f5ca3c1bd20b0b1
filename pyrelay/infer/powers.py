"""Powers: those of known exponents as NumPy and Python compute them.

In: a base and an exponent. Out: the power; small exponents become products, 0.5 a square root.
"""

from __future__ import annotations

import math
from typing import Any

from pyrelay.infer import values as V
from pyrelay.infer.arrays import memory_order
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types


def power(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """`x ** y`: small literal exponents become multiplications; int ** int as in Python."""
    tx, ty = it.tensor(x), it.tensor(y)
    if isinstance(y, V.Known) and not isinstance(y.value, complex):
        if isinstance(y.value, float):  # a bfloat16 to such a power is a float32
            target, weak = types.promote_computed((tx, ty))
            if target.is_float and tx.dtype.is_float:
                x = _cast(it, x, target, weak=weak)
                tx = it.tensor(x)
        if y.value == 2 and not (tx.weak and tx.dtype.is_float) and (
            tx.dtype is not types.bool_ or tx.weak
        ):
            squared = it.call("multiply", x, x)
            return squared if not isinstance(y.value, float) else _as_float(it, squared)
        if y.value == 1 and tx.dtype is not types.bool_:
            one = it.call("positive", x)
            return one if not isinstance(y.value, float) else _as_float(it, one)
        if y.value == -1 and tx.dtype.kind == "f" and tx.shape:  # as NumPy does it
            return it.call("reciprocal", x)
        if y.value == 0.5 and not tx.weak and (
            tx.dtype.kind == "f" or (tx.dtype.kind == "c" and tx.shape)
        ):
            return _root(it, x)
        if tx.dtype.kind == "c" and not tx.weak and 2 < y.value < 100 and y.value % 1 == 0:
            return _multiplied(it, x, int(y.value))
    if tx.weak and ty.weak and not tx.dtype.is_float and not ty.dtype.is_float:
        if isinstance(y, V.Known) and y.value < 0:
            return it.call("power", it.builder.cast(it.atom(x), types.f64, weak=True), y)
        return it.call("power", *_ints(it, x, y))
    return it.call("power", x, y)


def _root(it: Interpreter, x: V.Value) -> V.Value:
    """x to the power 0.5: the square root, which of NumPy's numbers is C's `pow`, not of arrays."""
    root = it.call("sqrt", x)
    if not isinstance(x, V.Scalar):
        return root
    below = it.call("equal", x, V.Known(-math.inf))
    return it.call("where", below, V.Known(math.inf), it.call("add", root, V.Known(0.0)))


def _multiplied(it: Interpreter, x: V.Value, n: int) -> V.Value:
    """A complex number to the power n, by the products that NumPy's `npy_cpow` makes."""
    if n == 3:
        return it.call("multiply", x, it.call("multiply", x, x))
    found: V.Value | None = None
    while True:
        if n & 1:
            found = x if found is None else it.call("multiply", found, x)
        n >>= 1
        if not n:
            break
        x = it.call("multiply", x, x)
    assert found is not None
    return found


def _ints(it: Interpreter, x: V.Value, y: V.Value) -> tuple[Any, Any]:
    return (
        it.builder.cast(it.atom(x), types.i64, weak=True),
        it.builder.cast(it.atom(y), types.i64, weak=True),
    )


def _as_float(it: Interpreter, value: V.Value) -> V.Value:
    ty = it.tensor(value)
    if ty.dtype.is_float:
        return value
    return _cast(it, value, types.f64, weak=ty.weak)


def _cast(it: Interpreter, value: V.Value, dtype: types.DType, *, weak: bool) -> V.Value:
    """A number or an array of another type, which lies in memory as it did."""
    made = it.result(it.builder.handle(it.builder.cast(it.atom(value), dtype, weak=weak)))
    memory_order.of_result(it, (value,), made)
    return made
