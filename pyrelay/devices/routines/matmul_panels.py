"""Products of matrices whose right operand lies in panels already, and what lays it so.

In: the parameters of such a product and a range of its parallel axis (``matmul``); out: LLVM
functions, and the parts that call them from a kernel's text:

``pack_f32x16(block, begin, end)``
    lays panels ``begin`` to ``end`` of a matrix, in vectors of 16 ``f32``.
``panels_f32x16(block, begin, end)``
    the product over a range of units.

A panel is two vectors wide and as deep as the matrix: its rows follow each other, padded with zeros
to whole panels and to a multiple of ``lanes`` rows.  A loop that multiplies by one
matrix lays it once; each of its products reads every line of the cache once, in order, instead of a
narrow stripe of lines that are a row apart and fall on few sets of the cache.

The right operand may be ``gates`` matrices of one size side by side, each with panels of its own.
A part of such a product is the same columns of all of them: so the kernel that finishes it sees
whatever stands at one place of each.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.compiler.llvm_writer import Function, Variable, Word
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul_bands import named
from pyrelay.devices.routines.matmul_blocks import Product, leave_without_memory
from pyrelay.devices.routines.matmul_choice import LOW
from pyrelay.devices.routines.matmul_lines import bytes_of_panel
from pyrelay.devices.routines.matmul_tiles import Code, Shape, pack, tile, turn

FIRST_ROW, END_ROW = 16, 17
"""Words of a product's parameters that say which rows of it are wanted; the operands of the kernel
that finishes it follow."""
GATES = 8
"""The word of a product's parameters that says how many matrices stand side by side."""


class _PanelProduct(Product):
    """Writes ``panels``: ``n`` counts the columns of one gate."""

    def _prepare(self) -> None:
        block = self.f.parameters[0]
        self.gates = self.f.load(block, 8 * GATES)
        self.first, self.end = (self.f.load(block, 8 * place) for place in (FIRST_ROW, END_ROW))
        self.wide = 2 * self.lanes
        self.apart = bytes_of_panel(self.k, self.lanes, self.size)
        self.gate_bytes = (self.n + (self.wide - 1)).unsigned_div(self.wide) * self.apart

    def _small_stack(self, block: Word, begin: Word, end: Word) -> None:
        """There is one matrix, whose parameters say other things behind."""

    def _operands(self, block: Word) -> Word:
        return block + 8 * (END_ROW + 1)

    def _part(self) -> None:
        f = self.f
        self.i0 = (self.i0 < self.first).choose(self.first, self.i0)
        self.i1 = f.smaller(self.i1, self.end)
        with self.over(self.i0, self.i1, self.band) as h0:
            h1 = f.smaller(self.i1, h0 + self.band)
            with (
                self.depths(self.k, self.added) as (k0, depth, keep),
                f.either(self.a_turned) as (packed, in_place),
            ):
                with packed, self._packing():
                    a = self.at(self.a, k0 * self.a_line)
                    self.pack_a(a, self.a_line, self.a_turned, self.packed_a, h0, h1, depth)
                    with self._columns(k0) as (column, j, panel), self.over(
                        h0, h1, self.rows
                    ) as i:
                        lines = self.lines(self.packed_a, i - h0), 1, self.rows
                        self._cell(True, self.rows, i, column, lines, panel, depth, keep, h1, j)
                with in_place, self._columns(k0) as (column, j, panel):
                    row = f.variable(h0)
                    with f.while_(lambda: row.now < h1):
                        self._few(row, h1, column, j, panel, k0, depth, keep)
            self._finish(h0, h1, self.j0, self.j1)

    @contextmanager
    def _columns(self, k0: Word) -> Iterator[tuple[Word, Word, Word]]:
        """The panels of a part, of each gate: their first column in c, and in the gate, and the
        address of their row ``k0``."""
        with self.f.counting(self.gates) as gate, self.over(self.j0, self.j1, self.wide) as j:
            panel = self.b + gate * self.gate_bytes + j.unsigned_div(self.wide) * self.apart
            yield gate * self.n + j, j, self.at(panel, k0 * self.wide)

    def _few(
        self, row: Variable, h1: Word, column: Word, j: Word, panel: Word, k0: Word,
        depth: Word, keep: Word,
    ) -> None:  # fmt: skip
        """The next rows, read where they lie, their elements side by side: as tall or low a tile
        as leaves the least over."""
        f, tall, low = self.f, self.rows, LOW
        i = row.now
        left = h1 - i
        a = self.at(self.a, i * self.a_line + k0), self.a_line, 1
        with f.either((left > 2 * low) | ((left > low) & (left <= tall))) as (yes, no):
            for rows, branch in ((tall, yes), (low, no)):
                with branch:
                    self._cell(False, rows, i, column, a, panel, depth, keep, h1, j)
                    row.set(i + rows)

    def _cell(
        self, packed: bool, tall: int, i: Word, column: Word, a: tuple[Word | int, ...],
        panel: Word, depth: Word, keep: Word, i1: Word, j: Word,
    ) -> None:  # fmt: skip
        """The tile at row ``i`` and a column of c; ``a``: address, strides along rows and depth."""
        f = self.f
        out = self.at(self.c, i * self.c_line + column)
        rows, columns = f.smaller(i1 - i, tall), f.smaller(self.j1 - j, self.wide)
        self.write(
            tile, self.shape(tall, 2), *a, panel, self.wide, out, self.c_line, depth, rows,
            columns, keep, packed=packed, padded=True,
        )  # fmt: skip


def _pack(module: llvm.Module, symbol: str, *, dtype: str, lanes: int) -> Function:
    """The function ``pack``: parameters are the addresses of the matrix and the panels; k; columns
    of a gate; elements from one line of the matrix to the next; whether it is transposed."""
    element = LLVM_TYPES[SHORT_NAMES[dtype]]
    f = Function(module, symbol, 3)
    block, begin, end = f.parameters
    matrix, panels, k, n, line, turned = (f.load(block, 8 * place) for place in range(1, 7))
    shape, wide = Shape(element, lanes, 1, 2), 2 * lanes
    size = 4 if dtype == "f32" else 8
    apart, per_gate = bytes_of_panel(k, lanes, size), (n + (wide - 1)).unsigned_div(wide)
    step = (turned.differs(0)).choose(line, 1)
    panel = f.variable(begin)
    with f.while_(lambda: panel.now < end):
        gate = panel.now.unsigned_div(per_gate)
        j = (panel.now - gate * per_gate) * wide
        source, target = matrix + (gate * n + j) * step * size, panels + panel.now * apart
        columns = f.smaller(n - j, wide)
        with f.either(turned.differs(0)) as (yes, no):
            for routine, branch in ((turn, yes), (pack, no)):
                with branch:
                    given: list[Any] = [f.raw(x) for x in (source, line, target, k, columns)]
                    routine(Code(f.b, shape), *given)
        panel.set(panel.now + 1)
    f.ret(0)
    return f


@functools.cache
def __getattr__(name: str) -> Part:
    kind, form = named(__name__, name, ("pack", "panels"))
    if kind == "panels":
        write = functools.partial(_PanelProduct, **form)
        return Part(name, types.void, 3, write, leave_without_memory)
    del form["sizes"]
    return Part(name, types.void, 3, functools.partial(_pack, **form))
