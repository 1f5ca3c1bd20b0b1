"""One framework in a process of its own: it prepares and times workloads when told to.

In: one JSON request a line on standard input. Out: one JSON reply a line on standard output.
What frameworks print goes to standard error, so that it cannot disturb the conversation.

    {"do": "prepare", "workload": name, "result": path}   runs it once, saves its result
    {"do": "time", "seconds": s}                           times the prepared workload
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any, TextIO

import numpy as np

from benchmarks import work
from benchmarks.frameworks import MODULES
from benchmarks.workloads import BY_NAME

_SHORTEST_SAMPLE = 2e-4  # seconds; far above the clock's resolution and the cost of reading it


def load(framework: str) -> ModuleType:
    """The module of a framework's programs; importing it imports the framework."""
    return importlib.import_module(f"benchmarks.programs.{MODULES[framework]}")


def seconds_per_call(run: Callable[[], Any], budget: float) -> float:
    """The median over samples taken for about `budget` seconds; a sample is one call or many.

    A call that alone takes longer than the budget finds nothing in the caches that would last it:
    it is its own warming up.
    """
    once = budget
    for _ in range(2):
        start = time.perf_counter()
        run()
        once = time.perf_counter() - start
        if once >= budget:
            return once
    calls = max(1, round(_SHORTEST_SAMPLE / max(once, 1e-8)))
    samples: list[float] = []
    deadline = time.perf_counter() + budget
    while not samples or time.perf_counter() < deadline:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        samples.append((time.perf_counter() - start) / calls)
    return statistics.median(samples)


def prepare(
    module: ModuleType, request: dict[str, Any]
) -> tuple[Callable[[], Any], dict[str, Any]]:
    """The thunk of a workload, the seconds of its first call, the work; its result is saved."""
    workload = BY_NAME[request["workload"]]
    args = workload.arguments()
    facts = {"flops": work.flops(workload.program, args), "dtype": work.dtype(args)}
    run = module.PROGRAMS[workload.program](*args)
    start = time.perf_counter()
    result = run()
    facts["first"] = time.perf_counter() - start
    results = module.as_arrays(result)
    facts["touched"] = work.touched(args, results)
    np.savez(request["result"], *results)
    return run, facts


def serve(framework: str, requests: TextIO, replies: TextIO) -> None:
    """Answer requests until there are no more."""

    def reply(**fields: Any) -> None:
        replies.write(json.dumps(fields) + "\n")
        replies.flush()

    try:
        module = load(framework)
    except Exception as reason:
        traceback.print_exc()
        # Only what is not installed may be left out; what is wrong here is a mistake.
        absent = isinstance(reason, ModuleNotFoundError) and not (reason.name or "").startswith(
            "benchmarks"
        )
        reply(**{"missing" if absent else "failed": f"{type(reason).__name__}: {reason}"})
        return
    reply(version=module.version())
    run: Callable[[], Any] | None = None
    for line in requests:
        request = json.loads(line)
        try:
            if request["do"] == "prepare":
                run = None
                gc.collect()
                run, facts = prepare(module, request)
                reply(**facts)
            else:
                assert run is not None, "prepare comes before time"
                reply(seconds=seconds_per_call(run, request["seconds"]))
        except Exception as error:
            traceback.print_exc()
            reply(failed=f"{type(error).__name__}: {error}".splitlines()[0])


def main() -> None:
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.argv[1], sys.stdin, replies)


if __name__ == "__main__":
    main()
