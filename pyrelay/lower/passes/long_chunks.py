"""Chunks of sums for as many elements as the threads of a GPU's block take at once.

In: a kernel. Out: the kernel with chunks of `CHUNK` elements, where sums are taken in chunks by
loops that `cooperation` deals out; the kernel itself if it has none.

A sum of floats is taken in chunks of elements added in their own type, whose totals are added in a
wider one (`lower.kernels.reductions`). That bounds how many roundings follow each other, for one
thread. A block's threads have a part of each chunk, so that theirs may be as many times longer, and
a row that the block's threads hold is one chunk.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    Body,
    Compute,
    For,
    Kernel,
    Literal,
    Local,
    Operand,
    Statement,
    replace_bodies,
)
from pyrelay.lower.passes.cleaning import without_unused
from pyrelay.lower.passes.cooperation import cooperation
from pyrelay.records import dataclass

CHUNK = 1 << 15
"""Elements of a chunk that a block shares: at most 256 for each of its threads."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """How a loop goes through chunks: `size` elements each, from `first` up to `last`. `begin`,
    `times` and `end` make the index of a chunk's first element and of its end, which is `bound`
    where it is not known to be there."""

    size: int
    first: Operand
    last: Operand
    times: Compute
    end: Compute
    bound: Compute | None


def chunks_of(loop: For) -> Chunks | None:
    """How a loop goes through chunks, each of which all loops in it go through; None if it does
    something else."""
    inner = [s for s in loop.body if isinstance(s, For)]
    made = {s.out: s for s in loop.body if isinstance(s, Compute)}
    if not inner or _number(loop.start) != 0:
        return None
    start, stop = inner[0].start, inner[0].stop
    if any(each.start is not start or each.stop is not stop for each in inner):
        return None
    times, first = _made(start, made), Literal(0, i64)
    if times is not None and times.primitive == "add":
        offset = next((a for a in times.args if _made(a, made) is None), None)
        chosen = next((a for a in times.args if _made(a, made) is not None), None)
        if offset is None or chosen is None:
            return None
        first, times = offset, _made(chosen, made)  # type: ignore[assignment]
    if times is None or times.primitive != "multiply" or loop.index not in times.args:
        return None
    size = next(filter(None, map(_number, times.args)), None)
    bound = _made(stop, made)
    end = bound
    last: Operand | None = None
    if bound is not None and bound.primitive == "minimum":
        end = next((e for a in bound.args if (e := _made(a, made)) is not None), None)
        last = next((a for a in bound.args if _made(a, made) is None), None)
    else:
        bound = None
    if end is None or end.primitive != "add" or start not in end.args or size is None:
        return None
    if next(filter(None, map(_number, end.args)), None) != size:
        return None
    if last is None:
        count = _number(loop.stop)
        if bound is not None or count is None or _number(first) != 0:
            return None
        last = Literal(count * size, i64)
    return Chunks(size, first, last, times, end, bound)


def long_chunks(kernel: Kernel) -> Kernel:
    """The kernel with longer chunks; the kernel itself if there are none."""
    found = cooperation(kernel)
    if found is None:
        return kernel
    shared = frozenset(found.loops)

    def changed(body: Body) -> Body:
        made: list[Statement] = []
        for statement in body:
            if isinstance(statement, For) and any(s in shared for s in statement.body):
                chunks = chunks_of(statement)
                if chunks is not None and chunks.size < CHUNK:
                    made += _longer(statement, chunks)
                    continue
            made.append(replace_bodies(statement, changed))
        same = len(made) == len(body) and all(a is b for a, b in zip(made, body, strict=True))
        return body if same else tuple(made)

    body = changed(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=without_unused(body))


def _longer(loop: For, chunks: Chunks) -> list[Statement]:
    """The loop with chunks of `CHUNK` elements, behind what makes their number."""
    made: list[Statement] = []

    def computed(primitive: str, *args: Operand) -> Local:
        made.append(Compute(Local(i64), primitive, args))
        return made[-1].out  # type: ignore[union-attr]

    first, last = _number(chunks.first), _number(chunks.last)
    count: Operand
    if first is not None and last is not None:
        count = Literal(-(-(last - first) // CHUNK), i64)
    else:
        length = chunks.last if first == 0 else computed("subtract", chunks.last, chunks.first)
        up = computed("add", length, Literal(CHUNK - 1, i64))
        count = computed("floor_divide", up, Literal(CHUNK, i64))
    size = Literal(CHUNK, i64)
    body: list[Statement] = []
    stop: Local | None = None
    for s in loop.body:
        if s is chunks.times or s is chunks.end:
            assert isinstance(s, Compute)
            s = replace(s, args=tuple(size if _number(a) == chunks.size else a for a in s.args))
            body.append(s)
            if chunks.bound is None and s.out is chunks.end.out:
                stop = Local(i64)
                body.append(Compute(stop, "minimum", (s.out, chunks.last)))
            continue
        if stop is not None and isinstance(s, For):
            s = replace(s, stop=stop)
        body.append(s)
    return [*made, replace(loop, stop=count, body=tuple(body))]


def _made(operand: Operand, made: dict[Local, Compute]) -> Compute | None:
    return made.get(operand) if isinstance(operand, Local) else None


def _number(operand: Operand) -> int | None:
    return int(operand.value) if isinstance(operand, Literal) else None
