"""Functions of scipy.linalg, compiled, against SciPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pyrelay

rng = np.random.default_rng(0)
A = rng.standard_normal((4, 4)) + 3 * np.eye(4)
P = A @ A.T
B = rng.standard_normal((4, 2))


def solved(a, p, b, k):
    c = scipy.linalg.cho_factor(p, lower=True)
    return (
        # What stands in the other triangle is anything, and differs between SciPy's releases.
        scipy.linalg.cho_solve(c, b), np.tril(c[0]), np.triu(scipy.linalg.cho_factor(p)[0]),
        scipy.linalg.cholesky(p), scipy.linalg.cholesky(p, lower=True),
        scipy.linalg.solve(a, b), scipy.linalg.solve(p, b[:, 0], assume_a="pos"),
        scipy.linalg.solve_triangular(a, b), scipy.linalg.inv(a), scipy.linalg.det(a),
        scipy.linalg.solve_triangular(k, b, lower=True, trans=2, unit_diagonal=True),
    )  # fmt: skip


def likelihood(p, y):
    c = scipy.linalg.cholesky(p, lower=True)
    z = scipy.linalg.solve_triangular(c, y, lower=True)
    return 0.5 * np.sum(z * z) + np.sum(np.log(np.diag(c)))


def test_systems_are_solved_as_scipy_solves_them() -> None:
    given = A, P, B, (A + 1j * A.T)
    for mine, theirs in zip(pyrelay.jit(solved)(*given), solved(*given), strict=True):
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_a_likelihood_has_its_derivative() -> None:
    found = pyrelay.grad(likelihood)(P, B[:, 0])
    x = np.linalg.solve(P, B[:, 0])
    wanted = 0.5 * (np.linalg.inv(P) - np.outer(x, x))
    np.testing.assert_allclose(found + found.T, 2 * wanted, atol=1e-9)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (scipy.linalg.solve_triangular, (np.diag([1.0, 0.0]), np.ones(2))),
        (scipy.linalg.solve_triangular, (np.eye(2), np.ones(3))),
        (scipy.linalg.cho_solve, ((np.eye(2), True), np.ones(3))),
        (scipy.linalg.cholesky, (np.full((2, 2), np.nan),)),
    ],
)
def test_errors_are_scipys(function: Any, given: Any) -> None:
    with pytest.raises(Exception, match=r".") as theirs:
        function(*given)
    with pytest.raises(type(theirs.value)) as mine:
        pyrelay.jit(lambda *args: function(*args))(*given)
    assert str(mine.value) == str(theirs.value)
