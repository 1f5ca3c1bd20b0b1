"""Loops whose first round changes the type of what they carry, or that change their own lists."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay
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


def stretched(x, n):
    low, ahead, total = x.min(axis=1, keepdims=True), np.ones((1, 1)), np.ones(1)
    for k in range(n):
        low = low + x
        ahead = ahead * x[:1] + k
    while total.sum() < n:
        total = total + x[0]
    return low, ahead, total


@pytest.mark.parametrize("n", [0, 1, 3])
def test_an_extent_of_1_is_stretched_by_the_first_round_that_does_so(n):
    args = (np.arange(6.0).reshape(2, 3), n)
    assert_same_outcome(interpreted(stretched, args), plainly(stretched, args))


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


def with_momentum(x, n):
    """Arrays of different shapes in a dict, each made in the first round."""
    parts, state = [x, x[:2] * 2], {}
    for _ in range(n):
        for i, p in enumerate(parts):
            if i not in state:
                state[i] = np.zeros_like(p)
            state[i] = 0.9 * state[i] + p
            p -= 0.1 * state[i]
    return parts, state


def counted_while(x, n):
    found = {}
    while len(found) == 0 or found["k"] < n:
        if "k" not in found:
            found["k"], found["x"] = 0, x * 0
        found["k"] += 1
        found["x"] += x
    return found["x"], sorted(found)


def histories(x, n):
    kept = {}
    for k in range(n):
        kept["last"] = x * k
        if x[0] > k + 5:
            break
    return kept


@pytest.mark.parametrize("n", [0, 1, 4])
@pytest.mark.parametrize("function", [with_momentum, counted_while, histories])
def test_the_first_round_gives_a_dict_its_keys(function, n):
    """The loop was unrolled for each number of rounds, or refused."""
    x = np.arange(1.0, 4.0)
    assert_same_outcome(interpreted(function, (x.copy(), n)), plainly(function, (x.copy(), n)))


def test_what_gives_a_dict_its_keys_is_one_loop():
    assert pyrelay.jit(with_momentum).ir(np.arange(3.0), 40).count("loop") == 1


class Layer:
    def __init__(self, w):
        self.w = w

    def __call__(self, x):
        self.seen = x * self.w
        return self.seen


def attributes_of_rounds(x, n):
    """An attribute that a round assigns is in the object's dict if there was one."""
    layer = Layer(x * 2)
    for k in range(n):
        x = layer(x + k)
    own = layer.__dict__
    parts = [v.sum() for v in own.values()], [k for k, v in vars(layer).items() if v.sum() > 0]
    return parts, len(own), "seen" in own, own.get("seen", x), list(reversed(own))


@pytest.mark.parametrize("n", [0, 2])
def test_the_dict_of_an_object_has_what_some_paths_assign(n):
    """It was refused."""
    x = np.arange(3.0)
    assert_same_outcome(
        interpreted(attributes_of_rounds, (x, n)), plainly(attributes_of_rounds, (x, n))
    )
