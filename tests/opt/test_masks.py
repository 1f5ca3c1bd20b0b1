"""What masks choose is computed with whole arrays: no elements are gathered, none scattered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, ops

import pyrelay
from pyrelay.ir.nodes import Module
from pyrelay.opt.masks import masks
from pyrelay.pipeline import CLEAN

X = np.sin(np.arange(1.0, 13.0) * 1.7) + 0.1
LABELS = np.arange(6) % 3


def lowered(a):
    a[a > 0.5] -= 1.0
    return a


def squared(z, c):
    m = np.abs(z) < 1.0
    z[m] = z[m] ** 2 + c[m]
    return z


def reduced(x):
    m = x > 0.2
    some = np.any(x[m] > 1.0)
    return x[m].sum(), x[m].mean(), x[m].max(), x[m].min(), x[m].prod(), some, len(x[m])


def by_rows(x, labels):
    return x[labels == 1].mean(axis=0) - x[labels == 2].min(axis=0)


def of_two_axes(x):
    x[x < 0.0] *= -0.5
    return x, x[x > 0.3].sum(), (x[x > 0.3] - x.mean()).max()


def of_ints(i):
    i[i > 2] -= i[i > 2] % 3
    return i, i[i > 1].max(), i[i > 0].sum()


PROGRAMS = [
    pytest.param(lowered, (X,), id="lowered"),
    pytest.param(squared, (X, X[::-1].copy()), id="squared"),
    pytest.param(reduced, (X,), id="reduced"),
    pytest.param(by_rows, (X.reshape(6, 2), LABELS), id="by_rows"),
    pytest.param(of_two_axes, (X.reshape(4, 3),), id="of_two_axes"),
    pytest.param(of_ints, (np.arange(-3, 9),), id="of_ints"),
]


def _cleaned(function: Any, args: tuple[Any, ...]) -> Module:
    return after(core(function, *args), *CLEAN)


@pytest.mark.parametrize(("function", "args"), PROGRAMS)
def test_nothing_is_gathered_or_scattered(function: Any, args: tuple[Any, ...]) -> None:
    before = _cleaned(function, args)
    module = after(before, masks)
    assert ops(before)["gather"]
    found = ops(module)
    assert not found["gather"] + found["scatter_update"] + found["cumsum"] + found["as_extent"]
    assert_same_runs(before, module, args)


@pytest.mark.parametrize(("function", "args"), PROGRAMS[:2])
def test_a_mask_that_is_true_nowhere_or_everywhere(function: Any, args: tuple[Any, ...]) -> None:
    before = _cleaned(function, args)
    module = after(before, masks)
    for number in (0.0, 9.0, np.nan):
        assert_same_runs(before, module, tuple(np.full(12, number) for _ in args))


def test_gradients_of_elements_that_are_not_chosen_are_0() -> None:
    def total(x):
        m = x > 0.0
        return np.log(x[m]).sum() + np.sqrt(x[m]).max()

    got = pyrelay.grad(total)(X)
    most = np.argmax(X)
    wanted = np.where(X > 0.0, 1.0 / X, 0.0)
    wanted[most] += 0.5 / np.sqrt(X[most])
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_a_mask_from_outside_of_a_loop_gathers_what_it_chooses() -> None:
    def repeated(x, n):
        m = x > 0.2
        total = 0.0
        for _ in range(n):
            x = x * 0.9
            total += x[m].sum()
        return total

    before = _cleaned(repeated, (X, 3))
    assert ops(after(before, masks))["gather"] == ops(before)["gather"]


def test_elements_that_are_needed_in_order_are_gathered() -> None:
    def taken(x):
        return x[x > 0.0], np.sort(x[x < 0.0])

    before = _cleaned(taken, (X,))
    assert masks(before) is before


def test_extents_that_are_one_number_are_one_extent() -> None:
    def twice(x):
        m = x > 0.0
        return x[m] * x[m]

    assert ops(_cleaned(twice, (X,)))["as_extent"] == 1
