"""Integers that are made of bytes are computed in 32 bits, where that is known to be enough.

In: the body of a scalar kernel. Out: the same, in which

    gx * gx           is  int64(int32(gx) * int32(gx))
    float(n)          is  float(int32(n))
    n == 3            is  int32(n) == 3

where `gx` and `n` are computed of elements of at most 16 bits, and lie between numbers of 32 bits
as the result does. LLVM finds sums and what is stored to need few bits by itself, but has no bounds
of products, and a vector of 64-bit integers is as many registers as it has bytes for one of bytes.
What places in memory are made of stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrelay.ir.types import i32, i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    Literal,
    Load,
    Local,
    Operand,
    Store,
    statements,
)
from pyrelay.lower.passes.implied import walked
from pyrelay.lower.passes.intervals import Intervals

_SHORT = 2  # bytes of elements
_COMPARED = frozenset(["equal", "not_equal"])


def with_short_integers(body: Body) -> Body:
    """The body with such integers."""
    short = _made_of_short_elements(body)
    if not short:
        return body

    def rule(s: Compute, known: Intervals) -> Sequence[Compute]:
        return _shortened(s, known) if _is_wide(s) and short.intersection(s.args) else (s,)

    return walked(body, rule) if any(
        isinstance(s, Compute) and _is_wide(s) and short.intersection(s.args)
        for s in statements(body)
    ) else body


def _is_wide(s: Compute) -> bool:
    """Whether a value is computed of integers of 64 bits by what may be done in 32."""
    if any(a.dtype != i64 for a in s.args):
        return False
    if s.primitive == "cast":
        return s.out.dtype.kind == "f"
    return (s.primitive == "multiply" and s.out.dtype == i64) or s.primitive in _COMPARED


def _shortened(s: Compute, known: Intervals) -> Sequence[Compute]:
    """The same in 32 bits, if all integers have so many."""
    found = [known.of(a) for a in s.args]
    if s.primitive == "multiply":
        found.append(known.of_result(s))
    if any(each.low < -(2**31) or each.high >= 2**31 for each in found):
        return (s,)
    out: list[Compute] = []
    args: list[Operand] = []
    for a in s.args:
        if isinstance(a, Literal):
            args.append(Literal(a.value, i32))
        else:
            few = Local(i32)
            out.append(Compute(few, "cast", (a,)))
            args.append(few)
    if s.primitive != "multiply":
        return (*out, Compute(s.out, s.primitive, tuple(args)))
    few = Local(i32)
    return (*out, Compute(few, "multiply", tuple(args)), Compute(s.out, "cast", (few,)))


def _made_of_short_elements(body: Body) -> set[Operand]:
    """Integers of 64 bits that are computed of short elements, and that no place is made of."""
    makers: dict[Operand, list[Operand]] = {}
    short: set[Operand] = set()
    placed: list[Operand] = []
    for s in statements(body):
        match s:
            case Compute(out=out, args=args):
                makers.setdefault(out, []).extend(args)
            case Assign(variable=variable, value=value):
                makers.setdefault(variable, []).append(value)
            case Load(out=out, index=index):
                placed.append(index)
                if out.dtype.kind in "iu" and out.dtype.size <= _SHORT:
                    short.add(out)
            case Store(index=index):
                placed.append(index)
    if not short:
        return short
    readers: dict[Operand, list[Operand]] = {}
    for made, operands in makers.items():
        for a in operands:
            readers.setdefault(a, []).append(made)
    return _reached(short, readers) - _reached(placed, makers)


def _reached(start: Iterable[Operand], steps: dict[Operand, list[Operand]]) -> set[Operand]:
    found: set[Operand] = set()
    waiting = list(start)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += steps.get(each, ())
    return found
