"""Reductions: accurate and vectorisable loops for `s.reduce`.

In: a way to compute the element at a reduction index. Out: loops that leave the result in a scalar.

A floating sum is taken in blocks of `BLOCK` elements. Inside a block the order of additions is
free, so the target keeps many accumulators; the block sums of f32 are added in f64, those of f64
with the rounding errors carried along (Knuth's two-sum, TAOCP 4.2.2; Neumaier, ZAMM 54, 1974).
So the error is that of one block, below NumPy's pairwise summation, and it depends on no thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pyrelay.ir import dims, limits
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import DType, c128, f32, f64, i64
from pyrelay.lower.kernels.emitter import Emitter
from pyrelay.lower.kernels.kernel import Assign, If, Local
from pyrelay.lower.kernels.values import Run, Value
from pyrelay.records import dataclass

#: Elements whose sum is taken in free order.
BLOCK = 1024

_FREE_ORDER = {"add": "add_reassociated", "multiply": "multiply_reassociated"}


@dataclass(frozen=True, slots=True)
class Reduction:
    """What a rule asks `s.reduce` for: combine `element(r)` for all r in `extents`."""

    op: str
    extents: tuple[Extent, ...]
    element: Callable[[tuple[Value, ...]], Value]
    dtype: DType


def identity(op: str, dtype: DType) -> Any:
    """The number that changes nothing: 0, 1, or the end of the range."""
    if op in ("add", "logical_or"):
        return 0
    if op in ("multiply", "logical_and"):
        return 1
    lowest = op == "maximum"
    if dtype.kind == "b":
        return not lowest
    if dtype.kind in "fc":
        return -np.inf if lowest else np.inf
    info = np.iinfo(dtype.numpy)
    return int(info.min if lowest else info.max)


def in_blocks(op: str, dtype: DType) -> bool:
    """True if a reduction is taken block by block: floating sums."""
    return op == "add" and dtype.kind in "fc"


def partial_dtype(op: str, dtype: DType) -> DType:
    """The type in which the sums of blocks and chunks are kept."""
    if not in_blocks(op, dtype):
        return dtype
    return f64 if dtype == f32 else c128 if dtype.kind == "c" else dtype


def combine(s: Emitter, op: str, a: Value, b: Value) -> Value:
    """`a op b`, where the order of many such steps is free."""
    free = _FREE_ORDER.get(op) if a.dtype.kind in "fc" else None
    return s.primitive(free or op, a, b)


class Accumulator:
    """The running result of a reduction: `add` partial results, then read `result`.

    Partial results come in order, so they may be as many as there are blocks.
    """

    def __init__(self, s: Emitter, op: str, dtype: DType) -> None:
        self.s, self.op = s, op
        self.dtype = partial_dtype(op, dtype)
        self.total = s.variable(s.const(identity(op, dtype), self.dtype))
        exact = in_blocks(op, dtype) and dtype == f64
        self.lost = s.variable(s.const(0.0, f64)) if exact else None

    def add(self, partial: Value) -> None:
        """Takes in one partial result."""
        s, total = self.s, self.s.now(self.total)
        value = s.cast(partial, self.dtype)
        if self.lost is None:
            s.assign(self.total, s.primitive(self.op, total, value))
            return
        # Two-sum: `new` and `error` are exactly total + value.
        new = s.primitive("add", total, value)
        back = new - total
        error = (total - (new - back)) + (value - back)
        s.assign(self.lost, s.now(self.lost) + error)
        s.assign(self.total, new)

    def result(self) -> Value:
        """The result so far, in the type of partial results."""
        s = self.s
        if self.lost is None:
            return self.total
        # An infinite or NaN total has a meaningless error term.
        finite = s.primitive("isfinite", self.total)
        return s.where(finite, self.total + self.lost, self.total)


@contextmanager
def blocks(s: Emitter, start: Value, stop: Value, block: int) -> Iterator[tuple[Value, Value]]:
    """A loop over the blocks of start..stop, as the first index and the end of each."""
    count = (stop - start + (block - 1)) // block
    with s.loop(0, count, trips=1) as b:
        first = start + b * block
        yield first, s.primitive("minimum", first + block, stop)


def over_rows(
    s: Emitter, start: Value, stop: Value, at_once: int, add: Callable[[Sequence[Value]], None]
) -> None:
    """Loops that `add` the rows from start to stop to an array, so many at once as long as there
    are.

    The array is read and stored once for all of these. It matters besides that what is stored is
    not a choice between what is there already and one row: LLVM makes a masked store of that, which
    takes a processor of AMD's without AVX-512 some twenty cycles.
    """
    if at_once > 1:
        count = (stop - start) // at_once
        with s.loop(0, count) as group:
            first = start + group * at_once
            add([first + k for k in range(at_once)])
        start = start + count * at_once
    with s.loop(start, stop, trips=1 if at_once > 1 else None) as row:
        add([row])


def over_range(
    s: Emitter, reductions: Sequence[Reduction], start: Value, stop: Value, length: Extent | None,
    element: Callable[[Value], Sequence[Value]],
) -> list[Value]:
    """Reduces `element(k)` for k in start..stop, several results side by side.

    `length` is the number of indices if it is known now. Results are in `partial_dtype`.
    """
    blocked = any(in_blocks(r.op, r.dtype) for r in reductions)
    if not blocked or (length is not None and _is_few(length, BLOCK)):
        totals = one_block(s, reductions, start, stop, length, element)
        return [
            s.cast(total, partial_dtype(r.op, r.dtype))
            for total, r in zip(totals, reductions, strict=True)
        ]

    def by_blocks() -> list[Value]:
        accumulators = [Accumulator(s, r.op, r.dtype) for r in reductions]
        with blocks(s, start, stop, BLOCK) as (first, last):
            partials = one_block(s, reductions, first, last, length, element)
            for accumulator, partial in zip(accumulators, partials, strict=True):
                accumulator.add(partial)
        return [a.result() for a in accumulators]

    def at_once() -> list[Value]:
        return one_block(s, reductions, start, stop, length, element)

    if not s.often_short or length is None:
        return by_blocks()
    return _if_short(s, reductions, stop - start, at_once, by_blocks)


def _if_short(
    s: Emitter, reductions: Sequence[Reduction], count: Value,
    at_once: Callable[[], list[Value]], by_blocks: Callable[[], list[Value]],
) -> list[Value]:
    """The results of `at_once` if there are no more elements than in a block, else the others."""
    dtypes = [partial_dtype(r.op, r.dtype) for r in reductions]
    chosen = [Local(dtype, variable=True) for dtype in dtypes]
    arms = []
    for arm in (at_once, by_blocks):
        with s.body() as statements:
            for local, value in zip(chosen, arm(), strict=True):
                s.emit(Assign(local, s.cast(value, local.dtype).operand))
        arms.append(tuple(statements))
    whole, blocks = arms
    s.emit(If(s.primitive("less_equal", count, BLOCK).operand, whole, blocks))
    return [Value(s, local, local.dtype, s.scope) for local in chosen]


def one_block(
    s: Emitter, reductions: Sequence[Reduction], start: Value, stop: Value, length: Extent | None,
    element: Callable[[Value], Sequence[Value]],
) -> list[Value]:
    totals = [s.variable(s.const(identity(r.op, r.dtype), r.dtype)) for r in reductions]
    with s.loop(start, stop, trips=BLOCK if length is None else length) as k:
        values = element(k)
        for r, total, value in zip(reductions, totals, values, strict=True):
            s.assign(total, combine(s, r.op, s.now(total), s.cast(value, r.dtype)))
    return totals


def in_place(s: Emitter, reduction: Reduction) -> Value:
    """The whole reduction where it stands: loops over all extents, the result as a scalar."""
    size = dims.product(reduction.extents)
    restore = s.scope.snapshot()
    run: list[Run] = []

    def element(k: Value) -> list[Value]:
        run.append(Run(s.bounded(k, size), reduction.extents))
        return [reduction.element(run[-1].parts())]

    result = over_range(s, [reduction], s.const(0, i64), s.extent(size), size, element)[0]
    if any(r.taken_apart for r in run):
        # One index for all axes costs divisions: count the axes one inside the other instead.
        restore()
        result = _nested(s, reduction)
    return s.cast(result, reduction.dtype)


def _nested(s: Emitter, reduction: Reduction) -> Value:
    """Loops over the outer axes around `over_range` over the last one."""
    last = reduction.extents[-1]
    zero = s.const(0, i64)

    def rows(each: Callable[[tuple[Value, ...]], None], outer: tuple[Value, ...] = ()) -> None:
        if len(outer) == len(reduction.extents) - 1:
            each(outer)
            return
        with s.loop(0, s.extent(reduction.extents[len(outer)])) as k:
            rows(each, (*outer, k))

    def row_by_row() -> list[Value]:
        accumulator = Accumulator(s, reduction.op, reduction.dtype)

        def add(outer: tuple[Value, ...]) -> None:
            def element(k: Value) -> list[Value]:
                return [reduction.element((*outer, s.bounded(k, last)))]

            accumulator.add(over_range(s, [reduction], zero, s.extent(last), last, element)[0])

        rows(add)
        return [accumulator.result()]

    def at_once() -> list[Value]:
        total = s.variable(s.const(identity(reduction.op, reduction.dtype), reduction.dtype))

        def add(outer: tuple[Value, ...]) -> None:
            with s.loop(0, s.extent(last)) as k:
                value = s.cast(reduction.element((*outer, s.bounded(k, last))), reduction.dtype)
                s.assign(total, combine(s, reduction.op, s.now(total), value))

        rows(add)
        return [total]

    if not s.often_short or not in_blocks(reduction.op, reduction.dtype):
        return row_by_row()[0]
    size = dims.product(reduction.extents)
    if _is_few(size, BLOCK):
        return at_once()[0]
    return _if_short(s, [reduction], s.extent(size), at_once, row_by_row)[0]


def _is_few(count: Extent, most: int) -> bool:
    """Whether there are known to be no more elements."""
    greatest = limits.greatest(count)
    return greatest is not None and greatest <= most
