"""The abstract heap: what each mutable object contains at this point of the program.

An array's content is the atom of its current value, a list's a tuple of values, a dict's and an
object's a mapping of names to values, a cell's one value. Branches work on copies, which are
compared afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyrelay.errors import Span
from pyrelay.infer.values import Root


@dataclass(slots=True)
class Heap:
    """Contents by root, and roots whose content cannot be known any more (with the reason)."""

    contents: dict[Root, Any] = field(default_factory=dict)
    #: root -> where the write happened that may or may not have reached it
    stale: dict[Root, Span | None] = field(default_factory=dict)
    #: where each root was last written
    written: dict[Root, Span | None] = field(default_factory=dict)

    def copy(self) -> Heap:
        """A heap that changes independently."""
        return Heap(dict(self.contents), dict(self.stale), dict(self.written))

    def new(self, root: Root, content: Any) -> Root:
        """Enter a new object."""
        self.contents[root] = content
        return root

    def write(self, root: Root, content: Any, span: Span | None) -> None:
        """Change an object; those that may or may not be the same object become stale."""
        self.contents[root] = content
        self.written[root] = span
        self.stale.pop(root, None)
        for other in self.contents:
            if other is not root and root.may_alias(other):
                self.stale[other] = span

    def changed_since(self, before: Heap) -> list[Root]:
        """Objects of `before` whose content is another one now, oldest first."""
        return [r for r, c in before.contents.items() if self.contents[r] is not c]
