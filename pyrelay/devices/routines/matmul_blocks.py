"""The loops of a matrix product around the register tiles of ``matmul_tiles``.

In: the parameters of a product and a range of its parallel axis (``matmul``); out: LLVM functions,
and the parts that call them from a kernel's text:

``next_part(block, unit, end, part, size)``
    the largest block of one matrix that starts at ``unit`` and lies in the range: its end as a
    unit, and in the words of ``part`` the addresses of the matrices a, b, c, then the rows
    ``i0, i1`` and columns ``j0, j1``.  ``size``: bytes of an element.
``product_f32x16(block, begin, end)``
    the product over a range of units, in vectors of 16 ``f32``.  Names are made on demand.

The functions are written with ``llvm_writer``: as Python they would take longer than LLVM
over all the rest.  Blocks and panels are Goto and van de Geijn's (*Anatomy of High-Performance
Matrix Multiplication*, ACM TOMS 34, 2008).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyrelay.devices.choices import DEFAULT
from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler import rooms
from pyrelay.devices.compiler.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.compiler.llvm_writer import WORD, Flag, Function, Variable, Word
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul import COLUMN_UNIT, FINISHING_OPERANDS, ROW_UNIT
from pyrelay.devices.routines.matmul_lines import (
    bytes_of_panel,
    gather,
    lines,
    single,
    sweep,
    unload,
)
from pyrelay.devices.routines.matmul_tiles import Code, Shape, dots, pack, tile, turn
from pyrelay.devices.runtime.layout import Status

# Blocks (``choices.py``), measured on Sapphire Rapids and Zen 2: a panel of b (two vectors wide, at
# most 32 KiB) stays in the first cache, a band of a (a multiple of the tiles' 8, 6 or 4 rows) and
# what fits of a group of panels in the second.
_NARROW_LINE = 2048  # bytes from one row of a to the next, up to which bands are not packed
_FEW_ROWS = 16  # of a, for which lines of b that are far apart stream through the cache
_FAR_LINE = 512  # bytes from one row of b to the next, beyond which stripes of it are read slowly
IN_PANELS = 2
"""In place of whether b is transposed: it lies in panels (``matmul_panels``), and a has one row."""
LOW = 4
"""Rows of a lower tile, for the last few."""
_LINES_AT_ONCE = 8  # of b that are packed together
_PACKED_ROWS = 8  # rows of a that are packed at a time, of which the next overwrite what is extra

Sizes = tuple[int, int, int]
"""Values of k, bytes of a row of b, rows of a that are packed at a time."""

# Words of a product's parameters, and of a part.
_A, _B, _C, _M, _N, _K, _A_TURNED, _B_TURNED, _ADDED = range(1, 10)
_A_LINE, _B_LINE, _C_LINE, _AXES, _FINISH, _FINISH_COUNT, _BATCH = range(10, 17)
_PART_WORDS = 7
FINISHING_WORDS = 5 + FINISHING_OPERANDS


def _ceil(count: Word, unit: int) -> Word:
    return (count + (unit - 1)).unsigned_div(unit)


def _next_part(module: llvm.Module, name: str) -> Function:
    """Writes the function ``next_part``."""
    f = Function(module, name, 5)
    block, unit, end, part, size = f.parameters

    def param(place: int) -> Word:
        return f.load(block, 8 * place)

    m, n = param(_M), param(_N)
    tall = m > n
    bands, columns = _ceil(m, ROW_UNIT), _ceil(n, COLUMN_UNIT)
    minor = tall.choose(columns, bands)
    units = bands * columns
    batch = unit.unsigned_div(units)
    rest = unit - batch * units
    # The matrices of this entry of the batch: its number, axis by axis, last axis first.
    left, a, b = f.variable(batch), f.variable(param(_A)), f.variable(param(_B))
    axis = f.variable(param(_AXES))
    with f.while_(lambda: axis.now > 0):
        axis.set(axis.now - 1)
        words = block + (axis.now * 3 + _BATCH) * 8
        whole = left.now.unsigned_div(f.load(words, 0))
        index = left.now - whole * f.load(words, 0)
        left.set(whole)
        a.set(a.now + index * f.load(words, 8) * size)
        b.set(b.now + index * f.load(words, 16) * size)
    # Whole lines of units where the range holds one, else what it holds of this line.
    last = f.smaller(units, rest + end - unit)
    line = rest.unsigned_div(minor)
    first = rest - line * minor
    count = first.equals(0).choose((last - rest).unsigned_div(minor), 0)
    full = count > 0
    stop = full.choose(minor, f.smaller(minor, first + last - rest))
    lines = line + full.choose(count, 1)
    values = (
        a.now, b.now, param(_C) + batch * m * n * size,
        tall.choose(line, first) * ROW_UNIT,
        f.smaller(m, tall.choose(lines, stop) * ROW_UNIT),
        tall.choose(first, line) * COLUMN_UNIT,
        f.smaller(n, tall.choose(stop, lines) * COLUMN_UNIT),
    )  # fmt: skip
    for place, value in enumerate(values):
        f.store(part, 8 * place, value)
    f.ret(unit + full.choose(count * minor, stop - first))
    return f


class Product:
    """Writes ``product``: one method per way to compute a part."""

    def __init__(
        self, module: llvm.Module, symbol: str, dtype: str, lanes: int, sizes: Sizes
    ) -> None:
        self.element = LLVM_TYPES[SHORT_NAMES[dtype]]
        self.size = 4 if dtype == "f32" else 8
        self.lanes = lanes
        # Of 32 registers 24 accumulators, three vectors beside each other, or twelve of 16; where
        # masks take registers, sixteen or eight.
        many = lanes * self.size == 64
        self.rows, self.rows_in_place = (8, 8) if many else (6, 4)
        self.across = 3 if many else 2
        self.depth, row_bytes, self.band = sizes
        self.group = row_bytes // self.size
        next_part = _next_part(module, "next_part").native
        self.f = f = Function(module, symbol, 3)
        block, begin, end = f.parameters

        def param(place: int) -> Word:
            return f.load(block, 8 * place)

        self.m, self.n, self.k = param(_M), param(_N), param(_K)
        self.a_turned, self.b_turned = (param(p).differs(0) for p in (_A_TURNED, _B_TURNED))
        self.in_panels, self.added = param(_B_TURNED).equals(IN_PANELS), param(_ADDED)
        # Strides: of a along m and k, of b along k and n.
        self.a_line, self.b_line, self.c_line = map(param, (_A_LINE, _B_LINE, _C_LINE))
        self.a_row = self.a_turned.choose(1, self.a_line)
        self.a_step = self.a_turned.choose(self.a_line, 1)
        self.b_step = self.b_turned.choose(1, self.b_line)
        self.b_column = self.b_turned.choose(self.b_line, 1)
        self._prepare()
        part = f.address(f.local_words(_PART_WORDS))
        self.finisher = param(_FINISH)
        self.finishing = f.address(f.local_words(FINISHING_WORDS))
        with f.when(self.finisher.differs(0)):
            self._prepare_finishing(block)
        unit = f.variable(begin)
        with f.while_(lambda: unit.now < end):
            step = f.b.call(next_part, [each.raw for each in (
                block, unit.now, end, part, f.number(self.size))])  # fmt: skip
            unit.set(Word(f, step))
            self.a, self.b, self.c, self.i0, self.i1, self.j0, self.j1 = (
                f.load(part, 8 * place) for place in range(_PART_WORDS)
            )
            self._part()
        f.ret(0)

    def _prepare(self) -> None:
        """What every part needs."""

    @contextmanager
    def _packing(self) -> Iterator[None]:
        """A part of the function that packs: room for a band of a and a group of panels of b."""
        f = self.f
        band = max(
            self.band * self.depth + _PACKED_ROWS, _FEW_ROWS * (self.group + 2 * self.lanes)
        )
        band = -(-band // 16) * 16
        nbytes = (band + self.group * self.depth) * self.size
        room = Word(f, f.b.call(rooms.take(f.module, nbytes), []))
        with f.when(room.equals(0), likely=False):
            f.ret(Status.MEMORY)
        self.packed_a, self.packed_b = room, self.at(room, band)
        yield
        f.b.call(rooms.give(f.module, nbytes), [room.raw])

    def _prepare_finishing(self, block: Word) -> None:
        """The finishing kernel's block, but for the columns."""
        f, words = self.f, self.finishing
        f.store(words, 0, f.load(block, 0))
        f.store(words, 8, f.load(block, 8 * _C))
        f.store(words, 32, self.c_line)
        first = self._operands(block)
        with f.counting(f.load(block, 8 * _FINISH_COUNT)) as k:
            f.store(words + k * 8, 40, f.load(first + k * 8))

    def _operands(self, block: Word) -> Word:
        """Where the operands of the finishing kernel are."""
        return block + (self.f.load(block, 8 * _AXES) * 3 + _BATCH) * 8

    def _finish(self, i0: Word, i1: Word, j0: Word, j1: Word) -> None:
        """Hand a part of c, whose sums are complete, to the kernel that finishes it, if any."""
        f, words = self.f, self.finishing
        with f.when(self.finisher.differs(0)):
            above = (self.c - f.load(words, 8)).unsigned_div(self.c_line * self.size)
            f.store(words, 16, j0)
            f.store(words, 24, j1)
            f.call_address(self.finisher, words, above + i0, above + i1)

    def shape(self, rows: int, across: int, lanes: int | None = None) -> Shape:
        return Shape(self.element, lanes or self.lanes, rows, across)

    def write(
        self, routine: Callable[..., None], shape: Shape, *args: Word | int, **options: int
    ) -> None:
        """Emit a routine of ``matmul_tiles``."""
        routine(Code(self.f.b, shape), *map(self.f.raw, args), **options)

    @contextmanager
    def over(self, start: Word | int, stop: Word, step: int) -> Iterator[Word]:
        """``for index in range(start, stop, step)``."""
        index: Variable = self.f.variable(start)
        with self.f.while_(lambda: index.now < stop):
            now = index.now
            yield now
            index.set(now + step)

    @contextmanager
    def depths(self) -> Iterator[tuple[Word, Word, Word]]:
        """Blocks of k: their start, how many values, whether c holds a sum that they add to."""
        with self.over(0, (self.k < 1).choose(1, self.k), self.depth) as k0:
            yield k0, self.f.smaller(self.k - k0, self.depth), self.added | (k0 > 0).word()

    def at(self, base: Word, index: Word | int) -> Word:
        return base + index * self.size

    def _part(self) -> None:
        """One part of a matrix, the way that suits its size and layouts."""
        with self.f.either(self.in_panels) as (yes, no):
            with yes:
                self._single_row()
                self._finish(self.i0, self.i1, self.j0, self.j1)
            with no:
                self._as_it_lies()

    def _single_row(self) -> None:
        """One row times panels, two at a time: each is read at the speed of the cache that it lies
        in. Lines of a matrix are too far apart for that where threads share its columns."""
        f, wide = self.f, 2 * self.lanes
        apart = bytes_of_panel(self.k, self.lanes, self.size)
        with self.over(self.j0, self.j1, 2 * wide) as j:
            left, panel = self.j1 - j, self.b + j.unsigned_div(wide) * apart
            with f.either(left > wide) as (two, one):
                for count, branch in ((2, two), (1, one)):
                    with branch:
                        self.write(
                            single, self.shape(count, 2), self.a, self.a_step, panel,
                            apart.unsigned_div(self.size), self.at(self.c, j), self.k, left,
                            self.added,
                        )  # fmt: skip

    def _as_it_lies(self) -> None:
        f = self.f
        rows = self.i1 - self.i0
        # A column, or else a row, of the product is a vector times a matrix: lines of the matrix
        # `line` apart, values to be added up `step` apart.
        column = self.n.equals(1) & self.c_line.equals(1)
        a, b = self.at(self.a, self.i0 * self.a_row), self.at(self.b, self.j0 * self.b_column)
        vector, vector_step = column.choose(self.b, a), column.choose(1, self.a_step)
        matrix, line = column.choose(a, b), column.choose(self.a_row, self.b_column)
        step = column.choose(self.a_step, self.b_step)
        out = self.at(self.c, column.choose(self.i0, self.i0 * self.c_line + self.j0))
        length = column.choose(rows, self.j1 - self.j0)
        thin = column | rows.equals(1)
        dotted = step.equals(1) & vector_step.equals(1)
        with f.either(thin & dotted) as (yes, no):
            with yes:
                self._vector_dots(vector, matrix, line, out, length)
                self._finish(self.i0, self.i1, self.j0, self.j1)
            with no, f.either(thin & line.equals(1)) as (yes, no):
                with yes:
                    self._vector_times_lines(vector, vector_step, matrix, step, out, length)
                    self._finish(self.i0, self.i1, self.j0, self.j1)
                with no, f.either(dotted & (rows < 9)) as (yes, no):
                    with yes:
                        self._few_rows()
                        self._finish(self.i0, self.i1, self.j0, self.j1)
                    with no:
                        self._of_lines(rows)

    def _vector_dots(
        self, vector: Word, matrix: Word, line: Word, out: Word, length: Word
    ) -> None:
        with self.over(0, length, 8) as j:
            self.write(
                dots, self.shape(1, 8), vector, 0, self.at(matrix, j * line), line,
                self.at(out, j), 0, self.k, 1, self.f.smaller(length - j, 8), self.added,
            )  # fmt: skip

    def _vector_times_lines(
        self, vector: Word, vector_step: Word, matrix: Word, step: Word, out: Word, length: Word
    ) -> None:
        """Where it fits, the result in eight vectors, or in four, where masks leave room; a longer
        one in memory, eight lines of the matrix at a time."""
        f, lanes = self.f, self.lanes

        def at(k0: Word) -> tuple[Word, ...]:
            return self.at(vector, k0 * vector_step), self.at(matrix, k0 * step)

        def in_registers(across: int, j: Word | int = 0) -> None:
            with self.depths() as (k0, depth, keep):
                x, line = at(k0)
                self.write(
                    tile, self.shape(1, across), x, 0, vector_step, self.at(line, j), step,
                    self.at(out, j), 0, depth, 1, length - j, keep, packed=across == 8,
                )  # fmt: skip

        def swept(start: Word | int, stop: Word, count: int) -> None:
            with self.over(start, stop, count) as k0:
                x, line = at(k0)
                keep = self.added | (k0 > 0).word()
                self.write(
                    lines, self.shape(count, 1), x, vector_step, line, step, out, length, keep
                )

        with f.either(length <= 4 * lanes) as (narrow, broad):
            with narrow:
                in_registers(4)
            with broad, f.either(length.equals(8 * lanes)) as (fits, long):
                with fits:
                    in_registers(8)
                with long:
                    whole = self.k.unsigned_div(8) * 8
                    swept(0, whole, 8)
                    swept(whole, self.k, 1)
                    with f.when(self.k < 1), self.over(0, length, 4 * lanes) as j:
                        in_registers(4, j)

    def _few_rows(self) -> None:
        """``a b^T`` with up to 8 rows, as dot products."""
        f, rows = self.f, self.rows_in_place // 2
        with self.over(self.j0, self.j1, 4) as j, self.over(self.i0, self.i1, rows) as i:
            self.write(
                dots, self.shape(rows, 4), self.at(self.a, i * self.a_line), self.a_line,
                self.at(self.b, j * self.b_line), self.b_line,
                self.at(self.c, i * self.c_line + j), self.c_line,
                self.k, f.smaller(self.i1 - i, rows), f.smaller(self.j1 - j, 4), self.added,
            )  # fmt: skip

    def _of_lines(self, rows: Word) -> None:
        """A part of which neither operand is read as dot products."""
        f = self.f
        far = ~self.b_turned & (self.b_line > _FAR_LINE // self.size) & (self.k > 0)
        with f.either(far & (rows <= _FEW_ROWS)) as (yes, no):
            with yes, self._packing():
                self._swept_rows(rows)
            with no:
                many = (rows > _FEW_ROWS) & (self.n >= 4 * self.lanes)
                self._blocked(self.b_turned | many)

    def _swept_rows(self, rows: Word) -> None:
        """Few rows: ``b`` streams through the cache, a few lines at a time; sums stay in it, in
        lines that are not a power of two apart. Values of a are put in the order in which they are
        read: at their strides they would take more addresses than there are registers."""
        f, sums, line = self.f, self.packed_a, self.group + 2 * self.lanes
        factors = self.packed_b
        with self.over(self.j0, self.j1, self.group) as g0:
            g1 = f.smaller(self.j1, g0 + self.group)

            def swept(start: Word, stop: Word, count: int) -> None:
                a = self.at(self.a, self.i0 * self.a_row + start * self.a_step)
                self.write(
                    gather, self.shape(count, 2), a, self.a_row, self.a_step, factors, rows,
                    stop - start,
                )  # fmt: skip
                with self.over(start, stop, count) as k:
                    self.write(
                        sweep, self.shape(count, 2), self.at(factors, (k - start) * rows),
                        self.at(self.b, k * self.b_line + g0), self.b_line, sums, line, rows,
                        g1 - g0,
                    )  # fmt: skip

            out = self.at(self.c, self.i0 * self.c_line + g0)
            # Block by block of k, as tiles do it: a row's sums are the same among more rows.
            with self.depths() as (k0, depth, keep):
                f.c("memset", sums, f.number(0), rows * (line * self.size))
                whole = depth & -4
                swept(k0, k0 + whole, 4)
                swept(k0 + whole, k0 + depth, 1)
                self.write(
                    unload, self.shape(1, 1), sums, line, out, self.c_line, rows, g1 - g0, keep
                )
            self._finish(self.i0, self.i1, g0, g1)

    def _blocked(self, packs: Flag) -> None:
        """The general case: both operands packed, ``b`` into panels a few vectors wide, ``a`` into
        bands, unless its rows lie near each other; or, where packing would not pay, read in place.
        """
        f = self.f
        near = ~self.a_turned & (self.a_line <= _NARROW_LINE // self.size)
        with self.over(self.j0, self.j1, self.group) as g0:
            g1 = f.smaller(self.j1, g0 + self.group)
            with self.depths() as (k0, depth, keep), f.either(packs) as (packed, in_place):
                with packed, self._packing():
                    self._pack_b(g0, g1, k0, depth)
                    with self.over(self.i0, self.i1, self.band) as h0:
                        h1 = f.smaller(self.i1, h0 + self.band)
                        with f.either(near) as (in_rows, apart):
                            with in_rows:
                                self._band(h0, h1, g0, g1, k0, depth, keep)
                            with apart:
                                self._packed_band(h0, h1, g0, g1, k0, depth, keep)
                        with f.when(k0 + depth >= self.k):
                            self._finish(h0, h1, g0, g1)
                with in_place:
                    with (
                        self.over(g0, g1, 2 * self.lanes) as j,
                        self.over(self.i0, self.i1, self.rows_in_place) as i,
                    ):
                        a = self.at(self.a, i * self.a_row + k0 * self.a_step)
                        b = self.at(self.b, k0 * self.b_line + j), self.b_line
                        self._tile(
                            False, self.rows_in_place, 2, i, j, (a, self.a_row, self.a_step), b,
                            depth, keep, self.i1, g1,
                        )  # fmt: skip
                    with f.when(k0 + depth >= self.k):
                        self._finish(self.i0, self.i1, g0, g1)

    def _panels(self, g0: Word, g1: Word, write: Callable[[Word, int], None]) -> None:
        """``write`` what is done with each panel: from its first column and how many vectors wide
        it is. Where that may be three, the last ones are two and two rather than three and one."""
        f, wide = self.f, 2 * self.lanes
        if self.across == 2:
            with self.over(g0, g1, wide) as j:
                write(j, 2)
            return
        column = f.variable(g0)
        with f.while_(lambda: column.now < g1):
            j = column.now
            left, wider = g1 - j, 3 * self.lanes
            three = (left > 2 * wide) | ((left > wide) & (left <= wider))
            with f.either(three) as (yes, no):
                for across, branch in ((3, yes), (2, no)):
                    with branch:
                        write(j, across)
                        column.set(j + across * self.lanes)

    def _packed_band(
        self, h0: Word, h1: Word, g0: Word, g1: Word, k0: Word, depth: Word, keep: Word
    ) -> None:
        """Rows ``h0`` to ``h1`` of a, packed, times panels ``g0`` to ``g1``."""
        self._pack_a(h0, h1, k0, depth)

        def one(j: Word, across: int) -> None:
            with self.over(h0, h1, self.rows) as i:
                lines = self._lines(i - h0), 1, self.rows
                panel = self._panel(j - g0), across * self.lanes
                self._tile(True, self.rows, across, i, j, lines, panel, depth, keep, h1, g1)

        self._panels(g0, g1, one)

    def _band(
        self, h0: Word, h1: Word, g0: Word, g1: Word, k0: Word, depth: Word, keep: Word
    ) -> None:
        """The same with rows of a, which is not transposed, where they lie."""
        f = self.f

        def one(j: Word, across: int) -> None:
            wide = across * self.lanes
            with self.over(h0, h1, self.rows) as i:
                a = self.at(self.a, i * self.a_line + k0)
                out = self.at(self.c, i * self.c_line + j)
                with f.either(h1 - i <= LOW) as (few, many):
                    for tall, branch in ((LOW, few), (self.rows, many)):
                        with branch:
                            self.write(
                                tile, self.shape(tall, across), a, self.a_line, 1,
                                self._panel(j - g0), wide, out, self.c_line, depth,
                                f.smaller(h1 - i, tall), f.smaller(g1 - j, wide), keep,
                                padded=True,
                            )  # fmt: skip

        self._panels(g0, g1, one)

    def _tile(
        self, packed: bool, tall: int, across: int, i: Word, j: Word, a: tuple[Word | int, ...],
        b: tuple[Word | int, ...], depth: Word, keep: Word, i1: Word, j1: Word,
    ) -> None:  # fmt: skip
        """The tile at row ``i`` and column ``j``, of what lies before ``i1`` and ``j1``.

        ``a``: address and strides along rows and depth; ``b``: address and stride along depth.
        """
        f = self.f
        out = self.at(self.c, i * self.c_line + j)
        rows, columns = f.smaller(i1 - i, tall), f.smaller(j1 - j, across * self.lanes)
        operands = *a, *b, out, self.c_line, depth, rows, columns, keep
        if across > 2:
            self.write(tile, self.shape(tall, across), *operands, packed=packed)
            return
        with f.either(columns <= self.lanes) as (narrow, broad):
            with narrow:
                self.write(tile, self.shape(tall, 1), *operands)
            with broad:
                self.write(tile, self.shape(tall, 2), *operands, packed=packed)

    def _panel(self, column: Word) -> Word:
        return self.packed_b + column * (self.depth * self.size)

    def _lines(self, row: Word) -> Word:
        return self.packed_a + row * (self.depth * self.size)

    def _pack_b(self, g0: Word, g1: Word, k0: Word, depth: Word) -> None:
        f = self.f
        source = self.at(self.b, k0 * self.b_step + g0 * self.b_column)

        def turned(j: Word, across: int) -> None:
            column = self.at(source, (j - g0) * self.b_column)
            columns = f.smaller(g1 - j, across * self.lanes)
            self.write(
                turn, self.shape(1, across), column, self.b_line, self._panel(j - g0), depth,
                columns,
            )  # fmt: skip

        with f.either(self.b_turned) as (yes, no):
            with yes:
                self._panels(g0, g1, turned)
            # A few lines at a time, for all panels: so lines are read as they lie.
            with no, self.over(0, depth, _LINES_AT_ONCE) as k:

                def lines(j: Word, across: int) -> None:
                    wide = across * self.lanes
                    self.write(
                        pack, self.shape(1, across),
                        self.at(source, k * self.b_line + (j - g0)), self.b_line,
                        self.at(self._panel(j - g0), k * wide),
                        f.smaller(depth - k, _LINES_AT_ONCE), f.smaller(g1 - j, wide),
                    )  # fmt: skip

                self._panels(g0, g1, lines)

    def _pack_a(self, h0: Word, h1: Word, k0: Word, depth: Word) -> None:
        shape = self.shape(1, 1, _PACKED_ROWS)
        with self.over(h0, h1, self.rows) as i:
            source = self.at(self.a, i * self.a_row + k0 * self.a_step)
            target, rows = self._lines(i - h0), self.f.smaller(h1 - i, self.rows)
            with self.f.either(self.a_turned) as (yes, no):
                for routine, block in ((pack, yes), (turn, no)):
                    with block:
                        self.write(
                            routine, shape, source, self.a_line, target, depth, rows,
                            width=self.rows,
                        )


def leave_without_memory(b: IRBuilder, status: Any) -> None:
    """End a kernel whose product found no memory to pack in."""
    with b.if_then(b.icmp_unsigned("!=", status, WORD(0)), likely=False):
        b.ret(status)


next_part = Part("next_part", types.int64, 5, _next_part)


@functools.cache
def _product(symbol: str, dtype: str, lanes: int, sizes: Sizes) -> Part:
    write = functools.partial(Product, dtype=dtype, lanes=lanes, sizes=sizes)
    return Part(symbol, types.void, 3, write, leave_without_memory)


def __getattr__(name: str) -> Part:
    match = re.fullmatch(r"product_(f32|f64)x(2|4|8|16)(?:_(\d+)_(\d+)_(\d+))?", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    sizes = DEFAULT.depth, DEFAULT.row_bytes, DEFAULT.band
    if match[3] is not None:
        sizes = int(match[3]), int(match[4]), int(match[5])
    return _product(name, match[1], int(match[2]), sizes)
