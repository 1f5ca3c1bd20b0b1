"""Lists of run-time length as arrays, and arrays as such lists.

In: the content of a list, or an array. Out: the array that `np.array`, `np.stack` and
`np.concatenate` make of the items; the list of the array's rows or numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.containers import growing
from pyrelay.infer.containers.lists import count_extent, count_of, extent_of_atom, new
from pyrelay.infer.in_python import lists as in_python
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import dims, types
from pyrelay.ir.build import Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType


def from_array(it: Interpreter, array: V.ArrayRef, python: bool = False) -> V.Value:
    """`list(array)`: its rows, or its elements as NumPy's numbers, or as Python's."""
    ty = array.type
    item = TensorType(ty.dtype, ty.shape[1:])
    if item.shape:
        growing.keep(it.heap, array, it.let.span if it.let else None)
        it.heap.items.shared = True
    number = L.LScalar(TensorType(ty.dtype, (), weak=python))
    template: L.Layout = L.LPlace(1, "array", None, item) if item.shape else number
    count = V.Scalar.of_extent(ty.shape[0])
    return new(it, V.Growing(count, (it.atom(array),), template, slots=object()))


def to_array(
    it: Interpreter, content: V.Growing, check: Any = in_python.even_size, *more: V.Value,
    missing: bool = False,
) -> V.Value:
    """`np.array(lst)`; what `check` raises (see `_equal`) if the items differ in shape.

    missing: see `adapters.to_array`.
    """
    from pyrelay.infer.names.adapters import stack

    content = growing.plain(it.builder, content)
    size = count_extent(it, content)
    rows = [growing.items_array(it.builder, row, size) for row in content.rows]
    remaining = iter(rows)

    def built(template: L.Layout) -> V.Value:
        match template:
            case L.LPlace(content=L.LRagged(ty)):
                sizes = [_equal(it, next(remaining), check, *more) for _ in range(ty.rank)]
                return _first_part(it, it.new_array(next(remaining).atom), sizes)
            case L.LScalar(kinds=kinds):
                numbers = next(remaining)
                if kinds:  # as if there were items of each
                    next(remaining)
                    dtype, _ = types.promote(TensorType(kind.dtype) for kind in kinds)
                    numbers = it.builder.handle(it.builder.cast(numbers.atom, dtype))
                return it.new_array(numbers.atom)
            case L.LPlace(_, "array"):
                return it.new_array(next(remaining).atom)
            case L.LNode(("tuple", _, _), children):
                return stack(it, [built(c) for c in children], 1)
            case L.LPlace(_, "list", _, L.LGrown(inner)):
                size = _equal(it, next(remaining), check, *more)
                rows = built(inner)
                return _first_part(it, rows, (size, *it.tensor(rows).shape[2:]))
            case L.LUnion((L.LKnown(None), item) | (item, L.LKnown(None))):
                is_none = it.emit("equal", next(remaining), template.cases.index(L.LKnown(None)))
                return _without_none(it, is_none, built(item), missing)
        raise it.failure(
            errors.TypeMismatchError, "the items of this list cannot be made one array"
        )

    array = built(content.template)
    if isinstance(array, V.ArrayRef) and (
        len(array.type.shape) > 1 or array.type.dtype is not types.f64
    ):
        it.program.listed.add(array.root)
    return array


def check_bounds(it: Interpreter, template: L.Layout, array: V.Value, dtype: types.DType) -> None:
    """The running program raises for Python's numbers among these that no int of a dtype is."""
    from pyrelay.infer.calls import call

    while isinstance(template, L.LPlace) and isinstance(template.content, L.LGrown):
        template = template.content.template
    if not isinstance(template, L.LScalar) or not template.type.weak:
        return
    kind = template.type.dtype.kind
    if kind == "f" or (kind == "i" and dtype is not types.i64):
        limits = np.iinfo(dtype.numpy)
        bounds = (max(int(limits.min), -(2**63)), min(int(limits.max), 2**63 - 1))
        known = map(V.Known, (*bounds, str(dtype.numpy)))
        call(it, V.Known(in_python.check_bounds), (array, *known), {})


def _without_none(
    it: Interpreter, is_none: Handle, items: V.Value, missing: bool
) -> V.Value:
    """The numbers, or arrays, among items of which some may be None."""
    from pyrelay.infer.flow.effects import raise_where
    from pyrelay.infer.names.adapters import OBJECTS

    if missing and it.tensor(items).rank == 1:
        return it.call("where", it.new_array(is_none.atom), V.Known(math.nan), items)
    some = it.emit("any", is_none, axes=(0,), keepdims=False)
    raise_where(it, some.atom, TypeError, V.Known(OBJECTS))
    return items


def _equal(it: Interpreter, numbers: Handle, check: Any, *more: V.Value) -> Extent:
    """The extent that all of these are, which `check` gives, or raises an exception."""
    from pyrelay.infer.calls import call

    found = call(it, V.Known(check), [it.new_array(numbers.atom), *more], {})
    return extent_of_atom(it, it.atom(found))


def _first_part(it: Interpreter, rows: V.Value, sizes: Sequence[Extent]) -> V.Value:
    """So much of every row."""
    ty = it.tensor(rows)
    return it.call(
        "slice", rows, starts=(0,) * ty.rank, sizes=(ty.shape[0], *sizes), steps=(1,) * ty.rank
    )


def item_rank(it: Interpreter, content: V.Growing) -> int:
    """The number of axes of the items, which are numbers or arrays."""
    match content.template:
        case L.LScalar():
            return 0
        case L.LPlace(_, "array", _, ty):
            return L.leaf_type(ty).rank
    raise it.failure(
        errors.TypeMismatchError, "the items of this list are not numbers or arrays of one shape"
    )


def as_rows(it: Interpreter, content: V.Growing) -> V.Value:
    """`np.vstack(lst)` of numbers or arrays of one axis."""
    refuse_empty(it, content, "need at least one array to concatenate")
    return to_array(it, content, in_python.same_size, V.Known(1))


def stacked(it: Interpreter, content: V.Growing, axis: int) -> V.Value:
    """`np.stack(lst, axis)`."""
    from pyrelay.infer.names.adapters import normal_axis

    refuse_empty(it, content, "need at least one array to stack")
    array = to_array(it, content, in_python.same_shape)
    at = normal_axis(it, axis, item_rank(it, content) + 1)
    return _item_axis_at(it, array, at)


def _item_axis_at(it: Interpreter, array: V.Value, at: int) -> V.Value:
    """The array with its first axis moved."""
    rest = list(range(1, it.tensor(array).rank))
    return array if not at else it.call("transpose", array, axes=(*rest[:at], 0, *rest[at:]))


def concatenated(it: Interpreter, content: V.Growing, axis: int | None) -> V.Value:
    """`np.concatenate(lst, axis)`; items of one shape."""
    from pyrelay.infer.names.adapters import normal_axis

    rank = item_rank(it, content)
    refuse_empty(it, content, "need at least one array to concatenate")
    if L.is_ragged(content.template):
        return _joined(it, growing.plain(it.builder, content), axis)
    array = to_array(it, content)
    if axis is None:
        return it.call("reshape", array, shape=(it.tensor(array).size,))
    if not rank:
        raise it.failure(
            errors.ShapeError, "zero-dimensional arrays cannot be concatenated",
            hints=("np.array(items) makes an array of numbers",),
        )
    at = normal_axis(it, axis, rank)
    moved = _item_axis_at(it, array, at)
    shape = it.tensor(moved).shape
    merged = (*shape[:at], dims.multiply(shape[at], shape[at + 1]), *shape[at + 2 :])
    return it.call("reshape", moved, shape=merged)


def _joined(it: Interpreter, content: V.Growing, axis: int | None) -> V.Value:
    """`np.concatenate(lst, axis)` of arrays that differ in shape along the axis."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.names.adapters import normal_axis

    size = count_extent(it, content)
    *extents, rows = (growing.items_array(it.builder, row, size) for row in content.rows)
    if axis is None:
        sizes = V.Tuple(tuple(it.new_array(numbers.atom) for numbers in extents))
        return call(it, V.Known(in_python.joined_flat), [it.new_array(rows.atom), sizes], {})
    at = normal_axis(it, axis, len(extents))
    own = extents.pop(at)
    others = [
        _equal(it, numbers, in_python.same_size, V.Known(k + (k >= at)))
        for k, numbers in enumerate(extents)
    ]
    rank = 1 + len(extents)
    moved = it.call("transpose", it.new_array(rows.atom), axes=(
        0, at + 1, *(k + 1 for k in range(rank) if k != at)
    ))
    part = _first_part(it, moved, (it.tensor(moved).shape[1], *others))
    joined = call(
        it, V.Known(in_python.joined_rows), [part, it.new_array(own.atom)], {}
    )
    back = [k + (k < at) if k != at else 0 for k in range(rank)]
    return joined if not at else it.call("transpose", joined, axes=tuple(back))


def refuse_empty(it: Interpreter, content: V.Growing, text: str) -> None:
    """Emit the raising of ValueError(text) if the list is empty."""
    from pyrelay.infer.flow.effects import raise_where

    empty = it.builder.call(OPS["equal"], count_of(it, content), 0)
    raise_where(it, empty.atom, ValueError, V.Known(text))


def as_item_kind(it: Interpreter, content: V.Growing, value: V.Value) -> V.Value:
    """A number computed from items, as Python's if they are Python's."""
    if not isinstance(content.template, L.LScalar) or not content.template.type.weak:
        return value
    ty = V.number_type(value)
    assert ty is not None
    return it.result(it.builder.handle(it.builder.cast(it.atom(value), ty.dtype, weak=True)))
