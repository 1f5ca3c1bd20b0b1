"""Which parts of arrays ops read and replace: the facts behind updates in place.

In: ops of Core that read or write a part of an array, and the function they stand in. Out: whether
the part may be written in the array's own buffer while the function runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, Function, Let, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType

#: Ops that replace or add to a part of their first operand, and leave the rest; `commit` replaces
#: all of it.
UPDATES = frozenset(["index_update", "index_add", "slice_update", "slice_add", "commit"])

#: Views: on an array in memory they cost nothing.
VIEWS = frozenset(["reshape", "expand_dims", "squeeze", "refine"])

#: Elements along an axis that an update may leave out and still count as one of the whole array.
_WIDEST_EDGE = 16


def is_view(rhs: OpCall) -> bool:
    """Whether an op gives another shape to an array."""
    ty = rhs.args[0].type if rhs.op.name in VIEWS else None
    return isinstance(ty, TensorType) and bool(ty.rank)


MOST_PARTS = 8
"""Parts of an array that are computed together, and each stored in its place."""


def parts_of(rhs: object) -> tuple[int, tuple[Extent, ...]] | None:
    """The axis and the shape of the parts that an op lays one after the other, if it is one that
    joins a few arrays of one shape: they can be computed together."""
    if not isinstance(rhs, OpCall) or rhs.op.name != "concatenate":
        return None
    shapes = {a.type.shape for a in rhs.args if isinstance(a.type, TensorType)}
    if len(shapes) != 1 or not 2 <= len(rhs.args) <= MOST_PARTS:
        return None
    (shape,) = shapes
    return rhs.attrs["axis"] % len(shape), shape


def follow_each_other(slices: Sequence[OpCall]) -> bool:
    """Whether slices of one array, in some order, begin each where another one ends along an axis:
    they have no element in common."""
    for axis in range(len(slices[0].attrs["starts"])):
        if any(each.attrs["steps"][axis] != 1 for each in slices):
            continue
        starts = [each.attrs["starts"][axis] for each in slices]
        sizes = [each.attrs["sizes"][axis] for each in slices]
        ends = [dims.add(start, size) for start, size in zip(starts, sizes, strict=True)]
        met = sum(end in starts for end in ends)
        if len(set(starts)) == len(set(ends)) == len(slices) == met + 1:
            return True
    return False


def updates_element(rhs: OpCall) -> bool:
    """Whether an op writes one element of an array, chosen by scalars."""
    if rhs.op.name not in ("index_update", "index_add"):
        return False
    ty = rhs.args[0].type
    assert isinstance(ty, TensorType)
    return len(rhs.attrs["axes"]) == ty.rank


def reads_element(rhs: OpCall) -> bool:
    """Whether an op reads one element of an array, chosen by scalars."""
    ty = rhs.args[0].type if rhs.op.name == "index" else None
    return isinstance(ty, TensorType) and len(rhs.attrs["axes"]) == ty.rank


def part_shape(rhs: OpCall) -> tuple[Extent, ...]:
    """The shape of the part that an update writes."""
    if "sizes" in rhs.attrs:
        return tuple(rhs.attrs["sizes"])
    ty = rhs.args[0].type
    assert isinstance(ty, TensorType)
    return tuple(d for axis, d in enumerate(ty.shape) if axis not in rhs.attrs["axes"])


def updates_nearly_all(rhs: OpCall) -> bool:
    """Whether an update writes an array but for a fixed number of elements at its edges."""
    base = rhs.args[0].type
    assert isinstance(base, TensorType)
    if "sizes" not in rhs.attrs:
        return False
    left = (
        dims.add(extent, dims.multiply(-1, size))
        for extent, size in zip(base.shape, rhs.attrs["sizes"], strict=True)
    )
    return all(isinstance(rest, int) and rest <= _WIDEST_EDGE for rest in left)


def updated_part(let: Let, function: Function) -> tuple[Extent, ...] | None:
    """The shape of the part that a Let of a function may write in its argument's own buffer.

    None if the Let is no update of an argument, or if the function reads that argument otherwise
    than element by element at the place of the update.
    """
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.name not in UPDATES:
        return None
    base = rhs.args[0]
    if base not in function.params or base in function.body.results:
        return None
    reading: set[Atom] = set()  # variables made of elements that are replaced
    for other in walk.nested_lets(function.body):
        operands = walk.operands(other.rhs)
        if other is let:
            if base in operands[1:]:
                return None
        elif base in operands:
            if not reads_same_part(other, rhs):
                return None
            reading.update(other.outs)
        elif not reading.isdisjoint(operands):
            if not isinstance(other.rhs, OpCall) or other.rhs.op.fusion is not Fusion.ELEMENTWISE:
                return None
            reading.update(other.outs)
    return part_shape(rhs)


def reads_same_part(let: Let, update: OpCall) -> bool:
    """Whether a Let reads just the part that `update` replaces, element by element."""
    rhs = let.rhs
    if not isinstance(rhs, OpCall) or rhs.op.name not in ("index", "slice"):
        return False
    if rhs.args[0] is not update.args[0] or rhs.attrs != update.attrs:
        return False
    positions = rhs.args[1:], update.args[2:]
    return all(same_atom(a, b) for a, b in zip(*positions, strict=True))


def same_atom(a: Atom, b: Atom) -> bool:
    """Whether two atoms are the same variable or the same number."""
    if isinstance(a, Var) or isinstance(b, Var):
        return a is b
    assert isinstance(a, Const)
    assert isinstance(b, Const)
    return a.type == b.type and repr(a.value) == repr(b.value)
