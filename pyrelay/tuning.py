"""`pyrelay.tune`: choose by measuring what a model chooses otherwise.

In: a compiled function and arguments as it gets them. Out: the fastest `Choices` for the program of
these arguments, stored per program and machine; whoever compiles the program later gets them.

One choice after another takes the value that measures best, all others as they are. A value is
compared with the best one so far in turns, by the shortest of several runs, and has to be clearly
faster: what is measured on a busy machine is noise.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyrelay.bound_method import unbound
from pyrelay.compiled import Compiled
from pyrelay.records import dataclass

if TYPE_CHECKING:
    from pyrelay.devices.choices import Choices

clock = time.perf_counter

_CLEARLY = 0.97  # of the best time so far: what a choice has to need at most
_ROUNDS = 5
_WIDTH = 24  # of the progress bar


@dataclass(frozen=True)
class Tuning:
    """What `tune` found: seconds of a call with the defaults and with the choices, and how many
    ways to compile the program it measured."""

    choices: Choices
    default: float
    best: float
    measured: int

    def __repr__(self) -> str:
        return (
            f"{self.choices}: {self.best * 1e6:.1f} us instead of {self.default * 1e6:.1f} us a "
            f"call, best of {self.measured} measured"
        )


def tune(
    function: Any, *args: Any, seconds: float = 0.05, progress: bool = True, **keywords: Any
) -> Tuning:
    """Measure ways to compile a function for these arguments, and keep the fastest one.

    The choice is kept in the disk cache, for the program (its types, not its sizes) and this
    processor: this function and later processes compile the program that way. seconds: about how
    long to run each alternative. progress: show a bar on standard error. The arguments are copied,
    so that a function that writes them may be tuned. Raises TypeError for a function that is not
    compiled by pyrelay.

    >>> double = pyrelay.jit(lambda x: 2.0 * x)
    >>> found = pyrelay.tune(double, np.ones(3), seconds=0.001, progress=False)
    >>> double(np.ones(3))
    array([2., 2., 2.])
    """
    function, args = unbound(function, args)
    if not isinstance(function, Compiled):
        raise TypeError(f"tune takes what pyrelay.jit or pyrelay.grad has made, not {function!r}")
    from pyrelay.devices.chosen import keep  # what compiles is imported when something is compiled

    search = _Search(function, args, keywords, seconds, progress)
    found = search.run()
    keep(search.key, found.choices)
    function.forget()
    return found


class _Search:
    def __init__(
        self, function: Compiled, args: tuple[Any, ...], keywords: dict[str, Any], seconds: float,
        progress: bool,
    ) -> None:
        from pyrelay.devices import choices, chosen

        self.known, self.chosen = choices, chosen
        self.function, self.seconds, self.progress = function, seconds, progress
        self.args, self.keywords = copy.deepcopy((args, keywords))
        self.key = ""
        self.plans: dict[str, Choices] = {}
        self.runs: dict[Choices, Callable[[], float]] = {}
        self.total = 1 + sum(len(values) - 1 for values in self.known.VALUES.values())
        self.done = 0

    def run(self) -> Tuning:
        """Choice after choice, the best value of each."""
        best, default = self.known.DEFAULT, self._seconds(self.known.DEFAULT)
        assert default is not None
        for name in self.known.VALUES:
            for other in best.others(name):
                best = self._better(best, other)
        self._show("")
        if best == self.known.DEFAULT:
            return Tuning(best, default, default, len(self.runs))
        first, second = self._compared(self.known.DEFAULT, best)
        if second > first * _CLEARLY:  # each step was noise
            return Tuning(self.known.DEFAULT, first, first, len(self.runs))
        return Tuning(best, first, second, len(self.runs))

    def _better(self, best: Choices, other: Choices) -> Choices:
        if self._seconds(other) is None:
            return best
        first, second = self._compared(best, other)
        return other if second < first * _CLEARLY else best

    def _compared(self, a: Choices, b: Choices) -> tuple[float, float]:
        """The shortest of several runs of both, in turns."""
        pairs = [(self.runs[a](), self.runs[b]()) for _ in range(_ROUNDS)]
        return min(x for x, _ in pairs), min(y for _, y in pairs)

    def _seconds(self, choices: Choices) -> float | None:
        """Seconds of a call compiled so; None if that gives a program that is known already."""
        self.done += 1
        self._show(str(choices))
        with self.chosen.choosing(choices) as trial:
            fresh = self.function.again()
            fresh(*self.args, **self.keywords)
        self.key = trial.key
        if self.plans.setdefault(trial.plan, choices) != choices:
            return None
        number = max(1, int(self.seconds / _ROUNDS / max(self._once(fresh), 1e-9)))

        def run() -> float:
            started = clock()
            for _ in range(number):
                fresh(*self.args, **self.keywords)
            return (clock() - started) / number

        self.runs[choices] = run
        return run()

    def _once(self, fresh: Compiled) -> float:
        started = clock()
        fresh(*self.args, **self.keywords)
        return clock() - started

    def _show(self, what: str) -> None:
        if not self.progress:
            return
        full = _WIDTH * self.done // self.total
        bar = "#" * full + "-" * (_WIDTH - full)
        name = self.function.__qualname__
        line = f"\rtuning {name} [{bar}] {self.done}/{self.total} {what}".ljust(78)
        sys.stderr.write(line if what else line + "\n")
        sys.stderr.flush()
