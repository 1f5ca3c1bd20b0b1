"""Layers and losses chosen by name, by class or by data, and how users train them."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

import numpy as np

from tests.users.corpus import use

_RANDOM = np.random.default_rng(12)


def normal(*shape, dtype=np.float64):
    return (0.3 * _RANDOM.standard_normal(shape)).astype(dtype)


def built(spec, pool):
    layers = []
    for each in spec:
        match each:
            case ("dense", n, m):
                layers.append(("dense", pool[:n, :m]))
            case ("act", name):
                layers.append(("act", name))
            case {"norm": eps}:
                layers.append(("norm", eps))
            case _:
                raise ValueError(f"unknown layer {each!r}")
    return layers


_SPEC = [("dense", 3, 4), ("act", "tanh"), {"norm": 1e-5}, ("dense", 4, 2)]


@use((_SPEC, normal(5, 5), normal(2, 3)), ([("conv", 3)], normal(5, 5), normal(2, 3)),
     ([("act", "gelu")], normal(5, 5), normal(2, 3)), wrt=(1, 2))
def layers_of_a_specification(spec, pool, x):
    for kind, of in built(spec, pool):
        match kind, of:
            case "dense", w:
                x = x @ w
            case "act", "relu":
                x = np.maximum(x, 0)
            case "act", "tanh":
                x = np.tanh(x)
            case "norm", eps:
                x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
            case "act", other:
                raise KeyError(other)
    return x


@dataclass
class Adapted:
    w: np.ndarray
    down: np.ndarray
    up: np.ndarray
    alpha: float = 8.0

    @property
    def scale(self):
        return self.alpha / self.down.shape[1]

    def __rmatmul__(self, x):
        return x @ self.w + (x @ self.down) @ self.up * self.scale

    def merged(self):
        return self.w + self.down @ self.up * self.scale


@use(({"h1": Adapted(normal(3, 4), normal(3, 2), normal(2, 4)),
       "out": Adapted(normal(4, 2), normal(4, 1), normal(1, 2), 4.0)}, normal(2, 3)), wrt=(0, 1))
def adapted_layers(layers, x):
    for name, layer in layers.items():
        x = np.tanh(layer.__rmatmul__(x)) if name.startswith("h") else x @ layer.merged()
    return x


class Act(enum.Enum):
    RELU = "relu"
    TANH = "tanh"
    SOFTPLUS = "softplus"


TABLE = {
    Act.RELU: lambda x: np.maximum(x, 0), Act.TANH: np.tanh,
    Act.SOFTPLUS: lambda x: np.logaddexp(x, 0),
}


@use((normal(5), [Act.RELU, Act.TANH]), (normal(5), [Act("softplus")]), wrt=(0,))
def activations_of_a_table(x, kinds):
    return sum(TABLE[kind](x).sum() for kind in kinds)


@use((normal(6, 4), normal(4, 3), [(normal(4, 5), normal(5, 4)) for _ in range(3)]),
     wrt=(0, 1, 2), slow=True)
def experts_for_each_row(x, gate, experts, k=2):
    logits = x @ gate
    top = np.argsort(-logits, axis=1)[:, :k]
    w = np.take_along_axis(logits, top, axis=1)
    w = np.exp(w - w.max(1, keepdims=True))
    w /= w.sum(1, keepdims=True)
    y, load = np.zeros_like(x), np.zeros(len(experts), int)
    for e, (w1, w2) in enumerate(experts):
        rows, slot = np.nonzero(top == e)
        load[e] = len(rows)
        if len(rows) > 0:
            y[rows] += w[rows, slot][:, None] * (np.maximum(x[rows] @ w1, 0) @ w2)
    return y, load


@use((normal(6, 3), [0, 0, 1, 1, 2, 0]), (normal(3, 3), [0, 1, 2]), wrt=(0,), slow=True)
def hardest_triplets(points, labels, margin=0.2):
    d = np.sqrt(np.maximum(((points[:, None] - points[None]) ** 2).sum(-1), 1e-12))
    loss, count = 0.0, 0
    for i, mine in enumerate(labels):
        alike = [d[i, j] for j, other in enumerate(labels) if other == mine and j != i]
        others = [d[i, j] for j, other in enumerate(labels) if other != mine]
        if not alike or not others:
            continue
        if (value := max(alike) - min(others) + margin) > 0:
            loss += value
            count += 1
    return loss / count if count else 0.0


@use(({"w1": normal(1, 5), "b1": normal(5), "w2": normal(5, 6)}, normal(7), normal(7), 2),
     wrt=(0, 1, 2), slow=True)
def mixture_of_densities(p, x, y, count):
    out = np.tanh(x[:, None] @ p["w1"] + p["b1"]) @ p["w2"]
    logits, mean, log_scale = (out[:, i * count:(i + 1) * count] for i in range(3))
    log_part = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    z = (y[:, None] - mean) * np.exp(-log_scale)
    log_density = log_part - 0.5 * z**2 - log_scale - 0.5 * math.log(2 * math.pi)
    return -np.logaddexp.reduce(log_density, axis=1).mean()


def coupled(layers, x):
    change = np.zeros(len(x))
    for i, (w1, scales, shifts) in enumerate(layers):
        a, b = (x[:, :2], x[:, 2:]) if i % 2 == 0 else (x[:, 2:], x[:, :2])
        h = np.tanh(a @ w1)
        s = np.tanh(h @ scales)
        b = b * np.exp(s) + h @ shifts
        change += s.sum(axis=1)
        x = np.hstack((a, b) if i % 2 == 0 else (b, a))
    return x, change


@use(([(normal(2, 3), normal(3, 2), normal(3, 2)) for _ in range(3)], normal(4, 4)),
     wrt=(0, 1), slow=True)
def flow_of_coupled_halves(layers, x):
    z, change = coupled(layers, x)
    return -np.mean(change - 0.5 * np.sum(z * z + np.log(2 * np.pi), axis=1)), z


def batches(n, size):
    i = 0
    while (rest := n - i) > 0:
        yield slice(i, i + min(size, rest))
        i += size


@use((normal(3), normal(7, 3), normal(7), 2, 3), wrt=(0, 1, 2))
def descent_in_batches(w, x, y, epochs, size, lr=0.1, *, decay=0.5):
    history = []
    for epoch in range(epochs):
        total = 0.0
        for step, part in enumerate(batches(len(x), size)):
            error = x[part] @ w - y[part]
            total += float(error @ error)
            w = w - lr * decay**epoch * 2 * x[part].T @ error / len(error)
        history.append(total / (step + 1))
    return w, history
