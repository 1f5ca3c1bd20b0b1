"""Which nodes write arrays of the caller, which the caller looks at when the program raises.

In: a function of Core. Out: its Lets that may store in place into an array that it was given, and
so have to keep their order with all that may raise. What stores into arrays that the function made
itself is free to move: nobody sees those when it raises.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

from pyrelay.ir import walk
from pyrelay.ir.contents import Contents
from pyrelay.ir.nodes import Atom, Block, FnCall, Function, If, Let, Loop, OpCall
from pyrelay.ir.op import Effect
from pyrelay.opt import places
from pyrelay.opt.shapes import is_array
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Order:
    """What must stay in order in one block: places of Lets that raise, and of those that store."""

    effectful: Sequence[int]
    stores: Sequence[int]

    def raises_at(self, k: int) -> bool:
        """Whether Let `k` may raise."""
        return _holds(self.effectful, k)

    def stores_at(self, k: int) -> bool:
        """Whether Let `k` stores into an array that the caller sees."""
        return _holds(self.stores, k)

    def keeps(self, k: int, until: int, with_it: Callable[[int], bool], serial: bool) -> bool:
        """Whether Let `k` may run at `until`, in a group with those of which `with_it` is true.

        serial: the group does one after the other.
        """
        if self.raises_at(k):
            between = (*_between(self.effectful, k, until), *_between(self.stores, k, until))
            if not all(map(with_it, between)):
                return False
        if not self.stores_at(k):
            return True
        return all(serial and with_it(e) for e in _between(self.effectful, k, until))


def _between(places: Sequence[int], after: int, until: int) -> Sequence[int]:
    """Those of some places, in order, that are behind one and not behind another."""
    return places[bisect.bisect_right(places, after) : bisect.bisect_right(places, until)]


def _holds(places: Sequence[int], k: int) -> bool:
    at = bisect.bisect_left(places, k)
    return at < len(places) and places[at] == k


def stores_of(function: Function) -> frozenset[Let]:
    """The Lets, in nested blocks too, that write what the caller may see; none where nothing in
    the function raises."""
    contents = Contents()
    if all(contents.effect(let.rhs) is Effect.PURE for let in function.body.lets):
        return frozenset()
    shown = _shown(function)
    found: set[Let] = set()
    for let in reversed(list(walk.nested_lets(function.body))):  # inner ones first
        rhs = let.rhs
        if isinstance(rhs, OpCall):
            writes = is_update(rhs) and rhs.args[0] in shown
        elif isinstance(rhs, FnCall):
            writes = any(a in shown for a in rhs.args) and any(map(is_array, let.outs))
        else:
            writes = any(inner in found for b in walk.blocks(rhs) for inner in b.lets)
        if writes:
            found.add(let)
    return frozenset(found)


def is_update(rhs: OpCall) -> bool:
    """Whether an op may be made in the memory of its first operand."""
    return rhs.op.name in places.UPDATES or rhs.op.name.startswith("scatter")


def _shown(function: Function) -> set[Atom]:
    """Variables whose array may lie in the memory of one that the function was given."""
    shown: set[Atom] = {p for p in function.params if is_array(p)}
    size = -1
    while size != len(shown):  # what loops carry may change places
        size = len(shown)
        pending: list[Block] = [function.body]
        while pending:
            block = pending.pop()
            for let in block.lets:
                _follow(let, shown)
                pending += walk.blocks(let.rhs)
    return shown


def _follow(let: Let, shown: set[Atom]) -> None:
    rhs = let.rhs
    match rhs:
        case OpCall():
            if rhs.args and rhs.args[0] in shown and (is_update(rhs) or places.is_view(rhs)):
                shown.update(filter(is_array, let.outs))
        case FnCall():
            if any(a in shown for a in rhs.args):
                shown.update(filter(is_array, let.outs))
        case If():
            for out, *results in zip(let.outs, rhs.then.results, rhs.orelse.results, strict=True):
                if any(r in shown for r in results):
                    shown.add(out)
        case Loop():
            ends = rhs.body.results[rhs.exits :]
            for k, (carried, init) in enumerate(zip(rhs.carried, rhs.init, strict=True)):
                if init in shown or ends[k] in shown:
                    shown.update((carried, let.outs[k]))
