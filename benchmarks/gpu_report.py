"""Times on a GPU, as JSON for later comparison and as a section of the page for readers.

python -m benchmarks.gpu_report FILE   keeps what `make gpu-bench` wrote, gpu_times.json, in
                                       benchmarks/results, and puts it into docs/benchmarks.md

In: a file of JSON, or `gpu_timing.Measured`. Out: text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.gpu_timing import Measured, Timing
from benchmarks.gpu_worker import LIBRARIES, OURS

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
HEADING = "## On a GPU"
_METHOD = """
Written by `make gpu-bench` and `python -m benchmarks.gpu_report`. Every library runs in a process
of its own, with its arrays on the device; results are checked first, against NumPy's or, where it
has none, pyrelay's on the CPU. Times are those of a call among many whose last one is waited for,
medians of 7 runs. Of a copy's rate: the bytes that a program has to move, in that time, over what a
copy within the device moves. first call: of a program that is in no cache but the one of NVIDIA's
driver; NVRTC: the part of it that compiles kernels, none where they were on disk.
"""


def as_json(found: Measured, device: str) -> dict[str, Any]:
    """All that was measured."""
    return {"date": date.today().isoformat(), "device": device, **asdict(found)}


def section(told: dict[str, Any]) -> list[str]:
    """The lines of the page that tell what `as_json` gave."""
    versions = ", ".join(f"{name} {version}" for name, version in told["versions"].items())
    programs = [Timing(**each) for each in told["programs"]]
    return [
        HEADING, "", *_METHOD.strip().splitlines(), "",
        f"{told['device']}, {told['date']}; {versions}", "", *table(programs).splitlines(),
    ]


def newest() -> list[str]:
    """The section of the newest run that was kept; nothing if there is none."""
    kept = sorted(RESULTS.glob("gpu-*.json"))
    return section(json.loads(kept[-1].read_text(encoding="utf-8"))) if kept else []


def table(found: Sequence[Timing]) -> str:
    """The times as a table of Markdown; cells of what is not installed are empty, those of what
    failed hold a dash, and what failed is told below."""
    names = [n for n in LIBRARIES if any(n in t.microseconds or n in t.errors for t in found)]
    head = [
        "microseconds of a call", *names, "over the best other", "of a copy's rate",
        "first call s", "NVRTC s",
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for timing in found:
        cells = [
            f"{timing.microseconds[n]:.1f}" if n in timing.microseconds
            else "-" if n in timing.errors else ""
            for n in names
        ]
        others = [us for n, us in timing.microseconds.items() if n != OURS]
        own = timing.microseconds.get(OURS)
        cells += [f"{own / min(others):.2f}" if own and others else ""]
        cells += [f"{timing.rate:.2f}" if timing.rate else ""]
        cells += [f"{timing.first:.2f}", f"{timing.compiled:.2f}"] if timing.first else ["", ""]
        lines.append(f"| {timing.program} | " + " | ".join(cells) + " |")
    told = [f"{t.program}, {n}: {what}" for t in found for n, what in t.errors.items()]
    return "\n".join([*lines, "", *told]) if told else "\n".join(lines)


def replaced(page: str, lines: Sequence[str]) -> str:
    """A page with these lines for its last section, which is that of GPUs."""
    return page.partition(HEADING)[0].rstrip() + "\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    told = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / f"gpu-{told['date']}.json"
    kept.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    page = ROOT / "docs" / "benchmarks.md"
    page.write_text(replaced(page.read_text(encoding="utf-8"), section(told)), encoding="utf-8")


if __name__ == "__main__":
    main()
