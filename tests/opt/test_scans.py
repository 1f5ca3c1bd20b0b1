"""Running sums and scattered stores inside loops are part of the loop's kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from passes import after, assert_same_runs, core, loops, ops

import pyrelay
from pyrelay.ir.nodes import Module
from pyrelay.opt.scans import scans
from pyrelay.pipeline import CLEAN, lowered
from tests.infer.running import inferred

X = np.sin(np.arange(1.0, 29.0) * 1.7).reshape(4, 7)
PLACES = np.arange(12).reshape(4, 3) * 5 % 7 - 3


def running_sums(x):
    out = np.empty_like(x)
    for i in range(len(x)):
        out[i] = np.cumsum(x[i]) - np.cumprod(x[i])
    return out


def added_at(x, places):
    out = np.zeros_like(x)
    for i in range(len(places)):
        np.add.at(out[i], places[i], x[i, :3])
    return out


def stored_at(x, places):
    for i in range(len(places)):
        x[i, places[i]] = x[i, :3] * 2.0
    return x


def greatest_falls(x):
    worst = 0.0
    for row in x:
        peaks = np.maximum.accumulate(row)
        worst = max(worst, (peaks - row).max())
    return worst


PROGRAMS = [
    pytest.param(running_sums, (X,), id="running_sums"),
    pytest.param(added_at, (X, PLACES), id="added_at"),
    pytest.param(stored_at, (X, PLACES), id="stored_at"),
    pytest.param(greatest_falls, (X,), id="greatest_falls"),
]


def _fused(function: Any, args: tuple[Any, ...]) -> Module:
    return lowered(inferred(function, args).module, "fuse")


@pytest.mark.parametrize(("function", "args"), PROGRAMS)
def test_a_loop_over_rows_is_one_kernel(function: Any, args: tuple[Any, ...]) -> None:
    assert not loops(_fused(function, args))


@pytest.mark.parametrize(("function", "args"), PROGRAMS)
def test_the_loops_do_what_the_ops_do(function: Any, args: tuple[Any, ...]) -> None:
    before = after(core(function, *args), *CLEAN)
    assert_same_runs(before, after(before, scans), args)


def test_elements_are_added_where_the_row_lies() -> None:
    module = after(core(added_at, X, PLACES), *CLEAN, scans)
    (added,) = (
        let.rhs for loop in loops(module) for let in loop.body.lets
        if getattr(getattr(let.rhs, "op", None), "name", "") == "index_add"
    )
    assert added.attrs["axes"] == (0, 1)
    assert not ops(module)["index_update"]


def test_a_place_outside_is_found_before_anything_is_added() -> None:
    x, plain = X.copy(), X.copy()
    wrong = PLACES.copy()
    wrong[2, 2] = 9
    with pytest.raises(IndexError) as wanted:
        stored_at(plain, wrong)
    with pytest.raises(IndexError) as got:
        pyrelay.jit(stored_at)(x, wrong)
    assert str(got.value) == str(wanted.value)
    np.testing.assert_array_equal(x, plain)


def test_ops_outside_of_loops_stay() -> None:
    module = after(core(lambda x: np.cumsum(x), X[0]), *CLEAN)
    assert scans(module) is module


def test_a_row_that_is_read_after_it_was_changed_is_a_copy() -> None:
    def changes(x):
        out = np.zeros_like(x)
        for i in range(len(x)):
            a = x[i] * 2.0
            b = a.copy()
            for j in range(len(b) - 1):
                b[j + 1] += b[j]
            out[i] = b - a
        return out

    module = _fused(changes, (X,))
    assert not loops(module)
    np.testing.assert_allclose(pyrelay.jit(changes)(X), changes(X), rtol=1e-13)
