"""Functions of scipy.special, in plain Python.

In and out: what the SciPy function of the same name takes and gives for real arguments.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any

__all__ = [
    "beta", "betaln", "binom", "entr", "erfcinv", "erfinv", "exp10", "huber", "i0", "i0e", "i1",
    "i1e", "kl_div", "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp", "ndtr", "ndtri",
    "pseudo_huber", "rel_entr", "softmax", "xlog1py", "xlogy",
]


def _float(x: Array) -> Array:
    """An array (or NumPy number) of floats."""
    a = np.asarray(x)
    return a if a.dtype.kind in "fc" else a.astype(np.float64)


# -- exponentials and logarithms -------------------------------------------------------------------


def exp10(x: Array) -> Array:
    """10 ** x."""
    return np.power(10.0, _float(x))


def logit(x: Array) -> Array:
    """log(x / (1 - x))."""
    p = _float(x)
    return np.log(p) - np.log1p(-p)


def log_expit(x: Array) -> Array:
    """log(1 / (1 + exp(-x)))."""
    return -np.logaddexp(0.0, -_float(x))


def logsumexp(a: Array, axis: Any = None, b: Any = None, keepdims: bool = False) -> Array:
    """log(sum(b exp(a)))."""
    x = _float(a)
    if b is not None:
        weights = np.asarray(b)
        x = np.where(weights == 0, -math.inf, x)
    top = _finite(np.max(x, axis=axis, keepdims=True))
    powers = np.exp(x - top)
    if b is not None:
        powers = powers * weights
    total = np.log(np.sum(powers, axis=axis, keepdims=True)) + top
    if keepdims:
        return total
    return np.squeeze(total, axis=axis)[()] if x.ndim else total


def _finite(top: Array) -> Array:
    return np.where(np.isfinite(top), top, 0.0)


def softmax(x: Array, axis: Any = None) -> Array:
    """exp(x) divided by its sum."""
    a = _float(x)
    powers = np.exp(a - np.max(a, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Array, axis: Any = None) -> Array:
    """The logarithm of `softmax`."""
    a = _float(x)
    shifted = a - _finite(np.max(a, axis=axis, keepdims=True))
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def xlogy(x: Array, y: Array) -> Array:
    """x log(y), 0 where x is 0 and y no NaN."""
    a, b = _float(x), _float(y)
    zero = (a == 0) & ~np.isnan(b)
    return np.where(zero, 0.0, a * np.log(np.where(zero, 1.0, b)))[()]


def xlog1py(x: Array, y: Array) -> Array:
    """x log(1 + y), 0 where x is 0 and y no NaN."""
    a, b = _float(x), _float(y)
    zero = (a == 0) & ~np.isnan(b)
    return np.where(zero, 0.0, a * np.log1p(np.where(zero, 0.0, b)))[()]


# -- entropies and losses --------------------------------------------------------------------------


def entr(x: Array) -> Array:
    """-x log(x), 0 at 0, -inf for negative numbers."""
    a = _float(x)
    inside = a > 0
    value = -a * np.log(np.where(inside, a, 1.0))
    return np.where(np.isnan(a) | inside, value, np.where(a == 0, 0.0, -math.inf))[()]


def rel_entr(x: Array, y: Array) -> Array:
    """x log(x / y), 0 at x = 0, inf outside."""
    a, b = _float(x), _float(y)
    inside = (a > 0) & (b > 0)
    ratio = np.where(inside, a, 1.0) / np.where(inside, b, 1.0)
    found = np.where(inside, a * np.log(ratio), np.where((a == 0) & (b >= 0), 0.0, math.inf))
    return np.where(np.isnan(a) | np.isnan(b), math.nan, found)[()]


def kl_div(x: Array, y: Array) -> Array:
    """x log(x / y) - x + y."""
    return rel_entr(x, y) - _float(x) + _float(y)


def huber(delta: Array, r: Array) -> Array:
    """r**2 / 2 near 0, delta (|r| - delta / 2) outside, inf for a negative delta."""
    d, size = _float(delta), np.abs(_float(r))
    found = np.where(size <= d, 0.5 * size * size, d * (size - 0.5 * d))
    return np.where(d < 0, math.inf, found)[()]


def pseudo_huber(delta: Array, r: Array) -> Array:
    """delta**2 (sqrt(1 + (r / delta)**2) - 1)."""
    d, u = _float(delta), _float(r)
    safe = np.where(d == 0, 1.0, d)
    scaled = u / safe
    found = d * d * scaled * scaled / (1.0 + np.hypot(1.0, scaled))
    return np.where(d < 0, math.inf, np.where(d == 0, 0.0, found))[()]


# -- the beta function -----------------------------------------------------------------------------


def betaln(a: Array, b: Array) -> Array:
    """The logarithm of |beta(a, b)|."""
    x, y = _float(a), _float(b)
    return lgamma(x) + lgamma(y) - lgamma(x + y)


def beta(a: Array, b: Array) -> Array:
    """gamma(a) gamma(b) / gamma(a + b)."""
    x, y = _float(a), _float(b)
    small = np.abs(x) + np.abs(y) < 100.0
    near_x, near_y = np.where(small, x, 1.0), np.where(small, y, 1.0)
    near = gamma(near_x) / gamma(near_x + near_y) * gamma(near_y)
    return np.where(small, near, np.exp(betaln(x, y)))[()]


def binom(n: Array, k: Array) -> Array:
    """n choose k: of whole k below 20 a product, else by the beta function (as SciPy's)."""
    x, y = _float(n), _float(k)
    whole = np.floor(x) == x
    steps = np.where(whole & (2.0 * y > x) & (x > 0.0), x - y, y)
    few = (np.floor(y) == y) & (steps >= 0.0) & (steps < 20.0)
    product = np.ones(np.shape(x + y), dtype=(x + y).dtype)
    for i in range(1, 20):
        product = np.where(i <= steps, product * (x - steps + i) / i, product)
    left, above = 1.0 + x - y, np.where(few, 1.0, 1.0 + y)
    none = ~few & (left <= 0.0) & (np.floor(left) == left)  # a pole of the beta function
    left = np.where(few | none, 1.0, left)
    found = np.where(few, product, 1.0 / (np.where(few, 1.0, x + 1.0) * beta(left, above)))
    return np.where(whole & (x < 0.0), np.nan, np.where(none, 0.0, found))[()]


# -- the normal distribution -----------------------------------------------------------------------


def ndtr(x: Array) -> Array:
    """The normal distribution function."""
    return 0.5 * erfc(_float(x) * -math.sqrt(0.5))


def log_ndtr(x: Array) -> Array:
    """The logarithm of `ndtr`; far out by Laplace's asymptotic series."""
    a = _float(x)
    far = a < -20.0
    right = a > -1.0
    middle = np.where(far | right, -1.0, a)
    inverse = 1.0 / np.square(np.where(far, a, -20.0))
    series = 1.0 + 0.0 * inverse
    for k in (13, 11, 9, 7, 5, 3, 1):
        series = 1.0 - k * inverse * series
    tail = -0.5 * a * a - np.log(np.where(far, -a, 20.0)) - 0.5 * math.log(2.0 * math.pi)
    return np.where(
        far, tail + np.log(series),
        np.where(right, np.log1p(-0.5 * erfc(np.where(right, a, 0.0) * math.sqrt(0.5))),
                 np.log(0.5 * erfc(middle * -math.sqrt(0.5)))),
    )[()]


#: Giles, "Approximating the erfinv function" (2010), table 1: near 0 and in the tails
_NEAR = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)


def _guess(x: Array, product: Array) -> Array:
    """erf's inverse to single precision; `product` is (1 - x)(1 + x)."""
    w = -np.log(product)
    near, far = np.minimum(w, 5.0) - 2.5, np.sqrt(np.maximum(w, 5.0)) - 3.0
    p, q = 0.0 * near, 0.0 * far
    for c in _NEAR:
        p = p * near + c
    for c in _TAIL:
        q = q * far + c
    return np.where(w < 5.0, p, q) * x


def _improved(y: Array, error: Array) -> Array:
    """Halley's step for erf(y) = value, where the error is erf(y) - value."""
    step = error * (0.5 * math.sqrt(math.pi)) * np.exp(y * y)
    return y - step / (1.0 + y * step)


def erfinv(x: Array) -> Array:
    """The inverse of the error function."""
    a = _float(x)
    inside = np.abs(a) < 1
    safe = np.where(inside, a, 0.0)
    size = np.abs(safe)
    y = _guess(size, (1.0 - size) * (1.0 + size))
    for _ in range(3):
        error = np.where(size < 0.5, erf(y) - size, (1.0 - size) - erfc(y))
        y = _improved(y, error)
    edge = np.where(np.abs(a) == 1, a * math.inf, math.nan)
    return np.where(inside, np.where(a < 0, -y, y), edge)[()]


def erfcinv(x: Array) -> Array:
    """The inverse of the complementary error function."""
    a = _float(x)
    inside = (a > 0) & (a < 2)
    safe = np.where(inside, a, 1.0)
    small = np.where(safe > 1, 2.0 - safe, safe)
    y = _guess(1.0 - small, small * (2.0 - small))
    for _ in range(4):
        y = _improved(y, small - erfc(y))
    edge = np.where(a == 0, math.inf, np.where(a == 2, -math.inf, math.nan))
    return np.where(inside, np.where(safe > 1, -y, y), edge)[()]


def ndtri(y: Array) -> Array:
    """The inverse of `ndtr`."""
    return erfcinv(2.0 * _float(y)) * -math.sqrt(2.0)


# -- modified Bessel functions ---------------------------------------------------------------------


def _bessel(order: int, x: Array) -> Array:
    """exp(-|x|) I(order, x): by its power series, far out by Hankel's asymptotic one (Abramowitz
    and Stegun, 9.6.10 and 9.7.1)."""
    size = np.abs(x)
    far = size > 25.0
    near = np.where(far, 1.0, size)
    quarter = 0.25 * near * near
    term = np.ones(np.shape(x), dtype=x.dtype) if order == 0 else 0.5 * near
    total = term
    for k in range(1, 60):
        term = term * quarter / (k * (k + order))
        total = total + term
    large = np.where(far, size, 25.0)
    part = np.ones(np.shape(x), dtype=x.dtype)
    series = part
    for k in range(1, 25):
        part = part * ((2 * k - 1) ** 2 - 4.0 * order * order) / (8.0 * k * large)
        series = series + part
    found = np.where(far, series / np.sqrt(2.0 * math.pi * large), total * np.exp(-near))
    return (np.where(x < 0, -found, found) if order == 1 else found)[()]


def i0e(x: Array) -> Array:
    """exp(-|x|) i0(x)."""
    return _bessel(0, _float(x))


def i1e(x: Array) -> Array:
    """exp(-|x|) i1(x)."""
    return _bessel(1, _float(x))


def i0(x: Array) -> Array:
    """The modified Bessel function of order 0."""
    a = _float(x)
    if a.dtype.kind == "c":
        raise TypeError("i0 not supported for complex values")
    return _bessel(0, a) * np.exp(np.abs(a))


def i1(x: Array) -> Array:
    """The modified Bessel function of order 1."""
    a = _float(x)
    return _bessel(1, a) * np.exp(np.abs(a))


# -- C's functions, for the ones above -------------------------------------------------------------


def erf(x: Array) -> Array:
    return _of_each(math.erf, x)


def erfc(x: Array) -> Array:
    return _of_each(math.erfc, x)


def gamma(x: Array) -> Array:
    return _of_each(math.gamma, x)


def lgamma(x: Array) -> Array:
    return _of_each(math.lgamma, x)


def _of_each(function: Any, x: Array) -> Array:
    """A function of `math` on each element (compiled: the op of that name on the whole array)."""
    array = np.asarray(x)
    flat = [function(v) for v in array.ravel().tolist()]
    return np.array(flat, dtype=array.dtype).reshape(array.shape)[()]
