"""What was measured, as JSON for later comparison and as a page for readers.

In: a `Run`. Out: benchmarks/results/DATE.json, docs/benchmarks.md and its plots.
"""

from __future__ import annotations

import json
import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import gpu_report, tables
from benchmarks.driver import ROOT, Measurement
from benchmarks.roofline import Roofline, cpus
from benchmarks.tables import FirstCallRow, MemoryRow
from benchmarks.variants import Variant
from benchmarks.workloads import SWEPT

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
PLOTS = {
    "benchmarks_peers.svg": "How many times as fast as each peer, workloads in order",
    "benchmarks_roofline.svg": "Operations a second against operations a byte, and the roofline",
    "benchmarks_sizes.svg": "Elements a second of one elementwise program, by size",
}


@dataclass(frozen=True)
class Run:
    """One run of the benchmarks; a section that was not run is empty."""

    versions: Mapping[str, str]
    rounds: int
    measurements: Sequence[Measurement] = ()
    roofline: Roofline | None = None
    first_calls: Sequence[FirstCallRow] = ()
    memory: Sequence[MemoryRow] = ()
    variants: Sequence[Variant] = field(default=())

    def sweep(self) -> list[Measurement]:
        """The rows that differ in the size of arrays only."""
        return [m for m in self.measurements if m.workload.name.startswith(SWEPT)]

    def others(self) -> list[Measurement]:
        return [m for m in self.measurements if not m.workload.name.startswith(SWEPT)]


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
        "cpus": cpus(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def markdown(run: Run, *, plots: bool = False, on_gpu: Sequence[str] = ()) -> str:
    """The whole page; with links to its plots if asked, and with the section of GPUs."""
    facts = machine()
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    page = [
        "# Benchmarks",
        "",
        _filled(_METHOD.format(rounds=run.rounds)),
        "",
        f"{facts['processor']}, {facts['cpus']} CPUs, {facts['vectors']}, {facts['system']}, "
        f"Python {facts['python']}; {versions}",
    ]
    if plots:
        page += ["", *(f"![{title}]({name})" for name, title in PLOTS.items())]
    frameworks = list(run.versions)
    if run.roofline:
        page += ["", "## The roofline", "", *_roofline(run.roofline)]
    if run.others():
        page += ["", "## Times", "", *tables.times(run.others(), frameworks, run.roofline)]
        page += ["", *tables.ratios(run.others(), frameworks)]
    if run.sweep():
        page += ["", "## One elementwise program by size", ""]
        page += [*tables.times(run.sweep(), frameworks, run.roofline), ""]
        page += tables.ratios(run.sweep(), frameworks)
    calls = [m for m in run.others() if m.workload.program in ("call", "call_dict")]
    if calls:
        page += ["", "## Overhead of a call", "", *tables.times(calls, frameworks, None)]
    if run.first_calls:
        page += ["", "## First call", "", _filled(_FIRST_CALL), ""]
        page += tables.first_calls(run.first_calls)
    if run.memory:
        page += ["", "## Memory", "", _filled(_MEMORY), "", *tables.memory(run.memory)]
    for variant in run.variants:
        page += ["", f"## {variant.title}", "", _filled(variant.note), ""]
        page += tables.variants(variant)
    failures = [
        f"* {m.workload.name}, {name}: {reason}"
        for measurements in (run.measurements, *(v.measurements for v in run.variants))
        for m in measurements
        for name, reason in m.failures.items()
    ]
    if failures:
        page += ["", "## Failures", "", *failures]
    if on_gpu:
        page += ["", *on_gpu]
    return "\n".join((*page, ""))


def _filled(text: str) -> str:
    """A paragraph in lines of the page's width."""
    return textwrap.fill(" ".join(text.split()), 100)


_METHOD = """
Written by `make bench`; do not edit. Every framework runs in a process of its own, one at a time,
in {rounds} rounds (3 where one takes seconds); results are checked first, against NumPy's or, where
it has none, a peer's. Times are medians of one call, ratios medians over rounds.
"""
_FIRST_CALL = """
From the start of a fresh interpreter to the first result, imports of NumPy and the framework
counted; beside it, the call alone. Cold: nothing is cached; warm: on disk is what the cold run left
(JAX's persistent compilation cache too). For every framework alike, a run that is not measured
comes first, so that modules are compiled to byte code, as pip leaves them. kernels: how many
pyrelay compiled, cold and warm.
"""
_MEMORY = """
Fresh processes: the most that was resident during calls after the first two, beyond what was with
the framework at work on a small program and NumPy's arguments made. Copies of arguments, results,
what lies between, and compiled code count (VmHWM in /proc/self/status); no disk cache is used.
"""
_BOUND = """
A program's bound is the longer of two times: of the products it is defined by, at that rate, and of
moving its arguments and its result once, as fast as a copy that touches as many bytes. Its share is
the bound over pyrelay's time. Elementwise functions count as nothing, and convolutions as what they
are defined as: with fewer operations (Winograd's) a share can pass 100%. Where dependent steps,
searches or the call itself take the time, there is no share.
"""


def _roofline(found: Roofline) -> list[str]:
    """What was measured of the machine, in words."""
    sizes = ", ".join(
        f"{speed / 1e9:.3g} GB/s of {size >> 10:,} KiB" for size, speed in found.bandwidth.items()
    )
    measured = (
        f"Measured in this run on {found.threads} threads: {found.flops['f32'] / 1e9:.3g} GFLOP/s "
        f"of float32 and {found.flops['f64'] / 1e9:.3g} of float64 (fused multiply-adds in "
        f"registers); copies read and write {sizes}."
    )
    return [_filled(measured), "", _filled(_BOUND)]


def as_json(run: Run) -> dict[str, Any]:
    """Everything measured, the single rounds too."""
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": dict(run.versions),
        "roofline": asdict(run.roofline) if run.roofline else None,
        "workloads": {
            m.workload.name: {
                **_as_json(m),
                "flops": m.flops,
                "bytes": m.touched,
                "share": tables.share(m, run.roofline),
            }
            for m in run.measurements
        },
        "first_calls": [asdict(row) for row in run.first_calls],
        "memory": {row.title: dict(row.held) for row in run.memory},
        "variants": {
            variant.title: {
                m.workload.name: {
                    **_as_json(m), **{title: cells[k] for title, cells in variant.beside.items()}
                }
                for k, m in enumerate(variant.measurements)
            }
            for variant in run.variants
        },
    }


def _as_json(m: Measurement) -> dict[str, Any]:
    return {"seconds": m.rounds, "first": m.first, "failures": m.failures}


def write(run: Run) -> None:
    """Write the page, its plots and the JSON of a whole run."""
    from benchmarks import plots

    RESULTS.mkdir(exist_ok=True)
    PAGE.parent.mkdir(exist_ok=True)
    file = RESULTS / f"{date.today().isoformat()}.json"
    file.write_text(json.dumps(as_json(run), indent=1) + "\n", encoding="utf-8")
    drawn = (plots.peers(run), plots.roofline(run), plots.sizes(run))
    for name, text in zip(PLOTS, drawn, strict=True):
        PAGE.with_name(name).write_text(text, encoding="utf-8")
    PAGE.write_text(markdown(run, plots=True, on_gpu=gpu_report.newest()), encoding="utf-8")
