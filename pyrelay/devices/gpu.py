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
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from pyrelay import config, errors
from pyrelay.devices import cuda_library, native
from pyrelay.devices.base import Loaded
from pyrelay.devices.cuda_convolution import MODES
from pyrelay.devices.driver import ADDRESS, Driver, Product
from pyrelay.devices.entry import MISMATCH, site_error
from pyrelay.devices.gpu_memory import SCRATCH_WORDS, CallMemory, Cell, Scratch
from pyrelay.devices.graphs import Stretch
from pyrelay.devices.layout import RECORD_WORDS, WORD
from pyrelay.devices.persistent import is_worth_it
from pyrelay.devices.persistent_text import ALIGNED, CELL
from pyrelay.devices.plan_python import plan_code
from pyrelay.devices.word_arithmetic import BINARY_MEANINGS, CHECKED_MEANINGS, UNARY_MEANINGS
from pyrelay.infer.device_arrays import DeviceArray
from pyrelay.lower import boundary, emit_numba
from pyrelay.lower.instructions import Plan
from pyrelay.lower.words import encode, scalar

DEEPEST = 1 << 20
"""Calls in each other at which recursion is taken to be endless."""

_SITE, _STATUS, _VALUES, _LAUNCH = 3, 2, 4, 19
_KERNEL = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)


class Stopped(Exception):
    """The program raises the error of a site, with the words of its values."""

    def __init__(self, site: int, words: Sequence[int]) -> None:
        super().__init__(site)
        self.site, self.words = site, tuple(words)


class Mismatched(Exception):
    """The arguments are not those that the plan was made for."""


class GpuExecutable:
    """A plan loaded on a device.

    `call(*arguments)` gives a tuple of results, or `MISMATCH`.
    """

    def __init__(self, plan: Plan, driver: Driver) -> None:
        self.plan, self.driver = plan, driver
        made = plan_code(plan)
        self.code, self.fails = made, made.fails
        self.functions = driver.load(made.texts)
        self.late: dict[int, Any] = {}
        self.host_kernels: dict[int, Any] = {}
        for launched in made.launches:
            if launched.text == -1 and launched.kernel not in self.host_kernels:
                code = plan.kernels[launched.kernel].code
                assert code is not None
                address = native.kernel_address(emit_numba.emit(code))
                self.host_kernels[launched.kernel] = _KERNEL(address)
        self.stretches = [Stretch() for _ in range(made.stretches)]
        self.seal = driver.load([cuda_library.SEAL])[0] if self.fails and self.stretches else None
        self.idle: dict[int, list[Scratch]] = {}  # by stream
        self.data = [_uploaded(driver, array) for array in plan.arrays]
        names: dict[str, Any] = {
            "Stopped": Stopped, "Mismatched": Mismatched(), "unary": UNARY_MEANINGS,
            "binary": BINARY_MEANINGS, "checked": CHECKED_MEANINGS, "M": (1 << 64) - 1,
            "H": 1 << 63,
        }
        exec(_compiled(made.source), names)
        names.update({
            f"f{k}": functools.partial(_Call, names[f"f{k}"])
            for k, generates in enumerate(made.generators) if generates
        })
        self.entry = names["f0"]

    def late_function(self, number: int) -> Any:
        """A kernel that few calls need, compiled by the first of them."""
        if number not in self.late:
            (self.late[number],) = self.driver.load([self.code.late[number]])
        return self.late[number]

    def call(self, *arguments: Any) -> Any:
        """Run the program."""
        own = next((a for a in arguments if isinstance(a, DeviceArray)), None)
        with self.driver.beside(own):
            return self._called(arguments)

    def _called(self, arguments: Sequence[Any]) -> Any:
        run = Run(self)
        try:
            return run.call(arguments)
        except Mismatched:
            return MISMATCH
        except BaseException:
            # Kernels that were stopped, by Ctrl-C say, may have left anything in the record.
            run.scratch.used_up = True
            raise
        finally:
            run.end()


def loaded_by(driver: Callable[[], Driver]) -> Callable[[Plan], Loaded]:
    """How a device loads plans (`base.Device.load`)."""
    return lambda plan: Loaded(GpuExecutable(plan, driver()).call)


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    return compile(source, "<plan>", "exec")


def _uploaded(driver: Driver, array: np.ndarray[Any, Any]) -> tuple[int, Any]:
    array = np.ascontiguousarray(array)
    address, owner = driver.allocate(max(array.nbytes, 1))
    driver.upload(address, array)
    return address, owner


class _Call:
    """A call that the plan makes, to be run by `Run.execute` rather than on Python's stack."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function, self.arguments = function, arguments


class Run(CallMemory):
    """One call in progress: its memory, its scalars, its record."""

    def __init__(self, program: GpuExecutable) -> None:
        super().__init__(program.driver)
        self.program = program
        self.data = [address for address, _ in program.data]
        self.functions, self.launches = program.functions, program.code.launches
        self.waiting: list[Cell] = []  # for the next launch
        self.count = 0
        self.stream = self.driver.stream
        self.precision = MODES.index(config.current().matmul_precision)
        idle = program.idle.setdefault(self.stream, [])
        self.scratch = idle.pop() if idle else Scratch(self.driver)
        self.record, self.free_cells = self.scratch.record, self.scratch.free_cells

    def end(self) -> None:
        """Leave what is not this call's to the next one."""
        if not self.scratch.used_up:
            self.program.idle[self.stream].append(self.scratch)

    def forget_graphs(self) -> None:
        for stretch in self.program.stretches:
            stretch.plans.clear()

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
            words += self._taken(parameter, argument, back)
        try:
            found = self.execute(words)
            self.check()
        except Stopped as stopped:
            self.check()  # what a kernel raised came before
            raise site_error(plan.sites[stopped.site], stopped.words) from None
        finally:
            for copy_back in back:
                copy_back()
        return self._results(found, arguments, like)

    def execute(self, words: Sequence[int]) -> tuple[Any, ...]:
        """Run function 0 and what it calls on a stack of its own."""
        waiting: list[Any] = []
        made = self.program.entry(self, *words)
        if not isinstance(made, _Call):
            return tuple(made)
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

    def _taken(
        self, parameter: boundary.Parameter, argument: Any,
        back: list[Callable[[], None]],
    ) -> list[int]:
        """The words of an argument; an array of the host is copied to the device."""
        if isinstance(parameter, boundary.ObjectParameter):
            if argument is not parameter.value:
                raise Mismatched
            return []
        if isinstance(parameter, boundary.ScalarParameter):
            return encode(parameter.kind, argument)
        fits = parameter.order == "C" and argument.dtype == np.dtype(parameter.dtype)
        if not fits or argument.ndim != parameter.ndim:
            raise Mismatched
        if not isinstance(argument, DeviceArray):
            address = self.allocate(argument.nbytes)
            self.driver.upload(address, argument)
            if parameter.writeable:
                back.append(functools.partial(self.driver.download, argument, address))
        elif argument.contiguous:
            address = argument.address
        else:
            address, owner = self.driver.gathered(argument)
            self.live[address] = argument.nbytes, owner
            if parameter.writeable:
                back.append(functools.partial(self.driver.scattered, argument, owner))
        self.lent[address] = argument.nbytes
        return [address, *argument.shape]

    def _results(self, found: Sequence[Any], arguments: Sequence[Any], like: Any) -> Any:
        plan = self.program.plan
        results: list[Any] = []
        rest = list(found)
        for result in plan.results:
            words, rest = rest[: result.words], rest[result.words :]
            match result:
                case boundary.ArrayResult(dtype=dtype):
                    results.append(self._array(np.dtype(dtype), words, like))
                case boundary.ScalarResult(kind=kind):
                    results.append(self._scalar(kind, words, like))
                case boundary.ParameterResult(parameter=k):
                    results.append(arguments[k])
                case boundary.SameResult(result=k):
                    results.append(results[k])
                case boundary.ObjectResult(value=value):
                    results.append(value)
                case _:
                    raise errors.InvariantError(f"{type(result).__name__} is not for GPUs.")
        return results[0] if plan.single else tuple(results)

    def _array(self, dtype: np.dtype[Any], words: Sequence[Any], like: Any) -> Any:
        address, *shape = map(self.known, words)
        if address == 0:
            return None
        if like is not None:
            _, owner = self.live[address]
            return self.driver.array(address, owner, dtype, tuple(shape), like)
        array = np.empty(tuple(shape), dtype)
        if array.nbytes:
            self.driver.download(array, address)
        return array

    def _scalar(self, kind: str, words: Sequence[Any], like: Any) -> Any:
        if like is None or kind in boundary.PYTHON_SCALARS or type(words[0]) is int:
            return scalar(kind, [self.known(word) for word in words])
        # As the library of the arguments has it: an array without axes, which nothing waits for.
        dtype = np.dtype(kind.rstrip("_"))
        address, owner = self.driver.allocate(dtype.itemsize)
        self.driver.copy(address, words[0].address, dtype.itemsize)
        return self.driver.array(address, owner, dtype, (), like)

    # -- scalars -------------------------------------------------------------------------------

    def cell(self) -> Cell:
        """A fresh scalar on the device."""
        if not self.free_cells:
            self.scratch.grow()
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
        cell = self.cell()
        self.waiting.append(cell)
        self.driver.upload(cell.address, np.array([self.known(w) for w in words], np.int64))
        return cell.address

    def known(self, word: Any) -> int:
        """A word that the host needs."""
        return word if type(word) is int else self.fetched(word)

    def fetched(self, cell: Any) -> int:
        """A scalar read back from the device. Raises what kernels before have raised."""
        self.check()
        found = np.zeros(1, np.int64)
        self.driver.download(found, cell.address)
        return int(found[0])

    def load(self, number: int, address: int, index: int) -> Cell:
        """An element of an array as a scalar."""
        cell = self.cell()
        self.launch(number, 1, (address, index, cell.address))
        return cell

    def store(self, number: int, address: int, index: int, value: Any) -> None:
        """An element of an array set to a scalar."""
        self.launch(number, 1, (address, index, self.place(value)))

    # -- kernels -------------------------------------------------------------------------------

    def launch(self, number: int, items: int, words: Sequence[int]) -> None:
        """Run a kernel over so many items."""
        if items <= 0:
            return
        launched = self.launches[number]
        ident = 0
        if self.program.fails:
            self.count += 1
            ident = (self.count << 32) | launched.base
        text = launched.text
        function = self.functions[text] if text >= 0 else self.program.late_function(-2 - text)
        self.driver.launch(
            function, items, (self.record, ident, 0, items, *words)
        )
        self.waiting.clear()

    def stretch(self, number: int, function: Callable[..., Any], given: Sequence[Any]) -> Any:
        """Run a stretch of the plan, by a graph if that is worth it."""
        return self.program.stretches[number].run(self, function, given)

    def seal(self) -> None:
        """End a graph."""
        if self.program.seal is not None:
            self.driver.launch(self.program.seal, 1, (self.record, 0, 0, 1))

    def is_worth_it(self, number: int, values: Sequence[int]) -> bool:
        """Whether a loop is to run as one kernel."""
        return is_worth_it(self.program.code.persistent[number].loop, values)

    def persist(self, number: int, values: Sequence[int], given: Sequence[Any]) -> list[Any]:
        """Run a loop as one kernel; the words that it leaves, in the order of `Loop.results`."""
        made = self.program.code.persistent[number]
        loop = made.loop
        sizes = values[len(values) - len(loop.groups) :]
        steps = [-(-max(size, 1) // ALIGNED) * ALIGNED for size in sizes]
        room = sum(s * g.chunks + ALIGNED for s, g in zip(steps, loop.groups, strict=True))
        arena = self.allocate(room + CELL * (loop.cells + 1))
        words = dict(zip(loop.given, given, strict=True))
        code = self.program.code.texts[self.launches[made.launch].text]
        taken = [
            self.place(word) if kind == ADDRESS else word
            for word, kind in zip(given, code.kinds, strict=False)
        ]
        taken += [arena, *steps]
        found: list[Any] = []
        for slot in loop.arrays:
            nbytes = self.bytes_at(words[slot])
            found.append(self.allocate(nbytes))
            taken += [found[-1], nbytes]
        for _ in loop.scalars:
            cell = self.cell()
            taken.append(cell.address)
            found.append(cell)
        self.launch(made.launch, 1, taken)
        for address in (arena, *(words[slot] for slot in loop.arrays)):
            self.free(address)
        return found

    def multiply(self, number: int, items: int, words: Sequence[int]) -> None:
        """Compute a product of matrices, by the device's library if it has one."""
        a, b, c, m, n, k, a_turned, b_turned, adds, a_line, b_line, c_line, axes, *rest = words
        rest = rest[2:]  # a product of ours is finished by no other kernel
        batch = tuple(zip(*[iter(rest)] * 3, strict=True))
        dtype = self.launches[number].product
        if items <= 0:
            return
        if k and not adds and dtype.kind in "fc":
            product = Product(
                dtype, a, b, c, m, n, k, bool(a_turned), bool(b_turned), a_line, b_line, c_line,
                batch[:axes],
            )
            if self.driver.multiply(product):
                return
        self.launch(number, items, words)

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
        """Raise what a kernel has found wrong."""
        if not self.program.fails:
            return
        record = np.zeros(SCRATCH_WORDS, np.int64)
        self.driver.download(record, self.record)
        if record[_STATUS] == 0:
            return
        self.scratch.used_up = True
        site = int(record[_LAUNCH] & 0xFFFFFFFF) + int(record[_SITE])
        words = record[_VALUES:_LAUNCH].tolist()
        raise site_error(self.program.plan.sites[site], words)


@functools.cache
def _signals() -> int:
    """The address of CPython's function that runs the handlers of signals."""
    return ctypes.cast(ctypes.pythonapi.PyErr_CheckSignals, ctypes.c_void_p).value or 0
