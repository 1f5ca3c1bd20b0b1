"""Calls of batched recursive functions: one at a time, or all calls of a loop at once.

In: blocks, and what stands in for recursive functions (`levels`). Out: the blocks with their calls
replaced. Of a counted loop that calls such a function for one tree after another, with arguments
that do not depend on what the loop computes, all calls are made before the loop, as one forest, and
the loop reads its rows. Where a call fails, the recursion runs at its place in the loop, so that
what is raised, and after what, is as in plain Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent
from pyrelay.ir.effects import is_pure
from pyrelay.ir.nodes import Atom, Block, FnCall, Function, Jvp, Let, Loop, OpCall, Var, Vjp
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType, Type
from pyrelay.opt.linearise import as_extent, number
from pyrelay.records import dataclass

#: Ops on ints that may raise only where the loop, which runs them again, raises too.
_OVERFLOWING = frozenset({"add", "subtract", "multiply"})


@dataclass(frozen=True, slots=True, eq=False)
class Batched:
    """What stands in for a recursive function.

    single: for one call. many: for calls with arrays of states; its first result says whether all
    went well. failing: raises what the function raises. state: positions of the arguments that
    tell calls apart.
    """

    single: Function
    many: Function
    failing: Function
    state: tuple[int, ...]


def redirected(block: Block, instead: Mapping[str, Batched]) -> Block:
    """The block with calls of the functions that stand in for others."""
    lets: list[Let] = []
    for let in block.lets:
        rhs = let.rhs
        before, after = Builder(let.span), Builder(let.span)
        if isinstance(rhs, Loop):
            rhs = _all_calls_first(before, after, rhs, instead)
        rhs = walk.replace_blocks(rhs, lambda inner: redirected(inner, instead))
        if isinstance(rhs, (FnCall, Vjp, Jvp)) and rhs.function in instead:
            rhs = replace(rhs, function=instead[rhs.function].single.name)
        lets += before.lets
        lets.append(let if rhs is let.rhs else replace(let, rhs=rhs))
        lets += after.lets
    return replace(block, lets=tuple(lets))


def _all_calls_first(
    before: Builder, after: Builder, loop: Loop, instead: Mapping[str, Batched]
) -> Loop:
    """The loop without the calls that can be made before it."""
    if loop.count is None or loop.test is not None or loop.exits or loop.dims:
        return loop
    index = loop.index or Var("i", types.PY_INT)
    body: list[Let] = []
    inside = {*loop.carried, index, *(v for let in loop.body.lets for v in let.outs)}
    bound = {s for let in loop.body.lets for s in let.dims}
    length: Extent | None = None
    for let in loop.body.lets:
        call = let.rhs
        if not isinstance(call, FnCall) or call.function not in instead:
            body.append(let)
            continue
        batched = instead[call.function]
        shared = [a for k, a in enumerate(call.args) if k not in batched.state]
        slices = _slice(loop, index, [call.args[k] for k in batched.state], inside)
        moves = not any(a in inside for a in shared) and not any(
            s in bound for e in call.dims for s in dims.symbols(e)
        )
        if slices is None or not moves:
            body.append(let)
            continue
        with before.at(let.span):
            if length is None:
                count = before.handle(before.cast(loop.count, types.i64))
                length = as_extent(before, before.call(OPS["maximum"], count, number(0)))
            roots = _states(before, loop.count, index, slices, length)
            kinds = [v.type for v in let.outs]
            fine, rows = call_many(before, batched, call, roots, length, kinds)
        inner = Builder(let.span)
        replay(inner, batched, call, fine)
        found = row(inner, rows, index, kinds)
        names = dict(zip([h.atom for h in found], let.outs, strict=True))
        body += [
            replace(x, outs=tuple(names.get(v, v) for v in x.outs)) for x in inner.lets
        ]
        refuse(after, fine)
    if length is None:
        return loop
    return replace(loop, index=index, body=replace(loop.body, lets=tuple(body)))


_Slice = tuple[list[Let], list[Atom]]


def _slice(
    loop: Loop, index: Var, wanted: Sequence[Atom], inside: set[Var]
) -> _Slice | None:
    """The Lets of the body that compute these numbers of the index; None if it takes more."""
    if not any(a in inside for a in wanted):
        return None  # the same call in every iteration
    needed: set[Atom] = set(wanted)
    lets: list[Let] = []
    for let in reversed(loop.body.lets):
        if needed.isdisjoint(let.outs):
            continue
        rhs = let.rhs
        if not isinstance(rhs, OpCall) or let.dims:
            return None
        ty = let.outs[0].type
        if not isinstance(ty, TensorType) or ty.shape:
            return None
        if not is_pure(let) and rhs.op.name not in _OVERFLOWING:
            return None
        needed.update(rhs.args)
        lets.append(let)
    if any(v in needed for v in loop.carried):
        return None
    return lets[::-1], list(wanted)


def _states(
    builder: Builder, count: Atom, index: Var, found: _Slice, length: Extent
) -> list[Atom]:
    """The states of all iterations, an array each."""
    lets, wanted = found
    rows = builder.zeros(TensorType(types.i64, (length,)))

    def one(inner: Builder, i: Handle, carried: Sequence[Handle]) -> list[Handle]:
        names = walk.Renaming({index: i.atom})
        for let in lets:
            inner.lets.append(_unchecked(let, names, inner))
        return [
            inner.call(
                OPS["index_update"], array, inner.cast(names.atom(a), types.i64), i, axes=(0,)
            )
            for array, a in zip(carried, wanted, strict=True)
        ]

    return [h.atom for h in builder.counted(count, [rows] * len(wanted), one)]


def _unchecked(let: Let, names: walk.Renaming, builder: Builder) -> Let:
    """A copy of a Let that does not raise."""
    rhs = let.rhs
    if is_pure(let) or not isinstance(rhs, OpCall):
        return walk.copy_let(let, names)
    args = [builder.cast(names.atom(a), types.i64) for a in rhs.args]
    value = builder.call(rhs.op, *args)
    cast = OPS["cast"]
    (out,) = let.outs
    assert isinstance(out.type, TensorType)
    made = builder.nested()
    handle = made.call(cast, value, dtype=out.type.dtype, weak=out.type.weak)
    names.atoms[out] = handle.atom
    return made.lets[0]


# -- calls -----------------------------------------------------------------------------------------


def call_many(
    builder: Builder, batched: Batched, call: FnCall, roots: Sequence[Atom], length: Extent,
    kinds: Sequence[Type | None],
) -> tuple[Handle, tuple[Handle, ...]]:
    """All calls with these states: whether they go well, and their results, a row each."""
    shared = [a for k, a in enumerate(call.args) if k not in batched.state]
    node = FnCall(batched.many.name, (*roots, *shared), (length, *call.dims))
    outs = [TensorType(types.bool_)]
    outs += [TensorType(t.dtype, (length, *t.shape)) for t in kinds if isinstance(t, TensorType)]
    fine, *rows = builder.bind(node, outs)
    return fine, tuple(rows)


def replay(builder: Builder, batched: Batched, call: FnCall, fine: Handle) -> None:
    """Where some call fails, run this one for what it raises."""

    def again(b: Builder) -> list[Handle]:
        b.bind(replace(call, function=batched.failing.name), [])
        return []

    builder.cond(fine, lambda b: [], again)


def refuse(builder: Builder, fine: Handle) -> None:
    """Where calls fail and no replay of them raised, there were too many."""

    def complain(b: Builder) -> list[Handle]:
        b.call(
            OPS["raise"], exception="RecursionError",
            parts=("maximum recursion depth exceeded in compiled code",),
        )
        return []

    builder.cond(fine, lambda b: [], complain)


def row(
    builder: Builder, rows: Sequence[Handle], at: Atom, kinds: Sequence[Type | None]
) -> list[Handle]:
    """The results of one of the calls."""
    found = []
    for table, ty in zip(rows, kinds, strict=True):
        assert isinstance(ty, TensorType)
        value = builder.call(OPS["index"], table, at, axes=(0,))
        found.append(builder.handle(builder.cast(value, ty.dtype, weak=ty.weak)))
    return found
