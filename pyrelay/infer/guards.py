"""Decisions about extents and names that a specialisation rests on.

An extent of an argument is a symbol with a hint: its value in the call that is being compiled. A
question about such extents is answered by the hints, and the answer is recorded as a guard: the
executable serves every later call for which the same answers hold.
"""

from __future__ import annotations

from dataclasses import field, replace
from types import BuiltinMethodType
from typing import Any

from pyrelay.infer.spellings import PYTHON
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.python_trees import is_made
from pyrelay.records import dataclass

_FIXED = 4  # an extent of a small array up to which each has a program of its own

_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}


@dataclass(frozen=True, slots=True)
class ExtentGuard:
    """`left op right` had this truth."""

    op: str
    left: Extent
    right: Extent
    truth: bool

    def holds(self, values: dict[Symbol, int]) -> bool:
        """True if the answer is the same for these extents."""
        left, right = dims.evaluate(self.left, values), dims.evaluate(self.right, values)
        return PYTHON[self.op](left, right) is self.truth


ABSENT = object()
"""What a guard finds where a namespace does not have the name."""


@dataclass(frozen=True, slots=True)
class NameGuard:
    """The object found under `name` in `container` (a namespace or a cell) when it was read.

    `by_value` compares numbers, strings and tuples of them; otherwise identity counts. `kind` is
    "item" (dict of globals or builtins), "attribute" (`value` is ABSENT if there was none), "cell",
    "function" (what a class method calls: looking one up makes a new object each time), "registry"
    (the classes and functions of a generic function), "defaults"
    (a function's keyword defaults, a dict that can be written into; `value` is its items), or
    "absent" (a dict of globals that has no such name, so that the builtin is meant; `value` is
    ABSENT).
    """

    kind: str
    container: Any
    name: str
    value: Any
    by_value: bool

    def read(self) -> Any:
        """The object there now; raises what Python raises if it is gone."""
        if self.kind == "item":
            return self.container[self.name]
        if self.kind == "cell":
            return self.container.cell_contents
        if self.kind == "absent":
            return self.container.get(self.name, ABSENT)
        if self.kind == "defaults":
            return keyword_defaults(self.container)
        if self.kind == "registry":
            return registered(self.container)
        if self.kind == "function":
            return getattr(self.container, self.name).__func__
        if self.value is ABSENT:
            return getattr(self.container, self.name, ABSENT)
        return getattr(self.container, self.name)

    def holds(self) -> bool:
        """True if the same object (or an equal number) is there now."""
        try:
            now = self.read()
        except (KeyError, ValueError, AttributeError):
            return False
        if now is self.value:
            return True
        if isinstance(now, BuiltinMethodType):
            return bool(now == self.value)  # of an object, as np.add.at: each look makes a new one
        if self.kind in ("defaults", "registry"):
            return len(now) == len(self.value) and all(
                a is b for a, b in zip(now, self.value, strict=True)
            )
        return self.by_value and type(now) is type(self.value) and _equal(now, self.value)


def keyword_defaults(function: Any) -> tuple[Any, ...]:
    """Names and values of a function's keyword defaults, in one flat tuple."""
    return tuple(part for item in (function.__kwdefaults__ or {}).items() for part in item)


def registered(function: Any) -> tuple[Any, ...]:
    """Classes and what is called for them, of a function of `singledispatch`, in one flat tuple."""
    return tuple(part for item in function.registry.items() for part in item)


def _equal(a: Any, b: Any) -> bool:
    """Whether two constants are one to a program: of one class, and sets of one order."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return bool(a.hex() == b.hex())
    if isinstance(a, (tuple, frozenset)):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)


@dataclass
class Guards:
    """Collects guards while a program is specialised."""

    hints: dict[Symbol, int] = field(default_factory=dict)
    extents: dict[ExtentGuard, None] = field(default_factory=dict)
    names: dict[tuple[str, int, str], NameGuard] = field(default_factory=dict)
    #: loop indices: least and greatest value (None if not known)
    ranges: dict[Symbol, tuple[Extent, Extent | None]] = field(default_factory=dict)
    #: symbols found equal to something, to be substituted when the program is finished
    equalities: dict[Symbol, Extent] = field(default_factory=dict)
    #: whether the program asked if two of its objects are one: what is given twice then matters
    identity: bool = False

    def resolve(self, extent: Extent) -> Extent:
        """The extent with known equalities applied."""
        while self.equalities and any(s in self.equalities for s in dims.symbols(extent)):
            extent = dims.substitute(extent, self.equalities)
        return extent

    def mark(self) -> tuple[int, int]:
        """A point to which `rollback` can return."""
        return len(self.extents), len(self.equalities)

    def rollback(self, mark: tuple[int, int]) -> None:
        """Forget the answers about extents given since `mark`: what asked is interpreted anew."""
        answers, equalities = mark
        while len(self.extents) > answers:
            self.extents.popitem()
        while len(self.equalities) > equalities:
            self.equalities.popitem()

    def alike(self, left: Extent, right: Extent) -> bool:
        """True if two extents are known to be equal, without asking anything new."""
        return left == right or self.resolve(left) == self.resolve(right)

    def spell(self, symbol: Symbol) -> str:
        """An extent of the call at hand as its number, for messages."""
        return str(self.hints[symbol]) if symbol in self.hints else symbol.name

    def _hinted(self, extent: Extent) -> bool:
        return all(s in self.hints for s in dims.symbols(extent))

    def equal(self, left: Extent, right: Extent) -> bool | None:
        """Whether two extents are equal; None if only the running program can tell."""
        left, right = self.resolve(left), self.resolve(right)
        if left == right:
            return True
        if isinstance(left, int) and isinstance(right, int):
            return False
        if not (self._hinted(left) and self._hinted(right)):
            return None
        truth = dims.evaluate(left, self.hints) == dims.evaluate(right, self.hints)
        self.extents[ExtentGuard("==", left, right, truth)] = None
        if truth and not self._unify(left, right):
            self._fix_until_equal(left, right)
        return truth

    def _unify(self, left: Extent, right: Extent) -> bool:
        """Solve `left == right` for a symbol that occurs once, with coefficient 1 or -1."""
        for one, other in ((right, left), (left, right)):
            symbol = dims.plain_symbol(one)
            if symbol is not None and self._eliminates(symbol, other):
                return True
        difference = dims.add(left, dims.multiply(-1, right))
        if isinstance(difference, int):
            return False
        for monomial, coefficient in reversed(difference.terms):
            term = dims.Dim(((monomial, 1),))
            symbol = dims.plain_symbol(term)
            if symbol is None or abs(coefficient) != 1:
                continue
            rest = dims.add(difference, dims.multiply(-coefficient, term))
            if self._eliminates(symbol, dims.multiply(-coefficient, rest)):
                return True
        return False

    def _fix_until_equal(self, left: Extent, right: Extent) -> None:
        """Fix extents to their values, as few and as late ones as do, so that the two agree."""
        found = dims.symbols(dims.add(left, dims.multiply(-1, right)))
        for symbol in reversed(found):
            value = {symbol: self.hints[symbol]}
            if dims.substitute(left, value) == dims.substitute(right, value):
                self.fix(dims.of(symbol))
                return
        for symbol in reversed(found):
            self.fix(dims.of(symbol))
            if self.resolve(left) == self.resolve(right):
                return

    def _eliminates(self, symbol: Symbol, value: Extent) -> bool:
        if symbol.origin is not Origin.ENTRY or symbol in dims.symbols(value):
            return False
        self.equalities[symbol] = value
        return True

    def same(self, left: Extent, right: Extent) -> bool:
        """True if two extents are equal here, which becomes a guard: for joins of paths."""
        return self.equal(left, right) is True

    def compare(self, op: str, left: Extent, right: Extent) -> bool | None:
        """The truth of `left op right`; None if only the running program can tell."""
        left, right = self.resolve(left), self.resolve(right)
        difference = dims.add(left, dims.multiply(-1, right))
        if isinstance(difference, int):
            return bool(PYTHON[op](difference, 0))
        if not self._hinted(difference):
            return self._by_ranges(op, difference)
        if not (self._hinted(left) and self._hinted(right)):  # the same index in both
            left, right = difference, 0
        truth = bool(PYTHON[op](
            dims.evaluate(left, self.hints), dims.evaluate(right, self.hints)
        ))
        self.extents[ExtentGuard(op, left, right, truth)] = None
        if (op == "==" and truth) or (op == "!=" and not truth):
            self._unify(left, right)
        return truth

    def _by_ranges(self, op: str, difference: Extent) -> bool | None:
        """The truth of `difference op 0` where loop indices decide it whatever they are."""
        if op in ("==", "!="):
            apart = self._always("<", difference) or self._always(">", difference)
            return op == "!=" if apart else None
        # An index of a loop that never runs satisfies everything: what is asked comes first.
        if self._always(op, difference):
            return True
        return False if self._always(_OPPOSITE[op], difference) else None

    def _always(self, op: str, difference: Extent) -> bool:
        """True if `difference op 0` whatever the loop indices are."""
        bound = self._bound(difference, 0 if op in (">", ">=") else 1)
        if bound is None:
            return False
        room = bound if op in (">", ">=") else dims.multiply(-1, bound)
        return self._certain(dims.add(room, -1) if op in ("<", ">") else room)

    def _bound(self, extent: Extent, side: int) -> Extent | None:
        """The least (side 0) or greatest (1) value over all loop indices; None if not found."""
        for symbol in reversed(dims.symbols(extent)):  # inner indices first: outer ones bound them
            if symbol not in self.ranges:
                if symbol not in self.hints:
                    return None
                continue
            assert not isinstance(extent, int)
            coefficient = 0
            rest: Extent = extent
            for monomial, factor in extent.terms:
                if monomial == ((symbol, 1),):
                    coefficient = factor
                    rest = dims.add(extent, dims.multiply(-factor, dims.of(symbol)))
            if not coefficient or symbol in dims.symbols(rest):
                return None
            end = self.ranges[symbol][side if coefficient > 0 else 1 - side]
            if end is None:
                return None
            return self._bound(dims.add(rest, dims.multiply(coefficient, end)), side)
        return extent

    def _certain(self, extent: Extent) -> bool:
        """True if the extent is >= 0, by a guard if need be."""
        extent = self.resolve(extent)
        if dims.non_negative(extent):
            return True
        if isinstance(extent, int) or dims.evaluate(extent, self.hints) < 0:
            return False
        self.extents[ExtentGuard(">=", extent, 0, True)] = None
        return True

    def fix(self, extent: Extent) -> int | None:
        """The value of an extent that must be known, by a guard; None if it has no hint."""
        extent = self.resolve(extent)
        if isinstance(extent, int):
            return extent
        if not self._hinted(extent):
            return None
        value = dims.evaluate(extent, self.hints)
        self.extents[ExtentGuard("==", extent, value, True)] = None
        self._unify(extent, value)
        return value

    def is_small(self, extent: Extent, most: int) -> bool:
        """Whether an extent is 1 to `most` in this program; the smallest become known numbers."""
        extent = self.resolve(extent)
        if not isinstance(extent, int) and self._hinted(extent):
            value = dims.evaluate(extent, self.hints)
            if 1 <= value <= _FIXED:
                self.fix(extent)
                return True
        return self.compare(">=", extent, 1) is True and self.compare("<=", extent, most) is True

    def bound(self, symbol: Symbol, most: int) -> None:
        """Make an extent that is no more than `most` in the call at hand say so of itself, by a
        guard; the smallest become known numbers. Nothing is asked of it later."""
        if 1 <= self.hints[symbol] <= _FIXED:
            self.fix(dims.of(symbol))
        elif self.compare("<=", dims.of(symbol), most):
            self.equalities[symbol] = dims.of(replace(symbol, most=most))

    def record(self, guard: NameGuard) -> None:
        """Remember a name that was read, but of what changes only with a function that is known."""
        if is_made(guard.container):
            return
        self.names[guard.kind, id(guard.container), guard.name] = guard
