"""Which parts of a plan are fit to be graphs.

In: the instructions of a block of a plan, and the slots that may hold scalars of the device. Out:
the block in parts, those told apart whose work hangs on nothing but the words they begin with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyrelay.devices.gpu.graphs import FEWEST_LAUNCHES
from pyrelay.devices.gpu.word_texts import is_spelled, operands_of
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.planning import accesses
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Launch, Plan, PlanFunction, Slot

#: Python's integers have no end, so that these fail in no program that Python can run.
_ENDLESS = frozenset(["add.i64", "sub.i64", "mul.i64"])


def runs_on_host(plan: Plan, launch: Launch, on_device: frozenset[int]) -> bool:
    """Whether a kernel has only scalars, and none that lies on the device."""
    code = plan.kernels[launch.kernel].code
    if code is None or not code.is_scalar:
        return False
    return not any(isinstance(o, Slot) and o.index in on_device for o in launch.operands)


def stretches(
    plan: Plan, block: Sequence[ins.Instruction], on_device: frozenset[int], tapes: set[int]
) -> Iterator[tuple[Sequence[ins.Instruction], bool]]:
    """The parts of a block in order, and whether each is worth a graph. `tapes` are slots of tapes:
    no words."""
    part: list[ins.Instruction] = []
    fit = False
    for instruction in block:
        is_fit = _is_fit(plan, instruction, on_device) and not moves_any(instruction, tapes)
        if is_fit != fit:
            yield from _divided(plan, part, fit, on_device)
            part, fit = [], not fit
        part.append(instruction)
    yield from _divided(plan, part, fit, on_device)


def _divided(
    plan: Plan, part: Sequence[ins.Instruction], fit: bool, on_device: frozenset[int]
) -> Iterator[tuple[Sequence[ins.Instruction], bool]]:
    """A part; if it is worth a graph, without what the host computes for others than its launches,
    which comes behind it: a count of rounds would be another word in each of them."""
    if not fit or sum(isinstance(i, Launch) for i in part) < FEWEST_LAUNCHES:
        if part:
            yield part, False
        return
    kept: list[ins.Instruction] = []
    later: list[ins.Instruction] = []
    needed: set[int] = set()
    overwritten: set[int] = set()
    for instruction in reversed(part):
        read = set(accesses.read(instruction))
        written = set(accesses.written(plan, instruction))
        if _may_wait(instruction, on_device) and not (
            written & needed or (read | written) & overwritten
        ):
            later.append(instruction)
        else:
            kept.append(instruction)
            needed |= read
            overwritten |= written
    yield kept[::-1], True
    if later:
        yield later[::-1], False


def _may_wait(instruction: ins.Instruction, on_device: frozenset[int]) -> bool:
    """Whether an instruction, of the host most likely, raises nothing that Python would raise."""
    if isinstance(instruction, ins.Checked):
        return instruction.op in _ENDLESS
    if isinstance(instruction, ins.Unary) and instruction.op == "move":
        return True
    scalar = isinstance(instruction, (ins.Unary, ins.Binary, ins.Select))
    return scalar and not is_computed(instruction, on_device)


def moves_any(instruction: ins.Instruction, tapes: set[int]) -> bool:
    """Whether an instruction moves a tape."""
    return isinstance(instruction, ins.Unary) and instruction.target in tapes


def tape_slots(code: Sequence[ins.Instruction]) -> set[int]:
    """The slots of a function that hold tapes."""
    found: set[int] = set()
    for step in code:
        match step:
            case ins.TapeNew(target=target):
                found.add(target)
            case (
                ins.TapePush(tape=Slot(index)) | ins.TapePop(tape=Slot(index))
                | ins.TapePushBytes(tape=Slot(index)) | ins.TapePopBytes(tape=Slot(index))
                | ins.TapeFree(tape=Slot(index))
            ):
                found.add(index)
    return connected(code, found)


def connected(code: Sequence[ins.Instruction], slots: set[int]) -> set[int]:
    """These slots, and all that moves connect with them."""
    moves = [
        (i.target, i.a.index) for i in code
        if isinstance(i, ins.Unary) and i.op == "move" and isinstance(i.a, Slot)
    ]
    while True:
        more = {end for pair in moves if set(pair) & slots for end in pair} - slots
        if not more:
            return slots
        slots = slots | more


def _is_fit(plan: Plan, instruction: ins.Instruction, on_device: frozenset[int]) -> bool:
    """Whether the host knows all that it needs for an instruction before the device has computed
    anything."""
    match instruction:
        case Launch():
            if runs_on_host(plan, instruction, on_device):
                return False
            return not any(
                isinstance(o, Slot) and o.index in on_device
                for o in (*_by_value(plan, instruction), instruction.extent)
            )
        case ins.Unary(op="move") | ins.Alloc() | ins.Free() | ins.Copy() | ins.Zero() | ins.Load():
            return True
        case ins.Store(address=address, index=index):
            return not _any_in(on_device, (address, index))
        case ins.Unary() | ins.Binary() | ins.Checked() | ins.Select():
            return is_computed(instruction, on_device) or not _any_in(
                on_device, operands_of(instruction)
            )
    return False


def is_computed(instruction: Any, on_device: frozenset[int]) -> bool:
    """Whether an instruction makes a scalar of the device of others, by a kernel of its own."""
    return (
        is_spelled(instruction) and instruction.target in on_device
        and _any_in(on_device, operands_of(instruction))
    )


def _by_value(plan: Plan, launch: Launch) -> Sequence[Any]:
    """The operands that a kernel does not find on the device."""
    code = plan.kernels[launch.kernel].code
    if code is None:
        return launch.operands
    return [
        operand for parameter, operands in code.split(launch.operands)
        if parameter.role != kernel_ir.SCALAR for operand in operands
    ]


def _any_in(on_device: frozenset[int], values: Sequence[Any]) -> bool:
    return any(isinstance(v, Slot) and v.index in on_device for v in values)


def flow(plan: Plan, part: Sequence[ins.Instruction]) -> tuple[list[int], list[int]]:
    """The slots that a part of a plan reads before it writes them, and those that it writes."""
    given: dict[int, None] = {}
    written: dict[int, None] = {}
    for instruction in part:
        for slot in accesses.read(instruction):
            if slot not in written:
                given[slot] = None
        written.update(dict.fromkeys(accesses.written(plan, instruction)))
    return list(given), list(written)


def read_outside(
    plan: Plan, function: PlanFunction, part: Sequence[ins.Instruction]
) -> set[int]:
    """The slots that a function reads in instructions that are not of a part of it."""
    own = set(map(id, part))
    outside = (i for i in function.code if id(i) not in own)
    return {slot for instruction in outside for slot in flow(plan, (instruction,))[0]}
