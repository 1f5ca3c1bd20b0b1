"""Products of few rows: lines of ``b`` stream through the cache, ``c`` stays in it.

In: a ``Code`` on a builder and a shape, of which ``rows`` counts the lines of ``b`` that are read
side by side; addresses and strides (in elements) as LLVM's ``i64``; out: LLVM vector code, loops
included, emitted in place. A stripe of ``b`` a few vectors wide, as register tiles read it, is a
page and a set of the cache for each line where lines are long: whole lines are read in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.llvm_writer import Word
from pyrelay.devices.routines.matmul_tiles import Code, Value


def bytes_of_panel(k: Word, lanes: int, size: int) -> Word:
    """Bytes from one panel to the next."""
    return (k + (lanes - 1)).unsigned_div(lanes) * (2 * lanes * lanes * size)


def lines(
    code: Code, x: Value, x_k: Value, right: Value, b_k: Value, c: Value, columns: Value,
    keep: Value, lead: Value,
) -> None:  # fmt: skip
    """``c[j] (+)= sum of x[k] b[k, j]`` for the next ``rows`` values of k, swept along ``j``: the
    lines of ``b`` stream through the cache side by side, and ``c`` stays in it. Whole vectors begin
    behind ``lead`` columns, which are fewer than one has."""
    b, shape = code.b, code.shape
    x_base, b_base, c_base = code.pointer(x), code.pointer(right), code.pointer(c)
    numbers = [code.word(row) for row in range(shape.rows)]
    factors = [code.splat(code.load_scalar(code.at(x_base, b.mul(n, x_k)))) for n in numbers]
    pointers = [code.at(b_base, b.mul(n, b_k)) for n in numbers]
    kept = b.icmp_signed("!=", keep, code.word(0))
    zero = llvm.Constant(shape.vector, None)

    def total(index: Any, load: Callable[[Any], Any]) -> Any:
        out = b.select(kept, load(code.at(c_base, index)), zero)
        for factor, pointer in zip(factors, pointers, strict=True):
            out = code.fma(factor, load(code.at(pointer, index)), out)
        return out

    def body(index: Any, _carried: list[Any]) -> list[Any]:
        code.store(total(index, code.load), code.at(c_base, index))
        return []

    def part(first: Any, count: Any) -> None:
        with b.if_then(b.icmp_signed(">", count, code.word(0))):
            mask = code.below(count, 0)
            value = total(first, lambda pointer: code.load_masked(pointer, mask))
            code.store_masked(value, code.at(c_base, first), mask)

    rest = b.and_(b.sub(columns, lead), code.word(shape.lanes - 1))
    whole = b.sub(columns, rest)
    part(code.word(0), lead)
    code.loop(whole, shape.lanes, [], body, start=lead)
    part(whole, rest)


def headed(
    code: Code, x: Value, x_k: Value, right: Value, b_k: Value, c: Value, columns: Value,
    lead: Value, k: Value, keep: Value,
) -> None:  # fmt: skip
    """``c[j] (+)= sum over k of x[k] b[k, j]``, all of it in registers: ``lead`` columns, and as
    many vectors behind them as the shape has, of which the last one may have fewer columns."""
    b, shape = code.b, code.shape
    x_base, b_base, c_base = code.pointer(x), code.pointer(right), code.pointer(c)
    starts = [b.add(lead, code.word(v * shape.lanes)) for v in range(shape.across)]
    masks: list[Any] = [None] * (shape.across - 1)
    masks.append(code.below(b.sub(columns, starts[-1]), 0))
    parts = [(code.word(0), code.below(lead, 0)), *zip(starts, masks, strict=True)]

    def body(index: Any, sums: list[Any]) -> list[Any]:
        factor = code.splat(code.load_scalar(code.at(x_base, b.mul(index, x_k))))
        line = code.at(b_base, b.mul(index, b_k))
        return [
            code.fma(factor, code.load_part(code.at(line, start), mask), total)
            for (start, mask), total in zip(parts, sums, strict=True)
        ]

    zero = llvm.Constant(shape.vector, None)
    sums = code.loop(k, 1, [zero] * len(parts), body, unrolled=False)
    kept = b.icmp_signed("!=", keep, code.word(0))
    for (start, mask), total in zip(parts, sums, strict=True):
        place = code.at(c_base, start)
        old = b.select(kept, code.load_part(place, mask), zero)
        code.store_part(b.fadd(total, old), place, mask)


def stacked(
    code: Code, x: Value, x_k: Value, right: Value, b_k: Value, c: Value, columns: Value,
    k: Value, keep: Value,
) -> None:  # fmt: skip
    """``c[j] (+)= sum over k of x[k] b[k, j]`` for no more columns than a vector has: ``rows``
    lines at a time, each of which has a sum of its own, so that none waits for another."""
    b, shape = code.b, code.shape
    x_base, b_base, c_base = code.pointer(x), code.pointer(right), code.pointer(c)
    mask, zero = code.below(columns, 0), llvm.Constant(shape.vector, None)

    def more(index: Any, total: Any) -> Any:
        factor = code.splat(code.load_scalar(code.at(x_base, b.mul(index, x_k))))
        return code.fma(
            factor, code.load_masked(code.at(b_base, b.mul(index, b_k)), mask), total
        )

    def body(index: Any, sums: list[Any]) -> list[Any]:
        return [more(b.add(index, code.word(n)), total) for n, total in enumerate(sums)]

    def rest(index: Any, sums: list[Any]) -> list[Any]:
        return [more(index, sums[0])]

    whole = b.mul(b.udiv(k, code.word(shape.rows)), code.word(shape.rows))
    sums = code.loop(whole, shape.rows, [zero] * shape.rows, body, unrolled=False)
    sums = [*code.loop(k, 1, sums[:1], rest, start=whole, unrolled=False), *sums[1:]]
    while len(sums) > 1:
        sums = [b.fadd(*pair) for pair in zip(sums[::2], sums[1::2], strict=True)]
    kept = b.icmp_signed("!=", keep, code.word(0))
    old = b.select(kept, code.load_masked(c_base, mask), zero)
    code.store_masked(b.fadd(sums[0], old), c_base, mask)


def single(
    code: Code, x: Value, x_k: Value, panels: Value, apart: Value, c: Value, k: Value,
    columns: Value, keep: Value,
) -> None:  # fmt: skip
    """``c[j] (+)= sum over k of x[k] b[k, j]`` for the columns of ``rows`` panels of ``b``
    (``matmul_panels``), ``apart`` elements from one to the next."""
    b, shape = code.b, code.shape
    x_base, c_base = code.pointer(x), code.pointer(c)
    starts = [code.at(code.pointer(panels), b.mul(code.word(n), apart)) for n in range(shape.rows)]
    wide = code.word(shape.across * shape.lanes)

    def body(index: Any, sums: list[Any]) -> list[Any]:
        factor = code.splat(code.load_scalar(code.at(x_base, b.mul(index, x_k))))
        lines = [code.at(start, b.mul(index, wide)) for start in starts]
        places = [
            code.at(line, code.word(v * shape.lanes)) for line in lines for v in range(shape.across)
        ]
        return [
            code.fma(factor, code.load(place), total)
            for place, total in zip(places, sums, strict=True)
        ]

    zero = llvm.Constant(shape.vector, None)
    sums = code.loop(k, 1, [zero] * (shape.rows * shape.across), body)
    kept = b.icmp_signed("!=", keep, code.word(0))
    for v, total in enumerate(sums):
        mask = code.below(columns, v * shape.lanes)
        place = code.at(c_base, code.word(v * shape.lanes))
        old = b.select(kept, code.load_masked(place, mask), zero)
        code.store_masked(b.fadd(total, old), place, mask)


def gather(
    code: Code, a: Value, a_row: Value, a_k: Value, packed: Value, rows: Value, k: Value
) -> None:
    """What `sweep` reads: values of k that it takes at a time, as many as the shape has rows, side
    by side, for all rows of ``a``; then the next ones. ``k`` is a multiple of them."""
    b, count = code.b, code.shape.rows
    a_base, target = code.pointer(a), code.pointer(packed)

    def row(number: Any, _carried: list[Any]) -> list[Any]:
        source, first = code.at(a_base, b.mul(number, a_row)), b.mul(number, code.word(count))

        def body(index: Any, _carried: list[Any]) -> list[Any]:
            to = code.at(target, b.add(b.mul(index, rows), first))
            for t in range(count):
                place = code.at(source, b.mul(b.add(index, code.word(t)), a_k))
                b.store(code.load_scalar(place), code.at(to, code.word(t)))
            return []

        code.loop(k, count, [], body, unrolled=False)
        return []

    code.loop(rows, 1, [], row, unrolled=False)


def sweep(
    code: Code, a: Value, right: Value, b_k: Value, c: Value, c_row: Value, rows: Value,
    columns: Value,
) -> None:  # fmt: skip
    """``c[i, j] += sum of a[i, k] b[k, j]`` for the next ``rows`` of the shape values of k, of
    which those of a lie as `gather` puts them: ``across`` vectors of each line of ``b`` stay in
    registers while all rows of ``c`` pass."""
    b, shape = code.b, code.shape
    a_base, b_base, c_base = code.pointer(a), code.pointer(right), code.pointer(c)
    steps = [code.word(v * shape.lanes) for v in range(shape.across)]
    pointers = [code.at(b_base, b.mul(code.word(n), b_k)) for n in range(shape.rows)]

    # The next lines of b are fetched meanwhile: there are too many for the CPU to see them coming.
    following = [code.at(pointer, b.mul(code.word(shape.rows), b_k)) for pointer in pointers]

    def columns_at(index: Any, masks: list[Any]) -> None:
        for line in following:
            code.prefetch(code.at(line, index), written=False)
        parts = list(zip(steps, masks, strict=True))
        lines = [
            [code.load_part(code.at(code.at(pointer, index), step), mask) for step, mask in parts]
            for pointer in pointers
        ]

        def row(number: Any, _carried: list[Any]) -> list[Any]:
            line = code.at(code.at(c_base, b.mul(number, c_row)), index)
            factors = code.at(a_base, b.mul(number, code.word(shape.rows)))
            sums = [code.load_part(code.at(line, step), mask) for step, mask in parts]
            for n, vectors in enumerate(lines):
                x = code.splat(code.load_scalar(code.at(factors, code.word(n))))
                sums = [code.fma(x, v, s) for v, s in zip(vectors, sums, strict=True)]
            for (step, mask), total in zip(parts, sums, strict=True):
                code.store_part(total, code.at(line, step), mask)
            return []

        code.loop(rows, 1, [], row, unrolled=False)

    def whole(index: Any, _carried: list[Any]) -> list[Any]:
        columns_at(index, [None] * shape.across)
        return []

    wide = shape.across * shape.lanes
    covered = b.mul(b.udiv(columns, code.word(wide)), code.word(wide))
    code.loop(covered, wide, [], whole)
    rest = b.sub(columns, covered)
    with b.if_then(b.icmp_signed(">", rest, code.word(0))):
        columns_at(covered, [code.below(rest, v * shape.lanes) for v in range(shape.across)])


def unload(
    code: Code, sums: Value, line: Value, c: Value, c_row: Value, rows: Value, columns: Value,
    keep: Value,
) -> None:  # fmt: skip
    """``c[i, j] (+)= sums[i, j]``; ``sums`` may be read beyond its lines."""
    b, shape = code.b, code.shape
    sums_base, c_base = code.pointer(sums), code.pointer(c)
    kept = b.icmp_signed("!=", keep, code.word(0))
    zero = llvm.Constant(shape.vector, None)
    whole = b.mul(b.udiv(columns, code.word(shape.lanes)), code.word(shape.lanes))
    rest = b.sub(columns, whole)
    mask = code.below(rest, 0)

    def row(number: Any, _carried: list[Any]) -> list[Any]:
        source, to = code.at(sums_base, b.mul(number, line)), code.at(c_base, b.mul(number, c_row))

        def body(index: Any, _carried: list[Any]) -> list[Any]:
            place = code.at(to, index)
            old = b.select(kept, code.load(place), zero)
            code.store(b.fadd(code.load(code.at(source, index)), old), place)
            return []

        code.loop(whole, shape.lanes, [], body)
        with b.if_then(b.icmp_signed(">", rest, code.word(0))):
            place = code.at(to, whole)
            old = b.select(kept, code.load_masked(place, mask), zero)
            code.store_masked(b.fadd(code.load(code.at(source, whole)), old), place, mask)
        return []

    code.loop(rows, 1, [], row)
