"""What the schedules of rows and of columns share: one element of one phase.

In: a `SlicePlan` and where elements stand. Out: the statements that load what was kept, compute
what the phase reduces and stores, and store what later phases load.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pyrelay.ir import dims
from pyrelay.ir.nodes import Let, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.lower.kernels.elements import Index
from pyrelay.lower.kernels.kernel import OUTPUT, ROW, Parameter
from pyrelay.lower.kernels.reductions import Reduction
from pyrelay.lower.kernels.schedule import Schedule, store_result
from pyrelay.lower.kernels.slice_phases import Buffer, Phase, Shape, SlicePlan
from pyrelay.lower.kernels.spaces import collapsed
from pyrelay.lower.kernels.values import Value


class SliceSchedule(ABC):
    """Writes the kernel of a plan.

    arrays   shapes of the arrays that are read: they tell which axes one index can count.
    scratch  the number of the first of the kernel's own slices among the group's scratch buffers.
    divided  count each inner axis by itself, since one index for several had to be divided.
    """

    def __init__(
        self, schedule: Schedule, plan: SlicePlan, arrays: Sequence[Shape], scratch: int, *,
        divided: bool,
    ) -> None:
        self.schedule, self.plan, self.scratch = schedule, plan, scratch
        self.arrays, self.divided = arrays, divided
        self.elements, self.s = schedule.elements, schedule.s

    # -- indices -------------------------------------------------------------------------------

    def element_index(self, kept: Index, inner: Index) -> Index:
        """The index of an element: the axes in their order."""
        return (*inner, *kept) if self.plan.kept.columns else (*kept, *inner)

    def slice_index(self, shape: Shape, kept: Index) -> Index:
        """The index of a slice's number in an array of this shape."""
        zeros = (self.s.const(0, i64),) * (len(shape) - len(kept))
        return self.element_index(kept, zeros)

    def runs(self, axes: Shape, start: int, rank: int) -> tuple[Shape, ...]:
        """Axes from `start` on, of arrays of `rank` axes, as runs that one index counts each."""
        parts = [
            shape[max(start + len(shape) - rank, 0) : max(start + len(axes) + len(shape) - rank, 0)]
            for shape in self.arrays
        ]
        return collapsed(axes, [p for p in parts if p]).run_extents()

    def inner_runs(self, inner: Shape) -> tuple[Shape, ...]:
        """The inner axes as runs. Divided, each has one axis and the axes of extent 1 beside it:
        a loop over those alone would stand inside the loop whose index its elements have."""
        if not self.divided:
            rank = len(self.plan.kept.axes)
            return self.runs(inner, rank, rank + len(inner))
        found: list[Shape] = []
        for extent in inner:
            if found and 1 in (extent, dims.product(found[-1])):
                found[-1] = (*found[-1], extent)
            else:
                found.append((extent,))
        return tuple(found)

    def counted(self, number: Value, runs: Sequence[Shape]) -> Index:
        """The indices of axes that a number over all their runs stands for."""
        s = self.s
        sizes = [dims.product(e) for e in runs]
        found: Index = ()
        for each, extents in zip(s.unravel(number, sizes), runs, strict=True):
            # The division, if one is needed, belongs in front of the loops inside.
            part = Value(s, each.operand, i64, each.scope)
            found += s.unravel(s.bounded(part, dims.product(extents)), extents)
        return found

    # -- elements ------------------------------------------------------------------------------

    def reductions(self, let: Let, kept: Index) -> tuple[Reduction, ...]:
        """What a Let reduces in the slice at an index."""
        ty = let.outs[0].type
        assert isinstance(ty, TensorType)
        found = self.elements.reductions(let, self.slice_index(ty.shape, kept))
        assert found is not None
        return found

    def element(self, phase: Phase, kept: Index, inner: Index) -> list[Value]:
        """Everything that a phase does at one element; what its reductions take in."""
        elements, at = self.elements, self.element_index(kept, inner)
        found = [r for let in phase.reductions for r in self.reductions(let, kept)]
        for var in phase.loaded:
            array, place = self.place(var, at, inner)
            elements.preset(var, at, self.s.reload(array, place))
        values = [r.element(inner) for r in found]
        saved = [(var, elements.value(var, at)) for var in phase.saved]
        results = [(r, elements.value(r.source, at)) for r in phase.results]
        # All is read before something is written in its place.
        for var, value in saved:
            if self.plan.buffers[var].result not in phase.results:
                self.s.store(*self.place(var, at, inner), value)
        for result, value in results:
            store_result(elements, result, at, value)
        return values

    def place(self, var: Var, at: Index, inner: Index) -> tuple[Parameter, Value]:
        """Where an element of a variable is kept."""
        buffer, ty = self.plan.buffers[var], var.type
        assert isinstance(ty, TensorType)
        if buffer.result is not None:
            array = Parameter(OUTPUT, buffer.result.position, ty.dtype)
            return array, self.s.ravel(at, ty.shape)
        return Parameter(ROW, self.scratch + buffer.number, ty.dtype), self.own(buffer, at, inner)

    @abstractmethod
    def own(self, buffer: Buffer, at: Index, inner: Index) -> Value:
        """The place in one of the kernel's own slices."""
