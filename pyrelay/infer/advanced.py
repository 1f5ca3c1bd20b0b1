"""Indexing with integer arrays: gather for reading, scatter for writing (copies, as in NumPy)."""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.interpreter import Interpreter
from pyrelay.ir import types


def _split(
    it: Interpreter, array: V.ArrayRef, items: Sequence[V.Value]
) -> tuple[V.ArrayRef, list[V.Value], tuple[int, ...]]:
    """The array with the basic part of the key applied, index arrays, and their axes."""
    from pyrelay.infer.subscripts import _basic

    full = V.Slice(V.NONE, V.NONE, V.NONE)
    arrays: list[V.Value] = []
    axes: list[int] = []
    basic: list[V.Value] = []
    axis = 0
    for item in items:
        if isinstance(item, V.ArrayRef):
            if item.type.dtype is types.bool_:
                raise it.failure(
                    errors.UnsupportedOperationError,
                    "an array cannot be read or written through a boolean mask here",
                    hints=("use np.where(mask, a, b)",),
                )
            if not item.type.dtype.is_integer:
                raise it.failure(
                    errors.IndexRangeError,
                    f"arrays used as indices must be of integers or bools, not {item.type}",
                )
            arrays.append(item)
            axes.append(axis)
            basic.append(full)
            axis += 1
        elif V.number_type(item) is not None:
            arrays.append(item)  # an int among index arrays broadcasts with them
            axes.append(axis)
            basic.append(full)
            axis += 1
        else:
            basic.append(item)
            axis += 1
    steps = _basic(it, array.type, [b for b in basic if b != V.NONE], False)
    if V.NONE in basic:
        raise it.failure(
            errors.UnsupportedOperationError,
            "None together with index arrays is not supported in one index",
            hints=("index first, then add the axis: x[idx][None]",),
        )
    view = V.ArrayRef(array.root, array.view + steps.steps, steps.type)
    return view, arrays, tuple(axes)


def gather(it: Interpreter, array: V.ArrayRef, items: Sequence[V.Value]) -> V.Value:
    """`array[items]` with at least one index array."""
    view, arrays, axes = _split(it, array, items)
    indices = [it.builder.cast(it.atom(a), types.i64) for a in arrays]
    return it.call("gather", it.atom(view), *indices, axes=axes)


def scatter(
    it: Interpreter, array: V.ArrayRef, items: Sequence[V.Value], value: V.Value,
    *, add: bool = False,
) -> None:
    """`array[items] = value` (np.add.at with `add`): the last write of an element wins."""
    from pyrelay.infer.subscripts import fitted, write_whole

    if len(items) == 1 and not add:
        item = items[0]
        if isinstance(item, V.ArrayRef) and item.type.dtype is types.bool_:
            _masked(it, array, item, value)
            return
    view, arrays, axes = _split(it, array, items)
    indices = [it.builder.cast(it.atom(a), types.i64) for a in arrays]
    part = it.emit("gather", it.atom(view), *indices, axes=axes).type
    stored = fitted(it, value, part)
    op = "scatter_add" if add else "scatter_update"
    write_whole(it, view, it.emit(op, it.atom(view), stored, *indices, axes=axes).atom)


def _masked(it: Interpreter, array: V.ArrayRef, mask: V.ArrayRef, value: V.Value) -> None:
    """`array[mask] = number`."""
    from pyrelay.infer.subscripts import write_whole

    if V.number_type(value) is None:
        raise it.failure(
            errors.UnsupportedOperationError,
            "only a number can be stored through a boolean mask here",
            hints=("use np.where(mask, new, old)",),
        )
    condition = it.atom(mask)
    for _ in range(array.type.rank - mask.type.rank):
        condition = it.emit(
            "expand_dims", condition, axes=(it.builder.handle(condition).rank,)
        ).atom
    stored = it.builder.cast(it.atom(value), array.type.dtype)
    write_whole(it, array, it.emit("where", condition, stored, it.atom(array)).atom)
