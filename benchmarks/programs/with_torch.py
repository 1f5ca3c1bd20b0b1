"""PyTorch, eager: its own fused layers where it has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

torch.set_grad_enabled(False)


def elementwise(x, w, b):
    return torch.tanh(x * w + b) * torch.exp(-x * x)


def lstm_layer(*args):
    """nn.LSTM with the workload's weights: the same gate order, one bias of the two it has."""
    xs, h, c, W, U, b = map(torch.from_numpy, args)  # noqa: N806
    layer = torch.nn.LSTM(xs.shape[1], h.shape[0])
    layer.weight_ih_l0.copy_(W.T)
    layer.weight_hh_l0.copy_(U.T)
    layer.bias_ih_l0.copy_(b)
    layer.bias_hh_l0.zero_()
    return layer, xs[:, None], (h[None, None], c[None, None])


def lstm_forward(*args):
    layer, xs, state = lstm_layer(*args)
    return lambda: layer(xs, state)[0][-1, 0]


def lstm_gradient(*args):
    layer, xs, state = lstm_layer(*args)
    weights = [layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0]

    def run():
        with torch.enable_grad():
            loss = (layer(xs, state)[0][-1] ** 2).sum()
            d_w, d_u, d_b = torch.autograd.grad(loss, weights)
        return d_w.T, d_u.T, d_b

    return run


def mlp_loss(w1, b1, w2, b2, x, y):
    logits = torch.tanh(x @ w1 + b1) @ w2 + b2
    return -(y * torch.log_softmax(logits, 1)).sum() / x.shape[0]


def softmax(x):
    return torch.softmax(x, 1)


def layer_norm(x):
    return torch.nn.functional.layer_norm(x, (x.shape[1],))


def call(a, b, c, d):
    return a * b + c - d


def program(function):
    def setup(*args):
        tensors = [torch.from_numpy(a) for a in args]
        return lambda: function(*tensors)

    return setup


def gradient(function, count):
    """The value of `function` and its gradient in its first `count` arguments."""

    def setup(*args):
        tensors = [torch.from_numpy(a) for a in args]
        wanted = [tensor.requires_grad_() for tensor in tensors[:count]]

        def run():
            with torch.enable_grad():
                loss = function(*tensors)
                return loss.detach(), *torch.autograd.grad(loss, wanted)

        return run

    return setup


PROGRAMS = {
    "elementwise": program(elementwise),
    "lstm_forward": lstm_forward,
    "lstm_gradient": lstm_gradient,
    "matmul": program(torch.matmul),
    "mlp_gradient": gradient(mlp_loss, 4),
    "softmax": program(softmax),
    "layer_norm": program(layer_norm),
    "call": program(call),
}


def as_arrays(result: Any) -> tuple[np.ndarray, ...]:
    parts = result if isinstance(result, tuple) else (result,)
    return tuple(part.numpy() for part in parts)


def version() -> str:
    return torch.__version__
