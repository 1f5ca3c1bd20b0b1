"""Planes by themselves and few taps: what the derivatives of convolutions of single channels are.

In: words that describe planes; out: LLVM functions, and the parts that call them from a kernel's
text, made on demand for vectors of so many elements. A plane is ``rows`` by ``columns`` elements,
one row behind the other; what is outside is not added.

``tap_sums_f32x8(target, rows, columns, source, source_rows, source_columns, weights, apart,
taps0, taps2, step0, step2, before0, before2)``
    ``target[i, j] = sum over k and l of weight[k, l] * source[i + k * step0 - before0,
    j + l * step2 - before2]``; weights are ``apart`` elements from one to the next, -1 where they
    go from the last to the first.

``tap_dots_f32x8(...)``
    The same words, of which the target is read and the weights are added to: ``weight[k, l] += sum
    over i and j of target[i, j] * source[i + k * step0 - before0, j + l * step2 - before2]``.

``tap_joins_f32x8(target, line, rows, columns, even, even_line, odd, odd_line)``
    ``target[i, 2 * j] = even[i, j]`` and ``target[i, 2 * j + 1] = odd[i, j]``, rows of which are so
    many elements apart; reads whole vectors.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.compiler.llvm_writer import Function, Word, over
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul_tiles import Code, Shape

_AT_ONCE = 4  # rows of sums, or taps, none of which waits for another
_WORDS = 14
_JOINED_WORDS = 8


class _Planes:
    """Writes ``tap_sums`` and ``tap_dots``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int, what: str) -> None:
        self.size = 4 if dtype == "f32" else 8
        self.f = f = Function(module, name, _WORDS)
        self.code = code = Code(f.b, Shape(LLVM_TYPES[SHORT_NAMES[dtype]], lanes, 1, 1))
        (self.target, self.rows, self.columns, self.source, self.source_rows, self.source_columns,
         self.weights, self.apart, self.taps0, self.taps2, self.step0, self.step2, self.before0,
         self.before2) = f.parameters  # fmt: skip
        self.zero = llvm.Constant(code.shape.vector, None)
        if what == "sums":
            with over(f, 0, self.columns, lanes) as j, over(f, 0, self.rows, _AT_ONCE) as i:
                self._sums(i, j)
        else:
            with over(f, 0, self.taps0, 1) as k, over(f, 0, self.taps2, _AT_ONCE) as first:
                self._dots(k, first)
        f.ret(0)

    def _at(self, base: Word, index: Word) -> Any:
        return self.code.pointer((base + index * self.size).raw)

    def _inside(self, column: Word) -> Any:
        """The mask of columns of the source from ``column`` on."""
        b, code = self.f.b, self.code
        below = code.below((self.source_columns - column).raw, 0)
        return b.and_(below, b.not_(code.below((self.f.number(0) - column).raw, 0)))

    def _added(self, row: Word, column: Word, mask: Any, factor: Any, total: Any) -> Any:
        """The total, and the factor times a vector of the source where the mask says so."""
        place = self._at(self.source, row * self.source_columns + column)
        product = self.code.fma(self.code.load_masked(place, mask), factor, total)
        return self.f.b.select(mask, product, total)

    def _sums(self, i: Word, j: Word) -> None:
        """A vector of some rows."""
        f, code = self.f, self.code
        rows = [i + n for n in range(_AT_ONCE)]
        nowhere = llvm.Constant(code.shape.mask, None)

        def of_row(k: Any, sums: list[Any]) -> list[Any]:
            places = [row + Word(f, k) * self.step0 - self.before0 for row in rows]
            there = [(place >= 0) & (place < self.source_rows) for place in places]

            def of_tap(tap: Any, sums: list[Any]) -> list[Any]:
                number = Word(f, k) * self.taps2 + Word(f, tap)
                weight = code.splat(code.load_scalar(self._at(self.weights, number * self.apart)))
                column = j + Word(f, tap) * self.step2 - self.before2
                mask = self._inside(column)
                return [
                    self._added(
                        place, column, f.b.select(inside.raw, mask, nowhere), weight, total
                    )
                    for place, inside, total in zip(places, there, sums, strict=True)
                ]

            return list(code.loop(self.taps2.raw, 1, sums, of_tap, unrolled=False))

        sums = code.loop(self.taps0.raw, 1, [self.zero] * _AT_ONCE, of_row, unrolled=False)
        for row, total in zip(rows, sums, strict=True):
            count = (row < self.rows).choose(self.columns - j, 0)
            mask = code.below(count.raw, 0)
            code.store_masked(total, self._at(self.target, row * self.columns + j), mask)

    def _dots(self, k: Word, first: Word) -> None:
        """Some adjacent taps; those beyond the last are added up for nobody."""
        f, code, lanes = self.f, self.code, self.code.shape.lanes
        taps = [first + n for n in range(_AT_ONCE)]
        shift = k * self.step0 - self.before0
        start = (shift < 0).choose(f.number(0) - shift, 0)
        stop = f.smaller(self.source_rows - shift, self.rows)

        def of_column(j: Any, sums: list[Any]) -> list[Any]:
            own = code.below((self.columns - Word(f, j)).raw, 0)
            columns = [Word(f, j) + tap * self.step2 - self.before2 for tap in taps]
            masks = [f.b.and_(own, self._inside(column)) for column in columns]

            def of_row(i: Any, sums: list[Any]) -> list[Any]:
                row = Word(f, i)
                place = self._at(self.target, row * self.columns + Word(f, j))
                factor = code.load_masked(place, own)
                return [
                    self._added(row + shift, column, mask, factor, total)
                    for column, mask, total in zip(columns, masks, sums, strict=True)
                ]

            return list(code.loop(stop.raw, 1, sums, of_row, unrolled=False, start=start.raw))

        sums = code.loop(self.columns.raw, lanes, [self.zero] * _AT_ONCE, of_column, unrolled=False)
        for tap, total in zip(taps, sums, strict=True):
            with f.when(tap < self.taps2):
                place = self._at(self.weights, (k * self.taps2 + tap) * self.apart)
                f.b.store(f.b.fadd(code.load_scalar(place), code.sum(total)), place)


class _Joins:
    """Writes ``tap_joins``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        size = 4 if dtype == "f32" else 8
        f = Function(module, name, _JOINED_WORDS)
        code = Code(f.b, Shape(LLVM_TYPES[SHORT_NAMES[dtype]], lanes, 1, 1))
        target, line, rows, columns, even, even_line, odd, odd_line = f.parameters
        pairs = [llvm.Constant(
            llvm.VectorType(llvm.IntType(32), lanes),
            [first // 2 + k // 2 + k % 2 * lanes for k in range(lanes)],
        ) for first in (0, lanes)]  # fmt: skip
        with over(f, 0, rows, 1) as i, over(f, 0, columns, 2 * lanes) as j:
            half = j.unsigned_div(2)
            both = [
                code.load(code.pointer((base + (i * apart + half) * size).raw))
                for base, apart in ((even, even_line), (odd, odd_line))
            ]
            for part, pair in enumerate(pairs):
                to = code.pointer((target + (i * line + j + part * lanes) * size).raw)
                mask = code.below((columns - j).raw, part * lanes)
                code.store_masked(f.b.shuffle_vector(both[0], both[1], pair), to, mask)
        f.ret(0)


@functools.cache
def _part(name: str, what: str, dtype: str, lanes: int) -> Part:
    if what == "joins":
        joins = functools.partial(_Joins, dtype=dtype, lanes=lanes)
        return Part(name, types.void, _JOINED_WORDS, joins)
    write = functools.partial(_Planes, dtype=dtype, lanes=lanes, what=what)
    return Part(name, types.void, _WORDS, write)


def __getattr__(name: str) -> Part:
    match = re.fullmatch(r"tap_(sums|dots|joins)_(f32|f64)x(2|4|8|16)", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, match[1], match[2], int(match[3]))
