"""CUDA without a GPU: the source that a GPU would run, compiled by the host's C++ compiler.

In: texts of kernels as `lower.text.emit_cuda` prints them. Out: `EmulatorDriver`, whose device
memory is the host's, and `DEVICE`. Memory starts as garbage, and is garbage again when it has been
freed; an index outside of a buffer is an error.

The kernels of one plan are one translation unit, and its machine code is kept in the disk cache
under a digest of everything that was compiled. `cuda_emulator_header` says how threads run. A
driver that is `watched` has units of its own, in which accesses that nothing orders are errors
(`cuda_emulator_races`).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from pyrelay.devices import cache
from pyrelay.devices.base import Device
from pyrelay.devices.gpu import cuda_emulator_races as races
from pyrelay.devices.gpu.cuda_emulator_header import AFTER, BEFORE
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.cuda_prelude import BLOCKS, PRELUDE
from pyrelay.devices.gpu.driver import UNDEFINED, Driver, Product, Text, block_threads, meets
from pyrelay.devices.gpu.kernel_listing import listing
from pyrelay.devices.gpu.programs import loaded_by
from pyrelay.devices.gpu.row_geometry import Limits, rows_of, shape_of
from pyrelay.errors import DeviceError, InvariantError
from pyrelay.infer.arrays.device_arrays import DeviceArray
from pyrelay.ir.types import DType

KIND = "cuda_emulator"
"""The cache's name for the machine code."""

# -ffp-contract=off: products and sums round as in plain Python; -fwrapv: integers wrap around;
# -U_FORTIFY_SOURCE: jumps from one fiber's stack to another's are no errors.
_OPTIONS = (
    "-x", "c++", "-std=c++17", "-O1", "-w", "-fPIC", "-fwrapv", "-ffp-contract=off",
    "-fno-math-errno", "-fvisibility=hidden", "-U_FORTIFY_SOURCE",
)  # fmt: skip
_LAUNCH = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)
_functions: dict[tuple[str, bool], Any] = {}
_lock = threading.RLock()


def _after_fork() -> None:
    """In a child: a thread that is gone may have held the lock."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def compiler() -> str | None:
    """The path of the C++ compiler: $CXX, or c++, g++ or clang++ of the path; None without one."""
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    return None


@functools.cache
def _version(path: str) -> str:
    asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return asked.stdout


def load(sources: Sequence[str], watched: bool = False) -> list[Any]:
    """The host functions of kernels (`unit`); those not yet known are compiled together.

    Raises DeviceError where there is no C++ compiler or it rejects the text.
    """
    with _lock:
        fresh = [each for each in dict.fromkeys(sources) if (each, watched) not in _functions]
        if fresh:
            text = unit(fresh, watched)
            library, path = _library(text, watched)
            watch = Watch(library, path, text.splitlines()) if watched else None
            for number, source in enumerate(fresh):
                function = _LAUNCH((f"pyrelay_launch{number}", library))
                _functions[source, watched] = function, watch
        return [_functions[each, watched] for each in sources]


def unit(sources: Sequence[str], watched: bool = False) -> str:
    """The translation unit of some kernels and, for each, a host function that runs a grid of it:
    (words, bytes of the buffers at such addresses, blocks, threads of each, the order in which
    blocks that meet take turns) -> 0 or a fault."""
    parts = [races.WATCHED if watched else races.UNWATCHED, BEFORE, PRELUDE, BLOCKS, AFTER]
    for number, source in enumerate(sources):
        together = "GRID" if meets(source) else "BLOCK" if block_threads(source) else "THREAD"
        text = source.replace('extern "C" __global__', "__global__")
        parts.append(
            f"namespace kernel{number} {{\n{text}\n}}\n{UNDEFINED}"
            f"PYRELAY_ENTRY i64 pyrelay_launch{number}(\n"
            f"    i64 *words, i64 *bytes, i64 blocks, i64 threads, i64 turns\n) {{\n"
            f"    return pyrelay_emulator::launch(\n"
            f"        kernel{number}::kernel, pyrelay_emulator::{together}, words, bytes, blocks, "
            f"threads, turns);\n}}\n"
        )
    return "\n".join(parts)


def _library(text: str, watched: bool) -> tuple[ctypes.CDLL, Path]:
    """The machine code of a unit, and the file that it was loaded from, of which the link is gone
    unless it is watched."""
    path = compiler()
    if path is None:
        raise DeviceError(
            "device 'cuda_emulator' needs a C++ compiler, and none is found.",
            notes=("it looks for $CXX, c++, g++ and clang++.",),
            hints=("install g++, or use device='cpu'",),
        )
    key = (_version(path), *_OPTIONS, *((races.WATCH, *_watching(path)) if watched else ()), text)
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
    store = cache.current()
    code = store.get(KIND, digest)
    if code is None:
        code = _compiled(path, text, watched)
        store.put(KIND, digest, code)
    directory = tempfile.TemporaryDirectory(prefix="pyrelay-")
    file = Path(directory.name) / "kernels.so"
    file.write_bytes(code)
    library = ctypes.CDLL(str(file))
    if watched:
        _kept.append(directory)
    else:
        directory.cleanup()
    return library, file


_kept: list[Any] = []  # folders of watched units, whose lines are looked up


def _watching(path: str) -> tuple[str, ...]:
    """The options of a compiler for what is watched."""
    return (*races.OPTIONS, *races.VOLATILE["clang" in _version(path)])


def _compiled(path: str, text: str, watched: bool) -> bytes:
    with tempfile.TemporaryDirectory(prefix="pyrelay-") as directory:
        target = Path(directory) / "kernels.so"

        def run(source: str, *options: str) -> None:
            command = [path, *options]
            done = subprocess.run(
                command, input=source, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise DeviceError(
                    f"{path} does not compile the kernels of this program.", notes=(done.stderr,)
                )

        if not watched:
            run(text, *_OPTIONS, "-shared", "-", "-o", str(target), "-lm")
            return target.read_bytes()
        parts = [str(Path(directory) / name) for name in ("kernels.o", "watch.o")]
        run(text, *_OPTIONS, *_watching(path), "-c", "-", "-o", parts[0])
        run(races.WATCH, *_OPTIONS, "-O2", "-c", "-", "-o", parts[1])
        run("", *parts, "-shared", "-o", str(target), "-lm")
        return target.read_bytes()


class Watch:
    """What a watched unit tells: `library` was loaded from `file` and compiled from these lines."""

    def __init__(self, library: ctypes.CDLL, file: Path, lines: Sequence[str]) -> None:
        self.file, self.lines = file, lines
        longs = ctypes.POINTER(ctypes.c_int64)
        self.begin = library.pyrelay_watch_memory
        self.begin.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
        self.begin.restype = None
        self.told = library.pyrelay_watch_told
        self.told.restype = longs
        library.pyrelay_watch_origin.restype = ctypes.c_int64
        self.origin = library.pyrelay_watch_origin()

    def text(self) -> str:
        """The first two accesses that nothing orders, or the one at fault."""
        what, _, earlier, later, block, thread, other_block, other = self.told()[:8]
        first, second = self._line(earlier), self._line(later)
        told = races.WHAT[what]
        if what == races.ALONE:
            return f"{told}: thread {other} of block {other_block} at\n    {second}"
        return (
            f"{told}: thread {thread} of block {block} at\n    {first}\nand thread {other} of "
            f"block {other_block} at\n    {second}\nwith nothing between them that orders these"
        )

    def _line(self, distance: int) -> str:
        """The line of the text to which an access belongs."""
        if distance >= 2**31:
            distance -= 2**32
        if shutil.which("addr2line") is None:
            return "a line that addr2line of binutils would tell"
        at = self.origin + distance - 1
        asked = subprocess.run(
            ["addr2line", "-i", "-e", str(self.file), hex(at)],
            capture_output=True, text=True, check=False,
        )
        found = []
        for each in asked.stdout.split():
            number = each.rpartition(":")[2]
            if number.isdecimal() and 0 < int(number) <= len(self.lines):
                found.append(self.lines[int(number) - 1].strip())
        return " <- ".join(found) or "an unknown line"


# -- the driver ------------------------------------------------------------------------------------

THREADS, MOST_BLOCKS, MEETING, MOST_TOGETHER = 32, 4, 3, 64

ORDERS = range(4)
"""Last to first or first to last; side by side, or each as far as it gets before the next one."""

INTERRUPTED = 4
"""Added to an order: watched threads are interrupted at their accesses."""

_ALIGNED = 64
_FRESH, _FREED = 0xA5, 0xEE
_MOST_IDLE = 8  # blocks of one size
_ANY_SIZE = 2**62
_RECORD_BYTES = 21 * 8
_FAULTS = {
    90: "a kernel's index lies outside of its buffer",
    91: "a barrier is not reached by all",
    92: "several elements are accessed together at an address that is not one of whole packs",
    93: "tensor cores are given numbers that are not rounded",
    94: "threads wait for each other at different places, or only some lanes of a warp do",
    95: "a block takes more shared memory than there is",
}


class _Memory:
    """Bytes that stand for memory of a GPU."""

    def __init__(self, block: np.ndarray[Any, Any]) -> None:
        block.fill(_FRESH)
        self.bytes = block
        self.address = -(-block.ctypes.data // _ALIGNED) * _ALIGNED


class _Pool:
    """Freed blocks by their size, given out again last in first out, as CuPy's pool does.

    part: bytes that blocks are multiples of. CuPy's are of 512, so that an array of another size
    lies where one was a moment ago.
    """

    part = 1

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}  # of live buffers, by address
        self.idle: dict[int, list[np.ndarray[Any, Any]]] = {}

    def take(self, nbytes: int) -> _Memory:
        room = -(-nbytes // self.part) * self.part
        waiting = self.idle.get(room)
        block = waiting.pop() if waiting else np.empty(room + _ALIGNED, np.uint8)
        memory = _Memory(block)
        self.sizes[memory.address] = nbytes
        weakref.finalize(memory, self.give, room, memory.address, memory.bytes).atexit = False
        return memory

    def give(self, room: int, address: int, block: np.ndarray[Any, Any]) -> None:
        del self.sizes[address]
        block.fill(_FREED)
        waiting = self.idle.setdefault(room, [])
        if len(waiting) < _MOST_IDLE:
            waiting.append(block)


class EmulatorDriver(Driver):
    """The host as a GPU. Work is done at once; what is captured is done when it is replayed.

    turns: the order in which blocks that meet take turns (`ORDERS`); in a watched driver all do.
    watched: whether accesses that nothing orders are errors; for what is loaded from then on.
    """

    name = "the emulated GPU"
    meeting = MEETING
    turns = 0
    watched = False

    def __init__(self) -> None:
        self.pool = _Pool()
        self.sizes = self.pool.sizes
        self.watches = 0
        self.recorded: list[Callable[[], None]] | None = None

    def allocate(self, nbytes: int) -> tuple[int, Any]:
        memory = self.pool.take(nbytes)
        return memory.address, memory

    def part(self, owner: Any, start: int) -> Any:
        return owner, start

    def upload(self, address: int, array: np.ndarray[Any, Any]) -> None:
        self._not_captured("an array of the host")
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array: np.ndarray[Any, Any], address: int) -> None:
        self._not_captured("a value that the host needs")
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self._do(lambda: ctypes.memmove(target, source, nbytes))

    def zero(self, address: int, nbytes: int) -> None:
        self._do(lambda: ctypes.memset(address, 0, nbytes))

    def load(self, texts: Sequence[Text]) -> list[Any]:
        functions = load([text.source for text in texts], self.watched)
        return [
            (f, block_threads(t.source), rows_of(t.source))
            for f, t in zip(functions, texts, strict=True)
        ]

    def launch(self, function: Any, items: int, words: Sequence[int], stream: int) -> None:
        _, together, _ = function
        blocks = min(MOST_BLOCKS, items if together else -(-items // THREADS))
        self._do(lambda: self._run(function, blocks, words))

    def resident(self, function: Any) -> int:
        return self.meeting

    def launch_meeting(
        self, function: Any, blocks: int, words: Sequence[int], stream: int
    ) -> None:
        self._do(lambda: self._run(function, blocks, words))

    def _run(self, made: Any, blocks: int, words: Sequence[int]) -> None:
        (function, watch), together, rows = made
        block = np.array(words, np.int64)
        size = self.sizes.get
        sizes = np.array([size(word, _ANY_SIZE) for word in words], np.int64)
        threads = together or THREADS
        if rows is not None:
            elements = rows.elements if rows.word is None else words[4 + rows.word]
            threads = min(shape_of(rows, elements, Limits(0, 1024)).threads, MOST_TOGETHER)
        if watch is not None:
            kept = self._watched_memory(words[0])
            watch.begin(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in kept))
        fault = function(block.ctypes.data, sizes.ctypes.data, blocks, threads, self.turns)
        if fault:
            told = _FAULTS.get(fault) or (watch.text() if watch is not None else fault)
            raise InvariantError(f"{told}.")

    def _watched_memory(self, record: int) -> tuple[Any, int, Any, int]:
        """The bounds of all buffers in order, how many there are, those of the record, and a number
        to begin chances with."""
        self.watches += 1
        bounds = np.array([(a, a + n) for a, n in sorted(self.sizes.items())], np.int64)
        skipped = np.array([record, record + _RECORD_BYTES], np.int64)
        return bounds, len(bounds), skipped, self.watches

    def product(self, product: Product) -> Any:
        return product

    def multiply(self, prepared: Any, a: int, b: int, c: int, stream: int) -> bool:
        self._do(lambda: _multiply(prepared, a, b, c))
        return True

    def wait(self) -> None:
        pass

    @property
    def stream(self) -> int:
        return 0

    @property
    def stop_word(self) -> int:
        return ctypes.cast(ctypes.pythonapi.PyErr_CheckSignals, ctypes.c_void_p).value or 0

    def capture(self, issue: Callable[[], None]) -> Any:
        self.recorded = []
        try:
            issue()
            return self.recorded
        finally:
            self.recorded = None

    def replay(self, graph: Any) -> None:
        for each in graph:
            each()

    def _do(self, work: Callable[[], Any]) -> None:
        if self.recorded is not None:
            self.recorded.append(work)
        else:
            work()

    def _not_captured(self, what: str) -> None:
        if self.recorded is not None:
            raise InvariantError(f"a graph cannot hold {what}.")

    def follow(self, array: DeviceArray) -> None:
        raise InvariantError("the emulator takes arrays of the host.")

    def beside(self, kind: type) -> AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def lend(self, arrays: Sequence[Any]) -> None:
        pass  # a call has done its work when it comes back

    def gathered(self, array: DeviceArray) -> tuple[int, Any]:
        raise InvariantError("the emulator takes arrays of the host.")

    def scattered(self, array: DeviceArray, owner: Any) -> None:
        raise InvariantError("the emulator takes arrays of the host.")

    def array(
        self, address: int, owner: Any, dtype: np.dtype[Any], shape: tuple[int, ...], like: Any
    ) -> Any:
        raise InvariantError("the emulator gives arrays of the host.")


def _multiply(p: Product, at_a: int, at_b: int, at_c: int) -> None:
    """The product by NumPy, over views of the operands."""
    batch = tuple(extent for extent, _, _ in p.batch)

    def matrices(
        address: int, rows: int, columns: int, line: int, along: Sequence[int], dtype: DType
    ) -> Any:
        size = dtype.size
        shape = (*batch, rows, columns)
        strides = (*(size * s for s in along), size * line, size)
        last = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + size
        memory: Any = (ctypes.c_uint8 * last).from_address(address)
        flat = np.frombuffer(memory, dtype.numpy)
        return np.lib.stride_tricks.as_strided(flat, shape, strides)

    a_shape = (p.k, p.m) if p.a_turned else (p.m, p.k)
    b_shape = (p.n, p.k) if p.b_turned else (p.k, p.n)
    a = matrices(at_a, *a_shape, p.a_line, [s for _, s, _ in p.batch], p.of)
    b = matrices(at_b, *b_shape, p.b_line, [s for _, _, s in p.batch], p.of)
    along = [p.m * p.c_line] * len(batch)
    for k in reversed(range(len(batch) - 1)):
        along[k] = along[k + 1] * batch[k + 1]
    c = matrices(at_c, p.m, p.n, p.c_line, along, p.dtype)
    a = a.swapaxes(-1, -2) if p.a_turned else a
    b = b.swapaxes(-1, -2) if p.b_turned else b
    half = p.of.size == 2  # added up in float32
    np.matmul(a, b, out=c, dtype=np.float32 if half else p.dtype.numpy, casting="same_kind")


DRIVER = EmulatorDriver()
DEVICE = Device(KIND, TARGET, loaded_by(lambda: DRIVER), shown=listing)
