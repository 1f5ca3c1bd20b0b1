"""How many floating point operations a program needs at least, from its definition.

In: a program's name and its arguments. Out: operations of its products (a multiplication and an
addition are two), or 0 for a program that only has to move its arguments and its result, or None
where neither says how long it has to take: a chain of dependent steps, a search, a call. Of
elementwise functions nothing is counted. A convolution counts as what it is defined as, though
there are ways to do it with fewer operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs import image_layers


class _Counting:
    """The layers that `image_layers` asks for, on shapes in the place of arrays."""

    def __init__(self) -> None:
        self.flops = 0.0

    def conv(self, x: Any, w: Any, b: Any, stride: int, padding: int, groups: int) -> Any:
        taps = w[2:]
        outs = [(x[2 + k] + 2 * padding - taps[k]) // stride + 1 for k in range(2)]
        shape = (x[0], w[0], *outs)
        self.flops += 2.0 * math.prod(shape) * math.prod(w[1:])
        return shape

    def relu(self, x: Any) -> Any:
        return x

    relu6 = relu

    def add(self, x: Any, y: Any) -> Any:
        return x

    def max_pool(self, x: Any, window: int, stride: int, padding: int) -> Any:
        return *x[:2], *((side + 2 * padding - window) // stride + 1 for side in x[2:])

    def mean(self, x: Any) -> Any:
        return x[:2]

    def flat(self, x: Any) -> Any:
        return x[0], math.prod(x[1:])

    def dense(self, x: Any, w: Any, b: Any) -> Any:
        self.flops += 2.0 * x[0] * w[0] * w[1]
        return x[0], w[1]


def _network(name: str) -> Callable[..., float]:
    def count(*args: Any) -> float:
        layers = _Counting()
        image_layers.NETWORKS[name](layers, *(a.shape for a in args))
        return layers.flops

    return count


def _moves(*_: Any) -> float:
    return 0.0


def _matmul(a: Any, b: Any) -> float:
    return 2.0 * math.prod(a.shape) * b.shape[-1]


def _convolution(stride: int = 1, padding: int = 0) -> Callable[..., float]:
    def count(x: Any, w: Any, *_: Any) -> float:
        layers = _Counting()
        layers.conv(x.shape, w.shape, None, stride, padding, 1)
        return layers.flops

    return count


def _recurrent(place: int, passes: float) -> Callable[..., float]:
    """Products of inputs and states with matrices of one size, the first of which is args[place].

    Forward is a pass; backward needs the gradients of both matrices and of the states, a half each.
    """

    def count(*args: Any) -> float:
        return passes * 4.0 * math.prod(args[0].shape[:-1]) * args[place].size

    return count


def _perceptron(w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> float:
    return 2.0 * x.shape[0] * (2 * w1.size + 3 * w2.size)


def _residual(x: Any, w1: Any, *_: Any) -> float:
    return 2 * _convolution(padding=1)(x, w1)


def _attention(q: Any, k: Any, v: Any) -> float:
    return 2.0 * q.shape[0] * q.shape[1] * k.shape[1] * (q.shape[2] + v.shape[2])


def _transformer(x: Any, *weights: Any) -> float:
    return 2.0 * x.shape[0] * (sum(w.size for w in weights[:6]) + 2 * x.size)


def _transformer_gradient(*args: Any) -> float:
    *weights, x, _ = args
    return 3 * _transformer(x, *weights)


def _small_net_gradient(w1: Any, w2: Any, w3: Any, x: Any, y: Any) -> float:
    layers = _Counting()
    first = layers.conv(x.shape, w1.shape, None, 2, 1, 1)
    own = layers.flops
    layers.conv(first, w2.shape, None, 2, 1, 1)
    return 3 * (layers.flops + 2.0 * x.shape[0] * w3.size) - own


def _generator(embedding: Any, h: Any, w: Any, u: Any, v: Any, stop: int, most: int) -> float:
    return 2.0 * most * (w.size + u.size + v.size)


def _tree_lstm(passes: float) -> Callable[..., float]:
    def nodes(tree: Any) -> int:
        return 0 if tree.left is None else 1 + nodes(tree.left) + nodes(tree.right)

    def count(words: Any, u: Any, v: Any, b: Any, trees: Any) -> float:
        return passes * 2.0 * (u.size + v.size) * sum(map(nodes, trees))

    return count


_WORK: dict[str, Callable[..., float]] = {
    **dict.fromkeys(
        ("elementwise", "softmax", "layer_norm", "gelu_chain", "variance", "logsumexp"), _moves
    ),
    **{name: _network(name) for name in image_layers.NETWORKS},
    "matmul": _matmul,
    "conv3": _convolution(padding=1), "conv_depthwise": _convolution(padding=1),
    "conv_stem": _convolution(2, 3), "conv1": _convolution(), "residual_block": _residual,
    "lstm_forward": _recurrent(3, 1.0), "lstm_gradient": _recurrent(3, 2.5),
    "rnn": _recurrent(2, 1.0), "rnn_gradient": _recurrent(2, 2.5),
    "gru": _recurrent(2, 1.0), "gru_gradient": _recurrent(2, 2.5),
    "lstm_batch": _recurrent(3, 1.0), "lstm_batch_gradient": _recurrent(3, 2.5),
    "mlp_gradient": _perceptron, "attention": _attention, "transformer": _transformer,
    "transformer_gradient": _transformer_gradient, "cnn_gradient": _small_net_gradient,
    "generator": _generator, "tree_lstm": _tree_lstm(1.0), "tree_lstm_gradient": _tree_lstm(3.0),
}  # fmt: skip


def flops(program: str, args: tuple[Any, ...]) -> float | None:
    """The operations that `program` needs for these arguments, or None."""
    count = _WORK.get(program)
    return None if count is None else count(*args)


def dtype(args: tuple[Any, ...]) -> str:
    """The type that most bytes of the arguments have: f32 or f64."""
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    wide = sum(a.nbytes for a in arrays if a.dtype == np.float64)
    return "f64" if 2 * wide > sum(a.nbytes for a in arrays) else "f32"


def touched(args: tuple[Any, ...], results: tuple[np.ndarray, ...]) -> int:
    """Bytes of arrays that come in and go out: each is moved at least once."""
    return sum(a.nbytes for a in (*args, *results) if isinstance(a, np.ndarray))
