"""Random programs of branches, loops, calls, updates, views and tapes: planned as interpreted.

Numbers are small and dyadic and the operations exact, so results agree to the last bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from core_programs import Program, call, do, function, vector
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_machine import Machine

from pyrelay.devices.cpu import TARGET
from pyrelay.ir.build import Builder, Handle
from pyrelay.ir.interp import interpret
from pyrelay.ir.nodes import Function, Module
from pyrelay.ir.types import PY_INT, TensorType, f64
from pyrelay.ir.verify import verify
from pyrelay.lower.planning.coalescing import coalesced
from pyrelay.lower.planning.plan import Entry, plan
from pyrelay.lower.planning.sinking import sunk

SIZE = vector()
LENGTH = SIZE.shape[0]


class Writer:
    """Writes a random program; `draw(n)` is a number below n."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.left = 14  # statements

    def pick(self, arrays: Sequence[Handle]) -> Handle:
        return arrays[self.draw(len(arrays))]

    def block(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        """Statements; the arrays that are known after them."""
        arrays = list(arrays)
        for _ in range(1 + self.draw(4)):
            if self.left <= 0:
                break
            self.left -= 1
            kinds = self.simple if depth >= 3 else self.simple + self.nested
            arrays += kinds[self.draw(len(kinds))](self, b, arrays, k, depth)
        return arrays

    # -- statements ----------------------------------------------------------------------------

    def add(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        return [self.pick(arrays) + self.pick(arrays)]

    def halve(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        return [self.pick(arrays) * 0.5]

    def turn(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        x = self.pick(arrays)
        return [do(b, "slice", x, starts=(LENGTH - 1,), sizes=(LENGTH,), steps=(-1,))]

    def update(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        op = ("index_update", "index_add")[self.draw(2)]
        return [do(b, op, self.pick(arrays), b.cast(k, f64), self.draw(3), axes=(0,))]

    def overwrite(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        x, y = self.pick(arrays), self.pick(arrays)
        part = do(b, "slice", y, starts=(0,), sizes=(2,), steps=(1,))
        return [do(b, "slice_update", x, part, starts=(1,), sizes=(2,), steps=(1,))]

    def view(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        row = do(b, "expand_dims", self.pick(arrays), axes=(0,))
        return [do(b, "reshape", row, shape=(LENGTH,))]

    def two_results(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        return list(call(b, "both", [self.pick(arrays), self.pick(arrays)], [SIZE] * 2, [LENGTH]))

    def store(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        return list(call(b, "store", [self.pick(arrays), k], [SIZE], [LENGTH]))

    def branch(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        count = 1 + self.draw(2)

        def arm(inner: Builder) -> list[Handle]:
            own = [inner.handle(a) for a in arrays]
            known = self.block(inner, own, inner.handle(k), depth + 1)
            return [self.pick(known) for _ in range(count)]

        return list(b.cond(do(b, "greater", k, self.draw(4)), arm, arm))

    def loop(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        init = [self.pick(arrays) for _ in range(1 + self.draw(2))]

        def body(inner: Builder, i: Handle, carried: tuple[Handle, ...]) -> list[Handle]:
            own = [*(inner.handle(a) for a in arrays), *carried]
            known = self.block(inner, own, i, depth + 1)
            return [self.pick(known[-3:]) for _ in carried]

        return list(b.counted(self.draw(4), init, body))

    def tape(self, b: Builder, arrays: list[Handle], k: Handle, depth: int) -> list[Handle]:
        held = do(b, "tape_new")
        pushed = [self.pick(arrays) for _ in range(1 + self.draw(2))]
        for x in pushed:
            held = do(b, "tape_push", held, x)
        between = self.block(b, arrays, k, depth + 1)[len(arrays) :]
        popped = []
        for _ in pushed:
            held, x = do(b, "tape_pop", held, type=SIZE)
            popped.append(x)
        return [*between, *popped]

    simple = (add, halve, turn, update, overwrite, view, two_results, store)
    nested = (branch, loop, tape)


def helper(name: str, inputs: int, body: Any) -> Function:
    """A function of arrays of one extent of its own, and the number k."""
    own = vector()
    params: dict[str, Any] = {f"x{i}": own for i in range(inputs)}
    if inputs == 1:
        params["k"] = PY_INT
    return function(name, params, body)


def random_program(draw: Any) -> Program:
    """A program of two arrays and a number; one of its arguments may be written."""
    writer = Writer(draw)

    def body(b: Builder, x: Handle, y: Handle, k: Handle) -> list[Handle]:
        arrays = writer.block(b, [x, y], k, 0)
        return [writer.pick(arrays), writer.pick(arrays)]

    def store(b: Builder, x: Handle, k: Handle) -> list[Handle]:
        return [do(b, "index_update", x, b.cast(k, f64), 1, axes=(0,))]

    functions = {
        "f": function("f", {"x": SIZE, "y": TensorType(f64, (LENGTH,)), "k": PY_INT}, body),
        "both": helper("both", 2, lambda b, x, y: [y, x + y]),
        "store": helper("store", 1, store),
    }
    mutated = (((0, 0),), ((1, 0),), ((0, 1), (1, 0)), ())[draw(4)]
    return Program(Module(functions, "f"), (), mutated)


def check(draw: Any) -> None:
    program = random_program(draw)
    verify(program.module, "optimise")
    changes = dict(program.mutated)
    code = plan(program.module, TARGET, Entry(mutated=changes))
    for made, k in itertools.product((code, coalesced(sunk(code))), (0, 3)):
        args = (np.array([1.0, 2.0, 4.0, 8.0]), np.array([-16.0, 0.5, 3.0, 7.0]), k)
        own = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
        expected = interpret(program.module, args)
        found = Machine(made).run(own)
        rest = [e for j, e in enumerate(expected) if j not in changes.values()]
        for one, other in zip(found, rest, strict=True):
            np.testing.assert_array_equal(one, other)
        for j in range(2):
            wanted = expected[changes[j]] if j in changes else args[j]
            np.testing.assert_array_equal(own[j], wanted)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_programs_are_planned_as_interpreted(data: st.DataObject) -> None:
    check(lambda n: data.draw(st.integers(0, n - 1)))


@pytest.mark.slow
@settings(max_examples=2000, deadline=None)
@given(st.data())
def test_many_random_programs_are_planned_as_interpreted(data: st.DataObject) -> None:
    check(lambda n: data.draw(st.integers(0, n - 1)))


