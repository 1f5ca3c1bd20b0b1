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

import functools
from collections.abc import Sequence
from dataclasses import replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle, Operand, constant
from pyrelay.ir.dims import Extent, Origin, Symbol
from pyrelay.ir.nodes import Atom, Block, If, Let, Loop, Module, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt.appends import Bound, Fixing, Unfit, is_int, larger
from pyrelay.opt.dce import dce
from pyrelay.opt.rebuilds import Rebuild
from pyrelay.opt.scalars import is_kernel, scalar_lets

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
            new = [let if rhs is let.rhs else replace(let, rhs=rhs)]
        lets += new
    if len(lets) == len(block.lets) and all(
        a is b for a, b in zip(lets, block.lets, strict=True)
    ):
        return block
    return replace(block, lets=tuple(lets))


def _parted(let: Let, lengths: frozenset[Atom]) -> list[Let] | None:
    """The loop of a Let as a loop around a kernel, and what it needs; None if it cannot be that."""
    loop = let.rhs
    assert isinstance(loop, Loop)
    try:
        parting = _Parting(let, loop, lengths)
        if parting.asked:
            parting = _Parting(let, loop, lengths, parting.asked)
        made, inner = parting.parted()
    except Unfit:
        return None
    scalar = scalar_lets(Block((made[-1],), made[-1].outs))
    return made if is_kernel(inner, scalar) else None


# -- the outer loop --------------------------------------------------------------------------------


class _Parting:
    """Makes the two loops of one.

    counts: arrays whose largest elements say how much room there must be; if some are not among
    them, `asked` has all.
    """

    def __init__(
        self, let: Let, loop: Loop, lengths: frozenset[Atom], counts: tuple[Var, ...] = ()
    ) -> None:
        self.let, self.loop, self.lengths, self.counts = let, loop, lengths, counts
        self.rebuilds: dict[int, Rebuild] = {}  # by extent
        self.outside = walk.Renaming()
        self.symbols = tuple(map(self.outside.symbol, loop.dims))  # of the outer loop
        self.carried = tuple(map(self.outside.var, loop.carried))
        self.peaks = tuple(Var("peak", types.PY_INT) for _ in counts)  # of the outer loop
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
        self.fixing = Fixing(
            frozenset((*inside, *walk.block_binders(loop))), frozenset((*changing, *loop.dims)),
            names, Builder(let.span),
        )
        self.inner = (
            *map(names.var, loop.carried), *(Var("peak", types.PY_INT) for _ in counts)
        )
        self.fixing.starts(loop.carried)
        self.fixing.roots.update((v, v) for v in loop.carried)
        self.fixing.peaks.update(zip(counts, self.inner[len(loop.carried) :], strict=True))
        self.index = None if loop.index is None else Var(loop.index.name, loop.index.type)
        self.first = Var("first", types.PY_INT)
        self.start = Builder(let.span)
        if self.index is not None and loop.index is not None:
            here: Handle = self.start.call(OPS["add"], self.first, self.index)
            names.atoms[loop.index] = here.atom
        self.fixing.indexed(loop.index, loop.count)
        self.test = None if loop.test is None else self.fixing.block(loop.test)
        self.handed = tuple(map(names.var, loop.handed))
        self.body = self.fixing.block(loop.body)
        if self.body.dims != tuple(map(dims.of, self.grown)):
            raise Unfit
        self.needs = self._needs()
        bases = (need.base for need in self.needs.values())
        asked = tuple(dict.fromkeys(b for b in bases if b is not None and not is_int(b)))
        self.asked = () if asked == counts else asked

    def parted(self) -> tuple[list[Let], Let]:
        """The outer loop behind what it needs, and the inner one."""
        loop, names, inner, needs = self.loop, self.fixing.names, self.inner, self.needs
        first, start, body = self.first, self.start, self.body
        before = Builder(self.let.span)
        highest = [self._highest(before, array) for array in self.counts]
        b = self.fixing.lengths
        atoms, room = self._with_room(b, needs)
        # The inner loop also carries where it goes on, and whether it has been left.
        at, left = Var("at", types.PY_INT), Var("left", _FLAG)
        rest = None if loop.count is None else b.call(OPS["subtract"], loop.count, first)
        end = Builder(self.let.span)
        here = first if loop.index is None else names.atoms[loop.index]
        results = [*body.results, *(self.fixing.peaks[array] for array in self.counts)]
        leaves = end.cast(results[0], types.bool_, weak=True) if loop.exits else constant(False)
        following = [end.call(OPS["add"], here, 1), leaves]
        inner_loop = Loop(
            (*inner, at, left), (*atoms, first, constant(False)),
            Block(
                (*start.lets, *body.lets, *end.lets),
                (*results, *(end.atom(f) for f in following)),
            ),
            self._test(self.test, inner, needs, room), self.handed,
            None if rest is None else rest.atom, self.index, loop.exits,
        )
        ends = b.bind(inner_loop, [v.type for v in inner_loop.carried])  # type: ignore[misc]
        made = b.lets[-1]
        *values, at_end, was_left = ends
        again = None
        for k, need in needs.items():
            short = self._is_short(b, k, values, self._count(b, need, values) + room[k])
            again = short if again is None else again | short
        assert again is not None
        again = again & b.call(OPS["logical_not"], was_left)
        if loop.count is not None:
            again = again & (at_end < b.handle(loop.count))
        on = Var("again", _FLAG)
        outer = Loop(
            (*self.carried, *self.peaks, first, on),
            (*loop.init, *highest, constant(0), constant(True)),
            b.block((*values, at_end, again), tuple(map(dims.of, self.grown))),
            Block((), (on,)), dims=self.symbols, init_dims=loop.init_dims,
        )
        extra = [Var(v.name, v.type) for v in outer.carried[len(loop.carried) :]]
        new = Let((*self.let.outs, *extra), outer, self.let.dims, span=self.let.span)
        return [*before.lets, new], made

    def _highest(self, b: Builder, array: Var) -> Atom:
        """The largest element of an array of counts before the loop.

        No count is larger than the lists that it counts are long: what is, no item has reached.
        """
        held = self.loop.init[self.loop.carried.index(array)]
        asked = [k for k, need in self.needs.items() if need.base is array]
        lengths = [b.extent(self.loop.init_dims[k]) for k in asked]
        most = functools.reduce(lambda x, y: b.call(OPS["maximum"], x, y), lengths)
        found, index = Var("c", types.PY_INT), Var("i", types.PY_INT)
        body = b.nested()
        count = body.cast(body.call(OPS["index"], held, index, axes=(0,)), types.i64, weak=True)
        count = body.call(OPS["where"], count <= body.handle(most), count, 0)
        size = b.extent(held.type.shape[0])  # type: ignore[union-attr]
        loop = Loop(
            (found,), (constant(0),), body.block((body.call(OPS["maximum"], found, count),)),
            count=size.atom, index=index,
        )
        return b.bind(loop, [types.PY_INT])[0].atom

    def _needs(self) -> dict[int, Bound]:
        """By extent, how many rows there must be at the start of a round."""
        found: dict[int, Bound] = {}
        for need in self.fixing.needs:
            symbol = dims.plain_symbol(need.extent)
            if symbol not in self.grown or need.rows.base not in (None, *self.loop.carried):
                raise Unfit
            k = self.grown.index(symbol)
            if k in found and (need.rebuild is None) is not (k not in self.rebuilds):
                raise Unfit
            if need.rebuild is not None:
                self.rebuilds.setdefault(k, need.rebuild)
                if not all(self._is_length(atom) for atom, _ in need.rows.times):
                    raise Unfit  # slots are written: so many may find no memory
            both = larger(found.get(k, need.rows), need.rows)
            if both is None or max((both.more, *(n for _, n in both.times))) > _MOST_ROWS:
                raise Unfit
            found[k] = both
        if len(found) != len(self.grown):
            raise Unfit
        return found

    def _count(self, b: Builder, need: Bound, values: Sequence[Operand]) -> Handle:
        """What a round starts from, of carried values."""
        if need.base is None:
            return b.handle(0)
        if need.base in self.counts:
            return b.handle(values[len(self.carried) + self.counts.index(need.base)])
        return b.handle(values[self.loop.carried.index(need.base)])

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
        if root is None or root in self.fixing.astray:
            raise Unfit
        return self.loop.carried.index(root)

    def _with_room(
        self, b: Builder, needs: dict[int, Bound]
    ) -> tuple[list[Atom], dict[int, Handle]]:
        """What is carried, with room for a round; by extent, how many rows a round may append."""
        atoms: list[Atom] = [*self.carried, *self.peaks]
        room: dict[int, Handle] = {}
        for k, need in needs.items():
            room[k] = b.handle(need.more)
            for atom, times in need.times:
                rounds = b.call(OPS["minimum"], b.call(OPS["maximum"], atom, 0), _MOST_ROUNDS)
                room[k] = room[k] + rounds * times
            if k in self.rebuilds:
                continue
            count = self._count(b, need, atoms)
            old, new = dims.of(self.symbols[k]), dims.of(self.grown[k])
            needed = count + room[k]
            rows = [n for n, atom in enumerate(atoms) if self.symbols[k] in _symbols(atom)]
            then = b.nested()
            _, (least,) = then.call(OPS["as_extent"], needed, name="n")
            size = dims.add(dims.multiply(2, least), _SPARE)
            wide = [_wide(then, atoms[n], old, size) for n in rows]
            node = If(
                (needed > b.extent(old)).atom, then.block(wide, (size,)),
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
            entries = self._count(b, needs[k], atoms) + room[k]
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
        self, test: Block | None, inner: Sequence[Var], needs: dict[int, Bound],
        room: dict[int, Handle],
    ) -> Block:
        b = Builder(self.let.span)
        results: tuple[Atom, ...] = ()
        if test is not None:
            b.lets += test.lets
            results = test.results
        go = b.handle(results[0]) if results else None
        for k, need in needs.items():
            count = self._count(b, need, inner)
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
        raise Unfit
    axis = ty.shape.index(old)
    empty = b.undef(replace(ty, shape=(*ty.shape[:axis], new, *ty.shape[axis + 1 :])))
    wide: Handle = b.call(
        OPS["slice_update"], empty, rows, starts=(0,) * ty.rank, sizes=ty.shape,
        steps=(1,) * ty.rank,
    )
    return wide.atom
