"""Sums of shifted lines: what convolutions of single channels are made of.

In: words that describe the lines (``offset_product``); out: the LLVM function ``line_sums``. Of as
many taps as three by three the weights stay in registers while rows pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir as llvm

from pyrelay.devices.convolution_first import HELD
from pyrelay.devices.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.llvm_writer import WORD, Function, Word, over
from pyrelay.devices.matmul_tiles import Code, Shape


def every_second(code: Code, x: Any, y: Any) -> Any:
    """Every second element of two vectors, but 16 bytes of ``x``, of ``y``, of ``x``, ...: CPUs
    take longer to exchange elements between those. ``in_order`` ends what this begins."""
    return code.b.shuffle_vector(x, y, _numbers(code, _taken(code)))


def in_order(code: Code, x: Any, count: int) -> Any:
    """The elements of a vector in order, to which ``every_second`` has reduced ``count``, so many
    elements of which are no more than 16 bytes."""
    taken, lanes = _taken(code), code.shape.lanes
    vectors = [list(range(v * lanes, v * lanes + lanes)) for v in range(count)]
    while len(vectors) > 1:
        both = [left + right for left, right in zip(vectors[::2], vectors[1::2], strict=True)]
        vectors = [[each[place] for place in taken] for each in both]
    (numbers,) = vectors
    order = sorted(range(lanes), key=numbers.__getitem__)
    return code.b.shuffle_vector(x, x, _numbers(code, order))


def _taken(code: Code) -> list[int]:
    lanes, block = code.shape.lanes, 16 // (4 if code.shape.element == llvm.FloatType() else 8)
    starts = [start for first in range(0, lanes, block) for start in (first, lanes + first)]
    return [place for start in starts for place in range(start, start + block, 2)]


def _numbers(code: Code, numbers: Sequence[int]) -> Any:
    return llvm.Constant(llvm.VectorType(llvm.IntType(32), code.shape.lanes), list(numbers))


class LineSums:
    """Writes the function ``line_sums``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        self.element = LLVM_TYPES[SHORT_NAMES[dtype]]
        self.size, self.lanes = 4 if dtype == "f32" else 8, lanes
        self.f = f = Function(module, name, 1)
        f.native.linkage = "internal"
        (words,) = f.parameters
        (self.b, self.b_row, self.c, self.c_row, self.weights, self.table, self.m, self.n,
         self.k) = (f.load(words, 8 * place) for place in range(9))  # fmt: skip
        with f.either(self.k.equals(HELD)) as (held, any_count):
            with held, f.either(f.load(words, 72).equals(2)) as (halved, adjacent):
                for stride, branch in ((2, halved), (1, adjacent)):
                    with branch:
                        self._rows(stride)
            with any_count, f.either(self.n >= 4 * lanes) as (broad, narrow):
                with broad:
                    self._sweep(2, 4)
                with narrow, f.either(self.n >= lanes) as (whole, part):
                    with whole:
                        self._sweep(4, 1)
                    with part:
                        self._sweep(4, 1, masked=True)
        f.ret(0)

    def _rows(self, stride: int) -> None:
        """Row by row, with the weights in registers. What the last vector of a row writes beyond
        it, the next row rewrites: so only the last rows are cut."""
        f, b, lanes = self.f, self.f.b, self.lanes
        code = Code(b, Shape(self.element, lanes, 1, 1))
        base, weights = code.pointer(self.b.raw), code.pointer(self.weights.raw)
        table, out = b.inttoptr(self.table.raw, WORD.as_pointer()), code.pointer(self.c.raw)
        held, lines = [], []
        for k in range(HELD):
            number = code.word(k)
            held.append(code.splat(code.load_scalar(code.at(weights, number))))
            offset = b.load(b.gep(table, [number], source_etype=WORD), typ=WORD)
            lines.append(code.at(base, offset))
        zero = llvm.Constant(code.shape.vector, None)

        def total(index: Word) -> Any:
            found = zero
            for line, weight in zip(lines, held, strict=True):
                place = code.at(line, index.raw)
                value = code.load(place)
                if stride == 2:
                    after = code.load(code.at(place, code.word(lanes)))
                    value = every_second(code, value, after)
                found = code.fma(weight, value, found)
            return in_order(code, found, 2) if stride == 2 else found

        end = self.m * self.c_row
        with over(f, 0, self.m, 1) as i:
            source, to = i * self.b_row, i * self.c_row
            whole = self.n & -lanes
            safe = to + whole + lanes <= end
            whole = safe.choose(self.n, whole)
            with over(f, 0, whole, lanes) as j:
                code.store(total(source + j * stride), code.at(out, (to + j).raw))
            with f.when(whole < self.n):
                mask = code.below((self.n - whole).raw, 0)
                place = code.at(out, (to + whole).raw)
                code.store_masked(total(source + whole * stride), place, mask)

    def _sweep(self, tall: int, across: int, masked: bool = False) -> None:
        """All rows, so many of them and so many vectors at a time; the last tiles overlap."""
        f, wide = self.f, across * self.lanes
        with over(f, 0, self.m, tall) as i, over(f, 0, self.n, wide) as j:
            last = f.number(0) if masked else self.n - wide
            self._tile(tall, across, i, f.smaller(j, last), masked)

    def _tile(self, tall: int, across: int, i: Word, j: Word, masked: bool) -> None:
        b = self.f.b
        code = Code(b, Shape(self.element, self.lanes, tall, across))
        rows, steps = (self.m - i).raw, [code.word(v * self.lanes) for v in range(across)]

        def pointers(base: Word, row: Word) -> list[Any]:
            first = code.pointer((base + (i * row + j) * self.size).raw)
            return code.clamped_rows(first, row.raw, tall, rows)

        lines = pointers(self.b, self.b_row)
        weights = code.pointer(self.weights.raw)
        table = b.inttoptr(self.table.raw, WORD.as_pointer())

        def body(k: Any, sums: list[Any]) -> list[Any]:
            weight = code.splat(code.load_scalar(code.at(weights, k)))
            offset = b.load(b.gep(table, [k], source_etype=WORD), typ=WORD)
            places = [code.at(code.at(line, offset), step) for line in lines for step in steps]
            return [
                code.fma(weight, code.load(place), total)
                for place, total in zip(places, sums, strict=True)
            ]

        zero = llvm.Constant(code.shape.vector, None)
        sums = code.loop(self.k.raw, 1, [zero] * (tall * across), body)
        mask = code.below((self.n - j).raw, 0)
        places = [code.at(row, step) for row in pointers(self.c, self.c_row) for step in steps]
        for place, total in zip(places, sums, strict=True):
            if masked:
                code.store_masked(total, place, mask)
            else:
                code.store(total, place)
