"""One place in several arrays is checked once.

In: the body of a kernel, its checks in unlikely branches (`cold_paths`). Out: the same, in which
checks of one index against the extents of several arrays, with nothing between them that could be
noticed, are one against the least of these; in an unlikely branch behind it they stand as they
were, so that the first to fail says so:

    if unlikely(j >= n): fail               if unlikely(j >= min(n, m)):
    dx = x[j] - a                  as           if j >= n: fail
    if unlikely(j >= m): fail                   if j >= m: fail
    dy = y[j] - b                           dx = x[j] - a; dy = y[j] - b

The coordinates of particles are often arrays of their own, read at places that a list of neighbours
says. The least extent is the same in all rounds: LLVM takes it out of the loop.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import field

from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Assign,
    Body,
    Compute,
    Fail,
    If,
    Load,
    Local,
    Operand,
    Read,
    Statement,
    replace_bodies,
    statements,
)
from pyrelay.records import dataclass

_CHECKS = frozenset(["outside", "greater_equal"])


def with_joined_checks(body: Body) -> Body:
    """The body with checks of one index against several extents as one."""
    extents = {
        s.out for s in statements(body) if isinstance(s, Read) and s.parameter.role == EXTENT
    }
    return _walked(body, extents) if len(extents) > 1 else body


@dataclass(slots=True, eq=False)
class _Group:
    """Checks of one index: how it is compared, with what, and the statements that fail. `before`:
    what finds out, and sets where the index lies, if that stands behind the first of them."""

    primitive: str
    index: Operand
    extents: list[Operand] = field(default_factory=list)
    before: list[Statement] = field(default_factory=list)
    checks: list[Statement] = field(default_factory=list)

    def written(self) -> list[Statement]:
        """The checks as one, if they are several."""
        if len(self.extents) == 1:
            return [*self.before, *self.checks]
        least, *others = self.extents
        out: list[Statement] = [*self.before]
        for extent in others:
            lower = Local(i64)
            out.append(Compute(lower, "minimum", (least, extent)))
            least = lower
        fails = Local(bool_)
        return [
            *out, Compute(fails, self.primitive, (self.index, least)),
            If(fails, tuple(self.checks), unlikely=True),
        ]  # fmt: skip


def _walked(body: Body, extents: Set[Operand]) -> Body:
    out: list[Statement | _Group] = []
    group: _Group | None = None
    since: list[Statement] = []  # what has been written behind the last group
    for statement in body:
        new = replace_bodies(statement, lambda inner: _walked(inner, extents))
        check = _check(new, out)
        if check is not None and check.extents[0] in extents:
            read = {s.out for s in since if isinstance(s, Read)}
            if (
                group is not None and group.primitive == check.primitive
                and group.index is check.index and read.isdisjoint(check.extents)
            ):
                for part in check.before:
                    if part in since:
                        out.remove(part)
                        since.remove(part)
                        group.before.append(part)
                group.extents += check.extents
                group.checks += check.checks
                continue
            check.before.clear()  # it stays where it is, as others may read it
            group, since = check, []
            out.append(group)
            continue
        quiet = isinstance(new, (Compute, Load, Read)) or (
            group is not None and isinstance(new, Assign) and new.value is group.index
            and new.variable is not group.index
        )
        if not quiet:
            group = None
        since.append(new)
        out.append(new)
    found: list[Statement] = []
    for each in out:
        found += each.written() if isinstance(each, _Group) else [each]
    return tuple(found)


def _check(statement: Statement, before: list[Statement | _Group]) -> _Group | None:
    """The check that a statement is, of an index that its round makes, with what prepares it."""
    if isinstance(statement, If):
        if not statement.unlikely or statement.orelse:
            return None
    elif not isinstance(statement, Fail):
        return None
    maker = _written(before, statement.cond)
    if not isinstance(maker, Compute) or maker.primitive not in _CHECKS:
        return None
    index, extent = maker.args
    if not isinstance(index, Local):
        return None
    if not index.variable and _written(before, index) is None:
        return None
    found = _Group(maker.primitive, index, [extent], [maker], [statement])
    if isinstance(statement, If):
        # Where the index lies is set before, and again in the branch if it counts from the end.
        last = statement.then[-1] if statement.then else None
        if maker.primitive != "outside" or not isinstance(last, Assign):
            return None
        places = [s for s in before if isinstance(s, Assign) and s.variable is last.variable]
        if len(places) != 1 or places[0].value is not index:
            return None
        found.before.append(places[0])
    return found


def _written(before: list[Statement | _Group], operand: Operand) -> Statement | None:
    """The statement of this body that makes a number."""
    for s in reversed(before):
        if isinstance(s, (Compute, Load)) and s.out is operand:
            return s
    return None
