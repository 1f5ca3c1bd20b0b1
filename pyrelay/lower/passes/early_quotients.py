"""Quotients and remainders of integers that a loop does not change stand in front of it.

In: a body of kernel IR, for the CPU. Out: the same with

    for j in range(3):                      r = (x + i) % n
        c = (x + i) % n * n + j     as      for j in range(3):
                                                c = r * n + j

LLVM moves what no round changes, but no division: it may be of 0, or stand behind a check that ends
the loop, or be a branch, as ours are of operands of unlike signs. Ours of 0 are 0, whatever check
stands in front, so they may be computed where no round is. Those in branches stay: they may be for
few rounds.
"""

from __future__ import annotations

from pyrelay.lower.kernels.kernel import (
    Body,
    Compute,
    For,
    Literal,
    Operand,
    Statement,
    While,
    bound_by,
    replace_bodies,
    statements,
)

_SLOW = frozenset(["floor_divide", "remainder"])
_QUICK = frozenset(["add", "subtract", "multiply", "negative", "cast"])


def with_early_quotients(body: Body) -> Body:
    """The body with such numbers in front of loops."""
    out: list[Statement] = []
    for s in body:
        new = replace_bodies(s, with_early_quotients)
        if isinstance(new, (For, While)):
            early = _unchanged(new)
            if early:
                out += early
                new = replace_bodies(new, lambda part, gone=early: tuple(  # type: ignore[misc]
                    each for each in part if not any(each is g for g in gone)
                ))  # fmt: skip
        out.append(new)
    return tuple(out)


def _unchanged(loop: For | While) -> list[Statement]:
    """What may stand in front of a loop: quotients in its body, and what these are made of."""
    if not any(map(_is_slow, loop.body)):
        return []
    changed: set[Operand] = {o for s in statements((loop,)) for o in bound_by(s)}
    made: dict[Operand, Compute] = {}
    wanted: set[Operand] = set()
    for s in loop.body:
        if isinstance(s, Compute) and _is_of_ints(s) and (
            all(isinstance(a, Literal) or a in made or a not in changed for a in s.args)
        ):
            made[s.out] = s
            if _is_slow(s):
                wanted.add(s.out)
    for s in reversed(made.values()):
        if s.out in wanted:
            wanted.update(a for a in s.args if a in made)
    return [s for s in made.values() if s.out in wanted]


def _is_slow(s: Statement) -> bool:
    return (
        isinstance(s, Compute) and s.primitive in _SLOW and s.out.dtype.kind in "iu"
        and not isinstance(s.args[1], Literal)
    )


def _is_of_ints(s: Compute) -> bool:
    return s.out.dtype.kind in "iu" and (s.primitive in _QUICK or _is_slow(s)) and (
        all(a.dtype.kind in "iu" for a in s.args)
    )
