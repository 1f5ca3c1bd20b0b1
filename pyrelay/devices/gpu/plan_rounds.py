"""Rounds of a loop as Python, many at a time.

In: a `Straight` way through a loop. Out: two functions for it. One launches so many rounds: it is
gone through when a graph of them is made (`round_graphs`). Scalars that are others in each round
are told to its kernels by a table on the device. The other one computes that table, on the host,
for rounds to come: it stops before a round that goes another way or fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.driver import Text
from pyrelay.devices.gpu.plan_instructions import InstructionWriter, PlanLaunches
from pyrelay.devices.gpu.plan_launches import Launched, Launches
from pyrelay.devices.gpu.straight import Straight
from pyrelay.devices.gpu.stretches import flow
from pyrelay.devices.gpu.word_texts import computing, operands_of
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import Launch, Plan, Slot
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Rounds:
    """What is known of a loop whose rounds are launched many at a time.

    nodes: launches and copies of a round. guesses: whether the device decides when it ends.
    assumes: branches that leave no loop, by number, and whether their conditions have to hold.
    buffers: `Straight.buffers`. fetch, deliver: the launches that bring what a graph begins with,
    and take what it leaves. kept: where among the words that guesses keep those stand that the loop
    changes, and which of them the host computes. late: kernels to be compiled when a graph is first
    made.
    """

    nodes: int
    guesses: bool
    assumes: tuple[tuple[int, int], ...]
    buffers: tuple[tuple[int, bool], ...]
    fetch: int
    deliver: int
    kept: tuple[tuple[int, bool], ...]
    late: tuple[int, ...]


class _LateLaunches(Launches):
    """Enters kernels that the plan has not yet, to be compiled when they are needed."""

    def __init__(self, shared: Launches) -> None:
        self.shared = shared
        self.fresh: dict[int, None] = {}

    def late_text(self, text: Text) -> int:
        return self.shared.late_text(text)

    def text(self, text: Text, is_spare: bool = False) -> int:
        number = self.shared.numbers.get(text)
        if number is None:
            number = self.shared.late_text(text)
            self.fresh[-2 - number] = None
        return number

    def launched(self, launched: Launched) -> int:
        return self.shared.launched(launched)


class RoundWriter(InstructionWriter):
    """Writes the functions of one loop."""

    def __init__(
        self, shared: PlanLaunches, plan: Plan, loop: Straight, guessed: Mapping[int, int],
        starts: Mapping[int, int], changed: Sequence[int], made_here: frozenset[int],
    ) -> None:
        self.shared, self.plan, self.loop = shared, plan, loop
        self.made_here = made_here
        self.late = _LateLaunches(shared)
        self.launches = self.late
        self.on_device, self.guessed, self.starts = loop.device, guessed, starts
        self.lines: list[str] = []
        self.ahead: list[str] = []
        self.assumes: list[tuple[int, int]] = []
        self.cells = self.nodes = 0
        written = set(flow(plan, loop.code)[1])
        self.changed = [(k, slot) for k, slot in enumerate(changed) if slot in written]

    def rounds(self) -> Rounds:
        """What has to be known of them, when the text is written."""
        kept = tuple((k, slot in self.loop.host) for k, slot in self.changed)
        fetch, deliver = map(self.late.library, (cuda_library.FETCH, cuda_library.DELIVER))
        return Rounds(
            self.nodes, self.loop.guesses, tuple(self.assumes), self.loop.buffers, fetch, deliver,
            kept, tuple(self.late.fresh),
        )

    def text(self, number: int) -> list[str]:
        """Lines of the function that launches rounds, r{number}, and of the one that computes
        ahead, w{number}."""
        loop = self.loop
        for step in loop.steps:
            self.place = self.starts.get(step.place, -1)
            if isinstance(step.code, (ins.JumpIf, ins.JumpUnless)):
                if step.holds is not None:
                    self._branch(step.code, step.holds)
            else:
                self._instruction(step.code)
        given = "".join(f", s{k}" for k in loop.fixed)
        # What both functions take is told once by each name.
        given += "".join(f", {'_' * (k in loop.fixed)}s{k}" for k in loop.ahead)
        own = sorted(set(flow(self.plan, loop.code)[1]) - {*loop.fixed, *loop.ahead})
        fresh = [f"s{k} = " for k in own]
        slots = "".join(f"s{k}, " for k in loop.results)
        state = "".join(f"s{k}, " for k in loop.counts)
        counted = isinstance(loop.code[-1], ins.LoopNext)
        # A round that is not done leaves nothing.
        breaks = any(line.endswith("break") for line in self.ahead)
        return [
            f"def r{number}(run, rounds{given}):",
            *(f"    {''.join(fresh[k : k + 50])}0" for k in range(0, len(fresh), 50)),
            "    for _ in range(rounds):", *(f"        {line}" for line in self.lines or ["pass"]),
            f"    return ({slots})", "",
            f"def w{number}(run, most{''.join(f', s{k}' for k in loop.ahead)}):",
            "    told, seen, rounds, state, ends = [], [], 0, (), (0, 0)",
            *(f"    s{k} = 0" for _, k in self.changed if k in loop.host - {*loop.ahead}),
            "    while rounds < most:", *(f"        {line}" for line in self.ahead),
            "        rounds += 1", f"        state = ({state})",
            *(["        ends = len(told), len(seen)"] if breaks else []),
            *(["        if not more: return rounds, 1, told, seen, state"] if counted else []),
            *(["    del told[ends[0] :], seen[ends[1] :]"] if breaks else []),
            "    return rounds, 0, told, seen, state", "",
        ]

    def _jump(self, label: str) -> str:
        raise AssertionError(label)

    # -- instructions --------------------------------------------------------------------------

    def _instruction(self, step: ins.Instruction) -> None:
        match step:
            case ins.LoopNext(counter, by, limit, _):
                self._both(f"s{counter} += {by}")
                sign = "<" if by > 0 else ">"
                self.ahead.append(f"more = s{counter} {sign} {self._word(limit)}")
            case ins.Jump():
                pass
            case ins.Checked() if self.loop.is_host(self.plan, step):
                x, y = self._word(step.a), self._word(step.b)
                self._both(f"found = checked[{step.op!r}]({x}, {y})")
                self.ahead.append("if found is None: break")
                self._both(f"s{step.target} = found")
            case _ if self.loop.is_host(self.plan, step):
                lines, self.lines = self.lines, []
                super()._instruction(step)
                self.ahead += self.lines
                self.lines = [*lines, *self.lines]
            case ins.Load(kind, target, address, index):
                self.nodes += 1
                if self._varies([index]):
                    number = self.launches.library(cuda_library.element_read(kind, True))
                    cell, told = f"c{self.cells}", self._told([index])
                    self.cells += 1
                    self._line(f"{cell} = run.cell()")
                    words = f"{self._word(address)}, {told}, {cell}.address"
                    self._line(f"run.launch({number}, 1, ({words}))")
                    self._line(f"s{target} = {cell}")
                else:
                    super()._instruction(step)
            case ins.Store(kind, address, index, value):
                self.nodes += 1
                place = [index, value] if self._varies([index]) else [value]
                number = self.launches.library(
                    cuda_library.element_write(kind, self._varies([index]))
                )
                given = [self._told([o]) if self._varies([o]) else self._placed([o]) for o in place]
                first = [self._word(address), *[self._word(index)] * (len(place) == 1)]
                self._line(f"run.launch({number}, 1, ({', '.join((*first, *given))}))")
            case _:
                self.nodes += isinstance(step, (Launch, ins.Copy, ins.Zero))
                super()._instruction(step)

    def _both(self, line: str) -> None:
        self._line(line)
        self.ahead.append(line)

    def _branch(self, step: ins.JumpIf | ins.JumpUnless, holds: int) -> None:
        """A branch: no round of those that are launched goes another way."""
        word = self._word(step.condition)
        if isinstance(step.condition, Slot) and step.condition.index in self.on_device:
            self.nodes += 1
            number = self.guessed[id(step)]
            if self.shared.stays[number] is None:
                self.assumes.append((number, holds))
            host = self.loop.host
            kept = "".join("None, " if slot in host else f"s{slot}, " for _, slot in self.changed)
            self._line(f"run.guess({number}, {word}, {self.place}, ({kept}), {holds})")
            seen = "".join(f"s{slot}, " for _, slot in self.changed if slot in host)
            self.ahead.append(f"seen.append(({seen}))")
        else:
            self.ahead.append(f"if {'not ' * holds}{word}: break")

    # -- scalars -------------------------------------------------------------------------------

    def _varies(self, operands: Sequence[Any]) -> bool:
        return any(isinstance(o, Slot) and o.index in self.loop.varying for o in operands)

    def _told(self, operands: Sequence[Any]) -> str:
        """Where the table has a scalar."""
        words = [*map(self._word, operands), "0"][:2]
        self.ahead.append(f"told.append(({', '.join(words)}))")
        return "run.tabled().address"

    def _is_placed(self, operands: Sequence[Any]) -> bool:
        return self._varies(operands) or super()._is_placed(operands)

    def _placed(self, operands: Sequence[Any]) -> str:
        return self._told(operands) if self._varies(operands) else super()._placed(operands)

    def _computed(self, step: Any) -> None:
        read = operands_of(step)
        self.nodes += 1
        if not self._varies(read):
            super()._computed(step)
            return
        base = step.site if isinstance(step, ins.Checked) else 0
        words = []
        for each in read:
            if self._varies([each]):
                self.ahead.append(f"told.append(({self._word(each)}, 0))")
                words.append("run.tabled()")
            else:
                words.append(self._word(each))
        number = self.launches.library(computing(step), base)
        self._line(f"s{step.target} = run.computed({number}, {', '.join(words)})")
