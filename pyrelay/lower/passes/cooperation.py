"""Which loops of a kernel the threads of a GPU's block share.

In: a kernel. Out: a `Cooperation`, or None where a thread does better alone: the loops whose rounds
are dealt out to the threads, and for each the variables in which every thread has a part of a
reduction when it ends.

Then one block does an item of the parallel axis: a row of a softmax, a chunk of a sum. All threads
run what stands between such loops, on the same values. A loop may be shared if its rounds touch
nothing of each other's but variables that are reduced, `v = op(v, x)` with an `op` whose order is
free, so that neighbouring threads read neighbouring elements. Which thread takes which round, and
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
    is called `op` in `reductions.identity`."""

    variable: Local
    primitive: str
    op: str


@dataclass(frozen=True, slots=True)
class Cooperation:
    """The loops that are shared, with what is to be combined after each; and the arrays that all
    threads read between such loops."""

    loops: dict[For, tuple[Part, ...]]
    read_by_all: frozenset[Array]


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
    return Cooperation(found, by_all) if found else None


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
