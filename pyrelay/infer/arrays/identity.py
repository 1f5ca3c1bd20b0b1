"""Which object a place is: run-time identities of arrays whose name a branch or a loop chose.

In: roots that may or may not be the same object. Out: a bool of the program that says whether they
are, and the present content of an array that may have been written under another name.

Every array has a number. That of an array made at one point of the program is its serial; that of
a place is a variable: the number of the array that it is on the path taken. A join keeps the
numbers of what was there before it, and numbers what its paths made by the first place that holds
it, so that no two live arrays share one. A place keeps its content to itself; whoever may be the
same array takes it from there when it is next read. So a loop that swaps arrays and writes to them
copies nothing. The numbers are made only where a first attempt at the program met a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from pyrelay.errors import Span
from pyrelay.infer import needs
from pyrelay.infer import values as V
from pyrelay.ir import types
from pyrelay.ir.build import Builder, Handle, constant
from pyrelay.ir.nodes import Atom, Const
from pyrelay.ir.op import OPS
from pyrelay.ir.types import TensorType
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.heap import Heap
    from pyrelay.infer.interpreter import Interpreter


CONTAINERS = frozenset({"list", "dict", "set", "object"})
"""What has numbers beside arrays, for results to say which of their parts are one object."""


@dataclass
class Numbers:
    """The numbers of the places of one join. What is older than `base` keeps its own number."""

    base: int = field(default_factory=V.next_serial)
    given: dict[int, int] = field(default_factory=dict)
    arguments: bool = False

    @staticmethod
    def of_arguments() -> Numbers:
        """Numbers of a function's arguments: below those of all that it makes."""
        return Numbers(-(2**62), arguments=True)

    @staticmethod
    def of_results() -> Numbers:
        """Numbers of a function's results: an argument keeps its own."""
        return Numbers(0)

    def of(self, key: int) -> int:
        """The number of what a path made, if the place `key` is the first to hold it."""
        if self.arguments:
            return -1 - key
        if key not in self.given:
            self.given[key] = V.next_serial()
        return self.given[key]


@dataclass
class Numberer:
    """Numbers the arrays that one path puts into the places of a join."""

    builder: Builder
    numbers: Numbers
    earlier: list[tuple[int, V.Root, Atom]] = field(default_factory=list)

    def __call__(self, key: int, root: V.Root) -> Atom:
        """The number of the array in a place. Raises NeedsIdentity if it has none."""
        number = identity(root)
        chosen = self._chosen(key, root, number)
        self.earlier.append((key, root, number))
        return chosen

    def _chosen(self, key: int, root: V.Root, number: Atom) -> Atom:
        base, call = self.numbers.base, self.builder.call
        if isinstance(number, Const) and number.value < base:
            return number
        result: Atom = constant(self.numbers.of(key))
        for place, other, theirs in reversed(self.earlier):
            if not root.may_alias(other):
                continue
            mine: Atom = constant(self.numbers.of(place))
            if isinstance(number, Const) and isinstance(theirs, Const):
                result = mine if number.value == theirs.value else result
            else:
                same = call(OPS["equal"], number, theirs)
                result = call(OPS["where"], same, mine, result).atom
        if not isinstance(number, Const):
            older = call(OPS["less"], number, base)
            result = call(OPS["where"], older, number, result).atom
        return result


def identity(root: V.Root) -> Atom:
    """The number of an object. Raises NeedsIdentity for a place that has none."""
    if not numbered(root):
        raise needs.NeedsIdentity(root)
    return constant(root.serial) if root.number is None else root.number


def numbered(root: V.Root) -> bool:
    """True if an object has a number: a place needs one made for it if it may be another object."""
    return root.number is not None or not (root.may_be or root.rivals)


def same_object(it: Interpreter, one: V.Root, other: V.Root) -> V.Value:
    """Whether two objects are one. Raises NeedsIdentity where they have no numbers."""
    if one is other:
        return V.Known(True)
    if not one.may_alias(other):
        return V.Known(False)
    a, b = identity(one), identity(other)
    if isinstance(a, Const) and isinstance(b, Const):
        return V.Known(a.value == b.value)
    return V.Scalar(types.PY_BOOL, it.builder.call(OPS["equal"], a, b).atom)


def same_place(it: Interpreter, one: V.Root, other: V.Root) -> V.Value | None:
    """Whether two lists are one, if both are items of one list; None for others."""
    x, y = it.heap.contents[one], it.heap.contents[other]
    if not isinstance(x, V.Part) or not isinstance(y, V.Part) or one is other:
        return None
    if not x.is_beside(y) or x.gone is not None or y.gone is not None:
        return None
    places = it.atom(x.position), it.atom(y.position)
    return V.Scalar(types.PY_BOOL, it.builder.call(OPS["equal"], *places).atom)


def settle(it: Interpreter, root: V.Root) -> None:
    """Take what was written to an object under other names into its content, latest write last.

    Raises NeedsIdentity unless it is `told_apart` from what was written.
    """
    heap = it.heap
    tests = [(source, same_object(it, root, source)) for source in heap.stale[root]]
    del heap.stale[root]
    for source, same in tests:
        content = heap.contents[source]
        if same == V.Known(True):
            heap.contents[root] = content
        elif isinstance(same, V.Scalar):
            heap.contents[root] = _selected(it, it.atom(same), content, heap.contents[root])


def _selected(it: Interpreter, test: Atom, one: Atom, other: Atom) -> Atom:
    """The array `one` if the test holds, which then has the type of `other`, else `other`."""
    ty, given = other.type, one.type
    assert isinstance(ty, TensorType)
    assert isinstance(given, TensorType)

    def first(inner: Builder) -> list[Atom | Handle]:
        if given.shape == ty.shape:
            return [one]
        return [inner.call(OPS["refine"], one, shape=ty.shape)]

    (result,) = it.builder.cond(test, first, lambda _: [other])
    return result.atom


def told_apart(root: V.Root, sources: Iterable[V.Root]) -> bool:
    """True if `settle` can say which of these sources an array is."""
    concerned = (root, *(s for s in sources if root.may_alias(s)))
    return root.kind == "array" and all(map(numbered, concerned))


def unsettled(
    heap: Heap, outer: Callable[[V.Root], bool], held: Callable[[V.Root], bool]
) -> list[V.Root]:
    """Outer arrays that have to be settled before a path ends.

    These are the ones that may have been written through objects which neither were there before
    the path nor are held by one of its results.
    """
    return [
        root for root, sources in heap.stale.items()
        if outer(root) and told_apart(root, sources)
        and not all(outer(s) or held(s) for s in sources)
    ]


Sources = Mapping[V.Root, Span | None]


def kept_sources(root: V.Root, sources: Sources, outer: Callable[[V.Root], bool]) -> Sources:
    """The sources on a path that stay known behind it; all if they cannot be told apart anyway."""
    if not told_apart(root, sources):
        return sources
    return {s: span for s, span in sources.items() if outer(s)}


def joined_sources(
    root: V.Root, older: Iterable[Sources], current: Callable[[V.Root], bool],
    places: Iterable[V.Root],
) -> dict[V.Root, Span | None]:
    """Through which objects an outer one may have been written, after paths met.

    `older` are its sources on the paths; those whose content is `current`, and the places that hold
    what the paths made, come last.
    """
    found: dict[V.Root, Span | None] = {}
    spans: list[Span | None] = []
    for sources in older:
        for source, span in sources.items():
            found.setdefault(source, span)
            spans.append(span)
    span = next((s for s in spans if s is not None), None)
    ordered = sorted(found.items(), key=lambda item: current(item[0]))
    result: dict[V.Root, Span | None] = dict(ordered)
    for place in places:
        if place is not root and place.number is not None and place.may_alias(root):
            result[place] = span
    return result


__all__ = [
    "CONTAINERS", "Numberer", "Numbers", "Sources", "identity", "joined_sources", "kept_sources",
    "same_object", "settle",
    "told_apart", "unsettled",
]
