"""What workloads are given: arrays, numbers and trees, the same for every framework.

In: sizes. Out: the arguments of a program of `benchmarks.programs`, made anew from a fixed seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.programs.image_networks import MOBILE
from benchmarks.programs.trees import random_tree

Arguments = tuple[Any, ...]


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Float32 normal numbers."""
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def elementwise(size: int, dtype: Any = np.float32) -> Arguments:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(size).astype(dtype) for _ in range(3))


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


def walls(size: int) -> Arguments:
    """A grid of zeros, of which a quarter is less."""
    return (-(np.random.default_rng(18).random((size, size)) < 0.25).astype(np.int64),)


def edges(count: int, nodes: int) -> Arguments:
    """Where as many edges begin and end, and how many nodes there are."""
    rng = np.random.default_rng(19)
    return rng.integers(0, nodes, count), rng.integers(0, nodes, count), nodes


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


def series(steps: int) -> Arguments:
    """A linear state space of 4 with 2 outputs, and what it was seen to do."""
    rng = np.random.default_rng(31)
    f = np.eye(4) + 0.1 * np.eye(4, k=2)
    return f, 0.1 * np.eye(4), rng.standard_normal((steps, 2)), np.eye(2, 4), 0.5 * np.eye(2)


def table(rows: int, columns: int) -> Arguments:
    """A matrix of float64."""
    return (np.random.default_rng(32).standard_normal((rows, columns)),)


def positive(size: int) -> Arguments:
    """A symmetric positive definite matrix."""
    a = np.random.default_rng(33).standard_normal((size, size))
    return (a @ a.T + size * np.eye(size),)
