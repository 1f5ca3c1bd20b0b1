"""Neural networks in plain Python and NumPy: convolutions, recurrences, attention, training steps.

In: float32 arrays. Out: arrays. Images are [batch, channels, rows, columns].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs import trees
from pyrelay import nn


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def gelu_chain(x, b):
    y = x + b
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


def variance(x):
    return np.var(x, axis=1)


def logsumexp(x):
    top = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=1)) + top[:, 0]


def conv3(x, w):
    return nn.conv(x, w, padding=1)


def conv_stem(x, w):
    return nn.conv(x, w, stride=2, padding=3)


def conv1(x, w):
    return nn.conv(x, w)


def conv_depthwise(x, w):
    return nn.conv(x, w, padding=1, groups=x.shape[1])


def residual_block(x, w1, b1, w2, b2):
    """Two convolutions with folded normalisations, as in ResNet-18."""
    y = np.maximum(nn.conv(x, w1, b1, padding=1), 0.0)
    return np.maximum(nn.conv(y, w2, b2, padding=1) + x, 0.0)


def rnn(xs, h, W, U, b):  # noqa: N803 -- matrices are capitals in the literature
    for t in range(xs.shape[0]):
        h = np.tanh(xs[t] @ W + h @ U + b)
    return h


def gru(xs, h, W, U, b, c):  # noqa: N803
    """Gates in PyTorch's order: reset, update, new; `c` is the hidden side's bias."""
    n = h.shape[1]
    for t in range(xs.shape[0]):
        x = xs[t] @ W + b
        z = h @ U + c
        r = sigmoid(x[:, :n] + z[:, :n])
        u = sigmoid(x[:, n : 2 * n] + z[:, n : 2 * n])
        new = np.tanh(x[:, 2 * n :] + r * z[:, 2 * n :])
        h = (1.0 - u) * new + u * h
    return h


def lstm_batch(xs, h, c, W, U, b):  # noqa: N803
    n = h.shape[1]
    for t in range(xs.shape[0]):
        z = xs[t] @ W + h @ U + b
        i = sigmoid(z[:, :n])
        f = sigmoid(z[:, n : 2 * n])
        g = np.tanh(z[:, 2 * n : 3 * n])
        o = sigmoid(z[:, 3 * n :])
        c = f * c + i * g
        h = o * np.tanh(c)
    return h


def rnn_loss(xs, h, W, U, b):  # noqa: N803
    return np.sum(rnn(xs, h, W, U, b) ** 2)


def gru_loss(xs, h, W, U, b, c):  # noqa: N803
    return np.sum(gru(xs, h, W, U, b, c) ** 2)


def lstm_batch_loss(xs, h, c, W, U, b):  # noqa: N803
    return np.sum(lstm_batch(xs, h, c, W, U, b) ** 2)


def generator(embedding, h, W, U, V, stop, most):  # noqa: N803
    """Letters chosen greedily by a recurrent network until it says stop: their numbers."""
    letters = np.zeros(most, dtype=np.int64)
    letter = 0
    count = 0
    while count < most:
        h = np.tanh(embedding[letter] @ W + h @ U)
        letter = int(np.argmax(h @ V))
        letters[count] = letter
        count += 1
        if letter == stop:
            break
    return letters


def attention(q, k, v):
    """Softmax attention per head: [heads, length, width]."""
    scores = q @ np.swapaxes(k, 1, 2) / np.sqrt(np.float32(q.shape[2]))
    e = np.exp(scores - np.max(scores, axis=2, keepdims=True))
    return (e / np.sum(e, axis=2, keepdims=True)) @ v


def normalised(x):
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + 1e-5)


def transformer(x, wq, wk, wv, wo, w1, w2, heads):
    """A block with normalisation first: x [length, width]."""
    length, width = x.shape
    y = normalised(x)

    def split(z):
        return np.swapaxes(np.reshape(z, (length, heads, width // heads)), 0, 1)

    seen = attention(split(y @ wq), split(y @ wk), split(y @ wv))
    x = x + np.reshape(np.swapaxes(seen, 0, 1), (length, width)) @ wo
    z = normalised(x) @ w1
    return x + (0.5 * z * (1.0 + np.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))) @ w2


def transformer_loss(wq, wk, wv, wo, w1, w2, x, heads):
    return np.sum(transformer(x, wq, wk, wv, wo, w1, w2, heads) ** 2)


def cnn_loss(w1, w2, w3, x, y):
    """Two strided convolutions and a dense layer: cross entropy of 28 x 28 images."""
    a = np.maximum(nn.conv(x, w1, stride=2, padding=1), 0.0)
    b = np.maximum(nn.conv(a, w2, stride=2, padding=1), 0.0)
    logits = np.reshape(b, (b.shape[0], -1)) @ w3
    top = np.max(logits, axis=1, keepdims=True)
    log_sum = top + np.log(np.sum(np.exp(logits - top), axis=1, keepdims=True))
    return np.sum(y * (log_sum - logits)) / x.shape[0]


#: Programs as they are, and losses with the places of the arguments they are differentiated in.
FORWARD: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        gelu_chain, variance, logsumexp, conv3, conv_stem, conv1, conv_depthwise, residual_block,
        rnn, gru, lstm_batch, generator, attention, transformer,
    )
}
GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "rnn_gradient": (rnn_loss, (2, 3, 4)),
    "gru_gradient": (gru_loss, (2, 3, 4, 5)),
    "lstm_batch_gradient": (lstm_batch_loss, (3, 4, 5)),
    "transformer_gradient": (transformer_loss, (0, 1, 2, 3, 4, 5)),
    "cnn_gradient": (cnn_loss, (0, 1, 2)),
    "tree_lstm_gradient": (trees.tree_lstm, (0, 1, 2, 3)),
}
