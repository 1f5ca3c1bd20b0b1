"""Two arrays that change places after each row, as `previous, row = row, previous` has it.

In: a loop around a loop. Out: the same without the assignments that exchange two addresses, and the
variables that hold these, if they are exchanged behind each row and touched nowhere else.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.lower.kernels.kernel import Assign, Local, Operand, bound_by, operands, statements
from pyrelay.lower.passes.row_lags import Nest


def with_exchange(nest: Nest) -> Nest:
    """The nest with what is exchanged; the nest itself where nothing is."""
    now: dict[Operand, Operand] = {}
    for s in nest.after:
        if isinstance(s, Assign) and isinstance(s.value, Local):
            now[s.variable] = now.get(s.value, s.value)
    pairs = [(a, b) for a, b in now.items() if now.get(b) is a and a is not b]
    if len(pairs) != 2:
        return nest
    (p, q), _ = pairs
    assert isinstance(p, Local)
    assert isinstance(q, Local)
    moved = [s for s in nest.after if isinstance(s, Assign) and now.get(s.variable) in (p, q)]
    between = {s.variable for s in moved} - {p, q}
    kept = tuple(s for s in nest.after if s not in moved)
    rest = (*nest.before, nest.inner, *kept)
    for s in statements(rest):
        if any(v in (p, q) or v in between for v in bound_by(s)) or between & set(operands(s)):
            return nest
    return replace(nest, after=kept, exchanged=(p, q))
