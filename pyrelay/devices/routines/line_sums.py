"""Sums of shifted lines: what convolutions of single channels are made of.

In: words that describe the lines (``offset_product``); out: the LLVM function ``line_sums``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.compiler.llvm_writer import WORD, Function, Word, over
from pyrelay.devices.routines.matmul_tiles import Code, Shape


def every_second(code: Code, x: Any, y: Any, first: int = 0) -> Any:
    """Every second element of two vectors, from the ``first`` on, but 16 bytes of ``x``, of ``y``,
    of ``x``, ...: CPUs take longer to exchange elements between those. ``in_order`` ends what this
    begins."""
    return code.b.shuffle_vector(x, y, _numbers(code, [k + first for k in _taken(code)]))


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
        (words,) = f.parameters
        (self.b, self.b_row, self.c, self.c_row, self.weights, self.table, self.m, self.n,
         self.k) = (f.load(words, 8 * place) for place in range(9))  # fmt: skip
        with f.either(self.n >= 4 * lanes) as (broad, narrow):
            with broad:
                self._sweep(2, 4)
            with narrow, f.either(self.n >= lanes) as (whole, part):
                with whole:
                    self._sweep(4, 1)
                with part:
                    self._sweep(4, 1, masked=True)
        f.ret(0)

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
