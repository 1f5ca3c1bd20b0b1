"""Numbers of which lengths were made are those lengths from there on.

In: a module. Out: the module in which a number that `as_extent` took, or the number that it is one
more or less than, is read as the extent after it: `np.zeros(n)` says that `range(n)` and `i < n`
stay within that array. What becomes an extent that is known already is that one.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import field

from pyrelay.ir import dims, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, Const, Function, Let, Module, Var
from pyrelay.ir.types import TensorType, i64
from pyrelay.opt.rewrite import Replaced, Replacement, Rule, Scope, rewrite
from pyrelay.records import dataclass


def lengths(module: Module) -> Module:
    """Read numbers as the extents that they have become."""
    return module.holding({name: _in_function(f) for name, f in module.functions.items()})


def _in_function(function: Function) -> Function:
    if not any(walk.is_call(let, "as_extent") for let in walk.nested_lets(function.body)):
        return function
    reads = _Reads()
    reads.note(function.body)
    return rewrite(function, _rule(reads))


@dataclass
class _Reads:
    """Where variables are read: places in the order in which a function is written.

    after: from where, and to where, a symbol that is bound is in sight. stand_for: which variables
    of the function others are read for.
    """

    places: dict[Var, list[int]] = field(default_factory=dict)
    after: dict[Symbol, tuple[int, int]] = field(default_factory=dict)
    stand_for: dict[Var, tuple[Var, ...]] = field(default_factory=dict)
    count: int = 0

    def note(self, block: Block) -> None:
        """Note what a block and those inside it read."""
        bound: dict[Symbol, int] = {}
        for let in block.lets:
            self._read(walk.operands(let.rhs))
            for inner in walk.blocks(let.rhs):
                self.note(inner)
            bound.update(dict.fromkeys(let.dims, self.count))
        self._read(block.results)
        self.after.update((symbol, (place, self.count)) for symbol, place in bound.items())

    def _read(self, atoms: tuple[Atom, ...]) -> None:
        self.count += 1
        for atom in atoms:
            if isinstance(atom, Var):
                self.places.setdefault(atom, []).append(self.count)

    def read_for(self, var: Var, symbol: Symbol) -> list[Var]:
        """The variables that this one is read for where a symbol is in sight."""
        first, last = self.after[symbol]
        found = []
        for each in self.stand_for.get(var, (var,)):
            places = self.places.get(each, [])
            k = bisect_right(places, first)
            if k < len(places) and places[k] <= last:
                found.append(each)
        return found


def _rule(reads: _Reads) -> Rule:
    def rule(let: Let, builder: Builder, scope: Scope) -> Replacement:
        if not walk.is_call(let, "as_extent"):
            return None
        (symbol,) = let.dims
        number = walk.call_of(let).args[0]
        known = scope.op(number, "extent")
        if known is not None and dims.non_negative(size := known.attrs["size"]):
            return Replaced((), (size,))
        builder.lets.append(let)
        names: dict[Var, Atom] = {}
        for var, extent in _same_numbers(number, dims.of(symbol), scope):
            readers = reads.read_for(var, symbol)
            if readers:
                assert isinstance(var.type, TensorType)
                found = builder.cast(builder.extent(extent), i64, weak=var.type.weak)
                atom = builder.atom(found)
                if isinstance(atom, Var):
                    reads.stand_for[atom] = tuple(readers)
                names.update(dict.fromkeys(readers, atom))
        return Replaced((), (dims.of(symbol),), names) if names else None

    return rule


def _same_numbers(number: Atom, extent: Extent, scope: Scope) -> list[tuple[Var, Extent]]:
    """The number itself, and those that it is a sum with, with a constant, or a difference from."""
    found = []
    while isinstance(number, Var) and _is_number(number):
        found.append((number, extent))
        call = scope.op(number, "add") or scope.op(number, "subtract")
        if call is None:
            break
        left, right = call.args
        if call.op.name == "add" and isinstance(left, Const):
            left, right = right, left
        if not isinstance(right, Const):
            break
        more = int(right.value) if call.op.name == "add" else -int(right.value)
        number, extent = left, dims.add(extent, -more)
    return found


def _is_number(var: Var) -> bool:
    return isinstance(var.type, TensorType) and var.type.dtype is i64 and not var.type.shape
