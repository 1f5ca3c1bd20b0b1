"""Overflow checks of counters leave: nobody counts to 2^63 one by one.

In: the body of a scalar kernel. Out: the same without the checks of sums that cannot leave 64 bits
in the time that a program has.

A counter is a variable that starts from small numbers and from other counters, and to which each
statement adds what is certainly small, as `k += 1` and `n += x & 1` in whatever loops and branches.
Then none is ever further from zero than where it started plus the greatest such step for each sum
that has been computed: with steps of at most 255, 2^61 is three weeks away at a sum in every cycle
of the clock.
"""

from __future__ import annotations

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Call,
    Compute,
    Fail,
    For,
    Literal,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    bodies,
    replace_bodies,
    statements,
)

_GREATEST_STEP = 255
_GREATEST_START = 1 << 61
_DEEPEST = 4  # from what is asked of to what tells
_STEPS = frozenset(["add", "subtract"])
_CHOICES = frozenset(["minimum", "maximum"])
_CHECKS = frozenset(["add_overflows", "subtract_overflows"])


def without_counter_checks(body: Body) -> Body:
    """The body without checks that a counter has left 64 bits."""
    checks = [s for s in statements(body) if isinstance(s, Compute) and s.primitive in _CHECKS]
    if not checks:
        return body
    small = _Small(body)
    found = _counters(body, small)
    never: set[Operand] = {
        s.out for s in checks
        if s.args[0].dtype == i64
        and _is_step(s.primitive.removesuffix("_overflows"), s, found, small)
    }
    return _without(body, never) if never else body


def counters(body: Body) -> set[Local]:
    """The greatest set of integers that are only made of small numbers, each other and steps: none
    is ever far from zero."""
    return _counters(body, _Small(body))


class _Small:
    """Which integers are certainly no further from zero than a step may be."""

    def __init__(self, body: Body) -> None:
        self._makers: dict[Operand, Compute] = {}
        self._values: dict[Operand, list[Operand]] = {}
        for s in statements(body):
            match s:
                case Compute(out=out):
                    self._makers[out] = s
                case Assign(variable=variable, value=value):
                    self._values.setdefault(variable, []).append(value)

    def __contains__(self, operand: Operand) -> bool:
        return self._is_small(operand, _DEEPEST)

    def _is_small(self, operand: Operand, depth: int) -> bool:
        if isinstance(operand, Literal):
            return operand.dtype.kind in "iu" and abs(operand.value) <= _GREATEST_STEP
        if operand.dtype.kind == "b" or (operand.dtype.kind in "iu" and operand.dtype.size == 1):
            return True
        if depth == 0:
            return False
        if operand.variable:
            values = self._values.get(operand, [])
            return bool(values) and all(self._is_small(v, depth - 1) for v in values)
        match self._makers.get(operand):
            case Compute(primitive="cast" | "absolute" | "negative", args=(a,)):
                return a.dtype.kind in "iub" and self._is_small(a, depth - 1)
            case Compute(primitive="bitwise_and", args=args):
                return any(isinstance(a, Literal) and a.value >= 0 and a in self for a in args)
            case Compute(primitive="remainder", args=(_, Literal() as by)):
                return by.dtype.kind in "iu" and abs(by.value) <= _GREATEST_STEP
            case Compute(primitive="where", args=(_, *args)):
                return all(self._is_small(a, depth - 1) for a in args)
            case Compute(primitive="minimum" | "maximum", args=args):
                return all(self._is_small(a, depth - 1) for a in args)
        return False


def _counters(body: Body, small: _Small) -> set[Local]:
    sources: dict[Local, list[tuple[Operand, ...] | None]] = {}  # None: made of something else

    def note(out: Local, made: tuple[Operand, ...] | None) -> None:
        if out.dtype == i64:
            sources.setdefault(out, []).append(made)

    for s in statements(body):
        match s:
            case Assign(variable=variable, value=value):
                note(variable, (value,))
            case For(index=index, start=start):
                note(index, (start,))
            case Compute(out=out, primitive="where", args=(_, a, b)):
                note(out, (a, b))
            case Compute(out=out, primitive=name, args=args) if name in _CHOICES:
                note(out, args)
            case Compute(out=out, primitive=name, args=(a, b)) if name in _STEPS:
                if b in small:
                    note(out, (a,))
                else:
                    note(out, (b,) if a in small and name == "add" else None)
            case Compute(out=out) if out in small:
                note(out, ())
            case Compute(out=out) | Load(out=out) | Read(out=out):
                note(out, None)
            case Call(outs=outs):
                for out in outs:
                    note(out, None)
    users: dict[Local, list[Local]] = {}
    for out, ways in sources.items():
        for source in (operand for way in ways for operand in way or ()):
            if isinstance(source, Local):
                users.setdefault(source, []).append(out)
    found = set(sources)
    dropped = [
        out for out, ways in sources.items()
        if not all(way is not None and all(map(_may_start, way)) for way in ways)
    ]
    dropped += [local for local in users if local not in sources]
    while dropped:
        out = dropped.pop()
        found.discard(out)
        dropped += [user for user in users.get(out, ()) if user in found]
    return found


def _may_start(operand: Operand) -> bool:
    return isinstance(operand, Local) or abs(operand.value) <= _GREATEST_START


def _is_step(name: str, compute: Compute, counters: set[Local], small: _Small) -> bool:
    """Whether a sum adds a small number to a counter."""
    a, b = compute.args
    if a in counters and b in small:
        return True
    return name == "add" and b in counters and a in small


def _without(body: Body, never: set[Operand]) -> Body:
    kept: list[Statement] = []
    for s in body:
        if isinstance(s, Fail) and s.cond in never:
            continue
        kept.append(replace_bodies(s, lambda b: _without(b, never)) if bodies(s) else s)
    return tuple(kept)
