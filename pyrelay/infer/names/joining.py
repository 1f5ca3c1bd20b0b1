"""NumPy's functions that make one array of several, as handlers: np.stack and such.

In: a list of arrays, of a length that the program knows or finds out. Out: the array of them all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.containers import list_arrays, lists
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import (
    cast,
    concatenate,
    dtype_of,
    nested_items,
    normal_axis,
    operand,
    stack,
    strong,
)
from pyrelay.infer.names.handlers import handles, stored
from pyrelay.infer.names.shape import atleast_1d, expand_dims, ravel
from pyrelay.infer.operators import raised
from pyrelay.ir.types import TensorType

ZERO, ONE = V.Known(0), V.Known(1)
_SAME_KIND = V.Known("same_kind")


def _refuse_second_array(it: Interpreter, name: str, arrays: V.Value, axis: V.Value) -> None:
    """Arrays given one by one, the second of which would be the axis."""
    if isinstance(arrays, V.ArrayRef) and isinstance(axis, V.ArrayRef):
        raise it.failure(
            errors.TypeMismatchError, f"np.{name} takes the arrays in one list or tuple",
            hints=(f"write np.{name}([a, b])",),
        )


@handles(np.concatenate, np.concat)
def np_concatenate(
    it: Interpreter, arrays: V.Value, axis: V.Value = ZERO, out: V.Value = V.NONE, *,
    dtype: V.Value = V.NONE, casting: V.Value = _SAME_KIND,
) -> V.Value:
    """np.concatenate."""
    _refuse_second_array(it, "concatenate", arrays, axis)
    arrays = lists.of_field(it, arrays)
    content = lists.growing_content(it, arrays)
    if content is not None:
        at = None if axis == V.NONE else it.static(axis, "the axis")
        return _written(it, list_arrays.concatenated(it, content, at), dtype, casting, out)
    parts = [operand(it, v) for v in nested_items(it, arrays)]
    _refuse_none(it, parts)
    if axis == V.NONE:
        parts = [ravel(it, p) for p in parts]
        axis = ZERO
    joined = concatenate(it, parts, it.static(axis, "the axis"))
    return _written(it, joined, dtype, casting, out)


def _written(
    it: Interpreter, joined: V.Value, dtype: V.Value, casting: V.Value, out: V.Value = V.NONE
) -> V.Value:
    """What arrays make together, of a type to which NumPy may cast it, or in `out`."""
    target, rule = dtype_of(it, dtype), it.static(casting, "casting")
    if out != V.NONE:
        if target is not None:
            raise raised(it, TypeError(
                "concatenate() only takes `out` or `dtype` as an argument, but both were provided."
            ))
        target = it.tensor(out).dtype
    given = it.tensor(joined).dtype
    if target is not None and not np.can_cast(given.numpy, target.numpy, rule):
        raise raised(it, TypeError(
            f"Cannot cast array data from {given.numpy!r} to {target.numpy!r} according to the "
            f"rule {rule!r}"
        ))
    made = cast(it, joined, target)
    return made if out == V.NONE else stored(it, np.concatenate, out, made)


def _refuse_none(it: Interpreter, parts: Sequence[V.Value], purpose: str = "concatenate") -> None:
    """Raise what NumPy does of no arrays."""
    if not parts:
        text = f"need at least one array to {purpose}"
        failure = it.failure(errors.InvalidValueError, text)
        raise certain(it, failure, ValueError, text)


@handles(np.stack)
def np_stack(
    it: Interpreter, arrays: V.Value, axis: V.Value = ZERO, out: V.Value = V.NONE, *,
    dtype: V.Value = V.NONE, casting: V.Value = _SAME_KIND,
) -> V.Value:
    """np.stack."""
    _refuse_second_array(it, "stack", arrays, axis)
    arrays = lists.of_field(it, arrays)
    content = lists.growing_content(it, arrays)
    if content is not None:
        stacked = list_arrays.stacked(it, content, it.static(axis, "the axis"))
        return _written(it, stacked, dtype, casting, out)
    parts = [operand(it, v) for v in nested_items(it, arrays)]
    _refuse_none(it, parts, "stack")
    kinds = [it.tensor(part) for part in parts]
    other = next((k for k in kinds if not _may_be_alike(it, k, kinds[0])), None)
    if other is not None:
        raise it.failure(
            errors.ShapeError, f"all arrays to stack must have the same shape: {kinds[0]} and "
            f"{other} differ",
            hints=("use np.concatenate to join arrays along an axis that they have",),
        )
    at = normal_axis(it, it.static(axis, "the axis"), kinds[0].rank + 1)
    return _written(it, stack(it, parts, at), dtype, casting, out)


def _may_be_alike(it: Interpreter, a: TensorType, b: TensorType) -> bool:
    """Whether two shapes are one, or may be in the running program."""
    pairs = zip(a.shape, b.shape, strict=False)
    return a.rank == b.rank and all(it.program.guards.equal(d, e) is not False for d, e in pairs)


@handles(np.vstack)
def vstack(
    it: Interpreter, tup: V.Value, *, dtype: V.Value = V.NONE, casting: V.Value = _SAME_KIND
) -> V.Value:
    """np.vstack."""
    tup = lists.of_field(it, tup)
    content = lists.growing_content(it, tup)
    if content is not None:
        if list_arrays.item_rank(it, content) > 1:
            return _written(it, list_arrays.concatenated(it, content, 0), dtype, casting)
        whole = list_arrays.as_rows(it, content)
        rows = whole if it.tensor(whole).rank > 1 else expand_dims(it, whole, ONE)
        return _written(it, rows, dtype, casting)
    parts = [atleast_1d(it, v) for v in nested_items(it, tup)]
    _refuse_none(it, parts)
    lines = [p if it.tensor(p).rank > 1 else expand_dims(it, p, ZERO) for p in parts]
    return _written(it, concatenate(it, lines, 0), dtype, casting)


@handles(np.hstack)
def hstack(
    it: Interpreter, tup: V.Value, *, dtype: V.Value = V.NONE, casting: V.Value = _SAME_KIND
) -> V.Value:
    """np.hstack."""
    tup = lists.of_field(it, tup)
    content = lists.growing_content(it, tup)
    if content is not None:
        rank = list_arrays.item_rank(it, content)
        if not rank:
            return _written(it, list_arrays.stacked(it, content, 0), dtype, casting)
        joined = list_arrays.concatenated(it, content, 0 if rank == 1 else 1)
        return _written(it, joined, dtype, casting)
    parts = [atleast_1d(it, v) for v in nested_items(it, tup)]
    _refuse_none(it, parts)
    joined = concatenate(it, parts, 0 if it.tensor(parts[0]).rank == 1 else 1)
    return _written(it, joined, dtype, casting)


@handles(np.block)
def block(it: Interpreter, arrays: V.Value) -> V.Value:
    """np.block: an array from nested lists of blocks."""

    def depth_of(value: V.Value) -> int:
        return 1 + depth_of(nested_items(it, value)[0]) if V.is_list(value) else 0

    def leaves_rank(value: V.Value, depth: int) -> int:
        if not depth:
            return it.tensor(operand(it, value)).rank
        return max(leaves_rank(v, depth - 1) for v in nested_items(it, value))

    def joined(value: V.Value, depth: int) -> V.Value:
        if depth:
            parts = [joined(v, depth - 1) for v in nested_items(it, value)]
            return concatenate(it, parts, -depth)
        x = strong(it, operand(it, value))
        missing = rank - it.tensor(x).rank
        return it.call("expand_dims", x, axes=tuple(range(missing))) if missing else x

    depth = depth_of(arrays)
    rank = max(depth, leaves_rank(arrays, depth))
    return joined(arrays, depth)
