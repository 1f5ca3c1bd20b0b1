"""How much memory a program takes, in fresh processes.

In: a framework and a workload. Out: bytes that the process held at most during calls after the
first two, beyond what it held with the framework at work on a small program and NumPy's arguments
made. So copies of arguments, results, intermediate arrays and compiled code count; imports, also
those that a framework makes when it first compiles, and what compiling took for a while do not.
Every framework compiles, small program and large: nothing comes from a disk cache.
Linux tells the most that was resident (VmHWM in /proc/self/status) and forgets it when asked to
(clear_refs, see proc(5)); elsewhere there is no figure.

As a program, `python -m benchmarks.memory FRAMEWORK WORKLOAD` measures itself and prints JSON.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.driver import ROOT
from benchmarks.frameworks import WITHOUT
from benchmarks.worker import load
from benchmarks.workloads import BY_NAME

FRAMEWORKS = ("numpy", "jax", "torch", "onnxruntime", "pyrelay")
WORKLOADS = (
    "elementwise", "elementwise_float64_16000000", "softmax", "lstm_gradient_256",
    "stores_gradient_10000", "attention", "transformer", "transformer_gradient", "cnn_gradient",
    "lstm_batch_gradient_256", "resnet18_1", "mobilenet_1", "kmeans",
)  # fmt: skip
"""Programs that handle enough memory to be told from the rest of a process."""

_CALLS = 3
_STATUS = Path("/proc/self/status")


def available() -> bool:
    """Whether this system tells."""
    return _STATUS.exists()


def measure(framework: str, workload: str) -> int | None:
    """Bytes, or None where there is no such program.

    RuntimeError: the process failed.
    """
    program = BY_NAME[workload].program
    if program in WITHOUT[framework] or framework in BY_NAME[workload].left_out:
        return None
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", framework, workload],
        cwd=ROOT,
        env={**os.environ, "PYRELAY_CACHE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] if run.stderr else "it crashed")
    return int(json.loads(run.stdout.splitlines()[-1]))


def _resident(field: str) -> int:
    """A field of this process's status, in bytes."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"the system does not tell {field}")


def main() -> None:
    framework, name = sys.argv[1:3]
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    module = load(framework)
    if "call" in module.PROGRAMS:
        module.PROGRAMS["call"](*BY_NAME["call"].arguments())()
    workload = BY_NAME[name]
    args = workload.arguments()
    gc.collect()
    before = _resident("VmRSS")
    run = module.PROGRAMS[workload.program](*args)
    for _ in range(2):
        run()
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(_CALLS):
        run()
    replies.write(json.dumps(max(0, _resident("VmHWM") - before)) + "\n")
    replies.flush()


if __name__ == "__main__":
    main()
