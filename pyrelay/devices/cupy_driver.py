"""A GPU through CuPy: the driver of `device="cuda"`.

In: nothing. Out: `CupyDriver`. Memory is CuPy's pool's, work goes to the stream that is CuPy's
current one, or PyTorch's for its arrays; kernels are compiled by NVRTC in one unit per program and
kept on disk by CuPy.

Used of CuPy are `RawModule`, `cuda.alloc`, `cuda.Stream` and its capture, `cuda.runtime`'s copies,
and the bindings of cuBLAS. cuBLAS is column-major: a row-major product is that of the transposed
operands in reverse order.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from pyrelay import config
from pyrelay.devices.cuda_prelude import BLOCKS, DEVICE, PRELUDE
from pyrelay.devices.driver import (
    ADDRESS,
    UNDEFINED,
    CannotCaptureError,
    Driver,
    OutOfDeviceMemory,
    Product,
    Text,
    block_threads,
    pack,
)
from pyrelay.errors import DeviceError
from pyrelay.infer.device_arrays import DeviceArray
from pyrelay.ir.types import DTYPES
from pyrelay.records import dataclass

#: -fmad=false: products and sums round as in plain Python; what fuses them says so (`fma`).
OPTIONS = ("-std=c++17", "-fmad=false")

ELEMENT_THREADS = 256
"""Threads of a block whose items are computed one by one, at most."""

WAVES = 32
"""Blocks for each multiprocessor, at most; threads go on to further items by themselves."""

_WARP = 32
_SPINNING = 0.002  # seconds of looking at the stream without a pause
_PAUSE = 0.0001
_MOST_CALLS = 64  # of cuBLAS for one stack of products
_MODULE = re.compile(r"^[A-Za-z]\w*")


@dataclass(frozen=True, slots=True)
class Function:
    """A compiled kernel, how many threads work on an item together, how many items a thread does at
    once, what its parameters become."""

    kernel: Any
    together: int
    pack: int
    casts: tuple[Callable[..., Any], ...]
    pairs: tuple[bool, ...]


def _cast(name: str) -> Callable[[int], Any]:
    """A word as the NumPy scalar that CuPy passes by value."""
    dtype = DTYPES[name].numpy
    if dtype.kind == "b":
        return lambda word: np.bool_(word != 0)
    if dtype.kind in "iu" and dtype.itemsize < 8:
        return lambda word: np.int64(word).astype(dtype)
    return lambda word: np.array([word], np.int64).view(dtype)[0]


def _complex(low: int, high: int) -> Any:
    return np.array([low, high], np.int64).view(np.complex128)[0]


class CupyDriver(Driver):
    """The current device of CuPy.

    Raises DeviceError where CuPy finds no GPU.
    """

    def __init__(self, cupy: Any) -> None:
        self.cupy, self.runtime = cupy, cupy.cuda.runtime
        properties = self.runtime.getDeviceProperties(cupy.cuda.Device().id)
        told = properties["name"]
        self.name = told.decode() if isinstance(told, bytes) else str(told)
        self.processors = int(properties["multiProcessorCount"])
        self.most_blocks = WAVES * self.processors
        # Pinned memory can be read by kernels at the same address while they run.
        self.pinned = cupy.cuda.alloc_pinned_memory(8)
        self.stop = np.frombuffer(self.pinned, np.int64, 1)
        self.stop[0] = 0

    # -- memory --------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> tuple[int, Any]:
        try:
            memory = self.cupy.cuda.alloc(nbytes)
        except self.cupy.cuda.memory.OutOfMemoryError:
            raise OutOfDeviceMemory from None
        return int(memory.ptr), memory

    def upload(self, address: int, array: np.ndarray[Any, Any]) -> None:
        # From pageable memory this returns when the bytes are in a buffer of the driver's.
        if array.nbytes:
            kind = self.runtime.memcpyHostToDevice
            self.runtime.memcpyAsync(address, array.ctypes.data, array.nbytes, kind, self.stream)

    def download(self, array: np.ndarray[Any, Any], address: int) -> None:
        self.wait()
        if array.nbytes:
            kind = self.runtime.memcpyDeviceToHost
            self.runtime.memcpyAsync(array.ctypes.data, address, array.nbytes, kind, self.stream)
            self.runtime.streamSynchronize(self.stream)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        kind = self.runtime.memcpyDeviceToDevice
        self.runtime.memcpyAsync(target, source, nbytes, kind, self.stream)

    def zero(self, address: int, nbytes: int) -> None:
        self.runtime.memsetAsync(address, 0, nbytes, self.stream)

    # -- work ----------------------------------------------------------------------------------

    def load(self, texts: Sequence[Text]) -> list[Any]:
        if not texts:
            return []
        module = self.cupy.RawModule(code=unit(texts), options=OPTIONS)
        try:
            kernels = [module.get_function(f"kernel{k}") for k in range(len(texts))]
        except self.cupy.cuda.compiler.CompileException as error:
            raise DeviceError("NVRTC does not compile the kernels.", notes=(str(error),)) from error
        return [_function(k, text) for k, text in zip(kernels, texts, strict=True)]

    def launch(self, function: Function, items: int, words: Sequence[int]) -> None:
        given = iter(words)
        arguments = [
            cast(next(given), next(given)) if pair else cast(next(given))
            for cast, pair in zip(function.casts, function.pairs, strict=True)
        ]
        if function.together:
            blocks, threads = items, function.together
        else:
            # Few items are spread over all multiprocessors, by whole warps.
            parts = -(-items // function.pack)
            share = -(-parts // (_WARP * self.processors)) * _WARP
            threads = min(share, ELEMENT_THREADS)
            blocks = -(-parts // threads)
        function.kernel((min(blocks, self.most_blocks),), (threads,), tuple(arguments))

    def wait(self) -> None:
        stream = self.cupy.cuda.get_current_stream()
        started = time.perf_counter()
        try:
            while not stream.done:
                if time.perf_counter() - started > _SPINNING:
                    time.sleep(_PAUSE)
        except BaseException:
            # A signal's handler raised: kernels that run long look at this word.
            self.stop[0] = 1
            try:
                stream.synchronize()
            finally:
                self.stop[0] = 0
            raise

    @property
    def stream(self) -> int:
        return int(self.cupy.cuda.get_current_stream().ptr)

    @property
    def stop_word(self) -> int:
        return int(self.pinned.ptr)

    # -- products of matrices ------------------------------------------------------------------

    def multiply(self, product: Product) -> bool:
        cublas = _cublas()
        pieces = list(batches(product))
        if cublas is None or len(pieces) > _MOST_CALLS:
            return False
        p, dtype = product, product.dtype
        of_type = {"f32": "R_32F", "f64": "R_64F", "c64": "C_32F", "c128": "C_64F"}[dtype.name]
        kind = getattr(self.runtime, f"CUDA_{of_type}")
        how = "64F" if dtype.name in ("f64", "c128") else _PRECISION[
            config.current().matmul_precision
        ]
        compute = getattr(cublas, f"CUBLAS_COMPUTE_{how}")
        one, zero = np.ones(1, dtype.numpy), np.zeros(1, dtype.numpy)
        handle = self.cupy.cuda.device.get_cublas_handle()
        for a, b, c, count, a_stride, b_stride, c_stride in pieces:
            cublas.gemmStridedBatchedEx(
                handle, int(p.b_turned), int(p.a_turned), p.n, p.m, p.k, one.ctypes.data,
                p.b + dtype.size * b, kind, p.b_line, b_stride,
                p.a + dtype.size * a, kind, p.a_line, a_stride, zero.ctypes.data,
                p.c + dtype.size * c, kind, p.c_line, c_stride, count, compute,
                cublas.CUBLAS_GEMM_DEFAULT,
            )
        return True

    # -- graphs --------------------------------------------------------------------------------

    def capture(self, issue: Callable[[], None]) -> Any:
        stream = self.cupy.cuda.Stream(non_blocking=True)
        try:
            with stream:
                stream.begin_capture()
                try:
                    issue()
                except BaseException:
                    with contextlib.suppress(RuntimeError):
                        stream.end_capture()
                    raise
                return stream.end_capture()
        except RuntimeError as error:  # the base of the errors of CUDA and cuBLAS
            raise CannotCaptureError from error

    def replay(self, graph: Any) -> None:
        graph.launch()

    # -- arrays --------------------------------------------------------------------------------

    def follow(self, stream: int) -> None:
        # 1 is what the interface calls the default stream, whose handle is 0 as well.
        if stream in (self.stream, 1 if self.stream == 0 else self.stream):
            return
        event = self.cupy.cuda.ExternalStream(stream).record()
        self.cupy.cuda.get_current_stream().wait_event(event)

    def beside(self, array: DeviceArray) -> AbstractContextManager[Any]:
        # PyTorch has a current stream of its own, which its arrays do not tell.
        if not type(array.value).__module__.startswith("torch"):
            return contextlib.nullcontext()
        torch = importlib.import_module("torch")
        stream = int(torch.cuda.current_stream().cuda_stream)
        if stream == self.stream:
            return contextlib.nullcontext()
        found: AbstractContextManager[Any] = self.cupy.cuda.ExternalStream(stream)
        return found

    def gathered(self, array: DeviceArray) -> tuple[int, Any]:
        made = self.cupy.ascontiguousarray(self.cupy.asarray(array.value))
        return int(made.data.ptr), made

    def scattered(self, array: DeviceArray, owner: Any) -> None:
        self.cupy.copyto(self.cupy.asarray(array.value), owner)

    def array(
        self, address: int, owner: Any, dtype: np.dtype[Any], shape: tuple[int, ...], like: Any
    ) -> Any:
        made = self.cupy.ndarray(shape, dtype=dtype, memptr=owner)
        found = _MODULE.match(type(like).__module__)
        home, name = _IMPORTERS.get(found[0] if found else "", ("", ""))
        return getattr(importlib.import_module(home), name)(made) if home else made


_PRECISION = {"highest": "32F", "tf32": "32F_FAST_TF32", "bf16": "32F_FAST_16BF"}

#: How libraries other than CuPy take an array over without a copy.
_IMPORTERS = {
    "torch": ("torch", "from_dlpack"), "jax": ("jax.dlpack", "from_dlpack"),
    "jaxlib": ("jax.dlpack", "from_dlpack"), "numba": ("numba.cuda", "as_cuda_array"),
}  # fmt: skip


def unit(texts: Sequence[Text]) -> str:
    """The source of some kernels, which are called kernel0, kernel1, ... there."""
    parts = [PRELUDE, DEVICE, BLOCKS]
    for number, text in enumerate(texts):
        renamed = text.source.replace("void kernel(", f"void kernel{number}(")
        parts.append(f"namespace unit{number} {{\n{renamed}\n}}\n{UNDEFINED}")
    return "\n".join(parts)


def _function(kernel: Any, text: Text) -> Function:
    kinds = (ADDRESS, "i64", "i64", "i64", *text.kinds)
    casts = tuple(
        np.int64 if kind == ADDRESS else _complex if kind == "c128" else _cast(kind)
        for kind in kinds
    )
    return Function(
        kernel, block_threads(text.source), pack(text.source), casts,
        tuple(kind == "c128" for kind in kinds),
    )


def batches(product: Product) -> Iterator[tuple[int, int, int, int, int, int, int]]:
    """A stack of products as stacks along one axis: where each begins in a, b and c, how many
    products it has, and how far apart they lie; all in elements."""
    axes = [(extent, a, b) for extent, a, b in product.batch if extent != 1]
    one = product.m * product.c_line
    merged: list[tuple[int, int, int]] = []
    for extent, a, b in reversed(axes):
        if merged:
            count, a_step, b_step = merged[-1]
            if a == count * a_step and b == count * b_step:
                merged[-1] = (count * extent, a_step, b_step)
                continue
        merged.append((extent, a, b))
    (count, a_step, b_step), *outer = merged or [(1, 0, 0)]
    places = itertools.product(*(range(extent) for extent, _, _ in reversed(outer)))
    for number, place in enumerate(places):
        at = list(zip(reversed(place), outer, strict=True))
        a_start = sum(k * a for k, (_, a, _) in at)
        b_start = sum(k * b for k, (_, _, b) in at)
        yield a_start, b_start, number * count * one, count, a_step, b_step, one


@functools.cache
def _cublas() -> Any:
    """CuPy's bindings of cuBLAS, None where the library is not installed."""
    try:
        from cupy_backends.cuda.libs import cublas

        return cublas if hasattr(cublas, "gemmStridedBatchedEx") else None
    except ImportError:
        return None
