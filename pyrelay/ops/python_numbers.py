"""Arithmetic on Python's own numbers: what it computes, when it raises, and with which words.

In: the operands of an op. Out: with only Python numbers among them the Python number that Python
computes, or Python's exception; else what NumPy computes, without its warnings. An int that leaves
64 bits raises OverflowError, since compiled code holds ints in 64 bits.

The second half states the same checks for compiled code: `guard(s, operands, values, result)` emits
the failures of an op on weak operands (`s` as in `lower/kernels/kernelise.py`). The words are taken
from the running Python, because they differ between its versions.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyrelay.ir import types

PYTHON_NUMBERS = (bool, int, float, complex)
SMALLEST, LARGEST = -(2**63), 2**63 - 1
TOO_LARGE = "the int result does not fit in 64 bits"
NEGATIVE_EXPONENT = "an int to a negative power is a float; write float(x) ** y"
COMPLEX_POWER = "a negative number to a fractional power is complex; write complex(x) ** y"
DOMAIN, RANGE = "math domain error", "math range error"

Meaning = Callable[..., Any]
Guard = Callable[[Any, tuple[Any, ...], tuple[Any, ...], Any], None]


def words(failing: Callable[[], object]) -> str:
    """The message with which this Python refuses `failing()`."""
    try:
        failing()
    except (ArithmeticError, ValueError) as error:
        return str(error)
    raise AssertionError("the computation was expected to fail")


DIVIDED_INT_BY_ZERO = words(lambda: operator.truediv(1, 0))
DIVIDED_FLOAT_BY_ZERO = words(lambda: operator.truediv(1.0, 0.0))
FLOORED_INT_BY_ZERO = words(lambda: operator.floordiv(1, 0))
FLOORED_FLOAT_BY_ZERO = words(lambda: operator.floordiv(1.0, 0.0))
REMAINDER_INT_BY_ZERO = words(lambda: operator.mod(1, 0))
REMAINDER_FLOAT_BY_ZERO = words(lambda: operator.mod(1.0, 0.0))
ZERO_TO_NEGATIVE = words(lambda: operator.pow(0.0, -1.0))
DIVIDED_COMPLEX_BY_ZERO = words(lambda: operator.truediv(1j, 0))
COMPLEX_ZERO_TO_NEGATIVE = words(lambda: operator.pow(0j, -1))
POWER_TOO_LARGE = words(lambda: operator.pow(1e300, 2.0))
NEGATIVE_SHIFT = words(lambda: operator.lshift(1, -1))
INT_OF_NAN = words(lambda: int(math.nan))
INT_OF_INFINITY = words(lambda: int(math.inf))


def fitting(value: Any) -> Any:
    """The number itself. Raises OverflowError for an int of more than 64 bits."""
    if type(value) is int and not SMALLEST <= value <= LARGEST:
        raise OverflowError(TOO_LARGE)
    return value


def meaning(
    numpy: Meaning, python: Meaning | None = None, of_math: Meaning | None = None
) -> Meaning:
    """What an elementwise op computes: `numpy` on arrays and NumPy scalars, else Python's numbers.

    `python` computes with Python numbers only; without it, NumPy's result as a Python number.
    `of_math`, the function of the `math` module, does if the op has the attribute strict=True.
    """

    def compute(*args: Any, strict: bool = False, **attrs: Any) -> Any:
        if all(type(a) in PYTHON_NUMBERS for a in args):
            if strict and of_math is not None:
                return of_math(*args)
            if python is not None:
                return fitting(python(*args, **attrs))
            with np.errstate(all="ignore"):
                return np.asarray(numpy(*args, **attrs)).item()
        with np.errstate(all="ignore"):
            return numpy(*args, **attrs)

    return compute


def left_shift(value: int, count: int) -> int:
    """value << count, without building an int of millions of digits first."""
    if value and count >= 64:
        raise OverflowError(TOO_LARGE)
    return value << (count if value else min(count, 1))


def power(base: Any, exponent: Any) -> Any:
    """base ** exponent, with a result of the operands' type.

    Raises ValueError where Python would answer with another type.
    """
    if type(base) is int and exponent < 0 and base:
        raise ValueError(NEGATIVE_EXPONENT)
    if type(base) is int and abs(base) > 1 and exponent > 64:
        raise OverflowError(TOO_LARGE)
    result = base**exponent
    if type(result) is complex and type(base) is float:
        raise ValueError(COMPLEX_POWER)
    return result


# -- the same checks in compiled code -----------------------------------------------------------


def _is_integer(operand: Any) -> bool:
    return bool(operand.dtype.kind == "i")


def no_overflow(of: str) -> Guard:
    """The int result of "add", "subtract" or "multiply" (a square has one operand) fits."""

    def guard(s: Any, operands: Any, values: Any, result: Any) -> None:
        if _is_integer(operands[0]):
            lost = getattr(s, f"{of}_overflows")(values[0], values[-1])
            s.fail("OverflowError", (TOO_LARGE,), lost)

    return guard


def no_overflow_of_negative(s: Any, operands: Any, values: Any, result: Any) -> None:
    """Only the smallest int has no opposite."""
    if _is_integer(operands[0]):
        smallest = s.const(SMALLEST, operands[0].dtype)
        s.fail("OverflowError", (TOO_LARGE,), s.equal(values[0], smallest))


def nonzero_divisor(integer: str, real: str, is_floored: bool = False) -> Guard:
    """The divisor is not zero; the words for ints and for floats. is_floored: the result is an int
    where the operands are, which one quotient does not fit in."""

    def guard(s: Any, operands: Any, values: Any, result: Any) -> None:
        kind = operands[1].dtype.kind
        text = {"i": integer, "f": real}.get(kind, DIVIDED_COMPLEX_BY_ZERO)
        zero = s.const(0, operands[1].dtype)
        s.fail("ZeroDivisionError", (text,), s.equal(values[1], zero))
        if is_floored and _is_integer(operands[1]):
            lost = s.logical_and(
                s.equal(values[0], s.const(SMALLEST, operands[0].dtype)),
                s.equal(values[1], s.const(-1, operands[1].dtype)),
            )
            s.fail("OverflowError", (TOO_LARGE,), lost)

    return guard


def valid_shift(s: Any, operands: Any, values: Any, result: Any) -> None:
    """The count of a right shift is not negative."""
    zero = s.const(0, operands[1].dtype)
    s.fail("ValueError", (NEGATIVE_SHIFT,), s.less(values[1], zero))


def valid_left_shift(s: Any, operands: Any, values: Any, result: Any) -> None:
    """The count of a left shift is not negative, and shifting back restores the number."""
    valid_shift(s, operands, values, result)
    a, b = values
    beyond = s.logical_and(
        s.greater(b, s.const(63, operands[1].dtype)),
        s.not_equal(a, s.const(0, operands[0].dtype)),
    )
    lost = s.logical_or(beyond, s.not_equal(s.right_shift(result, b), a))
    s.fail("OverflowError", (TOO_LARGE,), lost)


def valid_power(s: Any, operands: Any, values: Any, result: Any) -> None:
    """What `power` above refuses, and Python's OverflowError for floats."""
    dtype = operands[0].dtype
    a, b = values
    zero = s.const(0, dtype)
    if dtype.kind == "c":
        positive = s.greater_equal(s.real(b), s.const(0, types.f64))
        real = s.equal(s.imag(b), s.const(0, types.f64))
        wrong = s.logical_and(s.equal(a, zero), s.logical_not(s.logical_and(positive, real)))
        s.fail("ZeroDivisionError", (COMPLEX_ZERO_TO_NEGATIVE,), wrong)
        return
    negative = s.less(b, zero)
    finite_negative = s.logical_and(negative, s.isfinite(b)) if dtype.kind == "f" else negative
    s.fail(
        "ZeroDivisionError", (ZERO_TO_NEGATIVE,), s.logical_and(s.equal(a, zero), finite_negative)
    )
    if dtype.kind == "i":
        s.fail("ValueError", (NEGATIVE_EXPONENT,), negative)
        # No square, cube, ... but powers of two comes near the bounds: the float test is exact.
        real = s.power(s.cast(a, types.f64), s.cast(b, types.f64))
        above = s.greater_equal(real, s.const(2.0**63, types.f64))
        below = s.less(real, s.const(-(2.0**63), types.f64))
        beyond = s.logical_and(s.logical_or(above, below), s.greater(b, s.const(1, dtype)))
        s.fail("OverflowError", (TOO_LARGE,), beyond)
        return
    finite = s.logical_and(s.isfinite(a), s.isfinite(b))
    s.fail("ValueError", (COMPLEX_POWER,), s.logical_and(finite, s.isnan(result)))
    s.fail("OverflowError", (POWER_TOO_LARGE,), s.logical_and(finite, s.isinf(result)))


def no_infinite_power(text: str) -> Guard:
    """A float to a power that is a positive whole number: that of a finite one is finite."""

    def guard(s: Any, operands: Any, values: Any, result: Any) -> None:
        s.fail("OverflowError", (text,), s.logical_and(s.isinf(result), s.isfinite(values[0])))

    return guard


whole_power, math_whole_power = no_infinite_power(POWER_TOO_LARGE), no_infinite_power(RANGE)


def like_math(name: str, overflows: bool) -> Guard:
    """CPython's rule for a function of `math` (`math_1` in Modules/mathmodule.c).

    A NaN from no NaN is a domain error; an infinity from finite operands is a range error if the
    function `overflows`, else a domain error.
    """
    domain = domain_words(name)

    def guard(s: Any, operands: Any, values: Any, result: Any) -> None:
        any_nan = functools.reduce(s.logical_or, map(s.isnan, values))
        invented = s.logical_and(s.isnan(result), s.logical_not(any_nan))
        s.fail("ValueError", domain, invented, values[0])
        finite = functools.reduce(s.logical_and, map(s.isfinite, values))
        infinite = s.logical_and(s.isinf(result), finite)
        kind, parts = ("OverflowError", (RANGE,)) if overflows else ("ValueError", domain)
        s.fail(kind, parts, infinite, values[0])

    return guard


def math_power(s: Any, operands: Any, values: Any, result: Any) -> None:
    """What `math.pow` refuses: 0 to a negative power, a negative number to a fraction, overflow."""
    a, b = values
    zero = s.const(0, types.f64)
    finite = s.logical_and(s.isfinite(a), s.isfinite(b))
    domain = s.logical_or(s.equal(a, zero), s.isnan(result))
    failed = s.logical_and(finite, s.logical_not(s.isfinite(result)))
    s.fail("ValueError", (DOMAIN,), s.logical_and(failed, domain))
    s.fail("OverflowError", (RANGE,), s.logical_and(failed, s.logical_not(domain)))


#: Functions of `math` by the op that computes them, for strict=True.
MATH: Mapping[str, Meaning] = {
    "sqrt": math.sqrt, "cbrt": math.cbrt, "exp": math.exp, "exp2": math.exp2, "expm1": math.expm1,
    "log": math.log, "log2": math.log2, "log10": math.log10, "log1p": math.log1p,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "arcsin": math.asin, "arccos": math.acos,
    "arctan": math.atan, "arctan2": math.atan2, "sinh": math.sinh, "cosh": math.cosh,
    "tanh": math.tanh, "arcsinh": math.asinh, "arccosh": math.acosh, "arctanh": math.atanh,
    "erf": math.erf, "erfc": math.erfc, "gamma": math.gamma, "lgamma": math.lgamma,
    "hypot": math.hypot, "copysign": math.copysign, "power": math.pow,
}

#: What functions of `math` refuse, by op.
_REFUSED = {
    "sqrt": -1.0, "log": -1.0, "log2": -1.0, "log10": -1.0, "log1p": -1.0, "sin": math.inf,
    "cos": math.inf, "tan": math.inf, "arcsin": 2.0, "arccos": 2.0, "arccosh": 0.5,
    "arctanh": 2.0, "gamma": -1.0, "lgamma": -1.0,
}  # fmt: skip


@functools.cache
def domain_words(name: str) -> tuple[Any, ...]:
    """The words of a domain error, with 0 in place of the operand, which some Pythons name."""
    if name not in _REFUSED:
        return (DOMAIN,)
    refused = _REFUSED[name]
    text = words(lambda: MATH[name](refused))
    named = text.removesuffix(repr(refused))
    return (text,) if named == text else (named, 0)
