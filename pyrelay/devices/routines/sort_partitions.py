"""Parts of a line on either side of a pivot: the steps of quicksort.

In: ``divide_<rule>_T[x lanes](start, count, pivot)``, of addresses and a number of elements; out:
how many elements belong in the first part, which lie at the start then, and the others behind them,
in any order. The rule is ``less`` (than the pivot, the first part) or ``same`` (not greater than
it). With lanes, vectors of 256 or 512 bits are divided by a permutation that a table gives for each
mask (Bramas, "A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake", IJACSA
8(10), 2017), which CPUs with AVX2 or AVX-512 have an instruction for; sixteen lanes and more, for
which the table is too long, by the instructions that compress and expand. The first and the last
vectors are read before any is written, and from then on those at the end that has less room: so
what a round writes at both ends always finds room there. Without lanes, and behind the last whole
vector, elements change places with the first of the others.

``take_numbers_T[x lanes](source, count, to, end)`` puts all but NaNs at ``to``, which may be
``source``, and NaNs before the address ``end``, which belongs to other memory; out: how many are
no NaNs. ``copy_numbers_T[x lanes](source, count, to)`` copies them all; out: not 0 if one is a NaN.
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

_AT_ONCE = 8  # vectors in a round of the loop
_I32 = llvm.IntType(32)
_BYTE = llvm.IntType(8)


class _Vectors:
    """Vectors of elements and their division by a mask; a function of so many words is written."""

    def __init__(
        self, module: llvm.Module, name: str, kind: types.Type, lanes: int, parameters: int
    ) -> None:
        self.kind, self.lanes = kind, lanes
        self.element = LLVM_TYPES[kind]
        self.size = kind.bitwidth // 8
        self.f = Function(module, name, parameters)
        self.b = self.f.b
        if lanes > 1:
            self.vector = llvm.VectorType(self.element, lanes)
            self.table = self._table(module) if lanes <= 8 else None

    def _element(self, address: Word) -> Any:
        pointer = self.b.inttoptr(address.raw, self.element.as_pointer())
        return self.b.load(pointer, typ=self.element)

    def _write(self, value: Any, address: Word) -> None:
        pointer = self.b.inttoptr(address.raw, value.type.as_pointer())
        self.b.store(value, pointer, align=self.size)

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

    def _load(self, address: Word) -> Any:
        return self.b.load(
            self.b.inttoptr(address.raw, self.vector.as_pointer()), align=1, typ=self.vector
        )

    def _parted(self, vector: Any, mask: Any) -> Any:
        """The elements of a mask, and behind them the others."""
        b = self.b
        if self.table is not None:
            return self._permuted(vector, b.zext(mask, llvm.IntType(64)))
        flags = llvm.VectorType(llvm.IntType(1), self.lanes)
        low = self._native("compress", vector, vector, b.bitcast(mask, flags))
        others = self._native("compress", vector, vector, b.bitcast(b.not_(mask), flags))
        word = llvm.IntType(64)
        ends = b.shl(llvm.Constant(word, -1), b.zext(b.ctpop(mask), word))
        return self._native("expand", others, low, b.bitcast(b.trunc(ends, mask.type), flags))

    def _divided(self, vector: Any, flags: Any, low: Word, high: Word) -> tuple[Word, Word]:
        """Write a vector at both ends of what is free; the ends afterwards."""
        b, width = self.b, self.lanes * self.size
        mask = b.bitcast(flags, llvm.IntType(self.lanes))
        parted = self._parted(vector, mask)
        self._write(parted, low)
        self._write(parted, high - width)
        firsts = Word(self.f, b.ctpop(b.zext(mask, llvm.IntType(64)))) * self.size
        return low + firsts, high - width + firsts

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


class _Division(_Vectors):
    """Writes the function that divides a line by a rule, where it lies."""

    def __init__(
        self, module: llvm.Module, name: str, rule: str, kind: types.Type, lanes: int
    ) -> None:
        super().__init__(module, name, kind, lanes, 3)
        self.rule, f = rule, self.f
        start, count, pivot = f.parameters
        self.pivot = self._element(pivot)
        self.low, self.next = f.variable(start), f.variable(start)
        if lanes > 1:
            self.pivots = self._spread(self.pivot)
            with f.either(count >= 2 * _AT_ONCE * lanes) as (many, few):
                with many:
                    self._vectors(start, count, _AT_ONCE)
                with few, f.when(count >= 2 * lanes):
                    self._vectors(start, count, 1)
        with over(f, self.next.now, start + count * self.size, self.size) as now:
            value, low = self._element(now), self.low.now
            self._write(self._element(low), now)
            self._write(value, low)
            first = Word(f, self.b.zext(self._first(value, self.pivot), llvm.IntType(64)))
            self.low.set(low + first * self.size)
        f.ret((self.low.now - start).unsigned_div(self.size))

    def _first(self, x: Any, pivot: Any) -> Any:
        """Which elements belong in the first part."""
        if self.rule == "less":
            return less(self.b, self.kind, x, pivot)
        return self.b.not_(less(self.b, self.kind, pivot, x))

    def _vectors(self, start: Word, count: Word, at_once: int) -> None:
        """All whole vectors, so many in a round."""
        f, width = self.f, self.lanes * self.size
        end = start + (count & -self.lanes) * self.size
        kept = [self._load(start + k * width) for k in range(at_once)]
        kept += [self._load(end - (k + 1) * width) for k in range(at_once)]
        self.high = f.variable(end)
        step = at_once * width
        self.left, self.right = f.variable(start + step), f.variable(end - step)
        if at_once > 1:
            with f.while_(lambda: ((self.right.now - self.left.now) & (step - 1)).differs(0)):
                self._round(1)
        with f.while_(lambda: self.left.now < self.right.now):
            self._round(at_once)
        low, high = self.low.now, self.high.now
        for vector in kept:
            low, high = self._divided(vector, self._first(vector, self.pivots), low, high)
        self.low.set(low)
        self.next.set(end)

    def _round(self, vectors: int) -> None:
        width = self.lanes * self.size
        step = vectors * width
        low, high, left, right = (v.now for v in (self.low, self.high, self.left, self.right))
        behind = (high - right) < (left - low)
        at = behind.choose(right - step, left)
        self.left.set(behind.choose(left, left + step))
        self.right.set(behind.choose(right - step, right))
        # All are read before any is written.
        read = [self._load(at + k * width) for k in range(vectors)]
        for vector in read:
            low, high = self._divided(vector, self._first(vector, self.pivots), low, high)
        self.low.set(low)
        self.high.set(high)


class _Numbers(_Vectors):
    """Writes the function that sets NaNs apart."""

    def __init__(self, module: llvm.Module, name: str, kind: types.Type, lanes: int) -> None:
        super().__init__(module, name, kind, lanes, 4)
        f, b = self.f, self.b
        source, count, to, end = f.parameters
        at, stop = f.variable(source), source + count * self.size
        low_now, high_now = f.variable(to), f.variable(end)
        width = lanes * self.size
        if lanes > 1:
            with over(f, source, stop - (width - 1), width) as now:
                vector = self._load(now)
                flags = b.fcmp_ordered("ord", vector, vector)
                low, high = self._divided(vector, flags, low_now.now, high_now.now)
                low_now.set(low)
                high_now.set(high)
                at.set(now + width)
        with over(f, at.now, stop, self.size) as now:
            value = self._element(now)
            first = Word(f, b.zext(b.fcmp_ordered("ord", value, value), llvm.IntType(64)))
            low, high = low_now.now, high_now.now - self.size
            self._write(value, low)
            self._write(value, high)
            low_now.set(low + first * self.size)
            high_now.set(high + first * self.size)
        f.ret((low_now.now - to).unsigned_div(self.size))


class _Copy(_Vectors):
    """Writes the function that copies elements and sees whether there is a NaN among them."""

    def __init__(self, module: llvm.Module, name: str, kind: types.Type, lanes: int) -> None:
        super().__init__(module, name, kind, lanes, 3)
        f, b = self.f, self.b
        source, count, to = f.parameters
        at, stop, found = f.variable(source), source + count * self.size, f.variable(0)
        apart = to - source
        for vectors in (_AT_ONCE, 1) if lanes > 1 else ():
            width = lanes * self.size
            with over(f, at.now, stop - (vectors * width - 1), vectors * width) as now:
                any_nan = None
                for k in range(vectors):
                    vector = self._load(now + k * width)
                    self._write(vector, now + apart + k * width)
                    nan = b.fcmp_unordered("uno", vector, vector)
                    any_nan = nan if any_nan is None else b.or_(any_nan, nan)
                mask = b.zext(b.bitcast(any_nan, llvm.IntType(lanes)), llvm.IntType(64))
                found.set(found.now | Word(f, mask))
                at.set(now + vectors * width)
        with over(f, at.now, stop, self.size) as now:
            value = self._element(now)
            self._write(value, now + apart)
            nan = b.zext(b.fcmp_unordered("uno", value, value), llvm.IntType(64))
            found.set(found.now | Word(f, nan))
        f.ret(found.now)


@functools.cache
def _part(name: str, rule: str, dtype: str, lanes: int) -> Part:
    kind = SHORT_NAMES[dtype]
    if rule == "take_numbers":
        return Part(name, types.int64, 4, functools.partial(_Numbers, kind=kind, lanes=lanes))
    if rule == "copy_numbers":
        return Part(name, types.int64, 3, functools.partial(_Copy, kind=kind, lanes=lanes))
    write = functools.partial(_Division, rule=rule[7:], kind=kind, lanes=lanes)
    return Part(name, types.int64, 3, write)


def __getattr__(name: str) -> Part:
    kinds = r"([fiu](?:32|64)|[iu]16)(?:x(4|8|16|32))?"
    match = re.fullmatch(f"(divide_less|divide_same|take_numbers|copy_numbers)_{kinds}", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, match[1], match[2], int(match[3] or 1))
