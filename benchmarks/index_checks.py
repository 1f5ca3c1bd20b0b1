"""What checks of indices cost: each program as it is compiled, and with its checks taken out.

In: loops over elements whose indices are safe to see, or come from data. Out: per program how many
checks range analysis left, and how much longer a call takes with them than without. Calls of both
are timed in turn, and the least time of each counts. Without checks an index must lie in its axis,
which it does here.

`python -m benchmarks.index_checks` prints a line for each program. Users have no such switch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

import pyrelay
from benchmarks.programs import loops
from pyrelay import config, pipeline
from pyrelay.ir import types
from pyrelay.ir.build import Builder
from pyrelay.ir.nodes import Let, Module, OpCall
from pyrelay.opt.rewrite import Replacement, Scope, rewrite_module

_ROUNDS = 200
_LEAST = 1e-3  # seconds that one timed stretch of calls takes at least


def gathered(x, places):
    """Indices from data: each is checked, for they may be anything."""
    total = 0.0
    for i in places:
        total += x[i]
    return total


def counted(places, n):
    """A histogram: one checked write for each item."""
    counts = np.zeros(n)
    for i in places:
        counts[i] += 1.0
    return counts


def knapsack(values, weights, capacity):
    """A table of two axes; whether `c - weights[i]` is inside follows from a condition."""
    best = np.zeros((len(values) + 1, capacity + 1))
    for i in range(len(values)):
        for c in range(capacity + 1):
            best[i + 1, c] = best[i, c]
            if weights[i] <= c:
                taken = best[i, c - weights[i]] + values[i]
                if taken > best[i + 1, c]:
                    best[i + 1, c] = taken
    return best[len(values), capacity]


def sorted_by_insertion(x):
    """A while loop whose index is tested by the program itself."""
    x = x.copy()
    for i in range(1, len(x)):
        v = x[i]
        j = i - 1
        while j >= 0 and x[j] > v:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = v
    return x


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """The programs and their arguments, by name."""
    rng = np.random.default_rng(0)
    places = rng.integers(0, 1000, 20_000)
    return {
        "jacobi": (loops.jacobi, (rng.random((100, 100)), 10)),
        "gathered": (gathered, (rng.random(1000), places)),
        "counted": (counted, (places, 1000)),
        "knapsack": (knapsack, (rng.random(50), rng.integers(1, 40, 50), 500)),
        "insertion": (sorted_by_insertion, (rng.random(400),)),
    }


def unchecked(module: Module) -> Module:
    """The program without its checks of indices. What is negative then is not counted from the end.
    """
    return rewrite_module(module, _passed_on)


def _passed_on(let: Let, builder: Builder, scope: Scope) -> Replacement:
    if not isinstance(let.rhs, OpCall) or let.rhs.op.name != "check_index":
        return None
    return (builder.cast(let.rhs.args[0], types.i64, weak=True),)


def without_checks() -> Any:
    """While entered, programs are compiled without checks of indices."""
    stages = tuple(
        replace(s, passes=(s.passes[0], unchecked, *s.passes[1:])) if s.name == "optimise" else s
        for s in pipeline.STAGES
    )
    return mock.patch.object(pipeline, "STAGES", stages)


def checks_left(function: Callable[..., Any], args: tuple[Any, ...]) -> int:
    """How many checks of indices the optimised program has."""
    return str(pyrelay.jit(function).ir(*args, stage="optimise")).count("check_index")


def cost(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[float, float]:
    """Seconds of a call with checks and without. Nothing is kept on disk."""
    with config.override(cache=False):
        checked, free = pyrelay.jit(function), pyrelay.jit(function)
        wanted = checked(*args)
        with without_checks():
            np.testing.assert_array_equal(free(*args), wanted)
        return _timed_in_turn(checked, free, args)


def _timed_in_turn(f: Any, g: Any, args: tuple[Any, ...]) -> tuple[float, float]:
    started = time.perf_counter()
    f(*args)
    calls = max(1, round(_LEAST / (time.perf_counter() - started)))
    least = [np.inf, np.inf]
    for _ in range(_ROUNDS):
        for k, each in enumerate((f, g)):
            started = time.perf_counter()
            for _ in range(calls):
                each(*args)
            least[k] = min(least[k], (time.perf_counter() - started) / calls)
    return float(least[0]), float(least[1])


def main() -> None:
    """Print a line for each program."""
    print(f"{'program':12}{'checks':>8}{'with':>12}{'without':>12}{'more':>8}")
    for name, (function, args) in programs().items():
        checked, free = cost(function, args)
        print(f"{name:12}{checks_left(function, args):>8}{checked * 1e6:>9.1f} us"
              f"{free * 1e6:>9.1f} us{checked / free - 1:>8.1%}")  # fmt: skip


if __name__ == "__main__":
    main()
