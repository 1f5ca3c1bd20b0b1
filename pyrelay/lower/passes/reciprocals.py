"""Divisions by what is the same for all elements, as products with one reciprocal.

In: a kernel whose results are as good where they are one more rounding away: those that make scores
of products of matrices, whose sums are rounded many times. Out: the same with `x * (1 / s)` in the
place of `x / s`, where s is a float that is known before the first loop. On a GPU a division is ten
instructions and a branch, which for attention is more than the products.

Where 1 / s is not a number of full digits, because s is beyond 2**126 or below the normal numbers,
so is the product not; zeros, infinities and NaNs give what they gave.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.lower.kernels.kernel import (
    Body,
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Local,
    Operand,
    Read,
    Statement,
)


def with_reciprocals(kernel: Kernel) -> Kernel:
    """The kernel with each division by a float that is known before its loops as a product."""
    known = {
        s.out for s in kernel.body if isinstance(s, Read | Compute) and s.out.dtype.kind == "f"
    }
    made: dict[Operand, Local] = {}
    body = _changed(kernel.body, known, made)
    if not made:
        return kernel
    defined: list[Statement] = []
    for s in body:
        defined.append(s)
        if isinstance(s, Read | Compute) and s.out in made:
            dtype = s.out.dtype
            defined.append(Compute(made[s.out], "divide", (Literal(1.0, dtype), s.out)))
    return replace(kernel, body=tuple(defined))


def _changed(body: Body, known: set[Local], made: dict[Operand, Local]) -> Body:
    return tuple(_statement(s, known, made) for s in body)


def _statement(s: Statement, known: set[Local], made: dict[Operand, Local]) -> Statement:
    match s:
        case Compute(out=out, primitive="divide", args=(x, y)) if y in known and out not in known:
            reciprocal = made.setdefault(y, Local(out.dtype))
            return Compute(out, "multiply", (x, reciprocal))
        case For():
            return replace(s, body=_changed(s.body, known, made))
        case If():
            return replace(
                s, then=_changed(s.then, known, made), orelse=_changed(s.orelse, known, made)
            )
    return s
