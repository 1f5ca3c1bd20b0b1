"""Loops that go around the end of an array are loops over what lies in one piece.

In: a body of kernel IR, for the CPU. Out: the same, in which an innermost loop that reads or writes
in places chosen by how its index, or a sum of it and a number, compares with a number or an extent

    for i in range(n):                      for i in range(1): ... x[n - 1] ... x[i + 1] ...
        ... x[i - 1 if i > 0 else n - 1]    for i in range(1, n - 1): ... x[i - 1] ... x[i + 1]
        ... x[i + 1 if i + 1 < n else 0]    for i in range(n - 1, n): ... x[i - 1] ... x[0]

is one loop for each answer, as `parted_loops` does with branches: LLVM sees which places these are,
so that it may read neighbours as vectors, and ask in front whether what is written is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Body,
    Compute,
    For,
    Literal,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    Store,
    renamed,
    replace_bodies,
)
from pyrelay.lower.passes.copies import Copy

_LARGEST = 60  # statements of a round
_SHORTEST = 16  # rounds, if they are known
_DEEPEST = 2  # comparisons that are decided
_FARTHEST = 1 << 20  # numbers that are added to an index

#: Whether a comparison of an index and a number is true below a place, and how far this is from it.
_ORDER = {
    "less": (True, 0), "less_equal": (True, 1), "greater_equal": (False, 0), "greater": (False, 1),
}  # fmt: skip


def with_parted_places(body: Body) -> Body:
    """The body with several loops in place of such ones."""
    extents: set[Operand] = {
        s.out for s in body if isinstance(s, Read) and s.parameter.role == EXTENT
    }

    def walked(part: Body) -> Body:
        out: list[Statement] = []
        for s in part:
            if isinstance(s, For) and _is_fit(s):
                out += _parts(s, extents, _DEEPEST)
            else:
                out.append(replace_bodies(s, walked))
        return tuple(out)

    return walked(body)


def _is_fit(loop: For) -> bool:
    start, stop = loop.start, loop.stop
    if isinstance(start, Literal) and isinstance(stop, Literal) and (
        stop.value - start.value <= _SHORTEST
    ):
        return False
    return len(loop.body) <= _LARGEST and loop.rescaled is None and not loop.lanes and all(
        isinstance(s, (Compute, Load, Store)) for s in loop.body
    )


def _parts(loop: For, extents: set[Operand], left: int) -> Iterator[Statement]:
    found = _asked(loop, extents) if left else None
    if found is None:
        yield loop
        return
    cond, below, number, moved = found
    place, least, middle = Local(i64), Local(i64), Local(i64)
    yield Compute(place, "add", (number, Literal(moved, i64)))
    yield Compute(least, "minimum", (place, loop.stop))
    yield Compute(middle, "maximum", (least, loop.start))
    before = replace(loop, stop=middle, body=_decided(loop.body, cond, below))
    yield from _parts(before, extents, left - 1)
    after = replace(loop, start=middle, body=_decided(loop.body, cond, not below))
    (copy,) = Copy({}, set()).body((after,))
    assert isinstance(copy, For)
    yield from _parts(copy, extents, left - 1)


def _asked(loop: For, extents: set[Operand]) -> tuple[Local, bool, Operand, int] | None:
    """A comparison that places of a loop hang on: what it gives, whether that is true of indices
    below a place, and the number that this place is so far from."""
    made = {s.out: s for s in loop.body if isinstance(s, Compute)}
    placed: set[Operand] = {s.index for s in loop.body if isinstance(s, (Load, Store))}
    for s in reversed(made.values()):
        if s.out in placed:
            placed.update(s.args)
    for s in made.values():
        if s.primitive != "where" or s.out not in placed or s.out.dtype is not i64:
            continue
        asked = made.get(s.args[0]) if isinstance(s.args[0], Local) else None
        if asked is None or asked.primitive not in _ORDER:
            continue
        place, number = asked.args
        far = _far(place, loop.index, made)
        if far is not None and (isinstance(number, Literal) or number in extents):
            below, more = _ORDER[asked.primitive]
            return asked.out, below, number, more - far
    return None


def _far(place: Operand, index: Local, made: dict[Local, Compute]) -> int | None:
    """What is added to an index; None where a number is no such sum."""
    if place is index:
        return 0
    s = made.get(place) if isinstance(place, Local) else None
    if s is None or s.primitive not in ("add", "subtract") or s.out.dtype is not i64:
        return None
    a, b = s.args if s.args[0] is index or s.primitive == "subtract" else reversed(s.args)
    if a is not index or not isinstance(b, Literal) or abs(b.value) > _FARTHEST:
        return None
    return int(b.value if s.primitive == "add" else -b.value)


def _decided(body: Body, cond: Local, truth: bool) -> Body:
    """The body in which a condition is known."""
    known = Literal(truth, bool_)
    return tuple(renamed(s, {cond: known}) for s in body if cond not in _made_by(s))


def _made_by(s: Statement) -> tuple[Local, ...]:
    return (s.out,) if isinstance(s, Compute) else ()
