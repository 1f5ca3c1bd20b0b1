"""`make demo`: plain NumPy programs compiled, looked at, differentiated and trained on real data.

Everything it prints is measured or made while it runs; nothing is downloaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pyrelay
from examples import digits, names


def newton(square, x):
    """The square root of `square`, from the guess `x`, in as many steps as it takes."""
    while abs(x * x - square) > 1e-12:
        x = 0.5 * (x + square / x)
    return x


def power(x, n):
    """x to the n by recursion: halve n while it is even, peel off a factor where it is odd."""
    if n == 0:
        return 1.0
    if n % 2 == 0:
        return power(x * x, n // 2)
    return x * power(x, n - 1)


def heat(u, rounds):
    """The temperature of a rod after `rounds` rounds of every point moving to its neighbours'."""
    for _ in range(rounds):
        new = u.copy()
        for i in range(1, u.shape[0] - 1):
            new[i] = u[i] + 0.25 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u = new
    return u


def ripple(x, w, b):
    """Something with a sum at the end, to look at."""
    return np.sum(np.tanh(x * w + b) * np.exp(-x * x))


def heading(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")


def seconds(function: Callable[..., Any], args: tuple[Any, ...], least: float = 0.1) -> float:
    """The seconds one call takes: the shortest of those made within `least` seconds."""
    best = float("inf")
    end = time.perf_counter() + least
    while time.perf_counter() < end:
        start = time.perf_counter()
        function(*args)
        best = min(best, time.perf_counter() - start)
    return best


def duration(value: float) -> str:
    """`value` seconds in the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def show_programs() -> None:
    """Loops, branches and recursion: the numbers of plain Python, and exact derivatives."""
    heading("Plain Python, compiled: the same numbers")
    rod = np.zeros(200)
    rod[100] = 1.0
    programs: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = (
        (newton, (2.0, 1e30)),
        (power, (1.0001, 5000)),
        (heat, (rod, 50)),
    )
    for function, args in programs:
        compiled = pyrelay.jit(function)
        gap = float(np.max(np.abs(function(*args) - compiled(*args))))
        slow, fast = seconds(function, args), seconds(compiled, args)
        print(
            f"{function.__name__:8} plain {duration(slow):>8}, compiled {duration(fast):>8}"
            f" ({slow / fast:.3g} times as fast), largest difference {gap:.1e}"
        )

    heading("Derivatives through the loop and the recursion, of any order")
    first = pyrelay.grad(newton)
    second = pyrelay.grad(first)
    print(f"d newton / d square at 2    {first(2.0, 1.0):.12f}, by hand {0.5 / 2**0.5:.12f}")
    print(f"and its derivative          {second(2.0, 1.0):.12f}, by hand {-0.25 / 2**1.5:.12f}")
    slope = pyrelay.grad(power)(1.0001, 5000)
    print(f"d power(x, 5000) / dx       {slope:.8f}, by hand {5000 * 1.0001**4999:.8f}")


def show_compiler() -> None:
    """What the compiler makes of one function."""
    x, w, b = (np.linspace(-1, 1, 1000, dtype=np.float32) for _ in range(3))
    heading("One function: its typed program")
    print(pyrelay.jit(ripple).ir(x, w, b))
    heading("its kernels")
    print(pyrelay.jit(ripple).code(x, w, b))
    heading("and its derivative, as a program again")
    print(pyrelay.grad(ripple).ir(x, w, b, stage="optimise"))


def train_on_digits() -> None:
    """The two networks of `examples.digits`."""
    heading("Handwritten digits: loss, gradient and update are one compiled function")
    data = digits.digits()
    for name, run in (
        ("perceptron", digits.train_perceptron),
        ("recurrent network", digits.train_recurrent),
    ):
        outcome = run(data)
        print(
            f"{name}: {outcome.accuracy:.1%} of {len(data.test_labels)} held-out images right, "
            f"first step after {duration(outcome.first_step)}, "
            f"then {duration(outcome.later_step)} a step"
        )


def invent_names() -> None:
    """The network of `examples.names`."""
    heading(f"Names: learnt from {len(names.real_names())} real ones of NumPy and Python")
    outcome = names.train()
    print(
        f"-log p of a letter {outcome.losses[0]:.2f} -> {np.mean(outcome.losses[-20:]):.2f}, "
        f"first step after {duration(outcome.first_step)}, "
        f"then {duration(outcome.later_step)} a step"
    )
    print("ten invented names:", ", ".join(names.invented_names(outcome.params, 10)))


def main() -> None:
    start = time.perf_counter()
    show_programs()
    show_compiler()
    train_on_digits()
    invent_names()
    print(f"\nAll of it took {time.perf_counter() - start:.0f} s.")


if __name__ == "__main__":
    main()
