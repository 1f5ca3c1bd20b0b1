"""One library's process of `make gpu-bench`, with NumPy in the place of a library."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import gpu_programs, gpu_worker
from benchmarks.gpu_worker import LIBRARIES, MARK, Library, difference, drawn, leaves, told
from pyrelay import config


def plain(
    seen: Callable[[], None] = lambda: None, wrong: float = 0.0
) -> Library:
    def called(function: Callable[..., Any], argnums: Any, args: list[Any]) -> Callable[[], Any]:
        seen()
        return lambda: function(*args) + wrong

    return Library(
        np.asarray, lambda shape, dtype: np.zeros(shape, dtype), called, lambda _: None, np.asarray
    )


def squares(x: Any) -> Any:
    return (x * x).sum()


def prepared(monkeypatch: Any, **programs: Any) -> None:
    monkeypatch.setattr(gpu_programs, "TIMED", programs)


def test_a_result_is_compared_with_numpys_before_it_is_timed(
    monkeypatch: Any, tmp_path: Path
) -> None:
    prepared(monkeypatch, squares=(squares, None, (gpu_programs.f32(100),)))
    gpu_worker.reference(0, "squares", tmp_path)
    found = told("cupy", plain(), 0, "squares", tmp_path)
    assert found["microseconds"] > 0
    assert found["difference"] < 1e-6
    (error,) = told("cupy", plain(wrong=1.0), 0, "squares", tmp_path).values()
    assert error.startswith("ValueError: the result is ")
    assert error.endswith("from NumPy's")


def test_what_is_not_a_number_is_wrong(monkeypatch: Any, tmp_path: Path) -> None:
    prepared(monkeypatch, squares=(squares, None, (gpu_programs.f32(100),)))
    gpu_worker.reference(0, "squares", tmp_path)
    assert list(told("cupy", plain(wrong=float("nan")), 0, "squares", tmp_path)) == ["error"]


def test_gradients_are_compared_with_those_of_the_cpu(monkeypatch: Any, tmp_path: Path) -> None:
    prepared(monkeypatch, slope=(squares, 0, (gpu_programs.f32(8),)))
    gpu_worker.reference(0, "slope", tmp_path)
    (x,) = drawn(0, "slope")
    assert difference([2.0 * x.astype(np.float64)], tmp_path / "0.npz") < 1e-6


def test_arguments_are_drawn_alike_and_weights_as_widely_as_they_say(monkeypatch: Any) -> None:
    own = np.arange(3.0)
    told_by_shape = gpu_programs.f32(50, 40), gpu_programs.weights(1200, 64)
    prepared(monkeypatch, a=(squares, None, (*told_by_shape, own)))
    x, w, given = drawn(0, "a")
    np.testing.assert_array_equal(x, next(iter(drawn(0, "a"))))
    assert given is own
    assert x.dtype == w.dtype == np.float32
    assert 0.45 < np.abs(x).max() <= 0.5
    assert 0.045 < np.abs(w).max() <= 0.05  # the square root of 12 / 1200, halved


def test_a_sample_of_a_large_result_is_kept() -> None:
    (found,) = leaves((np.arange(1 << 20),), np.asarray)
    np.testing.assert_array_equal(found, np.arange(0, 1 << 20, 4))
    assert [a.tolist() for a in leaves((np.float32(2), [np.ones(2)]), np.asarray)] == [[2], [1, 1]]
    assert leaves(np.zeros(0), np.asarray)[0].shape == (0,)


def test_results_of_other_shapes_are_infinitely_far(tmp_path: Path) -> None:
    np.savez(tmp_path / "0.npz", np.ones(3))
    assert difference([np.ones(4)], tmp_path / "0.npz") == float("inf")
    assert difference([np.ones(4)], tmp_path / "1.npz") is None


def test_products_have_the_precision_that_a_program_is_called_after(
    monkeypatch: Any, tmp_path: Path
) -> None:
    seen: list[str] = []
    names = ("a", "a in TF32", "a in bfloat16")
    prepared(monkeypatch, **{n: (squares, None, (np.ones(3),)) for n in names})
    library = plain(lambda: seen.append(config.current().matmul_precision))
    for number, name in enumerate(names):
        told("cupy", library, number, name, tmp_path)
    assert seen == ["highest", "tf32", "tf32"]


def test_the_time_of_a_call_is_that_of_a_run_with_its_end(monkeypatch: Any) -> None:
    at, calls, waits = [0.0], [0], [0]

    def call() -> None:
        at[0] += 0.001
        calls[0] += 1

    def wait(_: Any) -> None:
        at[0] += 0.003
        waits[0] += 1

    monkeypatch.setattr(gpu_worker.time, "perf_counter", lambda: at[0])
    assert abs(gpu_worker.median(call, wait) - 1150.0) < 1e-6
    assert calls[0] == gpu_worker.WARM + 1 + gpu_worker.ROUNDS * 20
    assert waits[0] == gpu_worker.WARM + 1 + gpu_worker.ROUNDS


def test_functions_are_rebuilt_with_another_numpy() -> None:
    seen: list[str] = []

    class Other:
        def __getattr__(self, name: str) -> Any:
            seen.append(name)
            return getattr(np, name)

    space = gpu_worker.gpu_peers.rebuilt(gpu_programs, Other())
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(space["softmax_loss"](x), gpu_programs.softmax_loss(x))
    assert seen == ["exp"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_are_asked_for_what_they_have(library: str) -> None:
    asked = [n for n in gpu_programs.TIMED if not gpu_worker.is_left_out(library, n)]
    assert asked
    gradients = [n for n in asked if gpu_programs.TIMED[n][1] is not None]
    assert bool(gradients) == (library not in ("cupy", "cupy.fuse", "torch graph"))


def test_programs_are_told_as_they_come(monkeypatch: Any, tmp_path: Path, capsys: Any) -> None:
    prepared(monkeypatch, **{n: (squares, None, (np.ones(3),)) for n in "ab"})
    monkeypatch.setitem(gpu_worker.LIBRARIES, "numpy", functools.partial(plain))
    monkeypatch.setattr("sys.argv", ["", "numpy", "1", str(tmp_path)])
    gpu_worker.main()
    lines = [json.loads(line.removeprefix(MARK)) for line in capsys.readouterr().out.splitlines()]
    assert lines[:2] == [{"version": np.__version__}, {"begin": 1}]
    assert lines[2]["done"] == 1
    assert lines[2]["difference"] is None


def test_a_reference_that_fails_is_told(monkeypatch: Any, tmp_path: Path, capsys: Any) -> None:
    def broken(x: Any) -> Any:
        raise ValueError("no\nnever")

    prepared(monkeypatch, broken=(broken, None, (np.ones(3),)))
    monkeypatch.setattr("sys.argv", ["", "reference", "0", str(tmp_path)])
    gpu_worker.main()
    last = capsys.readouterr().out.splitlines()[-1]
    assert json.loads(last.removeprefix(MARK)) == {"done": 0, "error": "ValueError: no"}


def test_a_process_whose_gpu_has_stopped_ends_behind_the_program_that_stopped_it(
    monkeypatch: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken: list[int] = []

    def given(array: Any) -> Any:
        if broken:
            raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
        return array

    def called(function: Callable[..., Any], argnums: Any, args: list[Any]) -> Callable[[], Any]:
        if function is breaks:
            broken.append(1)
        if function is not squares:
            raise ValueError("no")
        return lambda: function(*args)

    def refused(x: Any) -> Any:
        return x

    def breaks(x: Any) -> Any:
        return x

    args = (gpu_programs.f32(8),)
    programs = {"refused": refused, "breaks": breaks, "squares": squares}
    prepared(monkeypatch, **{name: (f, None, args) for name, f in programs.items()})
    made = Library(given, plain().drawn, called, lambda _: None, np.asarray)
    monkeypatch.setitem(LIBRARIES, "cupy", lambda: made)
    monkeypatch.setattr(gpu_worker, "module_of", lambda library: "json")
    monkeypatch.setattr("sys.argv", ["", "cupy", "0", str(tmp_path)])
    with pytest.raises(SystemExit, match="the GPU has stopped"):
        gpu_worker.main()
    lines = [json.loads(each.removeprefix(MARK)) for each in capsys.readouterr().out.splitlines()]
    assert [each["done"] for each in lines if "done" in each] == [0, 1]
