"""Recurrences and attention as people write them in NumPy: cells, filters, chains, caches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.users.corpus import use


def rand(*shape, scale=0.6):
    """Deterministic weights."""
    return np.cos(np.arange(1, np.prod(shape) + 1) * 1.7).reshape(shape) * scale


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def cell_weights(inputs, size):
    return {"W": rand(inputs + size, 4 * size), "b": rand(4 * size)}


def lstm_cell(p, x, h, c):
    z = np.concatenate([x, h], axis=-1) @ p["W"] + p["b"]
    i, f, g, o = np.split(z, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_weights(inputs, size):
    return {
        key: rand(inputs, size) if key[0] == "W" else rand(size, size) if key[0] == "U"
        else rand(size) for key in ("Wz", "Uz", "bz", "Wr", "Ur", "br", "Wh", "Uh", "bh")
    }


def gru_cell(p, x, h):
    z = sigmoid(x @ p["Wz"] + h @ p["Uz"] + p["bz"])
    r = sigmoid(x @ p["Wr"] + h @ p["Ur"] + p["br"])
    return (1 - z) * h + z * np.tanh(x @ p["Wh"] + (r * h) @ p["Uh"] + p["bh"])


@use((cell_weights(3, 2), cell_weights(3, 2), rand(4, 2, 3)), wrt=(0, 1, 2), long=True)
def both_directions(forward, backward, xs):
    steps, batch, _ = xs.shape
    size = forward["b"].shape[0] // 4
    out = np.zeros((steps, batch, 2 * size))
    h, c = np.zeros((batch, size)), np.zeros((batch, size))
    for t in range(steps):
        h, c = lstm_cell(forward, xs[t], h, c)
        out[t, :, :size] = h
    h, c = np.zeros((batch, size)), np.zeros((batch, size))
    for t in reversed(range(steps)):
        h, c = lstm_cell(backward, xs[t], h, c)
        out[t, :, size:] = h
    return out


@use(([cell_weights(3, 2), cell_weights(2, 2)], rand(4, 2, 3)), wrt=(0, 1), long=True)
def layers_with_states_in_a_list(layers, xs):
    states = [(np.zeros((xs.shape[1], 2)), np.zeros((xs.shape[1], 2))) for _ in layers]
    ys = []
    for x in xs:
        for k, p in enumerate(layers):
            h, c = lstm_cell(p, x, *states[k])
            states[k] = h, c
            x = h
        ys.append(x)
    return np.array(ys)


@use((rand(4, 3), rand(4, 3), {"in": gru_weights(3, 2), "out": gru_weights(5, 2),
                               "to": rand(2, 3)}, 3), wrt=(0, 2), long=True)  # fmt: skip
def translation_with_attention(source, target, p, steps):
    h = np.zeros(2)
    seen = []
    for x in source:
        h = gru_cell(p["in"], x, h)
        seen.append(h)
    seen = np.stack(seen)
    out, y = [], target[0]
    for t in range(steps):
        context = softmax(seen @ h) @ seen
        h = gru_cell(p["out"], np.concatenate((y, context)), h)
        out.append(h @ p["to"])
        y = target[t + 1]
    return np.array(out)


class State(NamedTuple):
    mean: np.ndarray
    spread: np.ndarray


@use((rand(5, 2), rand(3, 3), rand(2, 3), np.eye(3) * 0.1, np.eye(2) * 0.2,
      State(np.zeros(3), np.eye(3))), wrt=(0, 1, 2, 3, 4), long=True)  # fmt: skip
def kalman(zs, step, seen, noise, blur, state):
    total = 0.0
    for z in zs:
        x, P = step @ state.mean, step @ state.spread @ step.T + noise
        y, S = z - seen @ x, seen @ P @ seen.T + blur
        gain = P @ seen.T @ np.linalg.inv(S)
        state = state._replace(mean=x + gain @ y, spread=(np.eye(3) - gain @ seen) @ P)
        total -= 0.5 * (y @ np.linalg.solve(S, y) + np.log(np.linalg.det(S)))
    return total


@use((np.array([0, 1, 2, 1, 0]), rand(3, 3), rand(3, 3), rand(3)), wrt=(1, 2, 3), long=True)
def hidden_chain(seen, a, b, start):
    A, B, p = softmax(a), softmax(b), softmax(start)
    alpha = np.zeros((len(seen), 3))
    scale = np.zeros(len(seen))
    alpha[0] = p * B[:, seen[0]]
    for t in range(len(seen)):
        if t > 0:
            alpha[t] = (alpha[t - 1] @ A) * B[:, seen[t]]
        scale[t] = 1 / alpha[t].sum()
        alpha[t] *= scale[t]
    beta = np.zeros_like(alpha)
    beta[-1] = scale[-1]
    for t in range(len(seen) - 2, -1, -1):
        beta[t] = A @ (B[:, seen[t + 1]] * beta[t + 1]) * scale[t]
    return -np.sum(np.log(scale)), alpha * beta / scale[:, None]


@use((rand(5, 4), rand(4, 4), rand(4, 4), rand(4, 4)), wrt=(0, 1, 2, 3), slow=True)
def cached_keys(xs, wq, wk, wv):
    n = len(xs)
    keys, values, out = np.zeros((n, 4)), np.zeros((n, 4)), np.zeros((n, 4))
    for t in range(n):
        q, keys[t], values[t] = xs[t] @ wq, xs[t] @ wk, xs[t] @ wv
        out[t] = softmax(keys[: t + 1] @ q / 2.0) @ values[: t + 1]
    return out


@use((rand(2, 5, 8), rand(2, 7, 8), rand(8, 8), rand(8, 8), rand(8, 8)), wrt=(0, 1, 2, 3, 4),
     slow=True)
def cross_attention_by_einsum(x, y, wq, wk, wv):
    q, k, v = (
        (a @ w).reshape(2, -1, 2, 4) for a, w in ((x, wq), (y, wk), (y, wv))
    )
    weights = softmax(np.einsum("bqhd,bkhd->bhqk", q, k) / 2.0)
    return np.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape)
