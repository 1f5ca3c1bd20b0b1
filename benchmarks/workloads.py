"""What is timed: each workload's name, input, tolerance and goal.

In: nothing. Out: `WORKLOADS`, in the order they are run. A workload names a program that the
modules of `benchmarks.programs` write once per framework; its input is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks import inputs
from benchmarks.inputs import Arguments


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
    objects: bool = False
    """Whether it reads many Python objects. Where they lie in memory then decides: a tree of 10,000
    leaves among the gaps of other objects takes plain Python and pyrelay five times as long as in a
    fresh process, and the gaps are those that a framework's earlier programs left."""


def products() -> Iterator[Workload]:
    """Matrix products of all kinds; the goals are the best peer's, of which NumPy is one."""
    shapes: tuple[tuple[str, tuple[int, ...], tuple[int, ...], Any], ...] = (
        ("64 x 64 float32", (64, 64), (64, 64), np.float32),
        ("256 x 256 float32", (256, 256), (256, 256), np.float32),
        ("256 x 256 float64", (256, 256), (256, 256), np.float64),
        ("1024 x 1024 float64", (1024, 1024), (1024, 1024), np.float64),
        ("32 of 128 x 128 float32", (32, 128, 128), (32, 128, 128), np.float32),
        ("4096 x 64 by 64 x 64 float32", (4096, 64), (64, 64), np.float32),
        ("8 x 512 by 512 x 512 float32", (8, 512), (512, 512), np.float32),
        ("1 x 1024 by 1024 x 4096 float32", (1, 1024), (1024, 4096), np.float32),
    )

    def factors(left: tuple[int, ...], right: tuple[int, ...], dtype: Any) -> Arguments:
        rng = np.random.default_rng(15)
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in (left, right))

    for title, left, right, dtype in shapes:
        yield Workload(
            f"matmul {title}".replace(" ", "_"), f"matmul {title}", "matmul",
            partial(factors, left, right, dtype),
            goals=(Goal("jax", 1 / 0.95), Goal("torch", 1 / 0.95)), rtol=1e-3, atol=1e-3,
        )  # fmt: skip


def network_programs() -> Iterator[Workload]:
    loose: dict[str, Any] = {"rtol": 1e-2, "atol": 2e-3}
    both = Goal("jax", 1 / 1.2), Goal("torch.compile", 1 / 1.2)
    rows = partial(inputs.matrix, 4096, 512)
    yield Workload(
        "gelu_chain", "gelu of a sum, 4096 x 512", "gelu_chain",
        lambda: (*rows(), inputs.normal(np.random.default_rng(16), 512)), goals=both,
    )  # fmt: skip
    yield Workload("variance", "variance of 4096 rows of 512", "variance", rows, goals=both)
    yield Workload("logsumexp", "log-sum-exp of 4096 rows of 512", "logsumexp", rows, goals=both)
    peers = Goal("torch"), Goal("onnxruntime")
    convolutions: tuple[tuple[str, str, tuple[int, ...]], ...] = (
        ("conv_stem", "convolution 7 x 7, 3 to 64, stride 2, 224", (3, 224, 64, 7)),
        ("conv3", "convolution 3 x 3, 64 to 64, 56", (64, 56, 64, 3)),
        ("conv3", "convolution 3 x 3, 256 to 256, 14", (256, 14, 256, 3)),
        ("conv3", "convolution 3 x 3, 512 to 512, 7", (512, 7, 512, 3)),
        ("conv1", "convolution 1 x 1, 64 to 256, 56", (64, 56, 256, 1)),
        ("conv_depthwise", "depthwise convolution 3 x 3, 144, 56", (144, 56, 144, 3, 144)),
    )
    for program, title, sizes in convolutions:
        yield Workload(
            f"{program}_{sizes[0]}", title, program, partial(inputs.image, *sizes), goals=peers,
            rtol=1e-3, atol=1e-3,
        )  # fmt: skip
    for batch in (1, 8):
        yield Workload(
            f"residual_{batch}", f"residual block of 64 channels, 56, batch {batch}",
            "residual_block", partial(inputs.residual, batch, 64, 56), goals=peers, **loose,
        )  # fmt: skip
    networks: tuple[tuple[str, str, Callable[..., Arguments]], ...] = (
        ("resnet18", "ResNet-18, 224 x 224", inputs.resnet18),
        ("vgg16", "VGG-16, 224 x 224", inputs.vgg16),
        ("mobilenet", "MobileNetV2, 224 x 224", inputs.mobilenet),
        ("dqn", "DQN, 84 x 84", inputs.dqn),
    )
    for name, title, arguments in networks:
        for batch in (1, 8):
            yield Workload(
                f"{name}_{batch}", f"{title}, batch {batch}", name, partial(arguments, batch),
                goals=peers, left_out=frozenset(() if name == "dqn" else {"numpy"}), **loose,
            )  # fmt: skip
    for name, gates, states in (("rnn", 1, 1), ("gru", 3, 1), ("lstm_batch", 4, 2)):
        goals = Goal("jax", 1 / 2), Goal("torch", 1 / 1.2)
        for size, batch in ((64, 16), (256, 16)):
            args = partial(inputs.recurrent, size, batch, gates, states)
            word = name.partition("_")[0].upper()
            title = f"{word}, 64 steps, {size} units, batch {batch}"
            yield Workload(f"{name}_{size}", title, name, args, goals=goals, **loose)
            yield Workload(
                f"{name}_gradient_{size}", f"{title}: gradient", f"{name}_gradient", args,
                goals=goals, **loose,
            )  # fmt: skip
    for size in (16, 128, 1024):
        yield Workload(
            f"generator_{size}", f"letters of a recurrent network, {size} units", "generator",
            partial(inputs.letters, size), goals=(Goal("jax", 1 / 2), Goal("torch", 1 / 5)),
        )  # fmt: skip
    yield Workload(
        "attention", "attention, 8 heads, length 512, width 64", "attention",
        partial(inputs.heads_of, 8, 512, 64), goals=(*both, Goal("torch")), **loose,
    )  # fmt: skip
    yield Workload(
        "transformer", "transformer block, 128 x 256", "transformer", inputs.block, goals=both,
        **loose,
    )  # fmt: skip
    yield Workload(
        "transformer_gradient", "transformer block, 128 x 256: gradient", "transformer_gradient",
        inputs.block_last, goals=both, rtol=5e-2, atol=5e-1,
    )  # fmt: skip
    yield Workload(
        "cnn_gradient", "small convolution net, 28 x 28, batch 64: gradient", "cnn_gradient",
        inputs.digits, goals=(Goal("jax", 1 / 1.5), Goal("torch.compile", 1 / 1.5)), **loose,
    )  # fmt: skip


def tree_programs() -> Iterator[Workload]:
    """Recursion over trees."""
    args = partial(inputs.parsed, 500, 128)
    title = "Tree-LSTM, 500 random parse trees, 128 units"
    goals = (Goal("torch", 1 / 10),)
    yield Workload("tree_lstm", title, "tree_lstm", args, goals=goals, rtol=1e-3, objects=True)
    yield Workload(
        "tree_lstm_gradient", f"{title}: gradient", "tree_lstm_gradient", args, goals=goals,
        rtol=1e-2, atol=1e-2, objects=True,
    )  # fmt: skip
    yield Workload(
        "tree_sum", "sum of a tree of 10,000 leaves", "tree_sum",
        partial(inputs.large_tree, 10_000), goals=(Goal("numpy"),), objects=True,
    )  # fmt: skip
    yield Workload(
        "expression", "expression of 1,000 leaves at 100 points", "expression",
        partial(inputs.large_tree, 1_000, 0.5, 100), goals=(Goal("numpy", 1 / 10),), objects=True,
    )  # fmt: skip


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
        ("distances", "distances of 200 rows of 8, row by row", (random((200, 8)),)),
        ("body_vectors", "n-body, 100 bodies as vectors, 3 steps",
         (random((100, 3)), random((100, 3)), random(100), 3, 0.01)),
        ("lu_dots", "LU by dot products, 120 x 120", (symmetric,)),
        ("elimination", "LU with pivots by rows, 120 x 120", (half,)),
        ("rank_k", "triangle of a product by rows, 120 x 120",
         (square[:120, :120].copy(), half, 1.5, 0.5)),
        ("durbin", "Durbin's recursion, 400 steps", (random(400) * 0.01,)),
        ("viterbi", "Viterbi, 12 states, 500 steps",
         (np.log(random((12, 12))), np.log(random((12, 6))), np.log(random(12)),
          integers(0, 6, 500))),
        ("seidel_rows", "stencil of nine in place by rows, 200 x 200, 5 sweeps", (square, 5)),
    )
    # Orders of summation differ; a chaotic orbit keeps six digits of that at this length.
    return tuple(
        Workload(
            name, title, name, lambda args=args: args,  # type: ignore[misc]
            goals=(Goal("numba"),), rtol=1e-3 if name == "lorenz" else 1e-6, atol=1e-8,
        )
        for name, title, args in rows
    )


def gradients_of_loops() -> Iterator[Workload]:
    """Gradients of loops over numbers and short rows; what JAX cannot express it does not run."""
    loops: tuple[tuple[str, str, Callable[[], Arguments]], ...] = (
        ("kalman", "Kalman filter, 1000 steps, 4 states", partial(inputs.series, 1000)),
        ("soft_dtw", "soft dynamic time warping, 100 x 100", partial(inputs.table, 100, 100)),
        ("determinant", "log-determinant by Cholesky's loops, 60 x 60",
         partial(inputs.positive, 60)),
        ("fixed_points", "fixed points of 2000 numbers, a while loop each",
         lambda: (np.linspace(-3.0, 3.0, 2000),)),
    )  # fmt: skip
    for name, title, arguments in loops:
        yield Workload(
            f"{name}_gradient", f"{title}: gradient", f"{name}_gradient", arguments,
            goals=() if name == "fixed_points" else (Goal("jax"),), rtol=1e-6, atol=1e-8,
        )  # fmt: skip


def recursive_programs() -> Iterator[Workload]:
    """Recursive functions that write arrays."""
    programs: tuple[tuple[str, str, Callable[[], Arguments]], ...] = (
        ("flood", "regions of a grid of 60 x 60, filled by recursion", partial(inputs.walls, 60)),
        ("quicksort", "quicksort of 5,000 numbers in place",
         lambda: (np.random.default_rng(20).random(5000),)),
        ("queens", "eight queens by backtracking", lambda: (8,)),
        ("forest", "parts of a graph of 4,000 edges, paths shortened by recursion",
         partial(inputs.edges, 4000, 3000)),
    )  # fmt: skip
    for name, title, arguments in programs:
        yield Workload(name, title, name, arguments, goals=(Goal("numba"),))


def sizes_of_arrays() -> Iterator[Workload]:
    """One elementwise program on arrays of many sizes, from those in the first cache to memory."""
    for dtype, rtol in ((np.float32, 1e-4), (np.float64, 1e-9)):
        name = np.dtype(dtype).name
        for size in SWEEP:
            yield Workload(
                f"{SWEPT}{name}_{size}", f"tanh(x*w+b)*exp(-x*x), {size:,} {name}", "elementwise",
                partial(inputs.elementwise, size, dtype), rtol=rtol,
            )  # fmt: skip


SWEPT = "elementwise_"
SWEEP = (1_000, 10_000, 100_000, 1_000_000, 16_000_000)
WORKLOADS: tuple[Workload, ...] = (
    Workload(
        "elementwise",
        "tanh(x*w+b)*exp(-x*x), 4M float32",
        "elementwise",
        partial(inputs.elementwise, 4_000_000),
        goals=(Goal("jax"), Goal("torch.compile")),
    ),
    *(
        Workload(
            f"lstm_forward_{size}",
            f"LSTM, 64 steps, {size} units, batch 1",
            "lstm_forward",
            partial(inputs.lstm, size),
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
            partial(inputs.lstm, size),
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
            partial(inputs.square_matrices, size),
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
        inputs.mlp,
        rtol=1e-3,
        atol=1e-4,
    ),
    *(
        Workload(
            name, f"{title} of 4096 rows of 512", name, partial(inputs.matrix, 4096, 512)
        )
        for name, title in (("softmax", "softmax"), ("layer_norm", "layer norm"))
    ),
    Workload(
        "call",
        "call with 4 arrays of 16",
        "call",
        inputs.small_arrays,
        most_seconds=1e-6,
    ),
    Workload(
        "call_dict",
        "call with a dict of 10 arrays of 16",
        "call_dict",
        inputs.small_dict,
        most_seconds=3e-6,
    ),
    *(
        Workload(
            f"stores_{count}",
            f"{count:,} stores x[i] = a * x[i-1] + v[i]",
            "stores",
            partial(inputs.recurrence, count),
        )
        for count in (1_000, 10_000, 100_000, 1_000_000)
    ),
    *(
        Workload(
            f"stores_gradient_{count}",
            f"gradient through {count:,} stores",
            "stores_gradient",
            partial(inputs.recurrence, count),
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
    *recursive_programs(),
    Workload("nest", "five loops that write and swap, 6 rounds each", "nest", inputs.nested),
    *sizes_of_arrays(),
    *products(),
    *network_programs(),
    *tree_programs(),
    *array_programs(),
    *gradients_of_loops(),
)

BY_NAME = {workload.name: workload for workload in WORKLOADS}
