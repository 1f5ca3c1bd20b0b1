"""Neural networks in plain NumPy."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.users.corpus import use


def rand(*shape, scale=0.7):
    """Deterministic weights."""
    return np.sin(np.arange(1, np.prod(shape) + 1) * 2.1).reshape(shape) * scale


def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


@use((rand(4, 6), rand(4, 6), rand(4, 6), None), (rand(2, 3), rand(4, 3), rand(4, 3), True),
     wrt=(0, 1, 2), slow=True)
def attention(q, k, v, causal=None):
    scores = q @ k.T / np.sqrt(q.shape[-1])
    if causal:
        mask = np.tril(np.ones(scores.shape, dtype=bool))
        scores = np.where(mask, scores, -1e9)
    return softmax(scores) @ v


@use((rand(2, 5, 8), {"wq": rand(8, 8), "wk": rand(8, 8), "wv": rand(8, 8), "wo": rand(8, 8)}),
     wrt=(0, 1), long=True)
def multi_head_attention(x, params, heads=2):
    B, T, D = x.shape
    hd = D // heads

    def split(w):
        return (x @ w).reshape(B, T, heads, hd).transpose(0, 2, 1, 3)

    q, k, v = (split(params[n]) for n in ("wq", "wk", "wv"))
    att = softmax(q @ k.swapaxes(-1, -2) / hd**0.5)
    y = (att @ v).transpose(0, 2, 1, 3).reshape(B, T, D)
    return y @ params["wo"]


@use((rand(3, 4), np.ones(4), np.zeros(4)), wrt=(0, 1, 2), slow=True)
def layer_norm(x, gamma, beta, eps=1e-5):
    mu = x.mean(-1, keepdims=True)
    sigma2 = x.var(axis=-1, keepdims=True)
    return gamma * (x - mu) / np.sqrt(sigma2 + eps) + beta


@use((rand(5, 3), {"mean": np.zeros(3), "var": np.ones(3)}, True),
     (rand(5, 3), {"mean": np.zeros(3), "var": np.ones(3)}, False), wrt=(0,), long=True)
def batch_norm(x, running, training):
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0)
        running["mean"] = 0.9 * running["mean"] + 0.1 * mean
        running["var"] = 0.9 * running["var"] + 0.1 * var
    else:
        mean, var = running["mean"], running["var"]
    return (x - mean) / np.sqrt(var + 1e-5)


@use((rand(6, 5), rand(3, 3), 1), (rand(6, 5), rand(2, 2), 2), wrt=(0, 1), long=True)
def conv2d_by_loops(image, kernel, stride):
    kh, kw = kernel.shape
    oh = (image.shape[0] - kh) // stride + 1
    ow = (image.shape[1] - kw) // stride + 1
    out = np.zeros((oh, ow))
    for i in range(oh):
        for j in range(ow):
            window = image[i * stride : i * stride + kh, j * stride : j * stride + kw]
            out[i, j] = np.sum(window * kernel)
    return out


@use((rand(1, 2, 5, 5), rand(3, 2, 3, 3), rand(3)), wrt=(0, 1, 2), long=True)
def conv2d_nchw(x, w, b, pad=1):
    n, c, h, wd = x.shape
    oc, _, kh, kw = w.shape
    xp = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    out = np.zeros((n, oc, h, wd))
    for i in range(kh):
        for j in range(kw):
            patch = xp[:, :, i : i + h, j : j + wd]
            out += np.einsum("nchw,oc->nohw", patch, w[:, :, i, j])
    return out + b.reshape(1, -1, 1, 1)


@use((rand(4, 6),), wrt=(0,), slow=True)
def max_pool_by_reshape(x):
    h, w = x.shape
    return x.reshape(h // 2, 2, w // 2, 2).max(axis=(1, 3))


@use((rand(4, 4), 2), wrt=(0,), long=True)
def max_pool_by_loops(x, size):
    h, w = x.shape[0] // size, x.shape[1] // size
    out = np.zeros((h, w))
    for i in range(h):
        for j in range(w):
            out[i, j] = x[i * size : (i + 1) * size, j * size : (j + 1) * size].max()
    return out


@use((rand(5, 3), rand(4, 3), rand(4, 4), np.zeros(4)), wrt=(0, 1, 2, 3), slow=True)
def simple_rnn(xs, Wx, Wh, b):
    h = np.zeros(Wh.shape[0])
    outputs = []
    for x in xs:
        h = np.tanh(Wx @ x + Wh @ h + b)
        outputs.append(h)
    return outputs[-1]


@use((rand(5, 2, 3), rand(6, 3), rand(6, 2)), wrt=(0, 1, 2), slow=True)
def rnn_hidden_states(xs, w, u):
    h = np.zeros((xs.shape[1], 6))
    states = np.zeros((len(xs), *h.shape))
    for t in range(len(xs)):
        h = np.tanh(xs[t] @ w.T + h[:, :2] @ u.T)
        states[t] = h
    return states


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@use((rand(4, 3), {"W": rand(3, 3, 3), "U": rand(3, 3, 3), "b": rand(3, 3)}), wrt=(0, 1), long=True)
def gru(xs, p):
    h = np.zeros(3)
    for x in xs:
        z = sigmoid(p["W"][0] @ x + p["U"][0] @ h + p["b"][0])
        r = sigmoid(p["W"][1] @ x + p["U"][1] @ h + p["b"][1])
        n = np.tanh(p["W"][2] @ x + p["U"][2] @ (r * h) + p["b"][2])
        h = (1 - z) * n + z * h
    return h


class LSTM:
    """A cell that keeps its state, as people first write it."""

    def __init__(self, w, u, b):
        self.w, self.u, self.b = w, u, b
        self.reset()

    def reset(self):
        """Forget everything."""
        self.h = np.zeros(self.u.shape[0])
        self.c = np.zeros(self.u.shape[0])

    def __call__(self, x):
        """One step."""
        z = x @ self.w + self.h @ self.u + self.b
        n = len(self.h)
        i, f, o = (sigmoid(z[k * n : (k + 1) * n]) for k in range(3))
        self.c = f * self.c + i * np.tanh(z[3 * n :])
        self.h = o * np.tanh(self.c)
        return self.h


@use((rand(5, 3), rand(3, 8), rand(2, 8), np.zeros(8)), wrt=(0, 1, 2, 3), long=True)
def lstm_with_object(xs, w, u, b):
    cell = LSTM(w, u, b)
    total = 0.0
    for t in range(len(xs)):
        total = total + cell(xs[t]).sum()
    return total, cell.h


@use((LSTM(rand(3, 8), rand(2, 8), np.zeros(8)), rand(4, 3)), wrt=(1,), long=True)
def lstm_object_as_argument(cell, xs):
    for x in xs:
        out = cell(x)
    return out


def init(sizes):
    return [
        {"w": rand(m, n), "b": np.zeros(n)} for m, n in zip(sizes[:-1], sizes[1:], strict=True)
    ]


@use((init([3, 5, 4, 2]), rand(6, 3)), wrt=(0, 1))
def mlp_of_dicts(params, x):
    *hidden, last = params
    for layer in hidden:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x @ last["w"] + last["b"]


@use(([(rand(2, 4), rand(4)), (rand(4, 1), rand(1))], rand(5, 2), rand(5, 1), 0.1, 4),
     wrt=(1,), long=True)
def mlp_trained_by_hand(params, x, y, lr, steps):
    (w1, b1), (w2, b2) = params
    loss = 0.0
    for _ in range(steps):
        h = np.tanh(x @ w1 + b1)
        out = h @ w2 + b2
        err = out - y
        loss = np.mean(err**2)
        dout = 2 * err / err.size
        dw2, db2 = h.T @ dout, dout.sum(axis=0)
        dh = dout @ w2.T * (1 - h**2)
        dw1, db1 = x.T @ dh, dh.sum(0)
        w1, b1, w2, b2 = w1 - lr * dw1, b1 - lr * db1, w2 - lr * dw2, b2 - lr * db2
    return loss


@dataclass
class Linear:
    """A layer with weights and an activation by name."""

    weight: Any
    bias: Any
    activation: str = "relu"

    def forward(self, x):
        """The layer's output."""
        z = x @ self.weight + self.bias
        if self.activation == "relu":
            return np.where(z > 0, z, 0.0)
        elif self.activation == "tanh":
            return np.tanh(z)
        elif self.activation == "none":
            return z
        raise ValueError(f"unknown activation {self.activation!r}")


@use(([Linear(rand(3, 4), np.zeros(4)), Linear(rand(4, 2), rand(2), "none")], rand(5, 3)),
     wrt=(0, 1), slow=True)
def sequential_of_dataclasses(layers, x):
    for layer in layers:
        x = layer.forward(x)
    return x


@use((Linear(rand(2, 2), np.zeros(2), "swish"), rand(1, 2)))
def unknown_activation(layer, x):
    return layer.forward(x)


@use(({"w": rand(3, 2), "b": np.zeros(2)}, {"w": rand(3, 2), "b": rand(2)},
      {"m": {"w": np.zeros((3, 2)), "b": np.zeros(2)},
       "v": {"w": np.zeros((3, 2)), "b": np.zeros(2)}, "t": 0}), long=True)
def adam_update(params, grads, state, lr=1e-3, b1=0.9, b2=0.999, eps=1e-8):
    state["t"] += 1
    for name in params:
        g = grads[name]
        state["m"][name] = b1 * state["m"][name] + (1 - b1) * g
        state["v"][name] = b2 * state["v"][name] + (1 - b2) * g**2
        m_hat = state["m"][name] / (1 - b1 ** state["t"])
        v_hat = state["v"][name] / (1 - b2 ** state["t"])
        params[name] -= lr * m_hat / (np.sqrt(v_hat) + eps)
    return params, state


@use(({"w": rand(3), "b": 0.5}, {"w": rand(3), "b": 0.1}, {"w": np.zeros(3), "b": 0.0}))
def sgd_with_momentum(params, grads, velocity):
    velocity = {k: 0.9 * velocity[k] - 0.01 * g for k, g in grads.items()}
    params = {k: p + velocity[k] for k, p in params.items()}
    return params, velocity


@use((rand(4, 5), rand(4, 5) > 0, 0.5), wrt=(0,))
def dropout_with_mask(x, mask, p):
    return np.where(mask, x / (1 - p), 0.0), x * mask / (1 - p)


@use((rand(6, 4), np.array([[0, 2], [5, 5]])), wrt=(0,), long=True)
def embedding_lookup(table, ids):
    return table[ids].mean(axis=1)


@use((rand(5, 3), np.array([0, 2, 1, 1, 0])), wrt=(0,), long=True)
def cross_entropy(logits, targets):
    p = softmax(logits)
    onehot = np.eye(3)[targets]
    return -np.mean(np.sum(onehot * np.log(p + 1e-12), axis=1))


@use((rand(3, 3), "gelu"), (rand(3, 3), "elu"), (rand(3, 3), "leaky"), (rand(2), "nothing"),
     wrt=(0,), slow=True)
def activations_by_name(x, kind):
    match kind:
        case "gelu":
            return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        case "elu":
            return np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
        case "leaky" | "relu":
            return np.maximum(x, (0.01 if kind == "leaky" else 0.0) * x)
        case _:
            raise ValueError(f"unknown activation: {kind}")


@use((rand(4, 6), rand(6, 4), 0.01), wrt=(0, 1), long=True)
def autoencoder_loss(x, w, l2):
    code = np.maximum(0, x @ w)
    back = code @ w.T
    return np.mean((back - x) ** 2) + l2 * (w**2).sum()


@use((rand(4, 3), rand(4, 3), 1.0), wrt=(0, 1), long=True)
def triplet_like_loss(a, b, margin):
    d = np.sqrt(np.sum((a - b) ** 2, axis=1) + 1e-12)
    similarity = np.sum(a * b, axis=1) / (
        np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    )
    return np.maximum(margin - d, 0.0).mean() + similarity.mean()


@use((rand(6), 4), wrt=(0,), long=True)
def positional_encoding(x, d_model):
    pos = np.arange(len(x))[:, None]
    i = np.arange(d_model // 2)[None, :]
    angle = pos / 10000 ** (2 * i / d_model)
    pe = np.zeros((len(x), d_model))
    pe[:, 0::2] = np.sin(angle)
    pe[:, 1::2] = np.cos(angle)
    return pe * x[:, None]


@use((rand(3, 2), rand(2), np.array([1.0, 0.0, 1.0]), 5), wrt=(0, 1), long=True)
def gradient_clipping(x, w, y, steps):
    for _ in range(steps):
        p = sigmoid(x @ w)
        g = x.T @ (p - y)
        norm = np.sqrt((g**2).sum())
        if norm > 0.5:
            g = g * (0.5 / norm)
        w = w - 0.3 * g
    return w


class _Scaled:
    def __init__(self, weights):
        self.weights, self.x, self.gradient = weights, None, None

    def forward(self, x):
        self.x = x
        return x @ self.weights

    def backward(self, dout):
        self.gradient = self.x.T @ dout
        return dout @ self.weights.T


class _Gate:
    def __init__(self):
        self.open = None

    def forward(self, x):
        self.open = x > 0
        return x * self.open

    def backward(self, dout):
        return dout * self.open


@use((np.linspace(-1, 1, 12).reshape(4, 3), [5, 2]))
def layers_by_computed_names(x, sizes):
    rng = np.random.default_rng(0)
    params, layers = {}, OrderedDict()
    inputs = [3, *sizes]
    for k in range(1, len(inputs)):
        params["W" + str(k)] = rng.normal(size=(inputs[k - 1], inputs[k]))
        layers["scaled" + str(k)] = _Scaled(params["W" + str(k)])
        layers[f"gate{k}"] = _Gate()
    for _ in range(3):
        out = x
        for layer in layers.values():
            out = layer.forward(out)
        for layer in reversed(list(layers.values())):
            out = layer.backward(out)
        for k in range(len(inputs) - 1):
            params[f"W{k + 1}"] -= 0.1 * layers["scaled" + str(k + 1)].gradient
    return params
