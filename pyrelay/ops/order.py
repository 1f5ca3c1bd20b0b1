"""The order of elements.

In: lines of numbers. Out: where sorting would take the elements of each line from; where others
belong among those of a sorted one; lines in which some elements stand where sorting puts them. What
is sorted is picked by these places, so that its derivative is that of picking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.op import OPS, Fusion, Op, Promotion, RelationError, Sample, define
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.elementwise import DISCRETE
from pyrelay.ops.index import scatter_update
from pyrelay.ops.relations import require_kind, tensors
from pyrelay.ops.shape import reshape


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


def _sorted_type(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    (places,) = _ordered(args, attrs)
    (x,) = tensors(args)
    assert isinstance(places, TensorType)
    return (TensorType(x.dtype, places.shape),)


def _cotangent_of_sort(y: Handle, g: Handle, x: Handle) -> tuple[Handle]:
    """It goes to where the elements came from, all of which are elements of the result."""
    places = among_all(argsort(x))
    nothing = g.builder.full(0, places.shape, g.dtype)
    found = scatter_update(nothing, reshape(g, shape=places.shape), places, axes=(0,))
    return (reshape(found, shape=x.shape),)


def among_all(places: Handle) -> Handle:
    """Places in each of several lines as places among the elements of all lines, in one row."""
    lines, length = places.shape
    if lines == 1:
        return reshape(places, shape=(length,))
    build = places.builder
    first = build.call(OPS["iota"], size=lines, dtype=types.i64) * build.extent(length)
    placed = places + reshape(first, shape=(lines, 1))
    return reshape(placed, shape=(dims.multiply(lines, length),))


sort: Op = define(
    "sort", relation=_sorted_type, numpy=lambda x: np.sort(x, axis=1), fusion=Fusion.OPAQUE,
    vjp=_cotangent_of_sort, schedule="sort",
    samples=(
        Sample((np.array([[3.0, -1.5, 0.25, 7.0], [2.0, 1.0, -4.0, 0.5]]),)),
        Sample((_TIES,), {}, False), Sample((np.array([[3, -1, 3, 7, -9]]),), {}, False),
        Sample((_TIES.astype("f4"),), {}, False), Sample((_TIES[:, :0],), {}, False),
        Sample((np.array([[True, False, True, False]]),), {}, False),
        Sample((np.arange(12, dtype="u1").reshape(3, 4)[:, ::-1].copy(),), {}, False),
    ),
    doc="each line sorted, NaNs last; zeros of both signs are equal",
)


def _partitioned_type(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    x, places = tensors(args)
    if places.dtype is not types.i64 or places.rank != 2:
        raise RelationError(f"takes places of elements in each line, and got {places}", arg=1)
    if places.shape[0] not in (1, x.shape[0]):
        raise RelationError(f"takes places in one line or in each, and got {places}", arg=1)
    return _sorted_type((x,), attrs)


def _cotangent_of_partition(y: Handle, g: Handle, x: Handle, places: Handle) -> tuple[Any, ...]:
    """What is at a place of the sorted line comes from one place of `x` and is at one of `y`."""
    given, found = among_all(argsort(x)), among_all(argsort(y))
    in_order = OPS["gather"](reshape(g, shape=found.shape), found, axes=(0,))
    nothing = g.builder.full(0, given.shape, g.dtype)
    return reshape(scatter_update(nothing, in_order, given, axes=(0,)), shape=x.shape), None


_FOUR = np.array([[3.0, -1.5, 0.25, 7.0], [2.0, 1.0, -4.0, 0.5]])

# Any order that has these elements at their places will do; the reference's is that of all.
partition: Op = define(
    "partition", relation=_partitioned_type, numpy=lambda x, places: np.sort(x, axis=1),
    fusion=Fusion.OPAQUE, vjp=_cotangent_of_partition, schedule="sort",
    samples=(
        Sample((_FOUR, np.array([[1, 2]]))), Sample((_FOUR, np.array([[0], [3]]))),
        Sample((_TIES, np.array([[0, 1, 2, 3, 4, 5]])), {}, False),
        Sample((np.array([[3, -1, 3, 7, -9]]), np.arange(5)[None]), {}, False),
        Sample((_TIES.astype("f4"), np.arange(12).reshape(2, 6) % 6), {}, False),
        Sample((_TIES[:, :0], np.zeros((1, 0), int)), {}, False),
    ),
    doc="each line in an order in which the elements at these rising places are those of the "
    "sorted line, no greater ones before and no smaller ones behind; NaNs last",
)


def _searched(args: tuple[Type, ...], attrs: Mapping[str, Any]) -> tuple[Type, ...]:
    a, v = tensors(args)
    require_kind((a, v), "biuf")
    if a.rank != 1:
        raise RelationError(f"looks among the elements of one axis, and got {a}", arg=0)
    return (TensorType(types.i64, v.shape),)


def _before(s: Any, a: Any, b: Any) -> Any:
    """Whether a number stands before another one where NaNs stand last."""
    less = s.less(a, b)
    if a.dtype.kind != "f":
        return less
    is_nan = s.not_equal(b, b)
    return s.logical_or(less, s.logical_and(is_nan, s.equal(a, a)))


_BITS = {types.f32: types.i32, types.f64: types.i64}


def _below(s: Any, value: Any) -> Any:
    """The greatest number below another one; inf below NaN, which stands behind all numbers. Below
    -inf there is NaN, which nothing is compared with."""
    whole = _BITS[value.dtype]
    bits = s.same_bits(value, whole)
    down = bits + s.cast(s.where(s.less(value, 0), 1, -1), whole)
    least = s.same_bits(s.const(1, whole), value.dtype)
    found = s.where(s.equal(value, 0), s.negative(least), s.same_bits(down, value.dtype))
    return s.where(s.not_equal(value, value), math.inf, found)


def _in_doubles(s: Any, a: Any, value: Any) -> Any:
    """A number and the elements that it is looked for among, which may be at equal distances."""
    return s.cast(value, types.f64), lambda k: s.cast(a((k,)), types.f64)


def _searched_element(s: Any, i: Any, a: Any, v: Any, *, right: bool) -> Any:
    value = v(i)
    if value.dtype in _BITS:  # one comparison at each step, whatever of it is NaN
        bound = value if right else _below(s, value)
        place = s.bisect(
            a.shape[0], lambda k: s.less_equal(a((k,)), bound), _in_doubles(s, a, value)
        )
        if not right:
            return place
        return s.where(s.not_equal(value, value), s.extent(a.shape[0]), place)

    def beyond(k: Any) -> Any:
        other = a((k,))
        if right:
            return s.logical_not(_before(s, value, other))
        return _before(s, other, value)

    if value.dtype.kind == "f":
        return s.bisect(a.shape[0], beyond)
    return s.bisect(a.shape[0], beyond, _in_doubles(s, a, value))


_AMONG = np.array([-1.0, 0.0, 0.0, 1.5, 1.5, 1.5, 2.0, np.inf, np.nan, np.nan])

search: Op = define(
    "search", relation=_searched, fusion=Fusion.REDUCTION, vjp=DISCRETE,
    promotion=Promotion.COMMON,
    numpy=lambda a, v, *, right: np.searchsorted(a, v, "right" if right else "left"),
    element=_searched_element,
    samples=(
        Sample((_AMONG, _TIES), {"right": False}, False),
        Sample((_AMONG, _TIES), {"right": True}, False),
        Sample((_AMONG.astype("f4"), _TIES[0].astype("f4")), {"right": True}, False),
        Sample((np.array([-3, 2, 2, 7]), np.array([[-9, 2], [3, 8]])), {"right": False}, False),
        Sample((np.array([2, 2, 200], "u1"), np.array([0, 2, 255], "u1")), {"right": True}, False),
        Sample((np.array([False, True, True]), np.array([True, False])), {"right": False}, False),
        Sample((_AMONG[:0], _TIES), {"right": False}, False),
    ),
    doc="places among sorted numbers, NaNs last, before those that are equal or behind them",
)
