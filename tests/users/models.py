"""What is written around models: sampling from them, decoding, the memory of earlier steps."""

from __future__ import annotations

import numpy as np

from tests.users.corpus import use


def rand(*shape, scale=0.7):
    """Deterministic weights."""
    return np.sin(np.arange(1, np.prod(shape) + 1) * 2.1).reshape(shape) * scale


@use((rand(3, 4, 1, 1), 2.0), wrt=(0, 1))
def probabilities_of_images(y, temperature):
    z = y / temperature
    e = np.exp(z - z.max((1, 2, 3), keepdims=True))
    p = e / e.sum((1, 2, 3), keepdims=True)
    return p.transpose(0, 3, 2, 1)


@use((np.zeros((3, 1)), 2, 6, {"xh": rand(3, 4), "hh": rand(3, 3), "hy": rand(4, 3)}, 3), long=True)
def letters_of_columns(h, letter, n, p, seed):
    rng = np.random.default_rng(seed)
    x = np.zeros((4, 1))
    x[letter] = 1
    written = []
    for _ in range(n):
        h = np.tanh(np.dot(p["xh"], x) + np.dot(p["hh"], h))
        y = np.dot(p["hy"], h)
        chances = np.exp(y) / np.sum(np.exp(y))
        letter = rng.choice(range(4), p=chances.ravel())
        x = np.zeros((4, 1))
        x[letter] = 1
        written.append(letter)
    return written


@use((rand(3, 5), rand(2), np.array([0, 2, 1, 2])), wrt=(0, 1))
def joined_context(w, h, words):
    score = 0.0
    for k in words:
        h = np.tanh(h + 0.1 * k)
        score += np.sum(np.tanh(w @ np.r_[h, h * 2, 0.5]))
        if k == 1:
            break
    return score


class Layer:
    """Reads a switch while it is differentiated."""

    def __init__(self, training):
        self.training = training
        self.count = 2

    def __call__(self, x):
        if not self.training:
            return x * self.count
        return [x for _ in range(self.count)]


FIXED = Layer(False)


@use((rand(3),), wrt=(0,))
def switched_by_a_global(x):
    return np.sum(FIXED(x) ** 2)
