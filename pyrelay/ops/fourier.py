"""The discrete Fourier transform, computed by NumPy through the host gate.

In: complex numbers. Out: their transform along the last axis, without a factor in either direction.
It is linear with a symmetric matrix, so the cotangent's transform is the cotangent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir.build import Handle
from pyrelay.ir.op import Fusion, Op, RelationError, Sample, define
from pyrelay.ir.types import Type
from pyrelay.ops.relations import require_kind, tensors
from pyrelay.ops.samples import spread


def _transformed(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    (x,) = tensors(args)
    require_kind((x,), "c")
    if not x.rank:
        raise RelationError(f"transforms along an axis, and got {x}", arg=0)
    if x.shape[-1] == 0:
        raise RelationError("Invalid number of FFT data points (0) specified", kind="value")
    return (x,)


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
