"""The Lets of one block in groups, each of which becomes one kernel.

In: a block of Core and which of its Lets compute with scalars only. Out: the block with its groups
as kernel calls. How groups are found is said in `fuse.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field

from pyrelay.ir import walk
from pyrelay.ir.contents import Contents
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import (
    Atom,
    Block,
    FnCall,
    Let,
    Loop,
    OpCall,
    Var,
)
from pyrelay.ir.op import Effect, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.opt import places
from pyrelay.opt.finishing import gates, is_product
from pyrelay.opt.kernel_calls import from_old_state, kernel_call, with_extents
from pyrelay.opt.shapes import (
    is_array,
    is_repeated,
    reads_again,
    reads_of,
    reduces_rows,
    same_elements,
    shape_of,
)
from pyrelay.opt.slices import Slices, kept_axes, slices_of
from pyrelay.opt.storage import uses_linearly
from pyrelay.opt.storage_facts import CHEAP
from pyrelay.opt.stores import Order
from pyrelay.records import dataclass

#: Instructions of the plan, unless they stand inside a loop or branch that becomes a kernel.
_PLAN_OPS = frozenset(["extent", "undef", "raise", "commit"])
_LARGEST_GROUP = 200
_MOST_EVALUATIONS = 4  # of a cheap element per element of the result
_DEEPEST_MOVES = 12  # moving ops behind each other: each may be a branch in the next
_MOST_COPIES = 3  # groups that a cheap op is copied into
_NEAREST = 12  # Lets behind another, where an array is looked for that a group reads as well
_END = 1 << 60  # where the block's results are read


@dataclass(slots=True, eq=False)
class _Group:
    """Lets of one kernel. It runs at the position of its last Let, `runs_at`."""

    runs_at: int
    scalar: bool
    space: tuple[Extent, ...]
    members: list[int] = field(default_factory=list)
    effects: list[int] = field(default_factory=list)
    views: list[Let] = field(default_factory=list)  # of arrays in memory, for its kernel
    reduces_rows: bool = False  # holds a reduction that keeps the last axis
    updated: OpCall | None = None  # the update that it makes in place
    joins: bool = False  # runs over the parts that one of its members joins
    slices: Slices | None = None  # where members stand, once one reduces rows or columns
    product: int | None = None  # the product of matrices that it finishes


@dataclass(frozen=True, slots=True)
class _Use:
    """Who reads a Let: the group (None outside of groups), when, and through which member."""

    group: _Group | None
    when: int
    reader: int
    in_memory: bool = False  # must stand in memory for it


class Grouping:
    """The groups of one block.

    scalar   the Lets that compute with scalars and array elements only (`scalar_lets`).
    extents  the Lets that make an extent a number, of all blocks.
    copies   variables that stand for a copy of another one.
    contents what the blocks inside read and do.
    unchanged what the loop around the block, if there is one, does not change.
    stores   the Lets that write arrays which the caller sees if the program raises (`stores.py`).
    """

    def __init__(
        self, lets: Sequence[Let], block: Block, scalar: set[Let], extents: Mapping[Var, Let],
        copies: Mapping[Atom, Atom], contents: Contents,
        unchanged: frozenset[Atom] = frozenset(), stores: Set[Let] = frozenset(),
    ) -> None:
        self.lets, self.source, self.scalar, self.extents = lets, block, scalar, extents
        self.copies, self.unchanged = copies, unchanged
        self.position = {out: k for k, let in enumerate(lets) for out in let.outs}
        self.reads = [tuple(copies.get(a, a) for a in reads_of(let, contents)) for let in lets]
        self.effects = [contents.effect(let.rhs) for let in lets]
        self.order = Order(
            [k for k, e in enumerate(self.effects) if e is not Effect.PURE],
            [k for k, let in enumerate(lets) if let in stores],
        )
        self.groups: list[_Group | None] = [None] * len(lets)
        self.copied: dict[int, tuple[_Group, ...]] = {}
        self.uses: list[list[_Use]] = [[] for _ in lets]
        self.aligned = [False] * len(lets)  # computed at the index of the group's results
        self.evaluations = [1] * len(lets)
        self.moves = [0] * len(lets)
        self.released: set[int] = set()
        self.latest_reader: dict[Atom, _Group] = {}
        self.overwritten = self._overwritten()

    def _overwritten(self) -> dict[Atom, int]:
        """Where each array, or one that it is a view of, is first handed to what may write it."""
        found: dict[Atom, int] = {}
        for k, let in enumerate(self.lets):
            if isinstance(let.rhs, OpCall):
                if let.rhs.op.name in places.UPDATES or let.rhs.op.name.startswith("scatter"):
                    found.setdefault(let.rhs.args[0], k)
            elif isinstance(let.rhs, (Loop, FnCall)):
                for atom in walk.operands(let.rhs):
                    found.setdefault(atom, k)
        for let in self.lets:
            if isinstance(let.rhs, OpCall) and self._is_view(let) and let.rhs.args[0] in found:
                found.setdefault(let.outs[0], found[let.rhs.args[0]])
        return found

    # -- grouping ------------------------------------------------------------------------------

    def block(self) -> Block:
        """The block with its groups as kernel calls."""
        for atom in self.source.results:
            self._note(atom, _Use(None, _END, -1))
        for k in range(len(self.lets) - 1, -1, -1):
            self._place(k)
        self._release_views()
        return Block(tuple(self._rebuilt()), self.source.results, self.source.dims)

    def _note(self, atom: Atom, use: _Use) -> None:
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
                self._note(atom, _Use(None, k, k, True))
            return
        uses = self.uses[k]
        first = min(uses, key=lambda u: u.when, default=None)
        group = first.group if first is not None else None
        alone = all(u.group is group for u in uses)
        readers = list(dict.fromkeys(u.group for u in uses if u.group is not None))
        everywhere = len(readers) <= _MOST_COPIES and all(u.group for u in uses)
        shared = group is not None and group.slices is not None and not alone and everywhere
        if shared and self._copies(k, readers):
            return  # a result for the others would cost memory
        if self._numbers_a_row(k):
            self._add(k, self._sibling(k) or _Group(k, let in self.scalar, self._space(let)))
            return
        if group is not None and self._joins(k, group, alone):
            self._add(k, group)
            return
        if self._is_view(let):
            for atom in self.reads[k]:
                self._note(atom, _Use(None, k, k, True))
            return
        if uses and everywhere and self._copies(k, readers):
            return
        beside = self._sibling(k)
        self._add(k, beside or _Group(k, let in self.scalar, self._space(let)))

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

    def _finishing(self, k: int) -> _Group | None:
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
        most = _END if walk.operands(let.rhs)[1] in self.unchanged else 1
        return group if 1 <= gates(let, members, group.space) <= most else None

    def _add_product(self, k: int, group: _Group) -> None:
        self.groups[k], group.product = group, k
        group.members.append(k)
        for atom in self.reads[k]:
            self._note(atom, _Use(group, group.runs_at, k, True))

    def _sibling(self, k: int) -> _Group | None:
        """A group over the same axes that reads an array which this Let reads too.

        Beside slices, one number per slice is computed as well as one per element.
        """
        rhs, shape = self.lets[k].rhs, self._space(self.lets[k])
        if self.lets[k] in self.scalar or self.effects[k] is not Effect.PURE:
            return None
        assert isinstance(rhs, OpCall)
        if rhs.op.name in places.UPDATES or reduces_rows(rhs):
            return None
        earliest = min((u.when for u in self.uses[k]), default=_END)
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
            if fits and len(group.members) < _LARGEST_GROUP and self._keeps_order(k, group):
                return group
        return None

    def _sources(self, k: int) -> list[Atom]:
        """Arrays that a Let reads, itself or through the nearest of those it is made of."""
        found: dict[Atom, None] = {}
        pending = [k]
        for step in pending:
            for atom in filter(is_array, self.reads[step]):
                made_at = self.position.get(atom) if isinstance(atom, Var) else None
                found[atom] = None
                if made_at is not None and made_at not in pending and len(pending) < _NEAREST:
                    pending.append(made_at)
        return list(found)

    def _copies(self, k: int, readers: Sequence[_Group]) -> bool:
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
        for group in readers:
            group.members.append(k)
            if group.slices is not None:
                group.slices.add(self.lets, k, self._readers(k, group))
            self._note_operands(k, group)
        return True

    def _add(self, k: int, group: _Group) -> None:
        let = self.lets[k]
        first = not group.members
        self.aligned[k] = first or self._is_aligned(k, group)
        group.slices = self._slices(k, group)
        placed = self._has_place(k, group)
        if group.slices is not None:
            group.slices.add(self.lets, k, self._readers(k, group))
        self.evaluations[k] = 1 if first or placed else self._factor(k, group)
        self.moves[k] = self._moved(k)
        self.groups[k] = group
        group.members.append(k)
        group.scalar &= let in self.scalar
        if self.effects[k] is not Effect.PURE:
            group.effects.append(k)
        if isinstance(let.rhs, OpCall):
            group.reduces_rows |= reduces_rows(let.rhs)
            group.joins |= self._joins_parts(k, group)
            if let.rhs.op.name in places.UPDATES and not group.scalar:
                group.updated = let.rhs
        self._note_operands(k, group)

    def _note_operands(self, k: int, group: _Group) -> None:
        rhs = self.lets[k].rhs
        base = rhs.args[0] if isinstance(rhs, OpCall) and rhs.op.name in places.UPDATES else None
        self.latest_reader.update((atom, group) for atom in self.reads[k])
        for atom in self.reads[k]:
            in_memory = atom is base or (group.scalar and is_array(atom))
            self._note(atom, _Use(group, group.runs_at, k, in_memory))

    # -- what a Let is -------------------------------------------------------------------------

    def _fusable(self, let: Let) -> bool:
        rhs = let.rhs
        if isinstance(rhs, OpCall) and rhs.op.name in _PLAN_OPS:
            return False
        if let in self.scalar:
            return True
        if not isinstance(rhs, OpCall) or rhs.op.element is None or let.dims:
            return False
        return all(isinstance(a.type, TensorType) for a in (*rhs.args, *let.outs))

    def _is_view(self, let: Let) -> bool:
        rhs = let.rhs
        return isinstance(rhs, OpCall) and places.is_view(rhs)

    def _space(self, let: Let) -> tuple[Extent, ...]:
        """The axes a kernel runs through whose last op is this one."""
        rhs = let.rhs
        if let in self.scalar or not let.outs:
            return ()
        if isinstance(rhs, OpCall) and rhs.op.name in places.UPDATES:
            return places.part_shape(rhs)
        parts = places.parts_of(rhs)
        return shape_of(let.outs[0]) if parts is None else parts[1]

    def _weight(self, k: int) -> int:
        """0 if a Let is cheap to compute again."""
        rhs = self.lets[k].rhs
        return 0 if isinstance(rhs, OpCall) and rhs.op.name in CHEAP else 1

    # -- whether a Let joins a group -----------------------------------------------------------

    def _joins(self, k: int, group: _Group, alone: bool) -> bool:
        """Whether Let `k` may become a member of a group that reads it.

        `alone`: nobody else reads it, so it need not become a result.
        """
        let = self.lets[k]
        mine = [u for u in self.uses[k] if u.group is group]
        if len(group.members) >= _LARGEST_GROUP or not self._keeps_order(k, group):
            return False
        if group.product is not None and not self._leaves_product(k):
            return False
        if any(u.in_memory for u in mine) and not (group.scalar and let in self.scalar):
            return False
        if group.scalar and let not in self.scalar:
            return self._ends_in_scalars(k, group)
        if group.scalar:
            return True
        assert isinstance(let.rhs, OpCall) or let in self.scalar
        if not isinstance(let.rhs, OpCall) or let.rhs.op.name in places.UPDATES:
            return False
        if self.effects[k] is not Effect.PURE and (group.effects or not self._once(k, group)):
            return False
        if not self._reads_fit(k, group):
            return False
        if not any(map(is_array, let.outs)) and let in self.scalar:
            return alone and self.effects[k] is Effect.PURE
        return self._fits(k, let.rhs, group, alone)

    def _leaves_product(self, k: int) -> bool:
        """Whether a group with a product may compute a Let as it stores the product's elements."""
        rhs = self.lets[k].rhs
        if not isinstance(rhs, OpCall) or rhs.op.element is None or self.lets[k].dims:
            return False
        if places.parts_of(rhs) is not None:
            return False
        return rhs.op.fusion is not Fusion.REDUCTION and self.effects[k] is Effect.PURE

    def _joins_parts(self, k: int, group: _Group) -> bool:
        """Whether a group computes what a Let joins, part by part, and stores each in its place."""
        parts = places.parts_of(self.lets[k].rhs)
        return parts is not None and parts[1] == group.space and self.groups[k] is group

    def _ends_in_scalars(self, k: int, group: _Group) -> bool:
        """Whether a Let is a reduction to one element, and the group pure arithmetic on scalars."""
        rhs = self.lets[k].rhs
        if not isinstance(rhs, OpCall) or rhs.op.fusion is not Fusion.REDUCTION:
            return False
        if not same_elements(shape_of(self.lets[k].outs[0]), ()) or group.effects:
            return False
        members = [self.lets[m].rhs for m in group.members]
        return all(
            isinstance(m, OpCall) and m.op.fusion is Fusion.ELEMENTWISE for m in members
        )

    def _fits(self, k: int, rhs: OpCall, group: _Group, alone: bool) -> bool:
        """Whether the elements of an array are computed where the group needs them."""
        aligned = self._is_aligned(k, group)
        if rhs.op.fusion is Fusion.REDUCTION:
            slices = self._slices(k, group)
            if slices is not None and kept_axes(self.lets[k]) == slices.kept:
                return slices.joins_slice(self.lets, k, self._readers(k, group))
            if reduces_rows(rhs) and (group.reduces_rows or group.slices is not None):
                return False
            return aligned
        placed = aligned or self._has_place(k, group)
        if not alone:
            return placed and rhs.op.fusion is Fusion.ELEMENTWISE
        if placed:
            return True
        if self._moved(k) > _DEEPEST_MOVES:
            return False
        return self._factor(k, group) <= (1 if self._weight(k) else _MOST_EVALUATIONS)

    def _slices(self, k: int, group: _Group) -> Slices | None:
        """The slices of a group once Let `k` is a member."""
        if group.product is not None:
            return None
        if group.slices is not None or group.scalar or group.reduces_rows or group.updated:
            return group.slices
        if group.joins:
            return None
        found = self._foreseen(k, group)
        if found is not None:
            for member in group.members:
                found.add(self.lets, member, self._readers(member, group))
        return found

    def _foreseen(self, k: int, group: _Group) -> Slices | None:
        """The slices that Let `k`, or a reduction which it is computed from, gives the group."""
        shape, found = self._space(self.lets[k]), slices_of(self.lets[k], group.space)
        if found is not None or not shape or shape == group.space:
            return found
        pending = [k]
        for step in pending:
            let = self.lets[step]
            if not isinstance(let.rhs, OpCall) or self.effects[step] is not Effect.PURE:
                continue
            found = slices_of(let, group.space)
            if found is not None and found.kept.is_slice(shape):
                return found
            if shape_of(let.outs[0]) == group.space:
                continue
            made = [self.position[a] for a in self.reads[step] if a in self.position]
            pending += [m for m in made if m not in pending][: _NEAREST - len(pending)]
        return None

    def _readers(self, k: int, group: _Group) -> list[int]:
        """The members of a group that read a Let."""
        return [u.reader for u in self.uses[k] if u.group is group]

    def _once(self, k: int, group: _Group) -> bool:
        """Whether a group computes each element of a Let once, which may raise there."""
        if self._is_aligned(k, group):
            return True
        rhs, slices = self.lets[k].rhs, self._slices(k, group)
        if slices is None or not isinstance(rhs, OpCall):
            return False
        return rhs.op.fusion is Fusion.ELEMENTWISE and slices.joins_slice(
            self.lets, k, self._readers(k, group)
        )

    def _has_place(self, k: int, group: _Group) -> bool:
        """Whether a Let is computed once per slice or once per element of a group with slices."""
        slices = self._slices(k, group)
        return slices is not None and slices.joins(self.lets, k, self._readers(k, group))

    def _is_aligned(self, k: int, group: _Group) -> bool:
        """Whether every reader in the group wants the element at the index of the results."""
        shape = shape_of(self.lets[k].outs[0])
        if group.updated is not None and group.updated in (self.lets[k].rhs,):
            return True
        if not same_elements(shape, group.space):
            return False
        for use in self.uses[k]:
            if use.group is not group:
                continue
            reader = self.lets[use.reader].rhs
            if use.reader in self.copied or not self.aligned[use.reader]:
                return False
            if not isinstance(reader, OpCall):
                return False
            stores = reader.op.name in places.UPDATES and reader is group.updated
            stores = stores or self._joins_parts(use.reader, group)
            if reader.op.fusion is not Fusion.ELEMENTWISE and not stores:
                return False
        return True

    def _factor(self, k: int, group: _Group) -> int:
        """How often the readers of a Let in its group evaluate each of its elements."""
        shape = shape_of(self.lets[k].outs[0]) if self.lets[k].outs else ()
        if not shape or self.lets[k] in self.scalar:
            return 1  # a scalar is computed before the loops, an element is written once
        together, apart = 0, 0
        for use in self.uses[k]:
            if use.group is not group or use.in_memory:
                continue
            reader = self.lets[use.reader]
            rhs, times = reader.rhs, self.evaluations[use.reader]
            assert isinstance(rhs, OpCall)
            if rhs.op.fusion is Fusion.ELEMENTWISE or rhs.op.name in places.UPDATES:
                # Elementwise readers at one index share the value.
                again = is_repeated(shape, self._space(reader))
                together = max(together, times * (_MOST_EVALUATIONS if again else 1))
            elif rhs.op.name == "broadcast_to" and is_repeated(shape, shape_of(reader.outs[0])):
                together = max(together, times * _MOST_EVALUATIONS)
            elif reads_again(rhs, self._read_by(rhs, k)):
                apart += times * _MOST_EVALUATIONS
            else:
                apart += times
        return together + apart

    def _read_by(self, rhs: OpCall, k: int) -> int:
        """Which operand of an op a Let is."""
        return next(
            n for n, a in enumerate(rhs.args) if self.copies.get(a, a) in self.lets[k].outs
        )

    def _moved(self, k: int) -> int:
        """The longest chain of moving ops from a Let to the results."""
        deepest = 0
        for use in self.uses[k]:
            if use.group is not None:
                deepest = max(deepest, self.moves[use.reader])
        rhs = self.lets[k].rhs
        moving = isinstance(rhs, OpCall) and rhs.op.fusion is Fusion.INJECTIVE
        return deepest + moving

    def _keeps_order(self, k: int, group: _Group) -> bool:
        """Whether a Let may run as late as the group: effects and updates stay in order."""
        if not self.order.keeps(k, group.runs_at, lambda e: self.groups[e] is group, group.scalar):
            return False
        if self.order.raises_at(k) and not group.scalar and self.lets[k] not in self.scalar and any(
            self.order.stores_at(m) for m in group.members
        ):
            return False  # it would raise when a part is stored
        for atom in self.reads[k]:
            if not is_array(atom):
                continue
            written = self.overwritten.get(atom, _END)
            if k < written < group.runs_at and self.groups[written] is not group:
                return False
        return True

    def _reads_fit(self, k: int, group: _Group) -> bool:
        """Whether a Let leaves alone the array that the group updates, or reads just its place.

        An update of nearly all of an array, as of a stencil, may read it anywhere: it gets a copy
        to write to, which costs less than all that it reads as arrays of their own.
        """
        if group.updated is None:
            return True
        base = group.updated.args[0]
        if base not in self.reads[k]:
            return True
        if places.reads_same_part(self.lets[k], group.updated) and self._is_aligned(k, group):
            return True
        return places.updates_nearly_all(group.updated)

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

    def _computing(self, k: int) -> tuple[_Group | None, ...]:
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

    def _calls(self, group: _Group, needed: set[Var]) -> Iterable[Let]:
        members: Sequence[Let] = [self.lets[k] for k in sorted(group.members)]
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

