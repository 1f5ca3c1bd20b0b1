"""Kernels called directly, for the tests of what kernels are made of."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pyrelay.devices import cuda_emulator
from pyrelay.devices.compiler import native
from pyrelay.devices.compiler.codegen import kernel_machine
from pyrelay.devices.compiler.kernel_compiler import optimised_module
from pyrelay.devices.gpu.cuda_library import TARGET
from pyrelay.devices.gpu.driver import Text
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.devices.routines.matmul import native_vector_bits
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
_NEVER_STOP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda process: 0)
needs_compiler = pytest.mark.skipif(
    cuda_emulator.compiler() is None, reason="the CUDA emulator needs a C++ compiler"
)
SHORT_NAMES = {
    np.dtype(spelled): short
    for short, spelled in {
        "bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2",
        "u32": "u4", "u64": "u8", "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16",
    }.items()
}  # fmt: skip


def needs_vectors(bits: int) -> None:
    """Skips a test of vectors that are wider than those of this CPU."""
    if bits > native_vector_bits():
        pytest.skip("this CPU has no vectors as wide")


def words(*values: Any) -> list[int]:
    """What stands in a block: addresses of arrays, bit patterns of NumPy scalars, integers."""
    out: list[int] = []
    for value in values:
        if isinstance(value, np.ndarray):
            out.append(value.ctypes.data)
        elif isinstance(value, np.generic):
            padded = value.tobytes().ljust(-(-value.nbytes // 8) * 8, b"\0")
            out.extend(np.frombuffer(padded, np.int64).tolist())
        else:
            out.append(value)
    return out


def run(source: str, *parameters: Any, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Calls the kernel for each range; the error record. Fails unless every status is 0."""
    return run_at(native.kernel_address(source), *parameters, ranges=ranges)


def run_at(address: int, *parameters: Any, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Calls the kernel at an address for each range; the error record. Fails unless every status
    is 0."""
    record = np.zeros(18, np.int64)
    record[16] = ctypes.cast(_NEVER_STOP, ctypes.c_void_p).value
    block = np.array(words(record, *parameters), np.int64)
    kernel = _KERNEL(address)
    for begin, end in ranges:
        assert kernel(block.ctypes.data, begin, end) == 0
    return record


def emulate(texts: Sequence[str], *calls: tuple[Any, ...], items: Sequence[int]) -> None:
    """Runs each CUDA kernel once, with its parameters, over so many items, on the emulator.

    Indices outside of the arrays are errors (InvariantError).
    """
    driver = cuda_emulator.EmulatorDriver()
    record = np.zeros(21, np.int64)
    functions = driver.load([Text(text, ()) for text in texts])
    for function, parameters, count in zip(functions, calls, items, strict=True):
        for each in parameters:
            if isinstance(each, np.ndarray):
                driver.sizes[each.ctypes.data] = each.nbytes
        driver.launch(function, count, words(record, 0, 0, count, *parameters), 0)
    assert not record.any()


def elementwise_source(expression: str, inputs: Sequence[str], output: str) -> str:
    """A kernel that maps ``expression`` over arrays ``x0``, ``x1``, ... of these short dtypes."""
    lines = ["from math import inf, nan", "from pyrelay.devices.compiler.vocabulary import *", ""]
    lines.append("def kernel(block, begin, end):")
    for place in range(len(inputs)):
        lines.append(f"    a{place} = param_i64(block, {place + 1})")
    lines.append(f"    o = param_i64(block, {len(inputs) + 1})")
    lines.append("    for i in range(begin, end):")
    for place, short in enumerate(inputs):
        lines.append(f"        x{place} = load_{short}(a{place}, i)")
    lines += [f"        store_{output}(o, i, {expression})", "    return 0", ""]
    return "\n".join(lines)


def elementwise(expression: str, *arrays: np.ndarray, result: npt.DTypeLike) -> np.ndarray:
    """The array of ``expression`` over the elements of ``arrays``."""
    out = np.zeros(arrays[0].shape, result)
    source = elementwise_source(
        expression, [SHORT_NAMES[array.dtype] for array in arrays], SHORT_NAMES[out.dtype]
    )
    run(source, *arrays, out, ranges=[(0, out.size)])
    return out


def kernel_assembly(source: str) -> str:
    """The assembly text of a kernel."""
    reference = optimised_module(source, "test")
    text: str = kernel_machine().emit_assembly(reference)
    return text


def compiled_together(programs: Sequence[tuple[Any, Sequence[Any]]]) -> int:
    """Has the emulator's compiler compile the kernels of functions, for these arguments, as one
    unit: a tenth of the time that they take one by one. How many kernels they have."""
    texts: list[str] = []
    for function, args in programs:
        module = lowered(function._specialised(args, {}).module, "fuse", on="cuda_emulator")
        texts += [text.source for text in plan_code(plan(module, TARGET)).texts]
    texts = list(dict.fromkeys(texts))
    cuda_emulator.load(texts)
    return len(texts)
