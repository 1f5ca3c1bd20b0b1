"""Loops whose rounds fill arrays ask once for a block of rounds whether one of their checks fails.

In: a kernel of a program's loops, for the CPU. Out: its body, in which

    for i in range(n):              for each block of 32 rounds:
        fail if v > 255                 for l in lanes: kept[l] = v; failing |= v > 255
        out[i] = v              as      if failing: the block's rounds, one by one
                                        else: for l in lanes: out[first + l] = kept[l]

A loop that a check may leave is no vector for LLVM, and checks that no range of numbers takes out
are those of what is put into small integers, of divisors, of sums without bounds. Of a block that
fails, or where a product of large numbers may, nothing has been stored. The last block begins early
enough to be whole: what a round stores is the same each time, since a loop reads no array that it
fills. What a check looks at is no part of a place in memory. Checks of a float of which an integer
is made are one (`float_limits`); where they are not, the float is zero where one fails. Loops of a
few rounds in such a loop are written out, and what is read may lie a few elements apart, as colours
do. Loops with a function that takes long are taken apart by `jammed_loops`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Break,
    Compute,
    Fail,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    LocalArray,
    Operand,
    Pointed,
    Read,
    Statement,
    Store,
    While,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.chosen_arms import is_shift
from pyrelay.lower.passes.copies import Copy
from pyrelay.lower.passes.distinct_places import Integers, strides, with_loops
from pyrelay.lower.passes.float_limits import with_float_limits
from pyrelay.lower.passes.jammed_loops import (
    LONG,
    SIDE_BY_SIDE,
    Uses,
    counted,
    starts_anew,
)

_LANES = 32
_LOG2_LANES = 5
_MOST_STATEMENTS = 60
_FEW_ROUNDS = 4  # of a loop that is written out
_FURTHEST = 4  # elements from one round to the next, of what is read
_GREATEST = 2**63 - 1
_HALF = 2**31  # of the bits of a product, for either factor
_ZERO = Literal(0, i64)
_SUMS = {"add_overflows": "add", "subtract_overflows": "subtract"}


def with_checked_blocks(kernel: Kernel) -> Body:
    """The body of a kernel with such loops in blocks."""
    if not kernel.apart or not any(isinstance(s, Fail) for s in statements(kernel.body)):
        return kernel.body
    uses = counted(kernel.body)

    def changed(loop: For, around: Integers) -> Iterator[Statement] | None:
        if loop.few:
            return None
        loop = _written_out(loop)
        return _blocks(loop) if _is_candidate(loop) and _fits(loop, around, uses) else None

    return with_loops(kernel.body, Integers(), changed)


def _written_out(loop: For) -> For:
    """A loop with rounds of a known, small number of loops right inside of it one after the other.
    """
    if not any(isinstance(s, For) for s in loop.body):
        return loop
    body: list[Statement] = []
    for s in loop.body:
        if isinstance(s, For) and _is_short(s):
            for k in range(s.start.value, s.stop.value):  # type: ignore[union-attr]
                body += Copy({s.index: Literal(k, i64)}, set()).body(s.body)
        else:
            body.append(s)
    return replace(loop, body=tuple(body))


def _is_short(loop: For) -> bool:
    start, stop = loop.start, loop.stop
    if not (isinstance(start, Literal) and isinstance(stop, Literal)) or loop.rescaled is not None:
        return False
    inside = not any(isinstance(s, (For, While, Break)) for s in statements(loop.body))
    return inside and stop.value - start.value <= _FEW_ROUNDS


def _is_candidate(loop: For) -> bool:
    """Whether a loop only computes, looks and stores, with a check among this."""
    every = list(statements(loop.body))
    return (
        len(every) <= _MOST_STATEMENTS
        and not loop.lanes
        and loop.rescaled is None
        and any(isinstance(s, Fail) for s in every)
        and any(isinstance(s, Store) for s in loop.body)
        and all(map(_is_simple, every))
        and not any(isinstance(s, Store) for s in every if s not in loop.body)
    )


def _is_simple(s: Statement) -> bool:
    match s:
        case Compute(out=out, primitive=name):
            known = name in SIDE_BY_SIDE or name in _SUMS or name == "outside" or is_shift(s)
            known |= name in ("left_shift", "right_shift") and isinstance(s.args[1], Literal)
            known |= name == "multiply_overflows"
            return known and name not in LONG and _is_number(out)
        case Load(out=out, array=array) | Store(array=array, value=out):
            return _is_number(out) and out.dtype != bool_ and not isinstance(array, Pointed)
    return isinstance(s, (Read, Assign, If, Fail))


def _is_number(operand: Operand) -> bool:
    return operand.dtype == bool_ or (
        operand.dtype.kind in "iuf" and (operand.dtype.kind != "f" or operand.dtype.size > 2)
    )


def _factor(s: Compute) -> int | None:
    """The number by which a product multiplies, where that is known and above zero."""
    numbers = [a.value for a in s.args if isinstance(a, Literal)]
    return numbers[0] if len(numbers) == 1 and numbers[0] > 0 else None


def _fits(loop: For, around: Integers, uses: Uses) -> bool:
    """Whether rounds of a loop may be done without its checks, and lie side by side."""
    if not starts_anew(loop.body, (), uses - counted(loop.body)):
        return False
    stored = [s.array for s in loop.body if isinstance(s, Store)]
    every = list(statements(loop.body))
    if any(isinstance(s, Load) and s.array in stored for s in every):
        return False
    moves = strides(loop, len(loop.body), around)
    if any(moves[s] != 1 for s in loop.body if isinstance(s, Store)):
        return False
    if any(moves[s] not in range(_FURTHEST + 1) for s in every if isinstance(s, Load)):
        return False
    looked_at = _made_of([s.cond for s in every if isinstance(s, Fail)], every)
    placed = _made_of([s.index for s in every if isinstance(s, (Load, Store))], every)
    return not any(isinstance(o, Local) for o in looked_at & placed)


def _made_of(wanted: Iterable[Operand], body: Iterable[Statement]) -> set[Operand]:
    """What operands are computed of by statements, up to what is loaded."""
    makers: dict[Operand, list[Operand]] = {}
    for s in body:
        if isinstance(s, Compute):
            makers[s.out] = list(s.args)
        elif isinstance(s, Assign):
            makers.setdefault(s.variable, []).append(s.value)
    found: set[Operand] = set()
    waiting = list(wanted)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += makers.get(each, ())
    return found


def _blocks(loop: For) -> Iterator[Statement]:
    """What stands in place of a loop."""
    out: list[Statement] = []

    def compute(name: str, *args: Operand, dtype: object = i64) -> Local:
        made = Local(dtype)  # type: ignore[arg-type]
        out.append(Compute(made, name, args))
        return made

    lanes = Literal(_LANES, i64)
    count = compute("subtract", loop.stop, loop.start)
    few = compute("less", count, lanes, dtype=bool_)
    before, out = out, []
    last = compute("subtract", loop.stop, lanes)
    rounded = compute("add", count, Literal(_LANES - 1, i64))
    blocks = compute("right_shift", rounded, Literal(_LOG2_LANES, i64))
    front, out = out, []
    number = Local(i64)
    offset = compute("left_shift", number, Literal(_LOG2_LANES, i64))
    first = compute("minimum", last, compute("add", loop.start, offset))
    stop = compute("add", first, lanes)
    failing = Local(bool_, variable=True)
    kept = {
        s: LocalArray(s.value.dtype, _LANES) for s in loop.body if isinstance(s, Store)
    }
    out += [Assign(failing, Literal(False, bool_)), *_noted(loop, first, kept, failing)]
    index = Local(i64)
    one_by_one = replace(
        loop, index=index, start=first, stop=stop, program=False, bounded=True,
        body=Copy({loop.index: index}, set()).body(loop.body),
    )
    out.append(If(failing, (one_by_one,), tuple(_stored(loop, first, kept)), unlikely=True))
    over = replace(loop, index=number, start=_ZERO, stop=blocks, body=tuple(out))
    yield from before
    yield If(few, (loop,), (*front, over))


def _lane(loop: For, first: Operand, body: Sequence[Statement], names: Copy, lane: Local) -> For:
    """A loop over the lanes of a block."""
    sizes = [s.out.dtype.size for s in statements(loop.body) if isinstance(s, (Compute, Load))]
    index = names.operand(loop.index)
    begin = Compute(index, "add", (first, lane))  # type: ignore[arg-type]
    return For(lane, _ZERO, Literal(_LANES, i64), (begin, *body), lanes=max(sizes, default=1))


def _noted(
    loop: For, first: Operand, kept: dict[Store, LocalArray], failing: Local
) -> Iterator[Statement]:
    """The rounds of a block, which keep what they store and note whether a check fails."""
    lane, here = Local(i64), Local(bool_, variable=True)
    checks = any(isinstance(s, Fail) for s in statements(loop.body))
    copy = Copy({loop.index: Local(i64)}, set())

    def noted(body: Iterable[Statement]) -> Iterator[Statement]:
        for s in body:
            match s:
                case Fail(cond=cond):
                    either = Local(bool_)
                    yield Compute(either, "logical_or", (here, cond))
                    yield Assign(here, either)
                case Store(value=value):
                    yield Store(kept[s], lane, value, True)
                case Compute(primitive=name) if name.endswith("_overflows"):
                    yield from _overflowing(s)
                case Compute(out=out, primitive="cast", args=(a,)) if (
                    checks and out.dtype.kind in "iu" and a.dtype.kind == "f"
                ):
                    harmless = Local(a.dtype)
                    yield Compute(harmless, "where", (here, Literal(0.0, a.dtype), a))
                    yield Compute(out, "cast", (harmless,))
                case _:
                    yield replace_bodies(s, lambda inner: tuple(noted(inner)))

    either = Local(bool_)
    body = (
        Assign(here, Literal(False, bool_)), *noted(with_float_limits(loop.body)),
        Compute(either, "logical_or", (failing, here)), Assign(failing, either),
    )
    copied = copy.body(body)
    yield _lane(loop, first, copied, copy, lane)


def _overflowing(s: Compute) -> Iterator[Statement]:
    """Whether a sum or a difference overflows, or a product may, as vectors can tell."""
    a, b = s.args
    if s.primitive not in _SUMS:
        factor = _factor(s)
        reach = _HALF if factor is None else _GREATEST // factor
        far = []
        for each in s.args:
            if isinstance(each, Local):
                moved, outside = Local(i64), Local(bool_)
                yield Compute(moved, "add", (each, Literal(reach, i64)))
                yield Compute(outside, "outside", (moved, Literal(2 * reach + 1, i64)))
                far.append(outside)
        yield Compute(s.out, "logical_or", (far[0], far[-1]))
        return
    total, first, second, both = (Local(i64) for _ in range(4))
    yield Compute(total, _SUMS[s.primitive], (a, b))
    yield Compute(first, "bitwise_xor", (a, total))
    yield Compute(
        second, "bitwise_xor", (b, total) if s.primitive == "add_overflows" else (a, b)
    )
    yield Compute(both, "bitwise_and", (first, second))
    yield Compute(s.out, "less", (both, _ZERO))


def _stored(loop: For, first: Operand, kept: dict[Store, LocalArray]) -> Iterator[Statement]:
    """Stores what the rounds of a block have kept."""
    needed = _made_of([s.index for s in kept], loop.body)
    lane = Local(i64)
    copy = Copy({loop.index: Local(i64)}, set())
    body: list[Statement] = [
        s for s in loop.body
        if (isinstance(s, Compute) and s.out in needed) or (isinstance(s, Read) and s.out in needed)
    ]
    for store, array in kept.items():
        value = Local(array.dtype)
        body += [Load(value, array, lane, True), replace(store, value=value)]
    copied = copy.body(tuple(body))
    yield _lane(loop, first, copied, copy, lane)
