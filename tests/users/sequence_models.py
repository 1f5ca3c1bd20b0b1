"""Models of sequences as users write them: state spaces, attention in blocks, recurrences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests.users.corpus import use

_RANDOM = np.random.default_rng(11)


def normal(*shape, dtype=np.float64):
    return (0.3 * _RANDOM.standard_normal(shape)).astype(dtype)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def normalised(x, scale, shift, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * scale + shift


def vision_parameters(patch=2, channels=3, width=8, depth=2, patches=4):
    def layer():
        square = {name: normal(width, width) for name in ("wq", "wk", "wv", "wo")}
        norms = {"g1": np.ones(width), "b1": np.zeros(width)}
        return {**square, **norms, "w1": normal(width, 6), "w2": normal(6, width)}

    return {
        "embed": normal(patch * patch * channels, width), "first": normal(width),
        "places": normal(patches + 1, width), "layers": [layer() for _ in range(depth)],
    }


@use((vision_parameters(), normal(4, 4, 3), 2, 2), wrt=(0, 1), slow=True)
def patches_of_an_image_attend(p, image, patch, heads):
    h, w, c = image.shape
    x = image.reshape(h // patch, patch, w // patch, patch, c).transpose(0, 2, 1, 3, 4)
    x = x.reshape(-1, patch * patch * c) @ p["embed"]
    x = np.concatenate([p["first"][None], x], axis=0) + p["places"]
    for layer in p["layers"]:  # one kernel of attention, with a scale of its own in each
        y = normalised(x, layer["g1"], layer["b1"])
        q, k, v = [
            (y @ layer[n]).reshape(len(x), heads, -1).swapaxes(0, 1) for n in ("wq", "wk", "wv")
        ]
        a = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]).astype(x.dtype))
        x = x + (a @ v).swapaxes(0, 1).reshape(len(x), -1) @ layer["wo"]
        x = x + np.maximum(x @ layer["w1"], 0) @ layer["w2"]
    return x[0]


@use((normal(4, 3), normal(7, 3), normal(7, 2), 3), (normal(1, 3), normal(2, 3), normal(2, 2), 5),
     wrt=(0, 1, 2))
def attention_by_blocks(q, k, v, block):
    n, d = q.shape
    out, most, total = np.zeros((n, v.shape[1])), np.full(n, -np.inf), np.zeros(n)
    for start in range(0, len(k), block):
        keys, values = k[start:start + block], v[start:start + block]
        s = q @ keys.T / math.sqrt(d)
        larger = np.maximum(most, s.max(axis=1))
        p = np.exp(s - larger[:, None])
        scale = np.exp(most - larger)
        total = total * scale + p.sum(axis=1)
        out = out * scale[:, None] + p @ values
        most = larger
    return out / total[:, None]


@use((normal(5, 2, 4),), wrt=(0,))
def turned_by_their_places(x, base=10000.0):
    angles = np.outer(np.arange(len(x)), 1.0 / base ** (np.arange(0, x.shape[-1], 2) / x.shape[-1]))
    c, s = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    a, b = x[..., 0::2], x[..., 1::2]
    out = np.empty_like(x)
    out[..., 0::2] = a * c - b * s
    out[..., 1::2] = a * s + b * c
    return out


@use((normal(6, 4), -np.abs(normal(4, 3)), normal(4, 3), normal(4, 3), normal(4, 4), normal(4)),
     wrt=(0, 1, 2, 3, 4, 5))
def selective_state_space(u, decay, into, out_of, steps, direct):
    h = np.zeros((u.shape[1], decay.shape[1]))
    outputs = []
    for x in u:
        dt = np.log1p(np.exp(x @ steps))
        h = np.exp(dt[:, None] * decay) * h + (dt * x)[:, None] * (x @ into)[None, :]
        outputs.append(h @ (x @ out_of) + direct * x)
    return np.stack(outputs), h


@dataclass
class Mixed:
    x: np.ndarray
    top: np.ndarray
    bottom: np.ndarray
    largest: np.ndarray


def weighted(k, v, state, p):
    here = p["first"] + k
    most = np.maximum(state.largest, here)
    old, new = np.exp(state.largest - most), np.exp(here - most)
    value = (old * state.top + new * v) / (old * state.bottom + new)
    kept = state.largest + p["decay"]
    most = np.maximum(kept, k)
    old, new = np.exp(kept - most), np.exp(k - most)
    return value, (old * state.top + new * v, old * state.bottom + new, most)


@use((normal(5, 3), {"k": normal(3, 3), "v": normal(3, 3), "mix": np.abs(normal(3)),
                     "first": normal(3), "decay": -np.abs(normal(3))}), wrt=(0, 1))
def recurrent_attention(xs, p):
    d = xs.shape[1]
    state = Mixed(np.zeros(d), np.zeros(d), np.zeros(d), np.full(d, -1e38))
    out = np.empty_like(xs)
    for t, x in enumerate(xs):
        mixed = x * p["mix"] + state.x * (1 - p["mix"])
        out[t], rest = weighted(mixed @ p["k"], mixed @ p["v"], state, p)
        state = Mixed(x, *rest)
    return out, state


class Cell(NamedTuple):
    w: np.ndarray
    u: np.ndarray
    b: np.ndarray

    def __call__(self, x, state):
        h, c = state
        i, f, g, o = np.split(x @ self.w + h @ self.u + self.b, 4)

        def gate(z):
            return 1 / (1 + np.exp(-z))

        c = gate(f) * c + gate(i) * np.tanh(g)
        h = gate(o) * np.tanh(c)
        return h, (h, c)


def cell(n, h):
    return Cell(normal(n, 4 * h), normal(h, 4 * h), normal(4 * h))


@use((cell(2, 3), cell(5, 3), normal(6, 2), normal(6, 6), [1, 2, 3], [2, 0]),
     wrt=(0, 1, 2, 3), slow=True)
def decoder_that_attends(encoder, decoder, words, out, source, target):
    zero = np.zeros(encoder.u.shape[0])
    state, memory = (zero, zero), []
    for token in source:
        h, state = encoder(words[token], state)
        memory.append(h)
    memory = np.stack(memory)
    loss, seen, last = 0.0, zero, 0
    for token in target:
        h, state = decoder(np.concatenate([words[last], seen]), state)
        seen = softmax(memory @ h) @ memory
        logits = np.concatenate((h, seen)) @ out
        loss -= logits[token] - np.log(np.exp(logits).sum())
        last = token
    return loss / len(target)


def log_sum(a, axis):
    m = np.max(a, axis=axis, keepdims=True)
    return np.squeeze(np.log(np.sum(np.exp(a - m), axis=axis, keepdims=True)) + m, axis=axis)


@use((normal(3), normal(3, 3), normal(3, 4), [0, 1, 3, 2]), wrt=(0, 1, 2))
def hidden_states(start, moves, seen, observed):
    n, k = len(observed), len(start)
    alpha, beta = np.zeros((n, k)), np.zeros((n, k))
    alpha[0] = start + seen[:, observed[0]]
    for t in range(1, n):
        alpha[t] = log_sum(alpha[t - 1][:, None] + moves, axis=0) + seen[:, observed[t]]
    for t in reversed(range(n - 1)):
        beta[t] = log_sum(moves + seen[:, observed[t + 1]] + beta[t + 1], axis=1)
    return np.exp(alpha + beta - log_sum(alpha[-1], axis=0))


@use((normal(5, 4), [1, 2, 2]), (normal(3, 4), []), wrt=(0,), slow=True)
def alignments_of_labels(logits, labels, blank=0):
    logp = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    extended = [blank]
    for c in labels:
        extended += [c, blank]
    alpha = [-np.inf] * len(extended)
    alpha[0] = logp[0, blank]
    if len(extended) > 1:
        alpha[1] = logp[0, extended[1]]

    def together(*xs):
        most = max(xs)
        if most == -np.inf:
            return most
        return most + math.log(sum(math.exp(x - most) for x in xs))

    for t in range(1, len(logits)):
        after = []
        for s, c in enumerate(extended):
            a = together(alpha[s], alpha[s - 1]) if s > 0 else alpha[s]
            if s > 1 and c not in (blank, extended[s - 2]):
                a = together(a, alpha[s - 2])
            after.append(a + logp[t, c])
        alpha = after
    return -together(alpha[-1], alpha[-2]) if len(extended) > 1 else -alpha[-1]
