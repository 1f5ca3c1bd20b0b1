"""Which integers of a kernel fit into 32 bits, as long as its arrays are not huge.

In: a kernel. Out: `Narrow`, or None: scalars that follow from extents and loop indices alone, and a
polynomial that bounds all of them. A GPU computes with 64 bits by two or more instructions, and
divides by some seventy; which version of a kernel is launched is decided when extents are known.

A bound is a polynomial with coefficients above 0 of numbers that are never below 0, so that the
larger coefficient of each term bounds two values at once. The number of rows that an index is
divided into is one of those numbers: a `Quotient`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    EXTENT,
    Body,
    Compute,
    For,
    Kernel,
    Literal,
    Local,
    Operand,
    Parameter,
    Read,
    bodies,
)
from pyrelay.records import dataclass

ITEMS = "items"
"""Stands for the length of the parallel axis."""

LARGEST = 2**31 - 2**26
"""What a bound has to be below: indices of loops go beyond their ends by a step of a grid."""

_MOST_TERMS = 24


@dataclass(frozen=True, slots=True)
class Quotient:
    """One bound divided by what is known to be another, which may be 0 where nothing is done."""

    over: tuple[tuple[Term, int], ...]
    by: tuple[tuple[Term, int], ...]


Factor: TypeAlias = "Parameter | str | Quotient"
Term: TypeAlias = "tuple[Factor, ...]"
Bound: TypeAlias = "Mapping[Term, int]"


@dataclass(frozen=True, slots=True)
class Narrow:
    """Scalars that fit into 32 bits where the bound is below `LARGEST`."""

    scalars: frozenset[Local]
    bound: Bound


def narrow(kernel: Kernel, unknown: frozenset[Parameter] = frozenset()) -> Narrow | None:
    """The scalars of a kernel that may be narrow, None if there is nothing to gain. Extents that
    are `unknown` when it is chosen bound nothing."""
    finder = _Finder(kernel, unknown)
    finder.body(kernel.body)
    if not finder.gains:
        return None
    bound: Bound = {}
    for each in finder.bounds.values():
        bound = _either(bound, each)
    own = set(finder.bounds) - {kernel.begin, kernel.end}
    return Narrow(frozenset(own), bound) if len(bound) <= _MOST_TERMS else None


class _Finder:
    def __init__(self, kernel: Kernel, unknown: frozenset[Parameter]) -> None:
        self.unknown = unknown
        self.bounds: dict[Local, Bound] = {}
        self.bounds[kernel.begin] = self.bounds[kernel.end] = {(ITEMS,): 1}
        self.ends = {kernel.begin, kernel.end}
        self.exact: set[Local] = set()  # scalars that are equal to their bounds
        self.signed: set[Local] = set()  # those that may be below 0
        self.gains = False

    def of(self, operand: Operand) -> Bound | None:
        if isinstance(operand, Literal):
            whole = operand.dtype == i64
            return {(): abs(operand.value)} if whole and operand.value else {} if whole else None
        return self.bounds.get(operand)

    def body(self, body: Body) -> None:
        for statement in body:
            match statement:
                case Read(out=out, parameter=parameter) if parameter.role == EXTENT:
                    if parameter not in self.unknown:
                        self.bounds[out] = {(parameter,): 1}
                        self.exact.add(out)
                case Compute() if statement.out.dtype == i64:
                    self._compute(statement)
                case For(index=index, start=start, stop=stop):
                    first, last = self.of(start), self.of(stop)
                    if first is not None and last is not None:
                        self.bounds[index] = _either(first, last)
                        self._note_sign(index, (start, stop))
            for inner in bodies(statement):
                self.body(inner)

    def _compute(self, statement: Compute) -> None:
        # The ends of the range have 64 bits: what is computed from them has as well.
        if self.ends.intersection(statement.args):
            return
        whole = statement.args[1:] if statement.primitive == "where" else statement.args
        found = [self.of(a) for a in whole]
        known = [b for b in found if b is not None]
        if len(known) < len(found):
            return
        exact = [self._is_exact(a) for a in whole]
        match statement.primitive:
            case "add" | "subtract":
                bound = _sum(*known)
            case "multiply":
                bound = _product(*known)
            case "floor_divide" if exact[1] and known[1]:
                over, by = (tuple(b.items()) for b in known)
                bound = {(Quotient(over, by),): 1}
            case "floor_divide" | "negative" | "absolute":
                bound = known[0]
            case "remainder":
                bound = known[1]
            case "minimum" if not self.signed.intersection(whole):
                bound = known[exact[1]]
            case "minimum" | "maximum" | "where":
                bound = _either(*known)
            case _:
                return
        self.bounds[statement.out] = bound
        self.gains = True
        if statement.primitive in ("subtract", "negative"):
            self.signed.add(statement.out)
        self._note_sign(statement.out, whole)
        if statement.primitive in ("add", "multiply", "floor_divide") and all(exact):
            self.exact.add(statement.out)

    def _is_exact(self, operand: Operand) -> bool:
        if isinstance(operand, Literal):
            return bool(operand.value >= 0)
        return operand in self.exact

    def _note_sign(self, out: Local, sources: Sequence[Operand]) -> None:
        if any(
            a.value < 0 if isinstance(a, Literal) else a in self.signed for a in sources
        ):
            self.signed.add(out)


def _sum(a: Bound, b: Bound) -> Bound:
    return {term: a.get(term, 0) + b.get(term, 0) for term in dict.fromkeys((*a, *b))}


def _either(a: Bound, b: Bound) -> Bound:
    return {term: max(a.get(term, 0), b.get(term, 0)) for term in dict.fromkeys((*a, *b))}


def _product(a: Bound, b: Bound) -> Bound:
    found: dict[Term, int] = {}
    for left, count in a.items():
        for right, times in b.items():
            term = tuple(sorted((*left, *right), key=repr))
            found[term] = found.get(term, 0) + count * times
    return found
