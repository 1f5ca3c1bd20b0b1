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

Sum: TypeAlias = list[tuple[int, Operand]]
"""Factors and what they multiply."""


def as_sum(extent: Extent, integers: Integers) -> Sum:
    """A sum of extents that may be asked (`distinct_places.may_ask`)."""
    if isinstance(extent, int):
        return [(extent, Literal(1, i64))]
    terms: Sum = []
    for monomial, factor in extent.terms:
        symbols = dims.symbols(dims.Dim(((monomial, 1),))) if monomial else ()
        local = integers.extent(*symbols) if symbols else Literal(1, i64)
        assert local is not None
        terms.append((factor, local))
    return terms


def negative(terms: Sum) -> tuple[list[Statement], Local]:
    """Whether a sum is negative, and what computes that."""
    out: list[Statement] = []
    total: Operand = Literal(0, i64)
    for factor, operand in terms:
        term, added = Local(i64), Local(i64)
        out.append(Compute(term, "multiply", (operand, Literal(abs(factor), i64))))
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
