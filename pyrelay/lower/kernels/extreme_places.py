"""Where extremes stand: loops for `s.argreduce`.

In: a way to compute the element at an index. Out: loops that leave the flat index of the first
largest or smallest element, or of the first NaN, in a scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import DType, bool_, i32, i64, u8
from pyrelay.lower.kernels.emitter import Emitter
from pyrelay.lower.kernels.kernel import If
from pyrelay.lower.kernels.reductions import Reduction, identity, in_place, one_block
from pyrelay.lower.kernels.values import Run, Value
from pyrelay.records import dataclass

_FEW = 128  # elements whose extreme is found in one pass, in a loop of the program's
_LANES = 16  # elements that are looked at side by side
_SOUGHT = 128  # elements among which an extreme of few bytes is sought once more
_SOUGHT_LONG = 512  # the same among so many that this is little
_TRUTHS, _FEW_TRUTHS = 512, 32  # truth values that are asked at once
_SOON = 64  # truth values of which only a few are asked at once
_LONG = 8192  # elements, at least
_LONG_APART = 256  # the same where they lie apart
_FEW_INTEGERS, _LONG_INTEGERS = 8, 256  # so many are looked at one by one, and block by block


def index_of_extreme(
    s: Emitter, kind: str, extents: Sequence[Extent], element: Callable[[Any], Value], dtype: DType
) -> Value:
    """The flat index of the first largest ("max") or smallest element; the first NaN wins.

    Of many, in two passes, since both become vector code: the extreme, then the first place where
    it stands. The second needs to look at one block of elements only, where one thread does the
    first block by block. Of fewer, in one pass, unless there is a NaN.
    """
    if not s.often_short:
        runs = _Runs(s, kind, extents, element, dtype)
        found = runs.place() if s.alone else None
        if found is not None:
            return found
        return _place_of_extreme(s, kind, extents, element, dtype)
    size = dims.product(extents)
    few = s.primitive("less_equal", s.extent(size), _FEW)
    place, unsure = s.variable(s.const(0, i64)), s.variable(s.primitive("logical_not", few))
    with s.body() as quick:
        found, is_nan = _first_extreme(s, kind, extents, element, dtype)
        s.assign(place, found)
        if is_nan is not None:
            s.assign(unsure, is_nan)
    with s.body() as thorough:
        s.assign(place, _place_of_extreme(s, kind, extents, element, dtype))
    s.emit(If(few.operand, tuple(quick)))
    s.emit(If(s.now(unsure).operand, tuple(thorough)))
    return place


def _names(kind: str) -> tuple[str, str]:
    """What combines two numbers, and what asks whether one is beyond another."""
    return ("maximum", "greater") if kind == "max" else ("minimum", "less")


def _first_extreme(
    s: Emitter, kind: str, extents: Sequence[Extent], element: Callable[[Any], Value], dtype: DType
) -> tuple[Value, Value | None]:
    """The index of the first extreme among numbers, kept beside it; whether there was a NaN."""
    op, beyond = _names(kind)
    best = s.variable(s.const(identity(op, dtype), dtype))
    place = s.variable(s.const(0, i64))
    is_nan = s.variable(s.const(False, bool_)) if dtype.kind == "f" else None

    def look(index: tuple[Value, ...]) -> None:
        if len(index) < len(extents):
            extent = extents[len(index)]
            with s.loop(0, s.extent(extent)) as k:
                look((*index, s.bounded(k, extent)))
            return
        value, held = s.cast(element(index), dtype), s.now(best)
        better = s.primitive(beyond, value, held)
        s.assign(place, s.where(better, s.ravel(index, extents), s.now(place)))
        s.assign(best, s.where(better, value, held))
        if is_nan is not None:
            s.assign(is_nan, s.now(is_nan) | s.primitive("not_equal", value, value))

    look(())
    return place, is_nan


def _place_of_extreme(
    s: Emitter, kind: str, extents: Sequence[Extent], element: Callable[[Any], Value], dtype: DType
) -> Value:
    """The index of the first element that is equal to the extreme, or a NaN."""
    best = in_place(s, Reduction(_names(kind)[0], tuple(extents), element, dtype))
    size = s.extent(dims.product(extents))

    def place(r: tuple[Value, ...]) -> Value:
        value = element(r)
        here = s.primitive("equal", value, best)
        if dtype.kind == "f":
            here = here | s.primitive("not_equal", value, value)
        return s.where(here, s.ravel(r, extents), size)

    return in_place(s, Reduction("minimum", tuple(extents), place, i64))


@dataclass(slots=True, eq=False)
class _Runs:
    """Elements that one thread goes through by one index for all axes."""

    s: Emitter
    kind: str
    extents: Sequence[Extent]
    element: Callable[[Any], Value]
    dtype: DType
    taken_apart: bool = False

    def at(self, k: Value) -> Value:
        """The element at a flat index."""
        run = Run(self.s.bounded(k, self.size), tuple(self.extents))
        value = self.s.cast(self.element(run.parts()), self.dtype)
        self.taken_apart |= run.taken_apart
        return value

    @property
    def size(self) -> Extent:
        """How many elements there are."""
        return dims.product(self.extents)

    def place(self) -> Value | None:
        """The index; None if one over several axes had to be divided."""
        s, restore = self.s, self.s.scope.snapshot()
        length = s.extent(self.size)
        if self.dtype.kind == "b":
            found = self._first_truth()
        elif self.dtype.size < 4:
            found = self._by_blocks(s.const(_SOUGHT_LONG, i64))
        else:
            floats = self.dtype.kind == "f"
            few, long = (_LANES, _LONG) if floats else (_FEW_INTEGERS, _LONG_INTEGERS)
            long = _LONG_APART if s.apart else long
            by_lanes = s.primitive("greater_equal", length, _LANES)
            by_lanes = by_lanes & s.primitive("less", length, long)
            found = s.choose(
                s.primitive("less", length, few), self._one_by_one,
                lambda: s.choose(by_lanes, self._by_lanes, self._of_many),
            )
            if floats:
                quick, doubted = found, s.primitive("less", found, 0)
                found = s.choose(doubted, self._first_nan, lambda: quick)
        if self.taken_apart:
            restore()
            return None
        return found

    def _one_by_one(self) -> Value:
        """Of few elements; -1 if there is a NaN."""
        s, (op, beyond) = self.s, _names(self.kind)
        best = s.variable(s.const(identity(op, self.dtype), self.dtype))
        place, is_nan = s.variable(s.const(0, i64)), s.variable(s.const(False, bool_))
        with s.loop(0, s.extent(self.size), trips=dims.minimum(self.size, _LANES)) as k:
            value, held = self.at(k), s.now(best)
            better = s.primitive(beyond, value, held)
            s.assign(place, s.where(better, k, s.now(place)))
            s.assign(best, s.where(better, value, held))
            if self.dtype.kind == "f":
                s.assign(is_nan, s.now(is_nan) | s.primitive("not_equal", value, value))
        return s.where(s.now(is_nan), -1, s.now(place))

    def _by_lanes(self) -> Value:
        """In one pass: lanes keep the first extreme of theirs, and where it stands. The last of
        them begin early, at what others have seen, so that no elements are left. -1 if there is a
        NaN."""
        s, dtype, (op, beyond) = self.s, self.dtype, _names(self.kind)
        counted = i32 if dtype.size == 4 else i64  # vectors have as many of these
        best, places = s.local_array(dtype, _LANES), s.local_array(counted, _LANES)
        nans = s.local_array(bool_, _LANES) if dtype.kind == "f" else None
        with s.lanes(_LANES, dtype) as lane:
            s.store(best, lane, s.const(identity(op, dtype), dtype))
            s.store(places, lane, s.const(0, counted))
            if nans is not None:
                s.store(nans, lane, s.const(False, bool_))
        length = s.extent(self.size)
        count = (length + (_LANES - 1)) // _LANES
        with s.loop(0, count, trips=dims.quotient_up(self.size, _LANES)) as b:
            start = s.primitive("minimum", b * _LANES, length - _LANES)
            here = s.cast(start, counted)
            with s.lanes(_LANES, dtype) as lane:
                value, held = self.at(start + lane), s.reload(best, lane)
                better = s.primitive(beyond, value, held)
                s.store(places, lane, s.where(better, here, s.reload(places, lane)))
                s.store(best, lane, s.where(better, value, held))
                if nans is not None:
                    is_nan = s.primitive("not_equal", value, value)
                    s.store(nans, lane, s.reload(nans, lane) | is_nan)
        most = s.variable(s.const(identity(op, dtype), dtype))
        unsure = s.variable(s.const(False, bool_))
        with s.lanes(_LANES, dtype) as lane:
            s.assign(most, s.primitive(op, s.now(most), s.reload(best, lane)))
            if nans is not None:
                s.assign(unsure, s.now(unsure) | s.reload(nans, lane))
        nowhere = s.const(2**31 - 1, counted)
        least = s.variable(nowhere)
        with s.lanes(_LANES, dtype) as lane:
            place = s.reload(places, lane) + s.cast(lane, counted)
            place = s.where(s.primitive("equal", s.reload(best, lane), s.now(most)), place, nowhere)
            s.assign(least, s.primitive("minimum", s.now(least), place))
        return s.where(s.now(unsure), -1, s.cast(s.now(least), i64))

    def _first_truth(self) -> Value:
        """Nothing is beyond a truth: the first block with one is the last. Blocks have a known
        number of elements, so that they are vectors without a rest: the last one begins early, at
        what others have seen."""
        s, length, start = self.s, self.s.extent(self.size), self.s.variable(self.s.const(0, i64))
        found, soon = s.variable(s.const(False, bool_)), s.primitive("minimum", length, _SOON)
        steps = ((_FEW_TRUTHS, soon), (_TRUTHS, length), (_FEW_TRUTHS, length))
        for size, stop in () if s.apart else steps:
            with s.repeat():
                here = s.now(start)
                beyond = here + size > stop
                s.leave(beyond | s.now(found) if size == _TRUTHS else beyond)
                s.assign(found, self._is_among(here, size))
                s.leave(s.now(found))
                s.assign(start, here + size)

        def last() -> Value:
            first, least = s.primitive("minimum", s.now(start), length - _FEW_TRUTHS), self._least()
            with s.lanes(_FEW_TRUTHS, bool_) as lane:
                self._take_in(least, first + lane, lane)
            place = s.cast(s.now(least), i64)
            return s.where(place < _FEW_TRUTHS, first + place, 0)

        def only() -> Value:
            least = self._least()
            with s.loop(0, length, trips=dims.minimum(self.size, _FEW_TRUTHS)) as k:
                self._take_in(least, k, k)
            place = s.cast(s.now(least), i64)
            return s.where(place < length, place, 0)

        few = s.primitive("less", length, _FEW_TRUTHS)
        return s.choose(few, only, self._one_after_the_other if s.apart else last)

    def _is_among(self, start: Value, size: int) -> Value:
        """Whether nothing is beyond one of so many elements."""
        s, found = self.s, self.s.variable(self.s.const(False, bool_))
        with s.lanes(size, bool_) as lane:
            s.assign(found, s.now(found) | self._is_extreme(start + lane))
        return s.now(found)

    def _least(self) -> Value:
        """The place of the first extreme among few: none so far. It is as short as a truth."""
        return self.s.variable(self.s.const(255, u8))

    def _take_in(self, least: Value, k: Value, place: Value) -> None:
        s = self.s
        here = s.where(self._is_extreme(k), s.cast(place, u8), s.const(255, u8))
        s.assign(least, s.primitive("minimum", s.now(least), here))

    def _one_after_the_other(self) -> Value:
        """Of what lies apart, which no vector takes in at once."""
        s, length, place = self.s, self.s.extent(self.size), self.s.variable(self.s.const(0, i64))
        with s.repeat():
            s.leave(s.now(place) >= length)
            s.leave(self._is_extreme(s.now(place)))
            s.assign(place, s.now(place) + 1)
        return s.where(s.now(place) < length, s.now(place), 0)

    def _is_extreme(self, k: Value) -> Value:
        """Whether nothing is beyond the truth value at a flat index."""
        value = self.at(k)
        return value if self.kind == "max" else self.s.primitive("logical_not", value)

    def _first_nan(self) -> Value:
        s = self.s
        place = s.variable(s.const(0, i64))
        with s.repeat():
            value = self.at(s.now(place))
            s.leave(s.primitive("not_equal", value, value))
            s.assign(place, s.now(place) + 1)
        return s.now(place)

    def _of_many(self) -> Value:
        """Block by block."""
        s = self.s
        is_long = s.primitive("greater_equal", s.extent(self.size), _LONG)
        return self._by_blocks(s.where(is_long, s.const(_SOUGHT_LONG, i64), _SOUGHT))

    def _by_blocks(self, sought: Value) -> Value:
        """From the first block with the extreme in it."""
        s, dtype, (op, beyond) = self.s, self.dtype, _names(self.kind)
        extreme = Reduction(op, tuple(self.extents), self.element, dtype)
        length = s.extent(self.size)
        count = (length + (sought - 1)) // sought
        best = s.variable(s.const(identity(op, dtype), dtype))
        block = s.variable(s.const(0, i64))

        with s.loop(0, count, trips=dims.quotient_up(self.size, _SOUGHT)) as b:
            start = b * sought
            stop = s.primitive("minimum", start + sought, length)
            found = self._extreme_of(extreme, start, stop)
            held = s.now(best)
            better = s.primitive(beyond, found, held)
            if dtype.kind == "f":  # the first NaN is beyond all, and nothing beyond it
                is_nan = s.primitive("not_equal", found, found)
                better = better | (is_nan & s.primitive("equal", held, held))
            s.assign(block, s.where(better, b, s.now(block)))
            s.assign(best, s.where(better, found, held))
        first, most = s.now(block) * sought, s.now(best)
        last = s.primitive("minimum", first + sought, length)

        def place(k: Value) -> Value:
            value = self.at(k)
            here = s.primitive("equal", value, most)
            if dtype.kind == "f":
                here = here | s.primitive("not_equal", value, value)
            return s.where(here, s.cast(k - first, i32), s.const(_SOUGHT_LONG, i32))

        # Counted from the block's first, in 32 bits: a vector has more of these.
        least = Reduction("minimum", tuple(self.extents), self.element, i32)
        found = one_block(s, [least], first, last, None, lambda k: [place(k)])[0]
        return first + s.cast(found, i64)

    def _extreme_of(self, extreme: Reduction, start: Value, stop: Value) -> Value:
        """The extreme among elements of a block. Those that lie apart are gathered first: only then
        vectors are made of them."""
        s = self.s
        if not s.apart:
            return one_block(s, [extreme], start, stop, None, lambda k: [self.at(k)])[0]
        gathered, zero = s.local_array(self.dtype, _SOUGHT_LONG), s.const(0, i64)
        with s.loop(start, stop, trips=_SOUGHT_LONG) as k:
            s.store(gathered, k - start, self.at(k))
        return one_block(
            s, [extreme], zero, stop - start, None, lambda k: [s.reload(gathered, k)]
        )[0]
