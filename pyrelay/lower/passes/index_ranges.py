"""What is known about integers in a kernel: ranges of indices, comparisons that they decide.

In: integers as polynomials of extents and of symbols that stand for loop indices. Out: whether one
is certainly not negative, and the truth of a comparison if that settles it.
"""

from __future__ import annotations

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent, Symbol

# comparison of i64 -> whether its operands swap to make it "a >= b" (True) or "a < b" (False)
_COMPARED = {
    "greater_equal": (False, True), "less": (False, False),
    "less_equal": (True, True), "greater": (True, False),
}  # fmt: skip


class IndexRanges:
    """The symbols that stand for indices, each with the extent it stays below."""

    def __init__(self) -> None:
        self._bounds: dict[Symbol, Extent] = {}

    def index(self, stop: Extent) -> Extent:
        """A fresh index of the range 0..stop-1."""
        symbol = Symbol("i")
        self._bounds[symbol] = stop
        return dims.of(symbol)

    def decided(self, name: str, a: Extent, b: Extent) -> bool | None:
        """The truth of a comparison, by its primitive's name; None if it is not certain."""
        if name not in _COMPARED:
            return None
        flipped, holds = _COMPARED[name]
        if flipped:
            a, b = b, a
        difference = dims.add(a, dims.multiply(-1, b))
        if self.non_negative(difference):  # a >= b
            return holds
        if self.non_negative(dims.add(-1, dims.multiply(-1, difference))):  # a < b
            return not holds
        return None

    def non_negative(self, extent: Extent) -> bool:
        """True if an integer is certainly >= 0."""
        lowest = self._lowest(extent)
        if lowest is not None and dims.non_negative(lowest):
            return True
        # An index that exists says that its extent n is not 0: put n = i + 1 + more.
        for symbol in dims.symbols(extent):
            bound = self._bounds.get(symbol)
            if bound is None or isinstance(bound, int) or len(dims.symbols(bound)) != 1:
                continue
            (owner,) = dims.symbols(bound)
            if bound == dims.of(owner):
                more = dims.add(dims.add(dims.of(symbol), 1), dims.fresh("more"))
                lowest = self._lowest(dims.substitute(extent, {owner: more}), symbol)
                if lowest is not None and dims.non_negative(lowest):
                    return True
        return False

    def sides(self, a: Extent, n: Extent) -> tuple[bool, bool] | None:
        """Whether `a` may lie below 0..n-1, and beyond; None if by more than n, for all we know."""
        negated = dims.multiply(-1, a)
        rest = dims.add(dims.add(n, negated), -1)
        below, beyond = not self.non_negative(a), not self.non_negative(rest)
        if (below and not self.non_negative(dims.add(a, n))) or (
            beyond and not self.non_negative(dims.add(rest, n))
        ):
            return None
        return below, beyond

    def divided(self, a: Extent, b: Extent) -> tuple[Extent, int, Extent, Extent] | None:
        """(q, c, m, r), so that `a` is q * m + r, `b` is c * m, and r is in 0..m-1; None where a
        division is needed, for all we know. Then `a // b` is q // c."""
        if isinstance(a, int) or isinstance(b, int) or not dims.is_product(b):
            return None
        ((monomial, factor),) = b.terms
        if factor < 0:  # quotients are rounded the other way
            return None
        unit = dims.Dim(((monomial, 1),))
        for by, times in ((b, 1), (unit, factor)):
            whole: Extent = 0
            for term in a.terms:
                part = dims.Dim((term,)) if term[0] else term[1]
                if part != 0 and not isinstance(part, int):
                    exact = dims.divided_exactly(part, by)
                    whole = whole if exact is None else dims.add(whole, exact)
            rest = dims.add(a, dims.multiply(-1, dims.multiply(whole, by)))
            beyond = dims.add(dims.add(by, -1), dims.multiply(-1, rest))
            if whole != 0 and self.non_negative(rest) and self.non_negative(beyond):
                return whole, times, by, rest
        return None

    def _lowest(self, extent: Extent, free: Symbol | None = None) -> Extent | None:
        """A lower bound without loop indices: each term at the end of their ranges that fits.

        The index `free` stays: nothing is said of it but that it is not negative.
        """
        if isinstance(extent, int):
            return extent
        total: Extent = 0
        for monomial, coefficient in extent.terms:
            term: Extent = coefficient
            for atom, power in monomial:
                if not isinstance(atom, Symbol):
                    inner = dims.Dim(((((atom, 1),), 1),))
                    if self._moving(inner, free):
                        return None
                    factor: Extent = inner
                elif atom in self._bounds and atom is not free:
                    factor = 0 if coefficient > 0 else dims.add(self._bounds[atom], -1)
                    if self._moving(factor, free):
                        return None
                else:
                    factor = dims.of(atom)
                for _ in range(power):
                    term = dims.multiply(term, factor)
            total = dims.add(total, term)
        return total

    def _moving(self, extent: Extent, free: Symbol | None) -> bool:
        return any(s in self._bounds and s is not free for s in dims.symbols(extent))


def polynomial(name: str, a: Extent | None, b: Extent | None) -> Extent | None:
    """The polynomial of a sum, difference or product of polynomials."""
    if a is None or b is None or name not in ("add", "subtract", "multiply"):
        return None
    if name == "multiply":
        return dims.multiply(a, b)
    return dims.add(a, b if name == "add" else dims.multiply(-1, b))
