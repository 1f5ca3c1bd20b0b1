"""What a seed makes of a generator: the state that NumPy and Python give it, compiled as well."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer import random_state
from pyrelay.infer.in_python import seeding
from tests.infer.running import assert_same_outcome, interpreted, plainly

SEEDS = (0, 1, 42, 2**31, 2**32 - 1, 2**32, 2**40 + 7, 2**63 - 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_make_the_states_of_numpy_and_python(seed: int) -> None:
    with np.errstate(over="ignore"):
        cases: list[tuple[Any, Any, int]] = [
            (seeding.default_rng, np.random.Generator, seed),
            (seeding.python_random, random.Random, seed),
            (seeding.python_random, random.Random, -seed),
        ]
        if seed < 2**32:
            cases.append((seeding.random_state, np.random.RandomState, seed))
        for own, cls, given in cases:
            np.testing.assert_array_equal(own(given), random_state.seeded(cls, given))


def first_draws(seed, kind):
    if kind == "legacy":
        return np.random.RandomState(seed).rand()
    if kind == "python":
        return random.Random(seed).random()
    return np.random.default_rng(seed).random()


@pytest.mark.parametrize(("kind", "seeds"), [
    ("numpy", (3, 2**40, -1, np.int32(5), np.uint8(7), [1, 2])),
    ("legacy", (3, 2**32, -1, np.uint8(7))),
    ("python", (3, -3, 0.5)),
])  # fmt: skip
def test_seeds_known_at_run_time_give_the_same_numbers(kind: str, seeds: Any) -> None:
    for seed in seeds:
        args = (seed, kind)
        assert_same_outcome(interpreted(first_draws, args), plainly(first_draws, args))


def test_seeding_needs_no_call_of_python() -> None:
    compiled = pyrelay.jit(first_draws)
    assert compiled(3, "numpy") == first_draws(3, "numpy")
    assert "host" not in str(compiled.code(3, "numpy"))
