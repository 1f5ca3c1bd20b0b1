"""The Lets of one block in groups, each of which becomes one kernel.

In: a block of Core and which of its Lets compute with scalars only. Out: the block with its groups
as kernel calls. How groups are found is said in `fuse.py`, what may join them in `joining.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from pyrelay.ir import walk
from pyrelay.ir.contents import Contents
from pyrelay.ir.nodes import Atom, Block, Let, OpCall, Var
from pyrelay.ir.op import Effect
from pyrelay.ir.types import TensorType
from pyrelay.opt import places
from pyrelay.opt.finishing import gates, is_product
from pyrelay.opt.joining import END, NEAREST, Group, Joining, Use
from pyrelay.opt.kernel_calls import from_old_state, kernel_call, lets_of, with_extents
from pyrelay.opt.shapes import is_array, reduces_rows
from pyrelay.opt.storage import uses_linearly

_MOST_COPIES = 3  # groups that a cheap op is copied into


class Grouping(Joining):
    """The groups of one block.

    extents  the Lets that make an extent a number, of all blocks.
    unchanged what the loop around the block, if there is one, does not change.
    """

    def __init__(
        self, lets: Sequence[Let], block: Block, scalar: set[Let], extents: Mapping[Var, Let],
        copies: Mapping[Atom, Atom], contents: Contents,
        unchanged: frozenset[Atom] = frozenset(), stores: Set[Let] = frozenset(),
    ) -> None:
        super().__init__(lets, scalar, copies, contents, stores)
        self.source, self.extents, self.unchanged = block, extents, unchanged
        self.released: set[int] = set()
        self.latest_reader: dict[Atom, Group] = {}
        self.storing: Group | None = None  # the last one found that stores elements of arrays

    # -- grouping ------------------------------------------------------------------------------

    def block(self) -> Block:
        """The block with its groups as kernel calls."""
        for atom in self.source.results:
            self._note(atom, Use(None, END, -1))
        for k in range(len(self.lets) - 1, -1, -1):
            self._place(k)
        self._release_views()
        return Block(tuple(self._rebuilt()), self.source.results, self.source.dims)

    def _note(self, atom: Atom, use: Use) -> None:
        if isinstance(atom, Var) and atom in self.position:
            self.uses[self.position[atom]].append(use)

    def _place(self, k: int) -> None:
        let = self.lets[k]
        if not self._fusable(let):
            group = self._finishing(k)
            if group is not None:
                self._add_product(k, group)
                return
            for atom in self.reads[k]:
                self._note(atom, Use(None, k, k, True))
            return
        uses = self.uses[k]
        first = min(uses, key=lambda u: u.when, default=None)
        group = first.group if first is not None else None
        alone = all(u.group is group for u in uses)
        readers = list(dict.fromkeys(u.group for u in uses if u.group is not None))
        everywhere = len(readers) <= _MOST_COPIES and all(u.group for u in uses)
        shared = group is not None and group.slices is not None and not alone and everywhere
        shared |= len(readers) > 1 and everywhere and _widens(let)
        if shared and self._copies(k, readers):
            return  # a result for the others would cost memory
        if self._numbers_a_row(k):
            self._add(k, self._sibling(k) or Group(k, let in self.scalar, self._space(let)))
            return
        if group is not None and self._joins(k, group, alone):
            self._add(k, group)
            return
        if self._is_view(let):
            for atom in self.reads[k]:
                self._note(atom, Use(None, k, k, True))
            return
        if uses and everywhere and self._copies(k, readers):
            return
        beside = self._sibling(k)
        if beside is not None and walk.call_of(let).op.name in places.UPDATES:
            beside.beside.append(walk.call_of(let))
        self._add(k, beside or Group(k, let in self.scalar, self._space(let)))
        if let in self.scalar and _stores_element(let):
            self.storing = self.groups[k]

    def _numbers_a_row(self, k: int) -> bool:
        """Whether a Let says which row of an array is stored: what is stored may be made there
        (`lower/planning/plan_rows.py`), if the plan knows the number."""
        let = self.lets[k]
        if len(let.outs) != 1 or is_array(let.outs[0]):
            return False
        readers = (self.lets[u.reader].rhs for u in self.uses[k] if u.group and not u.group.scalar)
        return any(
            isinstance(rhs, OpCall) and rhs.op.name == "index_update"
            and rhs.attrs["axes"] == (0,) and rhs.args[2:] == let.outs and is_array(rhs.args[1])
            for rhs in readers
        )

    def _finishing(self, k: int) -> Group | None:
        """The group that can finish Let `k`, a product of matrices, while it is stored."""
        let = self.lets[k]
        first = min(self.uses[k], key=lambda u: u.when, default=None)
        if first is None or first.group is None or not is_product(let):
            return None
        group = first.group
        if group.scalar or group.effects or group.updated or group.slices is not None:
            return None
        if group.joins:
            return None
        if group.product is not None or not self._keeps_order(k, group):
            return None
        members = [self.lets[m] for m in sorted((k, *group.members))]
        # Several matrices side by side are laid in panels (`lower/planning/plan_panels.py`), which
        # only a loop that goes on multiplying by them repays.
        count = gates(let, members, group.space)
        kept = count > 1 and walk.operands(let.rhs)[1] in self.unchanged
        return group if count == 1 or kept else None

    def _add_product(self, k: int, group: Group) -> None:
        self.groups[k], group.product = group, k
        group.members.append(k)
        for atom in self.reads[k]:
            self._note(atom, Use(group, group.runs_at, k, True))

    def _sibling(self, k: int) -> Group | None:
        """A group over the same axes that reads an array which this Let reads too.

        Beside slices, one number per slice is computed as well as one per element.
        """
        rhs, shape = self.lets[k].rhs, self._space(self.lets[k])
        if self.effects[k] is not Effect.PURE:
            return None
        if self.lets[k] in self.scalar:
            return self._storing_too(k)
        assert isinstance(rhs, OpCall)
        if reduces_rows(rhs):
            return None
        earliest = min((u.when for u in self.uses[k]), default=END)
        if rhs.op.name in places.UPDATES:
            return self._updating_alike(k, rhs, earliest)
        direct = set(self.reads[k])
        for atom in self._sources(k):
            group = self.latest_reader.get(atom)
            if group is None or group.scalar or group.updated or earliest <= group.runs_at:
                continue
            slices = group.slices
            if group.product is not None and not self._leaves_product(k):
                continue
            if slices is not None and places.parts_of(rhs) is not None:
                continue
            if slices is not None and (slices.kept.is_slice(shape) or shape == slices.full):
                fits = True
            else:
                fits = atom in direct and tuple(group.space) == tuple(shape)
            if fits and not group.is_full and self._keeps_order(k, group):
                return group
        return None

    def _updating_alike(self, k: int, update: OpCall, earliest: int) -> Group | None:
        """A group that updates the same part of another array, and reads an array that this update
        is computed from: both are stored when both are known."""
        for atom in self._sources(k):
            group = self.latest_reader.get(atom)
            if group is None or group.updated is None or group.scalar or group.effects:
                continue
            if group.product is not None or group.joins or group.slices is not None:
                continue
            updates = (group.updated, *group.beside)
            if earliest <= group.runs_at or group.is_full or not all(
                each.op.name == update.op.name == "slice_update" and each.attrs == update.attrs
                and each.args[0] is not update.args[0] for each in updates
            ):
                continue
            apart = all(
                update.args[0] not in self.reads[m]
                or (self.aligned[m] and places.reads_same_part(self.lets[m], update))
                for m in group.members
            )
            if apart and self._keeps_order(k, group):
                return group
        return None

    def _storing_too(self, k: int) -> Group | None:
        """The next group that stores elements of arrays, if Let `k` stores one that nobody reads
        before: a list or a table of records is several arrays, and a launch costs more."""
        group, let = self.storing, self.lets[k]
        if group is None or not _stores_element(let) or group.is_full:
            return None
        earliest = min((u.when for u in self.uses[k]), default=END)
        if earliest <= group.runs_at or not self._keeps_order(k, group):
            return None
        members = [let, *(self.lets[m] for m in sorted(group.members))]
        outs = [v for each in members for v in each.outs if _stores_element(each)]
        return group if uses_linearly(members, outs) else None

    def _sources(self, k: int) -> list[Atom]:
        """Arrays that a Let reads, itself or through the nearest of those it is made of."""
        found: dict[Atom, None] = {}
        pending = [k]
        for step in pending:
            for atom in filter(is_array, self.reads[step]):
                made_at = self.position.get(atom) if isinstance(atom, Var) else None
                found[atom] = None
                if made_at is not None and made_at not in pending and len(pending) < NEAREST:
                    pending.append(made_at)
        return list(found)

    def _copies(self, k: int, readers: Sequence[Group]) -> bool:
        """Computes a cheap Let in each group that reads it, if all of them can."""
        if self._weight(k) or self.effects[k] is not Effect.PURE:
            return False
        if any(g.scalar for g in readers):
            return False
        for group in readers:
            others = [u for u in self.uses[k] if u.group is not group]
            mine = [u for u in self.uses[k] if u.group is group]
            self.uses[k] = mine
            fits = self._joins(k, group, True)
            self.uses[k] = mine + others
            if not fits:
                return False
        self.copied[k] = tuple(readers)
        factor = max(self._factor(k, group) for group in readers)
        self.evaluations[k], self.moves[k] = factor, self._moved(k)
        self.rearranged[k] = self._is_rearranged(k)
        for group in readers:
            group.members.append(k)
            group.literals += self._is_literal(k)
            if group.slices is not None:
                group.slices.add(self.lets, k, self._readers(k, group))
            self._note_operands(k, group)
        return True

    def _add(self, k: int, group: Group) -> None:
        let = self.lets[k]
        first = not group.members
        self.aligned[k] = first or self._is_aligned(k, group)
        group.slices = self._slices(k, group)
        placed = self._has_place(k, group)
        if group.slices is not None:
            group.slices.add(self.lets, k, self._readers(k, group))
        placed = placed or let.rhs in group.beside
        self.evaluations[k] = 1 if first or placed else self._factor(k, group)
        self.moves[k], self.rearranged[k] = self._moved(k), self._is_rearranged(k)
        self.groups[k] = group
        group.members.append(k)
        group.literals += self._is_literal(k)
        group.scalar &= let in self.scalar
        if self.effects[k] is not Effect.PURE:
            group.effects.append(k)
        if isinstance(let.rhs, OpCall):
            group.reduces_rows |= reduces_rows(let.rhs)
            group.joins |= self._joins_parts(k, group)
            update = let.rhs.op.name in places.UPDATES and let.rhs not in group.beside
            if update and not group.scalar:
                group.updated = let.rhs
        self._note_operands(k, group)

    def _note_operands(self, k: int, group: Group) -> None:
        rhs = self.lets[k].rhs
        base = rhs.args[0] if isinstance(rhs, OpCall) and rhs.op.name in places.UPDATES else None
        self.latest_reader.update((atom, group) for atom in self.reads[k])
        for atom in self.reads[k]:
            in_memory = atom is base or (group.scalar and is_array(atom))
            self._note(atom, Use(group, group.runs_at, k, in_memory))

    # -- after grouping ------------------------------------------------------------------------

    def _release_views(self) -> None:
        """Takes views of arrays that are in memory anyway out of their groups."""
        for k, let in enumerate(self.lets):
            group = self.groups[k]
            if group is None or not self._is_view(let) or len(group.members) == 1:
                continue
            assert isinstance(let.rhs, OpCall)
            source = let.rhs.args[0]
            made_at = self.position.get(source) if isinstance(source, Var) else None
            if made_at is None or group not in self._computing(made_at):
                group.members.remove(k)
                group.views.append(let)
                self.groups[k] = None
                self.released.add(k)

    def _rebuilt(self) -> Iterable[Let]:
        needed = self._needed()
        for k, let in enumerate(self.lets):
            group = self.groups[k]
            if group is None:
                if k not in self.copied and k not in self.released:
                    yield let
            elif k == group.runs_at:
                # What the views show may be computed later than where they stood.
                yield from group.views
                yield from self._calls(group, needed)

    def _computing(self, k: int) -> tuple[Group | None, ...]:
        """The groups that compute a Let, (None,) if it stands alone."""
        return self.copied.get(k) or (self.groups[k],)

    def _needed(self) -> set[Var]:
        """Variables that are read outside of the group that computes them."""
        needed = {a for a in self.source.results if isinstance(a, Var)}
        for k in range(len(self.lets)):
            for atom in self.reads[k]:
                if isinstance(atom, Var) and atom in self.position:
                    makers = self._computing(self.position[atom])
                    if any(g is None or g not in makers for g in self._computing(k)):
                        needed.add(atom)
        return needed

    def _copies_own(self, members: Sequence[Let]) -> bool:
        """Whether one of some Lets works on a copy of what another one makes, which is a copy that
        the plan makes."""
        made = {out for let in members for out in let.outs}
        copied = {atom for let in members for atom in walk.operands(let.rhs) if atom in self.copies}
        return any(self.copies[atom] in made for atom in copied)

    def _calls(self, group: Group, needed: set[Var]) -> Iterable[Let]:
        members: Sequence[Let] = [
            let for k in sorted(group.members) for let in lets_of(self.lets[k])
        ]
        outs = [v for let in members for v in let.outs if v in needed]
        if group.scalar:
            if len(members) > 1 and (self._copies_own(members) or not uses_linearly(members, outs)):
                for let in members:
                    yield kernel_call(with_extents([let], self.extents), let.outs, self.copies)
                return
            members = with_extents(members, self.extents)
        if not outs:
            outs = [v for let in members[-1:] for v in let.outs]
        if group.updated is not None:
            members, copies = from_old_state(members, group.updated)
            yield kernel_call(members, outs, {**self.copies, **copies})
        else:
            yield kernel_call(members, outs, self.copies)


def _stores_element(let: Let) -> bool:
    """Whether a Let stores one element of an array."""
    return isinstance(let.rhs, OpCall) and places.updates_element(let.rhs)


def _widens(let: Let) -> bool:
    """Whether a Let casts an array to a larger dtype: to read that array again moves fewer bytes
    than to read the result."""
    if not walk.is_call(let, "cast"):
        return False
    (x,) = walk.call_of(let).args
    given, made = x.type, let.outs[0].type
    return (
        isinstance(given, TensorType) and isinstance(made, TensorType) and is_array(x)
        and given.dtype.size < made.dtype.size
    )
