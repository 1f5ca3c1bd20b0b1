"""What phases of a loop load of arrays that it does not change, asked for a round before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyrelay
from benchmarks.gpu_resources import PROGRAMS, texts_of
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import programs
from pyrelay.devices.gpu.loads_ahead import ahead, early
from tests.devices.gpu.test_cuda_text import assert_compiles, needs_nvidia
from tests.devices.running_kernels import needs_compiler

PHASE = """\
#define BLOCK_THREADS 256
extern "C" __global__ void kernel(
    Buffer<const f32> a0, Buffer<const f32> a1, i64 s0, i64 n0, Buffer<f32> o0
) {
    if (pyrelay_over(record, launch)) return;
    for (Index cell = own.begin(); cell < line.end; cell += own.step()) {
        const i64 x0 = i64(u64(s0) * u64(n0));
        {
            const i64 x1 = i64(u64(x0) + u64(at.column));
            const f32 x2 = a0[x1];
            const f32 x3 = a1[at.column];
            const f32 x4 = a1[x1];
            pyrelay_loaded(x2, x3, x4);
            o0[at.column] = (x2 + x3) * x4;
        }
    }
}
"""

ASKED = """\
__device__ void ahead(
    Buffer<const f32> a0, Buffer<const f32> a1, i64 s0, i64 n0, Buffer<f32> o0
) {
    for (Index cell = own.begin(); cell < line.end; cell += own.step()) {
        const i64 x0 = i64(u64(s0) * u64(n0));
        {
            const i64 x1 = i64(u64(x0) + u64(at.column));
pyrelay_ahead(&a0[x1]);
}}}
"""


def test_loads_that_hang_on_the_round_are_asked_for_and_nothing_else_is_done() -> None:
    assert ahead(PHASE, {"s0"}, {"a0"}) == ASKED
    assert "pyrelay_ahead(&a1[x1]);" in ahead(PHASE, {"s0"}, {"a0", "a1"})


EARLY = """\
__device__ pyrelay_early early(
    Buffer<const f32> a0, Buffer<const f32> a1, i64 s0, i64 n0, Buffer<f32> o0
) {
    const bool once = ROOM_NEAR > 0 && own.on && line.end <= blockDim.x;
    pyrelay_early early = {};
    if (!once) return early;
    for (Index cell = own.begin(); cell < line.end; cell = line.end) {
        const i64 x0 = i64(u64(s0) * u64(n0));
        {
            const i64 x1 = i64(u64(x0) + u64(at.column));
            early.x2 = a0[x1];
}}
    return early;
}
"""


def test_a_block_that_is_alone_loads_a_round_before_what_it_asks_for() -> None:
    phase, filled = early(PHASE, ASKED)
    assert filled == EARLY
    assert phase.startswith("struct pyrelay_early { f32 x2; };\n#define")
    assert "const f32 x2 = once ? early.x2 : a0[x1];\n            const f32 x3 = a1[at" in phase
    assert "Buffer<f32> o0,\n    const pyrelay_early &early\n) {\n    const bool once" in phase


def test_what_some_elements_load_is_not_loaded_before() -> None:
    some = PHASE.replace("            const f32 x2", "            if (x1 > 0) break;\nconst f32 x2")
    assert early(some, ASKED) == ("", "")


def test_nothing_is_asked_for_where_it_does_not_hang_on_the_round() -> None:
    assert ahead(PHASE, {"s1"}, {"a0", "a1"}) == ""
    assert ahead(PHASE, {"s0"}, set()) == ""
    assert ahead(PHASE.replace("pyrelay_loaded(x2, x3, x4);", ""), {"s0"}, {"a0"}) == ""


def test_nothing_is_asked_for_at_places_that_were_loaded() -> None:
    text = PHASE.replace("x4 = a1[x1]", "x4 = a1[x3]")
    assert ahead(text, {"s0"}, {"a0"}) == ""


def recurrent(x: Any, w: Any) -> Any:
    h = x[0] * 0
    for t in range(x.shape[0]):
        h = np.tanh(x[t] * x[t] + h @ w)
    return h


@needs_compiler
@pytest.mark.parametrize("blocks", [1, 2, cuda_emulator.MEETING])
def test_rounds_that_ask_compute_the_same(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    # The emulator refuses indices outside of an array, those that are asked for, too.
    monkeypatch.setattr(programs, "blocks_of", lambda *_: blocks)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(4, 5, 12)), 0.3 * rng.normal(size=(12, 12))
    mine = pyrelay.jit(recurrent, device="cuda_emulator")
    np.testing.assert_allclose(mine(x, w), recurrent(x, w), rtol=1e-12)
    assert "::ahead(" in mine.code(x, w)


@needs_nvidia
@pytest.mark.slow
def test_nvidias_compiler_takes_it(tmp_path: Path) -> None:
    texts = texts_of(*PROGRAMS["LSTM, several at once"])
    sources = [text.source for text in texts if "::ahead(" in text.source]
    assert "prefetch.global.L2" in assert_compiles(sources, tmp_path)
