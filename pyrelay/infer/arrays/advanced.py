"""Indexing with arrays: gather for reading, scatter for writing (copies, as in NumPy).

A boolean mask stands for the indices of its true elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.in_python import placement
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.operators import binary
from pyrelay.ir import dims, types
from pyrelay.ir.op import OPS


def _split(
    it: Interpreter, array: V.ArrayRef, items: Sequence[V.Value]
) -> tuple[V.ArrayRef, list[V.Value], tuple[int, ...]]:
    """The array with the basic part of the key applied, index arrays, and their axes."""
    from pyrelay.infer.arrays.subscripts import _basic

    full = V.Slice(V.NONE, V.NONE, V.NONE)
    arrays: list[V.Value] = []
    axes: list[int] = []
    basic: list[V.Value] = []
    chosen: list[int] = []  # which arrays are places that a mask chooses
    apart = False
    axis = 0  # of the array; the view with new axes has one for each item of `basic`
    for item in items:
        if item == V.Known(Ellipsis):  # of no axes
            apart = True
            continue
        if isinstance(item, V.ArrayRef):
            if item.type.dtype is types.bool_:
                _require_fit(it, array, item, axis)
                found = true_positions(it, item)
                chosen.extend(range(len(arrays), len(arrays) + len(found)))
                arrays.extend(found)
                axes.extend(range(len(basic), len(basic) + len(found)))
                basic.extend([full] * len(found))
                axis += len(found)
                continue
            if not item.type.dtype.is_integer:
                raise it.failure(
                    errors.IndexRangeError,
                    f"arrays used as indices must be of integers or bools, not {item.type}",
                )
            arrays.append(item)
            axes.append(len(basic))
            basic.append(full)
            axis += 1
        elif V.number_type(item) is not None:
            arrays.append(item)  # an int among index arrays broadcasts with them
            axes.append(len(basic))
            basic.append(full)
            axis += 1
        else:
            basic.append(item)
            axis += item != V.NONE
    _spread(it, arrays, chosen)
    steps = _basic(it, array.type, basic, False)
    view = V.ArrayRef(array.root, array.view + steps.steps, steps.type)
    if apart:
        from pyrelay.infer.names.shape import transpose

        # The axes of the places stand first in what is taken.
        others = [k for k in range(steps.type.rank) if k not in axes]
        turned = transpose(it, view, V.Known((*axes, *others)))
        assert isinstance(turned, V.ArrayRef)
        view, axes = turned, list(range(len(axes)))
    return view, arrays, tuple(axes)


def _spread(it: Interpreter, arrays: list[V.Value], chosen: Sequence[int]) -> None:
    """Where masks choose one place, have it as often as there are places beside it: NumPy
    broadcasts them, and how many they are only the running program knows."""
    beside = {it.tensor(a).shape for k, a in enumerate(arrays) if k not in chosen} - {(), (1,)}
    if len(beside) == 1 and len(shape := beside.pop()) == 1:
        owns = V.Known(tuple(k in chosen for k in range(len(arrays))))
        for k in chosen:
            count = V.Scalar.of_extent(shape[0])
            arrays[k] = call(it, V.Known(placement.spread), (arrays[k], count, owns), {})


def _require_fit(
    it: Interpreter, array: V.ArrayRef, mask: V.ArrayRef, axis: int
) -> None:
    """Raise IndexRangeError if a mask surely has another shape than the axes it selects from."""
    for k, size in enumerate(mask.type.shape):
        own = array.type.shape[axis + k]
        if it.program.guards.equal(own, size) is False:
            raise it.failure(
                errors.IndexRangeError,
                f"a mask of type {mask.type} does not fit axis {axis + k} of {array.type}",
            )


def true_positions(it: Interpreter, mask: V.ArrayRef) -> list[V.Value]:
    """np.nonzero of a mask: for each of its axes the indices of the true elements.

    Their number is an extent known only at run time.
    """
    b, shape = it.builder, mask.type.shape
    flags = it.emit("reshape", it.atom(mask), shape=(mask.type.size,))
    total = it.emit("sum", b.handle(b.cast(flags.atom, types.i64)), axes=(0,), keepdims=False)
    _, (count,) = b.call(OPS["as_extent"], b.cast(total.atom, types.i64, weak=True), name="n")
    size = dims.of(count) if isinstance(count, dims.Symbol) else count
    flat = it.call("true_places", flags, size=size)
    positions: list[V.Value] = []
    for extent in reversed(shape[1:]):
        along = V.Scalar.of_extent(extent)
        positions.insert(0, binary(it, "%", flat, along))
        flat = binary(it, "//", flat, along)
    return [flat, *positions]


def gather(it: Interpreter, array: V.ArrayRef, items: Sequence[V.Value]) -> V.Value:
    """`array[items]` with at least one index array."""
    view, arrays, axes = _split(it, array, items)
    indices = [it.builder.cast(it.atom(a), types.i64) for a in arrays]
    return it.call("gather", it.atom(view), *indices, axes=axes)


_UNDER_A_MASK = (
    "NumPy boolean array indexing assignment cannot assign {0} input values to the {1} output "
    "values where the mask is true"
)
_AT_INDICES = (
    "shape mismatch: value array of shape ({0},)  could not be broadcast to indexing result of "
    "shape ({1},)"
)


def _is_mask(item: V.Value) -> bool:
    return isinstance(item, V.ArrayRef) and item.type.dtype is types.bool_


def scatter(
    it: Interpreter, array: V.ArrayRef, items: Sequence[V.Value], value: V.Value,
    *, add: bool = False,
) -> None:
    """`array[items] = value` (np.add.at with `add`): the last write of an element wins."""
    from pyrelay.infer.arrays.storing import fitted, write_whole

    if len(items) == 1 and not add and _is_mask(items[0]) and V.number_type(value) is not None:
        assert isinstance(items[0], V.ArrayRef)
        _masked(it, array, items[0], value)
        return
    view, arrays, axes = _split(it, array, items)
    indices = [it.builder.cast(it.atom(a), types.i64) for a in arrays]
    part = it.emit("gather", it.atom(view), *indices, axes=axes).type
    alone = len(items) == 1 and _is_mask(items[0])
    stored = fitted(it, value, part, _UNDER_A_MASK if alone else _AT_INDICES, alone=False)
    op = "scatter_add" if add else "scatter_update"
    write_whole(it, view, it.emit(op, it.atom(view), stored, *indices, axes=axes).atom)


def _masked(it: Interpreter, array: V.ArrayRef, mask: V.ArrayRef, value: V.Value) -> None:
    """`array[mask] = number`."""
    from pyrelay.infer.arrays.storing import write_whole
    from pyrelay.infer.names.adapters import as_element

    _require_fit(it, array, mask, 0)
    condition = it.atom(mask)
    for _ in range(array.type.rank - mask.type.rank):
        condition = it.emit(
            "expand_dims", condition, axes=(it.builder.handle(condition).rank,)
        ).atom
    number = as_element(it, value, array.type.dtype)
    write_whole(it, array, it.emit("where", condition, number, it.atom(array)).atom)
