"""Stretches of a plan are captured once and replayed, and give what they gave before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.cuda_emulator import EmulatorDriver
from pyrelay.devices.gpu import graphs, programs
from pyrelay.devices.gpu.driver import CannotCaptureError
from tests.devices.fake_cupy import Machine, installed
from tests.devices.running_kernels import needs_compiler
from tests.opt.tree_programs import Forest, Tree, many

pytestmark = needs_compiler
ON = "cuda_emulator"


class Counted(EmulatorDriver):
    """Counts what is launched one by one, captured and replayed."""

    def __init__(self) -> None:
        super().__init__()
        self.launched = self.captured = self.replayed = 0

    def launch(self, function: Any, items: int, words: Any, stream: int) -> None:
        self.launched += self.recorded is None
        super().launch(function, items, words, stream)

    def launch_meeting(
        self, function: Any, blocks: int, words: Any, stream: int
    ) -> None:
        self.launched += self.recorded is None
        super().launch_meeting(function, blocks, words, stream)

    def capture(self, issue: Any) -> Any:
        self.captured += 1
        return super().capture(issue)

    def replay(self, graph: Any) -> None:
        self.replayed += 1
        super().replay(graph)


class Sized(EmulatorDriver):
    """Keeps over how many items each kernel was launched."""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[int] = []

    def launch(self, function: Any, items: int, words: Any, stream: int) -> None:
        self.items.append(items)
        super().launch(function, items, words, stream)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    made = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", made)
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 0)  # no loops as one kernel
    yield made
    assert made.recorded is None


def step(w: Any, v: Any, x: Any, y: Any) -> Any:
    """A step of training by hand."""
    h = np.tanh(x @ w)
    d = h @ v - y
    loss = (d * d).sum()
    return w - 0.1 * (x.T @ ((d @ v.T) * (1 - h * h))), v - 0.1 * (h.T @ d), loss


def data() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=s) for s in ((3, 4), (4, 2), (5, 3), (5, 2)))


def test_training_replays_one_graph_a_step(driver: Counted) -> None:
    w, v, x, y = data()
    mine = plain = (w, v, 0.0)
    function, kept = pyrelay.jit(step, device=ON), []
    for _ in range(8):
        mine, plain = function(*mine[:2], x, y), step(*plain[:2], x, y)
        kept.append((mine, plain))
        launched = driver.launched
    # Results are new arrays: those of a later call do not overwrite what was given before.
    for found, wanted in kept:
        for each, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(each, theirs, rtol=1e-12)
    assert driver.replayed >= 6
    assert driver.captured <= 2
    function(*mine[:2], x, y)
    assert driver.launched == launched


def test_rounds_of_a_loop_are_replayed(driver: Counted) -> None:
    def loop(x: Any, k: int) -> Any:
        for _ in range(k):
            s = x.sum()
            x = np.exp(x - x.max()) / (1 + s) + 0.1 * (x @ x)
        return x

    x = 0.1 * data()[0][:, :3]
    function = pyrelay.jit(loop, device=ON)
    np.testing.assert_allclose(function(x, 30), loop(x, 30), rtol=1e-11)
    # A round as it is, then 16, 8, 4 and so on at once (`round_graphs`).
    assert driver.replayed <= 5
    assert driver.launched <= 12
    np.testing.assert_allclose(function(x[:2, :2], 9), loop(x[:2, :2], 9), rtol=1e-11)


def test_failures_in_graphs_are_the_first_of_their_call(driver: Counted) -> None:
    def walk(x: Any, index: Any, k: int) -> Any:
        for _ in range(k):
            x = x[index] * 2.0 + x.sum() + x.max()
            index = index + (x[0] > 1e4)
        return x

    function = pyrelay.jit(walk, device=ON)
    x, index = np.ones(4), np.array([0, 1, 2, 3])
    np.testing.assert_allclose(function(x, index, 4), walk(x, index, 4))
    replayed = driver.replayed
    for _ in range(2):
        for rounds in (12, 20):
            with pytest.raises(IndexError, match=r"^index 4 is out of bounds for axis 0 with size"):
                function(x, index, rounds)
    assert driver.replayed > replayed
    np.testing.assert_allclose(function(x, index, 4), walk(x, index, 4))


@pytest.mark.slow
def test_words_that_are_others_at_each_call_make_no_graphs(
    driver: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "MOST_KEYS", 5)

    def blend(x: Any, t: float) -> Any:
        return (x * t).sum() + (x @ x) * t

    function, x = pyrelay.jit(blend, device=ON), data()[0][:, :3]
    for k in range(12):
        np.testing.assert_allclose(function(x, 0.5 + k), blend(x, 0.5 + k), rtol=1e-13)
    launched = driver.launched
    function(x, 0.5)  # was seen, but it was given up
    assert driver.launched > launched
    assert driver.replayed == driver.captured == 0


def test_graphs_are_given_up_before_memory_is(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    with installed(machine, monkeypatch):
        function = pyrelay.jit(step, device="cuda")
        w, v, x, y = data()
        for _ in range(4):
            found = function(w, v, x, y)
        assert machine.replays >= 2
        machine.limit = sum(machine.memory.sizes.values()) + 700
        again = function(w, v, x, y)
    for mine, theirs in zip(again, found, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_what_a_device_does_not_capture_is_launched(
    driver: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(issue: Any) -> Any:
        raise CannotCaptureError

    monkeypatch.setattr(driver, "capture", refuse)
    w, v, x, y = data()
    function = pyrelay.jit(step, device=ON)
    for _ in range(4):
        for mine, theirs in zip(function(w, v, x, y), step(w, v, x, y), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    assert driver.replayed == 0


@pytest.mark.slow
def test_trees_are_launched_level_by_level(driver: Counted) -> None:
    def balanced(depth: int) -> Tree:
        if depth == 0:
            return Tree(int(rng.integers(7)))
        return Tree(int(rng.integers(7)), balanced(depth - 1), balanced(depth - 1))

    rng = np.random.default_rng(0)
    e, w = rng.normal(size=(7, 6)), rng.normal(size=(6, 6)) * 0.3
    function, counts = pyrelay.jit(many, device=ON), []
    for depth, trees in ((3, 1), (3, 4), (4, 1), (5, 1), (6, 4)):
        forest = Forest([balanced(depth) for _ in range(trees)])
        before = driver.launched
        np.testing.assert_allclose(function(e, w, forest), many(e, w, forest), rtol=1e-12)
        counts.append(driver.launched - before)
    first, wide, deeper, deepest, large = counts
    level = deeper - first
    assert deepest - deeper == level <= 10
    # Sixteen times as many nodes and three levels more; a sum for each tree.
    assert large - wide <= 3 * level
    assert wide - first <= 3 * 3


@pytest.mark.slow
def test_a_program_of_many_small_kernels_is_one_graph(driver: Counted) -> None:
    def small(x: Any) -> Any:
        x = x * 1.1 + x.max()
        x = np.sin(x) / (1.0 + x.std())
        x = x - x.mean() + np.abs(x[::-1])
        x = np.cumsum(x) * 1e-3
        x = np.sqrt(np.abs(x)) + x.min()
        x = np.where(x > x.mean(), x * 0.5, np.cos(x))
        x = np.tanh(x) * np.exp(-x.max()) + x.var()
        x = np.cumsum(x) * 1e-3 + np.arctan(x) * x.sum() * 1e-4
        x = np.floor(x * 10.0) * 0.1 + x[::-1] / (1.0 + x.std())
        return np.log(1.0 + x * x) / (1.0 + x.var())

    x = np.linspace(-1.0, 1.0, 10_000)
    function = pyrelay.jit(small, device=ON)
    for _ in range(8):
        before = driver.launched, driver.replayed
        np.testing.assert_allclose(function(x), small(x), rtol=1e-9, atol=1e-12)
    assert (driver.launched - before[0], driver.replayed - before[1]) == (0, 1)
