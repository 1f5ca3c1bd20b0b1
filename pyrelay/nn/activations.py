"""Activations, and the functions that normalise exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyrelay.infer.in_python.special import erf

Array = Any


def stop_gradient(x: Array) -> Array:
    """x, which derivatives take for a constant.

    >>> pyrelay.grad(lambda x: x * pyrelay.stop_gradient(x))(3.0)
    3.0
    """
    return x


def relu(x: Array) -> Array:
    """The positive part of each element; the derivative at 0 is 0."""
    return np.where(x > 0, x, 0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) of each element."""
    return 0.5 * np.tanh(0.5 * x) + 0.5


def silu(x: Array) -> Array:
    """x * sigmoid(x) of each element (Elfwing, Uchibe and Doya, 2017)."""
    return x * sigmoid(x)


def leaky_relu(x: Array, slope: float = 0.01) -> Array:
    """Each element, negative ones times `slope`, which is also the derivative at 0."""
    return np.where(x > 0, x, slope * x)


def elu(x: Array, alpha: float = 1.0) -> Array:
    """alpha (exp(x) - 1) for negative elements (Clevert, Unterthiner and Hochreiter, 2015)."""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def gelu(x: Array, approximate: bool = True) -> Array:
    """The Gaussian error linear unit (Hendrycks and Gimpel, 2016): in its tanh form or exact."""
    if not approximate:
        return 0.5 * x * (1.0 + erf(x * math.sqrt(0.5)))
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def softplus(x: Array) -> Array:
    """log(1 + exp(x)) of each element."""
    return np.logaddexp(x, 0.0)


def _shift(x: Array, axis: Any) -> Array:
    """What to subtract before exp: the maximum, or 0 where that is not finite."""
    top = np.max(stop_gradient(x), axis=axis, keepdims=True)
    return np.where(np.isfinite(top), top, 0)


def softmax(
    x: Array, axis: int | tuple[int, ...] | None = -1, where: Array | None = None
) -> Array:
    """exp(x) divided by its sum along `axis` (all axes if None).

    Elements where the mask `where` is false count as -inf; without any left the result is 0.
    """
    if where is None:
        powers = np.exp(x - _shift(x, axis))
        return powers / np.sum(powers, axis=axis, keepdims=True)
    masked = np.where(where, x, -math.inf)
    powers = np.exp(masked - _shift(masked, axis))
    total = np.sum(powers, axis=axis, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def log_softmax(
    x: Array, axis: int | tuple[int, ...] | None = -1, where: Array | None = None
) -> Array:
    """The logarithm of `softmax`, -inf where the mask `where` is false."""
    if where is not None:
        x = np.where(where, x, -math.inf)
    shifted = x - _shift(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def logsumexp(
    x: Array, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Array:
    """log(sum(exp(x))) along `axis`; -inf where every element is -inf."""
    top = _shift(x, axis)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=keepdims))
    return total + (top if keepdims else np.max(top, axis=axis))
