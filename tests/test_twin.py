"""The twin run names the first line at which a compiled function parts from plain Python.

An op is given a wrong meaning; the line that uses it must be named, in the right round of its loop
and in the helper that it stands in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.ir.op import OPS

X = np.array([0.5, -1.0, 2.0])


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Gives an op a wrong meaning in compiled code: its element is doubled."""

    def break_op(name: str) -> None:
        record = OPS[name]
        element: Any = record.element

        def doubled(s: Any, index: Any, *readers: Any, **attrs: Any) -> Any:
            value = element(s, index, *readers, **attrs)
            return s.add(value, value)

        monkeypatch.setitem(OPS, name, dataclasses.replace(record, element=doubled))

    return break_op


def straight(x, w):
    h = np.tanh(x)
    y = h * w
    z = np.sinh(y)
    return z + h


def test_an_op_with_a_wrong_meaning_is_found_at_its_line(wrong):
    compiled = pyrelay.jit(straight)
    assert compiled.compare(X, 2.0)
    wrong("sinh")
    found = pyrelay.jit(straight).compare(X, 2.0)
    assert not found
    assert found.first.line == straight.__code__.co_firstlineno + 3
    assert found.first.text == "z = np.sinh(y)"
    assert found.first.differences[0].startswith("z: compiled ")
    assert "test_twin.py, line" in repr(found)


def looped(x, n):
    total = 0.0
    for i in range(n):
        if i > 2:
            total += np.sum(np.cosh(x)) * 0.5
        else:
            total = total + i
    return total


def test_the_round_of_a_loop_is_named(wrong):
    wrong("cosh")
    place = pyrelay.jit(looped).compare(X, 6).first
    assert (place.text, place.times) == ("total += np.sum(np.cosh(x)) * 0.5", 1)
    assert ", in looped: total += " in str(place)


def helper(v, k):
    w = v * k
    w[0] = 3.0
    return np.arcsinh(w) + 1.0


def deep(x):
    for k in range(3):
        x = helper(x, k + 0.5)
    return x


class Model:
    def __init__(self, w):
        self.__w = w

    def layer(self, x):
        y = x * self.__w
        return helper(y, 2.0)


def test_the_line_of_a_helper_is_named_and_the_call_before_it_is_not(wrong):
    wrong("arcsinh")
    for function, args in ((deep, (X,)), (Model(2.0).layer, (X,))):
        place = pyrelay.jit(function).compare(*args).first
        assert place.function == "helper"
        assert place.text == "return np.arcsinh(w) + 1.0"


def drawn(x):
    rng = np.random.default_rng(3)
    old = np.random.RandomState(3)
    return np.sinh(x) * rng.random() + old.rand()


def test_generators_in_one_state_are_the_same(wrong):
    assert pyrelay.jit(drawn).compare(X)
    wrong("sinh")
    assert pyrelay.jit(drawn).compare(X).first.text.startswith("return np.sinh(x)")


def test_closures_keep_their_variables_and_lambdas_have_one_line(wrong):
    scale = 3.0

    def inner(x):
        y = x * scale
        return np.expm1(y)

    wrong("expm1")
    assert pyrelay.jit(inner).compare(X).first.text == "return np.expm1(y)"
    place = pyrelay.jit(lambda x: np.expm1(x * scale)).compare(X).first
    assert place.differences[0].startswith("result: ")


def branching(x):
    n = int(np.log1p(x[0]) * 10)
    if n > 5:
        return x * 2.0
    return x + 1.0


def test_a_line_that_only_one_of_them_reaches_is_named(wrong):
    wrong("log1p")
    place = pyrelay.jit(branching).compare(X).first
    assert place.text == "n = int(np.log1p(x[0]) * 10)"


def test_what_was_written_into_an_argument_is_looked_at(wrong):
    def fill(x):
        x[1:] = np.exp2(x[1:])
        x[0] = 1.0

    wrong("exp2")
    found = pyrelay.jit(fill).compare(X)
    assert found.first.text == "x[1:] = np.exp2(x[1:])"
    assert found.differences[0].startswith("argument 1 afterwards")
