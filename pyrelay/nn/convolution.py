"""Convolutions: `conv` for images of one to three axes, and its transpose."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


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
    for k in tuple(range(axes)):  # a tuple: compiled, each axis is a round of its own at once
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
    y = _convolve(x, w, strides, dilations, before, size, groups, channels_last)
    if bias is None:
        return y
    return y + (bias if channels_last else np.reshape(bias, (-1, *(1,) * axes)))


def conv1d(x: Array, w: Array, bias: Array | None = None, **options: Any) -> Array:
    """`conv` of images of one axis: x [batch, channels, extent]."""
    return _of_rank(3, x, w, bias, options)


def conv2d(x: Array, w: Array, bias: Array | None = None, **options: Any) -> Array:
    """`conv` of images of two axes: x [batch, channels, height, width]."""
    return _of_rank(4, x, w, bias, options)


def conv3d(x: Array, w: Array, bias: Array | None = None, **options: Any) -> Array:
    """`conv` of images of three axes: x [batch, channels, depth, height, width]."""
    return _of_rank(5, x, w, bias, options)


def _of_rank(
    rank: int, x: Array, w: Array, bias: Array | None, options: dict[str, Any]
) -> Array:
    if x.ndim != rank or w.ndim != rank:
        raise ValueError(f"the image and the weights need {rank} axes")
    return conv(x, w, bias, **options)


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
    before = padding if isinstance(padding, tuple) else (padding,) * axes
    extra = output_padding if isinstance(output_padding, tuple) else (output_padding,) * axes
    dilations = dilation if isinstance(dilation, tuple) else (dilation,) * axes
    size: tuple[int, ...] = ()
    for k in tuple(range(axes)):
        reach = dilations[k] * (w.shape[2 + k] - 1)
        size += ((x.shape[2 + k] - 1) * strides[k] - 2 * before[k] + reach + extra[k] + 1,)
    y = _convolve_back(x, w, strides, dilations, before, size, groups, False)
    return y if bias is None else y + np.reshape(bias, (-1, *(1,) * axes))


def _convolve(
    x: Array, w: Array, stride: tuple[int, ...], dilation: tuple[int, ...],
    before: tuple[int, ...], size: tuple[int, ...], groups: int, channels_last: bool,
) -> Array:
    """`pyrelay.ops.convolution`, which says what everything means; compiled, it is that op."""
    from pyrelay.ops.convolution import convolve

    return convolve.numpy(
        x, w, stride=stride, dilation=dilation, before=before, size=size, groups=groups,
        channels_last=channels_last,
    )


def _convolve_back(
    x: Array, w: Array, stride: tuple[int, ...], dilation: tuple[int, ...],
    before: tuple[int, ...], size: tuple[int, ...], groups: int, channels_last: bool,
) -> Array:
    """The same of the transposed convolution."""
    from pyrelay.ops.convolution import convolve_back

    return convolve_back.numpy(
        x, w, stride=stride, dilation=dilation, before=before, size=size, groups=groups,
        channels_last=channels_last,
    )
