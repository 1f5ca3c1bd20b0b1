"""Rounds of a loop as graphs: up to 32 of them launched at once.

In: the two functions of a loop (`plan_rounds`), and the words that a round begins with. Out: the
words behind so many rounds, launched as one graph; or nothing, where the plan is to do a round.

What the host computes in a round is computed ahead, and copied to a table on the device, where the
kernels of the graph find it. Buffers and scalars that go from round to round lie in memory of the
graph: it begins by fetching them from where the table says, and ends by delivering them. So it is
found by what does not change from round to round. Where the device decides when a loop ends, each
round stands behind a gate (`guesses`), and the host looks at the record after each graph: what the
round that ended the loop has left is copied out of the graph's memory. A graph is made when the
same was asked for before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay.devices.gpu.driver import CannotCaptureError, OutOfDeviceMemory
from pyrelay.devices.gpu.gpu_memory import CLOSED, SCRATCH_WORDS, SITE, STATUS
from pyrelay.devices.gpu.graphs import (
    CELL,
    GONE,
    Capturing,
    Drawing,
    Kept,
    Mark,
    Pass,
    Preparing,
    UnfitError,
    captured,
    out,
)
from pyrelay.devices.gpu.guesses import Guessed
from pyrelay.devices.gpu.plan_rounds import Rounds
from pyrelay.devices.runtime.layout import WORD
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.devices.gpu.programs import Run

MOST_ROUNDS = 32
MOST_NODES = 2048
"""Of a graph: launches and copies."""

MOST_CARRIED = 4 << 20
"""Bytes that go from round to round: the device takes longer to move more than the host to
launch."""

_ENTRY = 2 * WORD  # bytes of a scalar in the table


class OtherWayError(Exception):
    """A branch whose condition the host knows goes another way."""


class _Given:
    """What rounds begin with: the words without those that lie in the graph's memory, and for each
    of these, in the order of their numbers, what it is and what `allocate` was asked for.

    words: for `Rounds.fixed`, an int, or `_Inside`.
    """

    def __init__(self, run: Run, made: Rounds, fixed: Sequence[Any]) -> None:
        carried = {fixed[k]: 0 for k, moves in made.buffers if moves}
        held = {a: run.size_at(a) for a in carried}
        self.things: list[tuple[Any, tuple[int, int]]] = []
        self.words: list[Any] = list(fixed)
        numbers: dict[Any, int] = {}
        for place, _ in made.buffers:
            address = fixed[place]
            if address not in held:
                continue
            nbytes = held[address]
            if nbytes is None:  # it is gone: nothing may use it
                self.words[place] = 0
                continue
            if address not in numbers:
                numbers[address] = len(self.things)
                self.things.append((address, (nbytes, 0)))
            self.words[place] = _Inside(numbers[address])
        cells = {id(w): w for w in fixed if type(w) is not int}
        for word in cells.values():
            if id(word.keeper) not in cells:
                numbers[id(word)] = len(self.things)
                self.things.append((word, CELL))
        for place, word in enumerate(fixed):
            if type(word) is not int:
                second = id(word) not in numbers
                self.words[place] = _Inside(numbers[id(word.keeper if second else word)], second)

    def key(self) -> tuple[Any, ...]:
        """What tells one graph from another."""
        words = (w if type(w) is int else (w.number, w.second) for w in self.words)
        return (*words, *(asked for _, asked in self.things))

    def nbytes(self) -> int:
        """Bytes that go from round to round."""
        return sum(max(nbytes, 0) for _, (nbytes, _) in self.things)


class _Inside:
    """A word that stands for memory of the graph: its number, whether it is a second word there."""

    __slots__ = ("number", "second")

    def __init__(self, number: int, second: bool = False) -> None:
        self.number, self.second = number, second


@dataclass
class _Snapshot:
    """What a guess needs if it is wrong: the branch, what was guessed, the block to go on at, its
    words as `Drawing.told` has them, None for those of the host; the place of these; live buffers,
    with what was asked for, by number."""

    branch: int
    holds: int
    at: int
    words: list[tuple[Any, ...] | None]
    seen: int
    live: dict[int, tuple[int, int]]


@dataclass
class _Graph:
    """A graph and its memory: the table's address, what it holds, and where among that the words
    are that change; the addresses of what the rounds allocate, by number."""

    graph: Any
    owners: list[Any]
    table: int
    entries: np.ndarray[Any, Any]
    places: np.ndarray[Any, Any]
    addresses: dict[int, int]


@dataclass
class _Drawn:
    """What rounds do for certain words: the buffers and scalars that are left, by number, with what
    is asked for; the results, as `Drawing.told` has them; the guesses; the graph, if one is there.
    """

    left: dict[int, tuple[int, int]]
    outs: list[tuple[Any, ...]]
    guesses: list[_Snapshot]
    graph: _Graph | None = None


class RoundGraphs(Kept):
    """The graphs of one loop of a loaded program, by words and by numbers of rounds."""

    plans: dict[Any, dict[int, _Drawn]]

    def __init__(self, made: Rounds) -> None:
        super().__init__()
        self.made = made

    def drop(self, plan: dict[int, _Drawn]) -> None:
        """Forget its graphs."""
        for drawn in [*plan.values()]:
            drawn.graph = None

    def run(
        self, run: Run, launch: Callable[..., Any], compute: Callable[..., Any],
        fixed: Sequence[Any], ahead: Sequence[Any], kept: Sequence[Any],
    ) -> tuple[int, list[Any], Sequence[int]] | None:
        """Whether the loop has ended, and the words that rounds leave: the device's, the host's.
        None where the plan is to do a round. Raises Guessed, and what kernels have raised."""
        assumed = all(run.branches[k].expected() == holds for k, holds in self.made.assumes)
        if self.given_up or not assumed or any(type(w) is not int for w in ahead):
            return None
        if self.made.guesses and run.answer is not None:
            return None
        given = _Given(run, self.made, fixed)
        if given.nbytes() > MOST_CARRIED:
            return None
        guessing = run.is_guessing and not self.made.guesses
        key = (run.stream, run.record, run.precision, guessing, *given.key())
        plans = self.plans.get(key)  # another thread may forget them
        if plans is None:
            self.enter(key, {})
            return None
        most = min(MOST_ROUNDS, MOST_NODES // max(self.made.nodes, 1))
        if self.made.guesses:
            run.settle()
            most = min(most, run.window)
        found = _computed(run, compute, most, ahead) if most > 1 else None
        if found is None:
            return None
        rounds, ended, told, seen, state = found
        drawn = plans.get(rounds)
        if drawn is None:
            drawn = self._draw(run, launch, given, rounds, ahead)
            if drawn is None:
                return None
            plans[rounds] = drawn
        graph = drawn.graph
        if graph is None:
            graph = drawn.graph = self._captured(run, launch, drawn, given, rounds, ahead)
        else:
            self.hits += 1
        if graph is None:
            return None
        things = self._replay(run, drawn, graph, given, told)
        if drawn.guesses:
            self._look(run, drawn, graph, given, things, seen, kept)
        for number, (address, asked) in enumerate(given.things):
            if asked != CELL and number not in drawn.left:
                run.free(address)
        return ended, [out(each, (), things) for each in drawn.outs], state

    def _draw(
        self, run: Run, launch: Callable[..., Any], given: _Given, rounds: int,
        ahead: Sequence[int],
    ) -> _Drawn | None:
        drawing = _Drawing(run)
        try:
            results = launch(drawing, rounds, *drawing.begun(given), *ahead)
            outs = [drawing.told_now(each) for each in results]
            if drawing.freed:
                raise UnfitError
        except UnfitError:
            self.given_up = True
            return None
        except Exception:  # of the program
            return None
        return _Drawn(drawing.escapes(outs), outs, drawing.guesses)

    def _captured(
        self, run: Run, launch: Callable[..., Any], drawn: _Drawn, given: _Given, rounds: int,
        ahead: Sequence[int],
    ) -> _Graph | None:
        waiting = run.guesses
        try:
            run.program.compile_late(self.made.late)
            prepared = _Preparing(run, _Table(0))
            self._issue(prepared, launch, drawn, given, rounds, ahead)
            entries = prepared.table.entries
            table, owner = run.driver.allocate(max(len(entries), 1) * _ENTRY)
            capturing = _Capturing(prepared, _Table(table))
            run.guesses = list(waiting)
            graph = captured(
                run, lambda: self._issue(capturing, launch, drawn, given, rounds, ahead)
            )
        except (CannotCaptureError, OutOfDeviceMemory):
            self.given_up = True
            return None
        finally:
            run.guesses = waiting
        values = np.array([e or (0, 0) for e in entries], np.int64).reshape(-1, 2)
        places = np.array([k for k, e in enumerate(entries) if e is None], np.int64)
        return _Graph(
            graph, [*prepared.owners, owner], table, values, places, capturing.addresses
        )

    def _issue(
        self, to: _Preparing | _Capturing, launch: Callable[..., Any], drawn: _Drawn,
        given: _Given, rounds: int, ahead: Sequence[int],
    ) -> None:
        """All that the graph does."""
        words = to.begun(given)
        for number, (_, asked) in enumerate(given.things):
            size = _size(asked)
            place = to.table.next()
            to.launch(self.made.fetch, -(-size // 8), (to.addresses[number], place, size))
        launch(to, rounds, *words, *ahead)
        for number, asked in drawn.left.items():
            place = to.table.next()
            if number >= len(given.things) or asked != CELL:
                size = _size(asked)
                to.launch(self.made.deliver, -(-size // 8), (place, to.addresses[number], size))

    def _replay(
        self, run: Run, drawn: _Drawn, graph: _Graph, given: _Given,
        told: Sequence[tuple[int, int]],
    ) -> dict[int, Any]:
        """Launch the rounds; what they leave, by number."""
        things: dict[int, Any] = {}
        for number, asked in drawn.left.items():
            if number < len(given.things):
                things[number] = given.things[number][0]
            else:
                things[number] = run.cell() if asked == CELL else run.allocate(*asked)
        begin = [(_address(thing), 0) for thing, _ in given.things]
        end = [(_address(thing), 0) for thing in things.values()]
        graph.entries[graph.places] = np.array([*begin, *told, *end], np.int64).reshape(-1, 2)
        run.driver.upload(graph.table, graph.entries)
        run.driver.replay(graph.graph)
        return things

    def _look(
        self, run: Run, drawn: _Drawn, graph: _Graph, given: _Given, things: dict[int, Any],
        seen: Sequence[Any], kept: Sequence[Any],
    ) -> None:
        """Whether the loop has ended in one of the rounds."""
        record = np.zeros(SCRATCH_WORDS, np.int64)
        run.driver.download(record, run.record)
        closed = record[STATUS] == CLOSED
        number = int(record[SITE]) if closed else len(drawn.guesses)
        for each in drawn.guesses[:number]:
            run.branches[each.branch].saw(each.holds)
        if not closed:
            run.widen()
            if record[STATUS]:
                run.raised(record)
            return
        wrong = drawn.guesses[number]
        run.reopen(run.branches[wrong.branch], wrong.holds)
        # What lies in the graph's memory is overwritten when it is replayed.
        inside: dict[int, Any] = {}
        for name, asked in wrong.live.items():
            is_given = name < len(given.things)
            inside[name] = given.things[name][0] if is_given else run.allocate(*asked)
            run.copy(inside[name], graph.addresses[name], asked[0])
        for told in wrong.words:
            if told is not None and told[0] == "made" and told[1] not in inside:
                if told[1] < len(given.things):
                    inside[told[1]] = given.things[told[1]][0]
                else:
                    inside[told[1]] = cell = run.cell()
                    run.driver.copy(cell.address, graph.addresses[told[1]], _ENTRY)
        words = list(kept)
        host = iter(seen[wrong.seen])
        for (place, _), told in zip(self.made.kept, wrong.words, strict=True):
            words[place] = next(host) if told is None else out(told, (), inside)
        gone = [
            address for name, (address, asked) in enumerate(given.things)
            if asked != CELL and name not in wrong.live
        ]
        made = [t for name, t in things.items() if name >= len(given.things) and type(t) is int]
        for address in (*gone, *made):
            run.free(address)
        raise Guessed(wrong.at, words)


def _computed(
    run: Run, compute: Callable[..., Any], most: int, ahead: Sequence[int]
) -> tuple[int, int, list[tuple[int, int]], list[Any], tuple[int, ...]] | None:
    """What the host computes for a number of rounds that is a power of two."""
    try:
        found = compute(run, most, *ahead)
        if found[0] < 2:
            return None
        rounds = 1 << (found[0].bit_length() - 1)
        made: tuple[int, int, list[tuple[int, int]], list[Any], tuple[int, ...]] = (
            found if rounds == found[0] else compute(run, rounds, *ahead)
        )
        return made
    except Guessed:
        raise
    except Exception:  # of the program: the plan raises it when it comes there
        return None


def _size(asked: tuple[int, int]) -> int:
    return _ENTRY if asked == CELL else asked[0]


def _address(thing: Any) -> int:
    return thing if type(thing) is int else int(thing.address)


class _Table:
    """Counts the scalars that kernels find in the table: None for one that changes, words for one
    that is always the same."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.entries: list[tuple[int, int] | None] = []

    def next(self, entry: tuple[int, int] | None = None) -> int:
        """The address of one more."""
        self.entries.append(entry)
        return self.address + (len(self.entries) - 1) * _ENTRY


class _Rounds(Pass):
    """What a pass over rounds has beside one over a stretch."""

    table: _Table

    def tabled(self) -> Mark:
        """A scalar that the host computes ahead."""
        return Mark(self.table.next())

    def place(self, *words: Any) -> int:
        kinds = {type(w) is int for w in words}
        if len(kinds) > 1:
            raise UnfitError
        if True not in kinds:
            return int(words[0].address)
        return self.table.next((words[0], words[1] if len(words) > 1 else 0))

    def begun(self, given: _Given) -> list[Any]:
        """The words that rounds begin with."""
        made = [
            self.cell() if asked == CELL else self.allocate(*asked) for _, asked in given.things
        ]
        return [
            w if type(w) is int else made[w.number].second() if w.second else made[w.number]
            for w in given.words
        ]


class _Drawing(_Rounds, Drawing):
    """Tells what rounds leave, and what guesses need."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.table = _Table(0)
        self.guesses: list[_Snapshot] = []
        self.seen = 0

    def told_now(self, word: Any) -> tuple[Any, ...]:
        """What a word is; 0 for what is gone, which nothing may use."""
        found = self.told(word, ())
        return ("word", 0) if found == GONE else found

    def guess(
        self, number: int, condition: Any, at: int, words: Sequence[Any], holds: int
    ) -> None:
        """A branch goes as it has to."""
        self.seen += 1
        if type(condition) is int:
            if int(condition != 0) != holds:
                raise OtherWayError
            return
        told = [None if w is None else self.told_now(w) for w in words]
        live = dict(self.live.values())
        self.guesses.append(_Snapshot(number, holds, at, told, self.seen - 1, live))


class _Preparing(_Rounds, Preparing):
    """Allocates what is the graph's own."""

    def __init__(self, run: Run, table: _Table) -> None:
        super().__init__(run, {})
        self.table = table
        self.addresses: dict[int, int] = {}

    def guess(
        self, number: int, condition: Any, at: int, words: Sequence[Any], holds: int
    ) -> None:
        """From here on products go aside."""
        self.guessing = self.guessing or type(condition) is not int

    def allocate(self, nbytes: int, told: int = 0) -> int:
        address = super().allocate(nbytes, told)
        self.addresses[self.numbers - 1] = address
        return address

    def cell(self) -> Mark:
        mark = super().cell()
        self.addresses[self.numbers - 1] = mark.address
        return mark


class _Capturing(_Rounds, Capturing):
    """Launches, with the table where it is."""

    def __init__(self, prepared: _Preparing, table: _Table) -> None:
        super().__init__(prepared)
        self.table = table
        self.addresses = prepared.addresses
        self.gates = 0

    def guess(
        self, number: int, condition: Any, at: int, words: Sequence[Any], holds: int
    ) -> None:
        """Launches a gate."""
        if type(condition) is not int:
            self.run.suppose(number, condition.address, self.gates, holds)
            self.gates += 1
