"""Carried arrays that a round computes anew from others of their elements get a second buffer.

In: a loop that becomes a kernel, with its storage. Out: the loop that carries a spare array beside
each such array, `u = u + np.roll(u, 1)`: a round computes the new one into the spare, and the two
change places, where it would be computed into memory of its own and copied.
"""

from __future__ import annotations

from dataclasses import replace

from pyrelay.ir import dims, walk
from pyrelay.ir.nodes import Atom, Attrs, Block, Let, Loop, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.opt import places
from pyrelay.opt.shapes import shape_of
from pyrelay.opt.storage import storage_of

_LARGEST_COPIED = 64  # elements


def with_spares(let: Let, loop: Loop) -> tuple[Let, dict[Atom, Atom]] | None:
    """The Let of a loop with spare arrays; None if that saves no copy.

    The second result tells what the first values of the spare ones are copies of.
    """
    storage = storage_of([let], let.outs)
    if storage is None:
        return None
    makers = {let.outs[0]: let for let in loop.body.lets if len(let.outs) == 1}
    results = loop.body.results[1:] if loop.exits else loop.body.results
    uses = walk.use_counts(loop.body)
    stored: dict[Var, Var] = {}  # carried array -> what is computed anew
    for carried, result in zip(loop.carried, results, strict=True):
        if not isinstance(result, Var) or result not in storage.own or uses[result] != 1:
            continue
        maker = makers.get(result)
        size = dims.greatest(dims.product(shape_of(result)))
        small = size is not None and size <= _LARGEST_COPIED
        if maker is None or not _is_computed(maker) or shape_of(carried) != shape_of(result):
            continue
        if not small:
            stored[carried] = result
    if not stored:
        return None
    new, fresh = _with_spares(let, loop, stored)
    found = storage_of([new], new.outs)
    if found is None or not found.own.isdisjoint(stored.values()):
        return None
    return new, fresh


def _is_computed(let: Let) -> bool:
    return isinstance(let.rhs, OpCall) and let.rhs.op.name not in places.UPDATES


def _with_spares(
    let: Let, loop: Loop, stored: dict[Var, Var]
) -> tuple[Let, dict[Atom, Atom]]:
    fresh: dict[Atom, Atom] = {}
    spares: list[Var] = []
    init, outs = list(loop.init), list(let.outs)
    lets, names = list(loop.body.lets), dict[Atom, Var]()
    for carried, result in stored.items():
        first = loop.init[loop.carried.index(carried)]
        spare, start, out, placed = (
            Var(carried.name, carried.type, span=carried.span) for _ in range(4)
        )
        fresh[start] = first
        init.append(start)
        spares.append(spare)
        outs.append(out)
        shape = shape_of(result)
        store = OpCall(
            OPS["slice_update"], (spare, result),
            Attrs(sizes=shape, starts=(0,) * len(shape), steps=(1,) * len(shape)),
        )
        place = next(k for k, each in enumerate(lets) if result in each.outs)
        lets.insert(place + 1, Let((placed,), store, span=lets[place].span))
        names[result] = placed
    results = tuple(names.get(r, r) for r in loop.body.results)
    body = Block(tuple(lets), (*results, *stored), loop.body.dims)
    new = replace(
        loop, carried=(*loop.carried, *spares), init=tuple(init), body=body,
    )
    return replace(let, outs=tuple(outs), rhs=new), fresh
