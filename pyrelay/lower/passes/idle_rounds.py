"""Rounds that change nothing are skipped by blocks: loops for the greatest, and where it is.

In: a kernel of a program's loops, for the CPU. Out: its body, in which

    for i in range(n):              for each block of rounds:
        if x[i] > most:                 if any lane has x[i] > most:
            most = x[i]      as             for i in the block:
            at = i                              if x[i] > most: most = x[i]; at = i

What a round compares with, it has from the round before: the chain is as long as the loop, though
of n numbers in any order only about log n are greater than all before them. As long as none is,
nothing changes, so that comparisons of a whole block with what stands in front of it are those of
its rounds one by one. They are vectors; a block in which one is true is done as before.

A round is looked at as its paths through branches. On one of them it leaves all variables that
rounds hand on as they were; each condition on the way compares one of these with a number that it
is set to if the condition is decided the other way, which therefore is seldom: a condition of the
data alone may be true in every other round. Blocks are whole: what is left goes on one by one, and
so do loops of few rounds, whose first ones are the greatest so far more often.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
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
    has_loops,
    operands,
    renamed,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.copies import Copy
from pyrelay.lower.passes.distinct_places import Integers, strides
from pyrelay.records import dataclass

_BYTES = 128  # of the lanes of a block
_FEWEST = 256  # rounds
_MOST_PATHS, _MOST_COMPUTED = 8, 12
_ORDER = frozenset(["less", "less_equal", "greater", "greater_equal"])
_SIDE_BY_SIDE = _ORDER | frozenset([
    "add", "subtract", "multiply", "negative", "absolute", "cast", "minimum", "maximum",
    "bitwise_and", "bitwise_or", "bitwise_xor", "square", "logical_not",
])  # fmt: skip
_ZERO = Literal(0, i64)


@dataclass(slots=True)
class _Path:
    """One way through a round: what is computed on it, the conditions and how they are decided, and
    what variables are at its end. It does nothing else if it is `pure`."""

    computed: list[Compute | Load] = field(default_factory=list)
    conditions: list[tuple[Operand, bool]] = field(default_factory=list)
    values: dict[Operand, Operand] = field(default_factory=dict)
    pure: bool = True

    def copy(self) -> _Path:
        """The same up to here."""
        return _Path([*self.computed], [*self.conditions], {**self.values}, self.pure)


def without_idle_rounds(kernel: Kernel) -> Body:
    """The body of a kernel whose loops skip blocks of rounds that change nothing."""
    if not kernel.apart:
        return kernel.body
    if not any(isinstance(s, For) and _is_candidate(s) for s in statements(kernel.body)):
        return kernel.body
    return tuple(_walked(kernel.body, Integers(), _read(kernel.body)))


def _is_candidate(loop: For) -> bool:
    few = isinstance(loop.start, Literal) and isinstance(loop.stop, Literal)
    return (
        loop.program and not few and loop.rescaled is None and not has_loops(loop.body)
        and any(isinstance(s, If) for s in loop.body)
        and any(isinstance(s, Load) for s in loop.body)
    )


def _read(body: Body) -> Counter[Operand]:
    return Counter(o for s in statements(body) for o in operands(s))


def _walked(body: Body, integers: Integers, uses: Counter[Operand]) -> Iterator[Statement]:
    for statement in body:
        integers.note(statement)
        if isinstance(statement, For):
            path = _idle(statement, integers, uses) if _is_candidate(statement) else None
            if path is not None:
                yield from _blocks(statement, path)
                continue
            inside = Integers(integers)
            inside.enter(statement)
            yield replace(statement, body=tuple(_walked(statement.body, inside, uses)))
        else:
            yield replace_bodies(statement, lambda b: tuple(_walked(b, Integers(integers), uses)))


# -- what does nothing -----------------------------------------------------------------------------


def _idle(loop: For, around: Integers, uses: Counter[Operand]) -> _Path | None:
    """The path of rounds that change nothing, if it is seldom left."""
    changed = {s.variable for s in statements(loop.body) if isinstance(s, Assign)}
    outside = uses - _read(loop.body)
    carried = {v for v in changed if outside[v]} | _read_first(loop.body, changed)
    paths: list[_Path] = []
    if not carried or not _follow(loop.body, _Path(), paths):
        return None
    idle = [
        p for p in paths if p.pure and all(p.values.get(v, v) is v for v in carried)
    ]  # fmt: skip
    if len(idle) != 1 or not idle[0].conditions:
        return None
    (path,) = idle
    asked = len(path.conditions)
    if len(carried) == asked and len(paths) == 2**asked and all(v.dtype == i64 for v in carried):
        return None  # extremes of integers that LLVM makes vectors of
    if not all(_is_extreme(path, number, paths, carried) for number in range(len(path.conditions))):
        return None
    if len(path.computed) > _MOST_COMPUTED or not all(map(_fits, path.computed)):
        return None
    found = strides(loop, len(loop.body), around)
    loads = [s for s in statements(loop.body) if isinstance(s, Load)]
    steps = [found[s] for s in loads if any(s.out is c.out for c in path.computed)]
    return path if 1 in steps and all(step in (0, 1) for step in steps) else None


def _read_first(body: Body, changed: set[Local]) -> set[Local]:
    """Variables that a round may read before it has set them."""
    found: set[Local] = set()

    def visit(part: Body, done: set[Local]) -> set[Local]:
        for s in part:
            found.update(o for o in operands(s) if o in changed and o not in done)
            if isinstance(s, Assign):
                done = done | {s.variable}
            elif isinstance(s, If):
                done = visit(s.then, done) & visit(s.orelse, done)
        return done

    visit(body, set())
    return found


def _follow(body: Body, path: _Path, paths: list[_Path]) -> bool:
    """Follows all paths through statements; False if there are too many."""
    for number, statement in enumerate(body):
        s = renamed(statement, path.values)
        match s:
            case Load() if path.conditions or isinstance(s.array, Pointed):
                path.pure = False
                path.computed.append(s)
            case Compute() | Load():
                path.computed.append(s)
            case Assign(variable=variable, value=value):
                path.values[variable] = value
            case If(cond=cond):
                if len(paths) >= _MOST_PATHS:
                    return False
                ways: tuple[bool, ...] = (True, False)
                if isinstance(cond, Literal):
                    ways = (bool(cond.value),)
                for way in ways:
                    taken = path.copy()
                    if not isinstance(cond, Literal):
                        taken.conditions.append((cond, way))
                    arm = statement.then if way else statement.orelse  # type: ignore[union-attr]
                    if not _follow((*arm, *body[number + 1 :]), taken, paths):
                        return False
                return True
            case _:
                path.pure = False
    paths.append(path)
    return len(paths) <= _MOST_PATHS


def _is_extreme(path: _Path, number: int, paths: list[_Path], carried: set[Local]) -> bool:
    """Whether a condition compares what rounds hand on with what it is set to if the condition is
    decided the other way."""
    cond, truth = path.conditions[number]
    maker = next((s for s in path.computed if s.out is cond), None)
    if not isinstance(maker, Compute) or maker.primitive not in _ORDER:
        return False
    others = [
        p for p in paths
        if p.conditions[: number + 1] == [*path.conditions[:number], (cond, not truth)]
    ]  # fmt: skip
    return any(
        a in carried and all(p.values.get(a, a) is b for p in others)
        for a, b in (maker.args, maker.args[::-1])
    )


def _fits(s: Compute | Load) -> bool:
    dtype = s.out.dtype
    if isinstance(s, Compute) and s.primitive not in _SIDE_BY_SIDE:
        return False
    return dtype == bool_ or (dtype.kind in "iuf" and dtype.size in (4, 8))


# -- blocks ----------------------------------------------------------------------------------------


def _blocks(loop: For, path: _Path) -> Iterator[Statement]:
    """The loop by blocks, if it has rounds enough."""
    compared = {cond for cond, _ in path.conditions}
    size = max(  # of what is loaded and compared: places are none of the lanes' numbers
        s.out.dtype.size if isinstance(s, Load) else s.args[0].dtype.size
        for s in path.computed if isinstance(s, Load) or s.out in compared
    )
    lanes = _BYTES // size
    out: list[Statement] = []

    def compute(name: str, *args: Operand, dtype: object = i64) -> Local:
        made = Local(dtype)  # type: ignore[arg-type]
        out.append(Compute(made, name, args))
        return made

    def literal(value: int) -> Literal:
        return Literal(value, i64)

    shift = literal(lanes.bit_length() - 1)
    count = compute("subtract", loop.stop, loop.start)
    few = compute("less", count, literal(_FEWEST), dtype=bool_)
    before, out = out, []
    whole = compute("right_shift", count, shift)
    middle = compute("add", loop.start, compute("left_shift", whole, shift))
    front, out = out, []

    number = Local(i64)
    first = compute("add", loop.start, compute("left_shift", number, shift))
    stop = compute("add", first, literal(lanes))
    found = Local(bool_, variable=True)
    out += [Assign(found, Literal(False, bool_)), _look(loop, path, first, found, lanes, size)]
    out.append(If(found, (_rounds(loop, first, stop),), unlikely=True))
    over = replace(loop, index=number, start=_ZERO, stop=whole, body=tuple(out))
    yield from (*before, If(few, (loop,), (*front, over, _rounds(loop, middle, loop.stop))))


def _look(loop: For, path: _Path, first: Local, found: Local, lanes: int, size: int) -> For:
    """Whether a round of a block is on another path."""
    lane, index = Local(i64), Local(i64)
    copy = Copy({loop.index: index}, set())
    out: list[Statement] = [Compute(index, "add", (first, lane)), *copy.body(tuple(path.computed))]
    leaves: Operand = found
    for cond, truth in path.conditions:
        here = copy.operand(cond)
        if truth:
            out.append(Compute(here := Local(bool_), "logical_not", (copy.operand(cond),)))
        out.append(Compute(either := Local(bool_), "logical_or", (leaves, here)))
        leaves = either
    out.append(Assign(found, leaves))
    return For(lane, _ZERO, Literal(lanes, i64), tuple(out), lanes=size)


def _rounds(loop: For, start: Operand, stop: Operand) -> For:
    """Rounds of the loop, one by one."""
    rounds = replace(loop, start=start, stop=stop, program=False, bounded=True)
    (copy,) = Copy({}, set()).body((rounds,))
    assert isinstance(copy, For)
    return copy
