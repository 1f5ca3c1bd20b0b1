"""A stand-in for CuPy: the part of its interface that `cupy_driver` uses, on the host.

Kernels are compiled by the emulator from the very unit that NVRTC would get. What is passed by
value is checked against the size of the parameter, and all that is launched or copied is noted.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu.cuda_prelude import BLOCKS, DEVICE, PRELUDE
from pyrelay.devices.gpu.driver import Text, meets

H2D, D2H, D2D = 1, 2, 3
PROCESSORS, COOPERATIVE = 2, 95
OPT_IN, SHARED = 97, 227 * 1024  # the most bytes of shared memory of a block
OF_ALL, BESIDE = 81, 111  # bytes of shared memory of all blocks of a multiprocessor, CUDA's own
SIZES = {
    "bool": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "f16": 2, "bf16": 2, "i32": 4, "u32": 4,
    "f32": 4, "i64": 8, "u64": 8, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip


class CrowdedError(RuntimeError):
    """CUDADriverError with its status for no memory."""

    status = 2


class OutOfMemoryError(MemoryError):
    """cupy.cuda.memory.OutOfMemoryError."""


class CompileException(Exception):
    """cupy.cuda.compiler.CompileException."""


class MemoryPointer:
    """cupy.cuda.MemoryPointer: lives as long as something refers to it."""

    def __init__(self, machine: Machine, nbytes: int) -> None:
        self.ptr, self.owner = machine.memory.allocate(nbytes)
        self.size, self.device_id = nbytes, machine.number
        machine.homes[self.ptr] = machine.number

    def __add__(self, start: int) -> MemoryPointer:
        assert 0 <= start < self.size
        made = object.__new__(MemoryPointer)
        made.ptr, made.owner, made.size = self.ptr + start, self.owner, self.size - start
        made.device_id = self.device_id
        return made


class Stream:
    """cupy.cuda.Stream."""

    def __init__(self, machine: Machine, ptr: int) -> None:
        self.machine, self.ptr = machine, ptr
        self.done = True

    def __enter__(self) -> Stream:
        self.machine.streams.append(self)
        return self

    def __exit__(self, *_: Any) -> None:
        assert self.machine.streams.pop() is self

    def begin_capture(self) -> None:
        assert self.ptr != 0, "cannot capture on the default stream"
        self.machine.captured = []

    def end_capture(self) -> Any:
        made, self.machine.captured = self.machine.captured, None
        assert made is not None
        machine = self.machine

        def launch(stream: Any = None) -> None:
            machine.replays += 1
            for each in made:
                each()

        return SimpleNamespace(launch=launch)

    def synchronize(self) -> None:
        self.machine.synchronized += 1
        if self.machine.status:
            raise RuntimeError("cudaErrorIllegalAddress")

    def record(self) -> Event:
        return Event(("event", self.ptr), self.machine)

    def wait_event(self, event: Any) -> None:
        self.machine.waited.append((self.ptr, event))


class Event(tuple[Any, ...]):
    """cupy.cuda.Event: done where the machine says so."""

    machine: Machine

    def __new__(cls, told: tuple[Any, ...], machine: Machine) -> Event:
        made = super().__new__(cls, told)
        made.machine = machine
        return made

    @property
    def done(self) -> bool:
        self.machine.asked_events += 1
        return self.machine.idle


class Streams:
    """The class cupy.cuda.Stream, as far as it is called."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def __call__(self, *, non_blocking: bool) -> Stream:
        assert non_blocking
        return Stream(self.machine, 7)

    def from_external(self, other: Any) -> Stream:
        version, ptr = other.__cuda_stream__()
        assert version == 0
        return Stream(self.machine, ptr)


class ndarray:  # noqa: N801 -- CuPy's name
    """cupy.ndarray, as far as arrays are passed on."""

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None) -> None:
        self.shape, self.dtype, self.data = tuple(shape), np.dtype(dtype), memptr
        self.strides: tuple[int, ...] | None = None
        self.stream: int | None = 1

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=int)) * self.dtype.itemsize

    @property
    def _c_contiguous(self) -> bool:
        return self.strides is None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape, "typestr": self.dtype.str, "data": (self.data.ptr, False),
            "version": 3, "strides": self.strides, "stream": self.stream,
        }

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        """What other libraries take it over by; no stream is 0, and -1 waits for nothing."""
        assert stream is None or stream == -1 or stream > 0
        return SimpleNamespace(content=(self, stream))

    def view(self) -> Any:
        """The elements, as an array of NumPy's over the same memory."""
        if self.strides is None:
            count = int(np.prod(self.shape, dtype=int))
            memory: Any = (ctypes.c_uint8 * (count * self.dtype.itemsize)).from_address(
                self.data.ptr
            )
            return np.frombuffer(memory, self.dtype).reshape(self.shape)
        memory = (ctypes.c_uint8 * self.data.size).from_address(self.data.ptr)
        flat = np.frombuffer(memory, self.dtype)
        return np.lib.stride_tricks.as_strided(flat, self.shape, self.strides)

    def get(self) -> Any:
        return self.view().copy()


class Function:
    """cupy.cuda.function.Function: what its handle is launched with."""

    def __init__(self, machine: Machine, name: str, source: str) -> None:
        self.machine, self.name, self.source = machine, name, source
        self.home = machine.number
        head = re.search(r"void kernel\((.*?)\) *\{", source, re.DOTALL)
        assert head is not None
        self.parameters = [p.strip() for p in head[1].split(",")]
        (((self.function, _), _, _),) = machine.memory.load([Text(source, ())])
        self.ptr = id(self)
        self.most_shared = 48 * 1024
        self.asked = 0
        machine.functions[self.ptr] = self

    def launched(self, blocks: int, threads: int, places: int, together: bool) -> None:
        """Run it with the parameters that lie at the addresses of a table."""
        words: list[int] = []
        for number, declared in enumerate(self.parameters):
            kind = declared.rpartition(" ")[0].strip()
            size = 8 if "*" in declared or "Buffer" in kind else SIZES[kind]
            place = ctypes.c_void_p.from_address(places + 8 * number).value or 0
            raw = ctypes.string_at(place, size).ljust(-(-size // 8) * 8, b"\0")
            words += np.frombuffer(raw, np.int64).tolist()
        assert 1 <= threads <= 1024
        assert 1 <= blocks < 2**31
        if meets(self.source) and blocks > 1:
            assert together, "only such launches run all blocks at the same time"
        if together:
            assert blocks <= PROCESSORS, "cudaErrorCooperativeLaunchTooLarge"

        def run() -> None:
            self.machine.launches.append((self.name, blocks, threads))
            self.machine.ran_on.append(self.home)
            array = np.array(words, np.int64)
            size, home = self.machine.memory.sizes.get, self.machine.homes.get
            assert all(home(word) in (self.home, None) for word in words if word in (
                self.machine.memory.sizes
            )), "memory of another device"
            sizes = np.array([size(w, 2**62) for w in words], np.int64)
            fault = self.function(
                array.ctypes.data, sizes.ctypes.data, blocks, threads, 0,
            )
            assert fault == 0

        self.machine.do(run)


class Module:
    """cupy.cuda.function.Module."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.found = machine, {}  # type: ignore[var-annotated]

    def load(self, cubin: bytes) -> None:
        assert type(cubin) is bytes
        if self.machine.crowded:
            self.machine.crowded -= 1
            raise CrowdedError("CUDA_ERROR_OUT_OF_MEMORY: out of memory")
        code = cubin.decode()
        self.found = dict(re.findall(r"namespace unit(\d+) \{\n(.*?)\n\}\n#undef", code, re.DOTALL))

    def get_function(self, name: str) -> Function:
        source = self.found[name.removeprefix("kernel")].replace(f"void {name}(", "void kernel(")
        return Function(self.machine, name, source)


class Machine:
    """A GPU as CuPy shows it: `cupy` is the module."""

    def __init__(self, memory_bytes: int = 2**62, devices: int = 1) -> None:
        self.number_of, self.current = devices, threading.local()
        self.homes: dict[int, int] = {}  # the device of all that was ever allocated, by address
        self.ran_on: list[int] = []  # the devices of all launches
        self.current_in: list[int] = []  # devices that threads are told to use
        self.status = 0  # of the stream, as cudaStreamQuery answers
        self.cleared: list[int] = []  # by check_status
        self.limits = {0: 1024}
        self.memory = cuda_emulator.EmulatorDriver()
        self.memory.watched = False
        self.limit = memory_bytes
        self.null = Stream(self, 0)
        self.streams = [self.null]
        self.captured: list[Any] | None = None
        self.launches: list[tuple[str, int, int]] = []
        self.copies: list[int] = []
        self.functions: dict[int, Function] = {}  # by handle
        self.idle, self.asked_events = True, 0
        self.units: list[str] = []
        self.crowded = 0  # modules that are refused for want of memory
        self.emptied = 0  # how often memory was taken from the pool
        self.waited: list[Any] = []  # a stream and the event that it waits for
        self.replays = self.synchronized = 0
        runtime = SimpleNamespace(
            driverGetVersion=lambda: 13010, runtimeGetVersion=lambda: 13020,
            getDeviceCount=lambda: self.number_of, memcpyHostToDevice=H2D, memcpyDeviceToHost=D2H,
            getDeviceProperties=lambda k: {"name": b"Fake GPU", "multiProcessorCount": PROCESSORS},
            cudaDevAttrCooperativeLaunch=COOPERATIVE,
            cudaDevAttrMaxSharedMemoryPerBlockOptin=OPT_IN,
            cudaDevAttrMaxSharedMemoryPerMultiprocessor=OF_ALL,
            cudaDevAttrReservedSharedMemoryPerBlock=BESIDE,
            deviceGetAttribute=lambda which, device: {
                COOPERATIVE: 1, OPT_IN: SHARED, OF_ALL: SHARED + 1024, BESIDE: 1024,
            }[which],
            memcpyDeviceToDevice=D2D, memcpyAsync=self.memcpy, memsetAsync=self.memset,
            streamSynchronize=lambda stream: self.null.synchronize(),
            streamQuery=lambda stream: self.status, getDevice=lambda: self.number,
            check_status=self.check_status, setDevice=self.set_device,
            deviceGetLimit=self.limits.get, deviceSetLimit=self.limits.__setitem__,
            memGetInfo=lambda: (3 << 20, 7 << 20),
            pointerGetAttributes=lambda address: SimpleNamespace(device=self.homes[address]),
        )  # fmt: skip
        self.cupy = SimpleNamespace(
            ndarray=ndarray, asarray=self.asarray, copyto=self.copyto,
            ascontiguousarray=self.ascontiguousarray, __version__="fake",
            get_default_memory_pool=lambda: SimpleNamespace(free_all_blocks=self.empty),
            cuda=SimpleNamespace(
                runtime=runtime, alloc=self.alloc,
                Device=lambda number=None: SimpleNamespace(compute_capability="90"),
                function=SimpleNamespace(Module=lambda: Module(self)),
                alloc_pinned_memory=self.pinned, Stream=Streams(self),
                driver=SimpleNamespace(
                    occupancyMaxActiveBlocksPerMultiprocessor=self.fit,
                    launchKernel=self.launch, launchCooperativeKernel=self.launch_together,
                    funcGetAttribute=lambda attribute, function: {0: 512, 1: 256}[attribute],
                    funcSetAttribute=self.set_attribute, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES=1,
                    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK=0,
                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
                ),
                get_current_stream=lambda: self.streams[-1],
                memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
                compiler=SimpleNamespace(
                    CompileException=CompileException, compile_using_nvrtc=self.compile,
                    nvrtc=SimpleNamespace(getVersion=lambda: (13, 0)),
                ),
            ),
        )

    def empty(self) -> None:
        """Take from the pool what nothing uses."""
        self.emptied += 1

    @property
    def number(self) -> int:
        """The device of the thread."""
        return getattr(self.current, "number", 0)

    @number.setter
    def number(self, number: int) -> None:
        self.current.number = number

    def set_device(self, number: int) -> None:
        """cudaSetDevice."""
        assert 0 <= number < self.number_of
        self.number = number
        self.current_in.append(number)

    def check_status(self, status: int) -> None:
        """Clears the last error and raises what a status says."""
        self.cleared.append(status)
        raise RuntimeError("cudaErrorNotReady")

    def array(self, values: Any) -> ndarray:
        """An array of the device with these values."""
        values = np.ascontiguousarray(values)
        made = ndarray(values.shape, values.dtype, MemoryPointer(self, max(values.nbytes, 1)))
        ctypes.memmove(made.data.ptr, values.ctypes.data, values.nbytes)
        return made

    def asarray(self, array: Any) -> Any:
        """An array as it is; anything else by its interface."""
        if isinstance(array, ndarray):
            return array
        told = array.__cuda_array_interface__
        memory = SimpleNamespace(ptr=told["data"][0], size=np.prod(told["shape"]) * 2)
        made = ndarray(told["shape"], told["typestr"], memory)
        made.strides = told["strides"]
        return made

    def ascontiguousarray(self, array: ndarray) -> ndarray:
        """A copy: the driver asks for those of arrays with gaps only."""
        values = np.ascontiguousarray(array.get())
        made = ndarray(values.shape, values.dtype, self.alloc(max(values.nbytes, 1)))
        made.view()[...] = values
        return made

    def copyto(self, target: ndarray, source: ndarray) -> None:
        target.view()[...] = source.view()

    def alloc(self, nbytes: int) -> MemoryPointer:
        assert self.captured is None, "nothing is allocated while a graph is captured"
        if sum(self.memory.sizes.values()) + nbytes > self.limit:
            raise OutOfMemoryError
        return MemoryPointer(self, nbytes)

    def pinned(self, nbytes: int) -> Any:
        made = (ctypes.c_uint8 * nbytes)()
        # The emulator's kernels look for signals by calling a function at the first one's address.
        # That is the one thing of this size.
        place = self.memory.stop_word if nbytes == 8 else ctypes.addressof(made)
        return type("Pinned", (type(made),), {"ptr": place}).from_buffer(made)

    def compile(
        self, source: str, options: Any, arch: Any, filename: str, *, cache_in_memory: bool
    ) -> tuple[bytes, None]:
        """cupy.cuda.compiler.compile_using_nvrtc; machine code is the text itself."""
        self.units.append(source)
        assert source.startswith("\n".join((PRELUDE, DEVICE, BLOCKS)))
        return source.encode(), None

    def fit(self, function: int, threads: int, shared: int) -> int:
        """Blocks of a kernel of 100 registers and 256 bytes of its own that run side by side."""
        return min(65536 // (104 * threads), (SHARED + 1024) // (shared + 256 + 1024))

    def set_attribute(self, function: int, attribute: int, value: int) -> None:
        """cupy.cuda.driver.funcSetAttribute."""
        assert attribute == 8
        assert value + 256 <= SHARED, "cudaErrorInvalidValue"
        self.functions[function].most_shared = value

    def launch(
        self, function: int, *grid_block_shared: int, together: bool = False
    ) -> None:
        """cupy.cuda.driver.launchKernel, and what both launches have in common."""
        *rest, stream, places, extra = grid_block_shared
        blocks, y, z, threads, v, w, shared = rest
        made = self.functions[function]
        assert (y, z, w, extra) == (1, 1, 1, 0)
        assert threads * v <= 512, "cudaErrorLaunchOutOfResources"
        assert v == 1 or threads == 32, "only warps have rows beside each other"
        assert 0 <= shared <= made.most_shared, "cudaErrorInvalidValue"
        assert stream == self.streams[-1].ptr
        assert made.home == self.number, "CUDA_ERROR_INVALID_HANDLE"
        made.asked = shared
        made.launched(blocks, threads, places, together)

    def launch_together(self, function: int, *grid_block_shared: int) -> None:
        """cupy.cuda.driver.launchCooperativeKernel, which has no `extra`."""
        self.launch(function, *grid_block_shared, 0, together=True)

    def do(self, work: Any) -> None:
        """Work of the current stream: done now, or captured."""
        if self.captured is not None and self.streams[-1].ptr == 7:
            self.captured.append(work)
        else:
            work()

    def memcpy(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        assert stream == self.streams[-1].ptr
        assert kind == D2D or self.captured is None
        self.copies.append(kind)
        self.do(lambda: ctypes.memmove(target, source, nbytes))

    def memset(self, address: int, value: int, nbytes: int, stream: int) -> None:
        assert stream == self.streams[-1].ptr
        self.do(lambda: ctypes.memset(address, value, nbytes))


HANDLE = 1234
TYPES = {0: "f4", 1: "f8", 2: "f2", 4: "c8", 5: "c16"}


class Cublas:
    """The library cuBLAS: column-major, as its manual says; every function answers 0."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.stream, self.workspace = machine, None, 0  # type: ignore[var-annotated]
        self.calls: list[tuple[int, int]] = []  # products, kind of arithmetic
        self.cublasGemmStridedBatchedEx = Foreign(self._gemm)
        self.cublasCreate_v2 = Foreign(self._create)
        self.cublasSetStream_v2 = Foreign(self._set_stream)
        self.cublasSetWorkspace_v2 = Foreign(self._set_workspace)

    def _create(self, place: Any) -> None:
        assert self.machine.captured is None
        place._obj.value = HANDLE

    def _set_stream(self, handle: int, stream: int) -> None:
        assert (handle, stream) == (HANDLE, self.machine.streams[-1].ptr)
        self.workspace = 0  # as cublasSetStream does

    def _set_workspace(self, handle: int, address: int, nbytes: int) -> None:
        assert nbytes <= self.machine.memory.sizes[address]
        self.workspace = address

    def _gemm(
        self, handle: int, turn_a: int, turn_b: int, m: int, n: int, k: int, alpha: int, a: int,
        a_kind: int, lda: int, a_stride: int, b: int, b_kind: int, ldb: int, b_stride: int,
        beta: int, c: int, c_kind: int, ldc: int, c_stride: int, count: int, compute: int,
        algorithm: int,
    ) -> None:
        assert handle == HANDLE
        assert a_kind == b_kind
        dtype, made = np.dtype(TYPES[a_kind]), np.dtype(TYPES[c_kind])
        assert made in ((np.float32, dtype) if dtype.itemsize == 2 else (dtype,))
        scale = np.dtype("f4") if dtype.itemsize == 2 else dtype
        assert np.frombuffer(ctypes.string_at(alpha, scale.itemsize), scale)[0] == 1
        assert np.frombuffer(ctypes.string_at(beta, scale.itemsize), scale)[0] == 0
        assert lda >= (k if turn_a else m)
        assert ldb >= (n if turn_b else k)
        assert ldc >= m
        assert (self.workspace != 0) == (self.machine.captured is not None)
        self.calls.append((count, compute))

        def run() -> None:
            for number in range(count):
                x = _columns(a, number * a_stride, (k, m) if turn_a else (m, k), lda, dtype)
                y = _columns(b, number * b_stride, (n, k) if turn_b else (k, n), ldb, dtype)
                z = _columns(c, number * c_stride, (m, n), ldc, made)
                left, right = x.T if turn_a else x, y.T if turn_b else y
                np.matmul(left, right, out=z, dtype=scale, casting="same_kind")

        self.machine.do(run)


class Foreign:
    """A function of a library, as ctypes has it."""

    def __init__(self, meaning: Any) -> None:
        self.meaning, self.argtypes = meaning, ()  # type: ignore[var-annotated]

    def __call__(self, *arguments: Any) -> int:
        assert len(self.argtypes) in (0, len(arguments))
        self.meaning(*arguments)
        return 0


def _columns(address: int, start: int, shape: tuple[int, int], line: int, dtype: Any) -> Any:
    """A column-major matrix in memory."""
    rows, columns = shape
    nbytes = ((columns - 1) * line + rows) * dtype.itemsize
    memory: Any = (ctypes.c_uint8 * nbytes).from_address(address + start * dtype.itemsize)
    flat = np.frombuffer(memory, dtype)
    strides = (dtype.itemsize, line * dtype.itemsize)
    return np.lib.stride_tricks.as_strided(flat, shape, strides)


@contextmanager
def installed(machine: Machine, monkeypatch: Any, library: Any = None) -> Iterator[None]:
    """`device="cuda"` is this machine, its cuBLAS this library: never one that is installed."""
    from pyrelay.devices import cuda
    from pyrelay.devices.gpu import cublas, cupy_driver

    with monkeypatch.context() as patch:
        found = None if library is None else cublas.Cublas(library)
        patch.setattr(cupy_driver, "_cublas", lambda: found)
        patch.setitem(sys.modules, "cupy", machine.cupy)
        find = importlib.util.find_spec
        patch.setattr(
            importlib.util, "find_spec",
            lambda name, *rest: name if name == "cupy" else find(name, *rest),
        )
        cuda.forget_drivers()
        try:
            yield
        finally:
            cuda.forget_drivers()
