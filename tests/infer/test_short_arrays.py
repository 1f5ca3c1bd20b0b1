"""Extents by which loops are kernels are asked for in the call at hand."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay
from pyrelay.ir import limits, walk
from pyrelay.ir.nodes import Loop, Module
from pyrelay.pipeline import lowered
from tests.infer.running import inferred
from tests.infer.test_guards import holds


def runge_kutta(a, y, steps, h):
    for _ in range(steps):
        k = a @ (y + 0.5 * h * (a @ y))
        y = y + h * k
    return y


def neighbours(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
    return u


def rows(x):
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            total += np.abs(x[i] - x[j]).sum()
    return total


def loops_in(module: Module) -> int:
    return sum(isinstance(let.rhs, Loop) for let in walk.nested_lets(module.main.body))


@pytest.mark.parametrize("n", [1, 2, 4, 5, 16])
def test_a_loop_over_short_vectors_is_one_kernel(n: int) -> None:
    rng = np.random.default_rng(n)
    a, y = rng.standard_normal((n, n)), rng.standard_normal(n)
    compiled = pyrelay.jit(runge_kutta)
    np.testing.assert_allclose(compiled(a, y, 7, 0.1), runge_kutta(a, y, 7, 0.1), rtol=1e-12)
    module = inferred(runge_kutta, (a, y, 7, 0.1)).module
    (extent,) = set(module.main.params[1].type.shape)
    assert extent == n if n <= 4 else limits.greatest(extent) == 16
    assert loops_in(lowered(module, "fuse")) == 0


def relaxed(u, steps):
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u


def swung(x, v, h, steps):
    for _ in range(steps):
        v = v - h * np.sin(x)
        x = x + h * v
    return x


def halves(u, steps):
    for _ in range(steps):
        u[1:-1:2] = 0.5 * (u[:-2:2] + u[2::2])
    return u


@pytest.mark.parametrize(
    ("function", "args", "loops"),
    [
        (neighbours, (np.ones(19), 5), 0), (neighbours, (np.ones(4098), 5), 0),
        (neighbours, (np.ones(4099), 5), 1),
        (relaxed, (np.ones((66, 66)), 5), 0), (relaxed, (np.ones((67, 20)), 5), 1),
        (relaxed, (np.ones((258, 18)), 5), 0), (relaxed, (np.ones((18, 259)), 5), 1),
        (swung, (np.ones(1000), np.ones(1000), 0.1, 5), 0),
        (swung, (np.ones(4096), np.ones(4096), 0.1, 5), 1),  # a thread is busy with the sines
        (halves, (np.ones(8194), 5), 0), (halves, (np.ones(8195), 5), 1),
    ],
)  # fmt: skip
def test_a_loop_over_arrays_of_few_elements_is_one_kernel(function, args, loops: int) -> None:
    assert loops_in(lowered(inferred(function, args).module, "fuse")) == loops
    np.testing.assert_allclose(
        pyrelay.jit(function)(*copied(args)), function(*copied(args)), rtol=1e-12
    )


def copied(args):
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args]


def test_a_product_of_matrices_has_to_be_short() -> None:
    made = inferred(runge_kutta, (np.eye(20), np.ones(20), 7, 0.1)).module
    assert loops_in(lowered(made, "fuse")) == 1


def test_up_to_four_each_extent_has_a_program_and_the_others_share_two() -> None:
    compiled = pyrelay.jit(runge_kutta)
    sizes = [3, 4, 3, 5, 16, 9, 17, 40, 4, 7, 19]
    for n in sizes:
        a, y = np.eye(n) * 0.5 + 0.1, np.arange(float(n))
        np.testing.assert_allclose(compiled(a, y, 5, 0.1), runge_kutta(a, y, 5, 0.1), rtol=1e-12)
    assert compiled.cache_info().compilations == 4


def test_a_part_of_an_array_is_what_has_to_be_short() -> None:
    short = inferred(neighbours, (np.ones(18), 5))
    assert holds(short, np.ones(5), 5)
    assert not holds(short, np.ones(19), 5)
    near = inferred(neighbours, (np.ones(19), 5))
    assert holds(near, np.ones(4098), 5)
    assert not holds(near, np.ones(18), 5)
    assert not holds(near, np.ones(4099), 5)
    long = inferred(neighbours, (np.ones(4099), 5))
    assert holds(long, np.ones(100_000), 5)
    assert not holds(long, np.ones(4098), 5)


def test_loops_that_are_kernels_for_every_extent_ask_for_none() -> None:
    made = inferred(rows, (np.ones((7, 3)),))
    assert holds(made, np.ones((3, 50)))
    assert all(limits.greatest(e) is None for e in made.module.main.params[0].type.shape)


def test_a_loop_that_asks_a_library_keeps_its_extents() -> None:
    def steps(a, x, n):
        for _ in range(n):
            x = np.sort(a @ x)
        return x

    made = inferred(steps, (np.eye(3), np.ones(3), 2))
    assert holds(made, np.eye(30), np.ones(30), 2)


@pytest.mark.parametrize("n", [3, 6])
def test_gradients_of_loops_over_short_vectors(n: int) -> None:
    a = np.eye(n) * 0.5 + 0.1

    def energy(y):
        return (runge_kutta(a, y, 4, 0.1) ** 2).sum()

    pyrelay.check_grads(energy, (np.linspace(-1.0, 2.0, n),), modes="rev")


def energy(a, b):
    return np.sum((a @ b) ** 3)


def second(function):
    return pyrelay.grad(lambda *args: pyrelay.grad(function)(*args).sum())


@pytest.mark.parametrize("derive", [pyrelay.grad, second])
@pytest.mark.parametrize("n", [2, 6])
def test_a_loop_over_derivatives_asks_for_the_extents_that_they_have(derive, n: int) -> None:
    def by_example(a, b):
        out = [derive(energy)(x, y) for x, y in zip(a, b, strict=True)]
        return np.stack(out)

    def program(a, b):
        return pyrelay.vmap(derive(energy))(a, b)

    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, 5, n, n))
    np.testing.assert_allclose(pyrelay.jit(program)(a, b), by_example(a, b), rtol=1e-12)
    module = inferred(program, (a, b)).module
    extent = module.main.params[0].type.shape[1]
    assert extent == n if n <= 4 else limits.greatest(extent) == 16
    if n == 2:
        assert loops_in(lowered(module, "fuse")) == 0


def test_gpus_keep_their_loops_of_launches() -> None:
    a, y = np.eye(3), np.ones(3)
    compiled = pyrelay.jit(runge_kutta, device="cuda_emulator")
    module = compiled._specialised((a, y, 2, 0.1), {}).module
    assert loops_in(lowered(module, "fuse", on="cuda_emulator")) == 1


def made_here(steps):
    u = np.zeros(100)
    u[40:60] = 1.0
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return u


def many_made_here(steps):
    u = np.ones(5000)
    for _ in range(steps):
        u = u + 0.5 * (1.0 - u * u)
    return u


def costly_ones_made_here(steps):
    u = np.ones(4000)
    for _ in range(steps):
        u = u + 0.5 * np.sin(u)
    return u


@pytest.mark.parametrize(
    ("function", "loops"), [(made_here, 0), (many_made_here, 1), (costly_ones_made_here, 1)]
)
def test_numbers_say_that_arrays_have_few_elements(function, loops: int) -> None:
    assert loops_in(lowered(inferred(function, (5,)).module, "fuse")) == loops
    np.testing.assert_allclose(pyrelay.jit(function)(5), function(5), rtol=1e-12)


def test_where_each_element_has_a_thread_numbers_say_nothing() -> None:
    compiled = pyrelay.jit(made_here, device="cuda_emulator")
    module = compiled._specialised((5,), {}).module
    assert loops_in(lowered(module, "fuse", on="cuda_emulator")) == 1
    np.testing.assert_allclose(compiled(5), made_here(5), rtol=1e-12)
