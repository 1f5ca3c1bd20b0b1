"""Products of many rows and few columns: dot products of a row with several columns at a time,
and what is around them.

In: a ``Code`` on a builder and a shape, of which ``across`` counts columns; addresses and strides
(in elements) as LLVM's ``i64``; out: LLVM vector code, loops included, emitted in place. A tile
that has the columns side by side in a vector fills no more of its lanes than there are columns;
here vectors lie along k, and what the sums of their lanes take is shared by a whole tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.routines.matmul_tiles import Code, Value, totals


def lay_columns(
    code: Code, right: Value, b_k: Value, b_column: Value, packed: Value, apart: Value, k: Value,
    columns: Value,
) -> None:  # fmt: skip
    """``packed[j, k] = b[k, j]``, in lines ``apart``, which end with zeros."""
    b, zero = code.b, llvm.Constant(code.shape.element, 0.0)
    source, target = code.pointer(right), code.pointer(packed)

    def column(number: Any, _carried: list[Any]) -> list[Any]:
        start, line = code.at(source, b.mul(number, b_column)), b.mul(number, apart)

        def copy(index: Any, _carried: list[Any]) -> list[Any]:
            value = code.load_scalar(code.at(start, b.mul(index, b_k)))
            b.store(value, code.at(target, b.add(line, index)))
            return []

        def clear(index: Any, _carried: list[Any]) -> list[Any]:
            b.store(zero, code.at(target, b.add(line, index)))
            return []

        code.loop(k, 1, [], copy, unrolled=False)
        return code.loop(apart, 1, [], clear, unrolled=False, start=k)

    code.loop(columns, 1, [], column, unrolled=False)


def column_dots(
    code: Code, a: Value, a_row: Value, packed: Value, apart: Value, c: Value, c_row: Value,
    k: Value, rows: Value, columns: Value, keep: Value,
) -> None:  # fmt: skip
    """``c[i, j] (+)= sum over k of a[i, k] packed[j, k]`` for any number of rows, whose elements
    lie side by side, and no more columns than ``across``, laid by ``lay_columns``; ``keep`` is not
    0 to add to ``c``. The last rows, which fill no tile, are taken one by one."""
    b, shape = code.b, code.shape
    kept, mask = b.icmp_signed("!=", keep, code.word(0)), code.below(columns, 0)
    a_base, c_base = code.pointer(a), code.pointer(c)
    columns_of = code.clamped_rows(code.pointer(packed), apart, shape.across, columns)
    inner = b.and_(k, code.word(-shape.lanes))
    end = code.below(b.sub(k, inner), 0)
    several = b.icmp_signed("==", columns, code.word(shape.across))
    dense = b.and_(several, b.icmp_signed("==", c_row, columns))
    dense = b.and_(dense, b.icmp_signed("==", keep, code.word(0)))

    def sums_of(lines: list[Any]) -> list[Any]:
        """Vectors of the sums of lines, line by line."""

        def terms(mask: Any | None) -> Callable[[Any, list[Any]], list[Any]]:
            def body(index: Any, sums: list[Any]) -> list[Any]:
                ys = [code.load(code.at(column, index)) for column in columns_of]
                xs = [code.load_part(code.at(line, index), mask) for line in lines]
                pairs = [(x, y) for x in xs for y in ys]
                return [code.fma(x, y, s) for (x, y), s in zip(pairs, sums, strict=True)]

            return body

        nothing = [llvm.Constant(shape.vector, None)] * (len(lines) * shape.across)
        sums = code.loop(inner, shape.lanes, nothing, terms(None), unrolled=False)
        sums = code.loop(k, shape.lanes, sums, terms(end), unrolled=False, start=inner)
        starts = range(0, len(sums), shape.lanes)
        return [totals(code, sums[first : first + shape.lanes]) for first in starts]

    def store(vectors: list[Any], first: Any, count: int) -> None:
        lines = [_line(code, vectors, row) for row in range(count)]
        numbers = [b.add(first, code.word(row)) for row in range(count)]
        places = [code.at(c_base, b.mul(number, c_row)) for number in numbers]
        # A load would wait for a store before it, a masked one, too, that leaves out all of that.
        with b.if_else(kept) as (added, fresh):
            with added:
                old = [code.load_masked(place, mask) for place in places]
                for place, *both in zip(places, lines, old, strict=True):
                    code.store_masked(b.fadd(*both), place, mask)
            with fresh:
                for place, total in zip(places, lines, strict=True):
                    code.store_masked(total, place, mask)

    def rows_at(first: Any, count: int) -> list[Any]:
        numbers = [b.add(first, code.word(row)) for row in range(count)]
        return sums_of([code.at(a_base, b.mul(number, a_row)) for number in numbers])

    def tile_at(first: Any, _carried: list[Any]) -> list[Any]:
        vectors = rows_at(first, shape.rows)
        with b.if_else(dense) as (yes, no):
            with yes:
                place = code.at(c_base, b.mul(first, c_row))
                for number, vector in enumerate(vectors):
                    code.store(vector, code.at(place, code.word(number * shape.lanes)))
            with no:
                store(vectors, first, shape.rows)
        return []

    def row_at(first: Any, _carried: list[Any]) -> list[Any]:
        store(rows_at(first, 1), first, 1)
        return []

    covered = b.and_(rows, code.word(-shape.rows))
    code.loop(covered, shape.rows, [], tile_at, unrolled=False)
    code.loop(rows, 1, [], row_at, unrolled=False, start=covered)


def unload_turned(
    code: Code, sums: Value, line: Value, c: Value, c_row: Value, rows: Value, columns: Value,
    keep: Value,
) -> None:  # fmt: skip
    """``c[i, j] (+)= sums[j, i]``, lines of ``sums`` ``line`` apart."""
    b = code.b
    kept, zero = b.icmp_signed("!=", keep, code.word(0)), llvm.Constant(code.shape.element, 0.0)
    source, target = code.pointer(sums), code.pointer(c)

    def row(number: Any, _carried: list[Any]) -> list[Any]:
        start, to = code.at(source, number), code.at(target, b.mul(number, c_row))

        def copy(index: Any, _carried: list[Any]) -> list[Any]:
            total, place = code.load_scalar(code.at(start, b.mul(index, line))), code.at(to, index)
            b.store(b.fadd(total, b.select(kept, code.load_scalar(place), zero)), place)
            return []

        return code.loop(columns, 1, [], copy, unrolled=False)

    code.loop(rows, 1, [], row, unrolled=False)


def _line(code: Code, vectors: list[Any], row: int) -> Any:
    """The columns of a row of the sums, in the first lanes of a vector."""
    shape = code.shape
    number, first = divmod(row * shape.across, shape.lanes)
    taken = [first + lane % shape.across for lane in range(shape.lanes)]
    index = llvm.Constant(llvm.VectorType(llvm.IntType(32), shape.lanes), taken)
    return code.b.shuffle_vector(vectors[number], vectors[number], index)
