"""Programs on a GPU: a plan and a driver in, a callable out.

The host steps through the plan (`plan_python`), the device runs its kernels in the order of one
stream. Scalars that kernels compute stay on the device as `Cell`s until the host needs one. What a
kernel finds wrong stands in a record on the device, which is read where the host needs a value and
at the end of a call; launches after a failure do nothing.

Arrays of the host are copied in, and back where they are written; with arrays of the device among
the arguments nothing is copied, and results are arrays of the device too.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from pyrelay import config, errors
from pyrelay.devices.base import Loaded
from pyrelay.devices.compiler import native
from pyrelay.devices.gpu.bounded import MOST_KEPT, Bounded
from pyrelay.devices.gpu.cuda_convolution import MODES
from pyrelay.devices.gpu.driver import Driver, OutOfDeviceMemory, Taken
from pyrelay.devices.gpu.foreseen import foresee
from pyrelay.devices.gpu.gpu_boundary import Mismatched, places_of, results_of, taken
from pyrelay.devices.gpu.gpu_memory import (
    SCRATCH_WORDS,
    STATUS,
    Cell,
    ScalarCommands,
    Scratch,
    error_in,
    made_with,
    size_text,
)
from pyrelay.devices.gpu.graphs import Stretch
from pyrelay.devices.gpu.guesses import Branch, Guessed, GuessingMemory
from pyrelay.devices.gpu.persistent import work_of
from pyrelay.devices.gpu.persistent_choice import blocks_of, form_of
from pyrelay.devices.gpu.persistent_known import Form, Known
from pyrelay.devices.gpu.persistent_runs import Layout, persist, resume
from pyrelay.devices.gpu.plan_python import Persistent, plan_code
from pyrelay.devices.gpu.program_kernels import ProgramKernels
from pyrelay.devices.gpu.recorded_calls import RecordedCalls, taking_calls
from pyrelay.devices.gpu.round_graphs import RoundGraphs
from pyrelay.devices.gpu.run_products import ProductCommands
from pyrelay.devices.gpu.word_arithmetic import BINARY_MEANINGS, CHECKED_MEANINGS, UNARY_MEANINGS
from pyrelay.devices.runtime.entry import MISMATCH, site_error
from pyrelay.devices.runtime.layout import RECORD_WORDS, WORD
from pyrelay.infer.arrays.device_arrays import DeviceArray
from pyrelay.lower.planning.boundary import ArrayParameter
from pyrelay.lower.planning.instructions import Plan
from pyrelay.lower.text import emit_kernel

DEEPEST = 1 << 20
"""Calls in each other at which recursion is taken to be endless."""

_KERNEL = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)


class Stopped(Exception):
    """The program raises the error of a site, with the words of its values."""

    def __init__(self, site: int, words: Sequence[int]) -> None:
        super().__init__(site)
        self.site, self.words = site, tuple(words)


class GpuExecutable(ProgramKernels):
    """A plan loaded on a device.

    `call(*arguments)` gives a tuple of results, or `MISMATCH`.
    """

    def __init__(self, plan: Plan, driver: Driver) -> None:
        self.plan, made = plan, plan_code(plan)
        super().__init__(driver, made)
        self.fails = made.fails
        # Launches tell who they are where one may stop those that follow.
        self.numbered = made.fails or made.own is not None
        self.branches = [Branch(stay) for stay in made.stays]
        self.forms: dict[int, int] = {}  # blocks that ran a loop last, by its launch
        # What was worked out, by extents and all else that it hangs on.
        self.products: Bounded[Any, Any] = Bounded()
        self.blocks: Bounded[Any, int] = Bounded()
        self.layouts: Bounded[Any, Layout] = Bounded()
        self.known = Known()
        self.is_fresh = True  # no call has come to its end yet
        self.host_kernels: dict[int, Any] = {}
        for launched in made.launches:
            if launched.text == -1 and launched.kernel not in self.host_kernels:
                code = plan.kernels[launched.kernel].code
                assert code is not None
                address = native.kernel_address(emit_kernel.emit(code))
                self.host_kernels[launched.kernel] = _KERNEL(address)
        self.stretches = [Stretch() for _ in range(made.stretches)]
        self.rounds = [RoundGraphs(each) for each in made.rounds]
        self.idle: dict[int, list[Run]] = {}  # by stream
        self.results = places_of(plan.results)
        self.like = next(
            (k for k, p in enumerate(plan.parameters) if isinstance(p, ArrayParameter)), -1
        )
        self.takes: Bounded[type, Callable[..., Taken | None] | None] = Bounded()
        self.ways: Bounded[type, Callable[..., Any]] = Bounded()
        self.recorded: list[RecordedCalls] = []
        #: Whether `direct` takes any arguments.
        self.is_direct = driver.own is not None and self._taking(driver.own) is not None
        self.data = [_uploaded(driver, array) for array in plan.arrays]
        names: dict[str, Any] = {
            "Stopped": Stopped, "Mismatched": Mismatched(), "Guessed": Guessed,
            "unary": UNARY_MEANINGS, "binary": BINARY_MEANINGS, "checked": CHECKED_MEANINGS,
            "M": (1 << 64) - 1, "H": 1 << 63,
            **{f"known{k}": Bounded() for k in range(made.worked_out)},
        }
        exec(_compiled(made.source), names)
        names.update({
            f"f{k}": functools.partial(_Call, names[f"f{k}"])
            for k, generates in enumerate(made.generators) if generates
        })
        self.entry = names["f0"]
        with _loading:
            _loaded.add(self)

    def blocks_for(self, number: int, values: Sequence[int], cores: bool) -> int:
        """How many blocks are to run a loop as one kernel; 0: round by round. cores: whether tensor
        cores may multiply."""
        blocks = self.blocks.get(key := (number, values, cores))
        made = self.code.persistent[number]
        if blocks is None:
            most = 1 if made.loop.begins else self.driver.meeting  # one does what comes before
            blocks = blocks_of(work_of(made.loop, values), made.meets, most, cores)
            self.blocks[key] = blocks
        self.forms[made.launch] = blocks
        return blocks

    def forget_recorded(self) -> None:
        """Calls are written anew."""
        for calls in self.recorded:
            calls.forget()

    def told(self) -> list[str]:
        """What the device's compiler did, and how the loops ran that may be kernels."""
        found = self.compilers_told()
        for made in self.code.persistent:
            blocks = self.forms.get(made.launch)
            if made.loop.begins or (made.large and blocks is None):
                continue
            form = "did not run" if blocks is None else form_of(blocks)
            found.append(f"{made.name} {form}{', with indices of 64 bits' * made.large}")
        return found

    def call(self, *arguments: Any) -> Any:
        """Run the program."""
        own = next((a.value for a in arguments if isinstance(a, DeviceArray)), None)
        with self.driver.beside(type(own)):
            made = self._called(arguments, None)
            if own is not None:
                self.driver.lend([a.value for a in arguments if isinstance(a, DeviceArray)])
            return made

    def front(self) -> Callable[..., Any]:
        """What calls are handed to that hardly need a look: for arrays of the driver's library it
        is written."""
        if self.driver.own is None or not self.driver.is_only:
            return self.direct
        return taking_calls(self, self.driver.own, self._else)

    def direct(self, *arguments: Any) -> Any:
        """Run the program with arrays of one class that are asked directly; MISMATCH for others."""
        kind = type(arguments[self.like])
        way = self.ways.get(kind)
        if way is None:
            way = self.ways[kind] = taking_calls(self, kind, self._direct)
        return way(*arguments)

    def _else(self, *arguments: Any) -> Any:
        """What `front` has not taken."""
        own = type(arguments[self.like]) is self.driver.own
        return self._direct(*arguments) if own else self.direct(*arguments)

    def _direct(self, *arguments: Any) -> Any:
        """Run the program step by step, of words that `Driver.taking` finds."""
        kind = type(arguments[self.like])
        take = self.takes[kind] if kind in self.takes else self._taking(kind)
        taken = None if take is None else take(*arguments)
        if taken is None:
            return MISMATCH
        if kind is self.driver.own and self.driver.is_only:
            return self._called(arguments, taken)
        with self.driver.beside(kind):
            made = self._called(arguments, taken)
            self.driver.lend(arguments)
            return made

    def _taking(self, kind: type) -> Callable[..., Taken | None] | None:
        """What takes arguments with arrays of a class."""
        made = self.takes[kind] = self.driver.taking(self.plan.parameters, kind)
        return made

    def _called(self, arguments: Sequence[Any], taken: Taken | None) -> Any:
        run = self.run_in(self.driver.stream)
        try:
            return run.call(arguments) if taken is None else run.taken(arguments, taken)
        except Mismatched:
            return MISMATCH
        except OutOfDeviceMemory:  # for a few scalars, say
            run.scratch.used_up = True
            raise MemoryError(run.out_of_memory(0)) from None
        except BaseException:
            # Kernels that were stopped, by Ctrl-C say, may have left anything in the record.
            run.scratch.used_up = True
            raise
        finally:
            run.end()

    def run_in(self, stream: int) -> Run:
        """A run of a stream's, which its last call has left or which is new."""
        try:
            return self.idle[stream].pop()
        except (KeyError, IndexError):
            return self._begun(stream)

    def _begun(self, stream: int) -> Run:
        """A run that no call had before."""
        try:
            forget = functools.partial(forget_graphs, self.driver)
            return made_with(functools.partial(Run, self, stream), forget)
        except OutOfDeviceMemory:
            raise MemoryError(f"no memory on {self.driver.name} to begin a call") from None


def loaded_by(driver: Callable[[], Driver]) -> Callable[[Plan], Loaded]:
    """How a device loads plans (`base.Device.load`)."""
    def load(plan: Plan) -> Loaded:
        made = GpuExecutable(plan, driver())
        return Loaded(made.call, told=made.told, direct=made.front() if made.is_direct else None)

    return load


_loaded: weakref.WeakSet[GpuExecutable] = weakref.WeakSet()
_loading = threading.Lock()


def forget_graphs(driver: Driver) -> None:
    """Give back the memory that the graphs of all programs on a device hold."""
    with _loading:
        programs = list(_loaded)
    for program in programs:
        if program.driver is driver:
            for stretch in program.stretches:
                stretch.forget()
            for loop in program.rounds:
                loop.forget()
            program.forget_recorded()


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    return compile(source, "<plan>", "exec")


def _uploaded(driver: Driver, array: np.ndarray[Any, Any]) -> tuple[int, Any]:
    """A constant of the program. Raises MemoryError."""
    array = np.ascontiguousarray(array)
    nbytes = max(array.nbytes, 1)
    make = functools.partial(driver.allocate, nbytes)
    try:
        address, owner = made_with(make, functools.partial(forget_graphs, driver))
    except OutOfDeviceMemory:
        raise MemoryError(
            f"no memory on {driver.name} for a constant of {size_text(nbytes)}"
        ) from None
    driver.upload(address, array)
    return address, owner


class _Call:
    """A call that the plan makes, to be run by `Run.execute` rather than on Python's stack."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments


class Run(GuessingMemory, ScalarCommands, ProductCommands):
    """One call in progress: its memory, its scalars, its record. Calls of a program hand it on, one
    after the other; those at the same time have several."""

    def __init__(self, program: GpuExecutable, stream: int) -> None:
        super().__init__(
            program.driver, program.code.arrays, program.code.own, program.branches
        )
        self.program = program
        self.data = [address for address, _ in program.data]
        self.launches = program.code.launches
        self.waiting: list[Cell] = []  # for the next launch
        self.constants: dict[tuple[int, ...], Cell] = {}  # words that lie on the device
        self.count = 0
        self.stream, self.home = stream, program.idle.setdefault(stream, [])
        self.scratch = Scratch(self.driver)
        self.record, self.free_cells = self.scratch.record, self.scratch.free_cells

    @property
    def precision(self) -> int:
        """How products are rounded, by its place among the modes."""
        return MODES.index(config.current().matmul_precision)

    def end(self) -> None:
        """Leave what is not this call's to the next one."""
        if not self.scratch.used_up:
            self.count = 0
            self.waiting.clear()
            self.clear()
            self.home.append(self)

    def forget_graphs(self) -> None:
        forget_graphs(self.driver)

    # -- the call ------------------------------------------------------------------------------

    def call(self, arguments: Sequence[Any]) -> Any:
        """The results of the program."""
        plan = self.program.plan
        words: list[int] = []
        back: list[Callable[[], None]] = []  # copy what is written to where it came from
        like = None
        if len(arguments) != len(plan.parameters):
            raise Mismatched
        for parameter, argument in zip(plan.parameters, arguments, strict=True):
            if isinstance(argument, DeviceArray):
                like = argument.value if like is None else like
                self.driver.follow(argument)
            words += taken(self, parameter, argument, back)
        try:
            found = self._finished(words)
        finally:
            for copy_back in back:
                copy_back()
        return results_of(self, found, arguments, like)

    def taken(self, arguments: Sequence[Any], words: Taken) -> Any:
        """The results of the program, of words that arguments were taken for."""
        self.lent.update(words[1])
        return results_of(self, self._finished(words[0]), arguments, arguments[self.program.like])

    def _finished(self, words: Sequence[int]) -> tuple[Any, ...]:
        """The words of the results, when nothing is left that may raise."""
        program = self.program
        if program.is_fresh:
            foresee(program, words, {
                **self.lent, **{address: size for address, (size, _) in self.live.items()}
            }, self.precision)
        try:
            found = self.execute(words)
            if program.is_fresh:
                program.is_fresh = False
                program.begin_spare()
            self.check()
        except Stopped as stopped:
            self.check()  # what a kernel raised came before
            raise site_error(self.program.plan.sites[stopped.site], stopped.words) from None
        return found

    def execute(self, words: Sequence[int]) -> tuple[Any, ...]:
        """Run function 0 and what it calls on a stack of its own."""
        waiting: list[Any] = []
        made = self.program.entry(self, *words)
        if type(made) is tuple:
            return made
        current = made.function(*made.arguments)
        value: Any = None
        while True:
            try:
                asked = current.send(value)
            except StopIteration as done:
                value = done.value
                if not waiting:
                    return tuple(value)
                current = waiting.pop()
                continue
            waiting.append(current)
            if len(waiting) > DEEPEST:
                raise RecursionError("maximum recursion depth exceeded in compiled code")
            current, value = asked.function(*asked.arguments), None

    # -- scalars -------------------------------------------------------------------------------

    def fresh_cell(self) -> Cell:
        if not self.free_cells:
            made_with(self.scratch.grow, self.forget_graphs)
        return Cell(self.free_cells.pop(), self.free_cells)

    def place(self, *words: Any) -> int:
        """The address where a kernel finds a scalar."""
        first = words[0]
        if type(first) is not int and len(words) == 1:
            return int(first.address)
        if type(first) is not int:
            second = words[1]
            if type(second) is not int and second.keeper is first:
                return int(first.address)
        known = tuple(self.known(word) for word in words)
        cell = self.written(*known) if self.is_guessing else self._constant(known)
        self.waiting.append(cell)
        return cell.address

    def _constant(self, words: tuple[int, ...]) -> Cell:
        """Where words of the host lie on the device, which they have to be copied to once."""
        cell = self.constants.get(words)
        if cell is None:
            cell = self.cell()
            self.driver.upload(cell.address, np.array(words, np.int64))
            if len(self.constants) < MOST_KEPT:
                self.constants[words] = cell
        return cell

    def known(self, word: Any) -> int:
        """A word that the host needs."""
        return word if type(word) is int else self.fetched(word)

    def fetched(self, cell: Any) -> int:
        """A scalar read back from the device. Raises what kernels have raised, and Guessed."""
        self.check()
        found = np.zeros(1, np.int64)
        self.driver.download(found, cell.address)
        return int(found[0])

    # -- kernels -------------------------------------------------------------------------------

    def launch(
        self, number: int, items: int, words: Sequence[int], meeting: int = 0, made: Any = None
    ) -> None:
        """Run a kernel over so many items, or one with so many blocks that meet, as what was `made`
        of it."""
        if items <= 0:
            return
        program, ident = self.program, 0
        if program.numbered:
            self.count += 1
            ident = (self.count << 32) | self.launches[number].base
        function = made or program.function_of(number)
        given = (self.record, ident, 0, items, *words)
        if meeting:
            self.driver.launch_meeting(function, meeting, given, self.stream)
        else:
            self.driver.launch(function, items, given, self.stream)
        if self.waiting:
            self.waiting.clear()

    def stretch(self, number: int, function: Callable[..., Any], given: Sequence[Any]) -> Any:
        """Run a stretch of the plan, by a graph if that is worth it."""
        return self.program.stretches[number].run(self, function, given)

    def rounds(
        self, number: int, launch: Callable[..., Any], compute: Callable[..., Any],
        fixed: Sequence[Any], ahead: Sequence[Any], kept: Sequence[Any],
    ) -> tuple[int, list[Any], Sequence[int]] | None:
        """Run several rounds of a loop by one graph (`RoundGraphs.run`)."""
        return self.program.rounds[number].run(self, launch, compute, fixed, ahead, kept)

    def blocks_for(self, number: int, values: Sequence[int]) -> int:
        """How many blocks are to run a loop as one kernel; 0: round by round."""
        return self.program.blocks_for(number, values, self.precision != 0)

    def known_kernel(self, made: Persistent, blocks: int, words: tuple[int, ...]) -> Form:
        """The kernel of a loop for these extents, and with how many blocks it runs."""
        return self.program.known.function(self.program, made, blocks, self.precision, words)

    def persist(
        self, number: int, blocks: int, values: Sequence[int], given: Sequence[Any]
    ) -> list[Any]:
        """Run a loop as one kernel (`persistent_runs.persist`)."""
        return persist(self, self.program.code.persistent[number], blocks, values, given)

    def resume(
        self, number: int, blocks: int, values: Sequence[int], given: Sequence[Any],
        tape: list[Any] | None,
    ) -> tuple[int, int, list[int]] | None:
        """Run a part of a loop as one kernel (`persistent_runs.resume`)."""
        made = self.program.code.persistent[number]
        return resume(self, made, blocks, values, given, tape)

    def host_launch(self, number: int, items: int, words: Sequence[int]) -> list[int]:
        """Run a kernel of scalars here; the words of its results."""
        launched = self.launches[number]
        record = np.zeros(RECORD_WORDS + 2, np.int64)
        record[RECORD_WORDS] = _signals()
        out = np.zeros(2 * len(launched.outs) or 1, np.int64)
        block = np.array([record.ctypes.data, *words], np.int64)
        for k, (place, _) in enumerate(launched.outs):
            block[1 + place] = out.ctypes.data + 2 * WORD * k
        status = self.program.host_kernels[launched.kernel](block.ctypes.data, 0, items)
        if status:
            self.settle()
            raise Stopped(launched.base + int(record[0]), record[1:RECORD_WORDS].tolist())
        found: list[int] = []
        for k, (_, count) in enumerate(launched.outs):
            found += out[2 * k : 2 * k + count].tolist()
        return found

    # -- the host ------------------------------------------------------------------------------

    def host_call(self, number: int, words: Sequence[int], count: int) -> list[int]:
        """Call Python; arrays are copied to the host and back."""
        self.check()
        host: Any = self.program.plan.hosts[number]
        given = list(words)
        kept: list[Any] = []
        written: list[tuple[int, Any]] = []
        owner = getattr(host, "__self__", host)
        taken, made = owner.places(given, fetching=owner is not host)
        for place, nbytes in taken:
            array = np.empty(max(nbytes, 1), np.uint8)
            if nbytes:
                self.driver.download(array, given[place])
            kept.append(array)
            given[place] = array.ctypes.data
        for place in made:
            array = np.empty(self.live[given[place]][0], np.uint8)
            written.append((given[place], array))
            given[place] = array.ctypes.data
        found = list(host(given))
        for address, array in written:
            if array.nbytes:
                self.driver.upload(address, array)
        if len(found) != count:
            raise errors.InvariantError(f"a host call gave {len(found)} words, not {count}.")
        return found

    def check(self) -> None:
        """Raise what a kernel has found wrong; see whether guesses were right."""
        if self.is_guessing:
            self.settle()
        elif self.program.fails:
            record = np.zeros(SCRATCH_WORDS, np.int64)
            self.driver.download(record, self.record)
            if record[STATUS]:
                self.raised(record)

    def raised(self, record: np.ndarray[Any, Any]) -> None:
        """Raise what the record says."""
        self.scratch.used_up = True
        raise error_in(record, self.program.plan.sites)


@functools.cache
def _signals() -> int:
    """The address of CPython's function that runs the handlers of signals."""
    return ctypes.cast(ctypes.pythonapi.PyErr_CheckSignals, ctypes.c_void_p).value or 0
