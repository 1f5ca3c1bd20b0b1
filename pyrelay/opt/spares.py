"""Carried arrays that a round computes anew from others of their elements get a second buffer.

In: a loop that becomes a kernel, with its storage. Out: the loop that carries a spare array beside
each such array, `u = u + np.roll(u, 1)`: a round computes the new one into the spare, and the two
change places, where it would be computed into memory of its own and copied. A loop that updates
some elements of such an array from all old ones, as where `v = u.copy()` stands in front of it,
begins with a copy in the spare. So is one that is filled in each round, `new = np.zeros_like(u)`,
of which a part is replaced then: only what that part leaves out is filled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyrelay.errors import Span
from pyrelay.ir import dims, limits, walk
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Attrs, Block, Let, Loop, OpCall, Var
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.opt import places
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.opt.storage import storage_of

_LARGEST_COPIED = 64  # elements


def with_spares(let: Let, loop: Loop) -> tuple[Let, dict[Atom, Atom]] | None:
    """The Let of a loop with spare arrays; None if that saves no copy.

    The second result tells what the first values of the spare ones are copies of.
    """
    storage = storage_of([let], let.outs)
    if storage is None:
        return None
    makers: dict[Atom, Let] = {out: let for let in loop.body.lets for out in let.outs}
    results = loop.body.results[1:] if loop.exits else loop.body.results
    uses = walk.use_counts(loop.body)
    stored: dict[Var, Var] = {}  # what the spare is next -> what is computed anew
    needless: set[Var] = set()  # memory that the spares are in place of
    for carried, result in zip(loop.carried, results, strict=True):
        maker = makers.get(result)
        if maker is None or not isinstance(result, Var) or uses[result] != 1:
            continue
        if shape_of(carried) != shape_of(result):
            continue
        size = limits.greatest(dims.product(shape_of(result)))
        small = size is not None and size <= _LARGEST_COPIED
        memory = _updated(maker, carried, result) or result
        filled = _filled(maker, makers, uses)
        if memory is result and filled is None and not _is_computed(maker):
            continue
        free = [v for v in (carried, *loop.carried) if v not in results and v not in stored]
        if filled is not None:
            memory = filled
            free = [v for v in free if v.type == result.type]
        if memory in storage.own and not small and (filled is None or free):
            stored[carried if filled is None else free[0]] = result
            needless.add(memory)
    if not stored:
        return None
    new, fresh = _with_spares(let, loop, stored)
    found = storage_of([new], new.outs)
    if found is None or not found.own.isdisjoint(needless):
        return None
    return new, fresh


def _updated(maker: Let, carried: Var, result: Var) -> Var | None:
    """What the loop that makes a result from a carried array calls it in its rounds."""
    if not isinstance(maker.rhs, Loop):
        return None
    place = maker.outs.index(result)
    return maker.rhs.carried[place] if maker.rhs.init[place] is carried else None


def _filled(let: Let, makers: Mapping[Atom, Let], uses: Mapping[Var, int]) -> Var | None:
    """The array of one number of which a Let updates a part."""
    if not isinstance(let.rhs, OpCall) or let.rhs.op.name != "slice_update":
        return None
    base = let.rhs.args[0]
    if not isinstance(base, Var) or uses[base] != 1:
        return None
    return base if walk.is_call(makers.get(base), "broadcast_to") else None


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
        spare, start, out = (
            Var(carried.name, carried.type, span=carried.span) for _ in range(3)
        )
        fresh[start] = first
        init.append(start)
        spares.append(spare)
        outs.append(out)
        place = next(k for k, each in enumerate(lets) if result in each.outs)
        maker = lets[place]
        if walk.is_call(maker, "slice_update"):
            base = walk.call_of(maker).args[0]
            fill = next(k for k, each in enumerate(lets) if base in each.outs)
            stores, last = _filled_around(spare, lets[fill], maker)
            call = walk.call_of(maker)
            update = replace(call, args=(last, *call.args[1:]))
            lets[place : place + 1] = [*stores, replace(maker, rhs=update)]
            del lets[fill]
            continue
        anew: Atom = carried if isinstance(maker.rhs, Loop) else result
        shape = shape_of(result)
        store = _store(spare, anew, shape, (0,) * len(shape), maker.span)
        placed = store.outs[0]
        if isinstance(maker.rhs, Loop):
            number = maker.outs.index(result)
            first_values = (*maker.rhs.init[:number], placed, *maker.rhs.init[number + 1 :])
            lets[place : place + 1] = [
                store, replace(maker, rhs=replace(maker.rhs, init=first_values)),
            ]  # fmt: skip
        else:
            lets.insert(place + 1, store)
            names[result] = placed
    results = tuple(names.get(r, r) for r in loop.body.results)
    body = Block(tuple(lets), (*results, *stored), loop.body.dims)
    new = replace(
        loop, carried=(*loop.carried, *spares), init=tuple(init), body=body,
    )
    return replace(let, outs=tuple(outs), rhs=new), fresh


def _store(
    array: Var, part: Atom, sizes: Sequence[Extent], starts: Sequence[Extent], span: Span | None
) -> Let:
    """The replacement of a part of an array."""
    attrs = Attrs(sizes=tuple(sizes), starts=tuple(starts), steps=(1,) * len(sizes))
    out = Var(array.name, array.type, span=array.span)
    return Let((out,), OpCall(OPS["slice_update"], (array, part), attrs), span=span)


def _filled_around(spare: Var, fill: Let, update: Let) -> tuple[list[Let], Var]:
    """Lets that fill what an update leaves out of an array, and the array then; all of it, if its
    edges are not of known widths."""
    shape, call = shape_of(spare), walk.call_of(update)
    starts, sizes = call.attrs["starts"], call.attrs["sizes"]
    behind = [
        dims.add(n, dims.multiply(-1, dims.add(start, size)))
        for n, start, size in zip(shape, starts, sizes, strict=True)
    ]
    widths = [each for each in (*starts, *behind) if isinstance(each, int) and each >= 0]
    edges: list[tuple[tuple[Extent, ...], tuple[Extent, ...]]] = []  # starts and sizes
    fixed = len(widths) == 2 * len(shape) and set(call.attrs["steps"]) == {1}
    if not fixed or len(call.args) != 2 or is_array(walk.call_of(fill).args[0]):
        edges = [((0,) * len(shape), shape)]
    else:
        for axis, n in enumerate(shape):
            for first, width in ((0, starts[axis]), (dims.add(n, -behind[axis]), behind[axis])):
                if width != 0:
                    edges.append((
                        (*starts[:axis], first, *(0 for _ in shape[axis + 1 :])),
                        (*sizes[:axis], width, *shape[axis + 1 :]),
                    ))  # fmt: skip
    lets: list[Let] = []
    number = walk.call_of(fill)
    for at, part in edges:
        value = Var(fill.outs[0].name, replace(_tensor(spare), shape=part), span=fill.span)
        made = replace(number, attrs=Attrs(shape=part))
        lets += [
            Let((value,), made, span=fill.span), _store(spare, value, part, at, fill.span),
        ]  # fmt: skip
        spare = lets[-1].outs[0]
    return lets, spare


def _tensor(array: Var) -> TensorType:
    assert isinstance(array.type, TensorType)
    return array.type
