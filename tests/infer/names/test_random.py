"""Random numbers drawn inside a program are NumPy's, and the caller's generator moves on."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer.random_state import made, state_of, store
from tests.infer.running import assert_same, interpreted, plainly

X = np.array([0.3, 2.1, 1.2])
GLOBAL = np.random.default_rng(11)


@pytest.mark.parametrize(
    "generator",
    [
        np.random.default_rng(1), np.random.Generator(np.random.MT19937(1)),
        np.random.Generator(np.random.Philox(1)), np.random.Generator(np.random.SFC64(1)),
        np.random.Generator(np.random.PCG64DXSM(1)), np.random.RandomState(1),
    ],
    ids=lambda g: type(getattr(g, "bit_generator", g)).__name__,
)
def test_the_arrays_of_a_generator_are_its_whole_state(generator: Any) -> None:
    generator.standard_normal(3)
    if isinstance(generator, np.random.Generator):
        generator.integers(5, dtype=np.int32)  # keeps half of a word
    state = state_of(generator)
    twin = made(state)
    np.testing.assert_array_equal(generator.standard_normal(5), twin.standard_normal(5))
    store(generator, state)
    again = made(state)
    np.testing.assert_array_equal(generator.permutation(9), again.permutation(9))


def walk(rng, n):
    x = 0.0
    for _ in range(n):
        if rng.random() < 0.5:
            x += rng.normal(0.0, 2.0)
        else:
            x -= rng.exponential()
    return x


def split(rng, depth):
    if depth == 0:
        return rng.standard_normal()
    return split(rng, depth - 1) + 0.5 * split(rng, depth - 1)


def minibatches(rng, x):
    order = rng.permutation(len(x))
    total = np.zeros(2)
    for k in order:
        total = total * 0.5 + x[k] * rng.uniform(size=2)
    rng.shuffle(x)
    return total


PROGRAMS = [
    pytest.param(walk, (20,), id="loop"), pytest.param(split, (4,), id="recursion"),
    pytest.param(minibatches, (X,), id="array"),
]


@pytest.mark.parametrize(
    "make",
    [np.random.default_rng, pytest.param(np.random.RandomState, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(("program", "args"), PROGRAMS)
def test_a_program_draws_what_plain_python_draws_and_the_generator_moves_on(
    program: Any, args: tuple[Any, ...], make: Any
) -> None:
    plain, own = make(5), make(5)
    wanted_args, got_args = copy.deepcopy(args), copy.deepcopy(args)
    compiled = pyrelay.jit(program)
    for _ in range(2):
        wanted = program(plain, *wanted_args)
        got = compiled(own, *got_args)
        assert type(got) is type(wanted)
        np.testing.assert_allclose(got, wanted, 1e-13)
    for a, b in zip(got_args, wanted_args, strict=True):
        np.testing.assert_array_equal(a, b)
    assert own.standard_normal() == plain.standard_normal()


@pytest.mark.parametrize("draw", [
    lambda rng: rng.random(dtype=np.float32),
    lambda rng: rng.standard_normal(dtype=np.float32),
    lambda rng: rng.standard_gamma(2.0, size=2, dtype=np.float32),
    lambda rng: (rng.normal(size=()), rng.uniform(0, 1, ()), rng.integers(9, size=())),
    lambda rng: (rng.poisson(3.0, ()), rng.choice(4, ()), rng.exponential(2.0, ())),
    lambda rng: rng.integers(0, 2, dtype=bool),
])
def test_draws_of_narrow_types_and_of_no_axes_are_numpys(draw: Any) -> None:
    got, wanted = (
        run(draw, (np.random.default_rng(3),)) for run in (interpreted, plainly)
    )
    assert got.error is None
    assert_same(got.result, wanted.result)


@pyrelay.jit
def noisy(x):
    return x + GLOBAL.normal(size=x.shape)


def test_a_generator_of_the_module_is_read_and_moved() -> None:
    twin = copy.deepcopy(GLOBAL)
    for _ in range(2):
        np.testing.assert_array_equal(noisy(X), X + twin.normal(size=3))
    assert GLOBAL.random() == twin.random()


def test_the_shared_generator_of_numpy_is_seeded_and_moved() -> None:
    def program(n):
        np.random.seed(n)
        return np.random.rand(2), np.random.randint(0, 10, 3)

    wanted = (*program(3), np.random.rand())
    got = (*pyrelay.jit(program)(3), np.random.rand())
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_generator_made_without_a_seed_is_another_one_every_time() -> None:
    program = pyrelay.jit(lambda: np.random.default_rng().random(3))
    assert not np.array_equal(program(), program())


def test_a_generator_made_inside_can_be_returned() -> None:
    def program(seed):
        rng = np.random.default_rng(seed)
        rng.random()
        return rng

    assert pyrelay.jit(program)(4).random() == program(4).random()


def walk_of_python(n, seed):
    random.seed(seed)
    x = np.zeros(n)
    for k in range(1, n):
        if random.random() < 0.3:
            x[k] = x[k - 1] + random.uniform(-1, 1)
        elif random.randint(0, 1):
            x[k] = x[k - 1] + random.gauss(0.5, 2.0)
        else:
            x[k] = random.choice(x) - random.expovariate(2.0)
    random.shuffle(x)
    return x, random.randrange(3, 30, 3)


def test_the_generator_of_python_is_seeded_and_moved() -> None:
    wanted = (*walk_of_python(12, 3), random.random())
    got = (*pyrelay.jit(walk_of_python)(12, 3), random.random())
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-15)


def test_a_generator_of_python_is_an_argument_too() -> None:
    def program(rng, sigma):
        return rng.gauss(0.0, sigma) * rng.normalvariate(1.0, sigma)

    plain, own, third = random.Random(3), random.Random(3), random.Random(3)
    assert pyrelay.jit(program)(own, 2.0) == pytest.approx(program(plain, 2.0), rel=1e-15)
    assert own.gauss() == plain.gauss()
    got = pyrelay.grad(program, argnums=1)(third, 2.0)
    ends = [program(random.Random(3), 2.0 + step) for step in (1e-6, -1e-6)]
    assert got == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


def sampled_loss(mu, sigma, rng):
    z = rng.normal(mu, sigma, size=50)
    u = rng.uniform(mu, 2.0, 10)
    return np.mean(z**2) + np.sum(rng.choice(u, 3)) + rng.laplace(mu, sigma)


def test_derivatives_go_through_locations_and_scales() -> None:
    def at(mu: float, sigma: float) -> float:
        return sampled_loss(mu, sigma, np.random.default_rng(7))

    step = 1e-6
    got = pyrelay.grad(sampled_loss, argnums=(0, 1))(0.3, 1.5, np.random.default_rng(7))
    wanted = (
        (at(0.3 + step, 1.5) - at(0.3 - step, 1.5)) / (2 * step),
        (at(0.3, 1.5 + step) - at(0.3, 1.5 - step)) / (2 * step),
    )
    np.testing.assert_allclose(got, wanted, 1e-6)


def test_a_distribution_without_a_derivative_says_so_only_if_one_is_asked_for() -> None:
    def program(shape, x, seed):
        return np.random.default_rng(seed).gamma(shape) * x

    assert pyrelay.grad(program, argnums=1)(2.0, 3.0, 1) == program(2.0, 1.0, 1)
    with pytest.raises(pyrelay.GradientError, match="no derivative by its parameters"):
        pyrelay.grad(program)(2.0, 3.0, 1)


def test_a_negative_scale_raises_as_in_numpy() -> None:
    with pytest.raises(ValueError, match="scale < 0"):
        pyrelay.jit(lambda s: np.random.default_rng(0).normal(0.0, s))(-1.0)


@pytest.mark.parametrize("generator", [np.random.default_rng, np.random.RandomState])
def test_probabilities_sum_to_one_as_nearly_as_their_dtype_can(generator: Any) -> None:
    def program(rng, p):
        return rng.choice(len(p), 4, p=p)

    p = np.random.default_rng(0).random(20).astype(np.float32)
    p /= p.sum()
    assert abs(p.astype(np.float64).sum() - 1) > 2e-8
    compiled = pyrelay.jit(program)
    np.testing.assert_array_equal(compiled(generator(1), p), program(generator(1), p))
    for wrong in (p.astype(np.float64), p * np.float32(1.01)):
        with pytest.raises(ValueError, match="do not sum to 1"):
            program(generator(1), wrong)
        with pytest.raises(ValueError, match="do not sum to 1"):
            compiled(generator(1), wrong)


def test_draws_into_an_array_of_the_caller() -> None:
    def filled(rng: Any, n: int) -> Any:
        x, y = np.empty((n, 3)), np.zeros(n, np.float32)
        rng.standard_normal(out=x)
        same = rng.random(n, dtype=np.float32, out=y)
        same[0] = 2
        return x, y

    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    for found, wanted in zip(pyrelay.jit(filled)(ours, 4), filled(theirs, 4), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert ours.random() == theirs.random()


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda rng: rng.random(out=np.empty(3, np.float32)), TypeError, "Expected float64, got"),
        (lambda rng: rng.random(4, out=np.empty(3)), ValueError, "size must match out.shape"),
        (
            lambda rng: rng.normal(np.ones((2, 1)), size=2), ValueError,
            r"size \(2\) does not fit the parameters, which are of shape \(2, 1\)",
        ),
        (
            lambda rng: rng.random(out=np.empty((3, 2)).T), pyrelay.UnsupportedOperationError,
            "an out= that lies in C order only",
        ),
    ],
)
def test_an_array_that_does_not_fit_a_draw_is_refused(draw: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        pyrelay.jit(draw)(np.random.default_rng(1))
