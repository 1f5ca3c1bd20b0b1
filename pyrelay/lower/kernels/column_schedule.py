"""The schedule of columns: reductions of the leading axes, and what follows them, in one kernel.

In: a `SlicePlan` of columns. Out: the statements of one kernel: blocks of neighbouring columns in
parallel, inside them one loop over the rows per phase, which adds rows to small arrays with one
element per column. What a column has once for all its elements is computed between the phases and
kept in such an array as well. A block's columns stay in the cache from phase to phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import i64
from pyrelay.lower.kernels.elements import Index
from pyrelay.lower.kernels.kernel import LocalArray
from pyrelay.lower.kernels.reductions import (
    Reduction,
    blocks,
    combine,
    identity,
    in_blocks,
    over_rows,
    partial_dtype,
)
from pyrelay.lower.kernels.schedule import ROWS, store_result
from pyrelay.lower.kernels.slice_phases import Buffer, Phase, Shape
from pyrelay.lower.kernels.slice_schedule import SliceSchedule
from pyrelay.lower.kernels.values import Value
from pyrelay.opt.shapes import shape_of

WIDTH = 32
"""Columns in a block: a cache line or two, so that some hundred columns keep all threads busy."""


def blocks_of(columns: Shape) -> Extent:
    """How many blocks columns make."""
    return dims.quotient_up(dims.product(columns), WIDTH)


class ColumnSchedule(SliceSchedule):
    """Writes a kernel over columns."""

    def write(self) -> Extent:
        """The loop over blocks of columns; returns the extent of the parallel axis."""
        self.totals: dict[Var, tuple[LocalArray, Reduction]] = {}
        self.known: dict[Var, LocalArray] = {}  # a number per column
        extent = blocks_of(self.plan.kept.axes)
        self.schedule.over_parallel(extent, self._block)
        return extent

    def _block(self, number: Value) -> None:
        s, size = self.s, dims.product(self.plan.kept.axes)
        self.first = number * WIDTH
        self.width = s.primitive("minimum", s.const(WIDTH, i64), s.extent(size) - self.first)
        wanted = self._wanted()
        done: set[Var] = set()
        for phase in self.plan.phases:
            now = [v for v in wanted if v not in done and self._level(v) <= phase.level]
            self._keep(now)
            done.update(now)
            self._phase(phase)
        with self._columns() as j:
            index = self._column(j)
            self._preset(j, index)
            values = []
            for result in self.plan.slice_results:
                at = self.slice_index(result.shape, index)
                values.append((result, at, self.elements.value(result.source, at)))
            for result, at, value in values:
                store_result(self.elements, result, at, value)

    # -- one number per column -----------------------------------------------------------------

    def _level(self, var: Var) -> int:
        return self.plan.levels.get(var, 0)

    def _wanted(self) -> list[Var]:
        """Variables with a number per column that elements are computed from."""
        lets = self.elements.lets
        found: dict[Var, None] = {}
        pending: list[Atom] = []
        for phase in self.plan.phases:
            for let in phase.reductions:
                assert isinstance(let.rhs, OpCall)
                pending += let.rhs.args
            pending += [r.source for r in phase.results]
        seen = set(pending)
        while pending:
            atom = pending.pop()
            if not isinstance(atom, Var) or atom not in lets:
                continue
            let = lets[atom]
            if self.plan.kept.is_slice(shape_of(atom)):
                found[atom] = None
                continue
            assert isinstance(let.rhs, OpCall)
            if let.rhs.op.fusion is Fusion.ELEMENTWISE or let.rhs.op.name == "broadcast_to":
                fresh = [a for a in let.rhs.args if a not in seen]
                seen.update(fresh)
                pending += fresh
        return list(found)

    def _columns(self) -> AbstractContextManager[Value]:
        """A loop over the columns of the block."""
        hint = dims.minimum(WIDTH, dims.product(self.plan.kept.axes))
        return self.s.loop(0, self.width, trips=hint)

    def _column(self, j: Value) -> Index:
        size = dims.product(self.plan.kept.axes)
        column = self.s.bounded(self.first + j, size)
        return self.s.unravel(column, self.plan.kept.axes)

    def _preset(self, j: Value, index: Index) -> None:
        """Makes what is known of a column by now its numbers' values in the innermost loop."""
        for var, (array, reduction) in self.totals.items():
            self._preset_one(var, index, self.s.cast(self.s.reload(array, j), reduction.dtype))
        for var, array in self.known.items():
            self._preset_one(var, index, self.s.reload(array, j))

    def _preset_one(self, var: Var, index: Index, value: Value) -> None:
        self.elements.preset(var, self.slice_index(shape_of(var), index), value)

    def _keep(self, variables: list[Var]) -> None:
        """Computes numbers of columns and keeps them for the phases that follow."""
        fresh = [v for v in variables if v not in self.totals]
        if not fresh:
            return
        arrays: dict[Var, LocalArray] = {}
        with self._columns() as j:
            index = self._column(j)
            self._preset(j, index)
            for var in fresh:
                at = self.slice_index(shape_of(var), index)
                value = self.elements.value(var, at)
                arrays[var] = self.s.local_array(value.dtype, WIDTH)
                self.s.store(arrays[var], j, value)
        self.known.update(arrays)

    # -- one phase -----------------------------------------------------------------------------

    def _phase(self, phase: Phase) -> None:
        s = self.s
        zero = s.const(0, i64)
        found = [r for let in phase.reductions for r in self.reductions(let, self._column(zero))]
        totals = [s.local_array(partial_dtype(r.op, r.dtype), WIDTH) for r in found]
        self._fill(totals, found)
        rows = s.extent(dims.product(phase.inner))
        if any(in_blocks(r.op, r.dtype) for r in found):
            # Some hundred rows are added in the type of the elements, their sums in a wider one.
            parts = [s.local_array(r.dtype, WIDTH) for r in found]
            with blocks(s, zero, rows, ROWS) as (first, last):
                self._fill(parts, found)
                self._add_rows(phase, parts, found, first, last)
                with self._columns() as j:
                    for total, part, r in zip(totals, parts, found, strict=True):
                        self._take_in(total, r, j, s.reload(part, j))
        else:
            self._add_rows(phase, totals, found, zero, rows)
        for let, total, r in zip(phase.reductions, totals, found, strict=True):
            self.totals.update((twin.outs[0], (total, r)) for twin in phase.twins[let])

    def _fill(self, arrays: list[LocalArray], found: list[Reduction]) -> None:
        if not found:
            return
        with self._columns() as j:
            for array, r in zip(arrays, found, strict=True):
                start = self.s.const(identity(r.op, r.dtype), r.dtype)
                self.s.store(array, j, self.s.cast(start, array.dtype))

    def _add_rows(
        self, phase: Phase, arrays: list[LocalArray], found: list[Reduction], first: Value,
        last: Value,
    ) -> None:
        s, extents = self.s, phase.inner

        def add(rows: Sequence[Value]) -> None:
            inner = [s.unravel(s.bounded(row, dims.product(extents)), extents) for row in rows]
            with self._columns() as j:
                index = self._column(j)
                self._preset(j, index)
                each = [self.element(phase, index, place) for place in inner]
                for array, r, *values in zip(arrays, found, *each, strict=True):
                    self._take_in(array, r, j, *(s.cast(value, r.dtype) for value in values))

        over_rows(s, first, last, self.schedule.tile.rows, add)

    def _take_in(self, array: LocalArray, r: Reduction, j: Value, *values: Value) -> None:
        s = self.s
        total = s.reload(array, j)
        for value in values:
            total = combine(s, r.op, s.cast(value, array.dtype), total)
        s.store(array, j, total)

    def own(self, buffer: Buffer, at: Index, inner: Index) -> Value:
        """In the place of the first block of this call."""
        s = self.s
        _, extents = self.plan.own[buffer.number]
        begin = Value(s, self.schedule.begin, i64, s.scopes[0])
        rows = s.extent(dims.product(extents))
        column = s.ravel(at[len(inner) :], self.plan.kept.axes) - self.first
        return begin * (rows * WIDTH) + s.ravel(inner, extents) * WIDTH + column


def own_size(axes: Shape, columns: Shape, itemsize: int) -> Extent:
    """Bytes of one of the kernel's own slices, for all blocks."""
    return dims.product((blocks_of(columns), WIDTH, *axes, itemsize))
