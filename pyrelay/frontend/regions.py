"""Where control goes when it leaves a stretch of code, as results of structured blocks.

A region is code whose end is one block with a fixed tuple of results: the body of a function, the
body of a loop, the branch of an `if`. Whoever leaves it (falls off its end, returns, breaks) ends
the block at hand with the region's results for that exit, and there are no jumps. Code after an
`if` of which one branch always leaves is part of the other branch; after an `if` that may leave
from both, flags among its results say which way it was left. No code is lowered twice.
(The result is the structured form that Bohm and Jacopini's theorem promises, 1966, without its
copies.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import field

from pyrelay.frontend.flow import BREAK, CONTINUE, RETURN
from pyrelay.frontend.lowering import FALSE, NONE, NOT_READ, TRUE, Lowering
from pyrelay.frontend.recursion import Work
from pyrelay.frontend.scope import Variable
from pyrelay.ir.nodes import LEFT_BY, Atom, Var
from pyrelay.records import dataclass

FALL, RAISE, DONE = "fall", "raise", "done"


@dataclass(slots=True, eq=False)
class Region(ABC):
    """A stretch of code that ends in results.

    live: the variables live where each exit leads. unset: the variables whose values may be UNSET
    at some exit where they are live, and the cells that may be empty (filled as exits are lowered).
    """

    live: dict[str, int]
    unset: set[Variable] = field(default_factory=set, kw_only=True)

    @property
    @abstractmethod
    def slots(self) -> tuple[str, ...]:
        """Names for the results."""

    @abstractmethod
    def results(self, low: Lowering, exit: str, value: Atom) -> tuple[Atom, ...]:
        """The results for an exit; `value` is what `return` returns."""

    def leave(self, low: Lowering, exit: str, value: Atom = NOT_READ) -> tuple[Atom, ...]:
        """End the block at hand with the results."""
        if exit == RAISE:
            return tuple(NOT_READ for _ in self.slots)
        live = self.live[exit]
        self.unset.update(v for v in low.env.unset if v.captured or v.bit & live)
        return self.results(low, exit, value)

    def leaving(self, low: Lowering, exit: str, value: Atom = NOT_READ) -> Work[tuple[Atom, ...]]:
        """`leave` as work, to be done in a block of its own."""
        return (yield self.leave(low, exit, value))


@dataclass(slots=True, eq=False)
class FunctionRegion(Region):
    """The body of a function: its result is what it returns."""

    @property
    def slots(self) -> tuple[str, ...]:
        return ("result",)

    def results(self, low: Lowering, exit: str, value: Atom) -> tuple[Atom, ...]:
        return (value,) if exit == RETURN else (NONE,)


@dataclass(slots=True, eq=False)
class BranchRegion(Region):
    """A branch of an `if`: how it was left, if it can be; what it sets; what it returns."""

    variables: Sequence[Variable]
    exits: tuple[str, ...] = ()  # break, continue, return: those that occur, in this order

    @property
    def flags(self) -> tuple[str, ...]:
        """One flag says that it was left, and one for each exit but the last that it was that."""
        return ("left", *(f"{LEFT_BY}{e}" for e in self.exits[:-1])) if self.exits else ()

    @property
    def slots(self) -> tuple[str, ...]:
        returned = ("returned",) if RETURN in self.exits else ()
        return (*self.flags, *(v.shown for v in self.variables), *returned)

    def results(self, low: Lowering, exit: str, value: Atom) -> tuple[Atom, ...]:
        flags = [TRUE if exit != FALL else FALSE] if self.exits else []
        flags += [TRUE if exit == e else FALSE for e in self.exits[:-1]]
        values = [live_value(low, v, self.live[exit], NOT_READ) for v in self.variables]
        returned = [value] if RETURN in self.exits else []
        return (*flags, *values, *returned)

    def take_over(
        self, low: Lowering, assigned: Iterable[Variable], values: Sequence[Atom]
    ) -> None:
        """After the choice: the values of its variables, and which may be unset.

        `assigned` are all variables that the branches assign, the others of which nobody reads.
        """
        for variable in assigned:
            if not variable.captured:
                low.env.values[variable] = None
        low.env.values.update(zip(self.variables, values, strict=True))
        low.env.unset.difference_update(assigned)
        low.env.unset.update(self.unset.intersection(assigned))


@dataclass(slots=True, eq=False)
class LoopRegion(Region):
    """The body of a loop: whether to stop, the next values of what it carries, why it stopped.

    carried: the variables with the value each holds in this round, which is what a variable keeps
    where it is not live. returned: this round's value of the slot for what is returned, or None if
    the loop does not return. flags: exits that the code after the loop has to tell apart.
    """

    carried: dict[Variable, Var]
    stops: bool
    returned: Var | None = None
    flags: tuple[str, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        stop = ("stop",) if self.stops else ()
        returned = () if self.returned is None else ("returned",)
        return (*stop, *(v.shown for v in self.carried), *returned, *self.flag_names())

    def flag_names(self) -> tuple[str, ...]:
        """Names of the flags."""
        return tuple(f"{LEFT_BY}{e}" for e in self.flags)

    def results(self, low: Lowering, exit: str, value: Atom) -> tuple[Atom, ...]:
        leaves = exit in (BREAK, RETURN, DONE)
        assert self.stops or not leaves
        stop = [TRUE if leaves else FALSE] if self.stops else []
        values = [live_value(low, v, self.live[exit], own) for v, own in self.carried.items()]
        returned = [] if self.returned is None else [value if exit == RETURN else self.returned]
        flags = [TRUE if exit == e else FALSE for e in self.flags]
        return (*stop, *values, *returned, *flags)


def live_value(low: Lowering, variable: Variable, live: int, otherwise: Atom) -> Atom:
    """What a variable holds if it is live, else `otherwise`."""
    if not variable.bit & live:
        return otherwise
    value = low.env.values[variable]
    assert value is not None, f"{variable.name} is live and has no value"
    return value


def ordered(exits: frozenset[str]) -> tuple[str, ...]:
    """Exits in a fixed order."""
    return tuple(e for e in (BREAK, CONTINUE, RETURN) if e in exits)
