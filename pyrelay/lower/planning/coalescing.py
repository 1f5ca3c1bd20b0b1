"""Slots that hold one value after another, so that nothing is moved between them.

In: a plan. Out: the same plan with fewer moves and smaller frames. Branches and loops leave their
results in slots of their own, and so does what they call: of a recursive function that carries the
arrays of a table, most instructions were moves. Two slots that a move joins become one if neither
is written while the other holds what is still read (Chaitin et al., "Register allocation via
coloring", 1981); joins are taken as they come, since frames may be as large as they need.

A jump to what follows it goes, too.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pyrelay.lower.planning import accesses
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.accesses import bits
from pyrelay.lower.planning.instructions import AddressOf, Instruction, Plan, PlanFunction, Slot


def coalesced(plan: Plan) -> Plan:
    """The plan with joined slots. Functions whose rows threads share stay as they are: each thread
    has a frame of its own."""
    return replace(plan, functions=tuple(
        f if accesses.shares_rows(f) else _joined(plan, f, number)
        for number, f in enumerate(plan.functions)
    ))


def _joined(plan: Plan, function: PlanFunction, number: int) -> PlanFunction:
    moves = [
        (step.target, step.a.index) for step in function.code
        if isinstance(step, ins.Unary) and step.op == "move" and isinstance(step.a, Slot)
    ]
    if not moves:
        return function
    names = _names(plan, function, moves, number == 0)
    code = _straightened([
        step for step in (_renamed(step, names) for step in function.code)
        if not (isinstance(step, ins.Unary) and step.op == "move" and step.a == Slot(step.target))
    ])
    return _renumbered(plan, replace(function, code=tuple(code)))


def _names(
    plan: Plan, function: PlanFunction, moves: Sequence[tuple[int, int]], is_entry: bool
) -> list[int]:
    """For each slot the one that stands for it."""
    code, given = function.code, (1 << function.parameters) - 1
    reads = [bits(accesses.read(step)) for step in code]
    writes = [bits(accesses.written(plan, step)) for step in code]
    entering, after = _still_read(code, reads, writes)
    # The arrays that a caller lent are told by the words that the entry began with.
    fixed = (entering & ~given) | bits(_by_address(plan, code)) | (given if is_entry else 0)
    apart = [0] * function.slots  # from which slots each has to differ
    for step, read, write, living in zip(code, reads, writes, after, strict=True):
        beside = living | write
        if isinstance(step, (ins.Checked, ins.UfuncCall)):
            beside |= read  # an error tells both operands of what is checked
        elif isinstance(step, ins.Unary) and step.op == "move":
            beside &= ~read
        for slot in _slots(write):
            apart[slot] |= beside
    for slot in range(function.parameters):
        apart[slot] |= entering | given
    names, members = list(range(function.slots)), [1 << k for k in range(function.slots)]
    for target, source in moves:
        one, other = sorted((names[target], names[source]))
        if one == other or (members[one] | members[other]) & fixed:
            continue
        if apart[one] & members[other] or apart[other] & members[one]:
            continue
        for slot in _slots(members[other]):
            names[slot] = one
        members[one] |= members[other]
        apart[one] |= apart[other]
    return names


def _by_address(plan: Plan, code: Sequence[Instruction]) -> Iterator[int]:
    """Slots that something else than an instruction finds where they are: numbers of two words,
    and what kernels of a library and NumPy's loops read or write."""
    for step in code:
        kernel = plan.kernels[step.kernel].code if isinstance(step, ins.Launch) else None
        if kernel is None:
            found = [each for each in accesses.fields_of(step) if isinstance(each, AddressOf)]
        else:
            assert isinstance(step, ins.Launch)
            found = [
                word for parameter, words in kernel.split(step.operands) for word in words
                if isinstance(word, AddressOf) and parameter.dtype.size == 16
            ]
        for each in found:
            yield from (each.index, each.index + 1)


def _still_read(
    code: Sequence[Instruction], reads: Sequence[int], writes: Sequence[int]
) -> tuple[int, list[int]]:
    """The slots whose values are read from the first instruction on, and from after each one on."""
    targets = accesses.targets(code)
    heads = {place for k, place in enumerate(targets) if place is not None and place < k}
    before, after = [0] * (len(code) + 1), [0] * len(code)
    changed = True
    while changed:
        changed = False
        for k in range(len(code) - 1, -1, -1):
            ends, target = isinstance(code[k], accesses.ENDS), targets[k]
            living = 0 if ends else before[k + 1]
            if target is not None:
                living |= before[target]
            after[k] = living
            living = reads[k] | (living & ~writes[k])
            changed = changed or (k in heads and living != before[k])
            before[k] = living
    return before[0], after


def _slots(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


# -- the code with other slots -----------------------------------------------------------------

_NUMBERS = frozenset(["target", "targets", "results", "counter"])
"""Fields that hold the numbers of slots, where they hold ints."""


def _renamed(step: Instruction, names: Sequence[int]) -> Instruction:
    changed: dict[str, Any] = {}
    for field in step.__dataclass_fields__:
        value = getattr(step, field)
        found = _renamed_in(value, names, field in _NUMBERS)
        if found is not value:
            changed[field] = found
    return replace(step, **changed) if changed else step


def _renamed_in(value: Any, names: Sequence[int], is_slot: bool) -> Any:
    if isinstance(value, (Slot, AddressOf)):
        name = names[value.index]
        return value if name == value.index else type(value)(name)
    if isinstance(value, tuple):
        found = tuple([_renamed_in(each, names, is_slot) for each in value])
        return value if all(map(operator.is_, found, value)) else found
    return names[value] if is_slot and isinstance(value, int) else value


def _renumbered(plan: Plan, function: PlanFunction) -> PlanFunction:
    """The function with no slots that no instruction names; those side by side stay so."""
    used = bits(_by_address(plan, function.code)) | ((1 << function.parameters) - 1)
    for step in function.code:
        used |= bits(accesses.read(step)) | bits(accesses.written(plan, step))
    names = [0] * used.bit_length()
    for number, slot in enumerate(_slots(used)):
        names[slot] = number
    code = tuple([_renamed(step, names) for step in function.code])
    return replace(function, slots=used.bit_count(), code=code)


def _straightened(code: list[Instruction]) -> list[Instruction]:
    """The code without jumps to what follows them, and without jumps over jumps."""
    while True:
        found: list[Instruction] = []
        for step in code:
            found.append(step)
            if isinstance(step, ins.Label):
                _straighten(found)
        if len(found) == len(code):
            return found
        code = found


def _straighten(code: list[Instruction]) -> None:
    """Take out a jump to one of the labels that the code ends with, or turn one over a jump."""
    place = len(code)
    while place and isinstance(code[place - 1], ins.Label):
        place -= 1
    names = {step.name for step in code[place:] if isinstance(step, ins.Label)}
    last = code[place - 1] if place else None
    if isinstance(last, (ins.Jump, ins.JumpIf, ins.JumpUnless)) and last.label in names:
        del code[place - 1]
        return
    over = code[place - 2] if place > 1 else None
    if (
        isinstance(last, ins.Jump) and isinstance(over, (ins.JumpIf, ins.JumpUnless))
        and over.label in names
    ):
        otherwise = ins.JumpUnless if isinstance(over, ins.JumpIf) else ins.JumpIf
        code[place - 2 : place] = [otherwise(over.condition, last.label)]
