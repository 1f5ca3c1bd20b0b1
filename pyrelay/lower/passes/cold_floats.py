"""Checks of a float that seldom fail stand in one unlikely branch.

In: the body of a kernel. Out: the same, in which neighbouring checks of one float, as those of
`sqrt(x)` or `int(x)` for NaN, infinities and range, stand under the one condition that holds if any
of them does. That of an `int` is its result: a float that no int64 holds becomes the least one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Body,
    Compute,
    Fail,
    If,
    Literal,
    Local,
    Operand,
    Statement,
    replace_bodies,
    statements,
)

LOST = Literal(-(2**63), i64)
"""What `truncated` makes of a float that no int64 holds."""

_BOTH = frozenset(["logical_and", "bitwise_and"])
_Makers: TypeAlias = Mapping[Local, Compute]


def with_cold_floats(body: Body) -> Body:
    """The body with neighbouring checks of one float in one branch."""
    makers = {s.out: s for s in statements(body) if isinstance(s, Compute)}
    return _gathered(body, makers)


def _gathered(body: Body, makers: _Makers) -> Body:
    out: list[Statement] = []
    place = 0
    while place < len(body):
        x, end = _neighbours(body, place, makers)
        part = body[place:end]
        if x is not None and _is_long([s for s in part if isinstance(s, Fail)], makers):
            out += [s for s in part if not isinstance(s, Fail)]
            checks = [s for s in part if isinstance(s, Fail)]
            cast = _cast(body, end, x)
            if cast is None or not _are_of_int(checks, makers):
                out += _guarded(x, checks, makers)
                place = end
            else:
                out += [*body[end:cast], *_truncated(x, body[cast].out, checks, makers)]  # type: ignore[union-attr]
                place = cast + 1
        else:
            out.append(replace_bodies(body[place], lambda inner: _gathered(inner, makers)))
            place += 1
    return tuple(out)


def _is_long(checks: Sequence[Fail], makers: _Makers) -> bool:
    """Whether checks ask more than one question."""
    return len(checks) > 1 or makers[checks[0].cond].primitive in _BOTH  # type: ignore[index]


def _neighbours(body: Body, place: int, makers: _Makers) -> tuple[Local | None, int]:
    """The float that a check looks at, and the end of its checks from there on.

    Between them stand computations that no assignment changes.
    """
    first = body[place]
    x = _float_checked(first.cond, makers) if isinstance(first, Fail) else None
    end = place + 1
    for number in range(end, len(body) if x is not None else 0):
        match body[number]:
            case Fail(cond=cond) if _float_checked(cond, makers) is x:
                end = number + 1
            case Compute(args=args) if not any(isinstance(a, Local) and a.variable for a in args):
                pass
            case _:
                break
    return x, end


def _maker(operand: Operand, makers: _Makers) -> Compute | None:
    return makers.get(operand) if isinstance(operand, Local) else None


def _float_checked(cond: Operand, makers: _Makers) -> Local | None:
    """The float that is NaN, infinite or out of a range if a condition holds."""
    maker = _maker(cond, makers)
    if maker is None:
        return None
    parts = [_maker(a, makers) for a in maker.args] if maker.primitive in _BOTH else [maker]
    for part in parts:
        if part is not None and part.primitive in ("isnan", "isinf"):
            return _fixed_float(part.args[0])
    return _ranged(maker, makers)


def _fixed_float(x: Operand) -> Local | None:
    fits = isinstance(x, Local) and not x.variable and x.dtype.kind == "f"
    return x if fits else None  # type: ignore[return-value]


def _ranged(maker: Compute, makers: _Makers) -> Local | None:
    """The float of `not (x >= low and x < high)`, which holds of NaN and infinities too."""
    both = _maker(maker.args[0], makers) if maker.primitive == "logical_not" else None
    if both is None or both.primitive not in _BOTH:
        return None
    low, high = (_maker(a, makers) for a in both.args)
    if low is None or high is None or (low.primitive, high.primitive) != ("greater_equal", "less"):
        return None
    (x, least), (again, limit) = low.args, high.args
    finite = all(isinstance(o, Literal) and math.isfinite(o.value) for o in (least, limit))
    return _fixed_float(x) if x is again and finite else None


def _guarded(x: Local, checks: Sequence[Fail], makers: _Makers) -> list[Statement]:
    """Checks of `x` under a condition that holds if any of theirs does."""
    ranges = [c.cond for c in checks if _ranged(makers[c.cond], makers) is x]  # type: ignore[index]
    if len(ranges) > 1:
        return list(checks)
    if ranges:
        return [If(ranges[0], tuple(checks), (), unlikely=True)]
    finite, doubt = Local(bool_), Local(bool_)
    return [
        Compute(finite, "isfinite", (x,)), Compute(doubt, "logical_not", (finite,)),
        If(doubt, _asked_there(checks, makers), (), unlikely=True),
    ]  # fmt: skip


def _asked_there(checks: Sequence[Fail], makers: _Makers) -> Body:
    """Checks, each behind the computation of its condition."""
    asked: list[Statement] = []
    for check in checks:
        cond = _asked_again(check.cond, makers, asked)
        asked.append(replace(check, cond=cond))
    return tuple(asked)


# -- int(x) --------------------------------------------------------------------------------------


def _are_of_int(checks: Sequence[Fail], makers: _Makers) -> bool:
    """Whether none of the checks fails if an int64 holds the integral part of their float."""
    for check in checks:
        maker = makers[check.cond]  # type: ignore[index]
        both = makers.get(maker.args[0]) if maker.primitive == "logical_not" else None  # type: ignore[arg-type]
        if both is not None:
            low, high = (makers[a].args[1].value for a in both.args)  # type: ignore[index, union-attr]
            if (low, high) != (-(2.0**63), 2.0**63):
                return False
        elif maker.primitive not in ("isnan", "isinf"):
            return False
    return any(makers[check.cond].primitive == "logical_not" for check in checks)  # type: ignore[index]


def _cast(body: Body, place: int, x: Local) -> int | None:
    """Where the float becomes an int64, with computations only from a place on to there."""
    for number in range(place, len(body)):
        match body[number]:
            case Compute(out=out, primitive="cast", args=(value,)) if value is x:
                return number if out.dtype == i64 else None
            case Compute():
                pass
            case _:
                break
    return None


def _truncated(
    x: Local, out: Local, checks: Sequence[Fail], makers: _Makers
) -> list[Statement]:
    lost = Local(bool_)
    return [
        Compute(out, "truncated", (x,)), Compute(lost, "equal", (out, LOST)),
        If(lost, _asked_there(checks, makers), (), unlikely=True),
    ]  # fmt: skip


def _asked_again(cond: Operand, makers: _Makers, into: list[Statement]) -> Operand:
    """A condition computed where it is asked, and not where it seldom is."""
    maker = _maker(cond, makers)
    if maker is None or maker.out.dtype != bool_:
        return cond
    if any(isinstance(a, Local) and a.variable for a in maker.args):
        return cond
    again = Local(bool_)
    args = tuple(_asked_again(a, makers, into) for a in maker.args)
    into.append(replace(maker, out=again, args=args))
    return again
