"""A GPU through CuPy: the driver of `device="cuda"`.

In: a GPU's number. Out: `CupyDriver`. Memory is CuPy's pool's, work goes to the stream that is
CuPy's current one, or PyTorch's for its arrays; kernels are compiled in units by threads
(`cuda_compiler`), products are those of `cublas`.

Used of CuPy are `cuda.alloc`, `cuda.Stream` and its capture, `cuda.function`, `cuda.runtime`'s
copies, and of `cuda.driver` its launches (`cupy_launches`) and how many blocks of a kernel fit on a
multiprocessor.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np

from pyrelay import config
from pyrelay.devices.gpu import array_taking, cublas, cuda_diagnosis
from pyrelay.devices.gpu.array_libraries import carried_by, handed_over, stream_of
from pyrelay.devices.gpu.cuda_compiler import Compiler, Unit
from pyrelay.devices.gpu.cuda_prelude import STACK
from pyrelay.devices.gpu.cupy_launches import Function, Launches, function
from pyrelay.devices.gpu.driver import (
    CannotCaptureError,
    Compilation,
    Driver,
    Issuing,
    OutOfDeviceMemory,
    Product,
    Taken,
    Text,
    Told,
    block_threads,
    meets,
    shared_bytes,
)
from pyrelay.devices.gpu.lent_arrays import LentArrays
from pyrelay.devices.gpu.row_geometry import Limits, pair_of, rows_of
from pyrelay.devices.runtime.layout import WORD
from pyrelay.infer.arrays.device_arrays import DeviceArray
from pyrelay.lower.planning.boundary import Parameter
from pyrelay.records import dataclass

_SPINNING = 0.002  # seconds of looking at the stream without a pause
_PAUSE = 0.0001
_LOOKS = range(256)  # at a word, some ten microseconds, before the stream is asked
_STAGED = 4096  # bytes that are read by way of pinned memory
_NOT_READY = 600  # cudaErrorNotReady
_STACK_LIMIT = 0  # cudaLimitStackSize
_GRANULE = 1024  # bytes of shared memory by which blocks are given it, at most
_RECURSIVE = "__device__ int routine"

_T = TypeVar("_T")


class CupyDriver(Driver):
    """A device of CuPy's, by its number.

    Raises DeviceError where there is no NVRTC.
    """

    def __init__(self, cupy: Any, number: int) -> None:
        self.cupy, self.runtime, self.number = cupy, cupy.cuda.runtime, number
        self.is_only = int(self.runtime.getDeviceCount()) == 1
        with self._current():
            self._look()

    def _look(self) -> None:
        cupy = self.cupy
        self.alloc, self.current = cupy.cuda.alloc, cupy.cuda.get_current_stream
        self.own = cupy.ndarray
        properties = self.runtime.getDeviceProperties(self.number)
        told = properties["name"]
        self.name = told.decode() if isinstance(told, bytes) else str(told)
        self.processors = int(properties["multiProcessorCount"])
        attribute = self.runtime.cudaDevAttrCooperativeLaunch
        cooperates = bool(self.runtime.deviceGetAttribute(attribute, self.number))
        # One for each multiprocessor, since more of them only make meetings longer.
        self.meeting = self.processors if cooperates else 1
        # Pinned memory can be read by kernels at the same address while they run.
        self.pinned = cupy.cuda.alloc_pinned_memory(8)
        self.stop = np.frombuffer(self.pinned, np.int64, 1)
        self.stop[0] = 0
        self.launches = Launches(cupy, self.number, self.processors)
        self.compiler = Compiler(cupy, self._current)
        self.compilations = self.compiler.compilations
        self.blas = _cublas()
        self.workspaces: dict[int, tuple[int, Any]] = {}  # of captured products, by stream
        self.capturing = _Capturing()
        self.staging = _Staging()
        self.lent = LentArrays(self.forget_error)

    # -- memory --------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> tuple[int, Any]:
        try:
            memory = self.alloc(nbytes)
        except self.cupy.cuda.memory.OutOfMemoryError:
            raise OutOfDeviceMemory from None
        return memory.ptr, memory

    def part(self, owner: Any, start: int) -> Any:
        return owner + start

    def upload(self, address: int, array: np.ndarray[Any, Any]) -> None:
        # From pageable memory this returns when the bytes are in a buffer of the driver's.
        if array.nbytes:
            kind = self.runtime.memcpyHostToDevice
            self.runtime.memcpyAsync(address, array.ctypes.data, array.nbytes, kind, self.stream)

    def download(self, array: np.ndarray[Any, Any], address: int) -> None:
        if not array.nbytes:
            self.wait()
            return
        # A few bytes go to pinned memory, by work in the stream like any other: then there is one
        # thing to wait for. Others wait in the copy.
        few = array.nbytes <= _STAGED
        target = self.staging.place(self.cupy) if few else array.ctypes.data
        if not few:
            self.wait()
        kind = self.runtime.memcpyDeviceToHost
        try:
            self.runtime.memcpyAsync(target, address, array.nbytes, kind, self.stream)
        except RuntimeError as error:
            raise cuda_diagnosis.stopped(error) from error
        self.wait()
        if few:
            ctypes.memmove(array.ctypes.data, target, array.nbytes)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        kind = self.runtime.memcpyDeviceToDevice
        self.runtime.memcpyAsync(target, source, nbytes, kind, self.stream)

    def zero(self, address: int, nbytes: int) -> None:
        self.runtime.memsetAsync(address, 0, nbytes, self.stream)

    # -- work ----------------------------------------------------------------------------------

    def load(self, texts: Sequence[Text]) -> list[Any]:
        return [wait() for wait in self.begin(texts, [])]

    def begin(
        self, texts: Sequence[Text], told: list[Compilation]
    ) -> list[Callable[[], Any]]:
        # Programs are compiled by threads of their own, which begin without a context of CUDA's.
        with self._current():
            if any(_RECURSIVE in text.source for text in texts):
                self._with_room(self._deepen)
            places = self.compiler.begin(texts, told)
        return [
            functools.partial(self._when_there, *place, text)
            for place, text in zip(places, texts, strict=True)
        ]

    def _when_there(self, unit: Unit, name: str, text: Text) -> Function:
        with self._current():
            return self._with_room(lambda: self._function(unit, name, text))

    def _function(self, unit: Unit, name: str, text: Text) -> Function:
        kernel = unit.module().get_function(name)
        return function(
            kernel, text, self._resident(kernel, text), self._asked(kernel, text),
            self._limits(kernel, text),
        )

    def _with_room(self, load: Callable[[], _T]) -> _T:
        """What needs memory that may still be the pool's. Raises MemoryError."""
        try:
            return load()
        except RuntimeError as error:  # the base of CuPy's errors
            if not cuda_diagnosis.is_of_memory(error):
                raise
        self.cupy.get_default_memory_pool().free_all_blocks()
        try:
            return load()
        except RuntimeError as error:
            if not cuda_diagnosis.is_of_memory(error):
                raise
            free, total = self.runtime.memGetInfo()
            raise MemoryError(cuda_diagnosis.no_room(self.name, free, total)) from error

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Inside, this is the device of the thread."""
        before = int(self.runtime.getDevice())
        self.runtime.setDevice(self.number)
        try:
            yield
        finally:
            if before != self.number:
                self.runtime.setDevice(before)

    def _asked(self, kernel: Any, text: Text) -> int:
        """How many bytes of shared memory launches of a kernel have to ask for."""
        asked = shared_bytes(text.source)
        if asked:
            self._may_ask(kernel, asked)
        return asked

    def _may_ask(self, kernel: Any, nbytes: int) -> None:
        driver = self.cupy.cuda.driver
        driver.funcSetAttribute(
            kernel.ptr, driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes
        )

    def _limits(self, kernel: Any, text: Text) -> Limits:
        """What a block of a kernel over rows may have: registers are for so many threads, and each
        block of a multiprocessor takes some shared memory for itself."""
        driver, runtime = self.cupy.cuda.driver, self.runtime
        rows = rows_of(text.source)
        if rows is None:
            return Limits(0, 0)
        attribute = driver.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        threads = int(driver.funcGetAttribute(attribute, kernel.ptr))
        if not rows.held:
            return Limits(0, threads)
        own = int(driver.funcGetAttribute(driver.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel.ptr))

        def told(attribute: int) -> int:
            return int(runtime.deviceGetAttribute(attribute, self.number))

        most = told(runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin) - own
        half = told(runtime.cudaDevAttrMaxSharedMemoryPerMultiprocessor) // 2 - own
        half -= told(runtime.cudaDevAttrReservedSharedMemoryPerBlock)
        half -= half % _GRANULE
        self._may_ask(kernel, most)

        def fits(threads: int) -> bool:
            fit = driver.occupancyMaxActiveBlocksPerMultiprocessor
            return int(fit(kernel.ptr, threads, half)) > 1

        return Limits(most, threads, half, pair_of(fits, threads))

    def _resident(self, kernel: Any, text: Text) -> int:
        """How many blocks of a kernel may meet, if a multiprocessor has room for one."""
        if not meets(text.source):
            return 1
        fit = self.cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(
            kernel.ptr, block_threads(text.source), 0
        )
        return self.meeting if fit else 1

    def _deepen(self) -> None:
        """Give threads the stack that recursion needs, for which no compiler can see the bytes."""
        if self.runtime.deviceGetLimit(_STACK_LIMIT) < STACK:
            self.runtime.deviceSetLimit(_STACK_LIMIT, STACK)

    def launch(
        self, function: Function, items: int, words: Sequence[int], stream: int
    ) -> None:
        self.launches.launch(function, items, words, stream)

    def resident(self, function: Function) -> int:
        return function.resident

    def launch_meeting(
        self, function: Function, blocks: int, words: Sequence[int], stream: int
    ) -> None:
        self.launches.launch_meeting(function, blocks, words, stream)

    def later(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="pyrelay").start()  # Python waits for it at its end

    def wait(self) -> None:
        stream, query = self.cupy.cuda.get_current_stream(), self.runtime.streamQuery
        started = time.perf_counter()
        looked = False
        try:
            while (status := query(stream.ptr)) == _NOT_READY:
                looked = True
                if time.perf_counter() - started > _SPINNING:
                    time.sleep(_PAUSE)
        except BaseException:
            self.stop_kernels()
            raise
        if looked:
            self.forget_error()
        if status:
            try:
                stream.synchronize()  # raises what that is
            except RuntimeError as error:
                raise cuda_diagnosis.stopped(error) from error

    def stop_kernels(self) -> None:
        """A signal's handler raised: kernels that run long look at a word."""
        self.stop[0] = 1
        try:
            self.current().synchronize()
        finally:
            self.stop[0] = 0

    def forget_error(self) -> None:
        """The runtime keeps that something was not ready as its last error, which other libraries
        of the process would take for that of their own next kernel."""
        with contextlib.suppress(RuntimeError):
            self.runtime.check_status(_NOT_READY)

    @property
    def stream(self) -> int:
        found: int = self.current().ptr
        return found

    @property
    def stop_word(self) -> int:
        return int(self.pinned.ptr)

    # -- products of matrices ------------------------------------------------------------------

    def product(self, product: Product) -> Any:
        if self.blas is None:
            return None
        return cublas.prepared(product, config.current().matmul_precision)

    def multiply(self, prepared: Any, a: int, b: int, c: int, stream: int) -> bool:
        assert self.blas is not None
        return self.blas.multiply(prepared, a, b, c, stream, self.capturing.workspace)

    # -- graphs --------------------------------------------------------------------------------

    def capture(self, issue: Callable[[], None]) -> Any:
        # Products of a graph work in memory of the stream that it is replayed in, where nothing
        # else runs at the same time.
        workspace = self._workspace()
        stream = self.cupy.cuda.Stream(non_blocking=True)
        try:
            with stream:
                stream.begin_capture()
                self.capturing.workspace = workspace
                try:
                    issue()
                except BaseException:
                    with contextlib.suppress(RuntimeError):
                        stream.end_capture()
                    raise
                finally:
                    self.capturing.workspace = 0
                return stream.end_capture()
        except RuntimeError as error:  # the base of the errors of CUDA and cuBLAS
            raise CannotCaptureError from error

    def _workspace(self) -> int:
        if self.blas is None:
            return 0
        if self.stream not in self.workspaces:
            try:
                self.blas.handle()  # made here, since it allocates
                self.workspaces[self.stream] = self.allocate(cublas.WORKSPACE)
            except (OutOfDeviceMemory, cublas.CublasError) as error:
                raise CannotCaptureError from error
        address, _ = self.workspaces[self.stream]
        return address

    def replay(self, graph: Any) -> None:
        graph.launch()

    # -- arrays --------------------------------------------------------------------------------

    def follow(self, array: DeviceArray) -> None:
        ready = getattr(array.value, "block_until_ready", None)
        if ready is not None:  # JAX tells no stream
            ready()
        stream = array.stream
        # 1 is what the interface calls the default stream, whose handle is 0 as well.
        if stream is None or stream in (self.stream, 1 if self.stream == 0 else self.stream):
            return
        event = _stream_at(self.cupy, stream).record()
        self.cupy.cuda.get_current_stream().wait_event(event)

    def lend(self, arrays: Sequence[Any]) -> None:
        self.lent.keep(arrays, lambda: self.current().record())

    def home(self, array: DeviceArray) -> int:
        return int(self.runtime.pointerGetAttributes(array.address).device)

    def beside(self, kind: type) -> AbstractContextManager[Any]:
        return self._beside(kind) if self.is_only else self._current_beside(kind)

    @contextlib.contextmanager
    def _current_beside(self, kind: type) -> Iterator[None]:
        with self._current(), self._beside(kind):
            yield

    def _beside(self, kind: type) -> AbstractContextManager[Any]:
        stream = stream_of(kind, self.number)
        if stream is None or stream == self.stream:
            return contextlib.nullcontext()
        found: AbstractContextManager[Any] = _stream_at(self.cupy, stream)
        return found

    def taking(
        self, parameters: Sequence[Parameter], kind: type
    ) -> Callable[..., Taken | None] | None:
        return array_taking.taking(parameters, kind, self.own, self.number, not self.is_only)

    def issuing(self, kind: type) -> Issuing:
        return Issuing(
            allocate=self.alloc, exhausted=self.cupy.cuda.memory.OutOfMemoryError,
            kept=self.allocate, ready=self.launches.ready, current=self.current,
            own=self.own if kind is self.own else None, array=self.array,
            zero=self.runtime.memsetAsync, copy=self.runtime.memcpyAsync,
            on_device=self.runtime.memcpyDeviceToDevice, to_host=self.runtime.memcpyDeviceToHost,
            told=lambda: _Pinned(self), multiply=self.multiply,
            capture=lambda work: self.capture(lambda: work(self.stream)), replay=self.replay,
        )

    def gathered(self, array: DeviceArray) -> tuple[int, Any]:
        try:
            made = self.cupy.ascontiguousarray(self.cupy.asarray(_known(array)))
        except self.cupy.cuda.memory.OutOfMemoryError:
            raise OutOfDeviceMemory from None
        return int(made.data.ptr), made

    def scattered(self, array: DeviceArray, owner: Any) -> None:
        self.cupy.copyto(self.cupy.asarray(_known(array)), owner)

    def array(
        self, address: int, owner: Any, dtype: np.dtype[Any], shape: tuple[int, ...], like: Any
    ) -> Any:
        kind = type(like)
        if kind is self.own:
            return self.own(shape, dtype, owner)
        made = self.own(shape, carried_by(kind, dtype), owner)
        return handed_over(made, kind, dtype)


@dataclass(frozen=True, slots=True)
class _Handle:
    """A stream of another library, by CUDA's stream protocol."""

    stream: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream


def _stream_at(cupy: Any, stream: int) -> Any:
    """CuPy's object for a stream that it has not made."""
    made = getattr(cupy.cuda.Stream, "from_external", None)  # since CuPy 14
    return cupy.cuda.ExternalStream(stream) if made is None else made(_Handle(stream))


@dataclass(frozen=True, slots=True)
class _Bits:
    """An array of bfloat16, or of what CuPy takes for bytes, as one of 16-bit integers."""

    array: DeviceArray

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        a = self.array
        return {
            "shape": a.shape, "typestr": "<i2", "data": (a.address, a.readonly), "version": 3,
            "strides": a.strides, "stream": a.stream,
        }


def _known(array: DeviceArray) -> Any:
    """An array as CuPy takes it from any library."""
    return _Bits(array) if array.dtype.name == "bfloat16" else array.value


class _Staging(threading.local):
    """Pinned memory of a thread, for a few bytes of the device."""

    memory: Any = None

    def place(self, cupy: Any) -> int:
        """Its address."""
        if self.memory is None:
            self.memory = cupy.cuda.alloc_pinned_memory(_STAGED)
        return int(self.memory.ptr)


class _Pinned(Told):
    """A word of pinned memory: looking at it takes a hundredth of what asking for a stream does.
    """

    def __init__(self, driver: CupyDriver) -> None:
        self.driver = driver
        self.memory = driver.cupy.cuda.alloc_pinned_memory(2 * WORD)
        self.address = int(self.memory.ptr)
        self.word = (ctypes.c_int64 * 1).from_address(self.address)

    def wait(self) -> None:
        driver, word = self.driver, self.word
        query, stream = driver.runtime.streamQuery, driver.stream
        started = time.perf_counter()
        try:
            while True:
                for _ in _LOOKS:
                    if word[0] >= 0:
                        return
                if query(stream) != _NOT_READY:
                    break
                driver.forget_error()
                if time.perf_counter() - started > _SPINNING:
                    time.sleep(_PAUSE)
        except BaseException:
            driver.stop_kernels()
            raise
        driver.wait()  # says what is wrong, if anything is


class _Capturing(threading.local):
    """What a thread captures now: the address of the workspace of its products, 0 for nothing."""

    workspace = 0


def _cublas() -> cublas.Cublas | None:
    """A device's own: handles are of the device that is current when they are made."""
    return cublas.load()
