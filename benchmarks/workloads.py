"""What is timed: each workload's name, input, tolerance and goal.

In: nothing. Out: `WORKLOADS`, in the order they are run. A workload names a program that the
modules of `benchmarks.programs` write once per framework; its input is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Goal:
    """pyrelay is to take at most `ratio` times what `peer` takes."""

    peer: str
    ratio: float = 1.0


@dataclass(frozen=True)
class Workload:
    """One line of the table: `program` run on what `arguments()` makes."""

    name: str
    title: str
    program: str
    arguments: Callable[[], Arguments]
    goals: tuple[Goal, ...] = ()
    most_seconds: float | None = None
    rtol: float = 1e-4
    atol: float = 1e-5
    left_out: frozenset[str] = frozenset()
    """Frameworks that would need hours or the machine's whole memory."""


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Float32 normal numbers."""
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def elementwise(size: int) -> Arguments:
    rng = np.random.default_rng(0)
    return tuple(normal(rng, size) for _ in range(3))


def lstm(size: int, steps: int = 64) -> Arguments:
    """xs (steps, size), h (size,), c (size,), W and U (size, 4 * size), b (4 * size,)."""
    rng = np.random.default_rng(1)
    scale = size**-0.5
    return (
        normal(rng, steps, size),
        normal(rng, size),
        normal(rng, size),
        normal(rng, size, 4 * size, scale=scale),
        normal(rng, size, 4 * size, scale=scale),
        normal(rng, 4 * size, scale=0.1),
    )


def square_matrices(size: int) -> Arguments:
    rng = np.random.default_rng(2)
    return normal(rng, size, size), normal(rng, size, size)


def mlp(batch: int = 64, inputs: int = 784, hidden: int = 256, classes: int = 10) -> Arguments:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, classes, batch)
    return (
        normal(rng, inputs, hidden, scale=inputs**-0.5),
        normal(rng, hidden, scale=0.1),
        normal(rng, hidden, classes, scale=hidden**-0.5),
        normal(rng, classes, scale=0.1),
        normal(rng, batch, inputs),
        np.eye(classes, dtype=np.float32)[labels],
    )


def matrix(rows: int, columns: int) -> Arguments:
    return (normal(np.random.default_rng(4), rows, columns),)


def small_arrays() -> Arguments:
    rng = np.random.default_rng(5)
    return tuple(normal(rng, 16) for _ in range(4))


def recurrence(count: int) -> Arguments:
    return normal(np.random.default_rng(6), count).astype(np.float64), 0.9


def array_programs() -> tuple[Workload, ...]:
    """Loops and writes in place, float64 and integers; numba's loops check no index."""
    rng = np.random.default_rng(7)
    random, integers = rng.random, rng.integers
    square = random((200, 200))
    half = rng.standard_normal((120, 120))
    symmetric = half @ half.T + 120 * np.eye(120)
    table = integers(0, 2**32, 256).astype(np.uint32)
    rows: tuple[tuple[str, str, Arguments], ...] = (
        ("jacobi", "Jacobi, 200 x 200, 50 sweeps", (square, 50)),
        ("gauss_seidel", "Gauss-Seidel, 200 x 200, 10 sweeps", (square, 10)),
        ("wave", "wave equation, 10,000 points, 100 steps",
         (random(10_000), np.zeros(10_000), 100, 0.1)),
        ("floyd_warshall", "Floyd-Warshall, 100 nodes", (random((100, 100)),)),
        ("nbody", "n-body, 100 bodies, 5 steps",
         (random((100, 3)), random((100, 3)), random(100), 5, 0.01)),
        ("edit_distance", "edit distance, 600 x 500",
         (integers(0, 4, 600), integers(0, 4, 500))),
        ("knapsack", "knapsack, 100 items, capacity 2,000",
         (integers(1, 50, 100), random(100), 2000)),
        ("sieve", "sieve of Eratosthenes below 200,000", (200_000,)),
        ("histogram", "histogram of 200,000 numbers", (random(200_000), 64)),
        ("crc32", "CRC-32 of 100,000 bytes",
         (integers(0, 256, 100_000).astype(np.uint32), table)),
        ("life", "game of life, 200 x 200, 20 steps",
         ((random((200, 200)) > 0.5).astype(np.uint8), 20)),
        ("lu", "LU without pivots, 120 x 120", (symmetric,)),
        ("tridiagonal", "tridiagonal system of 20,000",
         (random(20_000), random(20_000) + 4, random(20_000), random(20_000))),
        ("fft", "radix-2 FFT of 4,096 points", (random(4096), random(4096))),
        ("conjugate_gradient", "conjugate gradients, 120 x 120, 50 steps",
         (symmetric, random(120), 50)),
        ("lorenz", "Lorenz system, 20,000 Runge-Kutta steps",
         (np.array([1.0, 2.0, 3.0]), 20_000, 0.001)),
        ("blur", "filter of 5 x 5 over 100 x 100", (random((100, 100)), random((5, 5)))),
        ("kmeans", "k-means, 3,000 points, 8 centres, 3 steps",
         (random((3000, 4)), random((8, 4)), 3)),
        ("monte_carlo", "pi from 100,000 pairs of a linear congruence", (100_000, 42)),
    )
    # Orders of summation differ; a chaotic orbit keeps six digits of that at this length.
    return tuple(
        Workload(
            name, title, name, lambda args=args: args,  # type: ignore[misc]
            goals=(Goal("numba"),), rtol=1e-3 if name == "lorenz" else 1e-6, atol=1e-8,
        )
        for name, title, args in rows
    )


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        "elementwise",
        "tanh(x*w+b)*exp(-x*x), 4M float32",
        "elementwise",
        partial(elementwise, 4_000_000),
        goals=(Goal("jax"), Goal("torch.compile")),
    ),
    *(
        Workload(
            f"lstm_forward_{size}",
            f"LSTM, 64 steps, {size} units, batch 1",
            "lstm_forward",
            partial(lstm, size),
            goals=(Goal("jax"),),
            rtol=1e-3,
            atol=1e-4,
        )
        for size in (64, 256)
    ),
    *(
        Workload(
            f"lstm_gradient_{size}",
            f"its gradient in W, U, b, {size} units",
            "lstm_gradient",
            partial(lstm, size),
            goals=(Goal("jax"),),
            rtol=1e-2,
            atol=1e-3,
        )
        for size in (64, 256)
    ),
    *(
        Workload(
            f"matmul_{size}",
            f"matmul {size} x {size} float32",
            "matmul",
            partial(square_matrices, size),
            goals=(Goal("jax", 1 / 0.9),),
            rtol=1e-3,
            atol=1e-3,
        )
        for size in (512, 1024, 2048)
    ),
    Workload(
        "mlp_gradient",
        "perceptron 784-256-10, batch 64: loss and gradient",
        "mlp_gradient",
        mlp,
        rtol=1e-3,
        atol=1e-4,
    ),
    Workload("softmax", "softmax of 4096 rows of 512", "softmax", partial(matrix, 4096, 512)),
    Workload(
        "layer_norm", "layer norm of 4096 rows of 512", "layer_norm", partial(matrix, 4096, 512)
    ),
    Workload(
        "call",
        "call with 4 arrays of 16",
        "call",
        small_arrays,
        most_seconds=3e-6,
    ),
    *(
        Workload(
            f"stores_{count}",
            f"{count:,} stores x[i] = a * x[i-1] + v[i]",
            "stores",
            partial(recurrence, count),
        )
        for count in (1_000, 10_000, 100_000, 1_000_000)
    ),
    *(
        Workload(
            f"stores_gradient_{count}",
            f"gradient through {count:,} stores",
            "stores_gradient",
            partial(recurrence, count),
            # JAX keeps a copy of the array per store: quadratic in time and memory.
            left_out=frozenset({"jax"} if count > 10_000 else ()),
        )
        for count in (1_000, 10_000, 100_000, 1_000_000)
    ),
    Workload(
        "escape",
        "escape times of 256 x 256 points, a while loop each",
        "escape",
        lambda: (256, 64),
        goals=(Goal("numba", 1.1),),
    ),
    Workload("newton", "Newton's square root of 2, a while loop", "newton", lambda: (2.0, 1.0)),
    Workload("fibonacci", "fibonacci(24) by recursion", "fibonacci", lambda: (24,)),
    Workload("depth", "recursion 100,000 deep", "depth", lambda: (100_000, 0.5)),
    *array_programs(),
)

BY_NAME = {workload.name: workload for workload in WORKLOADS}
