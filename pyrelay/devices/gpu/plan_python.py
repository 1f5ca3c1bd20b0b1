"""A plan as Python: what the host does between the kernels of a GPU.

In: a plan, and which of its slots may hold scalars of the device. Out: `PlanCode`: the text of one
Python function per function of the plan, and the kernels and host kernels that it refers to.

A word is an int, a scalar on the device an object that knows its address (`gpu_memory.Cell`), a
tape a list. Functions that may recurse are generators which yield the call, so that recursion
takes no stack of Python's. Jumps go through a loop that finds a block by bisection.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence, Set
from dataclasses import replace

from pyrelay.devices.gpu import cuda_library, guesses, persistent_ends
from pyrelay.devices.gpu.device_words import device_slots
from pyrelay.devices.gpu.driver import Text
from pyrelay.devices.gpu.persistent import Loop, Way, first_line, loops, operands_of, written
from pyrelay.devices.gpu.persistent_begins import beginnings, with_beginnings
from pyrelay.devices.gpu.persistent_known import extents_of
from pyrelay.devices.gpu.plan_instructions import InstructionWriter, PlanLaunches
from pyrelay.devices.gpu.plan_launches import LARGEST, Launched
from pyrelay.devices.gpu.plan_rounds import Rounds, RoundWriter
from pyrelay.devices.gpu.straight import Straight, straight_loops
from pyrelay.devices.gpu.stretches import flow, read_outside, runs_on_host, stretches, tape_slots
from pyrelay.devices.gpu.unread import without_unread
from pyrelay.devices.gpu.worked_out import FEWEST, Ahead
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Plan, Slot
from pyrelay.lower.text.show import kernel_names
from pyrelay.records import dataclass

_LEAVES = (ins.Jump, ins.JumpIf, ins.JumpUnless, ins.LoopNext, ins.Return, ins.Raise)
_ALL_LEAVES = (ins.Jump, ins.Return, ins.Raise)


@dataclass(frozen=True, slots=True)
class Persistent:
    """A loop that may run as one kernel, the number of that launch, at how many places of a round
    its blocks meet, the first line of the program that it computes (0 for a loop of a library
    function, as sorting is), slots whose buffers take turns with others, those of arrays that it
    changes in place, which of the words that it is given are to lie on the device, and which are
    extents (`persistent_known`). large: whether it is the version with indices of 64 bits of the
    one before."""

    loop: Loop
    launch: int
    meets: int
    line: int
    turned: tuple[int, ...] = ()
    near: tuple[int, ...] = ()
    placed: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()
    large: bool = False

    @property
    def told(self) -> list[str]:
        """The kernel's names of its extents, and of the bytes that it needs."""
        found = [f"s{self.loop.given[k]}" for k in self.extents]
        for g in range(len(self.loop.groups)):
            found += [f"step{g}", f"bytes{g}"]
        return [*found, *(f"ends{k}" for k in self.near)]

    @property
    def name(self) -> str:
        """What the user knows it by."""
        return f"the loop at line {self.line}" if self.line else "a loop of a library function"


@dataclass(frozen=True, slots=True)
class PlanCode:
    """The Python functions of a plan, and what they launch.

    first: the numbers of texts that are launched elsewhere than in rounds of loops that may be
    kernels. spare: those that the device's library stands for, too. fails: whether any kernel can
    fail. late: texts that few calls need (`Launched.text`). stays: for each branch that the host
    may guess (`guesses`) what its condition is where a loop goes on, None where it leaves no loop.
    own: launches that guessing needs, None where nothing is guessed.
    arrays: what is allocated, in the user's words, by the number that `run.allocate` is given.
    fetches: whether words of results may lie on the device. worked_out: how many tables `known0`,
    `known1`, ... the functions keep words in that follow from others (`worked_out`). kernels: the
    names of the plan's.
    """

    source: str
    texts: tuple[Text, ...]
    first: tuple[int, ...]
    spare: tuple[int, ...]
    late: tuple[Text, ...]
    launches: tuple[Launched, ...]
    fails: bool
    generators: tuple[bool, ...]
    stretches: int
    rounds: tuple[Rounds, ...]
    persistent: tuple[Persistent, ...]
    stays: tuple[int | None, ...]
    own: guesses.Own | None
    arrays: tuple[str, ...]
    fetches: bool
    worked_out: int
    kernels: tuple[str, ...]

    def text_of(self, launch: int) -> Text:
        """The text of a launch of a kernel of the device's."""
        number = self.launches[launch].text
        return self.texts[number] if number >= 0 else self.late[-2 - number]

    def names(self) -> dict[Text, str]:
        """What the kernels are called that the program has of its own, loops for any extents too.
        """
        found = {self.text_of(each.launch): each.name for each in self.persistent}
        for number, launched in enumerate(self.launches):
            if launched.kernel >= 0 and launched.text != -1:
                found[self.text_of(number)] = self.kernels[launched.kernel]
        return found

    def of_loops(self) -> dict[Text, Persistent]:
        """The kernels of loops for any extents, but for those with indices of 64 bits."""
        return {self.text_of(each.launch): each for each in self.persistent if not each.large}

    def with_forms(self) -> dict[tuple[Text, ...], Launched]:
        """The texts of each kernel that has forms, and the launch of the first one."""
        found: dict[tuple[Text, ...], Launched] = {}
        before = 1
        for number, launched in enumerate(self.launches):
            if before == 1 < launched.forms:
                forms = self.launches[number : number + launched.forms]
                found.setdefault(tuple(self.late[-2 - each.text] for each in forms), launched)
            before = launched.forms
        return found


def plan_code(plan: Plan) -> PlanCode:
    """The plan written in Python."""
    plan = without_unread(plan)
    shared = _Shared(plan)
    parts = [_Function(shared, number).text() for number in range(len(plan.functions))]
    fails = shared.fails or shared.kernels_fail or any(
        isinstance(instruction, (ins.Raise, ins.Checked))
        for found, function in zip(shared.loops, plan.functions, strict=True) for loop in found
        for instruction in function.code[loop.first : loop.last]
    )
    shared.in_rounds = bool(shared.persistent)
    own = guesses.own(shared) if shared.stays else None
    return PlanCode(
        "\n\n".join(parts) + "\n", tuple(shared.texts), tuple(shared.first),
        tuple(shared.spare), tuple(shared.late), tuple(shared.launches), fails,
        shared.generators, shared.stretches,
        tuple(shared.rounds), tuple(shared.persistent), tuple(shared.stays), own,
        tuple(shared.arrays), _fetches(plan, shared.slots[0]), shared.worked_out,
        tuple(kernel_names(plan)),
    )


def _fetches(plan: Plan, on_device: set[int]) -> bool:
    words = (v for i in plan.functions[0].code if isinstance(i, ins.Return) for v in i.values)
    return any(isinstance(v, Slot) and v.index in on_device for v in words)


def _can_fail(kernel: ins.Kernel) -> bool:
    if kernel.code is None:
        return cuda_library.can_fail(kernel.source)
    return bool(kernel.code.sites)


class _Shared(PlanLaunches):
    """What the functions of a plan have in common."""

    def __init__(self, plan: Plan) -> None:
        self.kernels_fail = any(map(_can_fail, plan.kernels))
        super().__init__(_recursive(plan), self.kernels_fail or any(
            isinstance(step, (ins.Raise, ins.Checked)) for f in plan.functions for step in f.code
        ))
        self.plan = plan
        found = [loops(plan, function) for function in plan.functions]
        told = [
            [persistent_ends.ends(plan, function, loop) for loop in of]
            for of, function in zip(found, plan.functions, strict=True)
        ]
        # what loops leave on the host, by the loop's first instruction
        self.loops, known, self.slots = persistent_ends.without(found, told, functools.partial(
            device_slots, plan, lambda launch, on: runs_on_host(plan, launch, on)
        ))
        self.ends = [
            {loop.first: ends for loop, ends in zip(of, each, strict=True)}
            for of, each in zip(self.loops, known, strict=True)
        ]
        self.persistent: list[Persistent] = []
        self.rounds: list[Rounds] = []
        self.stretches = self.worked_out = 0


def _recursive(plan: Plan) -> tuple[bool, ...]:
    """For each function whether it may call itself, or calls one that may."""
    calls = [
        {i.function for i in f.code if isinstance(i, ins.Call)} for f in plan.functions
    ]
    # What is left when those that call nothing that is left are taken out, again and again.
    left = set(range(len(calls)))
    while True:
        done = {k for k in left if not calls[k] & left}
        if not done:
            return tuple(k in left for k in range(len(calls)))
        left -= done


class _Function(InstructionWriter):
    """Writes one function of the plan."""

    shared: _Shared

    def __init__(self, shared: _Shared, number: int) -> None:
        self.shared, self.launches, self.plan = shared, shared, shared.plan
        self.function = self.plan.functions[number]
        self.number, self.on_device = number, frozenset(shared.slots[number])
        self.tapes = tape_slots(self.function.code)
        self.made_here = frozenset(
            step.target for step in self.function.code if isinstance(step, ins.Alloc)
        )
        self.lines: list[str] = []
        self.before: list[str] = []  # the functions of its stretches
        self.cells = 0
        self.kernels: list[Loop] = []  # what may run as one
        found = guesses.branches(self.function, self.on_device)
        self.guessed = {name: len(shared.stays) + n for n, name in enumerate(found)}
        shared.stays += found.values()
        inside = guesses.inside(self.function, found)
        self.changed = sorted(flow(self.plan, inside)[1])  # what rounds of such a loop change
        self.kept = "".join(f"s{k}, " for k in self.changed)
        self.straight = straight_loops(self.plan, self.function, self.on_device, found)

    def text(self) -> str:
        """The definition."""
        self.blocks = blocks = self._blocks()
        self.places = {
            instruction.name: number for number, block in enumerate(blocks)
            for instruction in block if isinstance(instruction, ins.Label)
        }
        given = "".join(f", s{k}" for k in range(self.function.parameters))
        head = f"def f{self.number}(run{given}):"
        out: list[str] = []
        self.single = len(blocks) == 1
        self.ahead = Ahead(
            self.plan, range(self.function.parameters if self.single else 0), self.on_device
        )
        read, written = flow(self.plan, self.function.code)
        begin = read if self.single else sorted({*read, *written})
        fresh = [f"s{k} = " for k in begin if k >= self.function.parameters]
        out += [f"    {''.join(fresh[k : k + 50])}0" for k in range(0, len(fresh), 50)]
        lines = [self._block(n, block, len(blocks)) for n, block in enumerate(blocks)]
        if self.single:
            out += (f"    {line}" for line in [*self._worked_out(), *lines[0]] or ["pass"])
        else:
            out += ["    at = 0", "    while True:"]
            depth = 2
            if self.guessed:
                out += ["        try:", "            while True:"]
                depth = 4
            self._tree(lines, 0, len(lines), depth, out)
            if self.guessed:
                out.append("        except Guessed as wrong:")
                out.append(f"            at, ({self.kept}) = wrong.at, wrong.words")
        return "\n".join([*self.before, head, *out])

    def _blocks(self) -> list[list[ins.Instruction]]:
        """The code cut at labels and after jumps."""
        blocks: list[list[ins.Instruction]] = [[]]
        starts: list[tuple[int, list[ins.Instruction]]] = []  # places of the first ones
        for place, instruction in enumerate(self.function.code):
            # A branch that was guessed wrong is where the function goes on.
            begins = isinstance(instruction, ins.Label) or id(instruction) in self.guessed
            if begins and blocks[-1]:
                blocks.append([])
            if not blocks[-1]:
                starts.append((place, blocks[-1]))
            blocks[-1].append(instruction)
            if isinstance(instruction, _LEAVES):
                blocks.append([])
        self.begins = [place for place, _ in starts]
        self.starts = {place: number for number, place in enumerate(self.begins)}
        return [block for _, block in starts]

    def _tree(
        self, blocks: Sequence[list[str]], first: int, last: int, depth: int, out: list[str]
    ) -> None:
        """The blocks first..last as nested conditions on `at`."""
        indent = "    " * depth
        if last - first == 1:
            out += [indent + line for line in blocks[first]]
            return
        middle = (first + last) // 2
        out.append(f"{indent}if at < {middle}:")
        self._tree(blocks, first, middle, depth + 1, out)
        out.append(f"{indent}else:")
        self._tree(blocks, middle, last, depth + 1, out)

    def _block(self, number: int, block: list[ins.Instruction], count: int) -> list[str]:
        self.lines, self.place = [], number
        self.waiting: list[ins.Instruction] = []
        following = self.blocks[number + 1][0] if number + 1 < count else None
        next_loop = self._loop_at(following)
        if next_loop is not None:
            self.waiting = beginnings(
                self.plan, self.function, next_loop, block, self.on_device, self.tapes
            )
        waiting = set(map(id, self.waiting))
        place = self.begins[number]
        self.shared.in_rounds = any(loop.first <= place < loop.last for loop in self.kernels)
        for loop in self.shared.loops[self.number]:
            if loop.resumes and self.function.code[loop.first] is block[0]:
                self._resuming(loop)
        for straight in self.straight:
            if self.function.code[straight.first] is block[0]:
                self._rounds(straight)
        for part, worth_it in stretches(self.plan, block, self.on_device, self.tapes):
            if worth_it:
                self._stretch(part)
                self.ahead.passed(part)
                continue
            for instruction in part:
                if id(instruction) in waiting:
                    continue
                if waiting and isinstance(instruction, (ins.JumpIf, ins.JumpUnless)):
                    self._branch_behind(instruction)
                elif not self.ahead.take(instruction):
                    self._instruction(instruction)
        self.shared.in_rounds = False
        if following is not None and not isinstance(block[-1], _ALL_LEAVES):
            self._persistent(next_loop, block)
            self.lines.append(f"at = {number + 1}")
        return self.lines

    def _loop_at(self, first: ins.Instruction | None) -> Loop | None:
        """The loop that begins with an instruction, and may be a kernel."""
        found = self.shared.loops[self.number]
        return next((each for each in found if self.function.code[each.first] is first), None)

    def _branch_behind(self, step: ins.JumpIf | ins.JumpUnless) -> None:
        """A branch behind what waits."""
        negated = "not " * isinstance(step, ins.JumpUnless)
        self._line(f"if {negated}{self._word(step.condition)}:")
        self._do_waiting("    ")
        self._line(f"    {self._jump(step.label)}")

    def _do_waiting(self, indent: str = "") -> None:
        """Do what waits for the host to know how the loop behind it runs."""
        lines, self.lines = self.lines, []
        for step in self.waiting:
            self._instruction(step)
        self.lines = [*lines, *(f"{indent}{line}" for line in self.lines)]

    def _persistent(self, loop: Loop | None, block: Sequence[ins.Instruction]) -> None:
        """Run the loop that follows as one kernel if that is faster."""
        if loop is not None and loop.resumes:
            self._line(f"enter{loop.first} = 1")
        way = None if loop is None or loop.resumes else self._kernel_of(loop)
        if loop is None or way is None:
            self._do_waiting()
            return
        if self.waiting:
            self._line("plain = kernel, blocks, values")
            longer = with_beginnings(self.plan, self.function, loop, block, self.waiting)
            if self._kernel_of(longer, way, "blocks == 1") is not None:
                self._line("if blocks == 1:")
                self._run_loop(longer, "kernel, 1, values")
            self.shared.in_rounds = True  # in these, too, is what that kernel does
            self._do_waiting()
            self.shared.in_rounds = False
            self._line("kernel, blocks, values = plain")
        self._line("if blocks:")
        self._run_loop(loop, "kernel, blocks, values")

    def _run_loop(self, loop: Loop, kernel: str) -> None:
        """Indented lines that run a loop as a kernel, and go on behind it."""
        end = self.function.code[loop.last]
        assert isinstance(end, ins.Label)
        given = "".join(f"s{k}, " for k in loop.given)
        slots = "".join(f"s{k}, " for k in loop.results)
        run = f"run.persist({kernel}, ({given}))"
        self._line(f"    ({slots}) = {run}" if slots else f"    {run}")
        for slot, step in self.shared.ends[self.number][loop.first].items():
            self._line(f"    {persistent_ends.text(slot, step, self._word)}")
        self._line(f"    {self._jump(end.name)}")

    def _resuming(self, loop: Loop) -> None:
        """Run what is left of a loop as one kernel, which may hand over again."""
        lines, self.lines = self.lines, []
        found = self._kernel_of(loop)
        made, self.lines = self.lines, lines
        if found is None:
            return
        end = self.function.code[loop.last]
        assert isinstance(end, ins.Label)
        places = {-1: self.places[end.name], loop.first: self.place}
        places |= {block.start: self.starts[block.start] for block in loop.left}
        given = "".join(f"s{k}, " for k in loop.given)
        slots = "".join(f"s{k}, " for k in loop.state)
        tape = "None" if loop.tape is None else f"s{loop.tape.slot}"
        enter = f"enter{loop.first}"
        self._line(f"if {enter}:")
        self.lines += [f"    {line}" for line in (
            f"{enter} = 0", *made,
            f"found = run.resume(kernel, blocks, values, ({given}), {tape}) if blocks else None",
            "if found is not None:", f"    at, {enter}, ({slots}) = found",
            f"    at = {places}[at]", "    continue",
        )]

    def _kernel_of(self, loop: Loop, way: Way | None = None, asks: str = "") -> Way | None:
        """In which way a loop's kernel deals items out, None if it has none; lines that choose
        `kernel`, its number, and with how many `blocks` it is to run, 0 unless `asks` is so."""
        operands = list(operands_of(loop))
        if any(isinstance(o, Slot) and o.index in self.on_device for o in operands):
            return None
        made = written(self.plan, self.function, loop, self.on_device, way)
        if made is None:
            return None
        self.kernels.append(loop)
        number = len(self.shared.persistent)
        part = self.function.code[loop.first : loop.last]
        line = first_line(self.plan, part)
        launch = self.shared.launched(Launched(self.shared.late_text(made.text), -1, 0))
        placed = tuple(k for k, slot in enumerate(loop.given) if slot in self.on_device)
        changed = flow(self.plan, part)[1]
        others = {*changed, *self.on_device}
        known = extents_of(self.plan, part, loop.given, others, loop.begins)
        extents = tuple(loop.given.index(slot) for slot in known)
        found = Persistent(loop, launch, made.meets, line, made.turned, made.near, placed, extents)
        self.shared.persistent.append(found)
        kernel = str(number)
        if made.bounds:
            late = self.shared.late_text(made.wide)
            launch = self.shared.launched(Launched(late, -1, 0))
            self.shared.persistent.append(replace(found, launch=launch, large=True))
            kernel += f" + (max({', '.join(made.bounds)}, 0) >= {LARGEST})"
        values = "".join(f"{self._word(o)}, " for o in operands)
        self._line(f"kernel, values = {kernel}, ({values})")
        blocks = "run.blocks_for(kernel, values)"
        self._line(f"blocks = {f'{blocks} if {asks} else 0' if asks else blocks}")
        return made.way

    def _tested(self, condition: str, slots: Set[int]) -> str:
        return self.ahead.tested(condition, slots)

    def _worked_out(self) -> list[str]:
        """Lines that do what is done ahead: by a function whose results are kept, if it is much.
        """
        ahead = self.ahead
        lines, self.lines = self.lines, []
        for instruction in ahead.taken:
            self._instruction(instruction)
        self.lines += (f"{name} = {text}" for text, name in ahead.tests.items())
        made, self.lines = self.lines, lines
        if ahead.operations < FEWEST:
            return made
        later = read_outside(self.plan, self.function, ahead.taken)
        slots = [k for k in flow(self.plan, ahead.taken)[1] if k in later]
        found = [*(f"s{k}" for k in slots), *ahead.tests.values()]
        results = "".join(f"{name}, " for name in found)
        if not results:
            return []
        number = self.shared.worked_out
        self.shared.worked_out += 1
        names = ", ".join(f"s{k}" for k in ahead.given)
        self.before.append("\n".join([
            f"def ahead{number}({names}):", *(f"    {line}" for line in made),
            f"    return ({results})", "",
        ]))
        table = f"known{number}"
        return [
            f"found = {table}.get(({names}, ))",
            f"if found is None: found = {table}[{names}, ] = ahead{number}({names})",
            f"({results}) = found",
        ]

    def _stretch(self, part: Sequence[ins.Instruction]) -> None:
        """A function of its own, which `graphs` may replace by what it did before."""
        given, written = flow(self.plan, part)
        later = read_outside(self.plan, self.function, part) | set(given)
        results = [slot for slot in written if slot in later]
        number = self.shared.stretches
        self.shared.stretches += 1
        lines, self.lines = self.lines, []
        ahead, self.ahead = self.ahead, Ahead(self.plan, (), self.on_device)
        for instruction in part:
            self._instruction(instruction)
        words = "".join(f"s{k}, " for k in results)
        self.before += [
            f"def g{number}(run{''.join(f', s{k}' for k in given)}):",
            *(f"    {line}" for line in self.lines), f"    return ({words})", "",
        ]
        self.lines, self.ahead = lines, ahead
        made = f"run.stretch({number}, g{number}, ({''.join(f's{k}, ' for k in given)}))"
        self._line(f"({words}) = {made}" if words else made)

    def _rounds(self, loop: Straight) -> None:
        """Run several rounds of the loop that begins here at once, if that can be done."""
        number = len(self.shared.rounds)
        writer = RoundWriter(
            self.shared, self.plan, loop, self.guessed, self.starts, self.changed, self.made_here
        )
        self.before += writer.text(number)
        self.shared.rounds.append(writer.rounds())
        words = [
            "".join(f"s{k}, " for k in slots)
            for slots in (loop.fixed, loop.ahead, self.changed if loop.guesses else ())
        ]
        given = ", ".join(f"({each})" for each in words)
        slots = [f"({''.join(f's{k}, ' for k in each)})" for each in (loop.results, loop.counts)]
        after = self.starts.get(loop.last + 1, self.place)
        self._line(f"found = run.rounds({number}, r{number}, w{number}, {given})")
        self._line("if found is not None:")
        self._line(f"    ended, {', '.join(slots)} = found")
        self._line(f"    at = {after} if ended else {self.place}; continue")

    def _jump(self, label: str) -> str:
        return f"at = {self.places[label]}; continue"
