"""Programs that read arrays from outside, in loops and branches and under several names."""

from __future__ import annotations

import functools
import random
import types as python_types

import numpy as np
import pytest

import pyrelay
from pyrelay.infer.arrays.named_arrays import named_arrays, named_texts
from pyrelay.infer.attempt import Attempt

A, B = np.arange(4.0), np.ones(4)
C = np.arange(16.0).reshape(4, 4)
PAIR = (np.arange(3.0), np.array([2.0, 0.5, 1.0]))
COUNTS = np.array([1, 2, 3])
SAME = A
MODULE = python_types.ModuleType("settings")
MODULE.weights = np.linspace(0.0, 1.0, 4)
USES_ALL = False


class Table:
    factors = np.array([3.0, 4.0, 5.0, 6.0])


def weigh(x, i):
    return x * MODULE.weights[i] + Table.factors[i]


def many(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * A[i] + B[i] + weigh(x[i], i)
        for j in range(len(x)):
            total += C[i, j] * PAIR[0][i % 3] * PAIR[1][j % 3]
        if x[i] > 0:
            total += COUNTS[i % 3]
    return total


def few(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * A[i]
        if USES_ALL:
            total += B[i]
    return total


def descend(x, i):
    return 0.0 if i == 0 else x[i] * A[i] * B[i] + weigh(x[i], i) + descend(x, i - 1)


def draws(seed, n):
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(n):
        total += rng.normal() + rng.exponential() + rng.gamma(2.5)
    return total


def thrown(x, sides):
    return x * np.sum(B) + np.random.random() * sides + random.random()


def throws(x, n):
    total = 0.0
    for _ in range(n):
        total += np.sum(A) * x
        for _ in range(n):
            total += thrown(x, 6)
    return total


def shuffled_if(x, n):
    for i in range(n):
        x += A[i]
        if USES_ALL:
            np.random.shuffle(x)
    return x


def tally(words):
    """Strings that code names, and one that it does not read."""
    counts = {}
    for word in words:
        counts[word + "s"] = counts.get(word, 0) + 1
        counts["total"] = counts.get("total", 0) + 1
        if "stop" in counts and "after" in counts:
            counts["after"] += 1
    return counts, "unread" if len(words) == 1 else None


class Signs:
    """What its methods name is read where the class is."""

    def of(self, word):
        return "-" if word.startswith("un") else ("+", "ok")


def signs_of(words):
    signs = Signs()
    return [signs.of(word) for word in words]


@pytest.fixture
def attempts(monkeypatch):
    """The attempts that inference makes; nothing comes from disk."""
    made = []
    run = Attempt.run

    def counted(self, *args):
        made.append(self)
        return run(self, *args)

    monkeypatch.setattr(Attempt, "run", counted)
    with pyrelay.config.override(cache=False):
        yield made


@pytest.mark.parametrize(
    ("function", "args", "most"),
    [(many, (np.ones(4),), 2), (descend, (np.ones(4), 3), 2), (few, (np.ones(4),), 3),
     (draws, (3, 5), 3)],
)
def test_one_attempt_more_finds_all_arrays(attempts, function, args, most):
    assert pyrelay.jit(function)(*args) == pytest.approx(function(*args), rel=1e-12)
    assert len(attempts) <= most


def test_no_attempt_more_finds_the_texts_of_paths(attempts):
    words = ["a", "stop", "after", "stop"] * 10
    assert pyrelay.jit(tally)(words) == tally(words)
    assert len(attempts) == 2  # the first finds that the dict's keys are computed
    found = [need.value.tobytes().decode("utf-32-le") for need in named_texts([tally])]
    assert sorted(found) == ["after", "stop", "total", "unread"]


def test_one_attempt_more_finds_what_functions_draw_from_and_the_arrays(attempts):
    random.seed(5)
    np.random.seed(5)
    expected = throws(2.0, 3)
    random.seed(5)
    np.random.seed(5)
    assert pyrelay.jit(throws)(2.0, 3) == pytest.approx(expected)
    assert len(attempts) <= 4  # the others are for which state it is, and for what draws raise


def test_what_is_not_drawn_from_is_no_part_of_the_program(attempts):
    before = np.random.get_state()[1].copy()
    np.testing.assert_array_equal(pyrelay.jit(shuffled_if)(np.ones(4), 2), np.full(4, 2.0))
    assert [h.name for h in attempts[-1].hidden] == ["A"]
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_derivatives_of_arrays_read_in_loops(attempts):
    x = np.array([1.0, 2.0, -1.0, 0.5])
    found = pyrelay.grad(many)(x)
    steps = np.eye(4) * 1e-6
    expected = [(many(x + s) - many(x - s)) / 2e-6 for s in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert len(attempts) <= 2


def test_methods_of_classes_name_texts_and_characters_where_one_was_wanted():
    def texts(least):
        found = [need.value for need in named_texts([signs_of], least)]
        return sorted(codes.tobytes().decode("utf-32-le") for codes in found)

    assert texts(2) == ["ok", "un"]
    assert texts(1) == ["+", "-", "ok", "un"]


def test_what_is_not_read_is_no_part_of_the_program(attempts, monkeypatch):
    compiled = pyrelay.jit(few)
    compiled(np.ones(4))
    assert [h.name for h in attempts[-1].hidden] == ["A"]
    before = len(attempts)
    monkeypatch.delitem(globals(), "B")
    assert compiled(np.ones(4)) == few(np.ones(4))
    assert len(attempts) == before


def test_code_names_arrays_in_globals_tuples_modules_classes_and_callees():
    found = [need.value for need in named_arrays([many])]
    expected = [A, B, C, *PAIR, COUNTS, MODULE.weights, Table.factors]
    assert sorted(map(id, found)) == sorted(map(id, expected))


def test_arrays_bound_anew_between_calls(monkeypatch):
    compiled = pyrelay.jit(many)
    x = np.ones(4)
    assert compiled(x) == pytest.approx(many(x))
    monkeypatch.setitem(globals(), "B", np.full(4, 7.0))
    assert compiled(x) == pytest.approx(many(x))
    monkeypatch.setitem(globals(), "B", A)  # now one array under two names
    assert compiled(x) == pytest.approx(many(x))
    monkeypatch.setattr(MODULE, "weights", np.zeros(4))
    assert compiled(x) == pytest.approx(many(x))


def test_two_names_of_one_array_are_guarded_each(monkeypatch):
    def both(x):
        return (x * A + SAME).sum()

    compiled = pyrelay.jit(both)
    assert compiled(np.ones(4)) == 12.0
    monkeypatch.setitem(globals(), "SAME", np.full(4, 10.0))
    assert compiled(np.ones(4)) == 46.0
    monkeypatch.setitem(globals(), "SAME", A)
    assert compiled(np.ones(4)) == 12.0


LISTED = [B, A]


def test_an_array_that_also_lies_in_a_list_is_not_taken_for_it(monkeypatch):
    def both(x):
        total = 0.0
        for i in range(4):
            total += A[i] * x[i] + LISTED[1][i]
        return total

    compiled = pyrelay.jit(both)
    assert compiled(np.ones(4)) == 12.0
    monkeypatch.setitem(globals(), "A", np.full(4, 10.0))
    assert compiled(np.ones(4)) == 46.0
    monkeypatch.setitem(globals(), "LISTED", [A, A])
    assert compiled(np.ones(4)) == 80.0


def test_an_argument_that_is_also_a_global_is_not_taken_for_it():
    def scaled(x, y=B):
        return (x * A + y).sum()

    compiled = pyrelay.jit(scaled)
    assert compiled(A) == 18.0
    assert compiled(np.ones(4)) == 10.0
    assert compiled(B) == 10.0
    assert compiled(np.full(4, 2.0)) == 16.0
    assert compiled(A) == 18.0


def test_two_names_beside_a_table_of_a_cached_function(attempts):
    @functools.cache
    def ways(n):
        return 1 if n < 2 else ways(n - 1) + ways(n - 2)

    def both(x, n):
        return ways(n) * (x * A).sum() + SAME.sum()

    compiled = pyrelay.jit(both)
    for n in (5, 6, 7):
        assert compiled(np.ones(4), n) == both(np.ones(4), n)
    assert len(compiled._table) == 1
    assert [len(entries) for entries in compiled._table.values()] == [1]


def test_writes_show_under_both_names():
    shared = np.zeros(3)
    alias = shared

    def fill(n):
        for i in range(n):
            shared[i] += 1.0
            alias[0] += shared[i]
        return alias.sum()

    compiled = pyrelay.jit(fill)
    got = compiled(3), shared.copy()
    shared[:] = 0.0
    assert got[0] == fill(3)
    np.testing.assert_array_equal(got[1], shared)
