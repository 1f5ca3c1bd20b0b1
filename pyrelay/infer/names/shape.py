"""NumPy's functions of shape, as handlers: views where NumPy gives views."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.arrays import strides
from pyrelay.infer.arrays.numpys_words import not_reshaped
from pyrelay.infer.arrays.strides import is_contiguous as lies_in_one_piece
from pyrelay.infer.attributes import get_attribute, is_our_own
from pyrelay.infer.calls import call
from pyrelay.infer.containers import text
from pyrelay.infer.flow.handling import certain, without_words
from pyrelay.infer.in_python import arrangement, insertion
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.names.adapters import (
    axes_of,
    extent,
    nested_items,
    normal_axis,
    operand,
    shape_of,
    strong,
)
from pyrelay.infer.names.creation import of_no_axes
from pyrelay.infer.names.handlers import handles
from pyrelay.infer.operators import raised
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType

FALSE, TRUE = V.Known(False), V.Known(True)
ZERO, ONE = V.Known(0), V.Known(1)


def view(it: Interpreter, x: V.Value, kind: str, ty: TensorType, **attrs: Any) -> V.Value:
    """A view of an array by one more step. A number is computed at once, and so is a view of no
    axes in functions of ours, which are NumPy's seen from within."""
    if isinstance(x, V.ArrayRef) and (ty.shape or not is_our_own(it)):
        step = V.ViewStep(kind, (), tuple(attrs.items()))
        return V.ArrayRef(x.root, (*x.view, step), ty)
    return it.call(kind, x, **attrs)


@handles(np.shape)
def shape(it: Interpreter, a: V.Value) -> V.Value:
    """np.shape."""
    return V.Tuple(tuple(V.Scalar.of_extent(d) for d in it.tensor(operand(it, a)).shape))


@handles(np.ndim)
def ndim(it: Interpreter, a: V.Value) -> V.Value:
    """np.ndim."""
    return V.Known(it.tensor(operand(it, a)).rank)


@handles(np.size)
def size(it: Interpreter, a: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.size."""
    ty = it.tensor(operand(it, a))
    if axis == V.NONE:
        return V.Scalar.of_extent(ty.size)
    return V.Scalar.of_extent(dims.product(ty.shape[k] for k in axes_of(it, axis, ty.rank)))


@handles(np.reshape)
def np_reshape(
    it: Interpreter, a: V.Value, shape: V.Value, order: V.Value = V.Known("C"), *,
    copy: V.Value = V.NONE,
) -> V.Value:
    """np.reshape: a view where the strides allow one, a copy elsewhere or where it is asked for."""
    given = operand(it, a)
    made = reshape(it, given, shape, order)
    if not (isinstance(given, V.ArrayRef) and isinstance(made, V.ArrayRef)):
        return made
    if copy == TRUE and made.root is given.root:
        return strides.copied(it, made)
    if copy == FALSE and made.root is not given.root:
        raise raised(it, ValueError("Unable to avoid creating a copy while reshaping."))
    return made


def reshape(
    it: Interpreter, a: V.Value, shape: V.Value, order: V.Value = V.Known("C")
) -> V.Value:
    """The same; one extent may be -1."""
    a = operand(it, a)
    order = _told_order(it, a, order)
    if order == V.Known("F"):  # the axes in reverse order, before and after
        turned = shape
        if V.number_type(shape) is None:
            turned = V.Tuple(tuple(reversed(_items(it, shape))))
        return transpose(it, reshape(it, transpose(it, a), turned))
    ty = it.tensor(a)
    wanted = [shape] if V.number_type(shape) is not None else list(_items(it, shape))
    known = [i for i, v in enumerate(wanted) if v == V.Known(-1)]
    if len(known) > 1:
        raise it.failure(errors.InvalidValueError, "reshape: only one extent can be -1")
    given = [extent(it, v) for v in wanted if v != V.Known(-1)]
    if known:
        rest = dims.product(given)
        asked: list[Extent] = list(given)
        asked.insert(known[0], -1)
        if it.program.guards.equal(rest, 0):
            failure = it.failure(
                errors.ShapeError, f"cannot reshape {ty} into ({_spell(asked)})",
                notes=("in groups of no element any number of them is as many elements",),
            )
            raise without_words(it, failure, ValueError, not_reshaped(it, ty.size, asked))
        _refuse_nothing_each(it, ty, rest, asked)
        missing = dims.quotient(ty.size, rest)
        if it.program.guards.equal(dims.multiply(missing, rest), ty.size) is False:
            failure = it.failure(
                errors.ShapeError,
                f"cannot reshape {ty}: {dims.show(ty.size)} elements do not divide into groups of "
                f"{dims.show(rest)}",
            )
            raise without_words(it, failure, ValueError, not_reshaped(it, ty.size, asked))
        given.insert(known[0], missing)
    result = TensorType(ty.dtype, tuple(given))
    if it.program.guards.equal(ty.size, result.size) is False:
        failure = it.failure(
            errors.ShapeError, f"cannot reshape {ty} into shape ({_spell(given)})",
            notes=(f"{dims.show(ty.size)} elements are not {dims.show(result.size)}",),
        )
        raise without_words(it, failure, ValueError, not_reshaped(it, ty.size, given))
    if isinstance(a, V.ArrayRef):
        axes = strides.of_view(it, a)
        if axes is None or strides.reshaped(it, axes, result.shape) is None:
            a = strides.copied(it, a)  # NumPy copies where strides do not allow a view
    if it.program.guards.equal(ty.size, result.size) is None:
        a = _of_size(it, a, result.size)
    made = view(it, a, "reshape", result, shape=result.shape)
    return of_no_axes(it, made) if ty.weak else made  # of a NumPy number it is one


def _told_order(it: Interpreter, a: V.Value, order: V.Value) -> V.Value:
    """The order 'C' or 'F' that is meant; by 'A' the one in which the array lies in memory."""
    if order in (V.Known("C"), V.Known("F")):
        return order
    if order not in (V.Known("A"), V.Known("K")):
        raise it.failure(errors.InvalidValueError, "order must be one of 'C', 'F', 'A', or 'K'")
    if not isinstance(a, V.ArrayRef) or it.tensor(a).rank < 2:
        return V.Known("C")
    lies = [strides.lies_in(it, a, by) for by in ("F", "C")]
    if None in lies:
        raise it.failure(
            errors.UnsupportedOperationError,
            f"order={order.value!r} asks how {a.type} lies in memory, which only the running "  # type: ignore[union-attr]
            "program knows",
            hints=("say which order is meant: order='C' for rows, order='F' for columns",),
        )
    return V.Known("F" if lies == [True, False] else "C")


def _refuse_nothing_each(
    it: Interpreter, ty: TensorType, rest: Extent, asked: Sequence[Extent]
) -> None:
    """Emit NumPy's exception where the extents beside -1 hold no element, which any number fits."""
    from pyrelay.infer.flow.effects import raise_where

    if is_our_own(it) or it.program.guards.compare("<", rest, 1) is not None:
        return  # what stands for NumPy's functions takes lines of no element as they come
    empty = it.builder.call(OPS["equal"], it.builder.extent(rest), 0)
    raise_where(it, empty.atom, ValueError, _not_divided(ty.size, asked))


def _not_divided(size: Extent, shape: Sequence[Extent]) -> V.Value:
    """Of a shape with -1 that does not divide so many elements, as the running program says it."""
    pieces: list[V.Value] = [V.Known("cannot reshape array of size "), _told(size)]
    for k, wanted in enumerate(shape[shape[0] == -1 :]):
        pieces += [V.Known("," if k else " into shape ("), _told(wanted)]
    return V.Text(text.joined, (*pieces, V.Known(")")))


def _told(wanted: Extent) -> V.Value:
    """An extent in a text; -1 as NumPy has it."""
    if isinstance(wanted, int):
        return V.Known("newaxis" if wanted == -1 else str(wanted))
    return V.Text(text.formatted, (V.Scalar.of_extent(wanted), V.Known(""), V.Known("")))


def _of_size(it: Interpreter, a: V.Value, size: Any) -> V.Value:
    """The elements of an array in one axis of this size, which is checked at run time."""
    ty = it.tensor(a)
    text = "the array cannot be reshaped: its size is not that of the new shape"
    it.emit("check_equal", left=ty.size, right=size, text=text)
    flat = view(it, a, "reshape", TensorType(ty.dtype, (ty.size,)), shape=(ty.size,))
    return view(it, flat, "refine", TensorType(ty.dtype, (size,)), shape=(size,))


def _items(it: Interpreter, value: V.Value) -> tuple[V.Value, ...]:
    if isinstance(value, V.Known):
        return tuple(map(V.Known, value.value))
    return nested_items(it, value)


def _spell(extents: Any) -> str:
    return ", ".join(dims.show(d) for d in extents)


@handles(np.ravel)
def ravel(it: Interpreter, a: V.Value, order: V.Value = V.Known("C")) -> V.Value:
    """np.ravel: a view of elements that lie one after the other, a copy of others."""
    a = operand(it, a)
    if order == V.Known("K") and isinstance(a, V.ArrayRef):  # as they lie, the outermost axis first
        a, order = transpose(it, a, V.Known(strides.outermost_first(it, a))), V.Known("C")
    flat = reshape(it, a, V.Known(-1), order)
    if not isinstance(flat, V.ArrayRef) or strides.is_contiguous(it, flat):
        return flat
    return strides.copied(it, flat)


def with_axis(it: Interpreter, a: V.Value, axis: V.Value) -> tuple[V.Value, int]:
    """An array and one of its axes, counted from the front: all elements in a row for None, and a
    row of one element for an array without axes."""
    given = it.static(axis, "the axis")
    if given is None:
        return ravel(it, a), 0
    rank = it.tensor(a).rank
    at = normal_axis(it, given, max(rank, 1))
    return (a if rank else ravel(it, a)), at


@handles(np.transpose, np.permute_dims)
def transpose(it: Interpreter, a: V.Value, axes: V.Value = V.NONE) -> V.Value:
    """np.transpose: a view."""
    a = operand(it, a)
    ty = it.tensor(a)
    given = it.static(axes, "the axes")
    if given is None:
        given = range(ty.rank - 1, -1, -1)
    elif not isinstance(given, (tuple, list)):
        given = (given,)
    order = tuple(normal_axis(it, x, ty.rank) for x in given)
    if sorted(order) != list(range(ty.rank)):
        raise it.failure(
            errors.InvalidValueError, f"axes {order} do not name each axis of {ty} once"
        )
    if order == tuple(range(ty.rank)):
        return of_no_axes(it, strong(it, a)) if ty.weak else a
    result = TensorType(ty.dtype, tuple(ty.shape[k] for k in order))
    return view(it, a, "transpose", result, axes=order)


@handles(np.swapaxes)
def swapaxes(it: Interpreter, a: V.Value, axis1: V.Value, axis2: V.Value) -> V.Value:
    """np.swapaxes: a view."""
    rank = it.tensor(a).rank
    order = list(range(rank))
    i = normal_axis(it, it.static(axis1, "the axis"), rank)
    j = normal_axis(it, it.static(axis2, "the axis"), rank)
    order[i], order[j] = order[j], order[i]
    return transpose(it, a, V.Known(tuple(order)))


@handles(np.moveaxis)
def moveaxis(it: Interpreter, a: V.Value, source: V.Value, destination: V.Value) -> V.Value:
    """np.moveaxis: a view."""
    rank = it.tensor(a).rank
    listed = [it.static(v, "the axis") for v in (source, destination)]
    sources, targets = (
        [normal_axis(it, k, rank) for k in (v if isinstance(v, (tuple, list)) else (v,))]
        for v in listed
    )
    if len(sources) != len(targets):
        text = "`source` and `destination` arguments must have the same number of elements"
        raise certain(it, it.failure(errors.InvalidValueError, text), ValueError, text)
    order = [k for k in range(rank) if k not in sources]
    for target, from_axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, from_axis)
    return transpose(it, a, V.Known(tuple(order)))


@handles(np.expand_dims)
def expand_dims(it: Interpreter, a: V.Value, axis: V.Value) -> V.Value:
    """np.expand_dims: a view."""
    a = operand(it, a)
    ty = it.tensor(a)
    given = it.static(axis, "the axis")
    numbers = given if isinstance(given, (tuple, list)) else (given,)
    rank = ty.rank + len(numbers)
    axes = tuple(sorted(normal_axis(it, k, rank) for k in numbers))
    extents = list(ty.shape)
    for k in axes:
        extents.insert(k, 1)
    return view(it, a, "expand_dims", TensorType(ty.dtype, tuple(extents)), axes=axes)


_NOT_ONE = "cannot select an axis to squeeze out which has size not equal to one"


def _is_one(it: Interpreter, axis: int, extent: Extent) -> bool:
    """Whether an extent is 1; one that only the running program knows may not be."""
    from pyrelay.infer.names.composed import in_python

    equal = it.program.guards.equal(extent, 1)
    if equal is None:
        check: Any = in_python("np.squeeze", arrangement.longer_than_one)
        check(it, V.Scalar.of_extent(extent), V.Known(axis))
    return equal is True


@handles(np.squeeze)
def squeeze(it: Interpreter, a: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.squeeze: a view without the axes of extent 1."""
    a = operand(it, a)
    ty, certain = it.tensor(a), True
    if axis == V.NONE:
        axes = tuple(k for k, d in enumerate(ty.shape) if _is_one(it, k, d))
    else:
        axes = axes_of(it, axis, ty.rank)
        for k in axes:
            equal = it.program.guards.equal(ty.shape[k], 1)
            if equal is False:
                raise it.failure(
                    errors.ShapeError,
                    f"cannot squeeze axis {k} of {ty}: its extent is not 1",
                )
            if equal is None:
                it.emit("check_equal", left=ty.shape[k], right=1, text=_NOT_ONE)
                certain = False
    if not certain and len(axes) < ty.rank:  # the first of those along the axis, which are one
        from pyrelay.infer.arrays.subscripts import get_item

        whole = V.Slice(V.NONE, V.NONE, V.NONE)
        kept = (V.Known(0) if k in axes else whole for k in range(ty.rank))
        return get_item(it, a, V.Tuple(tuple(kept)))
    if not axes:
        return of_no_axes(it, strong(it, a)) if ty.weak else a
    result = TensorType(ty.dtype, tuple(d for k, d in enumerate(ty.shape) if k not in axes))
    return view(it, a, "squeeze", result, axes=axes)


@handles(np.broadcast_to)
def broadcast_to(
    it: Interpreter, array: V.Value, shape: V.Value, subok: V.Value = FALSE
) -> V.Value:
    """np.broadcast_to: a view that cannot be written."""
    given, extents = operand(it, array), shape_of(it, shape)
    result = it.emit("broadcast_to", it.atom(given), shape=extents).type
    return view(it, _fitting(it, given, extents), "broadcast_to", result, shape=extents)


def _fitting(it: Interpreter, given: V.Value, extents: Sequence[Extent]) -> V.Value:
    """An array whose extents the program has compared with those behind them in a shape: a view
    that has these, so that no read of it asks again."""
    ty = it.atom(given).type
    assert isinstance(ty, TensorType)
    equal, last = it.program.guards.equal, extents[len(extents) - ty.rank :]
    shape = tuple(
        e if equal(d, 1) is not True and equal(d, e) is None else d
        for d, e in zip(ty.shape, last, strict=True)
    )
    if shape == ty.shape:
        return given
    return view(it, given, "refine", TensorType(ty.dtype, shape), shape=shape)


@handles(arrangement.seen_at)
def seen_at(it: Interpreter, x: V.Value, indices: V.Value, axes: V.Value) -> V.Value:
    """A view of the elements at index arrays along axes, as a key of these arrays reads them."""
    assert isinstance(indices, V.Tuple)
    atoms = tuple(it.builder.cast(it.atom(i), types.i64) for i in indices.items)
    along = it.static(axes, "the axes")  # who asks has seen to it that the elements exist
    found = it.emit("gather_inside", it.atom(x), *atoms, axes=along)
    if not isinstance(x, V.ArrayRef):
        return it.result(found)
    step = V.ViewStep("gather_inside", atoms, (("axes", along),))
    return V.ArrayRef(x.root, (*x.view, step), found.type)


@handles(np.lib.stride_tricks.as_strided)
def as_strided(
    it: Interpreter, x: V.Value, shape: V.Value = V.NONE, strides: V.Value = V.NONE,
    subok: V.Value = FALSE, writeable: V.Value = TRUE,
) -> V.Value:
    """np.lib.stride_tricks.as_strided of an array that lies in one piece; nobody may write it."""
    x = operand(it, x)
    if isinstance(x, V.ArrayRef) and not lies_in_one_piece(it, x):
        raise it.failure(
            errors.UnsupportedOperationError,
            "'as_strided' of an array whose elements do not lie one after the other is not "
            "compiled",
            hints=("copy it before: as_strided(x.copy(), ...)",),
        )
    extents = V.Tuple(tuple(map(V.Scalar.of_extent, it.tensor(x).shape if shape == V.NONE else (
        shape_of(it, shape)
    ))))
    distances = get_attribute(it, x, "strides") if strides == V.NONE else strides
    x, start = _with_what_is_before(it, x)
    return call(it, V.Known(arrangement.as_strided), (x, extents, distances, start), {})


def _with_what_is_before(it: Interpreter, x: V.Value) -> tuple[V.Value, V.Value]:
    """The array of which another one is the end, which negative strides lead to, and its place."""
    if isinstance(x, V.ArrayRef) and x.view and len(x.type.shape) == 1:
        *before, step = x.view
        if step.kind == "slice" and step.keywords["steps"] == (1,) and (
            all(b.kind == "reshape" for b in before)
        ):
            whole = it.builder.handle(it.content(x.root)).type
            start = V.Scalar.of_extent(step.keywords["starts"][0])
            return reshape(it, V.ArrayRef(x.root, (), whole), V.Known(-1)), start
    return x, ZERO


@handles(np.atleast_1d)
def atleast_1d(it: Interpreter, *arys: V.Value) -> V.Value:
    """np.atleast_1d; a tuple for several arrays."""
    found = [operand(it, a) for a in arys]
    found = [a if it.tensor(a).shape else reshape(it, strong(it, a), ONE) for a in found]
    return found[0] if len(found) == 1 else V.Tuple(tuple(found))


@handles(np.split)
def split(
    it: Interpreter, ary: V.Value, indices_or_sections: V.Value, axis: V.Value = ZERO
) -> V.Value:
    """np.split into equal parts, or at known indices: a list of views.

    Indices that the program computes make a list of so many parts as it computes.
    """
    from pyrelay.infer.arrays.subscripts import get_item
    from pyrelay.infer.names.composed import in_python

    ty = it.tensor(ary)
    at = normal_axis(it, it.static(axis, "the axis"), ty.rank)
    if V.number_type(indices_or_sections) is None:
        try:
            given = it.static(indices_or_sections, "the sections of split")
        except errors.StaticValueError:
            indices = operand(it, indices_or_sections)
            parted = in_python("np.split", arrangement.parted_at)
            return parted(it, ary, indices, V.Known(at))
    else:
        given = it.static(indices_or_sections, "the sections of split")
    whole = ty.shape[at]
    if isinstance(given, int):
        part = dims.quotient(whole, given)
        if it.program.guards.equal(dims.multiply(part, given), whole) is False:
            raise it.failure(
                errors.ShapeError, f"an axis of {dims.show(whole)} does not split into {given}"
            )
        cuts: list[Any] = [dims.multiply(part, k) for k in range(given + 1)]
    else:
        cuts = [0, *given, whole]
    full_slice = V.Slice(V.NONE, V.NONE, V.NONE)
    parts = []
    for low, high in itertools.pairwise(cuts):
        piece = V.Slice(V.Scalar.of_extent(low), V.Scalar.of_extent(high), V.NONE)
        parts.append(get_item(it, ary, V.Tuple((*[full_slice] * at, piece))))
    return it.new_ref("list", tuple(parts))


@handles(np.flip)
def flip(it: Interpreter, m: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.flip: a view."""
    from pyrelay.infer.arrays.subscripts import get_item

    m = operand(it, m)
    rank = it.tensor(m).rank
    axes = axes_of(it, axis, rank)
    if not rank:
        return it.result(it.builder.handle(it.atom(strong(it, m))))
    back = V.Slice(V.NONE, V.NONE, V.Known(-1))
    same = V.Slice(V.NONE, V.NONE, V.NONE)
    return get_item(it, m, V.Tuple(tuple(back if k in axes else same for k in range(rank))))


@handles(np.tile)
def tile(it: Interpreter, A: V.Value, reps: V.Value) -> V.Value:  # noqa: N803
    """np.tile."""
    a = operand(it, A)
    ty = it.tensor(a)
    counts = list(shape_of(it, reps))
    extents: list[Any] = [1] * (len(counts) - ty.rank) + list(ty.shape)
    counts = [*[1] * (len(extents) - len(counts)), *counts]
    spread: list[Any] = [d for e in extents for d in (1, e)]
    wide: list[Any] = [d for c, e in zip(counts, extents, strict=True) for d in (c, e)]
    expanded = it.emit("reshape", a, shape=tuple(spread))
    repeated = it.emit("broadcast_to", expanded, shape=tuple(wide))
    final = tuple(dims.multiply(c, e) for c, e in zip(counts, extents, strict=True))
    return it.call("reshape", repeated, shape=final)


@handles(np.repeat)
def repeat(it: Interpreter, a: V.Value, repeats: V.Value, axis: V.Value = V.NONE) -> V.Value:
    """np.repeat by one count, or by a count for each element of the axis."""
    a, at = with_axis(it, strong(it, operand(it, a)), axis)
    ty = it.tensor(a)
    if V.number_type(repeats) is None:
        from pyrelay.infer.names.composed import in_python

        return in_python("np.repeat", insertion.repeat)(it, a, operand(it, repeats), V.Known(at))
    count = extent(it, repeats)
    expanded = it.emit("expand_dims", a, axes=(at + 1,))
    wide = (*ty.shape[: at + 1], count, *ty.shape[at + 1 :])
    repeated = it.emit("broadcast_to", expanded, shape=wide)
    final = (*ty.shape[:at], dims.multiply(ty.shape[at], count), *ty.shape[at + 1 :])
    return it.call("reshape", repeated, shape=final)


@handles(np.pad)
def pad(
    it: Interpreter, array: V.Value, pad_width: V.Value, mode: V.Value = V.Known("constant"),
    **options: V.Value,
) -> V.Value:
    """np.pad; with one constant, and widths known while compiling, it is an op, else what goes to
    the ends is joined to it."""
    value = options.get("constant_values", ZERO)
    single = not options.keys() - {"constant_values"} and V.number_type(value) is not None
    try:
        widths = it.static(pad_width, "pad_width")
    except errors.StaticValueError:
        widths = None
    if mode != V.Known("constant") or not single or widths is None or isinstance(widths, dict):
        from pyrelay.infer.in_python import padding
        from pyrelay.infer.names.composed import in_python

        if widths is not None and not isinstance(widths, dict):
            rank = it.tensor(operand(it, array)).rank
            padded = np.broadcast_to(np.asarray(widths), (rank, 2)).any(axis=1)
            options["axes"] = V.Known(tuple(np.flatnonzero(padded).tolist()))
        return in_python("np.pad", padding.pad)(it, array, pad_width, mode, **options)
    x = operand(it, array)
    ty = it.tensor(x)
    both = np.broadcast_to(np.asarray(widths), (ty.rank, 2))
    return of_no_axes(it, it.call(
        "pad", x, it.builder.cast(it.atom(value), ty.dtype),
        before=tuple(int(w) for w in both[:, 0]), after=tuple(int(w) for w in both[:, 1]),
    ))
