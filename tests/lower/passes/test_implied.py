"""Checks that conditions settle: which leave, which stay, and that programs fail as before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay


def neighbours(x: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(k)):
        j = k[i] + 1
        if 0 <= j < len(x):
            total += x[j]
    return total


def around(x: Any, k: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for d in range(-2, 3):
            j = i + d
            if j < 0 or j >= len(x):
                continue
            total += d * x[j]
    return total


def clamped(x: Any, k: Any) -> Any:
    total = 0.0
    for i in k:
        if i < 0:
            i = 0
        if i >= len(x):
            i = len(x) - 1
        if i >= 0:
            total += x[i]
    return total


def inserted(x: Any, k: Any) -> Any:
    for i in range(1, len(x)):
        key = x[i]
        j = i - 1
        while j >= 0 and x[j] > key:
            x[j + 1] = x[j]
            j -= 1
    return x


def by_bytes(x: Any, k: Any) -> Any:
    counts = np.zeros(256)
    for i in range(len(k)):
        counts[np.uint8(k[i])] += 1.0
        counts[k[i] & 127] += 1.0
        counts[k[i] % 200] += 1.0
    return counts


def too_far(x: Any, k: Any) -> Any:
    total = 0.0
    for i in k:
        if 0 <= i <= len(x):
            total += x[i]
    return total


def changed_after(x: Any, k: Any) -> Any:
    total = 0.0
    for i in k:
        j = i
        if 0 <= j < len(x):
            j += 2
            total += x[j]
    return total


def one_of_two(x: Any, k: Any) -> Any:
    total = 0.0
    for i in k:
        if i >= 0 or i < len(x):
            total += x[i]
    return total


def kept_condition(x: Any, k: Any) -> Any:
    total = 0.0
    j = 0
    for i in k:
        fits = j >= 0 and j < len(x)
        j = i
        if fits:
            total += x[j]
    return total


def stepping_up(x: Any, k: Any) -> Any:
    j = 0
    total = 0.0
    for i in k:
        total += x[j]
        if i > 0:
            j += 1
    return total


INDICES = (
    [0, 1, 2, 3], [-4, 3, -1, 0], [3, 0, 4, 0], [-5, 1, 1, 1], [1, 1, 7, 2], [2**62, 0, 0, 0],
    [-(2**63), 0, 0, 0], [2**63 - 2, 2, 2, 2], [1, 1, 1, 1],
)  # fmt: skip


def outcome(f: Callable[..., Any], x: Any, k: Any) -> Any:
    try:
        value = np.asarray(f(x, k)).tolist()
    except IndexError as error:
        value = str(error)
    return value, x.tolist()


@pytest.mark.parametrize(
    ("f", "checked"),
    [(neighbours, False), (around, False), (clamped, False), (by_bytes, False), (too_far, True),
     (changed_after, True), (one_of_two, True), (kept_condition, True), (stepping_up, True)],
)  # fmt: skip
def test_checks_leave_where_conditions_settle_them(f: Callable[..., Any], checked: bool) -> None:
    compiled = pyrelay.jit(f)
    for indices in INDICES:
        x, k = np.array([2.0, 0.5, 1.5, 0.25]), np.array(indices)
        with np.errstate(over="ignore"):
            wanted = outcome(f, x.copy(), k)
        assert outcome(compiled, x.copy(), k) == wanted
    assert ("store_slot_i64(record" in str(compiled.code(x, k))) is checked


def test_what_steps_down_to_a_condition_stays_in_its_array() -> None:
    compiled = pyrelay.jit(inserted)
    x, k = np.random.default_rng(0).random(30), np.zeros(1)
    assert outcome(compiled, x.copy(), k) == outcome(inserted, x.copy(), k)
    assert "store_slot_i64(record" not in str(compiled.code(x, k))
