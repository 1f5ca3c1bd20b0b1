"""New contents of the caller's arrays are made in their memory, where nothing can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay import pipeline
from pyrelay.lower.planning.instructions import Alloc

X, Y = np.arange(6.0), np.arange(6.0) * 3.0


def into(x, y, out):
    np.add(x, y, out=out)


def stored(x, y, out):
    out[:] = x * y
    return x - y


def later(x, y, out):
    found = np.add(x, y, out=out)
    return found.sum()


def given_back(x, y, out):
    out[:] = x + y
    return out


def filled(x, y, out):
    out.fill(2.0)


def both(x, y, out):
    out[:] = x + y
    y[:] = x * 2.0


def read_before(x, y, out):
    total = out.sum()
    out[:] = x + y
    return total


def of_another_type(x, y, out):
    out[:] = x > y


def refused_afterwards(x, y, out):
    out[:] = x + y
    if x[1] > 0.0:
        raise ValueError("no")


def allocations(function: Any) -> int:
    spec = pyrelay.jit(function)._specialised((X, Y, np.zeros(6)), {})
    plan = pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))
    return sum(isinstance(i, Alloc) for f in plan.functions[1:] for i in f.code)


@pytest.mark.parametrize(
    ("function", "most"),
    [(into, 0), (stored, 1), (given_back, 0), (filled, 0), (both, 0)],
)
def test_a_result_is_made_in_the_array_that_it_goes_to(function: Any, most: int) -> None:
    assert allocations(function) <= most


@pytest.mark.parametrize(
    "function",
    [
        into, stored, later, given_back, filled, both, read_before, of_another_type,
        refused_afterwards,
    ],
)
def test_arguments_and_results_are_those_of_plain_python(function: Any) -> None:
    compiled = pyrelay.jit(function)
    outcomes = []
    for run in (function, compiled, compiled):
        args = X.copy(), Y.copy(), np.full(6, 7.0)
        try:
            result = run(*args)
        except ValueError as error:
            result = str(error)
        outcomes.append((result, args))
    plain, *others = outcomes
    for result, args in others:
        np.testing.assert_array_equal(result, plain[0])
        for found, wanted in zip(args, plain[1], strict=True):
            np.testing.assert_array_equal(found, wanted)
