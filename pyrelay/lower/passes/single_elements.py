"""The largest of the elements at one place is that element: read once, not looked for.

In: a kernel with loops over rows in which a variable that begins at -inf becomes
``maximum(variable, where(k == place, element of k, -inf))``, as labels of a cross entropy are
picked beside the maximum of their rows (`opt/picks.py`). Out: the kernel with the element computed
for that place before the loop, if the loop goes through it, and the loop without it: what each
element of a row asked is a third of what a cross entropy does with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.ir.types import bool_
from pyrelay.lower.kernels.kernel import (
    Assign,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Statement,
    Store,
    bound_by,
    operands,
    renamed,
    replace_bodies,
    statements,
)
from pyrelay.records import dataclass

_BEGINS = {"maximum": float("-inf"), "minimum": float("inf")}


@dataclass(frozen=True, slots=True)
class _Single:
    """A variable of a loop, the place whose element it becomes, that element, and what of the
    loop's statements compute it from what lies around the loop."""

    variable: Local
    place: Operand
    element: Operand
    made: tuple[Compute | Load, ...]


def single_elements(kernel: Kernel) -> Kernel:
    """The kernel with such elements before their loops; the kernel itself if it has none."""
    users: dict[Operand, int] = {}
    for statement in statements(kernel.body):
        for operand in operands(statement):
            users[operand] = users.get(operand, 0) + 1
    body = _changed(kernel.body, users)
    return kernel if body is kernel.body else replace(kernel, body=body)


def _changed(body: Body, users: dict[Operand, int]) -> Body:
    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, For):
            for single in _singles(statement, made, users):
                made += _before(single, statement)
                statement = _without(statement, single)
        made.append(replace_bodies(statement, lambda inner: _changed(inner, users)))
    same = len(made) == len(body) and all(a is b for a, b in zip(made, body, strict=True))
    return body if same else tuple(made)


def _singles(loop: For, before: Sequence[Statement], users: dict[Operand, int]) -> list[_Single]:
    """The variables of a loop that become one element, of those that begin right before it."""
    if any(isinstance(s, Store) for s in statements(loop.body)):
        return []
    begins = {s.variable: s.value for s in before if isinstance(s, Assign)}
    computed = {s.out: s for s in loop.body if isinstance(s, Compute)}
    found = []
    for statement in loop.body:
        if not isinstance(statement, Assign) or not isinstance(statement.value, Local):
            continue
        variable, most = statement.variable, computed.get(statement.value)
        if most is None or most.primitive not in _BEGINS or variable not in most.args:
            continue
        first, begin = begins.get(variable), _BEGINS[most.primitive]
        if not isinstance(first, Literal) or first.value != begin or users[most.out] != 1:
            continue
        others = [computed[a] for a in most.args if isinstance(a, Local) and a in computed]
        if len(others) != 1 or users[others[0].out] != 1 or not _is_alone(loop, variable, most):
            continue
        single = _single(loop, variable, others[0], computed, begin)
        if single is not None:
            found.append(single)
    return found


def _is_alone(loop: For, variable: Local, most: Compute) -> bool:
    """Whether a loop does nothing else with a variable than to make it the `most` of itself."""
    sets = [s for s in statements(loop.body) if variable in bound_by(s)]
    reads = [s for s in statements(loop.body) if variable in operands(s)]
    return len(sets) == 1 and reads == [most]


def _single(
    loop: For, variable: Local, chosen: Compute, computed: dict[Local, Compute], begin: float
) -> _Single | None:
    """What a choice of an element at one place says; None if it is none."""
    if chosen.primitive != "where":
        return None
    cond, element, other = chosen.args
    equal = computed.get(cond) if isinstance(cond, Local) else None
    if not isinstance(other, Literal) or other.value != begin or equal is None:
        return None
    if equal.primitive != "equal" or loop.index not in equal.args:
        return None
    place = equal.args[equal.args[0] is loop.index]
    inside = {local for s in statements(loop.body) for local in bound_by(s)}
    if place in inside or place is loop.index:
        return None
    made: list[Compute | Load] = []
    needed = {element}
    for statement in reversed(loop.body):
        outs = bound_by(statement)
        if not any(out in needed for out in outs):
            continue
        if not isinstance(statement, Compute | Load):
            return None  # a variable, or what a loop inside gives
        made.append(statement)
        needed |= set(operands(statement))
    known = {out for s in made for out in bound_by(s)}
    if any(o in inside and o not in known for o in needed):
        return None
    return _Single(variable, place, element, tuple(reversed(made)))


def _before(single: _Single, loop: For) -> list[Statement]:
    """The element, if the loop goes through its place, and the variable set to it."""
    names: dict[Operand, Operand] = {loop.index: single.place}
    inner: list[Statement] = []
    for statement in single.made:
        fresh, moved = Local(statement.out.dtype), renamed(statement, names)
        assert isinstance(moved, Compute | Load)
        inner.append(replace(moved, out=fresh))
        names[statement.out] = fresh
    inner.append(Assign(single.variable, names.get(single.element, single.element)))
    from_start, to_stop, goes = Local(bool_), Local(bool_), Local(bool_)
    return [
        Compute(from_start, "greater_equal", (single.place, loop.start)),
        Compute(to_stop, "less", (single.place, loop.stop)),
        Compute(goes, "logical_and", (from_start, to_stop)),
        If(goes, tuple(inner)),
    ]


def _without(loop: For, single: _Single) -> For:
    """The loop without the variable, and without what only it was made of."""
    body = [
        s for s in loop.body if not (isinstance(s, Assign) and s.variable is single.variable)
    ]
    while True:
        read = {o for s in statements(tuple(body)) for o in operands(s)}
        kept = [s for s in body if not isinstance(s, Compute | Load) or s.out in read]
        if len(kept) == len(body):
            return replace(loop, body=tuple(body))
        body = kept
