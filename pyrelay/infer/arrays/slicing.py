"""Indices and bounds of slices: which elements of an axis are meant.

In: an index or a slice, and the extent of an axis. Out: a checked, non-negative index; start,
length and step of the slice, clipped as in Python.
"""

from __future__ import annotations

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.infer.calls import call
from pyrelay.infer.flow.handling import catches
from pyrelay.infer.in_python import ranges
from pyrelay.infer.interpreter import Interpreter
from pyrelay.infer.operators import extent_of, poly_of
from pyrelay.ir import dims, types
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, OpCall
from pyrelay.ir.op import OPS

#: How many operations back the bounds of a slice are looked for.
_JUST_NOW = 8


def is_index(value: V.Value) -> bool:
    """True of integers, Python's and NumPy's, and arrays of them."""
    ty = V.number_type(value)
    return ty is not None and (ty.dtype.is_integer)


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


def slice_of_axis(
    it: Interpreter, item: V.Slice, extent: Extent, known_shape: bool = True
) -> tuple[Extent, Extent, Extent]:
    """The same as `slice_bounds`, and where the program computes the step, all three at run time.

    Where no shape needs to be known (of what is written to, of lists), arguments' values are not
    asked for either.
    """
    step = item.step
    if isinstance(step, V.Scalar) and (
        not known_shape or (step.extent is None and step.origin is None)
    ):
        return _run_time_slice(it, item, extent)
    return slice_bounds(it, item, extent)


def _run_time_slice(
    it: Interpreter, item: V.Slice, extent: Extent
) -> tuple[Extent, Extent, Extent]:
    """A slice whose step is known only at run time: extents of the program."""
    for bound in (item.start, item.stop, item.step):
        if bound != V.NONE:
            _require_bound(it, bound)
    given = (item.start, item.stop, item.step, V.Scalar.of_extent(extent))
    found = call(it, V.Known(ranges.elements), given, {})
    assert isinstance(found, V.Tuple)
    first, count, forward, backward = (_as_extent(it, number) for number in found.items)
    return first, count, dims.add(forward, dims.multiply(-1, backward))


def _as_extent(it: Interpreter, number: V.Value) -> Extent:
    """A number that is not negative as an extent of the program."""
    known = poly_of(number)
    if known is not None:
        return known
    b = it.builder
    _, (symbol,) = b.call(
        OPS["as_extent"], b.cast(it.atom(number), types.i64, weak=True), name="k"
    )
    return symbol  # type: ignore[no-any-return]


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
    size = dims.quotient_up(span, width)
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


def _require_bound(it: Interpreter, bound: V.Value) -> None:
    if not is_index(bound):
        raise it.failure(
            errors.TypeMismatchError,
            f"slice bounds must be integers or None, not {V.describe(bound)}",
        )


def _run_time_bound(
    it: Interpreter, bound: V.Value, extent: Extent, low: Extent, high: Extent
) -> Extent:
    """A bound known only at run time becomes an extent of the program."""
    _require_bound(it, bound)
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
