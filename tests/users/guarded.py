"""What is looked at first, and raised: lines behind it may be none that could ever run."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


class Model:
    def __init__(self, size):
        self.size = size
        self.weights = np.zeros((size, size))
        self.calls = []

    def fit(self, x):
        self.calls.append(len(x))
        if x.shape[-1] != self.size:
            raise ValueError(f"expected {self.size} features, got {x.shape[-1]}")
        self.weights += x.T @ x
        return x @ self.weights


X = np.arange(6.0).reshape(2, 3)


@use((Model(3), X), (Model(4), X), (Model(2), X))
def features_are_counted(model, x):
    return model.fit(x)


@use((Model(3), [X, X[:, :2], X]), long=True)
def what_does_not_fit_is_left_out(model, batches):
    problems = []
    for x in batches:
        try:
            model.fit(x)
        except ValueError as error:
            problems.append(str(error))
    return problems, model.calls


@use((np.ones(3), np.ones(4), 3), (np.ones(3), np.ones(4), 4), (np.ones(3), np.ones(3), 3))
def lengths_are_compared_with_a_number(a, b, n):
    assert len(b) == n, "length"
    a[:] = 2 * a
    a[:] = b
    return a


@use((None, X, 2), (None, X, 0), ({"scale": 2.0}, X, 2))
def state_is_there_or_not(state, x, k):
    if k > 1 and state is None:
        raise RuntimeError("call init first")
    return x * (state["scale"] if k > 0 else 1.0)


@use((X, np.ones(4), 0), (X, np.ones(4), 1))
def left_before_the_shapes_meet(a, b, k):
    if k < 1:
        return 0.0
    log = [k]
    return (a + b).sum() + len(log)


@use((X, 2), (X, 0))
def the_best_of_none(x, k):
    best = None
    for i in range(k):
        if x[0, i] > 5:
            best = x[0, i]
    return best * 2.0


@use((X, np.ones((2, 3))))
def words_of_shapes(a, b):
    said = []
    try:
        a @ b
    except ValueError as error:
        said.append(str(error))
    try:
        a.reshape(4, -1)
    except ValueError as error:
        said.append(str(error))
    try:
        a.reshape(5, 2)
    except ValueError as error:
        said.append(str(error))
    try:
        a += b.T
    except ValueError as error:
        said.append(str(error))
    try:
        a[0] = np.ones(2)
    except ValueError as error:
        said.append(str(error))
    try:
        a[0] += b
    except ValueError as error:
        said.append(str(error))
    return said


@use(([1.0], np.ones((3, 3)), 2))
def a_list_and_a_diagonal_before_a_raise(log, m, k):
    for i in range(k):
        log.append(i + 2.0)
        np.fill_diagonal(m, 4)
        if m.sum() > 3:
            raise ValueError(int(m.sum()))
    return m


@use(([1, 2, 3],))
def a_cause_and_its_handler(items):
    log = []
    try:
        try:
            items[7]
        except IndexError as error:
            log.append(str(error))
            items.append(9)
            raise ValueError("second") from error
        finally:
            log.append("at last")
    except ValueError as error:
        log.append(str(error))
        log.append(str(error.__cause__))
    return log


class Account:
    def __init__(self, balance):
        self.balance = balance
        self.history = []


class Bank:
    def __init__(self):
        self.accounts = {"a": Account(10.0), "b": Account(5.0)}
        self.log = []

    def move(self, source, target, amount):
        self.log.append(f"{source}->{target}: {amount}")
        if amount <= 0:
            raise ValueError("amount must be positive")
        if self.accounts[source].balance < amount:
            raise RuntimeError(f"insufficient: {self.accounts[source].balance} < {amount}")
        self.accounts[source].balance -= amount
        self.accounts[source].history.append(-amount)
        self.accounts[target].balance += amount
        self.accounts[target].history.append(amount)


@use(
    (Bank(), [("a", "b", 3.0), ("b", "a", 1.0), ("a", "b", 100.0)]),
    (Bank(), [("a", "b", 3.0), ("b", "a", -1.0)]),
    (Bank(), [("a", "b", 3.0), ("b", "c", 1.0)]),
    slow=True,
)
def what_was_moved_before_a_raise(bank, moves):
    for source, target, amount in moves:
        bank.move(source, target, amount)
    return bank.log


@use(([[1, 2], [3]], 2), ([[1, 2], [3]], 1))
def lists_written_before_an_index_is_none(rows, k):
    rows[0].append(9)
    rows[1][0] = 7
    rows[k].append(1)
    return rows


@use(({"x": [1, 2]}, "y"), ({"x": [1, 2]}, "x"))
def a_dict_written_before_a_key_is_missing(d, key):
    d["x"].append(3)
    d["n"] = 1
    d[key].append(4)
    return d


@use((5,), (-12,))
def text_changed_in_a_try(n):
    try:
        text = str(n) + "ab"
        return text.upper(), text.strip("b"), text.split("a")[0], text.index("3")
    except ValueError as error:
        return str(error)
