"""Branches whose arms only compute integers are choices between what both arms compute.

In: a body of kernel IR. Out: the same with

    if c: fail if overflows(x, n); v = x + n     as     if unlikely(overflows(x, n)):
    else: v = x >> 1                                        if c: fail if overflows(x, n)
                                                        v = where(c, x + n, x >> 1)

LLVM chooses between such arms by itself, but not where an overflow check may leave in the middle of
one, nor where both read an element, the same one. Data decide the branch as a rule, so processors
guess it wrong (if-conversion: Allen, Kennedy, Porterfield and Warren, "Conversion of control
dependence to data dependence", POPL 1983). Which check fails, if that of the arm taken does, the
branch says, which runs only then: to ask for that arm's checks alone, LLVM would make a branch
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Array,
    Assign,
    Body,
    Compute,
    Fail,
    If,
    Literal,
    Load,
    Local,
    Operand,
    Statement,
    bodies,
    operands,
    renamed,
    replace_bodies,
)
from pyrelay.lower.kernels.values import operand_key
from pyrelay.lower.passes.bounded_places import LAST_BIT

_GREATEST = 2**63 - 1
_LARGEST_TERM = 1 << 32
_MOST_COMPUTED = 6  # primitives of one arm, beside its checks
_CHECKS = frozenset(["add_overflows", "subtract_overflows", "multiply_overflows"])
_CHEAP = frozenset([
    "add", "subtract", "multiply", "negative", "minimum", "maximum", "where", "cast", "whole",
    "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "less", "less_equal",
    "greater", "greater_equal", "equal", "not_equal",
])  # fmt: skip


def with_chosen_arms(body: Body) -> Body:
    """The body with choices in place of such branches."""
    out: list[Statement] = []
    for statement in body:
        chosen = _chosen(statement) if isinstance(statement, If) else None
        if chosen is not None:
            out += chosen
        elif bodies(statement):
            out.append(replace_bodies(statement, with_chosen_arms))
        else:
            out.append(statement)
    return tuple(out)


def _chosen(branch: If) -> list[Statement] | None:
    """The statements that choose; None if the arms do anything that must not be done in vain."""
    arms = branch.then, branch.orelse
    checks = [s.cond for arm in arms for s in arm if isinstance(s, Fail)]
    loads = any(isinstance(s, Load) for arm in arms for s in arm)
    if branch.unlikely or branch.guessed or not (checks or loads) or not all(map(_is_cheap, arms)):
        return None
    values = [{s.variable: s.value for s in arm if isinstance(s, Assign)} for arm in arms]
    variables = dict.fromkeys((*values[0], *values[1]))
    if any(o in variables for arm in arms for s in arm for o in operands(s)):
        return None
    names = _same_loads(*arms)
    if names is None:
        return None
    out: list[Statement] = [
        renamed(s, names) for arm in arms for s in arm
        if isinstance(s, (Compute, Load)) and s.out not in names
    ]
    if checks:
        doubts = _doubts(checks, {s.out: s for s in out if isinstance(s, Compute)}, out)
        out.append(If(_any(doubts, out), (_failing(branch),), unlikely=True))
    assigned: list[Statement] = []
    for variable in variables:
        ways = [each.get(variable, variable) for each in values]
        value = Local(variable.dtype)
        choice = Compute(value, "where", (branch.cond, *(names.get(w, w) for w in ways)))
        out.append(choice)
        assigned.append(Assign(variable, value))
    return out + assigned


def _is_cheap(arm: Body) -> bool:
    """Whether an arm is a few statements without effect, checks of sums, and what it assigns."""
    checks: set[Operand] = set()
    computed = 0
    for s in arm:
        match s:
            case Compute(primitive=name) if name in _CHECKS:
                checks.add(s.out)
            case Compute(primitive="bitwise_and", args=(_, Literal(value=v))) if v == LAST_BIT:
                pass  # how many bits a shift moves, of which processors take no others
            case Compute(primitive=name) if name in _CHEAP or is_shift(s):
                computed += 1
            case Load() | Assign():
                pass
            case Fail(cond=cond, values=()) if cond in checks:
                pass
            case _:
                return False
    return computed <= _MOST_COMPUTED


def is_shift(s: Compute) -> bool:
    """Whether this is a division of an integer that shifts its bits, or leaves some of them."""
    if s.primitive not in ("floor_divide", "remainder") or s.out.dtype.kind not in "iu":
        return False
    by = s.args[1]
    return isinstance(by, Literal) and by.value > 0 and by.value & (by.value - 1) == 0


def _same_loads(then: Body, orelse: Body) -> dict[Operand, Operand] | None:
    """Names of the second arm's loads in the first; None unless both load the same elements, which
    are there whatever the condition says."""
    first, second = ([s for s in arm if isinstance(s, Load)] for arm in (then, orelse))
    known: dict[tuple[Array, Any], Operand] = {_place(s): s.out for s in first}
    if known.keys() != {_place(s) for s in second}:
        return None
    return {s.out: known[_place(s)] for s in second}


def _place(load: Load) -> tuple[Array, Any]:
    return load.array, operand_key(load.index)


def _doubts(
    checks: Sequence[Operand], makers: dict[Local, Compute], out: list[Statement]
) -> list[Operand]:
    """Conditions of which one is true if a check fails: those of products with numbers, and of sums
    of these and numbers, are one comparison of what is multiplied, beside which `3 * n + 1` is an
    address, as LLVM computes it."""
    found: list[Operand] = []
    least: dict[Operand, int] = {}
    for cond in checks:
        check = makers[cond]  # type: ignore[index]
        name = check.primitive.removesuffix("_overflows")
        root, factor, most = _scaled(Compute(check.out, name, check.args), makers)
        if factor > 1:
            reach = (_GREATEST - most) // factor
            least[root] = min(reach, least.get(root, reach))
        else:
            found.append(cond)
    for root, reach in least.items():
        moved, outside = Local(i64), Local(bool_)
        out.append(Compute(moved, "add", (root, Literal(reach, i64))))
        out.append(Compute(outside, "outside", (moved, Literal(2 * reach + 1, i64))))
        found.append(outside)
    return found


def _scaled(s: Compute, makers: dict[Local, Compute]) -> tuple[Operand, int, int]:
    """What is multiplied by a number in a product, or in a sum of it and a number, the first number
    without its sign, and the second; 1 and 0 where it is something else."""
    a, b = s.args
    a, b = (b, a) if isinstance(a, Literal) and s.primitive != "subtract" else (a, b)
    if isinstance(b, Literal) and b.dtype == i64 and isinstance(a, Local):
        if s.primitive == "multiply":
            return a, abs(b.value), 0
        maker = makers.get(a)
        if s.primitive in ("add", "subtract") and maker is not None and (
            maker.primitive == "multiply" and abs(b.value) <= _LARGEST_TERM
        ):
            root, factor, _ = _scaled(maker, makers)
            return root, factor, abs(b.value)
    return s.out, 1, 0


def _any(flags: Sequence[Operand], out: list[Statement]) -> Operand:
    """Whether any of the flags is set."""
    found, *more = flags
    for each in more:
        both = Local(bool_)
        out.append(Compute(both, "logical_or", (found, each)))
        found = both
    return found


def _failing(branch: If) -> If:
    """The branch for what it fails with, under names of its own."""
    names: dict[Operand, Operand] = {}

    def copied(s: Statement) -> Statement:
        new = renamed(s, names)
        if isinstance(new, (Compute, Load)):
            names[new.out] = out = Local(new.out.dtype)
            new = replace(new, out=out)
        return new

    then, orelse = (
        tuple(copied(s) for s in arm if not isinstance(s, Assign))
        for arm in (branch.then, branch.orelse)
    )
    return If(branch.cond, then, orelse)
