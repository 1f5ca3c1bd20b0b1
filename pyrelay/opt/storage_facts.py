"""What is the same for every choice of where arrays live: who makes and reads them, how often.

In: Lets of Core that are to become one serial kernel. Out: `Facts`: for each array its maker and
the loops around it, and which arrays get memory of their own because of what computes or reads
them. `storage.py` finds the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from pyrelay.ir import walk
from pyrelay.ir.nodes import Block, Let, Loop, OpCall, Var
from pyrelay.ir.op import Effect, Fusion
from pyrelay.opt import places
from pyrelay.opt.deferred import SAME_ELEMENTS, deferred
from pyrelay.opt.shapes import is_array, is_repeated, shape_of

#: Ops whose elements are those of an operand: reading one costs what reading the operand's does.
MOVES = SAME_ELEMENTS | frozenset(["index", "slice", "broadcast_to", "iota"])
#: Ops so cheap that computing them again costs less than storing and loading their result.
CHEAP = MOVES | frozenset([
    "add", "subtract", "multiply", "negative", "absolute", "square", "where", "cast", "minimum",
    "maximum", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_not", "clip", "stop_gradient", "scale", "positive",
    "sign",
])  # fmt: skip
_MOST_EVALUATIONS = 4  # of a cheap element
_ENDLESS = 1 << 30  # evaluations by a loop of who knows how many rounds


#: Where an array without memory is computed, by who asks for it there -> how often.
_Evaluations = dict[tuple[Any, ...], int]


def same_place(a: OpCall, b: OpCall, skip_a: int, skip_b: int) -> bool:
    """Whether two ops of the same family read or write the same part of what they are given."""
    if a.attrs != b.attrs or ("sizes" in a.attrs) != ("sizes" in b.attrs):
        return False
    positions = a.args[skip_a:], b.args[skip_b:]
    return len(positions[0]) == len(positions[1]) and all(map(places.same_atom, *positions))


class Facts:
    """What is the same for every choice: who makes what, who reads it, and how often."""

    def __init__(self, lets: Sequence[Let]) -> None:
        self.makers: dict[Var, Let] = {}
        self.depth: dict[Let, int] = {}
        self.order: list[Let] = []
        self.arrays = False
        self.bound: dict[Var, int] = {}  # variable -> how many loops it is bound in
        self.inner: set[Var] = set()  # carried by loops that stand in another
        self.blocks: list[Sequence[Let]] = [lets]
        pending = [(let, 0) for let in reversed(lets)]
        while pending:
            let, depth = pending.pop()
            self.order.append(let)
            self.depth[let] = depth
            for out in let.outs:
                self.makers[out] = let
                self.bound[out] = depth
            if isinstance(let.rhs, Loop):
                self.bound.update(dict.fromkeys(let.rhs.carried, depth + 1))
                self.inner.update(let.rhs.carried if depth else ())
            self.arrays = self.arrays or self._is_computed(let)
            deeper = depth + isinstance(let.rhs, Loop)
            for block in reversed(walk.blocks(let.rhs)):
                self.blocks.append(block.lets)
                pending += [(inner, deeper) for inner in reversed(block.lets)]
        self.uses = walk.use_counts(Block(tuple(lets), ())) if self.arrays else {}
        self.absorbed = frozenset(self._absorbed()) if self.arrays else frozenset[Var]()
        self.readers = self._readers() if self.arrays else {}
        #: Gathers that are computed where a number is made of them, and the Lets that make it.
        self.deferred: dict[Var, Let] = {
            var: end for block in self.blocks
            for var, end in (deferred(block, self.readers, self.uses) if self.arrays else ())
        }

    def _readers(self) -> dict[Var, list[Let]]:
        readers: dict[Var, list[Let]] = {}
        for let in self.order:
            for atom in walk.operands(let.rhs):
                if isinstance(atom, Var) and atom in self.makers and is_array(atom):
                    readers.setdefault(atom, []).append(let)
        return readers

    @staticmethod
    def _is_computed(let: Let) -> bool:
        rhs = let.rhs
        if not isinstance(rhs, OpCall) or not any(map(is_array, let.outs)):
            return False
        return not places.updates_element(rhs) and not places.is_view(rhs)

    def _absorbed(self) -> Iterable[Var]:
        for let in self.order:
            rhs = let.rhs
            if not isinstance(rhs, OpCall) or rhs.op.name not in places.UPDATES:
                continue
            new = self.makers.get(rhs.args[1]) if isinstance(rhs.args[1], Var) else None
            if new is None or not isinstance(new.rhs, OpCall):
                continue
            inner = new.rhs
            if inner.op.name not in places.UPDATES or self.uses.get(new.outs[0]) != 1:
                continue
            if rhs.op.name not in ("index_update", "slice_update"):
                continue
            part = self.makers.get(inner.args[0])  # type: ignore[arg-type]
            if part is None or not isinstance(part.rhs, OpCall) or (
                part.rhs.op.name not in ("index", "slice")
            ):
                continue
            read = part.rhs
            if read.args[0] is rhs.args[0] and same_place(read, rhs, 1, 2):
                yield new.outs[0]

    def computed_at_once(self, own: Set[Var] = frozenset()) -> set[Var]:
        """Arrays that get memory because of what computes them, or because of who reads them;
        `own` are others that have memory."""
        own = set(own)
        for let in self.order:
            rhs = let.rhs
            if not isinstance(rhs, OpCall) or not any(map(is_array, let.outs)):
                continue
            if rhs.op.name == "undef" or self._updates_from_outside(let, rhs):
                own.update(let.outs)
        if not self.arrays:
            return own
        readers = self.readers
        evaluated: dict[Var, _Evaluations] = {}
        for let in reversed(self.order):
            call = let.rhs
            if not isinstance(call, OpCall) or not any(map(is_array, let.outs)):
                continue
            if call.op.name in places.UPDATES or call.op.name == "undef":
                continue
            where: _Evaluations = {}
            if self._is_result(let, readers):
                where["result", shape_of(let.outs[0])] = 1
            for reader in readers.get(let.outs[0], ()):
                for place, times in self._evaluations(let, reader, evaluated, own).items():
                    where[place] = max(times, where.get(place, 0))
            total = min(sum(where.values()), _ENDLESS)
            evaluated[let.outs[0]] = where if total <= _MOST_EVALUATIONS else {(let,): total}
            most = _MOST_EVALUATIONS if call.op.name in CHEAP else 1
            noticed = call.op.effect is not Effect.PURE and let.outs[0] not in self.deferred
            if noticed or (
                call.op.name not in MOVES and (total > most or len(let.outs) > 1)
            ):
                own.update(out for out in let.outs if is_array(out))
        return own

    def _updates_from_outside(self, let: Let, rhs: OpCall) -> bool:
        """Whether an update stands in a loop, and the array that it updates before it."""
        if rhs.op.name not in places.UPDATES or let.outs[0] in self.absorbed:
            return False
        base = rhs.args[0]
        return self.bound.get(base, 0) < self.depth[let]  # type: ignore[arg-type]

    def _is_result(self, let: Let, readers: dict[Var, list[Let]]) -> bool:
        out = let.outs[0]
        return self.uses.get(out, 0) > len(readers.get(out, ()))

    def _evaluations(
        self, let: Let, reader: Let, evaluated: Mapping[Var, _Evaluations], own: Set[Var]
    ) -> _Evaluations:
        """Where a reader computes each element, and how often.

        Elementwise ops compute what they read where they are computed themselves, at the same
        place: there it is done once for all of them.
        """
        if self.depth[reader] > self.depth[let]:
            return {(reader,): _ENDLESS}
        call = reader.rhs
        if not isinstance(call, OpCall) or call.op.name in places.UPDATES:
            return {(reader,): 1}
        if call.op.name == "search" and call.args[0] in let.outs:
            return {(reader,): _ENDLESS}
        found: _Evaluations = {(reader,): 1}
        out = reader.outs[0] if reader.outs else None
        if out is not None and is_array(out) and out not in own and out in evaluated:
            found = evaluated[out]
            if call.op.fusion is not Fusion.ELEMENTWISE or shape_of(out) != shape_of(let.outs[0]):
                found = {(reader, *place): times for place, times in found.items()}
        again = 1
        if call.op.name.startswith("arg"):
            again = 2  # the extreme, then its place
        elif (
            call.op.fusion is not Fusion.REDUCTION and call.op.name not in SAME_ELEMENTS
            and out is not None and is_repeated(shape_of(let.outs[0]), shape_of(out))
        ):
            again = _MOST_EVALUATIONS
        return {place: times * again for place, times in found.items()}
