"""Small loops of a plan as one kernel each.

In: a function of a plan. Out: its `Loop`s, outermost ones first, and for each the text of a kernel
that runs all its rounds: launches become calls with a barrier after each, slots become variables
that all threads agree on, and buffers come from an arena that the host lays out beforehand.

A recurrence whose state is small spends its time between launches: k rounds of n kernels become
one, as persistent kernels of recurrent networks are by hand (Diamos et al., "Persistent RNNs",
2016).

Only one block runs such a kernel, so that its barrier is that of a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyrelay.devices import cuda_library
from pyrelay.devices.driver import ADDRESS, Text
from pyrelay.devices.persistent_text import Writer
from pyrelay.devices.stretches import flow
from pyrelay.devices.word_texts import SPELLED
from pyrelay.lower import instructions as ins
from pyrelay.lower import kernel as kernel_ir
from pyrelay.lower.instructions import AddressOf, Launch, Plan, PlanFunction, Slot
from pyrelay.records import dataclass

MOST_WORK = 12_000_000
"""Picoseconds of one core, for each launch of a round, up to which one block is faster."""

_MOST_LAUNCHES = 64
_MOST_CHUNKS = 64


@dataclass(frozen=True, slots=True)
class Group:
    """Buffers of one size in the arena: the operand that tells it, and how many there are."""

    nbytes: Any
    chunks: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that one kernel can run.

    first, last: its instructions, from its head's label up to that of its end. given: slots that
    it begins with. arrays: slots of buffers that it leaves changed; scalars: of words that it
    leaves. groups: what it allocates. work: extents and costs of its launches.
    """

    first: int
    last: int
    given: tuple[int, ...]
    arrays: tuple[int, ...]
    scalars: tuple[int, ...]
    groups: tuple[Group, ...]
    work: tuple[tuple[Any, Any], ...]
    cells: int

    @property
    def results(self) -> tuple[int, ...]:
        """All slots that it leaves."""
        return (*self.arrays, *self.scalars)


def loops(plan: Plan, function: PlanFunction) -> list[Loop]:
    """The loops of a function that can be kernels; of nested ones the outermost."""
    code = function.code
    labels = {i.name: k for k, i in enumerate(code) if isinstance(i, ins.Label)}
    found: list[Loop] = []
    for first, instruction in enumerate(code):
        if not isinstance(instruction, ins.Label) or (found and first < found[-1].last):
            continue
        last = _end(code, labels, first)
        made = None if last is None else _loop(plan, function, first, last)
        if made is not None:
            found.append(made)
    return found


def _end(code: Sequence[ins.Instruction], labels: dict[str, int], first: int) -> int | None:
    """The label behind a loop that begins at a label: all jumps from inside stay inside or go
    there, and none comes from outside. None if there is no such place."""
    head = code[first]
    assert isinstance(head, ins.Label)
    last = max((k for k, i in enumerate(code) if _target(i) == head.name), default=-1) + 1
    if last <= first:
        return None
    while True:
        reach = max(labels[goal] for i in code[first:last] if (goal := _target(i)))
        if reach <= last:
            break
        last = reach
    goals = [labels[goal] for i in code[first:last] if (goal := _target(i))]
    own = {i.name for i in code[first:last] if isinstance(i, ins.Label)}
    entered = any(_target(i) in own for i in (*code[:first], *code[last:]))
    if entered or min(goals) < first or last >= len(code):
        return None
    return last if isinstance(code[last], ins.Label) else None


def _target(instruction: ins.Instruction) -> str | None:
    found: str | None = getattr(instruction, "label", None)
    return found


def _loop(plan: Plan, function: PlanFunction, first: int, last: int) -> Loop | None:
    """The loop's record; None if it does something that a kernel cannot."""
    part = function.code[first:last]
    launches = [i for i in part if isinstance(i, Launch)]
    if not launches or len(launches) > _MOST_LAUNCHES:
        return None
    if not all(_is_fit(plan, instruction) for instruction in part):
        return None
    given, written = flow(plan, part)
    outside = [i for k, i in enumerate(function.code) if not first <= k < last]
    later = {slot for i in outside for slot in flow(plan, (i,))[0]}
    addresses = _address_slots(plan, part)
    results = [slot for slot in written if slot in later or slot in given]
    arrays = [slot for slot in results if slot in addresses]
    changed = set(written)
    if any(slot not in given for slot in arrays):
        return None
    sizes = [i.nbytes for i in part if isinstance(i, ins.Alloc)]
    work = [(launch.extent, launch.cost) for launch in launches]
    if _any_in(changed, [*sizes, *(w for pair in work for w in pair)]):
        return None
    kinds = dict.fromkeys(sizes)
    # Each buffer is one of this round's, or in a slot that keeps it from one round to the next.
    kept = len(addresses & changed)
    groups = tuple(Group(size, sizes.count(size) + kept) for size in kinds)
    if any(group.chunks > _MOST_CHUNKS for group in groups):
        return None
    cells = sum(isinstance(o, AddressOf) for launch in launches for o in launch.operands)
    scalars = tuple(slot for slot in results if slot not in addresses and slot in later)
    return Loop(
        first, last, tuple(given), tuple(arrays), scalars, groups, tuple(work), cells
    )


def _is_fit(plan: Plan, instruction: ins.Instruction) -> bool:
    match instruction:
        case Launch(kernel=number):
            kernel = plan.kernels[number]
            if kernel.code is None:
                return cuda_library.product_of(kernel.source) is not None
            return True
        case ins.Unary(op=op) | ins.Binary(op=op) | ins.Checked(op=op):
            return op in SPELLED[type(instruction)]
        case (
            ins.Select() | ins.Label() | ins.Jump() | ins.JumpIf() | ins.JumpUnless()
            | ins.LoopNext() | ins.Poll() | ins.Alloc() | ins.Free() | ins.Copy() | ins.Load()
            | ins.Store() | ins.Raise()
        ):
            return True
    return False


def _address_slots(plan: Plan, part: Sequence[ins.Instruction]) -> set[int]:
    """The slots of a part that hold addresses of buffers."""
    found = {o.index for i in part for o in _pointed(plan, i) if isinstance(o, Slot)}
    found |= {i.target for i in part if isinstance(i, ins.Alloc)}
    moves = [
        (i.target, i.a.index) for i in part
        if isinstance(i, ins.Unary) and i.op == "move" and isinstance(i.a, Slot)
    ]
    while True:
        more = {end for pair in moves if set(pair) & found for end in pair} - found
        if not more:
            return found
        found |= more


def _pointed(plan: Plan, instruction: ins.Instruction) -> Iterable[Any]:
    """The operands of an instruction that are addresses of buffers."""
    match instruction:
        case Launch(kernel=number, operands=operands):
            code = plan.kernels[number].code
            if code is None:
                return operands[:3]
            scalar = (kernel_ir.SCALAR, kernel_ir.EXTENT, kernel_ir.SLOT)
            return [w for p, words in code.split(operands) if p.role not in scalar for w in words]
        case ins.Free(address=address):
            return (address,)
        case ins.Copy(target=target, source=source):
            return (target, source)
        case ins.Load(address=address) | ins.Store(address=address):
            return (address,)
    return ()


def _any_in(slots: set[int], values: Iterable[Any]) -> bool:
    return any(isinstance(v, Slot) and v.index in slots for v in values)


def text_of(plan: Plan, function: PlanFunction, loop: Loop, on_device: frozenset[int]) -> Text:
    """The kernel of a loop. Its parameters: a word for each slot that it is given, or its address
    where that may lie on the device; the arena; for each group the bytes from one buffer to the
    next; where arrays are to be copied to, with their bytes; where scalars are to be left."""
    writer = Writer(plan, function.code[loop.first : loop.last], loop, on_device)
    kinds = tuple(ADDRESS if slot in on_device else "i64" for slot in loop.given)
    kinds += (ADDRESS,) + ("i64",) * len(loop.groups)
    kinds += (ADDRESS, "i64") * len(loop.arrays) + (ADDRESS,) * len(loop.scalars)
    return Text(writer.text(), kinds)


def operands_of(loop: Loop) -> Iterator[Any]:
    """The extents and costs of a loop's launches, and the sizes of its groups: what the host has to
    know before it can choose."""
    for pair in loop.work:
        yield from pair
    for group in loop.groups:
        yield group.nbytes


def is_worth_it(loop: Loop, values: Sequence[int]) -> bool:
    """Whether one block is faster than a launch for each kernel of each round; `values` are those
    of `operands_of`."""
    count = len(loop.work)
    pairs = zip(values[: 2 * count : 2], values[1 : 2 * count : 2], strict=True)
    return sum(max(extent, 0) * cost for extent, cost in pairs) <= count * MOST_WORK

