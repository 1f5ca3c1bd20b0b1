"""Powers, roots, exponentials, logarithms, trigonometry, and the error function.

In: floating operands (integers are cast first, as in NumPy). Out: NumPy's functions, `sigmoid` and
`erf`. With strict=True (Python numbers only) they raise as the functions of `math` do. Where a
derivative does not exist: sqrt at 0 has inf; x**y has 0 by y at x = 0, and 0 by x at y = 0; hypot
at the origin has 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay.ir.build import Handle
from pyrelay.ir.nodes import Const
from pyrelay.ir.op import Op, Promotion, Sample
from pyrelay.ir.types import f32, f64
from pyrelay.ops import python_numbers as py
from pyrelay.ops.arithmetic import reciprocal
from pyrelay.ops.elementwise import Slope, elementwise
from pyrelay.ops.logic import equal, where
from pyrelay.ops.samples import binary, integers, spread, unary

_COMPLEX = Sample((spread((4,), -0.9, 0.9) + 1j * spread((4,), -0.9, 0.9, 3),))
_LARGE_COMPLEX = Sample((spread((5,), -4.0, 4.0) + 1j * spread((5,), -4.0, 4.0, 3),), {}, False)


def _function(
    name: str, numpy: Any, slope: Slope, low: float, high: float, doc: str, kinds: str = "fc"
) -> Any:
    samples = (*unary(low, high), integers((3,), low=1, high=1))
    return elementwise(
        name, numpy, (slope,), kinds=kinds, promotion=Promotion.FLOAT,
        samples=samples if kinds == "f" else (*samples, _COMPLEX, _LARGE_COMPLEX), doc=doc,
    )


# -- roots --------------------------------------------------------------------------------------

sqrt = _function("sqrt", np.sqrt, lambda y, x: 0.5 / y, 0.1, 9.0, "the square root")
cbrt = _function(
    "cbrt", np.cbrt, lambda y, x: reciprocal(3 * (y * y)), 0.1, 9.0, "the real cube root", "f"
)

# -- exponentials and logarithms ----------------------------------------------------------------

exp = _function("exp", np.exp, lambda y, x: y, -3.0, 3.0, "e**x")
exp2 = _function("exp2", np.exp2, lambda y, x: y * math.log(2), -3.0, 3.0, "2**x")
expm1 = _function("expm1", np.expm1, lambda y, x: y + 1, -3.0, 3.0, "e**x - 1, precise near 0")
log = _function("log", np.log, lambda y, x: reciprocal(x), 0.1, 9.0, "the natural logarithm")
log2 = _function(
    "log2", np.log2, lambda y, x: reciprocal(x * math.log(2)), 0.1, 9.0, "the logarithm, base 2"
)
log10 = _function(
    "log10", np.log10, lambda y, x: reciprocal(x * math.log(10)), 0.1, 9.0,
    "the logarithm, base 10",
)
log1p = _function(
    "log1p", np.log1p, lambda y, x: reciprocal(1 + x), -0.9, 3.0, "log(1 + x), precise near 0"
)

# -- trigonometry -------------------------------------------------------------------------------

sin = _function("sin", np.sin, lambda y, x: cos(x), -4.0, 4.0, "sine")
cos: Op = _function("cos", np.cos, lambda y, x: -sin(x), -4.0, 4.0, "cosine")
tan = _function("tan", np.tan, lambda y, x: 1 + y * y, -1.4, 1.4, "tangent")
arcsin = _function(
    "arcsin", np.arcsin, lambda y, x: reciprocal(sqrt((1 - x) * (1 + x))), -0.9, 0.9, "arc sine"
)
arccos = _function(
    "arccos", np.arccos, lambda y, x: -reciprocal(sqrt((1 - x) * (1 + x))), -0.9, 0.9,
    "arc cosine",
)
arctan = _function(
    "arctan", np.arctan, lambda y, x: reciprocal(1 + x * x), -4.0, 4.0, "arc tangent"
)

# -- hyperbolic functions -----------------------------------------------------------------------

sinh = _function("sinh", np.sinh, lambda y, x: cosh(x), -3.0, 3.0, "hyperbolic sine")
cosh: Op = _function("cosh", np.cosh, lambda y, x: sinh(x), -3.0, 3.0, "hyperbolic cosine")
tanh = _function("tanh", np.tanh, lambda y, x: 1 - y * y, -3.0, 3.0, "hyperbolic tangent")
arcsinh = _function(
    "arcsinh", np.arcsinh, lambda y, x: reciprocal(sqrt(1 + x * x)), -4.0, 4.0,
    "inverse hyperbolic sine",
)
arccosh = _function(
    "arccosh", np.arccosh, lambda y, x: reciprocal(sqrt(x - 1) * sqrt(x + 1)), 1.1, 9.0,
    "inverse hyperbolic cosine",
)
arctanh = _function(
    "arctanh", np.arctanh, lambda y, x: reciprocal((1 - x) * (1 + x)), -0.9, 0.9,
    "inverse hyperbolic tangent",
)

# -- the logistic and the error function --------------------------------------------------------


def _sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow: the exponential of -|x| only."""
    small = np.exp(-np.abs(x))
    return (np.where(np.less(x, 0), small, 1) / (1 + small))[()]


def _erf(x: Any) -> Any:
    """C's erf, element by element, in double precision."""
    array = np.asarray(x)
    values = [math.erf(v) for v in array.ravel().tolist()]
    return np.array(values, dtype=array.dtype).reshape(array.shape)[()]


sigmoid = _function(
    "sigmoid", _sigmoid, lambda y, x: y * (1 - y), -6.0, 6.0, "1 / (1 + exp(-x))", "f"
)
erf = _function(
    "erf", _erf, lambda y, x: 2 / math.sqrt(math.pi) * exp(-(x * x)), -3.0, 3.0,
    "the error function", "f",
)

# -- functions of two operands ------------------------------------------------------------------


def _by_base(y: Handle, a: Handle, b: Handle) -> Any:
    if not isinstance(b.atom, Const):
        return where(equal(b, 0), 0, b * power(a, b - 1))
    exponent = b.atom.value
    if exponent in (0, 1):
        return exponent
    return 2 * a if exponent == 2 else exponent * power(a, exponent - 1)


def _by_exponent(y: Handle, a: Handle, b: Handle) -> Any:
    return where(equal(a, 0), 0, y * log(a))


def _binary(
    name: str, numpy: Any, slopes: Sequence[Slope], doc: str, low: float = -2.0, high: float = 2.0
) -> Any:
    return elementwise(
        name, numpy, slopes, kinds="f", promotion=Promotion.FLOAT, samples=binary(low, high),
        doc=doc,
    )


def _known_power(s: Any, x: Any, exponent: float | None, dtype: Any) -> Any:
    """x to a small exponent that is known, as exact as the function and in less time, or None."""
    if exponent in (2, 3):
        return x * x if exponent == 2 else x * x * x
    if exponent in (0.5, 1.5, -0.5, -1.5):
        one, zero = s.const(1, dtype), s.const(0, dtype)
        if exponent == -1.5:  # of -inf: of -0, whose root times itself is 0
            inverse = one / (x + zero)
            return inverse * s.sqrt(inverse)
        root = s.sqrt(x)
        if exponent == 1.5:
            made = x * root
        else:  # the root of -0 is 0 here
            made = root + zero if exponent == 0.5 else one / (root + zero)
        limit = s.const(math.inf if exponent > 0 else 0.0, dtype)
        return s.where(s.equal(x, s.const(-math.inf, dtype)), limit, made)
    if exponent is None or exponent % 1 != 0 or not 2 <= abs(exponent) <= _MOST_MULTIPLIED:
        return None
    return _multiplied(s, x, int(exponent), dtype)


_MOST_MULTIPLIED = 16


def _multiplied(s: Any, x: Any, exponent: int, dtype: Any) -> Any:
    """x to a whole power by products, each with what its rounding left out: the function's digits.

    From the inverse of x where the exponent is negative: a power of x might be infinite where that
    of its inverse is not yet 0.
    """
    base = x, None
    if exponent < 0:
        one = s.const(1, dtype)
        inverse = one / x
        base = inverse, s.fma(-inverse, x, one) * inverse
    digits = f"{abs(exponent):b}"[1:]
    power: tuple[Any, Any] = base
    for digit in digits[:-1]:
        power = _product(s, power, power)
        if digit == "1":
            power = _product(s, power, base)
    if exponent % 2:
        power = _product(s, power, power)
    other = base if exponent % 2 else power
    low = _lacking(s, power, other)
    if low is None:
        return power[0] * other[0]
    plain = s.isfinite(low)
    if exponent % 2:  # -0 + 0 is not -0
        plain = s.logical_and(plain, s.not_equal(low, s.const(0, dtype)))
    return s.where(plain, s.fma(power[0], other[0], low), power[0] * other[0])


def _product(s: Any, a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """The product of two numbers and what each lacks, as a number and what it lacks."""
    high = a[0] * b[0]
    rest = s.fma(a[0], b[0], -high)
    if a is b and a[1] is not None:
        return high, s.fma(a[0] + a[0], a[1], rest)
    low = _lacking(s, a, b)
    return high, rest if low is None else rest + low


def _lacking(s: Any, a: tuple[Any, Any], b: tuple[Any, Any]) -> Any:
    """What the product of two numbers lacks by what each lacks."""
    if a[1] is None or b[1] is None:
        return None if a[1] is b[1] else a[1] * b[0] if b[1] is None else a[0] * b[1]
    if a is b:
        return (a[0] + a[0]) * a[1]
    return s.fma(a[0], b[1], a[1] * b[0])


def _power_element(s: Any, i: Any, a: Any, b: Any, *, strict: bool = False) -> Any:
    x, y = a(i), b(i)
    negative_exponent = "Integers to negative integer powers are not allowed."
    if not s.weak and b.dtype.kind == "i":
        s.fail("ValueError", (negative_exponent,), s.less(y, s.const(0, b.dtype)))
    exponent = getattr(y, "literal", None) if b.dtype in (f32, f64) else None
    result = _known_power(s, x, exponent, b.dtype)
    result = s.power(x, y) if result is None else result
    if s.weak:
        check: py.Guard = py.math_power if strict else py.valid_power
        if isinstance(exponent, float) and exponent > 0 and exponent.is_integer():
            check = py.math_whole_power if strict else py.whole_power
        check(s, (a, b), (x, y), result)
    return result


power = elementwise(
    "power", np.power, (_by_base, _by_exponent), promotion=Promotion.NUMBER,
    python=py.power, element=_power_element,
    samples=(
        *binary(0.2, 3.0), integers((5,), (2, 1), low=0, high=9), Sample((3, 4)),
        Sample((spread((4,)), 3.0)), Sample((np.array([0.0, -1.5, 2.0]), 2.0), {}, False),
        Sample((np.array([0.0, 2.0]), np.array([0.0, 0.0])), {}, False),
        Sample((_COMPLEX.args[0], 1.5 - 0.5j)),
    ),
    doc="x ** y; a NumPy integer to a negative integer power raises ValueError",
)
arctan2 = _binary(
    "arctan2", np.arctan2,
    (lambda y, a, b: b / (a * a + b * b), lambda y, a, b: -a / (a * a + b * b)),
    "the angle of the point (y, x)",
)
hypot = _binary(
    "hypot", np.hypot,
    (lambda y, a, b: where(equal(y, 0), 0, a / y), lambda y, a, b: where(equal(y, 0), 0, b / y)),
    "sqrt(x*x + y*y) without overflow",
)
logaddexp = _binary(
    "logaddexp", np.logaddexp,
    (lambda y, a, b: where(equal(a, b), 0.5, sigmoid(a - b)),
     lambda y, a, b: where(equal(a, b), 0.5, sigmoid(b - a))),
    "log(exp(x) + exp(y)) without overflow",
)
