"""Products with an operand that is read through a table: what convolutions are made of.

In: words that describe a product; out: LLVM functions, and the parts that call them from a
kernel's text. Names are made on demand, for vectors of so many elements:

``offset_product_f32x8(words)``
    ``c[i, j] (+)= sum over k of a[i, k] * b[offset[k] + j]``: neither operand is copied.
    The offsets select lines that may overlap, such as those of an image's patches (Cho and Brand,
    *MEC: Memory-efficient Convolution*, 2017). Words, strides in elements:

        words[0..1]  address of a, elements from one row of it to the next
        words[2]     address of b
        words[3..4]  address of c, elements from one row of it to the next
        words[5]     address of a table of words, the offset for each k
        words[6..8]  rows, columns, how many k
        words[9]     0 to overwrite c, else to add to it
        words[10]    1 or 0: whether rows of a are fetched before they are read, which pays where
                     they are not in a cache: the CPU does not see so many lines coming
        words[11..12]  0; or the address of room for a panel, `vectors_across` of them for each k,
                     and that of a table of its offsets: the first tile of a panel's columns copies
                     what it reads.
                     Where lines are far apart, others find little of them in the first cache
        words[13..14]  0; or the address of lines that are read after these, and that of a table of
                     their offsets: tiles fetch of them, line by line, what lies at their own
                     columns. Of lines far apart, memory is slow to give a few columns each

    Reads whole vectors of b: up to two beyond its columns.

``line_sums_f32x8(words)``
    ``c[i, j] = sum over k of weight[k] * b[i, offset[k] + j]``: every row by itself. Words:

        words[0..1]  address of b, elements from one row of it to the next
        words[2..3]  address of c, elements from one row of it to the next
        words[4..5]  addresses of the weights and of the offsets, a word each
        words[6..8]  rows, columns, how many k; reads and ends as the product does

``window_sums_f32x8(words)``
    ``c[i, j] = sum over k and l of weight[k, l] * line[i * stride + k][j * stride + l]``, 3 by 3 of
    them, for a stride of 1 or 2. Words:

        words[0]      address of a table of words, the addresses of the lines
        words[1..3]   address of c, its rows and columns, which are adjacent
        words[4..5]   address of the weights, stride
        words[6]      address of what will be read next
        words[7..8]   the columns of c from the first (a multiple of the vectors' elements) up to
                      the second are summed of whole vectors, of which up to two lie beyond a line's
                      last; of the others
        words[9..10]  elements of a line before so many, and from so many after them on, are 0 and
                      are not read
        words[11]     how many elements behind c may be overwritten
        words[12..14] of several planes: the first and the one behind the last, and the address of a
                      table of words: how many bytes each line is apart from that of the next plane.
                      Addresses are those of plane 0, of which c and the weights follow each other

``copy_run_f32x8(target, source, low, high, count, stride)``
    ``target[j] = source[j * stride]`` for ``low <= j < high`` and 0 for the other ``j < count``;
    addresses. Writes whole vectors: what follows ``count`` is overwritten.

``copy_lines_f32x8(target, apart, source, line, lines, first, last, low, high, count, stride)``
    The same for ``lines`` lines, ``apart >= count`` elements of the target and ``line`` of the
    source apart; lines before ``first`` and from ``last`` on are 0.

``add_run_f32x8(target, source, weight, count)``
    ``target[j] += source[j] * weight[0]`` for ``j < count``; addresses.

Panels of columns stay in the first cache while bands of rows pass (Goto and van de Geijn,
*Anatomy of High-Performance Matrix Multiplication*, ACM TOMS 34, 2008). Columns left over that fill
no more than half a vector are dot products along k, and so are a few beside a whole vector: images
of 7 by 7 or 9 by 9 leave one.
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.compiler.llvm_writer import WORD, Function, Variable, Word, over
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.convolution_first import BAND, vectors_across
from pyrelay.devices.routines.line_sums import LineSums, every_second, in_order
from pyrelay.devices.routines.matmul_tiles import Code, Shape
from pyrelay.devices.routines.window_sums import WindowSums

_DOTS = 1024  # most terms of dot products: columns of so many are copied
_WORDS = 15
_CACHE_LINE = 64


class _Product:
    """Writes the function ``offset_product``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        self.element = LLVM_TYPES[SHORT_NAMES[dtype]]
        self.size = 4 if dtype == "f32" else 8
        self.lanes = lanes
        # Twenty-four accumulators of 32 registers, or twelve of 16.
        self.tall = 8 if lanes * self.size == 64 else 6
        self.across = vectors_across(lanes, self.size)
        self.f = f = Function(module, name, 1)
        (words,) = f.parameters
        (self.a, self.a_row, self.b, self.c, self.c_row, self.table, self.m, self.n, self.k,
         self.keep, fetches, self.room, self.places, self.following, self.apart) = (
            f.load(words, 8 * place) for place in range(_WORDS)
        )  # fmt: skip
        self.fetches = fetches.differs(0)
        self._panels()
        f.ret(0)

    def _at(self, base: Word, index: Word | int) -> Word:
        return base + index * self.size

    def _panels(self) -> None:
        f, lanes, wide = self.f, self.lanes, self.across * self.lanes
        few = lanes // 4
        short = self.k <= _DOTS
        with over(f, 0, self.m, BAND) as h0:
            end, column = f.smaller(self.m, h0 + BAND), f.variable(0)
            with f.while_(lambda: column.now < self.n):
                j = column.now
                columns = self.n - j
                # What is left of a vector or more is a panel less wide, but for a few columns
                # beside it, which are dot products.
                width = f.smaller(columns, wide)
                if self.across > 2:  # two and two vectors, not three and one
                    evenly = (columns > wide + few) | (columns > wide) & ~short
                    evenly = evenly & (columns <= wide + lanes)
                    width = evenly.choose(2 * lanes, width)
                column.set(j + width)
                left = width & lanes - 1
                whole = width - left
                split = whole.differs(0) & left.differs(0) & (left <= few) & short
                dots = whole.equals(0) & (left <= lanes // 2) & short
                with f.when(~dots):
                    self._columns(h0, end, j, split.choose(whole, width))
                with f.when(dots | split):
                    start = split.choose(j + whole, j)
                    self._dots(h0, end, start, left)

    def _columns(self, h0: Word, end: Word, j: Word, width: Word) -> None:
        """Rows ``h0`` to ``end`` of a panel's columns."""
        f, wide = self.f, self.across * self.lanes
        row, first = f.variable(h0), self._at(self.b, j)
        source, table = f.variable(first), f.variable(self.table)
        # Every tile fetches as many of the lines that are read next.
        bands = (end - h0 + (self.tall - 1)).unsigned_div(self.tall)
        share = (self.k + (bands - 1)).unsigned_div(bands)
        fetched = f.variable(self.following.equals(0).choose(self.k, 0))
        with f.when(self.room.differs(0) & (end - h0 > self.tall)):
            for across in range(2, self.across + 1):
                with f.when(width.equals(across * self.lanes)):
                    self._fetch(j, fetched, share)
                    self.line, self.offsets = first, self.table
                    # A constant here, and rows would be computed in every round of the tile.
                    rows = f.smaller(end - h0, self.tall)
                    self._tile(self.tall, across, h0, j, rows, copies=True)
                    source.set(self.room)
                    table.set(self.places)
                    row.set(h0 + self.tall)
        with f.while_(lambda: row.now < end):
            i, left = row.now, end - row.now
            self._fetch(j, fetched, share)
            # Two lower tiles for eight rows, not a high one and a piece of another.
            two = (left > self.tall) & (left <= 2 * (self.tall - 2))
            count = two.choose(self.tall - 2, f.smaller(left, self.tall))
            self.line, self.offsets = source.now, table.now
            self._tiles(i, j, count, width, wide)
            row.set(i + count)

    def _fetch(self, j: Word, fetched: Variable, count: Word) -> None:
        """Fetches, at column ``j``, the next ``count`` of the lines that are read next."""
        f, code = self.f, Code(self.f.b, Shape(self.element, self.lanes, 1, 1))
        end = f.smaller(fetched.now + count, self.k)
        line = code.pointer(self._at(self.following, j).raw)
        with over(f, fetched.now, end, 1) as k:
            place = code.at(line, f.load(self.apart + k * 8).raw)
            code.prefetch(place, written=False, near=False)
        fetched.set(end)

    def _tiles(self, i: Word, j: Word, rows: Word, columns: Word, wide: int) -> None:
        """The tile at row ``i`` and column ``j`` that suits what is left."""
        f = self.f
        fetches = self.fetches & j.equals(0)
        with f.either(columns >= wide) as (whole, rest):
            with whole, f.either(rows > self.tall - 2) as (many, few):
                with many, f.either(fetches) as (fetching, alone):
                    with fetching:
                        self._tile(self.tall, self.across, i, j, rows, fetches=True)
                    with alone:
                        self._tile(self.tall, self.across, i, j, rows)
                with few:
                    self._tile(self.tall - 2, self.across, i, j, rows)
            with rest:
                self._narrow(self.across, i, j, rows, columns)

    def _narrow(self, across: int, i: Word, j: Word, rows: Word, columns: Word) -> None:
        """A tile of as few vectors as hold the columns, at most ``across``."""
        if across == 1:
            self._tile(self.tall, 1, i, j, rows, columns)
            return
        with self.f.either(columns > (across - 1) * self.lanes) as (broad, narrow):
            with broad:
                self._tile(self.tall, across, i, j, rows, columns)
            with narrow:
                self._narrow(across - 1, i, j, rows, columns)

    def _tile(
        self, tall: int, across: int, i: Word, j: Word, rows: Word, columns: Word | None = None,
        fetches: bool = False, copies: bool = False,
    ) -> None:  # fmt: skip
        """The tile at row ``i`` and column ``j``; ``columns``: how many, unless all of them;
        ``fetches``: whether the next rows are fetched; ``copies``: whether the lines are copied."""
        f, b, lanes = self.f, self.f.b, self.lanes
        code = Code(b, Shape(self.element, lanes, tall, across))
        width = f.number(across * lanes) if columns is None else columns
        masks = [code.below(width.raw, v * lanes) for v in range(across)]
        a = code.pointer(self._at(self.a, i * self.a_row).raw)
        row_pointers = code.clamped_rows(a, self.a_row.raw, tall, rows.raw)
        line = code.pointer(self.line.raw)
        table = b.inttoptr(self.offsets.raw, WORD.as_pointer())
        room = code.pointer(self.room.raw)
        following = (self.a_row * tall).raw
        per_line = _CACHE_LINE // self.size

        def body(k: Any, sums: list[Any]) -> list[Any]:
            source = code.at(line, b.load(b.gep(table, [k], source_etype=WORD), typ=WORD))
            vectors = [code.load(code.at(source, code.word(v * lanes))) for v in range(across)]
            if copies:
                to = code.at(room, b.mul(k, code.word(self.across * lanes)))
                for v, vector in enumerate(vectors):
                    code.store(vector, code.at(to, code.word(v * lanes)))
            out = []
            for row, pointer in enumerate(row_pointers):
                factor = code.splat(code.load_scalar(code.at(pointer, k)))
                for v, vector in enumerate(vectors):
                    out.append(code.fma(factor, vector, sums[row * across + v]))
            return out

        zero = llvm.Constant(code.shape.vector, None)
        first = code.pointer(self._at(self.c, i * self.c_row + j).raw)
        if columns is None:  # what is written is wanted after the loop
            for row in range(tall):
                to = code.at(first, (self.c_row * row).raw)
                for v in range(across):
                    code.prefetch(code.at(to, code.word(v * lanes)))
        sums = [zero] * (tall * across)
        if fetches:

            def piece(start: Any, sums: list[Any]) -> list[Any]:
                """A cache line of each row, of those that the next tile reads too."""
                for pointer in row_pointers:
                    place = code.at(pointer, b.add(following, start))
                    code.prefetch(place, written=False)
                count = code.minimum(b.sub(self.k.raw, start), code.word(per_line))
                return code.pairs(count, sums, lambda k, sums: body(b.add(start, k), sums))

            sums = code.loop(self.k.raw, per_line, sums, piece)
        else:
            sums = code.pairs(self.k.raw, sums, body)
        kept = self.keep.differs(0).raw
        code.finish(sums, first, self.c_row.raw, rows.raw, width.raw, masks, kept)

    def _dots(self, start: Word, end: Word, j: Word, columns: Word) -> None:
        """Rows ``start`` to ``end`` of the columns from ``j`` on, less than a vector of them."""
        f, b, lanes = self.f, self.f.b, self.lanes
        code = Code(b, Shape(self.element, lanes, self.tall, 1))
        line = _DOTS + lanes
        with b.goto_entry_block():
            turned = b.alloca(self.element, size=code.word(lanes // 2 * line))
            turned.align = 64
        whole = self.k & -lanes
        right = code.pointer(self._at(self.b, j).raw)
        table = b.inttoptr(self.table.raw, WORD.as_pointer())
        with f.counting(columns) as column:
            own = code.at(turned, (column * line).raw)
            code.store(llvm.Constant(code.shape.vector, None), code.at(own, whole.raw))
            with f.counting(self.k) as k:
                offset = b.load(b.gep(table, [k.raw], source_etype=WORD), typ=WORD)
                value = code.load_scalar(code.at(code.at(right, offset), column.raw))
                b.store(value, code.at(own, k.raw))
        with over(f, start, end, self.tall) as i, f.counting(columns) as column:
            self._dot_tile(code, i, end - i, j + column, code.at(turned, (column * line).raw))

    def _dot_tile(self, code: Code, i: Word, rows: Word, j: Word, column: Any) -> None:
        """Elements of one column, at most as many as a tile is tall."""
        b, lanes = self.f.b, self.lanes
        valid = self.f.smaller(rows, self.tall).raw
        a = code.pointer(self._at(self.a, i * self.a_row).raw)
        lines = code.clamped_rows(a, self.a_row.raw, self.tall, valid)

        def body(k: Any, sums: list[Any]) -> list[Any]:
            vector = code.load(code.at(column, k))
            pairs = zip(lines, sums, strict=True)
            return [code.fma(code.load(code.at(line, k)), vector, total) for line, total in pairs]

        zero, whole = llvm.Constant(code.shape.vector, None), self.k & -lanes
        sums = code.loop(whole.raw, lanes, [zero] * self.tall, body)
        mask = code.below((self.k - whole).raw, 0)
        vector = code.load(code.at(column, whole.raw))
        totals = [
            code.sum(code.fma(code.load_masked(code.at(line, whole.raw), mask), vector, total))
            for line, total in zip(lines, sums, strict=True)
        ]
        c = code.pointer(self._at(self.c, i * self.c_row + j).raw)
        places = code.clamped_rows(c, self.c_row.raw, self.tall, valid)
        kept, nothing = self.keep.differs(0).raw, llvm.Constant(self.element, 0.0)
        old = [b.select(kept, code.load_scalar(place), nothing) for place in places]
        for place, before, total in zip(places, old, totals, strict=True):
            b.store(b.fadd(before, total), place)


class _Copy(ABC):
    """Writes ``copy_run`` and ``copy_lines``: how a line's vectors are read, by its stride."""

    def __init__(
        self, module: llvm.Module, name: str, dtype: str, lanes: int, parameters: int
    ) -> None:
        self.element, self.lanes = LLVM_TYPES[SHORT_NAMES[dtype]], lanes
        self.size = 4 if dtype == "f32" else 8
        self.f = Function(module, name, parameters)
        self.code = Code(self.f.b, Shape(self.element, lanes, 1, 1))
        self.low = self.high = self.count = self.stride = self.f.number(0)

    def _by_stride(self) -> None:
        f = self.f
        with f.either(self.stride.equals(1)) as (adjacent, apart):
            with adjacent:
                self._vectors(1)
            with apart, f.either(self.stride.equals(2)) as (halved, rest):
                with halved:
                    self._vectors(2)
                with rest, f.either(self.stride.equals(4)) as (quartered, far):
                    with quartered:
                        self._vectors(4)
                    with far:
                        self._far()
        f.ret(0)

    def _vectors(self, stride: int) -> None:
        """A vector of the target at a time: all of it, or what lies within low ... high."""
        f, lanes = self.f, self.lanes
        # What lies behind the last element is not read, nor what a stride leaves out.
        start = self.low + (lanes - 1) & -lanes
        stop = self.high - (1 if stride > 1 else 0) & -lanes
        stop = (stop < start).choose(start, stop)
        # Backwards: what a line's last vector writes beyond it, the first one of the next rewrites.
        with over(f, 0, self.count - stop, lanes) as done:
            self._part((self.count - 1 & -lanes) - done, stride)
        with f.when(start < stop):
            self._whole(start, stop, [(self.code.word(v * lanes), None) for v in range(stride)])
        with over(f, 0, start, lanes) as done:
            self._part(start - lanes - done, stride)

    def _part(self, j: Word, stride: int) -> None:
        """The vector at ``j`` of every line, of which some elements are 0."""
        b, code, lanes = self.f.b, self.code, self.lanes
        behind, at = self.high * stride - (stride - 1), j * stride
        masks = []
        for v in range(stride):
            below = code.below((behind - at).raw, v * lanes)
            before = code.below((self.low * stride - at).raw, v * lanes)
            masks.append((code.word(v * lanes), b.and_(below, b.not_(before))))
        self._lines(j, masks)

    @abstractmethod
    def _whole(self, start: Word, stop: Word, parts: list[tuple[Any, Any]]) -> None:
        """The vectors from ``start`` to ``stop`` of every line."""

    @abstractmethod
    def _lines(self, j: Word, parts: list[tuple[Any, Any]]) -> None:
        """The vector at ``j`` of every line, from as many of the image as its stride is long."""

    def _vector(self, source: Any, parts: list[tuple[Any, Any]]) -> Any:
        code = self.code
        found = []
        for step, mask in parts:
            place = code.at(source, step)
            found.append(code.load(place) if mask is None else code.load_masked(place, mask))
        count = len(found)
        # Of 16 bytes a whole number of strides is taken, or each step is put in order.
        once = count * self.size <= 16
        while len(found) > 1:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [every_second(code, *pair) for pair in pairs]
            if not once:
                found = [in_order(code, each, 2) for each in found]
        return in_order(code, found[0], count) if once and count > 1 else found[0]

    @abstractmethod
    def _far(self) -> None:
        """Other strides: an element at a time."""

    def _elements(self, to: Any, source: Any) -> None:
        f, code = self.f, self.code
        nothing = llvm.Constant(self.element, 0.0)
        for start, stop in ((f.number(0), self.low), (self.high, self.count)):
            with over(f, start, stop, 1) as j:
                f.b.store(nothing, code.at(to, j.raw))
        with over(f, self.low, self.high, 1) as j:
            value = code.load_scalar(code.at(source, (j * self.stride).raw))
            f.b.store(value, code.at(to, j.raw))


class _CopyRun(_Copy):
    """Writes the function ``copy_run``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        super().__init__(module, name, dtype, lanes, 6)
        target, source, self.low, self.high, self.count, self.stride = self.f.parameters
        self.to, self.source = self.code.pointer(target.raw), self.code.pointer(source.raw)
        self._by_stride()

    def _whole(self, start: Word, stop: Word, parts: list[tuple[Any, Any]]) -> None:
        with over(self.f, start, stop, self.lanes) as j:
            self._lines(j, parts)

    def _lines(self, j: Word, parts: list[tuple[Any, Any]]) -> None:
        code = self.code
        source = code.at(self.source, (j * len(parts)).raw)
        code.store(self._vector(source, parts), code.at(self.to, j.raw))

    def _far(self) -> None:
        self._elements(self.to, self.source)


class _CopyLines(_Copy):
    """Writes the function ``copy_lines``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        super().__init__(module, name, dtype, lanes, 11)
        f, code = self.f, self.code
        (target, self.apart, source, self.line, lines, self.first, self.last, self.low, self.high,
         self.count, self.stride) = f.parameters  # fmt: skip
        self.to, self.source = code.pointer(target.raw), code.pointer(source.raw)
        zero = llvm.Constant(code.shape.vector, None)
        for start, stop in ((f.number(0), self.first), (self.last, lines)):
            with over(f, start * self.apart, stop * self.apart, lanes) as j:
                code.store(zero, code.at(self.to, j.raw))
        self._by_stride()

    def _whole(self, start: Word, stop: Word, parts: list[tuple[Any, Any]]) -> None:
        f, code = self.f, self.code
        with over(f, self.first, self.last, 1) as line:
            source = code.at(self.source, (line * self.line).raw)
            to = code.at(self.to, (line * self.apart).raw)
            with over(f, start, stop, self.lanes) as j:
                value = self._vector(code.at(source, (j * len(parts)).raw), parts)
                code.store(value, code.at(to, j.raw))

    def _lines(self, j: Word, parts: list[tuple[Any, Any]]) -> None:
        f, code = self.f, self.code
        with over(f, self.first, self.last, 1) as line:
            source = code.at(self.source, (line * self.line + j * len(parts)).raw)
            to = code.at(self.to, (line * self.apart + j).raw)
            code.store(self._vector(source, parts), to)

    def _far(self) -> None:
        f, code = self.f, self.code
        with over(f, self.first, self.last, 1) as line:
            to = code.at(self.to, (line * self.apart).raw)
            self._elements(to, code.at(self.source, (line * self.line).raw))


class _AddRun:
    """Writes the function ``add_run``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        f = Function(module, name, 4)
        target, source, weight, count = f.parameters
        code = Code(f.b, Shape(LLVM_TYPES[SHORT_NAMES[dtype]], lanes, 1, 1))
        to, base = code.pointer(target.raw), code.pointer(source.raw)
        factor = code.splat(code.load_scalar(code.pointer(weight.raw)))

        def part(index: Any, mask: Any) -> None:
            term = f.b.fmul(code.load_part(code.at(base, index), mask), factor)
            place = code.at(to, index)
            code.store_part(f.b.fadd(code.load_part(place, mask), term), place, mask)

        whole = count - (count & lanes - 1)
        with over(f, 0, whole, lanes) as index:
            part(index.raw, None)
        with f.when(whole < count):
            part(whole.raw, code.below((count - whole).raw, 0))
        f.ret(0)


_WRITERS: dict[str, tuple[Callable[..., Any], int]] = {
    "offset_product": (_Product, 1), "line_sums": (LineSums, 1), "copy_run": (_CopyRun, 6),
    "copy_lines": (_CopyLines, 11), "add_run": (_AddRun, 4), "window_sums": (WindowSums, 1),
}


@functools.cache
def _part(name: str, writer: str, dtype: str, lanes: int) -> Part:
    write, parameters = _WRITERS[writer]
    return Part(
        name, types.void, parameters, functools.partial(write, dtype=dtype, lanes=lanes),
        steps=writer == "offset_product",  # eight rows and a table: registers are few
    )


def __getattr__(name: str) -> Part:
    match = re.fullmatch(rf"({'|'.join(_WRITERS)})_(f32|f64)x(2|4|8|16)", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, match[1], match[2], int(match[3]))
