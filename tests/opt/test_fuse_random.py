"""Random programs: fused, they are well formed and mean the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import pyrelay.ops  # noqa: F401  (registers the ops)
from pyrelay.ir import dims, interp
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.dims import Symbol
from pyrelay.ir.nodes import Function, Module, Var
from pyrelay.ir.op import OPS, RelationError
from pyrelay.ir.types import PY_INT, TensorType, f32
from pyrelay.ir.verify import verify
from pyrelay.opt.fuse import fuse

N, M = Symbol("n"), Symbol("m")
n, m = dims.of(N), dims.of(M)
MATRIX, ROW = (m, n), (n,)
PARAMS = [TensorType(f32, s) for s in (MATRIX, MATRIX, ROW, (m, 1))] + [PY_INT]


class RandomProgram:
    """A program over matrices and rows, each step reading one of the latest values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.b = Builder()
        self.params = tuple(Var(f"p{k}", ty) for k, ty in enumerate(PARAMS))
        *values, self.t = (Handle(self.b, p) for p in self.params)
        self.values = list(values)
        steps = [
            self.elementwise, self.binary, self.reduced, self.reversed, self.transposed, self.row,
            self.updated, self.rotated, self.reshaped,
        ]  # fmt: skip
        for _ in range(self.random.randint(4, 14)):
            made = self.random.choice(steps)()
            if made is not None:
                self.values.append(made)

    def module(self) -> Module:
        """The program with its last value and a few others as results."""
        made = self.values[4:] or [self.values[0] + self.values[1]]
        results = [made[-1], *(self.random.choice(made) for _ in range(2))]
        block = self.b.block(list(dict.fromkeys(results)))
        return Module({"f": Function("f", self.params, block, (N, M))}, "f")

    def pick(self, shape: Any) -> Any:
        fitting = [v for v in self.values if v.shape == shape]
        return self.random.choice(fitting[-6:])

    def call(self, name: str, *args: Any, **attrs: Any) -> Any:
        return self.b.call(OPS[name], *args, **attrs)

    def elementwise(self) -> Any:
        name = self.random.choice(["tanh", "exp", "negative", "square", "absolute"])
        return self.call(name, self.call("tanh", self.random.choice(self.values[-8:])))

    def binary(self) -> Any:
        name = self.random.choice(["add", "subtract", "multiply", "maximum"])
        try:
            return self.call(name, *(self.random.choice(self.values[-8:]) for _ in range(2)))
        except RelationError:
            return None

    def reduced(self) -> Any:
        axes = self.random.choice([(0,), (1,), (0, 1)])
        name = self.random.choice(["sum", "max", "min"])
        keepdims = self.random.random() < 0.5
        return self.call(name, self.pick(MATRIX), axes=axes, keepdims=keepdims)

    def reversed(self) -> Any:
        return self.call("slice", self.pick(ROW), starts=(n - 1,), sizes=ROW, steps=(-1,))

    def transposed(self) -> Any:
        turned = self.call("transpose", self.pick(MATRIX), axes=(1, 0))
        return self.call("transpose", turned * 1.5, axes=(1, 0))

    def row(self) -> Any:
        return self.call("index", self.pick(MATRIX), self.t, axes=(0,))

    def updated(self) -> Any:
        name = self.random.choice(["index_update", "index_add"])
        return self.call(name, self.pick(MATRIX), self.pick(ROW), self.t, axes=(0,))

    def rotated(self) -> Any:
        x = self.pick(MATRIX)
        below = self.call("slice", x, starts=(1, 0), sizes=(m - 1, n), steps=(1, 1))
        first = self.call("slice", x, starts=(0, 0), sizes=(1, n), steps=(1, 1))
        return self.call("concatenate", below, first, axis=0)

    def reshaped(self) -> Any:
        flat = self.call("reshape", self.pick(MATRIX), shape=(dims.multiply(m, n),))
        return self.call("reshape", self.call("tanh", flat), shape=MATRIX)


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_a_fused_program_is_well_formed_and_means_the_same(first: int) -> None:
    numbers = np.random.default_rng(first)
    shapes = [(5, 7), (5, 7), (7,), (5, 1)]
    args = [*(numbers.uniform(-1, 1, s).astype(np.float32) for s in shapes), 2]
    for seed in range(first, first + 20):
        module = RandomProgram(seed).module()
        after = fuse(module)
        verify(after, "fuse")
        pairs = zip(interp.interpret(after, args), interp.interpret(module, args), strict=True)
        for got, expected in pairs:
            np.testing.assert_array_equal(got, expected, err_msg=f"seed {seed}")
