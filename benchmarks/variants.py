"""The same framework in other settings: threads, and checks of indices.

In: what is timed and for how long. Out: `Variant`s, each some workloads measured in processes that
differ by one variable of their environment.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.driver import Measurement, measure, workers
from benchmarks.roofline import cpus
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


@dataclass(frozen=True)
class Variant:
    """A comparison: its settings by label, the workloads, and which label is the one compared."""

    title: str
    note: str
    labels: tuple[str, ...]
    measurements: Sequence[Measurement]


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
    """pyrelay on one thread and on all CPUs of this process."""
    most = cpus()
    settings = [
        ("pyrelay", label, {"PYRELAY_NUM_THREADS": str(count)})
        for label, count in (("1 thread", 1), (f"{most} threads", most))
    ]
    return Variant(
        f"One thread and {most}",
        "pyrelay with PYRELAY_NUM_THREADS set, each in a process of its own.",
        tuple(label for _, label, _ in settings),
        _measured(settings, THREADED, rounds, seconds),
    )


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
