"""Calls that do again what calls before have done, on a stand-in for CuPy."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices.gpu.call_drawing import Number
from pyrelay.devices.gpu.graphs import UnfitError
from pyrelay.errors import DeviceError
from tests.devices.fake_cupy import Cublas, Machine, installed
from tests.devices.fake_libraries import Tensor, Torch
from tests.devices.running_kernels import needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()
    with installed(made, monkeypatch, Cublas(made)):
        yield made


def ours(function: Callable[..., Any], *arguments: Any) -> list[str]:
    """The Python functions that a call runs, without those of the stand-in."""
    seen: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event != "call":
            return
        called, frames = frame.f_code.co_name, []
        while frame is not None and frame.f_code.co_name != "ours":
            frames.append(frame.f_code.co_filename)
            frame = frame.f_back
        beside = ("fake_cupy", "cuda_emulator", "weakref")  # of the stand-in's memory
        if not any(name in file for name in beside for file in frames):
            seen.append(called)

    gc.collect()  # or what other tests have left ends in between
    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return seen


def test_a_call_is_three_functions_of_ours(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "overrides", [])  # where settings were, calls look at them
    function = pyrelay.jit(lambda x, y, k: (np.exp(x) * k + y, np.sum(x)))
    x, y = np.linspace(0, 1, 6).reshape(2, 3), np.ones(3)
    given = machine.array(x), machine.array(y)

    def right(k: float) -> None:
        made, total = function(*given, k)
        assert made.get().tolist() == (np.exp(x) * k + y).tolist()
        assert total.shape == ()
        assert float(total.get()) == pytest.approx(x.sum())

    right(1.0)
    before = ours(function, *given, 2.0)
    right(3.0)
    hits = function.cache_info().hits
    assert ours(function, *given, 4.0) == ["call", "direct", "done"]
    assert len(before) > 30
    right(5.0)
    assert function.cache_info().hits == hits + 2
    first, second = (function(*given, 6.0)[0] for _ in range(2))
    assert first.data.ptr != second.data.ptr
    longer = machine.array(np.ones((5, 3)))
    for _ in range(3):
        assert function(longer, given[1], 0.0)[0].get().tolist() == np.ones((5, 3)).tolist()
    right(7.0)


def test_products_and_what_is_around_them_are_graphs(machine: Machine) -> None:
    function = pyrelay.jit(lambda x, w, k: np.tanh(np.tanh(x @ w) @ w) @ w * k)
    x, w = np.linspace(0, 1, 12).reshape(4, 3), np.linspace(-1, 1, 9).reshape(3, 3)
    given = machine.array(x), machine.array(w)
    for k in (2.0, 2.0, 2.0, 2.0, 3.0, 4.0, 2.0):
        found = function(*given, k).get()
        np.testing.assert_allclose(found, np.tanh(np.tanh(x @ w) @ w) @ w * k, rtol=1e-12)
    replays = machine.replays
    assert replays > 3
    kept = [function(*given, 2.0) for _ in range(3)]  # at other addresses
    for made in kept:
        np.testing.assert_allclose(made.get(), np.tanh(np.tanh(x @ w) @ w) @ w * 2.0, rtol=1e-12)
    assert machine.replays == replays + 3
    with config.override(matmul_precision="tf32"):
        assert function(*given, 2.0).shape == (4, 3)
    for k in range(40):  # no more graphs are made for numbers that are others at each call
        found = function(*given, 0.5 * k).get()
        np.testing.assert_allclose(found, np.tanh(np.tanh(x @ w) @ w) @ w * 0.5 * k, rtol=1e-12)


def test_what_hangs_on_numbers_and_what_python_reads_goes_the_long_way(machine: Machine) -> None:
    @pyrelay.jit
    def step(x: Any, y: Any, k: float) -> Any:
        x += y
        return float((x * 2.0 if k > 1.0 else x * 3.0).sum())

    x, y = machine.array(np.zeros(3)), machine.array(np.ones(3))
    for n, k in enumerate((2.0, 2.0, 0.5, 2.0, 0.5), 1):
        assert step(x, y, k) == 3 * n * (2.0 if k > 1.0 else 3.0)
    for use in (bool, lambda v: v == 1, lambda v: v + 1, hash):
        with pytest.raises((UnfitError, TypeError)):
            use(Number(0))


def test_what_is_written_in_place_is_written_once_a_call(machine: Machine) -> None:
    @pyrelay.jit
    def step(x: Any, y: Any) -> None:
        x += y

    x, y = machine.array(np.zeros(3)), machine.array(np.ones(3))
    for n in range(1, 6):
        step(x, y)
        assert x.get().tolist() == [n] * 3


def test_errors_of_the_device_are_told_and_the_next_call_is_fine(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, within = machine.cupy.cuda.driver.launchKernel, []
    trouble: list[str] = []

    def issue(*given: Any) -> None:
        if trouble:
            raise RuntimeError(trouble.pop())
        launch(*given)
        if within:
            within.pop()()

    monkeypatch.setattr(machine.cupy.cuda.driver, "launchKernel", issue)
    function = pyrelay.jit(lambda x: np.cumsum(x) * 2.0)
    x = machine.array(np.ones(40))
    wanted = (np.arange(40) + 1.0) * 2
    for _ in range(3):
        assert function(x).get().tolist() == wanted.tolist()
    trouble.append("CUDA_ERROR_LAUNCH_FAILED")
    with pytest.raises(DeviceError, match="does not launch a kernel"):
        function(x)
    assert function(x).get().tolist() == wanted.tolist()

    monkeypatch.setattr(machine, "limit", sum(machine.memory.sizes.values()))
    with pytest.raises(MemoryError, match=r"no memory on Fake GPU for an array of 320 bytes \("):
        function(x)
    monkeypatch.undo()
    assert function(x).get().tolist() == wanted.tolist()

    inside: list[Any] = []  # another call while one is on its way
    within.append(lambda: inside.append(function(machine.array(np.zeros(40)))))
    assert function(x).get().tolist() == wanted.tolist()
    assert inside[0].get().tolist() == [0.0] * 40
    stream = machine.cupy.cuda.Stream(non_blocking=True)
    for _ in range(3):
        with stream:
            assert function(x).get().tolist() == wanted.tolist()


def test_calls_with_tensors_of_torch_are_recorded_in_its_stream(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = Torch(machine)
    monkeypatch.setitem(sys.modules, "torch", torch)
    function = pyrelay.jit(lambda x: x * 2.0)
    x = torch.tensor(np.arange(4.0))
    for stream in (0, 0, 77, 77, 77, 0):
        torch.streams[0] = stream
        found = function(x)
        assert type(found) is Tensor
        assert found.get().tolist() == [0.0, 2.0, 4.0, 6.0]
        assert torch.taken[-1] == stream
    assert "done" in ours(function, x)
