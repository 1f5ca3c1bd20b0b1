"""What a program has stored in its caller's arrays when it raises is what Python has stored."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir import walk
from pyrelay.opt import stores
from tests.opt.passes import core


def a_product_before_a_quotient(xs: Any, w: Any, out: Any, ks: Any) -> Any:
    for t in range(len(xs)):
        y = np.tanh(xs[t] @ w)
        z = 10 // int(ks[t])
        out[t] = y
        out[t, 0, 0] = z


def a_row_before_a_quotient(xs: Any, w: Any, out: Any, ks: Any) -> Any:
    for t in range(len(xs)):
        out[t] = np.tanh(xs[t])
        out[t, 0] = 10 // int(ks[t])


def rows_of_a_selection(xs: Any, w: Any, out: Any, ks: Any) -> Any:
    for t in range(len(xs)):
        out[t] += xs[t] * 2
        out[t] += w[ks[t] + np.arange(3)]


def a_root_after_a_store(xs: Any, w: Any, out: Any, ks: Any) -> Any:
    for t in range(len(xs)):
        out[t] = xs[t] * 2
        out[t, 0] += math.sqrt(ks[t] - 0.5)


XS, W = np.random.default_rng(0).normal(size=(2, 4, 3, 3))
PROGRAMS = (
    a_product_before_a_quotient, a_row_before_a_quotient, rows_of_a_selection, a_root_after_a_store,
)


def ended(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What a function does: what it gives or raises."""
    try:
        return "given", function(*args)
    except (ValueError, ArithmeticError, IndexError) as error:
        return type(error), str(error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_arrays_hold_what_was_stored_before_the_program_raised(program: Any) -> None:
    plain = (XS, W[0], np.zeros((4, 3, 3)), np.array([1, 2, 0, 4]))
    given = copy.deepcopy(plain)
    assert ended(pyrelay.jit(program), given) == (end := ended(program, plain))
    assert end[0] != "given" or program is rows_of_a_selection
    for mine, theirs in zip(given, plain, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def first_of(a: Any, b: Any, c: Any, n: int) -> None:
    if n > 0:
        second_of(a, b, c, n - 1)
        a[0] = b[0] / n


def second_of(a: Any, b: Any, c: Any, n: int) -> None:
    if n > 0:
        for k in range(n):
            b[k], c = c[k], b
        first_of(b, a, c, n - 1)


def calls_of_each_other(a: Any, b: Any, c: Any, n: int) -> None:
    first_of(a, b, c, n)
    c[0] = a[0] // n


def test_each_let_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where functions call each other and have many arrays."""
    looked: list[object] = []

    def note(self: Any, let: Any) -> None:
        looked.append(let)
        real(self, let)

    module = core(calls_of_each_other, *np.ones((3, 4)), 2)
    real = stores._Paths._note
    monkeypatch.setattr(stores._Paths, "_note", note)
    found = stores.Stores(module)
    assert len(module.functions) > 1
    assert len(looked) == sum(len([*walk.nested_lets(f.body)]) for f in module.functions.values())
    assert all(len(found.taken[name]) == 2 for name in module.functions if name != module.entry)
