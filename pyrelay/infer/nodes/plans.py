"""What the pools of new nodes have to hold, found by attempts at the program.

In: nodes that the program makes, and values that it assigns to their fields. Out: a `Plan` for each
data type. What a pool lacks ends an attempt, but not at once: with something else in its place, or
along the other paths where a node cannot be made at all, the attempt goes on for a while, as other
nodes may lack more, and the next attempt begins with all of it. So does it without arrays of
pyrelay's own that functions read: each text of a program may be one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from pyrelay.infer.needs import Diverges, NeedsCapture
from pyrelay.infer.nodes.annotations import are_related, is_record_class
from pyrelay.infer.nodes.datatypes import (
    Array,
    Child,
    Choice,
    Constant,
    Family,
    Incompatible,
    Nothing,
    Number,
    Schema,
    Sort,
    merged,
)
from pyrelay.records import dataclass

Fields = tuple[tuple[str, Sort], ...]

_LONGER, _MORE = 3, 1000
"""Until when an attempt goes on: so many times the statements that it has interpreted, and more."""

_TWICE, _FEW = 2, 100
"""The same where it goes on without a node or an array, which it could as well begin with."""


@dataclass
class Plan:
    """What the pool of new nodes of a data type has to hold, as far as it is known.

    unified: it is the pool of the trees that the program is called with.
    """

    family: Family
    fields: dict[int, Fields] = field(default_factory=dict)
    unified: bool = False
    assigned: set[tuple[int, str]] = field(default_factory=set)  # fields of nodes: kind, name
    #: the arguments, by leaf, that say the shape of the arrays in a field of the first node, and
    #: None for extents that are something else; by column
    lengths: dict[str, tuple[int | None, ...]] = field(default_factory=dict)

    def schema(self, known: Schema | None = None) -> Schema:
        """The columns of the pool. `known` are those that the arguments have already."""
        if known is not None:
            for kind, fields in enumerate(known.fields):
                if kind and fields is not None:
                    self.fields[kind] = joined_fields(fields, self.fields.get(kind, fields))
        count = len(self.family.classes)
        rows = ((), *(self.fields.get(k) for k in range(1, count)))
        return Schema(tuple(self.family.classes), rows)


    def has_sequences(self) -> bool:
        """Whether there are tuples or texts in the fields, whose lengths may turn out to vary."""
        pending = [sort for fields in self.fields.values() for _, sort in fields]
        while pending:
            sort = pending.pop()
            match sort:
                case Choice(cases):
                    pending.extend(cases)
                case Constant(_, cls) if cls not in (str, tuple):
                    pass
                case Number() | Array() | Child() | Nothing():
                    pass
                case _:
                    return True
        return False


@dataclass(eq=False)
class NeedsPool(Exception):
    """The program builds nodes of a data type: its pool has to hold these fields."""

    family: Family
    kind: int | None = None
    fields: Fields = ()
    unified: bool = False


class NeedsNodesOf(Exception):
    """Objects of a class have to be nodes, as they are keys by their identity.

    classes: it, and others whose objects are in lists and that have a base class in common with it.
    """

    def __init__(self, cls: type, listed: Iterable[type]) -> None:
        super().__init__(cls.__name__)
        others = {c for c in listed if is_record_class(c) and are_related(c, cls)} - {cls}
        self.classes = [cls, *sorted(others, key=repr)]


@dataclass(eq=False)
class NeedsFields(Exception):
    """An attempt went on without what it needs: what pools were found to lack, and own arrays that
    functions read.
    """

    needs: list[NeedsPool]
    captures: list[NeedsCapture] = field(default_factory=list)

    def add(self, need: NeedsPool) -> bool:
        """Note what one of them lacks; whether that was not known."""
        for k, known in enumerate(self.needs):
            if known.family is need.family and known.kind == need.kind:
                try:
                    both = joined_fields(known.fields, need.fields)
                except Incompatible:  # the next attempt says what does not fit
                    return False
                self.needs[k] = NeedsPool(need.family, need.kind, both)
                return both != known.fields
        self.needs.append(need)
        return True


@dataclass
class Lacking:
    """What an attempt turned out to lack, as it goes on; `step` is called at each statement."""

    found: NeedsFields | None = None  # what the next attempt is asked for, if anything
    statements: int = 0
    last: int = -1  # the statement at which it ends
    elsewhere: bool = False  # it goes on along some of its paths only
    late: set[type] = field(default_factory=set)  # classes of nodes whose objects were none so far

    def note(self, need: NeedsPool) -> None:
        """Go on without."""
        if self._noted().add(need):
            self._go_on(_LONGER, _MORE)

    def note_capture(self, need: NeedsCapture) -> None:
        """Go on without an array that is to be captured."""
        found = self._noted()
        if all(need.value is not other.value for other in found.captures):
            found.captures.append(need)
            self._go_on(_TWICE, _FEW)

    def note_hollow(self, need: NeedsPool) -> None:
        """Go on with a node without fields: a path that reads one ends there."""
        if self._noted().add(need):
            self._go_on(_TWICE, _FEW)

    def instead(self, need: NeedsPool) -> Diverges:
        """What ends the path at hand, where a node cannot be made: others may lack more."""
        self.note_hollow(need)
        return self.ended()

    def ended(self) -> Diverges:
        """What ends the path at hand, where a node has no fields."""
        self.elsewhere = True
        return Diverges()

    def _noted(self) -> NeedsFields:
        if self.found is None:
            self.found = NeedsFields([])
        return self.found

    def _go_on(self, times: int, more: int) -> None:
        self.last = max(self.last, times * self.statements + more)

    def refuse_beyond(self) -> None:
        """Raises what the attempt lacks where it would go on behind a loop whose body it left: what
        follows is not what the program does."""
        if self.elsewhere:
            assert self.found is not None
            raise self.found

    def step(self) -> None:
        """Raises what it lacks where the attempt has gone on for long enough."""
        self.statements += 1
        if self.statements == self.last:
            assert self.found is not None
            raise self.found


def planned(plans: dict[Family, Plan], need: NeedsPool) -> None:
    """Note what a pool has to hold."""
    for family in [f for f in plans if f.classes[1] in need.family.kinds and f is not need.family]:
        del plans[family]  # it became part of the other
    plan = plans.setdefault(need.family, Plan(need.family))
    plan.unified |= need.unified
    if need.kind is not None:
        plan.fields[need.kind] = need.fields


def joined_fields(a: Fields, b: Fields) -> Fields:
    """Sorts that hold what either of two does, field by field, and the fields of either.

    Raises Incompatible if none do.
    """
    found = dict(a)
    for name, sort in b:
        found[name] = merged(found[name], sort, promote=True) if name in found else sort
    return tuple(found.items())
