"""Scans that repeat an elementwise op of two operands, as `np.maximum.accumulate` does.

In: an array; `axis`, and `reverse` for a scan from the axis' end. Out: at each place the op of all
elements up to there; its type is the array's. The ops are associative, so a device may take the
elements in groups (`devices.gpu.cuda_scans`), and have an identity: what stands before the first
one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyrelay.ir.build import Handle
from pyrelay.ir.op import Fusion, Op, Promotion, Sample, define
from pyrelay.ir.types import DType, TensorType, Type, bool_
from pyrelay.ops.arithmetic import fmax, fmin, maximum, minimum
from pyrelay.ops.elementwise import DISCRETE, times
from pyrelay.ops.functions import logaddexp
from pyrelay.ops.logic import bitwise_and, bitwise_or, bitwise_xor, where
from pyrelay.ops.reduce import along, shifted, steady_scan
from pyrelay.ops.relations import axes_in, require_kind, tensors
from pyrelay.ops.samples import floats

_PREFIX = "running_"


def _at(axis: int, reverse: bool = False) -> dict[str, Any]:
    return {"axis": axis, "reverse": reverse}


_SAMPLES = (
    floats((5,), attrs=_at(0)), floats((3, 4), attrs=_at(0, True)), floats((3, 4), attrs=_at(1)),
    floats((2, 3, 4), attrs=_at(1)),
    Sample((np.array([1.0, np.nan, 5.0, -np.inf]),), _at(0), False),
    Sample((np.array([[2.0, -0.5, 3.0]], "f4"),), _at(1, True), False),
    Sample((np.array([[6, 3, 9], [12, 5, 10]]),), _at(1), False),
    Sample((np.array([7, 250, 3], "u1"),), _at(0, True), False),
    Sample((np.array([True, False, True]),), _at(0), False),
)


def _running(step: Op, kinds: str, doc: str) -> Op:
    def relation(args: tuple[Type, ...], attrs: Any) -> tuple[Type, ...]:
        (ty,) = tensors(args)
        require_kind((ty,), kinds)
        axes_in((attrs["axis"],), ty.rank)
        return (TensorType(ty.dtype, ty.shape),)

    def rule(y: Handle, g: Handle, x: Handle, *, axis: int, reverse: bool) -> Any:
        """By the step's own derivative: what a value owes to the one before, which is never more
        than itself, and to its element, which the first one is."""
        one = x.builder.full(1, x.shape, g.dtype)
        following = shifted(x, 0, axis, not reverse)
        owed, _ = step.vjp(y, one, y, following)  # type: ignore[operator]
        gathered = steady_scan(owed, g, axis=axis, reverse=not reverse)
        _, own = step.vjp(y, one, shifted(y, 0, axis, reverse), x)  # type: ignore[operator]
        none = x.builder.full(False, x.shape, bool_)
        return (times(gathered, where(shifted(none, True, axis, reverse), one, own)),)

    ufunc = getattr(np, step.name)
    return define(
        _PREFIX + step.name, relation=relation,
        numpy=along(lambda x, axis: ufunc.accumulate(x, axis=axis)), fusion=Fusion.OPAQUE,
        schedule="scan", promotion=Promotion.COMMON, vjp=rule if "f" in kinds else DISCRETE,
        samples=tuple(each for each in _SAMPLES if each.args[0].dtype.kind in kinds), doc=doc,
    )


#: By the name of the elementwise op.
RUNNING: dict[str, Op] = {
    step.name: _running(step, kinds, doc)
    for step, kinds, doc in (
        (maximum, "biuf", "the largest element so far along an axis; NaN once there was one"),
        (minimum, "biuf", "the smallest element so far along an axis; NaN once there was one"),
        (fmax, "biuf", "the largest element so far along an axis, NaNs left out"),
        (fmin, "biuf", "the smallest element so far along an axis, NaNs left out"),
        (logaddexp, "f", "the logarithm of the running sum of exponentials along an axis"),
        (bitwise_and, "biu", "the bits that all elements so far have along an axis"),
        (bitwise_or, "biu", "the bits that some element so far has along an axis"),
        (bitwise_xor, "biu", "the bits that an odd number of elements so far has along an axis"),
    )
}


def step_of(scan: str) -> str | None:
    """The name of the elementwise op that a scan of this module repeats; None for other scans."""
    return scan.removeprefix(_PREFIX) if scan.startswith(_PREFIX) else None


def identity(step: str, dtype: DType) -> Any:
    """What changes no element that the op of this name joins it with."""
    if step in ("bitwise_or", "bitwise_xor"):
        return False if dtype.kind == "b" else 0
    if dtype.kind == "f":
        return {"minimum": np.inf, "fmin": np.nan, "fmax": np.nan}.get(step, -np.inf)
    if dtype.kind == "b":
        return step in ("minimum", "fmin", "bitwise_and")
    if step == "bitwise_and":
        return int(~dtype.numpy.type(0))
    bounds = np.iinfo(dtype.numpy)
    return int(bounds.max if step in ("minimum", "fmin") else bounds.min)
