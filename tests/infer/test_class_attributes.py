"""Attributes of classes and functions, and variables of modules and functions around, assigned."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import pyrelay


class Account:
    count = 0
    total = 0.0
    name = "none"
    seen = np.zeros(2)

    def __init__(self, balance):
        self.balance = balance
        Account.count += 1
        Account.total += balance

    @classmethod
    def mean(cls):
        return cls.total / cls.count

    @property
    def share(self):
        return self.balance / self.total


class Saver(Account):
    pass


class Linked:
    made = 0

    def __init__(self, before):
        self.number, self.before = Linked.made, before
        Linked.made += 1


def opened(x, n):
    account = Account(2 * x)
    if n > 3:
        Account.name, Account.seen = "many", Account.seen + n
    saver = Saver(x)
    return account.count, Saver.mean(), saver.share, Account.name, Saver.seen


def linked(n):
    last = None
    for _ in range(n):
        last = Linked(last)
    numbers = []
    while last is not None:
        numbers.append(last.number)
        last = last.before
    return numbers, Linked.made


def calls(n):
    Linked.made += 1
    return n if n < 2 else calls(n - 1) + calls(n - 2)


def fails(n):
    Account.count = n
    if n > 3:
        raise ValueError(n)
    return n


def outcomes(function, every):
    """Results of calls one after the other, and what the classes have after each."""
    Account.count, Account.total, Account.name, Account.seen = 3, 1.5, "none", np.zeros(2)
    Linked.made = 0
    found = []
    for args in every:
        try:
            result = function(*args)
        except ValueError as error:
            result = str(error)
        found.append(repr((result, Account.count, Account.total, Account.name, Account.seen,
                           Linked.made)))
        Account.total += 0.25  # which the next call sees
    return found


@pytest.mark.parametrize(("function", "every"), [
    (opened, [(1.5, 3), (2.5, 5), (1.5, 2)]), (linked, [(3,), (2,)]), (calls, [(5,), (3,)]),
    (fails, [(2,), (5,)]),
])
def test_what_is_assigned_is_the_classs_at_each_call(function, every):
    assert outcomes(pyrelay.jit(function), every) == outcomes(function, every)


def inherited(n):
    Saver.count += n
    return Saver.count


def inside(n):
    class Counter:
        made = 0

    Counter.made += n
    return Counter.made


def method(x):
    Account.mean = x
    return x


@pytest.mark.parametrize(("function", "hint"), [
    (inherited, "assign count in the body of Saver"),
    (inside, "define the class outside of the function"),
    (method, "keep what changes in attributes of an object"),
])
def test_what_is_no_value_of_a_class_is_refused(function, hint):
    with pytest.raises(pyrelay.UnsupportedOperationError, match=hint):
        pyrelay.jit(function)(2)


CALLS, FIRST, SECOND, WEIGHTS, LOG = 0, 1, 2, np.zeros(2), [0]


def counted(n):
    global CALLS
    CALLS += 1
    return n if n < 2 else counted(n - 1) + counted(n - 2)


def seen_by_others(n):
    found = counted(n)
    return found, CALLS


def exchanged(n):
    global FIRST, SECOND
    for _ in range(n):
        FIRST, SECOND = SECOND, FIRST + SECOND
    return FIRST


def renewed(n):
    global WEIGHTS, LOG
    WEIGHTS = WEIGHTS + n
    LOG = [k * k for k in range(n)]
    LOG.append(n)
    if n > 3:
        raise ValueError(n)
    return WEIGHTS.sum()


def states(function, every):
    """Results of calls one after the other, and what the module has after each."""
    global CALLS, FIRST, SECOND, WEIGHTS, LOG
    CALLS, FIRST, SECOND, WEIGHTS, LOG = 0, 1, 2, np.zeros(2), [0]
    found = []
    for n in every:
        try:
            result = function(n)
        except ValueError as error:
            result = str(error)
        found.append(repr((result, CALLS, FIRST, SECOND, WEIGHTS, LOG)))
        CALLS += 10  # which the next call sees
    return found


@pytest.mark.parametrize(("function", "every"), [
    (seen_by_others, (5, 3)), (exchanged, (4, 1)), (renewed, (2, 5, 1)),
])
def test_what_is_assigned_is_the_modules_at_each_call(function, every):
    assert states(pyrelay.jit(function), every) == states(function, every)


def makes_one(n):
    global UNKNOWN
    UNKNOWN = n


def replaces_a_function(n):
    global counted
    counted = n


@pytest.mark.parametrize(("function", "hint"), [
    (makes_one, "assign UNKNOWN in the module, before the first call"),
    (replaces_a_function, "keep what changes in attributes of an object"),
])
def test_variables_of_the_module_hold_values(function, hint):
    with pytest.raises(pyrelay.UnsupportedOperationError, match="cannot be assigned") as caught:
        pyrelay.jit(function)(1)
    assert hint in str(caught.value)


def counting(function):
    @functools.wraps(function)
    def wrapped(*args):
        wrapped.calls += 1
        return function(*args)

    wrapped.calls = 0
    return wrapped


@counting
def squared(x):
    return x * x


def sum_of_squares(n):
    return sum(squared(k) for k in range(n))


def remembered(n):
    if n not in remembered.known:
        remembered.known[n] = remembered(n - 1) + remembered(n - 2)
        remembered.computed += 1
    return remembered.known[n]


remembered.known, remembered.computed = {0: 0, 1: 1}, 0


def test_attributes_of_functions():
    compiled = pyrelay.jit(sum_of_squares)
    assert [compiled(4), squared.calls, compiled(2), squared.calls] == [14, 4, 1, 6]
    assert pyrelay.jit(remembered)(20) == 6765
    assert (remembered.computed, len(remembered.known)) == (19, 21)


def gives_itself_a_name(x):
    gives_itself_a_name.last = x
    return x


def test_an_attribute_that_a_function_does_not_have():
    with pytest.raises(pyrelay.UnsupportedOperationError, match="cannot be assigned") as caught:
        pyrelay.jit(gives_itself_a_name)(1)
    assert "assign gives_itself_a_name.last outside, before the first call" in str(caught.value)


def counter(best):
    count, log = 0, []

    def step(x):
        nonlocal count, best
        count += 1
        if best is None or x > best:
            best = x
        log.append(count)
        return count * x

    return step, lambda: (count, best, log)


def test_variables_of_a_function_around():
    step, state = counter(None)
    compiled, seen = pyrelay.jit(step), pyrelay.jit(state)
    assert [compiled(1.0), step(5.0), compiled(2.0)] == [1.0, 10.0, 6.0]
    assert seen() == state() == (3, 5.0, [1, 2, 3])

    def twice(x):
        return step(x), step(x), state()[0]

    assert pyrelay.jit(twice)(7.0) == (28.0, 35.0, 5)
    assert state()[:2] == (5, 7.0)
    other, of_other = counter(0.5)
    assert pyrelay.jit(other)(0.25) == 0.25
    assert of_other() == (1, 0.5, [1])
    assert state()[0] == 5
