"""Root finding and quadrature, as written in first courses of numerical analysis."""

from __future__ import annotations

import math

import numpy as np

from tests.users.corpus import use


def cubic(x):
    return x**3 - 2 * x - 5


def cubic_slope(x):
    return 3 * x**2 - 2


@use((2.0, 3.0, 1e-10), (2.0, 2.0945514815423265, 1e-3), long=True)
def bisection(a, b, tol):
    fa = cubic(a)
    if fa * cubic(b) > 0:
        raise ValueError("the interval must bracket a root")
    iterations = 0
    while (b - a) / 2 > tol:
        c = (a + b) / 2
        fc = cubic(c)
        if fc == 0:
            return c, iterations
        if fa * fc < 0:
            b = c
        else:
            a, fa = c, fc
        iterations += 1
    return (a + b) / 2, iterations


@use((0.0, 1.0), long=True)
def bisection_without_bracket(a, b):
    return bisection(a, b, 1e-6)[0]


@use((2.0, 3.0), wrt=(0, 1), slow=True)
def secant(x0, x1, tol=1e-12, max_iter=50):
    for _ in range(max_iter):
        f0, f1 = cubic(x0), cubic(x1)
        if abs(f1 - f0) < 1e-15:
            break
        x0, x1 = x1, x1 - f1 * (x1 - x0) / (f1 - f0)
        if abs(x1 - x0) < tol:
            return x1
    return x1


def newton(f, df, x, tol=1e-10, maxiter=100):
    for i in range(maxiter):
        step = f(x) / df(x)
        x -= step
        if abs(step) < tol:
            break
    else:
        raise RuntimeError(f"no convergence after {maxiter} iterations")
    return x, i


@use((2.5,), (-1.0,))
def newton_with_functions(x):
    root, count = newton(cubic, cubic_slope, x)
    return root, count


@use((0.0,))
def newton_that_fails(x):
    return newton(lambda t: t * t + 1.0, lambda t: 2.0 * t, x + 0.3, maxiter=20)


@use((3.0, 0.5), wrt=(0, 1), slow=True)
def implicit_equation(a, b):
    """x such that x = a - b sin x, by a fixed point."""
    x = a
    while True:
        new = a - b * math.sin(x)
        if abs(new - x) < 1e-13:
            return new
        x = new


@use((0.0, 1.0), (1.0, 2.0), joins=True, long=True)
def brent_like(a, b):
    """Secant steps, kept inside the bracket by bisection."""

    def f(x):
        return np.cos(x) - x if a < 0.5 else x * x - 2.0

    fa, fb = f(a), f(b)
    if abs(fa) < abs(fb):
        a, b, fa, fb = b, a, fb, fa
    c, fc = a, fa
    mflag = True
    for _ in range(60):
        if fb == 0 or abs(b - a) < 1e-12:
            break
        s = b - fb * (b - a) / (fb - fa) if fa != fb else (a + b) / 2
        low, high = (3 * a + b) / 4, b
        outside = not (min(low, high) < s < max(low, high))
        if outside or (mflag and abs(s - b) >= abs(b - c) / 2):
            s = (a + b) / 2
            mflag = True
        else:
            mflag = False
        fs = f(s)
        c, fc = b, fb
        if fa * fs < 0:
            b, fb = s, fs
        else:
            a, fa = s, fs
        if abs(fa) < abs(fb):
            a, b, fa, fb = b, a, fb, fa
    return b


@use((2.0,), (np.float64(9.0),), wrt=(0,), slow=True)
def heron(s):
    if s < 0:
        raise ValueError(f"{s} has no real root")
    x = s
    while abs(x * x - s) > 1e-12 * s:
        x = 0.5 * (x + s / x)
    return x


@use((np.array([1.0, 1.0]),), wrt=(0,), slow=True)
def newton_system(x):
    """Two equations, the Jacobian by hand, solved by Cramer's rule."""
    for _ in range(8):
        f = np.array([x[0] ** 2 + x[1] ** 2 - 4.0, np.exp(x[0]) + x[1] - 1.0])
        J = np.array([[2 * x[0], 2 * x[1]], [np.exp(x[0]), 1.0]])
        det = J[0, 0] * J[1, 1] - J[0, 1] * J[1, 0]
        dx = np.array([f[0] * J[1, 1] - f[1] * J[0, 1], J[0, 0] * f[1] - J[1, 0] * f[0]]) / det
        x = x - dx
        if np.max(np.abs(dx)) < 1e-12:
            break
    return x


def simpson(f, a, b, n=10):
    if n % 2 == 1:
        raise ValueError(f"n must be even, not {n}")
    h = (b - a) / n
    total = f(a) + f(b)
    for i in range(1, n):
        total += (4 if i % 2 == 1 else 2) * f(a + i * h)
    return total * h / 3


@use((0.0, 2.0), wrt=(0, 1), slow=True)
def simpson_of_gauss(a, b):
    return simpson(lambda x: math.exp(-x * x), a, b, n=20)


@use((0.0, 1.0, 7))
def simpson_of_odd(a, b, n):
    return simpson(math.sin, a, b, n)


@use((0.0, 3.0, 1e-7), wrt=(0, 1), long=True)
def adaptive_simpson(a, b, eps):
    def f(x):
        return np.sin(x * x) / (1 + x)

    def rule(fa, fm, fb, h):
        return h / 6 * (fa + 4 * fm + fb)

    def recurse(a, b, fa, fm, fb, whole, eps, depth):
        m = (a + b) / 2
        fl, fr = f((a + m) / 2), f((m + b) / 2)
        left, right = rule(fa, fl, fm, m - a), rule(fm, fr, fb, b - m)
        delta = left + right - whole
        if depth <= 0 or abs(delta) <= 15 * eps:
            return left + right + delta / 15
        return recurse(a, m, fa, fl, fm, left, eps / 2, depth - 1) + recurse(
            m, b, fm, fr, fb, right, eps / 2, depth - 1
        )

    fa, fm, fb = f(a), f((a + b) / 2), f(b)
    return recurse(a, b, fa, fm, fb, rule(fa, fm, fb, b - a), eps, 20)


@use((0.0, 1.0, 5), (0.5, 2.0, 4), wrt=(0, 1), long=True)
def romberg(a, b, levels):
    R = np.zeros((levels, levels))
    h = b - a
    R[0, 0] = h / 2 * (1 / (1 + a * a) + 1 / (1 + b * b))
    for i in range(1, levels):
        h /= 2
        s = 0.0
        for k in range(1, 2 ** (i - 1) + 1):
            x = a + (2 * k - 1) * h
            s += 1 / (1 + x * x)
        R[i, 0] = R[i - 1, 0] / 2 + h * s
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R[levels - 1, levels - 1]


NODES = np.array([-0.7745966692414834, 0.0, 0.7745966692414834])
WEIGHTS = [5 / 9, 8 / 9, 5 / 9]


@use((0.0, math.pi), wrt=(0, 1), slow=True)
def gauss_legendre(a, b):
    mid, half = 0.5 * (a + b), 0.5 * (b - a)
    return half * sum(w * math.sin(mid + half * x) for x, w in zip(NODES, WEIGHTS))


@use((np.linspace(0.0, 1.0, 9), np.linspace(0.0, 1.0, 9) ** 2), wrt=(1,), long=True)
def trapezoid(x, y):
    return np.sum((x[1:] - x[:-1]) * (y[1:] + y[:-1])) / 2, np.sum(np.diff(x) * y[1:])


@use((1.0, 0.1), wrt=(0,), slow=True)
def golden_section(center, width):
    invphi = (math.sqrt(5) - 1) / 2
    a, b = center - 2.0, center + 3.0
    c, d = b - invphi * (b - a), a + invphi * (b - a)
    while b - a > width:
        if (c - 1.3) ** 2 < (d - 1.3) ** 2:
            b = d
        else:
            a = c
        c, d = b - invphi * (b - a), a + invphi * (b - a)
    return (a + b) / 2


@use((0.7, 30), wrt=(0,), slow=True)
def continued_fraction(x, depth):
    value = 0.0
    for k in reversed(range(1, depth + 1)):
        value = k * x / (1.0 + value)
    return 1 / (1 + value)


@use((1.3,), wrt=(0,), slow=True)
def taylor_series_until_small(x):
    term = total = 1.0
    n = 0
    while abs(term) > 1e-16 * abs(total):
        n += 1
        term *= x / n
        total += term
    return total
