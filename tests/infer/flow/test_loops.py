"""Loops whose first round changes the type of what they carry, or that change their own lists."""

from __future__ import annotations

import numpy as np

from pyrelay.ir.walk import nested_lets
from tests.infer.running import assert_same_outcome, inferred, interpreted, plainly


class Model:
    def __init__(self, means):
        self.means = means


def attribute(x):
    model = Model(x)
    for _ in range(300):
        model.means = model.means * 0.5 + np.ones(2)
    return model.means


def entries(x):
    momenta = {"a": 0, "b": 0}
    for _ in range(300):
        for name in momenta:
            momenta[name] = 0.9 * momenta[name] + x
    return momenta


def left_with_a_history(x):
    model, history = Model(x), []
    for _ in range(20):
        model.means = model.means * np.ones(2) * 0.5
        history.append(float(model.means.sum()))
        if history[-1] < 1e-3:
            break
    return history


def test_it_is_done_by_itself_and_the_others_are_a_loop():
    args = (np.ones((3, 2), np.float32),)
    for function in (attribute, entries):
        module = inferred(function, args).module
        assert len(list(nested_lets(module.functions[module.entry].body))) < 60
        assert_same_outcome(interpreted(function, args), plainly(function, args))


def test_such_a_loop_may_be_left_and_make_a_list():
    args = (np.ones((3, 2), np.float32),)
    assert_same_outcome(interpreted(left_with_a_history, args), plainly(left_with_a_history, args))


def numerals(n):
    found = []
    for value, letter in ((10, "X"), (5, "V"), (1, "I")):
        times, n = divmod(n, value)
        found.append(letter * times)
        if n == 0:
            break
    return "".join(found)


def test_a_list_is_as_long_as_a_loop_over_known_items_went():
    for n in (10, 17, 23):
        assert_same_outcome(interpreted(numerals, (n,)), plainly(numerals, (n,)))


def reached(start):
    found, seen = [start], {start}
    for word in found:
        if word == "ot" and "dt" not in seen:
            seen.add("dt")
            found.append("dt")
        if word == "dt" and "dg" not in seen:
            seen.add("dg")
            found.append("dg")
    return found


def test_a_loop_over_a_list_that_it_makes_longer_comes_to_what_it_adds():
    assert_same_outcome(interpreted(reached, ("ot",)), plainly(reached, ("ot",)))
