"""Decompositions of several steps, in the precision in which NumPy computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

import pyrelay
from pyrelay.ops.linalg import cofactors_by_values
from pyrelay.opt.cse import cse
from pyrelay.opt.dce import dce
from pyrelay.opt.decompositions import decompositions
from pyrelay.opt.inline import inline
from pyrelay.opt.spectra import spectra

rng = np.random.default_rng(0)
A = rng.standard_normal((5, 3))


def factors(a):
    q, r = np.linalg.qr(a)
    return q, r, np.linalg.pinv(a)


def general(a):
    w, v = np.linalg.eig(a)
    return w, v


def fitted(a, b):
    return np.linalg.lstsq(a, b)


@pytest.mark.parametrize("a", [A, A.T.astype("f4"), A + 1j * A[::-1], np.stack([A, A])[:, :0]])
def test_steps_give_what_numpys_functions_give(a: Any) -> None:
    for mine, theirs in zip(pyrelay.jit(factors)(a), factors(a), strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        close = 10 * float(np.finfo(theirs.dtype).eps)
        np.testing.assert_allclose(mine, theirs, rtol=close, atol=close)


LARGE = rng.standard_normal((40, 40)) / 6
SINGULAR = LARGE - np.outer(LARGE[:, 0], np.arange(40) == 3) + LARGE * (np.arange(40) == 3) * -1
NEARLY = LARGE @ np.diag(np.geomspace(1e5, 1e-4, 40))


@pytest.mark.parametrize("a", [
    LARGE, LARGE.astype("f4"), SINGULAR, NEARLY, NEARLY.astype("f4"), np.zeros((40, 40)),
    np.stack([LARGE, SINGULAR]), np.stack([LARGE, LARGE.T]), np.zeros((0, 40, 40)),
    np.full((40, 40), np.inf),
])  # fmt: skip
def test_the_gradient_of_a_determinant_holds_where_there_is_no_inverse(a: Any) -> None:
    found = pyrelay.grad(lambda a: np.linalg.det(a).sum())
    if not np.isfinite(a).all():
        with pytest.raises(np.linalg.LinAlgError, match="SVD did not converge"):
            found(a)
        return
    wanted = cofactors_by_values(a.astype(float))
    mine = found(a)
    assert mine.dtype == a.dtype
    close = (1e-10 if a.dtype == float else 1e-5) * np.abs(wanted).max(initial=0.0)
    np.testing.assert_allclose(mine, wanted, atol=close)


def test_the_gradient_of_a_complex_determinant() -> None:
    a = LARGE[:36, :36] + 1j * LARGE[4:, 4:]

    def real_part(a: Any) -> Any:
        return np.linalg.det(a).real

    mine = pyrelay.grad(real_part)(a)
    wanted = cofactors_by_values(a)
    np.testing.assert_allclose(mine, wanted, atol=1e-10 * abs(wanted).max())


def test_a_determinant_is_decomposed_once_for_its_gradient() -> None:
    compiled = pyrelay.value_and_grad(lambda a: np.log(np.linalg.det(a @ a.T)))
    assert str(compiled.ir(LARGE, stage="optimise")).count("= det(") == 1
    value, gradient = compiled(LARGE)
    assert abs(value - np.log(np.linalg.det(LARGE @ LARGE.T))) < 1e-10
    np.testing.assert_allclose(gradient, 2 * np.linalg.inv(LARGE).T, rtol=1e-8)


def test_eigenvalues_are_real_if_all_are() -> None:
    compiled = pyrelay.jit(general)
    for a in (np.array([[2.0, 1], [0, 3]]), np.array([[0.0, 1], [-1, 0]])):
        for mine, theirs in zip(compiled(a), general(a), strict=True):
            assert mine.dtype == theirs.dtype
            np.testing.assert_allclose(mine, theirs, rtol=1e-14)
    for bad in (np.inf, np.nan):
        with pytest.raises(np.linalg.LinAlgError, match="must not contain infs or NaNs"):
            compiled(np.full((2, 2), bad))


def test_single_precision_is_computed_in_double() -> None:
    hilbert = (1 / (1 + np.add.outer(np.arange(5), np.arange(5)))).astype("f4")
    found = pyrelay.jit(lambda a: (np.linalg.inv(a), np.linalg.svdvals(a)))(hilbert)
    for mine, function in zip(found, (np.linalg.inv, np.linalg.svdvals), strict=True):
        assert mine.dtype == np.float32
        np.testing.assert_allclose(mine, function(hilbert), rtol=1e-6)


def test_a_least_squares_solution_is_one_loop() -> None:
    before = after(core(fitted, A, A[:, 0]), inline, dce)
    module = after(before, spectra, decompositions, cse, dce)
    found = ops(module)
    assert (found["least_squares"], found["svd"], found["svdvals"], found["pinv"]) == (1, 0, 0, 0)
    assert_same_runs(before, module, (A, A[:, 0]))


def test_a_complete_basis_is_made_of_the_reflections_of_the_matrix() -> None:
    compiled = pyrelay.jit(lambda a: np.linalg.qr(a, mode="complete"))
    for shape in ((7, 2), (3, 5), (2, 6, 3)):
        a = np.random.default_rng(0).normal(size=shape)
        for found, expected in zip(compiled(a), np.linalg.qr(a, mode="complete"), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-13)
    with pytest.raises(pyrelay.GradientError, match="complete q") as caught:
        pyrelay.grad(lambda a: np.linalg.qr(a, mode="complete")[0].sum())(np.ones((3, 2)))
    assert "write np.linalg.qr(a)" in str(caught.value)


def of_solution(a, b):
    solution, squares, _, s = np.linalg.lstsq(a, b, rcond=0.2)
    return np.sin(solution).sum() + squares.sum() + (s**3).sum()


U, V = (np.linalg.qr(np.random.default_rng(k).normal(size=(4, 4)))[0] for k in (0, 1))
LOW, FULL = (U * [4.0, 3.0, 0.5, 0.2]) @ V, (U * [4.0, 3.0, 2.0, 1.0]) @ V[:, :3]


def of_polynomial(x, y):
    return np.sum(np.polyfit(x, y, 3, rcond=0.3) ** 2)


@pytest.mark.parametrize(("function", "a"), [
    pytest.param(of_solution, LOW[:, :3], id="tall"), pytest.param(of_solution, LOW, id="square"),
    pytest.param(of_solution, LOW[:3], id="wide"), pytest.param(of_solution, FULL, id="full"),
    pytest.param(of_polynomial, np.linspace(-1.0, 1.0, 9), id="polynomial"),
])
def test_derivatives_where_singular_values_are_cut_off(function: Any, a: Any) -> None:
    b = np.cos(np.arange(float(len(a))))
    pyrelay.check_grads(function, (a, b), order=1, modes="rev")
