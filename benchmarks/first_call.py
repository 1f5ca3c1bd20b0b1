"""How long the first call takes, in fresh processes, with an empty and with a filled disk cache.

In: a framework and a program's name. Out: seconds from the start of the interpreter to the first
result, imports counted; how much of that is the call; and what numba did meanwhile, counted by
numba's own events (`numba.core.event`).

Every framework finds its modules compiled to byte code, as pip leaves them: byte code is kept in a
folder of these measurements, which a run that is not measured fills first. (An editable install has
none, and where PYTHONDONTWRITEBYTECODE is set gets none.) JAX has its persistent compilation cache,
for calls of any length.

As a program, `python -m benchmarks.first_call START FRAMEWORK WORKLOAD` measures itself once, from
START on (`time.monotonic`), and prints JSON; `measure` starts such processes.
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

NOTHING = "nothing"
"""numba compiles a function that does nothing: what it costs to have it at all."""


@dataclass(frozen=True)
class FirstCall:
    """Medians over fresh processes: seconds from start to result, and of the call alone."""

    cold: float
    cold_call: float
    warm: float | None
    warm_call: float | None
    per_call: float
    passes_cold: int
    passes_warm: int | None


def measure(framework: str, workload: str, repeats: int, *, warm: bool) -> FirstCall:
    """Run `repeats` pairs of processes: one on an empty cache, one on what that one left."""
    cold: list[dict[str, Any]] = []
    second: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="pyrelay-bytecode-") as bytecode:
        for turn in range(repeats + 1):
            with tempfile.TemporaryDirectory(prefix="pyrelay-cold-") as cache:
                variables = environment(bytecode, cache)
                runs = [
                    _fresh_process(framework, workload, variables)
                    for _ in range(2 if warm and turn > 0 else 1)
                ]
            if turn > 0:
                cold.append(runs[0])
                second += runs[1:]

    def median(of: list[dict[str, Any]], what: str) -> float:
        return statistics.median(run[what] for run in of)

    return FirstCall(
        cold=median(cold, "whole"),
        cold_call=median(cold, "call"),
        warm=median(second, "whole") if warm else None,
        warm_call=median(second, "call") if warm else None,
        per_call=median(cold, "per_call"),
        passes_cold=max(run["passes"] for run in cold),
        passes_warm=max(run["passes"] for run in second) if warm else None,
    )


def environment(bytecode: str, cache: str) -> dict[str, str]:
    """The environment of a measured process: where byte code lies, and compiled programs."""
    variables = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": bytecode,
        "PYRELAY_CACHE_DIR": f"{cache}/pyrelay",
        "NUMBA_CACHE_DIR": f"{cache}/numba",
        "JAX_COMPILATION_CACHE_DIR": f"{cache}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def _fresh_process(framework: str, workload: str, variables: dict[str, str]) -> dict[str, Any]:
    """One measurement in a new process."""
    start = repr(time.monotonic())
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_call", start, framework, workload],
        cwd=ROOT,
        env=variables,
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


def _same(x: float) -> float:
    return x


def _nothing() -> Callable[[], Any]:
    import numba

    compiled = numba.njit(cache=True)(_same)
    return lambda: compiled(1.0)


def main() -> None:
    start, (framework, name) = float(sys.argv[1]), sys.argv[2:4]
    passes = NumbaPasses()
    run: Callable[[], Any]
    if name == NOTHING:
        run = _nothing()
    elif name.startswith(CHAIN):
        run = _chain(int(name.removeprefix(CHAIN)))
    else:
        workload = BY_NAME[name]
        run = load(framework).PROGRAMS[workload.program](*workload.arguments())
    before = time.monotonic()
    run()
    after = time.monotonic()
    samples = []
    for _ in range(20):
        begin = time.perf_counter()
        run()
        samples.append(time.perf_counter() - begin)
    report = {
        "whole": after - start,
        "call": after - before,
        "per_call": statistics.median(samples),
        "passes": passes.count(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
