"""Extents as plan values: a polynomial in, a slot or a constant out.

Every expression is computed once per function, right after the last of its symbols is bound: so
sizes that a loop does not change are computed before it, and equal sizes share a slot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Extreme, Quotient, Remainder, Symbol
from pyrelay.lower.planning.frame import Frame
from pyrelay.lower.planning.instructions import Binary, Immediate, Slot, Value
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class BindingPoint:
    """The place in the code where some symbols have just been bound."""

    order: int  # a point that another one dominates has the smaller number
    code: list[Any]


class Sizes:
    """The symbols of one function and the expressions over them."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._symbols: dict[Symbol, Value] = {}
        self._points: dict[int, BindingPoint] = {}  # by slot
        self._shared: dict[tuple[str, Value, Value], Value] = {}
        self._extents: dict[Extent, Value] = {}
        self._count = 0

    def bind(self, values: dict[Symbol, Value]) -> None:
        """From here on in the code, the symbols have these values."""
        self._count += 1
        point = BindingPoint(self._count, self._frame.placeholder())
        for symbol, value in values.items():
            self._symbols[symbol] = value
            if isinstance(value, Slot):
                if value.index in self._points:
                    self._forget(value.index)
                self._points[value.index] = point

    def _forget(self, slot: int) -> None:
        """Share no longer what was computed from a slot: it has another value from here on.

        A loop's carried extents and those that it leaves behind are in the same slots.
        """
        changed: set[Value] = {Slot(slot)}
        for (op, a, b), result in list(self._shared.items()):
            if a in changed or b in changed:
                changed.add(result)
                del self._shared[op, a, b]

    def value(self, extent: Extent) -> Value:
        """The extent as an operand."""
        if isinstance(extent, int):
            return Immediate(extent)
        found = self._extents.get(extent)
        if found is None:
            found = self._extents[extent] = self._sum(extent)
        return found

    def substituted(self, extent: Extent, mapping: Mapping[Symbol, Extent]) -> Value:
        """An extent over a callee's symbols, which stand for extents of this function."""
        return self.value(dims.substitute(extent, mapping))

    def values(self, extents: tuple[Extent, ...]) -> tuple[Value, ...]:
        """Several extents as operands."""
        return tuple(map(self.value, extents))

    def _sum(self, extent: dims.Dim) -> Value:
        total: Value = Immediate(0)
        for monomial, coefficient in extent.terms:
            term: Value = Immediate(abs(coefficient))
            for atom, power in monomial:
                for _ in range(power):
                    term = self.compute("mul.i64", term, self._atom(atom))
            total = self.compute("add.i64" if coefficient > 0 else "sub.i64", total, term)
        return total

    def _atom(self, atom: dims.Atom) -> Value:
        match atom:
            case Symbol():
                return self._symbols[atom]
            case Quotient(a, b):
                return self.compute("floordiv.i64", self.value(a), self.value(b))
            case Remainder(a, b):
                return self.compute("mod.i64", self.value(a), self.value(b))
            case Extreme(kind, a, b):
                return self.compute(f"{kind}.i64", self.value(a), self.value(b))
        raise AssertionError(atom)

    def compute(self, op: str, a: Value, b: Value) -> Value:
        """`a op b` of values that are extents, computed once."""
        if isinstance(a, Immediate) and isinstance(b, Immediate):
            return Immediate(_FOLD[op](a.word, b.word))
        if (op, a) == ("add.i64", Immediate(0)) or (op, a) == ("mul.i64", Immediate(1)):
            return b
        if (op, b) == ("add.i64", Immediate(0)) or (op, b) == ("mul.i64", Immediate(1)):
            return a
        key = (op, a, b)
        if key not in self._shared:
            point = max(
                (self._points[v.index] for v in (a, b) if isinstance(v, Slot)),
                key=lambda p: p.order,
            )
            slot = self._frame.slot()
            point.code.append(Binary(op, slot, a, b))
            self._points[slot] = point
            self._shared[key] = Slot(slot)
        return self._shared[key]


_FOLD: dict[str, Any] = {
    "add.i64": lambda a, b: a + b,
    "sub.i64": lambda a, b: a - b,
    "mul.i64": lambda a, b: a * b,
    "floordiv.i64": lambda a, b: a // b if b else 0,
    "mod.i64": lambda a, b: a % b if b else 0,
    "min.i64": min,
    "max.i64": max,
}
