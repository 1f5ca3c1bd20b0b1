"""Parts of a line on either side of a pivot: the steps of quicksort.

In: ``divide_<rule>_T[x lanes](source, count, to, end, pivot)``, of addresses and a number of
elements; out: how many elements belong in the first part. They lie at ``to``, which may be
``source``, and the others before the address ``end``, which belongs to other memory, in any order.
The rule is ``less`` (than the pivot, the first part), ``same`` (not greater than it) or ``number``
(any but NaN). With lanes, vectors of 256 or 512 bits are divided by a permutation that a table
gives for each mask (Bramas, "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel
Skylake", IJACSA 8(10), 2017), which CPUs with AVX2 or AVX-512 have an instruction for; sixteen
lanes, for which the table is too long, by the instructions that compress and expand. Without lanes,
elements are stored at both ends of what is left, and one of them moves.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import (
    FLOATS,
    LLVM_TYPES,
    SHORT_NAMES,
)
from pyrelay.devices.compiler.llvm_writer import Function, Word, over
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.sort_blocks import less

_AT_ONCE = 4  # vectors in a round of the loop
_I32 = llvm.IntType(32)
_BYTE = llvm.IntType(8)


class _Division:
    """Writes the function that divides a line by a rule."""

    def __init__(
        self, module: llvm.Module, name: str, rule: str, kind: types.Type, lanes: int
    ) -> None:
        self.rule, self.kind, self.lanes = rule, kind, lanes
        self.element = LLVM_TYPES[kind]
        self.size = kind.bitwidth // 8
        self.f = f = Function(module, name, 5)
        self.b = f.b
        source, count, to, end, pivot = f.parameters
        self.pivot = self._element(pivot)
        self.low, self.high = f.variable(to), f.variable(end)
        at, stop = f.variable(source), source + count * self.size
        if lanes > 1:
            self.vector = llvm.VectorType(self.element, lanes)
            self.pivots = self._spread(self.pivot)
            self.table = self._table(module) if lanes <= 8 else None
            for vectors in (_AT_ONCE, 1):
                step = vectors * lanes * self.size
                beyond = stop - (step - 1)
                with over(f, at.now, beyond, step) as now:
                    self._vectors(now, vectors)
                    at.set(now + step)
        with over(f, at.now, stop, self.size) as now:
            self._single(now)
        f.ret((self.low.now - to).unsigned_div(self.size))

    def _element(self, address: Word) -> Any:
        pointer = self.b.inttoptr(address.raw, self.element.as_pointer())
        return self.b.load(pointer, typ=self.element)

    def _first(self, x: Any, pivot: Any) -> Any:
        """Which elements belong in the first part."""
        b = self.b
        if self.rule == "number":
            return b.fcmp_ordered("ord", x, x)
        left, right = (x, pivot) if self.rule == "less" else (pivot, x)
        found = less(b, self.kind, left, right)
        return found if self.rule == "less" else b.not_(found)

    # -- one by one

    def _single(self, address: Word) -> None:
        b, f = self.b, self.f
        value = self._element(address)
        first = Word(f, b.zext(self._first(value, self.pivot), llvm.IntType(64)))
        for place in (self.low.now, self.high.now - self.size):
            b.store(value, b.inttoptr(place.raw, self.element.as_pointer()))
        self.low.set(self.low.now + first * self.size)
        self.high.set(self.high.now - self.size + first * self.size)

    # -- vectors

    def _spread(self, value: Any) -> Any:
        some: Any = llvm.Constant(self.vector, llvm.Undefined)
        some = self.b.insert_element(some, value, llvm.Constant(_I32, 0))
        zeros = llvm.Constant(llvm.VectorType(_I32, self.lanes), None)
        return self.b.shuffle_vector(some, some, zeros)

    def _table(self, module: llvm.Module) -> Any:
        """For each mask of lanes the numbers of eight parts of the vector: first those of its
        lanes, then those of the others; a byte each."""
        name = f"first_lanes_{self.lanes}"
        known = module.globals.get(name)
        if known is not None:
            return known
        parts = 8 // self.lanes
        rows = []
        for mask in range(2**self.lanes):
            order = sorted(range(self.lanes), key=lambda lane: not mask >> lane & 1)
            rows += [lane * parts + part for lane in order for part in range(parts)]
        kind = llvm.ArrayType(_BYTE, len(rows))
        table = llvm.GlobalVariable(module, kind, name)
        table.linkage, table.global_constant = "internal", True
        table.initializer = llvm.Constant(kind, bytearray(rows))
        return table

    def _vectors(self, address: Word, count: int) -> None:
        b, f, lanes = self.b, self.f, self.lanes
        width = lanes * self.size
        low, high = self.low.now, self.high.now
        # All are read before any is written: `to` may be the source.
        vectors = [self._load(address + k * width) for k in range(count)]
        for vector in vectors:
            mask = b.bitcast(self._first(vector, self.pivots), llvm.IntType(lanes))
            number = b.zext(mask, llvm.IntType(64))
            for place, parted in zip((low, high - width), self._parted(vector, mask), strict=True):
                b.store(parted, b.inttoptr(place.raw, self.vector.as_pointer()), align=1)
            firsts = Word(f, b.ctpop(number)) * self.size
            low, high = low + firsts, high - width + firsts
        self.low.set(low)
        self.high.set(high)

    def _load(self, address: Word) -> Any:
        return self.b.load(
            self.b.inttoptr(address.raw, self.vector.as_pointer()), align=1, typ=self.vector
        )

    def _parted(self, vector: Any, mask: Any) -> tuple[Any, Any]:
        """Vectors that begin with the elements of a mask, and that end with the others."""
        b = self.b
        if self.table is not None:
            parted = self._permuted(vector, b.zext(mask, llvm.IntType(64)))
            return parted, parted
        flags = llvm.VectorType(llvm.IntType(1), self.lanes)
        low = self._native("compress", vector, vector, b.bitcast(mask, flags))
        others = self._native("compress", vector, vector, b.bitcast(b.not_(mask), flags))
        ends = b.shl(llvm.Constant(_I32, -1), b.zext(b.ctpop(mask), _I32))
        high = self._native("expand", others, others, b.bitcast(b.trunc(ends, mask.type), flags))
        return low, high

    def _native(self, what: str, *args: Any) -> Any:
        letter = "f" if self.kind in FLOATS else "i"
        name = f"llvm.x86.avx512.mask.{what}.v{self.lanes}{letter}{self.size * 8}"
        module = self.b.module
        native = module.globals.get(name) or llvm.Function(
            module, llvm.FunctionType(self.vector, [each.type for each in args]), name
        )
        return self.b.call(native, args)

    def _permuted(self, vector: Any, mask: Any) -> Any:
        b = self.b
        part = llvm.IntType(self.lanes * self.size)  # an eighth of the vector
        numbers, parts = llvm.VectorType(_BYTE, 8), llvm.VectorType(part, 8)
        start = b.gep(
            b.bitcast(self.table, _BYTE.as_pointer()), [b.mul(mask, llvm.Constant(mask.type, 8))],
            source_etype=_BYTE,
        )
        row = b.zext(b.load(b.bitcast(start, numbers.as_pointer()), align=8, typ=numbers), parts)
        name = "llvm.x86.avx2.permd" if part == _I32 else "llvm.x86.avx512.permvar.di.512"
        native = b.module.globals.get(name) or llvm.Function(
            b.module, llvm.FunctionType(parts, [parts, parts]), name
        )
        return b.bitcast(b.call(native, [b.bitcast(vector, parts), row]), self.vector)


@functools.cache
def _part(name: str, rule: str, dtype: str, lanes: int) -> Part:
    write = functools.partial(_Division, rule=rule, kind=SHORT_NAMES[dtype], lanes=lanes)
    return Part(name, types.int64, 5, write)


def __getattr__(name: str) -> Part:
    match = re.fullmatch(r"divide_(less|same|number)_([fiu](?:32|64))(?:x(4|8|16))?", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, match[1], match[2], int(match[3] or 1))
