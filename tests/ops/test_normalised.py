"""Softmax and its logarithms: derivatives of the ops against those of the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from calling import call, run

from pyrelay.ir.op import OPS

RNG = np.random.default_rng(2)
X = RNG.standard_normal((3, 4, 5))
AXES = [(2,), (0,), (0, 2), (0, 1, 2)]


def _values(name: str, axes: Any) -> Any:
    sums = np.log(np.sum(np.exp(X), axis=axes, keepdims=True))
    return {"softmax": np.exp(X - sums), "log_softmax": X - sums, "logsumexp": sums}[name]


def _wanted(name: str, g: Any, axes: Any) -> Any:
    """The transposed matrix of derivatives, element by element of x, times g."""
    found, step = np.empty_like(X), 1e-5
    for place in np.ndindex(X.shape):
        both = []
        for sign in (1, -1):
            x = X.copy()
            x[place] += sign * step
            sums = np.log(np.sum(np.exp(x), axis=axes, keepdims=True))
            both.append({"softmax": np.exp(x - sums), "log_softmax": x - sums,
                         "logsumexp": sums}[name])  # fmt: skip
        found[place] = np.sum(g * (both[0] - both[1])) / (2 * step)
    return found


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_derivatives(name: str, axes: Any) -> None:
    op, value = OPS[name], _values(name, axes)
    attrs = {"axes": axes, **({"keepdims": True} if name == "logsumexp" else {})}
    g = RNG.standard_normal(value.shape)

    def cotangent(_build: Any, x: Any, y: Any, seed: Any) -> Any:
        found, none = op.vjp(y, seed, x, y, **attrs)  # type: ignore[operator]
        assert none is None
        return found

    (found,) = run((X, value, g), cotangent)
    np.testing.assert_allclose(found, _wanted(name, g, axes), rtol=1e-7, atol=1e-9)


def test_a_sum_whose_axes_are_gone() -> None:
    value, g = _values("logsumexp", (0, 2))[0, :, 0], RNG.standard_normal(4)

    def cotangent(_build: Any, x: Any, y: Any, seed: Any) -> Any:
        return OPS["logsumexp"].vjp(y, seed, x, y, axes=(0, 2), keepdims=False)[0]  # type: ignore[operator]

    (found,) = run((X, value, g), cotangent)
    np.testing.assert_allclose(found, _wanted("logsumexp", g[None, :, None], (0, 2)), 1e-7, 1e-9)


def test_the_value_is_the_one_given() -> None:
    other = RNG.standard_normal(X.shape)
    assert call("softmax", X, other, axes=(2,)) is other
