"""An element that a loop reads in all its rounds is read once, but for the round that stores there.

In: a kernel of a program's loops, for the CPU. Out: its body, in which

    for j in range(n):                                  v = d[i, k]
        d[i, j] = min(d[i, j], d[i, k] + d[k, j])   as  for j in range(k): ... v + d[k, j]
                                                        for j in range(k, k + 1): ... d[i, k] + ...
                                                        v = d[i, k]
                                                        for j in range(k + 1, n): ... v + d[k, j]

Compilers cannot know that all rounds but one store elsewhere, so they read the element in each
round, one after the other (index-set splitting: Allen and Kennedy, "Optimizing Compilers for Modern
Architectures", 2001). Where `k` is surely not among the rounds there is one loop, and so there is
where that round stores what was there before, as it does in graphs without negative circles: it is
computed in front, and zeros, which have signs, are taken for others.

The array is one of rows, so that rounds are `independent` but for that element. Where rows are not
as long as that takes, which the call knows, the round between is all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.types import bool_, i64
from pyrelay.lower.kernels.kernel import (
    Array,
    Assign,
    Body,
    Compute,
    For,
    If,
    Kernel,
    Literal,
    Load,
    Local,
    Operand,
    Parameter,
    Read,
    Statement,
    Store,
    bound_by,
    statements,
)
from pyrelay.lower.passes.asked_extents import hold
from pyrelay.lower.passes.copies import Copy, makers
from pyrelay.lower.passes.distinct_places import Integers, accesses, linear, unknown, with_loops
from pyrelay.lower.passes.independent_rounds import independence
from pyrelay.lower.passes.jammed_loops import sets_first
from pyrelay.lower.passes.lane_blocks import assigned, read_by
from pyrelay.records import dataclass

_MOST_STATEMENTS = 60  # of a round
_NEAR = 16  # rounds after which an element that was stored is read again: no vectors


def with_met_elements(kernel: Kernel) -> Body:
    """The body of a kernel with loops parted at what they store."""
    if not kernel.apart or not any(isinstance(s, Store) for s in statements(kernel.body)):
        return kernel.body
    return with_loops(kernel.body, Integers(), _changed)


def _changed(loop: For, around: Integers) -> Iterator[Statement] | None:
    met = None if loop.few else _met(loop, around)
    return None if met is None else _parted(loop, met, around)


@dataclass(frozen=True, slots=True, eq=False)
class _Met:
    """Loads of one element, a store that may be there in one round, whether places go up or down,
    whether that round is surely none of the loop's, and what must not be negative for all others to
    be independent; None if they may not be."""

    loads: list[Load]
    store: Store
    step: int
    never: bool
    asked: list[Extent] | None


def _met(loop: For, around: Integers) -> _Met | None:
    """The element that stands in the way of vectors, if one does."""
    every = list(statements(loop.body))
    if len(every) > _MOST_STATEMENTS or loop.rescaled is not None or loop.lanes:
        return None
    if not all(isinstance(s, (Compute, Read, Load, Store, Assign, If)) for s in every):
        return None
    inside = Integers(around)
    inside.enter(loop)
    j, last = inside.steps[-1]
    places = [(a, place, linear(place, j)) for a, place in accesses(loop.body, inside)]
    found: _Met | None = None
    stores: dict[Array, Store] = {}
    for s in every:
        if isinstance(s, Store):
            stores.setdefault(s.array, s)
    for store in stores.values():
        mine = [each for each in places if each[0].array == store.array]
        if not isinstance(store.array, Parameter):
            return None
        (split,) = (parts for access, _, parts in mine if access is store)
        if split is None or split[0] not in (1, -1) or unknown(split[1]):
            return None
        off = [
            (a, None if parts is None else (parts[0], _minus(parts[1], split[1])))
            for a, _, parts in mine
        ]  # fmt: skip
        if any(_is_chain(a, each, split[0]) for a, each in off):
            return None
        still = [
            (a, each[1]) for a, each in off
            if isinstance(a, Load) and a in loop.body and each is not None and each[0] == 0
        ]  # fmt: skip
        if not still:
            continue
        if found is not None or any(unknown(rest) or rest != still[0][1] for _, rest in still):
            return None
        rest = still[0][1]
        # The round in which both are in one place, and how far that is outside of all rounds.
        meet = rest if split[0] == 1 else dims.multiply(-1, rest)
        never = dims.non_negative(dims.add(dims.multiply(-1, meet), -1)) or any(
            dims.non_negative(dims.add(_minus(meet, each), -1)) for each in last
        )
        loads = [a for a, _ in still]
        asked = independence(loop, around, loads)
        if asked is None and not never:
            return None
        found = _Met(loads, store, 1 if split[0] == 1 else -1, never, asked)
    if found is None:
        return None
    before = _is_made_of(loop, found.loads[0].index, set())
    return found if before and _is_made_of(loop, found.store.index, {loop.index}) else None


def _is_made_of(loop: For, index: Operand, given: set[Operand]) -> bool:
    """Whether a position is made of what is there in front of the loop, and of what is given."""
    every = list(statements(loop.body))
    made = makers(every, index)
    bound = {loop.index, *(o for s in every for o in bound_by(s))}
    return not (bound - given - {s.out for s in made}) & {index, *read_by(made)}


def _minus(a: Extent, b: Extent) -> Extent:
    return dims.add(a, dims.multiply(-1, b))


def _is_chain(access: Load | Store, off: tuple[Extent, Extent] | None, step: Extent) -> bool:
    """Whether an access keeps a loop from being one of vectors, or stores in a second place: `off`
    are the factor of its position and how far it is from where the loop stores."""
    if off is None or off[0] not in (0, step):
        return True
    if isinstance(access, Store):
        return off != (step, 0)
    behind = dims.multiply(off[1], dims.multiply(-1, step))
    return off[0] == step and isinstance(behind, int) and 0 < behind <= _NEAR


def _parted(loop: For, met: _Met, integers: Integers) -> Iterator[Statement]:
    """A loop whose element is read in front of it, and, if it may be stored, behind that again."""
    every = list(statements(loop.body))
    goes, known, inside = Local(bool_), Local(met.store.array.dtype), list[Statement]()
    there = Copy({}, set())
    inside += there.body(makers(every, met.loads[0].index))
    place = there.operand(met.loads[0].index)
    inside.append(Load(known, met.store.array, place, False))
    made, holds = hold(met.asked or [], integers)
    inside += made
    rounds = _part(loop, met, known, loop.start, loop.stop)
    if not met.never:
        inside += _in_parts(loop, met, known, place, holds)
    elif made:
        inside.append(If(holds, (rounds,), Copy({}, set()).body((loop,))))
    else:
        inside.append(rounds)
    yield Compute(goes, "less", (loop.start, loop.stop))
    yield If(goes, tuple(inside))


def _in_parts(
    loop: For, met: _Met, known: Local, place: Operand, holds: Operand
) -> Iterator[Statement]:
    """The rounds up to that which stores where the element is, that one, and those behind it; or
    all as one, of the first kind or of the second."""
    first = Copy({loop.index: loop.start}, set())
    yield from first.body(makers(list(statements(loop.body)), met.store.index))
    start = first.operand(met.store.index)
    ahead, meet = Local(i64), Local(i64)
    yield Compute(ahead, "subtract", (place, start) if met.step == 1 else (start, place))
    yield Compute(meet, "add", (loop.start, ahead))
    calm = Local(bool_, variable=True)
    yield Assign(calm, Literal(True, bool_))
    begun, open_, within, both = (Local(bool_) for _ in range(4))
    yield Compute(begun, "less_equal", (loop.start, meet))
    yield Compute(open_, "less", (meet, loop.stop))
    yield Compute(within, "logical_and", (begun, open_))
    yield If(within, tuple(_asked_there(loop, met, known, meet, calm)))
    yield Compute(both, "logical_and", (calm, holds))
    low, mid, some, end, after, then, last = (Local(i64) for _ in range(7))
    yield Compute(low, "maximum", (meet, loop.start))
    yield Compute(mid, "minimum", (low, loop.stop))
    yield Compute(some, "where", (holds, mid, loop.start))
    yield Compute(end, "where", (both, loop.stop, some))
    yield Compute(after, "add", (end, Literal(1, i64)))
    yield Compute(then, "minimum", (after, loop.stop))
    yield Compute(last, "where", (holds, then, loop.stop))
    yield _part(loop, met, known, loop.start, end)
    index, more, again = Local(i64), Local(bool_), Local(known.dtype)
    copy = Copy({loop.index: index}, set())
    yield replace(loop, index=index, start=end, stop=last, body=copy.body(loop.body))
    yield Compute(more, "less", (last, loop.stop))
    load = Load(again, met.store.array, place, False)
    yield If(more, (load, _part(loop, met, again, last, loop.stop)))


def _asked_there(
    loop: For, met: _Met, known: Local, meet: Operand, calm: Local
) -> Iterator[Statement]:
    """Whether the round in which both are in one place leaves the element as it was."""
    stores = [s for s in statements(loop.body) if isinstance(s, Store)]
    plain = all(s in loop.body for s in stores) and known.dtype.kind in "iufb"
    if not plain or not sets_first(loop.body, assigned(loop.body), set()):
        yield Assign(calm, Literal(False, bool_))
        return
    names: dict[Operand, Operand] = {v: Local(v.dtype, variable=True) for v in assigned(loop.body)}
    names |= {load.out: known for load in met.loads}
    copy = Copy({**names, loop.index: meet}, set())
    yield from copy.body(
        tuple(s for s in loop.body if s not in met.loads and not isinstance(s, Store))
    )
    same = Local(bool_)
    yield Compute(same, "equal", (known, copy.operand(met.store.value)))
    if known.dtype.kind == "f":
        some, both = Local(bool_), Local(bool_)
        yield Compute(some, "not_equal", (known, Literal(0.0, known.dtype)))
        yield Compute(both, "logical_and", (same, some))
        same = both
    yield Assign(calm, same)


def _part(loop: For, met: _Met, known: Local, start: Operand, stop: Operand) -> For:
    """Rounds that all store elsewhere."""
    index = Local(i64)
    names: dict[Operand, Operand] = {load.out: known for load in met.loads}
    copy = Copy({**names, loop.index: index}, set())
    body = copy.body(tuple(s for s in loop.body if s not in met.loads))
    independent = met.asked is not None
    return replace(loop, index=index, start=start, stop=stop, body=body, independent=independent)
