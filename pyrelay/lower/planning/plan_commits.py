"""New contents of the caller's arrays, in those arrays' memory (`opt/commits.py`).

In: the op `commit(array, value)` and the kernels that make values; for the entry, which parameters
hold which results at the end. Out: the value in the array's buffer: made there if nothing can tell,
else copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pyrelay.ir import walk
from pyrelay.ir.effects import effect_of
from pyrelay.ir.nodes import Atom, Block, Function, KernelCall, Let, OpCall, Var
from pyrelay.ir.op import Effect
from pyrelay.lower.planning.instructions import Copy, Slot
from pyrelay.lower.planning.memory import Buffer
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.lower.planning.plan_function import FunctionPlanner


@dataclass(frozen=True, slots=True)
class Commit:
    """A value that may be made in an array's memory: by Let `made`, for the commit at `place`."""

    array: Var
    made: int
    place: int


def find(p: FunctionPlanner, block: Block) -> None:
    """Note the values of a block that nothing but their commit reads, and whose array nothing reads
    from when they are made."""
    made: dict[Atom, int] = {}
    last = p.last(block)
    for k, let in enumerate(block.lets):
        made.update(dict.fromkeys(let.outs, k))
        if not isinstance(let.rhs, OpCall) or let.rhs.op.name != "commit":
            continue
        array, value = let.rhs.args
        if not isinstance(array, Var) or not isinstance(value, Var) or value not in made:
            continue
        between = block.lets[made[value] + 1 : k]
        if last[value] == k and all(_leaves_alone(each, array, value) for each in between):
            p.commits[value] = Commit(array, made[value], k)


def find_at_end(p: FunctionPlanner, function: Function, mutated: Mapping[int, int]) -> set[Buffer]:
    """Note the results of an entry that may be made in the caller's array that they go to, as
    nothing reads its old content; the buffers of these arrays, which live until the end.

    `mutated` are the parameters that change, with the result that is the content of each.
    """
    made = {out: k for k, let in enumerate(function.body.lets) for out in let.outs}
    kept: set[Buffer] = set()
    for parameter, result in mutated.items():
        array, value = function.params[parameter], function.body.results[result]
        if not isinstance(value, Var) or value not in made or array in p.scope.last:
            continue
        after = function.body.lets[made[value] + 1 :]
        once = function.body.results.count(value) == 1 and array.type == value.type
        if once and all(effect_of(let.rhs) is Effect.PURE for let in after):
            p.commits[value] = Commit(array, made[value], made[value])
            kept.add(p.buffers[array])
    return kept


def _leaves_alone(let: Let, array: Var, value: Var) -> bool:
    inner = (v for block in walk.blocks(let.rhs) for v in walk.free_vars(block))
    reads = {*walk.operands(let.rhs), *inner}
    return effect_of(let.rhs) is Effect.PURE and array not in reads and value not in reads


def place(
    p: FunctionPlanner, call: KernelCall, out: Var, allowed: Collection[int],
    uses: Counter[Buffer],
) -> int | None:
    """The slot of the array that a result is committed to, if it may be made there."""
    commit = p.commits[out]
    buffer = p.buffers.get(commit.array)
    if buffer is None or p.scope.at != commit.made or effect_of(call) is not Effect.PURE:
        return None
    reading = [
        k for k, a in enumerate(call.args) if isinstance(a, Var) and p.buffers.get(a) is buffer
    ]
    others = [v for v in buffer.readers if v is not commit.array]
    if not set(reading) <= set(allowed) or uses[buffer] > 1:
        return None
    if any(p.scope.last.get(v, -1) > commit.made for v in others):
        return None
    here, p.scope.at = p.scope.at, commit.place
    free = p.is_free_to_take(buffer)
    p.scope.at = here
    if not free:
        return None
    p.take(buffer)
    return buffer.slot


def commit(p: FunctionPlanner, let: Let, call: OpCall) -> None:
    """The value in the memory of the array, where what made it has not put it already."""
    array, value = p.buffer(call.args[0]), p.buffer(call.args[1])
    (out,) = let.outs
    if array.slot != value.slot and p.is_free_to_take(array):
        p.take(array)
        p.frame.emit(Copy(Slot(array.slot), Slot(value.slot), p.bytes_of(out.type)))
        p.define(out, (array.slot,))
    else:
        value.readers.append(out)
        p.buffers[out] = value
