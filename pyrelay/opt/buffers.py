"""Which variable stands for the present content of each buffer of a scalar program.

In: what `storage.py` finds in a program, in order: arrays that are read, made, viewed, updated, and
put elsewhere. Out: whether each has its content where it is needed, or `NeedsMemory`, for an array
that has to have memory of its own for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Let, OpCall, Var
from pyrelay.ir.op import Fusion
from pyrelay.opt.exchanges import Choice, Groups, Turn
from pyrelay.opt.neighbours import behind
from pyrelay.opt.shapes import is_array, shape_of
from pyrelay.opt.storage_facts import Facts, same_place
from pyrelay.records import dataclass


class NeedsMemory(Exception):
    """An array has to have memory of its own."""

    def __init__(self, var: Atom) -> None:
        super().__init__()
        self.var = var


@dataclass(slots=True)
class Buffers:
    """Follows which variable stands for the present content of each buffer.

    A buffer is known by the first variable that stood for it; a view shows the content of the
    variable that it is a view of.
    """

    facts: Facts
    own: set[Var]
    turning: set[Var]  # carried arrays that change places
    chosen: set[Var] = field(default_factory=set)  # arrays of branches that get memory
    written: set[Var] = field(default_factory=set)
    created: set[Var] = field(default_factory=set)
    buffer: dict[Var, Var] = field(default_factory=dict)
    present: dict[Var, Var | None] = field(default_factory=dict)  # None: it has another place
    groups: Groups = field(default_factory=Groups)
    behind: dict[Var, dict[Var, int]] = field(default_factory=dict)
    together: dict[Let, list[list[int]]] = field(default_factory=dict)
    turns: dict[Let, list[Turn]] = field(default_factory=dict)
    choices: dict[Let, list[Choice]] = field(default_factory=dict)
    origins: dict[Var, Var] = field(default_factory=dict)  # of places
    ends: dict[Var, Var] = field(default_factory=dict)
    shown: dict[Var, Var] = field(default_factory=dict)
    replaced: dict[Var, Var] = field(default_factory=dict)  # content of a buffer -> what followed
    sources: dict[Var, tuple[Var, ...]] = field(default_factory=dict)  # of what has no memory

    # -- reading -------------------------------------------------------------------------------

    def reads(self, atom: Atom) -> bool:
        """Reads an array; False if what it stands for has been overwritten."""
        assert isinstance(atom, Var)
        if atom in self.sources:
            if not all(self._is_present(source) for source in self._roots(atom)):
                raise NeedsMemory(atom)
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
            raise NeedsMemory(new)
        let = self.facts.makers.get(new)
        if let is not None and isinstance(let.rhs, OpCall):
            raise NeedsMemory(new)

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
            raise NeedsMemory(old)
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
        arrays = [a for a in results if is_array(a) and isinstance(a, Var)]
        self.ends = dict(self.groups.settled((self.buffer[a] for a in arrays), self.origins))
        homes = [self.ends.get(self.buffer[a], self.buffer[a]) for a in arrays]
        return self.created.isdisjoint(homes)

    # -- places --------------------------------------------------------------------------------

    def _place(self, var: Var, origin: Var) -> Var:
        """A new place, in which `var` stands."""
        place = Var(var.name, var.type)
        self.buffer[var] = place
        self.present[place] = var
        self.created.add(place)
        self.written.add(place)
        self.origins[place] = origin
        return place

    def _move(self, old: Sequence[Var], new: Sequence[Var]) -> None:
        """What stood in some places stands in others, which are the same memory."""
        self.groups.exchange(old, new)
        self.written.update(old)
        self.present.update(dict.fromkeys(old))

    def _stands(self, atom: Atom) -> Var | None:
        """The place in which an array stands, if it is all that stands there."""
        if not isinstance(atom, Var) or atom in self.sources or atom in self.shown:
            return None
        return self.buffer.get(atom)

    # -- storing -------------------------------------------------------------------------------

    def _stores(self, out: Var, value: Atom, chain: Sequence[OpCall]) -> bool:
        """Whether a value can be stored, element by element, into a part of a buffer, in which
        `out` stands then."""
        base = chain[0].args[0]
        if not is_array(value):
            return True
        assert isinstance(value, Var)
        assert isinstance(base, Var)
        if not self.reads(value):
            return False
        if base in self.sources:
            raise NeedsMemory(base)
        if not self.reads(base):
            return False
        buffer = self.buffer[base]
        if not self._is_aligned(value, buffer, chain):
            kept = behind(
                value, chain[-1], self.facts.makers, self.sources,
                lambda v: any(self.buffer.get(root) is buffer for root in self._roots(v)),
                lambda a: self._reads_destination(a, chain[:-1], base),
            )
            if kept is None:
                raise NeedsMemory(value)
            self.behind[out] = kept
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
            if chain and self._reads_destination(here, chain, chain[0].args[0]):
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

    def _reads_destination(self, here: Atom, chain: Sequence[OpCall], base: Atom) -> bool:
        """Whether an atom is the part of an array that a chain of updates replaces."""
        for update in reversed(chain):
            let = self.facts.makers.get(here) if isinstance(here, Var) else None
            read = None if let is None else let.rhs
            if not isinstance(read, OpCall) or read.op.name not in ("index", "slice"):
                return False
            if not same_place(read, update, 1, 2):
                return False
            here = read.args[0]
        return here is base

    def _lands(self, value: Atom, buffer: Var, shape: Sequence[Extent]) -> bool:
        """Whether a value is, or can be copied into, a whole buffer of this shape."""
        assert isinstance(value, Var)
        if not self.reads(value):
            return False
        if self.buffer.get(value) is buffer and value not in self.sources:
            return tuple(shape_of(value)) == tuple(shape)
        if not self._is_aligned(value, buffer, ()):
            raise NeedsMemory(value)
        self.written.add(buffer)
        self.present[buffer] = value  # what stood there is gone
        return True

    def land_together(self, landing: Sequence[tuple[Atom, Var]]) -> bool:
        """Copies several values into whole buffers, one element of all of them at a time, if each
        reads no other elements of these buffers."""
        for value, _ in landing:
            assert isinstance(value, Var)
            if not self.reads(value):
                return False
            if not all(self._is_aligned(value, buffer, ()) for _, buffer in landing):
                return False
        for value, buffer in landing:
            assert isinstance(value, Var)
            self.written.add(buffer)
            self.present[buffer] = value
        return True
