"""The order of elements.

In: lines of numbers. Out: where sorting would take the elements of each line from. What is sorted
is picked by these places, so that its derivative is that of picking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir import types
from pyrelay.ir.op import Fusion, Op, RelationError, Sample, define
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.elementwise import DISCRETE
from pyrelay.ops.relations import require_kind, tensors


def _ordered(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    (x,) = tensors(args)
    require_kind((x,), "biuf")
    if x.rank != 2:
        raise RelationError(f"takes lines, and got {x}", arg=0)
    return (TensorType(types.i64, x.shape),)


def _places(x: Any) -> Any:
    return np.argsort(x, axis=1, kind="stable")


_TIES = np.array([[2.0, -0.0, np.nan, 0.0, -1.0, 2.0], [np.inf, 1.0, np.nan, -np.inf, 1.0, 1.0]])

argsort: Op = define(
    "argsort", relation=_ordered, numpy=_places, fusion=Fusion.OPAQUE, vjp=DISCRETE,
    schedule="sort",
    samples=(
        Sample((_TIES,), {}, False), Sample((np.array([[3, -1, 3, 7, -9]]),), {}, False),
        Sample((_TIES.astype("f4"),), {}, False), Sample((_TIES[:, :0],), {}, False),
        Sample((np.array([[True, False, True, False]]),), {}, False),
        Sample((np.arange(12, dtype="u1").reshape(3, 4)[:, ::-1].copy(),), {}, False),
    ),
    doc="indices that sort each line, equal elements in their order, NaNs last",
)
