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
from pyrelay.devices.gpu import cupy_driver, persistent_known, programs
from pyrelay.devices.gpu.call_drawing import Number
from pyrelay.devices.gpu.graphs import UnfitError
from pyrelay.errors import DeviceError
from tests.devices.fake_cupy import D2H, Cublas, Machine, installed
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
    function, at = pyrelay.jit(lambda x, i: x[i]), torch.tensor(np.array([1, 3]))
    for _ in range(3):
        assert function(x, at).get().tolist() == [1.0, 3.0]
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        function(x, torch.tensor(np.array([1, 4])))
    assert "done" in ours(function, x, at)


def picked(x: Any, at: Any, k: float) -> Any:
    return np.exp(x)[at] * k


def picked_rows(x: Any, y: Any, at: Any) -> Any:
    return (x[at] * y[at]).sum()


def bad_index(wanted: Callable[..., Any], function: Callable[..., Any], *given: Any) -> None:
    """A call raises what Python raises."""
    with pytest.raises(IndexError) as python:
        wanted(*(a.get() if hasattr(a, "get") else a for a in given))
    with pytest.raises(IndexError) as caught:
        function(*given)
    assert str(caught.value).partition("\n  ")[0] == str(python.value)
    assert caught.value.span.line == python.traceback[-1].lineno + 1  # type: ignore[attr-defined]


def test_what_kernels_find_wrong_is_raised_and_the_next_call_is_fine(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "overrides", [])
    function, x = pyrelay.jit(picked), np.linspace(0, 1, 9)
    for size in (4, 4, 4, 5, 5):
        at = np.arange(size)
        good = machine.array(x), machine.array(at), 2.0
        np.testing.assert_allclose(function(*good).get(), picked(x, at, 2.0), rtol=1e-15)
        if size == 5:  # others that fail leave nothing behind for these
            bad_index(picked, function, good[0], machine.array(np.array([0, 9, 1, -10])), 2.0)
    assert ours(function, *good) == ["call", "direct", "done"]
    for place in (9, -10, 2**40):
        bad_index(picked, function, good[0], machine.array(np.array([0, place, 1, 99, 8])), 2.0)
        np.testing.assert_allclose(function(*good).get(), picked(x, at, 2.0), rtol=1e-15)


def test_errors_of_graphs_are_raised_and_the_graph_is_replayed(machine: Machine) -> None:
    function, x = pyrelay.grad(picked_rows, (0, 1)), np.linspace(0, 1, 12).reshape(6, 2)
    good = machine.array(x), machine.array(x + 1), machine.array(np.array([1, 5, 1]))
    wanted = np.zeros((2, 6, 2))
    np.add.at(wanted[0], [1, 5, 1], x[[1, 5, 1]] + 1)
    np.add.at(wanted[1], [1, 5, 1], x[[1, 5, 1]])

    def check() -> None:
        for mine, each in zip(function(*good), wanted, strict=True):
            np.testing.assert_allclose(mine.get(), each, rtol=1e-15)

    for _ in range(4):
        check()
    replays = machine.replays
    for _ in range(2):
        bad_index(picked_rows, function, *good[:2], machine.array(np.array([1, 6, -7])))
        check()
    assert machine.replays > replays


@pytest.fixture
def late(machine: Machine) -> list[Any]:
    """Copies to the host that are not done yet, where it begins with None."""
    waiting: list[Any] = []
    copy = machine.cupy.cuda.runtime.memcpyAsync

    def issue(target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        if kind == D2H and waiting:
            waiting.append((target, source, nbytes, kind, stream))
        else:
            copy(target, source, nbytes, kind, stream)

    machine.cupy.cuda.runtime.memcpyAsync = issue
    return waiting


def test_the_host_waits_until_the_device_has_told(machine: Machine, late: list[Any]) -> None:
    runtime = machine.cupy.cuda.runtime
    function, x = pyrelay.jit(picked), machine.array(np.zeros(3))
    good, bad = machine.array(np.array([0, 2])), machine.array(np.array([3, 0]))
    for _ in range(3):
        assert function(x, good, 2.0).get().tolist() == [2.0, 2.0]
    asked: list[int] = []

    def done_at_last(stream: int) -> int:
        asked.append(stream)
        if len(asked) < 3:
            return 600
        if late:
            copies = late[1:]
            late.clear()
            for each in copies:
                runtime.memcpyAsync(*each)
        return 600 if len(asked) == 3 else 0

    runtime.streamQuery = done_at_last
    for given in (good, bad):
        asked.clear()
        machine.cleared.clear()
        late.append(None)
        if given is good:
            assert function(x, given, 2.0).get().tolist() == [2.0, 2.0]
            assert len(asked) == 3
            assert machine.cleared == [600] * 3  # no other library takes that for its own error
        else:
            with pytest.raises(IndexError, match="index 3 is out of bounds"):
                function(x, given, 2.0)

    def interrupted(stream: int) -> int:
        raise KeyboardInterrupt

    runtime.streamQuery = interrupted
    late.append(None)
    with pytest.raises(KeyboardInterrupt):
        function(x, bad, 2.0)
    assert machine.synchronized > 0
    late.clear()
    runtime.streamQuery = lambda stream: machine.status
    assert function(x, good, 2.0).get().tolist() == [2.0, 2.0]  # no record of before
    machine.status = 700
    late.append(None)
    with pytest.raises(DeviceError, match="stopped with an error"):
        function(x, good, 2.0)
    machine.status = 0
    late.clear()
    assert function(x, good, 2.0).get().tolist() == [2.0, 2.0]


def test_memory_that_runs_out_leaves_no_record(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, x = pyrelay.jit(picked), machine.array(np.zeros(3))
    at = machine.array(np.array([0, 2]))
    for _ in range(3):
        assert function(x, at, 2.0).get().tolist() == [2.0, 2.0]
    with monkeypatch.context() as patch:
        patch.setattr(machine, "limit", sum(machine.memory.sizes.values()))
        with pytest.raises(MemoryError, match="no memory on Fake GPU for an array of"):
            function(x, at, 2.0)
    for _ in range(2):
        assert function(x, at, 2.0).get().tolist() == [2.0, 2.0]


def test_calls_on_their_way_and_streams_have_records_of_their_own(machine: Machine) -> None:
    driver, within = machine.cupy.cuda.driver, list[bool]()
    launch = driver.launchKernel

    def between(*given: Any) -> None:
        launch(*given)
        if within:
            within.pop()
            with pytest.raises(IndexError, match="index 3 is out of bounds"):
                function(x, bad, 2.0)

    driver.launchKernel = between
    function, x = pyrelay.jit(picked), machine.array(np.zeros(3))
    good, bad = machine.array(np.array([0, 2])), machine.array(np.array([3, 0, 1]))
    stream = machine.cupy.cuda.Stream(non_blocking=True)
    for _ in range(3):
        assert function(x, good, 2.0).get().tolist() == [2.0, 2.0]
        assert function(x, machine.array(np.arange(3)), 2.0).get().tolist() == [2.0] * 3
        with stream:
            assert function(x, good, 3.0).get().tolist() == [3.0, 3.0]
    for _ in range(2):
        within.append(True)
        assert function(x, good, 2.0).get().tolist() == [2.0, 2.0]
        assert within == []
    with stream:
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            function(x, bad, 2.0)
        assert function(x, good, 3.0).get().tolist() == [3.0, 3.0]


def recurrent(x: Any, w: Any) -> Any:
    h = np.zeros(w.shape[0])
    for t in range(x.shape[0]):
        h = np.tanh(x[t] + h @ w)
    return h


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_loop_that_is_one_kernel_is_part_of_such_a_call(
    blocks: int, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "overrides", [])
    monkeypatch.setattr(programs, "blocks_of", lambda *_: blocks)
    monkeypatch.setattr(persistent_known, "FIRST", 0)  # no kernel of these extents at once
    monkeypatch.setattr(persistent_known, "CALLS", 5)
    works: list[Callable[[], None]] = []
    monkeypatch.setattr(cupy_driver.CupyDriver, "later", lambda _, work: works.append(work))
    function, rng = pyrelay.jit(recurrent), np.random.default_rng(0)
    x, w = rng.normal(size=(6, 7)), rng.normal(size=(7, 7))
    given = machine.array(x), machine.array(w)

    def right() -> None:
        np.testing.assert_allclose(function(*given).get(), recurrent(x, w), rtol=1e-12)

    for _ in range(3):
        right()
    steps = ["call", "direct", "precision", "current"]
    assert ours(function, *given)[:6] == [*steps, "done", "function"]  # which counts the call
    before = len(machine.launches)
    right()
    assert len(works) == 1
    units = len(machine.units)
    right()
    works.pop()()  # a kernel for these extents: calls launch it and count no more
    assert len(machine.units) == units + 1
    for _ in range(2):
        right()
    assert ours(function, *given) == [*steps, "done"]
    assert blocks in {many for _, many, _ in machine.launches[before:]}
    right()
    assert works == []
    longer = machine.array(rng.normal(size=(9, 7)))
    for _ in range(3):
        found = function(longer, given[1]).get()
        np.testing.assert_allclose(found, recurrent(longer.get(), w), rtol=1e-12)


def test_what_nobody_reads_is_not_allocated_and_small_memory_stays(machine: Machine) -> None:
    def softmax(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def columns(x: Any) -> Any:
        return x.sum(axis=0)

    for plain, x in ((softmax, np.ones((5, 64))), (columns, np.ones((4096, 8)))):
        function, given = pyrelay.jit(plain), machine.array(x)
        for _ in range(3):
            np.testing.assert_allclose(function(given).get(), plain(x), rtol=1e-12)
        asked: list[int] = []
        take = machine.memory.allocate
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                machine.memory, "allocate", lambda n, take=take, to=asked: to.append(n) or take(n)
            )
            made = function(given)
        assert asked == [made.nbytes]
