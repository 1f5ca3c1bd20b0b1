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

from benchmarks.workloads import BY_NAME

MODULES = {
    "numpy": "plain",
    "numba": "with_numba",
    "jax": "with_jax",
    "torch": "with_torch",
    "torch.compile": "with_torch_compile",
    "onnxruntime": "with_onnxruntime",
    "pyrelay": "compiled",
}
"""Frameworks, in the order of the table's columns, and the modules that hold their programs."""

_SHORTEST_SAMPLE = 2e-4  # seconds; far above the clock's resolution and the cost of reading it


def load(framework: str) -> ModuleType:
    """The module of a framework's programs; importing it imports the framework."""
    return importlib.import_module(f"benchmarks.programs.{MODULES[framework]}")


def seconds_per_call(run: Callable[[], Any], budget: float) -> float:
    """The median over samples taken for about `budget` seconds; a sample is one call or many."""
    run()
    start = time.perf_counter()
    run()
    once = time.perf_counter() - start
    calls = max(1, round(_SHORTEST_SAMPLE / max(once, 1e-8)))
    samples: list[float] = []
    deadline = time.perf_counter() + budget
    while not samples or time.perf_counter() < deadline:
        start = time.perf_counter()
        for _ in range(calls):
            run()
        samples.append((time.perf_counter() - start) / calls)
    return statistics.median(samples)


def prepare(module: ModuleType, request: dict[str, Any]) -> tuple[Callable[[], Any], float]:
    """The thunk of a workload and the seconds its first call took; its result is saved."""
    workload = BY_NAME[request["workload"]]
    run = module.PROGRAMS[workload.program](*workload.arguments())
    start = time.perf_counter()
    result = run()
    first = time.perf_counter() - start
    np.savez(request["result"], *module.as_arrays(result))
    return run, first


def serve(framework: str, requests: TextIO, replies: TextIO) -> None:
    """Answer requests until there are no more."""

    def reply(**fields: Any) -> None:
        replies.write(json.dumps(fields) + "\n")
        replies.flush()

    try:
        module = load(framework)
    except Exception as reason:
        traceback.print_exc()
        reply(missing=f"{type(reason).__name__}: {reason}")
        return
    reply(version=module.version(), programs=sorted(module.PROGRAMS))
    run: Callable[[], Any] | None = None
    for line in requests:
        request = json.loads(line)
        try:
            if request["do"] == "prepare":
                run = None
                gc.collect()
                run, first = prepare(module, request)
                reply(first=first)
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
