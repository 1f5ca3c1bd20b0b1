"""The schedule of rows: reductions of the last axes, and what follows them, in one kernel.

In: a `RowPlan`. Out: the statements of one kernel: rows in parallel, inside them one loop over the
row's elements per phase. The row stays in the cache from the first phase to the last, and so does
what is kept between phases: it lies in a result's row, or in a buffer of which each call of the
kernel uses the place of its first row only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.elements import Index
from pyrelay.lower.kernel import OUTPUT, ROW, Parameter
from pyrelay.lower.reductions import Accumulator, Reduction, over_range
from pyrelay.lower.row_phases import Buffer, Phase, RowPlan, Shape
from pyrelay.lower.schedule import Schedule, collapsed, store_result
from pyrelay.lower.values import Value


def write_rows(
    schedule: Schedule, plan: RowPlan, arrays: Sequence[Shape], scratch: int, *, divided: bool
) -> Extent:
    """Writes the kernel of a plan; returns the extent of its parallel axis.

    arrays   shapes of the arrays that are read: they tell which axes one index can count.
    scratch  the number of the first of the kernel's own rows among the group's scratch buffers.
    divided  count each axis of a row by itself, since one index for several had to be divided.
    """
    _Rows(schedule, plan, arrays, scratch, divided).write()
    return dims.product(plan.outer)


class _Rows:
    def __init__(
        self, schedule: Schedule, plan: RowPlan, arrays: Sequence[Shape], scratch: int,
        divided: bool,
    ) -> None:
        self.schedule, self.plan, self.scratch = schedule, plan, scratch
        self.arrays, self.divided = arrays, divided
        self.elements, self.s = schedule.elements, schedule.s

    def write(self) -> None:
        """The loop over rows."""
        self.schedule.over_parallel(dims.product(self.plan.outer), self._row)

    def _row(self, number: Value) -> None:
        s, outer = self.s, self.plan.outer
        index: Index = ()
        runs = self._runs(outer, outer)
        sizes = [dims.product(e) for e in runs]
        for each, extents in zip(s.unravel(number, sizes), runs, strict=True):
            # The division, if one is needed, belongs to the row.
            part = Value(s, each.operand, i64, each.scope)
            index += s.unravel(s.bounded(part, dims.product(extents)), extents)
        for phase in self.plan.phases:
            self._phase(phase, index)
        for result in self.plan.row_results:
            at = self._row_index(result.shape, index)
            store_result(self.elements, result, at, self.elements.value(result.source, at))

    def _runs(self, extents: Shape, full: Shape) -> tuple[tuple[Extent, ...], ...]:
        """The trailing axes `extents` of `full`, grouped into runs that one index counts each."""
        start = len(full) - len(extents)
        cut = [shape for shape in self.arrays if len(shape) == len(full)]
        return collapsed(extents, [shape[start:] for shape in cut]).run_extents()

    def _row_index(self, shape: Shape, index: Index) -> Index:
        zero = self.s.const(0, i64)
        return (*index, *(zero,) * (len(shape) - len(index)))

    # -- one phase -----------------------------------------------------------------------------

    def _phase(self, phase: Phase, index: Index) -> None:
        found = [r for let in phase.reductions for r in self._reductions(let, index)]

        def element(inner: Index) -> list[Value]:
            return self._element(phase, found, index, inner)

        totals = self._over_inner(found, phase.inner, element)
        for let, reduction, total in zip(phase.reductions, found, totals, strict=True):
            out = let.outs[0]
            assert isinstance(out.type, TensorType)
            at = self._row_index(out.type.shape, index)
            self.elements.preset(out, at, self.s.cast(total, reduction.dtype))

    def _reductions(self, let: Let, index: Index) -> tuple[Reduction, ...]:
        ty = let.outs[0].type
        assert isinstance(ty, TensorType)
        found = self.elements.reductions(let, self._row_index(ty.shape, index))
        assert found is not None
        return found

    def _element(
        self, phase: Phase, found: Sequence[Reduction], index: Index, inner: Index
    ) -> list[Value]:
        """Everything that a phase does at one element; what the reductions take in."""
        elements, at = self.elements, (*index, *inner)
        for var in phase.loaded:
            elements.preset(var, at, self._reload(var, at, inner))
        values = [r.element(inner) for r in found]
        saved = [(var, elements.value(var, at)) for var in phase.saved]
        results = [(r, elements.value(r.source, at)) for r in phase.results]
        # All is read before something is written in its place.
        for var, value in saved:
            buffer = self.plan.buffers[var]
            if buffer.result is None or buffer.result not in phase.results:
                array, place = self._place(var, buffer, at, inner)
                self.s.store(array, place, value)
        for result, value in results:
            store_result(elements, result, at, value)
        return values

    def _reload(self, var: Var, at: Index, inner: Index) -> Value:
        array, place = self._place(var, self.plan.buffers[var], at, inner)
        return self.s.reload(array, place)

    def _place(
        self, var: Var, buffer: Buffer, at: Index, inner: Index
    ) -> tuple[Parameter, Value]:
        """Where an element of a variable is kept."""
        s, ty = self.s, var.type
        assert isinstance(ty, TensorType)
        if buffer.result is not None:
            array = Parameter(OUTPUT, buffer.result.position, ty.dtype)
            return array, s.ravel(at, ty.shape)
        extents = ty.shape[len(self.plan.outer) :]
        begin = Value(s, self.schedule.begin, i64, s.scopes[0])
        row = begin * s.extent(dims.product(extents))
        array = Parameter(ROW, self.scratch + buffer.number, ty.dtype)
        return array, row + s.ravel(inner, extents)

    # -- loops over the elements of a row --------------------------------------------------------

    def _over_inner(
        self, found: Sequence[Reduction], inner: Shape, element: Callable[[Index], list[Value]]
    ) -> list[Value]:
        """Loops over a row's elements; the reductions' totals."""
        runs = tuple((e,) for e in inner) if self.divided else (
            self._runs(inner, self.plan.outer + inner)
        )
        if len(runs) == 1:
            return self._over_run(found, runs[0], lambda last: element(last))
        s = self.s
        totals = [Accumulator(s, r.op, r.dtype) for r in found]
        sizes = [dims.product(e) for e in runs[:-1]]
        with s.loop(0, s.extent(dims.product(sizes))) as number:
            index: Index = ()
            for each, extents in zip(s.unravel(number, sizes), runs, strict=False):
                part = Value(s, each.operand, i64, each.scope)
                index += s.unravel(s.bounded(part, dims.product(extents)), extents)
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
