"""How much a round of a loop appends, and its body for arrays that keep their size.

In: the blocks of a loop in which lists and tables grow. Out: copies of these in which nothing does,
the room that a round asks for, and what the arrays and counts of the body have been at the
beginning of the round. `opt/rooms` makes two loops of that.

How much a round can append follows from the counts: additions of constants, and loops of rounds
that do not depend on the outer one, or that end where an array does (`opt/visits`). How long a list
in a list becomes, as `neighbours[u].append(v)` makes it, follows from the largest of the counts in
an array: its `peak`, which a copy keeps in a variable beside an array that it is asked of.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from pyrelay.ir import types, walk
from pyrelay.ir.build import Builder
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, Const, If, Let, Loop, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt.rebuilds import Rebuild, is_rebuild
from pyrelay.opt.visits import visited
from pyrelay.records import dataclass


class Unfit(Exception):
    """How much a loop appends is not known before its rounds."""


# -- how much a round appends ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bound:
    """A number is at most `base` (0 without one), plus `more`, plus some `times` numbers.

    A base that is an array stands for the largest of its elements. Of those numbers, which the
    rounds do not change, negative ones count as 0.
    """

    base: Var | None
    more: int
    times: tuple[tuple[Atom, int], ...] = ()

    def plus(self, more: int) -> Bound:
        return replace(self, more=self.more + more)

    def after(self, start: Bound) -> Bound:
        """This bound, whose base is bounded itself."""
        found = dict(start.times)
        for atom, times in self.times:
            found[atom] = found.get(atom, 0) + times
        return Bound(start.base, start.more + self.more, tuple(found.items()))


def larger(a: Bound | None, b: Bound | None) -> Bound | None:
    """What bounds either of two numbers; a base counts items, so it is 0 at least."""
    if a is None or b is None or (a.base and b.base and a.base is not b.base):
        return None
    found = dict(a.times)
    for atom, times in b.times:
        found[atom] = max(found.get(atom, 0), times)
    return Bound(a.base or b.base, max(a.more, b.more), tuple(found.items()))


@dataclass(frozen=True, slots=True)
class Need:
    """Room that an append asks for: that many rows, of an extent; of entries in a table of it."""

    extent: Extent
    rows: Bound
    rebuild: Rebuild | None = None


# -- the inner loop --------------------------------------------------------------------------------


@dataclass(slots=True)
class Fixing:
    """Copies a loop's body for arrays that keep their size, and finds what room it needs."""

    inside: frozenset[Var]
    changing: frozenset[Symbol]  # extents that rounds may change
    names: walk.Renaming
    lengths: Builder  # of what the loop does not change
    bounds: dict[Var, Bound] = field(default_factory=dict)
    positive: set[Var] = field(default_factory=set)  # numbers that are never negative
    makers: dict[Var, Let] = field(default_factory=dict)
    peaks: dict[Var, Atom] = field(default_factory=dict)  # at this place, of what is asked of
    #: what an array or a count that rounds change has been at the beginning of the round
    roots: dict[Atom, Var] = field(default_factory=dict)
    astray: set[Var] = field(default_factory=set)  # roots of what may be another thing later on
    needs: list[Need] = field(default_factory=list)
    known: dict[Extent, Bound] = field(default_factory=dict)  # lengths

    def block(self, block: Block) -> Block:
        """The block without extents of its own: `dims` of the copy are those at its end."""
        lets = [new for let in block.lets for new in self._let(let)]
        names = self.names
        return Block(
            tuple(lets), tuple(map(names.atom, block.results)),
            tuple(map(names.extent, block.dims)),
        )

    def bound(self, atom: Atom) -> Bound | None:
        """The bound of a number, if it has one."""
        if isinstance(atom, Const):
            return Bound(None, atom.value) if isinstance(atom.value, int) else None
        if atom not in self.bounds and atom not in self.inside and is_int(atom):
            return Bound(None, 0, ((atom, 1),))
        return self.bounds.get(atom)

    def starts(self, carried: Iterable[Var]) -> None:
        """Note that what a loop carries is bounded by itself at the start of a round."""
        self.bounds.update((v, Bound(v, 0)) for v in carried if is_int(v) or _is_counts(v))

    def indexed(self, index: Var | None, count: Atom | None) -> None:
        """Note what the index of so many rounds is."""
        if index is not None:
            self.positive.add(index)
            below = self.bound(count) if count is not None else None
            if below is not None:
                self.bounds[index] = below

    def _let(self, let: Let) -> Iterator[Let]:
        for out in let.outs:
            self.makers[out] = let
        match let.rhs:
            case If() if is_rebuild(let, self.makers):
                self._rebuild(let, let.rhs)
            case If() if _grows(let):
                self._grow(let, let.rhs)
            case If():
                yield self._if(let, let.rhs)
            case Loop():
                yield self._loop(let, let.rhs)
            case OpCall():
                self._note(let, let.rhs)
                yield walk.copy_let(let, self.names)
                yield from self._peak(let, let.rhs)
            case _:
                yield walk.copy_let(let, self.names)

    def _note(self, let: Let, call: OpCall) -> None:
        found: Bound | None = None
        match call.op.name, call.args:
            case "add", (x, Const(value=int(more))) | (Const(value=int(more)), x):
                found = self.bound(x)
                found = found and found.plus(more)
                if x in self.positive and more >= 0:
                    self.positive.add(let.outs[0])
                if more > 0:
                    self._root(let.outs[0], x)
            case "subtract", (x, Const(value=int(less))):
                found = self.bound(x)
                found = found and found.plus(-less)
            case "subtract", (x, y) if y in self.positive:
                found = self.bound(x)
            case "maximum", (x, Const(value=int(least))) | (Const(value=int(least)), x):
                found = self.bound(x)
                found = found and replace(found, more=max(found.more, least))
            case "minimum", (x, y):
                found = self.bound(x) or self.bound(y)
            case "check_item", (_, count):
                found = self.bound(count)
                found = found and found.plus(-1)
            case "cast", (x,):
                found = self.bound(x)
            case "index", (array, *_) if is_int_like(let.outs[0]):
                found = self.bound(array)
            case "index_update", (array, value, *_):
                self._root(let.outs[0], array)
                if _is_counts(let.outs[0]) and is_int_like(value):
                    found = larger(self.bound(array), self.bound(value))
            case "slice_update", (array, *_):
                self._root(let.outs[0], array)
        if found is not None:
            self.bounds[let.outs[0]] = found

    def _peak(self, let: Let, call: OpCall) -> Iterator[Let]:
        """The peak of an array that an element has been written to."""
        root = self.roots.get(let.outs[0]) if let.outs else None
        if call.op.name == "index_update" and root in self.peaks:
            b = Builder(let.span)
            value = b.cast(self.names.atom(call.args[1]), types.i64, weak=True)
            self.peaks[root] = b.call(OPS["maximum"], self.peaks[root], value).atom
            yield from b.lets

    def _grow(self, let: Let, node: If) -> None:
        condition = self.makers.get(node.cond)  # type: ignore[arg-type]
        call = condition.rhs if condition is not None else None
        if not isinstance(call, OpCall) or call.op.name != "greater":
            raise Unfit
        needed, room = call.args
        (extent,) = node.orelse.dims
        if not self._is_extent(room, extent):
            raise Unfit
        rows = self.bound(needed)
        if rows is None:
            raise Unfit
        self.needs.append(Need(self.names.extent(extent), rows))
        self._left(let, node)

    def _rebuild(self, let: Let, node: If) -> None:
        entries, slots = walk.operands(self.makers[node.cond].rhs)  # type: ignore[index]
        rebuild, rows = Rebuild.of(let, slots), self.bound(entries)
        if rebuild is None or rows is None:
            raise Unfit
        self.needs.append(Need(self.names.extent(node.orelse.dims[0]), rows, rebuild))
        self._left(let, node)

    def _left(self, let: Let, node: If) -> None:
        """Arrays that are not made larger stand for those that a branch may make larger."""
        self.names.dims[let.dims[0]] = self.names.extent(node.orelse.dims[0])
        for out, kept in zip(let.outs, node.orelse.results, strict=True):
            self.names.atoms[out] = self.names.atom(kept)
            self._root(out, kept)
            if kept in self.bounds and _is_counts(out):
                self.bounds[out] = self.bounds[kept]

    def _root(self, out: Var, *before: Atom) -> None:
        """An output is a later form of one of these, which have the same root."""
        roots = {self.roots.get(atom) for atom in before}
        if len(roots) == 1 and (root := roots.pop()) is not None:
            self.roots[out] = root

    def _is_undef(self, atom: Atom) -> bool:
        """Whether an atom may be anything, such as what a branch gives that raises."""
        maker = self.makers.get(atom)  # type: ignore[arg-type]
        return maker is not None and walk.is_call(maker, "undef")

    def _is_extent(self, atom: Atom, extent: Extent) -> bool:
        if isinstance(atom, Const):
            return bool(atom.value == extent)
        maker = self.makers.get(atom)
        call = maker.rhs if maker is not None else None
        return (
            isinstance(call, OpCall) and call.op.name == "extent" and call.attrs["size"] == extent
        )

    def _if(self, let: Let, node: If) -> Let:
        before = dict(self.peaks)
        then = self.block(node.then)
        peaks, self.peaks = self.peaks, dict(before)
        orelse = self.block(node.orelse)
        if then.dims != orelse.dims:
            raise Unfit
        self.names.dims.update(zip(let.dims, then.dims, strict=True))
        for out, a, b in zip(let.outs, node.then.results, node.orelse.results, strict=True):
            told = [atom for atom in (a, b) if not self._is_undef(atom)]
            found = functools.reduce(larger, map(self.bound, told)) if told else None
            if found is not None:
                self.bounds[out] = found
            self._root(out, *told)
        outs = [*map(self.names.var, let.outs)]
        then, orelse = replace(then, dims=()), replace(orelse, dims=())
        for root, peak in before.items():
            if peaks[root] is not peak or self.peaks[root] is not peak:
                then = replace(then, results=(*then.results, peaks[root]))
                orelse = replace(orelse, results=(*orelse.results, self.peaks[root]))
                outs.append(Var("peak", types.PY_INT))
                self.peaks[root] = outs[-1]
        rhs = If(self.names.atom(node.cond), then, orelse)
        return Let(tuple(outs), rhs, span=let.span)

    def _loop(self, let: Let, loop: Loop) -> Let:
        names = self.names
        init = tuple(map(names.atom, loop.init))
        count = None if loop.count is None else names.atom(loop.count)
        extents = tuple(map(names.extent, loop.init_dims))
        names.dims.update(zip(loop.dims, extents, strict=True))
        carried = tuple(map(names.var, loop.carried))
        index = None if loop.index is None else names.var(loop.index)
        outer, self.needs = self.needs, []
        self.starts(loop.carried)
        self.indexed(loop.index, loop.count)
        for var, first in zip(loop.carried, loop.init, strict=True):
            self._root(var, first)
        held = {r: a for r, a in self.peaks.items() if r in map(self.roots.get, loop.carried)}
        heads = {r: Var("peak", types.PY_INT) for r in held}
        self.peaks.update(heads)
        test = None if loop.test is None else self.block(loop.test)
        handed = tuple(map(names.var, loop.handed))
        body = self.block(loop.body)
        if body.dims != extents:
            raise Unfit
        names.dims.update(zip(let.dims, extents, strict=True))
        self._follow(let, loop, outer)
        ends = tuple(self.peaks[r] for r in held)
        outs = {r: Var("peak", types.PY_INT) for r in held}
        self.peaks.update(outs)
        rhs = replace(
            loop, carried=(*carried, *heads.values()), init=(*init, *held.values()),
            body=replace(body, results=(*body.results, *ends), dims=()), test=test,
            handed=handed, count=count, index=index, dims=(), init_dims=(),
        )
        return Let((*map(names.var, let.outs), *outs.values()), rhs, span=let.span)

    def _follow(self, let: Let, loop: Loop, outer: list[Need]) -> None:
        """The bounds of what a loop carries, at the start of any round, by those before it."""
        results = loop.body.results[1:] if loop.exits else loop.body.results
        heads: dict[Var, Bound] = {}
        for var, first, after, out in zip(
            loop.carried, loop.init, results, let.outs, strict=True
        ):
            self._root(out, var, after)
            if var in self.roots and out not in self.roots:
                self.astray.add(self.roots[var])
            start, step = self.bound(first), self.bound(after)
            if start is None or step is None or step.base is not var:
                continue
            growth = self._in_all_rounds(loop, step)
            if growth is not None:
                heads[var] = self.bounds[out] = growth.after(start)
        for need in self.needs:
            base = need.rows.base
            if base in loop.carried:
                if base not in heads:
                    raise Unfit
                need = replace(need, rows=need.rows.after(heads[base]))
            outer.append(need)
        self.needs = outer

    def _in_all_rounds(self, loop: Loop, step: Bound) -> Bound | None:
        if step.more <= 0 and not step.times:
            return Bound(None, 0)
        rounds = None if loop.count is None else self.bound(loop.count)
        if rounds is None or rounds.base is not None:
            length = visited(loop, self.changing)
            rounds = None if length is None else self._visits(length)
        if rounds is None or step.times:
            return None
        times = tuple((atom, n * step.more) for atom, n in rounds.times)
        return Bound(None, max(rounds.more, 0) * step.more, times)

    def _visits(self, length: Extent) -> Bound:
        """The bound of rounds that are all at other places of an array, from either end."""
        if isinstance(length, int):
            return Bound(None, 2 * length + 1)
        if length not in self.known:
            self.known[length] = Bound(None, 1, ((self.lengths.extent(length).atom, 2),))
        return self.known[length]


def is_int(var: Var) -> bool:
    return isinstance(var.type, TensorType) and not var.type.shape and var.type.dtype == types.i64


def is_int_like(atom: Atom) -> bool:
    """Whether an atom is an integer of 64 bits, Python's or NumPy's."""
    ty = atom.type
    return isinstance(ty, TensorType) and not ty.shape and ty.dtype == types.i64


def _is_counts(var: Var) -> bool:
    """Whether a variable is a vector of integers, as the counts of lists in a list are."""
    return isinstance(var.type, TensorType) and var.type.rank == 1 and var.type.dtype == types.i64


def _grows(let: Let) -> bool:
    """Whether a Let makes arrays larger in one case, and leaves them in the other."""
    node = let.rhs
    if not isinstance(node, If) or len(let.dims) != 1 or node.orelse.lets:
        return False
    pads = {p.outs[0]: p.rhs for p in node.then.lets if p.outs}
    for large, small in zip(node.then.results, node.orelse.results, strict=True):
        pad = pads.get(large)  # type: ignore[arg-type]
        if not isinstance(pad, OpCall) or pad.op.name != "pad" or pad.args[0] is not small:
            return False
    return len(pads) == len(let.outs)
