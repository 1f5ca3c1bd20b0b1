"""Memory of calls on a GPU: what is said when there is no more, and what is given back before."""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda
from pyrelay.devices.gpu import programs
from tests.devices.fake_cupy import Cublas, Machine, installed, ndarray
from tests.devices.running_kernels import needs_compiler

pytestmark = needs_compiler


def text_of(function: Callable[..., Any], *args: Any) -> str:
    """What the MemoryError says; lines are counted from that of `def`."""
    with pytest.raises(MemoryError) as caught:
        pyrelay.jit(function, device="cuda")(*args)
    first = function.__code__.co_firstlineno
    return re.sub(r"line (\d+)", lambda m: f"line {int(m[1]) - first}", str(caught.value))


def test_it_says_what_was_asked_and_the_largest_arrays_with_their_names_and_lines(
    monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    def table(x: Any, y: Any) -> Any:
        ranks = np.cos(x)
        weights = y / y.sum()
        return weights, ranks, ranks[:, None] * weights

    machine = Machine(memory_bytes=3_000_000)
    with installed(machine, monkeypatch):
        golden("errors/device_out_of_memory.txt", text_of(table, np.ones(1000), np.ones(1500)))


@pytest.mark.slow
def test_a_loop_of_kernels_says_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def grown(x: Any) -> Any:
        while x.sum() < 1e9:
            x = np.concatenate([x, np.cos(x)])
        return x

    with installed(Machine(memory_bytes=1_000_000), monkeypatch):
        found = text_of(grown, np.ones(1000))
    assert re.fullmatch(
        r"no memory on Fake GPU for an array of \S+ [KM]B \(np.concatenate.*, line 2\); the call "
        r"holds \S+ [KM]B in \d arrays, the largest \S+ KB \(np.*, line 2\).*", found,
    ), found


def layers(x: Any, w: Any) -> Any:
    return np.tanh(np.tanh(np.tanh(x @ w) @ w) @ w) @ w


def test_graphs_of_all_programs_give_back_their_memory_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = np.ones((100, 100)) / 100
    machine = Machine()
    with installed(machine, monkeypatch):
        function, given = pyrelay.jit(layers), machine.array(x)
        for _ in range(3):
            function(given, given)
        assert machine.replays
        held = sum(machine.memory.sizes.values())
        machine.limit = held + 50_000
        squared = pyrelay.jit(lambda x: x * x)
        np.testing.assert_allclose(squared(given).get(), x * x)  # takes 80,000
        before = machine.replays
        machine.limit = 2**62
        for _ in range(3):
            np.testing.assert_allclose(function(given, given).get(), layers(x, x), rtol=1e-12)
        assert machine.replays > before


def widening(x: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    return np.tanh(np.tanh(np.tanh(np.tanh(x @ a) @ b) @ c) @ d)


def test_where_a_call_has_room_graphs_take_none_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call needs 256,000 bytes at once, a graph of it 336,000 and the result: what was taken for
    one that came to nothing is there again, without a collection of garbage."""
    machine, widths = Machine(), (60, 100, 140, 180, 60)
    used = machine.memory.sizes
    gc.disable()
    try:
        with installed(machine, monkeypatch, Cublas(machine)):
            function = pyrelay.jit(widening)
            ws = [machine.array(np.ones((m, n)) / m) for m, n in itertools.pairwise(widths)]
            for rows, room in ((100, 260_000), (99, 340_000), (98, 500_000)):
                x = machine.array(np.ones((rows, 60)) / 60)
                function(x, *ws)
                held = sum(used.values())
                machine.limit = held + room
                for _ in range(3):
                    function(x, *ws)
                assert (sum(used.values()) > held + 300_000) == (room == 500_000)
                machine.limit = 2**62
            added = pyrelay.jit(lambda x: x + 1.0)
            machine.limit = sum(used.values())
            added(x)  # not even its record has room
            assert sum(used.values()) < held + 50_000
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, 200, 600])
def test_too_little_for_the_smallest_things_is_a_memory_error(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    """For the record of a call, for the memory of its scalars, for results without axes."""
    machine = Machine()
    with installed(machine, monkeypatch):
        before, given = pyrelay.jit(lambda x: (x.sum(), x.max())), machine.array(np.ones(3))
        before(given)  # stays, so that nothing of it is given back during the next call
        total = pyrelay.jit(lambda x: (x.sum() + 1, x.min()))
        machine.limit = sum(machine.memory.sizes.values()) + room
        with pytest.raises(MemoryError, match="no memory on Fake GPU"):
            total(given)
        machine.limit = 2**62
        assert [float(t.get()) for t in total(given)] == [4.0, 1.0]


@pytest.mark.slow
def test_copies_of_arrays_with_gaps_and_constants_are_memory_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    with installed(machine, monkeypatch):
        given = machine.array(np.ones((100, 100)))
        gaps = ndarray((100, 50), np.float64, given.data)
        gaps.strides = (800, 16)
        added = pyrelay.jit(lambda x: x + 1.0)
        machine.limit = sum(machine.memory.sizes.values()) + 1000
        with pytest.raises(MemoryError, match=r"for an array of 40 KB \(an argument\)$"):
            added(gaps)
        machine.limit = sum(machine.memory.sizes.values())
        with pytest.raises(MemoryError, match=r"for a constant of 40 bytes$"):
            programs._uploaded(cuda.driver(), np.arange(5))


@pytest.mark.slow
def test_a_library_without_memory_of_its_own_leaves_products_to_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    library = Cublas(machine)
    library.cublasCreate_v2 = lambda place: 3  # type: ignore[assignment, return-value]
    x = np.arange(6.0).reshape(2, 3)
    with installed(machine, monkeypatch, library):
        np.testing.assert_allclose(pyrelay.jit(lambda x: x @ x.T, device="cuda")(x), x @ x.T)
    assert library.calls == []
