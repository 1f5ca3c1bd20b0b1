"""Storing values in arrays and views of them.

In: an array or view, and what it is to hold. Out: the value cast and broadcast to fit, and the
content of the array that the view is of after it was written.
"""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.arrays.numpys_words import not_stored
from pyrelay.infer.containers import found_items
from pyrelay.infer.flow.handling import certain, without_words
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.operators import numbers_of_members, raised
from pyrelay.ir import limits, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, OpCall
from pyrelay.ir.types import DType, TensorType

_INTO_A_PART = "could not broadcast input array from shape ({0},) into shape ({1},)"


def fitted(
    it: Interpreter, value: V.Value, target: TensorType, unequal: str = _INTO_A_PART,
    alone: bool = True,
) -> Atom:
    """A value cast and broadcast to the type of what it is assigned to.

    `unequal` is the text of the error for two lengths that the running program finds unequal;
    `alone` says that this is an item or a slice (see `adapters.as_element`).
    """
    from pyrelay.infer.names.adapters import as_element, to_array

    is_range = isinstance(value, V.Known) and isinstance(value.value, range)
    if V.is_list(value) or is_range or isinstance(value, V.Tuple | V.OpenTuple | V.Range):
        value = to_array(it, value, dtype=target.dtype)
    value = numbers_of_members(it, value)
    if value == V.NONE and target.dtype.kind == "f":
        value = V.Known(math.nan)  # as NumPy does
    ty = V.tensor_type(value)
    if ty is None:
        raise it.failure(
            errors.TypeMismatchError, f"{V.describe(value)} cannot be stored in an array"
        )
    if ty.dtype.kind == "c" and target.dtype.kind != "c":
        raise it.failure(
            errors.TypeMismatchError, f"{ty} cannot be stored in {target}: it is complex"
        )
    shape = ty.shape
    while len(shape) > len(target.shape) and shape[0] == 1:
        shape = shape[1:]
    if shape != ty.shape:
        value = it.call("reshape", value, shape=shape)
    value, shape = _of_one(it, value, shape, target.shape)
    same = len(shape) == len(target.shape) and all(
        it.program.guards.equal(a, b) for a, b in zip(shape, target.shape, strict=True)
    )
    whole = isinstance(value, V.Natural) and target.dtype is types.u64
    atom = value.bits if whole else as_element(it, value, target.dtype, alone)  # type: ignore[union-attr]
    if not same and len(shape) == len(target.shape) == 1 and it.program.guards.equal(
        shape[0], target.shape[0]
    ) is None and shape != (1,) and not it.program.guards.equal(shape[0], 1):
        it.emit("check_equal", left=shape[0], right=target.shape[0], text=unequal)
        return it.emit("refine", atom, shape=target.shape).atom  # type: ignore[no-any-return]
    if same or not target.shape:
        return atom if same else it.emit("broadcast_to", atom, shape=target.shape).atom
    _check_broadcast(it, TensorType(ty.dtype, shape), target)
    return it.emit("broadcast_to", atom, shape=target.shape).atom  # type: ignore[no-any-return]


def refuse_to_an_element(it: Interpreter, value: V.Value, dtype: DType) -> None:
    """Raise as this NumPy does for an array or a list of one number that one element is to be."""
    ty = V.tensor_type(value)
    sample: Any = [1] if V.is_list(value) else (1,) if isinstance(value, V.Tuple) else None
    if sample is None and (ty is None or not ty.shape):
        return
    error = _refused(dtype, np.ones(1) if sample is None else sample)
    if error is None:
        return
    failure = it.failure(
        errors.ShapeError, f"{V.describe(value)} cannot be stored in one element of an array",
        hints=("store a number, such as y[0] or y.item()",),
    )
    raise certain(it, failure, type(error), str(error))


def _refused(dtype: DType, sample: Any) -> Exception | None:
    """What NumPy says of what it is to store in an element; None if it stores it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.zeros(1, dtype.numpy)[0] = sample
    except (TypeError, ValueError) as error:
        return error
    return None


def _of_one(
    it: Interpreter, value: V.Value, shape: tuple[Extent, ...], target: tuple[Extent, ...]
) -> tuple[V.Value, tuple[Extent, ...]]:
    """A value whose extents that are 0 or 1 are checked to be 1 where the target has more."""
    pairs = itertools.zip_longest(reversed(shape), reversed(target), fillvalue=1)
    single = [
        limits.at_most_one(d) and not isinstance(d, int) and not limits.at_most_one(t)
        for d, t in pairs
    ][: len(shape)][::-1]
    if not any(single):
        return value, shape
    for extent, one in zip(shape, single, strict=True):
        if one:
            it.emit("check_equal", left=extent, right=1, text=_INTO_A_PART)
    shape = tuple(1 if one else d for d, one in zip(shape, single, strict=True))
    return it.call("refine", value, shape=shape), shape


def _check_broadcast(it: Interpreter, ty: TensorType, target: TensorType) -> None:
    equal = it.program.guards.equal
    fits = len(ty.shape) <= len(target.shape) and all(
        d == 1 or equal(d, t) is not False or equal(d, 1)
        for d, t in zip(reversed(ty.shape), reversed(target.shape), strict=False)
    )
    if not fits:
        failure = it.failure(
            errors.ShapeError, f"{ty} cannot be stored in a part of shape {target}",
            notes=("the value must have the shape of the part, or broadcast to it",),
        )
        raise without_words(it, failure, ValueError, not_stored(it, ty, target))


def write_whole(it: Interpreter, target: V.ArrayRef, value: Atom) -> None:
    """Give every element of an array or view a new value; the root sees it."""
    span = it.let.span if it.let else None
    if target.view:
        parents = [it.builder.handle(it.content(target.root))]
        for step in target.view[:-1]:
            parents.append(it.emit(step.kind, parents[-1], *step.atoms, **step.keywords))
        for step, parent in zip(reversed(target.view), reversed(parents), strict=True):
            value = _updated(it, parent, step, value)
    if not found_items.write_through(it, target.root, value):
        it.heap.write(target.root, _committed(it, target.root, value), span)


def _committed(it: Interpreter, root: V.Root, value: Atom) -> Atom:
    """The new content of an array, said to be it from here on where the caller sees the array.

    An update of a part of the present content is made where the array lies anyway.
    """
    present, ty = it.heap.contents[root], value.type
    assert isinstance(ty, TensorType)
    if root.leaf is None or not ty.shape or root in it.heap.stale:
        return value
    maker = it.builder.lets[-1].rhs if it.builder.lets else None
    if isinstance(maker, OpCall) and maker.op.name in _IN_PLACE and maker.args[0] is present and (
        maker.attrs.get("sizes") != ty.shape
    ):
        return value
    none = (0,) * ty.rank
    committed = it.emit(
        "commit", present, value, starts=none, sizes=ty.shape, steps=(1,) * ty.rank
    )
    return committed.atom  # type: ignore[no-any-return]


_IN_PLACE = frozenset(["slice_update", "index_update", "scatter_update", "scatter_add"])


def _updated(it: Interpreter, parent: Any, step: V.ViewStep, value: Atom) -> Atom:
    """The parent array after the part that `step` reads was set to `value`."""
    call, attrs = it.emit, step.keywords
    result: Any
    match step.kind:
        case "slice":
            result = call("slice_update", parent, value, **attrs)
        case "index":
            result = call("index_update", parent, value, *step.atoms, **attrs)
        case "transpose":
            axes = attrs["axes"]
            inverse = tuple(axes.index(k) for k in range(len(axes)))
            result = call("transpose", value, axes=inverse)
        case "expand_dims":
            result = call("squeeze", value, axes=attrs["axes"])
        case "squeeze":
            result = call("expand_dims", value, axes=attrs["axes"])
        case "real":
            result = call("make_complex", value, call("imag", parent))
        case "imag":
            result = call("make_complex", call("real", parent), value)
        case "bitcast":
            result = call("bitcast", value, dtype=parent.dtype)
        case "reshape" | "refine":
            result = call(step.kind, value, shape=parent.shape)
        case _:  # "gather_inside", "broadcast_to": NumPy lets nobody write these
            raise raised(it, ValueError("assignment destination is read-only"))
    atom: Atom = result.atom
    return atom
