"""PyTorch, eager: its own fused layers where it has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.programs import image_layers, networks, torch_networks, torch_trees

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


def call_dict(p):
    tensors = {name: torch.from_numpy(value) for name, value in p.items()}
    return lambda: sum(tensors.values())


def program(function):
    def setup(*args):
        operands = tensors(args)
        return lambda: function(*operands)

    return setup


def tensors(args):
    """Arrays as tensors; numbers as they are."""
    return [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]


def gradient(function, count, *, value=True):
    """The gradient of `function` in its first `count` arguments, after its value if asked."""

    def setup(*args):
        operands = tensors(args)
        wanted = [tensor.requires_grad_() for tensor in operands[:count]]

        def run():
            with torch.enable_grad():
                loss = function(*operands)
                slopes = torch.autograd.grad(loss, wanted)
                return (loss.detach(), *slopes) if value else slopes

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
    "call_dict": call_dict,
    **{
        name: program(getattr(torch_networks, name))
        for name in networks.FORWARD if hasattr(torch_networks, name)
    },
    **{name: program(torch_networks.image_network(name)) for name in image_layers.NETWORKS},
    **{name: torch_networks.recurrent(name) for name in torch_networks.LAYERS},
    **{
        f"{name}_gradient": torch_networks.recurrent_gradient(name)
        for name in torch_networks.LAYERS
    },
    "transformer_gradient": gradient(torch_networks.transformer_loss, 6, value=False),
    "cnn_gradient": gradient(torch_networks.cnn_loss, 3, value=False),
    "tree_lstm": torch_trees.tree_lstm,
    "tree_lstm_gradient": torch_trees.tree_lstm_gradient,
}


def as_arrays(result: Any) -> tuple[np.ndarray, ...]:
    parts = result if isinstance(result, tuple) else (result,)
    return tuple(part.numpy() for part in parts)


def version() -> str:
    return torch.__version__
