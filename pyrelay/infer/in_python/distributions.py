"""Distributions that NumPy's generators draw by arithmetic on uniform, normal, exponential numbers.

In: a `Source`, the state of a generator (`random_state`), which a draw changes in place, and
parameters, checked before (`parameters`). Out: the number that NumPy gives, drawn from the same
bits in the same order; the last bit may differ where logarithms and powers round otherwise.

Sources: gamma numbers by Marsaglia and Tsang (ACM TOMS 26, 2000) and, below shape 1, by Ahrens and
Dieter (Computing 12, 1974); beta numbers by Johnk (Metrika 8, 1964); Poisson numbers by Knuth and,
from 10 on, by Hormann (PTRS, Insurance: Mathematics and Economics 12, 1993); binomial numbers by
inversion and by Kachitvichyanukul and Schmeiser (BTPE, CACM 31, 1988); Wald's by Michael,
Schucany and Haas (The American Statistician 30, 1976).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pyrelay.infer.in_python import mt19937, once, pcg64
from pyrelay.numpy_release import RELEASE

Array = Any
State = tuple[Array, ...]


class Source(NamedTuple):
    """What a generator draws without parameters, each a function of its state."""

    uniform: Callable[..., Any]
    normal: Callable[..., Any]
    exponential: Callable[..., Any]
    legacy: bool


@once
def _word_uniform(words: Array) -> Any:
    return pcg64.random(words)


@once
def _twisted_normal(words: Array, kept: Array) -> Any:
    return mt19937.standard_normal(words, kept)


GENERATOR = Source(
    _word_uniform, pcg64.standard_normal, pcg64.standard_exponential, False
)
LEGACY = Source(mt19937.random_sample, _twisted_normal, mt19937.standard_exponential, True)


# -- gamma numbers and what is made of them --------------------------------------------------------


@once
def standard_gamma(source: Source, state: State, shape: Any) -> Any:
    """A gamma number of scale 1."""
    found = 0.0
    if shape == 1.0:
        found = source.exponential(*state)
    elif shape > 1.0:
        found = _large_gamma(source, state, shape)
    elif shape > 0.0:
        found = _small_gamma(source, state, shape)
    return found


@once
def _large_gamma(source: Source, state: State, shape: Any) -> Any:
    centre = shape - 1.0 / 3.0
    width = 1.0 / np.sqrt(9.0 * centre)
    cube, drawing = 0.0, True
    while drawing:
        x = source.normal(*state)
        root = 1.0 + width * x
        if root > 0.0:
            cube = root * root * root
            u = source.uniform(*state)
            if u < 1.0 - 0.0331 * (x * x) * (x * x):
                drawing = False
            else:
                drawing = not np.log(u) < 0.5 * x * x + centre * (1.0 - cube + np.log(cube))
    return centre * cube


@once
def _small_gamma(source: Source, state: State, shape: Any) -> Any:
    found, drawing = 0.0, True
    while drawing:
        u = source.uniform(*state)
        limit = source.exponential(*state)
        if u <= 1.0 - shape:
            found = u ** (1.0 / shape)
            drawing = not found <= limit
        else:
            y = -np.log((1.0 - u) / shape)
            found = (1.0 - shape + shape * y) ** (1.0 / shape)
            drawing = not found <= limit + y
    return found


@once
def beta(source: Source, state: State, a: Any, b: Any) -> Any:
    """A beta number."""
    found = 0.0
    if a <= 1.0 and b <= 1.0:
        drawing = True
        while drawing:
            u = source.uniform(*state)
            v = source.uniform(*state)
            x, y = u ** (1.0 / a), v ** (1.0 / b)
            total = x + y
            if total <= 1.0 and u + v > 0.0:
                drawing = False
                if (x > 0.0 and y > 0.0) or (source.legacy and total > 0.0):
                    found = x / total
                else:
                    first, second = np.log(u) / a, np.log(v) / b
                    top = max(first, second)
                    first, second = first - top, second - top
                    found = np.exp(first - np.log(np.exp(first) + np.exp(second)))
    else:
        one = standard_gamma(source, state, a)
        other = standard_gamma(source, state, b)
        found = one / (one + other)
    return found


def chisquare(source: Source, state: State, df: Any) -> Any:
    """A number of the chi-square distribution."""
    return 2.0 * standard_gamma(source, state, df / 2.0)


def f(source: Source, state: State, dfnum: Any, dfden: Any) -> Any:
    """A number of Fisher's F distribution."""
    above = chisquare(source, state, dfnum) * dfden
    return above / (chisquare(source, state, dfden) * dfnum)


def standard_t(source: Source, state: State, df: Any) -> Any:
    """A number of Student's t distribution."""
    above = source.normal(*state)
    below = standard_gamma(source, state, df / 2.0)
    return np.sqrt(df / 2.0) * above / np.sqrt(below)


def dirichlet(source: Source, state: State, alpha: Array) -> Array:
    """Numbers that add up to 1, f64[k] for the weights f64[k]."""
    found = np.zeros(alpha.shape[0])
    if not source.legacy and np.max(alpha) < 0.1:  # by sticks that are broken
        left, total = 1.0, np.sum(alpha)
        for k in range(alpha.shape[0] - 1):
            total = total - alpha[k]
            part = beta(source, state, alpha[k], total)
            found[k] = left * part
            left = left * (1.0 - part)
        found[-1] = left
    else:
        for k in range(alpha.shape[0]):
            found[k] = standard_gamma(source, state, alpha[k])
        found = found * (1.0 / _added_up(found))
    return found


def _added_up(x: Array) -> Any:
    """The sum, from the first to the last."""
    total = 0.0
    for v in x:
        total = total + v
    return total


# -- functions of one number -----------------------------------------------------------------------


def standard_cauchy(source: Source, state: State) -> Any:
    """The ratio of two normal numbers."""
    above = source.normal(*state)
    return above / source.normal(*state)


def laplace(source: Source, state: State, loc: Any, scale: Any) -> Any:
    """A number of the double exponential distribution."""
    u = 0.0
    while u == 0.0:
        u = source.uniform(*state)
    if u >= 0.5:
        return loc - scale * np.log(2.0 - u - u)
    return loc + scale * np.log(u + u)


def gumbel(source: Source, state: State, loc: Any, scale: Any) -> Any:
    """A number of the distribution of extremes."""
    u = 1.0
    while u == 1.0:
        u = 1.0 - source.uniform(*state)
    return loc - scale * np.log(-np.log(u))


def logistic(source: Source, state: State, loc: Any, scale: Any) -> Any:
    """A number of the logistic distribution."""
    u = 0.0
    while u == 0.0:
        u = source.uniform(*state)
    return loc + scale * np.log(u / (1.0 - u))


def rayleigh(source: Source, state: State, scale: Any) -> Any:
    """The length of a vector of two normal numbers."""
    if source.legacy:
        return scale * np.sqrt(-2.0 * np.log(1.0 - source.uniform(*state)))
    return scale * np.sqrt(2.0 * source.exponential(*state))


def weibull(source: Source, state: State, a: Any) -> Any:
    """A power of an exponential number; 0 for the exponent 0."""
    return source.exponential(*state) ** (1.0 / a) if a != 0.0 else 0.0


def pareto(source: Source, state: State, a: Any) -> Any:
    """A number of Lomax's distribution."""
    if source.legacy:
        return np.exp(source.exponential(*state) / a) - 1.0
    return np.expm1(source.exponential(*state) / a)


def power(source: Source, state: State, a: Any) -> Any:
    """A number between 0 and 1 with a density that is a power."""
    if source.legacy:
        return (1.0 - np.exp(-source.exponential(*state))) ** (1.0 / a)
    return (-np.expm1(-source.exponential(*state))) ** (1.0 / a)


def triangular(source: Source, state: State, left: Any, mode: Any, right: Any) -> Any:
    """A number with a density that rises and falls along lines."""
    base, rise = right - left, mode - left
    u = source.uniform(*state)
    if u <= rise / base:
        return left + np.sqrt(u * (rise * base))
    return right - np.sqrt((1.0 - u) * ((right - mode) * base))


def wald(source: Source, state: State, mean: Any, scale: Any) -> Any:
    """A number of the inverse Gaussian distribution."""
    y = source.normal(*state)
    y = mean * y * y
    if source.legacy:
        half = mean / (2.0 * scale)
        x = mean + half * (y - np.sqrt(4.0 * scale * y + y * y))
    else:
        d = 1.0 + np.sqrt(1.0 + 4.0 * scale / y)
        x = mean * (1.0 - 2.0 / d)
    u = source.uniform(*state)
    return x if u <= mean / (mean + x) else mean * mean / x


# -- whole numbers ---------------------------------------------------------------------------------


@once
def poisson(source: Source, state: State, lam: Any) -> Any:
    """How many events of a rate come in a unit of time."""
    found = 0
    if lam >= 10.0:
        found = _many_events(source, state, lam)
    elif lam > 0.0:
        least, product = np.exp(-lam), source.uniform(*state)
        while product > least:
            found += 1
            product = product * source.uniform(*state)
    return found


@once
def _many_events(source: Source, state: State, lam: Any) -> Any:
    log_lam = np.log(lam)
    b = 0.931 + 2.53 * np.sqrt(lam)
    a = -0.059 + 0.02483 * b
    log_inverse = np.log(1.1239 + 1.1328 / (b - 3.4))
    edge = 0.9277 - 3.6224 / (b - 2.0)
    found: Any = 0
    drawing = True
    while drawing:
        u = source.uniform(*state) - 0.5
        v = source.uniform(*state)
        room = 0.5 - abs(u)
        found = np.int64(np.floor((2.0 * a / room + b) * u + lam + 0.43)) if room > 0.0 else 0
        if room >= 0.07 and v <= edge:
            drawing = False
        elif found >= 0 and not (room < 0.013 and v > room):
            left = np.log(v) + log_inverse - np.log(a / (room * room) + b)
            drawing = not left <= -lam + found * log_lam - _log_gamma(found + 1.0)
    return found


_SERIES = np.array([
    8.333333333333333e-02, -2.777777777777778e-03, 7.936507936507937e-04, -5.952380952380952e-04,
    8.417508417508418e-04, -1.917526917526918e-03, 6.410256410256410e-03, -2.955065359477124e-02,
    1.796443723688307e-01, -1.39243221690590e00,
])
_HALF_LOG_TWO_PI = 0.9189385332046727


def _log_gamma(x: Any) -> Any:
    """log(gamma(x)) for x >= 1 by Stirling's series, as the method of rejection was given with."""
    if x == 1.0 or x == 2.0:
        return 0.0
    more = np.int64(7.0 - x) if x < 7.0 else 0
    at = x + more
    factor = (1.0 / at) * (1.0 / at)
    series = _SERIES[9]
    for k in range(8, -1, -1):
        series = series * factor + _SERIES[k]
    found = series / at + _HALF_LOG_TWO_PI + (at - 0.5) * np.log(at) - at
    for _ in range(more):
        found = found - np.log(at - 1.0)
        at = at - 1.0
    return found


def binomial(source: Source, state: State, n: Any, p: Any) -> Any:
    """How many of n trials succeed that each do with the probability p."""
    if source.legacy:  # takes bits where there is nothing to find out, too
        return _successes(source, state, n, p)
    return _successes_of_some(source, state, n, p)


def _successes_of_some(source: Source, state: State, n: Any, p: Any) -> Any:
    return _successes(source, state, n, p) if n > 0 and p > 0.0 else np.int64(0)


def _successes(source: Source, state: State, n: Any, p: Any) -> Any:
    chance = p if p <= 0.5 else 1.0 - p
    found = np.int64(0)
    if chance * n <= 30.0:
        found = _few_successes(source, state, n, chance)
    else:
        found = _many_successes(source, state, n, chance)
    return n - found if p > 0.5 else found


@once
def _few_successes(source: Source, state: State, n: Any, p: Any) -> Any:
    """By adding up the probabilities of 0, 1, 2 ... successes."""
    q = 1.0 - p
    none, mean = np.exp(n * np.log(q)), n * p
    bound = np.int64(np.minimum(n, mean + 10.0 * np.sqrt(mean * q + 1.0)))
    found, here, u, drawing = 0, 0.0, 0.0, True
    begin = True
    while drawing:
        if begin:
            found, here, u = 0, none, source.uniform(*state)
            begin = False
        if u > here:
            found += 1
            if found > bound:
                begin = True
            else:
                u = u - here
                here = ((n - found + 1) * p * here) / (found * q)
        else:
            drawing = False
    return found


@once
def _many_successes(source: Source, state: State, n: Any, p: Any) -> Any:
    """By a triangle, parallelograms and exponential tails above the probabilities."""
    r, q = p, 1.0 - p
    mode = n * r + r
    m = np.int64(np.floor(mode))
    spread = n * r * q
    p1 = np.floor(2.195 * np.sqrt(spread) - 4.6 * q) + 0.5
    middle = m + 0.5
    left, right = middle - p1, middle + p1
    c = 0.134 + 20.5 / (15.3 + m)
    slope = (mode - left) / (mode - left * r)
    left_rate = slope * (1.0 + slope / 2.0)
    slope = (right - mode) / (right * q)
    right_rate = slope * (1.0 + slope / 2.0)
    p2 = p1 * (1.0 + 2.0 * c)
    p3 = p2 + c / left_rate
    p4 = p3 + c / right_rate
    y: Any = 0
    drawing = True
    while drawing:
        u = source.uniform(*state) * p4
        v = source.uniform(*state)
        if u <= p1:
            y = np.int64(np.floor(middle - p1 * v + u))
            drawing = False
        else:
            fits = True
            if u <= p2:
                x = left + (u - p1) / c
                v = v * c + 1.0 - abs(m - x + 0.5) / p1
                fits = v <= 1.0
                y = np.int64(np.floor(x))
            elif v == 0.0:
                fits = False
            elif u <= p3:
                y = np.int64(np.floor(left + np.log(v) / left_rate))
                fits = y >= 0
                v = v * (u - p2) * left_rate
            else:
                y = np.int64(np.floor(right - np.log(v) / right_rate))
                fits = y <= n
                v = v * (u - p3) * right_rate
            if fits:
                k = abs(y - m)
                if k > 20 and k < spread / 2.0 - 1.0:
                    drawing = not _below_stirling(n, r, q, m, middle, spread, y, k, v)
                else:
                    drawing = v > _ratio(n, r / q, m, y)
    return y


def _ratio(n: Any, odds: Any, m: Any, y: Any) -> Any:
    """The probability of y successes over that of m."""
    factor, found = odds * (n + 1), 1.0
    for i in range(m + 1, y + 1):
        found = found * (factor / i - odds)
    for i in range(y + 1, m + 1):
        found = found / (factor / i - odds)
    return found


def _below_stirling(
    n: Any, r: Any, q: Any, m: Any, middle: Any, spread: Any, y: Any, k: Any, v: Any
) -> Any:
    """Whether v lies below the probability of y over that of m, by bounds, then by a series."""
    size = 1.0 * k
    rho = (k / spread) * (
        (size * (size / 3.0 + 0.625) + 0.16666666666666666) / spread + 0.5
    )
    t = -size * size / (2.0 * spread)
    height = np.log(v)
    if height < t - rho:
        return True
    if height > t + rho:
        return False
    x1, f1, z, w = y + 1.0, m + 1.0, n + 1.0 - m, n - y + 1.0
    limit = (
        middle * np.log(f1 / x1) + (n - m + 0.5) * np.log(z / w)
        + (y - m) * np.log(w * r / (x1 * q))
        + _stirling(f1) + _stirling(z) + _stirling(x1) + _stirling(w)
    )
    return not height > limit


def _stirling(x: Any) -> Any:
    s = x * x
    return (
        (13680.0 - (462.0 - (132.0 - (99.0 - 140.0 / s) / s) / s) / s) / x / 166320.0
    )


def geometric(source: Source, state: State, p: Any) -> Any:
    """How many trials it takes to succeed."""
    found: Any = 1
    if p >= 0.333333333333333333333333:
        total, product = p, p
        u = source.uniform(*state)
        while u > total:
            product = product * (1.0 - p)
            total = total + product
            found += 1
    elif source.legacy:
        found = np.int64(np.ceil(np.log(1.0 - source.uniform(*state)) / np.log(1.0 - p)))
    else:
        found = _least(np.ceil(-source.exponential(*state) / np.log1p(-p)))
    return found


def _least(z: Any) -> Any:
    """A float as a whole number, at most the largest of 63 bits."""
    return np.int64(z) if z < 9.223372036854776e18 else np.int64(9223372036854775807)


def negative_binomial(source: Source, state: State, n: Any, p: Any) -> Any:
    """How many trials fail before n succeed."""
    return poisson(source, state, (1.0 - p) / p * standard_gamma(source, state, n))


#: Since NumPy 2.5 a RandomState draws them as its binomial numbers.
_AS_BINOMIAL = RELEASE >= (2, 5)


def multinomial(source: Source, state: State, n: Any, pvals: Array) -> Array:
    """How often each of k things comes in n draws, i64[k] for f64[k]."""
    found = np.zeros(pvals.shape[0], np.int64)
    left, remaining, last = n, 1.0, pvals.shape[0] - 1
    for k in range(last):
        chance = pvals[k] / remaining
        if _AS_BINOMIAL:
            found[k] = binomial(source, state, left, chance)
        else:
            found[k] = _successes_of_some(source, state, left, chance)
        left -= found[k]
        if left <= 0:
            break
        remaining = remaining - pvals[k]
    if left > 0:
        found[last] = left
    return found
