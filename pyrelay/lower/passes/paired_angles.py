"""A sine stands beside the cosine of the same angle.

In: a body of kernel IR. Out: the same, in which of two such functions of a double, with a check of
the first between them, the second stands right behind the first:

    c = cos(x)                        c = cos(x)
    fail if c is NaN and not x        s = sin(x)
    s = sin(x)                  as    fail if c is NaN and not x
    fail if s is NaN and not x        fail if s is NaN and not x

C's library has a function for both, which takes little longer than one, and LLVM calls it for two
that stand in one block.
"""

from __future__ import annotations

from pyrelay.ir.types import f64
from pyrelay.lower.kernels.kernel import (
    Body,
    Compute,
    Local,
    Statement,
    bodies,
    replace_bodies,
    statements,
)

_PAIR = frozenset(["sin", "cos"])


def with_paired_angles(body: Body) -> Body:
    """The body with sines and cosines of one angle side by side."""
    if not {s.primitive for s in statements(body) if isinstance(s, Compute)} >= _PAIR:
        return body
    out: list[list[Statement]] = []
    first: dict[Local, int] = {}
    for statement in body:
        if isinstance(statement, Compute) and _is_of_angle(statement):
            (angle,) = statement.args
            assert isinstance(angle, Local)
            place = first.setdefault(angle, len(out))
            if place < len(out):
                out[place].append(statement)
                continue
        elif bodies(statement):
            statement = replace_bodies(statement, with_paired_angles)
        out.append([statement])
    return tuple(s for group in out for s in group)


def _is_of_angle(s: Compute) -> bool:
    """Whether this is a sine or a cosine of a double that stands for one value."""
    return (
        s.primitive in _PAIR
        and s.out.dtype == f64
        and isinstance(s.args[0], Local)
        and not s.args[0].variable
    )
