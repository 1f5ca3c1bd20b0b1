"""Times every framework on every workload, one at a time.

In: names of frameworks and workloads. Out: `Measurement`s.

One process per framework lives for the whole run and sleeps while another works: frameworks in
one process would spin their thread pools against each other. A round times each framework once,
in an order that turns from round to round; ratios are taken within a round and the median over
rounds is reported, so that a slow minute of the machine hits both sides of a ratio.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import Workload

ROOT = Path(__file__).parent.parent
REFERENCE = "numpy"
OURS = "pyrelay"
_SETTLE = 0.25  # seconds for the last framework's threads to stop spinning


@dataclass
class Measurement:
    """What came of one workload: rounds of seconds per framework, or why there are none."""

    workload: Workload
    rounds: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def seconds(self, framework: str) -> float | None:
        """The median over rounds of the seconds one call takes."""
        rounds = self.rounds.get(framework)
        return statistics.median(rounds) if rounds else None

    def ratio(self, peer: str) -> float | None:
        """How long pyrelay takes relative to `peer`: the median of the rounds' ratios."""
        ours, theirs = self.rounds.get(OURS), self.rounds.get(peer)
        if not ours or not theirs:
            return None
        return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


class Worker:
    """The process of one framework, and the conversation with it."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", framework],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        greeting = self._reply()
        self.missing: str | None = greeting.get("missing") or greeting.get("failed")
        self.version: str = greeting.get("version", "")
        self.programs: frozenset[str] = frozenset(greeting.get("programs", ()))

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its reply; a process that died replies `failed`."""
        if self.process.poll() is not None:
            return {"failed": f"its process ended with status {self.process.returncode}"}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return dict(json.loads(line))
        self.process.wait()
        return {"failed": f"its process ended with status {self.process.returncode}"}

    def last_words(self) -> str:
        """The end of what the process wrote to standard error."""
        self.log.seek(0)
        return self.log.read()[-4000:]

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self.process.wait()
        self.log.close()


@contextmanager
def workers(frameworks: Iterable[str]) -> Iterator[list[Worker]]:
    """One worker per framework, all started, all ended on the way out."""
    started: list[Worker] = []
    try:
        for framework in frameworks:
            started.append(Worker(framework))
        yield started
    finally:
        for worker in started:
            worker.close()


def difference(workload: Workload, expected: Path, actual: Path) -> str | None:
    """How the results differ beyond the workload's tolerance, or None."""
    with np.load(expected) as left, np.load(actual) as right:
        if len(left.files) != len(right.files):
            return f"{len(right.files)} results where the first has {len(left.files)}"
        for name in left.files:
            a, b = left[name], right[name]
            if a.shape != b.shape:
                return f"a result of shape {b.shape} where the first has {a.shape}"
            if not np.allclose(a, b, rtol=workload.rtol, atol=workload.atol):
                return f"a result off by {np.max(np.abs(a - b)):.3g}"
    return None


def measure(workload: Workload, crew: Sequence[Worker], rounds: int, budget: float) -> Measurement:
    """Check every framework's result, then time those that are right."""
    out = Measurement(workload)
    able = [
        w for w in crew if workload.program in w.programs and w.framework not in workload.left_out
    ]
    # Gradients that nobody has derived by hand are checked against a peer's.
    able.sort(key=lambda w: (w.framework != REFERENCE, w.framework == OURS))
    ready: list[Worker] = []
    with tempfile.TemporaryDirectory(prefix="pyrelay-bench-") as scratch:
        expected: Path | None = None
        for worker in able:
            result = Path(scratch, f"{worker.framework}.npz")
            reply = worker.ask(do="prepare", workload=workload.name, result=str(result))
            wrong = reply.get("failed")
            if not wrong:
                expected = expected or result
                wrong = difference(workload, expected, result)
            if wrong:
                out.failures[worker.framework] = wrong
            else:
                out.first[worker.framework] = reply["first"]
                ready.append(worker)
    for turn in range(rounds):
        shift = turn % max(1, len(ready))
        for worker in ready[shift:] + ready[:shift]:
            time.sleep(_SETTLE)
            reply = worker.ask(do="time", seconds=budget)
            if "failed" in reply:
                out.failures[worker.framework] = reply["failed"]
            else:
                out.rounds.setdefault(worker.framework, []).append(reply["seconds"])
        ready = [w for w in ready if w.framework not in out.failures]
        for framework in out.failures:
            out.rounds.pop(framework, None)
    return out
