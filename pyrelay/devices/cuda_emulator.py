"""CUDA without a GPU: the source that a GPU would run, compiled by the host's C++ compiler.

In: texts of kernels as `lower.text.emit_cuda` prints them. Out: `EmulatorDriver`, whose device
memory is the host's, and `DEVICE`. Memory starts as garbage, and is garbage again when it has been
freed; an index outside of a buffer is an error.

The kernels of one plan are one translation unit, and its machine code is kept in the disk cache
under a digest of everything that was compiled. `cuda_emulator_header` says how threads run.
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
from pyrelay.devices.gpu.cuda_emulator_header import AFTER, BEFORE
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.cuda_prelude import BLOCKS, PRELUDE
from pyrelay.devices.gpu.driver import UNDEFINED, Driver, Product, Text, block_threads, meets
from pyrelay.devices.gpu.kernel_listing import listing
from pyrelay.devices.gpu.programs import loaded_by
from pyrelay.devices.gpu.row_geometry import rows_of, shape_of
from pyrelay.errors import DeviceError, InvariantError
from pyrelay.infer.arrays.device_arrays import DeviceArray
from pyrelay.ir.types import DType

KIND = "cuda_emulator"
"""The cache's name for the machine code."""

# -ffp-contract=off: products and sums round as in plain Python; -fwrapv: integers wrap around;
# -U_FORTIFY_SOURCE: jumps from one fiber's stack to another's are no errors.
_OPTIONS = (
    "-x", "c++", "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-fwrapv", "-ffp-contract=off",
    "-fno-math-errno", "-fvisibility=hidden", "-U_FORTIFY_SOURCE",
)  # fmt: skip
_LAUNCH = ctypes.PYFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)
_functions: dict[str, Any] = {}
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


def load(sources: Sequence[str]) -> list[Any]:
    """The host functions of kernels (`unit`); those not yet known are compiled together.

    Raises DeviceError where there is no C++ compiler or it rejects the text.
    """
    with _lock:
        fresh = [each for each in dict.fromkeys(sources) if each not in _functions]
        if fresh:
            library = _library(unit(fresh))
            for number, source in enumerate(fresh):
                _functions[source] = _LAUNCH((f"pyrelay_launch{number}", library))
        return [_functions[each] for each in sources]


def unit(sources: Sequence[str]) -> str:
    """The translation unit of some kernels and, for each, a host function that runs a grid of it:
    (words, bytes of the buffers at such addresses, blocks, threads of each, the order in which
    blocks that meet take turns) -> 0 or a fault."""
    parts = [BEFORE, PRELUDE, BLOCKS, AFTER]
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


def _library(text: str) -> ctypes.CDLL:
    path = compiler()
    if path is None:
        raise DeviceError(
            "device 'cuda_emulator' needs a C++ compiler, and none is found.",
            notes=("it looks for $CXX, c++, g++ and clang++.",),
            hints=("install g++, or use device='cpu'",),
        )
    digest = hashlib.sha256("\0".join((_version(path), *_OPTIONS, text)).encode()).hexdigest()
    store = cache.current()
    code = store.get(KIND, digest)
    if code is None:
        code = _compiled(path, text)
        store.put(KIND, digest, code)
    with tempfile.TemporaryDirectory(prefix="pyrelay-") as directory:
        file = Path(directory) / "kernels.so"
        file.write_bytes(code)
        return ctypes.CDLL(str(file))


def _compiled(path: str, text: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="pyrelay-") as directory:
        target = Path(directory) / "kernels.so"
        command = [path, *_OPTIONS, "-", "-o", str(target), "-lm"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DeviceError(
                f"{path} does not compile the kernels of this program.", notes=(done.stderr,)
            )
        return target.read_bytes()


# -- the driver ------------------------------------------------------------------------------------

THREADS, MOST_BLOCKS, MEETING, MOST_TOGETHER = 32, 4, 3, 64

ORDERS = range(4)
"""Last to first or first to last; side by side, or each as far as it gets before the next one."""

_ALIGNED = 64
_FRESH, _FREED = 0xA5, 0xEE
_MOST_IDLE = 8  # blocks of one size
_ANY_SIZE = 2**62
_FAULTS = {
    90: "a kernel's index lies outside of its buffer",
    91: "a barrier is not reached by all",
    92: "several elements are accessed together at an address that is not one of whole packs",
    93: "tensor cores are given numbers that are not rounded",
}


class _Memory:
    """Bytes that stand for memory of a GPU."""

    def __init__(self, block: np.ndarray[Any, Any]) -> None:
        block.fill(_FRESH)
        self.bytes = block
        self.address = -(-block.ctypes.data // _ALIGNED) * _ALIGNED


class _Pool:
    """Freed blocks by their size, given out again last in first out, as CuPy's pool does."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}  # of live buffers, by address
        self.idle: dict[int, list[np.ndarray[Any, Any]]] = {}

    def take(self, nbytes: int) -> _Memory:
        waiting = self.idle.get(nbytes)
        memory = _Memory(waiting.pop() if waiting else np.empty(nbytes + _ALIGNED, np.uint8))
        self.sizes[memory.address] = nbytes
        weakref.finalize(memory, self.give, nbytes, memory.address, memory.bytes).atexit = False
        return memory

    def give(self, nbytes: int, address: int, block: np.ndarray[Any, Any]) -> None:
        del self.sizes[address]
        block.fill(_FREED)
        waiting = self.idle.setdefault(nbytes, [])
        if len(waiting) < _MOST_IDLE:
            waiting.append(block)


class EmulatorDriver(Driver):
    """The host as a GPU. Work is done at once; what is captured is done when it is replayed.

    turns: the order in which blocks that meet take turns (`ORDERS`).
    """

    name = "the emulated GPU"

    def __init__(self) -> None:
        self.pool = _Pool()
        self.sizes = self.pool.sizes
        self.turns = 0
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
        functions = load([text.source for text in texts])
        return [
            (f, block_threads(t.source), rows_of(t.source))
            for f, t in zip(functions, texts, strict=True)
        ]

    def launch(self, function: Any, items: int, words: Sequence[int], stream: int) -> None:
        _, together, _ = function
        blocks = min(MOST_BLOCKS, items if together else -(-items // THREADS))
        self._do(lambda: self._run(function, blocks, words))

    def resident(self, function: Any) -> int:
        return MEETING

    def launch_meeting(
        self, function: Any, blocks: int, words: Sequence[int], stream: int
    ) -> None:
        self._do(lambda: self._run(function, blocks, words))

    def _run(self, made: Any, blocks: int, words: Sequence[int]) -> None:
        function, together, rows = made
        block = np.array(words, np.int64)
        size = self.sizes.get
        sizes = np.array([size(word, _ANY_SIZE) for word in words], np.int64)
        threads = together or THREADS
        if rows is not None:
            elements = rows.elements if rows.word is None else words[4 + rows.word]
            threads = min(shape_of(rows, elements, 0, 1024).threads, MOST_TOGETHER)
        fault = function(block.ctypes.data, sizes.ctypes.data, blocks, threads, self.turns)
        if fault:
            raise InvariantError(f"{_FAULTS.get(fault, fault)}.")

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
