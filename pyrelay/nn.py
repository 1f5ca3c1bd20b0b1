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
    "conv", "conv_transpose", "cross_entropy", "gelu", "layer_norm", "log_softmax", "logsumexp",
    "mse", "one_hot", "relu", "sigmoid", "silu", "softmax", "softplus", "stop_gradient",
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


# -- convolutions ----------------------------------------------------------------------------------


def conv(
    x: Array, w: Array, bias: Array | None = None, *, stride: int | tuple[int, ...] = 1,
    padding: str | int | tuple[int, ...] | tuple[tuple[int, int], ...] = 0,
    dilation: int | tuple[int, ...] = 1, groups: int = 1, channels_last: bool = False,
) -> Array:
    """The convolution of images of one to three axes with weights, as neural networks define it.

    x        [batch, channels, *extents], or [batch, *extents, channels] if `channels_last`
    w        [outputs, channels / groups, *taps], or [*taps, channels / groups, outputs]
    bias     [outputs], added to every position
    stride, dilation   for all axes, or one number each
    padding  zeros at both ends of every axis: a number for all, a number or (before, after) for
             each, "valid" for none, "same" for as many as keep ceil(extent / stride) positions
             (more of them behind than in front)

    Result: [batch, outputs, *positions], or [batch, *positions, outputs]. Raises ValueError where
    the weights reach beyond the image.
    """
    axes = x.ndim - 2
    extents = x.shape[1:-1] if channels_last else x.shape[2:]
    taps = w.shape[:-2] if channels_last else w.shape[2:]
    strides = stride if isinstance(stride, tuple) else (stride,) * axes
    dilations = dilation if isinstance(dilation, tuple) else (dilation,) * axes
    before: tuple[int, ...] = ()
    size: tuple[int, ...] = ()
    for k in range(axes):
        reach = dilations[k] * (taps[k] - 1) + 1
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"padding is 'same', 'valid' or numbers, not {padding!r}")
            zeros = 0
            if padding == "same":
                zeros = max((-(-extents[k] // strides[k]) - 1) * strides[k] + reach - extents[k], 0)
            low, high = zeros // 2, zeros - zeros // 2
        else:
            each = padding[k] if isinstance(padding, tuple) else padding
            low, high = each if isinstance(each, tuple) else (each, each)
        left = extents[k] + low + high - reach
        if left < 0:
            raise ValueError(f"the weights reach beyond axis {k} of the image")
        before += (low,)
        size += (left // strides[k] + 1,)
    y = _convolve(x, w, strides, dilations, (1,) * axes, before, size, groups, channels_last)
    if bias is None:
        return y
    return y + (bias if channels_last else np.reshape(bias, (-1, *(1,) * axes)))


def conv_transpose(
    x: Array, w: Array, bias: Array | None = None, *, stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0, output_padding: int | tuple[int, ...] = 0,
    dilation: int | tuple[int, ...] = 1, groups: int = 1,
) -> Array:
    """The transpose of `conv`: what its derivative does to cotangents of its result.

    x [batch, channels, *extents], w [channels, outputs / groups, *taps], bias [outputs]. Result
    [batch, outputs, *positions] of (extent - 1) * stride - 2 * padding + dilation * (taps - 1)
    + output_padding + 1 positions along each axis.
    """
    axes = x.ndim - 2
    strides = stride if isinstance(stride, tuple) else (stride,) * axes
    paddings = padding if isinstance(padding, tuple) else (padding,) * axes
    extra = output_padding if isinstance(output_padding, tuple) else (output_padding,) * axes
    dilations = dilation if isinstance(dilation, tuple) else (dilation,) * axes
    before: tuple[int, ...] = ()
    size: tuple[int, ...] = ()
    for k in range(axes):
        reach = dilations[k] * (w.shape[2 + k] - 1)
        before += (reach - paddings[k],)
        size += ((x.shape[2 + k] - 1) * strides[k] - 2 * paddings[k] + reach + extra[k] + 1,)
    channels, outputs = w.shape[0], w.shape[1]
    parts = np.reshape(w, (groups, channels // groups, outputs, *w.shape[2:]))
    turned = np.reshape(np.swapaxes(parts, 1, 2), (groups * outputs, -1, *w.shape[2:]))
    turned = np.flip(turned, tuple(range(2, axes + 2)))
    y = _convolve(x, turned, (1,) * axes, dilations, strides, before, size, groups, False)
    return y if bias is None else y + np.reshape(bias, (-1, *(1,) * axes))


def _convolve(
    x: Array, w: Array, stride: tuple[int, ...], dilation: tuple[int, ...],
    spread: tuple[int, ...], before: tuple[int, ...], size: tuple[int, ...], groups: int,
    channels_last: bool,
) -> Array:
    """`pyrelay.ops.convolution`, which says what everything means; compiled, it is that op."""
    from pyrelay.ops.convolution import convolve

    return convolve.numpy(
        x, w, stride=stride, dilation=dilation, spread=spread, before=before, size=size,
        groups=groups, channels_last=channels_last,
    )
