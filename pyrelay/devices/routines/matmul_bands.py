"""Bands of a product's left operand times panels of its right one: parts of their own.

In: addresses, strides in elements, and the range of a band; out: LLVM functions that ``product``
(``matmul_blocks``) calls, and the ``Part`` of each. They are most of a product's code, and two
processes make it sooner than one (decision 0130).

``near_rows_f32x16(a, a_line, c, c_line, panels, b_line, h0, h1, g0, g1, depth, keep)``
    rows ``h0`` to ``h1`` of a, whose elements lie side by side, times panels ``g0`` to ``g1``;
    ``a`` is where the first of ``depth`` values of k lies in row 0. ``keep`` is not 0 to add to c.
    ``b_line`` is 0, or elements from line to line of b, which lies at ``panels`` as it is: columns
    are whole vectors then, and more than one.
``packed_rows_f32x16(a, a_line, turned, c, c_line, lines, panels, h0, h1, g0, g1, depth, keep)``
    the same of rows that it packs first, at ``lines``; a is ``turned`` if not 0.
``packed_columns_f32x16(b, b_line, turned, panels, width, depth)``
    packs ``width`` columns of ``depth`` lines of b, which is ``turned`` if not 0, into panels.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyrelay.devices.choices import DEFAULT
from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.compiler.llvm_writer import Flag, Function, Variable, Word
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul_choice import LOW
from pyrelay.devices.routines.matmul_tiles import Code, Shape, pack, tile, turn

PACKED_ROWS = 8
"""Rows of a that are packed at a time, of which the next overwrite what is extra."""

_LINES_AT_ONCE = 8  # of b that are packed together

Sizes = tuple[int, int, int]
"""Values of k, bytes of a row of b, rows of a that are packed at a time."""


class Bands:
    """Writes a function of so many words with loops around register tiles."""

    def __init__(
        self, module: llvm.Module, symbol: str, parameters: int, dtype: str, lanes: int,
        sizes: Sizes,
    ) -> None:  # fmt: skip
        self.f = Function(module, symbol, parameters)
        self.own: dict[str, Function] = {}
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

    def shape(self, rows: int, across: int, lanes: int | None = None) -> Shape:
        return Shape(self.element, lanes or self.lanes, rows, across)

    def write(
        self, routine: Callable[..., None], shape: Shape, *args: Word | int, **options: int
    ) -> None:
        """Emit a routine of ``matmul_tiles``."""
        routine(Code(self.f.b, shape), *map(self.f.raw, args), **options)

    def as_function(self, write: Callable[..., None], *args: Word) -> None:
        """Call a function of its own, which ``write`` writes, given its parameters: for twice the
        code in one function LLVM takes more than twice as long to find registers."""
        f, name = self.f, write.__name__.strip("_")
        if name not in self.own:
            self.f = self.own[name] = Function(f.module, name, len(args))
            write(*self.f.parameters)
            self.f.ret(0)
            self.f = f
        f.call(self.own[name], *args)

    @contextmanager
    def over(self, start: Word | int, stop: Word, step: int) -> Iterator[Word]:
        """``for index in range(start, stop, step)``."""
        index: Variable = self.f.variable(start)
        with self.f.while_(lambda: index.now < stop):
            now = index.now
            yield now
            index.set(now + step)

    def at(self, base: Word, index: Word | int) -> Word:
        return base + index * self.size

    @contextmanager
    def depths(self, k: Word, added: Word) -> Iterator[tuple[Word, Word, Word]]:
        """Blocks of k: their start, how many values, whether c holds a sum that they add to."""
        with self.over(0, (k < 1).choose(1, k), self.depth) as k0:
            yield k0, self.f.smaller(k - k0, self.depth), added | (k0 > 0).word()

    def lead(self, matrix: Word, step: Word) -> Word:
        """How many columns of a matrix, whose lines are ``step`` apart, stand before a place that
        vectors are aligned at. NumPy's arrays are 16 bytes behind one: each vector of 64 bytes is
        then read from two lines of the cache, from the second one at half the speed."""
        nbytes = self.lanes * self.size
        apart = (matrix & (self.size - 1)) | (step * self.size & (nbytes - 1))
        lead = (self.f.number(0) - matrix & (nbytes - 1)).unsigned_div(self.size)
        return apart.equals(0).choose(lead, 0)

    def panels(self, g0: Word, g1: Word, write: Callable[[Word, int], None]) -> None:
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

    def tile(
        self, packed: bool, tall: int, across: int, a: tuple[Word | int, ...],
        b: tuple[Word | int, ...], c: tuple[Word, Word], depth: Word, rows: Word, columns: Word,
        keep: Word,
    ) -> None:  # fmt: skip
        """A tile, of which there may be more ``rows`` and ``columns`` than it has.

        ``a``: address and strides along rows and depth; ``b``: address and stride along depth;
        ``c``: address and elements from line to line.
        """
        f = self.f
        rows, columns = f.smaller(rows, tall), f.smaller(columns, across * self.lanes)
        operands = *a, *b, *c, depth, rows, columns, keep
        if across > 2:
            self.write(tile, self.shape(tall, across), *operands, packed=packed)
            return
        with f.either(columns <= self.lanes) as (narrow, broad):
            with narrow:
                self.write(tile, self.shape(tall, 1), *operands)
            with broad:
                self.write(tile, self.shape(tall, 2), *operands, packed=packed)

    def panel(self, panels: Word, column: Word) -> Word:
        """Where the panel that begins with a column lies."""
        return panels + column * (self.depth * self.size)

    def lines(self, lines: Word, row: Word) -> Word:
        """Where packed rows lie, from a row on."""
        return lines + row * (self.depth * self.size)

    def pack_a(
        self, a: Word, a_line: Word, turned: Flag, lines: Word, h0: Word, h1: Word, depth: Word
    ) -> None:
        """Rows ``h0`` to ``h1`` of ``a``, from its first value of k on, at ``lines``."""
        a_row = turned.choose(1, a_line)
        shape = self.shape(1, 1, PACKED_ROWS)
        with self.over(h0, h1, self.rows) as i:
            source = self.at(a, i * a_row)
            target, rows = self.lines(lines, i - h0), self.f.smaller(h1 - i, self.rows)
            with self.f.either(turned) as (yes, no):
                with yes:
                    self.write(pack, shape, source, a_line, target, depth, rows, width=self.rows)
                with no:
                    self.write(turn, shape, source, a_line, target, depth, rows, self.rows)


def _near_rows(module: llvm.Module, symbol: str, **form: Any) -> None:
    rows = Bands(module, symbol, 12, **form)
    f = rows.f
    a, a_line, c, c_line, panels, b_line, h0, h1, g0, g1, depth, keep = f.parameters
    packed = b_line.equals(0)
    beside = packed.choose(rows.depth, 1)

    def one(j: Word, across: int) -> None:
        wide = across * rows.lanes
        step = packed.choose(wide, b_line)
        with rows.over(h0, h1, rows.rows) as i:
            line = rows.at(a, i * a_line)
            out = rows.at(c, i * c_line + j)
            with f.either(h1 - i <= LOW) as (few, many):
                for tall, branch in ((LOW, few), (rows.rows, many)):
                    with branch:
                        rows.write(
                            tile, rows.shape(tall, across), line, a_line, 1,
                            rows.at(panels, (j - g0) * beside), step, out, c_line, depth,
                            f.smaller(h1 - i, tall), f.smaller(g1 - j, wide), keep, padded=True,
                        )  # fmt: skip

    rows.panels(g0, g1, one)
    f.ret(0)


def _packed_rows(module: llvm.Module, symbol: str, **form: Any) -> None:
    rows = Bands(module, symbol, 13, **form)
    (
        a, a_line, turned, c, c_line, lines, panels, h0, h1, g0, g1, depth, keep,
    ) = rows.f.parameters  # fmt: skip
    rows.pack_a(a, a_line, turned.differs(0), lines, h0, h1, depth)

    def one(j: Word, across: int) -> None:
        with rows.over(h0, h1, rows.rows) as i:
            rows.tile(
                True, rows.rows, across, (rows.lines(lines, i - h0), 1, rows.rows),
                (rows.panel(panels, j - g0), across * rows.lanes),
                (rows.at(c, i * c_line + j), c_line), depth, h1 - i, g1 - j, keep,
            )  # fmt: skip

    rows.panels(g0, g1, one)
    rows.f.ret(0)


class _Columns(Bands):
    """Writes ``packed_columns``."""

    def __init__(self, module: llvm.Module, symbol: str, **form: Any) -> None:
        super().__init__(module, symbol, 6, **form)
        f = self.f
        b, b_line, turned, panels, width, depth = f.parameters

        def turn_panel(j: Word, across: int) -> None:
            columns = f.smaller(width - j, across * self.lanes)
            self.as_function(
                self._turned, self.at(b, j * b_line), b_line, self.panel(panels, j), depth,
                columns, f.number(across * self.lanes),
            )  # fmt: skip

        with f.either(turned.differs(0)) as (yes, no):
            with yes:
                self.panels(f.number(0), width, turn_panel)
            # A few lines at a time, for all panels: so lines are read as they lie.
            with no, self.over(0, depth, _LINES_AT_ONCE) as k:

                def lines(j: Word, across: int) -> None:
                    wide = across * self.lanes
                    self.write(
                        pack, self.shape(1, across), self.at(b, k * b_line + j), b_line,
                        self.at(self.panel(panels, j), k * wide),
                        f.smaller(depth - k, _LINES_AT_ONCE), f.smaller(width - j, wide),
                    )  # fmt: skip

                self.panels(f.number(0), width, lines)
        f.ret(0)

    def _turned(
        self, b: Word, b_line: Word, panel: Word, depth: Word, columns: Word, apart: Word
    ) -> None:
        self.write(turn, self.shape(1, 1), b, b_line, panel, depth, columns, apart)


def named(module: str, name: str, kinds: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Which of these kinds of parts a name is of, and its dtype, lanes and sizes of blocks.

    Raises AttributeError for a name of none of them.
    """
    match = re.fullmatch(
        rf"({'|'.join(kinds)})_(f32|f64)x(2|4|8|16)(?:_(\d+)_(\d+)_(\d+))?", name
    )
    if match is None:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    sizes = DEFAULT.depth, DEFAULT.row_bytes, DEFAULT.band
    if match[4] is not None:
        sizes = int(match[4]), int(match[5]), int(match[6])
    return match[1], {"dtype": match[2], "lanes": int(match[3]), "sizes": sizes}


_WRITERS: dict[str, tuple[Callable[..., Any], int]] = {
    "near_rows": (_near_rows, 12), "packed_rows": (_packed_rows, 13),
    "packed_columns": (_Columns, 6),
}  # fmt: skip


@functools.cache
def __getattr__(name: str) -> Part:
    kind, form = named(__name__, name, _WRITERS)
    write, parameters = _WRITERS[kind]
    return Part(name, types.void, parameters, functools.partial(write, **form))
