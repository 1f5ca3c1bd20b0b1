"""Branches that the host takes before it knows their condition.

In: a function of a plan. Out: its branches that may be guessed; and `GuessingMemory`, under the
`programs.Run` of each call, which guesses them.

A loop that ends by what the device computes would have the host wait in every round. Instead it
takes it that the loop goes on, and launches further rounds; between them stands a gate, a kernel
that looks at the condition. A gate whose guess was wrong closes: every launch behind it does
nothing, as after a failure, until the host reads the record, which it does after 1, 2, 4, ... 32
guesses. Then it goes on at that branch with the words, the buffers and the scalars of that time.
What follows a gate writes by kernels that look whether it is closed, so memory may be used again at
once as in rounds that are known to happen: a product of the device's library goes aside first, and
copies are kernels. Other branches inside of loops are guessed when they went the same way before.

This is what processors do with branches (Smith, "A study of branch prediction strategies", 1981).
"""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyrelay.devices.gpu import cuda_library
from pyrelay.devices.gpu.device_words import labels_of, loop_regions
from pyrelay.devices.gpu.driver import Driver
from pyrelay.devices.gpu.gpu_memory import CLOSED, SCRATCH_WORDS, SITE, STATUS, CallMemory, Cell
from pyrelay.devices.gpu.plan_launches import Launches
from pyrelay.devices.runtime.layout import WORD
from pyrelay.lower.planning import instructions as ins
from pyrelay.lower.planning.instructions import PlanFunction, Slot
from pyrelay.records import dataclass

MOST_GUESSES = 32
"""Guesses that wait to be looked at, at most."""

SURE = 2
"""How often in a row a branch that leaves no loop has to go one way to be guessed."""


# -- in a plan -------------------------------------------------------------------------------------


def branches(function: PlanFunction, on_device: frozenset[int]) -> dict[int, int | None]:
    """The branches of a function that may be guessed, by `id`, with what the condition is where the
    loop goes on; None for one that leaves no loop."""
    regions, code = loop_regions(function), function.code
    labels = labels_of(code)
    found: dict[int, int | None] = {}
    for place, step in enumerate(code):
        if not isinstance(step, (ins.JumpIf, ins.JumpUnless)):
            continue
        around = [(last - first, first, last) for first, last in regions if first <= place <= last]
        if not around or not isinstance(step.condition, Slot):
            continue
        if step.condition.index in on_device:
            _, first, last = min(around)
            leaves = not first <= labels[step.label] <= last
            found[id(step)] = int(isinstance(step, ins.JumpUnless)) if leaves else None
    return found


def inside(
    function: PlanFunction, guessed: dict[int, int | None]
) -> list[ins.Instruction]:
    """The instructions of the loops of a function with branches that may be guessed."""
    code = function.code
    places = {k for k, step in enumerate(code) if id(step) in guessed}
    kept = [
        range(first, last + 1) for first, last in loop_regions(function)
        if any(first <= place <= last for place in places)
    ]
    return [step for k, step in enumerate(code) if any(k in each for each in kept)]


@dataclass(frozen=True, slots=True)
class Own:
    """The launches that guessing needs: of a gate, of a word written, of bytes copied, zeroed."""

    gate: int
    put: int
    copy: int
    zero: int


def own(launches: Launches) -> Own:
    """Enters them into a plan's launches."""
    return Own(*(
        launches.library(text)
        for text in (
            cuda_library.GATE, cuda_library.element_put(), cuda_library.COPY, cuda_library.ZERO
        )
    ))


# -- in a call -------------------------------------------------------------------------------------


class Guessed(Exception):
    """A guess was wrong: go on at block `at` with these words."""

    def __init__(self, at: int, words: Sequence[Any]) -> None:
        super().__init__(at)
        self.at, self.words = at, words


class Branch:
    """How a branch of a program went before."""

    __slots__ = ("outcome", "stay", "streak")

    def __init__(self, stay: int | None) -> None:
        self.stay, self.outcome, self.streak = stay, 0, 0

    def expected(self) -> int | None:
        """What its condition may be taken for."""
        if self.stay is not None:
            return self.stay
        return self.outcome if self.streak >= SURE else None

    def saw(self, outcome: int) -> None:
        """The condition was this."""
        self.streak = self.streak + 1 if outcome == self.outcome else 1
        self.outcome = outcome


class _Kept:
    """A scalar that a guess needs if it is wrong. Until then its memory may be used again: nothing
    is written there unless the guess was right."""

    __slots__ = ("address", "cell")

    def __init__(self, cell: Cell) -> None:
        self.address, self.cell = cell.address, weakref.ref(cell)


class _Guess:
    """A guess that waits: the branch and what was guessed; where to go on and with what if it is
    wrong."""

    __slots__ = ("at", "branch", "expected", "free", "log", "made", "words")

    def __init__(
        self, branch: Branch, expected: int, at: int, words: Sequence[Any],
        free: list[int], log: int, made: int,
    ) -> None:
        self.branch, self.expected, self.at = branch, expected, at
        self.words = [
            _Kept(w) if type(w) is Cell and w.keeper is None else w for w in words
        ]
        self.free, self.log, self.made = free, log, made


class GuessingMemory(CallMemory):
    """The memory of a call that can go back to where a guess was made."""

    free_cells: list[int]
    waiting: list[Cell]
    record: int

    def __init__(
        self, driver: Driver, arrays: Sequence[str], own: Own | None, branches: Sequence[Branch]
    ) -> None:
        super().__init__(driver, arrays)
        self.own, self.branches = own, branches
        self._begin()

    def _begin(self) -> None:
        """Nothing is guessed."""
        self.guesses: list[_Guess] = []
        self.window = 1
        self.answer: int | None = None  # the condition of the branch that was guessed wrong
        self.log: list[tuple[Any, Any]] = []  # buffers made and given back, tapes pushed to
        self.made: list[weakref.ref[Cell]] = []
        self.spare: dict[int, list[tuple[int, Any]]] = {}  # by bytes
        self.set_aside: dict[int, tuple[int, Any]] = {}

    def clear(self) -> None:
        super().clear()
        if self.own is not None:
            self._begin()

    @abstractmethod
    def launch(self, number: int, items: int, words: Sequence[int]) -> None:
        """Run a kernel over so many items."""

    @abstractmethod
    def fetched(self, cell: Any) -> int:
        """A scalar read back from the device."""

    @abstractmethod
    def raised(self, record: np.ndarray[Any, Any]) -> None:
        """Raise what kernels have left in the record."""

    @property
    def is_guessing(self) -> bool:
        """Whether what is launched now may turn out not to happen."""
        return bool(self.guesses)

    # -- guesses -------------------------------------------------------------------------------

    def guess(self, number: int, cell: Cell, at: int, words: Sequence[Any]) -> int:
        """Whether a condition is not 0, of branch `number` in block `at`.

        Raises Guessed where an earlier guess, or this one, is seen to be wrong.
        """
        if self.answer is not None:
            answer, self.answer = self.answer, None
            return answer
        assert self.own is not None
        branch = self.branches[number]
        expected = branch.expected()
        if expected is None:
            outcome = int(self.fetched(cell) != 0)
            branch.saw(outcome)
            return outcome
        self.guesses.append(_Guess(
            branch, expected, at, words, self.free_cells.copy(), len(self.log), len(self.made)
        ))
        self.launch(self.own.gate, 1, (cell.address, expected, len(self.guesses) - 1))
        if len(self.guesses) >= self.window:
            self.settle()
        return expected

    def settle(self) -> None:
        """Wait for all that was guessed. Raises Guessed, and what kernels have raised."""
        if not self.guesses:
            return
        record = np.zeros(SCRATCH_WORDS, np.int64)
        self.driver.download(record, self.record)
        guesses, self.guesses = self.guesses, []
        closed = record[STATUS] == CLOSED
        number = int(record[SITE]) if closed else len(guesses)
        for right in guesses[:number]:
            right.branch.saw(right.expected)
        try:
            if closed:
                self._go_back(guesses[number])
            self.widen()
            if record[STATUS]:
                self.raised(record)
        finally:
            self.log, self.made, self.spare, self.set_aside = [], [], {}, {}

    def _go_back(self, wrong: _Guess) -> None:
        """Memory, tapes and scalars as they were at a guess, and the opposite of it."""
        for thing, entry in reversed(self.log[wrong.log :]):
            if isinstance(thing, list):
                thing.pop()
            elif entry is None:
                del self.live[thing]
            else:
                self.live[thing] = entry
        known = set(wrong.free)
        again: dict[int, Cell] = {}
        for word in wrong.words:
            if isinstance(word, _Kept) and word.address not in again:
                again[word.address] = word.cell() or Cell(word.address, self.free_cells)
        known.update(again)
        idle = list(self.free_cells)
        for each in self.made[wrong.made :]:
            cell = each()
            if cell is not None:
                cell.keeper = cell.address  # nobody's any more
                idle.append(cell.address)
        self.free_cells[:] = [*wrong.free, *(a for a in idle if a not in known)]
        self.reopen(wrong.branch, wrong.expected)
        raise Guessed(wrong.at, [
            again[w.address] if isinstance(w, _Kept) else w for w in wrong.words
        ])

    def widen(self) -> None:
        """All that was guessed was right: more may be guessed before the host looks."""
        self.window = min(2 * self.window, MOST_GUESSES)

    def reopen(self, branch: Branch, expected: int) -> None:
        """The condition of a branch was not what was expected: launches work again, and the branch
        is told the answer when it is asked next."""
        self.waiting.clear()
        self.driver.upload(self.record + STATUS * WORD, np.zeros(1, np.int64))
        outcome = 1 - expected
        branch.saw(outcome)
        self.window, self.answer = 1, outcome

    def suppose(self, number: int, address: int, guess: int, expected: int) -> None:
        """Launch the gate of a branch, in a graph: from here on it is known how that went, or
        nothing is done."""
        assert self.own is not None
        self.guesses.append(_Guess(self.branches[number], expected, 0, (), [], 0, 0))
        self.launch(self.own.gate, 1, (address, expected, guess))

    def push(self, tape: list[Any], value: Any) -> None:
        """Put something on a tape."""
        tape.append(value)
        if self.guesses:
            self.log.append((tape, None))

    def written(self, *words: int) -> Cell:
        """A fresh scalar of the host's words."""
        assert self.own is not None
        cell = self.cell()
        # What waits is for the kernel that is launched next, not for those that write its words.
        kept, self.waiting = self.waiting, []
        for k, word in enumerate(words):
            self.launch(self.own.put, 1, (cell.address + k * WORD, 0, word))
        self.waiting = kept
        return cell

    # -- memory --------------------------------------------------------------------------------

    @abstractmethod
    def fresh_cell(self) -> Cell:
        """A scalar on the device that is nobody's."""

    def cell(self) -> Cell:
        """A fresh scalar on the device."""
        cell = self.fresh_cell()
        if self.guesses:
            self.made.append(weakref.ref(cell))
        return cell

    def allocate(self, nbytes: int, told: int = 0) -> int:
        if not self.guesses:
            return CallMemory.allocate(self, nbytes, told)
        waiting = self.spare.get(nbytes)
        if waiting:
            address, owner = waiting.pop()
            self.live[address] = nbytes, owner
            self.told[address] = told
        else:
            try:
                address = super().allocate(nbytes, told)
            except MemoryError:
                self.settle()
                return super().allocate(nbytes, told)
        self.log.append((address, None))
        return address

    def free(self, address: int) -> None:
        if not self.guesses:
            super().free(address)
        elif address not in self.lent and address != 0:
            nbytes, owner = entry = self.live.pop(address)
            self.log.append((address, entry))
            self.spare.setdefault(nbytes, []).append((address, owner))

    def aside(self, nbytes: int) -> int:
        """Memory that holds nothing that a guess may need. Raises MemoryError."""
        if nbytes not in self.set_aside:
            self.set_aside[nbytes] = self.obtained(nbytes)
        return self.set_aside[nbytes][0]

    def copy(self, target: int, source: int, nbytes: int) -> None:
        if not self.guesses:
            super().copy(target, source, nbytes)
        elif source and nbytes and target != source:
            assert self.own is not None
            self.launch(self.own.copy, -(-nbytes // 8), (target, source, nbytes))

    def zero(self, address: int, nbytes: int) -> None:
        if not self.guesses:
            super().zero(address, nbytes)
        elif nbytes:
            assert self.own is not None
            self.launch(self.own.zero, -(-nbytes // 8), (address, nbytes))
