"""Blocks of the same rows, which wait for each other and not for others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import persistent_prelude, programs
from pyrelay.devices.gpu.driver import Text
from pyrelay.devices.gpu.hazards import ALL, GROUP, NOBODY, Buffers, Frozen, Owned, Pending, Rows
from pyrelay.devices.gpu.row_groups import NONE, row_groups
from pyrelay.lower.planning.instructions import Slot
from tests.devices.gpu.test_persistent import loss_of, lstm_batch
from tests.devices.running_kernels import needs_compiler

ON = "cuda_emulator"
A, B, C = map(Slot, range(3))


def times(name: str, count: int = 1) -> Frozen:
    return frozenset([((name,), count)])


M, H, G = times("s1"), times("s2"), times("s3")  # rows, columns, those of all gates
STATE = Owned(H, frozenset(), H, H, False, 4, H)
GATES = Owned(G, frozenset(), H, G, False, 4, None)
LAST = replace(STATE, stride=G, addend=times("s2", 3))
LEFT = Rows(H, H, 4)
STORED = replace(STATE, addend=frozenset([(("s1", "s2", "s9.0"), 1)]))  # of a step


def test_buffers_of_which_blocks_touch_their_rows_are_divided() -> None:
    touched = {
        "h": {STATE, LEFT}, "z": {GATES, LAST}, "hs": {STORED}, "w": {None},
        "turned": {replace(STATE, addend=times("s2", -1))}, "all": {STATE, None},
        "two": {STATE, replace(STATE, stride=G)}, "other": {replace(STATE, addend=times("s4"))},
    }
    found = row_groups(touched, M, touched.keys() - {"w"}, [])
    assert found.buffers == {"h", "z", "hs", "w"}  # nobody writes w
    # Of a row nothing lies behind the beginning of the next one.
    assert {*found.checks} == {(H, H), (G, G), (times("s2", 4), G)}
    assert row_groups(touched, M, ["all", "two"], []) == NONE


def test_where_one_buffer_was_another_one_is_taken() -> None:
    touched = {
        "h": {STATE, LEFT}, "next": {STATE}, "wide": {replace(STATE, size=8)}, "all": {None},
    }
    for others, found in (({"next"}, {"h", "next"}), ({"wide"}, set()), ({"all"}, set())):
        written = {"h", *others}
        taken = [(name, "bytes") for name in sorted(written)]
        own = {name: touched[name] for name in written}
        assert row_groups(own, M, written, taken).buffers == found
        assert "h" in row_groups(own, M, written, [(name, name) for name in written]).buffers


def test_only_blocks_of_the_same_rows_wait_for_what_is_divided() -> None:
    made = Pending(Buffers([]), frozenset([0, 2]))
    for by in (A, B):
        made.add([], [by], {by: frozenset([STATE])})
    assert made.waits([A], [], {A: frozenset([STATE])}) == NOBODY
    assert made.waits([A], [], {A: frozenset([LEFT])}) == GROUP
    assert made.waits([B], [], {B: frozenset([LEFT])}) == ALL
    assert not made.only_by_rows
    made.met_by_rows()
    assert made.waits([A], [], {A: frozenset([LEFT])}) == NOBODY
    assert made.waits([B], [], {B: frozenset([LEFT])}) == ALL
    made.clear()
    made.own(2)
    made.add([], [C], {C: frozenset([STATE])})
    assert made.waits([C], [], {C: frozenset([LEFT])}) == GROUP
    assert made.only_by_rows


APART = """\
#define BLOCK_THREADS 256
#define MEETS 1
{support}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<i64> words, Buffer<i64> out
) {{
    const pyrelay_own own = pyrelay_own_of(20, 2, 1, 0, 0, {holds});
    pyrelay_meeting group = pyrelay_group(own, (u32 *)&words[0]);
    // Each of the first group has to see the other's number twice as often as those of the last.
    for (int k = 0; k < 6 && (k < 3 || blockIdx.x < 2); k++) {{
        if (threadIdx.x == 0) out[blockIdx.x] = k + 1;
        pyrelay_meet(group, record, launch, 0);
        if (threadIdx.x == 0 && blockIdx.x < 4 && out[blockIdx.x ^ 1] != k + 1) out[5] = 1;
        pyrelay_meet(group, record, launch, 0);
    }}
}}
"""


@needs_compiler
@pytest.mark.parametrize("turns", cuda_emulator.ORDERS)
def test_groups_meet_as_often_as_they_like(turns: int) -> None:
    driver = cuda_emulator.EmulatorDriver()
    driver.watched, driver.turns = False, turns
    support = persistent_prelude.index_type(True) + "\n" + persistent_prelude.SUPPORT
    text = APART.format(support=support + persistent_prelude.OWNING, holds="true")
    (function,) = driver.load([Text(text, ())])
    words, out = np.zeros(persistent_prelude.GROUPS // 8, np.int64), np.zeros(6, np.int64)
    for each in (words, out):
        driver.sizes[each.ctypes.data] = each.nbytes
    driver.launch_meeting(function, 5, [0, 0, 0, 1, words.ctypes.data, out.ctypes.data], 0)
    assert out.tolist() == [6, 6, 3, 3, 3, 0]  # two groups of two, and a block that owns nothing


def rnn(x: Any, h: Any, w: Any, u: Any) -> Any:
    hs = np.zeros((x.shape[0], *h.shape))
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w + h @ u)
        hs[t] = h
    return hs


def in_place(x: Any, h: Any, w: Any, u: Any) -> Any:
    h = h.copy()
    for t in range(x.shape[0]):
        h[:] = np.tanh(x[t] @ w + h @ u)
        if h[0, 0] > 2:
            break
    return h


def two_layers(x: Any, h: Any, w: Any, u: Any) -> Any:
    k = h
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w + h @ u)
        k = np.tanh(k @ u + h)
    return k


def turned(x: Any, h: Any, w: Any, u: Any) -> Any:
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w + h[::-1] @ u)
    return h


def with_mean(x: Any, h: Any, w: Any, u: Any) -> Any:
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w + h @ u) + h.mean(0)
    return h


def same_result(function: Callable[..., Any], args: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """That of the CPU in all orders of blocks; the text of the loop's kernel."""
    monkeypatch.setattr(programs, "blocks_of", lambda *_: cuda_emulator.MEETING)
    wanted, compiled = function(*args), pyrelay.jit(function, device=ON)
    for turns in cuda_emulator.ORDERS:
        monkeypatch.setattr(cuda_emulator.DRIVER, "turns", turns)
        np.testing.assert_allclose(compiled(*args), wanted, rtol=1e-10, atol=1e-12)
    return compiled.code(*args)


def given(rows: int = 18, n: int = 3) -> list[Any]:
    rng = np.random.default_rng(3)
    return [0.4 * rng.normal(size=s) for s in ((5, rows, 4), (rows, n), (4, n), (n, n))]


@needs_compiler
@pytest.mark.parametrize(("function", "apart"), [
    (rnn, True), (in_place, True), (two_layers, True), (turned, False), (with_mean, False),
])
def test_steps_of_several_sequences_meet_by_rows(
    function: Callable[..., Any], apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = same_result(function, given(), monkeypatch)
    assert ("pyrelay_meet(group, record, launch, 0" in text) == apart


@needs_compiler
def test_a_step_of_an_lstm_of_several_sequences_waits_for_no_other_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    args = [0.4 * rng.normal(size=s) for s in ((4, 20, 4), (4, 12), (3, 12), (12,))]
    text = same_result(lstm_batch, args, monkeypatch)
    kernel = text.split('extern "C" __global__ void kernel(')[-1]
    loop = kernel.split("loop0: ;")[1].split("goto loop0;")[0]
    meets = [line for line in loop.splitlines() if "pyrelay_meet(" in line]
    assert [line.split(",")[0].split("(")[-1] for line in meets] == ["grid", "group", "grid"]
    assert "if (!own.on) pyrelay_meet(grid" in meets[0]
    assert "if (pyrelay_meet(grid, record, launch, 2)) return;" in meets[2]  # every 256 steps


@needs_compiler
@pytest.mark.slow
def test_nothing_of_it_is_unordered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_emulator.EmulatorDriver, "watched", True)
    monkeypatch.setattr(cuda_emulator, "DRIVER", cuda_emulator.EmulatorDriver())
    for function in (rnn, two_layers):
        assert "pyrelay_meet(group" in same_result(function, given(), monkeypatch)
    rng = np.random.default_rng(3)
    args = [0.4 * rng.normal(size=s) for s in ((4, 20, 4), (4, 12), (3, 12), (12,))]
    wanted = pyrelay.grad(loss_of(lstm_batch), argnums=(1, 2, 3))(*args)
    compiled = pyrelay.grad(loss_of(lstm_batch), argnums=(1, 2, 3), device=ON)
    for turns in (cuda_emulator.INTERRUPTED, cuda_emulator.INTERRUPTED + 1):
        monkeypatch.setattr(cuda_emulator.DRIVER, "turns", turns)
        for mine, theirs in zip(compiled(*args), wanted, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)
