"""Rows of scores, vector by vector: what attention and its derivative do beside products.

In: the address of words that describe the rows. Out: LLVM functions, parts of kernels. Elements are
counted, addresses are of bytes; lines of scores are whole vectors, and what lies beyond a row's
scores is written too.

    softened_rows    exponentials of scores less the row's greatest, and their sums; what earlier
                     columns gave is scaled where a greater score came
    slopes_rows      probabilities, made again, and slopes of scores by them
    scaled_rows      rows times a number

A NaN among scores makes its row's sum NaN, and so all that is divided by it: the greatest need not
be NaN too.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

from pyrelay.devices.compiler import kernel_types as types
from pyrelay.devices.compiler import llvm_ir as llvm
from pyrelay.devices.compiler.kernel_language import LLVM_TYPES, SHORT_NAMES
from pyrelay.devices.compiler.llvm_writer import Function, Word, over
from pyrelay.devices.routines.calls import Part
from pyrelay.devices.routines.exponentials import lane_weight
from pyrelay.devices.routines.lanes import Lane
from pyrelay.devices.routines.matmul_tiles import Code, Shape

AT_ONCE = 2  # vectors: what they wait for overlaps


class _Rows:
    """A function whose words say how many rows there are, and of how many elements."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int, words: int) -> None:
        element = LLVM_TYPES[SHORT_NAMES[dtype]]
        self.size, self.lanes = 4 if dtype == "f32" else 8, lanes
        self.f = f = Function(module, name, 1)
        self.code = Code(f.b, Shape(element, lanes, 1, 1))
        (block,) = f.parameters
        self.words = [f.load(block, 8 * place) for place in range(words)]

    def place(self, base: Word, row: Word, line: Word | int) -> Any:
        """Where a row begins."""
        return self.code.pointer((base + row * line * self.size).raw)

    def number(self, base: Word, row: Word) -> Any:
        """The number of a row."""
        return self.code.load_scalar(self.place(base, row, 1))

    def splat(self, value: Any) -> Lane:
        return Lane(self.f.b, self.code.splat(value))

    def constant(self, value: float) -> Lane:
        return self.splat(llvm.Constant(self.code.shape.element, value))

    def vectors(
        self, count: Word, carried: list[Any],
        body: Callable[[Any, Any, list[Any]], list[Any]],
    ) -> list[Any]:  # fmt: skip
        """``body(place, mask, carried)`` of each vector: two after two, which carry alike, and what
        is left one by one, with masks."""
        code, each, step = self.code, len(carried), AT_ONCE * self.lanes

        def both(index: Any, before: list[Any]) -> list[Any]:
            after = []
            for v in range(AT_ONCE):
                place = code.b.add(index, code.word(v * self.lanes))
                after += body(place, None, before[v * each : (v + 1) * each])
            return after

        def single(index: Any, before: list[Any]) -> list[Any]:
            mask = code.below(code.b.sub(count.raw, index), 0)
            return [*body(index, mask, before[:each]), *before[each:]]

        whole = (count & -step).raw
        carried = code.loop(whole, step, carried * AT_ONCE, both, unrolled=False)
        return code.loop(count.raw, self.lanes, carried, single, unrolled=False, start=whole)

    def score(self, row: Any, place: Any, mask: Any) -> Lane:
        """Scores from a place on, -inf where a mask leaves them out."""
        code, at = self.code, self.code.at(row, place)
        if mask is None:
            return Lane(code.b, code.load(at))
        return Lane(code.b, code.load_masked(at, mask, self.constant(-math.inf).v))


class _Softened(_Rows):
    """Writes the function ``softened_rows``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        super().__init__(module, name, dtype, lanes, 11)
        f, code = self.f, self.code
        (raw, raw_line, scores, line, count, span, largest, totals, result, width,
         later) = self.words  # fmt: skip
        with f.counting(count) as row:
            given, made = self.place(raw, row, raw_line), self.place(scores, row, line)
            before = self.number(largest, row)
            top = self._largest(given, span, before)
            lowest = llvm.Constant(top.type, -math.inf)
            none = f.b.fcmp_ordered("==", top, lowest)
            shift = f.b.select(none, llvm.Constant(top.type, 0.0), top)
            total = self._powers(given, made, span, self.splat(shift))
            code.b.store(top, self.place(largest, row, 1))
            with f.either(later.differs(0)) as (more, first):
                with more:
                    scale = lane_weight(self.splat(f.b.fsub(before, shift)))
                    factor = f.b.extract_element(scale.v, llvm.Constant(llvm.IntType(32), 0))
                    earlier = f.b.fmul(self.number(totals, row), factor)
                    code.b.store(f.b.fadd(total, earlier), self.place(totals, row, 1))
                    one = llvm.Constant(factor.type, 1.0)
                    with f.b.if_then(f.b.fcmp_unordered("!=", factor, one)):
                        self._scale(self.place(result, row, width), width, scale)
                with first:
                    code.b.store(total, self.place(totals, row, 1))
        f.ret(0)

    def _largest(self, given: Any, span: Word, before: Any) -> Any:
        """The greatest of a row's scores and another number, which is no NaN."""

        def body(place: Any, mask: Any, carried: list[Any]) -> list[Any]:
            return [self._greater(self.score(given, place, mask).v, carried[0])]

        b, start = self.f.b, self.code.splat(before)
        top, *others = self.vectors(span, [start], body)
        for each in others:
            top = self._greater(each, top)
        half = self.lanes // 2
        while half:
            numbers = [(lane + half) % self.lanes for lane in range(self.lanes)]
            order = llvm.Constant(llvm.VectorType(llvm.IntType(32), self.lanes), numbers)
            top = self._greater(b.shuffle_vector(top, top, order), top)
            half //= 2
        return b.extract_element(top, llvm.Constant(llvm.IntType(32), 0))

    def _greater(self, x: Any, y: Any) -> Any:
        """The second where the first is NaN: one instruction."""
        return self.f.b.select(self.f.b.fcmp_ordered(">", x, y), x, y)

    def _powers(self, given: Any, made: Any, span: Word, shift: Lane) -> Any:
        """Writes a row's exponentials; their sum."""
        code = self.code

        def body(place: Any, mask: Any, carried: list[Any]) -> list[Any]:
            power = lane_weight(self.score(given, place, mask) - shift)
            code.store(power.v, code.at(made, place))
            return [code.b.fadd(carried[0], power.v)]

        sums = self.vectors(span, [self.constant(0.0).v], body)
        return code.sum(functools.reduce(code.b.fadd, sums))

    def _scale(self, row: Any, width: Word, scale: Lane) -> None:
        code = self.code

        def body(index: Any, _carried: list[Any]) -> list[Any]:
            mask, place = code.below(code.b.sub(width.raw, index), 0), code.at(row, index)
            code.store_masked(code.b.fmul(code.load_masked(place, mask), scale.v), place, mask)
            return []

        code.loop(width.raw, self.lanes, [], body, unrolled=False)


class _Slopes(_Rows):
    """Writes the function ``slopes_rows``."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        super().__init__(module, name, dtype, lanes, 11)
        f, code = self.f, self.code
        (raw, raw_line, scores, slopes, line, count, span, tops, sums, means,
         guarded) = self.words  # fmt: skip
        zero, one = (llvm.Constant(code.shape.element, each) for each in (0.0, 1.0))
        with f.counting(count) as row:
            given, made = self.place(raw, row, raw_line), self.place(scores, row, line)
            slope_row = self.place(slopes, row, line)
            top, total = self.number(tops, row), self.number(sums, row)
            none = f.b.fcmp_ordered("==", top, llvm.Constant(top.type, -math.inf))
            shift = self.splat(f.b.select(none, zero, top))
            empty = f.b.and_(guarded.differs(0).raw, f.b.fcmp_ordered("==", total, zero))
            total = self.splat(f.b.select(empty, one, total))
            mean = self.splat(self.number(means, row))

            def body(place: Any, mask: Any, _carried: list[Any]) -> list[Any]:
                power = lane_weight(self.score(given, place, mask) - shift) / total
                at = code.at(slope_row, place)
                slope = Lane(code.b, code.load(at)) - mean
                code.store(power.v, code.at(made, place))
                code.store(slope.equals(0.0).choose(slope.constant(0.0), slope * power).v, at)
                return []

            self.vectors(span, [], body)
        f.ret(0)


class _Scaled(_Rows):
    """Writes the function ``scaled_rows``. Each row has a number, or all have one: numbers are so
    many elements apart."""

    def __init__(self, module: llvm.Module, name: str, dtype: str, lanes: int) -> None:
        super().__init__(module, name, dtype, lanes, 8)
        f, code = self.f, self.code
        source, source_line, target, target_line, count, width, numbers, apart = self.words
        with f.counting(count) as row:
            given, made = self.place(source, row, source_line), self.place(target, row, target_line)
            number = self.splat(code.load_scalar(self.place(numbers, row, apart)))
            with over(f, 0, width, lanes) as j:
                mask = code.below((width - j).raw, 0)
                value = f.b.fmul(code.load_masked(code.at(given, j.raw), mask), number.v)
                code.store_masked(value, code.at(made, j.raw), mask)
        f.ret(0)


_WRITERS: dict[str, Callable[..., Any]] = {
    "softened_rows": _Softened, "slopes_rows": _Slopes, "scaled_rows": _Scaled,
}  # fmt: skip


@functools.cache
def _part(name: str, what: str, dtype: str, lanes: int) -> Part:
    write = functools.partial(_WRITERS[what], dtype=dtype, lanes=lanes)
    return Part(name, types.void, 1, write)


def __getattr__(name: str) -> Part:
    match = re.fullmatch(rf"({'|'.join(_WRITERS)})_(f32|f64)x(2|4|8|16)", name)
    if match is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _part(name, match[1], match[2], int(match[3]))
