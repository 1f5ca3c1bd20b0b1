"""Products of matrices by cuBLAS.

In: a `Product`, addresses and a stream. Out: work in that stream. CuPy's own bindings refuse to be
captured in graphs, so the library's functions are called as its manual declares them, with a handle
for each thread; NVIDIA, "cuBLAS Library", sections 2.1.9 (graphs) and 2.8.13
(cublasGemmStridedBatchedEx).

cuBLAS is column-major: a row-major product is that of the transposed operands in reverse order.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
from collections.abc import Iterator
from typing import Any

from pyrelay.devices.gpu.driver import Product

WORKSPACE = 32 << 20
"""Bytes that captured products may use: what the manual recommends for Hopper."""

_NAMES = ("libcublas.so.13", "libcublas.so.12")
_MOST_CALLS = 64  # for one stack of products
_LARGEST = 2**31 - 1
_DEFAULT_ALGORITHM = -1
_NO_MEMORY = 3  # CUBLAS_STATUS_ALLOC_FAILED

# cudaDataType and cublasComputeType_t.
_TYPES = {"f16": 2, "bf16": 14, "f32": 0, "f64": 1, "c64": 4, "c128": 5}
_COMPUTE_32F, _COMPUTE_64F = 68, 70
_FAST = {"highest": _COMPUTE_32F, "tf32": 77, "bf16": 75}
_SCALES: dict[str, Any] = {
    "f32": (ctypes.c_float * 2)(1.0, 0.0), "f64": (ctypes.c_double * 2)(1.0, 0.0),
    "c64": (ctypes.c_float * 4)(1.0, 0.0, 0.0, 0.0),
    "c128": (ctypes.c_double * 4)(1.0, 0.0, 0.0, 0.0),
}  # fmt: skip

_HANDLE, _PLACE, _INT, _LONG = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
_MATRIX = (_PLACE, _INT, _INT, _LONG)
_GEMM = (
    _HANDLE, _INT, _INT, _INT, _INT, _INT, _PLACE, *_MATRIX, *_MATRIX, _PLACE, *_MATRIX, _INT,
    _INT, _INT,
)  # fmt: skip


class CublasError(RuntimeError):
    """cuBLAS answers with a status that is not that of success."""

    def __init__(self, status: int) -> None:
        super().__init__(f"cuBLAS gives status {status}")
        self.status = status


class Cublas:
    """The library, with a handle for each thread."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.own = threading.local()
        library.cublasGemmStridedBatchedEx.argtypes = _GEMM
        library.cublasSetStream_v2.argtypes = (_HANDLE, _PLACE)
        library.cublasSetWorkspace_v2.argtypes = (_HANDLE, _PLACE, ctypes.c_size_t)

    def handle(self) -> int:
        """This thread's handle."""
        if not hasattr(self.own, "handle"):
            made = ctypes.c_void_p()
            _check(self.library.cublasCreate_v2(ctypes.byref(made)))
            self.own.handle = made.value
        handle: int = self.own.handle
        return handle

    def multiply(
        self, calls: Prepared, a: int, b: int, c: int, stream: int, workspace: int
    ) -> bool:
        """A product; False where cuBLAS has no memory for what it needs itself. workspace: the
        address of `WORKSPACE` bytes for products that are captured, else 0 for cuBLAS' own."""
        try:
            handle = self.handle()
        except CublasError as error:
            if error.status != _NO_MEMORY:
                raise
            return False
        _check(self.library.cublasSetStream_v2(handle, stream))
        if workspace:
            _check(self.library.cublasSetWorkspace_v2(handle, workspace, WORKSPACE))
        for (at_a, at_b, at_c), first, of_b, of_a, of_c in calls:
            _check(self.library.cublasGemmStridedBatchedEx(
                handle, *first, b + at_b, *of_b, a + at_a, *of_a, c + at_c, *of_c
            ))
        return True


_Told = tuple[int, ...]
Prepared = tuple[tuple[tuple[int, int, int], _Told, _Told, _Told, _Told], ...]
"""Calls of the library that are one product: where each begins in a, b and c, in bytes, and what is
told before and behind the address of b, behind that of a, and behind that of c."""


def prepared(p: Product, precision: str) -> Prepared | None:
    """The calls that are a product; None where cuBLAS has none."""
    pieces = list(itertools.islice(batches(p), _MOST_CALLS + 1))
    a_line = _line(p.a_line, *((p.k, p.m) if p.a_turned else (p.m, p.k)))
    b_line = _line(p.b_line, *((p.n, p.k) if p.b_turned else (p.k, p.n)))
    c_line = _line(p.c_line, p.m, p.n)
    numbers = (p.m, p.n, p.k, a_line, b_line, c_line, *(count for _, _, _, count, *_ in pieces))
    if len(pieces) > _MOST_CALLS or min(numbers) <= 0 or max(numbers) > _LARGEST:
        return None
    name, size = p.dtype.name, p.of.size
    kind, made = _TYPES[p.of.name], _TYPES[name]
    compute = _COMPUTE_64F if name in ("f64", "c128") else _FAST[precision]
    if size == 2:  # tensor cores multiply them exactly, and add up in float32
        compute = _COMPUTE_32F
    scales = _SCALES["f32" if size == 2 else name]
    one = ctypes.addressof(scales)
    zero = one + ctypes.sizeof(scales) // 2
    first = (int(p.b_turned), int(p.a_turned), p.n, p.m, p.k, one)
    return tuple(
        (
            (size * a, size * b, p.dtype.size * c), first, (kind, b_line, b_stride),
            (kind, a_line, a_stride, zero),
            (made, c_line, c_stride, count, compute, _DEFAULT_ALGORITHM),
        )
        for a, b, c, count, a_stride, b_stride, c_stride in pieces
    )


def load() -> Cublas | None:
    """The library that CuPy uses; None where it is not installed."""
    try:
        # An attribute of the package: asking for it finds the library in NVIDIA's wheels and loads
        # it, which an import of the module by its full name does not.
        from cupy_backends.cuda.libs import cublas  # noqa: F401
    except ImportError:
        return None
    for name in _NAMES:
        try:
            return Cublas(ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW))
        except OSError:
            continue
    return None


def _line(line: int, lines: int, length: int) -> int:
    """How far lines are apart; a single one may say anything, cuBLAS wants no less than its
    length, and 0 is no answer for others."""
    if lines == 1:
        return max(line, length)
    return line if line >= length else 0


def _check(status: int) -> None:
    if status:
        raise CublasError(status)


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
