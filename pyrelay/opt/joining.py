"""Which Lets of a block may join which groups, and what a group is.

In: the Lets of one block, and the groups that there are by now. Out: whether a Let may become a
member of a group that reads it: whether the elements it computes are wanted where the group
computes its own, how often it would compute each, whether effects and updates stay in order.
`grouping.py` asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import field

from pyrelay.ir import walk
from pyrelay.ir.contents import Contents
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Atom, Const, FnCall, Let, Loop, OpCall
from pyrelay.ir.op import Effect, Fusion
from pyrelay.ir.types import TensorType
from pyrelay.opt import places
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
from pyrelay.opt.storage_facts import CHEAP
from pyrelay.opt.stores import Order
from pyrelay.records import dataclass

#: Instructions of the plan, unless they stand inside a loop or branch that becomes a kernel.
_PLAN_OPS = frozenset(["extent", "undef", "raise", "commit"])
_LARGEST_GROUP = 200
_MOST_LITERALS = 1000  # numbers that a group has beside, which a store each writes
_MOST_EVALUATIONS = 4  # of a cheap element per element of the result
_DEEPEST_MOVES = 12  # moving ops behind each other: each may be a branch in the next
NEAREST = 12  # Lets behind another, where an array is looked for that a group reads as well
END = 1 << 60  # where the block's results are read


@dataclass(slots=True, eq=False)
class Group:
    """Lets of one kernel. It runs at the position of its last Let, `runs_at`."""

    runs_at: int
    scalar: bool
    space: tuple[Extent, ...]
    members: list[int] = field(default_factory=list)
    effects: list[int] = field(default_factory=list)
    views: list[Let] = field(default_factory=list)  # of arrays in memory, for its kernel
    reduces_rows: bool = False  # holds a reduction that keeps the last axis
    updated: OpCall | None = None  # the update that it makes in place
    beside: list[OpCall] = field(default_factory=list)  # others, of the same part of other arrays
    joins: bool = False  # runs over the parts that one of its members joins
    slices: Slices | None = None  # where members stand, once one reduces rows or columns
    product: int | None = None  # the product of matrices that it finishes
    literals: int = 0  # members that are a number of the program's text

    @property
    def is_full(self) -> bool:
        """Whether its kernel would be too large with another member."""
        others = len(self.members) - self.literals
        return others >= _LARGEST_GROUP or self.literals >= _MOST_LITERALS


@dataclass(frozen=True, slots=True)
class Use:
    """Who reads a Let: the group (None outside of groups), when, and through which member."""

    group: Group | None
    when: int
    reader: int
    in_memory: bool = False  # must stand in memory for it


class Joining:
    """The Lets of one block, and what is known of their groups.

    scalar   the Lets that compute with scalars and array elements only (`scalar_lets`).
    copies   variables that stand for a copy of another one.
    contents what the blocks inside read and do.
    stores   the Lets that write arrays which the caller sees if the program raises (`stores.py`).
    """

    def __init__(
        self, lets: Sequence[Let], scalar: set[Let], copies: Mapping[Atom, Atom],
        contents: Contents, stores: Set[Let],
    ) -> None:
        self.lets, self.scalar, self.copies = lets, scalar, copies
        self.position = {out: k for k, let in enumerate(lets) for out in let.outs}
        self.reads = [tuple(copies.get(a, a) for a in reads_of(let, contents)) for let in lets]
        self.effects = [contents.effect(let.rhs) for let in lets]
        self.order = Order(
            [k for k, e in enumerate(self.effects) if e is not Effect.PURE],
            [k for k, let in enumerate(lets) if let in stores],
        )
        self.groups: list[Group | None] = [None] * len(lets)
        self.copied: dict[int, tuple[Group, ...]] = {}
        self.uses: list[list[Use]] = [[] for _ in lets]
        self.aligned = [False] * len(lets)  # computed at the index of the group's results
        self.evaluations = [1] * len(lets)
        self.moves = [0] * len(lets)
        self.rearranged = [False] * len(lets)
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

    def _is_literal(self, k: int) -> bool:
        """Whether a Let is an array of a number that the program's text says."""
        rhs = self.lets[k].rhs
        return isinstance(rhs, OpCall) and rhs.op.name == "expand_dims" and (
            isinstance(rhs.args[0], Const)
        )

    # -- whether a Let joins a group -----------------------------------------------------------

    def _joins(self, k: int, group: Group, alone: bool) -> bool:
        """Whether Let `k` may become a member of a group that reads it.

        `alone`: nobody else reads it, so it need not become a result.
        """
        let = self.lets[k]
        mine = [u for u in self.uses[k] if u.group is group]
        if group.is_full or not self._keeps_order(k, group):
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

    def _joins_parts(self, k: int, group: Group) -> bool:
        """Whether a group computes what a Let joins, part by part, and stores each in its place."""
        parts = places.parts_of(self.lets[k].rhs)
        return parts is not None and parts[1] == group.space and self.groups[k] is group

    def _ends_in_scalars(self, k: int, group: Group) -> bool:
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

    def _fits(self, k: int, rhs: OpCall, group: Group, alone: bool) -> bool:
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
        if placed or rhs.op.name == "iota":  # whose elements are their own places
            return True
        if self._moved(k) > _DEEPEST_MOVES:
            return False
        return self._factor(k, group) <= (1 if self._weight(k) else _MOST_EVALUATIONS)

    def _slices(self, k: int, group: Group) -> Slices | None:
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

    def _foreseen(self, k: int, group: Group) -> Slices | None:
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
            pending += [m for m in made if m not in pending][: NEAREST - len(pending)]
        return None

    def _readers(self, k: int, group: Group) -> list[int]:
        """The members of a group that read a Let."""
        return [u.reader for u in self.uses[k] if u.group is group]

    def _once(self, k: int, group: Group) -> bool:
        """Whether a group computes each element of a Let once, which may raise there."""
        if self._is_aligned(k, group):
            return True
        rhs, slices = self.lets[k].rhs, self._slices(k, group)
        if slices is None or not isinstance(rhs, OpCall):
            return False
        return rhs.op.fusion is Fusion.ELEMENTWISE and slices.joins_slice(
            self.lets, k, self._readers(k, group)
        )

    def _has_place(self, k: int, group: Group) -> bool:
        """Whether a Let is computed once per slice or once per element of a group with slices."""
        slices = self._slices(k, group)
        return slices is not None and slices.joins(self.lets, k, self._readers(k, group))

    def _is_aligned(self, k: int, group: Group) -> bool:
        """Whether every reader in the group wants the element at the index of the results."""
        shape = shape_of(self.lets[k].outs[0])
        updates = (group.updated, *group.beside)
        if group.updated is not None and self.lets[k].rhs in updates:
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
            stores = reader.op.name in places.UPDATES and reader in updates
            stores = stores or self._joins_parts(use.reader, group)
            if reader.op.fusion is not Fusion.ELEMENTWISE and not stores:
                return False
        return True

    def _factor(self, k: int, group: Group) -> int:
        """How often the readers of a Let in its group evaluate each of its elements."""
        shape = shape_of(self.lets[k].outs[0]) if self.lets[k].outs else ()
        if not shape or self.lets[k] in self.scalar:
            return 1  # a scalar is computed before the loops, an element is written once
        together, apart = 0, 0
        sliced: list[tuple[OpCall, int]] = []
        for use in self.uses[k]:
            if use.group is not group or use.in_memory:
                continue
            reader = self.lets[use.reader]
            rhs, times = reader.rhs, self.evaluations[use.reader]
            assert isinstance(rhs, OpCall)
            if rhs.op.fusion is Fusion.ELEMENTWISE or rhs.op.name in places.UPDATES:
                # Elementwise readers at one index share the value.
                again = self._reads_repeatedly(shape, self._space(reader), use.reader)
                together = max(together, times * (_MOST_EVALUATIONS if again else 1))
            elif rhs.op.name == "broadcast_to" and (
                self._reads_repeatedly(shape, shape_of(reader.outs[0]), use.reader)
            ):
                together = max(together, times * _MOST_EVALUATIONS)
            elif reads_again(rhs, self._read_by(rhs, k)):
                looked_up = len(shape_of(reader.outs[0])) > len(shape)  # table[image]
                apart += times * _MOST_EVALUATIONS * (2 if looked_up else 1)
            elif rhs.op.name == "slice":
                sliced.append((rhs, times))
            else:
                apart += times
        if len(sliced) > 1 and places.follow_each_other(
            [rhs for rhs, _ in sliced]
        ):
            return together + apart + max(times for _, times in sliced)
        return together + apart + sum(times for _, times in sliced)

    def _reads_repeatedly(
        self, shape: Sequence[Extent], space: Sequence[Extent], reader: int
    ) -> bool:
        """Whether a Let that reads an array of a shape, once for each element of a space, reads
        elements again inside the innermost loop: if the last axis of the space is that of another
        loop, what repeats along it is read again, too."""
        again = self.rearranged[reader] and not same_elements(shape, space)
        return is_repeated(shape, space) or (again and any(d != 1 for d in shape))

    def _is_rearranged(self, k: int) -> bool:
        """Whether results have the elements of a Let along other axes, as np.repeat makes them."""
        return any(
            self.rearranged[u.reader] or _rearranges(self.lets[u.reader])
            for u in self.uses[k] if u.group is not None
        )

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

    def _keeps_order(self, k: int, group: Group) -> bool:
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
            written = self.overwritten.get(atom, END)
            if k < written < group.runs_at and self.groups[written] is not group:
                return False
        return True

    def _reads_fit(self, k: int, group: Group) -> bool:
        """Whether a Let leaves alone the array that the group updates, or reads just its place.

        An update of nearly all of an array, as of a stencil, may read it anywhere: it gets a copy
        to write to, which costs less than all that it reads as arrays of their own.
        """
        if group.updated is None:
            return True
        for other in group.beside:
            if other.args[0] in self.reads[k] and not (
                places.reads_same_part(self.lets[k], other) and self._is_aligned(k, group)
            ):
                return False
        base = group.updated.args[0]
        if base not in self.reads[k]:
            return True
        if places.reads_same_part(self.lets[k], group.updated) and self._is_aligned(k, group):
            return True
        return places.updates_nearly_all(group.updated)


def _rearranges(let: Let) -> bool:
    """Whether a Let has the elements of its operand along other axes."""
    if not isinstance(let.rhs, OpCall) or let.rhs.op.name not in ("reshape", "transpose"):
        return False
    (x,), (out,) = let.rhs.args, let.outs
    return [d for d in shape_of(x) if d != 1] != [d for d in shape_of(out) if d != 1]
