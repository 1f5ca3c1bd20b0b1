"""Runs lowered groups as the executor would: kernels compiled, buffers made, failures raised."""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pyrelay.devices.compiler import native
from pyrelay.errors import exception_of
from pyrelay.ir import dims, interp
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Function, Module, Var
from pyrelay.ir.types import DType, TensorType
from pyrelay.lower.kernels.kernel import Kernel
from pyrelay.lower.kernels.kernelise import kernelise
from pyrelay.lower.text.emit_kernel import emit

_FORMATS = {"f64": "d", "f32": "fxxxx"}


def function_of(
    types: Sequence[TensorType], body: Callable[..., Any], symbols: Sequence[Symbol] = ()
) -> Function:
    """A function whose body is written on handles."""
    b = Builder()
    params = tuple(Var(f"p{k}", ty) for k, ty in enumerate(types))
    results = body(b, *(Handle(b, p) for p in params))
    if not isinstance(results, (tuple, list)):
        results = (results,)
    return Function("group", params, b.block(results), tuple(symbols))


def words_of(value: Any, dtype: DType) -> list[int]:
    """The words of a scalar argument."""
    if dtype.kind == "c":
        parts = np.asarray(value, dtype.numpy).tobytes()
        return [int(v) for v in np.frombuffer(parts, "i8")]
    if dtype.kind == "b":
        return [int(bool(value))]
    if dtype.name in _FORMATS:
        packed = struct.pack("<" + _FORMATS[dtype.name], value)
        return [int.from_bytes(packed, "little", signed=True)]
    number = int(value)
    return [number - 2**64 if number >= 2**63 else number]


def scalar_of(words: np.ndarray, dtype: DType) -> Any:
    """The scalar in a slot."""
    if dtype.kind == "b":
        return bool(words[0])
    return words.view(dtype.numpy)[0]


class Failed(Exception):
    """A kernel has failed: its site and values."""

    def __init__(self, site: Any, values: list[Any]) -> None:
        super().__init__(site, values)
        self.site, self.values = site, values

    def raised(self) -> BaseException:
        """The exception that the user would see."""
        return exception_of(self.site.exception, self.site.parts, self.values)


_NEVER_STOP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda process: 0)


def launch(kernel: Kernel, operands: list[int], extent: int, chunks: int) -> None:
    """One kernel over its range, in `chunks` pieces."""
    record = np.zeros(18, np.int64)
    record[16] = ctypes.cast(_NEVER_STOP, ctypes.c_void_p).value
    block = np.array([record.ctypes.data, *operands], np.int64)
    entry = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)(
        native.kernel_address(emit(kernel))
    )
    edges = [extent * k // chunks for k in range(chunks + 1)]
    for begin, end in itertools.pairwise(edges):
        if entry(block.ctypes.data, begin, end):
            site = kernel.sites[record[0]]
            values, word = [], 1
            for dtype in site.dtypes:
                values.append(scalar_of(record[word : word + 2].copy(), dtype))
                word += 2 if dtype.size == 16 else 1
            raise Failed(site, values)


def run(
    function: Function, args: Sequence[Any], *, chunks: int = 1,
    known: Mapping[Symbol, int] | None = None, long: bool = False,
) -> list[Any]:
    """The results of a function, computed by its kernels. Arrays that are written are copied.

    `known` are extents that the arguments do not tell; `long` takes the kernels for long rows.
    """
    lowering = kernelise(function, splits=long)
    if long:
        assert lowering.long is not None
        lowering = replace(
            lowering, kernels=lowering.long.kernels, scratch=lowering.long.scratch
        )
    extents = interp.bind_extents(function, args, dict(known or {}))
    held = [
        np.array(a, p.type.dtype.numpy, order="C") if p.type.rank else a
        for p, a in zip(function.params, args, strict=True)
    ]
    outputs: list[np.ndarray] = []
    for position, atom in enumerate(function.body.results):
        shape = tuple(dims.evaluate(d, extents) for d in atom.type.shape)
        alias = lowering.aliases[position]
        if alias is not None:
            outputs.append(held[alias])
        elif shape:
            outputs.append(np.empty(shape, atom.type.dtype.numpy))
        else:
            outputs.append(np.zeros(2, np.int64))
    scratch = [np.empty(dims.evaluate(n, extents), np.uint8) for n in lowering.scratch]
    for kernel in lowering.kernels:
        operands: list[int] = []
        for p in kernel.parameters:
            match p.role:
                case "array":
                    operands.append(held[p.position].ctypes.data)
                case "scalar":
                    operands += words_of(held[p.position], p.dtype)
                case "extent":
                    operands.append(extents[function.dims[p.position]])
                case "output" | "slot":
                    operands.append(outputs[p.position].ctypes.data)
                case "scratch" | "row":
                    operands.append(scratch[p.position].ctypes.data)
        launch(kernel, operands, dims.evaluate(kernel.extent, extents), chunks)
    return [
        out if atom.type.rank else scalar_of(out, atom.type.dtype)
        for out, atom in zip(outputs, function.body.results, strict=True)
    ]


def reference(function: Function, args: Sequence[Any]) -> tuple[Any, ...]:
    """The results by the interpreter."""
    return interp.interpret(Module({function.name: function}, function.name), args)
