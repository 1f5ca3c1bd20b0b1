"""What programs become: kernels, launches, buffers and copies, counted and not timed.

The table is golden: a program that becomes more kernels, or allocates more, shows as a difference.
A kernel is one run of LLVM, unless another program has made the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyrelay
from benchmarks import inputs
from benchmarks.programs import gradients, plain
from pyrelay import nn, pipeline
from pyrelay.compiled import Compiled
from pyrelay.lower.planning.instructions import Alloc, Copy, HostCall, Launch


def f32(*shape: int) -> Any:
    return np.full(shape, 0.1, np.float32)


def attention(q, k, v):
    return nn.scaled_dot_product_attention(q, k, v)


def conv_block(x, w, b, scale):
    y = nn.conv2d(x, w, b, padding="same")
    return np.maximum(y * scale + x, 0).mean(axis=(2, 3))


def jacobi(u, f, rounds):
    for _ in range(rounds):
        new = u.copy()
        new[1:-1, 1:-1] = 0.25 * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - f[1:-1, 1:-1]
        )
        u = new
    return u


def sieve(n):
    prime = np.ones(n + 1, np.bool_)
    prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            for j in range(i * i, n + 1, i):
                prime[j] = False
    return np.sum(prime)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def growing(x):
    kept = []
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            kept.append(x[i] * x[i])
    total = 0.0
    for each in kept:
        total += each
    return total


@dataclass
class Leaf:
    value: float


@dataclass
class Branch:
    left: Branch | Leaf
    right: Branch | Leaf


def tree_sum(tree):
    if isinstance(tree, Leaf):
        return tree.value * tree.value
    return tree_sum(tree.left) + tree_sum(tree.right)


def standardised_steps(x, rounds):
    for _ in range(rounds):
        x = np.tanh((x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True))
    return np.sum(x)


STATE = (f32(5, 8), f32(8), f32(8), f32(8, 32), f32(8, 32), f32(32))
LAYERS = (f32(6, 8), f32(8), f32(8, 3), f32(3), f32(4, 6), f32(4, 3))
TREE = Branch(Leaf(1.0), Branch(Leaf(2.0), Leaf(3.0)))
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "elementwise": (plain.elementwise, (f32(9), f32(9), f32(9))),
    "softmax": (plain.softmax, (f32(4, 5),)),
    "softmax, gradient": (
        pyrelay.grad(lambda x: np.sum(plain.softmax(x) * x)), (f32(4, 5),)
    ),
    "layer norm": (plain.layer_norm, (f32(4, 5),)),
    "LSTM": (plain.lstm, STATE),
    "LSTM, gradient": (pyrelay.grad(plain.lstm_loss, argnums=(3, 4, 5)), STATE),
    "perceptron, loss and gradient": (
        pyrelay.value_and_grad(plain.mlp_loss, argnums=(0, 1, 2, 3)), LAYERS
    ),
    "attention": (attention, (f32(2, 5, 8), f32(2, 5, 8), f32(2, 5, 8))),
    "attention, gradient": (
        pyrelay.grad(lambda *a: np.sum(attention(*a)), argnums=(0, 1, 2)), (f32(2, 5, 8),) * 3
    ),
    "convolution block": (conv_block, (f32(2, 3, 6, 6), f32(3, 3, 3, 3), f32(3), 2.0)),
    "Jacobi": (jacobi, (np.zeros((6, 6)), np.ones((6, 6)), 3)),
    "sieve": (sieve, (100,)),
    "Fibonacci": (fib, (10,)),
    "growing list": (growing, (np.linspace(-1.0, 1.0, 9),)),
    "growing list, gradient": (pyrelay.grad(growing), (np.linspace(-1.0, 1.0, 9),)),
    "sum over a tree": (tree_sum, (TREE,)),
    "sum over a tree, gradient": (pyrelay.grad(tree_sum), (TREE,)),
    "steps of rows, gradient": (pyrelay.grad(standardised_steps), (np.eye(4, 5), 3)),
    **{
        f"{loss.__name__}, gradient": (pyrelay.grad(loss, argnums=argnums), args)
        for (loss, argnums), args in zip(
            gradients.GRADIENTS.values(),
            (inputs.series(3), inputs.table(3, 4), inputs.positive(3), (np.ones(3),)),
            strict=True,
        )
    },
}  # fmt: skip


def counted(function: Callable[..., Any], args: tuple[Any, ...]) -> list[int]:
    """Kernels, launches, allocations, copies and calls of Python in the plan of a program."""
    compiled = function if isinstance(function, Compiled) else pyrelay.jit(function)
    spec = compiled._specialised(args, {})
    plan = pipeline.planned(spec, pipeline.lowered(spec.module, "fuse"))
    code = [instruction for f in plan.functions for instruction in f.code]
    kinds = (Launch, Alloc, Copy, HostCall)
    return [len(plan.kernels), *(sum(isinstance(i, kind) for i in code) for kind in kinds)]


def test_programs_become_as_few_kernels_buffers_and_copies_as_before(
    golden: Callable[[str, str], None],
) -> None:
    lines = [f"{'':30} kernels launches buffers copies host"]
    for name, (function, args) in PROGRAMS.items():
        kernels, launches, buffers, copies, host = counted(function, args)
        lines.append(f"{name:30} {kernels:7} {launches:8} {buffers:7} {copies:6} {host:4}")
    golden("counts.txt", "\n".join(lines))
