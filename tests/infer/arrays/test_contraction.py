"""Many small matrices times columns of their own are sums of lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import core, ops

import pyrelay


def by_operator(a, v):
    return (a @ v[..., None])[..., 0]


def by_letters(a, v):
    return np.einsum("nij,nj->ni", a, v)


def by_name(a, v):
    return np.matvec(a, v)


@pytest.mark.parametrize("function", [by_operator, by_letters, by_name])
@pytest.mark.parametrize(("shape", "products"), [((7, 3, 4), 0), ((7, 6, 4), 1), ((7, 3, 17), 1)])
def test_only_large_matrices_are_multiplied(
    function: Any, shape: tuple[int, ...], products: int
) -> None:
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=shape), rng.normal(size=(shape[0], shape[2]))
    assert ops(core(function, a, v)).get("matmul", 0) == products


def test_sums_of_lines_are_the_products_and_have_their_derivatives() -> None:
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(2, 5, 3, 3)), rng.normal(size=(5, 3))
    for one in (a, a.astype("f4"), np.arange(90).reshape(2, 5, 3, 3)):
        found, expected = pyrelay.jit(by_operator)(one, v), by_operator(one, v)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    slope = pyrelay.grad(lambda v: np.sum(np.sin(by_operator(a, v))))(v)
    inner = np.cos(by_operator(a, v))
    np.testing.assert_allclose(slope, np.einsum("bni,bnij->nj", inner, a), rtol=1e-10)
