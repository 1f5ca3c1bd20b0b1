"""Symbolic extents: what goes in are array sizes, what comes out is a canonical integer polynomial.

An extent is a Python `int` or a `Dim`: a polynomial with integer coefficients over atoms, where an
atom is a `Symbol` (an extent known at run time) or a floor division, modulo, minimum or maximum of
extents.
Canonical form makes equality structural: `n + n == 2 * n`, `(2 * n) // 2 == n`.
All symbols stand for integers >= 0.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from enum import Enum
from typing import Any
from weakref import WeakValueDictionary

from pyrelay.records import dataclass, once

_serial = itertools.count()
_Key = tuple[Any, ...]


class Origin(Enum):
    """Where the value of a symbol comes from, hence how a question about it can be answered."""

    ENTRY = "entry"  # extent of an argument of the program: a guard of the executable can decide
    RUNTIME = "runtime"  # known only while the program runs: only a run-time check can decide


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """An extent known at run time; compared by identity, ordered by age. It never exceeds `most`,
    if that is known."""

    name: str
    origin: Origin = Origin.ENTRY
    serial: int = field(default_factory=lambda: next(_serial), repr=False)
    most: int | None = field(default=None, repr=False)

    def __str__(self) -> str:
        spell = _spelling.get()
        return self.name if spell is None else spell(self)


class _Deep:
    """What is made of extents. The sizes of a network's layers are divisions of each other, so the
    hash of one, its place in the canonical order and its sign are worked out once."""

    __slots__ = ("__weakref__", "_hash", "_key", "_natural", "_symbols")

    @once
    def __hash__(self) -> int:
        return hash(_fields(self))

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not type(self):
            return self is other
        return hash(self) == hash(other) and _fields(self) == _fields(other)

    @once
    def key(self) -> _Key:
        """Decides the order of atoms that are not equal."""
        fields = (x if isinstance(x, str) else _extent_key(x) for x in _fields(self))
        return (_RANKS[type(self)], *fields)


def _fields(self: Any) -> _Key:
    return tuple(getattr(self, name) for name in self.__match_args__)


@dataclass(frozen=True, slots=True)
class Quotient(_Deep):
    """Floor division of two extents that does not simplify."""

    numerator: Extent
    denominator: Extent
    __eq__, __hash__ = _Deep.__eq__, _Deep.__hash__

    @once
    def natural(self) -> bool:
        """Whether it is certainly >= 0."""
        return non_negative(self.numerator) and non_negative(self.denominator)


@dataclass(frozen=True, slots=True)
class Remainder(_Deep):
    """Modulo of two extents that does not simplify."""

    numerator: Extent
    denominator: Extent
    __eq__, __hash__ = _Deep.__eq__, _Deep.__hash__

    @once
    def natural(self) -> bool:
        """Whether it is certainly >= 0."""
        return non_negative(self.denominator)


@dataclass(frozen=True, slots=True)
class Extreme(_Deep):
    """`min` or `max` of two extents that does not simplify."""

    kind: str  # "min" or "max"
    left: Extent
    right: Extent
    __eq__, __hash__ = _Deep.__eq__, _Deep.__hash__

    @once
    def natural(self) -> bool:
        """Whether it is certainly >= 0."""
        either = non_negative(self.left), non_negative(self.right)
        return all(either) if self.kind == "min" else any(either)


Atom = Symbol | Quotient | Remainder | Extreme
_RANKS: dict[type, int] = {Quotient: 1, Remainder: 2, Extreme: 3}
Monomial = tuple[tuple[Atom, int], ...]  # (atom, power), ordered; () is the constant term


@dataclass(frozen=True, slots=True)
class Dim(_Deep):
    """A non-constant extent: sum of coefficient * monomial, in canonical order."""

    terms: tuple[tuple[Monomial, int], ...]
    __eq__, __hash__ = _Deep.__eq__, _Deep.__hash__

    @once
    def key(self) -> _Key:
        """Decides the order of extents that are not equal."""
        return 1, tuple((_monomial_key(m), c) for m, c in self.terms)

    @once
    def natural(self) -> bool:
        """Whether it is certainly >= 0."""
        return all(c > 0 and all(is_natural(a) for a, _ in m) for m, c in self.terms)

    @once
    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols that occur, oldest first, each once."""
        found: dict[Symbol, None] = {}
        pending: list[Extent] = [self]
        met = set[Extent]()
        while pending:
            here = pending.pop()
            if isinstance(here, int) or here in met:
                continue
            met.add(here)
            found.update(dict.fromkeys(getattr(here, "_symbols", ())))
            if hasattr(here, "_symbols"):
                continue
            for atom in {atom for monomial, _ in here.terms for atom, _ in monomial}:
                if isinstance(atom, Symbol):
                    found[atom] = None
                else:
                    pending += (e for e in _fields(atom) if not isinstance(e, str))
        return tuple(sorted(found, key=lambda s: s.serial))

    def __add__(self, other: Extent) -> Extent:
        return add(self, other)

    def __radd__(self, other: Extent) -> Extent:
        return add(other, self)

    def __sub__(self, other: Extent) -> Extent:
        return add(self, multiply(-1, other))

    def __rsub__(self, other: Extent) -> Extent:
        return add(other, multiply(-1, self))

    def __neg__(self) -> Extent:
        return multiply(-1, self)

    def __mul__(self, other: Extent) -> Extent:
        return multiply(self, other)

    def __rmul__(self, other: Extent) -> Extent:
        return multiply(other, self)

    def __floordiv__(self, other: Extent) -> Extent:
        return quotient(self, other)

    def __rfloordiv__(self, other: Extent) -> Extent:
        return quotient(other, self)

    def __mod__(self, other: Extent) -> Extent:
        return remainder(self, other)

    def __rmod__(self, other: Extent) -> Extent:
        return remainder(other, self)

    def __str__(self) -> str:
        return show(self)


Extent = int | Dim


def of(symbol: Symbol) -> Dim:
    """The extent that is just `symbol`."""
    return Dim(((((symbol, 1),), 1),))


def fresh(name: str, origin: Origin = Origin.ENTRY) -> Dim:
    """A new extent of that name."""
    return of(Symbol(name, origin))


def _terms(extent: Extent) -> dict[Monomial, int]:
    if isinstance(extent, Dim):
        return dict(extent.terms)
    return {(): extent} if extent else {}


_atoms: WeakValueDictionary[_Key, Quotient | Remainder | Extreme] = WeakValueDictionary()
"""The atoms that there are, each once: equal ones need no look at what they are made of."""


def _atom(kind: type[Quotient | Remainder | Extreme], *of: Any) -> Extent:
    """The extent that is one atom, made of these."""
    known = _atoms.get((kind, *of))
    if known is None:
        known = _atoms[(kind, *of)] = kind(*of)
    return Dim(((((known, 1),), 1),))


def _atom_key(atom: Atom) -> _Key:
    return (0, atom.serial) if isinstance(atom, Symbol) else atom.key()


def _extent_key(extent: Extent) -> _Key:
    return extent.key() if isinstance(extent, Dim) else (0, extent)


def _monomial_key(monomial: Monomial) -> _Key:
    return (len(monomial), tuple((_atom_key(a), p) for a, p in monomial))


def _make(terms: Mapping[Monomial, int]) -> Extent:
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    # Highest monomials first, so that "2*n + 1" reads as people write it.
    ordered: Iterable[tuple[Monomial, int]] = kept.items()
    if len(kept) > 1:
        ordered = sorted(ordered, key=lambda item: (-len(item[0]), _monomial_key(item[0])))
    return Dim(tuple(ordered))


def _plus(extent: Dim, number: int) -> Extent:
    """The sum with a number, which stands last."""
    if not number:
        return extent
    *others, last = extent.terms
    if last[0]:
        return Dim((*extent.terms, ((), number)))
    total = last[1] + number
    return Dim((*others, ((), total))) if total else Dim(tuple(others))


def add(left: Extent, right: Extent) -> Extent:
    """left + right."""
    if isinstance(left, int):
        return left + right if isinstance(right, int) else _plus(right, left)
    if isinstance(right, int):
        return _plus(left, right)
    terms = _terms(left)
    for monomial, coefficient in _terms(right).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return _make(terms)


def _times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: _atom_key(item[0])))


def _scaled(extent: Dim, number: int) -> Extent:
    """The product with a number: terms keep their order."""
    if number in (0, 1):
        return extent if number else 0
    return Dim(tuple((monomial, c * number) for monomial, c in extent.terms))


def multiply(left: Extent, right: Extent) -> Extent:
    """left * right."""
    if isinstance(left, int):
        return left * right if isinstance(right, int) else _scaled(right, left)
    if isinstance(right, int):
        return _scaled(left, right)
    terms: dict[Monomial, int] = {}
    for a, p in _terms(left).items():
        for b, q in _terms(right).items():
            product = _times(a, b)
            terms[product] = terms.get(product, 0) + p * q
    return _make(terms)


def divided_exactly(left: Extent, right: Extent) -> Extent | None:
    """left / right when right is one term that divides every term of left, else None."""
    divisor = _terms(right)
    if len(divisor) != 1:
        return 1 if left == right else None
    ((by, factor),) = divisor.items()
    result: dict[Monomial, int] = {}
    for monomial, coefficient in _terms(left).items():
        powers = dict(monomial)
        for atom, power in by:
            powers[atom] = powers.get(atom, 0) - power
        if coefficient % factor or any(p < 0 for p in powers.values()):
            return None
        rest = sorted(((a, p) for a, p in powers.items() if p), key=lambda i: _atom_key(i[0]))
        result[tuple(rest)] = coefficient // factor
    return _make(result)


def quotient(left: Extent, right: Extent) -> Extent:
    """Floor division. Raises ZeroDivisionError for a constant zero divisor."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    if right == 0:
        raise ZeroDivisionError("extent divided by zero")
    exact = divided_exactly(left, right)
    if exact is not None:
        return exact
    if isinstance(right, int):
        # (right * q + r) // right == q + r // right
        whole = {m: c // right for m, c in _terms(left).items() if m and c % right == 0}
        if whole:
            q = _make(whole)
            return add(q, quotient(add(left, multiply(-right, q)), right))
    return _atom(Quotient, left, right)


def quotient_up(left: Extent, right: Extent) -> Extent:
    """Division that rounds up: how many parts of `right` hold `left`, for a positive `right`.
    Raises ZeroDivisionError for a constant zero divisor."""
    return quotient(add(add(left, right), -1), right)


def remainder(left: Extent, right: Extent) -> Extent:
    """Python's modulo. Raises ZeroDivisionError for a constant zero divisor."""
    if isinstance(left, int) and isinstance(right, int):
        return left % right
    if right == 0:
        raise ZeroDivisionError("extent modulo zero")
    if divided_exactly(left, right) is not None:
        return 0
    return _atom(Remainder, left, right)


def _extreme(kind: str, left: Extent, right: Extent) -> Extent:
    if isinstance(left, int) and isinstance(right, int):
        return min(left, right) if kind == "min" else max(left, right)
    difference = add(left, multiply(-1, right))
    if isinstance(difference, int):
        low, high = (left, right) if difference <= 0 else (right, left)
        return low if kind == "min" else high
    if non_negative(difference):
        return right if kind == "min" else left
    if non_negative(multiply(-1, difference)):
        return left if kind == "min" else right
    if _extent_key(right) < _extent_key(left):
        left, right = right, left
    return _atom(Extreme, kind, left, right)


def minimum(left: Extent, right: Extent) -> Extent:
    """The smaller of two extents."""
    return _extreme("min", left, right)


def maximum(left: Extent, right: Extent) -> Extent:
    """The larger of two extents."""
    return _extreme("max", left, right)


def non_negative(extent: Extent) -> bool:
    """True if the extent is certainly >= 0 (symbols are); False means it is not known."""
    return extent >= 0 if isinstance(extent, int) else extent.natural()


def is_natural(atom: Atom) -> bool:
    """Whether an atom is certainly >= 0."""
    return isinstance(atom, Symbol) or atom.natural()


#: An axis of no more elements is short: computing with it costs less than launching a kernel.
SHORT = 16


#: An array of no more elements is near: computing with it on one thread in each round of a loop
#: costs no more than a launch in each round, however many threads share that.
NEAR = 4096


def product(extents: Iterable[Extent]) -> Extent:
    """The product of several extents, 1 for none: the number of elements of a shape."""
    result: Extent = 1
    for extent in extents:
        result = multiply(result, extent)
    return result


def symbols(extent: Extent) -> tuple[Symbol, ...]:
    """The symbols that occur, oldest first, each once."""
    return extent.symbols() if isinstance(extent, Dim) else ()


def is_small(extent: Extent) -> bool:
    """True if a polynomial is linear with small coefficients, so that it cannot leave 64 bits."""
    if isinstance(extent, int):
        return abs(extent) < 2**31
    return all(
        abs(c) < 2**16 and len(m) <= 1 and all(p == 1 and isinstance(a, Symbol) for a, p in m)
        for m, c in extent.terms
    )


def is_product(extent: Dim) -> bool:
    """Whether it is symbols, and at most a number, multiplied."""
    return len(extent.terms) == 1 and all(isinstance(a, Symbol) for a, _ in extent.terms[0][0])


def plain_symbol(extent: Extent) -> Symbol | None:
    """The symbol, if the extent is nothing else."""
    if isinstance(extent, Dim) and len(extent.terms) == 1:
        ((monomial, coefficient),) = extent.terms
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            atom = monomial[0][0]
            return atom if isinstance(atom, Symbol) else None
    return None


def _rebuild(
    extent: Dim, leaf: Callable[[Symbol], Extent], inner: Callable[[Extent], Extent]
) -> Extent:
    """The extent with each symbol replaced, `inner` doing that in what atoms are made of; they nest
    as deep as the user's expression."""
    total: Extent = 0
    for monomial, coefficient in extent.terms:
        term: Extent = coefficient
        for atom, power in monomial:
            value: Extent
            match atom:
                case Symbol():
                    value = leaf(atom)
                case Quotient(a, b):
                    value = quotient(inner(a), inner(b))
                case Remainder(a, b):
                    value = remainder(inner(a), inner(b))
                case Extreme(kind, a, b):
                    value = _extreme(kind, inner(a), inner(b))
            for _ in range(power):
                term = multiply(term, value)
        total = add(total, term)
    return total


def substitute(extent: Extent, mapping: Mapping[Symbol, Extent]) -> Extent:
    """The extent with symbols replaced by extents; symbols not in `mapping` stay."""
    if isinstance(extent, int) or not mapping:
        return extent
    only = plain_symbol(extent)
    if only is not None:
        return mapping.get(only, extent)
    given = tuple(map(mapping.get, symbols(extent)))
    return extent if given.count(None) == len(given) else _substituted(extent, given)


@functools.lru_cache(maxsize=1 << 12)
def _substituted(extent: Dim, given: tuple[Extent | None, ...]) -> Extent:
    """The extent with these for its symbols, None for one that stays. A layer's size is made of
    those of the layers before, so they are asked for again and again."""
    mapping = {s: e for s, e in zip(symbols(extent), given, strict=True) if e is not None}
    return _rebuild(
        extent, lambda s: mapping[s] if s in mapping else of(s), lambda e: substitute(e, mapping)
    )


def evaluate(extent: Extent, values: Mapping[Symbol, int]) -> int:
    """The number, given a value for every symbol. Raises KeyError for one without."""
    if isinstance(extent, int):
        return extent
    result = _rebuild(extent, lambda s: values[s], lambda e: evaluate(e, values))
    assert isinstance(result, int)
    return result


def evaluated(extent: Extent, values: Mapping[Symbol, int]) -> int | None:
    """The number, where there is a value for every symbol; else None."""
    try:
        return evaluate(extent, values)
    except KeyError:
        return None


def show(extent: Extent, name: Callable[[Symbol], str] = str) -> str:
    """Text such as `2*n + 1` or `(n + 1)//2`; `name` spells a symbol."""
    if isinstance(extent, int):
        return str(extent)
    parts: list[str] = []
    for monomial, coefficient in extent.terms:
        factors = [_show_atom(a, name) + (f"**{p}" if p > 1 else "") for a, p in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        text = "*".join(factors)
        sign = "-" if coefficient < 0 else "+"
        if parts:
            parts.append(f"{sign} {text}")
        else:
            parts.append(text if sign == "+" else "-" + text)
    return " ".join(parts)


def _show_atom(atom: Atom, name: Callable[[Symbol], str]) -> str:
    def operand(extent: Extent) -> str:
        text = show(extent, name)
        return text if text.replace("_", "").isalnum() else f"({text})"

    match atom:
        case Symbol():
            return name(atom)
        case Quotient(a, b):
            return f"({operand(a)}//{operand(b)})"
        case Remainder(a, b):
            return f"({operand(a)}%{operand(b)})"
        case Extreme(kind, a, b):
            return f"{kind}({show(a, name)}, {show(b, name)})"


# Whether two extents are equal is asked by type relations. Structure answers by default; `infer`
# installs an oracle that may decide by a guard of the executable or by a run-time check.
_oracle: ContextVar[Callable[[Extent, Extent], bool] | None] = ContextVar("oracle", default=None)


def equal(left: Extent, right: Extent) -> bool:
    """True if the extents are equal, structurally or by the decision of the current oracle."""
    if left == right:
        return True
    if isinstance(left, int) and isinstance(right, int):
        return False
    oracle = _oracle.get()
    return oracle is not None and oracle(left, right)


# How symbols are spelled in text for people: by name, or by their value in the call at hand.
_spelling: ContextVar[Callable[[Symbol], str] | None] = ContextVar("spelling", default=None)


@contextmanager
def spelled_by(spell: Callable[[Symbol], str]) -> Iterator[None]:
    """Spell symbols with `spell` wherever no spelling is given."""
    token = _spelling.set(spell)
    try:
        yield
    finally:
        _spelling.reset(token)


class decided_by:  # noqa: N801 -- used as a function
    """Let `oracle(left, right)` decide equalities that structure leaves open, in a `with` block:
    one is around each op."""

    __slots__ = ("oracle", "token")

    def __init__(self, oracle: Callable[[Extent, Extent], bool]) -> None:
        self.oracle = oracle

    def __enter__(self) -> None:
        self.token = _oracle.set(self.oracle)

    def __exit__(self, *raised: object) -> None:
        _oracle.reset(self.token)
