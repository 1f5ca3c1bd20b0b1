"""Products whose vectors lie along the outputs: what convolutions with a stride are made of.

In: words that describe a product; out: LLVM functions, and the parts that call them from a
kernel's text. Names are made on demand, for vectors of so many elements; a panel is two of these
wide. A position's values are read where they lie in the image, an element at a time, and weights a
vector at a time, so an image is not copied, however far apart its positions are (Georganas et al.,
*Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures*, SC 2018).

``turned_product_f32x8(words)``
    ``sums[i, o] += sum over k of image[i, offset[k]] * panel[k, o]`` for each position i of a list,
    ``k = first, first + step, ...``. Words:

        words[0..1]  address of the panel, address of a table of offsets in elements, a word each
        words[2..4]  the first k, the step, how many k
        words[5..6]  address of a list, two words for each position: the addresses of its first
                     value and of its sums; how many positions
        words[7]     elements behind these first values to which offsets are relative
        words[8..11] weights that are turned next, of which each tile fetches a piece: their address
                     or 0, bytes of a line, how many lines, bytes from one to the next
        words[12]    how many k are added up before that is added to the sums: the fewer, the
                     smaller the error
        words[13]    how many outputs count: where that is no more than a vector has elements, the
                     second one of each line of the panel is not read, nor is that of the sums
        words[14]    0 to overwrite the sums, else to add to them

``turned_weights_f32x8(panel, weights, line, rows, count)``
    ``panel[k, o] = weights[o, k]`` for ``count`` values of k; lines are ``line`` elements apart.
    Beyond ``rows``, no more than a panel is wide, are copies of the last. Whole vectors of k are
    written.

``turned_sums_f32x8(sums, y, line, rows, count)``
    ``y[o, i] = sums[i, o]`` for ``rows`` outputs and ``count`` positions; lines of y are ``line``
    elements apart, and nothing beyond them is written. Sums are read up to a vector of positions
    beyond the last.
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
from pyrelay.devices.compiler.llvm_writer import WORD, Function, Word, over
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.matmul_tiles import Code, Shape, transposed

_ACROSS = 2  # vectors of a panel
_WORDS = 15
_CACHE_LINE = 64


class _Writer(ABC):
    """A function of words over vectors."""

    def __init__(
        self, module: llvm.Module, name: str, dtype: str, lanes: int, parameters: int
    ) -> None:
        self.element, self.lanes = LLVM_TYPES[SHORT_NAMES[dtype]], lanes
        self.size = 4 if dtype == "f32" else 8
        self.wide = _ACROSS * lanes
        self.f = f = Function(module, name, parameters)
        self.code = Code(f.b, Shape(self.element, lanes, lanes, 1))
        self.write(*f.parameters)
        f.ret(0)

    @abstractmethod
    def write(self, *parameters: Word) -> None:
        """The body of the function."""


class _Product(_Writer):
    def write(self, *parameters: Word) -> None:
        f = self.f
        (self.panel, self.table, self.first, self.step, self.k, self.list, count, self.behind,
         weights, length, lines, apart, self.together, outputs, self.keep) = (
            f.load(parameters[0], 8 * place) for place in range(_WORDS)
        )  # fmt: skip
        # Sixteen accumulators of 32 registers, or twelve of 16.
        tall = 8 if self.lanes * self.size == 64 else 6
        # Every tile fetches as much of each line of the next weights.
        tiles = count.unsigned_div(tall) + 1
        share = (length + (tiles - 1)).unsigned_div(tiles) + (_CACHE_LINE - 1) & -_CACHE_LINE
        narrow = outputs <= self.lanes
        row, fetched = f.variable(0), f.variable(weights.equals(0).choose(length, 0))
        with f.while_(lambda: row.now < count):
            with f.when(fetched.now < length):
                following = f.smaller(fetched.now + share, length)
                piece = over(f, fetched.now, following, _CACHE_LINE)
                with f.counting(lines) as number, piece as at:
                    line = self.code.pointer((weights + number * apart + at).raw)
                    self.code.prefetch(line, written=False, near=False)
                fetched.set(following)
            i, left = row.now, count - row.now
            # Two lower tiles for eight positions, not a high one and a piece of another.
            two = (left > tall) & (left <= 2 * (tall - 2))
            rows = (two & ~narrow).choose(tall - 2, f.smaller(left, tall))
            with f.either(narrow) as (half, panel):
                with half:
                    self._tile(tall, 1, i, rows)
                with panel, f.either(rows > tall - 2) as (many, some):
                    with many:
                        self._tile(tall, _ACROSS, i, rows)
                    with some, f.either(rows > tall - 4) as (several, few):
                        with several:
                            self._tile(tall - 2, _ACROSS, i, rows)
                        with few:
                            self._tile(tall - 4, _ACROSS, i, rows)
            row.set(i + rows)

    def _tile(self, tall: int, across: int, i: Word, rows: Word) -> None:
        """The sums of ``rows`` positions from ``i`` on; in place of those beyond them, the last
        one's are computed once more."""
        f, b, lanes = self.f, self.f.b, self.lanes
        code = Code(b, Shape(self.element, lanes, tall, across))
        entries = [self.list + f.smaller(i + r, i + rows - 1) * 16 for r in range(tall)]
        images = [code.pointer((f.load(e) + self.behind * self.size).raw) for e in entries]
        steps = [code.word(v * lanes) for v in range(across)]
        lines = [code.pointer(f.load(entry, 8).raw) for entry in entries]
        targets = [code.at(line, step) for line in lines for step in steps]
        panel = code.pointer(self.panel.raw)
        table = b.inttoptr(self.table.raw, WORD.as_pointer())

        def body(_: Any, carried: list[Any]) -> list[Any]:
            number, *sums = carried
            offset = b.load(b.gep(table, [number], source_etype=WORD), typ=WORD)
            line = code.at(panel, b.mul(number, code.word(self.wide)))
            vectors = [code.load(code.at(line, step)) for step in steps]
            out = [b.add(number, self.step.raw)]
            for row, image in enumerate(images):
                factor = code.splat(code.load_scalar(code.at(image, offset)))
                for v, vector in enumerate(vectors):
                    out.append(code.fma(factor, vector, sums[row * across + v]))
            return out

        nothing = [llvm.Constant(code.shape.vector, None)] * len(targets)
        done = f.variable(0)
        with f.while_(lambda: done.now < self.k):
            part = f.smaller(self.k - done.now, self.together)
            first = self.first + done.now * self.step
            _, *sums = code.loop(part.raw, 1, [first.raw, *nothing], body, unrolled=False)
            # Sums beyond ``rows`` are those of the last row: all are read before one is written.
            kept = (self.keep.differs(0) | (done.now > 0)).raw
            before = [b.select(kept, code.load(target), nothing[0]) for target in targets]
            for target, total, more in zip(targets, before, sums, strict=True):
                code.store(b.fadd(total, more), target)
            done.set(done.now + part)


class _Weights(_Writer):
    def write(self, *parameters: Word) -> None:
        panel, weights, line, rows, count = parameters
        f, code, lanes = self.f, self.code, self.lanes
        to, base = code.pointer(panel.raw), code.pointer(weights.raw)
        whole = count & -lanes
        mask = code.below((count - whole).raw, 0)
        for first in range(0, self.wide, lanes):
            lines = code.clamped_rows(base, line.raw, lanes, rows.raw, code.word(first))

            with over(f, 0, whole, lanes) as k:
                self._square(lines, k, None, code.at(to, code.word(first)))
            with f.when(whole < count):
                self._square(lines, whole, mask, code.at(to, code.word(first)))

    def _square(self, lines: list[Any], k: Word, mask: Any | None, to: Any) -> None:
        code = self.code
        read = [code.load_part(code.at(each, k.raw), mask) for each in lines]
        for t, vector in enumerate(transposed(code, read)):
            code.store(vector, code.at(to, ((k + t) * self.wide).raw))


class _Sums(_Writer):
    def write(self, *parameters: Word) -> None:
        sums, y, line, rows, count = parameters
        f, code, lanes = self.f, self.code, self.lanes
        source = code.pointer(sums.raw)
        last = (count < lanes).choose(0, count - lanes)
        mask = code.below(count.raw, 0)
        for first in range(0, self.wide, lanes):
            left = rows - first
            with over(f, 0, (left > 0).choose(count, 0), lanes) as at:
                i = f.smaller(at, last)
                read = [
                    code.load(code.at(source, ((i + t) * self.wide + first).raw))
                    for t in range(lanes)
                ]
                to = code.pointer((y + (line * first + i) * self.size).raw)
                turned = transposed(code, read)
                with f.either((left >= lanes) & (count >= lanes)) as (whole, part):
                    with whole:
                        for row, vector in enumerate(turned):
                            code.store(vector, code.at(to, (line * row).raw))
                    with part:
                        stored = code.stored(turned)
                        with f.counting(f.smaller(left, lanes)) as o:
                            vector = f.b.load(
                                f.b.gep(stored, [o.raw], source_etype=code.shape.vector)
                            )
                            place = code.at(to, (line * o).raw)
                            with f.either(count >= lanes) as (all_of_it, some):
                                with all_of_it:
                                    code.store(vector, place)
                                with some:
                                    code.store_masked(vector, place, mask)


_WRITERS: dict[str, tuple[Callable[..., _Writer], int]] = {
    "product": (_Product, 1), "weights": (_Weights, 5), "sums": (_Sums, 5),
}


@functools.cache
def _part(name: str, what: str, dtype: str, lanes: int) -> Part:
    writer, parameters = _WRITERS[what]
    write = functools.partial(writer, dtype=dtype, lanes=lanes, parameters=parameters)
    return Part(name, types.void, parameters, write)


def __getattr__(name: str) -> Part:
    match = re.fullmatch(rf"turned_({'|'.join(_WRITERS)})_(f32|f64)x(2|4|8|16)", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, match[1], match[2], int(match[3]))
