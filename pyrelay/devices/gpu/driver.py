"""What the plan executor for GPUs asks of a GPU, and nothing else.

In: nothing. Out: `Driver`, which `cupy_driver` implements with CuPy for a real GPU and
`cuda_emulator` with the host's compiler for tests. `programs` is all that lies above it.

Work is asynchronous and in the order of one stream, the one that is current when a call begins, to
CuPy or to the library whose arrays it is given:
only `download` and `wait` wait for it. Memory that is freed may be given out again at once, since
what uses it next comes later in the same stream.
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from pyrelay.infer.arrays.device_arrays import DeviceArray
from pyrelay.ir.types import DType
from pyrelay.lower.planning.boundary import Parameter
from pyrelay.records import dataclass

ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Text:
    """A kernel as `lower.text.emit_cuda` prints it.

    kinds: what each parameter after the record, the launch and the range is: `ADDRESS`, or the name
    of the dtype of a scalar by value (complex128 takes two words of a launch).
    """

    source: str
    kinds: tuple[str, ...]


def block_threads(source: str) -> int:
    """How many threads work on an item of the parallel axis together; 0 where each does its own."""
    return _defined(source, "BLOCK_THREADS", 0)


def pack(source: str) -> int:
    """How many items of the parallel axis a thread does at once."""
    return _defined(source, "PACK", 1)


def shared_bytes(source: str) -> int:
    """How many bytes of shared memory a launch has to ask for, for a text that says so."""
    return _defined(source, "SHARED_BYTES", 0)


def meets(source: str) -> bool:
    """Whether the blocks of a kernel wait for each other."""
    return _defined(source, "MEETS", 0) != 0


def _defined(source: str, name: str, otherwise: int) -> int:
    found = re.search(rf"^#define {name} (\d+)$", source, re.MULTILINE)
    return int(found[1]) if found else otherwise


#: What a text defines for itself.
UNDEFINED = "".join(
    f"#undef {name}\n" for name in (
        "BLOCK_THREADS", "PACK", "MEETS", "ROW_PACK", "ROW_WORD", "ROW_ELEMENTS", "HELD_BYTES",
        "SHARED_BYTES",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Product:
    """`c = a @ b`, row-major, wherever these lie: numbers of rows and columns, elements from one
    line to the next, whether an operand is transposed, and for each batch axis its extent and
    strides of a and b in elements. `of` is the type of the operands' elements, which are 16-bit
    floats or of the type `dtype` of the result."""

    of: DType
    dtype: DType
    m: int
    n: int
    k: int
    a_turned: bool
    b_turned: bool
    a_line: int
    b_line: int
    c_line: int
    batch: tuple[tuple[int, int, int], ...]


Taken = tuple[Sequence[int], Mapping[int, int]]
"""Arguments as a plan has them: their words, and the bytes at each address among these."""


@dataclass(frozen=True, slots=True)
class Ready:
    """A launch whose words lie ready: `block` of them, the table of their places, what issues it,
    which raises RuntimeError, and what that takes before the stream and behind it.
    """

    block: Any
    table: Any
    issue: Callable[..., Any]
    before: tuple[int, ...]
    behind: tuple[int, ...]


class Told(ABC):
    """A word of the host's that work in a stream writes."""

    word: Any
    """The word, as number 0 of a sequence."""
    address: int

    @abstractmethod
    def wait(self) -> None:
        """Wait until the word, which was below 0, is not. Ctrl-C is looked for meanwhile. Raises
        DeviceError."""


@dataclass(frozen=True, slots=True)
class Issuing:
    """What a function that is written for a call does on a device.

    allocate: bytes -> an object of memory with its address as `ptr`; it raises `exhausted`. kept:
    bytes -> an address and its owner. ready: a kernel, how many items it is for, its words, None
    for those that are put into its block before each launch, and how many blocks of it meet, 0 for
    none -> a `Ready`. current: the stream that is current, as `ptr`. own: the class
    of arrays, of extents, dtype and memory, None for those that `array` makes (`Driver.array`).
    zero: an address, 0, bytes, a stream. copy: an address, that of the source, bytes, `on_device`
    or `to_host`, a stream. told: a new word that such a copy writes.
    capture: a graph of what a function launches into the stream that it is given; it raises
    CannotCaptureError. The others are those of `Driver`.
    """

    allocate: Callable[[int], Any]
    exhausted: type[Exception]
    kept: Callable[[int], tuple[int, Any]]
    ready: Callable[[Any, int, Sequence[int | None], int], Ready]
    current: Callable[[], Any]
    own: Any
    array: Callable[..., Any]
    zero: Callable[[int, int, int, int], Any]
    copy: Callable[[int, int, int, int, int], Any]
    on_device: int
    to_host: int
    told: Callable[[], Told]
    multiply: Callable[..., bool]
    capture: Callable[[Callable[[int], None]], Any]
    replay: Callable[[Any], None]


class OutOfDeviceMemory(MemoryError):
    """The device has no memory left."""


class CannotCaptureError(Exception):
    """The device does not take some work into a graph."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """What one unit cost: its kernels, and when the compiler began and ended with it, in seconds of
    `time.perf_counter`; the same moment where the disk had it."""

    texts: tuple[Text, ...]
    began: float
    ended: float

    @property
    def kernels(self) -> int:
        """How many there are."""
        return len(self.texts)

    @property
    def seconds(self) -> float:
        """Of the compiler, those included that it waited for another unit of its process."""
        return self.ended - self.began


def by_the_clock(compilations: Iterable[Compilation]) -> float:
    """In how many seconds any of these was being compiled."""
    total = until = 0.0
    for each in sorted(compilations, key=lambda each: each.began):
        total += max(each.ended - max(each.began, until), 0.0)
        until = max(until, each.ended)
    return total


def _itself(made: Any) -> Any:
    return made


class Driver(ABC):
    """One GPU, or what stands for one. number: its own among those of the machine. is_only: whether
    there are no others. meeting: how many blocks may wait for each other, 1 where there are no such
    launches. compilations: what was compiled or read from disk so far. own: the class of arrays of
    the library that it is driven by; None where it has none."""

    name: str
    number: int = 0
    is_only: bool = True
    meeting: int = 1
    own: Any = None
    compilations: Sequence[Compilation] = ()

    # -- memory --------------------------------------------------------------------------------

    @abstractmethod
    def allocate(self, nbytes: int) -> tuple[int, Any]:
        """The address of fresh memory, and the object whose end frees it.

        Raises OutOfDeviceMemory.
        """

    @abstractmethod
    def part(self, owner: Any, start: int) -> Any:
        """The owner of memory that lies inside of another's, so many bytes from its beginning; it
        keeps all of it."""

    @abstractmethod
    def upload(self, address: int, array: np.ndarray[Any, Any]) -> None:
        """Copy a C-contiguous array of the host; it may change when this has returned."""

    @abstractmethod
    def download(self, array: np.ndarray[Any, Any], address: int) -> None:
        """Fill a C-contiguous array of the host; waits for all work before."""

    @abstractmethod
    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy within the device; the two may not overlap unless they are the same."""

    @abstractmethod
    def zero(self, address: int, nbytes: int) -> None:
        """Fill with zeros."""

    # -- work ----------------------------------------------------------------------------------

    @abstractmethod
    def load(self, texts: Sequence[Text]) -> list[Any]:
        """Compile kernels; what `launch` takes. Raises DeviceError."""

    def begin(
        self, texts: Sequence[Text], told: list[Compilation]
    ) -> list[Callable[[], Any]]:
        """Begin to compile kernels, by threads if there are some; for each what waits for it and
        gives what `load` does. told: to where compilations are added when they are done."""
        return [functools.partial(_itself, made) for made in self.load(texts)]

    @abstractmethod
    def launch(self, function: Any, items: int, words: Sequence[int], stream: int) -> None:
        """Run a kernel over `items` > 0 items in a stream; words are those of all its parameters.
        """

    @abstractmethod
    def resident(self, function: Any) -> int:
        """How many blocks of a kernel that `meets` may do so: `meeting`, or 1 if it is too large.
        """

    @abstractmethod
    def launch_meeting(
        self, function: Any, blocks: int, words: Sequence[int], stream: int
    ) -> None:
        """Run a kernel with so many blocks, `resident` ones at most, which wait for each other."""

    @abstractmethod
    def product(self, product: Product) -> Any:
        """What `multiply` takes, under the settings of now; None if the device's library has none
        of these."""

    @abstractmethod
    def multiply(self, prepared: Any, a: int, b: int, c: int, stream: int) -> bool:
        """A product of matrices at these addresses, by the device's library; False if it has no
        memory for what it needs itself."""

    def later(self, work: Callable[[], None]) -> None:
        """Do what no call waits for, such as compiling a kernel that would be faster: at once, or
        by a thread."""
        work()

    @abstractmethod
    def wait(self) -> None:
        """Wait for all work; Ctrl-C is looked for meanwhile."""

    @property
    @abstractmethod
    def stream(self) -> int:
        """The stream that is current now."""

    @property
    @abstractmethod
    def stop_word(self) -> int:
        """What kernels that run long look at: the record's `stop`."""

    # -- graphs --------------------------------------------------------------------------------

    @abstractmethod
    def capture(self, issue: Callable[[], None]) -> Any:
        """What `issue` launches and copies, to be replayed; nothing of it is done.

        Raises CannotCaptureError.
        """

    @abstractmethod
    def replay(self, graph: Any) -> None:
        """Do what was captured."""

    # -- arrays --------------------------------------------------------------------------------

    @abstractmethod
    def follow(self, array: DeviceArray) -> None:
        """What comes is to wait for the work on an array that its library has begun."""

    def home(self, array: DeviceArray) -> int:
        """The number of the GPU on which an array that is not empty lies."""
        return self.number

    @abstractmethod
    def beside(self, kind: type) -> AbstractContextManager[Any]:
        """Inside, this device is the current one, and work goes where the library of a class of
        arrays sends its own."""

    @abstractmethod
    def lend(self, arrays: Sequence[Any]) -> None:
        """What a call was given, behind its work: it lives until the device has done with it."""

    def taking(
        self, parameters: Sequence[Parameter], kind: type
    ) -> Callable[..., Taken | None] | None:
        """A function that takes arguments for these parameters of a plan where all arrays among
        them are of this class, lie here and are as programs read them; it gives None for others.
        None where there is no such function."""
        return None

    def issuing(self, kind: type) -> Issuing:
        """What calls with arrays of a class are recorded with (`recorded_calls`); of drivers that
        have a class of arrays of their `own`."""
        raise NotImplementedError

    @abstractmethod
    def gathered(self, array: DeviceArray) -> tuple[int, Any]:
        """A C-contiguous copy of an array: its address and owner. Raises OutOfDeviceMemory."""

    @abstractmethod
    def scattered(self, array: DeviceArray, owner: Any) -> None:
        """Write back what `gathered` gave."""

    @abstractmethod
    def array(
        self, address: int, owner: Any, dtype: np.dtype[Any], shape: tuple[int, ...], like: Any
    ) -> Any:
        """An array of the library that `like` is of, over memory of the device."""
