"""numba: written by hand, as someone who knows it would, in loops over whole arrays."""

from __future__ import annotations

import math
from types import FunctionType

import numba
import numpy as np
from numba import njit, prange

from benchmarks.programs import loops, plain, recursions
from benchmarks.programs.plain import as_arrays, thunk

__all__ = ["PROGRAMS", "as_arrays", "version"]


@njit(parallel=True)
def elementwise(x, w, b):
    out = np.empty_like(x)
    for i in prange(x.size):
        out[i] = math.tanh(x[i] * w[i] + b[i]) * math.exp(-x[i] * x[i])
    return out


@njit
def _sigmoid(x):
    return np.float32(1) / (np.float32(1) + math.exp(-x))


@njit
def lstm(xs, h, c, W, U, b):  # noqa: N803
    n = h.shape[0]
    inputs = xs @ W
    h, c = h.copy(), c.copy()
    for t in range(xs.shape[0]):
        z = h @ U
        for k in range(n):
            i = _sigmoid(z[k] + inputs[t, k] + b[k])
            f = _sigmoid(z[n + k] + inputs[t, n + k] + b[n + k])
            g = math.tanh(z[2 * n + k] + inputs[t, 2 * n + k] + b[2 * n + k])
            o = _sigmoid(z[3 * n + k] + inputs[t, 3 * n + k] + b[3 * n + k])
            c[k] = f * c[k] + i * g
            h[k] = o * math.tanh(c[k])
    return h


@njit(parallel=True)
def softmax(x):
    out = np.empty_like(x)
    for row in prange(x.shape[0]):
        top = x[row, 0]
        for k in range(1, x.shape[1]):
            top = max(top, x[row, k])
        total = np.float32(0)
        for k in range(x.shape[1]):
            out[row, k] = math.exp(x[row, k] - top)
            total += out[row, k]
        for k in range(x.shape[1]):
            out[row, k] /= total
    return out


@njit(parallel=True)
def layer_norm(x):
    out = np.empty_like(x)
    columns = x.shape[1]
    for row in prange(x.shape[0]):
        total = np.float32(0)
        for k in range(columns):
            total += x[row, k]
        mean = total / np.float32(columns)
        squares = np.float32(0)
        for k in range(columns):
            squares += (x[row, k] - mean) * (x[row, k] - mean)
        scale = np.float32(1) / math.sqrt(squares / np.float32(columns) + np.float32(1e-5))
        for k in range(columns):
            out[row, k] = (x[row, k] - mean) * scale
    return out


@njit
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@njit
def summed(p):
    total = np.zeros(16, np.float32)
    for value in p.values():
        total = total + value
    return total


def call_dict(p):
    """numba's own dict: it takes no other, and making one is not timed."""
    held = numba.typed.Dict()
    for name, value in p.items():
        held[name] = value
    return lambda: summed(held)


def recursive():
    """The recursive programs, each of whose functions calls what is compiled of the others."""
    names = dict(vars(recursions))
    for name, each in vars(recursions).items():
        if isinstance(each, FunctionType):
            names[name] = njit(FunctionType(each.__code__, names, name))
    return {name: thunk(names[name]) for name in recursions.PROGRAMS}


PROGRAMS = {
    "elementwise": thunk(elementwise),
    "lstm_forward": thunk(lstm),
    "matmul": thunk(njit(plain.matmul)),
    "softmax": thunk(softmax),
    "layer_norm": thunk(layer_norm),
    "call": thunk(njit(plain.call)),
    "call_dict": call_dict,
    "stores": thunk(njit(plain.stores)),
    "stores_gradient": thunk(njit(plain.stores_gradient)),
    "escape": thunk(njit(plain.escape)),
    "newton": thunk(njit(plain.newton)),
    "fibonacci": thunk(fibonacci),
    "nest": thunk(njit(plain.nest)),
    **{name: thunk(njit(function)) for name, function in loops.PROGRAMS.items()},
    **recursive(),
}


def version() -> str:
    return numba.__version__
