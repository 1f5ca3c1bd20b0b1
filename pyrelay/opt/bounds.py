"""Upper bounds of extents that a program binds while it runs.

In: a block. Out: for an extent that mentions symbols bound inside, as the length of `x[:k]` in a
loop over k, an extent of symbols known before that it never exceeds, where that is easily seen.
"""

from __future__ import annotations

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Dim, Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, Const, Let, Loop, OpCall
from pyrelay.ir.op import Fusion
from pyrelay.ir.types import TensorType, bool_
from pyrelay.opt.shapes import shape_of

_DEEPEST = 30


class Bounds:
    """Bounds of what is computed inside a block."""

    def __init__(self, block: Block) -> None:
        self.makers: dict[Atom, Let] = {}
        self.counts: dict[Atom, Atom | None] = {}
        self.bound: dict[Symbol, Atom] = {}  # symbol -> the number that it stands for
        self.unknown: set[Symbol] = set()
        for let in walk.nested_lets(block):
            self.makers.update(dict.fromkeys(let.outs, let))
            if isinstance(let.rhs, Loop):
                if let.rhs.index is not None:
                    self.counts[let.rhs.index] = let.rhs.count
                self.unknown.update(let.rhs.dims)
            if isinstance(let.rhs, OpCall) and let.rhs.op.name == "as_extent":
                self.bound[let.dims[0]] = let.rhs.args[0]
            else:
                self.unknown.update(let.dims)

    def of(self, array: Atom) -> tuple[Extent, ...] | None:
        """A shape of symbols known before that holds that of an array; None if not found."""
        found = [self._axis(array, axis, 0) for axis in range(len(shape_of(array)))]
        return tuple(found) if all(e is not None for e in found) else None  # type: ignore[arg-type]

    def _axis(self, array: Atom, axis: int, depth: int) -> Extent | None:
        """The most elements along an axis: by its extent, or by what the array is a part of."""
        shape = shape_of(array)
        known = self._extent(shape[axis], 0)
        let = self.makers.get(array)
        if known is not None or depth > _DEEPEST or let is None or not isinstance(let.rhs, OpCall):
            return known
        call = let.rhs
        if call.op.name == "slice":
            return self._axis(call.args[0], axis, depth + 1)
        if call.op.name == "index":
            kept = [k for k in range(len(shape_of(call.args[0]))) if k not in call.attrs["axes"]]
            return self._axis(call.args[0], kept[axis], depth + 1)
        if call.op.fusion is Fusion.ELEMENTWISE:
            for arg in call.args:
                own = shape_of(arg)
                if len(own) == len(shape) and own[axis] == shape[axis]:
                    known = self._axis(arg, axis, depth + 1)
                    if known is not None:
                        return known
        return None

    def _extent(self, extent: Extent, depth: int) -> Extent | None:
        if isinstance(extent, int):
            return extent
        if depth > _DEEPEST or not self.unknown.isdisjoint(dims.symbols(extent)):
            return None
        if not any(s in self.bound for s in dims.symbols(extent)):
            return extent
        total: Extent = 0
        for monomial, coefficient in extent.terms:
            term = Dim(((monomial, coefficient),)) if monomial else coefficient
            most = self._term(term, depth)
            if most is None:
                return None
            total = dims.add(total, most)
        return total

    def _term(self, term: Extent, depth: int) -> Extent | None:
        """The most that one term can be; extents that are subtracted are not negative."""
        if isinstance(term, int) or not any(s in self.bound for s in dims.symbols(term)):
            return term
        ((monomial, coefficient),) = term.terms
        if coefficient < 0:
            return 0 if dims.non_negative(Dim(((monomial, 1),))) else None
        most: Extent = coefficient
        for atom, power in monomial:
            factor: Extent | None
            match atom:
                case Symbol():
                    number = self.bound.get(atom)
                    factor = dims.of(atom) if number is None else self._number(number, depth + 1)
                case dims.Extreme("max", a, b):
                    left, right = self._extent(a, depth + 1), self._extent(b, depth + 1)
                    known = left is not None and right is not None
                    factor = dims.maximum(left, right) if known else None  # type: ignore[arg-type]
                case dims.Extreme(_, a, b):
                    left, right = self._extent(a, depth + 1), self._extent(b, depth + 1)
                    factor = left if right is None else right
                    if left is not None and right is not None:
                        factor = dims.minimum(left, right)
                case dims.Quotient(a, b) if isinstance(b, int) and b > 0:
                    over = self._extent(a, depth + 1)
                    factor = None if over is None else dims.quotient(over, b)
                case _:
                    factor = None
            if factor is None:
                return None
            for _ in range(power):
                most = dims.multiply(most, dims.maximum(factor, 0))
        return most

    def _number(self, atom: Atom, depth: int) -> Extent | None:
        """The most that a number can be."""
        if depth > _DEEPEST:
            return None
        if isinstance(atom, Const):
            return int(atom.value) if isinstance(atom.value, int) else None
        if atom in self.counts:
            count = self.counts[atom]
            return None if count is None else self._number(count, depth + 1)
        let = self.makers.get(atom)
        if let is None or not isinstance(let.rhs, OpCall):
            return None
        call = let.rhs
        if call.op.name == "extent":
            return self._extent(call.attrs["size"], depth + 1)
        if call.op.name == "cast":
            return self._number(call.args[0], depth + 1)
        if call.op.name == "sum":
            return self._count(call.args[0], depth + 1)
        if call.op.name == "subtract":
            small = self._is_natural(call.args[1], depth + 1)
            return self._number(call.args[0], depth + 1) if small else None
        if call.op.name in ("minimum", "maximum", "where", "add"):
            values = call.args[1:] if call.op.name == "where" else call.args
            known = [self._number(a, depth + 1) for a in values]
            a, b = known
            if call.op.name == "minimum" and (a is None or b is None):
                return b if a is None else a
            if a is None or b is None:
                return None
            if call.op.name == "add":
                return dims.add(a, b)
            return dims.minimum(a, b) if call.op.name == "minimum" else dims.maximum(a, b)
        return None

    def _count(self, array: Atom, depth: int) -> Extent | None:
        """The most that elements of an array can be together, if they are 0 or 1."""
        let = self.makers.get(array)
        if let is None or not isinstance(let.rhs, OpCall) or let.rhs.op.name != "cast":
            return None
        ty = let.rhs.args[0].type
        if not isinstance(ty, TensorType) or ty.dtype != bool_:
            return None
        axes = [self._extent(extent, depth) for extent in ty.shape]
        known = [extent for extent in axes if extent is not None]
        return dims.product(known) if len(known) == len(axes) else None

    def _is_natural(self, atom: Atom, depth: int) -> bool:
        """Whether a number is seen to be 0 or more."""
        if isinstance(atom, Const):
            return isinstance(atom.value, int) and atom.value >= 0
        if depth > _DEEPEST:
            return False
        if atom in self.counts:
            return True
        let = self.makers.get(atom)
        if let is None or not isinstance(let.rhs, OpCall):
            return False
        call = let.rhs
        if call.op.name in ("add", "minimum", "cast"):
            return all(self._is_natural(a, depth + 1) for a in call.args)
        if call.op.name == "maximum":
            return any(self._is_natural(a, depth + 1) for a in call.args)
        return call.op.name == "extent" and dims.non_negative(call.attrs["size"])
