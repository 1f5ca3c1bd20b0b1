"""What earlier visits of a loop found out, for when it is interpreted again.

In: objects that a loop turned out to rebind or to write, and the layouts of what it carries. Out:
the objects in their places at the next visit, and the layouts where it begins with the same ones.
The body of a loop is interpreted until its guess about what it carries holds, and each time the
loops in it are interpreted anew, with other objects. Without a memory each of them would need
several passes each time, so that a nest of n loops took 2^n; with it, only the first visit does. A
guess from here may say more than is needed, never less than the loop finds out itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

from pyrelay.errors import Span
from pyrelay.infer import layout as L
from pyrelay.infer import values as V
from pyrelay.infer.heap import Heap
from pyrelay.infer.slots import Moved, guessed
from pyrelay.ir import dims
from pyrelay.ir.dims import Extent
from pyrelay.ir.nodes import Let
from pyrelay.records import dataclass

#: The value where a walk starts, and the number of the object on it. Of an object that no walk
#: finds, such as a cell of a generator: its kind, where it is made, its name, and how many older
#: ones are such objects.
Place = tuple[int, int] | tuple[str, Span | None, str, int]


@dataclass(eq=False)
class Visits:
    """What was found in one loop; per loop inside it and its number in a pass, the same of that."""

    rebound: set[Place] = field(default_factory=set)
    written: set[Place] = field(default_factory=set)
    stales: bool = False  # an object may be written through a carried name of others
    #: carried value -> the objects that it may be
    mates: dict[int, set[Place]] = field(default_factory=dict)
    #: carried value, or place of an object -> its layout at entry, and the one that held
    layouts: dict[int | Place, tuple[Any, Any]] = field(default_factory=dict)
    inner: dict[tuple[Let, int], Visits] = field(default_factory=dict)
    met: dict[Let, int] = field(default_factory=dict)  # loops met in the present pass

    def enter(self, let: Let) -> Visits:
        """The visits of a loop that is met in the present pass."""
        number = self.met.get(let, 0)
        self.met[let] = number + 1
        return self.inner.setdefault((let, number), Visits())

    def note(self, where: int | Place, entry: Any, held: Any) -> None:
        """Keep the layout that a value or a content turned out to need, if others can use it."""
        if entry != held and _is_plain(entry) and _is_plain(held):
            self.layouts[where] = entry, held

    def guess(self, where: int | Place, entry: Any) -> Any:
        """The layout that this value needed before where it began so; else that at entry."""
        if where not in self.layouts:
            return entry
        before, held = self.layouts[where]
        if not isinstance(held, L.LGrown):
            return held if before == entry else entry
        if not isinstance(entry, L.LGrown):
            if before != entry:
                return entry
            room, slots = held.capacity and _any_room(), object()
        elif not isinstance(before, L.LGrown) or _alike(before) != _alike(entry):
            return entry
        else:
            room = entry.capacity if held.capacity == before.capacity else _any_room()
            slots = entry.slots
        return replace(held, capacity=room, slots=guessed(held.slots, slots))


def _any_room() -> Extent:
    return dims.fresh("d", dims.Origin.RUNTIME)


def _alike(content: L.LGrown) -> tuple[Any, ...]:
    """What two lists of run-time length have in common that begin alike."""
    return content.template, content.capacity == 0, isinstance(content.slots, Moved), content.known


def _is_plain(layout: Any) -> bool:
    """Whether a layout mentions neither objects nor extents, but for the room of a list."""
    match layout:
        case L.LKnown():
            return True
        case L.LScalar(extent=extent, origin=origin):
            return extent is None and origin is None
        case L.LNode(_, children) | L.LUnion(children):
            return all(map(_is_plain, children))
        case L.LGrown(template, pools=()):
            return _is_plain(template)
    return False


def places(
    roots: Iterable[V.Root], starts: Sequence[V.Value], heap: Heap
) -> dict[V.Root, Place]:
    """Where objects are found, starting from values that a loop carries or reads."""
    missing = set(roots)
    found: dict[V.Root, Place] = {}
    if missing:
        for place, root in _objects(starts, heap):
            if root in missing:
                missing.discard(root)
                found[root] = place
                if not missing:
                    return found
        found.update((root, place) for place, root in _numbered(heap) if root in missing)
    return found


def objects(
    wanted: Collection[Place], starts: Sequence[V.Value], heap: Heap
) -> dict[V.Root, Place]:
    """The objects that are in these places now, each with the first place that it is in."""
    found: dict[V.Root, Place] = {}
    if any(len(place) == 2 for place in wanted):
        for place, root in _objects(starts, heap):
            if place in wanted:
                found.setdefault(root, place)
    if any(len(place) != 2 for place in wanted):
        for place, root in _numbered(heap):
            if place in wanted:
                found.setdefault(root, place)
    return found


def _numbered(heap: Heap) -> Iterator[tuple[Place, V.Root]]:
    """All objects, oldest first, by what they are and how many such objects are older."""
    met: dict[Any, int] = {}
    for root in heap.contents:
        what = root.kind, root.span, root.name
        met[what] = number = met.get(what, -1) + 1
        yield (*what, number), root


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


def rebound(
    before: Any, after: Any, content: Callable[[V.Root], Any]
) -> frozenset[V.Root]:
    """Objects in place of which there are others behind a round: those that names mean and, where
    these are others, those in them, so that one pass finds them at all depths.

    In: layouts of a value or a content at entry and behind a round; the layout of the content that
    an object has at entry.
    """
    found: set[V.Root] = set()
    pending = [(before, after)]
    while pending:
        match pending.pop():
            case L.LFixed(V.Ref(root) | V.ArrayRef(root)), L.LPlace(_, kind, _, inside) if (
                root.kind == kind and root not in found
            ):
                found.add(root)
                if kind != "array":
                    pending.append((content(root), inside))
            case L.LPlace(content=old), L.LPlace(content=new):
                pending.append((old, new))
            case L.LNode(head, parts), L.LNode(other, others) if head == other:
                pending.extend(zip(parts, others, strict=True))
    return frozenset(found)
