"""What rounds read at one place is read in front of a loop, so that checks of it may leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay


def packed(weights: Any, values: Any, size: int) -> Any:
    best = np.zeros((len(weights) + 1, size + 1))
    for i in range(1, len(weights) + 1):
        for c in range(size + 1):
            best[i, c] = best[i - 1, c]
            if weights[i - 1] <= c:
                best[i, c] = max(best[i, c], best[i - 1, c - weights[i - 1]] + values[i - 1])
    return best


def changed(weights: Any, values: Any, size: int) -> Any:
    """What is read is stored by the rounds themselves."""
    best = np.zeros(size + 1)
    for i in range(len(weights)):
        for c in range(size):
            if weights[i] <= c:
                best[c] += best[c - weights[i]] + 1.0
            weights[i] += 1
    return best


def outcome(f: Any, *args: Any) -> Any:
    try:
        return f(*args).tolist(), args[0].tolist()
    except IndexError as error:
        return str(error), args[0].tolist()


@pytest.mark.parametrize("f", [packed, changed])
def test_places_by_what_all_rounds_read(f: Any) -> None:
    compiled, rng = pyrelay.jit(f), np.random.default_rng(5)
    for size in (0, 1, 4, 30):
        for least in (1, -3, -40):
            weights, values = rng.integers(least, 9, 6), rng.random(6)
            wanted = outcome(f, weights.copy(), values, size)
            assert outcome(compiled, weights.copy(), values, size) == wanted
    nothing = np.zeros(0, np.int64)  # no round reads: nor does what stands in front
    assert outcome(compiled, nothing, values, 4) == outcome(f, nothing, values, 4)
    text = str(compiled.code(weights, values, size))
    assert ("outside(" in text.rpartition("else:\n")[2]) == (f is changed)
