"""The abstract heap: what each mutable object contains at this point of the program.

An array's content is the atom of its current value, a list's a tuple of values, a dict's and an
object's a mapping of names to values, a cell's one value. Branches work on copies, which are
compared afterwards. An object that may have been written under another name is stale: what it
contains is settled when it is next read (identity.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from pyrelay.errors import AliasError, Span
from pyrelay.infer.values import Ref, Root, Tuple, Union
from pyrelay.ir.nodes import Let
from pyrelay.records import dataclass

#: What repeats the functions of the program: calls, which stand anywhere.
FROM_ANYWHERE = object()


@dataclass(slots=True)
class Items:
    """What a program found about arrays and lists that are items of growing lists."""

    shared: bool = False  # one may be an item in two places
    lent: Span | bool = False  # where a list became an item as a copy
    lends: int = 0  # see `Program.lends`
    would_lend: bool = False  # a list that is an item twice would have become a copy
    inner_written: Span | bool = False  # where a list in a list was changed
    #: what is repeated around the code at hand: loops of the program and its own functions
    repeating: list[object] = field(default_factory=list)
    #: in what a list in a list was changed, as far as it is repeated behind this place
    written_in: set[object] = field(default_factory=set)
    #: of objects that are items of lists, or one of several that a name may mean
    classes: set[type] = field(default_factory=set)
    #: those of them that are items of one list, or what one name may mean
    together: set[frozenset[type]] = field(default_factory=set)
    #: of these, and of dicts and sets: the class, or the kind, and what made it
    made: set[tuple[type | str, Let]] = field(default_factory=set)
    keyed: set[Let] = field(default_factory=set)  # what made dicts of known keys that are items
    #: what made lists of known length that are items
    fixed: set[Let] = field(default_factory=set)
    kept: set[Root] = field(default_factory=set)  # arrays that lists keep, on some path


@dataclass(slots=True)
class Heap:
    """Contents by root, and roots that may have been written through other ones."""

    contents: dict[Root, Any] = field(default_factory=dict)
    #: root -> the objects through which it may have been written, latest last, and where
    stale: dict[Root, Mapping[Root, Span | None]] = field(default_factory=dict)
    #: where each root was last written
    written: dict[Root, Span | None] = field(default_factory=dict)
    #: root -> the branch that left it with one of several structures
    torn: dict[Root, Span | None] = field(default_factory=dict)
    items: Items = field(default_factory=Items)  # shared by all heaps of a program
    #: arrays that lists keep, on this path
    kept: set[Root] = field(default_factory=set)

    def copy(self) -> Heap:
        """A heap that changes independently."""
        return Heap(
            dict(self.contents), dict(self.stale), dict(self.written), dict(self.torn),
            self.items, set(self.kept),
        )

    def reset(self, before: Heap) -> None:
        """Take back all changes since a copy was made."""
        self.contents, self.stale = before.contents, before.stale
        self.written, self.torn, self.kept = before.written, before.torn, before.kept

    def follow(self, other: Heap) -> None:
        """Note what a path that leads here has written, and which arrays lists keep by it."""
        self.written.update(other.written)
        self.kept |= other.kept

    def new(self, root: Root, content: Any) -> Root:
        """Enter a new object."""
        self._note_items(root, content, 0)
        self.contents[root] = content
        return root

    def write(self, root: Root, content: Any, span: Span | None) -> None:
        """Change an object; those that may or may not be the same object become stale."""
        if root.stored and root.kind == "list":
            raise root.wanted or lent_and_changed(span, root.stored)
        if root.stored and root.kind == "cell":
            raise captured_and_assigned(span, root.stored)
        self._note_items(root, content, -1)
        self.contents[root] = content
        self.written[root] = span
        self.stale.pop(root, None)
        self.torn.pop(root, None)
        chosen = root.is_chosen
        for other in self.contents:
            if (chosen or other.may_be) and other is not root and root.may_alias(other):
                earlier = self.stale.get(other, {})
                self.stale[other] = {
                    **{r: s for r, s in earlier.items() if r is not root}, root: span
                }

    def _note_items(self, root: Root, content: Any, first: int) -> None:
        """Note the classes of the objects that a list has from this position on."""
        if root.kind == "list" and isinstance(content, tuple):
            self.note_items(content[first:])
            if content:
                self._note_together((content[0], content[-1]))
            before = self.contents.get(root)
            if isinstance(before, tuple):
                self._note_displays(root, before, content)

    def _note_displays(
        self, root: Root, before: tuple[Any, ...], content: tuple[Any, ...]
    ) -> None:
        """Note what made a list that is given lists in place of other items, and these."""
        for old, new in zip(before, content, strict=False):
            made = _display_of(new)
            if made is not None and not isinstance(old, Ref):
                self.items.fixed |= {made} if root.made is None else {made, root.made}

    def _note_together(self, values: Iterable[Any]) -> None:
        """Note the classes of these objects, which are of one data type if they are nodes."""
        classes = frozenset(ref.cls for ref in _objects(values) if ref.cls is not None)
        if len(classes) > 1:
            self.items.together.add(classes)

    def note_items(self, items: Iterable[Any]) -> None:
        """Note the classes of objects that become items of a list."""
        for ref in _objects(items):
            display = _display_of(ref)
            if display is not None:
                self.items.fixed.add(display)
            if ref.cls is not None:
                self.items.classes.add(ref.cls)
            if ref.root.made is not None:
                self.items.made.add((ref.cls or ref.root.kind, ref.root.made))
                if ref.root.kind == "dict" and self.contents.get(ref.root):
                    self.items.keyed.add(ref.root.made)

    def lend(self, root: Root, span: Span | None) -> None:
        """Note that a list became an item of another one, which has a copy of it."""
        if root.stored:
            return
        root.stored = span or True
        self.items.lent = self.items.lent or root.stored
        self._must_be_unwritten()

    def share_inner(self, span: Span | None) -> None:
        """Note that the lists in a list are items of another one, too, which has copies of them."""
        self.items.lent = self.items.lent or span or True
        self._must_be_unwritten()

    def _must_be_unwritten(self) -> None:
        """Refuse copies of lists in lists where what changes one of these comes again."""
        items = self.items
        if any(each in items.written_in for each in (FROM_ANYWHERE, *items.repeating)):
            raise lent_and_changed(_span(items.inner_written), items.lent)

    @contextmanager
    def repeated(self, *, for_good: bool = False) -> Iterator[None]:
        """What is interpreted meanwhile runs more than once; with `for_good`, from anywhere."""
        mark = FROM_ANYWHERE if for_good else object()
        self.items.repeating.append(mark)
        try:
            yield
        finally:
            self.items.repeating.pop()

    def lendings(self) -> int:
        """How many of these lists and arrays became items of growing lists."""
        return sum(bool(root.stored) for root in self.contents)

    def write_inner(self, span: Span | None) -> None:
        """Note that a list was changed where it is an item of another one."""
        self.items.inner_written = self.items.inner_written or span or True
        self.items.written_in.update(self.items.repeating)
        if self.items.lent:
            raise lent_and_changed(span, self.items.lent)

    def changed_since(self, before: Heap) -> list[Root]:
        """Objects of `before` whose content is another one now, oldest first."""
        return [r for r, c in before.contents.items() if self.contents[r] is not c]


def _display_of(value: Any) -> Let | None:
    """What made a list, if a display of the program did."""
    return value.root.made if isinstance(value, Ref) and value.root.kind == "list" else None


def _objects(values: Iterable[Any]) -> Iterator[Ref]:
    for value in values:
        if isinstance(value, Tuple):
            yield from _objects(value.items)
        elif isinstance(value, Union):
            yield from _objects(value.possible)
        elif isinstance(value, Ref) and value.root.kind in (
            "object", "dict", "set", "list",
        ):
            yield value


def _span(where: Span | bool) -> Span | None:
    return where if isinstance(where, Span) else None


def lent_and_changed(span: Span | None, lent: Span | bool) -> AliasError:
    """The error for a change of a list, or of its copy in another list."""
    where = _span(lent)
    return AliasError(
        "this list may be an item of another list as well, and a change of one would have to show "
        "in the other.",
        span=span, related=[(where, "here it became an item")] if where else [],
        hints=("put a copy there: rows.append(row.copy())",),
    )


def captured_and_assigned(span: Span | None, stored: Span | bool) -> AliasError:
    """The error for a variable that a function captures which is in a field of a node."""
    where = _span(stored)
    return AliasError(
        "this variable is captured by a function in a field of one of many objects, which would "
        "have to see what is assigned here.",
        span=span, related=[(where, "here the function is put there")] if where else [],
        hints=("keep what changes in a field of the object: node.count += 1",
               "or give the function the value of now: lambda x, k=k: x * k"),
    )
