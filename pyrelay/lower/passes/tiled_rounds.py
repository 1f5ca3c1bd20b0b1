"""Loops that go through a long array again and again, chunk by chunk.

In: a kernel whose arrays are apart. Out: its body, in which a loop around one innermost loop, each
round of which adds to the same elements or to neighbours of those (`y[k : k + n] += h[k] * x`, as
in filters), takes a chunk of elements through all its rounds before the next one, if the array is
long: a chunk stays in the first cache ("strip mining" with the strips outside; Wolfe, "High
performance compilers for parallel computing", 1996). Each element is computed as before, in the
same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Array,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Pointed,
    Statement,
    Store,
    bound_by,
    replace_bodies,
)
from pyrelay.lower.passes.copies import Copy
from pyrelay.lower.passes.index_ranges import polynomial

_CHUNK = 2048  # elements of an array
_LONG = 2 * _CHUNK  # rounds of the inner loop
_LARGEST = 40  # statements of a round, which stand twice
_FARTHEST = 64  # elements from what one round writes to what the next does


def tiled(kernel: Kernel, body: Body) -> Body:
    """The body of a kernel with such loops in chunks."""
    return tuple(_tiled(body)) if kernel.apart else body


def _tiled(body: Body) -> Iterator[Statement]:
    for statement in body:
        apart = _apart(statement) if isinstance(statement, For) else None
        if apart is None:
            yield replace_bodies(statement, lambda inside: tuple(_tiled(inside)))
        else:
            assert isinstance(statement, For)
            yield from _chunks(statement, apart)


def _apart(loop: For) -> int | None:
    """By how many elements what a round writes lies behind what the round before wrote; None if the
    loop is no such loop."""
    inner = loop.body[-1] if loop.body else None
    if not isinstance(inner, For) or inner.lanes or inner.rescaled or not loop.program:
        return None
    first = loop.body[:-1]
    if len(first) + len(inner.body) > _LARGEST or isinstance(inner.stop, Literal):
        return None
    if not all(isinstance(s, (Compute, Load)) for s in first):
        return None
    if not all(isinstance(s, (Compute, Load, Store)) for s in inner.body):
        return None
    changing = {out for s in first for out in bound_by(s)} | {loop.index}
    if changing & {inner.start, inner.stop} or any(_is_set(o) for o in (inner.start, inner.stop)):
        return None
    written = {s.array for s in inner.body if isinstance(s, Store)}
    if not written or any(isinstance(s, Load) and _meets(s.array, written) for s in first):
        return None
    return _step(loop, inner, written)


def _is_set(operand: Operand) -> bool:
    return isinstance(operand, Local) and operand.variable


def _meets(array: Array, written: set[Array]) -> bool:
    return array in written or isinstance(array, Pointed)


def _step(loop: For, inner: For, written: set[Array]) -> int | None:
    places = _Places(loop, inner)
    steps: set[int | None] = set()
    for s in (*loop.body[:-1], *inner.body):
        if isinstance(s, Compute):
            places.note(s)
        elif isinstance(s, Store) or (isinstance(s, Load) and _meets(s.array, written)):
            if isinstance(s.array, Pointed):
                return None
            steps.add(places.step(s.array, s.index))
    (step,) = steps if len(steps) == 1 else (None,)
    again = any(isinstance(s, Load) and s.array in written for s in inner.body)
    return step if step is not None and abs(step) <= _FARTHEST and again else None


class _Places:
    """Positions as polynomials of both loops' indices and of what neither changes."""

    def __init__(self, loop: For, inner: For) -> None:
        self.outer, self.index = Symbol("k"), Symbol("i")
        self.known: dict[Operand, Extent] = {
            loop.index: dims.of(self.outer), inner.index: dims.of(self.index)
        }
        self.changing = {out for s in (*loop.body[:-1], *inner.body) for out in bound_by(s)}
        self.seen: dict[Array, Extent] = {}

    def of(self, operand: Operand) -> Extent | None:
        if isinstance(operand, Literal):
            return int(operand.value)
        if operand not in self.known and operand not in self.changing and not _is_set(operand):
            self.known[operand] = dims.fresh("n")
        return self.known.get(operand)

    def note(self, s: Compute) -> None:
        """Learns what a statement computes."""
        if s.out.dtype == i64 and len(s.args) == 2:
            made = polynomial(s.primitive, *map(self.of, s.args))
            if made is not None:
                self.known[s.out] = made

    def step(self, array: Array, index: Operand) -> int | None:
        """How far positions in an array move from round to round of the outer loop, if they are
        neighbours in the inner one and all the same in one round."""
        place = self.of(index)
        if place is None or self.seen.setdefault(array, place) != place or isinstance(place, int):
            return None
        each = dict(place.terms)
        step = each.pop(((self.outer, 1),), 0)
        if each.pop(((self.index, 1),), 0) != 1:
            return None
        if any(atom in (self.outer, self.index) for m in each for atom, _ in m):
            return None
        return step


def _chunks(loop: For, step: int) -> Iterator[Statement]:
    """The loop as it is for few elements, and chunk by chunk for many."""
    inner = loop.body[-1]
    assert isinstance(inner, For)
    made: list[Statement] = []

    def compute(primitive: str, *args: Operand) -> Operand:
        out = Local(bool_ if primitive == "greater_equal" else i64)
        here.append(Compute(out, primitive, args))
        return out

    def moved(operand: Operand) -> Operand:
        """How far places of a round lie behind those of a first one."""
        return operand if step == 1 else compute("multiply", operand, number(step))

    def number(value: int) -> Literal:
        return Literal(value, i64)

    here = made
    whole = isinstance(inner.start, Literal) and inner.start.value == 0
    length = inner.stop if whole else compute("subtract", inner.stop, inner.start)
    long = compute("greater_equal", length, number(_LONG))
    here = tiles = []
    ends = [moved(loop.start), moved(compute("subtract", loop.stop, number(1)))]
    lowest = compute("add", inner.start, ends[step < 0])
    over = compute("subtract", compute("add", inner.stop, ends[step >= 0]), lowest)
    count = compute("floor_divide", compute("add", over, number(_CHUNK - 1)), number(_CHUNK))
    (copy,) = Copy({}, set()).body((loop,))
    assert isinstance(copy, For)
    within, tile = copy.body[-1], Local(i64)
    assert isinstance(within, For)
    here = around = []
    begin = compute("add", lowest, compute("multiply", tile, number(_CHUNK)))
    end = compute("add", begin, number(_CHUNK))
    here = inside = list(copy.body[:-1])
    offset = moved(copy.index)
    first = compute("maximum", within.start, compute("subtract", begin, offset))
    behind = compute("minimum", within.stop, compute("subtract", end, offset))
    inside.append(replace(within, start=first, stop=behind))
    around.append(replace(copy, body=tuple(inside)))
    tiles.append(For(tile, number(0), count, tuple(around), True))
    yield from made
    yield If(long, tuple(tiles), (loop,))
