"""NumPy's polynomials, in plain Python: `np.poly1d`, and series of numpy.polynomial.

In and out: what the function of the same name takes and gives, for coefficients in one axis. A
series is summed by Clenshaw's recurrence, "A note on the summation of Chebyshev series" (1955).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.infer.in_python import products, refuse

Array = Any

__all__ = ["chebval", "hermeval", "hermval", "lagval", "legval"]


class Poly1d:
    """np.poly1d: its coefficients, those of the highest powers first."""

    def __init__(self, c_or_r: Any, r: bool = False, variable: Any = None) -> None:
        values = c_or_r.given if hasattr(c_or_r, "given") else c_or_r
        #: with the zeros in front that `coeffs` is without
        self.given = products.poly(values) if r else np.atleast_1d(values)
        self.variable = "x" if variable is None else variable

    @property
    def coeffs(self) -> Array:
        """The coefficients; the first is not 0, unless it is the only one."""
        found = np.trim_zeros(self.given, "f")
        return np.zeros(1, dtype=found.dtype) if len(found) == 0 else found

    c = coef = coefficients = coeffs

    @property
    def order(self) -> int:
        """The highest power."""
        return len(self.coeffs) - 1

    o = order

    @property
    def roots(self) -> Array:
        """The zeros."""
        return np.roots(self.given)

    r = roots

    def __call__(self, val: Any) -> Any:
        """The value at a number or an array, or the composition with a polynomial."""
        if not hasattr(val, "given"):
            return np.polyval(self.given, val)
        found = Poly1d([0.0])
        for k in range(len(self.given)):
            found = found * val + self.given[k]
        return found

    def __len__(self) -> int:
        return self.order

    def __iter__(self) -> Any:
        return iter(self.coeffs)

    def __getitem__(self, key: int) -> Any:
        """The coefficient of a power."""
        at = len(self.given) - 1 - key
        inside = (at >= 0) & (key >= 0)
        return np.where(inside, self.given[at if inside else 0], 0)[()]

    def __neg__(self) -> Poly1d:
        return Poly1d(-self.given)

    def __pos__(self) -> Poly1d:
        return self

    def __add__(self, other: Any) -> Poly1d:
        return Poly1d(np.polyadd(self.given, Poly1d(other).given))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Poly1d:
        return Poly1d(np.polysub(self.given, Poly1d(other).given))

    def __rsub__(self, other: Any) -> Poly1d:
        return Poly1d(np.polysub(Poly1d(other).given, self.given))

    def __mul__(self, other: Any) -> Poly1d:
        if np.isscalar(other):
            return Poly1d(self.given * other)
        return Poly1d(products.convolve(self.given, Poly1d(other).given))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if np.isscalar(other):
            return Poly1d(self.given / other)
        quotient, rest = np.polydiv(self.given, Poly1d(other).given)
        return Poly1d(quotient), Poly1d(rest)

    def __pow__(self, val: int) -> Poly1d:
        if val < 0:
            raise ValueError("Power to non-negative integers only.")
        found = Poly1d([1])
        for _ in range(val):
            found = found * self
        return found

    def deriv(self, m: int = 1) -> Poly1d:
        """The m-th derivative."""
        return Poly1d(np.polyder(self.given, m))

    def integ(self, m: int = 1, k: Any = 0) -> Poly1d:
        """The m-th antiderivative."""
        return Poly1d(np.polyint(self.given, m, k))


# -- series ----------------------------------------------------------------------------------------


def chebval(x: Array, c: Array, tensor: bool = True) -> Array:
    """A series of Chebyshev polynomials of the first kind."""
    a = _coefficients(c)
    first, second = _start(x, a)
    for k in range(len(a) - 3, -1, -1):
        first, second = a[k] - second, first + 2 * x * second
    return first + second * x if len(a) > 1 else first


def legval(x: Array, c: Array, tensor: bool = True) -> Array:
    """A series of Legendre polynomials."""
    a = _coefficients(c)
    first, second = _start(x, a)
    for k in range(len(a) - 3, -1, -1):
        n = k + 2
        first, second = a[k] - second * ((n - 1) / n), first + second * x * ((2 * n - 1) / n)
    return first + second * x if len(a) > 1 else first


def hermval(x: Array, c: Array, tensor: bool = True) -> Array:
    """A series of the Hermite polynomials of physics."""
    a = _coefficients(c)
    first, second = _start(x, a)
    for k in range(len(a) - 3, -1, -1):
        first, second = a[k] - second * (2 * (k + 1)), first + second * (2 * x)
    return first + second * (2 * x) if len(a) > 1 else first


def hermeval(x: Array, c: Array, tensor: bool = True) -> Array:
    """A series of the Hermite polynomials of probability."""
    a = _coefficients(c)
    first, second = _start(x, a)
    for k in range(len(a) - 3, -1, -1):
        first, second = a[k] - second * (k + 1), first + second * x
    return first + second * x if len(a) > 1 else first


def lagval(x: Array, c: Array, tensor: bool = True) -> Array:
    """A series of Laguerre polynomials."""
    a = _coefficients(c)
    first, second = _start(x, a)
    for k in range(len(a) - 3, -1, -1):
        n = k + 2
        first, second = a[k] - second * ((n - 1) / n), first + second * ((2 * n - 1 - x) / n)
    return first + second * (1 - x) if len(a) > 1 else first


def _coefficients(c: Array) -> Array:
    a = np.atleast_1d(c)
    if a.ndim > 1:
        refuse("coefficients of more than one axis are not compiled")
    return a if a.dtype.kind in "fc" else a.astype(np.float64)


def _start(x: Array, a: Array) -> Any:
    """The last two coefficients, of the shape of x."""
    still = np.asarray(x) * 0.0
    if len(a) == 1:
        return a[0] + still, still
    return a[-2] + still, a[-1] + still
