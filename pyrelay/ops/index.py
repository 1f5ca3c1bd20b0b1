"""Elements and parts of arrays: read, replaced, added to. All functional: x itself never changes.

In: an array, positions and new elements. Out: the elements, or the array with them. Whether the
result takes over x's memory is decided by the planner. `index` positions are checked before
(`check_index`) and non-negative; `gather` and the scatters take NumPy's integer arrays, negative
ones counted from the end, and raise IndexError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay.ir import types
from pyrelay.ir.build import Handle, constant
from pyrelay.ir.op import (
    OPS,
    Effect,
    Fusion,
    Op,
    RelationError,
    Sample,
    define,
    not_differentiable,
)
from pyrelay.ir.types import TensorType, Type
from pyrelay.ops.logic import equal, where
from pyrelay.ops.relations import (
    axes_in,
    broadcast,
    require_kind,
    require_shape,
    tensors,
    without_axes,
)
from pyrelay.ops.samples import floats, spread
from pyrelay.ops.shape import all_of, index_of_slice, reshape, slice_, slice_shape

Attributes = Mapping[str, Any]
OUT_OF_BOUNDS = ("index ", 0, " is out of bounds for axis ", 1, " with size ", 2)


def _require_same_dtype(x: TensorType, v: TensorType) -> None:
    if x.dtype != v.dtype:
        raise RelationError(f"cannot store {v} in {x}", arg=1, kind="type")


def _zero(handle: Handle) -> Handle:
    return handle.builder.handle(constant(0, TensorType(handle.dtype)))


# -- one position -------------------------------------------------------------------------------


def _element_shape(x: TensorType, positions: Sequence[TensorType], attrs: Attributes) -> Any:
    axes = axes_in(attrs["axes"], x.rank)
    if len(axes) != len(positions):
        raise RelationError(f"needs one position per axis {axes}", kind="value")
    require_kind(positions, "iu")
    if any(p.rank for p in positions):
        raise RelationError("takes single integers as positions", kind="type")
    return without_axes(x.shape, axes)


def _read_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x, *positions = tensors(args)
    return (TensorType(x.dtype, _element_shape(x, positions, attrs)),)


def _written_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x, v, *positions = tensors(args)
    _require_same_dtype(x, v)
    require_shape(v, _element_shape(x, positions, attrs), 1, "a place")
    return (x,)


def _at(rank: int, axes: Sequence[int], positions: Sequence[Any]) -> tuple[Any, ...]:
    """NumPy's index with `positions` at `axes` and everything elsewhere."""
    index: list[Any] = [slice(None)] * rank
    for axis, position in zip(axes, positions, strict=True):
        index[axis] = position
    return tuple(index)


def _stored(x: Any, index: Any, v: Any, add: bool) -> Any:
    result = np.array(x)
    with np.errstate(all="ignore"):
        result[index] = result[index] + v if add else v
    return result


def _element_index(i: Sequence[Any], axes: Sequence[int], new: Callable[[int], Any]) -> Any:
    """The index with `new(k)` at axes[k]."""
    rest = iter(i)
    return tuple(
        new(axes.index(a)) if a in axes else next(rest) for a in range(len(i) + len(axes))
    )


def _here(s: Any, i: Any, positions: Any, axes: Any) -> tuple[Any, Any]:
    """Whether element `i` lies at the positions, and its index without those axes."""
    tests = [s.equal(i[a], p(())) for a, p in zip(axes, positions, strict=True)]
    return all_of(s, tests), tuple(e for k, e in enumerate(i) if k not in axes)


def _index_update_element(s: Any, i: Any, x: Any, v: Any, *positions: Any, axes: Any) -> Any:
    if not axes:
        return v(i)
    here, rest = _here(s, i, positions, axes)
    return s.choose(here, lambda: v(rest), lambda: x(i))


def _index_add_element(s: Any, i: Any, x: Any, v: Any, *positions: Any, axes: Any) -> Any:
    if not axes:
        return s.add(x(i), v(i))
    here, rest = _here(s, i, positions, axes)
    return s.choose(here, lambda: s.add(x(i), v(rest)), lambda: x(i))


def _nothing(positions: Sequence[Any]) -> tuple[None, ...]:
    return (None,) * len(positions)


def _cotangents_of_index_update(
    y: Handle, g: Handle, x: Handle, v: Handle, *positions: Handle, axes: Any
) -> tuple[Any, ...]:
    of_v = index(g, *positions, axes=axes)  # read first, so that the zero is stored in place
    return index_update(g, _zero(g), *positions, axes=axes), of_v, *_nothing(positions)


index = define(
    "index", relation=_read_type,
    numpy=lambda x, *p, axes: np.asarray(x)[_at(np.ndim(x), axes, p)][()],
    fusion=Fusion.INJECTIVE,
    vjp=lambda y, g, x, *p, axes: (
        lambda total: index_add(total, g, *p, axes=axes), *_nothing(p)
    ),
    element=lambda s, i, x, *p, axes: x(_element_index(i, axes, lambda k: p[k](()))),
    samples=(
        Sample((spread((5,)), 2), {"axes": (0,)}), Sample((spread((3, 4)), 1), {"axes": (1,)}),
        Sample((spread((3, 4)), 2, 0), {"axes": (0, 1)}),
        Sample((spread((2, 3, 4)), 1, np.int32(3)), {"axes": (0, 2)}),
    ),
    doc="the elements at the positions, whose axes vanish",
)
index_update: Op = define(
    "index_update", relation=_written_type,
    numpy=lambda x, v, *p, axes: _stored(x, _at(np.ndim(x), axes, p), v, add=False),
    fusion=Fusion.INJECTIVE,
    vjp=_cotangents_of_index_update,
    element=_index_update_element,
    samples=(
        Sample((spread((5,)), np.float64(0.25), 2), {"axes": (0,)}),
        Sample((spread((3, 4)), spread((3,)), 1), {"axes": (1,)}),
        Sample((spread((3, 4)), np.float64(0.5), 1), {"axes": (0,)}),
        Sample((spread((3, 4)), np.float64(0.5), 2, 0), {"axes": (0, 1)}),
    ),
    doc="x with v (broadcast) at the positions", linear=True,
)
index_add: Op = define(
    "index_add", relation=_written_type,
    numpy=lambda x, v, *p, axes: _stored(x, _at(np.ndim(x), axes, p), v, add=True),
    fusion=Fusion.INJECTIVE,
    vjp=lambda y, g, x, v, *p, axes: (g, index(g, *p, axes=axes), *_nothing(p)),
    element=_index_add_element,
    samples=(
        Sample((spread((5,)), np.float64(0.25), 2), {"axes": (0,)}),
        Sample((spread((2, 3, 4)), spread((3,)), 1, 3), {"axes": (0, 2)}),
    ),
    doc="x with v (broadcast) added at the positions", linear=True,
)

# -- a slice ------------------------------------------------------------------------------------


def _slice_written(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x, v = tensors(args)
    _require_same_dtype(x, v)
    require_shape(v, slice_shape(x, attrs), 1, "a slice")
    return (x,)


def _slice_place(
    s: Any, i: Any, starts: Any, sizes: Any, steps: Any, shape: Any
) -> tuple[list[Any], tuple[Any, ...]]:
    """Tests that element `i` lies in the slice, and its index there."""
    tests, place = [], []
    for index_, start, size, step, extent in zip(i, starts, sizes, steps, shape, strict=True):
        if (start, step) == (0, 1) and size == extent:
            place.append(index_)
            continue
        offset = index_ if start == 0 else index_ - s.extent(start)
        k = offset if step == 1 else s.floor_divide(offset, s.extent(step))
        if step != 1:
            tests.append(s.equal(k * s.extent(step), offset))
        tests += [k >= s.extent(0), k < s.extent(size)]
        place.append(k)
    return tests, tuple(place)


def _slice_update_element(s: Any, i: Any, x: Any, v: Any, **part: Any) -> Any:
    tests, place = _slice_place(s, i, shape=x.shape, **part)
    if not tests:
        return v(place)
    return s.choose(all_of(s, tests), lambda: v(place), lambda: x(i))


def _slice_add_element(s: Any, i: Any, x: Any, v: Any, **part: Any) -> Any:
    tests, place = _slice_place(s, i, shape=x.shape, **part)
    if not tests:
        return s.add(x(i), v(place))
    return s.choose(all_of(s, tests), lambda: s.add(x(i), v(place)), lambda: x(i))


def _cotangents_of_slice_update(
    y: Handle, g: Handle, x: Handle, v: Handle, **part: Any
) -> tuple[Any, ...]:
    of_v = slice_(g, **part)
    return slice_update(g, _zero(g), **part), of_v


_PARTS: tuple[Sample, ...] = (
    floats((7,), (3,), attrs={"starts": (1,), "sizes": (3,), "steps": (2,)}),
    floats((5, 4), (5, 2), attrs={"starts": (4, 1), "sizes": (5, 2), "steps": (-1, 1)}),
    floats((6,), (), attrs={"starts": (5,), "sizes": (3,), "steps": (-2,)}),
    floats((2, 3), (3,), attrs={"starts": (0, 0), "sizes": (2, 3), "steps": (1, 1)}),
)
slice_update: Op = define(
    "slice_update", relation=_slice_written,
    numpy=lambda x, v, **part: _stored(x, index_of_slice(**part), v, add=False),
    fusion=Fusion.INJECTIVE,
    vjp=_cotangents_of_slice_update,
    element=_slice_update_element, samples=_PARTS, doc="x with v (broadcast) in a slice",
    linear=True,
)
def _cotangents_of_commit(
    y: Handle, g: Handle, x: Handle, v: Handle, **part: Any
) -> tuple[Any, ...]:
    return None, g


commit: Op = define(
    "commit", relation=_slice_written, numpy=lambda x, v, **part: np.array(v),
    fusion=Fusion.INJECTIVE, vjp=_cotangents_of_commit, element=_slice_update_element,
    samples=(
        floats((7,), (7,), attrs={"starts": (0,), "sizes": (7,), "steps": (1,)}),
        floats((5, 4), (5, 4), attrs={"starts": (0, 0), "sizes": (5, 4), "steps": (1, 1)}),
    ),
    doc="v, from here on what the array x of the caller contains, where it looks at it",
)
slice_add = define(
    "slice_add", relation=_slice_written,
    numpy=lambda x, v, **part: _stored(x, index_of_slice(**part), v, add=True),
    fusion=Fusion.INJECTIVE,
    vjp=lambda y, g, x, v, **part: (g, slice_(g, **part)),
    element=_slice_add_element, samples=_PARTS,
    doc="x with v (broadcast) added in a slice", linear=True,
)

# -- integer arrays -----------------------------------------------------------------------------


def _contiguous(axes: Sequence[int]) -> bool:
    return list(axes) == list(range(axes[0], axes[0] + len(axes)))


def _gathered_shape(x: TensorType, indices: Sequence[TensorType], attrs: Attributes) -> Any:
    """NumPy's rule: the index dimensions stand in place of adjacent axes, else in front."""
    axes = axes_in(attrs["axes"], x.rank)
    if not axes or len(axes) != len(indices) or list(axes) != sorted(axes):
        raise RelationError(f"needs one index array per axis, in order, not {axes}", kind="value")
    require_kind(indices, "iu", "convert the index to integers with astype(int).")
    rest = without_axes(x.shape, axes)
    at = axes[0] if _contiguous(axes) else 0
    return rest[:at] + broadcast(indices) + rest[at:]


def _gathered(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x, *indices = tensors(args)
    return (TensorType(x.dtype, _gathered_shape(x, indices, attrs)),)


def _scattered(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    x, v, *indices = tensors(args)
    _require_same_dtype(x, v)
    require_shape(v, _gathered_shape(x, indices, attrs), 1, "a selection")
    return (x,)


def _gather(x: Any, *indices: Any, axes: Any) -> Any:
    at = _at(np.ndim(x), axes, tuple(map(np.asarray, indices)))
    return np.asarray(x)[at][()]


def _gather_element(s: Any, i: Any, x: Any, *indices: Any, axes: Any) -> Any:
    return _gathered_element(
        s, i, x, indices, axes, lambda p, k: _wrapped(s, p, x.shape[axes[k]], axes[k])
    )


def _gather_inside_element(s: Any, i: Any, x: Any, *indices: Any, axes: Any) -> Any:
    return _gathered_element(s, i, x, indices, axes, lambda p, k: p)


def _gathered_element(
    s: Any, i: Any, x: Any, indices: Sequence[Any], axes: Any, looked_at: Callable[[Any, int], Any]
) -> Any:
    """An element of x; `looked_at` makes a place of the position along the k-th of the axes."""
    count = max(p.rank for p in indices)
    at = axes[0] if _contiguous(axes) else 0
    within = i[at : at + count]
    # A place that is the same for all elements is looked at with each of them: there may be none.
    chosen = [s.of_elements(p(within), within[count - p.rank :], p.shape) for p in indices]
    return x(_element_index(
        (*i[:at], *i[at + count :]), axes,
        lambda k: looked_at(s.cast(chosen[k], types.i64), k),
    ))


def _wrapped(s: Any, position: Any, size: Any, axis: int) -> Any:
    """The position counted from the end if negative; raises IndexError if there is none."""
    zero, extent = s.extent(0), s.extent(size)
    beyond = s.logical_or(position < zero - extent, position >= extent)
    s.fail("IndexError", OUT_OF_BOUNDS, beyond, position, s.extent(axis), extent)
    return s.where(position < zero, position + extent, position)


def _scatter_update(x: Any, v: Any, *indices: Any, axes: Any) -> Any:
    result = np.array(x)
    result[_at(result.ndim, axes, tuple(map(np.asarray, indices)))] = v
    return result


def _scatter_add(x: Any, v: Any, *indices: Any, axes: Any) -> Any:
    result = np.array(x)
    np.add.at(result, _at(result.ndim, axes, tuple(map(np.asarray, indices))), v)
    return result


def _cotangents_of_scatter_update(
    y: Handle, g: Handle, x: Handle, v: Handle, *indices: Handle, axes: Any
) -> tuple[Any, ...]:
    """Of several writers of one element the last has its cotangent, the others have none."""
    build = g.builder
    taken = gather(g, *indices, axes=axes)
    count = build.call(OPS["iota"], size=taken.type.size, dtype=types.i64)
    writer = reshape(count, shape=taken.shape)
    nobody = build.full(-1, x.shape, types.i64)
    last = gather(scatter_update(nobody, writer, *indices, axes=axes), *indices, axes=axes)
    cleared = scatter_update(g, _zero(g), *indices, axes=axes)
    return cleared, where(equal(last, writer), taken, 0), *_nothing(indices)


_ROWS, _COLUMNS = np.array([2, 0, 2]), np.array([1, -1, 1])
gather = define(
    "gather", relation=_gathered, numpy=_gather, fusion=Fusion.INJECTIVE, effect=Effect.RAISES,
    vjp=lambda y, g, x, *p, axes: (
        lambda total: scatter_add(total, g, *p, axes=axes), *_nothing(p)
    ),
    element=_gather_element,
    samples=(
        Sample((spread((4,)), np.array([3, 0, -4])), {"axes": (0,)}),
        Sample((spread((3, 4)), np.array([[1, 2], [0, 1]])), {"axes": (1,)}),
        Sample((spread((3, 4)), _ROWS, _COLUMNS), {"axes": (0, 1)}),
        Sample((spread((3, 2, 4)), _ROWS[:, None], _COLUMNS), {"axes": (0, 2)}),
        Sample((spread((2, 3, 4)), _ROWS, _COLUMNS), {"axes": (1, 2)}),
        Sample((spread((4,)), np.array([1, 2], "u1")), {"axes": (0,)}),
    ),
    doc="x[..., indices, ...]; negative indices count from the end, IndexError beyond",
)
gather_inside = define(
    "gather_inside", relation=_gathered, numpy=_gather, fusion=Fusion.INJECTIVE,
    vjp=lambda y, g, x, *p, axes: (
        lambda total: scatter_add(total, g, *p, axes=axes), *_nothing(p)
    ),
    element=_gather_inside_element,
    samples=(
        Sample((spread((4,)), np.array([3, 0, 2])), {"axes": (0,)}),
        Sample((spread((3, 2, 4)), np.array([[2], [0]]), np.array([1, 3])), {"axes": (0, 2)}),
    ),
    doc="`gather` at positions of which the program knows that they lie in their axes",
)
_SCATTERED: tuple[Sample, ...] = (
    Sample((spread((4,)), spread((3,)), np.array([3, 0, -4])), {"axes": (0,)}),
    Sample((spread((4,)), spread((3,)), np.array([3, 0, 3])), {"axes": (0,)}),
    Sample((spread((3, 4)), np.float64(0.5), np.array([1, 2])), {"axes": (1,)}),
    Sample((spread((3, 4)), spread((3,)), _ROWS, _COLUMNS), {"axes": (0, 1)}),
    Sample((spread((3, 2, 4)), spread((3, 3, 2)), _ROWS[:, None], _COLUMNS), {"axes": (0, 2)}),
)
scatter_update = define(
    "scatter_update", relation=_scattered, numpy=_scatter_update, fusion=Fusion.OPAQUE,
    schedule="scatter", effect=Effect.RAISES, vjp=_cotangents_of_scatter_update,
    samples=_SCATTERED, doc="x with v (broadcast) at the indices; the last of several writers wins",
    linear=True,
)
scatter_add: Op = define(
    "scatter_add", relation=_scattered, numpy=_scatter_add, fusion=Fusion.OPAQUE,
    schedule="scatter", effect=Effect.RAISES,
    vjp=lambda y, g, x, v, *p, axes: (g, gather(g, *p, axes=axes), *_nothing(p)),
    samples=_SCATTERED, doc="x with v (broadcast) added at the indices, repeated ones repeatedly",
    linear=True,
)

UPDATES = frozenset([
    "index_update", "index_add", "slice_update", "slice_add", "commit", "scatter_update",
    "scatter_add",
])  # fmt: skip
"""What gives an array with another part."""

# -- positions ----------------------------------------------------------------------------------


def _checked_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    positions = tensors(args)
    require_kind(positions, "iu")
    if positions[0].rank:
        raise RelationError("checks single integers", arg=0, kind="type")
    return (types.PY_INT,)


def _check_index(i: Any, *, size: int, axis: int) -> int:
    position = int(i)
    if not -size <= position < size:
        raise IndexError(f"index {position} is out of bounds for axis {axis} with size {size}")
    return position + size if position < 0 else position


check_index = define(
    "check_index", relation=_checked_type, numpy=_check_index, fusion=Fusion.ELEMENTWISE,
    effect=Effect.RAISES, vjp=not_differentiable("a position is an integer"),
    element=lambda s, i, p, *, size, axis: _wrapped(s, s.cast(p(()), types.i64), size, axis),
    samples=(
        Sample((-1,), {"size": 5, "axis": 0}), Sample((4,), {"size": 5, "axis": 1}),
        Sample((np.uint8(0),), {"size": 1, "axis": 0}),
    ),
    doc="the position, counted from the end if negative; IndexError if it is out of bounds",
)


def _places_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (positions,) = tensors(args)
    require_kind((positions,), "iu")
    return (TensorType(types.i64, positions.shape),)


def _check_places(places: Any, *, size: int, axis: int) -> Any:
    checked = [_check_index(k, size=size, axis=axis) for k in np.ravel(places)]
    return np.array(checked, np.int64).reshape(np.shape(places))


check_places = define(
    "check_places", relation=_places_type, numpy=_check_places, fusion=Fusion.ELEMENTWISE,
    effect=Effect.RAISES, vjp=not_differentiable("a position is an integer"),
    element=lambda s, i, p, *, size, axis: _wrapped(s, s.cast(p(i), types.i64), size, axis),
    samples=(
        Sample((np.array([-1, 3]),), {"size": 5, "axis": 0}),
        Sample((np.array([[0], [4]], "u1"),), {"size": 5, "axis": 1}),
    ),
    doc="positions as `check_index` checks them, element by element",
)


def _true_places_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    (flags,) = tensors(args)
    require_kind((flags,), "b")
    if flags.rank != 1:
        raise RelationError(f"looks along one axis, and got {flags}", arg=0)
    return (TensorType(types.i64, (attrs["size"],)),)


true_places: Op = define(
    "true_places", relation=_true_places_type, fusion=Fusion.OPAQUE, schedule="places",
    numpy=lambda flags, *, size: np.flatnonzero(flags),
    vjp=not_differentiable("a place is an integer"),
    samples=(
        Sample((np.array([True, False, False, True, True, False]),), {"size": 3}),
        Sample((np.array([False, True]),), {"size": 1}),
        Sample((np.zeros(3, np.bool_),), {"size": 0}), Sample((np.ones(2, np.bool_),), {"size": 2}),
        Sample((np.zeros(0, np.bool_),), {"size": 0}),
    ),
    doc="where, in order, the flags are true, as `size` of them are",
)


def _check_item(i: Any, count: Any, *, text: str) -> int:
    position = int(i)
    if not -count <= position < count:
        raise IndexError(text)
    return position + int(count) if position < 0 else position


def _checked_item_type(args: tuple[Type, ...], attrs: Attributes) -> tuple[Type, ...]:
    require_kind(tensors(args[1:]), "iu")
    return _checked_type(args[:1], attrs)


def _checked_item(s: Any, i: Any, p: Any, n: Any, *, text: str) -> Any:
    position, count = s.cast(p(()), types.i64), s.cast(n(()), types.i64)
    zero = s.extent(0)
    beyond = s.logical_or(position < zero - count, position >= count)
    s.fail("IndexError", (text,), beyond)
    return s.where(position < zero, position + count, position)


check_item = define(
    "check_item", relation=_checked_item_type, numpy=_check_item, fusion=Fusion.ELEMENTWISE,
    effect=Effect.RAISES, vjp=not_differentiable("a position is an integer"),
    element=_checked_item,
    samples=(
        Sample((-1, 5), {"text": "list index out of range"}),
        Sample((4, 5), {"text": "list index out of range"}),
        Sample((np.uint8(0), 1), {"text": "pop index out of range"}),
    ),
    doc="the position in a list of so many items, counted from the end if negative; IndexError",
)
iota = define(
    "iota", relation=lambda args, attrs: (TensorType(attrs["dtype"], (attrs["size"],)),),
    numpy=lambda *, size, dtype: np.arange(size, dtype=dtype.numpy), fusion=Fusion.INJECTIVE,
    vjp=not_differentiable("it has no operands"),
    element=lambda s, i, *, size, dtype: s.cast(i[0], dtype),
    samples=(
        Sample((), {"size": 5, "dtype": types.i64}), Sample((), {"size": 0, "dtype": types.f32}),
    ),
    doc="0, 1, ... size - 1",
)
