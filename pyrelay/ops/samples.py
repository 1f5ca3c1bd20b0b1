"""Arguments with which the generated tests call the ops: NumPy values, the same in every run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.ir.op import Sample

_GOLDEN_RATIO = 0.6180339887498949
Shape = tuple[int, ...]


def spread(shape: Shape, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    """Distinct float64 values over (low, high), none of them near a neighbour: shape `shape`."""
    count = math.prod(shape)
    fractions = ((np.arange(count) + 1.3 + 7 * seed) * _GOLDEN_RATIO) % 1.0
    return (low + (high - low) * (0.03 + 0.94 * fractions)).reshape(shape)[()]


def floats(
    *shapes: Shape, low: float = -2.0, high: float = 2.0, seed: int = 0,
    attrs: Mapping[str, Any] | None = None,
) -> Sample:
    """Float64 arguments of these shapes, with values in (low, high)."""
    return Sample(
        lambda: tuple(spread(s, low, high, seed + k) for k, s in enumerate(shapes)), attrs or {}
    )


def integers(
    *shapes: Shape, low: int = -9, high: int = 9, dtype: str = "i8",
    attrs: Mapping[str, Any] | None = None,
) -> Sample:
    """Integer arguments of these shapes, with values in low..high."""

    def args() -> tuple[Any, ...]:
        wide = (spread(s, low, high + 1, k) for k, s in enumerate(shapes))
        return tuple(np.floor(values).astype(dtype)[()] for values in wide)

    return Sample(args, attrs or {}, differentiable=False)


def special(arity: int, dtype: str = "f8") -> Sample:
    """Every combination of infinities, NaN, zeros of both signs and ones, for `arity` operands."""
    values = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, -2.5]

    def args() -> tuple[Any, ...]:
        return tuple(np.array(list(itertools.product(values, repeat=arity)), dtype=dtype).T)

    return Sample(args, differentiable=False)


def unary(low: float = -2.0, high: float = 2.0) -> Sequence[Sample]:
    """For a function of one real: a NumPy scalar, a vector, float32, a Python float, edges."""
    return (
        floats((), low=low, high=high),
        floats((7,), low=low, high=high),
        Sample(lambda: (spread((3, 5), low, high).astype("f4"),), differentiable=False),
        Sample(lambda: (float(spread((), low, high)),)),
        special(1),
    )


def binary(low: float = -2.0, high: float = 2.0) -> Sequence[Sample]:
    """For a function of two reals: equal shapes, broadcasting, float32, Python floats, edges."""

    def numbers() -> tuple[Any, ...]:
        return float(spread((), low, high)), float(spread((), low, high, 1))

    return (
        floats((4,), (4,), low=low, high=high),
        floats((3, 1), (4,), low=low, high=high),
        floats((2, 3), (), low=low, high=high),
        Sample(
            lambda: (spread((5,), low, high).astype("f4"), numbers()[0]), differentiable=False
        ),
        Sample(numbers),
        special(2),
    )
