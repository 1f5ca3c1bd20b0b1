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
computed otherwise is copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace

from pyrelay.ir import walk
from pyrelay.ir.nodes import Atom, Block, If, Let, Loop, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.opt import places
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.opt.storage_facts import Facts, same_place
from pyrelay.records import dataclass

_MOST_ATTEMPTS = 40  # arrays that get memory because of how they are used


@dataclass(frozen=True, slots=True)
class Storage:
    """Arrays with memory of their own, and the first variable of each buffer that is written.

    buffers: variable in memory -> the first variable of its buffer. absorbed: updates of a part of
    an array that only make the new part of it: `c[i][2:4] = v`.
    """

    own: frozenset[Var]
    written: frozenset[Var]
    buffers: dict[Var, Var]
    absorbed: frozenset[Var]
    makers: dict[Var, Let]

    def destination(self, update: OpCall) -> tuple[tuple[OpCall, ...], Atom]:
        """The updates, outermost first, that an update stands for, and what it stores."""
        return _destination(update, self.absorbed, self.makers)


class _NeedsMemory(Exception):
    def __init__(self, var: Atom) -> None:
        super().__init__()
        self.var = var


def storage_of(lets: Sequence[Let], results: Iterable[Atom] = ()) -> Storage | None:
    """The storage of scalar Lets, run in order; None if they cannot use their arrays that way.

    `results` are the arrays that are needed in the end, in the state they then have.
    """
    results = tuple(results)
    facts = Facts(lets)
    own = facts.computed_at_once()
    for _ in range(_MOST_ATTEMPTS):
        run = _Run(facts, own)
        try:
            fine = run.lets(lets, results) and run.are_arguments(results)
        except _NeedsMemory as need:
            var = need.var
            known = var in facts.makers or var in facts.inner
            if not isinstance(var, Var) or var in own or not known:
                return None
            own.add(var)
            continue
        if not fine:
            return None
        chosen = frozenset(own | run.chosen)
        return Storage(
            chosen, frozenset(run.written), run.buffer, facts.absorbed, facts.makers
        )
    return None


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
class _Run:
    """Follows which variable stands for the present content of each buffer.

    A buffer is known by the first variable that stood for it; a view shows the content of the
    variable that it is a view of.
    """

    facts: Facts
    own: set[Var]
    chosen: set[Var] = field(default_factory=set)  # arrays of branches that get memory
    written: set[Var] = field(default_factory=set)
    created: set[Var] = field(default_factory=set)
    buffer: dict[Var, Var] = field(default_factory=dict)
    present: dict[Var, Var] = field(default_factory=dict)
    shown: dict[Var, Var] = field(default_factory=dict)
    replaced: dict[Var, Var] = field(default_factory=dict)  # content of a buffer -> what followed
    sources: dict[Var, tuple[Var, ...]] = field(default_factory=dict)  # of what has no memory

    # -- reading -------------------------------------------------------------------------------

    def reads(self, atom: Atom) -> bool:
        """Reads an array; False if what it stands for has been overwritten."""
        assert isinstance(atom, Var)
        if atom in self.sources:
            if not all(self._is_present(source) for source in self._roots(atom)):
                raise _NeedsMemory(atom)
            return True
        if not self._is_present(atom):
            self._copy_instead(self.shown.get(atom, atom))
            return False
        return True

    def _is_present(self, atom: Var) -> bool:
        content = self.shown.get(atom, atom)
        buffer = self.buffer.setdefault(atom, content)
        return self.present.setdefault(buffer, content) is content

    def _copy_instead(self, content: Var) -> None:
        """If an update has overwritten a content that is needed, let it work on a copy."""
        new = self.replaced.get(content)
        if new is None or new in self.own:
            return
        if new in self.facts.inner:
            raise _NeedsMemory(new)
        let = self.facts.makers.get(new)
        if let is not None and isinstance(let.rhs, OpCall):
            raise _NeedsMemory(new)

    def _roots(self, atom: Var) -> Iterable[Var]:
        """The arrays in memory that an array without memory is computed from."""
        found: dict[Var, None] = {}
        pending, seen = [atom], {atom}
        while pending:
            here = pending.pop()
            if here not in self.sources:
                found[here] = None
                continue
            fresh = [s for s in self.sources[here] if s not in seen]
            seen.update(fresh)
            pending += fresh
        return found

    def _views(self, new: Var, old: Var) -> bool:
        if not self.reads(old):
            return False
        self.buffer[new] = self.buffer[old]
        self.shown[new] = self.shown.get(old, old)
        return True

    def _becomes(self, new: Var, old: Atom) -> bool:
        """`new` takes over the buffer of `old`; False if that is overwritten already."""
        if old in self.sources:
            raise _NeedsMemory(old)
        if not self.reads(old):
            return False
        assert isinstance(old, Var)
        self.buffer[new] = self.buffer[old]
        self.present[self.buffer[old]] = new
        self.replaced[self.shown.get(old, old)] = new
        return True

    def _create(self, var: Var) -> None:
        self.sources.pop(var, None)
        self.buffer[var] = self.present[var] = var
        self.shown.pop(var, None)
        self.created.add(var)
        self.written.add(var)

    def are_arguments(self, results: Iterable[Atom]) -> bool:
        """Whether arrays stand in buffers that the program was given."""
        return not any(
            self.buffer[a] in self.created
            for a in results if is_array(a) and isinstance(a, Var)
        )

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
        if not self._stores(value, call.args[0], chain):
            return False
        if not self._becomes(out, call.args[0]):
            return False
        self.written.add(self.buffer[out])
        return True

    def _stores(self, value: Atom, base: Atom, chain: Sequence[OpCall]) -> bool:
        """Whether a value can be stored, element by element, into a part of a buffer."""
        if not is_array(value):
            return True
        assert isinstance(value, Var)
        assert isinstance(base, Var)
        if not self.reads(value):
            return False
        if base in self.sources:
            raise _NeedsMemory(base)
        if not self.reads(base):
            return False
        if not self._is_aligned(value, self.buffer[base], chain):
            raise _NeedsMemory(value)
        return True

    def _is_aligned(self, value: Var, buffer: Var, chain: Sequence[OpCall]) -> bool:
        """Whether each element reads no element of a buffer but the one that it replaces."""
        shape = shape_of(value)
        pending, seen = [value], {value}
        while pending:
            here = pending.pop()
            touches = any(self.buffer.get(root) is buffer for root in self._roots(here))
            if not touches:
                continue
            if here not in self.sources:
                if chain or tuple(shape_of(here)) != tuple(shape):
                    return False
                continue
            maker = self.facts.makers[here].rhs
            assert isinstance(maker, OpCall)
            if chain and self._reads_destination(here, chain):
                continue
            if maker.op.fusion is not Fusion.ELEMENTWISE:
                return False
            for arg in maker.args:
                if isinstance(arg, Var) and is_array(arg) and arg not in seen:
                    if tuple(shape_of(arg)) != tuple(shape) and any(
                        self.buffer.get(root) is buffer for root in self._roots(arg)
                    ):
                        return False
                    seen.add(arg)
                    pending.append(arg)
        return True

    def _reads_destination(self, var: Var, chain: Sequence[OpCall]) -> bool:
        """Whether a variable is the part of an array that a chain of updates replaces."""
        here: Atom = var
        for update in reversed(chain):
            let = self.facts.makers.get(here) if isinstance(here, Var) else None
            read = None if let is None else let.rhs
            if not isinstance(read, OpCall) or read.op.name not in ("index", "slice"):
                return False
            if not same_place(read, update, 1, 2):
                return False
            here = read.args[0]
        return here is chain[0].args[0]

    def _lands(self, value: Atom, buffer: Var, like: Var) -> bool:
        """Whether a value is, or can be copied into, a whole buffer, as `like` is now."""
        assert isinstance(value, Var)
        if not self.reads(value):
            return False
        if self.buffer.get(value) is buffer and value not in self.sources:
            return tuple(shape_of(value)) == tuple(shape_of(like))
        if not self._is_aligned(value, buffer, ()):
            raise _NeedsMemory(value)
        self.written.add(buffer)
        self.present[buffer] = value  # what stood there is gone
        return True

    # -- control flow --------------------------------------------------------------------------

    def _if(self, let: Let, rhs: If) -> bool:
        before, created = dict(self.present), set(self.created)
        outs = [k for k, out in enumerate(let.outs) if is_array(out)]
        ends: list[dict[Var, Var]] = []
        homes: list[list[Var | None]] = []
        changed: set[Var] = set()
        for arm in (rhs.then, rhs.orelse):
            self.present = dict(before)
            if not self.lets(arm.lets, arm.results):
                return False
            ends.append(self.present)
            changed |= {
                b for b, content in self.present.items()
                if before.get(b, b) is not content and b not in self.created - created
            }
            homes.append([self._home(arm.results[k], created) for k in outs])
        targets: list[Var] = []
        for (a, b), k in zip(zip(*homes, strict=True), outs, strict=True):
            target = a if a is not None and (b is None or b is a) else b if a is None else None
            if target is None or target in targets:
                if a in changed or b in changed:
                    return False
                target = let.outs[k]
                self.chosen.add(target)
                self._create(target)
            targets.append(target)
        if not changed.issubset(targets):
            return False  # nobody would know what such a buffer holds
        for arm, end in zip((rhs.then, rhs.orelse), ends, strict=True):
            self.present = end
            for target, k in zip(targets, outs, strict=True):
                self.present.setdefault(target, target)
                if not self._lands(arm.results[k], target, let.outs[k]):
                    return False
        self.present = dict(before)
        for target, k in zip(targets, outs, strict=True):
            self.buffer[let.outs[k]] = target
            self.present[target] = let.outs[k]
        return True

    def _home(self, atom: Atom, created: set[Var]) -> Var | None:
        """The buffer from outside of a branch that an arm's result stands in, if it does."""
        if atom in self.sources:
            return None
        buffer = self.buffer[atom]  # type: ignore[index]
        return None if buffer in self.created - created or atom in self.shown else buffer

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
        written, created = self.written, set(self.created)
        self.written = set()
        if rhs.test is not None and not self.lets(rhs.test.lets, rhs.test.results):
            return False
        if any(map(is_array, rhs.handed)):
            return False
        results = rhs.body.results[1:] if rhs.exits else rhs.body.results
        if not self.lets(rhs.body.lets, results):
            return False
        for k, buffer in zip(carried, buffers, strict=True):
            result = results[k]
            home = self.buffer.get(result)  # type: ignore[arg-type]
            if home is not buffer and home in buffers and result not in self.sources:
                return False  # buffers that change places
            if not self._lands(result, buffer, rhs.carried[k]):
                return False
        inside = self.written - (self.created - created)
        self.written |= written
        for k, buffer in zip(carried, buffers, strict=True):
            self.buffer[let.outs[k]] = buffer
            self.present[buffer] = let.outs[k]
        return inside.issubset(buffers)
