"""How many checks of indices range analysis leaves, and that taking them out changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay
from benchmarks.index_checks import checks_left, programs, without_checks
from pyrelay import config

LEFT = {"jacobi": 0, "gathered": 1, "counted": 1, "knapsack": 3, "insertion": 4}


@pytest.mark.parametrize("name", LEFT)
def test_few_checks_of_indices_are_left(name: str) -> None:
    assert checks_left(*programs()[name]) <= LEFT[name]


def test_without_checks_the_results_are_the_same() -> None:
    function, args = programs()["knapsack"]
    with config.override(cache=False), without_checks():
        free = pyrelay.jit(function)(*args)
    np.testing.assert_array_equal(free, function(*args))
