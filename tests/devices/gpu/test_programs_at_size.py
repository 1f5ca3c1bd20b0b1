"""A real GPU: kernels that many blocks share, at sizes that no emulator has time for, against NumPy
or the CPU. Skipped without one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from tests.devices.gpu.test_programs import MISSING

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING),
    pytest.mark.filterwarnings("default"),  # of CuPy, PyTorch, JAX
]
RANDOM = np.random.default_rng(5)


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1])).astype(q.dtype)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) * (1 / 8)
    n, m = scores.shape[-2:]
    scores = np.where(np.arange(n)[:, None] >= np.arange(m), scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v


def loss(of: Callable[..., Any]) -> Callable[..., Any]:
    def squares(q: Any, k: Any, v: Any) -> Any:
        mixed = of(q, k, v).astype(np.float32)
        return (mixed * mixed).sum()

    return squares


SQUARES = {"attention": loss(attention), "causal": loss(causal)}


def far(found: Any, wanted: Any) -> float:
    """The norm of what arrays differ by, over that of what is wanted."""
    found, wanted = (np.asarray(a).astype(np.float64) for a in (found, wanted))
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("name", SQUARES)
@pytest.mark.parametrize(("dtype", "precision", "bound"), [
    ("f4", "highest", 1e-5), ("f4", "tf32", 5e-3), ("f4", "bf16", 3e-2), ("f2", "highest", 1e-2),
    ("f8", "highest", 1e-12),
])  # fmt: skip
def test_attention_and_its_derivative(name: str, dtype: str, precision: str, bound: float) -> None:
    heads = [
        RANDOM.normal(size=(6, n, 64)).astype(dtype) for n in (777, 777, 777)
    ]
    exact = [a.astype(np.float64) for a in heads]
    wanted = pyrelay.grad(SQUARES[name], (0, 1, 2), device="cpu")(*exact)
    of = attention if name == "attention" else causal
    with config.override(matmul_precision=precision):
        made = pyrelay.jit(of, device="cuda")
        slope = pyrelay.grad(SQUARES[name], (0, 1, 2), device="cuda")
        for _ in range(2):
            assert far(made(*heads), pyrelay.jit(of, device="cpu")(*exact)) < bound
            assert max(map(far, slope(*heads), wanted)) < bound


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1", "f2"])
@pytest.mark.parametrize("shape", [(1_500_001,), (4096, 512), (3, 300_007), (40, 5000)])
def test_sorting(dtype: str, shape: tuple[int, ...]) -> None:
    x = (RANDOM.normal(size=shape) * 50).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x.reshape(-1)[::1001] = np.nan
    made = pyrelay.jit(lambda x: (np.sort(x), np.argsort(x, kind="stable")), device="cuda")
    for _ in range(3):
        values, places = made(x)
        np.testing.assert_array_equal(values, np.sort(x))
        np.testing.assert_array_equal(places, np.argsort(x, kind="stable"))


@pytest.mark.parametrize("rows", [8192, 65_536, 300_000])
@pytest.mark.parametrize("width", [1, 7, 512])
def test_rows_added_in_sorted_order(rows: int, width: int) -> None:
    def picked(table: Any, i: Any) -> Any:
        return (table[i] * table[i]).sum()

    table = RANDOM.normal(size=(30_000, width)).astype(np.float32)
    i = RANDOM.integers(0, 30_000, rows)
    wanted = np.zeros(table.shape)
    np.add.at(wanted, i, 2.0 * table[i])
    made = pyrelay.grad(picked, device="cuda")
    first = made(table, i)
    assert far(first, wanted) < 1e-6
    for _ in range(3):
        np.testing.assert_array_equal(made(table, i), first)


def test_counts_and_places() -> None:
    x = RANDOM.normal(size=1 << 24).astype(np.float32)
    edges = np.sort(RANDOM.normal(size=1000).astype(np.float32))
    k = RANDOM.integers(0, 5000, 1 << 22)

    def told(x: Any, edges: Any, k: Any) -> Any:
        return (
            np.histogram(x, bins=64, range=(-4.0, 4.0))[0], np.searchsorted(edges, x),
            np.bincount(k, minlength=5000), x.argmax(), x.argmin(), np.argmax(x * 0), x.max(),
        )

    made = pyrelay.jit(told, device="cuda")
    for _ in range(3):
        for mine, theirs in zip(made(x, edges, k), told(x, edges, k), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("shape", [(512, 32_768), (8, 131_072), (3, 70_001), (4096, 512)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_softmax_and_normalised_rows(shape: tuple[int, int], dtype: str) -> None:
    def rows(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        centred = x - x.mean(axis=1, keepdims=True)
        return e / e.sum(axis=1, keepdims=True), centred / np.sqrt(
            (centred * centred).mean(axis=1, keepdims=True) + 1e-5
        )

    x = RANDOM.normal(size=shape).astype(dtype)
    made = pyrelay.jit(rows, device="cuda")
    for _ in range(3):
        for mine, theirs in zip(made(x), rows(x.astype(np.float64)), strict=True):
            assert far(mine, theirs) < (1e-6 if dtype == "f4" else 1e-14)


def test_running_sums_and_largest() -> None:
    x = RANDOM.normal(size=(1 << 24) + 3)
    k = RANDOM.integers(-9, 9, (1 << 22) + 1)

    def told(x: Any, k: Any) -> Any:
        return np.cumsum(x), np.maximum.accumulate(x), np.cumsum(k), x[x > 1], np.nonzero(k)[0]

    for mine, theirs in zip(pyrelay.jit(told, device="cuda")(x, k), told(x, k), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-7)


def lstm(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    n = wh.shape[0]
    h = (x[0] @ wx)[..., :n] * 0
    c = h
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        forget, keep, give = (1 / (1 + np.exp(-z[..., k * n : (k + 1) * n])) for k in (0, 1, 3))
        c = forget * c + keep * np.tanh(z[..., 2 * n : 3 * n])
        h = give * np.tanh(c)
    return h


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("rows", [(), (1,), (64,), (37,)])
@pytest.mark.parametrize("width", [32, 100, 256])
def test_loops_as_one_kernel_for_known_extents(
    rows: tuple[int, ...], width: int, dtype: str
) -> None:
    """The same bits before and behind the kernel that is compiled for what comes often."""
    args = [
        RANDOM.normal(size=shape).astype(dtype) / np.sqrt(width).astype(dtype)
        for shape in ((50, *rows, width), (width, 4 * width), (width, 4 * width), (4 * width,))
    ]
    made = pyrelay.jit(lstm, device="cuda")
    first = made(*args)
    assert far(first, lstm(*(a.astype(np.float64) for a in args))) < 1e-5
    for _ in range(10):
        np.testing.assert_array_equal(made(*args), first)
    for thread in threading.enumerate():
        if thread.name == "pyrelay":
            thread.join()
    for _ in range(5):
        np.testing.assert_array_equal(made(*args), first)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4"])
def test_narrow_integers_beside_floats(dtype: str) -> None:
    """Integers that lie side by side in a register, and become floats of 16 and 32 bits."""

    def told(a: Any, b: Any) -> Any:
        made = (
            abs(a), -a, a * a, np.minimum(a, b), np.maximum(a, b), np.sign(a), a + b, a - b, a * b,
            a // b, a % b, a & b, a | b, a ^ b, ~a, a >> 3, a << 2, abs(a - b), abs(abs(a) - b),
            np.where(a > b, a, b), np.clip(a, 2, 9),
        )
        return (*made, *(np.float32(1.5) * x for x in made), *(np.sqrt(x) for x in made))

    info = np.iinfo(dtype)
    a = RANDOM.integers(info.min, info.max, 1003, dtype=dtype, endpoint=True)
    b = RANDOM.integers(1, 12, 1003).astype(dtype)
    with np.errstate(all="ignore"):
        wanted = told(a, b)
    for place, (mine, theirs) in enumerate(
        zip(pyrelay.jit(told, device="cuda")(a, b), wanted, strict=True)
    ):
        assert mine.dtype == theirs.dtype, place
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, err_msg=str(place))


def test_arrays_of_more_than_2_to_the_31_elements() -> None:
    import cupy

    n = (1 << 31) + 77
    x = cupy.zeros(n, np.uint8)
    x[-3] = 200
    y, total, place = pyrelay.jit(lambda x: (x * 2 + 1, x.sum(), x.argmax()))(x)
    assert int(total) == 200
    assert int(place) == n - 3
    assert y[[0, n // 2, n - 3, n - 1]].tolist() == [1, 1, 145, 1]
    del x, y
    wide = cupy.zeros((70_000, 40_000), np.uint8)
    wide[69_999, 39_999] = 7
    rows, columns = pyrelay.jit(lambda x: (x.sum(axis=1), x.T.max(axis=1)))(wide)
    assert int(rows[-1]) == int(columns[-1]) == 7
    assert int(rows[:-1].max()) == int(columns[:-1].max()) == 0


def test_arrays_of_torch_and_jax_behind_work_that_is_not_done() -> None:
    """What another library is still computing is waited for by the stream, and given back so."""
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    made = pyrelay.jit(lambda x: np.tanh(x) * 2 + x.mean())
    later = jax.jit(lambda x: jax.numpy.linalg.matrix_power(x / 1500, 40) * 0 + x[0])
    behind = jax.jit(lambda y: y.sum() * 0 + y)
    for number in range(12):
        values = np.full((1500, 1500), 0.001 * number, np.float32)
        wanted = np.tanh(values) * 2 + values.mean()
        own = torch.from_numpy(values).cuda()
        for _ in range(5):
            own = own @ own * 0 + torch.from_numpy(values).cuda()
        given = made(own)
        del own
        torch.empty(1500, 1500, device="cuda").fill_(9)  # takes the memory that is free now
        np.testing.assert_allclose((given * 1).cpu().numpy(), wanted, rtol=1e-4, atol=1e-6)
        x = later(jax.numpy.asarray(values))
        given = made(x)
        del x
        np.testing.assert_allclose(np.asarray(behind(given)), wanted, rtol=1e-4, atol=1e-6)


def test_stop_conditions_of_the_device_many_times() -> None:
    def halved(x: Any, least: Any) -> Any:
        rounds = 0
        while np.abs(x).sum() > least:
            x = x * 0.5
            rounds += 1
        return x, rounds

    made = pyrelay.jit(halved, device="cuda")
    for number in range(40):
        x = RANDOM.normal(size=10_000 + number)
        least = np.float64(10.0 ** -(number % 9))
        mine, theirs = made(x, least), halved(x, least)
        np.testing.assert_array_equal(mine[0], theirs[0])
        assert mine[1] == theirs[1]
