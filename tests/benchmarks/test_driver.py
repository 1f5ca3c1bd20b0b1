"""Timing is in turn, checked against NumPy, and a framework that fails spoils nothing."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks import first_call, report, tables
from benchmarks.driver import Measurement, Together, difference, measure, workers
from benchmarks.first_call import FirstCall
from benchmarks.inputs import small_arrays
from benchmarks.report import Run
from benchmarks.roofline import Distance, Roofline, cpus
from benchmarks.tables import FirstCallRow, MemoryRow
from benchmarks.variants import Variant
from benchmarks.worker import seconds_per_call
from benchmarks.workloads import BY_NAME, Goal, Workload

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


def test_processes_that_work_at_once_have_the_rate_of_all() -> None:
    class Fixed:
        framework, variables = "pyrelay", {}

        def __init__(self, *replies: dict[str, object]) -> None:
            self.sent: list[object] = []
            self.replies = list(replies)

        def send(self, **request: object) -> None:
            self.sent.append(request)

        def reply(self) -> dict[str, object]:
            assert len(second.sent) == len(first.sent)  # both work before the first is waited for
            return self.replies.pop(0)

    first = Fixed({"first": 1.0}, {"seconds": 2.0}, {"seconds": 1.0})
    second = Fixed({"first": 3.0}, {"seconds": 2.0}, {"failed": "no"})
    both = Together("2 processes", [first, second])  # type: ignore[list-item]
    assert both.ask(do="prepare") == {"first": 1.0}
    assert both.ask(do="time") == {"seconds": 1.0}
    assert both.ask(do="time") == {"failed": "no"}


@pytest.mark.slow
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
    assert tables.duration(seconds) == text


def test_a_call_longer_than_the_budget_is_made_once() -> None:
    calls = 0

    def run() -> None:
        nonlocal calls
        calls += 1
        time.sleep(0.002)

    assert seconds_per_call(run, 0.001) >= 0.002
    assert calls == 1


def test_a_process_in_another_setting_goes_by_its_label() -> None:
    with workers([("numpy", "in 1 thread", {"OMP_NUM_THREADS": "1"}), "numpy"]) as crew:
        measurement = measure(CALL, crew, rounds=1, budget=0.001)
    assert set(measurement.rounds) == {"in 1 thread", "numpy"}
    assert measurement.ratio("numpy", own="in 1 thread") is not None


def test_a_workload_on_objects_has_processes_with_no_past_in_the_same_settings() -> None:
    with workers([("numpy", "in 1 thread", {"OMP_NUM_THREADS": "1"})]) as crew:
        crew[0].process.kill()  # so that it cannot be the one that answers
        crew[0].process.wait()
        measurement = measure(replace(CALL, objects=True), crew, rounds=1, budget=0.001)
    assert measurement.failures == {}
    assert set(measurement.rounds) == {"in 1 thread"}


TIMED = Measurement(
    Workload("w", "a workload", "call", partial(small_arrays), goals=(Goal("jax"),)),
    {"numpy": [4e-3], "jax": [2e-3], "pyrelay": [1e-3]},
    failures={"torch": "RuntimeError: no"},
    flops=4e6,
    touched=1000,
)


def whole_run() -> Run:
    sized = Workload("elementwise_float32_1000", "a size", "elementwise", tuple)
    return Run(
        dict.fromkeys(("numpy", "jax", "torch", "pyrelay"), "1.0"),
        rounds=1,
        measurements=[TIMED, Measurement(sized, {"numpy": [2e-6], "pyrelay": [1e-6]})],
        roofline=Roofline({"f32": 8e9, "f64": 4e9}, {1 << 16: 1e11, 1 << 28: 1e10}, threads=2),
        first_calls=[
            FirstCallRow("pyrelay", "its first call", None, "it crashed", 1.5, 0.7),
            FirstCallRow("pyrelay", "one", FirstCall(2, 1, 0.5, 0.25, 1e-6, 3, 0), None, 1.5, 0.7),
            FirstCallRow("numba", "one", FirstCall(2, 1, None, None, 1e-6, None, None), None, None,
                         None),
        ],
        memory=[MemoryRow("held", {"jax": 20_000_000, "torch": "failed", "pyrelay": 5_000_000})],
        variants=[
            Variant("Threads", "a note", ("1 thread", "2 threads"), [
                Measurement(CALL, {"1 thread": [3.0], "2 threads": [2.0]})
            ], {"line, ns": ["26, 140"]})
        ],
    )  # fmt: skip


def test_the_page_has_times_ratios_verdicts_and_failures() -> None:
    lines = [" ".join(line.split()) for line in report.markdown(whole_run()).splitlines()]
    assert (
        "| a workload | 4 ms | 2 ms | failed | 1 ms | 50% | 0.50 x jax (at most 1.00: met) |"
    ) in lines
    assert "| a workload | 0.25 | 0.50 | |" in lines
    assert (
        "| one | pyrelay | 2 s | 1 s | 500 ms | 250 ms | 3, 0 | 1 µs |"
        " cold 1.33 x jax (at most 1.00: missed), warm under 700 ms: met |"
    ) in lines
    assert "| one | numba | 2 s | 1 s | | | | 1 µs | |" in lines
    assert "| held | 20 MB | failed | 5.0 MB | 0.25 |" in lines
    assert f"| {CALL.title} | 3 s | 2 s | 1.50 | 26, 140 |" in lines
    assert "* w, torch: RuntimeError: no" in lines
    assert any("it crashed" in line for line in lines)


def test_first_calls_are_measured_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first turn leaves byte code and is not counted; what fails is not started again."""
    started = []

    def process(framework: str, *_: object) -> dict[str, object]:
        started.append(framework)
        if framework == "torch":
            raise RuntimeError("no torch")
        seconds = float(len(started))
        return {"whole": seconds, "call": seconds / 2, "per_call": 1e-6, "kernels": None}

    monkeypatch.setattr(first_call, "_fresh_process", process)
    names = ("pyrelay", "torch", "numba")
    found = first_call.measure(names, "call", 2, caching=("pyrelay",))
    assert started == ["pyrelay", "torch", "numba", *["pyrelay", "pyrelay", "numba"] * 2]
    assert found["torch"] == "no torch"
    assert found["pyrelay"] == FirstCall((4 + 7) / 2, 2.75, (5 + 8) / 2, 3.25, 1e-6, None, None)
    assert found["numba"] == FirstCall((6 + 9) / 2, 3.75, None, None, 1e-6, None, None)


def test_the_bound_is_the_longer_of_computing_and_moving() -> None:
    roofline = Roofline({"f32": 8e9, "f64": 4e9}, {1 << 16: 1e11, 1 << 28: 1e10}, threads=2)
    assert roofline.least_seconds(8e9, 1000, "f32") == 1.0
    assert roofline.least_seconds(8e9, 1000, "f64") == 2.0
    assert roofline.least_seconds(0, 1e9, "f32") == 0.1
    assert roofline.least_seconds(0, 1e4, "f32") == 1e-7


@pytest.mark.skipif(cpus() < 2, reason="one CPU only")
def test_a_line_goes_between_two_cpus_in_less_than_a_hundred_microseconds() -> None:
    before = os.sched_getaffinity(0)
    seconds = Distance().seconds()
    assert os.sched_getaffinity(0) == before
    assert seconds is None or 1e-9 < seconds < 1e-4


@pytest.mark.slow
def test_plots_of_a_run_are_small_and_the_same_each_time() -> None:
    pytest.importorskip("matplotlib")
    from benchmarks import plots

    for draw in (plots.peers, plots.roofline, plots.sizes):
        text = draw(whole_run())
        assert text == draw(whole_run())
        assert text.startswith("<?xml")
        assert len(text) < 40_000
