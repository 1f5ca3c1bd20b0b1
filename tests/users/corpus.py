"""How a user's program enters the corpus: with arguments, and what is expected of it.

In: a plain Python function. Out: an entry of `USED` (compiled, it does what plain Python does) or
of `REFUSED` (compiling it is an error whose text says what to write instead).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Use:
    """A function with tuples of arguments, differentiated with respect to the positions `wrt`.

    joins: numbers of different kinds on different paths; compiled, they have the common kind.
    slow: the derivative takes long to compile, and is left to the long run.
    long: so does the program, and all of it is left to the long run.
    corners: numbers of the arguments at which the function jumps, or gives no float: there is no
    derivative to compare.
    """

    name: str
    function: Callable[..., Any]
    inputs: tuple[tuple[Any, ...], ...]
    wrt: tuple[int, ...]
    joins: bool
    slow: bool
    long: bool
    corners: tuple[int, ...]

    def arguments(self, number: int) -> tuple[Any, ...]:
        """One tuple of arguments that the caller may write to."""
        return copy.deepcopy(self.inputs[number])


@dataclass(frozen=True)
class Refusal:
    """A function that is not compiled, arguments, and the texts its error must hold."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    texts: tuple[str, ...]


USED: list[Use] = []
REFUSED: list[Refusal] = []


def use(
    *inputs: tuple[Any, ...], wrt: tuple[int, ...] = (), joins: bool = False, slow: bool = False,
    long: bool = False, corners: tuple[int, ...] = (),
) -> Callable[[Any], Any]:
    """Enter a function that compiles."""

    def enter(function: Any) -> Any:
        USED.append(Use(function.__name__, function, inputs, wrt, joins, slow, long, corners))
        return function

    return enter


def refuse(args: tuple[Any, ...], *texts: str) -> Callable[[Any], Any]:
    """Enter a function that is refused with an error that holds these texts."""

    def enter(function: Any) -> Any:
        REFUSED.append(Refusal(function.__name__, function, args, texts))
        return function

    return enter
