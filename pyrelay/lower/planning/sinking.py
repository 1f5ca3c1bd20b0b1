"""Scalars computed on the way to where they are read, and not on other ways.

In: a plan. Out: the same plan with pure scalar instructions in the innermost branch that holds all
that reads them, but in no loop that they do not stand in. Sizes are computed where their symbols
are bound (`sizes.py`), and those of an array that grows are wanted only where it does: in a
recursive function that appends to a list, they were a third of all instructions.

Of two places the later one is right if every way to it leads by the first, and nothing between
them writes an operand. Between means in the order of the code, in which all jumps but those of
loops lead forward.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from pyrelay.lower.planning import accesses
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.accesses import bits
from pyrelay.lower.planning.instructions import AddressOf, Instruction, Plan, PlanFunction
from pyrelay.records import dataclass

_JUMPS = (ins.JumpIf, ins.JumpUnless, ins.LoopNext)
_LAST = (*_JUMPS, *accesses.ENDS)
_PURE = (ins.Unary, ins.Binary, ins.Select)


def sunk(plan: Plan) -> Plan:
    """The plan with its scalars computed later. Functions whose rows threads share stay as they
    are."""
    return replace(plan, functions=tuple(
        f if accesses.shares_rows(f) else _Sinking(plan, f).sunk()
        for f in plan.functions
    ))


@dataclass(slots=True, eq=False)
class _Step:
    """An instruction, and the slots that it reads and writes, a bit for each."""

    code: Instruction
    reads: int
    writes: int


@dataclass(slots=True, eq=False)
class _Block:
    """Instructions that are done one after the other. `before`: blocks that may come before."""

    steps: list[_Step]
    following: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    depth: int = 0  # loops around it
    reads: int = 0
    writes: int = 0

    @property
    def last(self) -> Instruction | None:
        """What it ends with; None once it is empty."""
        return self.steps[-1].code if self.steps else None


class _Sinking:
    """One function, block by block."""

    def __init__(self, plan: Plan, function: PlanFunction) -> None:
        self.function = function
        self.steps = [
            _Step(step, bits(accesses.read(step)), bits(accesses.written(plan, step)))
            for step in function.code
        ]

    def sunk(self) -> PlanFunction:
        """The function with its scalars computed later."""
        movable = self._movable()
        self.blocks = _blocks(self.steps)
        if not movable or len(self.blocks) < 3:
            return self.function
        self.above = _dominators(self.blocks)
        for block in self.blocks:
            _note(block)
        # The last ones first: what an instruction reads may follow it.
        for number in range(len(self.blocks) - 1, -1, -1):
            for step in self.blocks[number].steps[::-1]:
                if step.writes & movable:
                    self._sink(number, step)
        return replace(
            self.function, code=tuple(step.code for block in self.blocks for step in block.steps)
        )

    def _movable(self) -> int:
        """Slots that one pure instruction writes, and instructions only read."""
        once, again, pure = (1 << self.function.parameters) - 1, 0, 0
        for step in self.steps:
            again |= once & step.writes
            once |= step.writes
            if isinstance(step.code, _PURE) and getattr(step.code, "op", "") != "move":
                pure |= step.writes
            for each in accesses.fields_of(step.code):
                if isinstance(each, AddressOf):
                    again |= 3 << each.index
        return pure & ~again

    def _sink(self, number: int, step: _Step) -> None:
        readers = [
            k for k in range(number, len(self.blocks)) if self.blocks[k].reads & step.writes
        ]
        if not readers or readers[0] == number:
            return
        place = self._common(readers)
        while place > number and self.blocks[place].depth > self.blocks[number].depth:
            place = self.above[place]
        if place <= number or not self._is_passed_by(number, place):
            return
        own, there = self.blocks[number], self.blocks[place]
        at = next((k for k, each in enumerate(there.steps) if each.reads & step.writes), None)
        if at is None:
            at = len(there.steps) - isinstance(there.last, _LAST)
        mine = own.steps.index(step)
        if any(block.writes & step.reads for block in self.blocks[number + 1 : place]):
            return
        if any(each.writes & step.reads for each in (*own.steps[mine + 1 :], *there.steps[:at])):
            return
        there.steps.insert(at, step)
        del own.steps[mine]
        _note(there)
        _note(own)

    def _common(self, numbers: Iterable[int]) -> int:
        """The last block that all ways to some blocks lead by."""
        found, *rest = numbers
        for other in rest:
            found = _meeting(self.above, found, other)
        return found

    def _is_passed_by(self, number: int, place: int) -> bool:
        """Whether the function can return, or a loop go on, without coming from a block to another
        one."""
        pending, seen = [number], {number, place}
        while pending:
            block = self.blocks[pending.pop()]
            if isinstance(block.last, ins.Return):
                return True
            for other in block.following:
                if other <= number:
                    return True
                if other not in seen:
                    seen.add(other)
                    pending.append(other)
        return False


def _note(block: _Block) -> None:
    block.reads = block.writes = 0
    for step in block.steps:
        block.reads |= step.reads
        block.writes |= step.writes


def _blocks(steps: Sequence[_Step]) -> list[_Block]:
    blocks: list[_Block] = []
    within: list[int] = []  # for each step the number of its block
    for step in steps:
        last = blocks[-1].last if blocks else None
        begins = isinstance(step.code, ins.Label) and not isinstance(last, ins.Label)
        if last is None or begins or isinstance(last, _LAST):
            blocks.append(_Block([]))
        blocks[-1].steps.append(step)
        within.append(len(blocks) - 1)
    for number, target in zip(
        within, accesses.targets([step.code for step in steps]), strict=True
    ):
        if target is not None:
            blocks[number].following.append(within[target])
            for around in blocks[within[target] : number + 1]:
                around.depth += 1
    for number, block in enumerate(blocks):
        if not isinstance(block.last, accesses.ENDS) and number + 1 < len(blocks):
            block.following.append(number + 1)
        for other in block.following:
            blocks[other].before.append(number)
    return blocks


def _dominators(blocks: Sequence[_Block]) -> list[int]:
    """For each block the nearest other one that all ways to it lead by; the first one for itself
    and where nothing leads (Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm",
    2001)."""
    above = [-1] * len(blocks)
    above[0] = 0
    changed = True
    while changed:
        changed = False
        for number in range(1, len(blocks)):
            known = [k for k in blocks[number].before if above[k] >= 0]
            if not known:
                continue
            found = known[0]
            for other in known[1:]:
                found = _meeting(above, found, other)
            changed = changed or above[number] != found
            above[number] = found
    return [max(each, 0) for each in above]


def _meeting(above: Sequence[int], one: int, other: int) -> int:
    while one != other:
        if one > other:
            one = above[one]
        else:
            other = above[other]
    return one
