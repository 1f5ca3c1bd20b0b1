"""`make bench`: measure everything, print the table, write it down.

python -m benchmarks                    all of it; writes docs/benchmarks.md
python -m benchmarks matmul_512 call    these workloads only; writes nothing
"""

from __future__ import annotations

import argparse
import sys

from benchmarks import first_call, report
from benchmarks.driver import OURS, measure, workers
from benchmarks.report import FirstCallRow, Run
from benchmarks.worker import MODULES
from benchmarks.workloads import BY_NAME, WORKLOADS

FIRST_CALLS = (
    # workload, title, cold and warm goals in seconds, peers measured cold beside pyrelay
    ("lstm_forward_64", "LSTM forward, 64 units", 1.5, 0.7, ("jax", "numba")),
    ("lstm_gradient_64", "LSTM gradient, 64 units", 3.0, 0.7, ("jax",)),
    ("mlp_gradient", "perceptron gradient", None, None, ("jax",)),
    (first_call.CHAIN + "100", "100 statements in a row", None, None, ()),
    (first_call.CHAIN + "200", "200 statements in a row", None, None, ()),
    (first_call.CHAIN + "400", "400 statements in a row", 3.0, None, ()),
    ("nest", "five loops that write and swap", 3.0, None, ("numba",)),
)


def first_calls(repeats: int, installed: set[str]) -> list[FirstCallRow]:
    """The first-call table, pyrelay's rows before its peers'."""
    rows: list[FirstCallRow] = []
    for workload, title, cold_goal, warm_goal, peers in FIRST_CALLS:
        for framework in (OURS, *peers):
            if framework not in installed:
                continue
            ours = framework == OURS
            goals = (cold_goal, warm_goal) if ours else (None, None)
            print(f"first call: {title}, {framework}", file=sys.stderr)
            try:
                figures = first_call.measure(framework, workload, repeats, warm=ours)
            except RuntimeError as reason:
                rows.append(FirstCallRow(framework, title, None, str(reason), *goals))
            else:
                rows.append(FirstCallRow(framework, title, figures, None, *goals))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", help="names; all of them when none is given")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of paired timings")
    parser.add_argument("--seconds", type=float, default=0.1, help="timing per round")
    parser.add_argument("--frameworks", nargs="+", choices=MODULES, default=list(MODULES))
    options = parser.parse_args()
    unknown = [name for name in options.workloads if name not in BY_NAME]
    if unknown:
        parser.error(f"no workload is called {unknown[0]}; there are {', '.join(BY_NAME)}")
    chosen = [w for w in WORKLOADS if not options.workloads or w.name in options.workloads]
    whole = not options.workloads and options.frameworks == list(MODULES)
    with workers(options.frameworks) as crew:
        for worker in crew:
            if worker.missing:
                print(f"{worker.framework} is left out: {worker.missing}", file=sys.stderr)
        crew = [worker for worker in crew if not worker.missing]
        versions = {worker.framework: worker.version for worker in crew}
        measurements = []
        for workload in chosen:
            print(workload.title, file=sys.stderr)
            measurements.append(measure(workload, crew, options.rounds, options.seconds))
    rows = first_calls(3, set(versions)) if whole else []
    run = Run(measurements, rows, versions, options.rounds)
    print(report.markdown(run))
    if whole:
        report.write(run)


if __name__ == "__main__":
    main()
