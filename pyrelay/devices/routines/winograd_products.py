"""Winograd's products: a block of weights, transformed and multiplied with tiles at once.

In: words that describe a block; out: the part ``winograd_products_f32x8(words)``, made on
demand for vectors of so many elements. Of 36 elements of the transforms (``winograd``) six are
taken at a time, a row of them: so the transform of the weights lies in the first cache, where its
products read it. Written as a whole it goes to the second cache and comes back, which takes longer
than the products of a few tiles. Words:

    words[0]      address of a panel of turned weights: 9 taps of each channel, two vectors each
    words[1]      how many channels
    words[2]      address of room for six planes of a panel's line for each channel, and 16 elements
                  more
    words[3..4]   address of 36 planes of the image's transform, a line of tiles for each channel;
                  elements from plane to plane
    words[5..6]   address of 36 planes of sums, two vectors for each tile, to which the products are
                  added; elements from plane to plane
    words[7]      how many tiles
    words[8..11]  weights that are turned next and are fetched meanwhile: their address, how many
                  bytes of a line, how many lines (at most 36), bytes from one to the next
    words[12]     how many outputs count: where that is no more than a vector has elements, the
                  second one of a line is neither read nor written
"""

from __future__ import annotations

import functools
import re
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.llvm_writer import Function, Word, over
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul_tiles import Code, Shape
from pyrelay.devices.routines.winograd import Vectors

_FLOAT = llvm.FloatType()
_SIZE = 4
_WORDS = 13
_CACHE_LINE = 64


class _Products:
    """Writes the function ``winograd_products``."""

    def __init__(self, module: llvm.Module, name: str, lanes: int) -> None:
        self.lanes, self.wide = lanes, 2 * lanes
        elements = {across: _element(module, lanes, across) for across in (1, 2)}
        self.f = f = Function(module, name, 1)
        self.code = Code(f.b, Shape(_FLOAT, lanes, 1, 1))
        self.vectors = Vectors(self.code)
        (self.panel, self.channels, self.room, values, values_plane, sums, sums_plane, tiles,
         weights, length, lines, apart, outputs) = (
            f.load(f.parameters[0], 8 * place) for place in range(_WORDS)
        )  # fmt: skip
        self.plane = self.channels * self.wide + 16
        for row in range(6):
            self._transform(row)
            with f.counting(f.number(6)) as column:
                element = column + 6 * row
                line = self.code.pointer((weights + element * apart).raw)
                with f.when(element < lines), over(f, 0, length, _CACHE_LINE) as at:
                    byte = f.b.gep(line, [at.raw], source_etype=llvm.IntType(8))
                    self.code.prefetch(byte, written=False, near=False)
                operands = (
                    self.room + self.plane * column * _SIZE, self.channels,
                    values + values_plane * element * _SIZE, sums + sums_plane * element * _SIZE,
                    tiles,
                )  # fmt: skip
                with f.either(outputs <= lanes) as (half, whole):
                    for branch, across in ((half, 1), (whole, 2)):
                        with branch:
                            f.call(elements[across], *operands)
        f.ret(0)

    def _at(self, base: Word, index: Word) -> Any:
        return self.code.pointer((base + index * _SIZE).raw)

    def _transform(self, row: int) -> None:
        """A row of the transform of every channel's weights."""
        f, code = self.f, self.code
        with (
            over(f, 0, self.channels * self.wide, self.wide) as line,
            over(f, 0, f.number(self.wide), self.lanes) as lane,
        ):
            first = line * 9 + lane
            taps = [code.load(self._at(self.panel, first + k * self.wide)) for k in range(9)]
            columns = [self.vectors.weights(taps[column::3])[row] for column in range(3)]
            for column, value in enumerate(self.vectors.weights(columns)):
                code.store(value, self._at(self.room, self.plane * column + line + lane))


def _element(module: llvm.Module, lanes: int, across: int) -> Function:
    """The function (panel, channels, values, sums, tiles): an element's products."""
    f = Function(module, f"winograd_element_{lanes}x{across}", 5)
    f.native.linkage = "internal"
    panel, channels, values, sums, tiles = f.parameters
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
                values + first * _SIZE, tiles, sums + first * (2 * lanes * _SIZE),
            )  # fmt: skip
            f.b.branch(after)
        f.b.position_at_end(after)
        done.set(first + count)
    f.ret(0)
    return f


def _tile(code: Code, panel: Word, channels: Word, values: Word, line: Word, sums: Word) -> None:
    """``sums[t] += sum over c of values[c, t] * panel[c]`` for as many tiles as the shape has rows,
    ``line`` elements from channel to channel of the values."""
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
    for place, total in zip(places, found, strict=True):
        code.store(b.fadd(code.load(place), total), place)


@functools.cache
def _part(name: str, lanes: int) -> Part:
    return Part(name, types.void, 1, functools.partial(_Products, lanes=lanes))


def __getattr__(name: str) -> Part:
    match = re.fullmatch(r"winograd_products_f32x(4|8|16)", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, int(match[1]))
