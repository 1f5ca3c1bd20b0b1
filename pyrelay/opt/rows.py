"""Arrays that inner loops fill for one row of an outer array are that row.

In: a module. Out: the module in which a loop that fills an array of its own, which is then stored
as row i of another array, fills that row: `rows[i] = inner` with `inner[j] = v` becomes
`rows[i, j] = v`. So does one that starts from the row, `inner = rows[i]`. What reverse mode keeps
of nested loops (`grad.loops`) then lies in one array for the whole nest: nothing is copied, and the
loops need no memory of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyrelay.ir import walk
from pyrelay.ir.nodes import Atom, Attrs, Block, Let, Loop, Module, OpCall, Var
from pyrelay.ir.types import TensorType
from pyrelay.opt import places
from pyrelay.records import dataclass


def rows(module: Module) -> Module:
    """Fill rows of arrays where they lie, innermost loops first."""
    return module.with_bodies(rows_of_block)


def rows_of_block(block: Block) -> Block:
    """Fill rows where they lie in a block."""
    return _Rows(walk.with_blocks(block, rows_of_block)).run()


@dataclass(frozen=True, slots=True)
class _Row:
    """Output `k` of the loop `loop` is stored by `store`, both numbers of Lets of a block."""

    loop: int
    k: int
    store: int
    fresh: bool  # nothing is in the row before


class _Rows:
    """The rows that are filled in the Lets of one block."""

    def __init__(self, block: Block) -> None:
        self.source = block
        self.place = {out: n for n, let in enumerate(block.lets) for out in let.outs}
        filling = any(isinstance(let.rhs, Loop) for let in block.lets)
        stores = [
            n for n, let in enumerate(block.lets)
            if isinstance(let.rhs, OpCall) and let.rhs.op.name == "index_update"
        ] if filling else []
        self.uses = walk.use_counts(block) if stores else {}
        self.found = [row for n in stores if (row := self._row(n)) is not None]

    def _row(self, store: int) -> _Row | None:
        """The loop whose output a store puts into a row, if it can fill the row itself."""
        call = self.source.lets[store].rhs
        assert isinstance(call, OpCall)
        base, value, *positions = call.args
        if not isinstance(base, Var) or not isinstance(value, Var):
            return None
        number = self.place.get(value)
        if number is None or self.uses[value] != 1 or not _leads(call):
            return None
        let = self.source.lets[number]
        if not isinstance(let.rhs, Loop) or let.dims or let.rhs.dims:
            return None
        if not _is_row(value, base, len(positions)):
            return None
        known = all(
            not isinstance(a, Var) or self.place.get(a, -1) < number for a in (base, *positions)
        )
        k = let.outs.index(value)
        first = let.rhs.init[k]
        if not known or not isinstance(first, Var):
            return None
        maker = self.place.get(first)
        made = None if maker is None else self.source.lets[maker].rhs
        if not isinstance(made, OpCall) or not self._fills(let.rhs, k):
            return None
        if made.op.name == "undef":
            fine = self.uses[base] == 1 and self.uses[first] == 1
        else:
            fine = self._is_present(made, call) and self._last_use(number, first, base)
        return _Row(number, k, store, made.op.name == "undef") if fine else None

    def _is_present(self, read: OpCall, store: OpCall) -> bool:
        """Whether an op reads the very row that another one replaces."""
        if read.op.name != "index" or read.args[0] is not store.args[0] or not _leads(read):
            return False
        return len(read.args) == len(store.args) - 1 and all(
            map(places.same_atom, read.args[1:], store.args[2:])
        )

    def _last_use(self, number: int, first: Var, base: Var) -> bool:
        """Whether nothing from a loop on reads a row but the loop, or its array but the store."""
        rest = walk.use_counts(Block(self.source.lets[number:], self.source.results))
        return rest.get(first) == 1 and rest.get(base) == 1

    def _fills(self, loop: Loop, k: int) -> bool:
        """Whether a loop does nothing with a carried array but store into parts of it."""
        atom: Atom = loop.carried[k]
        result = loop.body.results[loop.exits + k]
        for let in loop.body.lets:
            if self.uses.get(atom) != 1:  # type: ignore[arg-type]
                return False
            rhs = let.rhs
            if isinstance(rhs, OpCall) and atom in rhs.args:
                stores = rhs.op.name in ("index_update", "index_add")
                if not stores or rhs.args[0] is not atom or not _leads(rhs):
                    return False
                atom = let.outs[0]
            elif isinstance(rhs, Loop) and atom in rhs.init:
                inner = rhs.init.index(atom)
                if let.dims or rhs.dims or not self._fills(rhs, inner):
                    return False
                atom = let.outs[inner]
        return atom is result and self.uses.get(atom) == 1  # type: ignore[arg-type]

    def run(self) -> Block:
        """The block with these rows filled in place."""
        if not self.found:
            return self.source
        lets = list(self.source.lets)
        dropped: set[int] = set()
        for row in self.found:
            store = lets[row.store]
            call = store.rhs
            assert isinstance(call, OpCall)
            let = lets[row.loop]
            dropped.add(row.store)
            if row.fresh:
                dropped.add(self.place[_loop(let).init[row.k]])  # type: ignore[index]
            outs = (*let.outs[: row.k], store.outs[0], *let.outs[row.k + 1 :])
            loop = _filling(_loop(let), row.k, call.args[0], call.args[2:])
            lets[row.loop] = replace(let, outs=outs, rhs=loop)
        kept = tuple(let for n, let in enumerate(lets) if n not in dropped)
        return replace(self.source, lets=kept)


def _loop(let: Let) -> Loop:
    assert isinstance(let.rhs, Loop)
    return let.rhs


def _is_row(value: Atom, base: Atom, positions: int) -> bool:
    """Whether a value is stored as it is: without being cast or broadcast."""
    assert isinstance(value.type, TensorType)
    assert isinstance(base.type, TensorType)
    return value.type.dtype is base.type.dtype and (
        value.type.shape == base.type.shape[positions:]
    )


def _leads(update: OpCall) -> bool:
    """Whether an update stores at positions along the first axes."""
    axes = update.attrs["axes"]
    return bool(axes == tuple(range(len(axes))))


def _filling(loop: Loop, k: int, base: Atom, at: Sequence[Atom]) -> Loop:
    """The loop that fills the part of `base` at some positions, instead of its carried array k."""
    assert isinstance(base.type, TensorType)
    old = loop.carried[k]
    new = Var("rows", base.type, span=old.span)
    lets: list[Let] = []
    here: tuple[Atom, Var] = (old, new)
    for let in loop.body.lets:
        rhs, before = let.rhs, here[0]
        if isinstance(rhs, OpCall) and before in rhs.args:
            after = Var("rows", base.type, span=let.span)
            axes = tuple(range(len(at) + len(rhs.attrs["axes"])))
            args = (here[1], rhs.args[1], *at, *rhs.args[2:])
            lets.append(replace(let, outs=(after,), rhs=OpCall(rhs.op, args, Attrs(axes=axes))))
            here = let.outs[0], after
        elif isinstance(rhs, Loop) and before in rhs.init:
            inner = rhs.init.index(before)
            after = Var("rows", base.type, span=let.span)
            outs = (*let.outs[:inner], after, *let.outs[inner + 1 :])
            lets.append(replace(let, outs=outs, rhs=_filling(rhs, inner, here[1], at)))
            here = let.outs[inner], after
        else:
            lets.append(let)
    swap = loop.exits + k
    results = (*loop.body.results[:swap], here[1], *loop.body.results[swap + 1 :])
    return replace(
        loop, carried=(*loop.carried[:k], new, *loop.carried[k + 1 :]),
        init=(*loop.init[:k], base, *loop.init[k + 1 :]),
        body=replace(loop.body, lets=tuple(lets), results=results),
    )
