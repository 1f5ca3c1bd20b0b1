"""Winograd's convolution with two to five taps: transforms of images, weights and outputs.

In: addresses of lines; out: parts for a kernel's text, made on demand for vectors of so many
``f32``. A tile of 6 by 6 elements of the image is all that 4 by 4 outputs of 3 by 3 taps see, 3 by
3 of 4 by 4 taps, or 2 by 2 of 5 by 5. Its transform, times that of the weights element by element,
added up over channels and transformed back, is those outputs: 36 products in place of 144, 144 or
100 (Winograd, *Arithmetic Complexity of Computations*, 1980; Lavin and Gray, *Fast Algorithms for
Convolutional Neural Networks*, 2015; the points are 0, 1, -1, 2, -2 for all of them, so that the
transform of an image is one). Rounding is relative to the largest terms of a tile: the error is
below 1e-5 of the largest sum of absolute products (``tests/devices/routines/test_winograd.py``).

    winograd_lines_f32x8(image, line, first, last, target, plane, columns)
        6 lines of the image, ``line`` elements apart, of which those before ``first`` and from
        ``last`` on are 0 and not read -> 6 planes of ``columns`` elements, ``plane`` elements
        apart: half of the transform. Writes 0 up to a vector beyond the ends
    winograd_image_f32x8(source, apart, places, target, plane, tiles)
        such planes, ``apart`` elements apart -> 36 planes of ``tiles`` elements, ``plane`` elements
        apart. The words of ``places`` say where in a source each tile begins, so that tiles of
        several lines and images fill vectors. Reads and writes up to one vector beyond the ends
    winograd_outputs3_f32x8(source, plane, target, line, rows, columns)
        36 lines of two vectors, ``plane`` elements apart, the sums of a tile -> its positions for
        3 by 3 taps, of which ``rows`` by ``columns`` are written: lines side by side, ``line``
        elements from row to row; ``winograd_outputs2``, ``4`` and ``5`` for others
    winograd_seen_f32x8(source, pitch, apart, tiles, target, plane, line, channels)
        tiles of an image whose channels lie side by side, two vectors of them: elements from row to
        row, from tile to tile, how many tiles -> 36 planes of a line for each tile; elements from
        plane to plane, from line to line. Of no more ``channels`` than a vector has, the second
        vector is not read
    winograd_given3_f32x8(...)
        the same of 3 by 3 taps for each tile: the transform of weights
    winograd_dot_f32x8(target, x, y, count)
        adds the dot product of so many elements to one
    winograd_finite_f32x8(source, count)
        1 if all of so many elements are finite, else 0
"""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.llvm_writer import WORD, Function, Word, over
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul_tiles import Code, Shape, transposed

SEEN = 6  # elements of a tile of the image along each axis
_FLOAT = llvm.FloatType()
_SIZE = 4


class Vectors:
    """Arithmetic on vectors."""

    def __init__(self, code: Code) -> None:
        self.code, self.b = code, code.b

    def times(self, factor: float, x: Any) -> Any:
        return self.b.fmul(self._all(factor), x)

    def plus(self, factor: float, x: Any, y: Any) -> Any:
        """factor * x + y"""
        return self.code.fma(self._all(factor), x, y)

    def _all(self, factor: float) -> Any:
        lanes = self.code.shape.lanes
        return llvm.Constant(llvm.VectorType(_FLOAT, lanes), [factor] * lanes)

    def image(self, d: Sequence[Any]) -> list[Any]:
        """Six elements of an image, transformed."""
        b = self.b
        even, odd = self.plus(-4, d[2], d[4]), self.plus(-4, d[1], d[3])
        near, far = b.fsub(d[4], d[2]), b.fsub(d[3], d[1])
        return [
            self.plus(4, d[0], self.plus(-5, d[2], d[4])), b.fadd(even, odd), b.fsub(even, odd),
            self.plus(2, far, near), self.plus(-2, far, near),
            self.plus(4, d[1], self.plus(-5, d[3], d[5])),
        ]

    def weights(self, g: Sequence[Any]) -> list[Any]:
        """Two to five taps, transformed, but for factors: `outputs` has those of the matrix."""
        b = self.b
        even, odd = functools.reduce(b.fadd, g[::2]), functools.reduce(b.fadd, g[1::2])
        far_even, far_odd = (
            functools.reduce(lambda far, tap: self.plus(4, far, tap), taps)
            for taps in (g[::2][::-1], g[1::2][::-1])
        )
        return [
            g[0], b.fadd(even, odd), b.fsub(even, odd), self.plus(2, far_odd, far_even),
            self.plus(-2, far_odd, far_even), g[-1],
        ]

    def outputs(self, m: Sequence[Any], count: int) -> list[Any]:
        """So many outputs of six sums, which are to be multiplied by 1/4, -1/6, -1/6, 1/24, 1/24, 1
        first, as the matrix of the weights is."""
        b = self.b
        near = [self.times(-1 / 6, b.fadd(m[1], m[2])), self.times(-1 / 6, b.fsub(m[1], m[2]))]
        far = [b.fadd(m[3], m[4]), b.fsub(m[3], m[4])]
        found = [self.plus(2.0**k / 24, far[k % 2], near[k % 2]) for k in range(count)]
        found[0] = self.plus(1 / 4, m[0], found[0])
        found[-1] = b.fadd(found[-1], m[5])
        return found


def _columns(code: Code, pointers: Sequence[Any], count: int) -> list[Any]:
    """The first ``count`` elements behind each of as many pointers as a vector has lanes: a vector
    for each column."""
    found: list[Any] = []
    lanes = code.shape.lanes
    for first in range(0, count, lanes):
        places = [code.at(pointer, code.word(first)) for pointer in pointers]
        if first + lanes <= count:
            rows = [code.load(place) for place in places]
        else:
            mask = code.below(code.word(count - first), 0)
            rows = [code.load_masked(place, mask) for place in places]
        found += transposed(code, rows)
    return found[:count]


class _Writer(ABC):
    """A function of words over vectors."""

    def __init__(self, module: llvm.Module, name: str, parameters: int, lanes: int) -> None:
        self.f = f = Function(module, name, parameters)
        self.lanes = lanes
        self.code = Code(f.b, Shape(_FLOAT, lanes, 1, 1))
        self.vectors = Vectors(self.code)
        found = self.write(*f.parameters)
        f.ret(0 if found is None else found)

    @abstractmethod
    def write(self, *parameters: Word) -> Word | None:
        """The body of the function; what it gives, if anything."""

    def at(self, base: Word, index: Word | int) -> Any:
        return self.code.pointer((base + index * _SIZE).raw)

    def local(self, count: int) -> Word:
        with self.f.b.goto_entry_block():
            array = self.f.b.alloca(_FLOAT, size=WORD(count))
            array.align = 64
        return self.f.address(array)


class _Lines(_Writer):
    def write(self, *parameters: Word) -> None:
        image, line, first, last, target, plane, columns = parameters
        f, code, lanes = self.f, self.code, self.lanes
        nothing = self.local(0)
        inside = [(first < row + 1) & (last > row) for row in range(6)]
        # A line outside is read as any other one, with no elements.
        pointers = [
            self.at(there.choose(image + line * row * _SIZE, nothing), 0)
            for row, there in enumerate(inside)
        ]

        def transformed(column: Word, rest: Word | None) -> None:
            elements = []
            for pointer, there in zip(pointers, inside, strict=True):
                place = code.at(pointer, column.raw)
                mask = None if rest is None else code.below(there.choose(rest, 0).raw, 0)
                elements.append(code.load_part(place, mask))
            for k, value in enumerate(self.vectors.image(elements)):
                code.store(value, self.at(target, plane * k + column))

        every = inside[0]
        for there in inside[1:]:
            every = every & there
        whole = every.choose(columns.unsigned_div(lanes) * lanes, 0)
        with over(f, 0, whole, lanes) as column:
            transformed(column, None)
        with over(f, whole, columns, lanes) as column:
            transformed(column, columns - column)


class _Image(_Writer):
    def write(self, *parameters: Word) -> None:
        source, apart, places, target, plane, tiles = parameters
        f, code, vectors = self.f, self.code, self.vectors
        with over(f, 0, tiles, self.lanes) as tile:
            firsts = [f.load(places + (tile + lane) * 8) for lane in range(self.lanes)]
            with over(f, 0, f.number(6), 1) as row:
                line = source + row * apart * _SIZE
                pointers = [self.at(line, first) for first in firsts]
                # Planes are long enough to read a whole vector of the last tile.
                values = vectors.image(_whole_columns(code, pointers, 6))
                for k, value in enumerate(values):
                    code.store(value, self.at(target, (row * 6 + k) * plane + tile))


def _whole_columns(code: Code, pointers: Sequence[Any], count: int) -> list[Any]:
    lanes = code.shape.lanes
    return _columns(code, pointers, -(-count // lanes) * lanes)[:count]


class _Outputs(_Writer):
    def __init__(
        self, module: llvm.Module, name: str, parameters: int, lanes: int, taps: int
    ) -> None:
        self.side = SEEN + 1 - taps
        super().__init__(module, name, parameters, lanes)

    def write(self, *parameters: Word) -> None:
        source, plane, target, line, rows, columns = parameters
        f, code, vectors, wide = self.f, self.code, self.vectors, 2 * self.lanes
        side = self.side
        with over(f, 0, f.number(wide), self.lanes) as lane:
            halves = [
                vectors.outputs(
                    [
                        code.load(self.at(source, plane * (row * 6 + column) + lane))
                        for column in range(6)
                    ],
                    side,
                )
                for row in range(6)
            ]
            by_column = [
                vectors.outputs([half[column] for half in halves], side) for column in range(side)
            ]
            stored = code.stored([column[row] for row in range(side) for column in by_column])
            with f.counting(rows) as row, f.counting(columns) as column:
                number = (row * side + column).raw
                value = f.b.load(f.b.gep(stored, [number], source_etype=code.shape.vector))
                code.store(value, self.at(target, row * line + column * wide + lane))


class _Turned(_Writer):
    """Tiles, or taps, whose channels lie side by side."""

    def __init__(
        self, module: llvm.Module, name: str, parameters: int, lanes: int, taps: int
    ) -> None:
        self.taps = taps
        super().__init__(module, name, parameters, lanes)

    def write(self, *parameters: Word) -> None:
        source, pitch, apart, tiles, target, plane, line, channels = parameters
        f, code, size = self.f, self.code, self.taps
        transform = self.vectors.image if size == SEEN else self.vectors.weights
        across = f.smaller(channels, 2 * self.lanes)
        with f.counting(tiles) as tile, over(f, 0, across, self.lanes) as lane:
            first, to = tile * apart + lane, tile * line + lane
            columns = [
                transform([
                    code.load(self.at(source, pitch * row + first + column * 2 * self.lanes))
                    for row in range(size)
                ])
                for column in range(size)
            ]  # fmt: skip
            for row in range(SEEN):
                values = transform([column[row] for column in columns])
                for k, value in enumerate(values):
                    code.store(value, self.at(target, plane * (row * SEEN + k) + to))


class _Dot(_Writer):
    def write(self, *parameters: Word) -> None:
        target, x, y, count = parameters
        code, builder = self.code, self.code.b
        left, right, place = (code.pointer(address.raw) for address in (x, y, target))

        def body(index: Any, sums: list[Any]) -> list[Any]:
            mask = code.below(builder.sub(count.raw, index), 0)
            a, b = (code.load_masked(code.at(base, index), mask) for base in (left, right))
            return [code.fma(a, b, sums[0])]

        zero = llvm.Constant(code.shape.vector, None)
        (total,) = code.loop(count.raw, self.lanes, [zero], body)
        builder.store(builder.fadd(code.load_scalar(place), code.sum(total)), place)


class _Finite(_Writer):
    def write(self, *parameters: Word) -> Word:
        source, count = parameters
        f, code, b = self.f, self.code, self.code.b
        base, zero = code.pointer(source.raw), llvm.Constant(code.shape.vector, None)
        whole = count.unsigned_div(4 * self.lanes) * (4 * self.lanes)

        def four(index: Any, sums: list[Any]) -> list[Any]:
            line = code.at(base, index)
            places = [code.at(line, code.word(self.lanes * k)) for k in range(4)]
            pairs = zip(places, sums, strict=True)
            return [code.fma(code.load(place), zero, total) for place, total in pairs]

        def one(index: Any, sums: list[Any]) -> list[Any]:
            mask = code.below(b.sub(count.raw, index), 0)
            return [code.fma(code.load_masked(code.at(base, index), mask), zero, sums[0])]

        first, *rest = code.loop(whole.raw, 4 * self.lanes, [zero] * 4, four)
        (first,) = code.loop(count.raw, self.lanes, [first], one, start=whole.raw)
        for total in rest:
            first = b.fadd(first, total)
        total = code.sum(first)
        return Word(f, b.zext(b.fcmp_ordered("==", total, total), WORD))


_WRITERS: dict[str, tuple[Callable[..., _Writer], int]] = {
    "lines": (_Lines, 7), "image": (_Image, 6), "finite": (_Finite, 2),
    "dot": (_Dot, 4), "seen": (functools.partial(_Turned, taps=SEEN), 8),
    **{f"given{taps}": (functools.partial(_Turned, taps=taps), 8) for taps in (2, 3, 4, 5)},
    **{f"outputs{taps}": (functools.partial(_Outputs, taps=taps), 6) for taps in (2, 3, 4, 5)},
}


@functools.cache
def _part(name: str, what: str, lanes: int) -> Part:
    writer, parameters = _WRITERS[what]
    write = functools.partial(writer, parameters=parameters, lanes=lanes)
    return Part(name, types.int64 if what == "finite" else types.void, parameters, write)


def __getattr__(name: str) -> Part:
    match = re.fullmatch(r"winograd_(\w+)_f32x(4|8|16)", name)
    if match is None or match[1] not in _WRITERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, match[1], int(match[2]))
