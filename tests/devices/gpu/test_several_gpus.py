"""Several GPUs: where calls run, what is compiled for whom, and arrays that lie apart."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices import cuda
from pyrelay.devices.gpu.array_libraries import moved_text
from pyrelay.errors import ConfigError, DeviceError
from tests.devices.fake_cupy import Machine, installed, ndarray
from tests.devices.fake_libraries import Torch
from tests.devices.running_kernels import needs_compiler

pytestmark = needs_compiler


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine(devices=2)
    with installed(made, monkeypatch):
        yield made


def on(machine: Machine, number: int, values: Any) -> ndarray:
    """An array of a GPU."""
    before, machine.number = machine.number, number
    made = machine.array(values)
    machine.number = before
    return made


def normal(x: Any) -> Any:
    return x / np.sqrt((x * x).sum()), x.sum()


def test_a_call_runs_where_its_arrays_lie_and_leaves_the_current_gpu(machine: Machine) -> None:
    def own(x: Any) -> Any:  # no other test's, whose machine code may be on disk
        return x / np.sqrt((x * x * 1.0625).sum()), x.sum()

    function, x = pyrelay.jit(own), np.arange(1.0, 9.0)
    for number in (1, 0, 1, 1):
        machine.ran_on.clear()
        found, total = function(on(machine, number, x))
        assert {found.data.device_id, total.data.device_id} == {number}
        np.testing.assert_allclose(found.get(), own(x)[0])
        assert set(machine.ran_on) == {number}
        assert machine.number == 0
    assert function.cache_info().compilations == 1
    assert len(machine.units) == 1  # GPUs of one kind have one machine code
    lines = str(function.explain()).splitlines()
    assert [line.strip()[:6] for line in lines[-2:]] == ["GPU 0:", "GPU 1:"]


def test_graphs_and_constants_are_those_of_each_gpu(machine: Machine) -> None:
    table = np.arange(4.0)

    def steps(x: Any) -> Any:
        y = (x * table).sum(axis=1)
        return np.cumsum(y) + y.max()

    function, x = pyrelay.jit(steps), np.ones((3, 4))
    for _ in range(4):
        for number in (0, 1):
            assert function(on(machine, number, x)).get().tolist() == steps(x).tolist()


def test_arrays_of_the_host_go_to_the_current_gpu_or_the_one_that_is_asked_for(
    machine: Machine,
) -> None:
    x = np.arange(6.0)
    current = pyrelay.jit(normal, device="cuda")
    machine.number = 1
    np.testing.assert_allclose(current(x)[0], normal(x)[0])
    assert set(machine.ran_on) == {1}
    machine.ran_on.clear()
    np.testing.assert_allclose(pyrelay.jit(normal, device="cuda:0")(x)[0], normal(x)[0])
    assert set(machine.ran_on) == {0}
    assert machine.number == 1
    machine.ran_on.clear()
    with config.override(device="cuda:1"):
        pyrelay.jit(normal)(x)
    assert set(machine.ran_on) == {1}


def test_arrays_that_lie_apart_are_named_with_what_to_write(
    machine: Machine, golden: Callable[[str, str], None]
) -> None:
    def scaled(x: Any, factors: Any) -> Any:
        return x * factors["w"]

    x, w = on(machine, 0, np.ones(2)), on(machine, 1, np.ones(2))
    function = pyrelay.jit(scaled)
    for _ in range(2):
        with pytest.raises(DeviceError) as apart:
            function(x, {"w": w})
    apart.value.calls = ()
    golden("errors/device_arrays_of_two_gpus.txt", str(apart.value))
    with pytest.raises(DeviceError) as elsewhere:
        pyrelay.jit(scaled, device="cuda:1")(x, {"w": w})
    elsewhere.value.calls = ()
    golden("errors/device_array_of_another_gpu.txt", str(elsewhere.value))
    assert function(x, {"w": on(machine, 0, np.ones(2))}).get().tolist() == [1.0, 1.0]
    empty = on(machine, 1, np.ones(0))  # lies nowhere
    both = pyrelay.jit(lambda x, y: (x + 1.0, y + 1.0))(x, empty)
    assert [each.shape for each in both] == [(2,), (0,)]


def test_the_hint_is_for_the_library_of_the_array() -> None:
    def of(module: str) -> type:
        return type("Array", (), {"__module__": module})

    assert moved_text(of("torch"), "x", 1) == "x.to('cuda:1')"
    assert moved_text(of("jaxlib._jax"), "x", 1) == "jax.device_put(x, jax.devices()[1])"
    assert "numba.cuda.gpus[0]" in moved_text(of("numba.cuda"), "x", 0)
    assert moved_text(of("cupy"), "x", 1) == "with cupy.cuda.Device(1): cupy.array(x)"


def test_tensors_run_in_the_stream_of_their_gpu(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = Torch(machine)
    monkeypatch.setitem(sys.modules, "torch", torch)
    torch.streams.update({0: 55, 1: 66})
    function = pyrelay.jit(lambda x: x + 1.0)
    for number in (1, 0, 1):
        machine.number = number
        given = torch.tensor(np.arange(3.0))
        machine.number = 0
        assert function(given).get().tolist() == [1.0, 2.0, 3.0]
    assert torch.taken == [66, 55, 66]
    assert machine.streams == [machine.null]


def test_threads_use_gpus_side_by_side(machine: Machine) -> None:
    function, x = pyrelay.jit(normal), np.arange(1.0, 9.0)
    function(on(machine, 0, x))
    found: list[Any] = []
    thread = Thread(target=lambda: found.append(function(on(machine, 1, x))[0]))
    thread.start()
    thread.join()
    np.testing.assert_allclose(found[0].get(), normal(x)[0])
    assert found[0].data.device_id == 1


def test_a_gpu_that_is_not_there_is_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(DeviceError) as caught:
        pyrelay.jit(normal, device="cuda:2")(np.ones(2))
    caught.value.calls = ()
    golden("errors/device_no_such_gpu.txt", str(caught.value))
    machine.number_of = 1
    cuda.forget_drivers()
    with pytest.raises(DeviceError, match="CuPy sees one GPU, number 0"):
        cuda.gpu(1)
    for name in ("cuda:", "cuda:-1", "cuda:x", "cpu:0"):
        with pytest.raises(ConfigError, match="cuda:1 for a GPU by its number"):
            pyrelay.jit(normal, device=name)
    assert pyrelay.jit(normal, device="CUDA:01").device == "cuda:1"
