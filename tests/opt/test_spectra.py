"""Eigenvectors and singular vectors that nobody reads are not computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

import pyrelay
from pyrelay.opt.dce import dce
from pyrelay.opt.inline import inline
from pyrelay.opt.spectra import spectra

A = np.random.default_rng(0).standard_normal((5, 5))
S = A + A.T


def symmetric(a):
    return np.linalg.eigvalsh(a)


def upper(a):
    return np.linalg.eigvalsh(a, UPLO="U")


def general(a):
    return np.linalg.eigvals(a)


def singular(a):
    return np.linalg.svd(a, compute_uv=False)


def in_a_loop(a):
    total = 0.0
    for k in range(3):
        total = total + np.linalg.svdvals(a * (k + 1.0))[0]
    return total


def vectors(a):
    w, v = np.linalg.eigh(a)
    return w.sum() + v[0, 0]


def left(a):
    return np.linalg.svd(a)[0]


def counted(function: Any, *args: Any) -> Any:
    before = after(core(function, *args), inline, dce)
    module = after(before, spectra, dce)
    assert_same_runs(before, module, args)
    return ops(module)


@pytest.mark.parametrize(
    ("function", "op", "other"),
    [
        (symmetric, "eigvalsh", "eigh"), (upper, "eigvalsh", "eigh"), (general, "eigvals", "eig"),
        (singular, "svdvals", "svd"), (in_a_loop, "svdvals", "svd"),
    ],
)
def test_values_alone_are_computed_alone(function: Any, op: str, other: str) -> None:
    found = counted(function, S)
    assert (found[op], found[other]) == (1, 0)
    np.testing.assert_allclose(pyrelay.jit(function)(S), function(S), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("function", "op"), [(vectors, "eigh"), (left, "svd")])
def test_vectors_that_are_read_stay(function: Any, op: str) -> None:
    assert counted(function, S)[op] == 1


def test_a_derivative_reads_the_vectors() -> None:
    def largest(a: Any) -> Any:
        return np.linalg.eigvalsh(a)[-1]

    v = np.linalg.eigh(S)[1]
    found = pyrelay.grad(largest)(S)
    np.testing.assert_allclose(found + found.T, 2.0 * np.outer(v[:, -1], v[:, -1]), atol=1e-12)


def test_a_matrix_whose_values_do_not_converge_raises_as_numpy_does() -> None:
    bad = np.full((3, 3), np.nan)
    with pytest.raises(np.linalg.LinAlgError):
        general(bad)
    with pytest.raises(np.linalg.LinAlgError):
        pyrelay.jit(general)(bad)
