"""The programs of `make gpu-bench`, and the arguments that they are counted and timed with.

In: nothing. Out: `TIMED`, which are timed, `COUNTED`, whose kernels and bytes are counted, and
`LEAST`, the bytes that some of the former have to move.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

import pyrelay


def elementwise(x: Any, w: Any, b: Any) -> Any:
    return np.tanh(x * w + b) * np.exp(-x * x)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x: Any, scale: Any, shift: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
    return centred / deviation * scale + shift


def cross_entropy(x: Any, y: Any) -> Any:
    shifted = x - x.max(axis=1, keepdims=True)
    sums = np.log(np.exp(shifted).sum(axis=1))
    return (sums - shifted[np.arange(y.size), y]).mean()


def total(x: Any) -> Any:
    return (x * x).sum()


def column_sums(x: Any) -> Any:
    return x.sum(axis=0)


def perceptron(x: Any, w: Any, v: Any, y: Any) -> Any:
    error = np.tanh(x @ w) @ v - y
    return (error * error).sum()


def f32(*shape: int) -> Any:
    """Zeros: only their shape and dtype count."""
    return np.zeros(shape, np.float32)


def weights(*shape: int) -> Any:
    """A matrix whose products are as large as what it is multiplied by: only its shape and the
    number that it is made of count, which is how widely weights are spread."""
    return np.broadcast_to(np.float32((12 / shape[-2]) ** 0.5), shape)


def bf16(array: Any) -> Any:
    """The same in bfloat16."""
    import ml_dtypes

    return array.astype(ml_dtypes.bfloat16) if any(array.strides) else np.broadcast_to(
        array.reshape(-1)[0].astype(ml_dtypes.bfloat16), array.shape
    )


#: What programs in bfloat16 are made of is installed.
HAS_BFLOAT16 = importlib.util.find_spec("ml_dtypes") is not None


def softmax_loss(x: Any) -> Any:
    return (softmax(x) * x).sum()


def lstm(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    n = wh.shape[0]
    h, c = b[:n] * 0, b[:n] * 0
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        forget, keep, give = (1 / (1 + np.exp(-z[k * n : (k + 1) * n])) for k in (0, 1, 3))
        c = forget * c + keep * np.tanh(z[2 * n : 3 * n])
        h = give * np.tanh(c)
    return h


def lstm_batch(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    """The same for several sequences at once, steps first."""
    n = wh.shape[0]
    h = (x[0] @ wx)[:, :n] * 0
    c = h
    for t in range(x.shape[0]):
        z = x[t] @ wx + h @ wh + b
        forget, keep, give = (1 / (1 + np.exp(-z[:, k * n : (k + 1) * n])) for k in (0, 1, 3))
        c = forget * c + keep * np.tanh(z[:, 2 * n : 3 * n])
        h = give * np.tanh(c)
    return h


def lstm_loss(x: Any, wx: Any, wh: Any, b: Any) -> Any:
    h = lstm(x, wx, wh, b)
    return (h * h).sum()


def small_kernels(x: Any) -> Any:
    for _ in range(17):
        total = (x * x).sum()
        x = np.tanh(x) + x / total
    return x


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax_of(q @ k.swapaxes(-1, -2) / np.sqrt(np.float32(q.shape[-1]))) @ v


def softmax_of(scores: Any) -> Any:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def dense(x: Any, w: Any) -> Any:
    return (x @ w).astype(x.dtype)


def transformer(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, up: Any, down: Any) -> Any:
    """A block of 16 heads: attention and a perceptron, each after a normalisation."""
    n, d = x.shape
    rows = normalised(x)
    q, k, v = (dense(rows, w).reshape(n, 16, d // 16).swapaxes(0, 1) for w in (wq, wk, wv))
    mixed = attention(q, k, v).astype(x.dtype).swapaxes(0, 1).reshape(n, d)
    x = x + dense(mixed, wo)
    return x + dense(np.maximum(dense(normalised(x), up), 0), down)


def normalised(x: Any) -> Any:
    wide = x.astype(np.float32)
    centred = wide - wide.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))
    return (centred / deviation).astype(x.dtype)


def two_layers(x: Any, up: Any, down: Any, y: Any) -> Any:
    error = dense(np.maximum(dense(x, up), 0), down) - y
    return (error * error).sum()


def running_sum(x: Any) -> Any:
    return np.cumsum(x)


def searched(edges: Any, x: Any) -> Any:
    return np.searchsorted(edges, x)


def histogram(x: Any) -> Any:
    return np.histogram(x, bins=64, range=(-4.0, 4.0))[0]


def row_sums(x: Any) -> Any:
    return x.sum(axis=1)


def place_of_largest(x: Any) -> Any:
    return x.argmax()


def picked(table: Any, i: Any) -> Any:
    return (table[i] * table[i]).sum()


def characters(state: Any, w: Any, u: Any, stop: Any) -> Any:
    """A generator of characters that ends when the likeliest one is `stop`."""
    count = 0
    while count < 256:
        state = np.tanh(state @ w)
        if np.argmax(state @ u) == stop:
            break
        count += 1
    return state, count


def ordered(x: Any) -> Any:
    return np.sort(x)


def conjugate_gradients(a: Any, b: Any, least: Any) -> Any:
    """The solution of a system, to where the residual is small: no more rounds than it takes."""
    x = np.zeros_like(b)
    r = b - a @ x
    p = r
    size = (r * r).sum()
    while size > least:
        ap = a @ p
        step = size / (p * ap).sum()
        x = x + step * p
        r = r - step * ap
        new = (r * r).sum()
        p = r + (new / size) * p
        size = new
    return x


def system(n: int) -> tuple[Any, Any, Any]:
    """A matrix whose neighbours hang together, so that some hundred rounds are needed."""
    a = (2.001 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)).astype(np.float32)
    return a, noise(n), np.float32(1e-2)


def _classes(rows: int, classes: int) -> Any:
    return np.arange(rows) * 7919 % classes


def noise(*shape: int) -> Any:
    """Numbers in no order, for programs whose course hangs on them."""
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


_ROWS = ((1 << 15, 1 << 10), (1 << 12, 1 << 13), (256, 1 << 17))
_LSTM = weights(256, 1024), weights(256, 1024), f32(1024)

#: What is timed: the function, the arguments of its gradient or None, arguments.
TIMED: dict[str, tuple[Callable[..., Any], Any, tuple[Any, ...]]] = {
    **{
        f"elementwise {n >> 20}M": (elementwise, None, (f32(n), f32(n), f32(n)))
        for n in (1 << 20, 1 << 24, 1 << 28, 1 << 30)
    },
    **{f"softmax {n}x{m >> 10}k": (softmax, None, (f32(n, m),)) for n, m in _ROWS},
    **{
        f"layer norm {n}x{m >> 10}k": (layer_norm, None, (f32(n, m), f32(m), f32(m)))
        for n, m in _ROWS
    },
    **{
        f"cross entropy {n}x{m >> 10}k": (cross_entropy, None, (f32(n, m), _classes(n, m)))
        for n, m in _ROWS
    },
    "gradient of cross entropy 32768x1k": (
        cross_entropy, 0, (f32(1 << 15, 1 << 10), _classes(1 << 15, 1 << 10))
    ),
    "softmax 4096x512": (softmax, None, (f32(4096, 512),)),
    "softmax 512x32768": (softmax, None, (f32(512, 1 << 15),)),
    "softmax 8x128k": (softmax, None, (f32(8, 1 << 17),)),
    "sums of 8 rows of 1M": (row_sums, None, (f32(8, 1 << 20),)),
    "argmax of 16M": (place_of_largest, None, (noise(1 << 24),)),
    "16M places among 1k": (searched, None, (np.sort(noise(1 << 10)), noise(1 << 24))),
    "histogram of 16M in 64 bins": (histogram, None, (noise(1 << 24),)),
    "layer norm 4096x512": (layer_norm, None, (f32(4096, 512), f32(512), f32(512))),
    "sum of squares 16M": (total, None, (f32(1 << 24),)),
    "column sums 4096x512": (column_sums, None, (f32(4096, 512),)),
    "gradient of softmax": (softmax_loss, 0, (f32(4096, 512),)),
    "gradient of perceptron": (
        perceptron, (1, 2), (f32(64, 784), weights(784, 256), weights(256, 10), f32(64, 10))
    ),
    "LSTM of 64 steps, 32 wide": (
        lstm, None, (f32(64, 32), weights(32, 128), weights(32, 128), f32(128))
    ),
    "LSTM of 256 steps, 256 wide": (lstm, None, (f32(256, 256), *_LSTM)),
    "LSTM of 256 steps, 256 wide, 64 at once": (lstm_batch, None, (f32(256, 64, 256), *_LSTM)),
    "gradient of that LSTM, one sequence": (lstm_loss, (1, 2, 3), (f32(256, 256), *_LSTM)),
    "characters, 256 wide": (
        characters, None, (f32(256), weights(256, 256), weights(256, 96), np.int64(-1))
    ),
    "attention of 16 heads, 1024 by 64": (attention, None, (f32(16, 1024, 64),) * 3),
    "running sum of 16M": (running_sum, None, (f32(1 << 24),)),
    "sort of 1M": (ordered, None, (noise(1 << 20),)),
    "sort of 4096 rows of 512": (ordered, None, (noise(4096, 512),)),
    "conjugate gradients, 4096 unknowns": (conjugate_gradients, None, system(4096)),
    "gradient of 8192 rows of 30k, 512 wide": (
        picked, 0, (f32(30_000, 512), np.arange(8192) * 7919 % 30_000)
    ),
    "51 operations on 10k": (small_kernels, None, (f32(10_000),)),
    "transformer block 2048 x 1024 in TF32": (
        transformer, None,
        (f32(2048, 1024), *(weights(1024, 1024),) * 4, weights(1024, 4096), weights(4096, 1024)),
    ),
    "training of a perceptron 1024-4096-1024, 4096 rows, in TF32": (
        two_layers, (1, 2),
        (f32(4096, 1024), weights(1024, 4096), weights(4096, 1024), f32(4096, 1024)),
    ),
}  # fmt: skip
if HAS_BFLOAT16:
    TIMED["elementwise 16M in bfloat16"] = elementwise, None, (bf16(f32(1 << 24)),) * 3
    for _name in [name for name in TIMED if name.endswith(" in TF32")]:
        _function, _argnums, _args = TIMED[_name]
        TIMED[_name.replace("TF32", "bfloat16")] = (
            _function, _argnums, tuple(map(bf16, _args))
        )


#: Bytes that a program has to move at least, where that is what it lasts as long as.
LEAST = {
    **{f"elementwise {n >> 20}M": 16 * n for n in (1 << 20, 1 << 24, 1 << 28, 1 << 30)},
    **{f"{name} {n}x{m >> 10}k": each * n * m for n, m in _ROWS
       for name, each in (("softmax", 8), ("layer norm", 8), ("cross entropy", 4))},
    "gradient of cross entropy 32768x1k": 1 << 28,
    "softmax 4096x512": 1 << 24, "softmax 512x32768": 1 << 27, "layer norm 4096x512": 1 << 24,
    "elementwise 16M in bfloat16": 1 << 27,
    "softmax 8x128k": 1 << 23, "sums of 8 rows of 1M": 1 << 25, "argmax of 16M": 1 << 26,
    "16M places among 1k": 3 << 26, "histogram of 16M in 64 bins": 1 << 26,
    "sum of squares 16M": 1 << 26, "column sums 4096x512": 1 << 23, "running sum of 16M": 1 << 27,
}  # fmt: skip


def _timed(name: str, rounds: int = 0) -> Any:
    """A program that is timed, as one that is counted: with arguments that are no array twice."""
    function, argnums, args = TIMED[name]
    args = tuple(a[...] if isinstance(a, np.ndarray) else a for a in args)
    if argnums is not None:
        function = pyrelay.grad(function, argnums=argnums)
    return function, args, rounds


#: What is counted: the function, its arguments, and how many rounds its loop takes, 0 if it has
#: none.
COUNTED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], int]] = {
    **{
        name: _timed(name) for name in (
            "elementwise 1M", "elementwise 16M", "softmax 32768x1k", "softmax 4096x8k",
            "softmax 256x128k", "layer norm 32768x1k", "layer norm 4096x8k", "layer norm 256x128k",
            "cross entropy 32768x1k", "cross entropy 4096x8k", "cross entropy 256x128k",
            "gradient of cross entropy 32768x1k", "softmax 4096x512", "softmax 512x32768",
            "softmax 8x128k", "sums of 8 rows of 1M", "argmax of 16M",
            "layer norm 4096x512", "sum of squares 16M",
            "column sums 4096x512", "gradient of softmax", "gradient of perceptron",
        )
    },
    "4k places among 1k": (searched, (f32(1 << 10), f32(1 << 12)), 0),
    "LSTM of 64 steps, 32 wide": _timed("LSTM of 64 steps, 32 wide", 64),
    "LSTM of 256 steps, 256 wide": _timed("LSTM of 256 steps, 256 wide", 256),
    "LSTM of 256 steps, 256 wide, 64 at once": _timed(
        "LSTM of 256 steps, 256 wide, 64 at once", 256
    ),
    "characters, 256 wide": _timed("characters, 256 wide", 256),
    "51 operations on 10k": _timed("51 operations on 10k", 17),
    "transformer block 2048 x 1024 in TF32": _timed("transformer block 2048 x 1024 in TF32"),
    "training of a perceptron 1024-4096-1024, 4096 rows, in TF32": _timed(
        "training of a perceptron 1024-4096-1024, 4096 rows, in TF32"
    ),
    **{
        name: _timed(name) for name in (
            "elementwise 16M in bfloat16", "transformer block 2048 x 1024 in bfloat16",
            "training of a perceptron 1024-4096-1024, 4096 rows, in bfloat16",
        ) if name in TIMED
    },
}  # fmt: skip
