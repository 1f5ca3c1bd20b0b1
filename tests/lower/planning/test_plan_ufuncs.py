"""Decompositions and transforms: programs call the loops of NumPy's ufuncs themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import pipeline
from pyrelay.devices.runtime.ufunc_loops import has_loop, loop_address
from pyrelay.errors import DeviceError
from pyrelay.lower.planning.instructions import HostCall, Ufunc, UfuncCall

rng = np.random.default_rng(0)


def calls(function: Callable[..., Any], *args: Any) -> tuple[int, int]:
    """How many loops the function's program calls, and how many functions of Python."""
    spec = pyrelay.jit(function)._specialised(args, {})
    plan = pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))
    code = [instruction for each in plan.functions for instruction in each.code]
    loops, hosts = (sum(isinstance(i, kind) for i in code) for kind in (UfuncCall, HostCall))
    return loops, hosts


def same(function: Callable[..., Any], *args: Any) -> None:
    found, wanted = pyrelay.jit(function)(*args), function(*args)
    for mine, theirs in zip(found, wanted, strict=True):
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        assert np.shape(mine) == np.shape(theirs)
        close = float(np.finfo(np.asarray(theirs).dtype).eps) ** 0.6
        np.testing.assert_allclose(mine, theirs, rtol=close, atol=close)


@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_decompositions_and_systems_of_stacks_of_matrices(dtype: str) -> None:
    def decomposed(m: Any, s: Any) -> Any:
        w, v = np.linalg.eigh(s)
        u, d, h = np.linalg.svd(m, full_matrices=False)
        return (
            w, np.abs(v), np.abs(u), d, np.abs(h), np.linalg.eigvalsh(s, "U"), np.linalg.inv(s),
            np.linalg.solve(s, m), np.linalg.det(s), *np.linalg.slogdet(s), np.linalg.cholesky(s),
        )  # fmt: skip

    m = rng.standard_normal((3, 4, 2)).astype(dtype)
    if dtype == "c8":
        m += 1j
    s = m @ np.conj(np.swapaxes(m, -1, -2)) + np.diag(np.arange(1, 5)).astype(dtype)
    same(decomposed, m, s)
    same(decomposed, m[:0], s[:0])
    assert calls(decomposed, m, s) == (8, 0)


def test_large_matrices_and_one_matrix_against_all() -> None:
    large = rng.standard_normal((40, 40)).astype("f4") + 40 * np.eye(40, dtype="f4")
    same(lambda m: (np.linalg.det(m / 40), np.abs(np.linalg.svd(m)[0])), large)
    one, many = large[:3, :3], rng.standard_normal((2, 3, 1)).astype("f4")
    assert calls(np_solve, one, many) == (1, 0)
    same(np_solve, one, many)
    # Batch axes that are broadcast otherwise: a call of NumPy.
    stack = np.stack([one, one])[:, None]
    assert calls(np_solve, stack, many) == (0, 1)
    same(np_solve, stack, many)


def np_solve(m: Any, b: Any) -> Any:
    return (np.linalg.solve(m, b),)


def test_transforms_of_even_and_odd_lengths_in_one_program() -> None:
    def transformed(x: Any, y: Any) -> Any:
        return np.fft.rfft(x), np.fft.fft(y, axis=0), np.fft.ifft(y), np.fft.irfft(y, 7)

    compiled = pyrelay.jit(transformed)
    for length in (1, 7, 6):
        args = rng.standard_normal((3, length)), rng.standard_normal((2, 4)) + 1j
        for mine, theirs in zip(compiled(*args), transformed(*args), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-12)
    assert calls(transformed, *args) == (5, 0)  # one of two for the real ones
    with pytest.raises(ValueError, match=r"Invalid number of FFT data points \(0\)"):
        compiled(np.zeros((3, 0)), args[1])


def test_loops_that_fail_raise_what_numpy_raises() -> None:
    for function, given in (
        (np.linalg.inv, np.zeros((2, 2, 2))), (np.linalg.cholesky, -np.ones((2, 2, 2))),
        (np.linalg.svd, np.full((2, 2, 2), np.nan)),
    ):  # fmt: skip
        with pytest.raises(np.linalg.LinAlgError) as theirs:
            function(given)
        compiled = pyrelay.jit(lambda x, f=function: f(x))
        with pytest.raises(np.linalg.LinAlgError, match=str(theirs.value)):
            compiled(given)
    # An operation that was invalid before is no failure.
    with np.errstate(invalid="ignore"):
        same(lambda x, s: (x / x, np.linalg.eigvalsh(s)), np.zeros(2), np.eye(3))


def test_a_loop_that_numpy_has_not_is_said_to_be_missing() -> None:
    known = Ufunc("numpy.linalg._umath_linalg", "eigh_lo", "d->dd")
    assert has_loop(known)
    assert loop_address(known)[0]
    for other in (
        Ufunc(known.module, known.name, "d->d"), Ufunc(known.module, "eigh_between", "d->dd"),
        Ufunc("numpy.no_module", known.name, "d->dd"),
    ):  # fmt: skip
        assert not has_loop(other)
        with pytest.raises(DeviceError, match=f"no loop {other.name} of {other.types}"):
            loop_address(other)
