"""Rows that read columns of an array go block by block, so that each line of memory is read once.

In: a kernel for the CPU. Out: its body, in which

    for i in range(begin, end):         for each block of rows:
        for j in range(n):          as      for each block of columns:
            o[i, j] = f(a[j, i])                for i, j in both: o[i, j] = f(a[j, i])

Row by row a transposed array is read from line to line of memory, one element of each. A block has
as many rows as a line has elements, and so many columns that their lines stay near. Where rows have
few elements, those of a block are lanes of vectors, which read side by side, and only the rows that
are left go by such blocks. Where a kernel goes plane by plane, so do the rows of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Body,
    Compute,
    For,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    Store,
    statements,
)
from pyrelay.lower.passes.copies import Copy

_LINE = 64  # bytes of a line of memory
_COLUMNS = 64  # of a block
_MOST_LANES = 16  # rows side by side
_FEW = 16  # elements of a row, for which lanes are rows
_MANY = 2  # stands for any step but 0 and 1
_ZERO = Literal(0, i64)


def with_turned_reads(kernel: Kernel) -> Body:
    """The body of a kernel whose rows are read by lines of memory."""
    planes = {
        s.out for s in kernel.body
        if isinstance(s, Compute) and s.primitive == "floor_divide" and s.args[0] is kernel.begin
    }
    made: list[Statement] = []
    for s in kernel.body:
        if isinstance(s, For) and s.start is kernel.begin:
            made += _in_blocks(s)
        elif isinstance(s, For) and s.start in planes and isinstance(s.body[-1], For):
            *front, rows = s.body
            made.append(replace(s, body=(*front, *_in_blocks(rows))))  # type: ignore[arg-type]
        else:
            made.append(s)
    return tuple(made)


def _in_blocks(rows: For) -> list[Statement]:
    """What goes through the rows block by block, or the loop as it is."""
    *front, inner = rows.body or (rows,)
    if not isinstance(inner, For) or not _is_plain(front, inner.body):
        return [rows]
    makers = {s.out: s for s in statements(rows.body) if isinstance(s, Compute)}
    by_row, by_column = (_Steps(makers, loop.index) for loop in (rows, inner))
    stores = [s for s in inner.body if isinstance(s, Store)]
    if any(by_column.of(s.index) != 1 or by_row.of(s.index) != _MANY for s in stores):
        return [rows]
    turned = [
        s.array for s in inner.body
        if isinstance(s, Load) and by_row.of(s.index) == 1 and by_column.of(s.index) == _MANY
    ]
    written = {s.array for s in stores}
    if not stores or not turned or any(array in written for array in turned):
        return [rows]
    size = min(array.dtype.size for array in turned)
    done = Local(i64)
    return [
        *_in_lanes(rows, front, inner, size, done),
        *_tiled(replace(rows, start=done), front, inner, size),
    ]


def _tiled(rows: For, front: Sequence[Statement], inner: For, size: int) -> Body:
    """Blocks of rows and columns."""

    def block(begin: Operand, end: Operand) -> Body:
        def chunk(first: Operand, last: Operand) -> Body:
            part = replace(inner, start=first, stop=last)
            return (replace(rows, start=begin, stop=end, body=(*front, part)),)

        return _parts(inner.start, inner.stop, _COLUMNS, chunk)

    return _parts(rows.start, rows.stop, _LINE // size, block)


def _parts(start: Operand, stop: Operand, size: int, part: Callable[..., Body]) -> Body:
    """A loop over parts of a range, by their first number and their end."""
    extent, more, count, number, before, first, behind, last = (Local(i64) for _ in range(8))
    of = Literal(size, i64)
    return (
        Compute(extent, "subtract", (stop, start)),
        Compute(more, "add", (extent, Literal(size - 1, i64))),
        Compute(count, "floor_divide", (more, of)),
        For(number, _ZERO, count, (
            Compute(before, "multiply", (number, of)),
            Compute(first, "add", (start, before)),
            Compute(behind, "add", (first, of)),
            Compute(last, "minimum", (behind, stop)),
            *part(first, last),
        )),
    )


def _in_lanes(
    rows: For, front: Sequence[Statement], inner: For, size: int, done: Local
) -> Body:
    """Blocks of rows side by side, where rows are short; `done` is the first row after them."""
    length, few, extent, whole, count = Local(i64), Local(bool_), Local(i64), Local(i64), Local(i64)
    number, before, begin, lane, row, column, taken = (Local(i64) for _ in range(7))
    of = Literal(min(_LINE // size, _MOST_LANES), i64)
    body = Copy({rows.index: row, inner.index: column}, set()).body((*front, *inner.body))
    lanes = For(lane, _ZERO, of, (Compute(row, "add", (begin, lane)), *body), lanes=size)
    return (
        Compute(length, "subtract", (inner.stop, inner.start)),
        Compute(few, "less", (length, Literal(_FEW, i64))),
        Compute(extent, "subtract", (rows.stop, rows.start)),
        Compute(whole, "floor_divide", (extent, of)),
        Compute(count, "where", (few, whole, _ZERO)),
        For(number, _ZERO, count, (
            Compute(before, "multiply", (number, of)),
            Compute(begin, "add", (rows.start, before)),
            replace(inner, index=column, body=(lanes,)),
        )),
        Compute(taken, "multiply", (count, of)),
        Compute(done, "add", (rows.start, taken)),
    )


def _is_plain(front: Sequence[Statement], body: Body) -> bool:
    """Whether a row is numbers and one loop that reads, computes and stores elements."""
    return all(isinstance(s, (Compute, Read, Load)) for s in front) and all(
        isinstance(s, (Compute, Load, Store)) for s in body
    )


class _Steps:
    """By how much numbers grow from round to round of a loop: 0, 1 or something else."""

    def __init__(self, makers: Mapping[Local, Compute], index: Local) -> None:
        self.makers = makers
        self.known: dict[Operand, int] = {index: 1}

    def of(self, operand: Operand) -> int:
        """The step of a number. What the loops do not compute stays."""
        if operand not in self.known:
            made = self.makers.get(operand)  # type: ignore[arg-type]
            self.known[operand] = 0 if made is None else self._made(made)
        return self.known[operand]

    def _made(self, made: Compute) -> int:
        steps = [self.of(a) for a in made.args]
        if not any(steps):
            return 0
        if made.primitive == "add" and min(steps) == 0:
            return max(steps)
        return _MANY
