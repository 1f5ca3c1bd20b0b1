"""Reverse mode through `if`.

In: an `If` of the forward block and the cotangents of its outputs. Out: the forward `If`, which
also gives what the backward pass of the taken branch needs (`undef` for the other branch's), and in
the sink a backward `If` on the same condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyrelay.grad.cotangents import Sink, cotangent_type, is_static
from pyrelay.grad.residuals import (
    Residuals,
    live_lets,
    repeat,
    select,
)
from pyrelay.grad.reverse import Flow, Walker
from pyrelay.ir import dims, types, walk
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.contents import Contents
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, If, Let, Var
from pyrelay.ir.types import TAPE, TapeType, Type
from pyrelay.records import dataclass


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
    outer = dict.fromkeys((*walker.source.free(rhs.then), *walker.source.free(rhs.orelse)))
    # A tape may end in the branches; what was pushed on it has a cotangent all the same.
    ending = any(isinstance(v.type, TapeType) and v in walker.active for v in outer)
    if all(g is None for g in cotangents) and not ending:
        return [let]
    known = {v: sink.values[v] for v in outer if v in sink.values}
    halves = [
        _reverse_arm(walker, block, cotangents, sink, known) for block in (rhs.then, rhs.orelse)
    ]
    touched = _touched(sink, [child for _, _, child in halves])
    tape = any(inner.used for _, inner, _ in halves)
    if not touched and not tape:
        return [let]
    arms = [
        _arm(walker, block, forward, inner, child, touched, tape)
        for block, (forward, inner, child) in zip((rhs.then, rhs.orelse), halves, strict=True)
    ]
    forward_let = _forward_if(walker, let, rhs, arms, flow, tape)
    blocks = [_backward_arm(arm, walker.names, sink.builder) for arm in arms]
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
    walker: Walker, block: Block, forward: list[Let], flow: Flow, child: Sink,
    touched: Sequence[Var], tape: bool,
) -> _Arm:
    results: list[Atom] = []
    for var in touched:
        results.append(child.get(var).atom)
    if tape:
        results.append(child.tape)
    contents = walker.backward
    backward = live_lets(child.builder.lets, results, contents)
    code = Block(tuple(backward), tuple(results))
    residuals = select(forward, contents.free(code), (), volatile=walker.volatile)
    bound = {s for let in forward for s in let.dims}
    symbols = needed_symbols(code, residuals, bound, contents)
    return _Arm(block, forward, flow, child, backward, results, residuals, symbols)


def needed_symbols(
    code: Block, residuals: Residuals, bound: set[Symbol], contents: Contents
) -> list[Symbol]:
    """Symbols bound in the forward block that its backward code needs, oldest first."""
    mentioned = contents.symbols(code) | contents.symbols(Block(residuals.repeated, ()))
    for var in residuals.saved:
        mentioned.update(types.type_symbols(var.type) if var.type else ())
    return sorted(mentioned & bound, key=lambda s: s.serial)


def _forward_if(
    walker: Walker, let: Let, rhs: If, arms: Sequence[_Arm], flow: Flow, tape: bool
) -> Let:
    """The forward node; its new outputs are what backward code calls the residuals."""
    names = walker.names
    new_dims: list[Symbol] = []
    extents: list[list[Extent]] = [[], []]
    for k, arm in enumerate(arms):
        for symbol in arm.symbols:
            new_dims.append(names.symbol(symbol))
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
        out = Var(var.name, types.substitute(var.type, names.dims), span=var.span)
        outs.append(out)
        for k, member in enumerate(pair):
            if member is None:
                hidden = dict.fromkeys(new_dims, 0)
                given[k].append(builders[k].undef(_without(out.type, hidden)).atom)
            else:
                names.atoms[member] = out
                given[k].append(member)
    before, after = flow.step() if tape else (None, None)
    blocks = []
    for k, arm in enumerate(arms):
        results = list(arm.source.results) + given[k]
        if before is not None:
            if arm.flow.used:
                walker.same_tape(arm.flow.current, before)
            results.append(arm.flow.end if arm.flow.used else before)
        lets = (*arm.forward, *builders[k].lets)
        blocks.append(Block(lets, tuple(results), arm.source.dims + tuple(extents[k])))
    all_outs = let.outs + tuple(outs) + (() if after is None else (after,))
    node = If(rhs.cond, blocks[0], blocks[1])
    return Let(all_outs, node, let.dims + tuple(new_dims), span=let.span)


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
    builder.lets += arm.backward
    return Block(tuple(builder.lets), tuple(arm.results))
