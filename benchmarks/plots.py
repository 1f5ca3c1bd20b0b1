"""Plots of a run.

In: a `Run`. Out: texts of SVG, a few kilobytes each: letters stay letters, and the same run gives
the same text.
"""

from __future__ import annotations

import io
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from benchmarks.frameworks import OURS
from benchmarks.report import Run

_SETTINGS: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "pyrelay", "font.size": 8, "axes.spines.top": False,
    "axes.spines.right": False, "path.simplify_threshold": 0.5,
}  # fmt: skip


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _axes(*, columns: int = 1, width: float = 6.0) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, 3.2), layout="constrained")
    return figure, figure.subplots(1, columns, sharey=True)


def peers(run: Run) -> str:
    """How many times as fast as each peer pyrelay is, a line per peer, workloads in order."""
    with matplotlib.rc_context(_SETTINGS):
        figure, axes = _axes()
        for peer in run.versions:
            ratios = sorted(m.ratio(peer) or 0.0 for m in run.others() if m.ratio(peer))
            if peer != OURS and ratios:
                count = len(ratios)
                places = [(k + 0.5) / count for k in range(count)]
                axes.plot(places, [1 / r for r in ratios], ".-", ms=3, lw=1, label=peer)
        axes.axhline(1.0, color="black", lw=0.8)
        axes.set_yscale("log")
        axes.set_xlabel("workloads that both have, from best to worst")
        axes.set_ylabel("peer's time / pyrelay's")
        axes.legend(frameon=False)
        return _svg(figure)


def roofline(run: Run) -> str:
    """Operations a second of programs with products, against operations per byte touched."""
    assert run.roofline is not None
    with matplotlib.rc_context(_SETTINGS):
        figure, axes = _axes()
        roof = run.roofline
        for k, (dtype, peak) in enumerate(roof.flops.items()):
            found = [
                (m.flops / m.touched, m.flops / seconds / 1e9)
                for m in run.others()
                if m.dtype == dtype and m.flops and (seconds := m.seconds(OURS))
            ]
            if not found:
                continue
            memory = roof.bandwidth[max(roof.bandwidth)]
            ends = min(x for x, _ in found), max(x for x, _ in found)
            reach = sorted({*ends, min(max(peak / memory, ends[0]), ends[1])})
            axes.plot(reach, [min(peak, x * memory) / 1e9 for x in reach], color=f"C{k}", lw=1)
            axes.plot(*zip(*found, strict=True), ".", color=f"C{k}", ms=4, label=dtype)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("operations per byte of arguments and results")
        axes.set_ylabel("GFLOP/s of pyrelay; lines: arithmetic and main memory")
        axes.legend(frameon=False)
        return _svg(figure)


def sizes(run: Run) -> str:
    """Elements a second of one elementwise program, by size, for float32 and float64."""
    with matplotlib.rc_context(_SETTINGS):
        figure, panels = _axes(columns=2, width=7.0)
        for axes, dtype in zip(panels, ("float32", "float64"), strict=True):
            for framework in run.versions:
                found = [
                    (int(size), int(size) / seconds / 1e9)
                    for m in run.sweep()
                    for kind, size in [m.workload.name.split("_")[1:]]
                    if kind == dtype and (seconds := m.seconds(framework))
                ]
                if found:
                    axes.plot(*zip(*found, strict=True), ".-", ms=4, lw=1, label=framework)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel(f"{dtype} elements")
        panels[0].set_ylabel("billion elements a second")
        panels[0].legend(frameon=False)
        return _svg(figure)
