"""Which nodes write arrays of the caller, which the caller looks at when the program raises.

In: a module of Core. Out: the Lets that may store in place into an array of the caller's, and so
have to keep their order with all that may raise. What stores into arrays that the program made
itself is free to move: nobody sees those when it raises.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product

from pyrelay.ir import walk
from pyrelay.ir.contents import Contents
from pyrelay.ir.nodes import Atom, FnCall, Function, If, Let, Loop, Module, OpCall, Var
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


class Stores:
    """Which arrays of the functions of a module are the caller's, and what stores into them.

    given: per function, the parameters in which it may be handed an array of the caller's that
    changes: of one that does not, stores are made in a copy. taken: the parameters whose arrays it
    stores into.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.taken: dict[str, frozenset[int]] = dict.fromkeys(module.functions, frozenset())
        self.given: dict[str, frozenset[int]] = dict.fromkeys(module.functions, frozenset())
        self._paths = {name: _Paths(f) for name, f in module.functions.items()}
        self._find_taken()
        every = frozenset(range(len(module.main.params)))
        self.given[module.entry] = every if module.written is None else module.written
        pending = [module.entry]
        while pending:
            pending += self._gives(module.functions[pending.pop()])

    def shown(self, function: Function) -> set[Atom]:
        """Variables of a function whose array may lie in the memory of one of the caller's."""
        return self._reached(function, self.given[function.name])

    def lets(self, function: Function) -> frozenset[Let]:
        """The Lets, in nested blocks too, that write what the caller may see; none where nothing in
        the function raises."""
        if not raises(function):
            return frozenset()
        shown = self.shown(function)
        found: set[Let] = set()
        for let in reversed(list(walk.nested_lets(function.body))):  # inner ones first
            rhs = let.rhs
            if isinstance(rhs, (OpCall, FnCall)):
                writes = any(a in shown for a in self.stored(rhs))
            else:
                writes = any(inner in found for b in walk.blocks(rhs) for inner in b.lets)
            if writes:
                found.add(let)
        return frozenset(found)

    def stored(self, rhs: OpCall | FnCall) -> tuple[Atom, ...]:
        """The arrays that an op or a call stores into."""
        if isinstance(rhs, FnCall):
            return tuple(rhs.args[k] for k in self.taken[rhs.function])
        return rhs.args[:1] if is_update(rhs) else ()

    def _find_taken(self) -> None:
        callers: dict[str, list[str]] = {}
        for name, paths in self._paths.items():
            for call, _ in paths.calls:
                callers.setdefault(call.function, []).append(name)
        pending = dict.fromkeys(self._paths)
        while pending:
            name, _ = pending.popitem()
            if name != self.module.entry and self._takes(self.module.functions[name]):
                pending.update(dict.fromkeys(callers.get(name, ())))

    def _takes(self, function: Function) -> bool:
        """Notes what a function stores into; whether it is more than before."""
        paths = self._paths[function.name]
        stored = {*paths.updated, *(a for call, _ in paths.calls for a in self.stored(call))}
        found = _reachable(stored, ((b, a) for a, b in self._links(function)))
        taken = frozenset(k for k, p in enumerate(function.params) if is_array(p) and p in found)
        before, self.taken[function.name] = self.taken[function.name], taken
        return taken != before

    def _gives(self, function: Function) -> list[str]:
        """Notes what a function hands to others; those that are handed more than before."""
        shown, more = self.shown(function), []
        for let in walk.nested_lets(function.body):
            if isinstance(let.rhs, FnCall):
                name = let.rhs.function
                given = self.given[name] | {k for k, a in enumerate(let.rhs.args) if a in shown}
                if given != self.given[name]:
                    self.given[name] = given
                    more.append(name)
        return more

    def _reached(self, function: Function, params: Iterable[int]) -> set[Atom]:
        """The parameters at these positions, and what may lie in their memory."""
        starts = [function.params[k] for k in params if is_array(function.params[k])]
        return _reachable(starts, self._links(function)) if starts else set()

    def _links(self, function: Function) -> Iterator[tuple[Atom, Atom]]:
        """Each array and what may lie in its memory."""
        paths = self._paths[function.name]
        yield from paths.links
        for call, outs in paths.calls:
            yield from product(self.stored(call), filter(is_array, outs))


class _Paths:
    """How arrays go through a function.

    links: arrays and what may lie in their memory, but for calls. updated: what ops store into.
    """

    def __init__(self, function: Function) -> None:
        self.links: list[tuple[Atom, Atom]] = []
        self.updated: list[Atom] = []
        self.calls: list[tuple[FnCall, tuple[Var, ...]]] = []
        for let in walk.nested_lets(function.body):
            self._note(let)

    def _note(self, let: Let) -> None:
        match let.rhs:
            case OpCall() as rhs:
                update = is_update(rhs)
                if update:
                    self.updated.append(rhs.args[0])
                if update or places.is_view(rhs):
                    self.links += ((rhs.args[0], out) for out in let.outs if is_array(out))
            case FnCall() as rhs:
                self.calls.append((rhs, let.outs))
            case If() as rhs:
                for arm in (rhs.then, rhs.orelse):
                    self.links += zip(arm.results, let.outs, strict=True)
            case Loop() as rhs:  # what loops carry may change places
                for init, end, carried, out in zip(
                    rhs.init, rhs.body.results[rhs.exits :], rhs.carried, let.outs, strict=True
                ):
                    self.links += product((init, end), (carried, out))


def _reachable(starts: Iterable[Atom], links: Iterable[tuple[Atom, Atom]]) -> set[Atom]:
    onward: dict[Atom, list[Atom]] = {}
    for start, end in links:
        onward.setdefault(start, []).append(end)
    found = set(starts)
    pending = list(found)
    while pending:
        new = [a for a in onward.get(pending.pop(), ()) if a not in found]
        found.update(new)
        pending += new
    return found


def raises(function: Function) -> bool:
    """Whether anything in a function may raise."""
    contents = Contents()
    return any(contents.effect(let.rhs) is not Effect.PURE for let in function.body.lets)


def is_update(rhs: OpCall) -> bool:
    """Whether an op may be made in the memory of its first operand."""
    return rhs.op.name in places.UPDATES or rhs.op.name.startswith("scatter")
