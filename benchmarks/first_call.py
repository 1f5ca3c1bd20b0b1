"""How long the first call takes, in fresh processes, with an empty and with a filled disk cache.

In: frameworks and a workload's name. Out: seconds from the start of the interpreter to the first
result, imports of the framework counted; how much of that is the call; and, of pyrelay, how many
kernels were compiled meanwhile. What the processes do is `first_process`.

Every framework finds its modules compiled to byte code, as pip leaves them: byte code is kept in a
folder of these measurements, which a run that is not measured fills first. (An editable install has
none, and where PYTHONDONTWRITEBYTECODE is set gets none.) JAX has its persistent compilation cache,
for calls of any length.
"""

from __future__ import annotations

import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.driver import ROOT
from benchmarks.frameworks import MODULES
from benchmarks.programs import plain
from benchmarks.workloads import BY_NAME

CHAIN = "chain_"
"""`chain_400` stands for a straight-line program of 400 statements that do not fuse together."""


@dataclass(frozen=True)
class FirstCall:
    """Medians over fresh processes: seconds from start to result, and of the call alone.

    kernels_cold, kernels_warm: that were compiled; None for peers.
    """

    cold: float
    cold_call: float
    warm: float | None
    warm_call: float | None
    per_call: float
    kernels_cold: int | None
    kernels_warm: int | None


def measure(
    frameworks: Sequence[str], workload: str, repeats: int, *, caching: Sequence[str]
) -> dict[str, FirstCall | str]:
    """By turns, run `repeats` pairs of processes of each framework: one on an empty cache and,
    where the framework is among `caching`, one on what that one left.

    A framework whose process fails has the reason for its figures.
    """
    runs: dict[str, list[list[dict[str, Any]]]] = {name: [] for name in frameworks}
    failed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="pyrelay-bytecode-") as bytecode:
        for turn in range(repeats + 1):
            for name in frameworks:
                if name in failed:
                    continue
                count = 2 if name in caching and turn > 0 else 1
                with tempfile.TemporaryDirectory(prefix="pyrelay-cold-") as cache:
                    variables = environment(bytecode, cache)
                    try:
                        found = [
                            _fresh_process(name, workload, variables, cache) for _ in range(count)
                        ]
                    except RuntimeError as reason:
                        failed[name] = str(reason)
                    else:
                        runs[name].append(found)
    return {name: failed.get(name) or _medians(runs[name][1:]) for name in frameworks}


def _medians(pairs: Sequence[Sequence[dict[str, Any]]]) -> FirstCall:
    cold = [pair[0] for pair in pairs]
    second = [run for pair in pairs for run in pair[1:]]

    def median(of: list[dict[str, Any]], what: str) -> float:
        return statistics.median(run[what] for run in of)

    def most(of: list[dict[str, Any]]) -> int | None:
        counted = [run["kernels"] for run in of if run["kernels"] is not None]
        return max(counted, default=None)

    return FirstCall(
        cold=median(cold, "whole"),
        cold_call=median(cold, "call"),
        warm=median(second, "whole") if second else None,
        warm_call=median(second, "call") if second else None,
        per_call=median(cold, "per_call"),
        kernels_cold=most(cold),
        kernels_warm=most(second),
    )


def environment(bytecode: str, cache: str) -> dict[str, str]:
    """The environment of a measured process: where byte code lies, and compiled programs."""
    variables = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": bytecode,
        "PYTHONPATH": os.pathsep.join((cache, *filter(None, [os.environ.get("PYTHONPATH")]))),
        "PYRELAY_CACHE_DIR": f"{cache}/pyrelay",
        "JAX_COMPILATION_CACHE_DIR": f"{cache}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    return variables


def _fresh_process(
    framework: str, workload: str, variables: dict[str, str], folder: str
) -> dict[str, Any]:
    """One measurement in a new process; `folder` is for the files that it reads."""
    module, name, arguments = _program(framework, workload, folder)
    given = Path(folder, f"{workload}.pickle")
    given.write_bytes(pickle.dumps(arguments))
    start = repr(time.monotonic())
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_process", start, framework, module, name, given],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] if run.stderr else "it crashed")
    *seconds, kernels = run.stdout.splitlines()[-1].split()
    found: dict[str, Any] = dict(
        zip(("whole", "call", "per_call"), map(float, seconds), strict=True)
    )
    return {**found, "kernels": None if kernels == "-1" else int(kernels)}


def _program(framework: str, workload: str, folder: str) -> tuple[str, str, tuple[Any, ...]]:
    """The module that has a workload's program, the program's name, and its arguments."""
    if not workload.startswith(CHAIN):
        found = BY_NAME[workload]
        return f"benchmarks.programs.{MODULES[framework]}", found.program, found.arguments()
    text = plain.straight_line(int(workload.removeprefix(CHAIN)))
    text += (
        "\n\nimport pyrelay\n\ncompiled = pyrelay.jit(chain)\n"
        f"PROGRAMS = {{{workload!r}: lambda x: lambda: compiled(x)}}\n"
    )
    Path(folder, f"{workload}.py").write_text(text, encoding="utf-8")
    return workload, workload, (np.ones(16, dtype=np.float32),)
