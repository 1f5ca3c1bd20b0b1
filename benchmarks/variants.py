"""The same framework in other settings: threads, and checks of indices.

In: what is timed and for how long. Out: `Variant`s, each some workloads measured in processes that
differ by one variable of their environment.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.driver import Measurement, Together, Worker, measure, workers
from benchmarks.roofline import Distance, cpus
from benchmarks.workloads import BY_NAME

THREADED = (
    "matmul_1024", "matmul_2048", "conv1_64", "conv3_64", "residual_8", "resnet18_1", "mobilenet_1",
    "attention", "transformer_gradient", "lstm_batch_256", "gelu_chain", "softmax", "elementwise",
)  # fmt: skip
CHECKED = (
    "gauss_seidel", "floyd_warshall", "edit_distance", "knapsack", "histogram", "lu", "fft", "blur",
    "kmeans", "elimination", "viterbi",
)  # fmt: skip
"""Loops over elements, in which most of the work is reading and writing them."""
_OFTEN = 4
"""Times as many rounds for threads: the host of a virtual machine may slow down either CPU."""


@dataclass(frozen=True)
class Variant:
    """A comparison: its settings by label, the workloads, and which label is the one compared."""

    title: str
    note: str
    labels: tuple[str, ...]
    measurements: Sequence[Measurement]
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """More columns: title to a cell for each workload."""


def _measured(
    settings: Sequence[tuple[str, str, Mapping[str, str]]],
    names: Sequence[str],
    rounds: int,
    seconds: float,
) -> list[Measurement]:
    found = []
    with workers(settings) as crew:
        for name in names:
            print(f"{', '.join(w.label for w in crew)}: {BY_NAME[name].title}", file=sys.stderr)
            found.append(measure(BY_NAME[name], crew, rounds, seconds))
    return found


def threads(rounds: int, seconds: float) -> Variant:
    """pyrelay on one thread, on all CPUs of this process, and in a process for each CPU."""
    most = cpus()
    one = {"PYRELAY_NUM_THREADS": "1"}
    labels = ("1 thread", f"{most} processes", f"{most} threads")
    distance = Distance()
    found: list[Measurement] = []
    lines: list[str] = []
    shortest: list[str] = []
    settings = [("pyrelay", f"process {k}", one) for k in range(most)]
    with workers([
        ("pyrelay", labels[0], one), *settings,
        ("pyrelay", labels[2], {"PYRELAY_NUM_THREADS": str(most)}),
    ]) as crew:
        alone, *several, threaded = crew
        settled: list[Worker | Together] = [alone, Together(labels[1], several), threaded]
        for name in THREADED:
            print(f"{', '.join(labels)}: {BY_NAME[name].title}", file=sys.stderr)
            near = [distance.seconds()]
            found.append(measure(BY_NAME[name], settled, _OFTEN * rounds, seconds))
            near.append(distance.seconds())
            shortest.append(fastest(found[-1], labels[0], labels[2]))
            lines.append(", ".join("" if s is None else f"{s * 1e9:.0f}" for s in near))
    return Variant(
        f"One thread and {most}",
        f"""pyrelay with PYRELAY_NUM_THREADS set, each in a process of its own. {most} processes: of
        one thread each, all at once; a result's time is until the next of any of them, so 1 thread
        / {most} processes is what {most} threads can gain at most. Where something else slows down
        one of the CPUs, each of the threads waits for that one, and processes do not. At their
        fastest: the shortest round of either, which nothing else has slowed down. line: nanoseconds
        in which a line of the cache goes from one CPU to another, before and after (some 20 to 30
        where they share a cache; a virtual machine's may not, and may be moved).""",
        labels,
        found,
        {"at their fastest": shortest, "line, ns": lines},
    )


def fastest(found: Measurement, alone: str, threaded: str) -> str:
    """How many times as fast threads are, by the shortest rounds of both."""
    if alone not in found.rounds or threaded not in found.rounds:
        return ""
    return f"{min(found.rounds[alone]) / min(found.rounds[threaded]):.2f}"


def checks(rounds: int, seconds: float) -> Variant:
    """pyrelay, whose indices are checked, beside numba's loops with and without checks."""
    settings: list[tuple[str, str, Mapping[str, str]]] = [
        ("pyrelay", "pyrelay", {}),
        ("numba", "numba", {}),
        ("numba", "numba, checked", {"NUMBA_BOUNDSCHECK": "1"}),
    ]
    return Variant(
        "Checks of indices",
        "pyrelay checks every index that it cannot prove to be in range, and counts a negative one "
        "from the end; numba does the latter only, unless NUMBA_BOUNDSCHECK is set.",
        tuple(label for _, label, _ in settings),
        _measured(settings, CHECKED, rounds, seconds),
    )
