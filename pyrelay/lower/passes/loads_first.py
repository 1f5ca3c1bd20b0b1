"""Loads before what is computed of them.

In: the statements of a body. Out: the same, with the loads at its beginning, and what tells where
they load from, before all else; and how many these are.

A thread that has few others beside it waits for each load where it stands, since functions such as
`tanh` are branches that no load is moved across. At the beginning it waits for all of them once.
"""

from __future__ import annotations

from pyrelay.lower.kernels.kernel import Body, Compute, Load, Local, Read, operands

MOST = 32
"""Loads that are moved, at most: each takes a register."""


def loads_first(body: Body) -> tuple[Body, int]:
    """The statements in another order, and how many of them are loads or told to them."""
    run = next(
        (k for k, s in enumerate(body) if not isinstance(s, (Compute, Load, Read))), len(body)
    )
    loads = [s for s in body[:run] if isinstance(s, Load)][:MOST]
    if not loads:
        return body, 0
    moved = set(loads)
    wanted: set[Local] = set()
    early = []
    for statement in reversed(body[:run]):
        if isinstance(statement, (Compute, Load, Read)) and (
            statement in moved or statement.out in wanted
        ):
            early.append(statement)
            wanted.update(o for o in operands(statement) if isinstance(o, Local))
    early.reverse()
    kept = set(early)
    return (*early, *(s for s in body if s not in kept)), len(early)
