"""What `make gpu-bench` does on a GPU, with a stand-in for CuPy."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import gpu, gpu_timing
from benchmarks.gpu_timing import Timing
from pyrelay import config
from pyrelay.devices import cuda


class Driver:
    """pyrelay's own programs run on the CPU, on NumPy's arrays."""

    compiler = SimpleNamespace(compilations=[])


CUPY: Any = SimpleNamespace(
    asarray=np.asarray, zeros=np.zeros, empty=np.empty, copyto=np.copyto,
    random=SimpleNamespace(random=lambda shape, dtype: np.zeros(shape, dtype)),
    cuda=SimpleNamespace(Device=lambda: SimpleNamespace(synchronize=lambda: None)),
)


def test_the_time_of_a_call_is_that_of_a_run_with_its_end(monkeypatch: Any) -> None:
    at, calls, waits = [0.0], [0], [0]

    def call() -> None:
        at[0] += 0.001
        calls[0] += 1

    def wait(_: Any) -> None:
        at[0] += 0.02
        waits[0] += 1

    monkeypatch.setattr(gpu_timing.time, "perf_counter", lambda: at[0])
    assert abs(gpu_timing.least(call, wait) - 2000.0) < 1e-6
    assert calls[0] == gpu_timing.WARM + gpu_timing.ROUNDS * gpu_timing.CALLS
    assert waits[0] == gpu_timing.WARM + gpu_timing.ROUNDS


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


def timed(monkeypatch: Any, seconds: float = 60.0, **programs: Any) -> list[Timing]:
    monkeypatch.setattr(gpu_timing.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(gpu_timing, "_COPIED", 1 << 10)
    monkeypatch.setattr(cuda, "driver", Driver)
    monkeypatch.setattr(gpu, "TIMED", programs)
    noted: list[int] = []
    found = gpu_timing.timings(
        sys.modules[gpu.__name__], CUPY, seconds, lambda found: noted.append(len(found))
    )
    assert noted == [len(programs)] * (2 * len(programs) if seconds > 0 else 0)
    return found


def doubled(x: Any) -> Any:
    return x + x


def squares(x: Any) -> Any:
    return (x * x).sum()


def test_programs_are_timed_with_what_is_installed(monkeypatch: Any) -> None:
    x = np.ones(3)
    found = timed(monkeypatch, doubled=(doubled, None, (x,)), gradient=(squares, 0, (x,)))
    assert [list(t.microseconds) for t in found] == [["pyrelay", "cupy"], ["pyrelay"]]
    assert all(t.first > 0 for t in found)


def test_a_program_that_fails_is_told_and_the_others_are_timed(monkeypatch: Any) -> None:
    def broken(x: Any) -> Any:
        raise ValueError("no\nnever")

    x = np.ones(3)
    found = timed(monkeypatch, broken=(broken, None, (x,)), doubled=(doubled, None, (x,)))
    assert found[0].errors == {"pyrelay": "ValueError: no", "cupy": "ValueError: no"}
    assert list(found[1].microseconds) == ["pyrelay", "cupy"]
    assert gpu_timing.table(found).splitlines()[-2:] == [
        "broken, pyrelay: ValueError: no", "broken, cupy: ValueError: no",
    ]  # fmt: skip


def test_when_time_is_up_nothing_is_begun(monkeypatch: Any) -> None:
    (found,) = timed(monkeypatch, -1.0, doubled=(doubled, None, (np.ones(3),)))
    assert found.errors == {"pyrelay": "out of time", "cupy": "out of time"}


def test_cells_of_what_is_missing_are_empty() -> None:
    text = gpu_timing.table([
        Timing("a", {"pyrelay": 1.0, "cupy": 2.5}, first=1.0, compiled=0.5, rate=0.9),
        Timing("b", {"jax": 3.0}),
    ])
    assert text.splitlines() == [
        "| microseconds of a call | pyrelay | cupy | jax | of a copy's rate | first call s "
        "| NVRTC s |",
        "|---|---|---|---|---|---|---|",
        "| a | 1.0 | 2.5 |  | 0.90 | 1.00 | 0.50 |", "| b |  |  | 3.0 |  |  |  |",
    ]  # fmt: skip


def test_products_have_the_precision_that_a_program_is_called_after(monkeypatch: Any) -> None:
    seen: dict[str, set[str]] = {"a": set(), "a in TF32": set()}

    def noting(name: str) -> Any:
        return lambda x: seen[name].add(config.current().matmul_precision)

    monkeypatch.setattr(gpu_timing, "_mine", lambda function, *_: lambda: function(0))
    timed(monkeypatch, **{name: (noting(name), None, (np.ones(3),)) for name in seen})
    assert seen == {"a": {"highest"}, "a in TF32": {"tf32"}}


def test_bfloat16_is_handed_over_by_its_bits() -> None:
    brain = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    given = np.array([1.5, -2], brain)
    taken = gpu_timing.handed_over(given, lambda bits: bits + np.int16(0), brain)
    assert taken.dtype == brain
    np.testing.assert_array_equal(taken, given)
    assert gpu_timing.handed_over(np.ones(2), list, brain) == [1.0, 1.0]
