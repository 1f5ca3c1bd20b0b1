"""How large extents are at most, by what they and their symbols say of themselves.

In: extents. Out: numbers that they never exceed, where there are any.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyrelay.ir.dims import (
    SHORT,
    Atom,
    Extent,
    Extreme,
    Quotient,
    Remainder,
    Symbol,
    is_natural,
)


def at_most_one(extent: Extent) -> bool:
    """True if the extent says of itself that it is 0 or 1: a `minimum` with 1."""
    if isinstance(extent, int):
        return extent <= 1
    if len(extent.terms) != 1:
        return False
    monomial, coefficient = extent.terms[0]
    if coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1:
        return False
    atom = monomial[0][0]
    return isinstance(atom, Extreme) and atom.kind == "min" and 1 in (atom.left, atom.right)


def greatest(extent: Extent) -> int | None:
    """A number that an extent never exceeds, by what its symbols say of themselves; None if they
    say nothing."""
    if isinstance(extent, int):
        return extent
    total = 0
    for monomial, coefficient in extent.terms:
        natural = all(is_natural(atom) for atom, _ in monomial)
        alone = coefficient > 0 and len(monomial) == 1 and monomial[0][1] == 1
        if monomial and coefficient < 0 and natural:
            continue
        term = coefficient
        for atom, power in monomial:
            most = _greatest_atom(atom)
            if most is None or not (natural or alone):
                return None
            term *= most**power
        total += term
    return total


def _greatest_atom(atom: Atom) -> int | None:
    match atom:
        case Symbol(most=most):
            return most
        case Quotient(a, b):
            over = greatest(a)
            return over // b if over is not None and isinstance(b, int) and b > 0 else None
        case Remainder(_, b):
            return b - 1 if isinstance(b, int) and b > 0 else None
        case Extreme(kind, a, b):
            known = [m for m in (greatest(a), greatest(b)) if m is not None]
            if kind == "min":
                return min(known, default=None)
            return max(known) if len(known) == 2 else None
    raise AssertionError(atom)


def is_short(extent: Extent) -> bool:
    """Whether an axis is known to be short."""
    most = greatest(extent)
    return most is not None and most <= SHORT


def greatest_size(shape: Iterable[Extent]) -> int | None:
    """A number that the elements of an array of this shape never exceed; None if not known."""
    total = 1
    for extent in shape:
        most = greatest(extent)
        if most is None:
            return None
        total *= max(most, 1)
    return total
