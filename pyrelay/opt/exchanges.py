"""Buffers that change places: which places stand for which buffers together.

In: what loops and branches do with the places of their arrays: `u, v = v, u`. Out: `Groups`: places
whose addresses are known at run time only, and the buffers that they are the addresses of, each of
one. A place of such a group is memory of its own at any time, as a buffer is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from pyrelay.ir.nodes import Var
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """What becomes of carried array `k` of a loop: the place where it stands in every round, what
    has its address before the loop and before the next round, and whether what the round leaves is
    copied there first."""

    k: int
    place: Var
    before: Var
    after: Var
    copied: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """The place of result `k` of a branch, and where the arms leave it."""

    k: int
    place: Var
    arms: tuple[Var, Var]


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    members: tuple[Var, ...]
    buffers: tuple[Var, ...]


@dataclass(slots=True)
class Groups:
    """The groups at one point of a program. What stands before a loop's body or a branch's arm
    begins is a buffer in it, whatever group it belongs to outside."""

    found: dict[Var, _Group] = field(default_factory=dict)

    def buffers(self, place: Var) -> frozenset[Var]:
        """The buffers of which a place may be one."""
        group = self.found.get(place)
        return frozenset([place] if group is None else group.buffers)

    def together(self, places: Sequence[Var]) -> dict[Var, None] | None:
        """The buffers that these places are, one each; None if others may be one of them."""
        distinct = set(places)
        buffers: dict[Var, None] = {}
        for place in places:
            group = self.found.get(place)
            if group is not None and not distinct.issuperset(group.members):
                return None
            buffers |= dict.fromkeys((place,) if group is None else group.buffers)
        return buffers if len(buffers) == len(distinct) == len(places) else None

    def all_of(self, buffers: set[Var]) -> list[Var] | None:
        """The places that these buffers have now; None if one may have another place."""
        places = [b for b in buffers if b not in self.gone()]
        for group in dict.fromkeys(self.found.values()):
            if not buffers.isdisjoint(group.buffers):
                if not buffers.issuperset(group.buffers):
                    return None
                places += group.members
        return places

    def gone(self) -> set[Var]:
        """The buffers that have other places now."""
        return {b for group in self.found.values() for b in group.buffers}

    def exchange(self, places: Iterable[Var], by: Iterable[Var]) -> None:
        """From here on these places, of which each was memory of its own, are called otherwise."""
        old, members = tuple(places), list(by)
        buffers: list[Var] = []
        for place in old:
            group = self.found.pop(place, None)
            buffers += [place] if group is None else group.buffers
            members += [] if group is None else group.members
        left = (m for m in dict.fromkeys(members) if m not in old)
        new = _Group(tuple(left), tuple(dict.fromkeys(buffers)))
        self.found.update(dict.fromkeys(new.members, new))

    def settled(self, wanted: Iterable[Var], origins: dict[Var, Var]) -> Iterable[tuple[Var, Var]]:
        """For all places of the groups to which `wanted` belong, each one's buffer in the end: that
        where it came from, if no other one came from there."""
        groups = dict.fromkeys(self.found[place] for place in wanted if place in self.found)
        for group in groups:
            left = list(group.buffers)
            chosen: dict[Var, Var] = {}
            for member in group.members:
                home = member
                while home not in group.buffers:
                    home = origins[home]
                if home in left:
                    left.remove(home)
                    chosen[member] = home
            for member in group.members:
                yield member, chosen.get(member) or left.pop()
