"""Blocks of a few vectors sorted in registers: what sorting of lines ends in.

In: ``sort_block_T x lanes``, for elements of 32 or 64 bits, or whole numbers of 16, an address and
how many elements lie there, at most ``ROWS * lanes``, none of which is NaN; out: LLVM vector code
that sorts them in place. Vectors are compared with each other by Batcher's network (Knuth, The Art
of Computer Programming, volume 3, section 5.3.4), which sorts the columns that they make; then
neighbouring columns are merged by bitonic networks, two, four, ... of them; what stands column by
column is turned as it is stored. Lanes beyond the elements hold the greatest number there is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import (
    FLOATS,
    LLVM_TYPES,
    SHORT_NAMES,
)
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.compiler.llvm_writer import Function
from pyrelay.devices.routines.calls import Part

ROWS = 16
"""The most vectors of a block."""

_I32 = llvm.IntType(32)


def comparisons(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's network for a power of two: pairs of places, of which the first gets the less."""
    span = 1
    while span < count:
        step = span
        while step >= 1:
            for first in range(step % span, count - step, 2 * step):
                for low in range(first, min(first + step, count - step)):
                    if low // (2 * span) == (low + step) // (2 * span):
                        yield low, low + step
            step //= 2
        span *= 2


def less(build: IRBuilder, kind: types.Type, a: Any, b: Any) -> Any:
    """Whether `a < b`, of numbers of a kind or of vectors of them."""
    if kind in FLOATS:
        return build.fcmp_ordered("<", a, b)
    return (build.icmp_signed if kind.signed else build.icmp_unsigned)("<", a, b)


class _Block:
    """Writes the function that sorts a block of at most ``rows`` vectors."""

    def __init__(
        self, module: llvm.Module, name: str, kind: types.Type, lanes: int, rows: int
    ) -> None:
        self.kind, self.lanes, self.rows = kind, lanes, rows
        self.element = LLVM_TYPES[kind]
        self.vector = llvm.VectorType(self.element, lanes)
        self.f = f = Function(module, name, 2)
        self.b = f.b
        self.address, self.count = f.parameters
        vectors = [self._load(row) for row in range(rows)]
        for low, high in comparisons(rows):
            vectors[low], vectors[high] = self._ordered(vectors[low], vectors[high])
        width = 1
        while width < lanes:
            self._merge(vectors, width)
            width *= 2
        self._store(vectors)
        f.ret(0)

    # -- memory

    def _mask(self, first: int) -> Any:
        numbers = llvm.Constant(
            llvm.VectorType(_I32, self.lanes), list(range(first, first + self.lanes))
        )
        count = self.b.trunc(self.count.raw, _I32)
        some: Any = llvm.Constant(llvm.VectorType(_I32, self.lanes), llvm.Undefined)
        some = self.b.insert_element(some, count, llvm.Constant(_I32, 0))
        return self.b.icmp_signed("<", numbers, self._turned(some, [0] * self.lanes))

    def _pointer(self, first: int) -> Any:
        address = self.address + first * (self.kind.bitwidth // 8)
        return self.b.inttoptr(address.raw, self.vector.as_pointer())

    def _masked(self, name: str, result: Any, *args: Any) -> Any:
        signature = llvm.FunctionType(result, [each.type for each in args])
        letter = "f" if self.kind in FLOATS else "i"
        symbol = f"llvm.masked.{name}.v{self.lanes}{letter}{self.kind.bitwidth}.p0"
        module = self.b.module
        callee = module.globals.get(symbol) or llvm.Function(module, signature, symbol)
        return self.b.call(callee, args)

    def _load(self, row: int) -> Any:
        first = row * self.lanes
        greatest = llvm.Constant(self.vector, [self._greatest()] * self.lanes)
        return self._masked(
            "load", self.vector, self._pointer(first), llvm.Constant(_I32, 1), self._mask(first),
            greatest,
        )

    def _greatest(self) -> Any:
        if self.kind in FLOATS:
            return float("inf")
        return 2 ** (self.kind.bitwidth - (1 if self.kind.signed else 0)) - 1

    def _store(self, vectors: list[Any]) -> None:
        """Columns, one behind the other."""
        lanes = self.lanes
        for part in range(0, self.rows, lanes):
            for lane, vector in enumerate(self._transposed(vectors[part : part + lanes])):
                first = lane * self.rows + part
                self._masked(
                    "store", llvm.VoidType(), vector, self._pointer(first),
                    llvm.Constant(_I32, 1), self._mask(first),
                )

    # -- networks

    def _ordered(self, a: Any, b: Any) -> tuple[Any, Any]:
        """The lesser and the greater elements of two vectors."""
        greater = less(self.b, self.kind, b, a)
        return self.b.select(greater, b, a), self.b.select(greater, a, b)

    def _turned(self, vector: Any, lanes: list[int]) -> Any:
        return self._picked(vector, vector, lanes)

    def _picked(self, a: Any, b: Any, lanes: list[int]) -> Any:
        numbers = llvm.Constant(llvm.VectorType(_I32, self.lanes), lanes)
        return self.b.shuffle_vector(a, b, numbers)

    def _merge(self, vectors: list[Any], width: int) -> None:
        """Sort what neighbouring groups of ``width`` sorted columns hold together."""
        lanes, last = self.lanes, self.rows - 1
        turned = [lane ^ (2 * width - 1) for lane in range(lanes)]
        low_first = [lane + (lanes if lane & width else 0) for lane in range(lanes)]
        high_first = [lane + (0 if lane & width else lanes) for lane in range(lanes)]
        for row in range(self.rows // 2):
            other = self._turned(vectors[last - row], turned)
            low, high = self._ordered(vectors[row], other)
            vectors[row] = self._picked(low, high, low_first)
            vectors[last - row] = self._turned(self._picked(low, high, high_first), turned)
        apart = width // 2
        while apart:
            self._merge_columns(vectors, apart)
            apart //= 2
        step = self.rows // 2
        while step:
            for row in range(self.rows):
                if not row & step:
                    vectors[row], vectors[row + step] = self._ordered(
                        vectors[row], vectors[row + step]
                    )
            step //= 2

    def _merge_columns(self, vectors: list[Any], apart: int) -> None:
        """Compare columns that are ``apart``: those of two vectors at once."""
        lanes = range(self.lanes)
        # The lesser lanes of both vectors face the greater ones.
        ones = [lane if not lane & apart else (lane ^ apart) + self.lanes for lane in lanes]
        others = [lane ^ apart if not lane & apart else lane + self.lanes for lane in lanes]
        for row in range(0, self.rows, 2):
            a, b = vectors[row : row + 2]
            low, high = self._ordered(self._picked(a, b, ones), self._picked(a, b, others))
            vectors[row : row + 2] = self._picked(low, high, ones), self._picked(low, high, others)

    def _transposed(self, vectors: list[Any]) -> list[Any]:
        apart = 1
        lanes = range(self.lanes)
        while apart < self.lanes:
            ones = [lane if not lane & apart else (lane ^ apart) + self.lanes for lane in lanes]
            others = [lane ^ apart if not lane & apart else lane + self.lanes for lane in lanes]
            made = list(vectors)
            for row in range(self.lanes):
                if not row & apart:
                    a, b = vectors[row], vectors[row + apart]
                    made[row] = self._picked(a, b, ones)
                    made[row + apart] = self._picked(a, b, others)
            vectors, apart = made, 2 * apart
        return vectors


@functools.cache
def _part(name: str, dtype: str, lanes: int) -> Part:
    kind = SHORT_NAMES[dtype]

    def write(module: llvm.Module, name: str) -> None:
        # Few elements, as samples are, are sorted in shorter vectors.
        forms = [(min(lanes, rows), rows) for rows in (4, 8, ROWS)]
        written = [
            _Block(module, f"{name}_{rows}", kind, width, rows).f for width, rows in forms[:-1]
        ]
        whole = _Block(module, f"{name}_{ROWS}", kind, lanes, ROWS).f
        f = Function(module, name, 2)
        address, count = f.parameters
        for (width, rows), form in zip(forms, written, strict=False):
            with f.when(count <= width * rows):
                f.ret(f.call(form, address, count))
        f.ret(f.call(whole, address, count))

    return Part(name, types.void, 2, write)


def __getattr__(name: str) -> Part:
    match = re.fullmatch(r"sort_block_([fiu](?:32|64)|[iu]16)x(2|4|8|16)", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, match[1], int(match[2]))
