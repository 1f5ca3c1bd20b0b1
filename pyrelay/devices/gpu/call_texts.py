"""The function that does a call again, of what two drawings of it noted.

In: two drawings of a call with other made-up addresses, what the plan's results are in each, and
what the call's words are. Out: a Python function of a call's arguments, addresses and numbers.

A word that both drawings have the same is put where its launch finds it when the function is made;
what memory lies at the same address in each call, too: that of scalars that are no results, and of
what only a graph needs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

from pyrelay.devices.gpu import cuda_diagnosis
from pyrelay.devices.gpu.array_taking import FIXED
from pyrelay.devices.gpu.call_drawing import CELL_BYTES, Drawing, Number, Scalar, Step
from pyrelay.devices.gpu.driver import ADDRESS, CannotCaptureError, Issuing
from pyrelay.devices.gpu.graphs import MOST_GRAPHS, UnfitError
from pyrelay.devices.runtime.layout import WORD
from pyrelay.ir.types import numpy_dtype
from pyrelay.lower.planning import boundary
from pyrelay.lower.planning.words import scalar
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.devices.gpu.programs import GpuExecutable
    from pyrelay.devices.gpu.recorded_calls import Trouble

MOST_KEPT_BYTES = 1 << 16
"""Of memory that stays with a function, though it is of no graph."""


@dataclass(frozen=True, slots=True)
class Place:
    """So many bytes behind the beginning of what has this number."""

    number: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A drawing, and the words of the plan's results."""

    drawing: Drawing
    results: tuple[Any, ...]


class Graphs:
    """The graphs of a stretch in one recorded call, by the words that they hang on.

    Called with these it replays the graph, which is made where there is none.
    """

    def __init__(self, issuing: Issuing, stream: int, body: Callable[..., None]) -> None:
        self.issuing, self.stream, self.body = issuing, stream, body
        self.made: dict[tuple[int, ...], Any] = {}
        self.is_hit = self.given_up = False

    def __call__(self, *words: int) -> None:
        found = self.made.get(words)
        if found is not None:
            self.is_hit = True
        elif self.given_up:
            self.body(self.stream, *words)
            return
        else:
            found = self._captured(words)
            if found is None:
                self.body(self.stream, *words)
                return
        self.issuing.replay(found)

    def _captured(self, words: tuple[int, ...]) -> Any:
        """A new graph; None where the work cannot be captured, or words are others each time."""
        if len(self.made) >= MOST_GRAPHS:
            self.given_up = not self.is_hit
            del self.made[next(iter(self.made))]
        try:
            made = self.issuing.capture(lambda stream: self.body(stream, *words))
        except CannotCaptureError:
            self.given_up = True
            return None
        self.made[words] = made
        return made


def written(
    program: GpuExecutable, issuing: Issuing, stream: int, roles: Sequence[str],
    drawn: tuple[Drawn, Drawn], trouble: Trouble,
) -> Callable[..., Any]:
    """The function. It takes the call's arguments and, of its words, those that are addresses or
    numbers, in order. roles: what each of these is. Raises UnfitError."""
    return _Writer(program, issuing, stream, drawn, trouble).function(roles)


class _Writer:
    """Text of the function, and what its names stand for."""

    def __init__(
        self, program: GpuExecutable, issuing: Issuing, stream: int, drawn: tuple[Drawn, Drawn],
        trouble: Trouble,
    ) -> None:
        self.program, self.issuing, self.stream = program, issuing, stream
        self.trouble = trouble
        self.one, self.other = (each.drawing for each in drawn)
        self.results = self._same(drawn[0].results, drawn[1].results)
        self.steps = [
            self._merged(*pair)
            for pair in zip(self.one.steps, self.other.steps, strict=True)
        ]
        self.names: dict[str, Any] = {
            "alloc": issuing.allocate, "exhausted": issuing.exhausted, "lacking": trouble.lacking,
            "begun": cuda_diagnosis.not_begun, "own": issuing.own, "array": issuing.array,
            "zero": issuing.zero, "copy": issuing.copy, "multiply": issuing.multiply,
            "stream": stream, "failed": trouble.failed, "renew": trouble.renew,
        }
        self.kept: dict[int, int] = {}  # addresses that are the same in each call, by number
        self.lines: list[str] = []
        self.live: dict[int, tuple[int, int]] = {}  # bytes of buffers, and what they are for
        self.launches = self.graphs = 0
        self.read: dict[str, None] = {}  # words of the call that the present text reads

    # -- what is the same ----------------------------------------------------------------------

    def _same(self, a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self._word(*pair) for pair in zip(a, b, strict=True))

    def _word(self, a: Any, b: Any) -> Any:
        if isinstance(a, Number) and a is b:
            return a
        if isinstance(a, Scalar) and isinstance(b, Scalar):
            return self._word(a.address, b.address)
        if type(a) is not int or type(b) is not int:
            raise UnfitError
        if a == b:
            return a
        number, offset = self.one.place_of(a)
        if self.other.place_of(b) != (number, offset) or not 0 <= number < self.one.sources:
            raise UnfitError
        return Place(number, offset)

    def _merged(self, a: Step, b: Step) -> Step:
        if a.kind != b.kind or a.fixed != b.fixed:
            raise UnfitError
        inside = tuple(self._merged(*pair) for pair in zip(a.inside, b.inside, strict=True))
        return Step(a.kind, a.fixed, self._same(a.words, b.words), inside)

    # -- memory that stays ---------------------------------------------------------------------

    def _stay(self, number: int, nbytes: int) -> int:
        address, owner = self.issuing.kept(nbytes)
        self.names[f"owner{number}"] = owner
        self.kept[number] = address
        return address

    def _keep(self) -> None:
        """Memory for scalars that are no results, for what only graphs have, and for a few bytes
        that a call needs between launches: to take these anew lasts as long as a launch."""
        results = {w.number for w in self.results if isinstance(w, Place)}
        for number in sorted(self.one.cells - results):
            self._stay(number, CELL_BYTES)
        used = results | set(_used(self.steps))
        freed = {step.words[0].number for step in self.steps if step.kind == "free"}
        own = {
            step.words[0].number: step.fixed[0] <= MOST_KEPT_BYTES for step in self.steps
            if step.kind == "allocate" and step.words[0].number in freed
        }
        self.steps = [
            step for step in self.steps
            if step.kind not in ("allocate", "free") or step.words[0].number in used
        ]
        self._share([step for step in self.steps if (
            step.kind in ("allocate", "free") and own.get(step.words[0].number, False)
        )])
        graphs = [step for step in self.steps if step.kind == "graph"]
        for graph in graphs:
            self._share(graph.inside)
        if graphs:
            self._leave_room()

    def _leave_room(self) -> None:
        """What stays must leave calls room for the rest. Raises OutOfDeviceMemory: then they go the
        way of all, which holds nothing between calls."""
        live = dict.fromkeys(self.one.cells - set(self.kept), CELL_BYTES)
        total, most, largest = sum(live.values()), 0, [*live.values()]
        for step in self.steps:
            if step.kind in ("allocate", "free") and step.words[0].number not in self.kept:
                number = step.words[0].number
                if step.kind == "free":
                    total -= live.pop(number)
                    continue
                live[number] = step.fixed[0]
                total += step.fixed[0]
                if total > most:
                    most, largest = total, [*live.values()]
        tried = [self.issuing.kept(nbytes) for nbytes in largest]
        tried.clear()

    def _share(self, steps: Sequence[Step]) -> None:
        """Memory that stays for all that is allocated and freed by these steps."""
        idle: dict[int, list[int]] = {}
        sizes: dict[int, int] = {}
        for step in steps:
            if step.kind == "allocate":
                number, nbytes = step.words[0].number, step.fixed[0]
                sizes[number] = nbytes
                waiting = idle.get(nbytes)
                self.kept[number] = waiting.pop() if waiting else self._stay(number, nbytes)
            elif step.kind == "free":
                number = step.words[0].number
                idle.setdefault(sizes[number], []).append(self.kept[number])

    # -- text ----------------------------------------------------------------------------------

    def function(self, roles: Sequence[str]) -> Callable[..., Any]:
        self._keep()
        numbers = iter(range(len(roles)))
        places = iter(range(len(roles)))
        moving = [
            f"q{next(places)}" if role == ADDRESS else f"x{next(numbers)}"
            for role in roles if role != FIXED
        ]
        cells = self.one.cells - set(self.kept)
        for number in sorted(cells):
            self._allocate(number, CELL_BYTES, 0)
        for step in self.steps:
            self._step(step, "stream")
        fails = self.program.code.fails
        if fails:
            self._tell()
        result = self._returned()
        if fails:
            self.lines += ["if told[0] < 0: wait()", "if told[0]: failed()"]
        self.lines.append(f"return {result}")
        if fails or self.one.stops:
            inside = [f"    {line}" for line in self.lines]
            self.lines = ["try:", *inside, "except BaseException: renew(); raise"]
        source = "\n".join([
            f"def done({', '.join(['given', *moving])}):", *(f"    {line}" for line in self.lines)
        ])
        return self._made(source, "done")

    def _made(self, source: str, name: str) -> Callable[..., Any]:
        """A function of some source. It is none of the names that it knows: so its memory is given
        back as soon as nobody needs it."""
        names = {**self.names}
        exec(_compiled(source), names)
        made: Callable[..., Any] = names.pop(name)
        return made

    def _tell(self) -> None:
        """Lines that have the device tell whether anything went wrong. The host looks when it has
        made the results."""
        issuing, told = self.issuing, self.issuing.told()
        self.names |= {"told": told.word, "wait": told.wait}
        given = f"{told.address}, {self.trouble.status}, {WORD}, {issuing.to_host}, stream"
        self.lines += ["told[0] = -1", f"copy({given})"]

    def _text(self, word: Any) -> str:
        """A word of the host's as text."""
        if isinstance(word, Number):
            name = f"x{word.index}"
        elif isinstance(word, Place) and word.number not in self.kept:
            name = f"q{word.number}"
        else:
            return repr(self._constant(word))
        self.read[name] = None
        return f"{name} + {word.offset}" if isinstance(word, Place) and word.offset else name

    def _constant(self, word: Any) -> int | None:
        """A word that is the same in each call; None for others."""
        if isinstance(word, Place):
            address = self.kept.get(word.number)
            return None if address is None else address + word.offset
        return word if type(word) is int else None

    def _allocate(self, number: int, nbytes: int, told: int) -> None:
        held = f"held{number}"
        self.names[held] = tuple(self.live.values())
        self.lines += [
            f"try: m{number} = alloc({nbytes})",
            f"except exhausted: m{number} = lacking({nbytes}, {told}, {held})",
            f"q{number} = m{number}.ptr",
        ]
        self.live[number] = nbytes, told

    def _step(self, step: Step, stream: str) -> None:
        match step.kind:
            case "allocate":
                if step.words[0].number not in self.kept:
                    self._allocate(step.words[0].number, *step.fixed)
            case "free":
                number = step.words[0].number
                if number not in self.kept:
                    del self.live[number]
                    self.lines.append(f"m{number} = None")
            case "launch":
                self._launch(step, stream)
            case "multiply":
                self._multiply(step, stream)
            case "graph":
                self._graph(step)
            case "zero":
                place, nbytes = self._text(step.words[0]), step.fixed[0]
                self.lines.append(f"zero({place}, 0, {nbytes}, {stream})")
            case "copy":
                target, source = map(self._text, step.words)
                how = f"{step.fixed[0]}, {self.issuing.on_device}, {stream}"
                self.lines.append(f"copy({target}, {source}, {how})")
            case _:
                assert step.kind == "count"
                name = f"count{len(self.names)}"
                function = self.program.known.function
                self.names[name] = functools.partial(function, self.program, *step.fixed)
                self.lines.append(f"{name}()")

    def _launch(self, step: Step, stream: str) -> None:
        function, items, meeting = step.fixed
        k = self.launches
        self.launches += 1
        words = [self._constant(word) for word in step.words]
        ready = self.issuing.ready(function, items, words, meeting)
        self.names |= {f"b{k}": ready.block, f"t{k}": ready.table, f"issue{k}": ready.issue}
        for place, (word, known) in enumerate(zip(step.words, words, strict=True)):
            if known is None:
                self.lines.append(f"b{k}[{place}] = {self._text(word)}")
        given = ", ".join([*map(repr, ready.before), stream, *map(repr, ready.behind)])
        self.lines += [
            f"try: issue{k}({given})",
            "except RuntimeError as error: raise begun(error) from error",
        ]

    def _multiply(self, step: Step, stream: str) -> None:
        k = self.launches
        self.launches += 1
        self.names[f"p{k}"] = step.fixed[0]
        given = ", ".join([f"p{k}", *map(self._text, step.words), stream])
        lines, self.lines = self.lines, []
        for instead in step.inside:
            self._launch(instead, stream)
        inside, self.lines = self.lines, lines
        self.lines += [
            f"if not multiply({given}):", *(f"    {line}" for line in inside),
        ]

    def _graph(self, step: Step) -> None:
        k = self.graphs
        self.graphs += 1
        lines, self.lines, read, self.read = self.lines, [], self.read, {}
        for each in step.inside:
            if each.kind not in ("allocate", "free"):
                self._step(each, "stream")
        inside, self.lines, words, self.read = self.lines, lines, ", ".join(self.read), read
        body = self._made("\n".join([
            f"def body(stream, {words}):", *(f"    {line}" for line in inside),
        ]), "body")
        self.names[f"graphs{k}"] = Graphs(self.issuing, self.stream, body)
        self.lines.append(f"graphs{k}({words})")

    # -- results -------------------------------------------------------------------------------

    def _returned(self) -> str:
        """Text of the results; lines that make them."""
        plan, program = self.program.plan, self.program
        used: set[int] = set()
        for k, (result, place, dtype) in enumerate(program.results):
            words = self.results[place]
            match result:
                case boundary.ArrayResult():
                    made = self._array(k, dtype, words, used)
                case boundary.ScalarResult(kind=kind) if isinstance(words[0], Place):
                    if kind in boundary.PYTHON_SCALARS:
                        raise UnfitError
                    made = self._array(k, numpy_dtype(kind), words[:1], used)
                case boundary.ScalarResult(kind=kind):
                    self.names[f"v{k}"] = scalar(kind, [*self._known(words)])
                    made = f"v{k}"
                case boundary.ParameterResult(parameter=number):
                    made = f"given[{number}]"
                case boundary.SameResult(result=number):
                    made = f"r{number}"
                case boundary.ObjectResult(value=value):
                    self.names[f"v{k}"] = value
                    made = f"v{k}"
                case _:
                    raise UnfitError
            self.lines.append(f"r{k} = {made}")
        if plan.single:
            return "r0"
        return f"({''.join(f'r{k}, ' for k in range(len(program.results)))})"

    def _known(self, words: Sequence[Any]) -> Iterator[int]:
        for word in words:
            if type(word) is not int:
                raise UnfitError
            yield word

    def _array(self, k: int, dtype: Any, words: Sequence[Any], used: set[int]) -> str:
        address, shape = words[0], tuple(self._known(words[1:]))
        if address == 0:
            return "None"
        if not isinstance(address, Place) or address.offset or address.number in used:
            raise UnfitError
        number = address.number
        if number not in self.live:
            raise UnfitError
        used.add(number)
        self.names |= {f"s{k}": shape, f"d{k}": dtype}
        if self.issuing.own is not None:
            return f"own(s{k}, d{k}, m{number})"
        return f"array(q{number}, m{number}, d{k}, s{k}, given[{self.program.like}])"


def _used(steps: Sequence[Step]) -> Iterator[int]:
    """The numbers of all memory that anything is done with."""
    for step in steps:
        if step.kind not in ("allocate", "free"):
            yield from (word.number for word in step.words if isinstance(word, Place))
            yield from _used(step.inside)


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    return compile(source, "<call>", "exec")
