"""Products inside of kernels of loops whose weights are in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices import cuda_emulator
from pyrelay.devices.gpu import (
    persistent_held_tiles,
    persistent_known,
    persistent_near,
    persistent_prelude,
    persistent_product,
    programs,
)
from pyrelay.devices.gpu.driver import Text
from pyrelay.ir.types import f32, f64
from tests.devices.gpu.test_persistent import lstm_batch
from tests.devices.running_kernels import needs_compiler

pytestmark = needs_compiler

TILES = """\
#define BLOCK_THREADS 256
#define MEETS 1
{switches}
{support}
namespace phase0 {{
{product}}}
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<i64> words, Buffer<const {t}> a,
    Buffer<const {t}> b, Buffer<{t}> lost, Buffer<{t}> c, Buffer<i64> out
) {{
    pyrelay_meeting grid = {{(u32 *)&words[0], 0u, (u32)gridDim.x}};
    const i64 m = out[0], n = out[1], units = out[2], k = out[3], turned = out[4];
    const i64 line = turned ? k : n, gates = (n + units - 1) / units;
    const pyrelay_own own = pyrelay_own_of(m, units, k, k * gates, 8192, true);
    PYRELAY_SHARED({t}, work, 2048);
    PYRELAY_SHARED(u64, weights, 4096);
    {t} *kept = ({t} *)&weights[0];
    const pyrelay_split split = pyrelay_split_owned<{t}>(own, m, n, k, 32768, 0);
    const pyrelay_held<{t}, {pack}> held = pyrelay_hold<{t}, {pack}>(
        split, b, m, n, k, 0, turned, line, false, 32768, 128
    );
    pyrelay_meet(grid, record, launch, 0);
    const {t} nan = {t}(__builtin_nan(""));
    for (i64 e = threadIdx.x; held.tiled && blockIdx.x == 0 && e < k * n; e += 256) lost[e] = nan;
    pyrelay_meet(grid, record, launch, 0);
    for (int round = 0; round < 2; round++) {{
        phase0::phase(record, launch, 0, 1, work, kept, held, split, a, b, c, m, n, k, 0, turned,
            round, k, line, n, 0, 0, 0, 0);
        __syncthreads();
    }}
    if (blockIdx.x == 0 && threadIdx.x == 0) out[5] = held.tiled ? held.room : 0;
}}
"""


@pytest.mark.parametrize(("dtype", "rows", "depth", "columns", "turned"), [
    (f32, 17, 70, 37, 0), (f32, 70, 64, 40, 1), (f64, 9, 32, 40, 0),
    (f64, 25, 13, 9, 1), (f32, 9, 1000, 7, 0),
])
def test_weights_of_tiles_are_read_from_memory_once(
    dtype: Any, rows: int, depth: int, columns: int, turned: int
) -> None:
    driver, pack = cuda_emulator.EmulatorDriver(), persistent_product.pack_of(dtype)
    support = "\n".join([
        persistent_prelude.index_type(small=True), persistent_prelude.SUPPORT,
        persistent_prelude.OWNING, persistent_product.SUPPORT,
    ])
    switches = f"{persistent_near.SWITCH}\n{persistent_held_tiles.SWITCH}"
    text = persistent_held_tiles.with_tiles(TILES.format(
        support=support, product=persistent_product.product(dtype, 0), pack=pack, t=dtype.name,
        switches=switches,
    ))
    (function,) = driver.load([Text(text, ())])
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=s).astype(dtype.numpy) for s in ((rows, depth), (depth, columns)))
    given = np.ascontiguousarray(b.T) if turned else b.copy()
    words, c = np.zeros(2, np.int64), np.zeros((rows, columns), dtype.numpy)
    out = np.array([rows, columns, 10, depth, turned, 0])
    arrays = (words, a, given, given, c, out)
    for each in arrays:
        driver.sizes[each.ctypes.data] = each.nbytes
    driver.launch_meeting(function, 3, [0, 0, 0, 1, *(x.ctypes.data for x in arrays)], 0)
    assert np.isnan(given).all()
    np.testing.assert_allclose(c, 2 * (a @ b), rtol=1e-4, atol=1e-4)
    assert out[5] >= 16384  # sums of four by four of 256 threads


def test_results_are_those_of_weights_in_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "blocks_of", lambda *_: cuda_emulator.MEETING)
    rng = np.random.default_rng(3)
    args = [(0.4 * rng.normal(size=s)).astype("f4") for s in ((4, 20, 4), (4, 36), (9, 36), (36,))]
    texts: list[str] = []
    known = persistent_known.with_known

    def told(*given: Any) -> Text:
        texts.append(known(*given).source)
        return known(*given)

    monkeypatch.setattr(persistent_known, "with_known", told)
    mine = pyrelay.jit(lstm_batch, device="cuda_emulator")(*args)
    assert ["#define HOLDS_TILES 1\n" in text for text in texts] == [True]
    monkeypatch.setattr(persistent_known, "with_tiles", lambda text: text)
    monkeypatch.setattr(persistent_known, "FIRST", 0)
    np.testing.assert_array_equal(mine, pyrelay.jit(lstm_batch, device="cuda_emulator")(*args))
    np.testing.assert_allclose(mine, lstm_batch(*args), rtol=1e-5, atol=1e-6)
