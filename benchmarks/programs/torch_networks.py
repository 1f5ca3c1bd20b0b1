"""`networks.py` in PyTorch: its own layers where it has them, else what people write."""

from __future__ import annotations

import torch
from torch.nn import functional

from benchmarks.programs import image_layers


def gelu_chain(x, b):
    return functional.gelu(x + b, approximate="tanh")


def variance(x):
    return torch.var(x, dim=1, correction=0)


def logsumexp(x):
    return torch.logsumexp(x, dim=1)


def conv3(x, w):
    return functional.conv2d(x, w, padding=1)


def conv_stem(x, w):
    return functional.conv2d(x, w, stride=2, padding=3)


def conv1(x, w):
    return functional.conv2d(x, w)


def conv_depthwise(x, w):
    return functional.conv2d(x, w, padding=1, groups=x.shape[1])


def residual_block(x, w1, b1, w2, b2):
    y = torch.relu(functional.conv2d(x, w1, b1, padding=1))
    return torch.relu(functional.conv2d(y, w2, b2, padding=1) + x)


def attention(q, k, v):
    return functional.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def transformer(x, wq, wk, wv, wo, w1, w2, heads):
    length, width = x.shape
    y = functional.layer_norm(x, (width,))

    def split(z):
        return z.reshape(length, heads, width // heads).transpose(0, 1)

    seen = attention(split(y @ wq), split(y @ wk), split(y @ wv))
    x = x + seen.transpose(0, 1).reshape(length, width) @ wo
    z = functional.layer_norm(x, (width,)) @ w1
    return x + functional.gelu(z, approximate="tanh") @ w2


def transformer_loss(wq, wk, wv, wo, w1, w2, x, heads):
    return (transformer(x, wq, wk, wv, wo, w1, w2, heads) ** 2).sum()


def cnn_loss(w1, w2, w3, x, y):
    a = torch.relu(functional.conv2d(x, w1, stride=2, padding=1))
    b = torch.relu(functional.conv2d(a, w2, stride=2, padding=1))
    return -(y * torch.log_softmax(b.flatten(1) @ w3, 1)).sum() / x.shape[0]


def generator(embedding, h, W, U, V, stop, most):  # noqa: N803
    letters = torch.zeros(most, dtype=torch.int64)
    letter = 0
    for count in range(most):
        h = torch.tanh(embedding[letter] @ W + h @ U)
        letter = int(torch.argmax(h @ V))
        letters[count] = letter
        if letter == stop:
            break
    return letters


class Layers:
    """What `image_layers` asks for."""

    relu = staticmethod(torch.relu)
    relu6 = staticmethod(functional.relu6)
    add = staticmethod(torch.add)
    max_pool = staticmethod(functional.max_pool2d)

    @staticmethod
    def conv(x, w, b, stride, padding, groups):
        return functional.conv2d(x, w, b, stride, padding, 1, groups)

    @staticmethod
    def mean(x):
        return x.mean((2, 3))

    @staticmethod
    def flat(x):
        return x.flatten(1)

    @staticmethod
    def dense(x, w, b):
        return torch.addmm(b, x, w)


def image_network(name):
    """One of the networks of `image_layers`."""

    def run(*args):
        return image_layers.NETWORKS[name](Layers, *args)

    return run


#: nn.RNN, nn.GRU, nn.LSTM: how many gates, and where the second bias comes from.
LAYERS = {"rnn": torch.nn.RNN, "gru": torch.nn.GRU, "lstm_batch": torch.nn.LSTM}


def layer(name, args):
    """The module with the workload's weights, its input and its state."""
    xs, h, *rest = map(torch.from_numpy, args)
    state = h[None]
    if name == "lstm_batch":
        state, rest = (h[None], rest[0][None]), rest[1:]
    W, U, b = rest[:3]  # noqa: N806
    module = LAYERS[name](xs.shape[2], h.shape[1])
    with torch.no_grad():
        module.weight_ih_l0.copy_(W.T)
        module.weight_hh_l0.copy_(U.T)
        module.bias_ih_l0.copy_(b)
        module.bias_hh_l0.copy_(rest[3] if name == "gru" else torch.zeros_like(b))
    return module, xs, state


def recurrent(name):
    def setup(*args):
        module, xs, state = layer(name, args)
        return lambda: module(xs, state)[0][-1]

    return setup


def recurrent_gradient(name):
    def setup(*args):
        module, xs, state = layer(name, args)
        weights = [module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0]
        if name == "gru":
            weights.append(module.bias_hh_l0)

        def run():
            with torch.enable_grad():
                loss = (module(xs, state)[0][-1] ** 2).sum()
                d_w, d_u, *biases = torch.autograd.grad(loss, weights)
            return d_w.T, d_u.T, *biases

        return run

    return setup
