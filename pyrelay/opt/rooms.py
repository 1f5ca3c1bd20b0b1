"""Loops that append to lists run as kernels, from one growth of the lists to the next.

In: a module. Out: the module in which a loop whose arrays grow is a loop around a loop whose arrays
do not, where the inner one can then be a kernel: a kernel cannot make an array larger, and a plan
that steps through a loop takes many times as long as its arithmetic.

A list is a count and arrays of rows (`infer/containers/growing`), which are made larger, in an
`If`, where the next item would find no room. The outer loop makes room for all that one round can
append, and for as much again; the inner one goes on as long as there is room for a round. How much
a round can append follows from the counts: additions of constants, and loops of rounds that do not
depend on the outer one, or that end where an array does (`opt/visits`). As the room doubles, n
items take a logarithm of n launches. Tables of dicts and sets are made larger in front of the inner
loop, too (`opt/rebuilds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle, Operand, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom, Block, Const, If, Let, Loop, Module, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt.dce import dce
from pyrelay.opt.rebuilds import Rebuild, is_rebuild
from pyrelay.opt.scalars import is_kernel, scalar_lets
from pyrelay.opt.visits import visited
from pyrelay.records import dataclass

_SPARE = 32  # rows of room beyond twice as many as there must be
#: A round that may append more, by a number that is known, ends long before: `while True` inside.
_MOST_ROWS = 1 << 20
#: What a number that only the program knows counts as at most: more finds no memory, and sums of a
#: few of these are no overflow.
_MOST_ROUNDS = 1 << 40


def rooms(module: Module) -> Module:
    """The module with loops that append as kernels within loops that make room."""
    new = module.with_bodies(lambda body: _in_block(body, _lengths(body)))
    return module if new is module else dce(new)


def _lengths(body: Block) -> frozenset[Atom]:
    """The numbers that are extents of arrays."""
    return frozenset(
        out for let in walk.nested_lets(body) if walk.is_call(let, "extent") for out in let.outs
    )


def _in_block(block: Block, lengths: frozenset[Atom]) -> Block:
    lets: list[Let] = []
    for let in block.lets:
        new = _parted(let, lengths) if isinstance(let.rhs, Loop) and let.rhs.dims else None
        if new is None:
            rhs = walk.replace_blocks(let.rhs, lambda inner: _in_block(inner, lengths))
            new = let if rhs is let.rhs else replace(let, rhs=rhs)
        lets.append(new)
    if all(a is b for a, b in zip(lets, block.lets, strict=True)):
        return block
    return replace(block, lets=tuple(lets))


def _parted(let: Let, lengths: frozenset[Atom]) -> Let | None:
    """The loop of a Let as a loop around a kernel; None if it cannot be that."""
    loop = let.rhs
    assert isinstance(loop, Loop)
    try:
        new, inner = _Parting(let, loop, lengths).parted()
    except _Unfit:
        return None
    scalar = scalar_lets(Block((new,), new.outs))
    return new if is_kernel(inner, scalar) else None


class _Unfit(Exception):
    """How much a loop appends is not known before its rounds."""


# -- how much a round appends ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Bound:
    """A number is at most `base` (0 without one), plus `more`, plus some `times` numbers.

    Of those numbers, which the rounds do not change, negative ones count as 0.
    """

    base: Var | None
    more: int
    times: tuple[tuple[Atom, int], ...] = ()

    def plus(self, more: int) -> _Bound:
        return replace(self, more=self.more + more)

    def after(self, start: _Bound) -> _Bound:
        """This bound, whose base is bounded itself."""
        found = dict(start.times)
        for atom, times in self.times:
            found[atom] = found.get(atom, 0) + times
        return _Bound(start.base, start.more + self.more, tuple(found.items()))


def _larger(a: _Bound | None, b: _Bound | None) -> _Bound | None:
    """What bounds either of two numbers; a base counts items, so it is 0 at least."""
    if a is None or b is None or (a.base and b.base and a.base is not b.base):
        return None
    found = dict(a.times)
    for atom, times in b.times:
        found[atom] = max(found.get(atom, 0), times)
    return _Bound(a.base or b.base, max(a.more, b.more), tuple(found.items()))


@dataclass(frozen=True, slots=True)
class _Need:
    """Room that an append asks for: that many rows, of an extent; of entries in a table of it."""

    extent: Extent
    rows: _Bound
    rebuild: Rebuild | None = None


# -- the inner loop --------------------------------------------------------------------------------


@dataclass(slots=True)
class _Fixing:
    """Copies a loop's body for arrays that keep their size, and finds what room it needs."""

    inside: frozenset[Var]
    changing: frozenset[Symbol]  # extents that rounds may change
    names: walk.Renaming
    lengths: Builder  # of what the loop does not change
    bounds: dict[Var, _Bound] = field(default_factory=dict)
    positive: set[Var] = field(default_factory=set)  # numbers that are never negative
    makers: dict[Var, Let] = field(default_factory=dict)
    #: what an array or a count that rounds change has been at the beginning of the round
    roots: dict[Atom, Var] = field(default_factory=dict)
    needs: list[_Need] = field(default_factory=list)
    known: dict[Extent, _Bound] = field(default_factory=dict)  # lengths

    def block(self, block: Block) -> Block:
        """The block without extents of its own: `dims` of the copy are those at its end."""
        lets = [new for let in block.lets for new in self._let(let)]
        names = self.names
        return Block(
            tuple(lets), tuple(map(names.atom, block.results)),
            tuple(map(names.extent, block.dims)),
        )

    def bound(self, atom: Atom) -> _Bound | None:
        """The bound of a number, if it has one."""
        if isinstance(atom, Const):
            return _Bound(None, atom.value) if isinstance(atom.value, int) else None
        if atom not in self.bounds and atom not in self.inside and _is_int(atom):
            return _Bound(None, 0, ((atom, 1),))
        return self.bounds.get(atom)

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
            case _:
                yield walk.copy_let(let, self.names)

    def _note(self, let: Let, call: OpCall) -> None:
        found: _Bound | None = None
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
            case "index_update" | "slice_update", (array, *_):
                self._root(let.outs[0], array)
        if found is not None:
            self.bounds[let.outs[0]] = found

    def _grow(self, let: Let, node: If) -> None:
        condition = self.makers.get(node.cond)  # type: ignore[arg-type]
        call = condition.rhs if condition is not None else None
        if not isinstance(call, OpCall) or call.op.name != "greater":
            raise _Unfit
        needed, room = call.args
        (extent,) = node.orelse.dims
        if not self._is_extent(room, extent):
            raise _Unfit
        rows = self.bound(needed)
        if rows is None:
            raise _Unfit
        self.needs.append(_Need(self.names.extent(extent), rows))
        self._left(let, node)

    def _rebuild(self, let: Let, node: If) -> None:
        entries, slots = walk.operands(self.makers[node.cond].rhs)  # type: ignore[index]
        rebuild, rows = Rebuild.of(let, slots), self.bound(entries)
        if rebuild is None or rows is None:
            raise _Unfit
        self.needs.append(_Need(self.names.extent(node.orelse.dims[0]), rows, rebuild))
        self._left(let, node)

    def _left(self, let: Let, node: If) -> None:
        """Arrays that are not made larger stand for those that a branch may make larger."""
        self.names.dims[let.dims[0]] = self.names.extent(node.orelse.dims[0])
        for out, kept in zip(let.outs, node.orelse.results, strict=True):
            self.names.atoms[out] = self.names.atom(kept)
            self._root(out, kept)

    def _root(self, out: Var, *before: Atom) -> None:
        """An output is a later form of one of these, which have the same root."""
        roots = {self.roots.get(atom) for atom in before}
        if len(roots) == 1 and (root := roots.pop()) is not None:
            self.roots[out] = root

    def _is_extent(self, atom: Atom, extent: Extent) -> bool:
        if isinstance(atom, Const):
            return bool(atom.value == extent)
        maker = self.makers.get(atom)
        call = maker.rhs if maker is not None else None
        return (
            isinstance(call, OpCall) and call.op.name == "extent" and call.attrs["size"] == extent
        )

    def _if(self, let: Let, node: If) -> Let:
        then, orelse = self.block(node.then), self.block(node.orelse)
        if then.dims != orelse.dims:
            raise _Unfit
        self.names.dims.update(zip(let.dims, then.dims, strict=True))
        for out, a, b in zip(let.outs, node.then.results, node.orelse.results, strict=True):
            found = _larger(self.bound(a), self.bound(b))
            if found is not None:
                self.bounds[out] = found
            self._root(out, a, b)
        rhs = If(self.names.atom(node.cond), replace(then, dims=()), replace(orelse, dims=()))
        return Let(tuple(map(self.names.var, let.outs)), rhs, span=let.span)

    def _loop(self, let: Let, loop: Loop) -> Let:
        names = self.names
        init = tuple(map(names.atom, loop.init))
        count = None if loop.count is None else names.atom(loop.count)
        extents = tuple(map(names.extent, loop.init_dims))
        names.dims.update(zip(loop.dims, extents, strict=True))
        carried = tuple(map(names.var, loop.carried))
        index = None if loop.index is None else names.var(loop.index)
        outer, self.needs = self.needs, []
        self.bounds.update((v, _Bound(v, 0)) for v in loop.carried if _is_int(v))
        self.indexed(loop.index, loop.count)
        for var, first in zip(loop.carried, loop.init, strict=True):
            self._root(var, first)
        test = None if loop.test is None else self.block(loop.test)
        handed = tuple(map(names.var, loop.handed))
        body = self.block(loop.body)
        if body.dims != extents:
            raise _Unfit
        names.dims.update(zip(let.dims, extents, strict=True))
        self._follow(let, loop, outer)
        rhs = replace(
            loop, carried=carried, init=init, body=replace(body, dims=()), test=test,
            handed=handed, count=count, index=index, dims=(), init_dims=(),
        )
        return Let(tuple(map(names.var, let.outs)), rhs, span=let.span)

    def _follow(self, let: Let, loop: Loop, outer: list[_Need]) -> None:
        """The bounds of what a loop carries, at the start of any round, by those before it."""
        results = loop.body.results[1:] if loop.exits else loop.body.results
        heads: dict[Var, _Bound] = {}
        for var, first, after, out in zip(
            loop.carried, loop.init, results, let.outs, strict=True
        ):
            self._root(out, var, after)
            if self.roots.get(var) is not self.roots.get(out) and any(
                need.rebuild for need in self.needs
            ):
                raise _Unfit  # what a table has been may be another one
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
                    raise _Unfit
                need = replace(need, rows=need.rows.after(heads[base]))
            outer.append(need)
        self.needs = outer

    def _in_all_rounds(self, loop: Loop, step: _Bound) -> _Bound | None:
        if step.more <= 0 and not step.times:
            return _Bound(None, 0)
        rounds = None if loop.count is None else self.bound(loop.count)
        if rounds is None or rounds.base is not None:
            length = visited(loop, self.changing)
            rounds = None if length is None else self._visits(length)
        if rounds is None or step.times:
            return None
        times = tuple((atom, n * step.more) for atom, n in rounds.times)
        return _Bound(None, max(rounds.more, 0) * step.more, times)

    def _visits(self, length: Extent) -> _Bound:
        """The bound of rounds that are all at other places of an array, from either end."""
        if isinstance(length, int):
            return _Bound(None, 2 * length + 1)
        if length not in self.known:
            self.known[length] = _Bound(None, 1, ((self.lengths.extent(length).atom, 2),))
        return self.known[length]


def _is_int(var: Var) -> bool:
    return isinstance(var.type, TensorType) and not var.type.shape and var.type.dtype == types.i64


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


# -- the outer loop --------------------------------------------------------------------------------


class _Parting:
    """Makes the two loops of one."""

    def __init__(self, let: Let, loop: Loop, lengths: frozenset[Atom]) -> None:
        self.let, self.loop, self.lengths = let, loop, lengths
        self.rebuilds: dict[int, Rebuild] = {}  # by extent
        self.outside = walk.Renaming()
        self.symbols = tuple(map(self.outside.symbol, loop.dims))  # of the outer loop
        self.carried = tuple(map(self.outside.var, loop.carried))
        self.grown = tuple(Symbol("d", Origin.RUNTIME) for _ in loop.dims)
        inside = (
            v for b in walk.blocks(loop) for each in walk.nested_lets(b)
            for v in (*each.outs, *walk.block_binders(each.rhs))
        )
        names = walk.Renaming(
            dims={d: dims.of(g) for d, g in zip(loop.dims, self.grown, strict=True)}
        )
        changing = {d for b in walk.blocks(loop) for each in walk.nested_lets(b) for d in each.dims}
        changing.update(
            d for b in walk.blocks(loop) for each in walk.nested_lets(b)
            if isinstance(each.rhs, Loop) for d in each.rhs.dims
        )
        self.fixing = _Fixing(
            frozenset((*inside, *walk.block_binders(loop))), frozenset((*changing, *loop.dims)),
            names, Builder(let.span),
        )

    def parted(self) -> tuple[Let, Let]:
        """The outer loop, and the inner one."""
        loop, names = self.loop, self.fixing.names
        inner = tuple(map(names.var, loop.carried))
        self.fixing.bounds.update((v, _Bound(v, 0)) for v in loop.carried if _is_int(v))
        self.fixing.roots.update((v, v) for v in loop.carried)
        index = None if loop.index is None else Var(loop.index.name, loop.index.type)
        first = Var("first", types.PY_INT)
        start = Builder(self.let.span)
        if loop.index is not None:
            assert index is not None
            names.atoms[loop.index] = start.call(OPS["add"], first, index).atom
        self.fixing.indexed(loop.index, loop.count)
        test = None if loop.test is None else self.fixing.block(loop.test)
        handed = tuple(map(names.var, loop.handed))
        body = self.fixing.block(loop.body)
        if body.dims != tuple(map(dims.of, self.grown)):
            raise _Unfit
        needs = self._needs()
        b = self.fixing.lengths
        atoms, room = self._with_room(b, needs)
        # The inner loop also carries where it goes on, and whether it has been left.
        at, left = Var("at", types.PY_INT), Var("left", _FLAG)
        rest = None if loop.count is None else b.call(OPS["subtract"], loop.count, first)
        end = Builder(self.let.span)
        here = first if loop.index is None else names.atoms[loop.index]
        results = list(body.results)
        leaves = end.cast(results[0], types.bool_, weak=True) if loop.exits else constant(False)
        following = [end.call(OPS["add"], here, 1), leaves]
        inner_loop = Loop(
            (*inner, at, left), (*atoms, first, constant(False)),
            Block(
                (*start.lets, *body.lets, *end.lets),
                (*results, *(end.atom(f) for f in following)),
            ),
            self._test(test, inner, needs, room), handed,
            None if rest is None else rest.atom, index, loop.exits,
        )
        ends = b.bind(inner_loop, [v.type for v in inner_loop.carried])  # type: ignore[misc]
        made = b.lets[-1]
        *values, at_end, was_left = ends
        again = None
        for k, need in needs.items():
            short = self._is_short(b, k, values, values[self._place(need)] + room[k])
            again = short if again is None else again | short
        assert again is not None
        again = again & b.call(OPS["logical_not"], was_left)
        if loop.count is not None:
            again = again & (at_end < b.handle(loop.count))
        on = Var("again", _FLAG)
        outer = Loop(
            (*self.carried, first, on), (*loop.init, constant(0), constant(True)),
            b.block((*values, at_end, again), tuple(map(dims.of, self.grown))),
            Block((), (on,)), dims=self.symbols, init_dims=loop.init_dims,
        )
        extra = (Var("at", types.PY_INT), Var("again", _FLAG))
        return Let((*self.let.outs, *extra), outer, self.let.dims, span=self.let.span), made

    def _needs(self) -> dict[int, _Bound]:
        """By extent, how many rows there must be at the start of a round."""
        found: dict[int, _Bound] = {}
        for need in self.fixing.needs:
            symbol = dims.plain_symbol(need.extent)
            if symbol not in self.grown or need.rows.base not in self.loop.carried:
                raise _Unfit
            k = self.grown.index(symbol)
            if k in found and (need.rebuild is None) is not (k not in self.rebuilds):
                raise _Unfit
            if need.rebuild is not None:
                self.rebuilds.setdefault(k, need.rebuild)
                if not all(self._is_length(atom) for atom, _ in need.rows.times):
                    raise _Unfit  # slots are written: so many may find no memory
            both = _larger(found.get(k, need.rows), need.rows)
            if both is None or max((both.more, *(n for _, n in both.times))) > _MOST_ROWS:
                raise _Unfit
            found[k] = both
        if len(found) != len(self.grown):
            raise _Unfit
        return found

    def _place(self, need: _Bound) -> int:
        return self.loop.carried.index(need.base)

    def _is_length(self, atom: Atom) -> bool:
        """Whether a number is the extent of an array."""
        asked = (atom for bound in self.fixing.known.values() for atom, _ in bound.times)
        return atom in self.lengths or atom in asked

    def _is_short(self, b: Builder, k: int, values: Sequence[Operand], rows: Handle) -> Handle:
        """Whether carried values have too little room for so many rows."""
        if k not in self.rebuilds:
            return rows > b.extent(dims.of(self.grown[k]))
        slots: Handle = b.handle(values[self._root(self.rebuilds[k].count)])
        crowded: Handle = b.call(OPS["crowded"], rows, slots)
        return crowded

    def _root(self, var: Var) -> int:
        """The place among what is carried of what a variable is a later form of."""
        root = self.fixing.roots.get(var)
        if root is None:
            raise _Unfit
        return self.loop.carried.index(root)

    def _with_room(
        self, b: Builder, needs: dict[int, _Bound]
    ) -> tuple[list[Atom], dict[int, Handle]]:
        """What is carried, with room for a round; by extent, how many rows a round may append."""
        atoms: list[Atom] = list(self.carried)
        room: dict[int, Handle] = {}
        for k, need in needs.items():
            room[k] = b.handle(need.more)
            for atom, times in need.times:
                rounds = b.call(OPS["minimum"], b.call(OPS["maximum"], atom, 0), _MOST_ROUNDS)
                room[k] = room[k] + rounds * times
            if k in self.rebuilds:
                continue
            count = b.handle(atoms[self._place(need)])
            old, new = dims.of(self.symbols[k]), dims.of(self.grown[k])
            needed = count + room[k]
            rows = [n for n, atom in enumerate(atoms) if self.symbols[k] in _symbols(atom)]
            then = b.nested()
            _, (least,) = then.call(OPS["as_extent"], needed, name="n")
            larger = dims.add(dims.multiply(2, least), _SPARE)
            wide = [_wide(then, atoms[n], old, larger) for n in rows]
            node = If(
                (needed > b.extent(old)).atom, then.block(wide, (larger,)),
                Block((), tuple(atoms[n] for n in rows), (old,)),
            )
            out_types = [
                types.substitute(atoms[n].type, {self.symbols[k]: new})  # type: ignore[arg-type]
                for n in rows
            ]
            outs = b.bind(node, out_types, dims=(self.grown[k],))
            for n, out in zip(rows, outs, strict=True):
                atoms[n] = out.atom
        for k, rebuild in self.rebuilds.items():
            entries = b.handle(atoms[self._place(needs[k])]) + room[k]
            made = rebuild.emitted(
                b, entries, lambda var: self._at_beginning(var, atoms), self.fixing.names.dims,
                (self.grown[k], dims.of(self.symbols[k])),
            )
            for var, value in zip((rebuild.count, *rebuild.arrays), made, strict=True):
                atoms[self._root(var)] = value
        return atoms, room

    def _at_beginning(self, var: Var, atoms: Sequence[Atom]) -> Atom:
        """What a variable of the body is before a round."""
        return atoms[self._root(var)] if var in self.fixing.inside else var

    def _test(
        self, test: Block | None, inner: Sequence[Var], needs: dict[int, _Bound],
        room: dict[int, Handle],
    ) -> Block:
        b = Builder(self.let.span)
        results: tuple[Atom, ...] = ()
        if test is not None:
            b.lets += test.lets
            results = test.results
        go = b.handle(results[0]) if results else None
        for k, need in needs.items():
            count = b.handle(inner[self._place(need)])
            fits = b.call(OPS["logical_not"], self._is_short(b, k, inner, count + room[k]))
            go = fits if go is None else go & fits
        assert go is not None
        return b.block((go, *results[1:]))


_FLAG = TensorType(types.bool_, (), weak=True)


def _symbols(atom: Atom) -> set[Symbol]:
    return set(types.type_symbols(atom.type)) if atom.type is not None else set()


def _wide(b: Builder, rows: Atom, old: Extent, new: Extent) -> Atom:
    """The rows with more room along the axis of an extent; memory behind them is not touched."""
    ty = rows.type
    if not isinstance(ty, TensorType) or old not in ty.shape:
        raise _Unfit
    axis = ty.shape.index(old)
    empty = b.undef(replace(ty, shape=(*ty.shape[:axis], new, *ty.shape[axis + 1 :])))
    wide: Handle = b.call(
        OPS["slice_update"], empty, rows, starts=(0,) * ty.rank, sizes=ty.shape,
        steps=(1,) * ty.rank,
    )
    return wide.atom
