"""The tables of the page, cell by cell.

In: what was measured. Out: lines of Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.driver import Measurement
from benchmarks.first_call import FirstCall
from benchmarks.frameworks import OURS
from benchmarks.roofline import Roofline
from benchmarks.variants import Variant


@dataclass(frozen=True)
class FirstCallRow:
    """One line of the first-call table; `figures` or the reason why there are none."""

    framework: str
    title: str
    figures: FirstCall | None
    failure: str | None
    jax_cold: float | None = None  # seconds, which the cold call is to be no longer than
    warm_goal: float | None = None


@dataclass(frozen=True)
class MemoryRow:
    """Bytes by framework of one workload; a text where a process failed."""

    title: str
    held: Mapping[str, int | str | None]


def duration(seconds: float | None) -> str:
    """Three significant figures in the unit that fits."""
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def megabytes(count: int | str | None) -> str:
    """Millions of bytes; a text as it is."""
    if count is None or isinstance(count, str):
        return count or ""
    return f"{count / 1e6:.1f} MB" if count < 1e7 else f"{count / 1e6:.0f} MB"


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


def share(measurement: Measurement, roofline: Roofline | None) -> float | None:
    """How much of what the machine could do pyrelay did: the bound over its time."""
    seconds = measurement.seconds(OURS)
    if roofline is None or measurement.flops is None or not seconds:
        return None
    least = roofline.least_seconds(measurement.flops, measurement.touched, measurement.dtype)
    return least / seconds


def times(
    measurements: Sequence[Measurement], frameworks: Sequence[str], roofline: Roofline | None
) -> list[str]:
    """A line a workload: times by framework, pyrelay's share of the roofline if any, goals."""
    rows = [["", *frameworks, *(["of the roofline"] if roofline else []), "goal"]]
    for m in measurements:
        cells = ["failed" if f in m.failures else duration(m.seconds(f)) for f in frameworks]
        if roofline:
            part = share(m, roofline)
            cells.append("" if part is None else f"{part:.0%}")
        rows.append([m.workload.title, *cells, verdict(m)])
    return table(rows)


def ratios(measurements: Sequence[Measurement], frameworks: Sequence[str]) -> list[str]:
    """A line a workload: pyrelay's time relative to each peer's."""
    peers = [f for f in frameworks if f != OURS]
    rows = [["pyrelay's time relative to", *peers]]
    for m in measurements:
        found = [m.ratio(f) for f in peers]
        if any(ratio is not None for ratio in found):
            cells = ("" if ratio is None else f"{ratio:.2f}" for ratio in found)
            rows.append([m.workload.title, *cells])
    return table(rows)


def first_calls(found: Sequence[FirstCallRow]) -> list[str]:
    heading = ["", "", "cold", "the call", "warm", "the call", "kernels", "then", "goal"]
    return table([heading, *map(_first_call, found)])


def _first_call(row: FirstCallRow) -> list[str]:
    figures = row.figures
    if figures is None:
        return [row.title, row.framework, "failed", *[""] * 5, row.failure or ""]
    goals = []
    if row.jax_cold is not None:
        ratio = figures.cold / row.jax_cold
        goals.append(f"cold {ratio:.2f} x jax (at most 1.00: {'met' if ratio <= 1 else 'missed'})")
    if row.warm_goal is not None and figures.warm is not None:
        verdict = "met" if figures.warm < row.warm_goal else "missed"
        goals.append(f"warm under {duration(row.warm_goal)}: {verdict}")
    kernels = (figures.kernels_cold, figures.kernels_warm)
    return [
        row.title,
        row.framework,
        duration(figures.cold),
        duration(figures.cold_call),
        duration(figures.warm),
        duration(figures.warm_call),
        ", ".join(str(number) for number in kernels if number is not None),
        duration(figures.per_call),
        ", ".join(goals),
    ]


def memory(found: Sequence[MemoryRow]) -> list[str]:
    frameworks = list(dict.fromkeys(name for row in found for name in row.held))
    rows = [["", *frameworks, "pyrelay's relative to jax"]]
    for row in found:
        cells = [megabytes(row.held.get(name)) for name in frameworks]
        ours, theirs = row.held.get(OURS), row.held.get("jax")
        known = isinstance(ours, int) and isinstance(theirs, int) and theirs > 0
        rows.append([row.title, *cells, f"{ours / theirs:.2f}" if known else ""])  # type: ignore[operator]
    return table(rows)


def variants(found: Variant) -> list[str]:
    """Times by setting, and how the first one's compares with each of the others."""
    first, *rest = found.labels
    rows = [["", *found.labels, *(f"{first} / {label}" for label in rest), *found.beside]]
    for k, m in enumerate(found.measurements):
        cells = ["failed" if x in m.failures else duration(m.seconds(x)) for x in found.labels]
        against = [m.ratio(label, own=first) for label in rest]
        cells += ["" if ratio is None else f"{ratio:.2f}" for ratio in against]
        beside = [column[k] for column in found.beside.values()]
        rows.append([m.workload.title, *cells, *beside])
    return table(rows)
