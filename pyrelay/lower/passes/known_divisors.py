"""Divisions in loops by what is the same in all rounds, as `quotient`s.

In: a kernel. Out: the same with `quotient(x, y)` in the place of `x / y`, of float32, where y is a
number, or known before a loop and x made inside it. On a GPU `x / y` is two instructions of the
slow unit that exponentials have, too, and a branch, beside which nothing else is computed; what
`quotient` asks of y is asked once before the loop, and each x costs five products, sums and choices
(`devices/gpu/cuda_prelude.py`). The last digit of results below 2**-60 may be another.
"""

from __future__ import annotations

import math
from dataclasses import replace

from pyrelay.ir.types import f32
from pyrelay.lower.kernels.kernel import (
    Body,
    Compute,
    For,
    Kernel,
    Literal,
    Local,
    Operand,
    Statement,
    While,
    bound_by,
    replace_bodies,
    statements,
)


def known_divisors(kernel: Kernel) -> Kernel:
    """The kernel with its quotients; the kernel itself if it has none."""
    body = _changed(kernel.body, None)
    return kernel if body == kernel.body else replace(kernel, body=body)


def _changed(body: Body, own: frozenset[Local] | None) -> Body:
    """own: what the loop around makes, None where there is none."""
    return tuple(_statement(s, own) for s in body)


def _statement(s: Statement, own: frozenset[Local] | None) -> Statement:
    match s:
        case For(body=body) | While(body=body):
            made = frozenset(local for inner in statements(body) for local in bound_by(inner))
            return replace_bodies(s, lambda inner: _changed(inner, made | _index(s)))
        case Compute(out=out, primitive="divide", args=(x, y)) if (
            own is not None and out.dtype == f32 and x in own and _is_known(y, own)
        ):
            return Compute(out, "quotient", (x, y))
    return replace_bodies(s, lambda inner: _changed(inner, own))


def _index(loop: Statement) -> frozenset[Local]:
    return frozenset([loop.index]) if isinstance(loop, For) else frozenset()


def _is_known(y: Operand, own: frozenset[Local]) -> bool:
    """Whether a divisor is the same in all rounds. Powers of 2 are factors already."""
    if isinstance(y, Literal):
        return abs(math.frexp(y.value)[0]) != 0.5
    return y not in own
