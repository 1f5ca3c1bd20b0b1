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
from pyrelay import config
from pyrelay.frontend.parse import parse
from pyrelay.infer.in_python import (
    distributions,
    draws,
    mt19937,
    pcg64,
    python_random,
    ziggurat,
)
from pyrelay.infer.random_state import state_of
from pyrelay.infer.specialise import specialise
from pyrelay.ir.walk import nested_lets
from pyrelay.ops.host import host_draw, host_value

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
    **{
        f"sample {k} of {n}": (
            lambda g, n=n, k=k: g.sample(range(n), k),
            lambda *s, n=n, k=k: list(python_random.places(*s, n, k)),
        )
        for n, k in ((9, 2), (30, 3), (40, 30), (1000, 12), (7, 7), (5, 0))
    },
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


#: Parameters of the distributions that compiled code draws from, on each of their ways.
PARAMETERS: dict[str, list[tuple[Any, ...]]] = {
    "standard_gamma": [(0.3,), (1.0,), (2.5,), (0.0,)],
    "beta": [(0.5, 0.5), (2.0, 0.5), (1.0, 1.0), (1e-3, 2e-3)],
    "chisquare": [(3.0,), (0.5,)],
    "f": [(3.0, 4.0)],
    "standard_t": [(3.0,)],
    "dirichlet": [(np.array([1.0, 2.0, 3.0]),), (np.array([0.01, 0.02, 0.05]),)],
    "standard_cauchy": [()],
    "laplace": [(1.0, 2.0)],
    "gumbel": [(1.0, 2.0)],
    "logistic": [(1.0, 2.0)],
    "rayleigh": [(2.0,)],
    "weibull": [(2.0,), (0.0,)],
    "pareto": [(3.0,)],
    "power": [(3.0,)],
    "triangular": [(1.0, 2.0, 4.0)],
    "wald": [(1.0, 2.0)],
    "poisson": [(0.5,), (10.0,), (12345.0,), (0.0,)],
    "binomial": [(10, 0.3), (100, 0.7), (1000, 0.4), (100000, 0.6), (0, 0.3), (5, 0.0), (5, 1.0)],
    "geometric": [(0.5,), (0.1,), (1.0,)],
    "multinomial": [(10, np.array([0.2, 0.0, 0.8])), (1000, np.array([0.2, 0.3, 0.5]))],
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("generator", [np.random.default_rng(3), np.random.RandomState(3)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_distributions_take_the_bits_that_numpy_takes(generator: Any, name: str) -> None:
    of_words = isinstance(generator, np.random.Generator)
    source = distributions.GENERATOR if of_words else distributions.LEGACY
    for parameters in PARAMETERS[name]:
        for _ in range(100):
            state = state_of(generator)
            ours = getattr(distributions, name)(source, state, *parameters)
            np.testing.assert_allclose(ours, getattr(generator, name)(*parameters), 1e-13, 0)
            for now, wanted in zip(state, state_of(generator), strict=True):
                np.testing.assert_array_equal(now, wanted)


@pytest.mark.parametrize(
    ("count", "size", "shuffle"),
    [
        (5, 3, True), (5, 5, True), (1, 1, True), (20000, 3, True), (20000, 500, True),
        (20000, 1500, False), (100, 40, False), (5, 0, True),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar")
def test_samples_are_those_of_numpy(count: int, size: int, shuffle: bool) -> None:
    generator = np.random.default_rng(5)
    for _ in range(10):
        words = state_of(generator)[0]
        wanted = generator.choice(count, size, replace=False, shuffle=shuffle)
        np.testing.assert_array_equal(pcg64.sample(words, count, size, shuffle), wanted)
        np.testing.assert_array_equal(words, state_of(generator)[0])


@pytest.mark.parametrize("generator", [np.random.default_rng(3), np.random.RandomState(3)])
@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.filterwarnings("ignore:overflow encountered in scalar")
def test_samples_by_weights_are_those_of_numpy(generator: Any, size: int) -> None:
    legacy = isinstance(generator, np.random.RandomState)
    p = np.array([0.9, *np.full(10, 0.01)])
    for _ in range(30):
        state = state_of(generator)
        uniform = mt19937.random_sample if legacy else pcg64.random
        ours = draws.weighted_sample(uniform, state, p, 11, size, legacy)
        np.testing.assert_array_equal(ours, generator.choice(11, size, replace=False, p=p))
        for now, wanted in zip(state, state_of(generator), strict=True):
            np.testing.assert_array_equal(now, wanted)


@pytest.mark.parametrize(
    ("made", "program"),
    [
        (np.random.default_rng, lambda rng, p: [rng.multinomial(20, p)]),
        pytest.param(
            np.random.default_rng, lambda rng, p: [rng.multinomial(1, p, size=2).argmax(axis=1)],
            marks=pytest.mark.slow,
        ),
        (np.random.default_rng, lambda rng, p: [rng.poisson(40 * p), rng.poisson(2.5, (2, 2))]),
        pytest.param(
            np.random.default_rng, lambda rng, p: [rng.binomial(200, p), rng.binomial(n=4, p=p[1])],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            np.random.default_rng, lambda rng, p: [rng.gamma(p, 2.0), rng.standard_gamma(1.5, 3)],
            marks=pytest.mark.slow,
        ),
        pytest.param(
            np.random.default_rng, lambda rng, p: [rng.dirichlet(p)], marks=pytest.mark.slow
        ),
        (np.random.default_rng, lambda rng, p: [rng.choice(3, 2, replace=False, p=p)]),
        (np.random.default_rng, lambda rng, p: [rng.choice(9, (2, 2), replace=False)]),
        (np.random.default_rng, lambda rng, p: [rng.laplace(1.0, p), rng.geometric(p[0])]),
        (np.random.default_rng, lambda rng, p: [rng.integers(9, size=3, dtype=np.int32)]),
        pytest.param(
            np.random.RandomState, lambda rng, p: [rng.poisson(40 * p), rng.beta(2.0, p)],
            marks=pytest.mark.slow,
        ),
        (np.random.RandomState, lambda rng, p: [rng.choice(9, 4, replace=False)]),
    ],
)
def test_programs_draw_from_distributions_without_the_host(made: Any, program: Any) -> None:
    p = np.array([0.2, 0.3, 0.5])
    compiled = pyrelay.jit(program)
    ours, theirs = made(4), made(4)
    for _ in range(3):
        for found, wanted in zip(compiled(ours, p), program(theirs, p), strict=True):
            assert type(found) is type(wanted)
            np.testing.assert_allclose(found, wanted, 1e-13, 0)
    assert ours.random() == theirs.random()
    module = specialise(program, (made(4), p), {}, parse).module
    lets = [let for f in module.functions.values() for let in nested_lets(f.body)]
    assert not [let for let in lets if getattr(let.rhs, "op", None) in (host_value, host_draw)]


@pytest.mark.parametrize(
    ("program", "p"),
    [
        (lambda rng, p: rng.poisson(p), -1.0), (lambda rng, p: rng.poisson(p), float("nan")),
        (lambda rng, p: rng.poisson(p), np.array([1.0, -2.0])),
        (lambda rng, p: rng.poisson(p), 1e19), (lambda rng, p: rng.gamma(p), -1.0),
        (lambda rng, p: rng.gamma(1.0, p), -1.0),
        pytest.param(lambda rng, p: rng.beta(p, 1.0), 0.0, marks=pytest.mark.slow),
        (lambda rng, p: rng.binomial(3, p), 1.5),
        (lambda rng, p: rng.binomial(3, p), np.array([0.5, -0.5])),
        (lambda rng, p: rng.geometric(p), 0.0), (lambda rng, p: rng.triangular(1, p, 2), 3.0),
        (lambda rng, p: rng.multinomial(3, p), np.array([0.9, 0.9, 0.1])),
        (lambda rng, p: rng.multinomial(3, p), np.array([-0.1, 1.1])),
        (lambda rng, p: rng.choice(len(p), 3, replace=False), np.array([0.4, 0.6])),
        (lambda rng, p: rng.choice(3, 3, replace=False, p=p), np.array([0.0, 0.5, 0.5])),
    ],
)
def test_parameters_out_of_bounds_raise_what_numpy_raises(program: Any, p: Any) -> None:
    with pytest.raises(ValueError, match=r".") as wanted:
        program(np.random.default_rng(1), p)
    with config.override(interpret=True), pytest.raises(ValueError, match=r".") as found:
        pyrelay.jit(program)(np.random.default_rng(1), p)
    assert str(found.value) == str(wanted.value)


def test_parameters_of_a_draw_have_no_derivative() -> None:
    def loss(p: float, rng: Any) -> float:
        return rng.gamma(p) * p

    with pytest.raises(pyrelay.GradientError, match="no derivative by its parameters"):
        pyrelay.grad(loss)(2.0, np.random.default_rng(1))
    stopped = pyrelay.grad(lambda p, rng: rng.gamma(pyrelay.nn.stop_gradient(p)) * p)
    with config.override(interpret=True):
        assert stopped(2.0, np.random.default_rng(1)) == np.random.default_rng(1).gamma(2.0)


def test_gamma_numbers_have_a_derivative_by_their_scale() -> None:
    def loss(scale: Any, rng: Any) -> Any:
        return np.sum(rng.gamma(2.5, scale, size=scale.shape) * scale)

    scale = np.array([0.5, 2.0, 3.0])
    with config.override(interpret=True):
        found = pyrelay.grad(loss)(scale, np.random.default_rng(3))
    standard = np.random.default_rng(3).standard_gamma(2.5, 3)
    np.testing.assert_allclose(found, 2 * standard * scale, 1e-14)
