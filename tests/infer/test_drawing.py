"""Draws that compiled code makes are those of NumPy and Python, bit for bit, rare paths too.

What is compiled is run as it is here: `names/test_random` compares compiled programs.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer.in_python import draws, mt19937, pcg64, python_random, ziggurat
from pyrelay.infer.random_state import state_of

#: What a generator draws -> what stands for it, of the state.
OF_GENERATOR: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "random": (lambda g: g.random(), pcg64.random),
    "standard_normal": (lambda g: g.standard_normal(), pcg64.standard_normal),
    "standard_exponential": (lambda g: g.standard_exponential(), pcg64.standard_exponential),
    "few": (lambda g: g.integers(-3, 9), lambda *s: pcg64.integers(*s, -3, 9, False)),
    "half": (lambda g: g.integers(2**32), lambda *s: pcg64.integers(*s, 0, 2**32, False)),
    "odd": (lambda g: g.integers(3 * 2**30), lambda *s: pcg64.integers(*s, 0, 3 * 2**30, False)),
    "many": (lambda g: g.integers(3 * 2**60), lambda *s: pcg64.integers(*s, 0, 3 * 2**60, False)),
    "all": (
        lambda g: g.integers(-(2**63), 2**63 - 1, endpoint=True),
        lambda *s: pcg64.integers(*s, -(2**63), 2**63 - 1, True),
    ),
    "one": (lambda g: g.integers(7, 8), lambda *s: pcg64.integers(*s, 7, 8, False)),
    "choice": (lambda g: g.choice(5), lambda *s: pcg64.item(*s, 5)),
    "weighted": (
        lambda g: g.choice(3, p=[0.2, 0.3, 0.5]),
        lambda *s: pcg64.weighted_item(*s, draws.running_sums([0.2, 0.3, 0.5], 3, False)),
    ),
    "permutation": (lambda g: list(g.permutation(9)), lambda *s: list(pcg64.permutation(*s, 9))),
}
OF_LEGACY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "random_sample": (lambda g: g.random_sample(), mt19937.random_sample),
    "standard_normal": (lambda g: g.standard_normal(), mt19937.standard_normal),
    "standard_exponential": (lambda g: g.standard_exponential(), mt19937.standard_exponential),
    "few": (lambda g: g.randint(-3, 9), lambda *s: mt19937.randint(*s, -3, 9)),
    "many": (lambda g: g.randint(2**40), lambda *s: mt19937.randint(*s, 0, 2**40)),
    "one": (lambda g: g.randint(7, 8), lambda *s: mt19937.randint(*s, 7, 8)),
    "choice": (lambda g: g.choice(5), lambda *s: mt19937.item(*s, 5)),
    "weighted": (
        lambda g: g.choice(3, p=[0.2, 0.3, 0.5]),
        lambda *s: mt19937.weighted_item(*s, draws.running_sums([0.2, 0.3, 0.5], 3, True)),
    ),
    "permutation": (lambda g: list(g.permutation(9)), lambda *s: list(mt19937.permutation(*s, 9))),
}


def _shuffled(generator: random.Random) -> list[int]:
    found = list(range(9))
    generator.shuffle(found)
    return found


OF_PYTHON: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "random": (lambda g: g.random(), mt19937.random_sample),
    "gauss": (lambda g: g.gauss(0, 1), python_random.gauss),
    "normalvariate": (lambda g: g.normalvariate(0, 1), python_random.normalvariate),
    "expovariate": (lambda g: g.expovariate(1.0), python_random.expovariate),
    "randrange": (lambda g: g.randrange(11), lambda *s: python_random.randrange(*s, 11)),
    "randint": (lambda g: g.randint(-3, 9), lambda *s: python_random.randint(*s, -3, 9)),
    "many": (lambda g: g.randint(0, 2**40), lambda *s: python_random.randint(*s, 0, 2**40)),
    "shuffle": (_shuffled, lambda *s: list(python_random.order(*s, 9))),
}


@pytest.mark.parametrize(
    ("generator", "methods"),
    [
        (np.random.default_rng(1), OF_GENERATOR), (np.random.RandomState(1), OF_LEGACY),
        (random.Random(1), OF_PYTHON),
    ],
    ids=["Generator", "RandomState", "Random"],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar")
def test_draws_are_those_of_the_library(
    generator: Any, methods: dict[str, tuple[Callable[..., Any], Callable[..., Any]]]
) -> None:
    state = state_of(generator)
    for _ in range(150):
        for name, (theirs, ours) in methods.items():
            assert ours(*state) == pytest.approx(theirs(generator), rel=1e-15, abs=0), name
    for ours_now, theirs_now in zip(state, state_of(generator), strict=True):
        np.testing.assert_array_equal(ours_now, theirs_now)


@pytest.mark.parametrize("layer", [0, 1, 2, 100, 255])
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar")
def test_each_layer_of_the_normal_density_is_drawn_from_as_numpy_does(layer: int) -> None:
    bounds = ziggurat.NORMAL_BOUNDS[layer]
    for distance in (0, bounds - 1, bounds, 2**52 - 1):
        if 0 <= distance < 2**52:
            generator = _with_next_word(int(distance) << 9 | 0x100 | layer)
            words = state_of(generator)[0]
            wanted = generator.standard_normal()
            assert pcg64.standard_normal(words) == pytest.approx(wanted, rel=1e-15, abs=0)
            np.testing.assert_array_equal(words, state_of(generator)[0])


@pytest.mark.parametrize("layer", [0, 1, 2, 100, 255])
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar")
def test_each_layer_of_the_exponential_density_is_drawn_from_as_numpy_does(layer: int) -> None:
    bounds = ziggurat.EXPONENTIAL_BOUNDS[layer]
    for distance in (0, bounds - 1, bounds, 2**53 - 1):
        if 0 <= distance < 2**53:
            generator = _with_next_word(int(distance) << 11 | layer << 3)
            words = state_of(generator)[0]
            wanted = generator.standard_exponential()
            assert pcg64.standard_exponential(words) == pytest.approx(wanted, rel=1e-15, abs=0)
            np.testing.assert_array_equal(words, state_of(generator)[0])


def _with_next_word(word: int) -> np.random.Generator:
    """A generator whose next 64 bits are these: its next state has no turn, and low bits only."""
    generator = np.random.default_rng(3)
    bits: Any = generator.bit_generator
    state = bits.state
    factor = 2549297995355413924 << 64 | 4865540595714422341
    before = (word - state["state"]["inc"]) * pow(factor, -1, 2**128) % 2**128
    state["state"]["state"] = before
    bits.state = state
    return generator


def test_a_loop_of_draws_is_one_kernel() -> None:
    @pyrelay.jit
    def inside(rng: Any, n: int) -> int:
        count = 0
        for _ in range(n):
            x, y = rng.random(), rng.random()
            count += x * x + y * y < 1
        return count

    rng, twin = np.random.default_rng(2), np.random.default_rng(2)
    x = twin.random((1000, 2))
    assert inside(rng, 1000) == np.count_nonzero((x * x).sum(1) < 1)
    assert rng.random() == twin.random()
    assert "  1 kernels:" in str(inside.explain(rng, 1000))
