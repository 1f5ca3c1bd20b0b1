"""Scopes name what is computed in them and change nothing."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay


def scores(x, early):
    with pyrelay.scope("outer"):
        y = x * 2.0
        with pyrelay.scope("inner"):
            z = np.exp(y).sum()
            if early:
                return z
        for k in range(3):
            with pyrelay.scope("loop"):
                z += np.sqrt(y + k).sum()
    return np.cos(y).sum() + z


@pytest.mark.parametrize("early", [True, False])
def test_a_scope_has_no_effect(early: bool) -> None:
    x = np.arange(4.0)
    assert np.isclose(pyrelay.jit(scores)(x, early), scores(x, early))
    slope = pyrelay.grad(scores)(x + 1, early)
    moved = (scores(x + 1 + 1e-6, early) - scores(x + 1 - 1e-6, early)) / 2e-6
    assert np.isclose(slope.sum(), moved, rtol=1e-5)


def test_code_shows_the_scopes_of_its_lines() -> None:
    code = pyrelay.jit(scores).code(np.arange(4.0), False)
    assert "z = np.exp(y).sum()  (scope outer/inner)" in code
    assert "z += np.sqrt(y + k).sum()  (scope outer/loop)" in code
    assert "return np.cos(y).sum() + z\n" in code


def test_another_object_called_scope_is_refused() -> None:
    class scope:  # noqa: N801
        def __init__(self, name):
            self.name = name

    def f(x):
        with scope("a"):
            return x

    with pytest.raises(pyrelay.PyrelayError):
        pyrelay.jit(f)(1.0)


def test_a_scope_needs_a_name() -> None:
    with pytest.raises(TypeError, match="the name of a scope is a string, not 3"):
        pyrelay.scope(3)
    assert repr(pyrelay.scope("a")) == "pyrelay.scope('a')"
