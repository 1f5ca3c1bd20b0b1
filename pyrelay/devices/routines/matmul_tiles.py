"""Register tiles of matrix products, panels of dot products, packing.

In: a ``Code`` on a builder and a tile's shape, addresses and strides (in elements) as LLVM's
``i64``; out: LLVM vector code, loops included, emitted in place.  The register-tile scheme is Goto
and van de Geijn's (*Anatomy of High-Performance Matrix Multiplication*, ACM TOMS 34, 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.llvm_builder import IRBuilder
from pyrelay.devices.compiler.llvm_writer import WORD
from pyrelay.records import dataclass

Value = Any
"""An LLVM value of type ``i64``."""
_I32 = llvm.IntType(32)


@dataclass(frozen=True)
class Shape:
    """A tile of ``rows`` by ``across`` vectors of ``lanes`` elements."""

    element: Any
    lanes: int
    rows: int
    across: int

    @property
    def vector(self) -> llvm.VectorType:
        return llvm.VectorType(self.element, self.lanes)

    @property
    def mask(self) -> llvm.VectorType:
        return llvm.VectorType(llvm.IntType(1), self.lanes)


class Code:
    """A builder with the vector operations the intrinsics are made of."""

    def __init__(self, b: IRBuilder, shape: Shape) -> None:
        self.b, self.shape = b, shape

    @property
    def suffix(self) -> str:
        """The vector type in the names of LLVM's intrinsics."""
        return f"v{self.shape.lanes}{'f32' if self.shape.element == llvm.FloatType() else 'f64'}"

    def word(self, value: int) -> llvm.Constant:
        return llvm.Constant(WORD, value)

    def pointer(self, address: Any) -> Any:
        return self.b.inttoptr(address, self.shape.element.as_pointer())

    def at(self, pointer: Any, index: Any) -> Any:
        return self.b.gep(pointer, [index], source_etype=self.shape.element)

    def splat(self, value: Any) -> Any:
        """A vector of copies of a scalar."""
        vector = llvm.VectorType(value.type, self.shape.lanes)
        first = self.b.insert_element(
            llvm.Constant(vector, llvm.Undefined), value, llvm.Constant(_I32, 0)
        )
        zeros = llvm.Constant(llvm.VectorType(_I32, self.shape.lanes), None)
        return self.b.shuffle_vector(first, llvm.Constant(vector, llvm.Undefined), zeros)

    def below(self, count: Any, start: int) -> Any:
        """The mask of lanes ``start``, ``start + 1``, ... that are below ``count``."""
        numbers = llvm.Constant(
            llvm.VectorType(_I32, self.shape.lanes), list(range(start, start + self.shape.lanes))
        )
        # Counts beyond a few vectors are all alike, and 32 bits compare in one instruction.
        limit = self.minimum(count, self.word(2**30))
        return self.b.icmp_signed("<", numbers, self.splat(self.b.trunc(limit, _I32)))

    def _masked(self, name: str, result: Any, *args: Any) -> Any:
        module = self.b.module
        signature = llvm.FunctionType(result, [each.type for each in args])
        symbol = f"llvm.masked.{name}.{self.suffix}.p0"
        callee = module.globals.get(symbol) or llvm.Function(module, signature, symbol)
        return self.b.call(callee, args)

    def _to_vector(self, pointer: Any) -> Any:
        return self.b.bitcast(pointer, self.shape.vector.as_pointer())

    def load(self, pointer: Any) -> Any:
        return self.b.load(self._to_vector(pointer), align=1)

    def load_scalar(self, pointer: Any) -> Any:
        return self.b.load(pointer, typ=self.shape.element)

    def store(self, value: Any, pointer: Any) -> None:
        self.b.store(value, self._to_vector(pointer), align=1)

    def load_masked(self, pointer: Any, mask: Any, other: Any = None) -> Any:
        """What the mask leaves out is zero, or that of another vector."""
        other = llvm.Constant(self.shape.vector, None) if other is None else other
        return self._masked("load", self.shape.vector, pointer, llvm.Constant(_I32, 1), mask, other)

    def store_masked(self, value: Any, pointer: Any, mask: Any) -> None:
        self._masked("store", llvm.VoidType(), value, pointer, llvm.Constant(_I32, 1), mask)

    def load_part(self, pointer: Any, mask: Any | None) -> Any:
        """Where there is no mask, a whole vector."""
        return self.load(pointer) if mask is None else self.load_masked(pointer, mask)

    def store_part(self, value: Any, pointer: Any, mask: Any | None) -> None:
        """Where there is no mask, a whole vector."""
        if mask is None:
            self.store(value, pointer)
        else:
            self.store_masked(value, pointer, mask)

    def fma(self, x: Any, y: Any, addend: Any) -> Any:
        kind = self.shape.vector
        signature = llvm.FunctionType(kind, [kind] * 3)
        name = f"llvm.fmuladd.{self.suffix}"
        callee = self.b.module.globals.get(name) or llvm.Function(self.b.module, signature, name)
        return self.b.call(callee, [x, y, addend])

    def sum(self, x: Any) -> Any:
        """The sum of a vector's elements, in any order."""
        element, module = self.shape.element, self.b.module
        signature = llvm.FunctionType(element, [element, self.shape.vector])
        name = f"llvm.vector.reduce.fadd.{self.suffix}"
        callee = module.globals.get(name) or llvm.Function(module, signature, name)
        return self.b.call(callee, [llvm.Constant(element, -0.0), x], fastmath=("reassoc",))

    def prefetch(self, pointer: Any, written: bool = True, near: bool = True) -> None:
        """Fetches a cache line that will be written, or read, into the first cache, or the second
        one only."""
        byte = self.b.bitcast(pointer, llvm.IntType(8).as_pointer())
        signature = llvm.FunctionType(llvm.VoidType(), [byte.type] + [_I32] * 3)
        module, name = self.b.module, "llvm.prefetch.p0"
        callee = module.globals.get(name) or llvm.Function(module, signature, name)
        options = int(written), 3 if near else 2, 1
        self.b.call(callee, [byte, *(llvm.Constant(_I32, each) for each in options)])

    def minimum(self, x: Any, y: Any) -> Any:
        return self.b.select(self.b.icmp_signed("<", x, y), x, y)

    def loop(
        self, count: Any, step: int, carried: list[Any],
        body: Callable[[Any, list[Any]], list[Any]], unrolled: bool = True, start: Any = None,
    ) -> list[Any]:  # fmt: skip
        """``for i in range(start, count, step): carried = body(i, carried)``; the last ``carried``.
        LLVM may unroll it, or not: what it moves to the front of several rounds may not fit the
        registers. ``start``: 0 unless given."""
        b = self.b
        before = b.block
        head, inside = b.append_basic_block("head"), b.append_basic_block("body")
        after = b.append_basic_block("after")
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(WORD)
        phis = [b.phi(each.type) for each in carried]
        b.cbranch(b.icmp_signed("<", index, count), inside, after)
        b.position_at_end(inside)
        following = body(index, list(phis))
        step_value = b.add(index, self.word(step), flags=("nsw",))
        latch = b.block
        branch = b.branch(head)
        if not unrolled:
            branch.set_metadata("llvm.loop", self._rolled())
        for phi, first, again in zip(
            [index, *phis], [self.word(0) if start is None else start, *carried],
            [step_value, *following], strict=True,
        ):  # fmt: skip
            phi.add_incoming(first, before)
            phi.add_incoming(again, latch)
        b.position_at_end(after)
        return phis

    def pairs(
        self, count: Any, carried: list[Any], body: Callable[[Any, list[Any]], list[Any]]
    ) -> list[Any]:
        """``loop`` by ones, two of which are one round: so what a round costs besides is half."""
        whole = self.b.and_(count, self.word(-2))

        def pair(index: Any, carried: list[Any]) -> list[Any]:
            return body(self.b.add(index, self.word(1)), body(index, carried))

        carried = self.loop(whole, 2, carried, pair)
        return self.loop(count, 1, carried, body, start=whole)

    def _rolled(self) -> llvm.Metadata:
        """What says of a loop that it is not unrolled: a node of its own, which begins with
        itself."""
        loop = self.b.module.distinct_metadata()
        loop.operands = (loop, self.b.module.add_metadata(["llvm.loop.unroll.disable"]))
        return loop

    def stored(self, vectors: list[Any]) -> Any:
        """A pointer to these vectors, one after another: code that goes through them is a loop."""
        with self.b.goto_entry_block():
            array = self.b.alloca(self.shape.vector, size=self.word(len(vectors)))
            array.align = 64
        for place, vector in enumerate(vectors):
            to = self.b.gep(array, [self.word(place)], source_etype=self.shape.vector)
            self.b.store(vector, to)
        return array

    def finish(
        self, sums: list[Any], c: Any, c_row: Any, rows: Any, columns: Any, masks: list[Any],
        kept: Any,
    ) -> None:  # fmt: skip
        """Store a tile of sums, or add it where ``kept``: ``rows`` and ``columns`` of it.

        Sums of a whole tile go from the registers to memory. Masked stores take many times as long
        as whole ones on some CPUs (12 cycles on Zen 2).
        """
        b, shape = self.b, self.shape
        steps = [self.word(v * shape.lanes) for v in range(shape.across)]
        zero = llvm.Constant(shape.vector, None)
        full = b.icmp_signed(">=", columns, self.word(shape.across * shape.lanes))
        whole = b.and_(full, b.icmp_signed(">=", rows, self.word(shape.rows)))

        def line(row: Any) -> list[Any]:
            first = self.at(c, b.mul(row, c_row))
            return [self.at(first, step) for step in steps]

        def finish_rows(masks: list[Any]) -> None:
            stored = self.stored(sums)

            def finish_row(row: Any, _carried: list[Any]) -> list[Any]:
                first = b.mul(row, self.word(shape.across))
                for v, (mask, place) in enumerate(zip(masks, line(row), strict=True)):
                    number = b.add(first, self.word(v))
                    total = b.load(b.gep(stored, [number], source_etype=shape.vector))
                    total = b.fadd(total, b.select(kept, self.load_part(place, mask), zero))
                    self.store_part(total, place, mask)
                return []

            self.loop(rows, 1, [], finish_row)

        with b.if_else(whole) as (wholes, parts):
            with wholes, b.if_else(kept) as (added, fresh):
                for branch, adds in ((added, True), (fresh, False)):
                    with branch:
                        places = [p for row in range(shape.rows) for p in line(self.word(row))]
                        for place, total in zip(places, sums, strict=True):
                            self.store(b.fadd(total, self.load(place)) if adds else total, place)
            with parts, b.if_else(full) as (broad, narrow):
                with broad:
                    finish_rows([None] * shape.across)
                with narrow:
                    finish_rows(masks)

    def clamped_rows(
        self, base: Any, stride: Any, count: int, valid: Any, first: Any = None
    ) -> list[Any]:
        """Pointers to rows ``first`` (0), ``first + 1``, ...; the last valid one in place of those
        that are not."""
        last = self.b.sub(valid, self.word(1))
        pointers = []
        for row in range(count):
            index = self.word(row) if first is None else self.b.add(first, self.word(row))
            pointers.append(self.at(base, self.b.mul(self.minimum(index, last), stride)))
        return pointers


def tile(
    code: Code, a: Value, a_row: Value, a_k: Value, right: Value, b_k: Value, c: Value,
    c_row: Value, k: Value, rows: Value, columns: Value, keep: Value, packed: bool = False,
    padded: bool = False,
) -> None:  # fmt: skip
    """``c[i, j] (+)= sum over k of a[i, k] b[k, j]``, all of it in registers.

    ``b`` and ``c`` are contiguous along ``j``; only ``rows`` and ``columns`` of the tile are
    touched.  ``keep`` is not 0 to add to ``c``.  ``packed``: rows of ``a`` are 1 apart, and both
    operands may be read beyond their ends; ``padded``: ``b`` may.  Two terms of the sums are one
    round where ``a_k`` is a constant: the second one's addresses then need no registers.
    """
    b, shape = code.b, code.shape
    column_masks = [code.below(columns, v * shape.lanes) for v in range(shape.across)]
    a_base = code.pointer(a)
    if packed:
        row_pointers = [code.at(a_base, code.word(row)) for row in range(shape.rows)]
    else:
        row_pointers = code.clamped_rows(a_base, a_row, shape.rows, rows)
    b_base = code.pointer(right)

    def body(index: Any, sums: list[Any]) -> list[Any]:
        line = code.at(b_base, b.mul(index, b_k))
        places = [code.at(line, code.word(v * shape.lanes)) for v in range(shape.across)]
        if packed or padded:
            vectors = [code.load(place) for place in places]
        else:
            pairs = zip(places, column_masks, strict=True)
            vectors = [code.load_masked(place, mask) for place, mask in pairs]
        offset = b.mul(index, a_k)
        out = []
        for row, pointer in enumerate(row_pointers):
            factor = code.splat(code.load_scalar(code.at(pointer, offset)))
            for v, vector in enumerate(vectors):
                out.append(code.fma(factor, vector, sums[row * shape.across + v]))
        return out

    zero = llvm.Constant(shape.vector, None)
    c_base = code.pointer(c)

    # The tile of c is wanted after the loop; fetching it takes as long as a tenth of it.
    if shape.rows > 1:
        for line in code.clamped_rows(c_base, c_row, shape.rows, rows):
            for v in range(shape.across):
                code.prefetch(code.at(line, code.word(v * shape.lanes)))
    nothing = [zero] * (shape.rows * shape.across)
    if isinstance(a_k, llvm.Constant):
        sums = code.pairs(k, nothing, body)
    else:
        sums = code.loop(k, 1, nothing, body)
    kept = b.icmp_signed("!=", keep, code.word(0))
    code.finish(sums, c_base, c_row, rows, columns, column_masks, kept)


def narrow(
    code: Code, a: Value, a_row: Value, a_k: Value, right: Value, b_k: Value, c: Value,
    c_row: Value, k: Value, rows: Value, columns: Value, keep: Value,
) -> None:  # fmt: skip
    """The same for any number of rows, of no more columns than a vector has: tiles of the shape's
    rows, then of four, of which the last one's may be the same row. What a tile costs besides its
    sums counts where ``k`` is small.
    """
    b, shape = code.b, code.shape
    mask, kept = code.below(columns, 0), b.icmp_signed("!=", keep, code.word(0))
    a_base, b_base, c_base = map(code.pointer, (a, right, c))
    zero, last = llvm.Constant(shape.vector, None), b.sub(rows, code.word(1))

    def some(count: int, whole: bool) -> Callable[[Any, list[Any]], list[Any]]:
        def rows_at(first: Any, _carried: list[Any]) -> list[Any]:
            numbers = [b.add(first, code.word(row)) for row in range(count)]
            if not whole:
                numbers = [code.minimum(number, last) for number in numbers]
            lines = [code.at(a_base, b.mul(number, a_row)) for number in numbers]
            places = [code.at(c_base, b.mul(number, c_row)) for number in numbers]

            def body(index: Any, sums: list[Any]) -> list[Any]:
                vector = code.load_masked(code.at(b_base, b.mul(index, b_k)), mask)
                offset = b.mul(index, a_k)
                return [
                    code.fma(code.splat(code.load_scalar(code.at(line, offset))), vector, total)
                    for line, total in zip(lines, sums, strict=True)
                ]

            sums = code.loop(k, 1, [zero] * count, body, unrolled=False)
            with b.if_else(kept) as (added, fresh):
                with added:
                    old = [code.load_masked(place, mask) for place in places]
                    for place, *both in zip(places, sums, old, strict=True):
                        code.store_masked(b.fadd(*both), place, mask)
                with fresh:
                    for place, total in zip(places, sums, strict=True):
                        code.store_masked(total, place, mask)
            return []

        return rows_at

    covered = b.and_(rows, code.word(-shape.rows))
    code.loop(covered, shape.rows, [], some(shape.rows, True), unrolled=False)
    code.loop(rows, 4, [], some(4, False), unrolled=False, start=covered)


def dots(
    code: Code, a: Value, a_row: Value, right: Value, b_column: Value, c: Value, c_row: Value,
    k: Value, rows: Value, columns: Value, keep: Value,
) -> None:  # fmt: skip
    """The same where ``a`` and ``b`` are contiguous along ``k``; ``across`` counts columns."""
    b, shape = code.b, code.shape
    lefts = code.clamped_rows(code.pointer(a), a_row, shape.rows, rows)
    rights = code.clamped_rows(code.pointer(right), b_column, shape.across, columns)

    def body(index: Any, sums: list[Any]) -> list[Any]:
        mask = code.below(b.sub(k, index), 0)
        xs = [code.load_masked(code.at(pointer, index), mask) for pointer in lefts]
        ys = [code.load_masked(code.at(pointer, index), mask) for pointer in rights]
        pairs = [(x, y) for x in xs for y in ys]
        return [code.fma(x, y, s) for (x, y), s in zip(pairs, sums, strict=True)]

    zero = llvm.Constant(shape.vector, None)
    sums = code.loop(k, shape.lanes, [zero] * (shape.rows * shape.across), body)
    c_base, kept = code.pointer(c), b.icmp_signed("!=", keep, code.word(0))
    masks = [code.below(columns, first) for first in range(0, shape.across, shape.lanes)]

    def finish(line: Any, vectors: list[Any]) -> None:
        for part, mask in enumerate(masks):
            first = part * shape.lanes
            total = totals(code, vectors[first : first + shape.lanes])
            place = code.at(line, code.word(first))
            old = b.select(kept, code.load_masked(place, mask), zero)
            code.store_masked(b.fadd(total, old), place, mask)

    if shape.rows == 1:
        finish(c_base, sums)
        return
    stored = code.stored(sums)

    def finish_row(row: Any, _carried: list[Any]) -> list[Any]:
        places = [b.add(b.mul(row, code.word(shape.across)), code.word(column))
                  for column in range(shape.across)]
        finish(code.at(c_base, b.mul(row, c_row)), [
            b.load(b.gep(stored, [place], source_etype=shape.vector)) for place in places
        ])
        return []

    code.loop(rows, 1, [], finish_row)


def totals(code: Code, vectors: list[Any]) -> Any:
    """The sums of so many vectors, a power of two of at most as many as a vector has lanes, in the
    first lanes of one: two at a time are folded in the middle, which halves their number."""
    lanes = code.shape.lanes
    length = lanes  # of what is left of each vector
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_folded(code, x, y, length) for x, y in pairs]
        length //= 2
    (total,) = vectors
    while length > 1:
        total = _folded(code, total, total, length)
        length //= 2
    return total


def _folded(code: Code, x: Any, y: Any, length: int) -> Any:
    """Both halves of each run of lanes of two vectors added up."""
    lanes, half = code.shape.lanes, length // 2
    low = [start + k for start in range(0, 2 * lanes, length) for k in range(half)]
    index = llvm.VectorType(_I32, lanes)
    halves = [
        code.b.shuffle_vector(x, y, llvm.Constant(index, [lane + more for lane in low]))
        for more in (0, half)
    ]
    return code.b.fadd(*halves)


def pack(
    code: Code, right: Value, b_k: Value, packed: Value, k: Value, columns: Value,
    width: int | None = None,
) -> None:  # fmt: skip
    """``packed[k, j] = b[k, j]``, in rows of ``across`` vectors, zero beyond ``columns``.

    ``width``: how far apart the rows are; where that is less than the vectors hold, each row
    overwrites what the last has too much, and the last row's stays.
    """
    b, shape = code.b, code.shape
    masks = [code.below(columns, v * shape.lanes) for v in range(shape.across)]
    source, target = code.pointer(right), code.pointer(packed)
    apart = code.word(width or shape.across * shape.lanes)

    def body(index: Any, _carried: list[Any]) -> list[Any]:
        line = code.at(source, b.mul(index, b_k))
        out = code.at(target, b.mul(index, apart))
        for v, mask in enumerate(masks):
            offset = code.word(v * shape.lanes)
            code.store(code.load_masked(code.at(line, offset), mask), code.at(out, offset))
        return []

    code.loop(k, 1, [], body)


def transposed(code: Code, rows: list[Any]) -> list[Any]:
    """The transpose of a square of vectors: blocks swapped across the diagonal, size by size."""
    lanes = code.shape.lanes
    size = 1
    while size < lanes:
        low = [t if not t & size else t - size + lanes for t in range(lanes)]
        high = [t + size if not t & size else t + lanes for t in range(lanes)]
        index = llvm.VectorType(_I32, lanes)
        rows = list(rows)
        for i in range(lanes):
            if not i & size:
                pair = rows[i], rows[i + size]
                rows[i] = code.b.shuffle_vector(*pair, llvm.Constant(index, low))
                rows[i + size] = code.b.shuffle_vector(*pair, llvm.Constant(index, high))
        size *= 2
    return rows


def turn(
    code: Code, right: Value, b_column: Value, packed: Value, k: Value, columns: Value,
    width: Value | None = None,
) -> None:  # fmt: skip
    """The same for ``b`` contiguous along ``k``.

    Writes whole blocks of ``lanes`` values of ``k``; beyond ``columns`` are copies of the last.
    The next columns, which no cache finds out about by itself, are fetched meanwhile.
    """
    b, shape = code.b, code.shape
    base, target = code.pointer(right), code.pointer(packed)
    apart = code.word(shape.across * shape.lanes) if width is None else width

    def panel(first: Any, _carried: list[Any]) -> list[Any]:
        sources = code.clamped_rows(base, b_column, shape.lanes, columns, first)
        following = b.mul(b_column, code.word(shape.lanes))

        def body(index: Any, _carried: list[Any]) -> list[Any]:
            mask = code.below(b.sub(k, index), 0)
            places = [code.at(source, index) for source in sources]
            lines = [code.load_masked(place, mask) for place in places]
            for place in places:
                code.prefetch(code.at(place, following), written=False)
            for t, column in enumerate(transposed(code, lines)):
                row = b.add(index, code.word(t))
                code.store(column, code.at(target, b.add(b.mul(row, apart), first)))
            return []

        return code.loop(k, shape.lanes, [], body)

    code.loop(apart, shape.lanes, [], panel)
