"""Decompositions and exponentials of scipy.linalg, compiled, against SciPy's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pyrelay

rng = np.random.default_rng(0)
A = rng.standard_normal((4, 4))
T = rng.standard_normal((5, 3))


def taken_apart(t: Any, p: Any) -> Any:
    q, r = scipy.linalg.qr(t)
    reduced, _ = scipy.linalg.qr(t, mode="economic")
    u, s, vh = scipy.linalg.svd(t)
    return (
        q, r, reduced, scipy.linalg.qr(t, mode="r")[0], u, s, vh, scipy.linalg.svdvals(t),
        scipy.linalg.svd(t, compute_uv=False), scipy.linalg.eigvalsh(p), scipy.linalg.norm(t),
        scipy.linalg.norm(t, 1, axis=0), scipy.linalg.pinv(t),
        *scipy.linalg.pinv(t @ t.T, return_rank=True),
        scipy.linalg.block_diag(t, [[1, 2]], 3.0), scipy.linalg.block_diag(*[p] * 2),
    )  # fmt: skip


def exponentials(a: Any) -> Any:
    return [scipy.linalg.expm(a * by) for by in (0.0, 0.1, 1.0, 40.0)]


@pytest.mark.parametrize(
    ("f", "given"),
    [(taken_apart, (T, A @ A.T)), (exponentials, (A,)), (exponentials, (1j * A,))],
)
def test_matrices_are_taken_apart_as_scipy_does(f: Any, given: Any) -> None:
    for mine, theirs in zip(pyrelay.jit(f)(*given), f(*given), strict=True):
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_an_exponential_has_its_derivative() -> None:
    pyrelay.check_grads(lambda a, t: scipy.linalg.expm(a * t)[0], (A, 0.7), order=1)


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda t: scipy.linalg.expm(t), np.linalg.LinAlgError),
        (lambda t: scipy.linalg.qr(t, mode="thin"), ValueError),
        (lambda t: scipy.linalg.svdvals(t * np.inf), ValueError),
    ],
)
def test_errors_are_scipys(f: Any, error: Any) -> None:
    with pytest.raises(error) as theirs:
        f(T)
    with pytest.raises(error) as mine:
        pyrelay.jit(f)(T)
    assert str(mine.value).splitlines()[0] == str(theirs.value)


@pytest.mark.parametrize(
    "f", [lambda t: scipy.linalg.qr(t, pivoting=True), lambda t: scipy.linalg.expm(t[None])]
)
def test_what_is_not_compiled_is_refused(f: Any) -> None:
    with pytest.raises(pyrelay.UnsupportedOperationError, match=r"scipy\.linalg"):
        pyrelay.jit(f)(T)
