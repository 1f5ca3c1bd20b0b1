"""Functions that numba compiles elsewhere are functions like any other inside of a program."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numba.typed import Dict, List

import pyrelay
from pyrelay.store.descriptions import Description

X = np.array([1.0, -2.0, 0.5])


@numba.njit
def squares(x):
    total = 0.0
    for k in numba.prange(len(x)):
        total += x[k] * x[k]
    return total


@numba.vectorize
def bent(v):
    return v if v > 0.0 else 0.1 * v


@numba.njit("f8(f8)")
def declared(v):
    return v * 2.0


def loss(x):
    return squares(bent(x)) + squares(x)


def test_programs_call_functions_that_numba_compiles() -> None:
    wanted = np.sum(np.where(X > 0, X, 0.1 * X) ** 2) + 5.25
    assert pyrelay.jit(loss)(X) == pytest.approx(wanted)


def test_they_have_derivatives() -> None:
    wanted = 2 * X + 2 * np.where(X > 0, X, 0.01 * X)
    np.testing.assert_allclose(pyrelay.grad(loss)(X), wanted)
    np.testing.assert_allclose(pyrelay.grad(squares)(X), 2 * X)


def test_a_function_that_numba_compiles_can_be_given_to_jit() -> None:
    compiled = pyrelay.jit(squares)
    assert compiled(X) == 5.25
    assert compiled.py is squares.py_func


def test_functions_with_declared_types_are_refused() -> None:
    with pytest.raises(pyrelay.UnsupportedOperationError) as caught:
        pyrelay.jit(lambda v: declared(v))(1.0)
    text = str(caught.value)
    assert text.startswith(
        "'declared' is compiled by numba for the types that its decorator declares.\n"
    )
    assert "call declared.py_func" in text


@pytest.mark.parametrize(
    ("make", "literal"),
    [(lambda: List(), "[]"), (lambda: List.empty_list(numba.float64), "[]"),
     (lambda: numba.typed.List([1.0]), "[]"), (lambda: Dict(), "{}"),
     (lambda: Dict.empty(numba.int64, numba.float64), "{}")],
)  # fmt: skip
def test_typed_lists_and_dicts_are_refused(make: Any, literal: str) -> None:
    def made(x):
        return len(make()) + x

    with pytest.raises(pyrelay.UnsupportedOperationError) as caught:
        pyrelay.jit(made)(1.0)
    name = "List" if literal == "[]" else "Dict"
    text = str(caught.value)
    assert text.startswith(f"a numba.typed.{name} cannot be made in a compiled function.\n")
    assert f"write {literal}: a {name.lower()} of Python's" in text
    assert "test_numba_functions.py" in text.splitlines()[1]


def test_what_they_do_is_part_of_what_a_kept_program_was_made_of() -> None:
    def described(function: Any) -> Any:
        description = Description()
        description.add(function)
        return description.digest()

    @numba.njit
    def one(x):
        return x + 1

    @numba.njit
    def other(x):
        return x + 2

    assert described(one) != described(other)
