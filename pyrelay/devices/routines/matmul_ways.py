"""Ways to compute a part of a product that few programs take: parts of their own.

In: addresses, strides in elements, and extents; out: LLVM functions that ``product``
(``matmul_blocks``) calls, and the ``Part`` of each, which is made when a program is foreseen to
call it, or does. ``keep`` and ``added`` are not 0 to add to what is there.

``vector_lines_f32x16(vector, vector_step, matrix, step, out, length, k, added)``
    a vector times a matrix whose lines are ``step`` apart.
``panel_row_f32x16(a, a_step, panels, c, j0, j1, k, added)``
    a row times columns ``j0`` to ``j1`` of panels.
``vector_dots_f32x16(vector, matrix, line, out, length, k, added)``
    dot products of a vector and ``length`` lines of a matrix.
``few_rows_f32x16(a, a_line, count, b, b_line, j0, j1, c, c_line, k, added)``
    the same of up to 8 rows and lines ``j0`` to ``j1`` of b.
``column_dots_f32x16(a, a_line, packed, apart, c, c_line, k, rows, columns, keep)``
    rows of a times fewer columns than a vector has, which lie along k, ``apart`` from each other.
``turned_tiles_f32x16(a, a_line, b, b_step, b_column, sums, line, k, rows, columns, keep)``
    the same of a turned a, whose rows fill vectors: sums lie in lines of rows.
``swept_lines_f32x16(a, a_row, a_step, b, b_line, out, c_line, rows, length, depth, keep, sums,
factors)``
    few rows times lines of b that stream through the cache; there is room for sums, and for values
    of a.
``in_place_f32x16(a, a_row, a_step, b, b_line, c, c_line, i0, i1, g0, g1, depth, keep)``
    rows ``i0`` to ``i1`` of a times columns ``g0`` to ``g1`` of b, both as they lie.
``small_stack_f32x16(a, a_next, a_row, a_step, b, b_next, b_line, c, count, rows, columns, k)``
    products of ``count`` small matrices, which lie ``a_next`` and ``b_next`` from one to the next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.llvm_writer import Word
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul_bands import Bands, named
from pyrelay.devices.routines.matmul_columns import column_dots
from pyrelay.devices.routines.matmul_lines import (
    bytes_of_panel,
    gather,
    headed,
    lines,
    single,
    stacked,
    sweep,
    unload,
)
from pyrelay.devices.routines.matmul_tiles import Shape, dots, narrow, tile

_NARROW_ROWS = 8  # of a, which are multiplied together by a vector of each line of b
_FEW_ROWS = 4  # the same, of matrices that have few
_NEAR_ROWS = 32  # of a, which are read once more for more columns


class _Ways(Bands):
    """Writes one of the functions."""

    def vector_lines(
        self, vector: Word, vector_step: Word, matrix: Word, step: Word, out: Word, length: Word,
        k: Word, added: Word,
    ) -> None:  # fmt: skip
        """Where it fits, the result in one vector, in eight, or in four, where masks leave room; a
        longer one in memory, eight lines of the matrix at a time."""
        f, lanes = self.f, self.lanes
        lead = self.lead(matrix, step)

        def at(k0: Word) -> tuple[Word, ...]:
            return self.at(vector, k0 * vector_step), self.at(matrix, k0 * step)

        def in_four(j: Word) -> None:
            with self.depths(k, added) as (k0, depth, keep):
                x, line = at(k0)
                self.write(
                    tile, self.shape(1, 4), x, 0, vector_step, self.at(line, j), step,
                    self.at(out, j), 0, depth, 1, length - j, keep,
                )  # fmt: skip

        def behind_lead(across: int) -> None:
            with self.depths(k, added) as (k0, depth, keep):
                x, line = at(k0)
                self.write(
                    headed, self.shape(1, across), x, vector_step, line, step, out, length, lead,
                    depth, keep,
                )  # fmt: skip

        def swept(start: Word | int, stop: Word, count: int) -> None:
            with self.over(start, stop, count) as k0:
                x, line = at(k0)
                keep = added | (k0 > 0).word()
                self.write(
                    lines, self.shape(count, 1), x, vector_step, line, step, out, length, keep,
                    lead,
                )  # fmt: skip

        def in_one() -> None:
            self.write(
                stacked, self.shape(8, 1), vector, vector_step, matrix, step, out, length, k, added,
            )

        four = (lead > 0) & length.equals(4 * lanes)
        with f.either((length <= 4 * lanes) | (k < 1)) as (few, broad):
            with few, f.either((length <= lanes) & (k > 0)) as (one, more):
                with one:
                    in_one()
                with more, f.either(four) as (yes, no):
                    with yes:
                        behind_lead(4)
                    with no, self.over(0, length, 4 * lanes) as j:
                        in_four(j)
            with broad, f.either(length.equals(8 * lanes)) as (fits, long):
                with fits:
                    behind_lead(8)
                with long:
                    whole = k.unsigned_div(8) * 8
                    swept(0, whole, 8)
                    swept(whole, k, 1)

    def panel_row(
        self, a: Word, a_step: Word, b: Word, c: Word, j0: Word, j1: Word, k: Word, added: Word
    ) -> None:
        """Two panels at a time: each is read at the speed of the cache that it lies in. Lines of a
        matrix are too far apart for that where threads share its columns."""
        f, wide = self.f, 2 * self.lanes
        apart = bytes_of_panel(k, self.lanes, self.size)
        with self.over(j0, j1, 2 * wide) as j:
            left, panel = j1 - j, b + j.unsigned_div(wide) * apart
            with f.either(left > wide) as (two, one):
                for count, branch in ((2, two), (1, one)):
                    with branch:
                        self.write(
                            single, self.shape(count, 2), a, a_step, panel,
                            apart.unsigned_div(self.size), self.at(c, j), k, left, added,
                        )  # fmt: skip

    def vector_dots(
        self, vector: Word, matrix: Word, line: Word, out: Word, length: Word, k: Word,
        added: Word,
    ) -> None:  # fmt: skip
        with self.over(0, length, 8) as j:
            self.write(
                dots, self.shape(1, 8), vector, 0, self.at(matrix, j * line), line,
                self.at(out, j), 0, k, 1, self.f.smaller(length - j, 8), added,
            )  # fmt: skip

    def few_rows(
        self, a: Word, a_line: Word, count: Word, b: Word, b_line: Word, j0: Word, j1: Word,
        c: Word, c_line: Word, k: Word, added: Word,
    ) -> None:  # fmt: skip
        """``a b^T`` with up to 8 rows, as dot products."""
        f, rows = self.f, self.rows_in_place // 2
        with self.over(j0, j1, 4) as j, self.over(0, count, rows) as i:
            self.write(
                dots, self.shape(rows, 4), self.at(a, i * a_line), a_line,
                self.at(b, j * b_line), b_line, self.at(c, i * c_line + j), c_line,
                k, f.smaller(count - i, rows), f.smaller(j1 - j, 4), added,
            )  # fmt: skip

    def column_dots(
        self, a: Word, a_line: Word, packed: Word, apart: Word, c: Word, c_line: Word, k: Word,
        rows: Word, columns: Word, keep: Word,
    ) -> None:  # fmt: skip
        f, sums = self.f, 2 * self.rows_in_place  # of a tile, in a register each

        def dotted(across: int, i: Word, count: Word, j: Word, beside: Word) -> None:
            self.write(
                column_dots, self.shape(sums // across, across), self.at(a, i * a_line), a_line,
                self.at(packed, j * apart), apart, self.at(c, i * c_line + j), c_line, k, count,
                beside, keep,
            )  # fmt: skip

        with f.either(columns <= 2) as (two, more):
            with two:
                dotted(2, f.number(0), rows, f.number(0), columns)
            with more:
                across = min(4, self.lanes)
                with self.over(0, rows, _NEAR_ROWS) as i, self.over(0, columns, across) as j:
                    count, beside = f.smaller(rows - i, _NEAR_ROWS), f.smaller(columns - j, across)
                    dotted(across, i, count, j, beside)

    def turned_tiles(
        self, a: Word, a_line: Word, b: Word, b_step: Word, b_column: Word, sums: Word,
        line: Word, k: Word, rows: Word, columns: Word, keep: Word,
    ) -> None:  # fmt: skip
        tall, wide = self.rows_in_place // 2, 4 * self.lanes
        with self.over(0, rows, wide) as i, self.over(0, columns, tall) as j:
            self.write(
                tile, self.shape(tall, 4), self.at(b, j * b_column), b_column, b_step,
                self.at(a, i), a_line, self.at(sums, j * line + i), line, k,
                self.f.smaller(columns - j, tall), rows - i, keep,
            )  # fmt: skip

    def swept_lines(
        self, a: Word, a_row: Word, a_step: Word, b: Word, b_line: Word, out: Word, c_line: Word,
        rows: Word, length: Word, depth: Word, keep: Word, sums: Word, factors: Word,
    ) -> None:  # fmt: skip
        line = self.group + 2 * self.lanes

        def swept(start: Word, stop: Word, count: int) -> None:
            self.write(
                gather, self.shape(count, 2), self.at(a, start * a_step), a_row, a_step, factors,
                rows, stop - start,
            )  # fmt: skip
            with self.over(start, stop, count) as k:
                self.write(
                    sweep, self.shape(count, 2), self.at(factors, (k - start) * rows),
                    self.at(b, k * b_line), b_line, sums, line, rows, length,
                )  # fmt: skip

        self.f.c("memset", sums, self.f.number(0), rows * (line * self.size))
        whole = depth & -4
        swept(self.f.number(0), whole, 4)
        swept(whole, depth, 1)
        self.write(unload, self.shape(1, 1), sums, line, out, c_line, rows, length, keep)

    def in_place(
        self, a: Word, a_row: Word, a_step: Word, b: Word, b_line: Word, c: Word, c_line: Word,
        i0: Word, i1: Word, g0: Word, g1: Word, depth: Word, keep: Word,
    ) -> None:  # fmt: skip
        f = self.f
        with self.over(g0, g1, 2 * self.lanes) as j:
            place, columns = self.at(b, j), f.smaller(g1 - j, 2 * self.lanes)

            def write(routine: Callable[..., None], shape: Shape, i: Word, count: Word) -> None:
                self.write(
                    routine, shape, self.at(a, i * a_row), a_row, a_step, place, b_line,
                    self.at(c, i * c_line + j), c_line, depth, count, columns, keep,
                )  # fmt: skip

            with f.either(columns <= self.lanes) as (few, many):
                with few:
                    write(narrow, self.shape(_NARROW_ROWS, 1), i0, i1 - i0)
                with many, self.over(i0, i1, self.rows_in_place) as i:
                    rows = f.smaller(i1 - i, self.rows_in_place)
                    write(tile, self.shape(self.rows_in_place, 2), i, rows)

    def small_stack(
        self, a: Word, a_next: Word, a_row: Word, a_step: Word, b: Word, b_next: Word,
        b_line: Word, c: Word, count: Word, rows: Word, columns: Word, k: Word,
    ) -> None:  # fmt: skip
        with self.over(0, count, 1) as number:
            self.write(
                narrow, self.shape(_FEW_ROWS, 1), self.at(a, number * a_next), a_row, a_step,
                self.at(b, number * b_next), b_line, self.at(c, number * (rows * columns)),
                columns, k, rows, columns, self.f.number(0),
            )  # fmt: skip


_PARAMETERS = {
    "panel_row": 8, "vector_dots": 7, "few_rows": 11, "vector_lines": 8, "column_dots": 10,
    "turned_tiles": 11, "swept_lines": 13, "in_place": 13, "small_stack": 12,
}  # fmt: skip


def _write(
    module: llvm.Module, symbol: str, way: str, parameters: int, **form: Any
) -> None:
    ways = _Ways(module, symbol, parameters, **form)
    getattr(ways, way)(*ways.f.parameters)
    ways.f.ret(0)


@functools.cache
def __getattr__(name: str) -> Part:
    way, form = named(__name__, name, _PARAMETERS)
    parameters = _PARAMETERS[way]
    write = functools.partial(_write, way=way, parameters=parameters, **form)
    return Part(name, types.void, parameters, write, steps=way == "vector_dots")  # eight lines
