"""In which order NumPy keeps the elements of an array in memory: what decides if reshaping copies.

Compiled programs keep every array with its last axis fastest. NumPy does not: an argument may be a
transposed or a strided view, and what is computed from arrays is laid out as they are. Reshaping
gives a view where that order allows it, else a copy, which matters once either is written.
An argument without gaps whose axes lie in another order, as those of Fortran do, enters in that
order, and programs begin by transposing it.

In: arguments, and results with what they are computed from. Out: a `Memory` for each array of two
or more axes that may differ, in `Program.memory`. An argument counts as contiguous until an attempt
finds that a program writes what was reshaped on that ground and the argument at hand is not; the
next attempt is told how it lies (`Program.layouts`). Either way the program is for such arguments.
Where an order is asked for, as with np.ascontiguousarray, how an argument lies decides at once: the
result is the argument itself or a copy, which the caller sees.

Source of the order of results: NumPy's `npyiter_find_best_axis_ordering`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pyrelay.infer.arrays.layouts import Layout
from pyrelay.ir.nodes import OpCall
from pyrelay.ir.op import Fusion
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer import values as V
    from pyrelay.infer.interpreter import Interpreter
    from pyrelay.infer.program import Program

@dataclass(frozen=True, slots=True)
class Memory:
    """layout: None for one whose last axis is fastest, without gaps. leaves: of the arguments whose
    layout it follows from."""

    layout: Layout | None
    leaves: frozenset[int]


CONTIGUOUS = Memory(None, frozenset())

_KEEPING = ("slice", "real", "imag", "bitcast", "refine")
"""Steps of views that leave axes in their order."""


def of_root(program: Program, root: V.Root) -> Memory:
    """How an array lies in memory."""
    if root.leaf is not None:
        return Memory(program.layouts.get(root.leaf), frozenset({root.leaf}))
    return program.memory.get(root, CONTIGUOUS)


def of_result(it: Interpreter, operands: Iterable[Any], result: V.Value) -> None:
    """Note how a new array lies, each element of which is computed of one of each operand, or
    which is made like the operand."""
    from pyrelay.infer import values as V  # what comes from disk needs layouts only

    if not isinstance(result, V.ArrayRef) or len(result.type.shape) < 2:
        return
    arrays = [v for v in operands if isinstance(v, V.ArrayRef) and len(v.type.shape) > 1]
    memories = [of_root(it.program, v.root) for v in arrays]
    leaves = frozenset[int]().union(*(m.leaves for m in memories))
    depths = [_depths(it, m, v) for m, v in zip(memories, arrays, strict=True)]
    order = _best(len(result.type.shape), depths)
    layout = None if order == sorted(order) else (tuple(order), (True,) * len(order))
    if layout or leaves:
        it.program.memory[result.root] = Memory(layout, leaves)


def turned(program: Program, result: V.Value) -> None:
    """Note that a new array has its first axis fastest."""
    from pyrelay.infer import values as V  # what comes from disk needs layouts only

    if isinstance(result, V.ArrayRef) and len(result.type.shape) > 1:
        rank = len(result.type.shape)
        program.memory[result.root] = Memory(
            (tuple(reversed(range(rank))), (True,) * rank), frozenset()
        )


def _depths(it: Interpreter, memory: Memory, array: V.ArrayRef) -> list[int | None]:
    """For each axis of a view how far out it lies in memory; None where it takes no step."""
    rank = len(array.type.shape)
    found: list[int | None] = list(range(rank, 0, -1))
    if memory.layout is not None or not all(step.kind in _KEEPING for step in array.view):
        found = _followed(it, memory, array) or found
    return [None if n == 1 else d for n, d in zip(array.type.shape, found, strict=True)]


def outermost_first(it: Interpreter, array: V.ArrayRef) -> tuple[int, ...]:
    """The axes of a view in the order in which they lie in memory, as they stand where no step
    along them tells."""
    depths = _depths(it, of_root(it.program, array.root), array)
    return tuple(_best(len(depths), [depths]))


def kept(it: Interpreter, array: V.ArrayRef) -> tuple[int, ...] | None:
    """The axes of a new array in the order in which NumPy has them in memory; None where that is
    how they stand, or where the array would have to be copied for it."""
    rank = len(array.type.shape)
    order = tuple(range(rank)) if rank < 2 else outermost_first(it, array)
    if order == tuple(range(rank)):
        return None
    if any(step.kind == "transpose" for step in array.view):
        return order
    content = it.content(array.root)
    made = next((let.rhs for let in reversed(it.builder.lets) if content in let.outs), None)
    if made is None:  # what comes in, of which this is a copy
        return order
    if isinstance(made, OpCall) and (
        made.op.fusion is Fusion.ELEMENTWISE or made.op.name in ("transpose", "broadcast_to")
    ):
        return order
    return None


def _followed(it: Interpreter, memory: Memory, array: V.ArrayRef) -> list[int | None] | None:
    """The same, step by step; None for what is copied to be read."""
    rank = len(it.heap.contents[array.root].type.shape)
    depths: list[int | None] = list(range(rank, 0, -1))
    if memory.layout is not None:
        depths = [rank - memory.layout[0].index(k) for k in range(rank)]
    for step in array.view:
        attrs = step.keywords
        if step.kind in ("index", "squeeze"):
            depths = [d for k, d in enumerate(depths) if k not in attrs["axes"]]
        elif step.kind == "transpose":
            depths = [depths[k] for k in attrs["axes"]]
        elif step.kind == "expand_dims":
            kept, axes = iter(depths), attrs["axes"]
            extended = len(depths) + len(axes)
            depths = [None if k in axes else next(kept) for k in range(extended)]
        elif step.kind == "broadcast_to":
            new = len(attrs["shape"]) - len(depths)
            depths = [*itertools.repeat(None, new), *depths]
        elif step.kind == "reshape":
            depths = list(range(len(attrs["shape"]), 0, -1))
        elif step.kind not in _KEEPING:
            return None
    return depths


def _best(rank: int, depths: Sequence[Sequence[int | None]]) -> list[int]:
    """Axes of a result from the outermost to the innermost: sorted by insertion from the last one
    on, by the first operand that tells two apart, and as they stand where two operands differ."""
    order: list[int] = []  # innermost first
    for axis in reversed(range(rank)):
        place = len(order)
        for before in reversed(range(len(order))):
            told = [
                outer >= inner for d in depths
                if (outer := _at(d, axis, rank)) is not None
                and (inner := _at(d, order[before], rank)) is not None
            ]
            if told and any(told):
                break
            if told:
                place = before
        order.insert(place, axis)
    return order[::-1]


def _at(depths: Sequence[int | None], axis: int, rank: int) -> int | None:
    """How far out an operand has the axis of a result of this rank."""
    own = axis - rank + len(depths)
    return depths[own] if own >= 0 else None
