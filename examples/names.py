"""Inventing names: a recurrent network learns, letter by letter, what names of NumPy look like.

Data: the public names in `dir(numpy)` and Python's `sys.stdlib_module_names`. `invent` is one
compiled `while` loop that ends when the network says the name is over.
"""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

import pyrelay
from examples.adam import Tree, adam, zeros_like
from examples.digits import normal

LETTERS = ".abcdefghijklmnopqrstuvwxyz_0123456789"
"""The alphabet; the letter at END stands for the end of a name, and for the place before it."""

END = 0
LONGEST = 16

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Outcome:
    """How the training went: the mean -log p of a letter, step by step, and the times."""

    params: Tree
    losses: list[float]
    first_step: float
    later_step: float


def real_names() -> list[str]:
    """The names to learn from, in lower case."""
    candidates = {name.lower() for name in (*dir(np), *sys.stdlib_module_names)}
    fits = re.compile(rf"[a-z][a-z0-9_]{{2,{LONGEST - 2}}}").fullmatch
    return sorted(name for name in candidates if fits(name))


def encode(names: list[str]) -> NDArray[np.int64]:
    """Letters as numbers (count, LONGEST), each name followed by END."""
    out = np.full((len(names), LONGEST), END, dtype=np.int64)
    for row, name in enumerate(names):
        out[row, : len(name)] = [LETTERS.index(letter) for letter in name]
    return out


def start(rng: np.random.Generator, hidden: int = 128) -> Tree:
    letters = len(LETTERS)
    return {
        "w": normal(rng, letters, 2 * hidden) * np.float32(2),
        "u": normal(rng, hidden, 2 * hidden),
        "b": np.zeros(2 * hidden, dtype=np.float32),
        "w2": normal(rng, hidden, letters),
        "b2": np.zeros(letters, dtype=np.float32),
    }


def next_state(p: Tree, x: Array, h: Array) -> Array:
    """A minimal gated unit (Zhou et al., 2016, simplified): keep part of h, renew the rest."""
    n = h.shape[-1]
    z = x @ p["w"] + h @ p["u"] + p["b"]
    keep = 1.0 / (1.0 + np.exp(-z[..., :n]))
    return keep * h + (1.0 - keep) * np.tanh(z[..., n:])


def loss(p: Tree, before: Array, after: Array) -> np.floating:
    """The mean -log p of the letters `after`, given those `before`: (steps, batch, letters).

    Both are one-hot; rows of zeros in `after` lie behind the end of a name and count nothing.
    """
    h = np.zeros((before.shape[1], p["u"].shape[0]), dtype=np.float32)
    total = 0.0
    for t in range(before.shape[0]):
        h = next_state(p, before[t], h)
        scores = h @ p["w2"] + p["b2"]
        shifted = scores - np.max(scores, axis=1, keepdims=True)
        log_sum = np.log(np.sum(np.exp(shifted), axis=1, keepdims=True))
        total = total + np.sum(after[t] * (log_sum - shifted))
    return total / np.sum(after)


@pyrelay.jit
def train_step(p, mean, square, step, before, after):
    value, slope = pyrelay.value_and_grad(loss)(p, before, after)
    p, mean, square = adam(p, slope, mean, square, step, 0.004)
    return value, p, mean, square


@pyrelay.jit
def invent(p, chance):
    """One name as letter numbers (LONGEST,), and its length; `chance` is uniform in 0..1."""
    name = np.zeros(chance.shape[0], dtype=np.int64)
    h = np.zeros(p["u"].shape[0], dtype=np.float32)
    letter = END
    length = 0
    over = False
    while not over:
        x = np.zeros(p["w"].shape[0], dtype=np.float32)
        x[letter] = 1.0
        h = next_state(p, x, h)
        scores = (h @ p["w2"] + p["b2"]) * 1.4
        weights = np.exp(scores - np.max(scores))
        left = chance[length] * np.sum(weights)
        letter = 0
        while letter < weights.shape[0] - 1 and left >= weights[letter]:
            left = left - weights[letter]
            letter += 1
        if letter == END:
            over = True
        else:
            name[length] = letter
            length += 1
            over = length == chance.shape[0]
    return name, length


def batch(rng: np.random.Generator, letters: NDArray[np.int64], size: int) -> tuple[Array, Array]:
    """The letters before and after each place of `size` random names, one-hot, steps first."""
    chosen = letters[rng.integers(0, len(letters), size)].T
    one_hot = np.eye(len(LETTERS), dtype=np.float32)
    before = np.concatenate([np.full((1, size), END), chosen[:-1]])
    counts = np.cumsum(chosen == END, axis=0) <= 1
    return one_hot[before], one_hot[chosen] * counts[..., None].astype(np.float32)


def train(steps: int = 500, size: int = 64, seed: int = 0) -> Outcome:
    """Learn the real names from `steps` batches of `size` names."""
    rng = np.random.default_rng(seed)
    letters = encode(real_names())
    p = start(rng)
    mean, square = zeros_like(p), zeros_like(p)
    losses: list[float] = []
    seconds: list[float] = []
    for step in tqdm(range(1, steps + 1), desc="names     ", unit="step"):
        before, after = batch(rng, letters, size)
        begin = time.perf_counter()
        value, p, mean, square = train_step(p, mean, square, float(step), before, after)
        seconds.append(time.perf_counter() - begin)
        losses.append(float(value))
    return Outcome(p, losses, seconds[0], float(np.median(seconds[1:])))


def invented_names(p: Tree, count: int, seed: int = 0) -> list[str]:
    """`count` different names of three letters or more that are not among the real ones."""
    rng = np.random.default_rng(seed)
    known = set(real_names())
    out: list[str] = []
    while len(out) < count:
        name, length = invent(p, rng.random(LONGEST))
        word = "".join(LETTERS[int(letter)] for letter in name[: int(length)])
        if len(word) > 2 and word not in known:
            known.add(word)
            out.append(word)
    return out
