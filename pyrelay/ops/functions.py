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


def _power_element(s: Any, i: Any, a: Any, b: Any, *, strict: bool = False) -> Any:
    x, y = a(i), b(i)
    negative_exponent = "Integers to negative integer powers are not allowed."
    if not s.weak and b.dtype.kind == "i":
        s.fail("ValueError", (negative_exponent,), s.less(y, s.const(0, b.dtype)))
    # As exact as the function is, and it takes one or two instructions.
    exponent = getattr(y, "literal", None) if b.dtype in (f32, f64) else None
    result = x * x if exponent == 2 else x * x * x if exponent == 3 else s.power(x, y)
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
