"""Sums over windows of 3 by 3 adjacent taps: what most convolutions of single channels are.

In: words that describe lines (``offset_product``); out: the LLVM function ``window_sums``. A line
is read once for several rows of windows, and weights stay in registers. Where lines are those of an
image as it lies, columns beyond it are masked. Meanwhile what will be read next is fetched. Of
small planes many are summed in a call: what does not depend on the plane is found once for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.compiler.llvm_writer import Function, Word, over
from pyrelay.devices.routines.convolution_first import WINDOW
from pyrelay.devices.routines.line_sums import every_second, in_order
from pyrelay.devices.routines.matmul_tiles import Code, Shape

_TALL = 4  # rows of windows at a time
_WORDS = 15
_CACHE_LINE = 64


class WindowSums:
    """Writes the function ``window_sums``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        element = LLVM_TYPES[SHORT_NAMES[dtype]]
        self.size, self.lanes = 4 if dtype == "f32" else 8, lanes
        self.f = f = Function(module, name, 1)
        self.code = code = Code(f.b, Shape(element, lanes, 1, 1))
        (words,) = f.parameters
        (self.table, c, self.count, self.columns, weights, stride2, following, self.low,
         self.high, self.before, self.extent, room, first, stop, self.steps) = (
             f.load(words, 8 * place) for place in range(_WORDS))  # fmt: skip
        self.following = f.variable(following)
        self.last = (self.columns < lanes).choose(0, self.columns - lanes)
        pixels = self.count * self.columns
        with over(f, first, stop, 1) as plane:
            self.plane, self.c = plane, c + plane * pixels * self.size
            self.end = (stop - plane) * pixels + room - lanes
            taps = code.pointer((weights + plane * (WINDOW**2 * self.size)).raw)
            self.held = [
                code.splat(code.load_scalar(code.at(taps, code.word(k)))) for k in range(WINDOW**2)
            ]
            with f.either(stride2.equals(2)) as (halved, adjacent):
                for stride, branch in ((2, halved), (1, adjacent)):
                    with branch, f.either(self.count >= _TALL) as (many, few):
                        for tall, rows in ((_TALL, many), (1, few)):
                            with rows:
                                self._inner(stride, tall)
                                self._outer(stride, tall)
        f.ret(0)

    def _inner(self, stride: int, tall: int) -> None:
        """The columns that need no masks, ``tall`` rows at a time; what is left over at the end is
        summed with what was before it once more."""
        f, lanes = self.f, self.lanes
        rows = (self.low < self.high).choose(self.count, 0)
        with over(f, 0, rows, tall) as number:
            row = f.smaller(number, self.count - tall)
            lines = self._lines(row, stride, tall)
            with over(f, self.low, self.high, lanes) as column:
                j = f.smaller(column, self.last)
                self._fetch(tall * lanes * self.size * stride**2)
                self._windows(lines, stride, row, j, None)

    def _outer(self, stride: int, tall: int) -> None:
        """The other columns: masks are the same for all rows."""
        f, lanes = self.f, self.lanes
        column = f.variable(self.low.equals(0).choose(self.high, 0))
        with f.while_(lambda: column.now < self.columns):
            j = f.smaller(column.now, self.last)
            masks = self._masks(j, stride)
            with over(f, 0, self.count, tall) as number:
                row = f.smaller(number, self.count - tall)
                self._windows(self._lines(row, stride, tall), stride, row, j, masks)
            following = column.now + lanes
            column.set(following.equals(self.low).choose(self.high, following))

    def _lines(self, row: Word, stride: int, tall: int) -> list[Any]:
        """Pointers to the lines that rows of windows see."""
        f, place = self.f, row * (8 * stride)
        first, step = self.table + place, self.steps + place
        lines = [
            f.load(first, 8 * k) + f.load(step, 8 * k) * self.plane
            for k in range((tall - 1) * stride + WINDOW)
        ]
        return [self.code.pointer(line.raw) for line in lines]

    def _starts(self, stride: int) -> list[int]:
        """Where the vectors begin that are read of a line: one for each tap; of a stride of 2 two,
        of which adjacent taps share the first."""
        return [0, 1, 2] if stride == 1 else [0, self.lanes, 2, self.lanes + 2]

    def _masks(self, j: Word, stride: int) -> list[Any]:
        b, code, found = self.f.b, self.code, []
        for start in self._starts(stride):
            place = j * stride + start - self.before
            outside = code.below((self.f.number(0) - place).raw, 0)
            found.append(b.and_(code.below((self.extent - place).raw, 0), b.not_(outside)))
        return found

    def _fetch(self, size: int) -> None:
        here = self.following.now
        for at in range(0, size, _CACHE_LINE):
            self.code.prefetch(self.code.pointer((here + at).raw), written=False)
        self.following.set(here + size)

    def _windows(
        self, lines: Sequence[Any], stride: int, row: Word, j: Word, masks: Sequence[Any] | None
    ) -> None:
        """A vector of windows, from column ``j`` on, of each row."""
        code, starts = self.code, self._starts(stride)
        tall = (len(lines) - WINDOW) // stride + 1
        sums: list[Any] = [llvm.Constant(code.shape.vector, None)] * tall
        for number, line in enumerate(lines):
            place = code.at(line, (j * stride).raw)
            read = [
                code.load_part(code.at(place, code.word(start)), mask)
                for start, mask in zip(starts, masks or [None] * len(starts), strict=True)
            ]
            if stride == 2:
                a, b, c, d = read
                read = [
                    every_second(code, a, b), every_second(code, a, b, first=1),
                    every_second(code, c, d),
                ]
            for r in range(tall):
                tap = number - r * stride
                if 0 <= tap < WINDOW:
                    weights = self.held[tap * WINDOW : (tap + 1) * WINDOW]
                    for weight, value in zip(weights, read, strict=True):
                        sums[r] = code.fma(weight, value, sums[r])
        if stride == 2:
            sums = [in_order(code, total, 2) for total in sums]
        self._store(sums, row, j)

    def _store(self, sums: Sequence[Any], row: Word, j: Word) -> None:
        """What lies beyond a row narrower than a vector the next ones rewrite."""
        f, code = self.f, self.code
        places = [(row + r) * self.columns + j for r in range(len(sums))]
        stores = [
            (place, total, code.at(code.pointer(self.c.raw), place.raw))
            for place, total in zip(places, sums, strict=True)
        ]
        with f.either(places[-1] <= self.end) as (wholes, parts):
            with wholes:
                for _, total, to in stores:
                    code.store(total, to)
            with parts:
                mask = code.below((self.columns - j).raw, 0)
                for place, total, to in stores:
                    with f.either(place <= self.end) as (whole, part):
                        with whole:
                            code.store(total, to)
                        with part:
                            code.store_masked(total, to, mask)
