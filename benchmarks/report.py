"""What was measured, as JSON for later comparison and as a table for readers.

In: measurements, first-call figures, the versions. Out: benchmarks/results/DATE.json and
docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.driver import OURS, ROOT, Measurement
from benchmarks.first_call import FirstCall

RESULTS = ROOT / "benchmarks" / "results"
TABLE = ROOT / "docs" / "benchmarks.md"


@dataclass(frozen=True)
class FirstCallRow:
    """One line of the first-call table; `figures` or the reason why there are none."""

    framework: str
    title: str
    figures: FirstCall | None
    failure: str | None
    cold_goal: float | None = None
    warm_goal: float | None = None


@dataclass(frozen=True)
class Run:
    """One run of the benchmarks."""

    measurements: Sequence[Measurement]
    first_calls: Sequence[FirstCallRow]
    versions: Mapping[str, str]
    rounds: int


def machine() -> dict[str, Any]:
    """The processor, how much of it this process may use, and the system."""
    model, vector = platform.processor() or platform.machine(), ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        facts = dict(line.split(":", 1) for line in cpuinfo.read_text().splitlines() if ":" in line)
        facts = {key.strip(): value.strip() for key, value in facts.items()}
        model = facts.get("model name", model)
        flags = facts.get("flags", "").split()
        vector = next((f for f in ("avx512f", "avx2", "sse4_2") if f in flags), "")
    return {
        "processor": model,
        "vectors": vector,
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def duration(seconds: float | None) -> str:
    """Three significant figures in the unit that fits."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def verdict(measurement: Measurement) -> str:
    """The ratio to each peer of a goal, and whether the goal is met."""
    if OURS in measurement.failures:
        return "failed"
    parts = []
    for goal in measurement.workload.goals:
        ratio = measurement.ratio(goal.peer)
        if ratio is not None:
            met = "met" if ratio <= goal.ratio else "missed"
            parts.append(f"{ratio:.2f} x {goal.peer} (at most {goal.ratio:.2f}: {met})")
    ours, most = measurement.seconds(OURS), measurement.workload.most_seconds
    if ours is not None and most is not None:
        parts.append(f"under {duration(most)}: {'met' if ours < most else 'missed'}")
    return ", ".join(parts)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose columns line up; the first row is the heading."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]

    def line(cells: Sequence[str]) -> str:
        padded = (f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))
        return "| " + " | ".join(padded) + " |"

    return [
        line(rows[0]),
        "|" + "|".join("-" * (w + 2) for w in widths) + "|",
        *map(line, rows[1:]),
    ]


def markdown(run: Run) -> str:
    """The whole page."""
    facts = machine()
    frameworks = list(run.versions)
    steady = [["", *frameworks, "goal"]]
    for m in run.measurements:
        cells = ["failed" if f in m.failures else duration(m.seconds(f)) for f in frameworks]
        steady.append([m.workload.title, *cells, verdict(m)])
    first = [["", "", "cold", "warm", "numba passes, warm", "then, per call", "goal"]]
    first += [_first_call_cells(row) for row in run.first_calls]
    ours = [m for m in run.measurements if m.ratio("numpy") is not None]
    against = [["pyrelay's time relative to", *(f for f in frameworks if f != OURS)]]
    for m in ours:
        ratios = [m.ratio(f) for f in frameworks if f != OURS]
        against.append([m.workload.title, *("" if r is None else f"{r:.2f}" for r in ratios)])
    failures = [
        f"* {m.workload.name}, {name}: {reason}"
        for m in run.measurements
        for name, reason in m.failures.items()
    ]
    return "\n".join(
        (
            "# Benchmarks",
            "",
            "Written by `make bench`; do not edit. Every framework runs in a process of its own, "
            "one at a time,",
            f"in {run.rounds} rounds; results are checked first, against NumPy's or, where it has "
            "none, a peer's. Times are",
            "medians of one call, ratios medians over rounds.",
            "",
            f"{facts['processor']}, {facts['cpus']} CPUs, {facts['vectors']}, {facts['system']}, "
            f"Python {facts['python']}; "
            + ", ".join(f"{name} {version}" for name, version in run.versions.items()),
            "",
            *table(steady),
            "",
            *table(against),
            "",
            "## First call, fresh process, after the import",
            "",
            *table(first),
            *(["", "## Failures", "", *failures] if failures else []),
            "",
        )
    )


def _first_call_cells(row: FirstCallRow) -> list[str]:
    figures = row.figures
    if figures is None:
        return [row.title, row.framework, "failed", "", "", "", row.failure or ""]
    goals = [
        f"{kind} under {duration(goal)}: {'met' if value < goal else 'missed'}"
        for kind, value, goal in (
            ("cold", figures.cold, row.cold_goal),
            ("warm", figures.warm, row.warm_goal),
        )
        if value is not None and goal is not None
    ]
    passes = "" if figures.passes_warm is None else str(figures.passes_warm)
    return [
        row.title,
        row.framework,
        duration(figures.cold),
        duration(figures.warm),
        passes,
        duration(figures.per_call),
        ", ".join(goals),
    ]


def as_json(run: Run) -> dict[str, Any]:
    """Everything measured, the single rounds too."""
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": dict(run.versions),
        "workloads": {
            m.workload.name: {"seconds": m.rounds, "first": m.first, "failures": m.failures}
            for m in run.measurements
        },
        "first_calls": [asdict(row) for row in run.first_calls],
    }


def write(run: Run) -> None:
    """Write the page and the JSON of a whole run."""
    RESULTS.mkdir(exist_ok=True)
    TABLE.parent.mkdir(exist_ok=True)
    file = RESULTS / f"{date.today().isoformat()}.json"
    file.write_text(json.dumps(as_json(run), indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(markdown(run), encoding="utf-8")
