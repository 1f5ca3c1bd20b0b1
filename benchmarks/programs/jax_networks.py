"""`networks.py` in JAX: `scan` for recurrences, `while_loop` for the generator."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from benchmarks.programs import image_layers


def gelu_chain(x, b):
    return jax.nn.gelu(x + b, approximate=True)


def variance(x):
    return jnp.var(x, axis=1)


def logsumexp(x):
    return jax.nn.logsumexp(x, axis=1)


def conv(x, w, stride=1, padding=0, groups=1):
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), [(padding, padding)] * 2, feature_group_count=groups
    )


def conv3(x, w):
    return conv(x, w, padding=1)


def conv_stem(x, w):
    return conv(x, w, 2, 3)


def conv1(x, w):
    return conv(x, w)


def conv_depthwise(x, w):
    return conv(x, w, padding=1, groups=x.shape[1])


def residual_block(x, w1, b1, w2, b2):
    y = jax.nn.relu(conv(x, w1, padding=1) + b1[:, None, None])
    return jax.nn.relu(conv(y, w2, padding=1) + b2[:, None, None] + x)


class Layers:
    """What `image_layers` asks for."""

    relu = staticmethod(jax.nn.relu)
    relu6 = staticmethod(jax.nn.relu6)
    add = staticmethod(jnp.add)

    @staticmethod
    def conv(x, w, b, stride, padding, groups):
        return conv(x, w, stride, padding, groups) + b[:, None, None]

    @staticmethod
    def max_pool(x, window, stride, padding):
        around = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
        sides = (1, 1, window, window), (1, 1, stride, stride)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, *sides, around)

    @staticmethod
    def mean(x):
        return jnp.mean(x, axis=(2, 3))

    @staticmethod
    def flat(x):
        return x.reshape(x.shape[0], -1)

    @staticmethod
    def dense(x, w, b):
        return x @ w + b


def image_network(name):
    """One of the networks of `image_layers`."""

    def run(*args):
        return image_layers.NETWORKS[name](Layers, *args)

    return run


def rnn(xs, h, W, U, b):  # noqa: N803
    def step(h, x):
        return jnp.tanh(x + h @ U), None

    return jax.lax.scan(step, h, xs @ W + b)[0]


def gru(xs, h, W, U, b, c):  # noqa: N803
    n = h.shape[1]

    def step(h, x):
        z = h @ U + c
        r = jax.nn.sigmoid(x[:, :n] + z[:, :n])
        u = jax.nn.sigmoid(x[:, n : 2 * n] + z[:, n : 2 * n])
        new = jnp.tanh(x[:, 2 * n :] + r * z[:, 2 * n :])
        return (1.0 - u) * new + u * h, None

    return jax.lax.scan(step, h, xs @ W + b)[0]


def lstm_batch(xs, h, c, W, U, b):  # noqa: N803
    n = h.shape[1]

    def step(state, x):
        h, c = state
        z = x + h @ U
        i, f = jax.nn.sigmoid(z[:, :n]), jax.nn.sigmoid(z[:, n : 2 * n])
        g, o = jnp.tanh(z[:, 2 * n : 3 * n]), jax.nn.sigmoid(z[:, 3 * n :])
        c = f * c + i * g
        return (o * jnp.tanh(c), c), None

    return jax.lax.scan(step, (h, c), xs @ W + b)[0][0]


def rnn_loss(*args):
    return jnp.sum(rnn(*args) ** 2)


def gru_loss(*args):
    return jnp.sum(gru(*args) ** 2)


def lstm_batch_loss(*args):
    return jnp.sum(lstm_batch(*args) ** 2)


def generator(embedding, h, W, U, V, stop, most):  # noqa: N803
    def going(state):
        _, letter, _, count = state
        return (count < most) & ((letter != stop) | (count == 0))

    def step(state):
        h, letter, letters, count = state
        h = jnp.tanh(embedding[letter] @ W + h @ U)
        letter = jnp.argmax(h @ V)
        return h, letter, letters.at[count].set(letter), count + 1

    start = h, jnp.zeros((), int), jnp.zeros(most, int), 0
    return jax.lax.while_loop(going, step, start)[2]


def attention(q, k, v):
    return jax.nn.softmax(q @ k.swapaxes(1, 2) / q.shape[2] ** 0.5, axis=2) @ v


def normalised(x):
    centred = x - jnp.mean(x, axis=1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)


def transformer(x, wq, wk, wv, wo, w1, w2, heads):
    length, width = x.shape
    y = normalised(x)

    def split(z):
        return z.reshape(length, heads, width // heads).swapaxes(0, 1)

    seen = attention(split(y @ wq), split(y @ wk), split(y @ wv))
    x = x + seen.swapaxes(0, 1).reshape(length, width) @ wo
    return x + jax.nn.gelu(normalised(x) @ w1, approximate=True) @ w2


def transformer_loss(wq, wk, wv, wo, w1, w2, x, heads):
    return jnp.sum(transformer(x, wq, wk, wv, wo, w1, w2, heads) ** 2)


def cnn_loss(w1, w2, w3, x, y):
    a = jax.nn.relu(conv(x, w1, 2, 1))
    b = jax.nn.relu(conv(a, w2, 2, 1))
    return -jnp.sum(y * jax.nn.log_softmax(b.reshape(b.shape[0], -1) @ w3)) / x.shape[0]
