"""What earlier visits of a loop found out, for when it is interpreted again.

In: objects that a loop turned out to rebind or to write. Out: the objects in their places at the
next visit. The body of a loop is interpreted until its guess about what it carries holds, and each
time the loops in it are interpreted anew, with other objects. Without a memory each of them would
need several passes each time, so that a nest of n loops took 2^n; with it, only the first visit
does. A guess from here may say more than is needed, never less than the loop finds out itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.heap import Heap
from pyrelay.ir.nodes import Let
from pyrelay.records import dataclass

Place = tuple[int, int]  # the value where a walk starts, and the number of the object on it


@dataclass(eq=False)
class Visits:
    """What was found in one loop; per loop inside it and its number in a pass, the same of that."""

    rebound: set[Place] = field(default_factory=set)
    written: set[Place] = field(default_factory=set)
    stales: bool = False  # an object may be written through a carried name of others
    #: carried value -> the objects that it may be
    mates: dict[int, set[Place]] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)  # carried flags that are not the same all the time
    inner: dict[tuple[Let, int], Visits] = field(default_factory=dict)
    met: dict[Let, int] = field(default_factory=dict)  # loops met in the present pass

    def enter(self, let: Let) -> Visits:
        """The visits of a loop that is met in the present pass."""
        number = self.met.get(let, 0)
        self.met[let] = number + 1
        return self.inner.setdefault((let, number), Visits())


def places(roots: Iterable[V.Root], starts: Sequence[V.Value], heap: Heap) -> set[Place]:
    """Where objects are found, starting from values that a loop carries or reads."""
    missing = set(roots)
    found = set()
    for place, root in _objects(starts, heap):
        if root in missing:
            missing.discard(root)
            found.add(place)
        if not missing:
            break
    return found


def objects(wanted: set[Place], starts: Sequence[V.Value], heap: Heap) -> list[V.Root]:
    """The objects that are in these places now, each once."""
    if not wanted:
        return []
    found = {root: None for place, root in _objects(starts, heap) if place in wanted}
    return list(found)


def _objects(starts: Sequence[V.Value], heap: Heap) -> Iterator[tuple[Place, V.Root]]:
    for start, value in enumerate(starts):
        for number, root in enumerate(reachable(value, heap)):
            yield (start, number), root


def reachable(value: V.Value, heap: Heap) -> Iterator[V.Root]:
    """The objects that are reached from a value, each once."""
    seen: set[V.Root] = set()
    pending = [value]
    while pending:
        here = pending.pop()
        match here:
            case V.ArrayRef(root) | V.Ref(root):
                if root in seen or root not in heap.contents:
                    continue
                seen.add(root)
                yield root
                if isinstance(here, V.Ref):
                    pending.extend(reversed(L.content_children(heap.contents[root])))
            case V.Union():
                pending.extend(reversed(here.possible))
            case _:
                pending.extend(reversed(L.children_of(here)))
