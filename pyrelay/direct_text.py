"""The text of a function of the short way into a program, while it is written (`direct`).

In: lines and tests, one after the other, and the objects that they need. Out: the lines, and a name
for each object.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from pyrelay.infer.structure import Key
from pyrelay.records import dataclass


class NeedsMore(Exception):
    """The short way cannot take these arguments apart or put this result together."""


@dataclass
class Text:
    """A function under construction: its lines, and the objects that its names stand for."""

    known: dict[str, Any]
    lines: list[str] = field(default_factory=list)
    shared: set[int] = field(default_factory=set)  # numbers of results that are in several places
    made: set[int] = field(default_factory=set)  # of those, which have been made
    handed: frozenset[int] = frozenset()  # leaves that the program takes
    perhaps: set[int] = field(default_factory=set)  # and those that only some cases make
    leaves: list[str] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)  # of the leaves
    objects: list[str] = field(default_factory=list)  # mutable ones, in the order they are met
    containers: list[str] = field(default_factory=list)  # those of them that are no arrays
    nested: list[str] = field(default_factory=list)  # containers of lists that enter as arrays
    deep: bool = False  # of lists of lists
    generators: set[str] = field(default_factory=set)  # containers: of random numbers
    roots: list[str] = field(default_factory=list)  # trees, and lists of them
    pools: list[str] = field(default_factory=list)  # what the trees were packed into
    variables: int = 0

    def name(self, value: Any) -> str:
        """A name that stands for an object."""
        name = f"_known{len(self.known)}"
        self.known[name] = value
        return name

    def fresh(self, count: int) -> list[str]:
        """Names of new variables."""
        self.variables += count
        return [f"_a{k}" for k in range(self.variables - count, self.variables)]

    def line(self, text: str) -> None:
        self.lines.append(text)

    def test(self, condition: str) -> None:
        """What follows is done where a condition holds. The lines stand in a loop, which is left
        otherwise: there may be more conditions than Python lets blocks stand within each other."""
        self.line(f"if not ({condition}): break")
