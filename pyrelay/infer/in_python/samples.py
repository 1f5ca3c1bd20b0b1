"""Functions of Python's `statistics`, in plain Python.

In: numbers in anything that can be iterated over. Out: what the function of the same name gives;
means and variances of floats are rounded twice where Python's, which are exact, are rounded once.
"""

from __future__ import annotations

import math
from statistics import LinearRegression, StatisticsError
from typing import Any

__all__ = [
    "correlation", "covariance", "fmean", "geometric_mean", "harmonic_mean", "linear_regression",
    "mean", "pstdev", "pvariance", "stdev", "variance",
]


# -- averages --------------------------------------------------------------------------------------


def mean(data: Any) -> Any:
    """The arithmetic mean; an int where the numbers are ints and it is one."""
    values = list(data)
    if len(values) < 1:
        raise StatisticsError("mean requires at least one data point")
    return _ratio(_total(values), len(values))


def fmean(data: Any, weights: Any = None) -> float:
    """The mean as a float."""
    values = list(data)
    if weights is None:
        if len(values) < 1:
            raise StatisticsError("fmean requires at least one data point")
        return math.fsum(values) / len(values)
    factors = list(weights)
    if len(values) != len(factors):
        raise StatisticsError("data and weights must be the same length")
    products = [v * w for v, w in zip(values, factors, strict=True)]
    total = math.fsum(factors)
    if total == 0:
        raise StatisticsError("sum of weights must be non-zero")
    return math.fsum(products) / total


def geometric_mean(data: Any) -> float:
    """The n-th root of the product of n positive numbers."""
    values = list(data)
    if len(values) < 1:
        raise StatisticsError(
            "geometric mean requires a non-empty dataset containing positive numbers"
        )
    for value in values:
        if value <= 0:
            raise StatisticsError(
                "geometric mean requires a non-empty dataset containing positive numbers"
            )
    return math.exp(math.fsum([math.log(value) for value in values]) / len(values))


def harmonic_mean(data: Any, weights: Any = None) -> Any:
    """The reciprocal of the mean of the reciprocals."""
    values = list(data)
    if len(values) < 1:
        raise StatisticsError("harmonic_mean requires at least one data point")
    for value in values:
        if value < 0:
            raise StatisticsError("harmonic mean does not support negative values")
    for value in values:
        if value == 0:
            return 0.0
    if weights is None:
        return len(values) / math.fsum([1.0 / value for value in values])
    factors = list(weights)
    if len(values) != len(factors):
        raise StatisticsError("Number of weights does not match data size")
    parts = [w / v for v, w in zip(values, factors, strict=True)]
    return math.fsum(factors) / math.fsum(parts)


def _total(values: Any) -> Any:
    """The sum, of floats without loss; of the kind of the numbers."""
    total = sum(values)
    if isinstance(total, int):
        return total
    return type(total)(math.fsum(values))


def _ratio(a: Any, b: Any) -> Any:
    """a / b; an int where both are and it is one."""
    if isinstance(a, int) and a % b == 0:
        return a // b
    return a / b


# -- spread ----------------------------------------------------------------------------------------


def variance(data: Any, xbar: Any = None) -> Any:
    """The variance of a sample."""
    values = list(data)
    if len(values) < 2:
        raise StatisticsError("variance requires at least two data points")
    return _spread(values, xbar, len(values) - 1)


def pvariance(data: Any, mu: Any = None) -> Any:
    """The variance of a whole population."""
    values = list(data)
    if len(values) < 1:
        raise StatisticsError("pvariance requires at least one data point")
    return _spread(values, mu, len(values))


def stdev(data: Any, xbar: Any = None) -> float:
    """The square root of the variance of a sample."""
    values = list(data)
    if len(values) < 2:
        raise StatisticsError("stdev requires at least two data points")
    return math.sqrt(_spread(values, xbar, len(values) - 1))


def pstdev(data: Any, mu: Any = None) -> float:
    """The square root of the variance of a whole population."""
    values = list(data)
    if len(values) < 1:
        raise StatisticsError("pstdev requires at least one data point")
    return math.sqrt(_spread(values, mu, len(values)))


def _spread(values: Any, centre: Any, divisor: int) -> Any:
    """The sum of the squared distances from the centre, by the divisor."""
    total, count = sum(values), len(values)
    if centre is not None:
        return _ratio(_total([(v - centre) * (v - centre) for v in values]), divisor)
    if isinstance(total, int):
        squares = sum([v * v for v in values])
        return _ratio(count * squares - total * total, count * divisor)
    middle = _total(values) / count
    return _total([(v - middle) * (v - middle) for v in values]) / divisor


# -- two samples -----------------------------------------------------------------------------------


def covariance(x: Any, y: Any) -> float:
    """How two samples vary together."""
    if len(x) != len(y):
        raise StatisticsError(
            "covariance requires that both inputs have same number of data points"
        )
    if len(x) < 2:
        raise StatisticsError("covariance requires at least two data points")
    return _joint(x, y) / (len(x) - 1)


def correlation(x: Any, y: Any) -> float:
    """Pearson's coefficient of correlation."""
    if len(x) != len(y):
        raise StatisticsError(
            "correlation requires that both inputs have same number of data points"
        )
    if len(x) < 2:
        raise StatisticsError("correlation requires at least two data points")
    size = math.sqrt(_joint(x, x) * _joint(y, y))
    if size == 0:
        raise StatisticsError("at least one of the inputs is constant")
    return _joint(x, y) / size


def linear_regression(x: Any, y: Any, *, proportional: bool = False) -> LinearRegression:
    """The line of least squares; through the origin if it is proportional."""
    if len(x) != len(y):
        raise StatisticsError(
            "linear regression requires that both inputs have same number of data points"
        )
    if len(x) < 2:
        raise StatisticsError("linear regression requires at least two data points")
    if proportional:
        above = math.fsum([a * b for a, b in zip(x, y, strict=True)])
        below = math.fsum([a * a for a in x])
    else:
        above, below = _joint(x, y), _joint(x, x)
    if below == 0:
        raise StatisticsError("x is constant")
    slope = above / below
    if proportional:
        return LinearRegression(slope=slope, intercept=0.0)
    count = len(x)
    return LinearRegression(slope, math.fsum(y) / count - slope * (math.fsum(x) / count))


def _joint(x: Any, y: Any) -> float:
    """The sum of the products of the distances from the means."""
    a, b = math.fsum(x) / len(x), math.fsum(y) / len(y)
    return math.fsum([(p - a) * (q - b) for p, q in zip(x, y, strict=True)])
