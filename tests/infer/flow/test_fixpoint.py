"""Loops whose test computes what their body reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.errors import UnsupportedOperationError
from pyrelay.infer import layout, values
from pyrelay.infer.flow.fixpoint import _Handover
from pyrelay.ir import types
from pyrelay.ir.nodes import Var
from tests.infer.running import assert_same_outcome, interpreted, plainly


def handed(renamed: dict[Var, Var], value: values.Value) -> values.Value:
    """What a value is when these variables have other names."""
    it: Any = SimpleNamespace(
        frame=SimpleNamespace(env={"x": value}), heap=SimpleNamespace(contents={})
    )
    _Handover(it, renamed).apply()
    return it.frame.env["x"]


def test_what_mentions_nothing_renamed_is_not_described(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a text begins says of what all its parts are: asked at each, of a text that grows round
    by round, that took half of the time of compiling it."""
    old, new = (Var(name, types.PY_INT) for name in "ab")
    text: values.Value = values.Text(str, (values.Scalar(types.PY_INT, old),))
    for _ in range(30):
        text = values.Text(max, (text, values.Known("x")))
    described: list[values.Value] = []
    head_of = layout.head_of

    def noted(value: values.Value) -> Any:
        described.append(value)
        return head_of(value)

    monkeypatch.setattr(layout, "head_of", noted)
    assert handed({new: old}, text) is text
    assert handed({}, text) is text
    assert not described
    changed = handed({old: new}, text)
    assert isinstance(changed, values.Text)
    assert len(described) == 31


def test_a_while_loop_whose_first_round_stands_before_it_has_no_index():
    """Its number of the round was an addition to a variable that nothing binds."""
    def stacked(x, n):
        rows = x
        while n > 0:
            rows, n = np.vstack((rows, x)), n - 1
        return rows.sum(axis=0)

    args = (np.array([1.0, 2.0]), 3)
    assert_same_outcome(interpreted(stacked, args), plainly(stacked, args))


class Noted:
    def __init__(self, x, every):
        self.x, self.before = x, None
        if x > 0:
            every.append(self)


def test_a_list_that_a_round_leaves_with_one_length_or_another_is_not_read_behind_it():
    """It was as long as before the loop."""
    def noted(x):
        every, last = [], None
        for v in x:
            node = Noted(v, every)
            node.before, last = last, node
        return len(every)

    with pytest.raises(UnsupportedOperationError, match="this branch changes the length of a list"):
        pyrelay.jit(noted)(np.ones(4))
