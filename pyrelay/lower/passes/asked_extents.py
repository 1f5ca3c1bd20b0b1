"""Conditions on extents that only the call knows: sums that must not be negative.

In: a polynomial of extents, and what is known of the integers around. Out: whether it may be asked,
and the statements that ask.
"""

from __future__ import annotations

from typing import TypeAlias

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import Compute, Literal, Local, Operand, Statement
from pyrelay.lower.passes.distinct_places import Integers

FAR = 1 << 60  # rounds that no loop has

Sum: TypeAlias = list[tuple[int, Operand, bool]]
"""Factors and what they multiply, and whether that is surely as small as an extent."""


def clamped(out: list[Statement], operand: Operand) -> Operand:
    """A number of rounds or columns that any integer stands for: sums of few of them fit in 64
    bits, and what is beyond all arrays stays so."""
    for primitive, most in (("minimum", FAR), ("maximum", -FAR)):
        bounded = Local(i64)
        out.append(Compute(bounded, primitive, (operand, Literal(most, i64))))
        operand = bounded
    return operand


def as_sum(extent: Extent, integers: Integers) -> Sum:
    """A sum of extents that may be asked (`distinct_places.may_ask`), or of other integers in front
    of a loop (`Integers.near`)."""
    if isinstance(extent, int):
        return [(extent, Literal(1, i64), True)]
    terms: Sum = []
    if not integers.of_extents(extent):
        near = integers.near(extent)
        assert near is not None
        terms = [(sign, local, False) for sign, local in near[0]]
        return [*terms, (near[1], Literal(1, i64), True)]
    for monomial, factor in extent.terms:
        symbols = dims.symbols(dims.Dim(((monomial, 1),))) if monomial else ()
        local = integers.extent(*symbols) if symbols else Literal(1, i64)
        assert local is not None
        terms.append((factor, local, True))
    return terms


def negative(terms: Sum) -> tuple[list[Statement], Local]:
    """Whether a sum is negative, and what computes that."""
    out: list[Statement] = []
    total: Operand = Literal(0, i64)
    for factor, operand, small in terms:
        term, added = Local(i64), Local(i64)
        known = operand if small else clamped(out, operand)
        out.append(Compute(term, "multiply", (known, Literal(abs(factor), i64))))
        out.append(Compute(added, "subtract" if factor < 0 else "add", (total, term)))
        total = added
    found = Local(bool_)
    out.append(Compute(found, "less", (total, Literal(0, i64))))
    return out, found


def hold(asked: list[Extent], integers: Integers) -> tuple[list[Statement], Operand]:
    """Whether none of some sums is negative, and what computes that."""
    out: list[Statement] = []
    holds: Operand = Literal(True, bool_)
    for extent in asked:
        made, fails = negative(as_sum(extent, integers))
        no, both = Local(bool_), Local(bool_)
        out += [*made, Compute(no, "logical_not", (fails,))]
        out.append(Compute(both, "logical_and", (holds, no)))
        holds = both
    return out, holds
