"""The programs as plain Python and NumPy: what pyrelay compiles, and the answers to check against.

The gradients at the end are derived by hand, for NumPy's own column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.programs import arrays, image_networks, networks, recursions, rows, trees


def elementwise(x, w, b):
    return np.tanh(x * w + b) * np.exp(-x * x)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def lstm(xs, h, c, W, U, b):  # noqa: N803 -- matrices are capitals in the literature
    n = h.shape[0]
    for t in range(xs.shape[0]):
        z = xs[t] @ W + h @ U + b
        i = sigmoid(z[:n])
        f = sigmoid(z[n : 2 * n])
        g = np.tanh(z[2 * n : 3 * n])
        o = sigmoid(z[3 * n :])
        c = f * c + i * g
        h = o * np.tanh(c)
    return h


def lstm_loss(xs, h, c, W, U, b):  # noqa: N803
    last = lstm(xs, h, c, W, U, b)
    return np.sum(last * last)


def matmul(a, b):
    return a @ b


def mlp_loss(w1, b1, w2, b2, x, y):
    hidden = np.tanh(x @ w1 + b1)
    logits = hidden @ w2 + b2
    top = np.max(logits, axis=1, keepdims=True)
    log_sum = top + np.log(np.sum(np.exp(logits - top), axis=1, keepdims=True))
    return np.sum(y * (log_sum - logits)) / x.shape[0]


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def layer_norm(x):
    centred = x - np.mean(x, axis=1, keepdims=True)
    variance = np.mean(centred * centred, axis=1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5)


def call(a, b, c, d):
    return a * b + c - d


def call_dict(p):
    total = 0.0
    for value in p.values():
        total = total + value
    return total


def stores(v, a):
    x = np.zeros(v.shape[0])
    x[0] = v[0]
    for i in range(1, v.shape[0]):
        x[i] = a * x[i - 1] + v[i]
    return np.sum(x)


def escape(size, limit):
    counts = np.zeros((size, size), dtype=np.int64)
    for row in range(size):
        for column in range(size):
            cr = -2.0 + 3.0 * column / size
            ci = -1.5 + 3.0 * row / size
            zr = 0.0
            zi = 0.0
            n = 0
            while n < limit and zr * zr + zi * zi < 4.0:
                zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
                n += 1
            counts[row, column] = n
    return counts


def newton(f0, x):
    while abs(x * x - f0) > 1e-12:
        x = 0.5 * (x + f0 / x)
    return x


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def depth(n, a):
    if n == 0:
        return 0.0
    return 1.0 + a * depth(n - 1, a)


def straight_line(count: int) -> str:
    """The source of a function `chain(x)` of `count` statements that do not fuse together."""
    statements = "".join("    x = x / (1.0 + np.sum(x * x))\n" for _ in range(count))
    return f"import numpy as np\n\n\ndef chain(x):\n{statements}    return x\n"


def nest(u, v, n):
    """Five loops, each of which writes and swaps two arrays."""
    u, v = u.copy(), v.copy()
    for i in range(n):
        u[i] += 1.0
        for j in range(n):
            v[j] = 0.5 * u[j]
            for k in range(n):
                u, v = v, u
                u[k] += v[i] * 0.25
                for a in range(n):
                    v[a] -= 0.125 * u[k]
                    for b in range(n):
                        if u[b] > v[a]:
                            u, v = v, u
                        u[b] = 0.5 * (u[b] + v[a])
    return u, v


def lstm_gradient(xs, h, c, W, U, b):  # noqa: N803
    """The gradient of `lstm_loss` in W, U and b, by backpropagation through time."""
    n = h.shape[0]
    saved = []
    for t in range(xs.shape[0]):
        z = xs[t] @ W + h @ U + b
        i, f, o = sigmoid(z[:n]), sigmoid(z[n : 2 * n]), sigmoid(z[3 * n :])
        g = np.tanh(z[2 * n : 3 * n])
        new_c = f * c + i * g
        tanh_c = np.tanh(new_c)
        saved.append((h, c, i, f, g, o, tanh_c))
        c, h = new_c, o * tanh_c
    dh, dc = 2 * h, np.zeros_like(c)
    dzs = np.empty((xs.shape[0], 4 * n), dtype=xs.dtype)
    for t in reversed(range(xs.shape[0])):
        _, c, i, f, g, o, tanh_c = saved[t]
        dc = dc + dh * o * (1 - tanh_c * tanh_c)
        dz = dzs[t]
        dz[:n] = dc * g * i * (1 - i)
        dz[n : 2 * n] = dc * c * f * (1 - f)
        dz[2 * n : 3 * n] = dc * i * (1 - g * g)
        dz[3 * n :] = dh * tanh_c * o * (1 - o)
        dh, dc = U @ dz, dc * f
    hs = np.stack([record[0] for record in saved])
    return xs.T @ dzs, hs.T @ dzs, dzs.sum(axis=0)


def mlp_gradient(w1, b1, w2, b2, x, y):
    """The value of `mlp_loss` and its gradient in w1, b1, w2 and b2."""
    hidden = np.tanh(x @ w1 + b1)
    logits = hidden @ w2 + b2
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    e = np.exp(shifted)
    total = np.sum(e, axis=1, keepdims=True)
    loss = np.sum(y * (np.log(total) - shifted)) / x.shape[0]
    d_logits = (e / total - y) / x.shape[0]
    d_hidden = (d_logits @ w2.T) * (1 - hidden * hidden)
    return loss, x.T @ d_hidden, d_hidden.sum(axis=0), hidden.T @ d_logits, d_logits.sum(axis=0)


def stores_gradient(v, a):
    """The gradient of `stores` in v: x[i] is a geometric sum of what comes after."""
    out = np.empty(v.shape[0])
    later = 0.0
    for i in range(v.shape[0] - 1, -1, -1):
        later = 1.0 + a * later
        out[i] = later
    return out


def depth_by_loop(n, a):
    """What `depth` returns, without the recursion that plain Python cannot make."""
    total = 0.0
    for _ in range(n):
        total = 1.0 + a * total
    return total


def thunk(function: Callable[..., Any]) -> Callable[..., Callable[[], Any]]:
    """Hold a function's arguments, so that only the call itself is timed."""
    return lambda *args: lambda: function(*args)


PROGRAMS = {
    "elementwise": thunk(elementwise),
    "lstm_forward": thunk(lstm),
    "lstm_gradient": thunk(lstm_gradient),
    "matmul": thunk(matmul),
    "mlp_gradient": thunk(mlp_gradient),
    "softmax": thunk(softmax),
    "layer_norm": thunk(layer_norm),
    "call": thunk(call),
    "call_dict": thunk(call_dict),
    "stores": thunk(stores),
    "stores_gradient": thunk(stores_gradient),
    "escape": thunk(escape),
    "newton": thunk(newton),
    "fibonacci": thunk(fibonacci),
    "depth": thunk(depth_by_loop),
    "nest": thunk(nest),
    **{name: thunk(function) for name, function in arrays.PROGRAMS.items()},
    **{name: thunk(function) for name, function in rows.PROGRAMS.items()},
    **{name: thunk(function) for name, function in recursions.PROGRAMS.items()},
    **{name: thunk(function) for name, function in networks.FORWARD.items()},
    **{name: thunk(function) for name, function in trees.PROGRAMS.items()},
    **{name: thunk(function) for name, function in image_networks.FORWARD.items()},
}


def as_arrays(result: Any) -> tuple[np.ndarray, ...]:
    """The result as a flat tuple of arrays."""
    if isinstance(result, tuple | list):
        return tuple(array for part in result for array in as_arrays(part))
    return (np.asarray(result),)


def version() -> str:
    return np.__version__
