"""Rows: groups that reduce the last axes of arrays and go on with the results.

In: the Lets of a block, and which members of a group read each. Out: where a Let stands in a group
that runs row by row: once per row, once per element, or neither.

A row is what the leading axes `outer` select; a reduction of the axes behind them gives a number
per row. A softmax is such a group: maximum and sum stand at the row, the exponential and the
quotient at the elements. The kernel takes one row after the other, in as many loops over its
elements as reductions depend on each other, so nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let, OpCall
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType

Shape = tuple[Extent, ...]

#: Ops that keep the order of elements: between shapes of one number per row they change nothing.
_SAME_ORDER = frozenset(["reshape", "expand_dims", "squeeze", "refine"])

#: Reductions that read their operand twice.
_IN_TWO_PASSES = frozenset(["argmax", "argmin"])


@dataclass(slots=True, eq=False)
class Rows:
    """The rows of a group: `outer` selects one, arrays of shape `full` have all their elements.

    `per_row` and `per_element` are members of the group by where they are computed.
    """

    outer: Shape
    full: Shape
    per_row: set[int] = field(default_factory=set)
    per_element: set[int] = field(default_factory=set)

    def is_row_shape(self, shape: Shape) -> bool:
        """Whether an array of this shape has one number per row."""
        return is_row_shape(shape, self.outer)

    def joins_row(self, lets: Sequence[Let], k: int, readers: Iterable[int]) -> bool:
        """Whether Let `k` is wanted at the index of the row by all its readers."""
        shape = _shape(lets[k])
        if shape is None or not self.is_row_shape(shape):
            return False
        return all(self._reads_row(lets[r], r, shape) for r in readers)

    def _reads_row(self, reader: Let, r: int, shape: Shape) -> bool:
        rhs = reader.rhs
        if not isinstance(rhs, OpCall):
            return False
        if r in self.per_element:
            # Aligned at the right, so the reduced axes must be there with extent 1.
            spread = rhs.op.fusion is Fusion.ELEMENTWISE or rhs.op.name == "broadcast_to"
            return spread and len(shape) == len(self.full)
        if r not in self.per_row:
            return False
        if rhs.op.fusion is Fusion.ELEMENTWISE:
            return _shape(reader) == shape
        return rhs.op.name in _SAME_ORDER

    def joins_elements(self, lets: Sequence[Let], k: int, readers: Iterable[int]) -> bool:
        """Whether Let `k` is wanted at the index of the elements by all its readers."""
        if _shape(lets[k]) != self.full:
            return False
        return all(self._reads_element(lets[r], r) for r in readers)

    def _reads_element(self, reader: Let, r: int) -> bool:
        rhs = reader.rhs
        if not isinstance(rhs, OpCall):
            return False
        if r in self.per_row:
            return rhs.op.fusion is Fusion.REDUCTION
        if r not in self.per_element:
            return False
        return rhs.op.fusion is Fusion.ELEMENTWISE or rhs.op.name == "broadcast_to"

    def joins(self, lets: Sequence[Let], k: int, readers: Sequence[int]) -> bool:
        """Whether Let `k` has a place here."""
        return self.joins_row(lets, k, readers) or self.joins_elements(lets, k, readers)

    def add(self, lets: Sequence[Let], k: int, readers: Sequence[int]) -> None:
        """Notes where a new member stands; its readers in the group are members already."""
        if self.joins_row(lets, k, readers):
            self.per_row.add(k)
        elif self.joins_elements(lets, k, readers):
            self.per_element.add(k)


def rows_of(let: Let, space: Shape) -> Rows | None:
    """The rows of a group over `space` that a reduction joins; None if it reduces no last axes."""
    kept = kept_axes(let)
    if kept is None or all(extent == 1 for extent in kept):
        return None
    if is_row_shape(space, kept):
        assert isinstance(let.rhs, OpCall)
        operand = let.rhs.args[0].type
        assert isinstance(operand, TensorType)
        return Rows(kept, operand.shape)
    return Rows(kept, space) if space[: len(kept)] == kept else None


def kept_axes(let: Let) -> Shape | None:
    """The leading axes that a reduction keeps, if it reduces all others and nothing else."""
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
    if not axes or axes != tuple(range(axes[0], ty.rank)):
        return None
    return ty.shape[: axes[0]]


def is_row_shape(shape: Shape, outer: Shape) -> bool:
    """Whether a shape is `outer`, axes of extent 1 behind it allowed."""
    rest = shape[len(outer) :]
    return shape[: len(outer)] == outer and all(extent == 1 for extent in rest)


def _shape(let: Let) -> Shape | None:
    if len(let.outs) != 1 or not isinstance(let.outs[0].type, TensorType):
        return None
    return let.outs[0].type.shape
