"""Where the arrays of a scalar program live: in its arguments, in memory of its own, or nowhere.

In: Lets of Core that are to become one serial kernel. Out: which arrays in them need memory of
their own, and which buffers are written; or None, if they cannot run that way.

An array that is computed inside a loop of such a program, as `x[i] - x[j]`, needs no memory where
each element is read as cheaply as it is computed: it is computed where it is read. It gets memory
of its own if it is read again and again, if it is written to, if its operands are overwritten
before it is read, or if it is stored into an array that it is computed from. An update is made in
the buffer of the array it updates, if that is not read in its old state afterwards: else, as where
a loop updates an array from outside in every round, in a copy; so does a loop inside of a loop. A
carried array of a loop and the array that a branch chooses have one buffer, into which what is
computed otherwise is copied. Where loops and branches make arrays change places, an address that is
known at run time only tells which buffer an array has; when the program ends, each stands in a
buffer of its own again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyrelay.ir import dims, walk
from pyrelay.ir.dims import Extent, Symbol
from pyrelay.ir.nodes import Atom, Block, FnCall, If, Let, Loop, OpCall, Var
from pyrelay.opt import places
from pyrelay.opt.buffers import Buffers, NeedsMemory
from pyrelay.opt.exchanges import Choice, Groups, Turn
from pyrelay.opt.given_back import NO_CALLS, GivenBack
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.opt.storage_facts import Facts
from pyrelay.records import dataclass

_MOST_ATTEMPTS = 40  # arrays that get memory because of how they are used
_SHORT = 16  # elements


@dataclass(frozen=True, slots=True)
class Storage:
    """Arrays with memory of their own, and the first variable of each buffer that is written.

    buffers: variable in memory -> the first variable of its buffer. absorbed: updates of a part of
    an array that only make the new part of it: `c[i][2:4] = v`. deferred: gathers without memory,
    and the Lets that make a number of all their elements. behind: for updates of a vector from its
    own neighbours the slices that read what is replaced by then, and how many elements ago: the old
    values of these are kept. together: results of loops, by number, that are computed element by
    element from each other's old states: of all of them an element is computed before any is
    stored. turns, choices: where loops and branches put arrays whose buffers change places. ends:
    such a place -> the buffer in which what stands there is needed at the end.
    """

    own: frozenset[Var]
    written: frozenset[Var]
    buffers: dict[Var, Var]
    absorbed: frozenset[Var]
    makers: dict[Var, Let]
    deferred: dict[Var, Let]
    behind: dict[Var, dict[Var, int]]
    together: dict[Let, list[list[int]]]
    turns: dict[Let, list[Turn]]
    choices: dict[Let, list[Choice]]
    ends: dict[Var, Var]

    @property
    def addressed(self) -> set[Var]:
        """The places whose addresses are handed on."""
        turns = [t for each in self.turns.values() for t in each]
        choices = [c for each in self.choices.values() for c in each]
        found = {place for t in turns for place in (t.before, t.after)}
        return found.union(*(c.arms for c in choices))

    def destination(self, update: OpCall) -> tuple[tuple[OpCall, ...], Atom]:
        """The updates, outermost first, that an update stands for, and what it stores."""
        return _destination(update, self.absorbed, self.makers)


class _Turns(Exception):
    """Carried arrays of a loop change places."""

    def __init__(self, carried: set[Var]) -> None:
        super().__init__()
        self.carried = carried


def storage_of(
    lets: Sequence[Let], results: Iterable[Atom] = (), calls: GivenBack = NO_CALLS
) -> Storage | None:
    """The storage of scalar Lets, run in order; None if they cannot use their arrays that way.

    `results` are the arrays that are needed in the end, in the state they then have. `calls` says
    of functions that may be called which of their arguments each of their results is.
    """
    results = tuple(results)
    facts = Facts(lets)
    own, turning = facts.computed_at_once(), set[Var]()
    for _ in range(_MOST_ATTEMPTS):
        run = _Run(facts, own, turning, calls=calls)
        try:
            fine = run.lets(lets, results) and run.are_arguments(results)
        except _Turns as turns:
            turning |= turns.carried
            continue
        except NeedsMemory as need:
            var = need.var
            known = var in facts.makers or var in facts.inner
            if not isinstance(var, Var) or var in own or not known:
                return None
            own = facts.computed_at_once(own | {var})
            continue
        if not fine:
            return None
        chosen = frozenset(own | run.chosen)
        return Storage(
            chosen, frozenset(run.written), run.buffer, facts.absorbed, facts.makers,
            {var: end for var, end in facts.deferred.items() if var not in chosen},
            run.behind, run.together, run.turns, run.choices, run.ends,
        )
    return None


def _ending(var: Var, symbols: Sequence[Symbol], extents: Sequence[Extent]) -> tuple[Extent, ...]:
    """The shape of an array that a block ends with which says what these symbols are."""
    sizes = dict(zip(symbols, extents, strict=True))
    return tuple(dims.substitute(extent, sizes) for extent in shape_of(var))


def _is_short(shape: Sequence[Extent]) -> bool:
    """Whether copying an array costs no more than finding out where it is."""
    size = dims.product(shape)
    return isinstance(size, int) and size <= _SHORT


def _linked(stands: Mapping[int, tuple[Var, Var]], groups: Sequence[Groups]) -> list[int]:
    """The first result of a branch with two places, and those that share buffers with it."""
    linked, buffers = [next(iter(stands))], set[Var]()
    for k in linked:  # which grows
        for group, place in zip(groups, stands[k], strict=True):
            buffers |= group.buffers(place)
        for other, pair in stands.items():
            reached = groups[0].buffers(pair[0]) | groups[1].buffers(pair[1])
            if other not in linked and not buffers.isdisjoint(reached):
                linked.append(other)
    return linked


def uses_linearly(lets: Sequence[Let], results: Iterable[Atom] = ()) -> bool:
    """Whether scalar Lets, run in order, can be one kernel; see `storage_of`."""
    return storage_of(lets, results) is not None


def with_copies(let: Let, loop: Loop) -> tuple[Let, dict[Atom, Atom]]:
    """A loop that gets copies of the arrays that it updates but also reads in their old state.

    The second result tells what the new variables for first values are copies of.
    """
    init = list(loop.init)
    read = set(walk.free_vars(Block((replace(let, rhs=replace(loop, init=())),), ())))
    fresh: dict[Atom, Atom] = {}
    for k, atom in enumerate(init):
        if isinstance(atom, Var) and is_array(atom) and (atom in read or atom in init[:k]):
            init[k] = Var(atom.name, atom.type, span=atom.span)
            fresh[init[k]] = atom
    return replace(let, rhs=replace(loop, init=tuple(init))), fresh


def _destination(
    update: OpCall, absorbed: frozenset[Var], makers: dict[Var, Let]
) -> tuple[tuple[OpCall, ...], Atom]:
    chain, value = [update], update.args[1]
    while value in absorbed:
        inner = makers[value].rhs
        assert isinstance(inner, OpCall)
        chain.append(inner)
        value = inner.args[1]
    return tuple(chain), value


@dataclass(slots=True)
class _Run(Buffers):
    """Goes through a program once."""

    calls: GivenBack = NO_CALLS

    # -- running -------------------------------------------------------------------------------

    def lets(self, lets: Sequence[Let], results: Iterable[Atom]) -> bool:
        """Runs Lets of a block, then reads its results."""
        for let in lets:
            rhs = let.rhs
            match rhs:
                case OpCall():
                    fine = self._op(let, rhs)
                case If():
                    fine = self._if(let, rhs)
                case Loop():
                    fine = self._loop(let, rhs)
                case FnCall():
                    fine = self._call(let, rhs)
                case _:
                    fine = not any(map(is_array, (*walk.operands(rhs), *let.outs)))
            if not fine:
                return False
        return all(self.reads(a) for a in results if is_array(a))

    def _op(self, let: Let, call: OpCall) -> bool:
        arrays = tuple(a for a in call.args if is_array(a))
        if not any(map(is_array, let.outs)):
            return all(self.reads(a) for a in arrays)
        (out, *_) = let.outs
        if out in self.facts.absorbed:
            self.sources[out] = arrays  # type: ignore[assignment]
            return True
        if call.op.name in places.UPDATES:
            return self._update(out, call)
        if out in self.own:
            if not all(self.reads(a) for a in arrays):
                return False
            for each in let.outs:
                self._create(each)
            return True
        if places.is_view(call) and call.args[0] not in self.sources:
            return self._views(out, call.args[0])  # type: ignore[arg-type]
        for each in let.outs:
            self.sources[each] = arrays  # type: ignore[assignment]
        return True

    def _update(self, out: Var, call: OpCall) -> bool:
        chain, value = _destination(call, self.facts.absorbed, self.facts.makers)
        if out in self.own:  # a copy is updated
            if not all(self.reads(a) for a in (call.args[0], value) if is_array(a)):
                return False
            self._create(out)
            return True
        if not self._stores(out, value, chain):
            return False
        if not self._becomes(out, call.args[0]):
            return False
        self.written.add(self.buffer[out])
        return True

    def _call(self, let: Let, call: FnCall) -> bool:
        """A function is lent arrays, and stores into those that it gives back."""
        arrays = [a for a in call.args if is_array(a)]
        if not arrays:
            return not any(map(is_array, let.outs))
        given = self.calls.get(call.function)
        if given is None or not all(map(self.reads, arrays)):
            return False
        if any(a in self.sources or a in self.shown for a in arrays):
            return False
        if any(k is None and is_array(out) for out, k in zip(let.outs, given, strict=True)):
            return False
        stored = [(out, call.args[k]) for out, k in zip(let.outs, given, strict=True)
                  if k is not None]
        buffers = [self.buffer[a] for a in arrays if isinstance(a, Var)]
        for out, array in stored:
            assert isinstance(array, Var)
            if buffers.count(self.buffer[array]) != 1 or not self._becomes(out, array):
                return False
            self.written.add(self.buffer[out])
        return True

    # -- control flow --------------------------------------------------------------------------

    def _if(self, let: Let, rhs: If) -> bool:
        before, created, around = dict(self.present), set(self.created), self.groups
        outs = [k for k, out in enumerate(let.outs) if is_array(out)]
        ends: list[dict[Var, Var | None]] = []
        homes: list[list[Var | None]] = []
        groups: list[Groups] = []
        changed: set[Var] = set()
        for arm in (rhs.then, rhs.orelse):
            self.present, self.groups = dict(before), Groups()
            if not self.lets(arm.lets, arm.results):
                return False
            ends.append(self.present)
            groups.append(self.groups)
            changed |= {
                b for b, content in self.present.items()
                if before.get(b, b) is not content and b not in self.created - created
            }
            homes.append([self._home(arm.results[k], created) for k in outs])
        self.groups = around
        chosen, moved = self._exchanges(let, rhs, outs, groups, changed, created)
        changed.difference_update(moved)
        targets: list[Var] = []
        for (a, b), k in zip(zip(*homes, strict=True), outs, strict=True):
            if k in chosen:
                continue
            target = a if a is not None and (b is None or b is a) else b if a is None else None
            shape = shape_of(let.outs[k])
            if target is None or target in targets:
                if a in changed or b in changed or (self.turning and not _is_short(shape)):
                    return False  # the plan chooses an address
                target = let.outs[k]
                self.chosen.add(target)
                self._create(target)
            targets.append(target)
        gone = {b for end in ends for b, content in end.items() if content is None}
        if not all(b in moved or before.get(b, b) is None for b in gone):
            return False
        if not changed.issubset(targets) or not moved.keys().isdisjoint(targets):
            return False  # nobody would know what such a buffer holds
        others = [k for k in outs if k not in chosen]
        for arm, end in zip((rhs.then, rhs.orelse), ends, strict=True):
            self.present = end
            for target, k in zip(targets, others, strict=True):
                self.present.setdefault(target, target)
                shape = _ending(let.outs[k], let.dims, arm.dims)
                if not self._lands(arm.results[k], target, shape):
                    return False
        self.present = dict(before)
        for target, k in zip(targets, others, strict=True):
            self.buffer[let.outs[k]] = target
            self.present[target] = let.outs[k]
        if chosen:
            self.choices[let] = [
                Choice(k, self._place(let.outs[k], arms[1]), arms) for k, arms in chosen.items()
            ]
            self._move(list(moved), [each.place for each in self.choices[let]])
        return True

    def _exchanges(
        self, let: Let, rhs: If, outs: Sequence[int], groups: Sequence[Groups], changed: set[Var],
        created: set[Var],
    ) -> tuple[dict[int, tuple[Var, Var]], dict[Var, None]]:
        """The results whose arrays change places in one arm or in the other, and these places."""
        chosen: dict[int, tuple[Var, Var]] = {}
        moved: dict[Var, None] = {}
        waiting: dict[int, tuple[Var, Var]] = {}
        for k in outs:
            a, b = (self._stands(arm.results[k]) for arm in (rhs.then, rhs.orelse))
            if a is None or b is None or a is b:
                continue
            if any(a is other[0] or b is other[1] for other in waiting.values()):
                continue  # a copy of what another result has
            reached = groups[0].buffers(a) | groups[1].buffers(b)
            if reached.isdisjoint(self.created - created):
                waiting[k] = a, b
        while waiting:
            linked = _linked(waiting, groups)
            pairs = {k: waiting.pop(k) for k in linked}
            then = groups[0].together([a for a, _ in pairs.values()])
            orelse = groups[1].together([b for _, b in pairs.values()])
            shapes = {tuple(shape_of(let.outs[k])) for k in linked}
            if then is None or orelse is None or then.keys() != orelse.keys() or len(shapes) > 1:
                continue
            if then.keys().isdisjoint(changed) and all(map(_is_short, shapes)):
                continue  # copied sooner than found
            chosen |= pairs
            moved |= then
        return chosen, moved

    def _home(self, atom: Atom, created: set[Var]) -> Var | None:
        """The buffer from outside of a branch that an arm's result stands in, if it does."""
        place = self._stands(atom)
        return None if place in self.created - created else place

    def _enters(self, carried: Var, first: Atom) -> bool:
        """A loop takes over the buffer of an array, or works on a copy."""
        if carried not in self.own:
            return self._becomes(carried, first)
        fine = self.reads(first)
        self._create(carried)
        return fine

    def _loop(self, let: Let, rhs: Loop) -> bool:
        carried = [k for k, v in enumerate(rhs.carried) if is_array(v)]
        if not all(self._enters(rhs.carried[k], rhs.init[k]) for k in carried):
            return False
        buffers = [self.buffer[rhs.carried[k]] for k in carried]
        if len(set(buffers)) != len(buffers):
            return False
        written, created, around = self.written, set(self.created), self.groups
        self.written, self.groups = set(), Groups()
        places = dict(zip(carried, buffers, strict=True))
        for k in carried:
            if rhs.carried[k] in self.turning:
                places[k] = self._place(rhs.carried[k], places[k])
        moved = {k: before for k, before in zip(carried, buffers, strict=True)
                 if places[k] is not before}
        self.present.update(dict.fromkeys(moved.values()))
        if rhs.test is not None and not self.lets(rhs.test.lets, rhs.test.results):
            return False
        if any(map(is_array, rhs.handed)):
            return False
        results = rhs.body.results[1:] if rhs.exits else rhs.body.results
        if not self.lets(rhs.body.lets, results):
            return False
        turns = self._turns(rhs, results, places, moved)
        if turns is None:
            return False
        joined = self._together(let, rhs, results, {
            k: place for k, place in places.items() if k not in turns
        })
        for k, place in places.items():
            if k in joined:
                continue
            target = turns[k].after if k in turns else place
            if k in turns and not turns[k].copied:
                if not self.reads(results[k]):
                    return False
            elif not self._lands(
                results[k], target, _ending(rhs.carried[k], rhs.dims, rhs.body.dims)
            ):
                return False
        inside = self.written - (self.created - created)
        self.written |= written
        self.groups = around
        for k, place in places.items():
            self.buffer[let.outs[k]] = place
            self.present[place] = let.outs[k]
        if turns:
            self.turns[let] = list(turns.values())
            self._move(list(moved.values()), [places[k] for k in moved])
        return inside.issubset(buffers)

    def _together(
        self, let: Let, rhs: Loop, results: Sequence[Atom], places: Mapping[int, Var]
    ) -> set[int]:
        """Stores results that have no memory into carried arrays, several of a shape at once."""
        by_shape: dict[tuple[Extent, ...], list[int]] = {}
        for k in places:
            if results[k] in self.sources:
                by_shape.setdefault(shape_of(rhs.carried[k]), []).append(k)
        groups = [
            group for group in by_shape.values()
            if len(group) > 1 and self.land_together([(results[k], places[k]) for k in group])
        ]
        if groups:
            self.together[let] = groups
        return {k for group in groups for k in group}

    def _turns(
        self, rhs: Loop, results: Sequence[Atom], places: Mapping[int, Var],
        moved: Mapping[int, Var],
    ) -> dict[int, Turn] | None:
        """What becomes of the arrays that change places; None if it cannot be said."""
        gone = self.groups.gone()
        if any(place in gone and k not in moved for k, place in places.items()):
            raise _Turns({rhs.carried[k] for k, place in places.items() if place in gone})
        stands: dict[int, Var] = {}
        for k, place in places.items():
            home = self._stands(results[k])
            if home is None or (home is place and k not in moved):
                continue
            reached = self.groups.buffers(home)
            if any(p in reached for p in places.values()):
                others = {n for n, p in places.items() if p in reached}
                if k not in moved or not others.issubset(moved):
                    raise _Turns({rhs.carried[n] for n in (k, *others)})
                if home not in stands.values():
                    stands[k] = home
        left = self.groups.all_of({places[k] for k in moved})
        if left is None or len(left) != len(moved):
            return None
        if len({tuple(shape_of(rhs.carried[k])) for k in moved}) > 1:
            return None
        spare = [p for p in left if p not in stands.values()]
        turns = {}
        for k, before in moved.items():
            after = stands.get(k)
            if after is None:
                after = places[k] if places[k] in spare else spare[-1]
                spare.remove(after)
            turns[k] = Turn(k, places[k], before, after, k not in stands)
        return turns
