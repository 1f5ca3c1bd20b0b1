"""Rows and columns: groups that reduce some axes of arrays and go on with the results.

In: the Lets of a block, and which members of a group read each. Out: where a Let stands in a group
that runs slice by slice: once per slice, once per element, or neither.

A slice is what the axes `kept` select, the leading ones (rows: the last axes are reduced) or the
last ones (columns: the leading axes are reduced); a reduction gives a number per slice. A softmax
is such a group: maximum and sum stand at the row, the exponential and the quotient at the elements.
The kernel takes one slice after the other, in as many loops over its elements as reductions depend
on each other, so nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

Shape = tuple[Extent, ...]

#: Ops that keep the order of elements: between shapes of one number per slice they change nothing.
_SAME_ORDER = frozenset(["reshape", "expand_dims", "squeeze", "refine"])

#: Reductions that read their operand twice.
_IN_TWO_PASSES = frozenset(["argmax", "argmin"])

#: Reductions that depend on each other in one group; each takes a loop over the slice, or where
#: the whole array is the slice, kernels of its own.
_MOST_STAGES, _MOST_KERNEL_STAGES = 6, 2


@dataclass(frozen=True, slots=True)
class Kept:
    """The axes that a reduction keeps: the leading ones, or the last ones for `columns`."""

    axes: Shape
    columns: bool

    @property
    def is_trivial(self) -> bool:
        """Whether there is one slice only, though axes are kept."""
        return bool(self.axes) and all(extent == 1 for extent in self.axes)

    def is_slice(self, shape: Shape) -> bool:
        """Whether an array of this shape has one number per slice: further axes have extent 1."""
        rank = len(self.axes)
        cut = len(shape) - rank
        if cut < 0:
            return False
        axes, rest = (shape[cut:], shape[:cut]) if self.columns else (shape[:rank], shape[rank:])
        return axes == self.axes and all(extent == 1 for extent in rest)

    def reduced(self, shape: Shape) -> Shape | None:
        """The axes behind (or before) those kept; None if the shape does not have these."""
        rank = len(self.axes)
        cut = len(shape) - rank
        if cut < 0:
            return None
        axes, rest = (shape[cut:], shape[:cut]) if self.columns else (shape[:rank], shape[rank:])
        return rest if axes == self.axes else None


@dataclass(slots=True, eq=False)
class Slices:
    """The slices of a group; arrays of shape `full` have all their elements.

    `per_slice` and `per_element` are members of the group by where they are computed; `stages`
    counts the reductions that follow on each.
    """

    kept: Kept
    full: Shape
    per_slice: set[int] = field(default_factory=set)
    per_element: set[int] = field(default_factory=set)
    stages: dict[int, int] = field(default_factory=dict)

    def _stage(self, lets: Sequence[Let], readers: Iterable[int]) -> int:
        """How many reductions one after the other follow on what these members read."""
        return max((self.stages.get(r, 0) + _reduces(lets[r]) for r in readers), default=0)

    def joins_slice(self, lets: Sequence[Let], k: int, readers: Sequence[int]) -> bool:
        """Whether Let `k` is wanted at the index of the slice by all its readers."""
        shape = _shape(lets[k])
        if shape is None or not self.kept.is_slice(shape):
            return False
        most = _MOST_STAGES if self.kept.axes else _MOST_KERNEL_STAGES
        if _reduces(lets[k]) and self._stage(lets, readers) >= most:
            return False
        return all(self._reads_slice(lets[r], r, shape) for r in readers)

    def _reads_slice(self, reader: Let, r: int, shape: Shape) -> bool:
        rhs, out = reader.rhs, _shape(reader)
        if not isinstance(rhs, OpCall) or out is None:
            return False
        spreads = rhs.op.fusion is Fusion.ELEMENTWISE or rhs.op.name == "broadcast_to"
        # Shapes are aligned at the right, where rows have axes that are not kept.
        anyhow = self.kept.columns or not self.kept.axes
        if r in self.per_element:
            return spreads and (anyhow or len(shape) == len(self.full))
        if r not in self.per_slice:
            return False
        aligned = out == shape or (anyhow and self.kept.is_slice(out))
        return (spreads and aligned) or rhs.op.name in _SAME_ORDER

    def joins_elements(self, lets: Sequence[Let], k: int, readers: Sequence[int]) -> bool:
        """Whether Let `k` is wanted at the index of the elements by all its readers."""
        if _shape(lets[k]) != self.full:
            return False
        return all(self._reads_element(lets[r], r) for r in readers)

    def _reads_element(self, reader: Let, r: int) -> bool:
        rhs = reader.rhs
        if not isinstance(rhs, OpCall):
            return False
        if r in self.per_slice:
            return rhs.op.fusion is Fusion.REDUCTION
        if r not in self.per_element:
            return False
        return rhs.op.fusion is Fusion.ELEMENTWISE or rhs.op.name == "broadcast_to"

    def joins(self, lets: Sequence[Let], k: int, readers: Sequence[int]) -> bool:
        """Whether Let `k` has a place here."""
        return self.joins_slice(lets, k, readers) or self.joins_elements(lets, k, readers)

    def add(self, lets: Sequence[Let], k: int, readers: Sequence[int]) -> None:
        """Notes where a new member stands; its readers in the group are members already."""
        self.stages[k] = self._stage(lets, readers)
        if self.joins_slice(lets, k, readers):
            self.per_slice.add(k)
        elif self.joins_elements(lets, k, readers):
            self.per_element.add(k)


def slices_of(let: Let, space: Shape) -> Slices | None:
    """The slices of a group over `space` that a reduction joins.

    None if it reduces no last axes and no leading ones. A reduction of leading axes, or of all,
    makes such a group only where elements depend on it: alone it is better done in parallel.
    """
    kept = kept_axes(let)
    if kept is None or kept.is_trivial:
        return None
    if kept.is_slice(space):
        assert isinstance(let.rhs, OpCall)
        operand = let.rhs.args[0].type
        assert isinstance(operand, TensorType)
        return None if kept.columns or not kept.axes else Slices(kept, operand.shape)
    return Slices(kept, space) if kept.reduced(space) is not None else None


def kept_axes(let: Let) -> Kept | None:
    """What a reduction keeps, if it reduces all axes behind or all before that, and no others."""
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.fusion is not Fusion.REDUCTION:
        return None
    if rhs.op.name in _IN_TWO_PASSES:
        return None
    if len(rhs.args) != 1 or "axes" not in rhs.attrs or len(let.outs) != 1:
        return None
    ty = rhs.args[0].type
    assert isinstance(ty, TensorType)
    axes = tuple(rhs.attrs["axes"])
    if axes and axes == tuple(range(axes[0], ty.rank)):
        return Kept(ty.shape[: axes[0]], columns=False)
    if axes and axes == tuple(range(len(axes))):
        return Kept(ty.shape[len(axes) :], columns=True)
    return None


def _reduces(let: Let) -> bool:
    return isinstance(let.rhs, OpCall) and let.rhs.op.fusion is Fusion.REDUCTION


def _shape(let: Let) -> Shape | None:
    if len(let.outs) != 1 or not isinstance(let.outs[0].type, TensorType):
        return None
    return let.outs[0].type.shape
