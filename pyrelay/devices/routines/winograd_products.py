"""Winograd's products: a block of weights, transformed and multiplied with tiles at once.

In: words that describe a block; out: parts ``winograd_products3_f32x8(words)``, made on demand for
vectors of so many elements and three to five taps along each axis; and
``winograd_phases3_f32x8(words)``, with two to five for each phase of a stride, of which the last
ones may have one less: every s-th row and column of an image, and of the taps, is a channel, and a
convolution with a stride of s is one without of s * s times the channels. Of 36 elements of the
transforms (``winograd``) six are taken at a time, a row of them: so the transform of the weights
lies in the first cache, where its products read it. Written as a whole it goes to the second cache
and comes back, which takes longer than the products of a few tiles. Words:

    words[0]      address of a panel of turned weights: the taps of each channel, two vectors each
    words[1]      how many channels
    words[2]      address of room for six planes of a panel's line for each channel, or each of its
                  phases, and 16 elements more
    words[3..4]   address of 36 planes of the image's transform, a line of tiles for each channel;
                  elements from plane to plane
    words[5..6]   address of 36 planes of sums, two vectors for each tile; elements from plane to
                  plane
    words[7]      how many tiles
    words[8..11]  weights that are turned next and are fetched meanwhile: their address, how many
                  bytes of a line, how many lines (at most 36), bytes from one to the next
    words[12]     how many outputs count: where that is no more than a vector has elements, the
                  second one of a line is neither read nor written
    words[13]     0 to overwrite the sums, else to add to them
    words[14]     elements from one tap of a channel to the next, but for phases: backwards where
                  the panel's address is that of the last tap
    words[15..17] of phases: the stride, and how many rows and columns of taps a channel has

``winograd_pairs_f32x8(panel, panel_plane, count, values, values_plane, line, sums, sums_plane,
rows, outputs, keep)`` multiplies what is transformed: of each of 36 elements ``count`` lines of
two vectors, of which so many outputs count, and as many of ``rows`` values, ``line`` elements
apart; ``sums[r] (+)= sum over k of values[k, r] * panel[k]``.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.llvm_writer import WORD, Flag, Function, Word, over
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul_tiles import Code, Shape
from pyrelay.devices.routines.winograd import Vectors

_FLOAT = llvm.FloatType()
_SIZE = 4
_WORDS = 18
_CACHE_LINE = 64


class _Products:
    """Writes the function ``winograd_products``."""

    def __init__(
        self, module: llvm.Module, name: str, lanes: int, taps: int, phased: bool
    ) -> None:
        self.lanes, self.wide, self.taps = lanes, 2 * lanes, taps
        elements = {across: _element(module, lanes, across) for across in (1, 2)}
        self.f = f = Function(module, name, 1)
        self.code = Code(f.b, Shape(_FLOAT, lanes, 1, 1))
        self.vectors = Vectors(self.code)
        (self.panel, self.channels, self.room, values, values_plane, sums, sums_plane, tiles,
         weights, length, lines, apart, outputs, keep, self.step, self.stride, self.rows,
         self.columns) = (
            f.load(f.parameters[0], 8 * place) for place in range(_WORDS)
        )  # fmt: skip
        seen = self.channels * self.stride * self.stride if phased else self.channels
        self.plane = seen * self.wide + 16
        self.nothing = self._nothing() if phased else f.number(0)
        for row in range(6):
            if phased:
                self._phases(row)
            else:
                self._plain(row)
            with f.counting(f.number(6)) as column:
                element = column + 6 * row
                line = self.code.pointer((weights + element * apart).raw)
                with f.when(element < lines), over(f, 0, length, _CACHE_LINE) as at:
                    byte = f.b.gep(line, [at.raw], source_etype=llvm.IntType(8))
                    self.code.prefetch(byte, written=False, near=False)
                operands = (
                    self.room + self.plane * column * _SIZE, seen,
                    values + values_plane * element * _SIZE, sums + sums_plane * element * _SIZE,
                    tiles, tiles, keep,
                )  # fmt: skip
                _multiply(f, elements, outputs <= lanes, operands)
        f.ret(0)

    def _at(self, base: Word, index: Word) -> Any:
        return self.code.pointer((base + index * _SIZE).raw)

    def _plain(self, row: int) -> None:
        """A row of the transform of every channel's weights."""
        f, all_taps = self.f, self.taps * self.taps
        with over(f, 0, self.channels * self.wide, self.wide) as line:
            first = self.panel + line * all_taps * _SIZE
            taps = [first + self.step * (k * _SIZE) for k in range(all_taps)]
            self._transform(row, taps, line)

    def _phases(self, row: int) -> None:
        """The same of every channel's phases; a tap that a phase lacks is read from a line of 0."""
        f, stride, line_size = self.f, self.stride, self.wide * _SIZE
        phases = stride * stride
        with f.counting(stride) as across, f.counting(stride) as down:
            first, step = [], []
            for k in range(self.taps * self.taps):
                i, j = across + stride * (k // self.taps), down + stride * (k % self.taps)
                there = (i < self.rows) & (j < self.columns)
                tap = self.panel + (i * self.columns + j) * line_size
                first.append(there.choose(tap, self.nothing))
                step.append(there.choose(self.rows * self.columns * line_size, 0))
            with f.counting(self.channels) as channel:
                line = (channel * phases + across * stride + down) * self.wide
                pairs = zip(first, step, strict=True)
                self._transform(row, [start + channel * apart for start, apart in pairs], line)

    def _nothing(self) -> Word:
        """The address of a panel's line of 0."""
        f, code = self.f, self.code
        with f.b.goto_entry_block():
            line = f.b.alloca(_FLOAT, size=WORD(self.wide))
            line.align = _CACHE_LINE
        for start in range(0, self.wide, self.lanes):
            code.store(llvm.Constant(code.shape.vector, None), code.at(line, code.word(start)))
        return f.address(line)

    def _transform(self, row: int, taps: list[Word], line: Word) -> None:
        """A row of the transform of a line of weights, at these addresses."""
        f, code, count = self.f, self.code, self.taps
        with over(f, 0, f.number(self.wide), self.lanes) as lane:
            lines = [code.load(self._at(tap, lane)) for tap in taps]
            columns = [self.vectors.weights(lines[k::count])[row] for k in range(count)]
            for column, value in enumerate(self.vectors.weights(columns)):
                code.store(value, self._at(self.room, self.plane * column + line + lane))


class _Pairs:
    """Writes the function ``winograd_pairs``."""

    def __init__(self, module: llvm.Module, name: str, lanes: int) -> None:
        elements = {across: _element(module, lanes, across) for across in (1, 2)}
        f = Function(module, name, 11)
        (panel, panel_plane, count, values, values_plane, line, sums, sums_plane, rows, outputs,
         keep) = f.parameters  # fmt: skip
        with f.counting(f.number(36)) as element:
            operands = (
                panel + panel_plane * element * _SIZE, count,
                values + values_plane * element * _SIZE, sums + sums_plane * element * _SIZE,
                rows, line, keep,
            )  # fmt: skip
            _multiply(f, elements, outputs <= lanes, operands)
        f.ret(0)


def _multiply(
    f: Function, elements: dict[int, Function], narrow: Flag, operands: tuple[Word, ...]
) -> None:
    """Calls the products of an element for one vector of outputs, or for two."""
    with f.either(narrow) as (half, whole):
        for branch, across in ((half, 1), (whole, 2)):
            with branch:
                f.call(elements[across], *operands)


def _element(module: llvm.Module, lanes: int, across: int) -> Function:
    """The function (panel, channels, values, sums, tiles, line, keep): an element's products."""
    f = Function(module, f"winograd_element_{lanes}x{across}", 7)
    f.native.linkage = "internal"
    panel, channels, values, sums, tiles, line, keep = f.parameters
    # Sixteen accumulators of 32 registers, or twelve of 16; groups of tiles are of about one size.
    tall = 8 if lanes == 16 else 6
    groups = (tiles + (tall - 1)).unsigned_div(tall)
    height = (tiles + (groups - 1)).unsigned_div(groups)
    done = f.variable(0)
    with f.while_(lambda: done.now < tiles):
        first = done.now
        count = f.smaller(tiles - first, height)
        after = f.b.append_basic_block("after")
        switch = f.b.switch(count.raw, after)
        for rows in range(1, tall + 1):
            block = f.b.append_basic_block("tile")
            switch.add_case(rows, block)
            f.b.position_at_end(block)
            _tile(
                Code(f.b, Shape(_FLOAT, lanes, rows, across)), panel, channels,
                values + first * _SIZE, line, sums + first * (2 * lanes * _SIZE), keep,
            )  # fmt: skip
            f.b.branch(after)
        f.b.position_at_end(after)
        done.set(first + count)
    f.ret(0)
    return f


def _tile(
    code: Code, panel: Word, channels: Word, values: Word, line: Word, sums: Word, keep: Word
) -> None:
    """``sums[t] (+)= sum over c of values[c, t] * panel[c]`` for as many tiles as the shape has
    rows, ``line`` elements from channel to channel of the values."""
    b, shape = code.b, code.shape
    wide = 2 * shape.lanes
    steps = [code.word(v * shape.lanes) for v in range(shape.across)]
    weights, image = code.pointer(panel.raw), code.pointer(values.raw)

    def body(channel: Any, carried: list[Any]) -> list[Any]:
        place = code.at(weights, b.mul(channel, code.word(wide)))
        vectors = [code.load(code.at(place, step)) for step in steps]
        tile = code.at(image, b.mul(channel, line.raw))
        out = []
        for row in range(shape.rows):
            factor = code.splat(code.load_scalar(code.at(tile, code.word(row))))
            for v, vector in enumerate(vectors):
                out.append(code.fma(factor, vector, carried[row * shape.across + v]))
        return out

    nothing = [llvm.Constant(shape.vector, None)] * (shape.rows * shape.across)
    found = code.loop(channels.raw, 1, nothing, body, unrolled=False)
    target = code.pointer(sums.raw)
    places = [
        code.at(code.at(target, code.word(row * wide)), step)
        for row in range(shape.rows) for step in steps
    ]
    with keep.f.either(keep.equals(0)) as (first, later):
        with first:
            for place, total in zip(places, found, strict=True):
                code.store(total, place)
        with later:
            for place, total in zip(places, found, strict=True):
                code.store(b.fadd(code.load(place), total), place)


@functools.cache
def _part(name: str, lanes: int, taps: int, phased: bool) -> Part:
    write = functools.partial(_Products, lanes=lanes, taps=taps, phased=phased)
    return Part(name, types.void, 1, write)


@functools.cache
def _pairs(name: str, lanes: int) -> Part:
    return Part(name, types.void, 11, functools.partial(_Pairs, lanes=lanes))


def __getattr__(name: str) -> Part:
    match = re.fullmatch(r"winograd_(products(?=[3-5])|phases)([2-5])_f32x(4|8|16)", name)
    if match is not None:
        return _part(name, int(match[3]), int(match[2]), match[1] == "phases")
    match = re.fullmatch(r"winograd_pairs_f32x(4|8|16)", name)
    if match is not None:
        return _pairs(name, int(match[1]))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
