"""How long one program is worked at before another way is taken, or none.

In: each operation that is looked at, in all attempts at a program. Out: TooManySteps where there
have been too many, with what is said to the user.

What is known when a function is compiled (numbers, texts, the lengths of short lists) unrolls loops
and makes functions of their own for calls. Programs that search by recursion over such values would
be compiled for minutes, or without end.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from pyrelay import errors
from pyrelay.infer import values as V
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.infer.interpreter import Interpreter

MOST_STEPS = 100_000
"""The largest networks take some thousands; ten to twenty seconds."""

MOST_STEPS_OF_TEXTS = 10_000
"""While short texts of the caller are known that could be data as well: a program for any texts
takes about as many, and calls with other texts do not wait for programs of their own."""

MOST_JOINS_OF_TEXTS = 2500
"""Branches whose arms are joined, meanwhile: each takes as long as 10 to 20 steps."""

MOST_STEPS_BY_ITEMS = 600
"""While lists of lists are taken apart that could enter as tables as well."""

MOST_STEPS_OTHERWISE = 10_000
"""By all other ways than the first, which is refused; twice as many as by that one, if these are
more. So refusals come soon: ways that lead anywhere take fewer, most a third."""

MOST_STEPS_DEEP = 40_000
"""Where lists in lists hold lists: each use of a value that may be a text or a dict is two."""

MOST_STEPS_UNFOLDED = 30_000
"""Where all objects are records, what goes through them is unrolled."""

FEW_ROUNDS, MOST_ROUNDS = 64, 1024
"""How often a loop is unrolled while there may be another way, and where there is none."""

_MANY = 8  # functions made of one, to be worth a word


class TooManySteps(Exception):
    """A program was worked at for long enough; failure: what is said if there is no other way."""

    def __init__(self, failure: errors.PyrelayError) -> None:
        super().__init__()
        self.failure = failure


@dataclass(slots=True)
class Effort:
    """How many operations were looked at, and how many may be; how many rounds a loop that is
    unrolled may have, and whether one had more; whether known texts could be data as well."""

    steps: int = 0
    most: int = field(default_factory=lambda: MOST_STEPS)
    rounds: int = field(default_factory=lambda: FEW_ROUNDS)
    left_rolled: bool = False
    texts_may_open: bool = False
    joins: int = 0

    def unrolls(self, rounds: int) -> bool:
        """Whether a loop of so many rounds is unrolled; notes that one is not."""
        self.left_rolled = self.left_rolled or rounds > self.rounds
        return rounds <= self.rounds

    def step(self, it: Interpreter) -> None:
        """Count one. Raises TooManySteps."""
        self.steps += 1
        if self.steps > self.most:
            raise TooManySteps(_refusal(it, self.steps - 1))

    def join(self, it: Interpreter) -> None:
        """Count a branch. Raises TooManySteps where there are many, and known texts could be data.
        """
        self.joins += 1
        if self.texts_may_open and self.joins > MOST_JOINS_OF_TEXTS:
            failure = _refusal(it, self.steps)
            failure.costly = True
            raise TooManySteps(failure)

    def led_on(self, since: int) -> None:
        """Count half of the steps since then: what they found, the next attempt begins with."""
        self.steps -= (self.steps - since) // 2

    def allow(self, steps: int) -> None:
        """Go on for some steps more."""
        self.most = self.steps + steps


def _refusal(it: Interpreter, steps: int) -> errors.PyrelayError:
    made: dict[str, int] = {}
    for entries in it.program.specialisations.values():
        if isinstance(entries, list) and entries:
            name = V.function_name(entries[0].closure.function)
            made[name] = made.get(name, 0) + len(entries)
    name, count = max(made.items(), key=lambda item: item[1], default=("", 0))
    notes = (f"so far {name!r} was compiled {count} times, for calls that differ in what is known "
             "of their arguments",) if count >= _MANY else ()  # fmt: skip
    failure = it.failure(
        errors.UnsupportedOperationError,
        f"this program is too much to compile: its end is not in sight after {steps:,} steps",
        notes=notes,
        hints=("loops over what is known when a function is compiled (texts, short lists, numbers "
               "in the code) are unrolled: pass arrays, or compile a smaller part",),
    )  # fmt: skip
    failure.endless = True
    return failure
