"""Reverse mode through `if`.

In: an `If` of the forward block and the cotangents of its outputs. Out: the forward `If`, which
also gives what the backward pass of the taken branch needs (`undef` for the other branch's), and in
the sink a backward `If` on the same condition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyrelay.grad.cotangents import Sink, cotangent_type, is_static
from pyrelay.grad.residuals import (
    Residuals,
    live_lets,
    mentioned_symbols,
    repeat,
    select,
)
from pyrelay.grad.reverse import Flow, Walker
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, FnCall, If, Let, Loop, OpCall, Var
from pyrelay.ir.types import TAPE, TapeType, Type


@dataclass(slots=True)
class _Arm:
    """One branch: its forward Lets and results, and its backward code before residuals."""

    source: Block
    forward: list[Let]
    flow: Flow
    sink: Sink
    backward: list[Let]
    results: list[Atom]
    residuals: Residuals
    symbols: list[Symbol]  # bound in the branch, needed in its backward code


def reverse_if(walker: Walker, let: Let, sink: Sink, flow: Flow) -> list[Let]:
    """Reverse an `If`; returns the forward Lets that replace it."""
    rhs = let.rhs
    assert isinstance(rhs, If)
    cotangents = [sink.take(out) for out in let.outs]
    outer = {*walk.free_vars(rhs.then), *walk.free_vars(rhs.orelse)}
    # A tape may end in the branches; what was pushed on it has a cotangent all the same.
    ending = any(isinstance(v.type, TapeType) and v in walker.active for v in outer)
    if all(g is None for g in cotangents) and not ending:
        return [let]
    known = {v: g for v, g in sink.values.items() if v in outer}
    halves = [
        _reverse_arm(walker, block, cotangents, sink, known) for block in (rhs.then, rhs.orelse)
    ]
    touched = _touched(sink, [child for _, _, child in halves])
    tape = any(inner.used for _, inner, _ in halves)
    if not touched and not tape:
        return [let]
    arms = [
        _arm(block, forward, inner, child, touched, tape, walker.volatile)
        for block, (forward, inner, child) in zip((rhs.then, rhs.orelse), halves, strict=True)
    ]
    renamings, forward_let = _forward_if(let, rhs, arms, flow, tape)
    blocks = [
        _backward_arm(arm, names, sink.builder)
        for arm, names in zip(arms, renamings, strict=True)
    ]
    out_types = [cotangent_type(v.type) for v in touched] + [TAPE] * tape
    outs = sink.builder.bind(If(rhs.cond, *blocks), out_types, name="g")
    sink.values.update(zip(touched, outs[: len(touched)], strict=True))
    if tape:
        sink.tape = outs[-1].atom
    return [forward_let]


def _reverse_arm(
    walker: Walker, block: Block, cotangents: Sequence[Handle | None], sink: Sink,
    known: Mapping[Var, Handle],
) -> tuple[list[Let], Flow, Sink]:
    child, flow = sink.child(), Flow()
    child.values = dict(known)
    child.tape = sink.tape
    for result, g in zip(block.results, cotangents, strict=True):
        child.add(result, g)
    return walker.lets(block.lets, child, flow), flow, child


def _touched(sink: Sink, children: Iterable[Sink]) -> list[Var]:
    """Variables from outside whose cotangent a branch has changed."""
    found: dict[Var, None] = {}
    for child in children:
        for var, g in child.values.items():
            known = sink.values.get(var)
            if known is None or known.atom is not g.atom:
                found[var] = None
    return list(found)


def _arm(
    block: Block, forward: list[Let], flow: Flow, child: Sink, touched: Sequence[Var], tape: bool,
    volatile: Collection[Var],
) -> _Arm:
    results: list[Atom] = []
    for var in touched:
        results.append(child.get(var).atom)
    if tape:
        results.append(child.tape)
    backward = live_lets(child.builder.lets, results)
    code = Block(tuple(backward), tuple(results))
    residuals = select(forward, walk.free_vars(code), (), volatile=volatile)
    symbols = needed_symbols(code, residuals, {s for let in forward for s in let.dims})
    return _Arm(block, forward, flow, child, backward, results, residuals, symbols)


def needed_symbols(code: Block, residuals: Residuals, bound: set[Symbol]) -> list[Symbol]:
    """Symbols bound in the forward block that its backward code needs, oldest first."""
    mentioned = mentioned_symbols(code) | mentioned_symbols(Block(residuals.repeated, ()))
    for var in residuals.saved:
        mentioned.update(types.type_symbols(var.type) if var.type else ())
    return sorted(mentioned & bound, key=lambda s: s.serial)


def _forward_if(
    let: Let, rhs: If, arms: Sequence[_Arm], flow: Flow, tape: bool
) -> tuple[list[walk.Renaming], Let]:
    """The forward node, and per branch what its backward code calls the residuals."""
    renamings = [walk.Renaming(), walk.Renaming()]
    new_dims: list[Symbol] = []
    extents: list[list[Extent]] = [[], []]
    for k, arm in enumerate(arms):
        for symbol in arm.symbols:
            new_dims.append(renamings[k].symbol(symbol))
            extents[k].append(dims.of(symbol))
            extents[1 - k].append(0)
    slots = _slots(arms)
    outs: list[Var] = []
    given: list[list[Atom]] = [[], []]
    builders = [Builder(let.span), Builder(let.span)]
    for pair in slots:
        owner = 0 if pair[0] is not None else 1
        var = pair[owner]
        assert var is not None
        assert var.type is not None
        out = Var(var.name, types.substitute(var.type, renamings[owner].dims), span=var.span)
        outs.append(out)
        for k, member in enumerate(pair):
            if member is None:
                hidden = dict.fromkeys(new_dims, 0)
                given[k].append(builders[k].undef(_without(out.type, hidden)).atom)
            else:
                renamings[k].atoms[member] = out
                given[k].append(member)
    before, after = flow.step() if tape else (None, None)
    blocks = []
    for k, arm in enumerate(arms):
        lets = list(arm.forward)
        results = list(arm.source.results) + given[k]
        if before is not None:
            if arm.flow.used:
                lets = [redirect(inner, arm.flow.current, before) for inner in lets]
            results.append(arm.flow.end if arm.flow.used else before)
        lets += builders[k].lets
        blocks.append(Block(tuple(lets), tuple(results), arm.source.dims + tuple(extents[k])))
    all_outs = let.outs + tuple(outs) + (() if after is None else (after,))
    node = If(rhs.cond, blocks[0], blocks[1])
    return renamings, Let(all_outs, node, let.dims + tuple(new_dims), span=let.span)


def _without(ty: Type | None, hidden: Mapping[Symbol, int]) -> Type:
    assert ty is not None
    return types.substitute(ty, dict(hidden))


def _slots(arms: Sequence[_Arm]) -> list[tuple[Var | None, Var | None]]:
    """Residuals of the two branches, paired where the types agree: only one of a pair exists."""
    waiting: dict[Type, list[Var]] = {}
    for var in arms[1].residuals.saved:
        if var.type is not None and is_static(var.type, arms[1].symbols):
            waiting.setdefault(var.type, []).append(var)
    slots: list[tuple[Var | None, Var | None]] = []
    paired: set[Var] = set()
    for var in arms[0].residuals.saved:
        partner = waiting.get(var.type) if var.type is not None else None
        if partner and is_static(var.type, arms[0].symbols):
            other = partner.pop(0)
            paired.add(other)
            slots.append((var, other))
        else:
            slots.append((var, None))
    return slots + [(None, v) for v in arms[1].residuals.saved if v not in paired]


def _backward_arm(arm: _Arm, names: walk.Renaming, outer: Builder) -> Block:
    builder = outer.nested()
    for let in arm.residuals.repeated:
        repeat(builder, let, names)
    builder.lets += [walk.copy_let(let, names) for let in arm.backward]
    return Block(tuple(builder.lets), tuple(names.atom(a) for a in arm.results))


def redirect(let: Let, old: Var, new: Atom) -> Let:
    """The Let reading another variable in place of a free one.

    Only a tape is redirected, which a loop's blocks never read from outside.
    """
    def atom(a: Atom) -> Atom:
        return new if a is old else a

    def block(b: Block) -> Block:
        inner = tuple(redirect(x, old, new) for x in b.lets)
        return Block(inner, tuple(map(atom, b.results)), b.dims)

    rhs = let.rhs
    match rhs:
        case OpCall() | FnCall():
            if old not in rhs.args:
                return let
            return replace(let, rhs=replace(rhs, args=tuple(map(atom, rhs.args))))
        case If(cond, then, orelse):
            return replace(let, rhs=If(cond, block(then), block(orelse)))
        case Loop():
            if old not in rhs.init:
                return let
            return replace(let, rhs=replace(rhs, init=tuple(map(atom, rhs.init))))
    return let
