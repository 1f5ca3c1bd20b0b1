"""Many elements to one along axes, and running sums along one.

In: an array; `axes` (a tuple of non-negative ints) and `keepdims`. Out: NumPy's reductions. Sums
and products of bools and integers are taken in 64 bits. The cotangent of an extreme is split evenly
among equal elements; the derivative of a product is right at zeros too, at any order, because it is
made of products of the other elements and never divides.

`linear_scan` is the first-order recurrence h[k] = a[k] * h[k-1] + b[k] with h[-1] = 0 (Blelloch,
"Prefix sums and their applications", 1990, section 1.4). It is the adjoint of `cumprod`, of the
scans of `ops.running`, and its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.op import Fusion, Op, Promotion, RelationError, Sample, Vjp, define
from pyrelay.ir.types import DType, TensorType, Type
from pyrelay.ops.arithmetic import cast
from pyrelay.ops.elementwise import DISCRETE, times
from pyrelay.ops.logic import equal, masked
from pyrelay.ops.relations import (
    axes_in,
    broadcast,
    common_dtype,
    require_kind,
    tensors,
    truth,
    unchanged,
    without_axes,
)
from pyrelay.ops.samples import floats, spread
from pyrelay.ops.shape import (
    broadcast_to,
    concatenate,
    expand_dims,
    inverse,
    reshape,
    slice_,
    transpose,
)

Attributes = Mapping[str, Any]
Axes = tuple[int, ...]
_NO_ORDER = "use the real parts or the absolute values of complex numbers."


def _axes(*axes: int, keepdims: bool = False) -> dict[str, Any]:
    return {"axes": axes, "keepdims": keepdims}


_SAMPLES = (
    floats((4,), attrs=_axes(0)), floats((3, 4), attrs=_axes(0)), floats((3, 4), attrs=_axes(1)),
    floats((3, 4), attrs=_axes(0, 1)), floats((2, 3, 4), attrs=_axes(0, 2, keepdims=True)),
    floats((2, 3), attrs=_axes()), Sample((np.arange(12).reshape(3, 4),), _axes(1), False),
    Sample((np.array([[250, 3], [9, 255]], "u1"),), _axes(0), False),
    Sample((np.array([[True, False], [True, True]]),), _axes(1), False),
    Sample((spread((3, 4)).astype("f4"),), _axes(1), False),
    Sample((np.array([1.0, np.nan, -np.inf]),), _axes(0), False),
)


def wide(dtype: DType) -> DType:
    """The type in which NumPy adds and multiplies elements: 64 bits for bools and integers."""
    return types.u64 if dtype.kind == "u" else types.i64 if dtype.kind in "bi" else dtype


def _reduced(
    kinds: str, result: Callable[[DType], DType], empty: str | None = None
) -> Callable[..., Any]:
    """Relation of a reduction; `empty` is NumPy's message where no element means no answer."""

    def relation(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
        (ty,) = tensors(args)
        require_kind((ty,), kinds, _NO_ORDER)
        axes = axes_in(attrs["axes"], ty.rank)
        if empty is not None and any(ty.shape[a] == 0 for a in axes):
            raise RelationError(f"cannot reduce {ty}: {empty}", arg=0, kind="value")
        return (TensorType(result(ty.dtype), without_axes(ty.shape, axes, attrs["keepdims"])),)

    return relation


def kept(value: Handle, axes: Axes, keepdims: bool) -> Handle:
    """A reduced value with the reduced axes back as extents 1."""
    if keepdims or not axes:
        return value
    expanded: Handle = expand_dims(value, axes=axes)
    return expanded


def _inside(i: Sequence[Any], axes: Axes, keepdims: bool, r: Sequence[Any]) -> tuple[Any, ...]:
    """Index of the element that stands at `r` in the reduced axes."""
    rank = len(i) if keepdims else len(i) + len(axes)
    rest = iter(i)
    index: list[Any] = []
    for axis in range(rank):
        if axis in axes:
            index.append(r[axes.index(axis)])
            if keepdims:
                next(rest)
        else:
            index.append(next(rest))
    return tuple(index)


def _reduction(
    name: str, numpy: Any, step: str, vjp: Vjp, *, kinds: str, result: Callable[[DType], DType],
    doc: str, empty: str | None = None,
) -> Op:
    def element(s: Any, i: Any, x: Any, *, axes: Axes, keepdims: bool) -> Any:
        dtype = s.result[0].dtype

        def one(r: Sequence[Any]) -> Any:
            value = x(_inside(i, axes, keepdims, r))
            return value if x.dtype == dtype else s.cast(value, dtype)

        return s.reduce(step, tuple(x.shape[a] for a in axes), one, dtype)

    def meaning(x: Any, *, axes: Axes, keepdims: bool) -> Any:
        with np.errstate(all="ignore"):
            return numpy(np.asarray(x), axis=axes, keepdims=keepdims)[()]

    return define(
        name, relation=_reduced(kinds, result, empty), numpy=meaning, fusion=Fusion.REDUCTION,
        vjp=vjp, element=element, samples=_SAMPLES, doc=doc,
    )


def _cotangent_of_sum(y: Handle, g: Handle, x: Handle, *, axes: Axes, keepdims: bool) -> Any:
    return (broadcast_to(kept(g, axes, keepdims), shape=x.shape),)


def _cotangent_of_extreme(y: Handle, g: Handle, x: Handle, *, axes: Axes, keepdims: bool) -> Any:
    ties = equal(x, kept(y, axes, keepdims))
    count = sum_(cast(ties, dtype=g.dtype, weak=False), axes=axes, keepdims=True)
    return (masked(ties, kept(g, axes, keepdims) / count),)


def _cotangent_of_product(y: Handle, g: Handle, x: Handle, *, axes: Axes, keepdims: bool) -> Any:
    """g times the product of the other elements: of those before times of those after."""
    if not axes:
        return (g,)
    rest = tuple(a for a in range(x.rank) if a not in axes)
    order = rest + axes
    ordered = transpose(x, axes=order)
    flat = reshape(
        ordered, shape=(*ordered.shape[: len(rest)], dims.product(ordered.shape[len(rest) :]))
    )
    others = _before(flat, len(rest), False) * _before(flat, len(rest), True)
    back = transpose(reshape(others, shape=ordered.shape), axes=inverse(order))
    return (times(kept(g, axes, keepdims), back),)


def _before(x: Handle, axis: int, reverse: bool) -> Handle:
    """Per element the product of those before it along the axis (after it if `reverse`)."""
    running = cumprod(x, axis=axis, reverse=reverse)
    return shifted(running, 1, axis, reverse)


def shifted(x: Handle, first: float | bool, axis: int, reverse: bool = False) -> Handle:
    """The elements moved one place along the axis, from the other end if `reverse`.

    `first` enters where there was no element; the one beyond the end is lost.
    """
    one = tuple(1 if a == axis else d for a, d in enumerate(x.shape))
    ones = x.builder.full(first, one, x.dtype)
    both = concatenate(*((x, ones) if reverse else (ones, x)), axis=axis)
    starts = tuple(1 if reverse and a == axis else 0 for a in range(x.rank))
    moved: Handle = slice_(both, starts=starts, sizes=x.shape, steps=(1,) * x.rank)
    return moved


sum_ = _reduction(
    "sum", np.sum, "add", _cotangent_of_sum, kinds="biufc", result=wide, doc="the sum",
)
prod = _reduction(
    "prod", np.prod, "multiply", _cotangent_of_product, kinds="biufc", result=wide,
    doc="the product",
)
max_ = _reduction(
    "max", np.max, "maximum", _cotangent_of_extreme, kinds="biuf", result=unchanged,
    doc="the largest; NaN if there is one",
    empty="zero-size array to reduction operation maximum which has no identity",
)
min_ = _reduction(
    "min", np.min, "minimum", _cotangent_of_extreme, kinds="biuf", result=unchanged,
    doc="the smallest; NaN if there is one",
    empty="zero-size array to reduction operation minimum which has no identity",
)
any_ = _reduction(
    "any", np.any, "logical_or", DISCRETE, kinds="biufc", result=truth, doc="is one true",
)
all_ = _reduction(
    "all", np.all, "logical_and", DISCRETE, kinds="biufc", result=truth, doc="are all true",
)


def _position(name: str, numpy: Any, kind: str, doc: str) -> Op:
    """argmax, argmin: along one axis, or the position in C order over all axes."""
    empty = f"attempt to get {name} of an empty sequence"
    reduced = _reduced("biuf", lambda dtype: types.i64, empty)

    def relation(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
        (ty,) = tensors(args)
        axes = attrs["axes"]
        if len(axes) != 1 and tuple(axes) != tuple(range(ty.rank)):
            raise RelationError(f"takes one axis, or all, not {axes}", kind="value")
        return tuple(reduced(args, attrs))

    def meaning(x: Any, *, axes: Axes, keepdims: bool) -> Any:
        return numpy(x, axis=axes[0] if len(axes) == 1 else None, keepdims=keepdims)[()]

    def element(s: Any, i: Any, x: Any, *, axes: Axes, keepdims: bool) -> Any:
        return s.argreduce(
            kind, tuple(x.shape[a] for a in axes), lambda r: x(_inside(i, axes, keepdims, r))
        )

    return define(
        name, relation=relation, numpy=meaning, fusion=Fusion.REDUCTION, vjp=DISCRETE,
        element=element, doc=doc,
        samples=(
            floats((5,), attrs=_axes(0)), floats((3, 4), attrs=_axes(1)),
            floats((3, 4), attrs=_axes(0, keepdims=True)), floats((3, 4), attrs=_axes(0, 1)),
            Sample((np.array([1, 3, 3]),), _axes(0)), Sample((np.array([True, False]),), _axes(0)),
            Sample((np.array([1.0, np.nan, 5.0, np.nan]),), _axes(0)),
        ),
    )


argmax = _position("argmax", np.argmax, "max", "position of the first largest element, or NaN")
argmin = _position("argmin", np.argmin, "min", "position of the first smallest element, or NaN")

# -- running sums -------------------------------------------------------------------------------


def _scanned(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    operands = tensors(args)
    dtype = wide(common_dtype(operands))
    if dtype != operands[0].dtype:
        raise RelationError(f"runs over {dtype} here, not {operands[0]}", arg=0, kind="type")
    shape = broadcast(operands)
    axes_in((attrs["axis"],), len(shape))
    return (TensorType(dtype, shape),)


def along(step: Callable[..., Any]) -> Callable[..., Any]:
    """The meaning of a scan from NumPy's, which knows one direction only."""

    def meaning(*args: Any, axis: int, reverse: bool) -> Any:
        operands = [np.flip(a, axis) if reverse else a for a in np.broadcast_arrays(*args)]
        with np.errstate(all="ignore"):
            result = step(*operands, axis)
        return np.ascontiguousarray(np.flip(result, axis) if reverse else result)

    return meaning


def _linear_scan(a: Any, b: Any, axis: int) -> Any:
    result = np.array(b)
    rows = np.moveaxis(result, axis, 0)
    factors = np.moveaxis(a, axis, 0)
    for k in range(1, len(rows)):
        rows[k] += factors[k] * rows[k - 1]
    return result


def _scan(name: str, numpy: Any, vjp: Any, samples: Sequence[Sample], doc: str) -> Op:
    return define(
        name, relation=_scanned, numpy=along(numpy), fusion=Fusion.OPAQUE, schedule="scan",
        promotion=Promotion.COMMON, vjp=vjp, samples=samples, doc=doc,
    )


def _running(axis: int, reverse: bool = False) -> dict[str, Any]:
    return {"axis": axis, "reverse": reverse}


def _cotangent_of_cumprod(y: Handle, g: Handle, x: Handle, *, axis: int, reverse: bool) -> Any:
    """Before x[k] stands a factor of all; after it a recurrence from the other end gathers g."""
    following = shifted(x, 0, axis, not reverse)
    gathered = linear_scan(following, g, axis=axis, reverse=not reverse)
    return (shifted(y, 1, axis, reverse) * gathered,)


def _cotangents_of_linear_scan(
    y: Handle, g: Handle, a: Handle, b: Handle, *, axis: int, reverse: bool
) -> Any:
    following = shifted(a, 0, axis, not reverse)
    gathered = linear_scan(following, g, axis=axis, reverse=not reverse)
    return gathered * shifted(y, 0, axis, reverse), gathered


def _cotangents_of_steady_scan(
    y: Handle, g: Handle, a: Handle, b: Handle, *, axis: int, reverse: bool
) -> Any:
    following = shifted(a, 0, axis, not reverse)
    gathered = steady_scan(following, g, axis=axis, reverse=not reverse)
    return gathered * shifted(y, 0, axis, reverse), gathered


_RUNNING = (
    floats((5,), attrs=_running(0)), floats((3, 4), attrs=_running(0, True)),
    floats((3, 4), attrs=_running(1)), Sample((np.arange(4),), _running(0), False),
    Sample((np.array([1.5, 0.0, 2.0, 0.0, 3.0]),), _running(0)),
)
cumsum: Op = _scan(
    "cumsum", np.cumsum,
    lambda y, g, x, *, axis, reverse: (cumsum(g, axis=axis, reverse=not reverse),), _RUNNING,
    "the running sum along an axis, from its end if `reverse`",
)
cumprod = _scan(
    "cumprod", np.cumprod, _cotangent_of_cumprod, _RUNNING,
    "the running product along an axis, from its end if `reverse`",
)
_RECURRENCES = (
    floats((5,), (5,), attrs=_running(0)), floats((3, 4), (3, 4), attrs=_running(1, True)),
    floats((3, 4), (3, 4), attrs=_running(0)),
)
linear_scan = _scan(
    "linear_scan", _linear_scan, _cotangents_of_linear_scan, _RECURRENCES,
    "h[k] = a[k] * h[k-1] + b[k] along an axis, h[-1] = 0; from its end if `reverse`",
)
steady_scan = _scan(
    "steady_scan", _linear_scan, _cotangents_of_steady_scan, _RECURRENCES,
    "`linear_scan` with factors a from -1 to 1: no product of them leaves that range",
)
