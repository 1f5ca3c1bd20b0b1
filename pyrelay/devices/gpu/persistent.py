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

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.device_words import labels_of
from pyrelay.devices.gpu.driver import ADDRESS, Text, block_threads
from pyrelay.devices.gpu.hazards import Buffers, Frozen
from pyrelay.devices.gpu.ownership import Extents, Grid, Values, extents_of
from pyrelay.devices.gpu.ownership import grids as grids_of
from pyrelay.devices.gpu.persistent_choice import BY_BLOCKS, BY_PRODUCT, BY_THREADS, Work
from pyrelay.devices.gpu.persistent_leaving import (
    Tape,
    counter_of,
    left_to_host,
    once_a_round,
    tape_of,
)
from pyrelay.devices.gpu.persistent_phases import (
    MOST_SHARED,
    Emit,
    emitted,
    shared_bytes,
    writes_of,
)
from pyrelay.devices.gpu.persistent_product import as_row
from pyrelay.devices.gpu.persistent_text import Left, Writer, fewest
from pyrelay.devices.gpu.row_groups import NONE, RowGroups, row_groups
from pyrelay.devices.gpu.stretches import (
    connected,
    flow,
    moves_any,
    read_outside,
    tape_slots,
)
from pyrelay.devices.gpu.word_texts import SPELLED
from pyrelay.lower.kernels import kernel as kernel_ir
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.accesses import fields_of
from pyrelay.lower.planning.instructions import (
    AddressOf,
    Data,
    Immediate,
    KernelAddress,
    Launch,
    Plan,
    PlanFunction,
    Slot,
)
from pyrelay.records import dataclass

_MOST_LAUNCHES = 64
_MOST_CHUNKS = 64
_MOST_GRIDS = 4

Way: TypeAlias = "tuple[bool, Grid | None]"
"""How items are dealt out: whether each thread has the same ones in all phases, and what blocks own
elements of."""

_ANY_COST = Immediate(1000)
"""Of items whose cost differs from round to round: a guess."""


@dataclass(frozen=True, slots=True)
class Group:
    """Buffers of one size in the arena: the operand that tells it; how many there are, or, where
    they escape to a tape, how many a round takes; whether there are too few to keep what was freed
    until all have met."""

    nbytes: Any
    chunks: int
    escapes: bool
    tight: bool = False


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop that one kernel can run.

    first, last: its instructions, from its head's label up to that of its end. given: slots that
    it begins with; data: constant arrays. arrays: slots of buffers that it leaves changed; scalars:
    of words that it leaves. groups: what it allocates. work: extents and costs of its launches, and
    what works on an item. cells: how many scalars its kernels leave.

    A loop that hands over to the host (`persistent_leaving`) or has a tape leaves neither arrays
    nor scalars but its state, slots that it changes. left: places that the host does. addresses:
    those of its slots that hold buffers; freed: those it is given that it may free. counter: a slot
    that counts its rounds, and their limit. begins, begin_work: what its kernel does before
    (`persistent_begins`), and what that costs: extents, words, picoseconds for each, what works.
    ends: for each of the arrays, of which groups and of which given slots it may end as a buffer,
    which may have other sizes than that it began with.
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
    state: tuple[int, ...] = ()
    left: tuple[range, ...] = ()
    tape: Tape | None = None
    addresses: frozenset[int] = frozenset()
    freed: tuple[int, ...] = ()
    counter: tuple[int, Any] | None = None
    begins: tuple[ins.Instruction, ...] = ()
    begin_work: tuple[tuple[Any, Any, int, str], ...] = ()
    ends: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()

    @property
    def resumes(self) -> bool:
        """Whether it hands over to the host."""
        return bool(self.left) or self.tape is not None

    @property
    def results(self) -> tuple[int, ...]:
        """All slots that it leaves."""
        return (*self.arrays, *self.scalars)


def loops(plan: Plan, function: PlanFunction) -> list[Loop]:
    """The loops of a function that can be kernels; of nested ones the outermost."""
    code = function.code
    labels, tapes = labels_of(code), tape_slots(code)
    found: list[Loop] = []
    for first, instruction in enumerate(code):
        if not isinstance(instruction, ins.Label) or (found and first < found[-1].last):
            continue
        last = _end(code, labels, first)
        made = None if last is None else _loop(plan, function, first, last, tapes)
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


def _loop(
    plan: Plan, function: PlanFunction, first: int, last: int, tapes: set[int]
) -> Loop | None:
    """The loop's record; None if it does something that a kernel cannot. tapes: slots that hold
    some, which the host alone moves."""
    code = function.code
    part = code[first:last]
    given, written = flow(plan, part)
    changed = set(written)
    left = left_to_host(
        code, first, last, lambda i: is_fit(plan, i, changed) and not moves_any(i, tapes)
    )
    if left is None:
        return None
    places = [k for k in range(first, last) if not any(k in each for each in left)]
    own = [code[k] for k in places]
    launches = [i for i in own if isinstance(i, Launch)]
    if not launches or len(launches) > _MOST_LAUNCHES:
        return None
    addresses = address_slots(plan, part)
    tape = tape_of(code, places, addresses)
    if tape is False:
        return None
    groups = _groups(code, places, addresses & changed)
    if groups is None:
        return None
    work = [
        (i.extent, _ANY_COST if _any_in(changed, (i.cost,)) else i.cost, worker(plan, i))
        for i in launches
    ]
    cells = sum(isinstance(o, AddressOf) for launch in launches for o in launch.operands)
    data = dict.fromkeys(o.index for i in own for o in fields_of(i) if isinstance(o, Data))
    if not left and tape is True:
        later = read_outside(plan, function, part)
        results = [slot for slot in written if slot in later or slot in given]
        arrays = [slot for slot in results if slot in addresses]
        if any(slot not in given for slot in arrays):
            return None
        scalars = tuple(slot for slot in results if slot not in addresses and slot in later)
        ends = _ends(part, arrays, [slot for slot in given if slot in addresses], groups)
        if any(slot not in arrays for _, slots in ends for slot in slots):
            return None
        return Loop(
            first, last, tuple(given), tuple(arrays), scalars, groups, tuple(work), cells,
            tuple(data), ends=ends,
        )
    own_given, own_written = flow(plan, own)
    buffers = Buffers(code)
    freed = {buffers.of(i.address) for i in own if isinstance(i, ins.Free)}
    found = None if tape is True else tape
    begins = [slot for slot in dict.fromkeys((*given, *own_given)) if slot not in tapes]
    return Loop(
        first, last, tuple(begins), (), (), groups, tuple(work), cells, tuple(data),
        tuple(sorted(own_written)), tuple(left), found,
        frozenset(addresses),
        # What the host's places alone have made in a round is none of what a kernel frees: before
        # them its slots hold addresses of rounds past, where by now something else may lie.
        tuple(s for s in given if s in addresses and buffers.of(Slot(s)) in freed),
        counter_of(code, range(first, last), changed),
    )


def _ends(
    part: Sequence[ins.Instruction], arrays: Sequence[int], given: Sequence[int],
    groups: Sequence[Group],
) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """What each of some arrays may end as (`Loop.ends`)."""
    buffers = Buffers(part)
    made = {(buffers.of(Slot(i.target)), i.nbytes) for i in part if isinstance(i, ins.Alloc)}
    found = []
    for slot in arrays:
        own = buffers.of(Slot(slot))
        found.append((
            tuple(g for g, group in enumerate(groups) if (own, group.nbytes) in made),
            tuple(k for k in given if k != slot and buffers.of(Slot(k)) == own),
        ))
    return tuple(found)


def _groups(
    code: Sequence[ins.Instruction], places: Sequence[int], kept: set[int]
) -> tuple[Group, ...] | None:
    """What the arena holds; None if that is too much."""
    buffers = Buffers(code)
    escaped = {
        buffers.of(v) for k in places if isinstance(i := code[k], ins.TapePush) for v in i.values
    }
    allocs = [(k, i) for k in places if isinstance(i := code[k], ins.Alloc)]
    sites = [(i.nbytes, buffers.of(Slot(i.target)) in escaped) for _, i in allocs]
    kept_long = [k for (k, _), (_, escapes) in zip(allocs, sites, strict=True) if escapes]
    if not once_a_round(code, places, kept_long):
        return None
    groups = tuple(
        _group(size, escapes, sites.count((size, escapes)), len(kept))
        for size, escapes in dict.fromkeys(sites)
    )
    return groups if all(g.chunks <= _MOST_CHUNKS for g in groups) else None


def _group(size: Any, escapes: bool, sites: int, kept: int) -> Group:
    """What is taken at so many places of a round, and kept in so many slots."""
    if escapes:
        return Group(size, sites, escapes)
    # Each buffer is one of this round's, or in a slot that keeps it from one round to the next;
    # between two meetings each place takes once more, while what was freed is still in use.
    tight = 2 * sites + kept > _MOST_CHUNKS
    return Group(size, sites * (1 if tight else 2) + kept, escapes, tight)


def worker(plan: Plan, launch: Launch) -> str:
    """What works on an item of a launch."""
    kernel = plan.kernels[launch.kernel]
    if kernel.code is None and cuda_library.product_of(kernel.source) is not None:
        return BY_PRODUCT
    return BY_BLOCKS if block_threads(kernel.source) else BY_THREADS


def is_fit(plan: Plan, instruction: ins.Instruction, changed: set[int]) -> bool:
    """Whether a kernel can do an instruction in a loop that changes these slots."""
    if any(isinstance(o, KernelAddress) for o in fields_of(instruction)):
        return False
    match instruction:
        case ins.Alloc(nbytes=nbytes):
            return not _any_in(changed, (nbytes,))
        case ins.TapePush(tape=tape) | ins.TapePop(tape=tape):
            return isinstance(tape, Slot) and tape.index not in changed
        case Launch(kernel=number, extent=extent):
            kernel = plan.kernels[number]
            if _any_in(changed, (extent,)):
                return False
            return kernel.code is not None or cuda_library.is_phase(kernel.source)
        case ins.Unary(op=op) | ins.Binary(op=op) | ins.Checked(op=op):
            return op in SPELLED[type(instruction)]
        case (
            ins.Select() | ins.Label() | ins.Jump() | ins.JumpIf() | ins.JumpUnless()
            | ins.LoopNext() | ins.Poll() | ins.Free() | ins.Copy() | ins.Zero() | ins.Load()
            | ins.Store() | ins.Raise()
        ):
            return True
    return False


def address_slots(plan: Plan, part: Sequence[ins.Instruction]) -> set[int]:
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


@dataclass(frozen=True, slots=True)
class Written:
    """The kernel of a loop: its text; what bounds its integers of 32 bits, as Python of the loop's
    slots, and the text with 64 bits, if any has 32; at how many places all threads of it meet; the
    slots whose buffers take turns with others; those of arrays that are changed in place; in which
    way items are dealt out."""

    text: Text
    bounds: tuple[str, ...]
    wide: Text
    meets: int
    turned: tuple[int, ...]
    near: tuple[int, ...]
    way: Way


def written(
    plan: Plan, function: PlanFunction, loop: Loop, on_device: frozenset[int],
    way: Way | None = None,
) -> Written | None:
    """The kernel of a loop; None if it needs more shared memory than there is. way: in which way
    items are dealt out, where that is known.

    Its parameters: a word for each slot that it is given, or its address where that may lie on the
    device; constant arrays; the arena; for each group the bytes from one buffer to the next and
    those of each, and how many there are if they escape; the tape, its words, and where the state
    goes, if it hands over to the host; where arrays are to be copied to, with their bytes; of those
    that are changed in place the bytes, behind what they take turns with if they do; where scalars
    are to be left; how products round their operands, a number of `cuda_convolution.MODES`.
    """
    grids = _grids(plan, function, loop) if way is None else []
    ways: list[Way] = [(False, None), (True, None), *((True, grid) for grid in grids)]
    ways = ways if way is None else [way]
    # Neighbours are worth less than a meeting.
    emit = functools.cache(emitted)
    found = [_written(plan, function, loop, on_device, *way, True, emit) for way in ways]
    writer = min(found, key=lambda each: each.meets)
    alike, grid = writer.alike, writer.grid
    groups = _row_groups(writer)
    if groups.buffers:
        apart = _written(plan, function, loop, on_device, alike, grid, True, emit, groups)
        writer = apart if apart.by_rows and apart.meets <= writer.meets else writer
    text = writer.text
    wide = _written(
        plan, function, loop, on_device, alike, grid, False, emit, writer.groups
    ).text
    if shared_bytes(text) > MOST_SHARED:
        return None
    kinds = tuple(ADDRESS if slot in on_device else "i64" for slot in loop.given)
    kinds += ("i64",) * len(loop.data) + (ADDRESS,)
    kinds += ("i64",) * sum(3 if group.escapes else 2 for group in loop.groups)
    kinds += (ADDRESS, "i64", ADDRESS) * loop.resumes
    kinds += (ADDRESS, "i64") * len(loop.arrays)
    for slot in writer.near:
        kinds += (*(ADDRESS,) * (slot in writer.turned), "i64")
    kinds += (*(ADDRESS,) * len(loop.scalars), "i64")
    bounds = tuple(writer.bounds) if text != wide else ()
    return Written(
        Text(text, kinds), bounds, Text(wide, kinds), writer.meets, tuple(writer.turned),
        tuple(writer.near), (writer.alike, writer.grid),
    )


def _written(
    plan: Plan, function: PlanFunction, loop: Loop, on_device: frozenset[int], alike: bool,
    grid: Grid | None, small: bool, emit: Emit, groups: RowGroups = NONE,
) -> Writer:
    """A kernel of a loop that deals items out in one way, with the fewest meetings."""
    def write(before: Left | None) -> Writer:
        return Writer(plan, function, loop, on_device, alike, grid, before, small, emit, groups)

    return fewest(write, write(None))


def _row_groups(writer: Writer) -> RowGroups:
    """What groups of blocks divide by rows of what a kernel's phases access."""
    if writer.grid is None or writer.grid.single:
        return NONE
    of = writer.pending.buffers.of
    allocs = [(of(Slot(i.target)), i.nbytes) for i in writer.part if isinstance(i, ins.Alloc)]
    taken = [(name, (nbytes, name in writer.escaped)) for name, nbytes in allocs]
    stored = {of(each) for each in writes_of(writer.plan, writer.part)}
    return row_groups(writer.pending.touched, writer.grid.rows, stored, taken)


def _grids(plan: Plan, function: PlanFunction, loop: Loop) -> list[Grid]:
    """What blocks may own elements of."""
    part = function.code[loop.first : loop.last]
    values = Values(function.code, *flow(plan, part))
    products: list[tuple[Frozen, Frozen]] = []
    extents: list[Extents] = []
    for launch in part:
        if not isinstance(launch, Launch):
            continue
        kernel = plan.kernels[launch.kernel]
        if kernel.code is not None:
            found = extents_of(kernel.code, launch, values.now)
            extents += [] if found is None else [found]
        elif cuda_library.product_of(kernel.source) is not None and len(launch.operands) == 15:
            shape = as_row(launch).operands[3:5]
            m, n = (frozenset(values.now(o).items()) for o in shape)
            products.append((m, n))
    return grids_of(products, extents)[:_MOST_GRIDS]


def first_line(plan: Plan, part: Sequence[ins.Instruction]) -> int:
    """The first line of the user's program that a loop's kernels compute; 0 if none is known."""
    launches = [i.kernel for i in part if isinstance(i, Launch)]
    return min((s.line for k in launches for s in plan.kernels[k].spans), default=0)


def operands_of(loop: Loop) -> Iterator[Any]:
    """The extents and costs of a loop's launches, and the sizes of its groups: what the host has to
    know before it can choose."""
    for extent, cost, *_ in (*loop.work, *loop.begin_work):
        yield extent
        yield cost
    for group in loop.groups:
        yield group.nbytes


def work_of(loop: Loop, values: Sequence[int]) -> list[Work]:
    """What a round computes, or what comes before, if the kernel does that; `values` are those of
    `operands_of`."""
    if loop.begins:
        first = len(loop.work)
        return [
            Work(values[2 * k], each * values[2 * k + 1], by)
            for k, (_, _, each, by) in enumerate(loop.begin_work, first)
        ]
    return [
        Work(values[2 * k], values[2 * k + 1], by) for k, (_, _, by) in enumerate(loop.work)
    ]
