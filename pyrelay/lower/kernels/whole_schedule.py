"""The schedule of whole arrays and long rows: reductions of all axes, or of the last ones, and what
follows them, a kernel per phase.

In: a `SlicePlan` whose one slice is everything, or whose slices are few and long. Out: the
statements of one kernel: chunks of each slice in parallel, which leave their shares of the phase's
reductions in a buffer. The kernels of later phases begin by adding the shares of their slice up, in
order: the result depends on extents, and on no thread count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, Let, OpCall, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.kernels.elements import Index
from pyrelay.lower.kernels.kernel import OUTPUT, SCRATCH, Parameter
from pyrelay.lower.kernels.reductions import (
    Accumulator,
    Reduction,
    identity,
    over_range,
    partial_dtype,
)
from pyrelay.lower.kernels.schedule import CHUNK, Schedule, store_result
from pyrelay.lower.kernels.slice_phases import Buffer, Phase, Shape, SlicePlan
from pyrelay.lower.kernels.slice_schedule import SliceSchedule
from pyrelay.lower.kernels.values import Value
from pyrelay.records import dataclass

_MOST_ROWS, _MOST_PARTS, _LEAST_PART, _PARTS = 512, 1024, 4096, 2048
"""Rows are cut into parts where there are at most `_MOST_ROWS`, at most `_MOST_PARTS` of each and
about `_PARTS` altogether, so that they fill a GPU; a part has `_LEAST_PART` elements or more."""

_MOST_READ_AGAIN = 96
"""The same for rows that each phase reads: a block that has a row reads it from memory once, which
is worth more than the multiprocessors that have none."""

_EXTREMES = frozenset(["max", "min"])
"""Reductions one of whose elements is the result."""

_MOST_CHUNKS = 4096
"""Shares of a whole array, at most: each chunk of the next phase adds all of them up."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What a phase has left of a reduction: a buffer with so many numbers for each slice."""

    buffer: int
    count: Extent


def is_small(plan: SlicePlan) -> bool:
    """Whether every phase is known to be one chunk at most."""
    sizes = [dims.product(phase.inner) for phase in plan.phases]
    return all(isinstance(size, int) and size <= CHUNK for size in sizes)


def is_long(plan: SlicePlan) -> Extent:
    """1 if the slices are so few and long that they had better be cut into parts, else 0."""
    longest: Extent = 0
    for phase in plan.phases:
        longest = dims.maximum(longest, dims.product(phase.inner))
    rows = dims.maximum(dims.product(plan.kept.axes), 1)
    most = _MOST_ROWS if len(plan.phases) == 1 else _MOST_READ_AGAIN
    few = dims.minimum(dims.quotient(most, rows), 1)
    return dims.multiply(few, dims.minimum(dims.quotient(longest, 4 * _LEAST_PART), 1))


class WholeSchedule(SliceSchedule):
    """Writes the kernel of one phase, or of what is left to do after the last one.

    `shares` are those of the reductions of earlier phases.
    """

    def __init__(
        self, schedule: Schedule, plan: SlicePlan, arrays: Sequence[Shape], scratch: int,
        shares: Mapping[Let, Shares], *, divided: bool,
    ) -> None:
        super().__init__(schedule, plan, arrays, scratch, divided=divided)
        self.shares = shares
        self.rows = dims.product(plan.kept.axes)

    def write_results(self) -> Extent:
        """The kernel that stores one number per slice; the extent of its parallel axis."""
        if self.plan.kept.axes:
            self.schedule.over_parallel(self.rows, self._store_results)
        else:
            self._store_results(None)
        return self.rows

    def _store_results(self, row: Value | None) -> None:
        kept = self._slice(row)
        self._add_up([r.source for r in self.plan.slice_results], row, kept)
        for result in self.plan.slice_results:
            index = self.slice_index(result.shape, kept)
            store_result(self.elements, result, index, self.elements.value(result.source, index))

    def _slice(self, row: Value | None) -> Index:
        """The index of a slice."""
        axes = self.plan.kept.axes
        if row is None:
            return ()
        inner = max(len(phase.inner) for phase in self.plan.phases)
        return self.counted(row, self.runs(axes, 0, len(axes) + inner))

    def own(self, buffer: Buffer, at: Index, inner: Index) -> Value:
        """Never asked for: what phases keep lies in results, or in buffers of their size."""
        raise AssertionError(f"{buffer} is no slice of a kernel's own")

    def write_phase(self, phase: Phase, base: int) -> tuple[Extent, Extent]:
        """The kernel of a phase, whose shares go into the buffers from `base` on; the extent of its
        parallel axis, and how many shares a slice has."""
        s, rank = self.s, len(self.plan.kept.axes)
        roots: list[Atom] = [r.source for r in phase.results]
        for let in phase.reductions:
            assert isinstance(let.rhs, OpCall)
            roots += let.rhs.args
        runs = self.inner_runs(phase.inner)
        lines, length = dims.product(map(dims.product, runs[:-1])), dims.product(runs[-1])
        by_lines = lines != 1
        size = lines if by_lines else length
        chunk = self._chunk(lines, length, by_lines)
        count = dims.quotient_up(size, chunk)

        def share(part: Value, place: Value, kept: Index) -> None:
            start = part * s.extent(chunk)
            stop = s.primitive("minimum", start + s.extent(chunk), s.extent(size))
            seeks = self._seeks(phase, place, count, kept)
            if seeks is not None:
                stop = s.where(seeks, stop, start)
            found = [r for let in phase.reductions for r in self.reductions(let, kept)]
            if by_lines:
                totals = self._over_lines(phase, found, runs, start, stop, kept)
            else:
                outer = (s.const(0, i64),) * (len(phase.inner) - len(runs[-1]))
                totals = self._over_run(
                    phase, found, runs[-1], start, stop, None, kept, outer, chunk
                )
            for k, (r, total) in enumerate(zip(found, totals, strict=True)):
                s.store(Parameter(SCRATCH, base + k, partial_dtype(r.op, r.dtype)), place, total)

        def one(p: Value) -> None:
            row, part = (
                Value(s, v.operand, i64, v.scope) for v in s.unravel(p, (self.rows, count))
            )
            kept = self._slice(s.bounded(row, self.rows))
            self._add_up(roots, row, kept)
            share(part, p, kept)

        if rank:
            self.schedule.over_parallel(dims.multiply(self.rows, count), one)
            return dims.multiply(self.rows, count), count
        self._add_up(roots, None, ())
        self.schedule.over_parallel(count, lambda p: share(p, p, ()))
        return count, count

    def _seeks(self, phase: Phase, place: Value, count: Extent, kept: Index) -> Value | None:
        """Whether a chunk may have elements that are the extreme of its slice, for a phase that
        only looks for positions of such elements; None for other phases. Extremes of chunks are the
        shares of an earlier phase, if that has the same chunks: so few are read again."""
        s, elements = self.s, self.elements
        found: Value | None = None
        if phase.results or phase.saved:
            return None
        for let in phase.reductions:
            sought = self._sought(let)
            if sought is None:
                return None
            extreme, before = sought
            earlier = next(p for p in self.plan.phases if before in p.reductions)
            shares = self.shares[before]
            if earlier.inner != phase.inner or shares.count != count:
                return None
            (r,) = self.reductions(before, kept)
            assert isinstance(extreme.type, TensorType)
            total = elements.value(extreme, self.slice_index(extreme.type.shape, kept))
            share = s.load(
                Parameter(SCRATCH, shares.buffer, partial_dtype(r.op, r.dtype)), place
            )
            here = s.primitive("equal", share, total)
            if r.dtype.kind == "f":
                here = s.primitive("logical_or", here, s.primitive("not_equal", share, share))
            found = here if found is None else s.primitive("logical_or", found, here)
        return found

    def _sought(self, let: Let) -> tuple[Var, Let] | None:
        """The extreme whose least position a reduction is, as `opt.extremes` writes it: the
        variable that holds it, and the reduction of an earlier phase that it is."""
        places = self._call(let.outs[0])
        chosen = self._call(places.args[0]) if places and places.op.name == "min" else None
        if chosen is None or chosen.op.name != "where":
            return None
        condition, _, nowhere = chosen.args
        ty = nowhere.type
        assert isinstance(ty, TensorType)
        if not isinstance(nowhere, Const) or nowhere.value != identity("min", ty.dtype):
            return None
        here = self._call(condition)
        if here is not None and here.op.name == "bitwise_or":
            equal, no_number = map(self._call, here.args)
            if equal is None or no_number is None or no_number.op.name != "not_equal":
                return None
            if {*no_number.args} != {equal.args[0]}:
                return None
            here = equal
        if here is None or here.op.name != "equal":
            return None
        x, extreme = here.args
        made = self.elements.lets.get(extreme) if isinstance(extreme, Var) else None
        twins = {twin: each for p in self.plan.phases for each in p.twins for twin in p.twins[each]}
        before = None if made is None else twins.get(made)
        if before is None or before not in self.shares:
            return None
        assert isinstance(extreme, Var)
        call = before.rhs
        assert isinstance(call, OpCall)
        return (extreme, before) if call.op.name in _EXTREMES and call.args[0] == x else None

    def _call(self, atom: Atom) -> OpCall | None:
        """What computes a variable."""
        let = self.elements.lets.get(atom) if isinstance(atom, Var) else None
        return let.rhs if let is not None and isinstance(let.rhs, OpCall) else None

    def _chunk(self, lines: Extent, length: Extent, by_lines: bool) -> Extent:
        """How many elements, or lines of them, of a slice a chunk has."""
        size = dims.multiply(lines, length)
        if self.plan.kept.axes:
            parts = dims.quotient(_PARTS, dims.maximum(self.rows, 1))
            parts = dims.minimum(parts, dims.quotient(size, _LEAST_PART))
            wanted = dims.quotient_up(size, dims.maximum(dims.minimum(parts, _MOST_PARTS), 1))
        else:
            share = self.schedule.tile.share(size, again=True)
            wanted = dims.maximum(share, dims.quotient_up(size, _MOST_CHUNKS))
        if by_lines:
            wanted = dims.quotient(wanted, dims.maximum(length, 1))
        return dims.maximum(wanted, 1)

    def _over_lines(
        self, phase: Phase, found: Sequence[Reduction], runs: Sequence[Shape], start: Value,
        stop: Value, kept: Index,
    ) -> list[Value]:
        s = self.s
        totals = [Accumulator(s, r.op, r.dtype) for r in found]
        length = dims.product(runs[-1])
        with s.loop(start, stop) as line:
            outer = self.counted(line, runs[:-1])
            parts = self._over_run(
                phase, found, runs[-1], s.const(0, i64), s.extent(length), length, kept, outer
            )
            for total, part in zip(totals, parts, strict=True):
                total.add(part)
        return [total.result() for total in totals]

    def _over_run(
        self, phase: Phase, found: Sequence[Reduction], run: Shape, start: Value, stop: Value,
        length: Extent | None, kept: Index, outer: Index, most: Extent = CHUNK,
    ) -> list[Value]:
        """`most`: how many elements there are where `length` is not known, at most."""
        s, size = self.s, dims.product(run)

        def at(k: Value) -> list[Value]:
            return self.element(phase, kept, outer + self.schedule.run(s.bounded(k, size), run))

        if found:
            return over_range(s, found, start, stop, length, at)
        with s.loop(start, stop, trips=most if length is None else length) as k:
            at(k)
        return []

    def _add_up(self, roots: Sequence[Atom], row: Value | None, kept: Index) -> None:
        """The totals of the reductions of earlier phases that some values of a slice are computed
        from."""
        s, lets = self.s, self.elements.lets
        groups = [(let, p.twins[let]) for p in self.plan.phases for let in p.reductions]
        twins = {twin: let for let, same in groups for twin in same}
        pending, seen = list(roots), set(roots)
        needed: dict[Let, list[Let]] = {}
        while pending:
            atom = pending.pop()
            if not isinstance(atom, Var) or atom not in lets:
                continue
            let = lets[atom]
            if twins.get(let) in self.shares:
                needed.setdefault(twins[let], []).append(let)
                continue
            assert isinstance(let.rhs, OpCall)
            fresh = [a for a in let.rhs.args if a not in seen]
            seen.update(fresh)
            pending += fresh
        zero = s.const(0, i64)
        for let, same in needed.items():
            shares = self.shares[let]
            (r,) = self.reductions(let, kept)
            wide = partial_dtype(r.op, r.dtype)
            array = Parameter(SCRATCH, shares.buffer, wide)
            first = zero if row is None else row * s.extent(shares.count)

            def share(k: Value, array: Parameter = array, first: Value = first) -> list[Value]:
                return [s.load(array, first + k)]

            (total,) = over_range(
                s, [Reduction(r.op, r.extents, r.element, wide)], zero, s.extent(shares.count),
                shares.count, share,
            )
            for twin in same:
                ty = twin.outs[0].type
                assert isinstance(ty, TensorType)
                value = s.cast(total, r.dtype)
                self.elements.preset(twin.outs[0], self.slice_index(ty.shape, kept), value)

    def place(self, var: Var, at: Index, inner: Index) -> tuple[Parameter, Value]:
        """Where an element of a variable is kept: in an array of its size."""
        buffer, ty = self.plan.buffers[var], var.type
        assert isinstance(ty, TensorType)
        if buffer.result is not None:
            array = Parameter(OUTPUT, buffer.result.position, ty.dtype)
        else:
            array = Parameter(SCRATCH, self.scratch + buffer.number, ty.dtype)
        return array, self.s.ravel(at, ty.shape)
