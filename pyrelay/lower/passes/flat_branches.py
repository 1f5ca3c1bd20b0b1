"""Branches whose arms only compute are choices between what both arms compute.

In: a body of kernel IR without loops. Out: the same with

    if c: v = x                         t = y + 1
    else:                      as       w = where(t < z, t, z)
        t = y + 1                       v = where(c, x, w)
        v = t if t < z else z

where no arm reads or stores anything or takes long, branches in branches included. LLVM chooses
between arms of a few instructions only, and data decide such a branch in the rounds of a table, so
that processors guess it wrong (if-conversion: Allen, Kennedy, Porterfield and Warren, "Conversion
of control dependence to data dependence", POPL 1983).
"""

from __future__ import annotations

import functools
from collections.abc import Set

from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    If,
    Local,
    Operand,
    Statement,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.lane_blocks import read_by

_MOST_COMPUTED = 12  # primitives in both arms
_CHEAP = frozenset([
    "add", "subtract", "multiply", "negative", "absolute", "minimum", "maximum", "where", "cast",
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and",
    "logical_or", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor",
])  # fmt: skip


def with_flat_branches(body: Body, known: Set[Local], kept: Set[Local]) -> Body:
    """The body with such choices; `known` are the variables that have a value in front of it, and
    branches stay that read one of those `kept`."""
    out: list[Statement] = []
    known = set(known)
    for s in body:
        if isinstance(s, If) and _is_cheap(s) and not kept & read_by((s,)):
            chosen = _flat(s, {}, known, out)
            out += (Assign(variable, value) for variable, value in chosen.items())
        else:
            inside = functools.partial(with_flat_branches, known=frozenset(known), kept=kept)
            out.append(replace_bodies(s, inside))
        known |= {each.variable for each in statements((s,)) if isinstance(each, Assign)}
    return tuple(out)


def _is_cheap(branch: If) -> bool:
    inside = [s for s in statements((branch,)) if s is not branch]
    computed = [s for s in inside if isinstance(s, Compute)]
    return (
        not (branch.unlikely or branch.guessed)
        and len(computed) <= _MOST_COMPUTED
        and all(isinstance(s, (Compute, Assign, If)) for s in inside)
        and all(s.primitive in _CHEAP for s in computed)
    )


def _flat(
    branch: If, names: dict[Operand, Operand], known: Set[Local], out: list[Statement]
) -> dict[Local, Operand]:
    """Writes what both arms compute, and gives what variables are behind the branch, but for those
    that have no value there."""
    cond = names.get(branch.cond, branch.cond)
    found: list[dict[Local, Operand]] = []
    for arm in (branch.then, branch.orelse):
        inside, values = dict(names), dict[Local, Operand]()
        for s in arm:
            match s:
                case Compute(args=args):
                    fresh = Local(s.out.dtype)
                    out.append(Compute(fresh, s.primitive, tuple(inside.get(a, a) for a in args)))
                    inside[s.out] = fresh
                case Assign(variable=variable, value=value):
                    values[variable] = inside[variable] = inside.get(value, value)
                case If():
                    for variable, value in _flat(s, inside, known | set(values), out).items():
                        values[variable] = inside[variable] = value
        found.append(values)
    then, orelse = found
    chosen: dict[Local, Operand] = {}
    for variable in dict.fromkeys((*then, *orelse)):
        if variable in known or (variable in then and variable in orelse):
            ways = [each.get(variable, names.get(variable, variable)) for each in found]
            chosen[variable] = value = Local(variable.dtype)
            choice = "where_unpredictable" if variable.dtype.kind == "i" else "where"
            out.append(Compute(value, choice, (cond, *ways)))
    return chosen
