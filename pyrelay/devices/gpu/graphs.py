"""Stretches of a plan as graphs: launched once, in place of launch by launch.

In: a stretch, that is code of a plan without jumps whose work hangs on the words it is given and on
nothing that the device computes, and those words. Out: its results, by replaying a graph where the
same was asked before.

A graph holds addresses, so it is found by the words that the stretch is given and by the addresses
of the buffers that outlive it, which are allocated first. Buffers and scalars that do not outlive
it are the graph's own. A stretch is run as it is the first time, drawn (`Drawing` tells what it
allocates) and captured the second time, and replayed from then on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from pyrelay.devices.gpu.driver import CannotCaptureError, OutOfDeviceMemory
from pyrelay.devices.gpu.gpu_memory import ScalarCommands
from pyrelay.devices.runtime.layout import WORD
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.devices.gpu.programs import Run

FEWEST_LAUNCHES = 3
"""In a stretch that is worth a graph."""

MOST_KEYS = 64
MOST_GRAPHS = 8
FIRST_COUNT = 1 << 30  # of launches in a graph; those outside of graphs have lower numbers
CELL = (-1, 0)
GONE = ("gone",)


class UnfitError(Exception):
    """What is captured needs something that a graph cannot hold."""


@dataclass
class _Drawn:
    """What a stretch does for certain words.

    escapes: what `allocate` is given for each allocation that outlives it, `CELL` for a scalar, by
    its number among all allocations. freed: which of the given words are addresses that it frees.
    outs: what the results are: ("word", w), ("given", k), ("made", number, offset).
    """

    escapes: dict[int, tuple[int, int]]
    freed: list[int]
    outs: list[tuple[Any, ...]]
    graphs: dict[tuple[int, ...], tuple[Any, Any]] = field(default_factory=dict)


class Kept:
    """What was found out about a part of a loaded program, by the words that graphs hang on.

    hits: how often a graph was replayed. given_up: whether none is made any more.
    """

    def __init__(self) -> None:
        self.plans: dict[Any, Any] = {}
        self.hits = 0
        self.given_up = False

    def enter(self, key: Any, plan: Any) -> None:
        """Begin with other words."""
        if len(self.plans) >= MOST_KEYS:
            if not self.hits:
                self.given_up = True  # the words are others at each call
            self.forget()
        self.plans[key] = plan

    def forget(self) -> None:
        """Give back the memory of all graphs, of those too that a call has just looked up."""
        plans, self.plans = self.plans, {}
        for plan in [*plans.values()]:
            self.drop(plan)

    def drop(self, plan: Any) -> None:
        """Forget the graphs of a plan."""


class Stretch(Kept):
    """The graphs of one stretch of a loaded program."""

    plans: dict[Any, _Drawn | None]

    def drop(self, plan: _Drawn | None) -> None:
        """Forget its graphs."""
        if plan is not None:
            plan.graphs = {}

    def run(self, run: Run, function: Callable[..., Any], given: Sequence[Any]) -> Any:
        """The results of the stretch."""
        if self.given_up:
            return function(run, *given)
        words = tuple([w if type(w) is int else (w.address,) for w in given])
        key = (run.stream, run.record, run.precision, run.is_guessing, words)
        plans = self.plans  # another thread may forget them
        if key not in plans:
            self.enter(key, None)
            return function(run, *given)
        drawn = plans[key]
        if drawn is None:
            drawn = self._draw(run, function, given)
            if drawn is None:
                return function(run, *given)
            plans[key] = drawn
        return self._replayed(run, drawn, function, given)

    def _draw(
        self, run: Run, function: Callable[..., Any], given: Sequence[Any]
    ) -> _Drawn | None:
        """What the stretch does; None where it has to be run as it is."""
        try:
            return _drawn(run, function, given)
        except UnfitError:
            self.given_up = True
        except Exception:  # of the program: it is to be raised when what comes before is done
            return None
        return None

    def _replayed(
        self, run: Run, drawn: _Drawn, function: Callable[..., Any], given: Sequence[Any]
    ) -> Any:
        made: dict[int, Any] = {}
        for number, asked in drawn.escapes.items():
            made[number] = run.cell() if asked == CELL else run.allocate(*asked)
        addresses = tuple([m if type(m) is int else m.address for m in made.values()])
        graphs = drawn.graphs
        found = graphs.get(addresses)
        if found is None:
            if len(graphs) >= MOST_GRAPHS:
                graphs.pop(next(iter(graphs)))
            found = self._graph(run, function, given, made)
            if found is None:
                for address in (m for m in made.values() if type(m) is int):
                    run.free(address)
                return function(run, *given)
            graphs[addresses] = found
        else:
            self.hits += 1
        graph, _ = found
        run.driver.replay(graph)
        for place in drawn.freed:
            run.free(given[place])
        return [out(each, given, made) for each in drawn.outs]


    def _graph(
        self, run: Run, function: Callable[..., Any], given: Sequence[Any], made: dict[int, Any]
    ) -> tuple[Any, Any] | None:
        """A new graph and its memory. None where there is none: then nothing holds memory for it
        any more, as an exception would that is still being dealt with."""
        try:
            return _captured(run, function, given, made)
        except (CannotCaptureError, OutOfDeviceMemory) as error:
            self.given_up = isinstance(error, CannotCaptureError)
            return None


def out(told: tuple[Any, ...], given: Sequence[Any], made: Mapping[int, Any]) -> Any:
    """A result as it was told by `Drawing.told`."""
    kind, which = told[:2]
    if kind == "made":
        found = made[which]
        return found.second() if told[2] else found
    return given[which] if kind == "given" else which


class Pass(ScalarCommands):
    """Stands for a `Run` while a stretch is gone through; subclasses say where memory is."""

    def __init__(self, run: Run) -> None:
        self.run, self.data, self.numbers = run, run.data, 0
        self.precision = run.precision
        self.kept: list[Any] = []

    @abstractmethod
    def allocate(self, nbytes: int, told: int = 0) -> int: ...

    @abstractmethod
    def free(self, address: int) -> None: ...

    def place(self, *words: Any) -> int:
        """Where a scalar of the device is; another one would have to be copied there."""
        if type(words[0]) is int:
            raise UnfitError
        return int(words[0].address)

    def fetched(self, cell: Any) -> int:
        raise UnfitError

    def host_launch(self, number: int, items: int, words: Sequence[int]) -> list[int]:
        return self.run.host_launch(number, items, words)

    def settle(self) -> None:
        """What comes after is not done here."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        pass

    def zero(self, address: int, nbytes: int) -> None:
        pass

    def launch(self, number: int, items: int, words: Sequence[int]) -> None:
        pass

    def multiply(self, number: int, items: int, words: Sequence[int]) -> None:
        pass


class Mark:
    """A scalar while a stretch is gone through."""

    def __init__(self, address: int, number: int = -1, offset: int = 0) -> None:
        self.address, self.number, self.offset = address, number, offset

    def second(self) -> Mark:
        """The second word of a complex128."""
        return Mark(self.address + WORD, self.number, WORD)


class Drawing(Pass):
    """Nothing is done: allocations get numbers in place of memory."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.live: dict[int, tuple[int, tuple[int, int]]] = {}  # address -> number, what is asked
        self.freed: list[int] = []
        self.cells: list[int] = []

    def _fresh(self) -> tuple[int, int]:
        self.numbers += 1
        return self.numbers - 1, -(self.numbers << 40)

    def allocate(self, nbytes: int, told: int = 0) -> int:
        number, address = self._fresh()
        self.live[address] = number, (nbytes, told)
        return address

    def free(self, address: int) -> None:
        if address in self.live:
            del self.live[address]
        elif address not in self.run.lent and address != 0:
            self.freed.append(address)

    def cell(self) -> Mark:
        number, address = self._fresh()
        return Mark(address, number)

    def told(self, word: Any, given: Sequence[Any]) -> tuple[Any, ...]:
        """What a word is now, for `out`: it is ("word", w), ("given", k), ("made", number, offset),
        or the address of what is gone."""
        if isinstance(word, Mark):
            return "made", word.number, word.offset
        if type(word) is not int:
            return "given", next(k for k, g in enumerate(given) if g is word)
        if word in self.live:
            return "made", self.live[word][0], 0
        if word < 0 and word % (1 << 40) == 0 and -word >> 40 <= self.numbers:
            return GONE
        return "word", word

    def escapes(self, outs: Sequence[tuple[Any, ...]]) -> dict[int, tuple[int, int]]:
        """What is asked for what outlives all that was done, by number."""
        found = dict(self.live.values())
        found.update((told[1], CELL) for told in outs if told[0] == "made" and told[1] not in found)
        return dict(sorted(found.items()))

    def given_back(self, given: Sequence[Any]) -> list[int]:
        """Which of the given words are addresses that were freed so far."""
        places = {g: k for k, g in enumerate(given) if type(g) is int}
        if any(address not in places for address in self.freed):
            raise UnfitError
        return [places[address] for address in self.freed]


def _drawn(run: Run, function: Callable[..., Any], given: Sequence[Any]) -> _Drawn:
    drawing = Drawing(run)
    outs = [drawing.told(each, given) for each in function(drawing, *given)]
    if any(told == GONE for told in outs):
        raise UnfitError
    return _Drawn(drawing.escapes(outs), drawing.given_back(given), outs)


class Preparing(Pass):
    """Nothing is done but that the graph's own memory is allocated."""

    def __init__(self, run: Run, made: dict[int, Any]) -> None:
        super().__init__(run)
        self.made, self.guessing = made, run.is_guessing
        self.idle: dict[int, list[int]] = {}  # by bytes
        self.sizes: dict[int, int] = {}  # a scalar has a size of its own, below 0
        self.owners: list[Any] = []

    def again(self) -> None:
        """All that is the graph's own is idle."""
        self.numbers = 0
        self.idle = {}
        for address, nbytes in self.sizes.items():
            self.idle.setdefault(nbytes, []).append(address)
        for each in self.idle.values():
            each.reverse()

    def _own(self, nbytes: int) -> int:
        waiting = self.idle.get(nbytes)
        if waiting:
            return waiting.pop()
        address, owner = self.run.driver.allocate(max(nbytes, 2 * WORD))
        self.owners.append(owner)
        self.sizes[address] = nbytes
        return address

    def allocate(self, nbytes: int, told: int = 0) -> int:
        self.numbers += 1
        found = self.made.get(self.numbers - 1)
        return self._own(nbytes) if found is None else int(found)

    def free(self, address: int) -> None:
        if address in self.sizes:
            self.idle.setdefault(self.sizes[address], []).append(address)

    def aside(self, nbytes: int) -> int:
        """Memory of the graph's own for a moment."""
        address = self._own(nbytes)
        self.free(address)
        return address

    def multiply(self, number: int, items: int, words: Sequence[int]) -> None:
        if self.guessing:
            self.aside(self.run.product_bytes(number, words))

    def cell(self) -> Mark:
        self.numbers += 1
        found = self.made.get(self.numbers - 1)
        # Scalars of the graph's own are never idle: nothing tells when one is read last.
        return Mark(self._own(-self.numbers) if found is None else found.address)


class Capturing(Preparing):
    """The same memory again; launches and copies go to the driver."""

    def __init__(self, prepared: Preparing) -> None:
        super().__init__(prepared.run, prepared.made)
        self.sizes, self.owners = prepared.sizes, prepared.owners
        self.again()

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self.run.copy(target, source, nbytes)

    def zero(self, address: int, nbytes: int) -> None:
        self.run.zero(address, nbytes)

    def launch(self, number: int, items: int, words: Sequence[int]) -> None:
        self.run.launch(number, items, words)

    def multiply(self, number: int, items: int, words: Sequence[int]) -> None:
        self.run.multiply(number, items, words, self.aside)


def _captured(
    run: Run, function: Callable[..., Any], given: Sequence[Any], made: dict[int, Any]
) -> tuple[Any, Any]:
    """The graph, and what has to live as long."""
    marked = marks(given)
    prepared = Preparing(run, made)
    function(prepared, *marked)
    capturing = Capturing(prepared)
    return captured(run, lambda: function(capturing, *marked)), prepared.owners


def marks(given: Sequence[Any]) -> list[Any]:
    """Words as a stretch is given them that is captured: it keeps no scalar."""
    return [g if type(g) is int else Mark(g.address) for g in given]


def captured(run: Run, work: Callable[[], Any]) -> Any:
    """The graph of what is launched and copied. Raises CannotCaptureError."""
    def issue() -> None:
        run.stream = run.driver.stream  # the one whose work is captured
        work()
        if seal is not None:
            run.driver.launch(seal, 1, (run.record, 0, 0, 1), run.stream)

    run.program.settle_kernels()
    seal = run.program.seal
    count, stream = run.count, run.stream
    run.count = FIRST_COUNT
    try:
        return run.driver.capture(issue)
    finally:
        run.count, run.stream = count, stream
