"""`x.shape = shape`: every name of the object has the shape, views of it keep theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import errors


def grids_as_points(n: int) -> Any:
    xs, ys = np.mgrid[0:n, 0:n]
    sums = xs + 10 * ys
    same, held, tail = sums, [sums], sums[1:]
    xs.shape = ys.shape = sums.shape = n * n
    for i in range(n):
        sums[i] = -1
    sums[n * n - 1] = 7
    return xs[ys > 0], same.shape, held, tail


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_every_name_of_the_object_has_the_shape() -> None:
    jitted = pyrelay.jit(grids_as_points)
    for n in (3, 1):
        for got, want in zip(jitted(n), grids_as_points(n), strict=True):
            np.testing.assert_array_equal(got, want)


def of_the_caller(x: Any) -> Any:
    x.shape = -1
    return x


def on_one_path(x: Any) -> Any:
    y = x + 1
    if x[0, 0] > 0:
        y.shape = -1
    return y.sum()


def elements_out_of_order(x: Any) -> Any:
    y = x.T
    y.shape = 6
    return y


@pytest.mark.parametrize(("function", "why"), [
    (of_the_caller, "the object is the caller's"), (on_one_path, "other paths would have it"),
    (elements_out_of_order, "NumPy raises here"),
])
def test_what_other_names_would_show_is_refused(function: Any, why: str) -> None:
    with pytest.raises(errors.UnsupportedOperationError, match="cannot be assigned") as caught:
        pyrelay.jit(function)(np.ones((2, 3)))
    assert why in str(caught.value)
    assert "x.reshape(shape)" in str(caught.value)
