"""Where each item of a kernel reads and writes.

In: a kernel whose items are done each by one thread, and its launch. Out: for each buffer the
`hazards.Place`s of its accesses: the item's number and what is added to it, a polynomial of what
the launch is given; None for an access of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pyrelay.devices.gpu.hazards import Frozen, Monomial, Place, is_fixed
from pyrelay.ir.types import i64
from pyrelay.lower.kernels.kernel import (
    Body,
    Compute,
    For,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Parameter,
    Read,
    Store,
    bodies,
)
from pyrelay.lower.planning.instructions import Launch
from pyrelay.lower.text.cuda_heads import BY_VALUE
from pyrelay.records import dataclass

Polynomial: TypeAlias = "dict[Monomial, int]"
Valued: TypeAlias = "Callable[[Any], Polynomial]"
"""Gives the value of an operand of a launch."""

ITEM, COLUMN = "item", "column"
_OF_EXTENTS = frozenset(["floor_divide", "remainder", "minimum", "maximum"])


@dataclass(frozen=True, slots=True)
class _Computed:
    """What is computed of polynomials that hang on no item."""

    primitive: str
    args: tuple[Frozen, ...]


def places_of(
    kernel: Kernel, launch: Launch, valued: Valued
) -> dict[Any, frozenset[Place | None]]:
    """The places by operand."""
    given = {p: words[0] for p, words in kernel.split(launch.operands)}
    extent = frozenset(valued(launch.extent).items())
    places: dict[Any, set[Place | None]] = {}
    for parameter, index in accesses(kernel):
        rest = None if index is None else _rest(index)
        place = None
        if rest is not None and not kernel.routines:
            addend = value_of(rest, given, valued)
            place = Place(frozenset(addend.items()), extent, parameter.dtype.size)
        places.setdefault(given[parameter], set()).add(place)
    return {operand: frozenset(each) for operand, each in places.items()}


def moving(kernel: Kernel, launch: Launch, column: For | None, valued: Valued) -> set[Any]:
    """The operands that a launch accesses at other places in other rounds, as far as is known. For
    `column` see `accesses`."""
    given = {p: words[0] for p, words in kernel.split(launch.operands)}
    found: set[Any] = set()
    for parameter, index in accesses(kernel, column):
        rest = {} if index is None else {
            tuple(f for f in monomial if f not in (ITEM, COLUMN)): 1 for monomial in index
        }
        if index is None or not is_fixed(frozenset(value_of(rest, given, valued).items())):
            found.add(given[parameter])
    return found


def accesses(
    kernel: Kernel, column: For | None = None
) -> list[tuple[Parameter, Polynomial | None]]:
    """The accesses of a kernel to its parameters: indices, as far as they are polynomials of them,
    of the number of the `ITEM`, and of that of the `COLUMN` if a loop in it runs over columns."""
    return _Accesses(kernel, column).accesses


def _rest(index: Polynomial) -> Polynomial | None:
    """What is added to the item's number; None if an index is not that number and an addend."""
    rest = dict(index)
    if rest.pop((ITEM,), 0) != 1 or any(ITEM in monomial for monomial in rest):
        return None
    return rest


def value_of(polynomial: Polynomial, given: Mapping[Any, Any], valued: Valued) -> Polynomial:
    """A polynomial of a kernel's parameters as one of what a launch gives it."""
    found: Polynomial = {}
    for monomial, count in polynomial.items():
        term: Polynomial = {(): count}
        for factor in monomial:
            if isinstance(factor, _Computed):
                args = (value_of(dict(each), given, valued) for each in factor.args)
                told = ", ".join(str(sorted(each.items())) for each in args)
                term = product(term, {(f"{factor.primitive}({told})",): 1})
            else:
                term = product(term, valued(given[factor]) if factor in given else {(factor,): 1})
        found = sum_of(found, term, 1)
    return found


class _Accesses:
    """The accesses of a kernel: parameters, and indices as far as they are polynomials."""

    def __init__(self, kernel: Kernel, column: For | None) -> None:
        self.kernel, self.column = kernel, column
        self.values: dict[Operand, Polynomial] = {}
        self.accesses: list[tuple[Parameter, Polynomial | None]] = []
        self._body(kernel.body)

    def _of(self, operand: Operand) -> Polynomial | None:
        if isinstance(operand, Literal):
            return {(): int(operand.value)} if operand.dtype == i64 else None
        return self.values.get(operand)

    def _body(self, body: Body) -> None:
        for statement in body:
            match statement:
                case Read(parameter=parameter) if parameter.role not in BY_VALUE:
                    self.accesses.append((parameter, None))  # by its address, who knows where
                case Read(out=out, parameter=parameter) if out.dtype == i64 and not out.variable:
                    self.values[out] = {(parameter,): 1}
                case Compute(out=out) if out.dtype == i64 and not out.variable:
                    self._compute(out, statement)
                case For(index=index, start=start) if start is self.kernel.begin:
                    self.values[index] = {(ITEM,): 1}
                case For(index=index) if statement is self.column:
                    self.values[index] = {(COLUMN,): 1}
                case Load(array=array, index=index) | Store(array=array, index=index):
                    if isinstance(array, Parameter):
                        self.accesses.append((array, self._of(index)))
            for inner in bodies(statement):
                self._body(inner)

    def _compute(self, out: Local, statement: Compute) -> None:
        known = [self._of(a) for a in statement.args]
        match statement.primitive, known:
            case "add", [dict() as a, dict() as b]:
                self.values[out] = sum_of(a, b, 1)
            case "subtract", [dict() as a, dict() as b]:
                self.values[out] = sum_of(a, b, -1)
            case "multiply", [dict() as a, dict() as b]:
                self.values[out] = product(a, b)
            case primitive, [*args] if primitive in _OF_EXTENTS:
                found = [frozenset(each.items()) for each in args if each is not None]
                fixed = not any({ITEM, COLUMN} & {*m} for each in found for m, _ in each)
                if fixed and len(found) == len(args):
                    self.values[out] = {(_Computed(primitive, tuple(found)),): 1}


def sum_of(a: Polynomial, b: Polynomial, sign: int) -> Polynomial:
    """The sum, or the difference by a sign of -1."""
    found = dict(a)
    for monomial, count in b.items():
        found[monomial] = found.get(monomial, 0) + sign * count
    return {monomial: count for monomial, count in found.items() if count}


def product(a: Polynomial, b: Polynomial) -> Polynomial:
    """The product."""
    found: Polynomial = {}
    for left, x in a.items():
        for right, y in b.items():
            monomial = tuple(sorted((*left, *right), key=str))
            found[monomial] = found.get(monomial, 0) + x * y
    return {monomial: count for monomial, count in found.items() if count}
