"""`make bench`: measure everything, print the tables, write them down.

python -m benchmarks                        all of it; writes docs/benchmarks.md
python -m benchmarks matmul_512 call        times of these workloads only; writes nothing
python -m benchmarks --sections memory      these sections only; writes nothing
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks import first_call, memory, report, roofline, variants
from benchmarks.driver import Measurement, measure, workers
from benchmarks.first_call import FirstCall
from benchmarks.frameworks import MODULES, OURS
from benchmarks.report import Run
from benchmarks.tables import FirstCallRow, MemoryRow
from benchmarks.workloads import BY_NAME, WORKLOADS, Workload

SECTIONS = ("times", "roofline", "first", "memory", "threads", "checks")
FIRST_CALLS = (
    # workload, title, peers beside pyrelay
    ("elementwise_float32_1000", "elementwise", ("jax", "numba")),
    ("softmax", "softmax", ("jax", "numba")),
    ("lstm_forward_64", "LSTM forward, 64 units", ("jax", "numba")),
    ("lstm_gradient_64", "LSTM gradient, 64 units", ("jax",)),
    ("mlp_gradient", "perceptron gradient", ("jax",)),
    ("transformer_gradient", "transformer block, gradient", ("jax",)),
    (first_call.CHAIN + "400", "400 statements in a row", ()),
    ("nest", "five loops that write and swap", ("numba",)),
)
_WARM_GOAL = 0.3
_REPEATS = 3


def first_calls(repeats: int, installed: set[str]) -> list[FirstCallRow]:
    """The first-call table, pyrelay's rows before its peers'."""
    rows: list[FirstCallRow] = []
    for workload, title, peers in FIRST_CALLS:
        print(f"first call: {title}", file=sys.stderr)
        frameworks = [name for name in (OURS, *peers) if name in installed]
        # numba caches only what says so, which the programs, as people write them, do not.
        found = first_call.measure(frameworks, workload, repeats, caching=(OURS, "jax"))
        theirs = found.get("jax")
        jax = theirs.cold if isinstance(theirs, FirstCall) else None
        for name, figures in found.items():
            goals = (jax, _WARM_GOAL) if name == OURS else (None, None)
            if isinstance(figures, str):
                rows.append(FirstCallRow(name, title, None, figures, *goals))
            else:
                rows.append(FirstCallRow(name, title, figures, None, *goals))
    return rows


def memory_held(installed: set[str]) -> list[MemoryRow]:
    """What each framework holds, by workload."""
    rows = []
    for workload in memory.WORKLOADS:
        title = BY_NAME[workload].title
        print(f"memory: {title}", file=sys.stderr)
        held: dict[str, int | str | None] = {}
        for framework in memory.FRAMEWORKS:
            if framework in installed:
                try:
                    held[framework] = memory.measure(framework, workload)
                except RuntimeError as reason:
                    held[framework] = f"failed: {reason}"
        rows.append(MemoryRow(title, held))
    return rows


def times(
    chosen: Sequence[Workload], frameworks: Sequence[str], rounds: int, seconds: float
) -> tuple[list[Measurement], dict[str, str]]:
    """Measurements of the workloads, and the versions of the frameworks that are installed."""
    with workers(frameworks) as crew:
        for worker in crew:
            if worker.missing:
                print(f"{worker.framework} is left out: {worker.missing}", file=sys.stderr)
        crew = [worker for worker in crew if not worker.missing]
        versions = {worker.framework: worker.version for worker in crew}
        measurements = []
        for workload in chosen:
            print(workload.title, file=sys.stderr)
            measurements.append(measure(workload, crew, rounds, seconds))
    return measurements, versions


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("workloads", nargs="*", help="names; all of them when none is given")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of paired timings")
    parser.add_argument("--seconds", type=float, default=0.1, help="timing per round")
    parser.add_argument("--frameworks", nargs="+", choices=MODULES, default=list(MODULES))
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=None)
    options = parser.parse_args()
    unknown = [name for name in options.workloads if name not in BY_NAME]
    if unknown:
        parser.error(f"no workload is called {unknown[0]}; there are {', '.join(BY_NAME)}")
    whole = not options.workloads and not options.sections
    whole = whole and options.frameworks == list(MODULES)
    sections = options.sections or (SECTIONS if whole else ("times", "roofline"))
    if whole:
        from benchmarks import plots  # noqa: F401 -- what is missing is missed now, not at the end
    wanted = options.workloads or ([] if "times" not in sections else list(BY_NAME))
    chosen = [w for w in WORKLOADS if w.name in wanted]
    roof = roofline.measure() if "roofline" in sections else None
    measurements, versions = times(chosen, options.frameworks, options.rounds, options.seconds)
    installed = set(versions)
    compared = []
    if "threads" in sections:
        compared.append(variants.threads(options.rounds, options.seconds))
    if "checks" in sections:
        compared.append(variants.checks(options.rounds, options.seconds))
    run = Run(
        versions,
        options.rounds,
        measurements,
        roof,
        first_calls(_REPEATS, installed) if "first" in sections else (),
        memory_held(installed) if "memory" in sections and memory.available() else (),
        compared,
    )
    print(report.markdown(run))
    if whole:
        report.write(run)


if __name__ == "__main__":
    main()
