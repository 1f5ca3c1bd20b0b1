"""Where each item of a kernel reads and writes.

In: a kernel whose items are done each by one thread, and its launch. Out: for each buffer the
`hazards.Place`s of its accesses: the item's number and what is added to it, a polynomial of what
the launch is given; None for an access of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from pyrelay.devices.hazards import Monomial, Place
from pyrelay.ir.types import i64
from pyrelay.lower.cuda_heads import BY_VALUE
from pyrelay.lower.instructions import Immediate, Launch
from pyrelay.lower.kernel import (
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
from pyrelay.records import dataclass

Polynomial: TypeAlias = "dict[Monomial, int]"

_ITEM = "item"
_OF_EXTENTS = frozenset(["floor_divide", "remainder", "minimum", "maximum"])


@dataclass(frozen=True, slots=True)
class _Computed:
    """What is computed of polynomials that hang on no item."""

    primitive: str
    args: tuple[frozenset[tuple[Monomial, int]], ...]


def places_of(
    kernel: Kernel, launch: Launch, named: Callable[[Any], Any]
) -> dict[Any, frozenset[Place | None]]:
    """The places by operand; `named` gives what stands for the value of one."""
    found = _Accesses(kernel)
    given = {p: words[0] for p, words in kernel.split(launch.operands)}
    extent = _valued({(launch.extent,): 1}, {}, named)
    places: dict[Any, set[Place | None]] = {}
    for parameter, index in found.accesses:
        rest = None if index is None else _rest(index)
        place = None
        if rest is not None and not kernel.routines:
            place = Place(
                frozenset(_valued(rest, given, named).items()), frozenset(extent.items()),
                parameter.dtype.size,
            )
        places.setdefault(given[parameter], set()).add(place)
    return {operand: frozenset(each) for operand, each in places.items()}


def _rest(index: Polynomial) -> Polynomial | None:
    """What is added to the item's number; None if an index is not that number and an addend."""
    rest = dict(index)
    if rest.pop((_ITEM,), 0) != 1 or any(_ITEM in monomial for monomial in rest):
        return None
    return rest


def _valued(
    polynomial: Polynomial, given: Mapping[Any, Any], named: Callable[[Any], Any]
) -> Polynomial:
    """A polynomial of a kernel's parameters as one of what a launch gives it."""
    found: Polynomial = {}
    for monomial, count in polynomial.items():
        factors = []
        for factor in monomial:
            if isinstance(factor, _Computed):
                args = (_valued(dict(each), given, named) for each in factor.args)
                told = ", ".join(str(sorted(each.items())) for each in args)
                factors.append(f"{factor.primitive}({told})")
                continue
            operand = given.get(factor, factor)
            if isinstance(operand, Immediate):
                count *= operand.word
            else:
                factors.append(named(operand))
        key = tuple(sorted(factors))
        found[key] = found.get(key, 0) + count
    return {monomial: count for monomial, count in found.items() if count}


class _Accesses:
    """The accesses of a kernel: parameters, and indices as far as they are polynomials."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
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
                    self.values[index] = {(_ITEM,): 1}
                case Load(array=array, index=index) | Store(array=array, index=index):
                    if isinstance(array, Parameter):
                        self.accesses.append((array, self._of(index)))
            for inner in bodies(statement):
                self._body(inner)

    def _compute(self, out: Local, statement: Compute) -> None:
        known = [self._of(a) for a in statement.args]
        match statement.primitive, known:
            case "add", [dict() as a, dict() as b]:
                self.values[out] = _sum(a, b, 1)
            case "subtract", [dict() as a, dict() as b]:
                self.values[out] = _sum(a, b, -1)
            case "multiply", [dict() as a, dict() as b]:
                self.values[out] = _product(a, b)
            case primitive, [*args] if primitive in _OF_EXTENTS:
                found = [frozenset(each.items()) for each in args if each is not None]
                fixed = not any(_ITEM in monomial for each in found for monomial, _ in each)
                if fixed and len(found) == len(args):
                    self.values[out] = {(_Computed(primitive, tuple(found)),): 1}


def _sum(a: Polynomial, b: Polynomial, sign: int) -> Polynomial:
    found = dict(a)
    for monomial, count in b.items():
        found[monomial] = found.get(monomial, 0) + sign * count
    return {monomial: count for monomial, count in found.items() if count}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for left, x in a.items():
        for right, y in b.items():
            monomial = (*left, *right)
            found[monomial] = found.get(monomial, 0) + x * y
    return {monomial: count for monomial, count in found.items() if count}
