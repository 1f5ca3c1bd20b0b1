"""Builtins that make text of numbers, known or computed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import pyrelay


def spelled(n, x):
    return hex(n), oct(n), bin(-n), str(n), repr(x), format(x, ".2e"), ascii("é"), hex(255)


@pytest.mark.parametrize("number", [10, -3, 0])
def test_numbers_are_spelled_as_in_python(number):
    assert pyrelay.jit(spelled)(number, 2.5) == spelled(number, 2.5)


@pytest.mark.parametrize("x", [np.array([1.5, -2.0]), np.arange(6).reshape(2, 3)])
def test_texts_of_arrays_by_their_functions(x):
    def f(x):
        return "labels: " + np.array2string(np.unique(x)), np.array_str(x)

    assert pyrelay.jit(f)(x) == f(x)


def test_texts_of_arrays_have_no_options():
    with pytest.raises(pyrelay.UnsupportedOperationError, match="without options"):
        pyrelay.jit(lambda x: np.array2string(x, precision=2))(np.ones(2))


def test_limits_that_the_interpreter_names():
    def f(x):
        small = np.log(sys.float_info.min) * x + sys.float_info.epsilon
        return small, sys.float_info[0], sys.version_info >= (3, 8), sys.int_info.sizeof_digit

    assert pyrelay.jit(f)(2.0) == f(2.0)
