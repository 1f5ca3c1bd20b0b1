"""Loops that run as one kernel: counted, and as right as round by round."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import config
from pyrelay.devices import cuda_emulator
from pyrelay.devices.cuda_emulator import TARGET
from pyrelay.devices.gpu import (
    persistent_held_tiles,
    persistent_known,
    persistent_prelude,
    persistent_product,
    plan_python,
    programs,
    word_texts,
)
from pyrelay.devices.gpu.driver import Text
from pyrelay.devices.gpu.hazards import NOBODY, Pending
from pyrelay.devices.gpu.persistent import loops
from pyrelay.devices.gpu.persistent_prelude import PHASE
from pyrelay.devices.gpu.plan_python import plan_code
from pyrelay.errors import InvariantError
from pyrelay.ir.types import f32
from pyrelay.lower.planning.opcodes import BINARY, CHECKED, UNARY
from pyrelay.lower.planning.plan import plan
from pyrelay.pipeline import lowered
from tests.devices.gpu.test_graphs import Counted
from tests.devices.running_kernels import needs_compiler
from tests.infer.running import inferred

pytestmark = needs_compiler
ON = "cuda_emulator"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    made = Counted()
    monkeypatch.setattr(cuda_emulator, "DRIVER", made)
    return made


def all_ways(
    function: Callable[..., Any], *args: Any, monkeypatch: pytest.MonkeyPatch, enters: bool = True
) -> tuple[Any, ...]:
    """The results in one kernel of one block, of a grid, round by round; and of plain Python.
    Blocks take turns in all orders: a meeting that is missing shows as another result."""
    found = []
    for blocks in (1, cuda_emulator.MEETING, 0):
        with monkeypatch.context() as patch:
            chosen: list[int] = []
            patch.setattr(programs, "blocks_of", lambda *_, b=blocks, c=chosen: c.append(b) or b)
            compiled = pyrelay.jit(function, device=ON)  # a program keeps how many it has chosen
            results = []
            for turns in cuda_emulator.ORDERS if blocks > 1 else (0,):
                patch.setattr(cuda_emulator.DRIVER, "turns", turns)
                copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
                results.append(compiled(*copies))
            assert bool(chosen) == enters
            if blocks > 1:  # the kernel for any extents
                patch.setattr(persistent_known, "FIRST", 0)
                copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
                results.append(pyrelay.jit(function, device=ON)(*copies))
            for other in results[1:]:
                np.testing.assert_equal(other, results[0])
            found.append(results[0])
    return (*found, function(*args))


def lstm(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    n = wh.shape[0]
    h, c, hs = np.zeros(n), np.zeros(n), np.zeros((x.shape[0], n))
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        i, f, o = (1 / (1 + np.exp(-z[k * n : (k + 1) * n])) for k in (0, 1, 3))
        c = f * c + i * np.tanh(z[2 * n : 3 * n])
        h = o * np.tanh(c)
        hs[t] = h
    return h, c, hs


def weights(n: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=s) for s in ((24, 5), (5, 4 * n), (n, 4 * n), (4 * n,)))


def test_an_lstm_is_one_kernel_and_what_goes_before_it(driver: Counted) -> None:
    args = weights(6)
    function = pyrelay.jit(lstm, device=ON)
    for mine, theirs in zip(function(*args), lstm(*args), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)
    # Zeros, and the 24 steps; x @ wx is a product of the library.
    assert driver.launched <= 4


@pytest.mark.slow
def test_the_gradient_of_a_recurrence_is_a_few_kernels(driver: Counted) -> None:
    def loss(w: Any, x: Any) -> Any:
        h = np.zeros(w.shape[0])
        for t in range(x.shape[0]):
            h = np.tanh(h @ w + x[t])
        return (h * h).sum()

    rng = np.random.default_rng(1)
    w, x = 0.5 * rng.normal(size=(4, 4)), rng.normal(size=(40, 4))
    mine = pyrelay.grad(loss, device=ON)(w, x)
    np.testing.assert_allclose(mine, pyrelay.grad(loss)(w, x), rtol=1e-10, atol=1e-13)
    assert driver.launched <= 12


def test_a_loop_that_ends_by_what_it_computes_waits_for_nothing(
    driver: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def root(x: Any) -> Any:
        y, rounds, error = x.copy(), 0, 1.0
        while error > 1e-12:
            z = 0.5 * (y + x / y)
            error = np.abs(z - y).max()
            y = z
            rounds += 1
        return y, rounds, error

    x = np.linspace(1.0, 9.0, 50)
    one, grid, many, plain = all_ways(root, x, monkeypatch=monkeypatch)
    for found in (one, grid, many):
        np.testing.assert_allclose(found[0], plain[0], rtol=1e-14)
        assert found[1:] == plain[1:]
        assert [type(f) for f in found] == [type(p) for p in plain]


@pytest.mark.slow
def test_swapped_and_nested_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    def heat(u: Any, k: int) -> Any:
        v = u.copy()
        for j in range(k):
            for _ in range(2):
                v = v.copy()
                v[1:-1] = 0.5 * u[1:-1] + 0.25 * (u[2:] + u[:-2])
                u, v = v, u
            if j % 3 == 1:
                u = u + v
            elif j % 3 == 2:
                u, v = v, u * 0.5
        return u, v, u.sum()

    u = np.sin(np.arange(20.0))
    for k in (0, 1, 2, 7):
        one, grid, many, plain = all_ways(heat, u, k, monkeypatch=monkeypatch, enters=k > 0)
        for each in (one, grid, many):
            for mine, theirs in zip(each, plain, strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-15)


def test_errors_inside_are_those_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(x: Any, limit: float) -> Any:
        total = 0.0
        for k in range(40):
            x = x * 1.5 + x.sum()
            total = total + x[0]
            if total > limit:
                raise ValueError(f"too much at {k}: {total}")
        return x

    function = pyrelay.jit(walk, device=ON)
    for limit in (10.0, 1e5):
        with pytest.raises(ValueError, match="too much") as wanted:
            walk(np.ones(3), limit)
        with pytest.raises(ValueError, match="too much") as caught:
            function(np.ones(3), limit)
        assert str(caught.value).splitlines()[0] == str(wanted.value)


def test_what_the_loop_itself_raises_is_not_lost() -> None:
    def count(x: Any, n: int) -> Any:
        total = 2**62
        for k in range(n):
            x = x * 0.5
            total = total + 2**60 * (k + 1)
        return x, total

    function = pyrelay.jit(count, device=ON)
    assert function(np.ones(2), 1)[1] == 2**62 + 2**60
    with pytest.raises(OverflowError):
        function(np.ones(2), 9)
    assert function(np.ones(2), 1)[1] == 2**62 + 2**60


@pytest.mark.slow
def test_an_index_that_fails_in_a_kernel_ends_the_loop(driver: Counted) -> None:
    def chase(x: Any, index: Any) -> Any:
        for k in range(10):
            x = x[index + k] + x.sum()
        return x

    with pytest.raises(IndexError, match=r"^index 5 is out of bounds for axis 0 with size 5"):
        pyrelay.jit(chase, device=ON)(np.ones(5), np.arange(5))


def test_what_is_given_is_written_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def descend(x: Any, k: int) -> None:
        for _ in range(k):
            x -= 0.1 * (x @ x)

    x, y = np.eye(3), np.eye(3)
    pyrelay.jit(descend, device=ON)(x, 5)
    descend(y, 5)
    np.testing.assert_allclose(x, y, rtol=1e-13)


@pytest.mark.slow
def test_rounds_that_scan_and_scatter(monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(x: Any, index: Any) -> Any:
        total = np.zeros(9)
        for k in range(4):
            x = np.cumsum(x * 0.5, axis=0)
            np.add.at(total, index, x[:, k % 2])
            x[index[:3]] = x[:3] + k
        return x, total

    x, index = np.sin(np.arange(300.0)).reshape(150, 2), np.arange(150) % 9
    one, grid, many, plain = all_ways(walk, x, index, monkeypatch=monkeypatch)
    for each in (one, grid, many):
        for mine, theirs in zip(each, plain, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f4", "?", "c16"])
def test_products_of_a_grid_are_those_of_numpy(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def powers(a: Any, w: Any, v: Any) -> Any:
        b = a
        for _ in range(2):
            a = a @ w
            b = b @ (w @ v)
        return a, b

    rng = np.random.default_rng(2)
    for m, k in ((1, 40), (37, 70)):
        shapes = ((m, k), (k, k), (k, k))
        a, w, v = ((2 * rng.normal(size=s)).astype(kind) for s in shapes)
        found = all_ways(powers, a, w, v.T, monkeypatch=monkeypatch)
        for each in found[:3]:
            for mine, theirs in zip(each, found[3], strict=True):
                assert mine.dtype == theirs.dtype
                scale = np.abs(theirs).max()
                np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5 * scale)


def test_blocks_wait_for_those_that_begin_when_another_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first phase fails, and blocks begin one after the other."""
    def chase(x: Any, index: Any) -> Any:
        for k in range(10):
            x = x[index + k] * 2.0
        return x

    monkeypatch.setattr(programs, "blocks_of", lambda *_: 3)
    function = pyrelay.jit(chase, device=ON)
    for turns in cuda_emulator.ORDERS:
        monkeypatch.setattr(cuda_emulator.DRIVER, "turns", turns)
        with pytest.raises(IndexError, match="index 900 is out of bounds for axis 0 with size 700"):
            function(np.ones(700), np.arange(700) + 900)


@pytest.mark.slow
def test_errors_of_scatters_and_of_scalars_in_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    def put(x: Any, index: Any) -> Any:
        for k in range(5):
            x[index + k] = x[:2] * 2.0
        return x

    for blocks in (1, 3):
        monkeypatch.setattr(programs, "blocks_of", lambda *_, b=blocks: b)
        with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
            pyrelay.jit(put, device=ON)(np.ones(4), np.array([0, 1]))


def chain(x: Any, n: int) -> Any:
    """Steps of a recurrence in a list, which is how users keep them."""
    steps = []
    for k in range(n):
        x = np.tanh(x * 1.1 + 0.1 * k)
        steps.append(x)
    return np.stack(steps), x


@pytest.mark.slow
def test_lists_that_grow_are_handed_over_now_and_then(
    driver: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.linspace(-1.0, 1.0, 5)
    one, grid, many, plain = all_ways(chain, x, 60, monkeypatch=monkeypatch)
    for each in (one, grid, many):
        for mine, theirs in zip(each, plain, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-13)
    function = pyrelay.jit(chain, device=ON)
    function(x, 60)
    launched = driver.launched
    function(x, 60)
    # A list of 60 grows four times; each time the host does a round.
    assert driver.launched - launched <= 20


@pytest.mark.slow
def test_gradients_keep_their_tape_inside(
    driver: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loss(x: Any, n: int) -> Any:
        steps, _ = chain(x, n)
        return (steps * steps).sum()

    def until(w: Any, x: Any) -> Any:
        rounds = 0
        while (x * x).sum() > 1e-3 and rounds < 50:
            x = np.tanh(x @ w) if x[0] > 0 else np.sin(x) @ w
            rounds += 1
        return (x * x).sum() * rounds

    x, w = np.linspace(-1.0, 1.0, 3), 0.3 * np.eye(3) + 0.1
    cases: list[Any] = [(loss, 0, (x, 40)), (until, (0, 1), (w, x + 1.5))]
    for function, argnums, args in cases:
        wanted = pyrelay.grad(function, argnums)(*args)
        for blocks in (1, 3, 0):
            monkeypatch.setattr(programs, "blocks_of", lambda *_, b=blocks: b)
            driver.launched = 0
            mine = pyrelay.grad(function, argnums, device=ON)(*args)
            for found, each in zip(np.atleast_2d(mine[0]), np.atleast_2d(wanted[0]), strict=True):
                np.testing.assert_allclose(found, each, rtol=1e-10, atol=1e-13)
            assert blocks == 0 or driver.launched < 30


@pytest.mark.slow
def test_python_is_called_in_the_rounds_that_call_it(
    driver: Counted, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reporting(x: Any, n: int) -> Any:
        for k in range(n):
            x = x * 0.9 + x.sum() * 0.01
            if k % 10 == 9:
                print(k, round(float(x[0]), 6))
        return x

    monkeypatch.setattr(programs, "blocks_of", lambda *_: 3)
    x = np.arange(1.0, 5.0)
    wanted = reporting(x, 35)
    plain = capsys.readouterr().out
    np.testing.assert_allclose(pyrelay.jit(reporting, device=ON)(x, 35), wanted, rtol=1e-13)
    assert capsys.readouterr().out == plain
    assert driver.launched <= 12


def test_errors_come_back_from_loops_that_hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def put(x: Any, n: int) -> Any:
        steps = []
        for k in range(n):
            x = x * 1.5
            if x.sum() > 50.0:
                raise ValueError(f"too much at {k}")
            steps.append(x)
        return np.array(steps)

    for blocks in (1, 3):
        monkeypatch.setattr(programs, "blocks_of", lambda *_, b=blocks: b)
        function = pyrelay.jit(put, device=ON)
        with pytest.raises(ValueError, match="too much at 6"):
            function(np.ones(4), 30)
        np.testing.assert_allclose(function(np.ones(4), 3), put(np.ones(4), 3))


def test_loops_that_call_the_host_in_every_round_are_left_alone() -> None:
    def printing(x: Any) -> Any:
        for k in range(3):
            x = x * 2.0
            print(k)
        return x

    made = plan(lowered(inferred(printing, (np.ones(2),)).module, "fuse"), TARGET)
    assert [found for f in made.functions for found in loops(made, f)] == []


MEETING = """\
#define BLOCK_THREADS 256
#define MEETS 1
{support}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<i64> words, Buffer<i64> out
) {{
    pyrelay_meeting grid = {{(u32 *)&words[0], 0u, (u32)gridDim.x}};
    for (int k = 0; k < 3; k++) {{
        if (threadIdx.x == 0) out[blockIdx.x] = out[blockIdx.x] + 1;
        {meet}
        i64 sum = 0;
        for (int b = 0; b < gridDim.x; b++) sum += out[b];
        if (sum != (k + 1) * gridDim.x && threadIdx.x == 0) out[gridDim.x] = 1;
        pyrelay_meet(grid, record, launch, 0);
    }}
}}
"""


def met(meet: str) -> Any:
    driver = cuda_emulator.EmulatorDriver()
    driver.watched = False
    text = MEETING.format(support=persistent_prelude.SUPPORT, meet=meet)
    (function,) = driver.load([Text(text, ())])
    words, out = np.zeros(2, np.int64), np.zeros(5, np.int64)
    for each in (words, out):
        driver.sizes[each.ctypes.data] = each.nbytes
    driver.launch_meeting(function, 4, [0, 0, 0, 1, words.ctypes.data, out.ctypes.data], 0)
    return out.tolist()


def test_blocks_that_meet_see_what_all_have_written() -> None:
    assert met("pyrelay_meet(grid, record, launch, 0);") == [3, 3, 3, 3, 0]
    assert met("")[4] == 1  # without it they do not
    with pytest.raises(InvariantError, match="a barrier is not reached by all"):
        met("if (blockIdx.x != 1 || k == 0) pyrelay_meet(grid, record, launch, 0);")


WEIGHTS = """\
#define BLOCK_THREADS 256
#define MEETS 1
{support}
namespace phase0 {{
{product}}}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<i64> words,
    Buffer<const f32> a, Buffer<const f32> b, Buffer<f32> lost, Buffer<f32> c, Buffer<i64> out
) {{
    pyrelay_meeting grid = {{(u32 *)&words[0], 0u, (u32)gridDim.x}};
    const i64 m = out[0], n = out[1], units = out[2], k = out[3], turned = out[4];
    const i64 line = turned ? k : n, gates = (n + units - 1) / units;
    const pyrelay_own own = pyrelay_own_of(m, units, k, k * gates, 8192, true);
    PYRELAY_SHARED(f32, work, 2048);
    PYRELAY_SHARED(u64, weights, 4096);
    f32 *kept = (f32 *)&weights[0];
    const pyrelay_split split = pyrelay_split_owned<f32>(own, m, n, k, {room}, {precision});
    pyrelay_keep<f32>(kept, split, b, n, k, turned, line);
    pyrelay_meet(grid, record, launch, 0);
    const f32 nan = f32(__builtin_nan(""));
    for (i64 e = threadIdx.x; split.kept && blockIdx.x == 0 && e < k * n; e += 256) lost[e] = nan;
    pyrelay_meet(grid, record, launch, 0);
    const pyrelay_held<f32, {pack}> held = {{}};
    for (int round = 0; round < 2; round++) {{
        phase0::phase(record, launch, 0, 1, work, kept, held, split, a, b, c, m, n, k, 0, turned,
            round, k, line, n, 0, 0, 0, {precision});
    }}
    if (blockIdx.x == 0 && threadIdx.x == 0) out[5] = split.kept * split.held * split.padded;
}}
"""


def rounded(x: Any, precision: int) -> Any:
    """As tensor cores take float32: 10 bits behind the first for TF32, 7 for bfloat16."""
    bits = {0: 0, 1: 13, 2: 16}[precision]
    words = np.asarray(x, np.float32).view(np.uint32)
    if precision == 2:  # halves to even ones
        words = words + 0x7FFF + (words >> 16 & 1)
    elif precision == 1:
        words = words + 0x1000
    return (words >> bits << bits).astype(np.uint32).view(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3, 9, 17])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("precision", [0, 1, 2])
@pytest.mark.parametrize(
    ("depth", "columns", "room"), [(70, 37, 32768), (64, 40, 32768), (64, 40, 0)]
)
def test_weights_that_fit_are_read_from_memory_once(
    rows: int, turned: int, precision: int, depth: int, columns: int, room: int
) -> None:
    units, blocks = 10, 3
    driver = cuda_emulator.EmulatorDriver()
    support = "\n".join([
        persistent_held_tiles.SWITCH,
        persistent_prelude.index_type(small=turned == 0), persistent_prelude.SUPPORT,
        persistent_prelude.OWNING, persistent_product.SUPPORT,
    ])
    text = WEIGHTS.format(
        support=support, product=persistent_product.product(f32, 0), precision=precision,
        room=room, pack=persistent_product.pack_of(f32),
    )
    (function,) = driver.load([Text(text, ())])
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=s).astype("f4") for s in ((rows, depth), (depth, columns)))
    given = np.ascontiguousarray(b.T) if turned else b.copy()
    words, c = np.zeros(2, np.int64), np.zeros((rows, columns), np.float32)
    out = np.array([rows, columns, units, depth, turned, 0])
    arrays = (words, a, given, given, c, out)
    for each in arrays:
        driver.sizes[each.ctypes.data] = each.nbytes
    told = [0, 0, 0, 1, *(each.ctypes.data for each in arrays)]
    driver.launch_meeting(function, blocks, told, 0)
    assert np.isnan(given).all() if room else out[5] == 0
    cores = precision > 0 and rows > 9  # two blocks share the rows
    a, b = (rounded(x, precision * cores) for x in (a, b))
    np.testing.assert_allclose(c, 2 * (a @ b), rtol=1e-4, atol=1e-4)
    # Units of a block, in four runs, and packs of four; of more rows each block has all columns.
    padded = -(-depth // 16) * 16 if cores else -(-depth // 4) * 4
    assert out[5] == (room > 0) * (4 if rows <= 3 else 10) * 4 * padded


DIVIDES = """\
{support}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const i64> by,
    Buffer<const i64> numbers, Buffer<i64> out
) {{
    for (i64 k = first + blockIdx.x * blockDim.x + threadIdx.x; k < last; k += blockDim.x) {{
        out[k] = pyrelay_divides(by[k], numbers[k]).of(numbers[k]);
    }}
}}
"""


def test_division_by_what_stays_the_same() -> None:
    by, numbers = map(np.ravel, np.meshgrid(
        [1, 2, 3, 7, 10, 255, 256, 641, 32768, 65535, 65536, 100_003],
        [0, 1, 2, 6, 7, 254, 255, 256, 6699, 32767, 65534, 65535, 65536, 10**9 + 7],
    ))
    by, numbers = (np.ascontiguousarray(each, np.int64) for each in (by, numbers))
    text = DIVIDES.format(support="\n".join([
        "#define MEETS 1", persistent_prelude.index_type(small=False), persistent_prelude.SUPPORT,
        persistent_prelude.OWNING,
    ]))
    driver = cuda_emulator.EmulatorDriver()
    (function,) = driver.load([Text(text, ())])
    out = np.zeros_like(numbers)
    for each in (by, numbers, out):
        driver.sizes[each.ctypes.data] = each.nbytes
    given = [0, 0, 0, len(out), *(each.ctypes.data for each in (by, numbers, out))]
    driver.launch_meeting(function, 1, given, 0)
    np.testing.assert_array_equal(out, numbers // by)


def test_every_spelling_is_of_an_instruction() -> None:
    known = (set(UNARY), set(BINARY), set(CHECKED))
    for spelled, names in zip(word_texts.SPELLED.values(), known, strict=True):
        assert spelled <= names


def parts(z: Any, n: int) -> Any:
    m = z.shape[0] // 4
    for k in range(n):
        a, b, c = z[:m], z[m : 2 * m], z[2 * m : 3 * m]
        z[3 * m :] = a * 0.5 + b
        z[:m] = np.tanh(c + k)
        z[m : 2 * m] = z[3 * m :] * 0.1
        z[2 * m : 3 * m] = z[2 * m : 3 * m] + 1
    return z


def shifted(z: Any, n: int) -> Any:
    m = z.shape[0] // 2
    for _ in range(n):
        z[:m] = z[m : 2 * m] * 0.9
        z[m : 2 * m] = z[:m] + np.arange(m) * 0.01
        z[1:m] = z[: m - 1] * 0.5
    return z


Z = np.random.default_rng(0).normal(size=17000)  # smaller ones are elements of one kernel


class Planned(Exception):
    """What a program was planned as, which is not compiled."""


def meetings(
    function: Callable[..., Any], *args: Any, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """At how many places the kernels of a program's loops meet."""
    planned: list[int] = []

    def stopped(made: Any) -> Any:
        loops = (p for p in plan_code(made).persistent if not p.large and not p.loop.begins)
        planned.extend(each.meets for each in loops)
        raise Planned

    monkeypatch.setattr(programs, "plan_code", stopped)
    with pytest.raises(Planned):
        function(*args)
    return planned


def test_items_that_go_on_with_their_own_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(function: Callable[..., Any]) -> list[int]:
        return meetings(pyrelay.jit(function, device=ON), Z, 4, monkeypatch=monkeypatch)

    assert found(parts) == [1]  # where all wait for all they are 7
    assert found(shifted) == [5]


def loss_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def loss(*args: Any) -> Any:
        h = function(*args)
        return (h * h).sum()

    return loss


def test_a_step_of_a_recurrence_meets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, wx, wh, b = weights(6)
    for function, gates in ((state_of_lstm, 24), (gru, 18)):
        args = (x, wx[:, :gates], wh[:, :gates], b[:gates])
        assert meetings(pyrelay.jit(function, device=ON), *args, monkeypatch=monkeypatch) == [1]


def rnn_of_columns(x: Any, w: Any) -> Any:
    h = np.zeros(w.shape[0])
    for t in range(x.shape[0]):
        h = np.tanh(w @ h + x[t])
    return h


def rnn_of_turned_columns(x: Any, w: Any) -> Any:
    h = np.zeros((w.shape[0], 1))
    for t in range(x.shape[0]):
        h = np.tanh(w.T @ h + x[t][:, None])
    return h


@pytest.mark.parametrize("function", [rnn_of_columns, rnn_of_turned_columns])
def test_a_column_is_a_row(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(9, 12)), rng.normal(size=(12, 12)) / 4
    one, grid, many, plain = all_ways(function, x, w, monkeypatch=monkeypatch)
    for found in (one, grid, many):
        np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-14)
    assert meetings(pyrelay.jit(function, device=ON), x, w, monkeypatch=monkeypatch) == [1]


@pytest.mark.slow
def test_a_step_of_a_derivative_meets_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, wx, wh, b = weights(6)
    several = x.reshape(6, 4, 5)
    for function, gates in ((state_of_lstm, 24), (lstm_batch, 24), (gru, 18), (rnn, 6)):
        args = (several if function is lstm_batch else x, wx[:, :gates], wh[:, :gates], b[:gates])
        assert meetings(pyrelay.jit(function, device=ON), *args, monkeypatch=monkeypatch) == [1]
        made = pyrelay.grad(loss_of(function), argnums=(1, 2, 3), device=ON)
        assert meetings(made, *args, monkeypatch=monkeypatch) == [1, 1]


def state_of_lstm(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    return lstm(x, wx, wh, b)[0]


def lstm_batch(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    n = wh.shape[0]
    h = (x[0] @ wx)[:, :n] * 0
    c = h
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        i, f, o = (1 / (1 + np.exp(-z[:, k * n : (k + 1) * n])) for k in (0, 1, 3))
        c = f * c + i * np.tanh(z[:, 2 * n : 3 * n])
        h = o * np.tanh(c)
    return h


def gru(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    n = wh.shape[0]
    h = b[:n] * 0
    for t in range(x.shape[0]):
        given, own = x[t] @ wx + b, h @ wh
        r, z = (1 / (1 + np.exp(-(given + own)[k * n : (k + 1) * n])) for k in (0, 1))
        h = (1 - z) * np.tanh(given[2 * n :] + r * own[2 * n :]) + z * h
    return h


def rnn(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    h = b * 0
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ wx + h @ wh + b)
    return h


@pytest.mark.slow
@pytest.mark.parametrize("function", [state_of_lstm, lstm_batch, gru, rnn])
@pytest.mark.parametrize("blocks", [1, 3, 8])
def test_blocks_that_own_elements_give_what_the_cpu_gives(
    function: Callable[..., Any], blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    n, rows = (33, 9) if blocks == 3 else (6, 2)
    gates = {"rnn": n, "gru": 3 * n}.get(function.__name__, 4 * n)
    steps = (3, rows, 4) if function is lstm_batch else (3, 4)
    args = [0.4 * rng.normal(size=s) for s in (steps, (4, gates), (n, gates), (gates,))]
    monkeypatch.setattr(programs, "blocks_of", lambda *_: blocks)
    for made in (pyrelay.jit, lambda f, **k: pyrelay.grad(loss_of(f), argnums=(1, 2, 3), **k)):
        wanted, compiled = made(function)(*args), made(function, device=ON)
        for turns in cuda_emulator.ORDERS:
            monkeypatch.setattr(cuda_emulator.DRIVER, "turns", turns)
            several = made is not pyrelay.jit
            found = compiled(*args) if several else [compiled(*args)]
            for mine, theirs in zip(found, wanted if several else [wanted], strict=True):
                np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_states_that_are_stored_in_place_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    def whole(h: Any, w: Any, n: int) -> Any:
        for _ in range(n):
            h[:] = np.tanh(h @ w) + 0.5 * h
        return h.sum()

    def but_one(h: Any, w: Any, n: int) -> Any:
        for _ in range(n):
            h[1:] = np.tanh(h @ w)[1:]
        return h.sum()

    rng = np.random.default_rng(7)
    h, w = rng.normal(size=40), 0.3 * rng.normal(size=(40, 40))
    for function in (whole, but_one):
        for blocks in (1, 3):
            monkeypatch.setattr(programs, "blocks_of", lambda *_, b=blocks: b)
            compiled = pyrelay.jit(function, device=ON)
            for turns in cuda_emulator.ORDERS:
                monkeypatch.setattr(cuda_emulator.DRIVER, "turns", turns)
                for n in (0, 3, 4):  # the last one is in the buffer itself, or in the other one
                    mine, theirs = h.copy(), h.copy()
                    assert compiled(mine, w, n) == pytest.approx(function(theirs, w, n))
                    np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    steps = (pyrelay.jit(each, device=ON) for each in (whole, but_one))
    found = [meetings(each, h, w, 3, monkeypatch=monkeypatch) for each in steps]
    assert found == [[1], [2]]


@pytest.mark.slow
def test_parts_that_lie_elsewhere_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def halves(x: Any, w: Any, n: int) -> Any:
        for _ in range(4):
            z = x @ w  # blocks own columns by the width of x, where that is less than a part of z
            x = x + z[:, n : n + x.shape[1]] * 0.5 - z[:, : x.shape[1]]
        return x

    rng = np.random.default_rng(5)
    for n in (3, 6, 9):
        args = (rng.normal(size=(3, 6)), 0.1 * rng.normal(size=(6, 15)), n)
        *found, plain = all_ways(halves, *args, monkeypatch=monkeypatch)
        for each in found:
            np.testing.assert_allclose(each, plain, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("function", [parts, shifted])
def test_orders_of_blocks_make_no_difference(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:

    *found, plain = all_ways(function, Z, 4, monkeypatch=monkeypatch)
    for each in found:
        np.testing.assert_allclose(each, plain, rtol=1e-12)
    # What is missing shows in one of the orders.
    monkeypatch.setattr(Pending, "waits", lambda *_: NOBODY)
    monkeypatch.setattr(Pending, "uses", lambda *_: False)
    monkeypatch.setattr(Pending, "__bool__", lambda _: False)
    with pytest.raises(AssertionError):
        all_ways(function, Z, 4, monkeypatch=monkeypatch)


@pytest.mark.slow
def test_rounds_that_sort(driver: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    def ranked(x: Any, rounds: int) -> Any:
        total = 0.0
        for k in range(rounds):
            order = np.argsort(x, kind="stable")
            x = np.sort(x * 0.9 + x[order[::-1]] * 0.3) + np.sin(7.0 * x[order]) * (k + 1)
            total += np.median(x)
        return x, total

    x = np.random.default_rng(0).normal(size=2500)  # tiles, and two merges
    one, grid, many, plain = all_ways(ranked, x, 4, monkeypatch=monkeypatch)
    for found in (one, grid, many):
        np.testing.assert_allclose(found[0], plain[0], rtol=1e-12)
        assert found[1] == pytest.approx(plain[1])
    before = driver.launched
    monkeypatch.setattr(programs, "blocks_of", lambda *_: 1)
    pyrelay.jit(ranked, device=ON)(x, 4)
    assert driver.launched - before <= 5


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 3])
def test_loops_without_end_are_stopped(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(x: Any) -> Any:
        while x.sum() > 0.0:
            x = x * 0.5 + 1.0
        return x

    class Alarm(Exception):
        pass

    def ring(*_: Any) -> None:
        raise Alarm

    monkeypatch.setattr(programs, "blocks_of", lambda *_: blocks)
    function = pyrelay.jit(endless, device=ON)
    np.testing.assert_allclose(function(-np.ones(4)), -np.ones(4))
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(Alarm):
            function(np.ones(4))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    np.testing.assert_allclose(function(-np.ones(4)), -np.ones(4))


def test_explain_tells_how_a_loop_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    def decay(x: Any) -> Any:
        for _ in range(5):
            x = x * 0.5 + x.sum()
        return x

    for blocks, told in ((1, "one block"), (3, "3 blocks that meet"), (0, "round by round")):
        monkeypatch.setattr(programs, "blocks_of", lambda *_, b=blocks: b)
        function = pyrelay.jit(decay, device=ON)
        function(np.ones(4))
        line = decay.__code__.co_firstlineno + 2
        assert f"the loop at line {line} ran" in str(function.explain())
        assert told in str(function.explain())


def recurrences(x: Any, w: Any, k: int) -> Any:
    """A product with several columns for each element, rows that phases go through, a slice that
    moves, and a product whose extent grows."""
    n = w.shape[0]
    h, out = np.zeros((x.shape[1], n)), np.zeros((x.shape[0], x.shape[1], n))
    for t in range(x.shape[0]):
        z = x[t] + h @ w
        h = np.tanh(z[:, :n]) * (1 / (1 + np.exp(-z[:, n:])))
        h = h - h.mean(axis=1)[:, None] * x[t, 0, :n].sum()
        out[t] = h[:, ::-1]
        out[t, :, : t + 1] += (h @ w)[:, t : 2 * t + 1] / k
    return out, h


@pytest.mark.parametrize(
    "largest", [plan_python.LARGEST, pytest.param(0, marks=pytest.mark.slow)]
)
def test_numbers_of_elements_have_32_bits_where_those_are_enough(
    largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_python, "LARGEST", largest)
    rng = np.random.default_rng(5)
    args = rng.normal(size=(4, 3, 12)), 0.3 * rng.normal(size=(6, 12)), 3
    one, grid, many, plain = all_ways(recurrences, *args, monkeypatch=monkeypatch)
    for found in (one, grid, many):
        for mine, theirs in zip(found, plain, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-13)


def test_the_version_of_a_loop_is_chosen_by_extents(
    driver: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[str] = []
    load = driver.load

    def loaded(texts: Sequence[Text]) -> list[Any]:
        chosen.extend(t.source for t in texts if "MEETS" in t.source)
        return load(texts)

    monkeypatch.setattr(driver, "load", loaded)
    monkeypatch.setattr(plan_python, "LARGEST", 1000)
    function = pyrelay.jit(lstm, device=ON)
    for n, wide in ((6, 0), (16, 1)):
        for mine, theirs in zip(function(*weights(n)), lstm(*weights(n)), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-13)
        assert sum("typedef i64 Index;" in text for text in chosen) == wide
    told = [line for line in function.explain().splitlines() if "the loop at" in line]
    assert len(told) == 2
    assert told[1].endswith("with indices of 64 bits")


def test_running_products_are_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    def spread(x: Any, n: int) -> Any:
        for _ in range(n):
            y = np.cumprod(x)
            x = y * 0.5 + 0.4
        return x

    args = np.linspace(0.5, 1.2, 300), 3
    one, grid, many, plain = all_ways(spread, *args, monkeypatch=monkeypatch)
    for found in (one, grid, many):
        np.testing.assert_allclose(found, plain, rtol=1e-12)
    assert meetings(pyrelay.jit(spread, device=ON), *args, monkeypatch=monkeypatch)


def gated(x: Any, wh: Any) -> Any:
    """Several sequences at once: gates side by side, float32."""
    n = wh.shape[0]
    h = x[0, :, :n] * 0
    for t in range(x.shape[0]):
        z = x[t] + h @ wh
        h = np.tanh(z[:, :n]) / (1 + np.exp(-z[:, n:]))
    return h


def gated_loss(x: Any, wh: Any) -> Any:
    h = gated(x, wh)
    return (h * h).sum()


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "n"), [(16, 8), (19, 7)])
@pytest.mark.parametrize("precision", ["highest", "tf32", "bf16"])
def test_tensor_cores_multiply_where_the_precision_allows_it(
    precision: Any, batch: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(5, batch, 2 * n)).astype("f4")
    w = (rng.normal(size=(n, 2 * n)) / np.sqrt(n)).astype("f4")
    exact = gated(x, w)
    slope = pyrelay.grad(gated_loss, argnums=(0, 1))(x, w)
    largest = {"highest": 2e-6, "tf32": 5e-3, "bf16": 4e-2}[precision]
    for blocks in (1, cuda_emulator.MEETING):
        monkeypatch.setattr(programs, "blocks_of", lambda *_, b=blocks: b)
        found = []
        for turns in cuda_emulator.ORDERS if blocks > 1 else (0,):
            monkeypatch.setattr(cuda_emulator.DRIVER, "turns", turns)
            with config.override(matmul_precision=precision):
                h = pyrelay.jit(gated, device=ON)(x, w)
                mine = pyrelay.grad(gated_loss, argnums=(0, 1), device=ON)(x, w)
            found.append((h, *mine))
        for other in found[1:]:
            np.testing.assert_equal(other, found[0])
        wrong = [np.abs(a - b).max() for a, b in zip(found[0], (exact, *slope), strict=True)]
        assert max(wrong) < largest * 4
        if precision != "highest" and (blocks == 1 or batch > 16):
            assert min(wrong) > 1e-5  # operands were rounded


def test_arrays_end_in_buffers_of_other_sizes_than_they_began_in(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def taking_turns(x: Any, w: Any, k: Any) -> Any:
        other = x[:2]
        state = x @ w
        for _ in range(k):
            other = state @ w.T
            state = other @ w
        return other, state

    rng = np.random.default_rng(3)
    args = rng.normal(size=(5, 4)), rng.normal(size=(4, 3))
    for k in (0, 1, 3):
        one, grid, many, plain = all_ways(
            taking_turns, *args, k, monkeypatch=monkeypatch, enters=k > 0
        )
        for found in (one, grid, many):
            for each, wanted in zip(found, plain, strict=True):
                np.testing.assert_allclose(each, wanted, rtol=1e-12)


def test_nothing_is_given_back_that_lies_where_the_hosts_arrays_of_rounds_past_were(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(places: Any, corpus: Any, seed: Any) -> Any:
        random = np.random.RandomState(seed)
        for i, center in enumerate(corpus):
            for j in range(max(0, i - 1), min(len(corpus), i + 2)):
                if i == j:
                    continue
                others = np.concatenate(([corpus[j]], random.randint(0, len(places), size=1)))
                places[center] -= 0.1 * places[others].sum(0)
        return places

    monkeypatch.setattr(programs, "blocks_of", lambda *_: 1)
    monkeypatch.setattr(cuda_emulator._Pool, "part", 512)
    places = np.random.default_rng(0).random((8, 3))
    wanted = moved(places.copy(), [2, 2, 1], 0)
    found = pyrelay.jit(moved, device=ON)(places.copy(), [2, 2, 1], 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_no_phase_is_a_function_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    # An H200 lost the result of the one product of several that was left a call.
    def powers(x: Any, w: Any, k: Any) -> Any:
        for _ in range(k):
            x = np.tanh(x @ w) @ w.T
        return x

    sources = []
    with_known = persistent_known.with_known

    def told(text: Text, *rest: Any) -> Text:
        sources.append(text.source)
        return with_known(text, *rest)

    monkeypatch.setattr(programs, "blocks_of", lambda *_: 1)
    monkeypatch.setattr(persistent_known, "with_known", told)
    pyrelay.jit(powers, device=ON)(np.ones((3, 4)), np.ones((4, 5)), 3)
    begun = re.findall(r"namespace phase\d+ {\n(.*?)\(", sources[0])
    assert len(begun) >= 2
    assert set(begun) == {PHASE}
