"""Loops of a plan as one kernel each.

In: a function of a plan. Out: its `Loop`s, outermost ones first, and for each the text of a kernel
that runs all its rounds: launches become phases with meetings of all threads between them, slots
become variables that all threads agree on, and buffers come from an arena that the host lays out
beforehand.

A recurrence whose state is small spends its time between launches: k rounds of n kernels become
one, as persistent kernels of recurrent networks are by hand (Diamos et al., "Persistent RNNs",
2016). One block or a grid of them runs such a kernel (`persistent_choice`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyrelay.devices import cuda_library
from pyrelay.devices.driver import ADDRESS, Text, block_threads
from pyrelay.devices.persistent_choice import BY_BLOCKS, BY_PRODUCT, BY_THREADS, Work
from pyrelay.devices.persistent_text import MOST_SHARED, Writer, shared_bytes
from pyrelay.devices.stretches import connected, flow
from pyrelay.devices.word_texts import SPELLED
from pyrelay.lower import instructions as ins
from pyrelay.lower import kernel as kernel_ir
from pyrelay.lower.instructions import (
    AddressOf,
    Data,
    KernelAddress,
    Launch,
    Plan,
    PlanFunction,
    Slot,
)
from pyrelay.records import dataclass

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
    it begins with; data: constant arrays. arrays: slots of buffers that it leaves changed; scalars:
    of words that it leaves. groups: what it allocates. work: extents and costs of its launches, and
    what works on an item. cells: how many scalars its kernels leave.
    """

    first: int
    last: int
    given: tuple[int, ...]
    arrays: tuple[int, ...]
    scalars: tuple[int, ...]
    groups: tuple[Group, ...]
    work: tuple[tuple[Any, Any, str], ...]
    cells: int
    data: tuple[int, ...]

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
    work = [(i.extent, i.cost, _worker(plan, i)) for i in launches]
    if _any_in(changed, [*sizes, *(w for extent, cost, _ in work for w in (extent, cost))]):
        return None
    kinds = dict.fromkeys(sizes)
    # Each buffer is one of this round's, or in a slot that keeps it from one round to the next.
    kept = len(addresses & changed)
    groups = tuple(Group(size, sizes.count(size) + kept) for size in kinds)
    if any(group.chunks > _MOST_CHUNKS for group in groups):
        return None
    cells = sum(isinstance(o, AddressOf) for launch in launches for o in launch.operands)
    scalars = tuple(slot for slot in results if slot not in addresses and slot in later)
    data = dict.fromkeys(o.index for i in part for o in _operands(i) if isinstance(o, Data))
    return Loop(
        first, last, tuple(given), tuple(arrays), scalars, groups, tuple(work), cells, tuple(data)
    )


def _worker(plan: Plan, launch: Launch) -> str:
    kernel = plan.kernels[launch.kernel]
    if kernel.code is None and cuda_library.product_of(kernel.source) is not None:
        return BY_PRODUCT
    return BY_BLOCKS if block_threads(kernel.source) else BY_THREADS


def _operands(instruction: Any) -> Iterator[Any]:
    for name in instruction.__dataclass_fields__:
        value = getattr(instruction, name)
        yield from value if isinstance(value, tuple) else (value,)


def _is_fit(plan: Plan, instruction: ins.Instruction) -> bool:
    if any(isinstance(o, KernelAddress) for o in _operands(instruction)):
        return False
    match instruction:
        case Launch(kernel=number):
            kernel = plan.kernels[number]
            return kernel.code is not None or cuda_library.is_phase(kernel.source)
        case ins.Unary(op=op) | ins.Binary(op=op) | ins.Checked(op=op):
            return op in SPELLED[type(instruction)]
        case (
            ins.Select() | ins.Label() | ins.Jump() | ins.JumpIf() | ins.JumpUnless()
            | ins.LoopNext() | ins.Poll() | ins.Alloc() | ins.Free() | ins.Copy() | ins.Zero()
            | ins.Load() | ins.Store() | ins.Raise()
        ):
            return True
    return False


def _address_slots(plan: Plan, part: Sequence[ins.Instruction]) -> set[int]:
    """The slots of a part that hold addresses of buffers."""
    found = {o.index for i in part for o in _pointed(plan, i) if isinstance(o, Slot)}
    found |= {i.target for i in part if isinstance(i, ins.Alloc)}
    return connected(part, found)


def _pointed(plan: Plan, instruction: ins.Instruction) -> Iterable[Any]:
    """The operands of an instruction that are addresses of buffers."""
    match instruction:
        case Launch(kernel=number, operands=operands):
            code = plan.kernels[number].code
            if code is None:
                source = plan.kernels[number].source
                return [o for kind, o in cuda_library.typed(source, operands) if kind is not None]
            scalar = (kernel_ir.SCALAR, kernel_ir.EXTENT, kernel_ir.SLOT)
            return [w for p, words in code.split(operands) if p.role not in scalar for w in words]
        case ins.Free(address=address):
            return (address,)
        case ins.Copy(target=target, source=source):
            return (target, source)
        case ins.Zero(target=target):
            return (target,)
        case ins.Load(address=address) | ins.Store(address=address):
            return (address,)
    return ()


def _any_in(slots: set[int], values: Iterable[Any]) -> bool:
    return any(isinstance(v, Slot) and v.index in slots for v in values)


def written(
    plan: Plan, function: PlanFunction, loop: Loop, on_device: frozenset[int]
) -> tuple[Text, int] | None:
    """The kernel of a loop, and at how many places all threads of it meet; None if it needs more
    shared memory than there is.

    Its parameters: a word for each slot that it is given, or its address where that may lie on the
    device; constant arrays; the arena; for each group the bytes from one buffer to the next and
    those of each; where arrays are to be copied to, with their bytes; where scalars are to be left.
    """
    writer = Writer(plan, function, loop, on_device)
    text = writer.text()
    if shared_bytes(text) > MOST_SHARED:
        return None
    kinds = tuple(ADDRESS if slot in on_device else "i64" for slot in loop.given)
    kinds += ("i64",) * len(loop.data) + (ADDRESS,) + ("i64",) * (2 * len(loop.groups))
    kinds += (ADDRESS, "i64") * len(loop.arrays) + (ADDRESS,) * len(loop.scalars)
    return Text(text, kinds), writer.meets


def first_line(plan: Plan, part: Sequence[ins.Instruction]) -> int:
    """The first line of the user's program that a loop's kernels compute; 0 if none is known."""
    launches = [i.kernel for i in part if isinstance(i, Launch)]
    return min((s.line for k in launches for s in plan.kernels[k].spans), default=0)


def operands_of(loop: Loop) -> Iterator[Any]:
    """The extents and costs of a loop's launches, and the sizes of its groups: what the host has to
    know before it can choose."""
    for extent, cost, _ in loop.work:
        yield extent
        yield cost
    for group in loop.groups:
        yield group.nbytes


def work_of(loop: Loop, values: Sequence[int]) -> list[Work]:
    """What a round computes; `values` are those of `operands_of`."""
    return [
        Work(values[2 * k], values[2 * k + 1], by) for k, (_, _, by) in enumerate(loop.work)
    ]
