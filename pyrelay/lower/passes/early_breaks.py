"""A round that is known to be the last one ends the loop where it knows.

In: the body of a kernel, for the CPU. Out: the same, in which

    if c: last = True; v = x                as          if c: v = x; n = v; break
    else: last = y > 20; v = y                          else: last = y > 20; v = y
    n = v                                               n = v
    if last: break                                      if last: break

A `break` of the user's in the middle of a round is such a variable. LLVM chooses between the arms
before it follows where they lead, so what rounds hand on would wait for that choice in each of
them, where a branch is guessed: it is the loop's way out, taken once.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir.types import bool_
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Break,
    For,
    If,
    Literal,
    Local,
    Operand,
    Statement,
    While,
    replace_bodies,
)

_TRUE = Literal(True, bool_)
_MOST_ASSIGNED = 24  # variables, at each place that ends a loop


def with_early_breaks(body: Body) -> Body:
    """The body with loops that end where they know that they do."""
    out: list[Statement] = []
    for statement in body:
        changed = replace_bodies(statement, with_early_breaks)
        if isinstance(changed, While) or (isinstance(changed, For) and not changed.lanes):
            changed = replace(changed, body=_ended(changed.body))
        out.append(changed)
    return tuple(out)


def _ended(body: Body) -> Body:
    """A loop's body, whose breaks by a variable stand where it is made true, too."""
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, Break):
            branch, assigned = _assigned_after(out)
            if branch is not None and len(assigned) <= _MOST_ASSIGNED:
                out[-len(assigned) - 1] = _with_breaks(branch, statement.cond, assigned)
        out.append(statement)
    return tuple(out)


def _assigned_after(body: list[Statement] | Body) -> tuple[If | None, Body]:
    """The branch that a body ends in, and what is assigned after it."""
    start = len(body)
    while start and isinstance(body[start - 1], Assign):
        start -= 1
    last = body[start - 1] if start else None
    return last if isinstance(last, If) and not last.unlikely else None, tuple(body[start:])


def _with_breaks(branch: If, wanted: Operand, after: Body) -> If:
    """A branch whose arms break, if they make `wanted` true; `after` is assigned behind it."""
    wanted = _source(wanted, after)
    if not isinstance(wanted, Local) or not wanted.variable:
        return branch
    then, orelse = (_arm(arm, wanted, after) for arm in (branch.then, branch.orelse))
    if then is branch.then and orelse is branch.orelse:
        return branch
    return replace(branch, then=then, orelse=orelse)


def _arm(arm: Body, wanted: Local, after: Body) -> Body:
    branch, assigned = _assigned_after(arm)
    source = _source(wanted, assigned)
    if isinstance(source, Literal):
        return (*arm, *after, Break(_TRUE)) if source.value is True else arm
    if branch is None:
        return arm
    changed = _with_breaks(branch, wanted, (*assigned, *after))
    return arm if changed is branch else (*arm[: len(arm) - len(assigned) - 1], changed, *assigned)


def _source(wanted: Operand, assigned: Body) -> Operand:
    """What an operand is made of by these, the last of a body."""
    for each in reversed(assigned):
        if isinstance(each, Assign) and each.variable is wanted:
            wanted = each.value
    return wanted
