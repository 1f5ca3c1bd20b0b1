"""What a loop pushes on a tape lies in arrays where the loop can then be one kernel.

In: a module. Out: the module in which pairs of loops, one of which pushes on a tape what the other
pops, use one array per element type instead, if both become kernels by that: a kernel cannot make
a tape longer, and a plan that steps through a `while` of a few numbers takes many times as long as
its arithmetic.

How long the arrays must be is counted first, by the same loop without anything but what decides on
its course; where the loop stores a fixed number of elements in each of at most as many rounds as
an array has rows, that many are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any

from pyrelay.ir import dims, walk
from pyrelay.ir.build import Builder, constant
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import (
    Atom,
    Block,
    Const,
    FnCall,
    If,
    Let,
    Loop,
    Module,
    OpCall,
    Var,
)
from pyrelay.ir.op import OPS, Effect
from pyrelay.ir.types import DType, TapeType, TensorType, Type, i64
from pyrelay.opt.dce import dce
from pyrelay.opt.scalars import is_kernel, scalar_lets
from pyrelay.records import dataclass

_I64 = TensorType(i64)
_MOST_ROUNDS = 1 << 12  # of a loop with a constant bound, for which room is made unseen


def stacks(module: Module) -> Module:
    """The module with tapes as arrays where that makes kernels of loops."""
    new = module.with_bodies(_converted)
    return module if new is module else dce(new)


class _Unfit(Exception):
    """What is on the tape cannot lie in arrays."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A Let that takes a tape and gives it back; `place` is its number in the block."""

    place: int
    tape: Var
    after: Var
    pushes: tuple[Type, ...]
    pops: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A loop that pushes and the loop that pops the same, and the element types of that."""

    pushing: _Link
    popping: _Link
    kinds: tuple[DType, ...]


def _converted(body: Block) -> Block:
    tapes = [
        let.outs[0] for let in body.lets
        if isinstance(let.rhs, OpCall) and let.rhs.op.name == "tape_new"
    ]
    readers = _readers(body) if tapes else {}
    chains = [
        chain for tape in tapes if (chain := _chain(body, tape, readers)) is not None
    ]
    pairs = [pair for chain in chains for pair in _pairs(body, chain)]
    while pairs:
        rewriting = _Rewriting(body, pairs)
        block = rewriting.block()
        scalar = scalar_lets(block)
        fit = [
            pair for pair in pairs
            if all(is_kernel(let, scalar) for let in rewriting.loops.get(pair, ()))
            and pair in rewriting.loops
        ]
        if len(fit) == len(pairs):
            return block
        pairs = fit
    return body


# -- finding pairs ---------------------------------------------------------------------------------


def _readers(block: Block) -> dict[Var, list[int]]:
    """The Lets of a block that read each tape, blocks inside them included."""
    readers: dict[Var, list[int]] = {}
    for place, let in enumerate(block.lets):
        inside = [v for b in walk.blocks(let.rhs) for v in walk.free_vars(b)]
        for atom in {*walk.operands(let.rhs), *inside}:
            if isinstance(atom, Var) and isinstance(atom.type, TapeType):
                readers.setdefault(atom, []).append(place)
    return readers


def _chain(block: Block, tape: Var, readers: dict[Var, list[int]]) -> list[_Link] | None:
    """The Lets of a block that hand a tape on, in order; None if one does more than that."""
    chain: list[_Link] = []
    while tape in readers:
        if len(readers[tape]) != 1:
            return None
        (place,) = readers[tape]
        let = block.lets[place]
        after = [out for out in let.outs if isinstance(out.type, TapeType)]
        if len(after) != 1 or not isinstance(let.rhs, (OpCall, FnCall, Loop)):
            return None
        calls = [
            each.rhs for each in walk.nested_lets(Block((let,), ())) if isinstance(each.rhs, OpCall)
        ]
        pushes = tuple(_type(c.args[1]) for c in calls if c.op.name == "tape_push")
        pops = tuple(c.attrs["type"] for c in calls if c.op.name == "tape_pop")
        chain.append(_Link(place, tape, after[0], pushes, pops))
        tape = after[0]
    return None if tape in block.results else chain


def _type(atom: Atom) -> Type:
    assert atom.type is not None
    return atom.type


def _pairs(block: Block, chain: Iterable[_Link]) -> Iterable[_Pair]:
    """The loops of a chain that push and pop the same, if the chain is a stack of such Lets."""
    open_: list[_Link] = []
    found: list[_Pair] = []
    for link in chain:
        if link.pushes and link.pops:
            return
        if link.pops:
            if not open_:
                return
            pushing = open_.pop()
            kinds = _kinds(pushing.pushes)
            loops = all(isinstance(block.lets[x.place].rhs, Loop) for x in (pushing, link))
            if loops and kinds and kinds == _kinds(link.pops):
                found.append(_Pair(pushing, link, kinds))
        elif link.pushes or isinstance(block.lets[link.place].rhs, FnCall):
            open_.append(link)
    if not open_:
        yield from found


def _kinds(pushed: Sequence[Type]) -> tuple[DType, ...]:
    """The element types of what is pushed; none if something else than numbers is."""
    if not all(isinstance(ty, TensorType) for ty in pushed):
        return ()
    found = {ty.dtype.name: ty.dtype for ty in pushed if isinstance(ty, TensorType)}
    return tuple(found[name] for name in sorted(found))


# -- rewriting -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Tape:
    """How a tape is spelled: its arrays, which a pushing loop carries, and how full each is.

    rows: the arrays that a popping loop reads. carries_rows: whether the arrays are carried;
    without either, elements are only counted.
    """

    kinds: tuple[DType, ...]
    rows: dict[DType, Atom] = field(default_factory=dict)
    carries_rows: bool = False

    @property
    def types(self) -> list[Type]:
        """The types of the values that stand for the tape: array and count of each kind."""
        found: list[Type] = []
        for kind in self.kinds:
            if self.carries_rows:
                found.append(_type(self.rows[kind]))
            found.append(_I64)
        return found

    def slots(self, kind: DType) -> tuple[int | None, int]:
        """Where the array and the count of a kind stand among the values."""
        place = self.kinds.index(kind)
        return (2 * place, 2 * place + 1) if self.carries_rows else (None, place)


State = tuple[Atom, ...]


class _Rewriting:
    """A block in which some pairs of loops use arrays. `loops` are the new loops of each pair."""

    def __init__(self, source: Block, pairs: Sequence[_Pair]) -> None:
        self.source = source
        self.pushing = {pair.pushing.place: pair for pair in pairs}
        self.popping = {pair.popping.place: pair for pair in pairs}
        self.loops: dict[_Pair, tuple[Let, ...]] = {}
        self._left: dict[_Pair, tuple[State, dict[DType, Atom]]] = {}
        self._tapes: dict[Atom, Atom] = {}  # a tape that a converted loop gave -> what it was given

    def block(self) -> Block:
        """The rewritten block."""
        lets: list[Let] = []
        for place, let in enumerate(self.source.lets):
            let = self._retaped(let)
            if place in self.pushing:
                self._drop(self.pushing[place].pushing)
                lets += self._push(self.pushing[place], let)
            elif place in self.popping:
                self._drop(self.popping[place].popping)
                lets += self._pop(self.popping[place], let)
            else:
                lets.append(let)
        return replace(self.source, lets=tuple(lets))

    def _drop(self, link: _Link) -> None:
        self._tapes[link.after] = self._tapes.get(link.tape, link.tape)

    def _retaped(self, let: Let) -> Let:
        rhs = let.rhs
        if isinstance(rhs, (OpCall, FnCall)) and any(a in self._tapes for a in rhs.args):
            return replace(let, rhs=replace(rhs, args=self._current(rhs.args)))
        if isinstance(rhs, Loop) and any(a in self._tapes for a in rhs.init):
            return replace(let, rhs=replace(rhs, init=self._current(rhs.init)))
        return let

    def _current(self, atoms: Sequence[Atom]) -> tuple[Atom, ...]:
        return tuple(self._tapes.get(a, a) for a in atoms)

    def _push(self, pair: _Pair, let: Let) -> list[Let]:
        tape = self._tapes[pair.pushing.after]
        builder = Builder(let.span)
        none = (constant(0, _I64),) * len(pair.kinds)
        try:
            rooms = _room(self.source, let)
            if rooms is None:
                copy = walk.copy_let(let, walk.Renaming())
                if any(_runs_once(inner) for inner in walk.nested_lets(Block((copy,), ()))):
                    return self._unchanged(pair, let)
                counting, totals = _translated(copy, tape, none, _Tape(pair.kinds))
                builder.lets.append(counting)
                rooms = {}
                for kind, total in zip(pair.kinds, totals, strict=True):
                    _, (rooms[kind],) = builder.call(OPS["as_extent"], total, name="n")
            rows = {k: builder.undef(TensorType(k, (rooms[k],))).atom for k in pair.kinds}
            start = tuple(a for k in pair.kinds for a in (rows[k], constant(0, _I64)))
            saving = _Tape(pair.kinds, rows, carries_rows=True)
            loop, ends = _translated(let, tape, start, saving)
        except _Unfit:
            return self._unchanged(pair, let)
        full = {k: ends[2 * n] for n, k in enumerate(pair.kinds)}
        self._left[pair] = tuple(ends[2 * n + 1] for n in range(len(pair.kinds))), full
        self.loops[pair] = (loop,)
        return [*builder.lets, loop]

    def _unchanged(self, pair: _Pair, let: Let) -> list[Let]:
        """A loop that cannot be converted; the attempt fails, and is made again without it."""
        self.loops.pop(pair, None)
        del self._tapes[pair.pushing.after]
        return [let]

    def _pop(self, pair: _Pair, let: Let) -> list[Let]:
        if pair not in self._left:
            return self._unchanged_pop(pair, let)
        state, rows = self._left[pair]
        tape = self._tapes[pair.popping.after]
        try:
            loop, _ = _translated(let, tape, state, _Tape(pair.kinds, rows))
        except _Unfit:
            self.loops.pop(pair, None)
            return self._unchanged_pop(pair, let)
        self.loops[pair] = (*self.loops[pair], loop)
        return [loop]

    def _unchanged_pop(self, pair: _Pair, let: Let) -> list[Let]:
        del self._tapes[pair.popping.after]
        return [let]


def _runs_once(let: Let) -> bool:
    """Whether a Let must not be run a second time."""
    return isinstance(let.rhs, OpCall) and let.rhs.op.effect is Effect.HOST


def _room(block: Block, let: Let) -> dict[DType, Extent] | None:
    """Elements that a loop pushes at most, if that is easily seen and no more than arrays hold."""
    loop = let.rhs
    assert isinstance(loop, Loop)
    if isinstance(loop.count, Const):
        if not 0 <= loop.count.value <= _MOST_ROUNDS:
            return None
        rounds: Extent = int(loop.count.value)
    else:
        makers = [m.rhs for m in block.lets if loop.count in m.outs]
        if not makers or not isinstance(makers[0], OpCall) or makers[0].op.name != "extent":
            return None
        rounds = makers[0].attrs["size"]
    inside = {s for each in walk.nested_lets(loop.body) for s in each.dims}
    found: dict[DType, Extent] = {}
    waiting = list(loop.body.lets)
    while waiting:
        rhs = waiting.pop().rhs
        if isinstance(rhs, Loop) and any(isinstance(v.type, TapeType) for v in rhs.carried):
            return None
        if isinstance(rhs, If):
            waiting += [*rhs.then.lets, *rhs.orelse.lets]
        if isinstance(rhs, OpCall) and rhs.op.name == "tape_push":
            ty = rhs.args[1].type
            assert isinstance(ty, TensorType)
            if any(s in inside for extent in ty.shape for s in dims.symbols(extent)):
                return None
            so_far = found.get(ty.dtype, 0)
            found[ty.dtype] = dims.add(so_far, dims.multiply(rounds, ty.size))
    return found


def _translated(let: Let, tape: Atom, state: State, spelling: _Tape) -> tuple[Let, State]:
    """A Let that takes `tape` in the new spelling, and what stands for the tape after it."""
    states = {tape: state}
    (new,) = _lets([let], states, spelling)
    (after,) = (out for out in let.outs if isinstance(out.type, TapeType))
    return new, states[after]


def _lets(lets: Iterable[Let], states: dict[Atom, State], spelling: _Tape) -> list[Let]:
    """Lets in the new spelling; enters in `states` what stands for the tapes that they bind."""
    done: list[Let] = []
    for let in lets:
        rhs = let.rhs
        if isinstance(rhs, OpCall):
            if not any(isinstance(v.type, TapeType) for v in (*rhs.args, *let.outs)):
                done.append(let)
            elif rhs.op.name == "tape_push":
                done += _pushed(let, rhs, states, spelling)
            elif rhs.op.name == "tape_pop":
                done += _popped(let, rhs, states, spelling)
            else:
                raise _Unfit
        elif isinstance(rhs, Loop):
            done.append(_loop(let, rhs, states, spelling))
        elif isinstance(rhs, If):
            done.append(_branches(let, rhs, states, spelling))
        else:
            raise _Unfit
    return done


def _spelled(atoms: Sequence[Atom], states: dict[Atom, State]) -> tuple[Atom, ...]:
    """Atoms with what stands for the tapes among them."""
    found: list[Atom] = []
    for atom in atoms:
        if not isinstance(atom.type, TapeType):
            found.append(atom)
        elif atom in states:
            found += states[atom]
        else:
            raise _Unfit
    return tuple(found)


def _bound(binders: Sequence[Var], states: dict[Atom, State], spelling: _Tape) -> tuple[Var, ...]:
    """Binders with those of what stands for the tapes among them."""
    found: list[Var] = []
    for var in binders:
        if isinstance(var.type, TapeType):
            fresh = [
                Var("n" if ty == _I64 else "rows", ty, span=var.span) for ty in spelling.types
            ]
            states[var] = tuple(fresh)
            found += fresh
        else:
            found.append(var)
    return tuple(found)


def _loop(let: Let, loop: Loop, states: dict[Atom, State], spelling: _Tape) -> Let:
    if loop.test is not None and any(
        isinstance(v.type, TapeType) for v in walk.free_vars(loop.test)
    ):
        raise _Unfit
    init = _spelled(loop.init, states)
    carried = _bound(loop.carried, states, spelling)
    lets = _lets(loop.body.lets, states, spelling)
    body = replace(loop.body, lets=tuple(lets), results=_spelled(loop.body.results, states))
    new = replace(loop, init=init, carried=carried, body=body)
    return replace(let, outs=_bound(let.outs, states, spelling), rhs=new)


def _branches(let: Let, rhs: If, states: dict[Atom, State], spelling: _Tape) -> Let:
    arms = []
    for arm in (rhs.then, rhs.orelse):
        lets = _lets(arm.lets, states, spelling)
        arms.append(replace(arm, lets=tuple(lets), results=_spelled(arm.results, states)))
    new = replace(rhs, then=arms[0], orelse=arms[1])
    return replace(let, outs=_bound(let.outs, states, spelling), rhs=new)


def _pushed(
    let: Let, call: OpCall, states: dict[Atom, State], spelling: _Tape
) -> Sequence[Let]:
    tape, value = call.args
    ty = value.type
    assert isinstance(ty, TensorType)
    state = list(states[tape])
    rows, count = spelling.slots(ty.dtype)
    builder = Builder(let.span)
    if rows is not None:
        given = builder.cast(value, ty.dtype)
        if ty.shape:
            part = _part(builder, state[count], ty)
            flat = builder.call(OPS["reshape"], given, shape=part["sizes"])
            state[rows] = builder.call(OPS["slice_update"], state[rows], flat, **part).atom
        else:
            update = OPS["index_update"]
            state[rows] = builder.call(update, state[rows], given, state[count], axes=(0,)).atom
    state[count] = builder.call(OPS["add"], state[count], _size(builder, ty)).atom
    states[let.outs[0]] = tuple(state)
    return builder.lets


def _popped(
    let: Let, call: OpCall, states: dict[Atom, State], spelling: _Tape
) -> Sequence[Let]:
    ty = call.attrs["type"]
    assert isinstance(ty, TensorType)
    state = list(states[call.args[0]])
    _, count = spelling.slots(ty.dtype)
    rows = spelling.rows.get(ty.dtype)
    if rows is None:
        raise _Unfit
    rest, out = let.outs
    builder = Builder(let.span)
    state[count] = builder.call(OPS["subtract"], state[count], _size(builder, ty)).atom
    if ty.shape:
        part = _part(builder, state[count], ty)
        value = builder.call(OPS["slice"], rows, **part)
        if ty.shape != part["sizes"]:
            builder.call(OPS["reshape"], value, shape=ty.shape)
    else:
        value = builder.call(OPS["index"], rows, state[count], axes=(0,))
        builder.cast(value, ty.dtype, weak=ty.weak)
    builder.lets[-1] = replace(builder.lets[-1], outs=(out,))
    states[rest] = tuple(state)
    return builder.lets


def _size(builder: Builder, ty: TensorType) -> Atom:
    return builder.cast(builder.extent(ty.size), i64)


def _part(builder: Builder, start: Atom, ty: TensorType) -> dict[str, Any]:
    """The part of the array of a kind that one value takes."""
    _, (first,) = builder.call(OPS["as_extent"], start, name="start")
    return {"starts": (first,), "sizes": (ty.size,), "steps": (1,)}
