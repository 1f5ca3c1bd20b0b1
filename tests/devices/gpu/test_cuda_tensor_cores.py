"""Operands of tensor cores in their lanes, and copies that are waited for."""

from __future__ import annotations

import numpy as np
import pytest

from pyrelay.devices.cuda_emulator import EmulatorDriver
from pyrelay.errors import InvariantError
from tests.devices.running_kernels import emulate, needs_compiler

pytestmark = needs_compiler

_HEAD = """
#define BLOCK_THREADS 32
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const u16> a,
    Buffer<const u16> b, Buffer<f32> c
) {
    const int lane = threadIdx.x;
    PYRELAY_SHARED(u16, left, 16 * 24);
    PYRELAY_SHARED(u16, right, 16 * 24);
    for (int k = lane; k < 256; k += 32) {
        left[k / 16 * 24 + k % 16] = a[k], right[k / 16 * 24 + k % 16] = b[k];
    }
    __syncthreads();
    u32 x[4], y[4];
"""

_TAIL = """
    f32 sums[2][4] = {};
    const u32 near[2] = {y[0], y[1]}, far[2] = {y[2], y[3]};
    pyrelay_mma(sums[0], x, near, HALF());
    pyrelay_mma(sums[1], x, far, HALF());
    for (int n = 0; n < 2; n++) {
        for (int e = 0; e < 4; e++) {
            c[(lane / 4 + e / 2 * 8) * 16 + n * 8 + lane % 4 * 2 + e % 2] = sums[n][e];
        }
    }
}
"""

#: Lines of the right operand are columns of the product, or places of its sums.
_BY_COLUMNS = """
    pyrelay_matrices(x, left, lane % 16 * 24 + lane / 16 * 8);
    pyrelay_matrices(y, right, (lane % 8 + lane / 16 * 8) * 24 + lane / 8 % 2 * 8);
"""
_BY_PLACES = """
    pyrelay_matrices(x, left, lane % 16 * 24 + lane / 16 * 8);
    pyrelay_matrices_turned(y, right, lane % 16 * 24 + lane / 16 * 8);
"""
#: A left operand whose lines are places of the sums.
_TURNED = """
    pyrelay_matrices_turned(x, left, (lane % 8 + lane / 16 * 8) * 24 + lane / 8 % 2 * 8);
    pyrelay_matrices_turned(y, right, lane % 16 * 24 + lane / 16 * 8);
"""


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_matrices_are_read_into_the_lanes_that_multiply_them(name: str) -> None:
    dtype = np.float16 if name == "f16" else pytest.importorskip("ml_dtypes").bfloat16
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, (16, 16)).astype(dtype) for _ in range(2))
    places = _BY_COLUMNS, _BY_PLACES, _TURNED
    results = [np.zeros((16, 16), np.float32) for _ in places]
    texts = [(_HEAD + each + _TAIL).replace("HALF", name) for each in places]
    bits = a.view(np.uint16), b.view(np.uint16)
    emulate(texts, *((*bits, c) for c in results), items=[1] * 3)
    x, y = a.astype(np.float32), b.astype(np.float32)
    for found, wanted in zip(results, (x @ y.T, x @ y, x.T @ y), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_what_was_not_waited_for_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmulatorDriver, "watched", False)
    text = """
#define BLOCK_THREADS 32
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const u16> a, Buffer<u16> c
) {
    PYRELAY_SHARED(u16, held, 512);
    const int k = threadIdx.x * 8;
    pyrelay_fetch(held, k, a, k);
    pyrelay_fetch_group();
    pyrelay_fetch(held, 256 + k, a, 256 + k);
    pyrelay_fetch_group();
    pyrelay_fetched<1>();
    __syncthreads();
    for (int e = 0; e < 8; e++) c[k + e] = held[k + e], c[256 + k + e] = held[256 + k + e];
}
"""
    a = np.arange(512, dtype=np.uint16)
    c = np.zeros(512, np.uint16)
    emulate([text], (a, c), items=[1])
    np.testing.assert_array_equal(c[:256], a[:256])
    assert (c[256:] == 0xFFFF).all()


_ROUNDED = """
#define BLOCK_THREADS 32
extern "C" __global__ void kernel(
    pyrelay_record *record, i64 launch, i64 first, i64 last, Buffer<const f32> a,
    Buffer<const f32> b, Buffer<f32> c
) {
    const int line = threadIdx.x / 4, k = threadIdx.x % 4;
    const u32 x[4] = {
        ROUND(a[line * 8 + k]), ROUND(a[line * 8 + 64 + k]), ROUND(a[line * 8 + k + 4]),
        ROUND(a[line * 8 + 64 + k + 4])
    };
    const u32 y[2] = {ROUND(b[line * 8 + k]), ROUND(b[line * 8 + k + 4])};
    f32 sums[4] = {};
    pyrelay_mma(sums, x, y, tf32());
    for (int e = 0; e < 4; e++) c[(line + e / 2 * 8) * 8 + k * 2 + e % 2] = sums[e];
}
"""


def test_numbers_of_eleven_digits_are_multiplied_as_they_are() -> None:
    a, b = (np.random.default_rng(0).normal(size=(n, 8)).astype(np.float32) for n in (16, 8))
    c = np.zeros((16, 8), np.float32)
    emulate([_ROUNDED.replace("ROUND", "pyrelay_tf32")], (a, b, c), items=[1])
    rounded = [((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32) for x in (a, b)]
    np.testing.assert_allclose(c, rounded[0] @ rounded[1].T, rtol=1e-6, atol=1e-6)
    plain = _ROUNDED.replace("ROUND", "(u32)__float_as_int")
    with pytest.raises(InvariantError, match="tensor cores are given numbers that are not rounded"):
        emulate([plain], (a, b, c), items=[1])
