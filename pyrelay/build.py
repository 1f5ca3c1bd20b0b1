"""What compiling a program gave: a callable, and what it took.

In: nothing. Out: the records `Build` and `Step`, which calls and reports read; neither needs the
compiler.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from pyrelay import config
from pyrelay.lower.planning.encoded import EncodedPlan
from pyrelay.records import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the compiler that ran: its stage, its name, how long it took.

    Stages that are no passes: `plan`; `compile` (LLVM, where kernels were not on disk or
    in memory); `load`.
    """

    stage: str
    name: str
    seconds: float

    def report(self) -> None:
        """Print it, if the settings ask for times."""
        if config.current().time:
            text = f"pyrelay: {self.stage}/{self.name} {self.seconds * 1e3:.2f} ms\n"
            sys.stderr.write(text)


@dataclass(frozen=True, slots=True)
class Build:
    """A compiled program, and what it took.

    run: takes the program's flat parameters, gives its results as a tuple, those left out that
    hold the content of a written argument (such arguments are written in place). native: `run`
    checks its arguments itself. kernels: number in the program; compiled: by LLVM now,
    the others were on disk or in memory. place: the device, or "interpreter". encoded: the plan
    that runs, where it can be kept on disk. told: what the device has to tell of the last call.
    direct: `devices.base.Loaded.direct`.
    """

    run: Callable[..., Any]
    native: bool
    steps: tuple[Step, ...]
    kernels: int
    launches: int
    compiled: int
    place: str
    encoded: EncodedPlan | None = None
    told: Callable[[], Sequence[str]] = tuple
    direct: Callable[..., Any] | None = None
