"""Times every framework on every workload, one at a time.

In: names of frameworks and workloads. Out: `Measurement`s.

One process per framework lives for the whole run and sleeps while another works: frameworks in
one process would spin their thread pools against each other. Workloads on many objects have
processes of their own (`Workload.objects`). A round times each framework once,
in an order that turns from round to round; ratios are taken within a round and the median over
rounds is reported, so that a slow minute of the machine hits both sides of a ratio.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frameworks import OURS, REFERENCE, WITHOUT
from benchmarks.workloads import Workload

ROOT = Path(__file__).parent.parent
_SETTLE = 0.25  # most seconds for the last framework's threads to stop spinning
_LOOK = 0.03  # seconds; several ticks of the clock that processes' time is told in
_LONG = 2.0  # seconds of a round
_FEWER = 3  # rounds where one is long


@dataclass
class Measurement:
    """What came of one workload: rounds of seconds per framework, or why there are none."""

    workload: Workload
    rounds: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    flops: float | None = None
    touched: int = 0
    dtype: str = "f32"

    def seconds(self, framework: str) -> float | None:
        """The median over rounds of the seconds one call takes."""
        rounds = self.rounds.get(framework)
        return statistics.median(rounds) if rounds else None

    def ratio(self, peer: str, own: str = OURS) -> float | None:
        """How long `own` takes relative to `peer`: the median of the rounds' ratios."""
        ours, theirs = self.rounds.get(own), self.rounds.get(peer)
        if not ours or not theirs:
            return None
        return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


class Worker:
    """The process of one framework, and the conversation with it; in other settings (`variables`
    of the environment) it goes by a label of its own."""

    def __init__(
        self, framework: str, label: str | None = None, variables: Mapping[str, str] | None = None
    ) -> None:
        self.framework, self.label = framework, label or framework
        self.variables = dict(variables or {})
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 -- closed with the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", framework],
            cwd=ROOT,
            env={**os.environ, **self.variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )
        greeting = self.reply()
        self.missing: str | None = greeting.get("missing")
        self.broken: str | None = greeting.get("failed")
        self.version: str = greeting.get("version", "")

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its reply; a process that died replies `failed`."""
        self.send(**request)
        return self.reply()

    def send(self, **request: Any) -> None:
        """Send a request; `reply` waits for what comes of it."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()

    def reply(self) -> dict[str, Any]:
        """What comes of the last request."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return dict(json.loads(line))
        self.process.wait()
        return {"failed": f"its process ended with status {self.process.returncode}"}

    def settle(self) -> None:
        """Wait until the threads of the process sleep."""
        deadline = time.monotonic() + _SETTLE
        last = self._ticks()
        while time.monotonic() < deadline:
            time.sleep(_LOOK)
            now = self._ticks()
            if now is not None and now == last:
                return
            last = now

    def _ticks(self) -> int | None:
        """The CPU time the process has taken, in ticks of the system's clock, if it tells."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def last_words(self) -> str:
        """The end of what the process wrote to standard error."""
        self.log.seek(0)
        return self.log.read()[-4000:]

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.process.wait()
        self.log.close()


class Together:
    """Several processes of one framework that work at once, as if they were one `Worker`: a call
    takes the seconds after which the next of all their results is there."""

    def __init__(self, label: str, crew: Sequence[Worker]) -> None:
        self.framework, self.label, self.variables = crew[0].framework, label, crew[0].variables
        self.crew = crew

    def ask(self, **request: Any) -> dict[str, Any]:
        """Ask all of them at once; one that fails speaks for all."""
        for worker in self.crew:
            worker.send(**request)
        replies = [worker.reply() for worker in self.crew]
        for reply in replies:
            if "failed" in reply:
                return reply
        if "seconds" not in replies[0]:
            return replies[0]
        return {"seconds": 1 / sum(1 / reply["seconds"] for reply in replies)}

    def settle(self) -> None:
        """Wait until the threads of all processes sleep."""
        for worker in self.crew:
            worker.settle()


@contextmanager
def workers(
    frameworks: Iterable[str | tuple[str, str, Mapping[str, str]]],
) -> Iterator[list[Worker]]:
    """One worker per framework, or framework, label and settings; all ended on the way out.

    Raises RuntimeError for a framework that is installed and does not start.
    """
    started: list[Worker] = []
    try:
        for framework in frameworks:
            arguments = (framework,) if isinstance(framework, str) else framework
            started.append(Worker(*arguments))
            if started[-1].broken:
                raise RuntimeError(
                    f"{started[-1].label}: {started[-1].broken}\n{started[-1].last_words()}"
                )
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


def measure(
    workload: Workload, crew: Sequence[Worker | Together], rounds: int, budget: float
) -> Measurement:
    """Check every framework's result, then time those that are right.

    Workloads whose rounds are long have fewer of them.
    """
    able = [
        w
        for w in crew
        if workload.program not in WITHOUT[w.framework] and w.framework not in workload.left_out
    ]
    if not workload.objects:
        return _measured(workload, able, rounds, budget)
    with workers((w.framework, w.label, w.variables) for w in able) as fresh:
        return _measured(workload, fresh, rounds, budget)


def _measured(
    workload: Workload, able: Sequence[Worker | Together], rounds: int, budget: float
) -> Measurement:
    out = Measurement(workload)
    # Gradients that nobody has derived by hand are checked against a peer's.
    able = sorted(able, key=lambda w: (w.framework != REFERENCE, w.framework == OURS))
    ready: list[Worker | Together] = []
    with tempfile.TemporaryDirectory(prefix="pyrelay-bench-") as scratch:
        expected: Path | None = None
        for worker in able:
            result = Path(scratch, f"{worker.label}.npz".replace(" ", "_"))
            reply = worker.ask(do="prepare", workload=workload.name, result=str(result))
            wrong = reply.get("failed")
            if not wrong:
                expected = expected or result
                wrong = difference(workload, expected, result)
            if wrong:
                out.failures[worker.label] = wrong
            else:
                out.first[worker.label] = reply["first"]
                out.flops, out.touched = reply["flops"], reply["touched"]
                out.dtype = reply["dtype"]
                ready.append(worker)
            worker.settle()
    spent = 0.0
    for turn in range(rounds):
        if turn >= _FEWER and spent > _LONG * turn:
            break
        start = time.perf_counter()
        shift = turn % max(1, len(ready))
        for worker in ready[shift:] + ready[:shift]:
            reply = worker.ask(do="time", seconds=budget)
            if "failed" in reply:
                out.failures[worker.label] = reply["failed"]
            else:
                out.rounds.setdefault(worker.label, []).append(reply["seconds"])
            worker.settle()
        spent += time.perf_counter() - start
        ready = [w for w in ready if w.label not in out.failures]
        for framework in out.failures:
            out.rounds.pop(framework, None)
    return out
