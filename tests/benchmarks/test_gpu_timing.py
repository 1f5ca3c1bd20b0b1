"""What `make gpu-bench` does on a GPU, with a stand-in for CuPy's events."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import gpu, gpu_timing
from benchmarks.gpu_timing import Timing


class Clock:
    """Events that note how many calls were made before."""

    def __init__(self) -> None:
        self.calls = 0
        clock = self

        class Event:
            def record(self) -> None:
                self.at = clock.calls

            def synchronize(self) -> None:
                pass

        self.cupy = SimpleNamespace(
            asarray=np.asarray,
            cuda=SimpleNamespace(
                Event=Event, get_elapsed_time=lambda a, b: 0.004 * (b.at - a.at)
            ),
        )

    def call(self) -> None:
        self.calls += 1


def test_the_time_of_a_call_is_that_between_events() -> None:
    clock = Clock()
    assert abs(gpu_timing.least(clock.call, clock.cupy) - 4.0) < 1e-9
    assert clock.calls == gpu_timing.WARM + gpu_timing.ROUNDS * gpu_timing.CALLS


def test_functions_are_rebuilt_with_another_numpy() -> None:
    seen: list[str] = []

    class Other:
        def __getattr__(self, name: str) -> Any:
            seen.append(name)
            return getattr(np, name)

    space = gpu_timing.rebuilt(gpu, Other())
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(space["softmax_loss"](x), gpu.softmax_loss(x))
    assert seen == ["exp"]


def test_programs_are_timed_with_what_is_installed(monkeypatch: Any) -> None:
    def doubled(x: Any) -> Any:
        return x + x

    def squares(x: Any) -> Any:
        return (x * x).sum()

    timed = {"doubled": (doubled, None, (np.ones(3),)), "gradient": (squares, 0, (np.ones(3),))}
    monkeypatch.setattr(gpu_timing.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(gpu, "TIMED", timed)
    found = gpu_timing.timings(sys.modules[gpu.__name__], Clock().cupy)
    assert [list(t.microseconds) for t in found] == [["pyrelay", "cupy"], ["pyrelay"]]


def test_cells_of_what_is_missing_are_empty() -> None:
    text = gpu_timing.table([Timing("a", {"pyrelay": 1.0, "cupy": 2.5}), Timing("b", {"jax": 3.0})])
    assert text.splitlines() == [
        "| microseconds of a call | pyrelay | cupy | jax |", "|---|---|---|---|",
        "| a | 1.0 | 2.5 |  |", "| b |  |  | 3.0 |",
    ]  # fmt: skip
