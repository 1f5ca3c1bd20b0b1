"""Subscripts: reading `x[key]`, writing `x[key] = v`, and views.

A basic index (ints, slices, `...`, `None`) of an array is a view: a chain of steps on its root,
read when it is used and written through to the root. Integer arrays gather and scatter copies.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pyrelay import errors
from pyrelay.infer import characters, choice, lists, text
from pyrelay.infer import values as V
from pyrelay.infer.handling import catches
from pyrelay.infer.in_python import ranges
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.open_keys import key_of, stored_key
from pyrelay.infer.operators import (
    binary,
    compare,
    extent_of,
    number,
    number_of_enum,
    poly_of,
    raised,
)
from pyrelay.infer.protocols import special
from pyrelay.infer.trees import fields, is_namedtuple
from pyrelay.ir import dims, types
from pyrelay.ir.build import constant
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, OpCall
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass


def get_item(it: Interpreter, obj: V.Value, key: V.Value, *, checked: bool = False) -> V.Value:
    """`obj[key]`. With `checked` an int key is known to be in range."""
    if isinstance(obj, V.Union):
        from pyrelay.infer.unions import distribute, sample

        return distribute(
            it, obj, lambda case: get_item(it, case, key), lambda c: c[sample(it, key)]
        )
    if isinstance(key, V.Union):
        from pyrelay.infer.unions import distribute, sample

        return distribute(
            it, key, lambda case: get_item(it, obj, case), lambda c: sample(it, obj)[c]
        )
    if not isinstance(obj, V.ArrayRef):
        key = number(it, key)
    match obj:
        case V.ArrayRef() if _is_flag(key):
            return it.new_array(it.atom(_if_true(it, obj, key)))
        case V.ArrayRef():
            part = _index_array(it, obj, number_of_enum(key), checked)
            copied = isinstance(obj, V.Flat) and isinstance(part, V.ArrayRef)
            return it.new_array(it.atom(part)) if copied else part
        case V.Tuple(items):
            return choice.item(it, items, key, "tuple")
        case V.Scalar(ty) if not ty.weak and not _expand(it, key, 0):
            return obj  # an array of no axes is a number here
        case V.Ref(root) if root.kind == "list":
            return _index_list(it, obj, key, checked)
        case V.Ref(root) if root.kind == "dict":
            return choice.lookup(it, obj, key)
        case V.Ref(cls=cls) | V.Data(cls=cls) if cls is not None and hasattr(cls, "__getitem__"):
            from pyrelay.infer.attributes import of_class
            from pyrelay.infer.calls import call

            return call(it, V.Known(of_class(it, cls, "__getitem__")), (obj, key), {})
        case V.Items():
            from pyrelay.infer.trees import checked_item

            return checked_item(it, obj, key)
        case V.Data() if is_namedtuple(obj):
            return choice.item(it, fields(it, obj), key, "tuple")
        case V.Range():
            return _index_range(it, obj, number_of_enum(key))
        case _ if text.is_text(obj) and (found := characters.item(it, obj, key)) is not None:
            return found
        case V.Text():
            return text.item(it, obj, key)
        case V.Known(v):
            from pyrelay.infer.attributes import captured

            at = it.static(key, "this index")
            try:
                found = v[at]
            except (IndexError, KeyError) as error:
                raise it.failure(errors.IndexRangeError, f"{error}") from None
            except TypeError as error:
                raise it.failure(errors.TypeMismatchError, str(error)) from None
            return captured(it, found)
    raise it.failure(errors.TypeMismatchError, f"{V.describe(obj)} cannot be indexed")


def _index_range(it: Interpreter, obj: V.Range, key: V.Value) -> V.Value:
    from pyrelay.infer.calls import call

    if isinstance(key, V.Slice):
        bounds = (key.start, key.stop, key.step)
        return call(it, V.Known(ranges.part), (obj, *bounds), {})
    ty = V.number_type(key)
    if ty is None or ty.dtype.kind not in "iub":
        raise it.failure(
            errors.TypeMismatchError,
            f"range indices must be integers or slices, not {V.describe(key)}",
        )
    return call(it, V.Known(ranges.item), (obj, key), {})


def _index_list(it: Interpreter, obj: V.Ref, key: V.Value, checked: bool) -> V.Value:
    items = it.content(obj.root)
    if not isinstance(items, V.Growing):
        many = isinstance(key, V.Slice) or len(items) > lists.MOST_CHOICES
        if not (many and _grows_at(it, obj, key)):
            return choice.item(it, items, key, "list")
        items = it.content(obj.root)
    return lists.get_item(it, obj, items, key, checked=checked)


def _grows_at(it: Interpreter, obj: V.Ref, key: V.Value) -> bool:
    """Whether a list has to grow for a key; makes it grow if so."""
    bounds = (key.start, key.stop) if isinstance(key, V.Slice) else (key,)
    return any(lists.must_grow(it, obj, b) for b in bounds)


# -- arrays: what a key means ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Basic:
    """A basic key as view steps."""

    steps: tuple[V.ViewStep, ...]
    type: TensorType


def _expand(it: Interpreter, key: V.Value, rank: int) -> list[V.Value]:
    """The key as one item per axis (plus None items), `...` replaced by full slices."""
    items: list[V.Value] = list(key.items) if isinstance(key, V.Tuple) else [key]
    if isinstance(key, V.Known) and isinstance(key.value, tuple):
        items = [V.Known(v) for v in key.value]
    items = [_plain(i) for i in items]
    used = sum(_axes_used(it, i) for i in items)
    ellipses = [k for k, i in enumerate(items) if i == V.Known(Ellipsis)]
    if len(ellipses) > 1:
        raise it.failure(errors.IndexRangeError, "an index can have only one ellipsis ('...')")
    if used > rank:
        raise it.failure(
            errors.IndexRangeError,
            f"too many indices: the array has {rank} ax{'i' if rank == 1 else 'e'}s, and {used} "
            "were indexed",
        )
    full = V.Slice(V.NONE, V.NONE, V.NONE)
    filler: list[V.Value] = [full] * (rank - used)
    at = ellipses[0] if ellipses else len(items)
    return items[:at] + filler + items[at + 1 :]


def _plain(item: V.Value) -> V.Value:
    if isinstance(item, V.Known) and isinstance(item.value, slice):
        s = item.value
        return V.Slice(V.Known(s.start), V.Known(s.stop), V.Known(s.step))
    return item


def _axes_used(it: Interpreter, item: V.Value) -> int:
    if item == V.Known(Ellipsis) or item == V.NONE:
        return 0
    if isinstance(item, V.ArrayRef) and item.type.dtype is types.bool_:
        return item.type.rank
    return 1


def _is_index(value: V.Value) -> bool:
    ty = V.number_type(value)
    return ty is not None and (ty.dtype.is_integer)


def _index_array(it: Interpreter, array: V.ArrayRef, key: V.Value, checked: bool) -> V.Value:
    key = _as_array_key(it, key)
    items = _expand(it, key, array.type.rank)
    if any(isinstance(i, V.ArrayRef) for i in items):
        from pyrelay.infer.advanced import gather

        return gather(it, array, items)
    basic = _basic(it, array.type, items, checked)
    view = V.ArrayRef(array.root, array.view + basic.steps, basic.type)
    if basic.type.shape:
        return view if basic.steps else V.ArrayRef(array.root, array.view, array.type)
    return it.result(it.builder.handle(it.atom(view)))


def _is_flag(key: V.Value) -> bool:
    ty = V.number_type(key)
    return ty is not None and ty.dtype is types.bool_


def _if_true(it: Interpreter, array: V.ArrayRef, flag: V.Value) -> V.Value:
    """The array with a new first axis of one element, or of none if a bool is false."""
    count = it.result(it.builder.handle(it.builder.cast(it.atom(flag), types.i64, weak=True)))
    return get_item(it, get_item(it, array, V.NONE), V.Slice(V.NONE, count, V.NONE))


def _as_array_key(it: Interpreter, key: V.Value) -> V.Value:
    """Lists of indices become arrays, as in NumPy."""

    def convert(item: V.Value) -> V.Value:
        from pyrelay.infer.adapters import to_array

        if isinstance(item, V.Range) or (isinstance(item, V.Ref) and item.root.kind == "list"):
            return to_array(it, item)
        if isinstance(item, V.Known) and isinstance(item.value, (list, range)):
            return to_array(it, V.Tuple(tuple(map(V.Known, item.value))))
        return item

    if isinstance(key, V.Tuple):
        return V.Tuple(tuple(map(convert, key.items)))
    return convert(key)


def _basic(
    it: Interpreter, ty: TensorType, items: Sequence[V.Value], checked: bool
) -> _Basic:
    """View steps of ints, slices and None: first ints, then slices, then new axes."""
    starts: list[Extent] = []
    sizes: list[Extent] = []
    strides: list[int] = []
    ints: list[tuple[int, Atom]] = []
    new_axes: list[int] = []
    axis = kept = 0
    for item in items:
        if item == V.NONE:
            new_axes.append(kept)
            kept += 1
            continue
        extent = ty.shape[axis]
        if isinstance(item, V.Slice):
            start, size, step = slice_bounds(it, item, extent)
            kept += 1
        elif _is_index(item):
            start, size, step = 0, extent, 1
            ints.append((axis, index_atom(it, item, extent, axis, checked)))
        else:
            raise it.failure(
                errors.TypeMismatchError,
                f"an array cannot be indexed with {V.describe(item)}",
                hints=("use ints, slices, '...', None, or arrays of ints or bools",),
            )
        starts.append(start)
        sizes.append(size)
        strides.append(step)
        axis += 1
    return _steps(ty, starts, sizes, strides, ints, new_axes)


def _steps(
    ty: TensorType, starts: list[Extent], sizes: list[Extent], strides: list[int],
    ints: list[tuple[int, Atom]], new_axes: list[int],
) -> _Basic:
    steps: list[V.ViewStep] = []
    taken = [a for a, _ in ints]
    if ints:  # first, so that nobody handles more than the rows that are meant
        steps.append(V.ViewStep("index", tuple(i for _, i in ints), (("axes", tuple(taken)),)))
    rest = [a for a in range(len(ty.shape)) if a not in taken]
    shape: tuple[Extent, ...] = tuple(sizes[a] for a in rest)
    if any(starts[a] != 0 or strides[a] != 1 or sizes[a] != ty.shape[a] for a in rest):
        attrs = (
            ("starts", tuple(starts[a] for a in rest)), ("sizes", shape),
            ("steps", tuple(strides[a] for a in rest)),
        )
        steps.append(V.ViewStep("slice", (), attrs))
    if new_axes:
        steps.append(V.ViewStep("expand_dims", (), (("axes", tuple(new_axes)),)))
        for a in new_axes:
            shape = (*shape[:a], 1, *shape[a:])
    return _Basic(tuple(steps), TensorType(ty.dtype, shape))


def index_atom(
    it: Interpreter, item: V.Value, extent: Extent, axis: int, checked: bool = False
) -> Atom:
    """A checked, non-negative index for an axis of this extent."""
    if checked:
        return it.builder.cast(it.atom(item), types.i64, weak=True)
    known = poly_of(item)
    if known is not None:
        if isinstance(known, int) and known < 0:
            known = dims.add(extent, known)
        low = it.program.guards.compare(">=", known, 0)
        high = it.program.guards.compare("<", known, extent)
        if low and high:
            own = isinstance(item, V.Scalar) and item.atom is not None
            return it.atom(item) if own else it.builder.extent(known).atom
        sure = not it.conditional and extent_of(item) is not None
        if sure and (low is False or high is False) and not catches(it, IndexError):
            raise it.failure(
                errors.IndexRangeError,
                f"index {_shown(item)} is out of bounds for axis {axis} with size "
                f"{dims.show(extent)}",
            )
    atom = it.builder.cast(it.atom(item), types.i64, weak=True)
    result: Atom = it.builder.call(OPS["check_index"], atom, size=extent, axis=axis).atom
    return result


def _shown(item: V.Value) -> str:
    return str(item.value) if isinstance(item, V.Known) else V.describe(item)


def slice_bounds(
    it: Interpreter, item: V.Slice, extent: Extent
) -> tuple[Extent, Extent, int]:
    """Start, number of elements and step of a slice of an axis, clipped as in Python."""
    step = 1 if item.step == V.NONE else it.static(item.step, "the step of a slice")
    if step == 0:
        raise it.failure(errors.InvalidValueError, "slice step cannot be zero")
    of_one = step > 0 and _is_of_one(it, item)
    if step > 0:
        start = _clip(it, item.start, extent, 0, low=0, high=extent)
        stop = _clip(it, item.stop, extent, extent, low=0, high=extent)
        span = dims.add(stop, dims.multiply(-1, start))
    else:
        last = dims.add(extent, -1)
        start = _clip(it, item.start, extent, last, low=-1, high=last)
        stop = _clip(it, item.stop, extent, -1, low=-1, high=last)
        span = dims.add(start, dims.multiply(-1, stop))
    width = abs(step)
    size = dims.quotient(dims.add(span, width - 1), width) if width > 1 else span
    positive = it.program.guards.compare(">=", size, 0) if not isinstance(size, int) else size >= 0
    if positive is False:
        size = 0
    elif positive is None and not dims.non_negative(size):
        size = dims.maximum(size, 0)
    if of_one:
        size = dims.minimum(size, 1)
    return start, size, step


def _is_of_one(it: Interpreter, item: V.Slice) -> bool:
    """True of `x[i : i + 1]`: one element, or none where the axis ends before it."""
    if item.start == V.NONE or item.stop == V.NONE:
        return False
    start, stop = poly_of(item.start), poly_of(item.stop)
    if start is not None and stop is not None:
        return dims.add(stop, dims.multiply(-1, start)) == 1
    low, below = _offset(it, item.start)
    high, above = _offset(it, item.stop)
    return low is not None and low is high and above - below == 1


def _offset(it: Interpreter, number: V.Value) -> tuple[Atom | None, int]:
    """What a number that was computed just now as `x + 3` or `x - 3` was computed from."""
    atom = number.atom if isinstance(number, V.Scalar) else None
    for let in it.builder.lets[-_JUST_NOW:]:
        if len(let.outs) == 1 and let.outs[0] is atom and isinstance(let.rhs, OpCall):
            for op, sign in ((OPS["add"], 1), (OPS["subtract"], -1)):
                by = let.rhs.args[-1] if let.rhs.op is op else None
                if isinstance(by, Const) and isinstance(by.value, int):
                    return let.rhs.args[0], sign * by.value
    return atom, 0


def _clip(
    it: Interpreter, bound: V.Value, extent: Extent, default: Extent, *, low: Extent, high: Extent
) -> Extent:
    """A slice bound as an extent between low and high; negative counts from the end."""
    if bound == V.NONE:
        return default
    known = poly_of(bound)
    if known is None:
        return _run_time_bound(it, bound, extent, low, high)
    guards = it.program.guards
    if isinstance(known, int):
        negative: bool | None = known < 0
    else:
        negative = False if dims.non_negative(known) else guards.compare("<", known, 0)
    if negative is None:
        return _run_time_bound(it, bound, extent, low, high)
    if negative:
        known = dims.add(known, extent)
    below = guards.compare("<", known, low)
    if below is None:
        known = dims.maximum(known, low)
    elif below:
        known = low
    above = guards.compare(">", known, high)
    if above is None:
        return dims.minimum(known, high)
    return high if above else known


def _run_time_bound(
    it: Interpreter, bound: V.Value, extent: Extent, low: Extent, high: Extent
) -> Extent:
    """A bound known only at run time becomes an extent of the program."""
    if not _is_index(bound):
        raise it.failure(
            errors.TypeMismatchError,
            f"slice bounds must be integers or None, not {V.describe(bound)}",
        )
    b = it.builder
    raw = b.handle(b.cast(it.atom(bound), types.i64, weak=True))
    size = b.extent(extent)
    wrapped = b.call(OPS["where"], raw < 0, raw + size, raw)
    clipped = b.call(
        OPS["minimum"], b.call(OPS["maximum"], wrapped, b.extent(low)), b.extent(high)
    )
    if low == 0:
        _, (symbol,) = b.call(OPS["as_extent"], clipped, name="k")
        return symbol  # type: ignore[no-any-return]
    _, (symbol,) = b.call(OPS["as_extent"], clipped + 1, name="k")
    return dims.add(symbol, -1)


# -- writing ---------------------------------------------------------------------------------------


def set_item(it: Interpreter, obj: V.Value, key: V.Value, value: V.Value) -> None:
    """`obj[key] = value`."""
    match obj:
        case V.ArrayRef() if isinstance(value, V.Union):
            from pyrelay.infer.unions import distribute_all

            def stored(case: V.Value) -> tuple[V.Value, ...]:
                _write_array(it, obj, key, case)
                return ()

            distribute_all(it, value, stored)
            return
        case V.ArrayRef() if _is_flag(key):
            set_item(it, _if_true(it, obj, key), V.Known(Ellipsis), value)
            return
        case V.ArrayRef():
            _write_array(it, obj, key, value)
            return
        case V.Ref(root) if root.kind == "list":
            if _grows_at(it, obj, key):
                lists.set_item(it, obj, key, value)
                return
            items = list(it.content(root))
            if not items and isinstance(key, V.Scalar):
                raise raised(it, IndexError("list assignment index out of range"))
            index = it.static(key, "the index of a list")
            new: Any = value
            if isinstance(index, slice):
                from pyrelay.infer.adapters import nested_items

                new = nested_items(it, value)
            try:
                items[index] = new
            except ValueError as error:
                raise it.failure(errors.InvalidValueError, str(error)) from None
            except IndexError:
                if it.conditional or catches(it, IndexError):
                    raise raised(it, IndexError("list assignment index out of range")) from None
                raise it.failure(
                    errors.IndexRangeError,
                    f"list index {index} is out of range: it has {len(items)} items",
                ) from None
            it.heap.write(root, tuple(items), it.let.span if it.let else None)
            return
        case V.Ref(root) if root.kind == "dict":
            known = stored_key(it, obj, key)
            it.heap.write(root, {**it.content(root), known: value}, it.let.span if it.let else None)
            return
        case V.Ref(_, cls) if cls is not None and hasattr(cls, "__setitem__"):
            from pyrelay.infer.attributes import of_class
            from pyrelay.infer.calls import call

            call(it, V.Known(of_class(it, cls, "__setitem__")), (obj, key, value), {})
            return
        case V.Tuple():
            raise it.failure(
                errors.TypeMismatchError, "a tuple cannot be changed: its items are fixed",
                hints=("make it a list",),
            )
    raise it.failure(
        errors.TypeMismatchError, f"{V.describe(obj)} does not support item assignment"
    )


def _write_array(it: Interpreter, array: V.ArrayRef, key: V.Value, value: V.Value) -> None:
    key = _as_array_key(it, key)
    items = _with_steps(it, array.type, _expand(it, key, array.type.rank))
    if any(isinstance(i, V.ArrayRef) for i in items):
        from pyrelay.infer.advanced import scatter

        scatter(it, array, items, value)
        return
    basic = _basic(it, array.type, items, False)
    target = V.ArrayRef(array.root, array.view + basic.steps, basic.type)
    write_whole(it, target, fitted(it, value, basic.type))


def add_item(it: Interpreter, obj: V.Value, key: V.Value, value: V.Value) -> None:
    """np.add.at(obj, key, value): repeated indices add up."""
    if not isinstance(obj, V.ArrayRef):
        raise it.failure(
            errors.TypeMismatchError, f"np.add.at writes to an array, not to {V.describe(obj)}"
        )
    items = _expand(it, _as_array_key(it, key), obj.type.rank)
    if any(isinstance(i, V.ArrayRef) for i in items):
        from pyrelay.infer.advanced import scatter

        scatter(it, obj, items, value, add=True)
        return
    set_item(it, obj, key, binary(it, "+", get_item(it, obj, key), value))


def _with_steps(it: Interpreter, ty: TensorType, items: list[V.Value]) -> list[V.Value]:
    """A key to write to; a slice whose step only the running program knows becomes its indices."""
    axis, result = 0, []
    for item in items:
        if isinstance(item, V.Slice) and isinstance(item.step, V.Scalar):
            from pyrelay.infer.calls import call
            from pyrelay.infer.in_python.sorting import positions

            bounds = (item.start, item.stop, item.step, V.Scalar.of_extent(ty.shape[axis]))
            result.append(call(it, V.Known(positions), bounds, {}))
        else:
            result.append(item)
        axis += _axes_used(it, item)
    return result


#: How many operations back the bounds of a slice are looked for.
_JUST_NOW = 8
_INTO_A_PART = "could not broadcast input array from shape ({0},) into shape ({1},)"


def fitted(
    it: Interpreter, value: V.Value, target: TensorType, unequal: str = _INTO_A_PART
) -> Atom:
    """A value cast and broadcast to the type of what it is assigned to.

    `unequal` is the text of the error for two lengths that the running program finds unequal.
    """
    if (isinstance(value, V.Ref) and value.root.kind == "list") or isinstance(value, V.Tuple):
        from pyrelay.infer.adapters import to_array

        value = to_array(it, value)
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
    atom = it.builder.cast(it.atom(value), target.dtype)
    if not same and len(shape) == len(target.shape) == 1 and it.program.guards.equal(
        shape[0], target.shape[0]
    ) is None and shape != (1,):
        it.emit("check_equal", left=shape[0], right=target.shape[0], text=unequal)
        return it.emit("refine", atom, shape=target.shape).atom  # type: ignore[no-any-return]
    if same or not target.shape:
        return atom if same else it.emit("broadcast_to", atom, shape=target.shape).atom
    _check_broadcast(it, ty, target)
    return it.emit("broadcast_to", atom, shape=target.shape).atom  # type: ignore[no-any-return]


def _of_one(
    it: Interpreter, value: V.Value, shape: tuple[Extent, ...], target: tuple[Extent, ...]
) -> tuple[V.Value, tuple[Extent, ...]]:
    """A value whose extents that are 0 or 1 are checked to be 1 where the target has more."""
    pairs = itertools.zip_longest(reversed(shape), reversed(target), fillvalue=1)
    single = [
        dims.at_most_one(d) and not isinstance(d, int) and not dims.at_most_one(t)
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
    fits = len(ty.shape) <= len(target.shape) and all(
        d == 1 or it.program.guards.equal(d, t) is not False
        for d, t in zip(reversed(ty.shape), reversed(target.shape), strict=False)
    )
    if not fits:
        raise it.failure(
            errors.ShapeError, f"{ty} cannot be stored in a part of shape {target}",
            notes=("the value must have the shape of the part, or broadcast to it",),
        )


def write_whole(it: Interpreter, target: V.ArrayRef, value: Atom) -> None:
    """Give every element of an array or view a new value; the root sees it."""
    span = it.let.span if it.let else None
    if not target.view:
        if not lists.write_through(it, target.root, value):
            it.heap.write(target.root, value, span)
        return
    parents = [it.builder.handle(it.content(target.root))]
    for step in target.view[:-1]:
        parents.append(it.emit(step.kind, parents[-1], *step.atoms, **step.keywords))
    for step, parent in zip(reversed(target.view), reversed(parents), strict=True):
        value = _updated(it, parent, step, value)
    if not lists.write_through(it, target.root, value):
        it.heap.write(target.root, value, span)


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
        case "reshape" | "refine":
            result = call(step.kind, value, shape=parent.shape)
        case _:  # "gather", "broadcast_to": NumPy lets nobody write these
            raise raised(it, ValueError("assignment destination is read-only"))
    atom: Atom = result.atom
    return atom


def del_item(it: Interpreter, obj: V.Value, key: V.Value) -> None:
    """`del obj[key]` of a list or dict."""
    if isinstance(obj, V.Ref) and obj.root.kind == "list" and _grows_at(it, obj, key):
        if isinstance(key, V.Slice):
            from pyrelay.infer.list_slices import delete_slice

            delete_slice(it, obj, key)
        else:
            lists.pop(it, obj, key, "list assignment index out of range")
        return
    if isinstance(obj, V.Ref) and obj.root.kind == "object":
        method = special(it, obj, "__delitem__", key)
        if method is not None:
            return
    if isinstance(obj, V.Ref) and obj.root.kind == "dict":
        known = key_of(it, obj, key, "the key to delete")
    else:
        known = it.static(key, "the key to delete")
    if isinstance(obj, V.Ref) and obj.root.kind == "dict":
        content = dict(it.content(obj.root))
        if known not in content:
            if catches(it, KeyError):
                raise raised(it, KeyError(known))
            raise it.failure(errors.KeyMissingError, f"this dict has no key {known!r}")
        del content[known]
        it.heap.write(obj.root, content, it.let.span if it.let else None)
        return
    if isinstance(obj, V.Ref) and obj.root.kind == "list":
        items = list(it.content(obj.root))
        del items[known]
        it.heap.write(obj.root, tuple(items), it.let.span if it.let else None)
        return
    raise it.failure(errors.TypeMismatchError, f"items of {V.describe(obj)} cannot be deleted")


__all__ = [
    "add_item", "binary", "compare", "constant", "del_item", "fitted", "get_item", "index_atom",
    "set_item",
    "slice_bounds", "write_whole",
]
