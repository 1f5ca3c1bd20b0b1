"""Functions of np.fft, in plain Python over a complex transform and those of real numbers.

In and out: what the function of np.fft of the same name takes and gives.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]


def transform(x: Array, inverse: bool) -> Array:
    """The transform along the last axis without a factor (compiled: the op `fft`)."""
    return np.fft.ifft(x, norm="forward") if inverse else np.fft.fft(x)


def of_real(x: Array) -> Array:
    """The first half of the transform of real numbers (compiled: the op `rfft`)."""
    return np.fft.rfft(x)


def to_real(half: Array, n: int) -> Array:
    """n real numbers of that half of a transform, without a factor (compiled: the op `irfft`)."""
    return np.fft.irfft(half, n, norm="forward")


def _real(x: Array) -> Array:
    """The numbers as floats of 32 or 64 bits."""
    single = x.dtype in (np.float16, np.float32) or x.dtype.name == "bfloat16"
    return x.astype(np.float32 if single else np.float64)


def _complex(a: Array) -> Array:
    x = np.asarray(a)
    single = x.dtype in (np.float16, np.float32, np.complex64) or x.dtype.name == "bfloat16"
    return x.astype(np.complex64 if single else np.complex128)


def _sized(a: Array, n: Any, axis: int) -> Array:
    """The axis last, cut or filled with zeros to n elements."""
    x = np.moveaxis(np.asarray(a), axis, -1)
    if n is None:
        return x
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    size = x.shape[-1]
    if size == 0:
        return np.zeros((*x.shape[:-1], n), x.dtype)
    places = np.arange(n)
    return np.where(places < size, x[..., np.minimum(places, size - 1)], 0)


def _factor(n: int, norm: Any, inverse: bool) -> float:
    if norm == "ortho":
        return 1.0 / math.sqrt(n)
    if norm in (None, "backward", "forward"):
        return 1.0 / n if inverse != (norm == "forward") else 1.0
    raise ValueError('Invalid norm value; should be "backward", "ortho" or "forward".')


def _scaled(y: Array, factor: float) -> Array:
    return y * factor


def fft(a: Array, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    """The discrete Fourier transform."""
    x = _sized(a, n, axis)
    size = x.shape[-1]
    y = transform(_complex(x), False) if x.dtype.kind == "c" else _mirrored(of_real(_real(x)), size)
    return np.moveaxis(_scaled(y, _factor(size, norm, False)), -1, axis)


def _mirrored(half: Array, n: int) -> Array:
    """All n frequencies of real numbers: the second half are conjugates of the first."""
    return np.concatenate([half, np.conj(half[..., 1 : n - n // 2])[..., ::-1]], axis=-1)


def ifft(a: Array, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    """The inverse of `fft`."""
    x = _complex(_sized(a, n, axis))
    return np.moveaxis(_scaled(transform(x, True), _factor(x.shape[-1], norm, True)), -1, axis)


def rfft(a: Array, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    """The transform of real numbers, up to the middle frequency."""
    x = _sized(a, n, axis)
    if x.dtype.kind == "c":
        raise TypeError("np.fft.rfft transforms real numbers")
    y = of_real(_real(x))
    return np.moveaxis(_scaled(y, _factor(x.shape[-1], norm, False)), -1, axis)


def irfft(a: Array, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    """The inverse of `rfft`: n real numbers."""
    size = 2 * (np.asarray(a).shape[axis] - 1) if n is None else n
    y = to_real(_complex(_sized(a, size // 2 + 1, axis)), size)
    return np.moveaxis(_scaled(y, _factor(size, norm, True)), -1, axis)


def _other(norm: Any) -> Any:
    """The norm with which the opposite direction has the same factor."""
    if norm == "ortho":
        return norm
    return "backward" if norm == "forward" else "forward"


def hfft(a: Array, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    """The transform of a signal with Hermitian symmetry, which is real."""
    return irfft(np.conj(a), n, axis, _other(norm))


def ihfft(a: Array, n: Any = None, axis: int = -1, norm: Any = None) -> Array:
    """The inverse of `hfft`."""
    return np.conj(rfft(a, n, axis, _other(norm)))


# -- several axes ----------------------------------------------------------------------------------


def _sizes_and_axes(a: Array, s: Any, axes: Any) -> Any:
    rank = np.ndim(a)
    if axes is None:
        chosen = list(range(rank)) if s is None else list(range(rank - len(s), rank))
    else:
        chosen = list(axes)
    sizes = [None] * len(chosen) if s is None else [None if n == -1 else n for n in s]
    return list(zip(sizes, chosen, strict=True))


def fftn(a: Array, s: Any = None, axes: Any = None, norm: Any = None) -> Array:
    """`fft` along several axes."""
    for n, axis in reversed(_sizes_and_axes(a, s, axes)):
        a = fft(a, n, axis, norm)
    return a


def ifftn(a: Array, s: Any = None, axes: Any = None, norm: Any = None) -> Array:
    """The inverse of `fftn`."""
    for n, axis in reversed(_sizes_and_axes(a, s, axes)):
        a = ifft(a, n, axis, norm)
    return a


def rfftn(a: Array, s: Any = None, axes: Any = None, norm: Any = None) -> Array:
    """`rfft` along the last of several axes, `fft` along the others."""
    pairs = _sizes_and_axes(a, s, axes)
    n, last = pairs[-1]
    a = rfft(a, n, last, norm)
    for n, axis in reversed(pairs[:-1]):
        a = fft(a, n, axis, norm)
    return a


def irfftn(a: Array, s: Any = None, axes: Any = None, norm: Any = None) -> Array:
    """The inverse of `rfftn`."""
    pairs = _sizes_and_axes(a, s, axes)
    for n, axis in pairs[:-1]:
        a = ifft(a, n, axis, norm)
    n, last = pairs[-1]
    return irfft(a, n, last, norm)


def fft2(a: Array, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Array:
    """`fftn` along two axes."""
    return fftn(a, s, axes, norm)


def ifft2(a: Array, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Array:
    """`ifftn` along two axes."""
    return ifftn(a, s, axes, norm)


def rfft2(a: Array, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Array:
    """`rfftn` along two axes."""
    return rfftn(a, s, axes, norm)


def irfft2(a: Array, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Array:
    """`irfftn` along two axes."""
    return irfftn(a, s, axes, norm)


# -- frequencies -----------------------------------------------------------------------------------


def fftfreq(n: int, d: Any = 1.0, device: Any = None) -> Array:
    """The frequencies of the elements of `fft`."""
    k = np.arange(n)
    return np.where(k < (n + 1) // 2, k, k - n) * (1.0 / (n * d))


def rfftfreq(n: int, d: Any = 1.0, device: Any = None) -> Array:
    """The frequencies of the elements of `rfft`."""
    return np.arange(n // 2 + 1) * (1.0 / (n * d))


def fftshift(x: Array, axes: Any = None) -> Array:
    """Frequency 0 moved to the middle."""
    return _shifted(np.asarray(x), axes, 1)


def ifftshift(x: Array, axes: Any = None) -> Array:
    """The inverse of `fftshift`."""
    return _shifted(np.asarray(x), axes, -1)


def _shifted(x: Array, axes: Any, sign: int) -> Array:
    if axes is None:
        chosen = list(range(x.ndim))
    else:
        chosen = [axes] if isinstance(axes, int) else list(axes)
    for axis in chosen:
        x = np.roll(x, sign * (x.shape[axis] // 2), axis)
    return x
