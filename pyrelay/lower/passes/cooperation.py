"""Which loops of a kernel the threads of a GPU's block share.

In: a kernel. Out: a `Cooperation`, or None where a thread does better alone: the loops whose rounds
are dealt out to the threads, and for each the variables in which every thread has a part of a
reduction when it ends.

Then one block does an item of the parallel axis: a row of a softmax, a chunk of a sum. All threads
run what stands between such loops, on the same values. A loop may be shared if its rounds touch
nothing of each other's but variables that are reduced, `v = op(v, x)` with an `op` whose order is
free, so that neighbouring threads read neighbouring elements. A sum that a loop around a shared one
adds up from the sums of chunks is combined once, after that loop: until then each thread adds up
what it has of each chunk. Which thread takes which round, and
in which order parts are combined, is fixed: results are the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyrelay.ir.types import DType
from pyrelay.lower.kernels.kernel import (
    ROW,
    Array,
    Assign,
    Body,
    Break,
    Call,
    Compute,
    Fail,
    For,
    Kernel,
    Literal,
    Load,
    Local,
    LocalArray,
    Operand,
    Parameter,
    Read,
    Statement,
    Store,
    While,
    bodies,
    operands,
    statements,
)
from pyrelay.records import dataclass

BLOCK_THREADS = 128

_SHORTEST = 32  # rounds of a loop of known length that are worth sharing
_FREE_ORDER = {
    "add_reassociated": "add", "multiply_reassociated": "multiply", "minimum": "minimum",
    "maximum": "maximum", "logical_or": "logical_or", "logical_and": "logical_and",
}  # fmt: skip
_FREE_FOR_INTEGERS = {"add": "add", "multiply": "multiply"}


@dataclass(frozen=True, slots=True)
class Part:
    """A variable of which each thread has a part: combine them with `primitive`, whose reduction
    is called `op` in `reductions.identity`. It may be `relative` to another one
    (`Rescaled`), and one of its counts."""

    variable: Local
    primitive: str
    op: str
    relative: Local | None = None
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Cooperation:
    """The loops that are shared, with what is to be combined after each; the arrays that all
    threads read between such loops; loops around them, which all threads go through, after which
    sums are combined that they have parts of; and those of the first that stand alone in one of the
    latter, so that threads need not meet after them. `column`: the loop over the elements of an
    item where threads never need to meet, so that a block may do several short items at once."""

    loops: dict[For, tuple[Part, ...]]
    read_by_all: frozenset[Array]
    around: dict[For, tuple[Part, ...]]
    met_around: frozenset[For]
    column: For | None = None


def cooperation(kernel: Kernel) -> Cooperation | None:
    """How the threads of a block share the items of a kernel, None if they should not.

    A thread that fails in a shared loop would leave the others waiting, elsewhere all fail alike;
    arrays of a thread are its own, and loops of unknown length are nobody's: kernels with those are
    left alone.
    """
    if kernel.routines or any(map(_forbids, statements(kernel.body))):
        return None
    stored = {s.array for s in statements(kernel.body) if isinstance(s, Store)}
    users: dict[Local, set[int]] = {}
    for statement in statements(kernel.body):
        for local in _touched(statement):
            users.setdefault(local, set()).add(id(statement))
    found: dict[For, tuple[Part, ...]] = {}
    _find(kernel.body, kernel, stored, users, found)
    dealt_out = {id(s) for loop in found for s in statements(loop.body)}
    by_all = frozenset(
        s.array for s in statements(kernel.body)
        if isinstance(s, Load) and id(s) not in dealt_out
    )
    if not found:
        return None
    around: dict[For, tuple[Part, ...]] = {}
    for loop in statements(kernel.body):
        if isinstance(loop, For) and loop not in found and loop.stop is not kernel.end:
            parts = _rescaled(loop) or _of_chunks(loop, found, users)
            if parts:
                around[loop] = parts
    alone = (
        inner for loop in around for inner in loop.body if isinstance(inner, For)
        if sum(isinstance(s, For) for s in statements(loop.body)) == 1
    )
    column = None if by_all & stored else _column(kernel, found)
    return Cooperation(found, by_all, around, frozenset(alone), column)


def _column(kernel: Kernel, found: dict[For, tuple[Part, ...]]) -> For | None:
    """The loop over the elements of an item, if an item is nothing else, and its length is known
    before."""
    *before, loop = kernel.body
    if not isinstance(loop, For) or loop.stop is not kernel.end or len(found) != 1:
        return None
    *first, column = loop.body
    if not isinstance(column, For) or found.get(column) != ():
        return None
    if not all(isinstance(s, (Compute, Read)) for s in before):
        return None
    if not all(isinstance(s, (Compute, Load)) for s in first):
        return None
    known = isinstance(column.stop, Literal) or any(
        s.out is column.stop for s in before if isinstance(s, (Compute, Read))
    )
    begins = isinstance(column.start, Literal) and column.start.value == 0
    return column if known and begins else None


def _rescaled(loop: For) -> tuple[Part, ...]:
    """The maximum and the sums relative to it of a loop that makes both in one pass."""
    if loop.rescaled is None:
        return ()
    found = loop.rescaled
    parts = [Part(found.largest, "maximum", "maximum")]
    parts += [Part(each, "add", "add", found.largest) for each in found.sums]
    parts += [Part(each, "add", "add", found.largest, True) for each in found.counts]
    for variable, primitive in found.others:
        op = free_order(primitive, variable.dtype)
        assert op is not None
        parts.append(Part(variable, primitive, op))
    return tuple(parts)


def _of_chunks(
    loop: For, found: dict[For, tuple[Part, ...]], users: dict[Local, set[int]]
) -> tuple[Part, ...]:
    """The sums that a loop adds up from those of shared loops in it, which then have no parts that
    are combined."""
    made: list[Part] = []
    for inner in loop.body:
        if not isinstance(inner, For) or inner not in found:
            continue
        for part in found[inner]:
            total = _total(part, inner, loop, users)
            if total is not None:
                made.append(total)
                found[inner] = tuple(p for p in found[inner] if p is not part)
    return tuple(made)


def _total(part: Part, inner: For, loop: For, users: dict[Local, set[int]]) -> Part | None:
    """What a loop adds a sum of its chunks to, which is set to nothing before each chunk: each
    thread may do so with its own part."""
    chunk = part.variable
    inside = {id(s) for s in statements(inner.body)}
    place = loop.body.index(inner)
    begins = [s for s in loop.body[:place] if isinstance(s, Assign) and s.variable is chunk]
    if part.op != "add" or len(begins) != 1 or chunk.dtype.kind not in "iuf":
        return None
    if not isinstance(begins[0].value, Literal) or begins[0].value.value != 0:
        return None
    reads = {id(begins[0])}
    value: Local = chunk
    for step in loop.body[place + 1 :]:
        if isinstance(step, Compute) and step.primitive == "cast" and step.args == (value,):
            reads.add(id(step))
            value = step.out
        elif isinstance(step, Compute) and value in step.args:
            break
    else:
        return None
    reads.add(id(step))
    assert isinstance(step, Compute)
    if step.primitive not in ("add", "add_reassociated") or len(step.args) != 2:
        return None
    total = next((a for a in step.args if a is not value), None)
    if not isinstance(total, Local) or not total.variable or total.dtype.kind != chunk.dtype.kind:
        return None
    sets = {
        id(s) for s in loop.body
        if isinstance(s, Assign) and s.variable is total and s.value is step.out
    }
    within = {id(s) for s in statements(loop.body)}
    alone = users[chunk] <= inside | reads and users[step.out] <= {id(step), *sets}
    alone = alone and (value is chunk or users[value] <= reads)
    if not alone or len(sets) != 1 or users[total] & within != {id(step), *sets}:
        return None
    return Part(total, step.primitive, "add")


def _forbids(statement: Statement) -> bool:
    if isinstance(statement, For):
        return statement.program
    if isinstance(statement, (Load, Store)) and isinstance(statement.array, LocalArray):
        return True
    return isinstance(statement, (Break, Call, While))


def _touched(statement: Statement) -> Iterable[Local]:
    """The scalars that a statement itself reads, computes or sets."""
    yield from (o for o in operands(statement) if isinstance(o, Local))
    match statement:
        case Compute(out=out) | Load(out=out):
            yield out
        case Assign(variable=variable):
            yield variable


def _find(
    body: Body, kernel: Kernel, stored: set[Array], users: dict[Local, set[int]],
    found: dict[For, tuple[Part, ...]],
) -> bool:
    """Notes the shared loops of a body, innermost ones first; True if there are any."""
    any_found = False
    for statement in body:
        inside = False
        if isinstance(statement, For) and statement.rescaled is not None:
            found.update({s: () for s in statement.body if isinstance(s, For)})
            any_found = True
            continue
        for inner in bodies(statement):
            inside = _find(inner, kernel, stored, users, found) or inside
        if not inside and isinstance(statement, For) and statement.stop is not kernel.end:
            parts = _parts(statement, stored, users)
            if parts is not None:
                found[statement] = parts
                inside = True
        any_found = any_found or inside
    return any_found


def _parts(
    loop: For, stored: set[Array], users: dict[Local, set[int]]
) -> tuple[Part, ...] | None:
    """What is to be combined after the loop if it is shared, None if it may not be."""
    rounds = _rounds(loop)
    if rounds is not None and rounds < _SHORTEST:
        return None
    inside = list(statements(loop.body))
    if any(isinstance(s, Fail) for s in inside):
        return None
    nested = any(isinstance(s, For) for s in inside)
    for statement in inside:
        if isinstance(statement, (Load, Store)) and statement.array in stored:
            own = isinstance(statement.array, Parameter) and statement.array.role == ROW
            if not statement.parallel or (own and nested):
                return None
    here = {id(s) for s in inside}
    makers = {s.out: s for s in inside if isinstance(s, (Compute, Load))}
    if any(not users[out] <= here for out in makers):
        return None
    parts = []
    for variable in dict.fromkeys(s.variable for s in inside if isinstance(s, Assign)):
        if users[variable] <= here:
            continue  # each round has its own
        part = _part(variable, inside, makers, users)
        if part is None:
            return None
        parts.append(part)
    return tuple(parts)


def _part(
    variable: Local, inside: list[Statement], makers: dict[Local, Compute | Load],
    users: dict[Local, set[int]],
) -> Part | None:
    """The variable as a reduction: read in one place, to be combined with something and set."""
    sets = [s for s in inside if isinstance(s, Assign) and s.variable is variable]
    reads = [s for s in inside if variable in operands(s)]
    if len(sets) != 1 or len(reads) != 1:
        return None
    value: Operand = sets[0].value
    step = makers.get(value) if isinstance(value, Local) else None
    if not isinstance(step, Compute) or step is not reads[0] or len(users[step.out]) != 2:
        return None
    op = free_order(step.primitive, variable.dtype)
    if op is None or step.args.count(variable) != 1 or step.out.dtype != variable.dtype:
        return None
    return Part(variable, step.primitive, op)


def free_order(primitive: str, dtype: DType) -> str | None:
    """What a primitive is called as a reduction whose order is free; None for another one."""
    op = _FREE_ORDER.get(primitive)
    return _FREE_FOR_INTEGERS.get(primitive) if op is None and dtype.kind in "iu" else op


def _rounds(loop: For) -> int | None:
    if isinstance(loop.start, Literal) and isinstance(loop.stop, Literal):
        return int(loop.stop.value) - int(loop.start.value)
    return None
