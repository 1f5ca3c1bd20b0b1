"""Python functions on which every pass has to keep its laws, each with lists of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LAW_PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = {}

X = np.array([1.5, -0.0, 0.0, np.nan, np.inf, -2.0])
A = np.arange(6.0).reshape(2, 3) - 2.5


def law(*arguments: tuple[Any, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function; all its argument lists have the types of the first."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        LAW_PROGRAMS[function.__name__] = function, arguments
        return function

    return enter


@law((X,), (-X,))
def neutral_elements(x: Any) -> Any:
    y = -x
    return x * 1.0 + 0.0, x + -0.0, x - 0.0, x - -0.0, x / 1.0, -y, 0.0 - x, 1.0 * x, x**1, x * 0.0


@law((4, 3), (-7, 2), (0, 0))
def integers(a: Any, b: Any) -> Any:
    c, d = ~a, -b
    return a + 0, a * 1, 1 * b, a - 0, (a + b) * (a + b), a // 1, a % 1, ~c, -d


@law((7, 0), (7, 2))
def division_that_may_raise(a: Any, b: Any) -> Any:
    first = a // b
    second = a // b
    return first + second, a % 2


@law((2.0,), (-3.0,))
def known_conditions(x: Any) -> Any:
    scale = 2 * 3 + 4
    total = 0.0
    for _ in range(0):
        total += x
    while scale > 10:
        total -= x
    return (total + x * scale) if scale == 10 and not scale > 12 else -x


@law((A,), (np.ones((4, 5)),))
def shape_pairs(a: Any) -> Any:
    b = a.T.T + np.expand_dims(a, 0)[0]
    c = a.reshape(a.shape[1], a.shape[0]).reshape(a.shape)
    return b, c, a[:, :], a.T @ a, a @ a.T, np.broadcast_to(a, a.shape)


@law((A, 1, 2), (A, 0, 0))
def written_and_read(a: Any, i: Any, j: Any) -> Any:
    b = a.copy()
    b[i, j] = 7.0
    z = np.zeros(a.shape[1])
    return b[i, j] + b[j % 2, i], z[j], b


@law((A, A + 1.0), (A, A))
def common_parts(a: Any, b: Any) -> Any:
    s = np.tanh(a) * np.tanh(b)
    t = np.tanh(a) + np.tanh(b)
    if a[0, 0] > b[0, 0]:
        t = t + np.tanh(a)
    return s + t, np.sum(np.tanh(b))


@law((X, 3), (X, 0), (X, -2))
def branches_that_agree(x: Any, n: Any) -> Any:
    if n > 1:
        y, z, k = x, x + 1.0, 5
    elif n < 0:
        y, z, k = x, x - 1.0, 5
    else:
        y, z, k = x, x + 1.0, 5
    unused = np.cumsum(z)
    return y, z, k, unused.shape[0]


@law((3.0, 5), (3.0, 0))
def carried_that_stays(x: Any, n: Any) -> Any:
    a, b, dead = x, 1.0, 0.0
    for i in range(n):
        b = b + a * i
        dead = dead + b
    return a, b


@law((2.0, 1e-9), (9.0, 1e-3))
def newton(f0: Any, tol: Any) -> Any:
    x, steps = 1.0, 0
    while (r := abs(x * x - f0)) > tol:
        x = 0.5 * (x + f0 / x)
        steps += 1
    return x, r, steps


@law((A, np.ones((3, 2))), (A[:0], np.ones((3, 2))))
def invariant_code(a: Any, w: Any) -> Any:
    total = np.zeros(2)
    for i in range(a.shape[0]):
        scale = np.exp(np.sum(w)) * 0.125
        total = total + a[i] @ w * scale
    return total


@law((np.ones((4, 2)), np.ones((2, 3)), np.full((3, 3), 0.25)))
def recurrence(x: Any, w: Any, u: Any) -> Any:
    h = np.zeros(3)
    for t in range(x.shape[0]):
        h = np.tanh(x[t] @ w + h @ u)
    return h


@law((X, -1.0), (X, 1.0), (X, 100.0))
def loop_with_break(x: Any, limit: Any) -> Any:
    total = 0.0
    last = -1
    for i in range(len(x)):
        if x[i] > limit:
            break
        total += x[i]
        last = i
    return total, last


@law((np.arange(8.0), 5), (np.arange(8.0), 99), (np.arange(8.0), -3))
def slices_with_run_time_bounds(x: Any, n: Any) -> Any:
    y = x[:n]
    z = x[n:]
    return np.sum(y) + np.sum(z), y + 1.0, x[1:-1] * 2.0


@law((np.arange(6.0), 4), (np.arange(6.0), 0))
def shrinking(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = x[1:] + x[:-1]
    return x


@law((10,), (1,))
def fib(n: Any) -> Any:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@law((7,), (0,))
def is_even(n: Any) -> Any:
    return True if n == 0 else is_odd(n - 1)


def is_odd(n: Any) -> Any:
    return False if n == 0 else is_even(n - 1)


@law((np.arange(9.0),), (np.arange(1.0),), (np.zeros(0),))
def sum_by_halves(x: Any) -> Any:
    n = len(x)
    if n == 0:
        return 0.0
    if n == 1:
        return x[0]
    return sum_by_halves(x[: n // 2]) + sum_by_halves(x[n // 2 :])


@law((np.arange(5.0),), (np.ones(0),))
def elements_in_and_out(x: Any) -> Any:
    out = np.zeros(len(x))
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        out[i] = total
    for i in range(1, len(x)):
        out[i] = out[i - 1] * 0.5 + x[len(x) - 1 - i]
    return out


@law((np.arange(5.0), 2), (np.arange(5.0), -6), (np.arange(5.0), 5))
def index_that_may_be_out_of_range(x: Any, i: Any) -> Any:
    x[i]  # raises where Python does
    for k in range(3):
        x = x + x[k]
    return x


@law((4, 3), (2, -1), (3, 0))
def a_check_in_a_loop(n: Any, d: Any) -> Any:
    total = 0
    for i in range(n):
        if d < 0:
            raise ValueError(f"{d} is negative at {i}")
        total += i // d
    return total


@law((np.arange(4.0), 3), (np.arange(4.0), 0))
def nested_loops(x: Any, n: Any) -> Any:
    total = np.zeros(4)
    for i in range(n):
        base = np.exp(x) + i
        for j in range(i):
            total = total + base * np.sin(x) + j
    return total
