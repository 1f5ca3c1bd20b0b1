"""The discrete Fourier transform, computed by NumPy: by its loops, called by the program itself
(`lower/planning/plan_ufuncs`), or through the host gate.

In: numbers along the last axis. Out: their transform, without a factor in either direction.

* `fft` takes and gives complex numbers. It is linear with a symmetric matrix, so the cotangent's
  transform is the cotangent.
* `rfft` takes n real numbers and gives the first n // 2 + 1 frequencies: the others are conjugates.
* `irfft` is its inverse times n. Each frequency but the first, and the middle one of an even n,
  counts twice, as its conjugate is not given. The two are each other's cotangents but for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.op import Fusion, Op, RelationError, Sample, define
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.arithmetic import conj
from pyrelay.ops.index import iota
from pyrelay.ops.logic import equal, where
from pyrelay.ops.relations import require_kind, tensors
from pyrelay.ops.samples import floats, spread
from pyrelay.ops.shape import refine

Attributes = Mapping[str, Any]


def _along(args: tuple[Type, ...], kind: str, size: Extent | None = None) -> TensorType:
    """The operand, which has an axis of elements of a kind, and `size` if given is not 0."""
    (x,) = tensors(args)
    require_kind((x,), kind)
    if not x.rank:
        raise RelationError(f"transforms along an axis, and got {x}", arg=0)
    if 0 in (x.shape[-1], size):
        raise RelationError("Invalid number of FFT data points (0) specified", kind="value")
    return x


def _transformed(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    return (_along(args, "c"),)


def _transform(x: Any, *, inverse: bool) -> Any:
    return np.fft.ifft(x, norm="forward") if inverse else np.fft.fft(x)


def _cotangent(y: Handle, g: Handle, x: Handle, *, inverse: bool) -> tuple[Any, ...]:
    return (fft(g, inverse=inverse),)


_SAMPLE = spread((2, 5)) + 1j * spread((2, 5), -1.0, 1.0, 4)

fft: Op = define(
    "fft", relation=_transformed, numpy=_transform, fusion=Fusion.OPAQUE, vjp=_cotangent,
    schedule="host",
    samples=(
        Sample((_SAMPLE,), {"inverse": False}), Sample((_SAMPLE[0],), {"inverse": True}),
        Sample((_SAMPLE.astype("c8"),), {"inverse": False}, False),
    ),
    doc="sum over k of x[k] exp(-2 pi i j k / n), exp(+...) if `inverse`",
)

# -- of real numbers -------------------------------------------------------------------------------


def _half(size: Extent) -> Extent:
    return dims.add(dims.quotient(size, 2), 1)


def _halved(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x = _along(args, "f")
    dtype = types.c64 if x.dtype.size <= types.f32.size else types.c128
    return (TensorType(dtype, (*x.shape[:-1], _half(x.shape[-1]))),)


def _whole(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x = _along(args, "c", attrs["size"])
    dtype = types.f32 if x.dtype == types.c64 else types.f64
    return (TensorType(dtype, (*x.shape[:-1], attrs["size"])),)


def _counts(x: Handle, size: Extent, once: Any, twice: Any) -> Handle:
    """For each of the frequencies x of `size` real numbers `once`, or `twice` if it stands for its
    conjugate too."""
    last, real = x.shape[-1], types.f32 if x.dtype == types.c64 else types.f64
    at = x.builder.call(iota, size=last, dtype=types.i64)
    single = equal(at, 0) | equal(at + at, x.builder.extent(size))
    found: Handle = where(single, *(x.builder.full(n, (last,), real) for n in (once, twice)))
    return found


def _cotangent_of_rfft(y: Handle, g: Handle, x: Handle) -> tuple[Any, ...]:
    size = x.shape[-1]
    return (irfft(conj(g) * _counts(g, size, 1.0, 0.5), size=size),)


def _cotangent_of_irfft(y: Handle, g: Handle, x: Handle, *, size: Extent) -> tuple[Any, ...]:
    frequencies = rfft(g)
    found = conj(frequencies) * _counts(frequencies, size, 1.0, 2.0)
    # As many as there are in x, whose extent may be one of its own.
    return (found if found.shape == x.shape else refine(found, shape=x.shape),)


rfft: Op = define(
    "rfft", relation=_halved, numpy=np.fft.rfft, fusion=Fusion.OPAQUE, vjp=_cotangent_of_rfft,
    schedule="host",
    samples=(floats((6,)), floats((2, 5)), floats((1,)), Sample((spread((4,)).astype("f4"),))),
    doc="the first half of the frequencies of real numbers",
)
irfft: Op = define(
    "irfft", relation=_whole, fusion=Fusion.OPAQUE, vjp=_cotangent_of_irfft, schedule="host",
    numpy=lambda x, *, size: np.fft.irfft(x, size, norm="forward"),
    samples=(
        Sample((_SAMPLE[:, :4],), {"size": 6}), Sample((_SAMPLE[0, :3],), {"size": 5}),
        Sample((_SAMPLE[0, :1],), {"size": 1}),
        Sample((_SAMPLE[:, :3].astype("c8"),), {"size": 4}, False),
    ),
    doc="`size` real numbers, from the first half of their frequencies",
)
