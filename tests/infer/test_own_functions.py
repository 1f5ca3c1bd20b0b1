"""Functions that cost much in line are functions of the program: they do what they do in line."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyrelay
from pyrelay.infer import own_functions
from tests.infer.running import Outcome, assert_same_outcome, plainly


@pytest.fixture(autouse=True)
def _from_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions cost too much at once."""
    monkeypatch.setattr(own_functions, "_COSTLY", 0)
    monkeypatch.setattr(own_functions, "_CALLS", 0)
    monkeypatch.setenv("PYRELAY_CACHE", "0")


class Account:
    def __init__(self, balance: Any) -> None:
        self.balance = balance
        self.log: list[Any] = []

    def pay(self, amount: Any) -> Any:
        if amount > self.balance:
            raise ValueError("too much")
        self.balance = self.balance - amount
        return self

    def largest(self, other: Any) -> Any:
        return self if self.balance > other.balance else other


class Link:
    def __init__(self, value: Any, following: Any = None) -> None:
        self.value, self.following = value, following

    def before(self, value: Any) -> Any:
        return Link(value, self)

    def raised(self, by: Any) -> None:
        self.value += by


def accounts_paid(x: Any, y: Any) -> Any:
    a, b = Account(x), Account(y)
    same = a.pay(1.0).pay(2.0) is a
    b.pay(0.5)
    return a.balance, b.balance, same, a.largest(b).balance


def scaled(x: Any, by: Any) -> None:
    x *= by


def part(x: Any, n: int) -> Any:
    return x[:n]


def given(x: Any) -> Any:
    return x


def arrays_written(x: Any) -> Any:
    scaled(x, 2.0)
    part(x, 2)[0] = 7.0  # a view: it is not given by a function of its own
    y = given(x)
    y += 1.0
    return x, y is x


def sized(n: int) -> Any:
    return [0.0] * n


def lengths(x: float) -> Any:
    return [len(sized(n)) + x for n in range(1, 9)], sum(len(sized(2)) for _ in range(3))


def linked(x: float, n: int) -> float:
    node = Link(x)
    for k in range(n):
        node = node.before(k * x)
        node.raised(1.0)
    total, first = 0.0, node
    while node is not None:
        total = total * 0.5 + node.value
        node = node.following
    first.raised(2.0)
    return total + first.value


def filled(items: Any, x: Any) -> Any:
    items.append(x)
    return items


def lists_filled(x: float, n: int) -> Any:
    items = [x]
    for k in range(n):
        filled(items, k * x)
    other = filled(items, -x)
    other.append(0.25)
    return items, other is items


def caught(x: float) -> float:
    account = Account(x)
    try:
        account.pay(3.0)
    except ValueError:
        return -1.0
    return account.balance


X = np.array([0.5, -2.0, 1.5])


@pytest.mark.parametrize(("function", "args"), [
    (accounts_paid, (5.0, 7.0)), (accounts_paid, (2.5, 7.0)), (arrays_written, (X,)),
    (lengths, (0.5,)), (linked, (1.5, 4)), (linked, (1.5, 0)), (lists_filled, (1.5, 3)),
    (caught, (2.0,)), (caught, (4.0,)),
])  # fmt: skip
def test_functions_of_the_program_do_what_they_do_in_line(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    mine = copy.deepcopy(args)
    try:
        got = Outcome(pyrelay.jit(function)(*mine), None, mine)
    except Exception as error:
        got = Outcome(None, error, mine)
    assert_same_outcome(got, plainly(function, args))


def several_accounts(x: float) -> float:
    a, b, c = Account(x), Account(2 * x), Account(3 * x)
    for each in (a, b, c):
        each.pay(0.25)
        each.pay(0.125)
    return a.balance + b.balance + c.balance


def test_calls_that_are_alike_are_of_one_function() -> None:
    text = str(pyrelay.jit(several_accounts).ir(4.0))
    assert text.count("def @") == 1 + 1 + 2  # entry, it as a function, `__init__`, `pay`


def test_derivatives_go_through_functions_of_the_program() -> None:
    slope = pyrelay.grad(lambda x: accounts_paid(x, x * x)[3])(5.0)
    assert slope == pytest.approx(10.0)
