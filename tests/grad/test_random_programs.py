"""Random programs of loops, branches, arrays and recursion against finite differences."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pyrelay.ops
from pyrelay.ir import types
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Loop, Var
from pyrelay.ir.types import PY_FLOAT, PY_INT
from pyrelay.ops import logic
from tests.grad.checking import (
    F64,
    call,
    cleaned,
    derived,
    expanded_orders,
    function,
    op,
    program,
    tangent,
    vector,
)

SIZE = 3  # elements of an array


class Writer:
    """Writes a random program; `choose` decides. `scalars` and `arrays` are what is in scope."""

    def __init__(self, choose: Random) -> None:
        self.choose = choose
        self.budget = 14
        self.recursion = ["recurse"]

    def statements(self, b, ints, scalars, arrays, depth):
        """Extend the scalars and arrays in scope by a few statements."""
        scalars, arrays = list(scalars), list(arrays)
        for _ in range(self.choose.randint(1, 4)):
            self.budget -= 1
            kinds = ["arithmetic", "arithmetic", "element", "store"]
            if depth and self.budget > 0:
                kinds += ["branch", "counted", "while", "leave", *self.recursion]
            new = getattr(self, self.choose.choice(kinds))(b, ints, scalars, arrays, depth)
            for value in new:
                (arrays if value.rank else scalars).append(value)
        return scalars, arrays

    def scalar(self, b, scalars):
        return b.handle(self.choose.choice(scalars))

    def position(self, b, ints):
        return b.call(pyrelay.ops.arithmetic.remainder, self.choose.choice(ints), SIZE)

    def arithmetic(self, b, ints, scalars, arrays, depth):
        x, y = self.scalar(b, scalars), self.scalar(b, scalars)
        kind = self.choose.randrange(6)
        if kind == 0:
            return [op("tanh", x * y)]
        if kind == 1:
            return [x * 0.5 + y * 0.4]
        if kind == 2:
            return [op("sin", x) * y]
        if kind == 3:
            return [op("exp", op("negative", op("square", x))) - y]
        if kind == 4:
            array = b.handle(self.choose.choice(arrays))
            return [op("tanh", array * x)]
        array = b.handle(self.choose.choice(arrays))
        return [op("sum", array * array, axes=(0,), keepdims=False) * 0.2]

    def element(self, b, ints, scalars, arrays, depth):
        array = b.handle(self.choose.choice(arrays))
        return [op("index", array, self.position(b, ints), axes=(0,)) * 1.0]

    def store(self, b, ints, scalars, arrays, depth):
        array, value = b.handle(self.choose.choice(arrays)), self.scalar(b, scalars)
        name = self.choose.choice(["index_update", "index_add"])
        return [op(name, array, op("sin", value), self.position(b, ints), axes=(0,))]

    def condition(self, b, ints, scalars):
        if self.choose.random() < 0.3:
            return b.call(logic.greater, self.position(b, ints), 0)
        return self.scalar(b, scalars) > self.choose.choice([-0.3, 0.1, 0.4])

    def ends(self, b, scalars, arrays):
        return [self.scalar(b, scalars[-2:]), b.handle(self.choose.choice(arrays[-2:]))]

    def block(self, b, ints, scalars, arrays, depth):
        return self.ends(b, *self.statements(b, ints, scalars, arrays, depth - 1))

    def branch(self, b, ints, scalars, arrays, depth):
        return b.cond(
            self.condition(b, ints, scalars),
            lambda b: self.block(b, ints, scalars, arrays, depth),
            lambda b: self.block(b, ints, scalars, arrays, depth),
        )

    def counted(self, b, ints, scalars, arrays, depth):
        count = self.choose.choice([2, 3, *ints])
        return b.counted(
            count, self.ends(b, scalars, arrays),
            lambda b, i, v: self.block(
                b, [*ints, i.atom], [*scalars, v[0]], [*arrays, v[1]], depth
            ),
        )

    def loop(self, b, ints, scalars, arrays, depth, tested):
        """At most three iterations, ended by a test that hands a value over, or from inside."""
        init = [b.handle(0), *self.ends(b, scalars, arrays)]
        carried = tuple(Var("c", b.atom(a).type) for a in init)
        handed = (Var("h", F64),) if tested else ()
        test = None
        if tested:
            inner = b.nested()
            k, x, _ = map(inner.handle, carried)
            value = op("sin", x * 1.7)
            if depth > 1 and self.choose.random() < 0.3:
                value, _ = self.block(inner, [*ints, k.atom], [value], [carried[2]], 1)
            go_on = op("logical_and", k < 3, value < 0.6)
            test = inner.block([go_on, value])
        inner = b.nested()
        k, x, array = map(inner.handle, carried)
        known = [*scalars, x, *handed]
        ends = self.block(inner, [*ints, k.atom], known, [*arrays, array], depth)
        results = [k + 1, *ends]
        if not tested:
            results.insert(0, op("logical_or", k > 1, ends[0] > 0.5))
        node = Loop(
            carried, tuple(b.atom(a) for a in init), inner.block(results), test, handed,
            exits=not tested, index=Var("i", PY_INT),
        )
        return b.bind(node, [v.type for v in carried])[1:]

    def leave(self, b, ints, scalars, arrays, depth):
        return self.loop(b, ints, scalars, arrays, depth, False)

    def recurse(self, b, ints, scalars, arrays, depth):
        level = b.call(pyrelay.ops.arithmetic.remainder, self.choose.choice(ints), 3)
        args = [level, *self.ends(b, scalars, arrays)]
        return call(b, "tree", args, [F64, vector(SIZE)])


setattr(Writer, "while", lambda self, *args: self.loop(*args, True))


def random_program(seed: int):
    """A main function and a doubly recursive one that it may call."""
    writer = Writer(Random(seed))

    def main(b, n, x, y, array):
        strong = b.handle(b.cast(y, types.f64))
        scalars, arrays = writer.statements(b, [n.atom], [x, strong], [array], 3)
        end, last = writer.ends(b, scalars, arrays)
        return end + op("sum", last * last, axes=(0,), keepdims=False) + scalars[-1] * 0.3

    def tree(b, level, x, array):
        writer.recursion = []  # so that the level goes down

        def step(b):
            below = b.handle(level) - 1
            scalars, arrays = writer.statements(b, [level.atom], [x], [array], 1)
            x1, a1 = call(b, "tree", [below, *writer.ends(b, scalars, arrays)], [F64, vector(SIZE)])
            x2, a2 = call(b, "tree", [below, op("sin", x1), a1], [F64, vector(SIZE)])
            return [op("tanh", x2 * x), a2]

        return b.cond(b.handle(level) < 1, lambda b: [b.handle(x), b.handle(array)], step)

    entry = function("main", [PY_INT, F64, PY_FLOAT, vector(SIZE)], main)
    extra = function("tree", [PY_INT, F64, vector(SIZE)], tree)
    return program(entry, extra)


def directional(module, args, directions, step):
    """Central difference of the first result."""
    ends = [
        interpret(module, [a + s * step * d for a, d in zip(args, directions, strict=True)])[0]
        for s in (1, -1)
    ]
    return (ends[0] - ends[1]) / (2 * step)


def check_derivatives(seed, clean, forward):
    """Compare two orders of derivatives of a random program with differences, and `forward` orders
    of them with forward mode."""
    module = request = random_program(seed)
    args = [2, np.float64(0.7), 0.4, np.array([0.3, -0.6, 0.9])]
    directions = [0, 0.8, -1.1, np.array([0.5, 0.9, -0.7])]
    orders = expanded_orders(module, 2, clean=cleaned if clean else None)
    for order in (1, 2):
        fine = directional(orders[order - 1], args, directions, 1e-5)
        coarse = directional(orders[order - 1], args, directions, 4e-5)
        assume(abs(fine) < 1e6 and abs(fine - coarse) <= 1e-5 * (1 + abs(fine)))
        gradient = interpret(orders[order], args)[1:]
        found = sum(np.sum(g * d) for g, d in zip(gradient, directions[1:], strict=True))
        np.testing.assert_allclose(found, fine, rtol=1e-4, atol=1e-4, err_msg=f"order {order}")
        if order <= forward:
            moves = dict(enumerate(directions[1:], 1))
            moved = tangent(request, args, moves, cleaned if clean else None)
            np.testing.assert_allclose(moved, found, rtol=1e-8, atol=1e-8)
            request = derived(request, request.entry, [1, 2, 3], f"derived{order}")


@settings(max_examples=15, deadline=None, derandomize=True)
@given(st.integers(0, 10**9), st.booleans())
def test_random_programs_have_the_derivatives_that_finite_differences_say(seed, clean):
    check_derivatives(seed, clean, forward=1)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 10**9), st.booleans())
def test_many_random_programs_have_the_derivatives_that_finite_differences_say(seed, clean):
    check_derivatives(seed, clean, forward=2)
