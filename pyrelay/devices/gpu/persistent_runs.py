"""Loops that run as one kernel, in a call.

In: a run, a loop of its plan, its words. Out: the kernel launched; for a loop that hands over to
the host or has a tape, the words that it ended with, read back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay.devices.gpu.persistent import Loop
from pyrelay.devices.gpu.persistent_leaving import Tape
from pyrelay.devices.gpu.persistent_prelude import ALIGNED, CELL, GROUPS
from pyrelay.devices.runtime.layout import WORD
from pyrelay.lower.planning.instructions import Immediate

if TYPE_CHECKING:
    from pyrelay.devices.gpu.call_drawing import Drawing
    from pyrelay.devices.gpu.plan_python import Persistent
    from pyrelay.devices.gpu.programs import Run

ROUNDS = 1024
"""For which a tape has room at first where nobody knows how many there will be."""

MOST_BYTES = 1 << 28
"""Of buffers that go on a tape in one launch, but for those of a single round."""


class Layout:
    """How the memory of a loop is divided: bytes of all, and for each group of its buffers their
    sizes, how far they are apart, how many there are. told: what the kernel is told of it behind
    its address."""

    def __init__(self, loop: Loop, values: Sequence[int], rounds: int) -> None:
        self.sizes = values[len(values) - len(loop.groups) :]
        self.steps = [-(-max(size, 1) // ALIGNED) * ALIGNED for size in self.sizes]
        self.counts = [g.chunks * (rounds if g.escapes else 1) for g in loop.groups]
        self.before = CELL * (2 * loop.cells + 1) + GROUPS
        self.nbytes = self.before + sum(
            s * c + ALIGNED for s, c in zip(self.steps, self.counts, strict=True)
        )
        self.told: list[int] = []
        for group, step, size, count in zip(
            loop.groups, self.steps, self.sizes, self.counts, strict=True
        ):
            self.told += (step, size, count) if group.escapes else (step, size)

    def size_at(self, arena: int, address: int) -> int | None:
        """How many bytes the buffer has that is here; None if there is none."""
        start = arena + self.before
        for step, size, count in zip(self.steps, self.sizes, self.counts, strict=True):
            start = -(-start // ALIGNED) * ALIGNED
            if start <= address < start + step * count:
                return size
            start += count * step
        return None


def _arena(
    run: Run | Drawing, made: Persistent, values: Sequence[int], rounds: int, blocks: int
) -> tuple[Layout, int]:
    """Memory for a loop, how it is divided and its address."""
    layouts, key = run.program.layouts, (made.launch, values, rounds)
    layout = layouts.get(key)
    if layout is None:
        layout = layouts[key] = Layout(made.loop, values, rounds)
    address = run.allocate(layout.nbytes)
    if blocks > 1:  # a block that is alone meets nobody
        run.zero(address, layout.before)
    return layout, address


def _given(run: Run | Drawing, made: Persistent, given: Sequence[Any]) -> list[int]:
    taken = list(given)
    for k in made.placed:
        taken[k] = run.place(taken[k])
    return taken


def _launch(
    run: Run | Drawing, made: Persistent, blocks: int, given: Sequence[Any], taken: Sequence[int],
    sizes: Sequence[int] = (),
) -> None:
    """Run the kernel, with so many blocks if they may meet. sizes: bytes of what it works in, for
    one block that may keep it in shared memory."""
    words = (*(given[k] for k in made.extents), *sizes)
    function, blocks = run.known_kernel(made, blocks, words)
    run.program.forms[made.launch] = blocks
    run.launch(made.launch, 1, [*taken, run.precision], blocks, function)


def persist(
    run: Run | Drawing, made: Persistent, blocks: int, values: Sequence[int],
    given: Sequence[Any],
) -> list[Any]:
    """Run a loop as one kernel; the words that it leaves, in the order of `Loop.results`."""
    loop = made.loop
    layout, arena = _arena(run, made, values, 1, blocks)
    words = dict(zip(loop.given, given, strict=True))
    taken = _given(run, made, given)
    taken += [*(run.data[k] for k in loop.data), arena, *layout.told]
    found: list[Any] = []
    for slot, (groups, slots) in zip(loop.arrays, loop.ends, strict=True):
        nbytes = run.bytes_at(words[slot])
        possible = [nbytes, *(layout.sizes[g] for g in groups)]
        possible += [run.bytes_at(words[k]) for k in slots]
        found.append(run.allocate(max(possible)))
        taken += [found[-1], nbytes]
    others = []
    ends = []
    for slot in made.near:
        ends.append(run.size_at(words[slot]) or 0)  # 0: it stays where it is
        if slot in made.turned:
            others.append(run.allocate(ends[-1]))
            taken.append(others[-1])
        taken.append(ends[-1])
    for _ in loop.scalars:
        cell = run.cell()
        taken.append(cell.address)
        found.append(cell)
    near = (*layout.told, *ends) if blocks == 1 else ()
    _launch(run, made, blocks, given, taken, near)
    for address in (arena, *others, *(words[slot] for slot in loop.arrays)):
        run.free(address)
    return found


def resume(
    run: Run, made: Persistent, blocks: int, values: Sequence[int], given: Sequence[Any],
    tape: list[Any] | None,
) -> tuple[int, int, list[int]] | None:
    """Run a loop as one kernel until it ends or hands over: where the host goes on, -1 for the end;
    1 if the kernel may begin again in the next round; the words of `Loop.state`. None where the
    loop has to go round by round."""
    loop = made.loop
    run.settle()
    words = dict(zip(loop.given, given, strict=True))
    rounds = _rounds(loop, words, values)
    written, room = 0, 0
    held: list[int] | None = []
    if loop.tape is not None:
        assert tape is not None
        room = rounds * loop.tape.words
        if not loop.tape.pushes:
            held = _held(tape, room)
            if held is None:
                return None
            room = len(held)
        written = run.allocate(max(room, 1) * WORD)
        if held:
            run.driver.upload(written, np.array(held, np.int64))
    layout, arena = _arena(run, made, values, rounds, blocks)
    state = run.allocate((2 + len(loop.state)) * WORD)
    taken = _given(run, made, given)
    taken += [*(run.data[k] for k in loop.data), arena, *layout.told, written, room, state]
    _launch(run, made, blocks, given, taken)
    run.check()
    found = np.zeros(2 + len(loop.state), np.int64)
    run.driver.download(found, state)
    place, count, *ended = found.tolist()
    used = {w for slot, w in zip(loop.state, ended, strict=True) if slot in loop.addresses}
    if loop.tape is not None and loop.tape.pushes and count:
        pushed = np.zeros(count, np.int64)
        run.driver.download(pushed, written)
        assert tape is not None
        used |= _push(tape, loop.tape, pushed.tolist())
    elif tape is not None:
        _pop(tape, count)
    _, owner = run.live[arena]
    for address in used:
        size = layout.size_at(arena, address)
        if size is not None:
            part = run.driver.part(owner, address - arena)
            run.live[address] = size, part
    # What the kernel has freed of that which it was given.
    for slot in loop.freed:
        if words[slot] not in used and words[slot] in run.live:
            run.free(words[slot])
    for address in (arena, state, *([written] if written else [])):
        run.free(address)
    again = place != loop.first or (loop.tape is not None and loop.tape.pushes)
    return place, int(again or (bool(count) and bool(tape))), ended


def _rounds(loop: Loop, words: dict[int, Any], values: Sequence[int]) -> int:
    """For how many rounds there is to be room."""
    rounds = ROUNDS
    if loop.counter is not None:
        slot, limit = loop.counter
        end = limit.word if isinstance(limit, Immediate) else words.get(limit.index)
        start = words.get(slot)
        if type(start) is int and type(end) is int:
            rounds = max(end - start, 1)
    sizes = values[len(values) - len(loop.groups) :]
    bytes_of_one = sum(
        size * g.chunks for size, g in zip(sizes, loop.groups, strict=True) if g.escapes
    )
    return max(1, min(rounds, MOST_BYTES // max(bytes_of_one, 1), 1 << 20))


def _held(tape: list[Any], words: int) -> list[int] | None:
    """The words at the end of a tape, at least so many if there are, by whole entries; None where
    one of them is the device's."""
    entries: list[Any] = []
    count = 0
    for entry in reversed(tape):
        if count >= words:
            break
        if type(entry) is not tuple or any(type(w) is not int for w in entry):
            return None
        entries.append(entry)
        count += len(entry)
    return [w for entry in reversed(entries) for w in entry]


def _push(tape: list[Any], made: Tape, words: list[int]) -> set[int]:
    """Entries of a kernel, each behind the number of its place, on the tape; their addresses."""
    addresses: set[int] = set()
    at = 0
    while at < len(words):
        site = made.sites[words[at]]
        entry = tuple(words[at + 1 : at + 1 + len(site)])
        tape.append(entry)
        addresses.update(w for w, is_one in zip(entry, site, strict=True) if is_one)
        at += 1 + len(site)
    return addresses


def _pop(tape: list[Any], count: int) -> None:
    """Take so many words off a tape."""
    while count > 0:
        count -= len(tape.pop())
