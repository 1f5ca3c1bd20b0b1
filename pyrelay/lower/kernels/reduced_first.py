"""Slow functions of what rows are reduced to: the rows first, then the functions of them.

In: a result with one number per row. Out: the reductions that a kernel of rows stores for all rows
of a call before a second loop computes the result from them. One row at a time, a function like
`exp` is computed one number at a time; in a loop of its own it is computed for as many as a vector
has.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from pyrelay.ir import dims
from pyrelay.ir.nodes import Atom, Let, OpCall, Var
from pyrelay.ir.op import Effect, Fusion
from pyrelay.lower.kernels.schedule import Result
from pyrelay.ops.work import element_work
from pyrelay.opt.shapes import shape_of

_FEWEST = 64  # rows that are worth a buffer for what they are reduced to


def reduced_first(result: Result, lets: Sequence[Let], inside: Set[Atom]) -> tuple[Var, ...]:
    """What reductions leave that is stored first; nothing where no slow function follows, where the
    result reads a reduction at another place than its own, or where elements of the rows are
    computed from what the function gives. `inside`: what those are computed from."""
    size = dims.product(result.shape)
    if isinstance(size, int) and size < _FEWEST:
        return ()
    made: dict[Atom, OpCall] = {}  # of what reductions leave
    for let in lets:
        assert isinstance(let.rhs, OpCall)
        if _is_reduction(let.rhs) or any(a in made for a in let.rhs.args):
            made.update((out, let.rhs) for out in let.outs)
    found: dict[Var, None] = {}
    slow = False
    pending = [result.source]
    seen = set(pending)
    while pending:
        atom = pending.pop()
        if atom not in made:
            continue
        assert isinstance(atom, Var)
        call = made[atom]
        if shape_of(atom) != result.shape or call.op.effect is not Effect.PURE:
            return ()
        if _is_reduction(call):
            found[atom] = None
            continue
        if call.op.fusion is not Fusion.ELEMENTWISE or atom in inside:
            return ()
        slow |= element_work(call) > 1
        fresh = [a for a in call.args if a not in seen]
        seen.update(fresh)
        pending += fresh
    return tuple(found) if slow else ()


def _is_reduction(call: OpCall) -> bool:
    return call.op.fusion is Fusion.REDUCTION
