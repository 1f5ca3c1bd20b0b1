"""Arrays that rounds update in part, from their own neighbours, alternate between two buffers.

In: a module. Out: the module in which a loop over `u[1:-1, 1:-1] += c * (u[:-2, 1:-1] + ...)`
carries a second array: a round updates that, from what is in the first, and the two change places,
where the first would be copied in each round before its own elements are replaced. What rounds
leave as it is, the edges, is the same in both: each round replaces the same elements, whatever they
were, and both arrays begin alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import is_

from pyrelay.ir import dims, limits, walk
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Atom, Block, Let, Loop, Module, OpCall, Rhs, Var
from pyrelay.ir.op import Fusion
from pyrelay.opt import places
from pyrelay.opt.shapes import is_array, shape_of

_REPLACING = frozenset({"slice_update", "index_update"})
_LARGEST_COPIED = 64  # elements


def alternating(module: Module) -> Module:
    """Give arrays that are updated from their own neighbours a second buffer each."""
    return module.with_bodies(_body)


def _body(body: Block) -> Block:
    found = {
        let: first for let in walk.nested_lets(body)
        if isinstance(let.rhs, Loop) and (first := _first_updates(let.rhs))
    }
    return _block(body, found) if found else body


def _block(block: Block, found: Mapping[Let, dict[int, Let]]) -> Block:
    lets = []
    for let in block.lets:
        rhs = walk.replace_blocks(let.rhs, lambda inner: _block(inner, found))
        new = let if rhs is let.rhs else replace(let, rhs=rhs)
        lets.append(_alternating(new, rhs, found[let]) if let in found else new)
    return block if all(map(is_, lets, block.lets)) else replace(block, lets=tuple(lets))


def _first_updates(loop: Loop) -> dict[int, Let]:
    """For the carried arrays that get a second buffer the first update of a round, by number."""
    if loop.dims or any(walk.is_call(each, "commit") for each in walk.nested_lets(loop.body)):
        return {}
    makers = {out: each for each in loop.body.lets for out in each.outs}
    results = loop.body.results[1:] if loop.exits else loop.body.results
    fixed, uses = _Fixed(loop), walk.use_counts(loop.body)
    return {
        k: update for k, carried in enumerate(loop.carried)
        if is_array(carried) and carried not in results and _is_large(carried)
        and (update := _first_update(results[k], carried, makers, uses, fixed)) is not None
    }


def _alternating(let: Let, loop: Rhs, first: Mapping[int, Let]) -> Let:
    assert isinstance(loop, Loop)
    init, outs, carried = list(loop.init), list(let.outs), list(loop.carried)
    new: dict[Let, Let] = {}
    for k, update in first.items():
        old = loop.carried[k]
        other, out = (Var(old.name, old.type, span=old.span) for _ in range(2))
        carried.append(other)
        init.append(loop.init[k])
        outs.append(out)
        call = walk.call_of(update)
        new[update] = replace(update, rhs=replace(call, args=(other, *call.args[1:])))
    body = replace(
        loop.body, lets=tuple(new.get(each, each) for each in loop.body.lets),
        results=(*loop.body.results, *(loop.carried[k] for k in first)),
    )
    changed = replace(loop, carried=tuple(carried), init=tuple(init), body=body)
    return replace(let, outs=tuple(outs), rhs=changed)


def _is_large(carried: Var) -> bool:
    """Whether a copy of an array costs much. Lines keep the few elements that they still need
    (`neighbours`)."""
    size = limits.greatest(dims.product(shape_of(carried)))
    return len(shape_of(carried)) > 1 and (size is None or size > _LARGEST_COPIED)


class _Fixed:
    """Which parts of arrays are the same in all rounds of a loop."""

    def __init__(self, loop: Loop) -> None:
        lets = list(walk.nested_lets(loop.body))
        made = (out for let in lets for out in let.outs)
        self.bound: set[Atom] = {*loop.carried, *loop.handed, *made}
        if loop.index is not None:
            self.bound.add(loop.index)
        self.symbols: set[Symbol] = {symbol for let in lets for symbol in let.dims}

    def holds(self, update: OpCall) -> bool:
        """Whether an update replaces the same part in each round."""
        positions = self.bound.isdisjoint(update.args[2:])
        return positions and self.symbols.isdisjoint(walk.rhs_symbols(update))


def _first_update(
    result: Atom, carried: Var, makers: Mapping[Var, Let], uses: Mapping[Var, int], fixed: _Fixed
) -> Let | None:
    """The first of the updates that make a round's array of the last one's, if the array would be
    copied for it, and if nothing asks in between what the array contains."""
    here = result
    while isinstance(here, Var) and here in makers:
        let = makers[here]
        call = let.rhs
        if not isinstance(call, OpCall) or call.op.name not in _REPLACING or not fixed.holds(call):
            return None
        if here is not result and uses[here] != 1:
            return None
        here = call.args[0]
        if here is carried:
            return let if _reads_others(call, carried, makers) else None
    return None


def _reads_others(update: OpCall, carried: Var, makers: Mapping[Var, Let]) -> bool:
    """Whether what an update stores is computed from other elements than those it replaces."""
    pending: list[Atom] = [update.args[1]]
    seen = set(pending)
    while pending:
        let = makers.get(pending.pop())  # type: ignore[arg-type]
        if let is None or not isinstance(let.rhs, OpCall):
            continue
        call = let.rhs
        if call.op.name == "slice" and call.args[0] is carried:
            if not places.reads_same_part(let, update):
                return True
        elif call.op.fusion is Fusion.ELEMENTWISE:
            new = [each for each in call.args if isinstance(each, Var) and each not in seen]
            seen.update(new)
            pending += new
    return False
