"""Arrays of a device as arguments: which calls ask them directly, and what is found of others."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices.gpu.array_taking import homes_of, taking
from pyrelay.errors import AliasError, DeviceError
from pyrelay.lower.planning.boundary import (
    ArrayParameter,
    ObjectParameter,
    Parameter,
    ScalarParameter,
)
from pyrelay.lower.planning.words import encode
from tests.devices.fake_cupy import Machine, installed, ndarray
from tests.devices.fake_libraries import ArrayImpl, Jax, Tensor, Torch
from tests.devices.running_kernels import needs_compiler

FACTOR: Any = 2.0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    made = Machine()
    with installed(made, monkeypatch):
        yield made


def taker(machine: Machine, *parameters: Parameter, several: bool = False) -> Callable[..., Any]:
    made = taking(parameters, ndarray, ndarray, 0, several)
    assert made is not None
    return made


# -- what is taken ---------------------------------------------------------------------------------


def test_words_are_addresses_extents_and_numbers(machine: Machine) -> None:
    take = taker(
        machine, ArrayParameter("float32", 2), ScalarParameter("int"), ScalarParameter("float"),
        ScalarParameter("complex"), ScalarParameter("float32"), ObjectParameter("known"),
    )
    x = machine.array(np.ones((3, 4), np.float32))
    words, sizes = take(x, -7, 0.1, 1 + 2j, np.float32(0.3), "known")
    numbers = (("float", 0.1), ("complex", 1 + 2j), ("float32", np.float32(0.3)))
    assert words == (x.data.ptr, 3, 4, -7, *(w for kind, v in numbers for w in encode(kind, v)))
    assert sizes == {x.data.ptr: 48}


def test_other_arrays_are_left_to_those_who_know_all_libraries(machine: Machine) -> None:
    take = taker(machine, ArrayParameter("float32", 2, extents=(None, 1)))
    x = np.ones((3, 1), np.float32)

    class OfOthers(ndarray):
        pass

    fitting = machine.array(x)
    gaps = ndarray((3, 1), x.dtype, fitting.data)
    gaps.strides = (8, 4)
    others = (
        x, machine.array(x.astype(np.float64)), machine.array(x[0]), machine.array(x.T), gaps,
        OfOthers(fitting.shape, fitting.dtype, fitting.data),
    )
    assert take(fitting) is not None
    assert [take(other) for other in others] == [None] * len(others)


def test_numbers_of_other_classes_are_not_taken(machine: Machine) -> None:
    x = machine.array(np.ones(2))
    for kind, fits, others in (
        ("int", (1 << 63) - 1, (1 << 63, -(1 << 63) - 1, True, 1.0, np.int64(1))),
        ("float", 1.0, (1, np.float64(1.0))),
        ("bool", True, (1, np.bool_(True))),
        ("float32", np.float32(1), (1.0, np.float64(1.0))),
    ):
        take = taker(machine, ArrayParameter("float64", 1), ScalarParameter(kind))
        assert take(x, fits) is not None
        assert [take(x, other) for other in others] == [None] * len(others)


def test_arrays_that_are_written_share_no_memory(machine: Machine) -> None:
    x = machine.array(np.ones(4))
    tail = ndarray((2,), x.dtype, x.data + 16)
    head = ndarray((2,), x.dtype, x.data)
    vector = ArrayParameter("float64", 1)
    written = ArrayParameter("float64", 1, writeable=True)
    take = taker(machine, written, vector)
    assert take(head, tail) is not None
    assert take(tail, head) is not None
    for pair in ((x, tail), (tail, x), (x, head), (head, head)):
        assert take(*pair) is None
        assert taker(machine, vector, vector)(*pair) is not None


def test_arrays_of_another_gpu_are_left_to_who_tells_that() -> None:
    machine = Machine(devices=2)
    take = taker(machine, ArrayParameter("float64", 1), several=True)
    here = machine.array(np.ones(2))
    machine.number = 1
    there = machine.array(np.ones(2))
    assert take(there) is None
    assert take(here) is not None  # whichever is current
    home = homes_of(ndarray, ndarray)
    assert home is not None
    assert [home(here), home(there)] == [0, 1]
    assert homes_of(np.ndarray, ndarray) is None


def test_programs_that_take_no_array_have_no_such_way(machine: Machine) -> None:
    assert taking((ScalarParameter("int"),), ndarray, ndarray, 0, False) is None
    many = tuple(ArrayParameter("float64", 1, writeable=True) for _ in range(20))
    assert taking(many, ndarray, ndarray, 0, False) is None


def test_classes_of_other_libraries_have_no_such_way(machine: Machine) -> None:
    vector = (ArrayParameter("float64", 1),)
    of_cupy = type("ndarray", (ndarray,), {"__module__": "cupy"})
    for kind in (np.ndarray, of_cupy, type("DeviceNDArray", (), {"__module__": "numba.cuda"})):
        assert taking(vector, kind, ndarray, 0, False) is None


@pytest.fixture
def torch(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch(machine)
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


@pytest.fixture
def jax(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Jax:
    made = Jax(machine)
    monkeypatch.setitem(sys.modules, "jax.dlpack", made)
    return made


def test_tensors_of_torch_are_taken_as_they_lie(machine: Machine, torch: Torch) -> None:
    matrix = ArrayParameter("float32", 2, writeable=True)
    take: Any = taking((matrix, ScalarParameter("int")), Tensor, ndarray, 0, True)
    x = torch.tensor(np.ones((3, 4), np.float32))
    assert take(x, 7) == ((x.data_ptr(), 3, 4, 7), {x.data_ptr(): 48})

    def changed(**attributes: Any) -> Tensor:
        made = Tensor(torch, x.data, x.shape, x.dtype)
        for name, value in attributes.items():
            setattr(made, name, value)
        return made

    assert take(changed(), 7) is not None
    for attributes in (
        {"dtype": torch.float64}, {"shape": (3, 4, 1)}, {"is_cuda": False}, {"layout": "sparse"},
        {"strides": (1, 3)}, {"requires_grad": True}, {"turned": x}, {"home": 1},
    ):
        assert take(changed(**attributes), 7) is None, attributes
    assert take(type("Parameter", (Tensor,), {})(torch, x.data, x.shape, x.dtype), 7) is None
    assert torch.asked == []


def test_arrays_of_jax_are_waited_for_and_never_written(machine: Machine, jax: Jax) -> None:
    vector = ArrayParameter("float32", 1)
    take: Any = taking((vector, vector), ArrayImpl, ndarray, 0, True)
    x = jax.array(np.ones(3, np.float32))
    assert take(x, x) == ((x.data.ptr, 3) * 2, {x.data.ptr: 12})
    assert jax.waited == [x, x]
    for name, value in (("home", 1), ("platform", "cpu"), ("copies", 2), ("shape", (3, 1))):
        other = ArrayImpl(jax, x.data, x.shape, x.dtype)
        setattr(other, name, value)
        assert take(x, other) is None, name
    for parameter in (ArrayParameter("bfloat16", 1), ArrayParameter("float32", 1, writeable=True)):
        assert taking((parameter,), ArrayImpl, ndarray, 0, False) is None


# -- calls -----------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Arrays that were asked for their interface."""
    found: list[Any] = []
    tell: Any = ndarray.__cuda_array_interface__

    def interface(self: ndarray) -> Any:
        found.append(self)
        return tell.fget(self)

    monkeypatch.setattr(ndarray, "__cuda_array_interface__", property(interface))
    return found


@needs_compiler
def test_calls_after_the_first_ask_arrays_directly(machine: Machine, asked: list[Any]) -> None:
    @pyrelay.jit
    def scaled(p: Any, x: Any, k: Any) -> Any:
        return {"y": x * p["w"] * k, "x": x}

    x, w = np.arange(4.0), np.arange(4.0) + 2
    p, given = {"w": machine.array(w)}, machine.array(x)
    scaled(p, given, 2.0)
    assert asked != []
    asked.clear()
    hits = scaled.cache_info().hits
    for k in (3.0, 5.0):
        found = scaled(p, x=given, k=k)
        assert found["y"].get().tolist() == (x * w * k).tolist()
        assert found["x"] is given
    assert asked == []
    assert scaled.cache_info().hits == hits + 2
    longer = np.arange(7.0)  # the same program
    assert scaled({"w": machine.array(longer)}, machine.array(longer), 1.0)["y"].shape == (7,)
    assert asked == []
    assert isinstance(scaled({"w": w}, x, 2.0)["y"], np.ndarray)  # on the CPU
    assert scaled.cache_info().compilations == 2


@needs_compiler
def test_so_do_tensors_of_torch(torch: Torch) -> None:
    scaled = pyrelay.jit(lambda x, w, k: (x * w * k, x))
    x, w = np.arange(4.0), np.arange(4.0) + 2
    given = torch.tensor(x)
    scaled(given, torch.tensor(w), 2.0)
    assert torch.asked != []
    torch.asked.clear()
    hits = scaled.cache_info().hits
    for stream in (0, 0, 77):
        torch.streams[0] = stream
        found, same = scaled(given, torch.tensor(w), k=3.0)
        assert type(found) is Tensor
        assert found.get().tolist() == (x * w * 3.0).tolist()
        assert same is given
    assert torch.asked == []
    assert torch.taken[-3:] == [0, 0, 77]
    assert scaled.cache_info().hits == hits + 3


@needs_compiler
def test_tensors_that_ask_for_gradients_are_refused_at_every_call(torch: Torch) -> None:
    function = pyrelay.jit(lambda x: x + 1.0)
    given = torch.tensor(np.ones(3))
    for _ in range(2):
        function(given)
    given.requires_grad = True
    with pytest.raises(RuntimeError, match="requires grad"):
        function(given)


@needs_compiler
def test_views_of_torch_that_turn_signs_are_read_as_what_they_mean(torch: Torch) -> None:
    function = pyrelay.jit(lambda x: x * 2.0)
    plain = torch.tensor(np.array([1 + 2j]))
    for _ in range(2):
        assert function(plain).get().tolist() == [2 + 4j]
    view = Tensor(torch, plain.data, plain.shape, plain.dtype)
    view.turned = torch.tensor(np.array([1 - 2j]))
    assert function(view).get().tolist() == [2 - 4j]

    def double(x: Any) -> None:
        x *= 2.0

    with pytest.raises(ValueError, match="read-only"):
        pyrelay.jit(double)(view)


@needs_compiler
def test_so_do_arrays_of_jax(jax: Jax) -> None:
    function = pyrelay.jit(lambda x: x + 1.0)
    given = jax.array(np.ones(3))
    for _ in range(2):
        assert function(given).get().tolist() == [2.0] * 3
    hits = function.cache_info().hits
    jax.waited.clear()
    found = function(given)
    assert type(found) is ArrayImpl
    assert found.get().tolist() == [2.0] * 3
    assert jax.waited == [given]
    assert function.cache_info().hits == hits + 1


@needs_compiler
def test_arrays_of_jax_live_until_the_device_has_done_with_them(
    machine: Machine, jax: Jax
) -> None:
    function = pyrelay.jit(lambda x, k: x + k)

    def of_call(value: float) -> Any:
        """The long way first, and then the short one."""
        given = jax.array(np.full(3, value))
        assert function(given, 1.0).get().tolist() == [value + 1.0] * 3
        return weakref.ref(given)

    machine.idle = False
    made = [of_call(value) for value in (1.0, 2.0, 3.0)]
    jax.waited.clear()
    jax.asked.clear()
    assert all(each() is not None for each in made)
    machine.idle = True
    made.append(of_call(4.0))
    jax.waited.clear()
    jax.asked.clear()
    assert all(each() is None for each in made)
    # CuPy's arrays are given to what comes later in the stream.
    before = machine.asked_events
    function(machine.array(np.ones(3)), 1.0)
    assert machine.asked_events == before


@needs_compiler
def test_names_and_settings_are_looked_at(
    machine: Machine, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = pyrelay.jit(lambda x: x * FACTOR)
    x = machine.array(np.ones(2))
    assert function(x).get().tolist() == [2.0, 2.0]
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert function(x).get().tolist() == [3.0, 3.0]
    asked.clear()
    with config.override(matmul_precision="tf32"):  # calls look at it themselves
        function(x)
    assert asked == []
    with (
        config.override(interpret=True),
        pytest.raises(DeviceError, match="runs on device 'interpreter'"),
    ):
        function(x)


@needs_compiler
def test_a_cell_that_changes_is_seen(machine: Machine) -> None:
    def made() -> Any:
        factor = 2.0

        @pyrelay.jit
        def scaled(x: Any) -> Any:
            return x * factor

        def change(to: float) -> None:
            nonlocal factor
            factor = to

        return scaled, change

    scaled, change = made()
    x = machine.array(np.ones(2))
    assert scaled(x).get().tolist() == scaled(x).get().tolist() == [2.0, 2.0]
    change(5.0)
    assert scaled(x).get().tolist() == [5.0, 5.0]


@needs_compiler
def test_what_is_written_is_seen_and_shares_no_memory(
    machine: Machine, asked: list[Any]
) -> None:
    @pyrelay.jit
    def step(w: Any, g: Any) -> None:
        w -= 0.5 * g

    w, g = machine.array(np.ones(4)), machine.array(np.full(4, 2.0))
    step(w, g)
    asked.clear()
    step(w, g)
    assert w.get().tolist() == [-1.0] * 4
    assert asked == []
    with pytest.raises(AliasError, match="shares memory with g"):
        step(w, ndarray((4,), w.dtype, w.data))


@needs_compiler
def test_errors_are_pythons_and_the_next_call_is_fine(machine: Machine) -> None:
    pick = pyrelay.jit(lambda x, i: x[i] * 2.0)
    x, fits, outside = (machine.array(np.array(a)) for a in ([1.0, 2.0], [1], [7]))
    for _ in range(2):
        assert pick(x, fits).get().tolist() == [4.0]
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            pick(x, outside)
