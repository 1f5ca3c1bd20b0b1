"""What each round of a loop reads at one place is read in front of it.

In: a loop. Out: the statements that read what no round changes, and the loop without them. They
come before any check and any branch of a round, so that the first round does them in any case: they
are for where the loop has one. LLVM moves them, too, but what asks in front of a loop whether its
checks may fail (`loop_versions`) has to know them there: `x[c - weights[i]]`.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.lower.kernels.kernel import (
    Assign,
    Call,
    Compute,
    For,
    Load,
    Operand,
    Parameter,
    Read,
    Statement,
    Store,
    operands,
    statements,
)


def without_early_loads(loop: For) -> tuple[list[Statement], For] | None:
    """What stands in front of a loop, and the loop; None if it reads nothing that may."""
    inside = list(statements(loop.body))
    if any(isinstance(s, Call) for s in inside):
        return None
    stored = {s.array for s in inside if isinstance(s, Store)}
    changed: set[Operand] = {loop.index, *(s.variable for s in inside if isinstance(s, Assign))}
    changed.update(s.out for s in inside if isinstance(s, (Compute, Load, Read)))
    early: list[Statement] = []
    for s in loop.body:
        if isinstance(s, Compute):
            moves = s.out.dtype.kind in "iub"
        elif isinstance(s, Load):
            moves = s.parallel and isinstance(s.array, Parameter) and s.array not in stored
        elif isinstance(s, (Assign, Store)):
            continue
        else:
            break
        if moves and not any(o in changed for o in operands(s)):
            early.append(s)
            changed.discard(s.out)
    needed: set[Operand] = set()
    for s in reversed(early):
        if isinstance(s, Load) or (isinstance(s, Compute) and s.out in needed):
            needed.update(operands(s))
    front: list[Statement] = [
        s for s in early
        if isinstance(s, Load) or (isinstance(s, Compute) and s.out in needed)
    ]  # fmt: skip
    if not any(isinstance(s, Load) and s.out.dtype.kind in "iu" for s in front):
        return None
    return front, replace(loop, body=tuple(s for s in loop.body if s not in front))
