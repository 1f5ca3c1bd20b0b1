"""Calls that do again what calls before have done.

In: a loaded program, and a class of arrays. Out: a function that takes calls with such arrays. A
call whose stream, extents and integers come the second time runs a function that is written for
them (`call_texts`): it allocates, launches kernels whose words lie ready but for addresses and
numbers, and makes results. Other calls go the way of all.

It is for plans whose host reads nothing back but the record of what went wrong, behind all that a
call launches. What hangs on more than that is found out by drawing such a call (`call_drawing`).
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrelay import config
from pyrelay.devices.gpu.array_taking import FIXED, NUMBER, again
from pyrelay.devices.gpu.bounded import Bounded
from pyrelay.devices.gpu.call_drawing import Drawing, Number
from pyrelay.devices.gpu.call_texts import Drawn, written
from pyrelay.devices.gpu.cuda_convolution import MODES
from pyrelay.devices.gpu.driver import ADDRESS
from pyrelay.devices.gpu.gpu_memory import SCRATCH_WORDS, STATUS, STOP, Scratch, error_in
from pyrelay.devices.gpu.graphs import MOST_KEYS, UnfitError
from pyrelay.devices.runtime.layout import WORD
from pyrelay.errors import DeviceError
from pyrelay.ir.types import numpy_dtype
from pyrelay.lower.planning import boundary

if TYPE_CHECKING:
    from pyrelay.devices.gpu.programs import GpuExecutable

_BASES = ((-(1 << 60), 40), (-(1 << 61), 41))
"""Where made-up addresses begin, and how far they are apart as a power of 2: no buffer is as large.
"""


def taking_calls(
    program: GpuExecutable, kind: type, otherwise: Callable[..., Any]
) -> Callable[..., Any]:
    """What takes calls with arrays of a class; `otherwise` where nothing of them can be recorded.
    """
    code, driver = program.code, program.driver
    if code.own is not None or driver.own is None:
        return otherwise
    calls = RecordedCalls(program, kind, otherwise)
    made = again(
        program.plan.parameters, kind, driver.own, driver.number, not driver.is_only, calls
    )
    if made is None:
        return otherwise
    program.recorded.append(calls)
    return made


class RecordedCalls:
    """The functions of calls with arrays of a class.

    roles: what the words of the arguments are. table: by the words that calls have in common, the
    function that does such a call, unless a thread is using it, or nothing where there is none.
    looks_at_precision: whether these words end with how products are rounded.
    """

    def __init__(
        self, program: GpuExecutable, kind: type, otherwise: Callable[..., Any]
    ) -> None:
        self.program, self.otherwise = program, otherwise
        self.kind, driver = kind, program.driver
        self.issuing = driver.issuing(kind)
        self.current = self.issuing.current
        self.beside, self.lend = driver.beside, driver.lend
        self.roles: tuple[str, ...] = ()
        self.table: dict[tuple[Any, ...], list[Callable[..., Any]]] = {}
        self.seen: Bounded[tuple[Any, ...], bool] = Bounded()
        asks = ("run.precision", "run.multiply(", "run.blocks_for(")
        self.looks_at_precision = any(text in program.code.source for text in asks)

    def precision(self) -> str:
        """How products are rounded now."""
        return config.current().matmul_precision

    def note(self, key: tuple[Any, ...]) -> list[Callable[..., Any]]:
        """The function of a call that has none yet: it is written when such a call comes the second
        time."""
        if key not in self.seen:
            self.seen[key] = True
            return []
        if len(self.table) >= MOST_KEYS:
            self.table.clear()
        try:
            made = self.table[key] = [self._function(key)]
        except Exception:  # the call itself comes to the same and says so
            made = self.table[key] = []
        return made

    def forget(self) -> None:
        """Give back the memory of graphs."""
        self.table.clear()

    def _function(self, key: tuple[Any, ...]) -> Callable[..., Any]:
        """What does a call. Raises UnfitError, and whatever the plan does."""
        *given, stream = key
        precision = MODES.index(given.pop()) if self.looks_at_precision else 0
        scratch = Scratch(self.program.driver)  # of calls that do not overlap
        numbers = [Number(k) for k in range(self.roles.count(NUMBER))]
        one, other = (
            self._drawn(Drawing(
                self.program, *base, self.roles.count(ADDRESS), scratch.record, precision,
            ), given, numbers)
            for base in _BASES
        )
        return written(
            self.program, self.issuing, stream, self.roles, (one, other),
            Trouble(self.program, scratch),
        )

    def _drawn(
        self, drawing: Drawing, given: Sequence[int], numbers: Sequence[Number]
    ) -> Drawn:
        fixed, places, others = iter(given), iter(drawing.lent), iter(numbers)
        words: list[Any] = [
            next(fixed) if role == FIXED else next(places) if role == ADDRESS else next(others)
            for role in self.roles
        ]
        rest = iter(words)
        for parameter in self.program.plan.parameters:
            own = [*itertools.islice(rest, parameter.words)]
            if isinstance(parameter, boundary.ArrayParameter):
                size = numpy_dtype(parameter.dtype).itemsize
                drawing.sizes[own[0]] = math.prod(own[1:]) * size
        found = self.program.entry(drawing, *words)
        if type(found) is not tuple:
            raise UnfitError
        return Drawn(drawing, found)


class Trouble:
    """What becomes of calls that do not end well. scratch: the record of such calls."""

    def __init__(self, program: GpuExecutable, scratch: Scratch) -> None:
        self.program, self.scratch = program, scratch

    @property
    def status(self) -> int:
        """The address of the word that says whether anything went wrong."""
        return self.scratch.record + STATUS * WORD

    def lacking(self, nbytes: int, told: int, held: Sequence[tuple[int, int]]) -> Any:
        """Memory that there is when graphs have given back theirs. held: bytes of the call's
        buffers, and what they are for. Raises MemoryError."""
        run = self.program.run_in(self.program.driver.stream)
        try:
            for k, (size, what) in enumerate(held):
                run.live[k], run.told[k] = (size, None), what
            return run.obtained(nbytes, told)[1]
        finally:
            run.end()

    def failed(self) -> None:
        """Raise what kernels have found wrong."""
        driver, record = self.program.driver, np.zeros(SCRATCH_WORDS, np.int64)
        driver.download(record, self.scratch.record)
        if record[STATUS]:
            raise error_in(record, self.program.plan.sites)

    def renew(self) -> None:
        """A call has ended with an exception: the record is that of the next one."""
        driver = self.program.driver
        # What it has launched may still tell something; a device that has stopped has no next call.
        with contextlib.suppress(DeviceError, RuntimeError):
            driver.zero(self.scratch.record, STOP * WORD)
            driver.wait()
