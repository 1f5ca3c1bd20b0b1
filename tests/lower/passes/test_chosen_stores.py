"""Stores on a condition that compares what they replace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def relaxed(d: Any) -> Any:
    d = d.copy()
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i, k] + d[k, j] < d[i, j]:
                    d[i, j] = d[i, k] + d[k, j]
    return d


def exchanged(d: Any) -> Any:
    a = d[0].copy()
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


def least_of_columns(d: Any) -> Any:
    least = d[0].copy()
    for row in d:
        for j in range(len(row)):
            if row[j] < least[j]:
                least[j] = row[j]
    return least


@pytest.mark.parametrize("f", [relaxed, exchanged, least_of_columns], ids=lambda f: f.__name__)
def test_what_is_read_and_compared_is_stored_without_a_branch(f: Any) -> None:
    fast = pyrelay.jit(f)
    d = np.random.default_rng(4).normal(size=(6, 6))
    assert "where(" in fast.code(d)
    lines = (line.strip() for line in fast.code(d).splitlines())
    assert not [line for line in lines if line.startswith("if ") and "unlikely" not in line
                and "status" not in line and ">= 4096" not in line]
    for values in (d, np.round(d), np.where(d > 1.0, np.nan, d), np.where(d > 1.0, np.inf, d)):
        np.testing.assert_array_equal(fast(values), f(values))


def placed_elsewhere(d: Any) -> Any:
    a, where = d[0].copy(), np.zeros(len(d[0]))
    for i in range(len(a) - 1):
        if a[i] < a[i + 1]:
            where[i] = a[i]
    return where


def divided(d: Any) -> Any:
    a = d[0].copy()
    for i in range(len(a)):
        if a[i] > 0.5:
            a[i] = 1.0 / a[i]
    return a


def stored_before(d: Any) -> Any:
    a, k = d[0].copy(), 0
    for i in range(len(a)):
        x = a[k]
        a[0] = i
        k = int(d[1, i] > 0.0)
        if x < a[i]:
            a[k] = x
    return a


@pytest.mark.parametrize("f", [placed_elsewhere, divided, stored_before], ids=lambda f: f.__name__)
def test_other_stores_keep_their_branch(f: Any) -> None:
    fast = pyrelay.jit(f)
    d = np.random.default_rng(4).normal(size=(6, 6))
    for values in (d, np.abs(d), np.where(d > 1.0, np.nan, d)):
        np.testing.assert_array_equal(fast(values), f(values))
    assert any(line.strip().startswith("if x") for line in fast.code(d).splitlines())


def mosaic(d: Any) -> Any:
    out = np.zeros((len(d), len(d), 2))
    for i in range(len(d)):
        for j in range(1, len(d) - 1):
            if j % 2 == 0:
                out[i, j, 0] = d[i, j]
                out[i, j, 1] = d[i, j - 1] + d[i, j + 1]
            else:
                out[i, j, 0] = d[i, j - 1] - d[i, j + 1]
                out[i, j, 1] = d[i, j]
    return out


def swapped_places(d: Any) -> Any:
    out = np.zeros((len(d), len(d), 2))
    for i in range(len(d)):
        for j in range(len(d)):
            if d[i, j] > 0.0:
                out[i, j, 0] = 1.0
            else:
                out[i, j, 1] = 2.0
    return out


def test_arms_that_store_in_the_same_places_store_one_of_two_values() -> None:
    d = np.random.default_rng(4).normal(size=(7, 7))
    for f in (mosaic, swapped_places):
        fast = pyrelay.jit(f)
        np.testing.assert_array_equal(fast(d), f(d))
        lines = [line.strip() for line in str(fast.code(d)).splitlines()]
        branches = [s for s in lines if s == "else:"]
        assert bool(branches) == (f is swapped_places)
        assert any("where(" in s for s in lines) == (f is mosaic)
