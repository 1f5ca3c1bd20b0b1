"""Normalisation of activations, and dropout.

Images are [batch, channels, *extents], or [batch, *extents, channels] if `channels_last`. `weight`
and `bias` have one element per channel (for `layer_norm` and `rms_norm`: the shape of what is
normalised).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


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


def rms_norm(
    x: Array, weight: Array | None = None, axis: int | tuple[int, ...] = -1,
    epsilon: float = 1e-6,
) -> Array:
    """x divided by the root of its mean square along `axis` (Zhang and Sennrich, 2019)."""
    result = x / np.sqrt(np.mean(x * x, axis=axis, keepdims=True) + epsilon)
    return result if weight is None else result * weight


def _per_channel(values: Array, x: Array, channels_last: bool) -> Array:
    """One element per channel, in the shape that broadcasts against x."""
    return values if channels_last else np.reshape(values, (-1, *(1,) * (x.ndim - 2)))


def _affine(
    x: Array, weight: Array | None, bias: Array | None, channels_last: bool
) -> Array:
    if weight is not None:
        x = x * _per_channel(weight, x, channels_last)
    if bias is not None:
        x = x + _per_channel(bias, x, channels_last)
    return x


def group_norm(
    x: Array, groups: int, weight: Array | None = None, bias: Array | None = None,
    epsilon: float = 1e-5, *, channels_last: bool = False,
) -> Array:
    """Mean 0 and variance 1 in each group of neighbouring channels (Wu and He, 2018).

    Raises ValueError if the channels do not divide into groups.
    """
    channels = x.shape[-1] if channels_last else x.shape[1]
    if channels % groups != 0:
        raise ValueError("the channels do not divide into groups of one size")
    if channels_last:
        parts = np.reshape(x, (*x.shape[:-1], groups, channels // groups))
        axes = (*range(1, x.ndim - 1), x.ndim)
    else:
        parts = np.reshape(x, (x.shape[0], groups, channels // groups, *x.shape[2:]))
        axes = tuple(range(2, x.ndim + 1))
    parts = layer_norm(parts, axis=axes, epsilon=epsilon)
    return _affine(np.reshape(parts, x.shape), weight, bias, channels_last)


def instance_norm(
    x: Array, weight: Array | None = None, bias: Array | None = None, epsilon: float = 1e-5,
    *, channels_last: bool = False,
) -> Array:
    """Mean 0 and variance 1 over the extents of each channel (Ulyanov et al., 2016)."""
    axes = tuple(range(1, x.ndim - 1)) if channels_last else tuple(range(2, x.ndim))
    return _affine(layer_norm(x, axis=axes, epsilon=epsilon), weight, bias, channels_last)


def batch_norm(
    x: Array, mean: Array, variance: Array, weight: Array | None = None,
    bias: Array | None = None, *, training: bool = False, momentum: float = 0.1,
    epsilon: float = 1e-5, channels_last: bool = False,
) -> tuple[Array, Array, Array]:
    """Mean 0 and variance 1 in each channel (Ioffe and Szegedy, 2015): the result, mean, variance.

    `mean` and `variance` are the running ones, [channels]. In training those of the batch are used,
    and the running ones that are returned have moved to them by `momentum` (to the variance with
    n - 1). Otherwise they are used and returned as they are. Nothing is kept in between.
    """
    if training:
        axes = tuple(range(x.ndim - 1)) if channels_last else (0, *range(2, x.ndim))
        own_mean, own_variance = np.mean(x, axis=axes), np.var(x, axis=axes)
        count = 1
        for k in axes:
            count = count * x.shape[k]
        unbiased = own_variance * (count / max(count - 1, 1))
        mean = (1.0 - momentum) * mean + momentum * own_mean
        variance = (1.0 - momentum) * variance + momentum * unbiased
    else:
        own_mean, own_variance = mean, variance
    centred = x - _per_channel(own_mean, x, channels_last)
    result = centred / np.sqrt(_per_channel(own_variance, x, channels_last) + epsilon)
    return _affine(result, weight, bias, channels_last), mean, variance


def dropout(x: Array, rate: float, rng: Any, *, training: bool = True) -> Array:
    """Elements set to 0 with probability `rate`, the others divided by 1 - rate.

    `rng` is an np.random.Generator; one number is drawn for each element (Srivastava et al., 2014).
    Without `training` x is returned and nothing drawn.
    """
    if not training:
        return x
    kept = rng.random(x.shape) >= rate
    return np.where(kept, x / (1.0 - rate), 0)
