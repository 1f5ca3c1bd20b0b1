"""What a call does on a GPU, noted rather than done.

In: a loaded program and the words of a call, made-up addresses and `Number`s among them. Out: its
steps, and what its results are.

The plan's functions are run on a `Drawing` in place of a `Run` (symbolic execution: J. C. King,
"Symbolic execution and program testing", CACM 19, 1976). What hangs on more than extents ends that
with some exception.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyrelay.devices.gpu.gpu_memory import ScalarCommands
from pyrelay.devices.gpu.graphs import FEWEST_LAUNCHES, UnfitError
from pyrelay.devices.gpu.persistent_runs import persist
from pyrelay.devices.gpu.run_products import ProductCommands
from pyrelay.devices.runtime.layout import WORD
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.devices.gpu.persistent_known import Form
    from pyrelay.devices.gpu.plan_python import Persistent
    from pyrelay.devices.gpu.programs import GpuExecutable

CELL_BYTES = 16

MOST_STEPS = 512
"""Of a call that is drawn: the rounds of a loop on the host are written one by one."""

_STOPS = "pyrelay_stopped("  # in texts of kernels that end when the host says so


class Number:
    """A word that each call has another of: there is nothing to be done with it but to hand it on.
    """

    __slots__ = ("index",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, index: int) -> None:
        self.index = index

    def __bool__(self) -> bool:
        raise UnfitError

    def __eq__(self, other: object) -> bool:
        raise UnfitError


class Scalar:
    """A scalar that a kernel is to compute."""

    def __init__(self, address: int, number: int) -> None:
        self.address, self.number = address, number

    def second(self) -> Scalar:
        """The second word of a complex128."""
        return Scalar(self.address + WORD, self.number)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Something that a call does. kind: "allocate", "free", "launch", "multiply", "zero", "copy",
    "count" or "graph". fixed: what is the same in all calls: bytes and what they are for; a kernel,
    for how many items, and how many blocks of it meet; what the library of products takes; bytes;
    what `Known.function` is told. words: the address, of both ends for a copy; the words of a
    launch; the addresses of a product. inside: of a graph, its steps; of a product, the launch that
    computes it where the library does not."""

    kind: str
    fixed: tuple[Any, ...]
    words: tuple[Any, ...]
    inside: tuple[Step, ...] = ()


class Drawing(ScalarCommands, ProductCommands):
    """Stands for a `Run`.

    base, apart: made-up address number n is `base - (n << apart)`. lent: how many are those of
    arguments. record: the address of the record that kernels get. sources: how many addresses there
    are so far. cells: which of them are those of scalars. sizes: bytes by address. stops: whether
    any kernel ends when the host says so.
    """

    def __init__(
        self, program: GpuExecutable, base: int, apart: int, lent: int, record: int, precision: int
    ) -> None:
        self.program, self.launches = program, program.code.launches
        self.driver, self.data = program.driver, [address for address, _ in program.data]
        self.base, self.apart, self.record = base, apart, record
        self.lent = [self.address_of(k) for k in range(lent)]
        self.sources = lent
        self.steps: list[Step] = []
        self.count = 0
        self.sizes: dict[int, int] = {}
        self.launched, self.stops = 0, False
        self.cells: set[int] = set()
        self.rounded = precision

    @property
    def precision(self) -> int:
        return self.rounded

    @property
    def is_guessing(self) -> bool:
        return False

    def _note(self, kind: str, fixed: Sequence[Any], words: Sequence[Any]) -> None:
        self.count += 1
        if self.count > MOST_STEPS:
            raise UnfitError
        self.steps.append(Step(kind, tuple(fixed), tuple(words)))

    def _fresh(self) -> tuple[int, int]:
        self.sources += 1
        return self.sources - 1, self.address_of(self.sources - 1)

    def address_of(self, number: int) -> int:
        """A made-up address."""
        return self.base - (number << self.apart)

    def place_of(self, word: int) -> tuple[int, int]:
        """The number of the address that is nearest below, and how far that is."""
        number = -((word - self.base) >> self.apart)
        return number, word - self.address_of(number)

    # -- memory --------------------------------------------------------------------------------

    def allocate(self, nbytes: int, told: int = 0) -> int:
        if nbytes < 0:
            raise UnfitError
        _, address = self._fresh()
        self.sizes[address] = nbytes
        self._note("allocate", (nbytes or 1, told), (address,))
        return address

    def free(self, address: int) -> None:
        if address in self.lent or address == 0:
            return
        del self.sizes[address]
        self._note("free", (), (address,))

    def bytes_at(self, address: int) -> int:
        return self.sizes[address]

    def size_at(self, address: int) -> int | None:
        return self.sizes.get(address)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        if nbytes and source and target != source:
            self._note("copy", (nbytes,), (target, source))

    def zero(self, address: int, nbytes: int) -> None:
        if nbytes:
            self._note("zero", (nbytes,), (address,))

    def aside(self, nbytes: int) -> int:
        raise UnfitError  # only guesses ask for it

    # -- scalars -------------------------------------------------------------------------------

    def cell(self) -> Scalar:
        number, address = self._fresh()
        self.cells.add(number)
        return Scalar(address, number)

    def place(self, *words: Any) -> int:
        """Where a scalar of the device is; another one would have to be copied there."""
        if not isinstance(words[0], Scalar):
            raise UnfitError
        return words[0].address

    # -- work ----------------------------------------------------------------------------------

    def launch(
        self, number: int, items: int, words: Sequence[Any], meeting: int = 0, made: Any = None
    ) -> None:
        if items <= 0:
            return
        program, ident = self.program, 0
        if program.numbered:
            self.launched += 1
            ident = (self.launched << 32) | self.launches[number].base
        self.stops |= _STOPS in program.code.text_of(number).source
        function = made or program.function_of(number)
        self._note("launch", (function, items, meeting), (self.record, ident, 0, items, *words))

    def blocks_for(self, number: int, values: Sequence[int]) -> int:
        return self.program.blocks_for(number, values, self.precision != 0)

    def known_kernel(self, made: Persistent, blocks: int, words: tuple[int, ...]) -> Form:
        """The kernel of a loop for these extents, and with how many blocks it runs; calls that have
        none of their own yet count themselves."""
        told = made, blocks, self.precision, words
        function, most, counts = self.program.known.made_so_far(self.program, *told)
        if counts:
            self._note("count", told, ())
        return function, most

    def persist(
        self, number: int, blocks: int, values: Sequence[int], given: Sequence[Any]
    ) -> list[Any]:
        return persist(self, self.program.code.persistent[number], blocks, values, given)

    def _by_library(
        self, made: tuple[Any, int], words: Sequence[Any], aside: Callable[[int], int]
    ) -> bool:
        self._note("multiply", (made[0],), words[:3])
        return True

    def multiply(
        self, number: int, items: int, words: Sequence[Any],
        aside: Callable[[int], int] | None = None,
    ) -> None:
        before = len(self.steps)
        super().multiply(number, items, words, aside)
        if len(self.steps) > before and self.steps[-1].kind == "multiply":
            self.launch(number, items, words)
            instead, made = self.steps.pop(), self.steps.pop()
            self.steps.append(Step(made.kind, made.fixed, made.words, (instead,)))

    def stretch(self, number: int, function: Callable[..., Any], given: Sequence[Any]) -> Any:
        """A stretch of the plan: a graph."""
        outer, self.steps = self.steps, []
        found = function(self, *given)
        inner, self.steps = self.steps, outer
        if sum(step.kind in ("launch", "multiply") for step in inner) < FEWEST_LAUNCHES:
            self.steps += inner
            return found
        # What outlives a graph is allocated before it, what was there before is freed behind it.
        made = {step.words[0] for step in inner if step.kind == "allocate"}
        freed = {step.words[0] for step in inner if step.kind == "free"}
        own = made & freed
        kept = [s for s in inner if s.kind not in ("allocate", "free") or s.words[0] in own]
        self.steps += [s for s in inner if s.kind == "allocate" and s.words[0] not in own]
        self.steps.append(Step("graph", (), (), tuple(kept)))
        self.steps += [s for s in inner if s.kind == "free" and s.words[0] not in own]
        return found
