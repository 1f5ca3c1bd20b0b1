"""Loops that end by what the device computes: rounds are launched ahead, and those too many do no
harm."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import programs
from pyrelay.devices.gpu.driver import OutOfDeviceMemory
from pyrelay.devices.gpu.gpu_memory import CELLS
from pyrelay.devices.gpu.round_graphs import RoundGraphs
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler

pytestmark = needs_compiler
ON = "cuda_emulator"


class Waiting(Counted):
    """Counts how often the host reads from the device, and notes where products in graphs go."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.products: list[int] = []

    def multiply(self, prepared: Any, a: int, b: int, c: int, stream: int) -> bool:
        if self.recorded is not None:
            self.products.append(c)
        return super().multiply(prepared, a, b, c, stream)

    def download(self, array: Any, address: int) -> None:
        self.reads += 1
        super().download(array, address)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Waiting]:
    made = Waiting()
    monkeypatch.setattr(cuda_emulator, "DRIVER", made)
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 0)  # no loops as one kernel
    yield made
    assert made.recorded is None


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call gives or raises, and what it makes of its arguments."""
    mine = copy.deepcopy(args)
    try:
        return function(*mine), None, mine
    except Exception as error:
        return None, (type(error), str(error)), mine


def assert_same(function: Callable[..., Any], *args: Any, compiled: Any = None) -> None:
    """As in plain Python, three times with one compiled function."""
    compiled = compiled or pyrelay.jit(function, device=ON)
    wanted = outcome(function, args)
    for _ in range(3):
        found = outcome(compiled, args)
        assert found[1] == wanted[1]
        for mine, theirs in zip(flat(found), flat(wanted), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in flat(each)]
    return [] if value is None or isinstance(value, (str, type)) else [value]


def system(n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(n, n))
    return a @ a.T + np.eye(n), rng.normal(size=n)


def conjugate_gradients(a: Any, b: Any, tol: float) -> Any:
    x = np.zeros_like(b)
    r = b - a @ x
    p = r
    rs = r @ r
    rounds = 0
    while np.sqrt(rs) > tol:
        ap = a @ p
        alpha = rs / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
        rounds += 1
    return x, rounds


def test_conjugate_gradients_read_the_residual_now_and_then(driver: Waiting) -> None:
    a, b = system(40)
    function = pyrelay.jit(conjugate_gradients, device=ON)
    x, rounds = function(a, b, 1e-9)
    theirs, wanted = conjugate_gradients(a, b, 1e-9)
    assert abs(rounds - wanted) <= 1  # products add up in another order
    assert rounds > 30
    np.testing.assert_allclose(x, theirs, rtol=1e-6)
    function(a, b, 1e-9)
    reads, replayed, launched = driver.reads, driver.replayed, driver.launched
    function(a, b, 1e-9)
    # Guesses are looked at after 1, 2, 4, ... of them, as many rounds as one graph; x, and that no
    # kernel failed, at the end.
    assert driver.reads - reads <= 9
    assert driver.replayed - replayed <= 6
    assert driver.launched - launched <= 10


# -- programs --------------------------------------------------------------------------------------


def power_iteration(a: Any, tol: float) -> Any:
    v = np.ones(a.shape[0])
    value = 0.0
    while True:
        w = a @ v
        norm = np.sqrt((w * w).sum())
        v = w / norm
        if abs(norm - value) < tol:
            break
        value = norm
    return value, v


def k_means(x: Any, centers: Any) -> Any:
    labels = np.zeros(x.shape[0], dtype=np.int64)
    rounds = 0
    while True:
        distances = ((x[:, None, :] - centers[None, :, :]) ** 2).sum(-1)
        new = np.argmin(distances, axis=1)
        rounds += 1
        if rounds > 1 and (new == labels).all():
            break
        labels = new
        one = (labels[:, None] == np.arange(centers.shape[0])[None, :]).astype(x.dtype)
        centers = (one.T @ x) / np.maximum(one.sum(0), 1.0)[:, None]
    return centers, labels, rounds


def in_place(x: Any, limit: float) -> Any:
    steps = 0
    while x.sum() > limit:
        x *= 0.5
        x[0] += 0.01
        steps += 1
        if steps > 60:
            return None
    return steps


def fails_behind_the_end(x: Any, stop: float) -> Any:
    k, total = 0, 0.0
    while total < stop:
        total = total + x[k] + 0.0 * x.sum()
        x[k] = -1.0
        k += 1
    return k, total


def raises(x: Any, most: float) -> Any:
    while x.max() < 100.0:
        x = x * 1.5
        if x.sum() > most:
            raise ValueError(f"too large: {int(x.sum())}")
    return x


def halves_while_even(n: Any) -> Any:
    rounds = np.zeros(3)
    total = n.sum()
    while total > 1:
        if (n % 2 == 0).all():
            n = n // 2
            rounds[0] += 1
        elif n[0] % 3 == 0:
            n = n // 3
            rounds[1] += 1
        else:
            n = n - 1
            rounds[2] += 1
        total = n.sum()
    return n, rounds


def nested(x: Any) -> Any:
    outer = inner = 0
    while x.max() > 0.1:
        y = x
        while y.sum() > 1.0:
            y = y * 0.7
            inner += 1
        x = x * 0.8
        outer += 1
        if outer > 200:
            break
    return x, outer, inner


def tells(x: Any) -> Any:
    while x.sum() > 1.0:
        x = x * 0.5
        print(float(x[0]))
    return x


def newton_rows(x: Any) -> Any:
    guess = np.ones_like(x)
    for k in range(100):
        new = 0.5 * (guess + x / guess)
        if np.abs(new - guess).max() < 1e-12:
            return new, k
        guess = new
    return guess, -1


def complex_squares(c: Any) -> Any:
    z = c * 0
    n = 0
    while abs(z.sum()) < 50.0 and n < 40:
        z = z * z + c
        n += 1
    return z, n


def continues(x: Any) -> Any:
    kept, k = 0.0, 0
    while k < 30:
        k += 1
        x = np.cos(x)
        if x.sum() < 2.0:
            continue
        kept += x.sum() * k
        if kept > 40.0:
            break
    return kept, k


def divides(x: Any) -> Any:
    """Python's own numbers, which raise."""
    a, b = float(x.sum()), float(x.max())
    rounds = 0
    while b > -3.0:
        a = a / b
        b = b - 1.0
        x = x * 0.5 + a
        rounds += 1
    return a, x


def helper(x: Any) -> Any:
    while x.sum() > 3.0:
        x = x * 0.9
    return x


def calls(x: Any, y: Any) -> Any:
    rounds = 0
    while y.sum() > 2.0:
        y = helper(y) * 0.9 + 0.0 * x.sum()
        rounds += 1
    return y, rounds


def grows(x: Any) -> Any:
    parts = []
    while x.sum() > 1.0:
        x = x * 0.6
        parts.append(x[0])
    return np.array(parts)


def counts_down(x: Any) -> Any:
    """An array's extent hangs on the round."""
    n, total = x.shape[0], 0.0
    while total < 4.0:
        n -= 1
        total = total + x[:n].sum()
    return n, total


def resamples(zs: Any, rng: Any, n: int) -> Any:
    """A particle filter: kernels of rounds that are guessed get several numbers of the host's."""
    p, w, found = rng.normal(0, 1, n), np.full(n, 1 / n), []
    for z in zs:
        p = 0.9 * p + rng.normal(scale=0.3, size=n) + z
        if 1 / np.sum(np.square(w)) < n / 2:
            sums, index, i, j = np.cumsum(w), np.zeros(n, "i"), 0, 0
            sums[-1] = 1.0
            while i < n:
                j += 1
            p = p[index]
            w.fill(1.0 / n)
        found.append(np.average(p, weights=w))
    return found


RNG = np.random.default_rng(3)
PROGRAMS = [
    (power_iteration, system(9)[0], 1e-10),
    (k_means, RNG.normal(size=(30, 2)), RNG.normal(size=(3, 2))),
    (in_place, RNG.random(50), 0.1),
    (in_place, RNG.random(50), 0.001),
    (fails_behind_the_end, np.ones(12), 6.5),
    (fails_behind_the_end, np.ones(5), 6.5),
    (raises, RNG.random(4) + 1, 1e9),
    (raises, RNG.random(4) + 1, 300.0),
    (halves_while_even, np.array([48, 96, 24])),
    (nested, RNG.random(5)),
    (newton_rows, RNG.random(20) * 30 + 0.1),
    (complex_squares, RNG.normal(size=4) * 0.3 + 0.4j),
    (continues, RNG.random(4)),
    (divides, RNG.random(3) + 4.0),
    (divides, np.array([2.0, 2.0])),
    (calls, RNG.random(3), RNG.random(9) * 4),
    (grows, RNG.random(6) * 4),
    (counts_down, np.full(9, 0.3)),
    (counts_down, np.full(5, 0.3)),
    (tells, RNG.random(7)),
]


@pytest.mark.slow
def test_numbers_of_the_host_stay_where_a_kernel_of_a_guessed_round_finds_them(
    driver: Waiting
) -> None:
    zs = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    wanted = resamples(zs, np.random.default_rng(0), 20)
    found = pyrelay.jit(resamples, device="cuda_emulator")(zs, np.random.default_rng(0), 20)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", PROGRAMS, ids=[f"{call[0].__name__}-{k}" for k, call in enumerate(PROGRAMS)]
)
def test_programs_do_what_python_does(
    driver: Waiting, call: tuple[Any, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    function, *args = call
    assert_same(function, *args)
    said = capsys.readouterr().out
    assert said == said[: len(said) // 4] * 4  # nothing is printed by rounds that do not happen


@pytest.mark.slow
def test_the_gradient_of_a_loop_with_an_end_that_hangs_on_data(driver: Waiting) -> None:
    def loss(x: Any, w: Any) -> Any:
        k = 0
        while (x * x).sum() < 30.0:
            x = np.tanh(w @ x) * 2.0 + x
            if k > 20:
                break
            k += 1
        return (x ** 3).sum()

    x, w = RNG.normal(size=4), RNG.normal(size=(4, 4))
    compiled = pyrelay.grad(loss, (0, 1), device=ON)
    for _ in range(3):
        for mine, theirs in zip(compiled(x, w), pyrelay.grad(loss, (0, 1))(x, w), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9)


@pytest.mark.slow
def test_products_of_guessed_rounds_go_to_memory_of_their_graph(
    driver: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = RoundGraphs._captured
    kept = []

    def noted(*args: Any) -> Any:
        driver.products.clear()
        graph = captured(*args)
        assert graph is not None
        kept.append(bool(driver.products))
        assert set(driver.products) <= {owner.address for owner in graph.owners}
        return graph

    monkeypatch.setattr(RoundGraphs, "_captured", noted)
    a, b = system(24)
    assert_same(conjugate_gradients, a + 20.0 * np.eye(24), b, 1e-6)
    assert any(kept)


@pytest.mark.slow
def test_memory_that_runs_out_in_a_round_that_does_not_happen(
    driver: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swells(x: Any) -> Any:
        n = 1
        while x.sum() * n < 300.0:
            n *= 4
            x = x + (np.ones((n, 3)) @ np.ones((3, 2))).sum() * 0.0 + 0.5
        return x, n

    allocate = driver.allocate

    def limited(nbytes: int) -> Any:
        if nbytes > 24 * 100 and nbytes != CELLS * 16:
            raise OutOfDeviceMemory
        return allocate(nbytes)

    monkeypatch.setattr(driver, "allocate", limited)
    assert_same(swells, np.ones(2))
    with pytest.raises(MemoryError, match="no memory on the emulated GPU for an array of"):
        pyrelay.jit(swells, device=ON)(np.full(2, 1e-9))
