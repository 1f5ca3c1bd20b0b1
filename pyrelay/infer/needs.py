"""What an attempt cannot go on without, or where it ends: raised by the interpreter.

In: the place, and why. Out: exceptions that loops, branches and functions catch to try another way
(a loop is unrolled, a branch split), or that end the attempt, and say what the next one is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrelay.ir.nodes import Function, Let
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.values import Root


class Diverges(Exception):
    """The rest of this block is not reached: an exception is raised, or a type is not known yet."""


class Raises(Exception):
    """The rest of this block is not reached: an exception is on its way to its handler."""


HOW_OFTEN = "how often this loop runs"
"""Why a number is needed that says how often a loop is unrolled."""

SHORT = 16
"""Loops of so few iterations keep the lists that they make longer at a known length."""

FEW = 4
"""Objects that a loop puts into a list stay apart if an argument says that it runs so few times."""


@dataclass(eq=False)
class NeedsStatic(Exception):
    """A number known only at run time is needed while compiling.

    `origin` is the parameter it came from (None: it was computed), `why` says what for.
    """

    origin: Any
    why: str


@dataclass(eq=False)
class NeedsCapture(Exception):
    """A function of its own reads an object that the program captures: it has to be passed along.

    `source` says where the object was read, `value` is the object, `readers` are the functions that
    were being interpreted, outermost first.
    """

    source: Any
    value: Any
    readers: tuple[Any, ...] = ()


@dataclass(eq=False)
class NeedsIdentity(Exception):
    """Which object this one is matters, and nothing that tells it at run time was made."""

    root: Root
    error: Exception | None = None  # if nothing can be made


@dataclass(eq=False)
class NeedsClassAttribute(Exception):
    """An attribute of a class, or a variable of a module, is assigned: it is read where it lies,
    not as a constant."""

    owner: Any
    name: str


@dataclass(eq=False)
class NeedsWide(Exception):
    """A number of 2**63 or more is used, or may be: ints have 64 bits and no sign where they can.

    soft: the program may do without.
    """

    soft: bool = False


@dataclass(eq=False)
class NeedsCopies(Exception):
    """These arguments, by leaf, are written otherwise than part by part, and do not lie as they
    stand: what was written before the program raised would be lost in a transposed array."""

    leaves: frozenset[int]


@dataclass(eq=False)
class NeedsExtent(Exception):
    """A number that is known before a loop is an extent in it: it is to be bound there.

    `expression` is what computes it (see bound_extents).
    """

    expression: Any


class NeedsPlaces(Exception):
    """Which list of the caller's is where in a list of these matters, as the program moves them."""


class NeedsOrder(Exception):
    """The order of a set matters whose items only the running program knows."""


class NeedsSequences(Exception):
    """A text that a function hands to itself gets longer with each call: it had better have a
    run-time length than loops around be unrolled."""


class NeedsTable(Exception):
    """So many keys of this dict are compared that it had better be a table."""

    def __init__(self, made: Let) -> None:
        super().__init__()
        self.made = made


@dataclass(eq=False)
class NeedsEntries(Exception):
    """Dicts become items of lists in a loop, which had better be nodes than the loop unrolled.

    `made` is what makes them. endless: or they are in dicts or lists made there, without end, of
    which `error` is said if nodes are no help.
    """

    made: frozenset[Let]
    endless: bool = False
    error: Exception | None = None


class NeedsNested(Exception):
    """A list, dict or set meets others that are nodes: what makes it makes one of these.

    cls: the class of what makes lists that hold such, or of those dicts and sets.
    """

    def __init__(self, made: Let, cls: type) -> None:
        super().__init__()
        self.made, self.cls = made, cls


class NeedsListed(Exception):
    """Objects become items of lists in a loop, or dicts whose keys only the running program knows,
    which had better be nodes than the loop unrolled."""


@dataclass(eq=False)
class NeedsListing(Exception):
    """A generator is left before its end and gone on with: its items are computed when it is made.

    `made` is what makes it, `error` says why that is needed.
    """

    made: Let
    error: Exception


@dataclass(eq=False)
class NeedsGathering(Exception):
    """A generator calls itself, and how deep only the running program knows.

    `function` is that of the generator, `error` says so. soft: or it may end where its known
    numbers say so, if the program cannot do otherwise.
    """

    function: Function
    error: Exception
    soft: bool = False


@dataclass(eq=False)
class NeedsUnrolling(Exception):
    """A loop body uses its loop variable or a carried value as only an unrolled loop allows.

    `root` is the list whose length the loop changes, if that is why.
    """

    error: Exception
    root: Root | None = None


@dataclass(eq=False)
class NeedsSplitting(NeedsUnrolling):
    """The arms of a branch leave an object with different structures."""


@dataclass(eq=False)
class NeedsFirstRound(NeedsSplitting):
    """The first round of a loop gives an object its structure, and there may be none: what follows
    the loop is compiled for both."""
