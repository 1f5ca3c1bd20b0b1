"""Handwritten digits: a perceptron and a recurrent network that reads the image row by row.

Data: the 1,797 images of 8 x 8 pixels that scikit-learn ships. A third is held out. The training
step (loss, its gradient, the Adam update) is one compiled function.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from tqdm import tqdm

import pyrelay
from examples.adam import Tree, adam, zeros_like

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Digits:
    """Images (count, 8, 8) with pixels in 0..1, labels (count,) in 0..9."""

    train_images: Array
    train_labels: NDArray[np.int64]
    test_images: Array
    test_labels: NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """How the training of one network went."""

    accuracy: float
    losses: list[float]
    first_step: float
    later_step: float


def digits(seed: int = 0) -> Digits:
    """The data, shuffled, a third of it held out."""
    data = load_digits()
    order = np.random.default_rng(seed).permutation(len(data.target))
    images = (data.images[order] / 16).astype(np.float32)
    labels = data.target[order].astype(np.int64)
    held_out = len(labels) // 3
    return Digits(images[held_out:], labels[held_out:], images[:held_out], labels[:held_out])


def cross_entropy(logits: Array, truth: Array) -> float:
    """The mean over rows of -log p(truth); `truth` is one-hot."""
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    log_total = np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
    return np.sum(truth * (log_total - shifted)) / truth.shape[0]


def perceptron(p: Tree, images: Array) -> Array:
    """Scores (batch, 10) of a network with one hidden layer."""
    x = images.reshape(images.shape[0], -1)
    return np.maximum(x @ p["w1"] + p["b1"], 0.0) @ p["w2"] + p["b2"]


def perceptron_loss(p: Tree, images: Array, truth: Array) -> float:
    return cross_entropy(perceptron(p, images), truth)


def recurrent(p: Tree, images: Array) -> Array:
    """Scores (batch, 10) after reading the rows of the images from top to bottom."""
    h = np.zeros((images.shape[0], p["u"].shape[0]), dtype=np.float32)
    for row in range(images.shape[1]):
        h = np.tanh(images[:, row] @ p["w"] + h @ p["u"] + p["b"])
    return h @ p["w2"] + p["b2"]


def recurrent_loss(p: Tree, images: Array, truth: Array) -> float:
    return cross_entropy(recurrent(p, images), truth)


@pyrelay.jit
def perceptron_step(p, mean, square, step, images, truth):
    loss, slope = pyrelay.value_and_grad(perceptron_loss)(p, images, truth)
    p, mean, square = adam(p, slope, mean, square, step, 0.003)
    return loss, p, mean, square


@pyrelay.jit
def recurrent_step(p, mean, square, step, images, truth):
    loss, slope = pyrelay.value_and_grad(recurrent_loss)(p, images, truth)
    p, mean, square = adam(p, slope, mean, square, step, 0.005)
    return loss, p, mean, square


def perceptron_start(rng: np.random.Generator, hidden: int = 256) -> Tree:
    return {
        "w1": normal(rng, 64, hidden),
        "b1": np.zeros(hidden, dtype=np.float32),
        "w2": normal(rng, hidden, 10),
        "b2": np.zeros(10, dtype=np.float32),
    }


def recurrent_start(rng: np.random.Generator, hidden: int = 96) -> Tree:
    return {
        "w": normal(rng, 8, hidden),
        "u": np.linalg.qr(rng.standard_normal((hidden, hidden)))[0].astype(np.float32),
        "b": np.zeros(hidden, dtype=np.float32),
        "w2": normal(rng, hidden, 10),
        "b2": np.zeros(10, dtype=np.float32),
    }


def normal(rng: np.random.Generator, rows: int, columns: int) -> Array:
    """A matrix of normal numbers that keeps the size of what it is multiplied with."""
    return (rng.standard_normal((rows, columns)) * rows**-0.5).astype(np.float32)


def train(
    data: Digits,
    p: Tree,
    step_function: Callable[..., tuple[float, Tree, Tree, Tree]],
    scores: Callable[[Tree, Array], Array],
    *,
    steps: int,
    batch: int = 64,
    jitter: float = 0.2,
    name: str = "",
    seed: int = 1,
) -> Outcome:
    """Train `p` for `steps` batches and report the accuracy on the images held out.

    Normal noise of size `jitter` on the pixels keeps the network from learning them by heart.
    """
    rng = np.random.default_rng(seed)
    one_hot = np.eye(10, dtype=np.float32)
    mean, square = zeros_like(p), zeros_like(p)
    losses: list[float] = []
    seconds: list[float] = []
    with tqdm(total=steps, desc=name, unit="step") as bar:
        for step in range(1, steps + 1):
            chosen = rng.integers(0, len(data.train_labels), batch)
            truth = one_hot[data.train_labels[chosen]]
            noise = rng.standard_normal((batch, 8, 8), dtype=np.float32)
            images = data.train_images[chosen] + np.float32(jitter) * noise
            start = time.perf_counter()
            loss, p, mean, square = step_function(p, mean, square, float(step), images, truth)
            seconds.append(time.perf_counter() - start)
            losses.append(float(loss))
            bar.update()
            if step % 20 == 0:
                bar.set_postfix(loss=f"{loss:.3f}")
    guesses = np.argmax(scores(p, data.test_images), axis=1)
    return Outcome(
        accuracy=float(np.mean(guesses == data.test_labels)),
        losses=losses,
        first_step=seconds[0],
        later_step=float(np.median(seconds[1:])),
    )


def train_perceptron(data: Digits, steps: int = 800) -> Outcome:
    """Train the perceptron; 800 steps take it beyond 97% on the images held out."""
    start = perceptron_start(np.random.default_rng(0))
    scores = pyrelay.jit(perceptron)
    return train(data, start, perceptron_step, scores, steps=steps, name="perceptron")


def train_recurrent(data: Digits, steps: int = 800) -> Outcome:
    """Train the network that reads row by row."""
    start = recurrent_start(np.random.default_rng(0))
    scores = pyrelay.jit(recurrent)
    return train(data, start, recurrent_step, scores, steps=steps, name="recurrent ")
