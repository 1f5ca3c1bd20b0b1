"""Small conversions between abstract values that handlers of names share.

In: values as a user passes them to NumPy functions. Out: operands, axes, dtypes, shapes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import bound_extents
from pyrelay.infer import values as V
from pyrelay.infer.arrays import memory_order
from pyrelay.infer.flow.handling import certain
from pyrelay.infer.flow.unions import distribute
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.operators import extent_of, number_of_enum, numbers_of_members
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom
from pyrelay.ir.types import DType


def refuse_keywords(
    it: Interpreter, keywords: Mapping[str, V.Value], name: str, allowed: Sequence[str] = ()
) -> None:
    """Refuse keyword arguments (out, where, ...) that are given and not supported."""
    for key, value in keywords.items():
        if key not in allowed and value != V.NONE:
            raise it.failure(
                errors.UnsupportedOperationError,
                f"{name!r} does not take the argument {key!r} in a compiled function",
            )


def operand(it: Interpreter, value: V.Value) -> V.Value:
    """A number or an array; NumPy's functions also take nested lists and tuples."""
    if V.tensor_type(value) is not None:
        return value
    if isinstance(value, (V.Tuple, V.OpenTuple, V.Items, V.Ref, V.Range)) or (
        isinstance(value, V.Known) and isinstance(value.value, (list, tuple, range))
    ):
        return to_array(it, value)
    own = numbers_of_members(it, value)
    if own is not value:
        return strong(it, own)
    raise it.failure(errors.TypeMismatchError, f"{V.describe(value)} is not a number or an array")


def as_element(it: Interpreter, value: V.Value, dtype: DType, alone: bool = False) -> Atom:
    """A value cast to the dtype of the array that it is stored in.

    A Python float becomes an element of an array of ints as `int(value)` does: the program raises
    ValueError for nan, and OverflowError for inf and for what is out of the dtype's bounds. With
    `alone`, for an item or a slice, and signed ints, so does a NumPy number; others wrap.
    """
    ty = V.number_type(value)
    if ty is not None and dtype.is_integer and ty.dtype.kind in "fiu" and ty.dtype != dtype and (
        (ty.weak and ty.dtype.kind == "f")
        or (alone and dtype.kind == "i" and not np.can_cast(ty.dtype.numpy, dtype.numpy))
    ):
        whole = it.builder.cast(it.atom(value), types.i64, weak=True)
        return it.builder.cast(whole, dtype)
    return it.builder.cast(it.atom(value), dtype)


def strong(it: Interpreter, value: V.Value) -> V.Value:
    """A Python number as a NumPy scalar of its default dtype; anything else unchanged."""
    ty = V.number_type(value)
    if ty is None:
        return value
    perhaps = isinstance(value, V.Scalar) and {k.dtype for k in value.kinds} == {ty.dtype}
    if not ty.weak and not perhaps:  # `perhaps`: one of Python's or of NumPy's, by the path taken
        return value
    return it.result(it.builder.handle(it.builder.cast(it.atom(value), ty.dtype)))


def to_array(
    it: Interpreter, value: V.Value, *, missing: bool = False, dtype: DType | None = None
) -> V.Value:
    """np.array(value) of nested lists, tuples, numbers and arrays; a fresh array.

    missing: None is NaN, as in arrays that are made as ones of floats. Else the program raises
    TypeError for a None among numbers, of which NumPy makes an array of objects.
    dtype: what the array is made for. Python's numbers in it that are out of its bounds raise
    OverflowError.
    """
    if isinstance(value, V.Union):
        return distribute(
            it, value, lambda case: to_array(it, case, missing=missing, dtype=dtype),
            refuse_objects,
        )
    if missing and value == V.NONE:
        return strong(it, V.Known(math.nan))
    value = number_of_enum(value)
    if V.tensor_type(value) is not None:
        if isinstance(value, V.ArrayRef):
            return it.new_array(it.atom(value))
        ty = it.tensor(value)
        if dtype is not None and dtype.is_integer and ty.weak and ty.dtype.kind in "if":
            return it.result(it.builder.handle(as_element(it, value, dtype)))
        return strong(it, value)
    from pyrelay.infer.containers import list_arrays, lists

    value = V.range_of(value) or value
    if isinstance(value, V.Range) and not _is_empty(value):
        from pyrelay.infer.names.creation import arange

        return arange(it, value.start, value.stop, value.step)
    value = _listed_queue(it, lists.of_field(it, value))
    content = lists.growing_content(it, value)
    if content is not None:
        made = list_arrays.to_array(it, content, missing=missing)
        if dtype is not None and dtype.is_integer:
            list_arrays.check_bounds(it, content.template, made, dtype)
        return made
    if isinstance(value, V.Known) and isinstance(value.value, (str, bytes)):
        raise it.failure(
            errors.TypeMismatchError, f"{V.describe(value)} cannot be an element of an array",
            hints=("keep texts in a list",),
        )
    items = nested_items(it, value)
    parts = [to_array(it, i, missing=missing, dtype=dtype) for i in items]
    if not parts:
        return it.result(it.builder.full(0.0, (0,), types.f64))
    _check_one_shape(it, [it.tensor(part) for part in parts])
    return stack(it, parts, 0)


def _check_one_shape(it: Interpreter, items: Sequence[types.TensorType]) -> None:
    """Raises ShapeError where the items of an array are known to differ in shape."""
    for item in items:
        pairs = zip(items[0].shape, item.shape, strict=False)
        if item.rank != items[0].rank or any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
        ):
            raise it.failure(
                errors.ShapeError,
                f"the items of an array have one shape, and these are {items[0]} and {item}",
                hints=("keep them in a list, or fill them up to one length",),
            )


OBJECTS = (
    "an item is None, and NumPy would make an array of objects, which is not compiled: leave such "
    "items out, or give dtype=float, which makes them nan"
)


def refuse_objects(item: object) -> None:
    """Raise what the running program raises for None among the numbers of an array."""
    if item is None:
        raise TypeError(OBJECTS)


def _listed_queue(it: Interpreter, value: V.Value) -> V.Value:
    """The items of a deque in a list; anything else unchanged."""
    from pyrelay.infer.calls import call
    from pyrelay.infer.in_python.containers import standing_for

    if isinstance(value, (V.Ref, V.Data)) and standing_for.get(value.cls, (None,))[0] is deque:
        return call(it, V.Known(list), (value,), {})
    return value


def _is_empty(numbers: V.Range) -> bool:
    """Whether a range is known to be empty: of that NumPy makes an array of floats."""
    bounds = (numbers.start, numbers.stop, numbers.step)
    return all(isinstance(b, V.Known) for b in bounds) and not range(
        *(b.value for b in bounds)  # type: ignore[union-attr]
    )


def nested_items(it: Interpreter, value: V.Value) -> tuple[V.Value, ...]:
    """The items of a list, tuple or range."""
    from pyrelay.infer.flow.iteration import sequence_of

    if isinstance(value, V.Ref) and value.root.kind in ("dict", "object", "cell"):
        raise it.failure(
            errors.TypeMismatchError, f"{V.describe(value)} cannot be made an array"
        )
    return sequence_of(it, value)


def stack(it: Interpreter, parts: Sequence[V.Value], axis: int) -> V.Value:
    """np.stack: arrays of one shape along a new axis."""
    dtype, _ = types.promote([it.tensor(p) for p in parts])
    expanded = []
    for part in parts:
        atom = it.builder.cast(it.atom(part), dtype)
        rank = it.tensor(part).rank
        at = axis + rank + 1 if axis < 0 else axis
        expanded.append(it.emit("expand_dims", atom, axes=(at,)))
    return it.call("concatenate", *expanded, axis=at)


def concatenate(it: Interpreter, parts: Sequence[V.Value], axis: int) -> V.Value:
    """np.concatenate: arrays of equal shape but for one axis."""
    tys = [it.tensor(p) for p in parts]
    dtype, _ = types.promote(tys)
    rank = tys[0].rank
    atoms = [it.builder.cast(it.atom(p), dtype) for p in parts]
    return it.call("concatenate", *atoms, axis=normal_axis(it, axis, rank))


def normal_axis(it: Interpreter, axis: Any, rank: int) -> int:
    """The axis counted from the front. Raises InvalidValueError if there is no such axis, and
    TypeMismatchError for what is no axis."""
    if not isinstance(axis, (int, np.integer)):
        failure = it.failure(
            errors.TypeMismatchError, f"the axis must be one int here, not {axis!r}"
        )
        raise certain(
            it, failure, TypeError,
            f"{type(axis).__name__!r} object cannot be interpreted as an integer",
        )
    if not -rank <= axis < rank:
        text = f"axis {axis} is out of bounds for an array with {rank} ax"
        text += "is" if rank == 1 else "es"
        raise certain(
            it, it.failure(errors.InvalidValueError, text), np.exceptions.AxisError, int(axis), rank
        )
    return int(axis) % rank if rank else 0


def one_axis(it: Interpreter, axis: V.Value, rank: int) -> int:
    """The axis that an `axis=` argument means where one is needed, counted from the front."""
    given = it.static(axis, "the axis")
    if not isinstance(given, (int, np.integer)):
        raise it.failure(
            errors.TypeMismatchError, f"the axis must be one int here, not {given!r}"
        )
    if rank == 0 and given in (0, -1):
        return 0  # NumPy takes a number for an array of one element here
    return normal_axis(it, int(given), rank)


def axes_of(it: Interpreter, axis: V.Value | None, rank: int) -> tuple[int, ...]:
    """The axes that an `axis=` argument means, ascending; None means all."""
    if axis is None or axis == V.NONE:
        return tuple(range(rank))
    given = it.static(axis, "the axis")
    if rank == 0 and isinstance(given, int) and given in (0, -1):
        return ()  # NumPy takes a number for an array of one element here
    numbers = given if isinstance(given, (tuple, list)) else (given,)
    normal = tuple(normal_axis(it, a, rank) for a in numbers)
    if len(set(normal)) != len(normal):
        raise it.failure(errors.InvalidValueError, f"axis {given} names an axis twice")
    return tuple(sorted(normal))


def dtype_of(it: Interpreter, value: V.Value | None) -> DType | None:
    """The element type that a `dtype=` argument means; None for None."""
    if value is None or value == V.NONE:
        return None
    given = it.static(value, "the dtype")
    try:
        found = types.from_numpy(given)
    except TypeError:
        raise it.failure(errors.TypeMismatchError, f"{given!r} is not a dtype") from None
    if found is None:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"arrays of {np.dtype(given)} are not supported",
            notes=(f"supported are {', '.join(d.numpy_name for d in types.DTYPES.values())}",),
            hints=("give each field an array of its own",) if np.dtype(given).names else (),
        )
    if not np.dtype(given).isnative:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"arrays of {np.dtype(given).str!r}, in another byte order than the machine's, are not "
            "supported",
            hints=(f"compute with {found.numpy_name}, and convert with astype outside",),
        )
    return found


def cast(it: Interpreter, value: V.Value, dtype: V.Value | DType | None) -> V.Value:
    """The value with another element type; the value itself for None, and an array that has it."""
    target = dtype if isinstance(dtype, DType) or dtype is None else dtype_of(it, dtype)
    if target is None:
        return value
    ty = it.tensor(value)
    if isinstance(value, V.ArrayRef) and ty.dtype == target:
        it.program.listed.discard(value.root)  # an empty one is of this dtype, too
        return value
    if ty.dtype.kind == "c" and target.kind not in "cb":
        value = it.call("real", value)  # NumPy warns and drops the imaginary part
    made = it.result(it.builder.handle(as_element(it, value, target)))
    memory_order.of_result(it, (value,), made)
    return made


def extent(it: Interpreter, value: V.Value, what: str = "an extent") -> Extent:
    """A non-negative int of the program as an extent."""
    if isinstance(value, V.ArrayRef) and not value.type.shape:
        value = it.result(it.builder.handle(it.atom(value)))
    known = extent_of(value)
    if known is not None:
        negative = it.program.guards.compare("<", known, 0)
        if negative:
            raise it.failure(
                errors.InvalidValueError, f"{what} is negative: {dims.show(known)}"
            )
        if negative is False or dims.non_negative(known):
            return known
    ty = V.number_type(value)
    if ty is None or not ty.dtype.is_integer:
        raise it.failure(
            errors.TypeMismatchError, f"{what} must be an int, not {V.describe(value)}"
        )
    return bound_extents.bound(it, value)


def shape_of(it: Interpreter, value: V.Value) -> tuple[Extent, ...]:
    """A `shape` argument: an int or a sequence of ints."""
    ty = V.tensor_type(value)
    if ty is not None and not ty.shape:
        return (extent(it, value),)
    if isinstance(value, V.Known) and isinstance(value.value, (tuple, list)):
        return tuple(extent(it, V.Known(v)) for v in value.value)
    return tuple(extent(it, v) for v in nested_items(it, value))
