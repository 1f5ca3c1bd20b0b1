"""Functions of neural networks, in plain Python over NumPy.

In and out: NumPy arrays (or numbers) of floats; each keeps the dtype of its argument. They run as
they are, and compile like any function of a user's: nothing in the compiler knows them. Each is
written so that neither it nor its derivative overflows where the result is finite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = [
    "cross_entropy", "gelu", "layer_norm", "log_softmax", "logsumexp", "mse", "one_hot", "relu",
    "sigmoid", "silu", "softmax", "softplus", "stop_gradient",
]

Array = Any


def stop_gradient(x: Array) -> Array:
    """x, which derivatives take for a constant."""
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


def gelu(x: Array) -> Array:
    """The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel, 2016, section 2)."""
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def softplus(x: Array) -> Array:
    """log(1 + exp(x)) of each element."""
    return np.logaddexp(x, 0.0)


def _shift(x: Array, axis: Any) -> Array:
    """What to subtract before exp: the maximum, or 0 where that is not finite."""
    top = np.max(stop_gradient(x), axis=axis, keepdims=True)
    return np.where(np.isfinite(top), top, 0)


def softmax(x: Array, axis: int | tuple[int, ...] | None = -1) -> Array:
    """exp(x) divided by its sum along `axis` (all axes if None)."""
    powers = np.exp(x - _shift(x, axis))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def log_softmax(x: Array, axis: int | tuple[int, ...] | None = -1) -> Array:
    """The logarithm of `softmax`."""
    shifted = x - _shift(x, axis)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def logsumexp(
    x: Array, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Array:
    """log(sum(exp(x))) along `axis`; -inf where every element is -inf."""
    top = _shift(x, axis)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=keepdims))
    return total + (top if keepdims else np.max(top, axis=axis))


def one_hot(labels: Array, classes: int, dtype: Any = np.float32) -> Array:
    """Zeros with a one at each label: shape (*labels.shape, classes).

    A label outside 0 ... classes - 1 gives zeros.
    """
    return (np.asarray(labels)[..., None] == np.arange(classes)).astype(dtype)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean of -log softmax(logits)[label]; logits (..., classes), integer labels (...).

    Raises IndexError for a label that is no class.
    """
    rows = log_softmax(logits).reshape(-1, logits.shape[-1])
    flat = labels.reshape(-1)
    return -np.mean(rows[np.arange(flat.shape[0]), flat])


def mse(predicted: Array, wanted: Array) -> Array:
    """Mean of the squared differences."""
    difference = predicted - wanted
    return np.mean(difference * difference)


def layer_norm(
    x: Array, weight: Array | None = None, bias: Array | None = None,
    axis: int | tuple[int, ...] = -1, epsilon: float = 1e-5,
) -> Array:
    """x with mean 0 and variance 1 along `axis`, scaled and moved (Ba, Kiros and Hinton, 2016)."""
    centred = x - np.mean(x, axis=axis, keepdims=True)
    variance = np.mean(centred * centred, axis=axis, keepdims=True)
    result = centred / np.sqrt(variance + epsilon)
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result
