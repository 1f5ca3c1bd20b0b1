"""Loops that go through a long array again and again take a chunk of it through all rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def filtered(x, h):
    n = len(x)
    y = np.zeros(n + len(h) - 1)
    for k in range(len(h)):
        y[k : k + n] += h[k] * x
    return y


def backwards(x, h):
    n, m = len(x), len(h)
    y = np.zeros(n + m)
    for k in range(1, m):
        for i in range(n):
            y[m - k + i] = y[m - k + i] * 0.5 + h[k] * x[i]
    return y


def by_twos(x, h):
    n = len(x)
    y = np.ones(n + 2 * len(h))
    for k in range(len(h)):
        s = h[k] + 1.0
        for i in range(3, n):
            y[i + 2 * k] -= s * x[i]
    return y


def of_rows(x, h):
    y = x.copy()
    for k in range(len(h)):
        for i in range(len(x)):
            y[i] = y[i] * h[k] + x[i - k]
    return y


def running(x, h):
    y = x.copy()
    for k in range(len(h)):
        for i in range(1, len(x)):
            y[i] = y[i - 1] * 0.5 + h[k] * x[i]
    return y


def of_what_is_written(x, h):
    y = x.copy()
    for k in range(len(h)):
        s = y[k]
        for i in range(len(x)):
            y[i] += s
    return y


def rewritten(x, h):
    y = x.copy()
    for k in range(len(h)):
        for i in range(len(x)):
            y[i] = y[i] + h[k]
        y[k] = 0.0
    return y


@pytest.mark.parametrize(("function", "chunks"), [
    (filtered, True), (backwards, True), (by_twos, True), (of_rows, True), (running, False),
    (of_what_is_written, False), (rewritten, False),
])
def test_each_element_goes_through_all_rounds_in_order(function: Any, chunks: bool) -> None:
    rng = np.random.default_rng(0)
    compiled = pyrelay.jit(function)
    for length in (10, 4099, 6144):
        for taps in (1, 3):
            x, h = rng.random(length), rng.random(taps)
            np.testing.assert_allclose(compiled(x, h), function(x, h), rtol=1e-14)
    assert ("* 2048" in str(compiled.code(x, h))) == chunks
