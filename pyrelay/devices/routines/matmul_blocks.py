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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler import rooms
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.compiler.llvm_writer import WORD, Flag, Function, Word
from pyrelay.devices.routines import matmul_bands, matmul_ways
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.made_of import WAYS
from pyrelay.devices.routines.matmul import COLUMN_UNIT, FINISHING_OPERANDS, ROW_UNIT
from pyrelay.devices.routines.matmul_bands import PACKED_ROWS, Bands, Sizes, named
from pyrelay.devices.routines.matmul_choice import (
    DOT_ROWS,
    DOTTED_ROWS,
    FAR_LINE,
    FEW_ROWS,
    LOW,
    NARROW_LINE,
    NEAR_BYTES,
    SMALL,
    STRIPED_ROWS,
    TURNED_DEPTH,
)
from pyrelay.devices.routines.matmul_columns import lay_columns, unload_turned
from pyrelay.devices.runtime.layout import Status

# Blocks (``choices.py``), measured on Sapphire Rapids and Zen 2: a panel of b (two vectors wide, at
# most 32 KiB) stays in the first cache, a band of a (a multiple of the tiles' 8, 6 or 4 rows) and
# what fits of a group of panels in the second.
IN_PANELS = 2
"""In place of whether b is transposed: it lies in panels (``matmul_panels``), and a has one row."""

# Words of a product's parameters, and of a part.
_A, _B, _C, _M, _N, _K, _A_TURNED, _B_TURNED, _ADDED = range(1, 10)
_A_LINE, _B_LINE, _C_LINE, _AXES, _FINISH, _FINISH_COUNT, _BATCH = range(10, 17)
_PART_WORDS = 7
FINISHING_WORDS = 5 + FINISHING_OPERANDS


def _ceil(count: Word, unit: int) -> Word:
    return (count + (unit - 1)).unsigned_div(unit)


def _quotient(x: Word, y: Word) -> Word:
    """``x // y``, mostly without a division, which takes as long as a product of 2 x 2 matrices:
    where x is less, or y is 1, as for batches of small matrices."""
    found = x.f.variable(y.equals(1).choose(x, 0))
    with x.f.when((y > 1) & (x >= y)):
        found.set(x.unsigned_div(y))
    return found.now


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
    batch = _quotient(unit, units)
    rest = unit - batch * units
    # The matrices of this entry of the batch: its number, axis by axis, last axis first.
    left, a, b = f.variable(batch), f.variable(param(_A)), f.variable(param(_B))
    axis = f.variable(param(_AXES))
    with f.while_(lambda: axis.now > 0):
        axis.set(axis.now - 1)
        words = block + (axis.now * 3 + _BATCH) * 8
        whole = _quotient(left.now, f.load(words, 0))
        index = left.now - whole * f.load(words, 0)
        left.set(whole)
        a.set(a.now + index * f.load(words, 8) * size)
        b.set(b.now + index * f.load(words, 16) * size)
    # Whole lines of units where the range holds one, else what it holds of this line.
    last = f.smaller(units, rest + end - unit)
    line = _quotient(rest, minor)
    first = rest - line * minor
    count = first.equals(0).choose(_quotient(last - rest, minor), 0)
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


class Product(Bands):
    """Writes ``product``: one method per way to compute a part."""

    def __init__(
        self, module: llvm.Module, symbol: str, dtype: str, lanes: int, sizes: Sizes
    ) -> None:
        super().__init__(module, symbol, 3, dtype, lanes, sizes)
        self.symbol = symbol
        next_part = _next_part(module, "next_part").native
        f = self.f
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
        self._small_stack(block, begin, end)
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

    def _small_stack(self, block: Word, begin: Word, end: Word) -> None:
        """All of the range, if it is matrices that are so small that finding out how to multiply
        one takes longer than to do so."""
        f = self.f
        plain = ~self.b_turned & self.added.equals(0) & self.finisher.equals(0)
        small = (self.m <= SMALL) & (self.k <= SMALL) & (self.n <= self.lanes)
        stack = f.load(block, 8 * _AXES).equals(1) & self.c_line.equals(self.n)
        with f.when(plain & small & stack):
            a_next, b_next = (f.load(block, 8 * (_BATCH + each)) for each in (1, 2))
            a, b, c = (f.load(block, 8 * each) for each in (_A, _B, _C))
            self._call(
                "small_stack", self.at(a, begin * a_next), a_next, self.a_row, self.a_step,
                self.at(b, begin * b_next), b_next, self.b_line,
                self.at(c, begin * (self.m * self.n)), end - begin, self.m, self.n, self.k,
            )  # fmt: skip
            f.ret(0)

    @contextmanager
    def _packing(self) -> Iterator[None]:
        """A part of the function that packs: room for a band of a and a group of panels of b."""
        f = self.f
        band = max(
            self.band * self.depth + PACKED_ROWS, FEW_ROWS * (self.group + 2 * self.lanes)
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

    def _part(self) -> None:
        """One part of a matrix, the way that suits its size and layouts."""
        with self.f.either(self.in_panels) as (yes, no):
            with yes:
                self._call(
                    "panel_row", self.a, self.a_step, self.b, self.c, self.j0, self.j1, self.k,
                    self.added,
                )  # fmt: skip
                self._finish(self.i0, self.i1, self.j0, self.j1)
            with no:
                self._as_it_lies()

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
                self._call(
                    "vector_dots", vector, matrix, line, out, length, self.k, self.added
                )
                self._finish(self.i0, self.i1, self.j0, self.j1)
            with no, f.either(thin & line.equals(1)) as (yes, no):
                with yes:
                    self._call(
                        "vector_lines", vector, vector_step, matrix, step, out, length, self.k,
                        self.added,
                    )  # fmt: skip
                    self._finish(self.i0, self.i1, self.j0, self.j1)
                with no, f.either(dotted & (rows < DOT_ROWS)) as (yes, no):
                    with yes:
                        self._call(
                            "few_rows", self.at(self.a, self.i0 * self.a_line), self.a_line,
                            rows, self.b, self.b_line, self.j0, self.j1,
                            self.at(self.c, self.i0 * self.c_line), self.c_line, self.k, self.added,
                        )  # fmt: skip
                        self._finish(self.i0, self.i1, self.j0, self.j1)
                    with no:
                        self._of_lines(rows)

    def _of_lines(self, rows: Word) -> None:
        """A part of which neither operand is read as dot products."""
        f, unit = self.f, self.lanes if self.across > 2 else 2 * self.lanes
        columns = self.j1 - self.j0
        lead = (rows <= LOW).choose(self.lead(self.at(self.b, self.j0), self.b_line), 0)
        whole = (columns - lead) & -unit
        stripes = (
            ~self.b_turned & self.a_step.equals(1) & (rows <= STRIPED_ROWS)
            & (whole > self.lanes) & (self.k * columns * self.size <= NEAR_BYTES)
        )  # fmt: skip
        with f.either(self._dotted(rows, columns)) as (yes, no):
            with yes:
                self._few_columns()
            with no, f.either(self._beside(rows, columns)) as (yes, no):
                with yes:
                    self._few_turned(columns)
                with no, f.either(stripes) as (yes, no):
                    with yes:
                        self._striped(lead, whole)
                    with no:
                        self._far_or_packed(rows)

    def _beside(self, rows: Word, columns: Word) -> Flag:
        """Whether rows of ``a`` lie side by side, and fill more lanes than columns do."""
        return (
            self.a_turned & (columns <= self.lanes // 2) & (rows >= DOTTED_ROWS)
            & (self.k >= TURNED_DEPTH)
        )  # fmt: skip

    def _few_turned(self, columns: Word) -> None:
        """``(b^T a^T)^T``: vectors of rows of ``a``, which lie side by side, and sums that are
        turned when they are complete."""
        f, line = self.f, ROW_UNIT + self.lanes  # no power of two
        with self._packing(), self.over(self.i0, self.i1, ROW_UNIT) as h0:
            rows = f.smaller(self.i1 - h0, ROW_UNIT)
            with self.over(0, self.k, self.depth) as k0:
                self._call(
                    "turned_tiles", self.at(self.a, h0 + k0 * self.a_line), self.a_line,
                    self.at(self.b, k0 * self.b_step + self.j0 * self.b_column), self.b_step,
                    self.b_column, self.packed_b, f.number(line),
                    f.smaller(self.k - k0, self.depth), rows, columns, (k0 > 0).word(),
                )  # fmt: skip
            out = self.at(self.c, h0 * self.c_line + self.j0)
            self.write(
                unload_turned, self.shape(1, 1), self.packed_b, line, out, self.c_line, rows,
                columns, self.added,
            )  # fmt: skip
            self._finish(h0, h0 + rows, self.j0, self.j1)

    def _dotted(self, rows: Word, columns: Word) -> Flag:
        """Whether dot products take fewer instructions than vectors of columns, which take one for
        each element of ``a``: as many for each column and vector of k, and about three to sum the
        lanes up."""
        beside = (columns <= 2).choose(2, _ceil(columns, 4) * 4)
        fewer = (_ceil(self.k, self.lanes) + 3) * beside < self.k
        return (
            fewer & self.a_step.equals(1) & (rows >= DOTTED_ROWS) & (columns <= self.lanes)
        )

    def _few_columns(self) -> None:
        """Many rows, and fewer columns than a vector has: dot products, with the columns laid
        along k."""
        f = self.f
        columns = self.j1 - self.j0
        with self._packing(), self.depths(self.k, self.added) as (k0, depth, keep):
            apart = depth + (self.lanes - 1) & -self.lanes
            start = self.at(self.b, k0 * self.b_step + self.j0 * self.b_column)
            self.write(
                lay_columns, self.shape(1, 1), start, self.b_step, self.b_column, self.packed_b,
                apart, depth, columns,
            )  # fmt: skip
            with self.over(self.i0, self.i1, ROW_UNIT) as h0:
                h1 = f.smaller(self.i1, h0 + ROW_UNIT)
                self._call(
                    "column_dots", self.at(self.a, h0 * self.a_line + k0), self.a_line,
                    self.packed_b, apart, self.at(self.c, h0 * self.c_line + self.j0), self.c_line,
                    depth, h1 - h0, columns, keep,
                )  # fmt: skip
                with f.when(k0 + depth >= self.k):
                    self._finish(h0, h1, self.j0, self.j1)

    def _far_or_packed(self, rows: Word) -> None:
        """Many rows, or so much of ``b`` that it comes from memory, or from another core."""
        f = self.f
        far = ~self.b_turned & (self.b_line > FAR_LINE // self.size) & (self.k > 0)
        with f.either(far & (rows <= FEW_ROWS)) as (yes, no):
            with yes, self._packing():
                self._swept_rows(rows)
            with no:
                many = (rows > FEW_ROWS) & (self.n >= 4 * self.lanes)
                self._blocked(self.b_turned | many)

    def _striped(self, lead: Word, whole: Word) -> None:
        """Few rows: stripes of ``b``, which stays in the second cache, as they lie, and columns
        that fill no vectors, of which ``lead`` stand in front."""
        f, first = self.f, self.j0 + lead
        middle = first + whole
        with self.depths(self.k, self.added) as (k0, depth, keep):
            a, b = self.at(self.a, k0), self.at(self.b, k0 * self.b_line)
            self._call(
                "near_rows", a, self.a_line, self.c, self.c_line, self.at(b, first),
                self.b_line, self.i0, self.i1, first, middle, depth, keep,
            )  # fmt: skip
            for start, stop in ((self.j0, first), (middle, self.j1)):
                with f.when(start < stop):
                    self._call(
                        "in_place", a, self.a_row, self.a_step, b, self.b_line, self.c,
                        self.c_line, self.i0, self.i1, start, stop, depth, keep,
                    )  # fmt: skip
        self._finish(self.i0, self.i1, self.j0, self.j1)

    def _swept_rows(self, rows: Word) -> None:
        """Few rows: ``b`` streams through the cache, a few lines at a time; sums stay in it, in
        lines that are not a power of two apart. Values of a are put in the order in which they are
        read: at their strides they would take more addresses than there are registers."""
        with self.over(self.j0, self.j1, self.group) as g0:
            g1 = self.f.smaller(self.j1, g0 + self.group)
            out = self.at(self.c, self.i0 * self.c_line + g0)
            # Block by block of k, as tiles do it: a row's sums are the same among more rows.
            with self.depths(self.k, self.added) as (k0, depth, keep):
                self._call(
                    "swept_lines", self.at(self.a, self.i0 * self.a_row + k0 * self.a_step),
                    self.a_row, self.a_step, self.at(self.b, k0 * self.b_line + g0), self.b_line,
                    out, self.c_line, rows, g1 - g0, depth, keep, self.packed_a, self.packed_b,
                )  # fmt: skip
            self._finish(self.i0, self.i1, g0, g1)

    def _blocked(self, packs: Flag) -> None:
        """The general case: both operands packed, ``b`` into panels a few vectors wide, ``a`` into
        bands, unless its rows lie near each other; or, where packing would not pay, read in place.
        """
        f = self.f
        near = ~self.a_turned & (self.a_line <= NARROW_LINE // self.size)
        with self.over(self.j0, self.j1, self.group) as g0:
            g1 = f.smaller(self.j1, g0 + self.group)
            with (
                self.depths(self.k, self.added) as (k0, depth, keep),
                f.either(packs) as (packed, in_place),
            ):
                with packed, self._packing():
                    self._call(
                        "packed_columns", self.at(self.b, k0 * self.b_step + g0 * self.b_column),
                        self.b_line, self.b_turned.word(), self.packed_b, g1 - g0, depth,
                    )  # fmt: skip
                    with self.over(self.i0, self.i1, self.band) as h0:
                        h1 = f.smaller(self.i1, h0 + self.band)
                        with f.either(near) as (in_rows, apart):
                            with in_rows:
                                self._call(
                                    "near_rows", self.at(self.a, k0), self.a_line, self.c,
                                    self.c_line, self.packed_b, f.number(0), h0, h1, g0, g1, depth,
                                    keep,
                                )  # fmt: skip
                            with apart:
                                self._call(
                                    "packed_rows", self.at(self.a, k0 * self.a_step), self.a_line,
                                    self.a_turned.word(), self.c, self.c_line, self.packed_a,
                                    self.packed_b, h0, h1, g0, g1, depth, keep,
                                )  # fmt: skip
                        with f.when(k0 + depth >= self.k):
                            self._finish(h0, h1, g0, g1)
                with in_place:
                    self._call(
                        "in_place", self.at(self.a, k0 * self.a_step), self.a_row, self.a_step,
                        self.at(self.b, k0 * self.b_line), self.b_line, self.c, self.c_line,
                        self.i0, self.i1, g0, g1, depth, keep,
                    )  # fmt: skip
                    with f.when(k0 + depth >= self.k):
                        self._finish(self.i0, self.i1, g0, g1)

    def _call(self, part: str, *args: Word) -> None:
        """Do a band, which is a part of its own."""
        name = self.symbol.replace("product", part)
        module = matmul_bands if part in WAYS["matmul_bands"] else matmul_ways
        getattr(module, name).call(self.f.b, [each.raw for each in args])


def leave_without_memory(b: IRBuilder, status: Any) -> None:
    """End a kernel whose product found no memory to pack in."""
    with b.if_then(b.icmp_unsigned("!=", status, WORD(0)), likely=False):
        b.ret(status)


next_part = Part("next_part", types.int64, 5, _next_part)


@functools.cache
def __getattr__(name: str) -> Part:
    _, form = named(__name__, name, ("product",))
    write = functools.partial(Product, **form)
    return Part(name, types.void, 3, write, leave_without_memory)
