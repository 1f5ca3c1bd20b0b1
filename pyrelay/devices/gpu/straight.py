"""Ways through loops whose rounds may be launched many at a time.

In: a function of a plan. Out: its `Straight` ways: from the head of a loop back to it, through no
loop inside. Where a branch goes another way, the plan does the round. What a round computes on the
host follows from what the host knew before it, so that it can be computed ahead for many rounds;
nothing else of a round changes but that.

This is what tracing compilers compile (Gal et al., "Trace-based just-in-time type specialization
for dynamic languages", 2009).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.device_words import labels_of, loop_regions
from pyrelay.devices.gpu.persistent import address_slots
from pyrelay.devices.gpu.stretches import flow, read_outside, runs_on_host, tape_slots
from pyrelay.devices.gpu.word_texts import is_spelled
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Immediate,
    Launch,
    Plan,
    PlanFunction,
    Slot,
)
from pyrelay.records import dataclass

_SCALARS = (ins.Unary, ins.Binary, ins.Checked, ins.Select)

MOST_WAYS = 2
"""Of a loop."""

_MOST_TRIED = 16


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction of a way, its place, and for a branch whether its condition has to hold; None
    where that is known from a branch before."""

    place: int
    code: ins.Instruction
    holds: int | None = None


@dataclass(frozen=True, slots=True)
class Straight:
    """A way through a loop.

    steps: from its head's label to the jump back. device: slots that may hold scalars of the
    device. host: those of scalars that the host computes; varying: those of them that are others in
    each round. fixed: what else a round begins with; buffers: which of that, by place, are
    addresses, and whether rounds put others there. ahead: what the host's part begins with.
    results: slots that it leaves; counts: those that the host's part leaves. guesses: whether the
    device decides when it ends.
    """

    steps: tuple[Step, ...]
    device: frozenset[int]
    host: frozenset[int]
    varying: frozenset[int]
    fixed: tuple[int, ...]
    buffers: tuple[tuple[int, bool], ...]
    ahead: tuple[int, ...]
    results: tuple[int, ...]
    counts: tuple[int, ...]
    guesses: bool

    @property
    def first(self) -> int:
        """The place of the loop's head."""
        return self.steps[0].place

    @property
    def last(self) -> int:
        """The place of the jump back."""
        return self.steps[-1].place

    @property
    def code(self) -> tuple[ins.Instruction, ...]:
        """Its instructions."""
        return tuple(step.code for step in self.steps)

    def is_host(self, plan: Plan, step: ins.Instruction) -> bool:
        """Whether the host computes an instruction's result."""
        return _is_host(plan, step, self.device, self.host)


def straight_loops(
    plan: Plan, function: PlanFunction, on_device: frozenset[int],
    guessed: dict[int, int | None],
) -> list[Straight]:
    """The ways through loops of a function."""
    found = []
    for first, _ in loop_regions(function):
        for steps in _ways(plan, function.code, first):
            made = _straight(plan, function, steps, on_device, guessed)
            if made is not None:
                found.append(made)
    return found


def _ways(plan: Plan, code: Sequence[ins.Instruction], first: int) -> list[list[Step]]:
    """The ways from the head of a loop back to it, some of them."""
    labels = labels_of(code)
    found: list[list[Step]] = []
    waiting: list[tuple[int, list[Step], dict[int, int]]] = [(first, [], {})]
    tried = 0
    while waiting and len(found) < MOST_WAYS and tried < _MOST_TRIED:
        tried += 1
        way = _followed(plan, code, labels, first, *waiting.pop(), waiting)
        if way is not None:
            found.append(way)
    return found


def _followed(
    plan: Plan, code: Sequence[ins.Instruction], labels: Mapping[str, int], first: int, place: int,
    steps: list[Step], known: dict[int, int], waiting: list[tuple[int, list[Step], dict[int, int]]],
) -> list[Step] | None:
    """A way on from a place, the first one at each branch, while the others are left waiting; None
    if it does not lead back. `known` are the slots whose value is known there."""
    seen = {step.place for step in steps}
    while place < len(code) and place not in seen:
        step = code[place]
        seen.add(place)
        goal = labels.get(getattr(step, "label", ""))
        match step:
            case ins.Jump() | ins.LoopNext() if goal == first:
                return [*steps, Step(place, step)]
            case ins.Jump() if goal is not None:
                steps.append(Step(place, step))
                place = goal
                continue
            case ins.JumpIf(condition=condition) | ins.JumpUnless(condition=condition):
                assert goal is not None
                jumps = int(isinstance(step, ins.JumpIf))  # if the condition is this
                value = _value(known, condition)
                if value is not None:
                    steps.append(Step(place, step))
                    place = goal if int(value != 0) == jumps else place + 1
                    continue
                if isinstance(condition, Slot):
                    slot = condition.index
                    waiting.append(
                        (goal, [*steps, Step(place, step, jumps)], {**known, slot: jumps})
                    )
                    known[slot] = 1 - jumps
                steps.append(Step(place, step, 1 - jumps))
            case ins.LoopNext() | ins.Return() | ins.Raise():
                return None
            case _:
                _note(plan, known, step)
                steps.append(Step(place, step))
        place += 1
    return None


def _value(known: Mapping[int, int], operand: Any) -> int | None:
    if isinstance(operand, Immediate):
        return operand.word
    return known.get(operand.index) if isinstance(operand, Slot) else None


def _note(plan: Plan, known: dict[int, int], step: ins.Instruction) -> None:
    """What is known after an instruction."""
    moved = _value(known, step.a) if isinstance(step, ins.Unary) and step.op == "move" else None
    for slot in flow(plan, (step,))[1]:
        known.pop(slot, None)
        if moved is not None:
            known[slot] = moved


def _is_told(plan: Plan, instruction: ins.Instruction) -> bool:
    """Whether it is known which operands are addresses of buffers."""
    if not isinstance(instruction, Launch) or plan.kernels[instruction.kernel].code is not None:
        return True
    return cuda_library.is_told(plan.kernels[instruction.kernel].source, instruction.operands)


def _straight(
    plan: Plan, function: PlanFunction, steps: Sequence[Step], on_device: frozenset[int],
    guessed: dict[int, int | None],
) -> Straight | None:
    part = [step.code for step in steps]
    if not all(_is_told(plan, each) for each in part):
        return None
    given, written = flow(plan, part)
    if tape_slots(function.code) & {*given, *written}:
        return None
    later = read_outside(plan, function, part) | set(given)
    device = _device_slots(plan, part, {s for s in given if s in on_device and s not in written})
    addresses = address_slots(plan, part)
    host = frozenset(
        slot for step in part if _is_scalar(plan, step, device)
        for slot in flow(plan, (step,))[1] if slot not in device | addresses
    )
    varying = _varying(plan, part, host, host & set(given))
    if not all(_is_fit(plan, step, device, host, varying, guessed) for step in steps[1:-1]):
        return None
    if isinstance(part[-1], ins.LoopNext) and not _is_counted(part[-1], device, host):
        return None
    if not any(isinstance(i, Launch) and not _is_host(plan, i, device, host) for i in part):
        return None
    guesses = any(_is_guess(step, device) for step in steps)
    # Where the device ends a loop, it may leave it before a slot was written.
    if guesses:
        given = list(dict.fromkeys((*given, *(s for s in written if s in later))))
    own = {slot for slot in host if slot not in given}
    read = dict.fromkeys(
        slot for step in steps if _is_ahead(plan, step, device, host)
        for slot in flow(plan, (step.code,))[0] if slot not in own
    )
    counts = tuple(slot for slot in written if slot in host and slot in later)
    ahead = dict.fromkeys((*read, *(slot for slot in given if slot in host)))
    fixed = tuple(slot for slot in given if slot not in host)
    buffers = tuple((k, slot in written) for k, slot in enumerate(fixed) if slot in addresses)
    return Straight(
        tuple(steps), frozenset(device), host, varying, fixed, buffers, tuple(ahead),
        tuple(s for s in written if s in later and s not in host), counts, guesses,
    )


def _is_guess(step: Step, device: set[int] | frozenset[int]) -> bool:
    """Whether a branch goes its way by what the device computes."""
    condition = getattr(step.code, "condition", None)
    is_branch = isinstance(step.code, (ins.JumpIf, ins.JumpUnless))
    on_device = isinstance(condition, Slot) and condition.index in device
    return is_branch and on_device and step.holds is not None


def _is_scalar(plan: Plan, step: ins.Instruction, device: set[int] | frozenset[int]) -> bool:
    """Whether an instruction makes a scalar of what the host knows."""
    if isinstance(step, Launch):
        return runs_on_host(plan, step, frozenset(device))
    if isinstance(step, ins.LoopNext):
        return True
    return isinstance(step, _SCALARS) and not _any_in(device, flow(plan, (step,))[0])


def _is_host(
    plan: Plan, step: ins.Instruction, device: frozenset[int] | set[int], host: frozenset[int]
) -> bool:
    return _is_scalar(plan, step, device) and _any_in(host, flow(plan, (step,))[1])


def _device_slots(plan: Plan, part: Sequence[ins.Instruction], known: set[int]) -> set[int]:
    """The slots that may hold scalars of the device."""
    found = set(known)
    while True:
        before = len(found)
        for step in part:
            match step:
                case Launch() if not runs_on_host(plan, step, frozenset(found)):
                    found.update(flow(plan, (step,))[1])
                case ins.Load(target=target):
                    found.add(target)
                case ins.Unary() | ins.Binary() | ins.Checked() | ins.Select():
                    if _any_in(found, flow(plan, (step,))[0]):
                        found.add(step.target)
        if len(found) == before:
            return found


def _varying(
    plan: Plan, part: Sequence[ins.Instruction], host: frozenset[int], known: frozenset[int]
) -> frozenset[int]:
    """The slots of the host that are others in each round."""
    found = set(known)
    while True:
        before = len(found)
        for step in part:
            read, written = flow(plan, (step,))
            if _any_in(found, read):
                found.update(slot for slot in written if slot in host)
        if len(found) == before:
            return frozenset(found)


def _is_fit(
    plan: Plan, taken: Step, device: set[int], host: frozenset[int], varying: frozenset[int],
    guessed: dict[int, int | None],
) -> bool:
    """Whether what an instruction does is known when all that does not vary is."""
    step = taken.code
    fixed = [o for o in _plain(plan, step) if isinstance(o, Slot)]
    if any(o.index in device or o.index in varying for o in fixed):
        return False
    match step:
        case Launch():
            if runs_on_host(plan, step, frozenset(device)):
                return all(slot in host for slot in flow(plan, (step,))[1])
            return not any(
                _any_in(device, pair) and _any_in(varying, pair) for pair in _pairs(plan, step)
            )
        case ins.Unary(op="move"):
            return step.target in host or not _any_in(varying, flow(plan, (step,))[0])
        case ins.Unary() | ins.Binary() | ins.Checked() | ins.Select():
            read = flow(plan, (step,))[0]
            if _any_in(device, read):
                return is_spelled(step)
            return step.target in host or not _any_in(varying, read)
        case ins.JumpIf() | ins.JumpUnless():
            return id(step) in guessed or not _is_guess(taken, device)
        case (
            ins.Jump() | ins.Label() | ins.Poll() | ins.Alloc() | ins.Free() | ins.Copy()
            | ins.Zero() | ins.Load() | ins.Store()
        ):
            return True
    return False


def _is_counted(step: ins.LoopNext, device: set[int], host: frozenset[int]) -> bool:
    limit = step.limit
    known = not isinstance(limit, Slot) or limit.index not in device
    return step.counter in host and known


def _is_ahead(plan: Plan, step: Step, device: set[int], host: frozenset[int]) -> bool:
    """Whether the host does an instruction for many rounds before they are launched."""
    if isinstance(step.code, (ins.JumpIf, ins.JumpUnless)):
        return step.holds is not None and not _is_guess(step, device)
    return isinstance(step.code, ins.LoopNext) or _is_host(plan, step.code, device, host)


def _plain(plan: Plan, step: Any) -> Iterator[Any]:
    """The operands that a launch or an access of memory holds as they are."""
    match step:
        case Launch(kernel=number, operands=operands, extent=extent):
            code = plan.kernels[number].code
            yield extent
            if code is None:
                yield from operands
                return
            for parameter, words in code.split(operands):
                if parameter.role not in (kernel_ir.SCALAR, kernel_ir.SLOT):
                    yield from (w for w in words if not isinstance(w, AddressOf))
        case ins.Alloc(nbytes=nbytes):
            yield nbytes
        case ins.Free(address=address) | ins.Load(address=address) | ins.Store(address=address):
            yield address
        case ins.Copy(target=target, source=source, nbytes=nbytes):
            yield from (target, source, nbytes)
        case ins.Zero(target=target, nbytes=nbytes):
            yield from (target, nbytes)


def _pairs(plan: Plan, launch: Launch) -> Iterator[list[int]]:
    """The slots of each scalar of a launch that has two words."""
    code = plan.kernels[launch.kernel].code
    if code is None:
        return
    for parameter, words in code.split(launch.operands):
        if parameter.role == kernel_ir.SCALAR:
            yield [w.index for w in words if isinstance(w, Slot)]


def _any_in(slots: set[int] | frozenset[int], values: Sequence[int]) -> bool:
    return any(value in slots for value in values)
