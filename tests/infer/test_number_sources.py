"""Numbers computed of arguments that have to be known: the arguments are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from tests.infer.running import assert_same

X = np.arange(24.0).reshape(2, 3, 4)


def counted_from_the_end(x, axis):
    if axis < 0:
        axis += x.ndim
    return x / np.sum(x + 1.0, axis=axis, keepdims=True)


def all_but_one(x, axis):
    return np.mean(x, axis=tuple(k for k in range(x.ndim) if k != axis))


def remainder(x, axis):
    return np.moveaxis(x, axis % x.ndim, 0)


def from_a_dict(x, options):
    first = options["axis"] - 1
    return np.concatenate([x, x], axis=first) if options["joined"] else np.sum(x, axis=first)


def in_a_loop(x, axis):
    found = 0.0
    for _ in range(3):
        found += np.max(np.cumsum(x, axis=abs(axis) - 1))
    return found


def in_a_function(x, axis):
    def flipped(y, other):
        return np.flip(y, axis=other - 1)

    return flipped(x, axis + 1) + flipped(x, axis)


CALLS: list[tuple[Any, Any]] = [
    (counted_from_the_end, 1), (counted_from_the_end, -1), (all_but_one, 0), (all_but_one, 2),
    (remainder, 5), (from_a_dict, {"axis": 2, "joined": True}),
    (from_a_dict, {"axis": 1, "joined": False}), (in_a_loop, -2), (in_a_function, 1),
    (lambda x, axis: np.rollaxis(x, axis), 2), (lambda x, n: np.tensordot(x, x.T, n - 1), 2),
    (lambda x, axis: np.append(x, x, axis=axis), 1),
]


@pytest.mark.parametrize(("f", "given"), CALLS)
def test_axes_computed_of_arguments(f, given):
    assert_same(pyrelay.jit(f)(X.copy(), given), f(X.copy(), given))


@pytest.mark.parametrize(("f", "given"), [CALLS[1], CALLS[2], CALLS[8], CALLS[9]])
def test_axes_in_functions_that_are_differentiated(f, given):
    pyrelay.check_grads(lambda x: f(x, given), (X,), order=2, modes="rev")


def test_what_no_argument_decides_is_refused():
    with pytest.raises(pyrelay.StaticValueError, match="the axis must be known"):
        pyrelay.jit(lambda x: np.sum(x, axis=int(x[0])))(np.zeros(3))
