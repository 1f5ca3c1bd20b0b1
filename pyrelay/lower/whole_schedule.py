"""The schedule of whole arrays: reductions of all axes, and what follows them, a kernel per phase.

In: a `SlicePlan` whose one slice is everything. Out: the statements of one kernel: chunks of a
fixed size in parallel, each of which leaves its share of the phase's reductions in a buffer. The
kernels of later phases begin by adding the shares up, in order: the result depends on no thread
count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Let, OpCall, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.elements import Index
from pyrelay.lower.kernel import OUTPUT, SCRATCH, Parameter
from pyrelay.lower.reductions import Accumulator, Reduction, over_range, partial_dtype
from pyrelay.lower.schedule import CHUNK, Schedule, store_result
from pyrelay.lower.slice_phases import Buffer, Phase, Shape, SlicePlan
from pyrelay.lower.slice_schedule import SliceSchedule
from pyrelay.lower.values import Value
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    """What a phase has left of a reduction: a buffer with one number per chunk."""

    buffer: int
    count: Extent


def is_small(plan: SlicePlan) -> bool:
    """Whether every phase is known to be one chunk at most."""
    sizes = [dims.product(phase.inner) for phase in plan.phases]
    return all(isinstance(size, int) and size <= CHUNK for size in sizes)


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

    def write_results(self) -> Extent:
        """The kernel that stores the results of one element; the extent of its parallel axis."""
        self._add_up([r.source for r in self.plan.slice_results])
        for result in self.plan.slice_results:
            index = self.slice_index(result.shape, ())
            store_result(self.elements, result, index, self.elements.value(result.source, index))
        return 1

    def own(self, buffer: Buffer, at: Index, inner: Index) -> Value:
        """Never asked for: what phases of whole arrays keep lies in results."""
        raise AssertionError(f"{buffer} of a whole array is no slice of a kernel's own")

    def write_phase(self, phase: Phase, base: int) -> Extent:
        """The kernel of a phase, whose shares go into the buffers from `base` on."""
        s = self.s
        roots: list[Atom] = [r.source for r in phase.results]
        for let in phase.reductions:
            assert isinstance(let.rhs, OpCall)
            roots += let.rhs.args
        self._add_up(roots)
        runs = tuple((e,) for e in phase.inner) if self.divided else (
            self.runs(phase.inner, 0, len(phase.inner))
        )
        lines, length = dims.product(map(dims.product, runs[:-1])), dims.product(runs[-1])
        chunk: Extent = CHUNK
        if len(runs) > 1:
            chunk = dims.maximum(dims.quotient(CHUNK, dims.maximum(length, 1)), 1)
        size = lines if len(runs) > 1 else length
        count = dims.quotient(dims.add(dims.add(size, chunk), -1), chunk)

        def one(p: Value) -> None:
            start = p * s.extent(chunk)
            stop = s.primitive("minimum", start + s.extent(chunk), s.extent(size))
            found = [r for let in phase.reductions for r in self.reductions(let, ())]
            if len(runs) == 1:
                totals = self._over_run(phase, found, runs[0], start, stop, None, ())
            else:
                totals = self._over_lines(phase, found, runs, start, stop)
            for k, (r, total) in enumerate(zip(found, totals, strict=True)):
                array = Parameter(SCRATCH, base + k, partial_dtype(r.op, r.dtype))
                s.store(array, p, total)

        self.schedule.over_parallel(count, one)
        return count

    def _over_lines(
        self, phase: Phase, found: Sequence[Reduction], runs: Sequence[Shape], start: Value,
        stop: Value,
    ) -> list[Value]:
        s = self.s
        totals = [Accumulator(s, r.op, r.dtype) for r in found]
        length = dims.product(runs[-1])
        with s.loop(start, stop) as line:
            outer = self.counted(line, runs[:-1])
            parts = self._over_run(
                phase, found, runs[-1], s.const(0, i64), s.extent(length), length, outer
            )
            for total, part in zip(totals, parts, strict=True):
                total.add(part)
        return [total.result() for total in totals]

    def _over_run(
        self, phase: Phase, found: Sequence[Reduction], run: Shape, start: Value, stop: Value,
        length: Extent | None, outer: Index,
    ) -> list[Value]:
        s, size = self.s, dims.product(run)

        def at(k: Value) -> list[Value]:
            return self.element(phase, (), outer + self.schedule.run(s.bounded(k, size), run))

        if found:
            return over_range(s, found, start, stop, length, at)
        with s.loop(start, stop, trips=CHUNK if length is None else length) as k:
            at(k)
        return []

    def _add_up(self, roots: Sequence[Atom]) -> None:
        """The totals of the reductions of earlier phases that some values are computed from."""
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
            (r,) = self.reductions(let, ())
            wide = partial_dtype(r.op, r.dtype)
            array = Parameter(SCRATCH, shares.buffer, wide)

            def share(k: Value, array: Parameter = array) -> list[Value]:
                return [s.load(array, k)]

            (total,) = over_range(
                s, [Reduction(r.op, r.extents, r.element, wide)], zero, s.extent(shares.count),
                shares.count, share,
            )
            for twin in same:
                ty = twin.outs[0].type
                assert isinstance(ty, TensorType)
                value = s.cast(total, r.dtype)
                self.elements.preset(twin.outs[0], self.slice_index(ty.shape, ()), value)

    def place(self, var: Var, at: Index, inner: Index) -> tuple[Parameter, Value]:
        """Where an element of a variable is kept: in an array of its size."""
        buffer, ty = self.plan.buffers[var], var.type
        assert isinstance(ty, TensorType)
        if buffer.result is not None:
            array = Parameter(OUTPUT, buffer.result.position, ty.dtype)
        else:
            array = Parameter(SCRATCH, self.scratch + buffer.number, ty.dtype)
        return array, self.s.ravel(at, ty.shape)
