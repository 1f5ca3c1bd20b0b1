"""Loops over arrays of computed lengths run one way for few elements, and another for many."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay
from pyrelay.ir import walk
from pyrelay.ir.nodes import If, Loop, Module
from pyrelay.pipeline import lowered
from tests.infer.running import inferred


def heat(n, steps):
    u = np.zeros(n)
    u[n // 3 : n // 2] = 1.0
    for _ in range(steps):
        u[1:-1] = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return u


def swung(n, steps):
    x, v = np.linspace(0.0, 1.0, n), np.zeros(n)
    for _ in range(steps):
        v = v - 0.1 * x
        x = x + 0.1 * v
    return x, v


def relaxed(n, m, steps):
    u = np.zeros((n, m))
    u[0] = 1.0
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u


def by_elements(n, steps):
    total = np.zeros(n)
    for k in range(steps):
        total[k % n] += 1.0
    return total


def ways(module: Module) -> tuple[int, int]:
    """How many branches there are, and how many loops that launch."""
    found = [type(let.rhs) for let in walk.nested_lets(module.main.body)]
    return found.count(If), found.count(Loop)


@pytest.mark.parametrize("program", [heat, swung])
def test_both_ways_give_what_python_gives(program) -> None:
    module = lowered(inferred(program, (10, 3)).module, "fuse")
    assert ways(module) == (1, 1)
    compiled = pyrelay.jit(program)
    for n in (1, 2, 3, 4, 5, 100, 4096, 4097):
        np.testing.assert_allclose(compiled(n, 3), program(n, 3), rtol=1e-12, atol=1e-15)
    assert compiled.cache_info().compilations == 1


def test_both_ways_of_a_grid() -> None:
    compiled = pyrelay.jit(relaxed)
    for shape in ((3, 3), (4, 9), (64, 64), (65, 64), (300, 5)):
        np.testing.assert_allclose(compiled(*shape, 4), relaxed(*shape, 4), rtol=1e-12)


def test_a_loop_that_is_a_kernel_has_one_way() -> None:
    assert ways(lowered(inferred(by_elements, (10, 3)).module, "fuse")) == (0, 0)


def test_lengths_of_arguments_and_known_ones_ask_nothing() -> None:
    def steps(u, count):
        v = np.zeros(50)
        for _ in range(count):
            u = u + 0.1 * u
            v = v + 1.0
        return u, v

    assert ways(lowered(inferred(steps, (np.ones(30), 3)).module, "fuse"))[0] == 0


def test_gpus_have_one_way() -> None:
    compiled = pyrelay.jit(heat, device="cuda_emulator")
    module = compiled._specialised((10, 3), {}).module
    assert ways(lowered(module, "fuse", on="cuda_emulator")) == (0, 1)


def test_gradients_of_both_ways() -> None:
    def energy(c, n):
        u = np.linspace(0.0, 1.0, n)
        for _ in range(3):
            u = u + c * (1.0 - u * u)
        return (u**2).sum()

    for n in (3, 20):
        pyrelay.check_grads(lambda c, n=n: energy(c, n), (0.3,), modes="rev")
    slope = pyrelay.grad(energy)
    for n in (3, 20, 5000):
        step = (energy(0.3 + 1e-6, n) - energy(0.3 - 1e-6, n)) / 2e-6
        np.testing.assert_allclose(slope(0.3, n), step, rtol=1e-6)


def test_loops_of_many_statements_are_asked_too() -> None:
    """A simplex of Nelder and Mead has some 130."""

    def moved(n, steps):
        s, r = np.zeros((n, n)), np.empty(n)
        for k in range(steps):
            for j in range(n):
                r[j] = s[0, j] + k
            if r[0] > 1.0:
                s[k % 2] = r
            elif r[1] > 2.0:
                for j in range(n):
                    r[j] = 2.0 * r[j] * r[j] - 3.0 * s[1, j] + 4.0 * k
                s[k % 3] = r
            else:
                for j in range(n):
                    r[j] = 0.5 * r[j] - s[0, j] * s[1, j] + 0.25 * s[2, j] - 3.0 * k
                    if r[j] > 7.0:
                        r[j] = r[j] / 2.0 + s[1, j] * s[2, j] - 3.0
                    elif r[j] < -7.0:
                        r[j] = 0.25 * r[j] - s[1, j] * s[2, j] + 3.0 * s[0, j]
                s[(k + 1) % 3] = r
                s[k % 3] = r
        return s

    compiled = pyrelay.jit(moved)
    np.testing.assert_array_equal(compiled(5, 3), moved(5, 3))
    assert ways(lowered(inferred(moved, (5, 3)).module, "fuse")) == (3, 1)
