"""Timing is in turn, checked against NumPy, and a framework that fails spoils nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import report
from benchmarks.driver import Measurement, difference, measure, workers
from benchmarks.report import FirstCallRow, Run
from benchmarks.worker import seconds_per_call
from benchmarks.workloads import BY_NAME, Goal, Workload, small_arrays

CALL = BY_NAME["call"]


def test_two_frameworks_are_checked_and_timed_each_in_its_process() -> None:
    with workers(["numpy", "numba"]) as crew:
        assert len({worker.process.pid for worker in crew}) == 2
        measurement = measure(CALL, crew, rounds=2, budget=0.001)
    assert measurement.failures == {}
    assert {name: len(rounds) for name, rounds in measurement.rounds.items()} == {
        "numpy": 2,
        "numba": 2,
    }
    assert all(worker.process.returncode == 0 for worker in crew)


def test_a_process_that_dies_is_a_failure_of_its_own_only() -> None:
    with workers(["numpy", "numba"]) as crew:
        crew[1].process.kill()
        crew[1].process.wait()
        measurement = measure(CALL, crew, rounds=1, budget=0.001)
    assert "its process ended" in measurement.failures["numba"]
    assert measurement.seconds("numpy") is not None


def test_results_that_differ_are_told(tmp_path: Path) -> None:
    def saved(name: str, *arrays: np.ndarray) -> Path:
        np.savez(tmp_path / name, *arrays)
        return tmp_path / f"{name}.npz"

    right = saved("right", np.ones(3))
    assert difference(CALL, right, saved("same", np.ones(3) + 1e-7)) is None
    assert difference(CALL, right, saved("off", np.ones(3) + 0.5)) == "a result off by 0.5"
    assert "shape (4,)" in str(difference(CALL, right, saved("long", np.ones(4))))
    assert "2 results" in str(difference(CALL, right, saved("two", np.ones(3), np.ones(3))))


def test_the_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    measurement = Measurement(CALL, {"pyrelay": [1.0, 20.0, 3.0], "jax": [2.0, 10.0, 2.0]})
    assert measurement.ratio("jax") == 1.5
    assert measurement.ratio("torch") is None


def test_a_sample_of_a_fast_call_holds_many_calls() -> None:
    calls = 0

    def run() -> None:
        nonlocal calls
        calls += 1

    assert 0 < seconds_per_call(run, 0.002) < 1e-4
    assert calls > 100


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (2.5, "2.5 s"), (0.0321, "32.1 ms"), (4.5e-6, "4.5 µs"), (3e-8, "30 ns")],
)
def test_durations_read_well(seconds: float | None, text: str) -> None:
    assert report.duration(seconds) == text


def test_the_page_has_times_ratios_verdicts_and_failures() -> None:
    workload = Workload("w", "a workload", "call", partial(small_arrays), goals=(Goal("jax"),))
    timed = Measurement(
        workload,
        {"numpy": [4e-3], "jax": [2e-3], "pyrelay": [1e-3]},
        failures={"torch": "RuntimeError: no"},
    )
    row = FirstCallRow("pyrelay", "its first call", None, "it crashed", 1.5, 0.7)
    versions = dict.fromkeys(("numpy", "jax", "torch", "pyrelay"), "1.0")
    page = report.markdown(Run([timed], [row], versions, rounds=1))
    assert "0.50 x jax (at most 1.00: met)" in page
    assert "| a workload | 4 ms" in " ".join(page.split(" ")).replace("  ", " ")
    assert "* w, torch: RuntimeError: no" in page
    assert "it crashed" in page
