"""The schedule of rows: reductions of the last axes, and what follows them, in one kernel.

In: a `SlicePlan` of rows. Out: the statements of one kernel: rows in parallel, inside them one loop
over the row's elements per phase. The row stays in the cache from the first phase to the last, and
so does what is kept between phases: it lies in a result's row, or in a buffer of which each call of
the kernel uses the place of its first row only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.kernels.elements import Index
from pyrelay.lower.kernels.kernel import SCRATCH, Array, Parameter
from pyrelay.lower.kernels.reductions import Accumulator, Reduction, over_range
from pyrelay.lower.kernels.schedule import store_result
from pyrelay.lower.kernels.slice_phases import Buffer, Phase, Shape
from pyrelay.lower.kernels.slice_schedule import SliceSchedule
from pyrelay.lower.kernels.values import Value
from pyrelay.opt.shapes import shape_of


class RowSchedule(SliceSchedule):
    """Writes a kernel over rows."""

    def write(self) -> Extent:
        """The loop over rows; returns the extent of the parallel axis."""
        extent = dims.product(self.plan.kept.axes)
        if self.plan.kept.axes:
            self.schedule.over_parallel(extent, self._row)
        else:
            self._row(self.s.const(0, i64))  # one row, and numbers that belong to no index
        if self.plan.late:
            self._late(extent)
        return extent

    def _row(self, number: Value) -> None:
        axes = self.plan.kept.axes
        index = self.counted(number, self.runs(axes, 0, len(axes) + self._inner_rank()))
        for phase in self.plan.phases:
            self._phase(phase, index)
        for var in self.plan.stored_first:
            at = self.slice_index(shape_of(var), index)
            self.s.store(self._first(var), number, self.elements.value(var, at))
        for result in self.plan.slice_results:
            if result not in self.plan.late:
                at = self.slice_index(result.shape, index)
                store_result(self.elements, result, at, self.elements.value(result.source, at))

    def _late(self, extent: Extent) -> None:
        """The loop over the results that are computed from what the rows have stored."""
        elements, axes = self.elements, self.plan.kept.axes
        stored: dict[Var, tuple[Array, bool]] = {
            var: (self._first(var), False) for var in self.plan.stored_first
        }
        others = elements.home

        def home(atom: Atom) -> tuple[Array, bool] | None:
            place = stored.get(atom) if isinstance(atom, Var) else None
            return place or others(atom)

        elements.home = home

        def late(number: Value) -> None:
            if self.divided:
                index = self.counted(number, self.runs(axes, 0, len(axes)))
            else:
                index = self.schedule.run(number, axes)
            for result in self.plan.late:
                at = self.slice_index(result.shape, index)
                store_result(elements, result, at, elements.value(result.source, at))

        self.schedule.over_parallel(extent, late)

    def _first(self, var: Var) -> Parameter:
        """The buffer of what all rows of a call are reduced to."""
        assert isinstance(var.type, TensorType)
        number = self.scratch + len(self.plan.own) + self.plan.stored_first.index(var)
        return Parameter(SCRATCH, number, var.type.dtype)

    def _inner_rank(self) -> int:
        return max(len(phase.inner) for phase in self.plan.phases)

    def _phase(self, phase: Phase, index: Index) -> None:
        found = [r for let in phase.reductions for r in self.reductions(let, index)]
        totals = self._over_inner(found, phase.inner, lambda k: self.element(phase, index, k))
        for let, reduction, total in zip(phase.reductions, found, totals, strict=True):
            for twin in phase.twins[let]:
                out = twin.outs[0]
                assert isinstance(out.type, TensorType)
                at = self.slice_index(out.type.shape, index)
                self.elements.preset(out, at, self.s.cast(total, reduction.dtype))

    def own(self, buffer: Buffer, at: Index, inner: Index) -> Value:
        """In the place of the first row of this call."""
        s, extents = self.s, self.plan.own[buffer.number][1]
        begin = Value(s, self.schedule.begin, i64, s.scopes[0])
        return begin * s.extent(dims.product(extents)) + s.ravel(inner, extents)

    # -- loops over the elements of a row --------------------------------------------------------

    def _over_inner(
        self, found: Sequence[Reduction], inner: Shape, element: Callable[[Index], list[Value]]
    ) -> list[Value]:
        """Loops over a row's elements; the reductions' totals."""
        runs = self.inner_runs(inner)
        if len(runs) == 1:
            return self._over_run(found, runs[0], element)
        s = self.s
        totals = [Accumulator(s, r.op, r.dtype) for r in found]
        with s.loop(0, s.extent(dims.product(map(dims.product, runs[:-1])))) as number:
            index = self.counted(number, runs[:-1])
            parts = self._over_run(found, runs[-1], lambda last: element((*index, *last)))
            for total, part in zip(totals, parts, strict=True):
                total.add(part)
        return [total.result() for total in totals]

    def _over_run(
        self, found: Sequence[Reduction], extents: Shape, element: Callable[[Index], list[Value]]
    ) -> list[Value]:
        s, size = self.s, dims.product(extents)

        def at(k: Value) -> list[Value]:
            return element(self.schedule.run(s.bounded(k, size), extents))

        if found:
            return over_range(s, found, s.const(0, i64), s.extent(size), size, at)
        with s.loop(0, s.extent(size)) as k:
            at(k)
        return []
