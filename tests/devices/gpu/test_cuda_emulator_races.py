"""The emulator finds accesses that nothing orders, and nothing else."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.cuda_emulator import INTERRUPTED, ORDERS, EmulatorDriver
from pyrelay.devices.gpu import cuda_sorted_adds, persistent_prelude, programs
from pyrelay.devices.gpu.driver import Text
from pyrelay.errors import InvariantError
from pyrelay.ir.types import f32
from tests.devices.gpu.test_cuda_sorts import awkward, by_digits
from tests.devices.running_kernels import needs_compiler
from tests.devices.running_kernels import words as words_of

pytestmark = needs_compiler

TEXT = """\
#define BLOCK_THREADS 64
#define MEETS 1
{support}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const f32> a, Buffer<f32> o,
    Buffer<u32> words
) {{
    PYRELAY_SHARED(f32, held, 64);
    PYRELAY_SHARED(u32, count, 1);
    const int t = threadIdx.x, all = blockIdx.x * 64 + t;
    pyrelay_meeting grid = {{&words[0], 0u, (u32)gridDim.x}};
    {body}
}}
"""

ORDERED = [
    "held[t] = a[all]; __syncthreads(); o[all] = held[63 - t];",
    "held[t] = a[all]; __syncwarp(); o[all] = held[t ^ 1];",
    "if (t == 0) count[0] = 0; __syncthreads(); atomicAdd(&count[0], 1u); __syncthreads();"
    " o[all] = count[0];",
    "o[all] = a[all]; pyrelay_meet(grid, record, launch, 0); held[t] = o[191 - all];"
    " pyrelay_meet(grid, record, launch, 0); o[all] = held[t];",
    "if (t % 4 == 0) pyrelay_fetch_words(&held[t], &a[all]); pyrelay_fetch_group();"
    " pyrelay_fetched<0>(); __syncthreads(); o[all] = held[63 - t];",
    "if (t == 0) *(volatile u32 *)&words[3] = blockIdx.x; o[all] = *(volatile u32 *)&words[3];",
]
UNORDERED = [
    "held[t] = a[all]; o[all] = held[63 - t];",
    "held[t] = a[all]; o[all] = held[t ^ 1];",
    # What orders a warp orders no block, and what exchanges registers orders nothing.
    "held[t] = a[all]; __syncwarp(); o[all] = held[63 - t];",
    "held[t] = a[all]; __ballot_sync(0xffffffffu, true); o[all] = held[t ^ 1];",
    "held[t] = a[all]; __syncthreads(); o[all] = held[63 - t]; held[t] = 0;",
    "if (t == 0) count[0] = 0; atomicAdd(&count[0], 1u);",
    "o[t] = a[t];",
    "o[all] = a[all]; __syncthreads(); held[t] = o[191 - all];",
    # The counter alone says that a block was there, and nothing of what it wrote.
    "o[all] = a[all]; pyrelay_arrive(&words[0]);"
    " while (pyrelay_arrived(&words[0]) < 192) PYRELAY_PAUSE(); held[t] = o[191 - all];"
    " if (t == 63) *(volatile f32 *)&o[all] = 0; else if (t == 0) held[0] = o[64];",
    "if (t == 0) *(volatile u32 *)&words[3] = 1; o[all] = words[3];",
    "if (t % 4 == 0) pyrelay_fetch_words(&held[t], &a[all]); pyrelay_fetch_group();"
    " o[all] = held[t]; pyrelay_fetched<0>();",
    "if (t % 4 == 0) pyrelay_fetch_words(&held[t], &a[all]); pyrelay_fetch_group();"
    " pyrelay_fetched<0>(); o[all] = held[t];",
]
UNWRITTEN = [
    "if (t < 63) held[t] = a[all]; __syncthreads(); o[all] = held[t];",
    "if (t % 8 == 0) pyrelay_fetch_words(&held[t], &a[all]); pyrelay_fetch_group();"
    " pyrelay_fetched<0>(); __syncthreads(); o[all] = held[t];",
    # What the block before has left there is garbage to this one.
    "if (blockIdx.x == 0) held[t] = a[all]; __syncthreads(); o[all] = held[t];",
]
MISPLACED = {
    "if (t < 32) __syncthreads();\n else __syncthreads();": "at different places",
    "o[all] = t % 2 ? __shfl_xor_sync(0xffffffffu, t, 2)\n : __shfl_xor_sync(0xffffffffu, t, 2);":
        "at different places",
    "if (t < 16) o[all] = __shfl_xor_sync(0xffffu, t, 1);": "only some lanes",
    "if (t < 16) __syncwarp();": "a barrier is not reached by all",
    "PYRELAY_SHARED(f64, most, 30000); most[t] = 0;": "more shared memory than there is",
}  # fmt: skip


def text_of(body: str) -> str:
    return TEXT.format(support=persistent_prelude.SUPPORT, body=body)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """All kernels are compiled together."""
    bodies = (*ORDERED, *UNORDERED, *UNWRITTEN, *MISPLACED)
    cuda_emulator.load([text_of(each) for each in bodies], True)


def watched(turns: int = INTERRUPTED) -> EmulatorDriver:
    driver = EmulatorDriver()
    driver.watched, driver.turns = True, turns
    return driver


def run(body: str, turns: int) -> Any:
    driver = watched(turns)
    (function,) = driver.load([Text(text_of(body), ())])
    a, o, words = np.arange(192, dtype="f4"), np.zeros(192, "f4"), np.zeros(4, "u4")
    record = np.zeros(21, np.int64)
    for each in (a, o, words, record):
        driver.sizes[each.ctypes.data] = each.nbytes
    driver.launch_meeting(function, 3, words_of(record, 0, 0, 3, a, o, words), 0)
    return o


@pytest.mark.parametrize("body", ORDERED)
def test_what_is_ordered_is_no_fault(body: str) -> None:
    for turns in (*ORDERS, *(INTERRUPTED + each for each in ORDERS)):
        run(body, turns)
    np.testing.assert_array_equal(run(ORDERED[3], INTERRUPTED), np.arange(192)[::-1])


@pytest.mark.parametrize("body", UNORDERED)
def test_what_is_not_ordered_is_a_fault_in_every_order(body: str) -> None:
    for turns in (*ORDERS, INTERRUPTED):
        with pytest.raises(InvariantError, match="with nothing between them that orders these"):
            run(body, turns)


@pytest.mark.parametrize("body", UNWRITTEN)
def test_shared_memory_is_written_before_it_is_used(body: str) -> None:
    for turns in (0, INTERRUPTED):
        with pytest.raises(InvariantError, match="shared memory is used that nobody has written"):
            run(body, turns)


@pytest.mark.parametrize(("body", "told"), MISPLACED.items())
def test_threads_wait_at_one_place(body: str, told: str) -> None:
    with pytest.raises(InvariantError, match=told):
        run(body, 0)


@pytest.mark.skipif(shutil.which("addr2line") is None, reason="lines need addr2line of binutils")
def test_both_accesses_are_told() -> None:
    with pytest.raises(InvariantError) as caught:
        run("held[t] = a[all];\n o[all] = held[t ^ 1];", 1)
    assert str(caught.value).splitlines() == [
        "an element is read and then written: thread 0 of block 0 at",
        "    o[all] = held[t ^ 1];",
        "and thread 1 of block 0 at",
        "    held[t] = a[all];",
        "with nothing between them that orders these.",
    ]


# -- kernels of ours -------------------------------------------------------------------------------


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmulatorDriver, "watched", True)
    monkeypatch.setattr(EmulatorDriver, "turns", INTERRUPTED)
    monkeypatch.setattr(cuda_emulator, "DRIVER", EmulatorDriver())


def test_tiles_of_a_sort_that_wait_for_those_before(watching: None) -> None:
    x = awkward(2 * 9000, "f2").reshape(2, 9000)
    found = by_digits(x, "argsort", False, 5, INTERRUPTED)
    np.testing.assert_array_equal(found, np.argsort(x, axis=1, kind="stable"))


def test_rows_added_where_a_chunk_ends_in_the_middle_of_a_look() -> None:
    rows = np.array([0] * 33 + [1, 2], "u4")
    kernels = cuda_sorted_adds.sorted_adds(f32, False)
    driver, count = watched(), len(rows)
    record, array = np.zeros(21, np.int64), np.zeros((3, 2), "f4")
    values, carried = np.ones((count, 2), "f4"), np.zeros((2, 2), "f4")
    order = np.arange(count)
    shared = rows, order, carried
    for text, given in (
        (kernels.added[0], (array, values, *shared)), (kernels.finished, (array, *shared))
    ):
        (function,) = driver.load([Text(text, ())])
        for each in (record, *given):
            driver.sizes[each.ctypes.data] = each.nbytes
        driver.launch(function, 1, words_of(record, 0, 0, 1, *given, count, 2), 0)
    np.testing.assert_array_equal(array, [[33, 33], [1, 1], [1, 1]])


def test_a_recurrence_of_several_blocks(
    watching: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recurrence(x: Any, w: Any) -> Any:
        h = np.zeros(w.shape[0])
        for t in range(x.shape[0]):
            h = np.tanh(x[t] + h @ w)
        return h

    monkeypatch.setattr(programs, "blocks_of", lambda *_: cuda_emulator.MEETING)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(5, 12)), rng.normal(size=(12, 12))
    found = pyrelay.jit(recurrence, device="cuda_emulator")(x, w)
    np.testing.assert_allclose(found, recurrence(x, w), rtol=1e-12)
