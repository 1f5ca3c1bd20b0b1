"""Running products and recurrences in chunks: as the plain loop, but for rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.devices.gpu import cuda_recurrences, cuda_scans
from pyrelay.ir.types import DTYPES
from tests.devices.running_kernels import emulate, needs_compiler

N = 9000
K = np.arange(N)
RANDOM = np.random.default_rng(0)
TERMS = RANDOM.normal(size=N)

FACTORS = {
    "around 1": 1 + 0.01 * RANDOM.normal(size=N),
    "falls to 0": np.full(N, -0.9),
    "grows to inf": np.full(N, 1.5),
    "anything": np.exp(5 * RANDOM.normal(size=N)),
    "zeros": np.where(RANDOM.random(N) < 2e-4, 0.0, 1 + 0.001 * RANDOM.normal(size=N)),
    "a mask": (K < 3000) * 1.0,
    "a zero below 0": np.where(K == 100, -0.0, -1.0),
    "inf": np.where(K == 2500, np.inf, -1.001),
    "NaN": np.where(K == 5000, np.nan, -1.0001),
    "inf, then 0": np.where(K == 2500, np.inf, np.where(K == 6000, 0.0, -1.01)),
    "up and down": np.where(K % 3000 < 1500, 2.0, 0.5),
    "below the normal ones": np.where(K == 100, 1e-40, 1.0001),
}


def plainly(a: Any, b: Any = None) -> Any:
    """Lines of (lines, length, columns) one element after another."""
    v = np.full((a.shape[0], a.shape[2]), 1.0 if b is None else -0.0, a.dtype)
    y = np.empty_like(a)
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            v = v * a[:, k] if b is None else a[:, k] * v + b[:, k]
            y[:, k] = v
    return y


def emulated(name: str, operands: tuple[Any, ...], chunk: int, reverse: int = 0) -> Any:
    outer, length, inner = operands[0].shape
    dtype = next(d for d in DTYPES.values() if d.numpy == operands[0].dtype)
    kernels = cuda_scans.scan(name, dtype, inner == 1)
    chunks, y = -(-length // chunk), np.zeros_like(operands[0])
    totals = np.zeros(outer * inner * chunks * kernels.nbytes, np.uint8)
    call = (*operands, totals, y, outer, length, inner, chunk, reverse)
    items = [outer * inner * (chunks - 1), outer * inner * chunks]
    emulate([kernels.totals, kernels.scan], call, call, items=items)
    return y


def assert_as_plain(got: Any, wanted: Any, scale: Any) -> None:
    """The same zeros, infinities and NaNs; others but for a few hundred roundings."""
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        rare = ~np.isfinite(wanted) | (wanted == 0)
        np.testing.assert_array_equal(got[rare], wanted[rare])
        np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))
        found = np.finfo(wanted.dtype)
        wrong = np.abs(got - wanted)[~rare] / np.maximum(scale[~rare], found.tiny)
    assert (wrong < 2000 * found.eps).all()


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["f4", "f8"])
@pytest.mark.parametrize("name", FACTORS)
def test_chunks_do_what_the_loop_does(name: str, kind: str) -> None:
    a, b = FACTORS[name].astype(kind), TERMS.astype(kind)
    line = a.reshape(1, N, 1), b.reshape(1, N, 1)
    columns = tuple(np.stack([x, x[::-1]], 1).reshape(1, N, 2).copy() for x in (a, b))
    for operands, chunks in ((line, (2048, 4096)), (columns, (700,))):
        products, steps = plainly(operands[0]), plainly(*operands)
        largest = np.maximum.accumulate(np.nan_to_num(np.abs(steps), posinf=0.0), axis=1)
        for chunk in chunks:
            assert_as_plain(emulated("cumprod", operands[:1], chunk), products, np.abs(products))
            assert_as_plain(emulated("linear_scan", operands, chunk), steps, largest)


@needs_compiler
def test_lines_go_from_either_end_and_begin_anew() -> None:
    x = 1 + 0.1 * np.sin(np.arange(2 * 5000.0)).reshape(2, 5000, 1)
    b = np.cos(x)
    for reverse, order in ((0, slice(None)), (1, slice(None, None, -1))):
        got = emulated("cumprod", (x,), 2100, reverse)
        np.testing.assert_allclose(got[:, order], plainly(x[:, order]), rtol=1e-12)
        got = emulated("linear_scan", (x, b), 1100, reverse)
        np.testing.assert_allclose(got[:, order], plainly(x[:, order], b[:, order]), rtol=1e-11)


@needs_compiler
def test_the_same_elements_give_the_same_bits_and_growing_ones_those_of_the_loop() -> None:
    a, b = FACTORS["around 1"].reshape(1, N, 1), TERMS.reshape(1, N, 1)
    first = emulated("linear_scan", (a, b), 2048)
    assert first.tobytes() == emulated("linear_scan", (a, b), 2048).tobytes()
    # Errors of joined chunks would grow: each element is what the loop makes of it.
    a = np.full((1, N, 1), 1.01)
    assert emulated("linear_scan", (a, b), 2048).tobytes() == plainly(a, b).tobytes()
    a = np.full((1, N, 1), 3.0)
    assert emulated("cumprod", (a,), 4096).tobytes() == plainly(a).tobytes()


@needs_compiler
def test_recurrences_of_a_program_are_those_kernels() -> None:
    def smoothed(x: Any, rates: Any) -> Any:
        y = np.empty_like(x)
        y[0] = x[0]
        for t in range(1, x.shape[0]):
            y[t] = rates[t] * y[t - 1] + (1 - rates[t]) * x[t]
        return y, np.cumprod(rates)

    x, rates = TERMS[:2500], np.linspace(0.2, 1.0001, 2500)
    for mine, theirs in zip(
        pyrelay.jit(smoothed, device="cuda_emulator")(x, rates), smoothed(x, rates), strict=True
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-280)


def test_other_types_have_none() -> None:
    assert not any(
        cuda_recurrences.is_guarded(name, DTYPES[kind])
        for name, kind in (("cumprod", "c128"), ("cumprod", "i64"), ("cumsum", "f64"))
    )
