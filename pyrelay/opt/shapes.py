"""Facts about single Lets that grouping goes by: what they read, and how their shapes relate.

In: Lets, atoms, shapes. Out: whether two shapes have the same elements, whether reading one for the
other repeats elements, whether a reduction keeps the last axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrelay.ir import walk
from pyrelay.ir.contents import Contents
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Let, OpCall
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType


def reads_of(let: Let, contents: Contents) -> tuple[Atom, ...]:
    """What a Let reads, blocks inside it included, each once."""
    if not walk.blocks(let.rhs):
        return tuple(dict.fromkeys(walk.operands(let.rhs)))
    return tuple(contents.reads(let))


def is_array(atom: Atom) -> bool:
    """Whether an atom has axes."""
    return isinstance(atom.type, TensorType) and bool(atom.type.shape)


def shape_of(atom: Atom) -> tuple[Extent, ...]:
    return atom.type.shape if isinstance(atom.type, TensorType) else ()


def same_elements(a: Sequence[Extent], b: Sequence[Extent]) -> bool:
    """Whether two shapes have the same elements at the same indices, up to axes of extent 1."""
    one = [d for d in a if d != 1]
    return one == [d for d in b if d != 1] and (not one or tuple(a) == tuple(b))


def is_repeated(source: Sequence[Extent], target: Sequence[Extent]) -> bool:
    """Whether broadcasting reads elements again inside the innermost loop.

    Elements that stay the same along the last axis are computed before it.
    """
    if tuple(source) == tuple(target) or not source or not target:
        return False
    return not (source[-1] == 1 and target[-1] != 1)


GATHERS = frozenset(["gather", "gather_inside"])
"""Ops that read elements at positions in arrays."""


def reads_again(rhs: OpCall, operand: int) -> bool:
    """Whether an op that reduces no axes reads elements of an operand again and again."""
    return rhs.op.name in GATHERS or (rhs.op.name == "search" and operand == 0)


def reduces_rows(rhs: OpCall) -> bool:
    """Whether an op is a reduction that keeps the last axis."""
    if rhs.op.fusion is not Fusion.REDUCTION or "axes" not in rhs.attrs:
        return False
    rank = len(shape_of(rhs.args[0]))
    return bool(rank) and rank - 1 not in {axis % rank for axis in rhs.attrs["axes"]}
