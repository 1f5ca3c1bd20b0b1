"""The text of a kernel that runs a loop of a plan.

In: the loop's instructions. Out: CUDA C++ for blocks of `THREADS` threads, to stand behind
`cuda_prelude`. All threads go through the same instructions with the same words; what is launched
they share, and they meet where a phase needs what others have done (`hazards`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyrelay.devices.gpu import (
    cuda_library,
    persistent_held_tiles,
    persistent_near,
    persistent_product,
)
from pyrelay.devices.gpu.arena_places import Placed, placed
from pyrelay.devices.gpu.hazards import Buffers, Pending, Used
from pyrelay.devices.gpu.ownership import Grid, Values
from pyrelay.devices.gpu.persistent_phases import Emit, PhaseWriter, buffer_text, writes_of
from pyrelay.devices.gpu.persistent_prelude import (
    ALIGNED,
    ASK,
    CELL,
    OWNING,
    PLAIN,
    SUPPORT,
    THREADS,
    index_type,
    meeting,
)
from pyrelay.devices.gpu.row_groups import NONE, RowGroups
from pyrelay.devices.gpu.stretches import flow
from pyrelay.devices.gpu.word_texts import BINARY, CHECKED, UNARY
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Data, Immediate, Launch, Plan, PlanFunction, Slot
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.devices.gpu.persistent import Loop

_MOST_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Left:
    """What a round leaves to the next one: what was read and written since all have met, and lines
    that give back what was freed since then, by whether those wait who share rows, or all."""

    used: Used
    idle: tuple[tuple[bool, str], ...]

    def joined(self, other: Left) -> Left:
        """What two ways of control leave."""
        used: Used = dict(self.used[0]), dict(self.used[1])
        for found, more in zip(used, other.used, strict=True):
            for name, places in more.items():
                found[name] = found.get(name, frozenset()) | places
        return Left(used, tuple(dict.fromkeys((*self.idle, *other.idle))))


_NOTHING = Left(({}, {}), ())


class Writer(PhaseWriter):
    """Writes the kernel of one loop.

    before: what each round begins with; if it is None, all meet before. left: what rounds leave.
    near: slots of arrays that one block may keep in shared memory while the loop lasts.
    groups: buffers that groups of blocks divide by rows. text: the kernel's; meets: at how many
    places blocks wait for each other; by_rows: at how many of these only those that share rows.
    """

    def __init__(
        self, plan: Plan, function: PlanFunction, loop: Loop, on_device: frozenset[int],
        alike: bool, grid: Grid | None, before: Left | None, small: bool, emit: Emit,
        groups: RowGroups = NONE,
    ) -> None:
        self.plan, self.loop, self.on_device = plan, loop, on_device
        self.alike, self.grid, self.small, self.emit = alike, grid, small, emit
        self.part = function.code[loop.first : loop.last]
        self.groups = groups
        self.pending = Pending(Buffers(function.code))
        super().__init__()
        self.meets = self.by_rows = self.pushes = 0
        of = self.pending.buffers.of
        pushed = [i for i in self.part if isinstance(i, ins.TapePush)]
        self.escaped = {of(v) for step in pushed for v in step.values}
        written = flow(plan, self.part)[1]
        given = flow(plan, (*loop.begins, *self.part))[0]
        self.changed = frozenset(written)
        self.values = Values(function.code, given, written)
        # What gives back what was freed since all have met, or those who share rows if that is so.
        self.idle: list[tuple[bool, str]] = []
        # Whether all, and at least those, meet on every way from the last label, or the round's
        # begin.
        self.met = self.met_by_rows = False
        self.before, self.left = before, _NOTHING
        self.place = loop.first
        self.alone = self._alone(given)
        self.tight = any(group.tight for group in loop.groups)
        self.text = self._text()

    def _alone(self, given: Sequence[int]) -> frozenset[int]:
        """Slots whose buffers may take turns with others: if the loop fails, they were not given
        back what they held."""
        fails = any(isinstance(i, (ins.Checked, ins.Raise)) for i in self.part)
        for launch in self.part:
            if isinstance(launch, Launch):
                kernel = self.plan.kernels[launch.kernel]
                fails = fails or (kernel.code is None and cuda_library.can_fail(kernel.source))
                fails = fails or (kernel.code is not None and bool(kernel.code.sites))
        if fails or self.loop.resumes:
            return frozenset()
        of = self.pending.buffers.of
        slots = {*given, *self.changed}
        return frozenset(
            k for k in given
            if k not in self.changed and [s for s in slots if of(Slot(s)) == of(Slot(k))] == [k]
        )

    def _begins(self) -> list[str]:
        """Lines of what comes before the loop."""
        self.beginning = True
        for step in self.loop.begins:
            self._instruction(step)
        self._flush()
        self.beginning, self.meets = False, 0  # once before the loop
        self.moving.clear()
        self.pending.touched.clear()
        self.pending.by_rows = self.groups.buffers
        self.pending.checks.update(dict.fromkeys(self.groups.checks))
        lines, self.lines = self.lines, []
        return lines

    def _in_place(self) -> list[int]:
        """Slots of arrays that the loop changes, as a whole or at the same places in all rounds:
        their size is then none of how many rounds there are."""
        of = self.pending.buffers.of
        stored = {of(operand) for operand in writes_of(self.plan, self.part)} - self.moving
        return [k for k in sorted(self.alone) if of(Slot(k)) in stored or k in self.turned]

    def _text(self) -> str:
        """The whole text."""
        loop = self.loop
        begins = self._begins()
        for place, instruction in enumerate(self.part, loop.first):
            self.place = place
            block = next((b for b in loop.left if place in b), None)
            if block is None:
                self._instruction(instruction)
                for slot in flow(self.plan, (instruction,))[1]:
                    self.values.wrote(slot)
                    self.pending.rebound(slot)
            elif place == block.start:
                self._leave(place, instruction)
        self.near = self._in_place()
        rounds = self.meets
        if not self.by_rows:
            self._flush()
        self.meets = rounds  # once behind the loop
        # Where a loop resumes, words come from launches before.
        found = Placed(self.lines, [], {}) if loop.resumes else placed(self.lines)
        self.lines = found.lines
        early = ["#if ROOM_NEAR", *self.first_loads, "#endif"] if self.first_loads else []
        self.lines[:0] = [*begins, *early]
        searches = any("pyrelay_take(" in line for line in self.lines)
        if not searches:
            self.declared = [line for line in self.declared if not line.startswith("i64 idle")]
        slots = sorted(self._slots() - {k for k in loop.given if k not in self.on_device})
        body = [f"i64 s{k} = {f'*s{k}_at' if k in loop.given else 0};" for k in slots]
        held = CELL * (2 * loop.cells + 1)
        chunks = [found.counts.get(g, group.chunks) for g, group in enumerate(loop.groups)]
        body += persistent_near.begun(held, chunks, self.near, self.turned)
        meets = "pyrelay_meeting grid = {(u32 *)arena, 0u, (u32)gridDim.x};"
        body += ["int rounds = 0;", meets, *self.declared]
        for k in self.turned:
            body += [f"const i64 home{k} = s{k};", f"i64 next{k} = 0;"]
            body.append(f"PYRELAY_TAKEN(other{k}, ends{k});")
        body += [
            f"const i64 first{k} = s{k};"
            for k in dict.fromkeys(k for _, slots in loop.ends for k in slots)
        ]
        start = "begins"
        for g, group in enumerate(loop.groups):
            body.append(f"const i64 base{g} = {start};")
            if group.escapes:
                body.append(f"i64 taken{g} = 0;")
            elif searches:
                body.append(f"const f32 each{g} = 1.0f / (f32)(step{g} / {ALIGNED});")
                body.append(f"u64 used{g} = 0;")
            start = f"base{g} + {f'most{g}' if group.escapes else chunks[g]} * step{g}"
        if loop.resumes:
            body += ["i64 where = -1, taped = 0;"]
        body += [
            # A failure of this launch is none: blocks that begin late are waited for.
            "if (pyrelay_over(record, launch)) return;", *self._sharing(), *found.declared,
        ]
        if self.by_rows:
            body.append(f"pyrelay_meeting group = pyrelay_group(own, (u32 *)(arena + {held}));")
        body += self.lines
        if any("goto finished;" in line for line in self.lines):
            body.append("finished: ;")
        if self.by_rows:
            body.append(f"{meeting()};")
        body += self._results(chunks)
        body += persistent_near.ended(self.near)
        if loop.resumes:
            body.append("if (blockIdx.x == 0 && threadIdx.x == 0) {")
            body += ["    state[0] = where;", "    state[1] = taped;"]
            body += [f"    state[{2 + n}] = s{k};" for n, k in enumerate(loop.state)]
            body.append("}")
        if loop.scalars:
            body.append("if (blockIdx.x == 0 && threadIdx.x == 0) {")
            body += [f"    *r{k} = s{k};" for k in loop.scalars]
            body.append("}")
        parts = [
            f"#define BLOCK_THREADS {THREADS}", "#define MEETS 1", persistent_near.SWITCH,
            persistent_held_tiles.SWITCH,
            f"#define WEIGHTS {self.weights}",
            index_type(self.small and not self.boundless), SUPPORT,
        ]
        split = any("pyrelay_split" in source for source in self.phases)
        if split or self.grid is not None:
            parts.append(OWNING)
        if split:
            parts.append(persistent_product.SUPPORT)
        for source, number in self.phases.items():
            parts.append(f"namespace phase{number} {{\n{source}{self.aheads.get(number, '')}}}")
        parts.append(f'extern "C" __global__ void kernel({self._parameters()}) {{')
        parts += [f"    {line}" for line in body]
        return "\n".join([*parts, "}", ""])

    def _parameters(self) -> str:
        """What the kernel takes."""
        loop = self.loop
        declared = [
            f"const i64 *s{k}_at" if k in self.on_device else f"i64 s{k}" for k in loop.given
        ]
        declared += [*(f"i64 d{k}" for k in loop.data), "i64 far"]
        for g, group in enumerate(loop.groups):
            declared += [f"i64 step{g}, i64 bytes{g}", *[f"i64 most{g}"] * group.escapes]
        if loop.resumes:
            declared += ["i64 *tape", "i64 room", "i64 *state"]
        for k in loop.arrays:
            declared += [f"i64 o{k}", f"i64 ends{k}"]
        for k in self.near:
            declared += [*[f"i64 other{k}"] * (k in self.turned), f"i64 ends{k}"]
        declared += [*(f"i64 *r{k}" for k in loop.scalars), "i64 precision"]
        own = ["pyrelay_record *record", "i64 launch", "i64 first", "i64 last"]
        return ", ".join([*own, *declared])

    def _results(self, chunks: Sequence[Any]) -> list[str]:
        """Arrays are copied to where the host looks for them: as much as the buffer has in which
        they end, which may not be as large as that they began in."""
        lines = []
        for k, (groups, slots) in zip(self.loop.arrays, self.loop.ends, strict=True):
            lines.append(f"i64 left{k} = ends{k};")
            for g in groups:
                room = f"(u64)({chunks[g]} * step{g})"
                lines.append(f"if ((u64)(s{k} - base{g}) < {room}) left{k} = bytes{g};")
            lines += [f"if (s{k} == first{j}) left{k} = ends{j};" for j in slots]
            lines.append(f"pyrelay_copy(o{k}, s{k}, left{k});")
        return lines

    def _slots(self) -> set[int]:
        given, written = flow(self.plan, (*self.loop.begins, *self.part))
        tape = set() if self.loop.tape is None else {self.loop.tape.slot}
        return {*given, *written} - tape

    def _word(self, operand: Any) -> str:
        if isinstance(operand, Slot):
            return f"s{operand.index}"
        if isinstance(operand, Data):
            return f"d{operand.index}"
        assert isinstance(operand, Immediate)
        word = operand.word
        return "(-9223372036854775807ll - 1)" if word == -(2**63) else f"({word}ll)"

    # -- meetings ------------------------------------------------------------------------------

    def _meet(self, look: int = PLAIN) -> None:
        """All threads wait for each other, and leave if there is a reason."""
        self.meets += 1
        self.met = self.met_by_rows = True
        self.turning.clear()
        self.pending.clear()
        self._line(f"{meeting()};" if look == PLAIN else f"if ({meeting(look)}) return;")
        self.lines += [line for _, line in self.idle]
        self.idle.clear()

    def _meet_by_rows(self) -> None:
        """The threads of blocks that share rows wait for each other."""
        self.meets += 1
        self.by_rows += 1
        self.met_by_rows = True
        self.turning = {k for k in self.turning if not self._is_by_rows(k)}
        self.pending.met_by_rows()
        self._line(f"{meeting(who='group')};")
        self.lines += [line for by_rows, line in self.idle if by_rows]
        self.idle = [each for each in self.idle if not each[0]]

    def _is_by_rows(self, slot: int) -> bool:
        return self.pending.buffers.of(Slot(slot)) in self.pending.by_rows

    def _flush(self) -> None:
        """Where ways of control part or join, nothing is pending."""
        if not self.pending.only_by_rows or not all(by_rows for by_rows, _ in self.idle):
            self._meet()
        elif self.pending or self.idle:
            self._meet_by_rows()

    def _part(self, label: str) -> None:
        """Where a way of control goes to a label, nothing is pending; but at the end of a round in
        which all have met, what the next one begins with."""
        head = self.part[0]
        assert isinstance(head, ins.Label)
        met = self.met or (self.met_by_rows and all(by_rows for by_rows, _ in self.idle))
        if self.before is None or label != head.name or not met or self.turning:
            self._flush()
            return
        self.left = self.left.joined(Left(self.pending.left(), tuple(self.idle)))

    def _begin(self) -> None:
        """A round begins."""
        if self.before is not None:
            self.pending.resume(self.before.used)
            self.idle = list(self.before.idle)
        self._has_room()

    # -- handing over --------------------------------------------------------------------------

    def _leave(self, place: int, first: ins.Instruction) -> None:
        """The host does the block that begins here."""
        if isinstance(first, ins.Label):
            self._instruction(first)
        self._flush()
        self._line(f"where = {place};")
        self._line("goto finished;")

    def _has_room(self) -> None:
        """A round begins only if there is room for what it keeps."""
        full = [
            f"taken{g} + {group.chunks} > most{g}"
            for g, group in enumerate(self.loop.groups) if group.escapes
        ]
        if self.loop.tape is not None:
            full.append(f"taped + {self.loop.tape.words} > room")
        if full:
            self._line(f"if ({' || '.join(full)}) {{")
            self._line(f"    where = {self.loop.first};")
            self._line("    goto finished;")
            self._line("}")

    def _push(self, values: Sequence[Any]) -> None:
        words = [f"{self.pushes}ll", *map(self._word, values)]
        self.pushes += 1
        self._line("if (blockIdx.x == 0 && threadIdx.x == 0) {")
        self.lines += [f"    tape[taped + {n}] = {word};" for n, word in enumerate(words)]
        self._line("}")
        self._line(f"taped += {len(words)};")

    def _pop(self, targets: Sequence[int]) -> None:
        self._line(f"taped += {len(targets)};")
        self.lines += [f"s{slot} = tape[room - taped + {n}];" for n, slot in enumerate(targets)]

    # -- instructions --------------------------------------------------------------------------

    def _instruction(self, step: ins.Instruction) -> None:
        word = self._word
        match step:
            case Launch():
                self._launch(step)
            case ins.Unary(op, target, a):
                self.pending.move(target, a if op == "move" else None)
                self._line(f"s{target} = {UNARY[op].format(a=word(a))};")
            case ins.Binary(op, target, a, b):
                self._line(f"s{target} = {BINARY[op].format(a=word(a), b=word(b))};")
            case ins.Checked(op, target, a, b, site):
                self._checked(op, target, word(a), word(b), site)
            case ins.Select(target, condition, a, b):
                self.pending.select(target, (a, b))
                self._line(f"s{target} = {word(condition)} ? {word(a)} : {word(b)};")
            case ins.Label(name):
                self._flush()
                self.pending.join()
                self.met = self.met_by_rows = False
                self._line(f"{name}: ;")
                if step is self.part[0]:
                    self._begin()
            case ins.Jump(label):
                self._part(label)
                self._line(f"goto {self._goal(label)};")
            case ins.JumpIf(condition, label):
                self._part(label)
                self._line(f"if ({word(condition)}) goto {self._goal(label)};")
            case ins.JumpUnless(condition, label):
                self._part(label)
                self._line(f"if (!{word(condition)}) goto {self._goal(label)};")
            case ins.LoopNext(counter, by, limit, label):
                self._part(label)
                self._look_ahead()
                self._line(f"s{counter} += {by};")
                self._poll()
                sign = "<" if by > 0 else ">"
                self._line(f"if (s{counter} {sign} {word(limit)}) goto {self._goal(label)};")
            case ins.Poll():
                self._poll()
            case ins.TapePush(_, values):
                self._push(values)
            case ins.TapePop(_, targets):
                self._pop(targets)
            case ins.Raise(site, values):
                self._raise("true", site, list(map(word, values)))
            case _:
                self._memory(step)

    def _look_ahead(self) -> None:
        """Where blocks meet last in a round, they ask for what the next one loads."""
        plain = {f"{meeting(who=who)};": who for who in ("grid", "group")}
        places, counter = [n for n, line in enumerate(self.lines) if line in plain], self._counter()
        if counter is None or not self.asked or not places:
            return
        last = places[-1]
        after, goes_on = self._next_round(counter)
        asked = " ".join(re.sub(rf"\bs{counter}\b", after, call) for call in self.asked)
        between = f"[&] {{ if ({goes_on}) {{ {asked} }} }}"
        self.lines[last] = f"{meeting(between=between, who=plain[self.lines[last]])};"

    def _goal(self, label: str) -> str:
        own = any(isinstance(i, ins.Label) and i.name == label for i in self.part)
        return label if own else "finished"

    def _memory(self, step: ins.Instruction) -> None:
        word = self._word
        match step:
            case ins.Alloc(target, nbytes):
                self._alloc(target, nbytes)
            case ins.Free(address):
                self._free(address)
            case ins.Copy(target, source, nbytes):
                self._move(target, source, nbytes)
            case ins.Zero(target, nbytes):
                self._move(target, None, nbytes)
            case ins.Load(kind, target, address, index):
                self._uses([address], [])
                self.moving.add(self.pending.buffers.of(address))
                array = buffer_text(f"const {kind}", word(address))
                self._line(f"s{target} = (i64)({array}[{word(index)}]);")
            case ins.Store(kind, address, index, value):
                self._uses([], [address])
                self.moving.add(self.pending.buffers.of(address))
                place = f"({buffer_text(kind, word(address))}[{word(index)}])"
                first = "blockIdx.x == 0 && threadIdx.x == 0"
                self._line(f"if ({first}) {place} = ({kind}){word(value)};")
            case _:
                raise AssertionError(step)

    def _free(self, address: Any) -> None:
        """A buffer of the arena may be taken again, when all who use it have met."""
        of = self.pending.buffers.of
        taken = {i.nbytes for i in self.part
                 if isinstance(i, ins.Alloc) and of(Slot(i.target)) == of(address)}
        own = [
            g for g, group in enumerate(self.loop.groups)
            if not group.escapes and group.nbytes in taken
        ]
        name = self._word(address)
        if own and self.pending.uses(address):
            if self.tight:
                self._meet()
            else:
                name = f"idle{self.place}"
                self.declared.append(f"i64 {name} = 0;")
                self._line(f"{name} = {self._word(address)};")
        chunks = [group.chunks for group in self.loop.groups]
        gives = [f"pyrelay_give(used{g}, base{g}, each{g}, {chunks[g]}, {name});" for g in own]
        self.pending.free(address)
        if name.startswith("idle"):
            by_rows = self._is_by_rows(address.index)
            self.idle += [(by_rows, line) for line in (*gives, f"{name} = 0;")]
        else:
            self.lines += gives

    def _alloc(self, target: int, nbytes: Any) -> None:
        escapes = self.pending.buffers.of(Slot(target)) in self.escaped
        g = next(
            k for k, group in enumerate(self.loop.groups)
            if (group.nbytes, group.escapes) == (nbytes, escapes)
        )
        self.pending.own(target)
        if escapes:  # it is nobody's again while this kernel runs
            self._line(f"s{target} = base{g} + step{g} * taken{g}++;")
            self._line(f"PYRELAY_TAKEN(s{target}, bytes{g});")
            return
        self._line(f"s{target} = pyrelay_take(used{g}, base{g}, step{g}, bytes{g});")

    def _poll(self) -> None:
        """All threads leave together when the host wants the launch to end."""
        self._line("if ((++rounds & 0xff) == 0) {")
        self._line(f"    if ({meeting(ASK)}) return;")
        self._line("}")

    def _checked(self, op: str, target: int, a: str, b: str, site: int) -> None:
        compute, fails = CHECKED[op]
        result = f"checked{len(self.lines)}"
        self._line(f"{{ i64 {compute.format(r=result, a=a, b=b)};")
        self._raise(fails.format(r=result, a=a, b=b), site, [a, b])
        self._line(f"s{target} = {result}; }}")

    def _raise(self, condition: str, site: int, values: Sequence[str]) -> None:
        puts = "".join(f" record->values[{k}] = {v};" for k, v in enumerate(values))
        claim = f"pyrelay_claim(record, launch, 0, {site})"
        self._line(f"if ({condition}) {{")
        first = "blockIdx.x == 0 && threadIdx.x == 0"
        self._line(f"    if ({first} && {claim}) {{{puts} pyrelay_release(record); }}")
        self._line("    return;")
        self._line("}")


def fewest(write: Callable[[Left | None], Writer], alone: Writer) -> Writer:
    """Of the writers of a loop one with the fewest meetings: rounds may go on with what is pending.

    What a round leaves has to be what the rounds begin with: it is looked for by beginning with
    nothing, and then with what was left, until that is no more.
    """
    before = _NOTHING
    for _ in range(_MOST_ATTEMPTS):
        found = write(before)
        if found.meets >= alone.meets:
            return alone
        joined = before.joined(found.left)
        if joined == before:
            return found
        before = joined
    return alone
