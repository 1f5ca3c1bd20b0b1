"""Small matrices are solved, inverted and factored in loops, large ones by the library."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, loops, ops, run

import pyrelay
from pyrelay.ir.interp import interpret
from pyrelay.opt.systems import systems
from pyrelay.pipeline import CLEAN, lowered
from tests.infer.running import inferred

RNG = np.random.default_rng(3)
LIBRARY = ("solve", "inv", "det", "slogdet", "cofactors", "cholesky")


def solved(a, b):
    return np.linalg.solve(a, b)


def inverse(a):
    return np.linalg.inv(a)


def determinant(a):
    return np.linalg.det(a)


def logarithm(a):
    sign, size = np.linalg.slogdet(a)
    return sign * size


def factor(a):
    return np.linalg.cholesky(a @ a.T + np.eye(a.shape[0]))


def upper_factor(a):
    return np.linalg.cholesky(a @ a.T + np.eye(a.shape[0]), upper=True)


def filtered(z, q, r):
    """A Kalman filter with two unknowns."""
    f = np.array([[1.0, 0.1], [0.0, 1.0]])
    p, x = np.eye(2), np.zeros(2)
    out = np.zeros((len(z), 2))
    for t in range(len(z)):
        x, p = f @ x, f @ p @ f.T + q * np.eye(2)
        k = p @ np.linalg.inv(p + r * np.eye(2))
        x = x + k @ (z[t] - x)
        p = (np.eye(2) - k) @ p
        out[t] = x
    return out


def _library_ops(function: Any, *args: Any) -> int:
    module = after(core(function, *args), *CLEAN, systems)
    return sum(ops(module)[name] for name in LIBRARY)


def _assert_the_same(function: Any, args: tuple[Any, ...]) -> None:
    before = after(core(function, *args), *CLEAN)
    module = after(before, systems)
    assert not any(ops(module)[name] for name in LIBRARY)
    got, wanted = (interpret(m, args)[-1] for m in (module, before))
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("function", [inverse, determinant, logarithm, factor, upper_factor])
@pytest.mark.parametrize("n", [1, 3, 7])
def test_loops_do_what_the_library_does(function: Any, n: int) -> None:
    args = (RNG.standard_normal((n, n)),)
    _assert_the_same(function, args)


@pytest.mark.parametrize("shape", [(6,), (6, 2)])
def test_systems_that_need_other_pivots(shape: tuple[int, ...]) -> None:
    a, b = RNG.standard_normal((6, 6)), RNG.standard_normal(shape)
    a[0, 0] = a[3, 3] = 0.0
    _assert_the_same(solved, (a, b))
    _assert_the_same(solved, (np.eye(6)[::-1].copy(), b))


@pytest.mark.slow
@pytest.mark.parametrize("m", [
    np.zeros((3, 3)), np.ones((3, 3)), np.diag([1.0, 2.0, 0.0]),
    np.diag([1.0, 2.0, 0.0, 3.0])[::-1].copy(), RNG.standard_normal((4, 4)),
])
def test_determinants_of_singular_matrices_have_derivatives(m: Any) -> None:
    wanted = np.empty_like(m)
    for i, j in np.ndindex(m.shape):
        minor = np.delete(np.delete(m, i, 0), j, 1)
        wanted[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    np.testing.assert_allclose(pyrelay.grad(determinant)(m), wanted, rtol=1e-9, atol=1e-12)


def test_determinants_of_large_matrices_have_derivatives() -> None:
    m = np.eye(40) + 0.01 * RNG.standard_normal((40, 40))
    derivative = pyrelay.grad(determinant)
    np.testing.assert_allclose(derivative(m), np.linalg.det(m) * np.linalg.inv(m).T, rtol=1e-9)
    m[3] = m[7]
    wanted = np.zeros_like(m)
    for i in (3, 7):
        for j in range(40):
            minor = np.delete(np.delete(m, i, 0), j, 1)
            wanted[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    np.testing.assert_allclose(derivative(m), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("function", "args"), [
    (solved, (np.array([[1.0, 2.0], [2.0, 4.0]]), np.ones(2))), (inverse, (np.zeros((3, 3)),)),
    (inverse, (np.ones((6, 6)),)),
    (lambda a: np.linalg.cholesky(a), (-np.eye(3),)),
])
def test_what_numpy_refuses_is_refused(function: Any, args: tuple[Any, ...]) -> None:
    before = after(core(function, *args), *CLEAN)
    assert isinstance(run(before, args), np.linalg.LinAlgError)
    assert_same_runs(before, after(before, systems), args)


def test_matrices_that_are_large_empty_many_or_complex_are_the_librarys() -> None:
    assert _library_ops(inverse, RNG.standard_normal((33, 33))) == 1
    assert _library_ops(inverse, np.zeros((0, 0))) == 1
    assert _library_ops(inverse, RNG.standard_normal((5, 3, 3))) == 1
    assert _library_ops(inverse, np.eye(3) * 1j) == 1


@pytest.mark.slow
def test_programs_of_other_sizes_are_not_those_of_small_ones() -> None:
    compiled = pyrelay.jit(inverse)
    for n in (32, 40, 2, 1, 33):
        a = RNG.standard_normal((n, n)) + 6.0 * np.eye(n)
        np.testing.assert_allclose(compiled(a), np.linalg.inv(a), rtol=1e-7, atol=1e-10)


def test_a_filter_with_an_inverse_in_each_round_is_a_kernel() -> None:
    z = RNG.standard_normal((5, 2))
    module = lowered(inferred(filtered, (z, 0.1, 0.2)).module, "fuse")
    assert not loops(module)
    compiled = pyrelay.jit(filtered)
    np.testing.assert_allclose(compiled(z, 0.1, 0.2), filtered(z, 0.1, 0.2), rtol=1e-12)


def test_complex_matrices_of_several_sizes_have_one_program() -> None:
    compiled = pyrelay.jit(np.linalg.det)
    for n in (2, 3, 5, 40):
        matrix = np.eye(n) * (1.0 + 2.0j)
        np.testing.assert_allclose(compiled(matrix), np.linalg.det(matrix), rtol=1e-12)
    assert compiled.cache_info().compilations == 1
