"""How long the first call takes, in fresh processes, with an empty and with a filled disk cache.

In: a framework and a program's name. Out: seconds from after the framework's import to the first
result, and what numba did meanwhile, counted by numba's own events (`numba.core.event`).

As a program, `python -m benchmarks.first_call FRAMEWORK WORKLOAD` measures itself once and prints
JSON; `measure` starts such processes.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.driver import ROOT
from benchmarks.programs import plain
from benchmarks.worker import load
from benchmarks.workloads import BY_NAME

CHAIN = "chain_"
"""`chain_400` stands for a straight-line program of 400 statements that do not fuse together."""


@dataclass(frozen=True)
class FirstCall:
    """Medians over fresh processes."""

    cold: float
    warm: float | None
    per_call: float
    passes_cold: int
    passes_warm: int | None


def measure(framework: str, workload: str, repeats: int, *, warm: bool) -> FirstCall:
    """Run `repeats` pairs of processes: one on an empty cache, one on what that one left."""
    cold: list[dict[str, Any]] = []
    second: list[dict[str, Any]] = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(prefix="pyrelay-cold-") as cache:
            cold.append(_fresh_process(framework, workload, cache))
            if warm:
                second.append(_fresh_process(framework, workload, cache))
    return FirstCall(
        cold=statistics.median(run["first"] for run in cold),
        warm=statistics.median(run["first"] for run in second) if warm else None,
        per_call=statistics.median(run["per_call"] for run in cold),
        passes_cold=max(run["passes"] for run in cold),
        passes_warm=max(run["passes"] for run in second) if warm else None,
    )


def _fresh_process(framework: str, workload: str, cache: str) -> dict[str, Any]:
    """One measurement in a new process whose caches lie below `cache`."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_call", framework, workload],
        cwd=ROOT,
        env={**os.environ, "PYRELAY_CACHE_DIR": cache, "NUMBA_CACHE_DIR": cache + "/numba"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] if run.stderr else "it crashed")
    return dict(json.loads(run.stdout.splitlines()[-1]))


class NumbaPasses:
    """Counts the compiler passes numba runs, from its first import on, without importing it.

    An import hook: numba's pass manager is about to be loaded when `find_spec` is asked for it,
    and numba's events can be listened to from then on.
    """

    def __init__(self) -> None:
        self.recorder: Any = None
        if "numba" in sys.modules:
            self._listen()
        else:
            sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "numba.core.compiler_machinery" and self.recorder is None:
            self._listen()

    def _listen(self) -> None:
        event = importlib.import_module("numba.core.event")
        self.recorder = event.RecordingListener()
        event.register("numba:run_pass", self.recorder)

    def count(self) -> int:
        """Passes run so far; each is recorded when it starts and when it ends."""
        return len(self.recorder.buffer) // 2 if self.recorder is not None else 0


def _chain(statements: int) -> Callable[[], Any]:
    """The thunk of a straight-line program: written to a file, since pyrelay reads sources."""
    import pyrelay

    path = Path(tempfile.mkdtemp(prefix="pyrelay-chain-"), f"chain{statements}.py")
    path.write_text(plain.straight_line(statements), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    compiled = pyrelay.jit(program.chain)
    x = np.ones(16, dtype=np.float32)
    return lambda: compiled(x)


def main() -> None:
    framework, name = sys.argv[1:3]
    passes = NumbaPasses()
    module = load(framework)
    run: Callable[[], Any]
    if name.startswith(CHAIN):
        run = _chain(int(name.removeprefix(CHAIN)))
    else:
        workload = BY_NAME[name]
        run = module.PROGRAMS[workload.program](*workload.arguments())
    start = time.perf_counter()
    run()
    first = time.perf_counter() - start
    samples = []
    for _ in range(20):
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    report = {"first": first, "per_call": statistics.median(samples), "passes": passes.count()}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
