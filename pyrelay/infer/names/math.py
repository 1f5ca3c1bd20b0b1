"""Functions of Python's `math` that are ops; those in plain Python are in composed.py.

In: Python and NumPy numbers, arrays of one element. Out: Python numbers. A domain error raises.
"""

from __future__ import annotations

import math
from typing import Any

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.containers import lists
from pyrelay.infer.flow.effects import raise_where
from pyrelay.infer.flow.iteration import sequence_of
from pyrelay.infer.flow.truth import truth
from pyrelay.infer.in_python import iteration, python_math
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.builtins import ONE, bool_, converted, float_, int_
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.operators import binary, compare, extent_of, raised
from pyrelay.ir import types
from pyrelay.ir.op import OPS
from pyrelay.ops import python_numbers


def _math(op: str) -> Any:
    arity = len(OPS[op].samples[0].args)

    def handler(it: Interpreter, *operands: V.Value) -> V.Value:
        if len(operands) != arity:
            raise it.failure(
                errors.SignatureError,
                f"math.{op} expected {arity} argument{'s' * (arity > 1)}, got {len(operands)}",
            )
        values = []
        for value in operands:
            ty = it.tensor(value, f"math.{op}")
            if ty.shape and ty.size != 1:
                raise it.failure(
                    errors.TypeMismatchError,
                    f"math.{op} needs a number, and got {ty}",
                    hints=(f"use np.{op} for arrays",),
                )
            values.append(converted(it, float, value, types.f64))
        if op in _OF_INTS:
            _refuse_int(it, operands[0], _OF_INTS[op])
        return it.call(op, *values, strict=True)

    return handler


#: What Python says of ints that have no logarithm.
_OF_INTS = {
    op: python_numbers.words(lambda f=f: f(-1))  # type: ignore[misc]
    for op, f in (("log", math.log), ("log2", math.log2), ("log10", math.log10))
}


def _refuse_int(it: Interpreter, value: V.Value, text: str) -> None:
    """Raise what a logarithm does of an int, where it is not what it does of a float."""
    if V.number_type(value) != types.PY_INT or text == python_numbers.DOMAIN:
        return
    refused = truth(it, compare(it, "<=", value, V.Known(0)))
    if refused == V.Known(True):
        raise raised(it, ValueError(text))
    if refused != V.Known(False):
        raise_where(it, it.atom(refused), ValueError, V.Known(text))


for _name, _op in {
    "sqrt": "sqrt", "exp": "exp", "expm1": "expm1", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "erf": "erf", "erfc": "erfc", "gamma": "gamma", "lgamma": "lgamma",
    "nextafter": "nextafter", "copysign": "copysign", "fabs": "absolute",
    "cbrt": "cbrt", "exp2": "exp2",
}.items():
    if hasattr(math, _name):
        handles(getattr(math, _name))(_math(_op))


@handles(math.hypot)
def math_hypot(it: Interpreter, *coordinates: V.Value) -> V.Value:
    """math.hypot of any number of coordinates."""
    if len(coordinates) == 2:
        length: V.Value = _math("hypot")(it, *coordinates)
        return length
    return call(it, V.Known(python_math.hypot), coordinates, {})


@handles(math.pow)
def math_pow(it: Interpreter, x: V.Value, y: V.Value) -> V.Value:
    """math.pow(x, y): always floats."""
    return it.call("power", float_(it, x), float_(it, y), strict=True)


def _math_log(it: Interpreter, x: V.Value, base: V.Value = V.NONE) -> V.Value:
    """math.log(x[, base])."""
    value = _math("log")(it, x)
    return value if base == V.NONE else binary(it, "/", value, _math("log")(it, base))


handles(math.log)(_math_log)


def _math_to_int(op: str) -> Any:
    def handler(it: Interpreter, x: V.Value) -> V.Value:
        extent = extent_of(x)
        if extent is not None:
            return V.Scalar.of_extent(extent)
        ty = V.number_type(x)
        if ty is not None and ty.weak and ty.dtype.kind in "ib":
            return int_(it, x)
        return converted(it, int, it.call(op, float_(it, x)), types.i64)

    return handler


for _name in ("floor", "ceil", "trunc"):
    handles(getattr(math, _name))(_math_to_int(_name))


@handles(math.isnan)
def math_isnan(it: Interpreter, x: V.Value) -> V.Value:
    """math.isnan(x)."""
    return bool_(it, it.call("isnan", float_(it, x)))


@handles(math.isinf)
def math_isinf(it: Interpreter, x: V.Value) -> V.Value:
    """math.isinf(x)."""
    return bool_(it, it.call("isinf", float_(it, x)))


@handles(math.isfinite)
def math_isfinite(it: Interpreter, x: V.Value) -> V.Value:
    """math.isfinite(x)."""
    return bool_(it, it.call("isfinite", float_(it, x)))


@handles(math.prod)
def math_prod(it: Interpreter, iterable: V.Value, *, start: V.Value = ONE) -> V.Value:
    """math.prod(iterable)."""
    if not lists.has_known_length(it, iterable):
        return call(it, V.Known(iteration.product), (iterable, start), {})
    total = start
    for item in sequence_of(it, iterable):
        total = binary(it, "*", total, item)
    return total
