"""Divisions in loops by what is the same in all rounds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.devices.running_kernels import needs_compiler

TINY, LARGE = np.float32(1e-45), np.float32(3e38)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, TINY, -LARGE, 1e-40, 1.0], np.float32)


def shared_out(x: Any, by: Any) -> Any:
    return x / by


def thirds(x: Any) -> Any:
    return x / np.float32(3)


def halves(x: Any) -> Any:
    return x / np.float32(2)


def shares(x: Any) -> Any:
    return x / x.sum(axis=1, keepdims=True)


def text(function: Any, *args: Any) -> str:
    return str(pyrelay.jit(function, device="cuda_emulator").code(*args))


@needs_compiler
@pytest.mark.parametrize("function", [shares, thirds])
def test_they_have_no_branch(function: Any) -> None:
    found = text(function, np.ones((3, 5), np.float32))
    stored = [line for line in found.splitlines() if re.search(r"out0|o0\[", line)]
    assert any("pyrelay_quotient(" in line for line in stored)
    assert not any(" / " in line for line in stored)


@needs_compiler
@pytest.mark.parametrize(("function", "args"), [
    (halves, [np.ones(5, np.float32)]),  # a product
    (shares, [np.ones((3, 5))]),  # float64
    (shared_out, [np.ones(5, np.float32), np.ones(5, np.float32)]),
])  # fmt: skip
def test_others_are_divisions(function: Any, args: list[Any]) -> None:
    assert "pyrelay_quotient(" not in text(function, *args)


@needs_compiler
def test_results_are_those_of_divisions() -> None:
    rng = np.random.default_rng(1)
    spread = np.exp2(rng.uniform(-149, 127, 4000)).astype(np.float32)
    x = np.concatenate([SPECIAL, spread, -spread, rng.normal(size=4000).astype(np.float32)])
    f = pyrelay.jit(shared_out, device="cuda_emulator")
    divisors = [*SPECIAL, *np.exp2(np.linspace(-149, 127.9, 41)), *rng.normal(size=9), -3.0]
    for by in np.array(divisors, np.float32):
        with np.errstate(all="ignore"):
            wanted = x / by
        found = f(x, by)
        assert found.dtype == np.float32
        exact = np.isnan(wanted) | ~np.isfinite(wanted) | (np.abs(wanted) > 2.0**-60)
        np.testing.assert_array_equal(found[exact], wanted[exact])
        told = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[told], np.signbit(wanted)[told])
        bits, others = found[~exact].view(np.int32), wanted[~exact].view(np.int32)
        assert np.abs(bits - others).max(initial=0) <= 1
