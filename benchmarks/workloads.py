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

from benchmarks.programs.image_networks import MOBILE
from benchmarks.programs.trees import random_tree

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


def small_dict() -> Any:
    rng = np.random.default_rng(5)
    return ({f"w{k}": normal(rng, 16) for k in range(10)},)


def nested() -> Arguments:
    rng = np.random.default_rng(17)
    return rng.random(8), rng.random(8), 6


def recurrence(count: int) -> Arguments:
    return normal(np.random.default_rng(6), count).astype(np.float64), 0.9


def recurrent(size: int, batch: int, gates: int, states: int, steps: int = 64) -> Arguments:
    """xs (steps, batch, size), states (batch, size), W and U (size, gates * size), biases."""
    rng = np.random.default_rng(8)
    scale = size**-0.5
    return (
        normal(rng, steps, batch, size),
        *(normal(rng, batch, size) for _ in range(states)),
        normal(rng, size, gates * size, scale=scale),
        normal(rng, size, gates * size, scale=scale),
        *(normal(rng, gates * size, scale=0.1) for _ in range(2 if gates == 3 else 1)),
    )


def image(channels: int, extent: int, outputs: int, taps: int, share: int = 1) -> Arguments:
    """x (1, channels, extent, extent), w (outputs, channels / share, taps, taps)."""
    rng = np.random.default_rng(9)
    own = channels // share
    weights = normal(rng, outputs, own, taps, taps, scale=(own * taps * taps) ** -0.5)
    return normal(rng, 1, channels, extent, extent), weights


def residual(batch: int, channels: int, extent: int) -> Arguments:
    rng = np.random.default_rng(10)
    scale = (9 * channels) ** -0.5
    weights = (normal(rng, channels, channels, 3, 3, scale=scale) for _ in range(2))
    first, second = ((w, normal(rng, channels, scale=0.1)) for w in weights)
    return normal(rng, batch, channels, extent, extent), *first, *second


def of_layers(
    rng: np.random.Generator, batch: int, image: tuple[int, ...], shapes: list[tuple[int, ...]]
) -> Arguments:
    """An image, then weights of these shapes, each with its bias."""
    found = [normal(rng, batch, *image)]
    for shape in shapes:
        terms = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
        # Uniform numbers of this variance: VGG-16 has 138 million of them.
        spread = np.float32((24 / terms) ** 0.5)
        found.append((rng.random(shape, dtype=np.float32) - np.float32(0.5)) * spread)
        found.append(normal(rng, shape[1] if len(shape) == 2 else shape[0], scale=0.1))
    return tuple(found)


def resnet18(batch: int, extent: int = 224) -> Arguments:
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7)]
    own = 64
    for stage, wide in enumerate((64, 128, 256, 512)):
        shapes += [(wide, own, 3, 3), (wide, wide, 3, 3)]
        shapes += [(wide, own, 1, 1)] if stage else []
        shapes += [(wide, wide, 3, 3)] * 2
        own = wide
    return of_layers(np.random.default_rng(18), batch, (3, extent, extent), [*shapes, (512, 1000)])


def vgg16(batch: int, extent: int = 224) -> Arguments:
    shapes: list[tuple[int, ...]] = []
    own = 3
    for wide, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        shapes += [(wide, own if k == 0 else wide, 3, 3) for k in range(count)]
        own = wide
    shapes += [(512 * (extent // 32) ** 2, 4096), (4096, 4096), (4096, 1000)]
    return of_layers(np.random.default_rng(19), batch, (3, extent, extent), shapes)


def mobilenet(batch: int, extent: int = 224) -> Arguments:
    shapes: list[tuple[int, ...]] = [(32, 3, 3, 3)]
    own = 32
    for expansion, outputs, count, _ in MOBILE:
        for _ in range(count):
            wide = expansion * own
            shapes += [(wide, own, 1, 1)] if expansion > 1 else []
            shapes += [(wide, 1, 3, 3), (outputs, wide, 1, 1)]
            own = outputs
    shapes += [(1280, own, 1, 1), (1280, 1000)]
    return of_layers(np.random.default_rng(20), batch, (3, extent, extent), shapes)


def dqn(batch: int) -> Arguments:
    shapes: list[tuple[int, ...]] = [
        (32, 4, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3), (3136, 512), (512, 18)
    ]  # fmt: skip
    return of_layers(np.random.default_rng(21), batch, (4, 84, 84), shapes)


def letters(size: int, kinds: int = 64, most: int = 200) -> Arguments:
    rng = np.random.default_rng(11)
    scale = size**-0.5
    return (
        normal(rng, kinds, size), normal(rng, size), normal(rng, size, size, scale=scale),
        normal(rng, size, size, scale=1.2 * scale), normal(rng, size, kinds, scale=scale),
        kinds + 1, most,
    )  # fmt: skip


def block(length: int = 128, width: int = 256, heads: int = 8) -> Arguments:
    rng = np.random.default_rng(12)
    scale = width**-0.5
    square = [normal(rng, width, width, scale=scale) for _ in range(4)]
    wide = normal(rng, width, 4 * width, scale=scale), normal(rng, 4 * width, width, scale=scale)
    return normal(rng, length, width), *square, *wide, heads


def block_last(*args: int) -> Arguments:
    x, *weights, heads = block(*args)
    return *weights, x, heads


def heads_of(heads: int, length: int, width: int) -> Arguments:
    rng = np.random.default_rng(13)
    return tuple(normal(rng, heads, length, width) for _ in range(3))


def digits(batch: int = 64) -> Arguments:
    rng = np.random.default_rng(14)
    return (
        normal(rng, 16, 1, 3, 3, scale=0.3), normal(rng, 32, 16, 3, 3, scale=0.1),
        normal(rng, 32 * 49, 10, scale=0.03), normal(rng, batch, 1, 28, 28),
        np.eye(10, dtype=np.float32)[rng.integers(0, 10, batch)],
    )  # fmt: skip


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
    rows = partial(matrix, 4096, 512)
    yield Workload(
        "gelu_chain", "gelu of a sum, 4096 x 512", "gelu_chain",
        lambda: (*rows(), normal(np.random.default_rng(16), 512)), goals=both,
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
            f"{program}_{sizes[0]}", title, program, partial(image, *sizes), goals=peers,
            rtol=1e-3, atol=1e-3,
        )  # fmt: skip
    for batch in (1, 8):
        yield Workload(
            f"residual_{batch}", f"residual block of 64 channels, 56, batch {batch}",
            "residual_block", partial(residual, batch, 64, 56), goals=peers, **loose,
        )  # fmt: skip
    networks: tuple[tuple[str, str, Callable[..., Arguments]], ...] = (
        ("resnet18", "ResNet-18, 224 x 224", resnet18), ("vgg16", "VGG-16, 224 x 224", vgg16),
        ("mobilenet", "MobileNetV2, 224 x 224", mobilenet), ("dqn", "DQN, 84 x 84", dqn),
    )  # fmt: skip
    for name, title, arguments in networks:
        for batch in (1, 8):
            yield Workload(
                f"{name}_{batch}", f"{title}, batch {batch}", name, partial(arguments, batch),
                goals=peers, left_out=frozenset(() if name == "dqn" else {"numpy"}), **loose,
            )  # fmt: skip
    for name, gates, states in (("rnn", 1, 1), ("gru", 3, 1), ("lstm_batch", 4, 2)):
        goals = Goal("jax", 1 / 2), Goal("torch", 1 / 1.2)
        for size, batch in ((64, 16), (256, 16)):
            args = partial(recurrent, size, batch, gates, states)
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
            partial(letters, size), goals=(Goal("jax", 1 / 2), Goal("torch", 1 / 5)),
        )  # fmt: skip
    yield Workload(
        "attention", "attention, 8 heads, length 512, width 64", "attention",
        partial(heads_of, 8, 512, 64), goals=(*both, Goal("torch")), **loose,
    )  # fmt: skip
    yield Workload(
        "transformer", "transformer block, 128 x 256", "transformer", block, goals=both, **loose
    )
    yield Workload(
        "transformer_gradient", "transformer block, 128 x 256: gradient", "transformer_gradient",
        block_last, goals=both, rtol=5e-2, atol=5e-1,
    )  # fmt: skip
    yield Workload(
        "cnn_gradient", "small convolution net, 28 x 28, batch 64: gradient", "cnn_gradient",
        digits, goals=(Goal("jax", 1 / 1.5), Goal("torch.compile", 1 / 1.5)), **loose,
    )  # fmt: skip


def parsed(count: int, size: int, words: int = 1000) -> Arguments:
    """words (words, size), U and V (size, 5 * size), b (5 * size,), and as many random trees."""
    rng = np.random.default_rng(21)
    scale = size**-0.5
    matrices = [normal(rng, size, 5 * size, scale=scale) for _ in range(2)]
    trees = [random_tree(rng, int(rng.integers(10, 51)), words) for _ in range(count)]
    return normal(rng, words, size), *matrices, normal(rng, 5 * size), trees


def large_tree(leaves: int, *rest: float) -> Arguments:
    """One random tree, and numbers."""
    return random_tree(np.random.default_rng(22), leaves, 1000), *rest


def tree_programs() -> Iterator[Workload]:
    """Recursion over trees."""
    args = partial(parsed, 500, 128)
    title = "Tree-LSTM, 500 random parse trees, 128 units"
    goals = (Goal("torch", 1 / 10),)
    yield Workload("tree_lstm", title, "tree_lstm", args, goals=goals, rtol=1e-3)
    yield Workload(
        "tree_lstm_gradient", f"{title}: gradient", "tree_lstm_gradient", args, goals=goals,
        rtol=1e-2, atol=1e-2,
    )  # fmt: skip
    yield Workload(
        "tree_sum", "sum of a tree of 10,000 leaves", "tree_sum", partial(large_tree, 10_000),
        goals=(Goal("numpy"),),
    )  # fmt: skip
    yield Workload(
        "expression", "expression of 1,000 leaves at 100 points", "expression",
        partial(large_tree, 1_000, 0.5, 100), goals=(Goal("numpy", 1 / 10),),
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
        most_seconds=1e-6,
    ),
    Workload(
        "call_dict",
        "call with a dict of 10 arrays of 16",
        "call_dict",
        small_dict,
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
    Workload("nest", "five loops that write and swap, 6 rounds each", "nest", nested),
    *products(),
    *network_programs(),
    *tree_programs(),
    *array_programs(),
)

BY_NAME = {workload.name: workload for workload in WORKLOADS}
