"""Library calls at their edges: types of numbers, keywords, empty arrays, NaNs, Python's modules.

In: expressions over the arrays of `VALUES`. Each is compared with plain Python by the reference
interpreter; those of `REFUSED` are an error that says what is not compiled.
"""

from __future__ import annotations

import copy
import functools
import itertools
import linecache
import math
import operator
import random
import re
import statistics
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.errors import PyrelayError
from tests.infer.running import assert_same_outcome, interpreted, plainly
from tests.users.differences import difference, leaves, slope

_RANDOM = np.random.RandomState(0)
VALUES: dict[str, Any] = {
    "x": np.array([0.3, 2.1, 1.2, 0.7, 3.4]), "y": np.array([-0.5, 1.5, 0.25, -2.0, 0.8]),
    "v": np.array([1.0, -2.0, 0.5, 3.0]), "A": _RANDOM.randn(3, 4), "Q": _RANDOM.randn(3, 3),
    "i": np.array([1, 3, 0, 2, 1, 3]), "K": np.array([[3, 1, 2], [0, 5, 1]]),
    "b": np.array([True, False, True]), "f": np.array([0.3, 2.1, 1.2], np.float32),
    "i8": np.array([1, -3, 127, -128, 0], np.int8), "u8": np.array([0, 1, 255], np.uint8),
    "z": np.array([1 + 2j, -0.5 + 0.3j, 0.2 - 1.5j]), "zero": np.array(1.5),
    "X": np.array([np.nan, 1.0, -2.0, 4.0]), "E": np.array([np.inf, 1.0, -np.inf, np.nan]),
    "e": np.zeros(0), "L": [3.0, 1.0, 2.0], "N": [3, 1, 2, 1], "D": {"a": 1.0, "b": 2.0},
    "s": 0.7, "t": 2.5, "n": 5, "g": np.float64(1.25), "h": np.float32(1.25), "o": np.zeros(4),
}

EXPRESSIONS = """
np.heaviside(i8, 0)
np.round(b)
np.gcd(i8, 3), np.lcm(u8, 2), np.gcd(K, 6)
np.fmod(i8, 3), np.fmod(f, n), np.fmod(h, 2.0), np.fmod(x, y)
np.heaviside(f, 0.5), np.heaviside(h, 2.0)
np.logaddexp2(f, n), np.deg2rad(f), np.frexp(f), np.modf(h)
np.bitwise_count(i8), np.bitwise_count(u8)
np.vecdot(b, b)
b ** 1, b ** 2, i8 ** 2
np.max(A, 0, o); o
np.any(A > 1, 0, keepdims=True), np.all(A > 1, axis=1)
np.sum(zero), np.max(zero), zero.prod(), np.sum(s, axis=0)
np.mean(A, dtype=int)
min(X), max(X), min(X[1:]), max(E)
min(e)
max(e, default=s)
round(n, -1), round(n + 10, -1), round(n, 2), round(1.115 * (n - 4), 2), round(s, 0)
round(g, 1), round(1234.5 * s, -2)
round(n, 10**9), round(-n, -25), round(10**18 * n, -19), round(n > 3, -30), round(7, 10**9)
round(s, 10**9), round(-s, -400), round(s * 1e-310, 312), round(E[0], -400)
np.round(x, 400), np.round(g, -400)
math.pow(-s, n), math.pow(s, t)
math.pow(-s, t)
math.pow(0, -n)
len(zip(L, L))
L *= 2; L
M = L; M *= n; (L, M)
D |= {"z": s}; D
copy.copy(L), copy.deepcopy([L, N]), copy.copy(D), copy.deepcopy(x), copy.copy(s)
M = copy.copy([x]); M[0][0] = 9.0; (x, M)
M = copy.deepcopy([x, x]); M[0][0] = 9.0; (x, M)
statistics.mean(L), statistics.mean([s, t]), statistics.mean(x), statistics.mean(f)
statistics.mean(v * 2 for v in L), statistics.fmean(N), statistics.fmean(L, [1, 2, 3])
statistics.stdev(L), statistics.pstdev(N), statistics.variance(N), statistics.pvariance(L, 2.0)
statistics.geometric_mean(L), statistics.harmonic_mean(L), statistics.median(N)
statistics.correlation(L, [1.0, 2.0, 5.0]), statistics.covariance(L, [1.0, 2.0, 5.0])
statistics.linear_regression(L, [1.0, 2.0, 5.0]).slope
statistics.mean([])
statistics.stdev([s])
np.linspace(f[0], f[1], 3), np.linspace(0, 1j, 3)
L.index(3.0, -3), N.index(1, 2, 9)
L.index(3.0, 1)
x.__class__ is np.ndarray, n.__class__, n.numerator, n.denominator, True.real
g.is_integer(), np.int64(n).bit_count(), h.is_integer()
x.argpartition(2)[2]
sorted(L, key=functools.cmp_to_key(lambda a, b: b - a))
N.sort(key=functools.cmp_to_key(lambda a, b: a % 2 - b % 2), reverse=True); N
p, q = itertools.tee(L); list(p) + list(q)
operator.index(n), operator.countOf(N, 1), operator.indexOf(N, 2), operator.invert(n)
operator.delitem(L, 0); L
np.bitwise_or.reduce(i), np.bitwise_xor.reduce(K, axis=1), np.logical_xor.reduce(b)
np.subtract.reduce(x), np.hypot.reduce(x), np.gcd.reduce([12, 18])
np.logaddexp.reduce(A, axis=1, keepdims=True), np.subtract.reduce(x, initial=1.0)
np.unwrap(x * 3), np.unwrap(A * 4, axis=0), np.unwrap(f * 5), np.unwrap(x * 3, discont=4)
np.unwrap(x * 300, period=360), np.unwrap(i, period=4), np.unwrap(K, period=3)
np.nansum(X, where=X > 0), np.nanmax(X, initial=9.0), np.nanvar(X, correction=1), np.nanvar(E)
np.nanquantile(X, 0.3, method='lower'), np.nanpercentile(X, [20, 50], method='hazen')
np.nanquantile(f, [0.3]), np.nanquantile(f, 0.3)
np.nanmin(np.where(X > 0, X, np.inf)), np.nanmax(np.array([np.nan, -np.inf])), np.nanmax(A, 1)
np.diff(A, 2, axis=-2), np.diff(x > 0.5, axis=0), (x + 2) ** -1, (f + 2) ** -1.0, (2 + A) ** -1
np.ptp(A, axis=0, out=o); o
np.median(A, axis=0, out=o); o
np.common_type(x, f), np.common_type(f), np.common_type(z, f), np.common_type(i)
np.testing.assert_allclose(x, x + 1e-9, rtol=1e-6); np.testing.assert_array_less(x, x + 1); x
np.testing.assert_equal([n, [s]], [5, [0.7]]); np.testing.assert_almost_equal(x, x); x
np.poly1d([1, 2, 3])(s), np.poly1d(v)(x), np.poly1d([1.0, s], True)(t), np.poly1d(v)
p = np.poly1d(v); p.deriv()(s), p.integ(2, 1.5)(x), p.coeffs, p.order, p[2], p[9], p(p)(s)
p = np.poly1d(v); (p * p)(s), (1 - p)(s), (2 * p)(x), (p / 2)(s), (p ** 3)(s), (p - [1, 2])(s)
np.poly1d([0, 0, 1.0, s]).c, np.polyval(np.poly1d(v), s), np.poly1d(v).roots
np.polynomial.Polynomial(v)(x), np.polynomial.Polynomial(v).deriv()(s)
np.polynomial.chebyshev.chebval(x, v), np.polynomial.legendre.legval(s, v)
np.polynomial.hermite.hermval(x, v), np.polynomial.hermite_e.hermeval(x, v)
np.polynomial.laguerre.lagval(x, v), np.polynomial.polynomial.polyint(v)
random.seed(0); random.sample(L, 2), random.sample(range(n * 20), 3), random.random()
random.seed(n); random.shuffle(N); (N, random.random())
p = random.Random(3); q = [v for v in x if v > 0.5]; p.shuffle(q); (q, p.sample([5, 6, 7, 8], 3))
r = np.random.default_rng(n); q = [(k, s) for k in range(n) if k]; r.shuffle(q); (q, r.random())
r = np.random.RandomState(n); r.shuffle(N); (N, r.rand())
random.seed(0); random.sample(L, 9)
p = random.Random(n); (p.choices(L, k=3), p.choices(x, [k + s for k in range(len(x))], k=2))
p = random.Random(n); p.choices(range(3), cum_weights=[1, n, n + 2.5], k=n)
random.Random(n).choices(L, [s], k=2)
np.linalg.matrix_rank(Q, tol=1e-3)
np.tensordot(A, np.ones((4, 3)))
np.array(s), np.asarray(n), np.zeros(()), np.full((), s), np.ones_like(s), x[:1].squeeze()
np.where(s > 0, s, t), np.where(s > 0, s, t) + 1, np.where(x > 1, 1, 0)
p = np.array(s); q = p; q += 1; (p, float(q), [p, q], p.shape, p.item())
p = np.zeros(()); p[...] = s; p[()] += n; p
L[np.array(n - 4)], x[: np.where(s > 0, 1, 2)], [k for k in range(np.array(3))], np.eye(np.array(2))
isinstance(np.where(s > 0, 1.0, 2.0), np.ndarray), max(np.array(s), 0.5), "a" * np.array(2)
p = A.flat[:]; p[0] = 9.0; A.flat[2] += 1.0; A.flat[::5] = 0.0; (A, p)
A.flat = [1.0, 2.0]; A
p = np.einsum('ii->i', Q); p[:] = 9.0; Q
p = np.einsum('ij->ji', A); p[0, 1] = 9.0; A
np.argmax(s), np.argmin(zero, axis=0), np.nanargmax(zero), zero.argmax(keepdims=True)
np.logaddexp.reduce(e), np.logaddexp.reduce(A, axis=None), np.logaddexp.reduce(i8[:1])
np.fmax.reduce(A, axis=None), np.fmin.reduce(A, (0, 1)), np.logaddexp.reduce(b, initial=2)
np.divide.reduce(i8[:1]), np.hypot.reduce(b), np.logical_xor.reduce(A, axis=None, keepdims=True)
np.logaddexp.reduce(A.T, out=o[:3]); o
np.logical_and.reduce(A, dtype=float)
np.multiply.at(i8, [1, 2, 2], 2); np.power.at(i8, [0], 3); np.negative.at(i8, [1, 3]); i8
np.logaddexp2(f.astype(np.float16), np.float16(-1.0)), np.logaddexp2(i8, i8[::-1])
np.nextafter(E.astype(np.float16), np.float16(1.0)), np.spacing(i8), np.nextafter(b, ~b)
np.ascontiguousarray(s), np.ascontiguousarray(zero), zero.astype(np.float32), zero.astype(float)
np.fill_diagonal(A.T, [1.0, 2.0], wrap=True); np.fill_diagonal(Q, [8.0, 9.0]); (A, Q)
p = np.zeros(4, int); np.nanargmax(A, axis=0, out=p); p
np.concatenate([x, x], dtype='i1', casting='unsafe'), np.hstack([f, x], dtype='f4')
np.concatenate([x, y[:0]], out=y), np.stack([x, y], 1, np.zeros((5, 2)), casting='no')
np.concatenate([x, x], dtype='i1')
np.stack([x, x], dtype=bool)
np.max(z, initial=2), np.min(z, axis=0, initial=-2.5), np.max(z[:0], initial=1j)
np.isposinf(z)
np.isneginf(z)
np.i0(z)
np.inner(zero, A), np.inner(A, zero), np.inner(2.0, A), np.inner(A, A)
x[[]], A[:, []], A[[], [0]]
x[[]] = n; x
np.pad(i8, 2, 'median'), np.pad(A, 1, 'mean', stat_length=2), np.pad(x, 3, 'minimum')
np.pad(x, 2, 'maximum', stat_length=((1, 3),)), np.pad(A, 1, 'median', stat_length=(1, 2))
np.interp(E[:2], [0.0, 1.0], [2.0, 3.0]), np.interp(0.5, E[1:2], y[:1])
np.interp(x, [0.5, 1.0, 2.0], [1, 2, 4], -1.0, 9.0), np.interp(A, x[:2], z[:2], period=1.5)
np.concatenate([x, y], out=x)
np.linspace(f[0].astype(np.float16), 1, 3), np.linspace(f[:2], 2, 3, axis=1), np.linspace(h, n, 3)
x == None, None != A, zero == None
np.copyto(u8, 1, where=u8 > 0); np.copyto(i8, True); np.copyto(f, 2.5); (u8, i8, f)
np.copyto(i8, 2.5)
np.percentile(e, 50)
np.quantile(i[:0], 0.5)
np.where(i8 > 0, i8, 300), np.where(b, n * 100, u8), np.where(b, f, n), np.where(n > 1, s, n)
r = np.random.default_rng(n); r.noncentral_chisquare(3, [s, t]), r.noncentral_f(3, n, 1), r.random()
r = np.random.RandomState(n); r.noncentral_chisquare(df=3.0, nonc=s, size=2), r.rand()
np.unwrap(i8, period=4), np.unwrap(f, period=3.5)
np.sort(x, kind='bubble')
np.sort(x, kind='heapsort'), np.argsort(x, kind='quick'), np.unique(i, sorted=True)
np.sort(np.unique_values(i)), np.unique(i, sorted=False).size
np.eye(2, 3, order='F'), A.item((1, 2)), A.item(5), A.item(1, 2)
np.percentile(A, 50, 0, None, False, 'lower'), np.nanpercentile(X, 30, 0, o[:1][0], False)
np.quantile(A, [0.2, 0.5], axis=1, out=A[:2, :3]); np.nanquantile(A, 0.3, 0, o); (A, o)
p, q = np.polynomial.legendre.leggauss(5); np.sum(q * np.exp(s * p))
"""

#: an AssertionError of NumPy's says in a table where the arrays differ; ours does not
FAILING = """
np.testing.assert_allclose(x, y)
np.testing.assert_array_equal(x, y)
np.testing.assert_equal(n, 6)
np.testing.assert_almost_equal(s, t)
"""

REFUSED = """
np.gcd(x, 2)
np.deg2rad(z)
np.argmax(A, axis=(0, 1))
np.cumsum(A, axis=(0, 1))
np.max(A, dtype=float)
round(x, 1)
np.std(A, dtype=int)
frozenset(N)
"""

#: each is a construction whose derivative is not that of another
DIFFERENTIATED = """
np.fmod(x, y)
min(x) * max(x)
round(t, 1) * t
math.pow(s, t)
statistics.mean(L) * statistics.stdev(L)
statistics.geometric_mean(L) + statistics.harmonic_mean(L)
statistics.correlation(L, [s, t, 5.0]) + statistics.linear_regression(L, [s, t, 5.0]).intercept
copy.deepcopy([x, y])[1] * x
np.where(s > 0, s * t, t) * np.array(s)
p = np.zeros(()); p[...] = s; p += s * t; p
p = np.einsum('ii->i', Q); p *= p; Q
np.unwrap(x * 3)
np.poly1d(v)(x) * np.poly1d(v).deriv()(s)
np.polynomial.chebyshev.chebval(x, v) + np.polynomial.legendre.legval(x, v)
np.logaddexp.reduce(A, axis=1)
sorted(L, key=functools.cmp_to_key(lambda a, b: -1 if a > b else 1))[0] * s
"""

_SCOPE: dict[str, Any] = {
    "np": np, "math": math, "statistics": statistics, "copy": copy, "itertools": itertools,
    "functools": functools, "operator": operator, "random": random,
}


def lines(table: str) -> list[str]:
    """The expressions of a table."""
    return table.strip().splitlines()


def made(expression: str) -> tuple[Any, tuple[Any, ...]]:
    """A function of the values that the expression names; `;` separates statements."""
    names = [k for k in VALUES if re.search(rf"(?<![\w.]){k}(?!\w|=\w)", expression)]
    *statements, last = expression.split("; ")
    parts = [f"def program({', '.join(names)}):", *(f"    {s}" for s in statements)]
    text = "\n".join([*parts, f"    return {last}\n"])
    filename = f"<library {expression}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope = dict(_SCOPE)
    exec(compile(text, filename, "exec"), scope)
    return scope["program"], tuple(copy.deepcopy(VALUES[k]) for k in names)


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_a_call_does_what_plain_python_does(expression: str) -> None:
    function, args = made(expression)
    assert_same_outcome(interpreted(function, args), plainly(function, args))


@pytest.mark.parametrize("expression", lines(FAILING))
def test_an_assertion_fails_as_in_numpy(expression: str) -> None:
    function, args = made(expression)
    got, wanted = interpreted(function, args).error, plainly(function, args).error
    assert type(got) is type(wanted) is AssertionError
    assert str(got).strip().splitlines()[0] in str(wanted)


@pytest.mark.parametrize("expression", lines(REFUSED))
def test_a_call_is_refused(expression: str) -> None:
    function, args = made(expression)
    assert isinstance(interpreted(function, args).error, PyrelayError)


@pytest.mark.parametrize("expression", lines(DIFFERENTIATED))
def test_the_derivative_of_a_call_agrees_with_differences(expression: str) -> None:
    function, args = made(expression)
    wrt = tuple(k for k, a in enumerate(args) if leaves(a))
    wanted = difference(function, args, wrt)
    with pyrelay.config.override(interpret=True):
        got = slope(function, args, wrt)
    assert got == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("expression", ["round(n, -10**9)", "n + round(7, -10**9) - n"])
def test_ints_without_any_digit_left_are_zero(expression: str) -> None:
    """Python makes the power of ten first, for hours."""
    function, args = made(expression)
    assert interpreted(function, args).result == 0


@pytest.mark.parametrize("sign", [1, -1])
def test_an_int_that_rounds_to_more_than_64_bits_says_so(sign: int) -> None:
    function, _ = made("round(n, -19)")
    assert interpreted(function, (sign * 5 * 10**18,)).result == 0
    error = interpreted(function, (sign * (5 * 10**18 + 1),)).error
    assert isinstance(error, OverflowError)
    assert "does not fit in 64 bits" in str(error)


def test_a_list_of_unsigned_numbers_beyond_64_bits_says_so() -> None:
    function, _ = made("np.full(n * n * 20, n).astype(np.uint64).tolist()")
    assert interpreted(function, (2,)).result == [2] * 80
    error = interpreted(function, (-2,)).error
    assert isinstance(error, OverflowError)
    assert "does not fit in 64 bits" in str(error)


def test_errors_call_methods_of_generators_by_their_names() -> None:
    function, args = made("np.random.default_rng(n).random(siz=2)")
    assert "rng.random(): got an unexpected keyword" in str(interpreted(function, args).error)
