"""Programs that fail inside of kernels, one of each form; apart from the tests of them, where
pytest rewrites what `assert` says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

X = np.linspace(0.5, 4.0, 8)
BAD = np.array([1, 2, 9, -12])
W = np.eye(8) * 0.5
TREE = (1.0, (2.0, None, (7.0, None, None)), (3.0, None, None))


def gathered(x: Any, i: Any) -> Any:
    y = np.exp(x)
    return y[i] * 2.0


def gathered_rows(x: Any, i: Any) -> Any:
    table = x.reshape(4, 2)
    return np.tanh(table[i]).sum(axis=1)


def scattered(x: Any, i: Any) -> Any:
    y = x.copy()
    y[i] = 1.0
    return y


def added_at(x: Any, i: Any) -> Any:
    y = np.zeros(4)
    np.add.at(y, i, x[:4])
    return y


def stored_in_rounds(x: Any, i: Any) -> Any:
    y = np.zeros(x.size)
    for k in range(i.size):
        y[i[k]] += x[k]
    return y


def raised_in_a_thread(x: Any, limit: float) -> Any:
    y = np.zeros(x.size)
    for k in range(x.size):
        if x[k] > limit:
            raise ValueError(f"{x[k]} at {k} is above {limit}")
        y[k] = x[k] * x[k]
    return y


def asserted_in_a_thread(x: Any, limit: float) -> Any:
    total = 0.0
    for k in range(x.size):
        total += x[k]
        assert total < limit, "too much"
    return total


def asserted_without_a_text(x: Any) -> Any:
    y = x * 2.0
    for v in y:
        assert v < 3.0
    return y


def recurrence(x: Any, w: Any, limit: float) -> Any:
    h = x
    for k in range(12):
        h = np.tanh(h @ w) + x * k
        if h.max() > limit:
            raise ArithmeticError(f"round {k} has {float(h.max()):.1f}")
    return h


def recurrence_that_picks(x: Any, w: Any, i: Any) -> Any:
    h = x
    for k in range(12):
        h = np.tanh(h @ w) + x[i + k]
    return h


def recurrence_with_assert(x: Any, w: Any) -> Any:
    h = x
    for k in range(12):
        h = np.tanh(h @ w) + x
        assert k < 7, f"round {k}"
    return h


def deep(n: int, k: int) -> int:
    if n <= 0:
        raise LookupError(f"nothing below {k}")
    return deep(n - 2, k + 1) + 1 if n % 2 == 0 else n


def recursion_in_a_kernel(x: Any) -> Any:
    y = np.zeros(x.size)
    for k in range(x.size):
        y[k] = deep(int(x[k]), k)
    return y


def halved(x: Any, k: int) -> float:
    if x[k] > 5:
        return 0.0
    return x[k] + halved(x, 2 * k + 1)


def recursion_that_picks(x: Any) -> Any:
    return np.array([halved(x, k) for k in range(3)])


def divided(x: Any) -> Any:
    total = 0
    for k in range(x.size):
        total += 100 // (k - 3)
    return total + x[0]


def square_root(x: Any) -> Any:
    y = np.zeros(x.size)
    for k in range(x.size):
        y[k] = math.sqrt(2.0 - x[k])
    return y


def as_integer(x: Any) -> Any:
    y = np.zeros(x.size, np.int64)
    for k in range(x.size):
        y[k] = int(x[k] / (x[3] - x[k]) if k == 3 else x[k])
    return y


def chosen_by_flag(x: Any, i: Any) -> Any:
    """Loops that end by what the device computes: what follows a wrong guess is not done."""
    size, k = x.sum(), 0
    y = x
    while size > 0.1:
        y = y * 0.5
        size = y.sum()
        k += 1
    return y[i], k


def loss_of_gathered(x: Any, i: Any) -> Any:
    return (np.exp(x)[i] ** 2).sum()


def loss_of_rounds(x: Any, limit: float) -> Any:
    total = 0.0
    for k in range(x.size):
        total = total * 0.5 + np.sin(x[k]) * x[k - 1]
        if total > limit:
            raise ValueError(f"{k} rounds are enough")
    return total


def tree_sum(t: Any, limit: float) -> Any:
    if t is None:
        return 0.0
    if t[0] > limit:
        raise ValueError(f"{t[0]} is above {limit}")
    return t[0] + tree_sum(t[1], limit) + tree_sum(t[2], limit)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    f.__name__: (f, tuple(args)) for f, *args in (
        (gathered, X, BAD), (gathered_rows, X, BAD), (scattered, X, BAD), (added_at, X, BAD),
        (stored_in_rounds, X, BAD), (raised_in_a_thread, X, 3.0), (asserted_in_a_thread, X, 9.0),
        (asserted_without_a_text, X), (recurrence, X, W, 30.0),
        (recurrence_that_picks, X, W, np.arange(8) - 8), (recurrence_with_assert, X, W),
        (recursion_in_a_kernel, np.array([3.0, 5.0, 4.0])), (recursion_that_picks, X),
        (divided, X), (square_root, X), (as_integer, X), (chosen_by_flag, X, BAD),
        (tree_sum, TREE, 6.0),
    )
}  # fmt: skip
GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "loss_of_gathered": (loss_of_gathered, (X, BAD)), "loss_of_rounds": (loss_of_rounds, (X, 0.5)),
}
