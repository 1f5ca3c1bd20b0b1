"""Calls of small routines are made in line, a few deep: most calls of a recursion are short.

In: the routines of a kernel. Out: the same, in which calls are replaced by what they do, and the
calls in that again, as long as a routine stays small. What a call costs, room on the stack, the
count of calls and the results that pass through memory, is paid for several at once then (Tang,
"Complete inlining of recursive calls: beyond tail-recursion elimination", ACMSE 2006).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Call,
    Local,
    Operand,
    Routine,
    Statement,
    renamed,
    replace_bodies,
    statements,
)
from pyrelay.lower.passes.copies import Copy

_LARGEST = 160  # statements of a routine that takes in what it calls


def with_inlined_calls(routines: Sequence[Routine]) -> tuple[Routine, ...]:
    """The routines, larger by the calls that are made in line."""
    return tuple(_grown(routine, routines) for routine in routines)


def _grown(routine: Routine, routines: Sequence[Routine]) -> Routine:
    sizes = [sum(1 for _ in statements(r.body or ())) for r in routines]
    while routine.body is not None:
        inside = list(statements(routine.body))
        calls = [
            s.routine for s in inside
            if isinstance(s, Call) and routines[s.routine].body is not None
        ]
        if not calls or len(inside) + sum(sizes[c] for c in calls) > _LARGEST:
            return routine
        names: dict[Operand, Operand] = {}
        body = _in_line(routine.body, routines, names)
        results = tuple(names.get(r, r) for r in routine.results)
        routine = replace(routine, body=body, results=results)
    return routine


def _in_line(
    body: Body, routines: Sequence[Routine], names: dict[Operand, Operand]
) -> Body:
    """A body with its calls made in line; `names` says what stands for their results."""
    out: list[Statement] = []
    for statement in body:
        each = renamed(statement, names)
        callee = routines[each.routine] if isinstance(each, Call) else None
        if isinstance(each, Call) and callee is not None and callee.body is not None:
            out += _called(each, callee, callee.body, names)
        else:
            out.append(replace_bodies(each, lambda b: _in_line(b, routines, names)))
    return tuple(out)


def _called(
    s: Call, callee: Routine, inside: Body, names: dict[Operand, Operand]
) -> Body:
    own: dict[Operand, Operand] = dict(zip(callee.params, s.args, strict=True))
    for each in statements(inside):
        if isinstance(each, Assign):
            own.setdefault(each.variable, Local(each.variable.dtype, variable=True))
    copy = Copy(own, set())
    body = list(copy.body(inside))
    for out, result in zip(s.outs, callee.results, strict=True):
        names[out] = value = copy.operand(result)
        if isinstance(value, Local) and value.variable and value in s.args:  # the caller's
            names[out] = kept = Local(out.dtype, variable=True)
            body.append(Assign(kept, value))
    return tuple(body)
