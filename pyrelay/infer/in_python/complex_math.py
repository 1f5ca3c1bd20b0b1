"""Functions of Python's `cmath`, in plain Python.

In and out: what the function of the same name takes and gives: Python numbers. Errors are those of
C99 Annex G, which Python's own follow: a pole is a domain error, an overflow a range error.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "isclose", "isfinite",
    "isinf", "isnan", "log", "log10", "phase", "polar", "rect", "sin", "sinh", "sqrt", "tan",
    "tanh",
]


def isfinite(x: Any) -> bool:
    """Whether both parts are finite."""
    z = complex(x)
    return math.isfinite(z.real) and math.isfinite(z.imag)


def isinf(x: Any) -> bool:
    """Whether one of the parts is infinite."""
    z = complex(x)
    return math.isinf(z.real) or math.isinf(z.imag)


def isnan(x: Any) -> bool:
    """Whether one of the parts is not a number."""
    z = complex(x)
    return math.isnan(z.real) or math.isnan(z.imag)


def isclose(a: Any, b: Any, *, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    """Whether two numbers are close to each other."""
    if a == b:
        return True
    if isinf(a) or isinf(b):
        return False
    return bool(abs(a - b) <= max(rel_tol * max(abs(a), abs(b)), abs_tol))


def phase(x: Any) -> float:
    """The angle in the plane, in (-pi, pi]."""
    z = complex(x)
    return math.atan2(z.imag, z.real)


def polar(x: Any) -> Any:
    """The distance from zero and the angle."""
    return abs(complex(x)), phase(x)


def rect(r: Any, phi: Any) -> Any:
    """The number at a distance from zero, in the direction of an angle."""
    return complex(r * math.cos(phi), r * math.sin(phi))


def _in_range(result: Any, x: Any) -> Any:
    """The result as Python's number; too large for a float is an error."""
    z = complex(result)
    if isinf(z) and isfinite(x):
        raise OverflowError("math range error")
    return z


def _refuse(without: bool) -> None:
    """A domain error where there is no angle: that of an infinity is none."""
    if without:
        raise ValueError("math domain error")


def exp(x: Any) -> Any:
    """e to a complex power."""
    z = complex(x)
    _refuse(math.isinf(z.imag) and not math.isnan(z.real) and z.real != -math.inf)
    return _in_range(np.exp(complex(x)), x)


def log(x: Any, *base: Any) -> Any:
    """The principal logarithm, natural or to a base."""
    z = complex(x)
    if z == 0:
        raise ValueError("math domain error")
    natural = complex(np.log(z))
    return natural if len(base) == 0 else natural / log(base[0])


def log10(x: Any) -> Any:
    """The principal logarithm to base 10."""
    natural = log(x)
    return complex(natural.real / math.log(10), natural.imag / math.log(10))


def sqrt(x: Any) -> Any:
    """The square root on the right of the plane."""
    return complex(np.sqrt(complex(x)))


def sin(x: Any) -> Any:
    """The sine."""
    z = complex(x)
    _refuse(math.isinf(z.real) and not math.isnan(z.imag))
    return _in_range(np.sin(complex(x)), x)


def cos(x: Any) -> Any:
    """The cosine."""
    z = complex(x)
    _refuse(math.isinf(z.real) and not math.isnan(z.imag))
    return _in_range(np.cos(complex(x)), x)


def tan(x: Any) -> Any:
    """The tangent."""
    z = complex(x)
    _refuse(math.isinf(z.real) and math.isfinite(z.imag))
    return complex(np.tan(complex(x)))


def sinh(x: Any) -> Any:
    """The hyperbolic sine."""
    z = complex(x)
    _refuse(math.isinf(z.imag) and not math.isnan(z.real))
    return _in_range(np.sinh(complex(x)), x)


def cosh(x: Any) -> Any:
    """The hyperbolic cosine."""
    z = complex(x)
    _refuse(math.isinf(z.imag) and not math.isnan(z.real))
    return _in_range(np.cosh(complex(x)), x)


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    z = complex(x)
    _refuse(math.isinf(z.imag) and math.isfinite(z.real))
    return complex(np.tanh(complex(x)))


def asin(x: Any) -> Any:
    """The arc sine."""
    return complex(np.arcsin(complex(x)))


def acos(x: Any) -> Any:
    """The arc cosine."""
    return complex(np.arccos(complex(x)))


def atan(x: Any) -> Any:
    """The arc tangent."""
    z = complex(x)
    if z.real == 0 and abs(z.imag) == 1:
        raise ValueError("math domain error")
    return complex(np.arctan(z))


def asinh(x: Any) -> Any:
    """The inverse hyperbolic sine."""
    return complex(np.arcsinh(complex(x)))


def acosh(x: Any) -> Any:
    """The inverse hyperbolic cosine."""
    return complex(np.arccosh(complex(x)))


def atanh(x: Any) -> Any:
    """The inverse hyperbolic tangent."""
    z = complex(x)
    if abs(z.real) == 1 and z.imag == 0:
        raise ValueError("math domain error")
    return complex(np.arctanh(z))
